"""What each chosen feature is worth, compared with refits by hand and with the formulas of textbooks."""

import numpy as np
import pytest

from boxes import least_squares
from hardthresh.certificates import standard_errors, unit_effects
from hardthresh.constraints import GroupSparsity, Sparsity
from hardthresh.losses import Gamma, Logistic, Poisson, Squared, Tweedie
from hardthresh.objectives import LinearModel
from hardthresh.solvers import minimize
from levels import in_turn
from refits import best, problem

LOSSES = [Squared(), Logistic(), Poisson(), Gamma()]


@in_turn("l2,loss", [0.0, 0.05], LOSSES)
def test_costs_are_those_of_refits_by_hand(l2, loss):
    f, constraint = problem(loss, l2=l2), Sparsity(2, free=(7,))
    result = minimize(f, constraint)
    chosen = [j for j in result.support.indices.tolist() if j != 7]
    effects = unit_effects(f, constraint, result.w)
    assert [effect.unit for effect in effects] == chosen
    for effect in effects:
        rest = [j for j in (*chosen, 7) if j != effect.unit]
        assert effect.drop_cost == pytest.approx(best(f, rest) - result.value, abs=1e-9)
        others = {j: best(f, [*rest, j]) - result.value for j in range(7) if j not in chosen}
        assert effect.substitute_cost == pytest.approx(others[effect.substitute], abs=1e-9)
        assert effect.substitute == min(others, key=others.get)


def test_groups_leave_and_are_exchanged_whole():
    f = problem(Squared())
    labels = ("a", "a", "b", "b", "c", "c", "d", None)
    constraint = GroupSparsity(labels, 2, free=(7,))
    result = minimize(f, constraint)
    columns = {number: [j for j in range(7) if labels[j] == name] for number, name in enumerate("abcd")}
    effects = unit_effects(f, constraint, result.w)
    chosen = [effect.unit for effect in effects]
    assert len(chosen) == 2
    for effect in effects:
        rest = [j for unit in chosen if unit != effect.unit for j in columns[unit]] + [7]
        assert effect.drop_cost == pytest.approx(best(f, rest) - result.value, abs=1e-9)
        others = {g: best(f, [*rest, *columns[g]]) - result.value for g in columns if g not in chosen}
        assert effect.substitute == min(others, key=others.get)
        assert effect.substitute_cost == pytest.approx(min(others.values()), abs=1e-9)


def test_bounds_hold_in_the_refits():
    f, constraint = problem(Squared()), Sparsity(2, free=(7,), lower=np.append(np.zeros(7), -np.inf))
    result = minimize(f, constraint)
    for effect in unit_effects(f, constraint, result.w):
        assert effect.drop_cost > 0
        assert effect.substitute_cost <= effect.drop_cost + 1e-12


@pytest.mark.parametrize("lower", [0.0, -0.3])
def test_the_closest_substitute_is_one_that_the_bounds_allow(lower):
    """Also of features at a bound; of 40 features most would join with a sign, or a size, that is forbidden."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 40)) + rng.standard_normal((60, 1))
    y = X[:, :4] @ [1.0, 0.8, -0.7, 0.5] + rng.standard_normal(60)
    f, upper = LinearModel(X, y), np.inf if lower == 0.0 else 0.3
    bounds = np.stack([np.full(40, lower), np.full(40, upper)])
    constraint, w = Sparsity(3, lower=lower, upper=upper), np.zeros(40)
    chosen = minimize(f, constraint, tol=1e-12).support.indices.tolist()
    w[chosen], _ = least_squares(X[:, chosen], y, bounds[:, chosen])
    assert np.isin(w[chosen], bounds).any() == (lower < 0.0)
    effects = unit_effects(f, constraint, w)
    assert [effect.unit for effect in effects] == chosen
    for effect in effects:
        rest = [i for i in chosen if i != effect.unit]
        costs = {
            j: least_squares(X[:, [*rest, j]], y, bounds[:, [*rest, j]])[1] / 60 - f.evaluate(w).value
            for j in range(40)
            if j not in chosen
        }
        assert effect.substitute == min(costs, key=costs.get)
        assert effect.substitute_cost == pytest.approx(costs[effect.substitute], abs=1e-9)
        assert effect.substitute_cost < effect.drop_cost


def test_a_copy_replaces_a_feature_at_no_cost():
    f = problem(Squared())
    X = np.column_stack([f.design.dense(), f.design.dense()[:, 1]])
    f, constraint = LinearModel(X, X[:, 1] + 0.1 * X[:, 0]), Sparsity(2, free=(7,))
    result = minimize(f, constraint)
    [effect] = [one for one in unit_effects(f, constraint, result.w) if one.unit in (1, 8)]
    assert {effect.unit, effect.substitute} == {1, 8}
    assert effect.substitute_cost == pytest.approx(0.0, abs=1e-12)


def test_where_all_are_chosen_there_is_no_substitute():
    f, constraint = problem(Squared()), Sparsity(7, free=(7,))
    effects = unit_effects(f, constraint, minimize(f, constraint).w)
    assert len(effects) == 7
    assert {effect.substitute for effect in effects} == {None}
    assert all(np.isnan(effect.substitute_cost) for effect in effects)


def covariance(loss, X, y, w):
    """The inverse information of textbooks, for each model its own."""
    n, p = X.shape
    u = X @ w
    if isinstance(loss, Squared):
        return np.linalg.inv(X.T @ X) * np.sum((y - u) ** 2) / (n - p)
    if isinstance(loss, Logistic):
        share = 1 / (1 + np.exp(-u))
        return np.linalg.inv(X.T @ (X * (share * (1 - share))[:, None]))
    if isinstance(loss, Poisson):
        return np.linalg.inv(X.T @ (X * np.exp(u)[:, None]))
    power, mean = getattr(loss, "power", 2.0), np.exp(u)  # the observed information, and Pearson's dispersion
    bend = (power - 1) * y * mean ** (1 - power) + (2 - power) * mean ** (2 - power)
    phi = np.sum((y - mean) ** 2 / mean**power) / (n - p)
    return np.linalg.inv(X.T @ (X * bend[:, None])) * phi


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", [*LOSSES, Tweedie(1.3)], ids=lambda loss: type(loss).__name__)
def test_standard_errors_are_those_of_textbooks(loss, intercept):
    f, constraint = problem(loss), Sparsity(2, free=(7,) if intercept else ())
    result = minimize(f, constraint)
    indices = result.support.indices
    found = standard_errors(f, f.evaluate(result.w), result.support, 60.0)
    expected = covariance(loss, f.design.dense()[:, indices], f.y, result.w[indices])
    np.testing.assert_allclose(found, np.sqrt(np.diagonal(expected)), rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_a_weight_of_two_is_a_row_given_twice(loss):
    weights = np.random.default_rng(0).integers(1, 4, 60).astype(float)
    f, constraint = problem(loss, weights=weights, l2=0.01), Sparsity(2, free=(7,))
    twice = LinearModel(np.repeat(f.design.dense(), weights.astype(int), axis=0), np.repeat(f.y, weights.astype(int)),
                        loss, l2=f.l2)  # fmt: skip
    result, n = minimize(f, constraint, tol=1e-12), weights.sum()
    found = standard_errors(f, f.evaluate(result.w), result.support, n)
    expected = standard_errors(twice, twice.evaluate(result.w), result.support, n)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_ridge_shrinks_the_standard_error_as_it_shrinks_the_estimate():
    rng = np.random.default_rng(0)
    x, alpha = rng.standard_normal((50, 1)), 2.0
    y = x[:, 0] + rng.standard_normal(50)
    f = LinearModel(x, y, l2=alpha)
    result = minimize(f, Sparsity(1))
    square = np.mean(x**2)
    noise = np.sum((y - x[:, 0] * result.w) ** 2) / 49
    expected = np.sqrt(noise * square / 50) / (square + alpha)  # of the mean of x y over (square + alpha)
    assert standard_errors(f, f.evaluate(result.w), result.support, 50.0) == pytest.approx([expected])


def test_dependent_columns_and_too_few_rows_have_no_standard_errors():
    X = np.random.default_rng(0).standard_normal((20, 3))
    X[:, 2] = X[:, 1]
    f = LinearModel(X, X[:, 0] + X[:, 1] ** 2)
    support = Sparsity(3).project(np.ones(3)).support
    found = standard_errors(f, f.evaluate(np.array([1.0, 0.5, 0.5])), support, 20.0)
    np.testing.assert_array_equal(np.isnan(found), [False, True, True])
    assert np.isnan(standard_errors(f, f.evaluate(np.ones(3)), support, 3.0)).all()
