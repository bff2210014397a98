"""Greedy selection against slow twins, scikit-learn's OMP, and the figure of the paper."""

import pickle
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from papers.accelerated_iht._data import correlated_split, gaussian_design
from sklearn.linear_model import orthogonal_mp
from sklearn.metrics import roc_auc_score

from hardthresh.baselines import (
    AdaptiveForwardBackward,
    ForwardGreedy,
    Oblivious,
    frank_wolfe,
)
from hardthresh.constraints import GroupSparsity, Rank, Sparsity
from hardthresh.core import CapabilityError, InvalidInputError, Status, iterate, minimize
from hardthresh.objectives import LinearModel, MatrixRegression
from levels import at_most, slow_beyond

SOLVERS = {
    "oblivious": Oblivious(),
    "oblivious-normalized": Oblivious(normalize=True),
    "omp": ForwardGreedy(),
    "omp-normalized": ForwardGreedy("normalized"),
    "forward": ForwardGreedy("decrease"),
    "foba": AdaptiveForwardBackward(),
    "foba-eager": AdaptiveForwardBackward(nu=0.9),
}
every = pytest.mark.parametrize("name", SOLVERS)
both_losses = pytest.mark.parametrize("loss", ["squared", "logistic"])


def correlated(seed=0, n=50, d=14, loss="squared"):
    rng = np.random.default_rng((seed, n, d))
    X = rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((n, 1))
    X[:, d - 1] = X[:, 0] + X[:, 1] + 0.3 * X[:, d - 1]  # what a greedy choice falls for
    signal = X[:, :4] @ np.array([2.0, 1.5, -1.0, 0.5])
    if loss == "logistic":
        return X, (rng.random(n) < 1 / (1 + np.exp(-signal))).astype(float)
    return X, signal + 0.3 * rng.standard_normal(n)


def least_squares(X, y, chosen):
    coef = np.zeros(X.shape[1])
    if len(chosen):
        coef[list(chosen)] = np.linalg.lstsq(X[:, list(chosen)], y)[0]
    return coef, float(np.sum((y - X @ coef) ** 2)) / (2 * len(y))


def naive_foba(X, y, k, nu=0.5):
    """Zhang's Algorithm 3 with every candidate refitted; nu = -1 never goes back."""
    chosen, falls = [], {}
    value = least_squares(X, y, chosen)[1]
    while len(chosen) < k:
        tried = {j: least_squares(X, y, [*chosen, j])[1] for j in range(X.shape[1]) if j not in chosen}
        best = min(tried, key=tried.get)
        chosen.append(best)
        falls[len(chosen)], value = value - tried[best], tried[best]
        while len(chosen) > 1:
            without = {j: least_squares(X, y, [i for i in chosen if i != j])[1] for j in chosen}
            least = min(without, key=without.get)
            if without[least] - value > nu * falls[len(chosen)]:
                break
            chosen.remove(least)
            value = without[least]
    return sorted(chosen), value


# --- twins -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("k", [1, 3, 6])
def test_forward_and_foba_against_their_twins(seed, k):
    X, y = correlated(seed)
    f = LinearModel(X, y)
    for name, nu in (("forward", -1.0), ("foba", 0.5), ("foba-eager", 0.9)):
        run = minimize(f, Sparsity(k), SOLVERS[name])
        support, value = naive_foba(X, y, k, nu)
        np.testing.assert_array_equal(run.support, support)
        assert run.value == pytest.approx(value, rel=1e-9)
        assert run.status is Status.SETTLED


def test_the_units_of_the_columns_do_not_decide_which_of_them_leaves():
    """What leaves is what costs least after a refit, not the smallest coefficient."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    X[:, 2] = X[:, 0] + X[:, 1] + 0.3 * X[:, 2]
    y = X[:, 0] + X[:, 1] + 0.1 * rng.standard_normal(50)
    plain = minimize(LinearModel(X, y), Sparsity(3), AdaptiveForwardBackward()).history
    assert (np.diff(plain["k"]) == 0).any()  # one in, one out
    for units in ([1e3, 1.0, 1.0], [1e3, 1e3, 1e-3], [1e-3, 1e3, 1.0]):
        history = minimize(LinearModel(X * units, y), Sparsity(3), AdaptiveForwardBackward()).history
        np.testing.assert_allclose(history["value"], plain["value"], rtol=1e-9)


def test_foba_goes_back_where_forward_cannot():
    X, y = correlated(3)
    y = X[:, 0] + X[:, 1]
    f = LinearModel(X, y)
    assert 13 in minimize(f, Sparsity(2), ForwardGreedy("decrease")).support
    run = minimize(f, Sparsity(3), AdaptiveForwardBackward())
    np.testing.assert_array_equal(run.support, [0, 1])
    assert run.status is Status.LOWER_BOUND
    assert run.history["k"].max() <= 3


@pytest.mark.parametrize("seed", range(5))
def test_omp_against_scikit_learn(seed):
    drawn = correlated_split(seed=seed)
    X, y = drawn.X[drawn.train], drawn.y[drawn.train]
    for k in (1, 5, 20):
        run = minimize(LinearModel(X, y), Sparsity(k), ForwardGreedy())
        np.testing.assert_allclose(run.w, orthogonal_mp(X, y, n_nonzero_coefs=k), atol=1e-8)


@slow_beyond(1)
@pytest.mark.parametrize("seed", range(3))
def test_omp_is_frank_wolfe_with_refits(seed):
    drawn = gaussian_design(750, 2000, 50, seed=seed)
    f = LinearModel(drawn.X, drawn.y)
    run = minimize(f, Sparsity(50), ForwardGreedy())
    assert run.n_iter == 50
    np.testing.assert_array_equal(run.support, frank_wolfe(f, 40.0, corrective=True).support)


@pytest.mark.parametrize("seed", range(4))
def test_oblivious_is_a_ranking(seed):
    X, y = correlated(seed)
    X = X * np.random.default_rng(seed).uniform(0.1, 10.0, X.shape[1])
    for normalize in (False, True):
        scores = np.abs(X.T @ y) / (np.linalg.norm(X, axis=0) if normalize else 1.0)
        run = minimize(LinearModel(X, y), Sparsity(5), Oblivious(normalize))
        best = np.sort(np.argsort(-scores)[:5])
        np.testing.assert_array_equal(run.support, best)
        np.testing.assert_allclose(run.w, least_squares(X, y, best)[0], atol=1e-8)
        np.testing.assert_array_equal(run.history["k"], np.arange(6))


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("seed", range(3))
def test_forward_selection_of_a_logistic_model_against_refitting_everything(seed):
    X, y = correlated(seed, n=150, loss="logistic")
    f = LinearModel(X, y, loss="logistic", l2=0.01)
    run = minimize(f, Sparsity(3), ForwardGreedy("decrease", candidates=14))
    chosen = []
    for _ in range(3):
        rest = [j for j in range(14) if j not in chosen]
        fits = {j: minimize(f.columns(np.sort([*chosen, j])), Sparsity(14), ForwardGreedy()).value for j in rest}
        chosen.append(min(fits, key=fits.get))
    np.testing.assert_array_equal(run.support, np.sort(chosen))


# --- the paper -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_figure_of_the_paper():
    """Means over the specification's ten seeds, to the rounding of its table; the levels come from one run each."""
    levels = [5, 10, 20, 30]
    expected = {
        "oblivious": ([0.554, 0.749, 0.841, 0.863], [0.622, 0.706, 0.778, 0.803]),
        "omp": ([0.593, 0.821, 0.898, 0.887], None),
        "forward": ([0.601, 0.821, 0.899, 0.887], [0.625, 0.750, 0.939, 0.919]),
    }
    found = {name: np.zeros((3, len(levels))) for name in expected}
    for seed in range(10):
        drawn = correlated_split(seed=seed)
        X, y = drawn.X[drawn.train], drawn.y[drawn.train]
        Z, z = drawn.X[drawn.test], drawn.y[drawn.test]
        for name in expected:
            states = {
                state.size: state for state in islice(iterate(LinearModel(X, y), Sparsity(30), SOLVERS[name]), 31)
            }
            for place, k in enumerate(levels):
                w = states[k].w
                error = np.mean((y - X @ w) ** 2)
                found[name][:, place] += (
                    0.1 * (1 - np.sum((z - Z @ w) ** 2) / np.sum((z - z.mean()) ** 2)),
                    0.1 * roc_auc_score(drawn.coef != 0, w != 0),
                    0.1 * -0.5 * y.size * (np.log(2 * np.pi * error) + 1),
                )
    for name, (r2, auc) in expected.items():
        np.testing.assert_allclose(found[name][0], r2, atol=6e-4)
        if auc is not None:
            np.testing.assert_allclose(found[name][1], auc, atol=6e-4)
    np.testing.assert_allclose(found["forward"][2], [948, 1109, 1247, 1271], atol=0.6)


@pytest.mark.parametrize("seed", range(3))
def test_foba_is_forward_at_moderate_budgets(seed):
    drawn = correlated_split(seed=seed)
    f = LinearModel(drawn.X[drawn.train], drawn.y[drawn.train])
    forward, foba = (minimize(f, Sparsity(20), SOLVERS[name]) for name in ("forward", "foba"))
    np.testing.assert_array_equal(foba.support, forward.support)


# --- the contract ----------------------------------------------------------------------------------------------------


@slow_beyond(4)
@every
@both_losses
def test_states_keep_the_contract(name, loss):
    X, y = correlated(loss=loss)
    f, constraint, solver = LinearModel(X, y, loss=loss, l2=0.01), Sparsity(5, free=(2,)), SOLVERS[name]
    before = pickle.dumps(vars(f))
    states = list(islice(iterate(f, constraint, solver), 14))
    for number, state in enumerate(states):
        assert state.iteration == number
        again = constraint.project(state.w)
        np.testing.assert_array_equal(again.point, state.w)
        np.testing.assert_array_equal(again.support, state.support)
        assert state.size == np.count_nonzero(np.delete(state.w, 2)) <= 5
        assert state.value == pytest.approx(f.value(state.w), rel=1e-12)
        np.testing.assert_allclose(state.at.gradient, f.evaluate(state.w).gradient, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state.at.gradient[state.support], 0.0, atol=1e-7)
    assert states[-1].settled
    stored = pickle.loads(pickle.dumps(states[3]))
    for one, other in zip(states[3:], islice(iterate(f, constraint, solver, state=stored), 11), strict=True):
        np.testing.assert_array_equal(one.w, other.w)
        assert (one.value, one.settled, one.size) == (other.value, other.settled, other.size)
    assert pickle.dumps(vars(f)) == before


@every
@both_losses
def test_any_start_will_do(name, loss):
    X, y = correlated(loss=loss)
    f = LinearModel(X, y, loss=loss, l2=0.01)
    w0 = np.random.default_rng(0).standard_normal(14)
    run = minimize(f, Sparsity(4), SOLVERS[name], w0)
    assert run.converged
    assert run.value < run.history["value"][0]
    part = minimize(f, Sparsity(4), SOLVERS[name], np.eye(14)[7])
    assert 7 in part.support or "foba" in name
    assert part.state.size == 4


@slow_beyond(4)
@every
@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_other_array_libraries(name, library):
    xp = pytest.importorskip(library, reason=f"{library} is not installed")
    X, y = correlated()
    plain = minimize(LinearModel(X, y), Sparsity(4), SOLVERS[name])
    other = minimize(LinearModel(xp.asarray(X), xp.asarray(y)), Sparsity(4), SOLVERS[name])
    assert type(other.w) is type(xp.asarray(X))
    np.testing.assert_allclose(np.asarray(other.w), plain.w, atol=1e-8)


@every
def test_sparse_and_single_precision_data(name):
    X, y = correlated()
    X[np.abs(X) < 0.5] = 0.0
    plain = minimize(LinearModel(X, y), Sparsity(4), SOLVERS[name])
    stored = minimize(LinearModel(sp.csc_array(X), y), Sparsity(4), SOLVERS[name])
    np.testing.assert_array_equal(stored.support, plain.support)
    single = minimize(LinearModel(X.astype(np.float32), y.astype(np.float32)), Sparsity(4), SOLVERS[name])
    assert single.w.dtype == np.float32
    np.testing.assert_array_equal(single.support, plain.support)


@every
def test_signs_and_useless_columns(name):
    X, y = correlated()
    X[:, 5], X[:, 6] = 0.0, X[:, 0]
    run = minimize(LinearModel(X, y), Sparsity(6, lower=0.0), SOLVERS[name])
    assert run.converged
    assert np.isfinite(run.w).all()
    assert (run.w >= 0).all()
    assert run.w[5] == 0.0
    assert not (run.w[0] and run.w[6])


@every
def test_zero_target_and_zero_budget_give_zero_coefficients(name):
    X, _ = correlated()
    run = minimize(LinearModel(X, np.zeros(50)), Sparsity(3), SOLVERS[name])
    assert run.converged
    assert not run.w.any()
    none = minimize(LinearModel(*correlated()), Sparsity(0), SOLVERS[name])
    assert none.converged
    assert none.support.indices.size == 0


@every
def test_a_budget_beyond_the_columns_takes_all_of_them(name):
    X, y = correlated()
    f = LinearModel(X, y)
    run = minimize(f, Sparsity(20), SOLVERS[name])
    assert run.converged
    if "foba" not in name:  # which may drop columns again
        np.testing.assert_allclose(run.w, least_squares(X, y, range(14))[0], atol=1e-8)


# --- bad input -------------------------------------------------------------------------------------------------------


@every
def test_constraints_without_single_coordinates_are_refused(name):
    matrices = MatrixRegression(np.ones((3, 2, 2)), np.ones(3))
    with pytest.raises(CapabilityError, match="columns"):
        minimize(matrices, Rank(1), SOLVERS[name])
    with pytest.raises(CapabilityError, match="chooses single coordinates"):
        minimize(LinearModel(*correlated()), GroupSparsity([0] * 7 + [1] * 7, 1), SOLVERS[name])


@every
def test_bounds_hold(name):
    run = minimize(LinearModel(*correlated()), Sparsity(4, free=(3,), lower=-0.1, upper=0.2), SOLVERS[name])
    assert run.w.min() >= -0.1
    assert run.w.max() <= 0.2
    assert np.isin(run.w, [-0.1, 0.2]).any()


def test_wrong_settings_are_refused():
    with pytest.raises(InvalidInputError, match="rule must be one of"):
        ForwardGreedy("best")
    with pytest.raises(InvalidInputError, match="candidates"):
        ForwardGreedy(candidates=0)
    with pytest.raises(InvalidInputError, match="candidates"):
        ForwardGreedy(candidates="many")
    with pytest.raises(InvalidInputError, match="candidates"):
        AdaptiveForwardBackward(candidates=1.5)
    for nu in (-0.1, 1.0, np.nan, "half"):
        with pytest.raises(InvalidInputError, match="nu"):
            AdaptiveForwardBackward(nu)
