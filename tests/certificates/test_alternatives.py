"""The supports that fit nearly as well as that of a model, compared with enumerations (check 23 of models.md)."""

import json
from itertools import combinations

import numpy as np
import pytest

from boxes import least_squares
from hardthresh.certificates import alternative_supports
from hardthresh.constraints import GroupSparsity, OverlappingGroupSparsity, Sparsity
from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.losses import Gamma, Logistic, Poisson, Quantile, Squared
from hardthresh.objectives import LinearModel
from hardthresh.solvers import minimize
from levels import reaches, slow_beyond
from refits import best, problem


def equally_correlated(rho, seed, n=60, d=18, k=4):
    """Standard columns with a common part, and targets of which a sixth of the variance is signal."""
    rng = np.random.default_rng((23, int(10 * rho), seed))
    X = rng.standard_normal((n, d))
    X = np.sqrt(rho) * rng.standard_normal((n, 1)) + np.sqrt(1 - rho) * X
    w = np.zeros(d)
    w[rng.permutation(d)[:k]] = rng.choice([-1.0, 1.0], k)
    y = X @ w
    y += rng.standard_normal(n) * y.std() / np.sqrt(0.2)
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def values_of_all(X, y, k):
    """The least squared error of each support of size k, by normal equations."""
    gram, slope = X.T @ X / len(y), X.T @ y / len(y)
    supports = np.array(list(combinations(range(X.shape[1]), k)))
    coef = np.linalg.solve(gram[supports[:, :, None], supports[:, None, :]], slope[supports][:, :, None])[:, :, 0]
    values = 0.5 * (y @ y / len(y) - np.sum(coef * slope[supports], axis=1))
    return dict(zip(map(tuple, supports.tolist()), values.tolist(), strict=True))


@pytest.mark.slow
def test_check_23_nearly_all_enumerated_supports_are_found_and_no_others():
    enumerated = found = 0
    seeds = range(12 if reaches("pairs") else 3)
    for rho in (0.3, 0.6, 0.9):
        for seed in seeds:
            X, y = equally_correlated(rho, seed)
            f = LinearModel(X, y)
            w = minimize(f, Sparsity(4)).w
            pool = alternative_supports(f, Sparsity(4), w, tolerance=0.02, most=1000)
            values = values_of_all(X, y, 4)
            limit = 1.02 * f.value(w)
            near = {support for support, value in values.items() if value <= limit}
            numbers = {support.numbers for support in pool.supports}
            assert numbers <= near
            for support in pool.supports:
                assert support.value == pytest.approx(values[support.numbers], rel=1e-9)
                assert support.excess == pytest.approx(values[support.numbers] / pool.value - 1, abs=1e-9)
            enumerated, found = enumerated + len(near), found + len(numbers)
    assert enumerated > 18 * len(seeds)  # otherwise there is nothing to find
    assert found >= 0.98 * enumerated


@pytest.mark.slow
def test_the_best_supports_are_returned_when_there_are_more():
    X, y = equally_correlated(0.6, 3)
    f = LinearModel(X, y)
    w = minimize(f, Sparsity(4)).w
    everything = alternative_supports(f, Sparsity(4), w, tolerance=0.1, most=5000)
    few = alternative_supports(f, Sparsity(4), w, tolerance=0.1, most=20)
    assert few.more
    assert not everything.more
    assert few.supports == everything.supports[:20]
    assert few.examined < everything.examined


@slow_beyond(2)
@pytest.mark.parametrize("loss", [Squared(), Logistic(), Poisson(), Gamma()])
def test_ridge_weights_and_free_columns_are_those_of_the_objective(loss):
    weights = np.random.default_rng(4).integers(0, 3, 60).astype(float)
    f = problem(loss, l2=0.03, weights=weights)
    constraint = Sparsity(2, free=(7,))
    result = minimize(f, constraint)
    pool = alternative_supports(f, constraint, result.w, tolerance=0.2, most=50)
    by_hand = {pair: best(f, [*pair, 7]) for pair in combinations(range(7), 2)}
    near = {pair for pair, value in by_hand.items() if value <= result.value + 0.2 * abs(result.value)}
    assert {support.numbers for support in pool.supports} == near
    assert len(near) > 1
    for support in pool.supports:
        assert support.value == pytest.approx(by_hand[support.numbers], abs=1e-8)


def test_bounds_hold_on_all_supports():
    f = problem(Squared())
    upper = np.append(np.full(7, 0.35), np.inf)
    constraint = Sparsity(2, free=(7,), upper=upper)
    result = minimize(f, constraint)
    pool = alternative_supports(f, constraint, result.w, tolerance=0.5, most=50)
    assert not pool.exact
    assert len(pool.supports) > 1
    for support in pool.supports:
        columns = [*support.numbers, 7]
        box = np.array([np.full(3, -np.inf), upper[columns]])
        by_hand = least_squares(f.design.dense()[:, columns], f.y, box)[1] / len(f.y)
        assert support.value == pytest.approx(by_hand, abs=1e-9)


def test_groups_are_exchanged_whole():
    f = problem(Squared())
    labels = ("a", "a", "b", "b", "c", "c", "d", None)
    constraint = GroupSparsity(labels, 2, free=(7,))
    result = minimize(f, constraint)
    pool = alternative_supports(f, constraint, result.w, tolerance=1.0, unit="group")
    columns = {number: [j for j in range(7) if labels[j] == name] for number, name in enumerate("abcd")}
    by_hand = {pair: best(f, [*columns[pair[0]], *columns[pair[1]], 7]) for pair in combinations(range(4), 2)}
    near = {pair for pair, value in by_hand.items() if value <= 2 * result.value}
    assert {support.numbers for support in pool.supports} == near
    assert len(near) > 1
    assert "sets of 2 groups" in str(pool)


def test_copies_of_columns_are_tied():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    X[:, 4] = X[:, 1]
    f = LinearModel(X, X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(40))
    pool = alternative_supports(f, Sparsity(2), minimize(f, Sparsity(2)).w)
    assert [support.numbers for support in pool.supports] == [(1, 2), (2, 4)]
    assert pool.supports[1].excess == pytest.approx(0.0, abs=1e-12)
    assert pool.substitutes["1"][0][0] == "4"


def test_a_perfect_fit_has_only_perfect_alternatives():
    X = np.eye(3)
    f = LinearModel(X, np.array([1.0, 0.0, 0.0]))
    pool = alternative_supports(f, Sparsity(1), np.array([1.0, 0.0, 0.0]), tolerance=0.5)
    assert [support.numbers for support in pool.supports] == [(0,)]


def test_a_better_support_is_reported():
    X, y = equally_correlated(0.3, 0)
    f = LinearModel(X, y)
    values = values_of_all(X, y, 4)
    ranked = sorted(values, key=lambda support: values[support])
    poor = next(support for support in ranked[1:] if len(set(support) & set(ranked[0])) == 3)
    w = np.zeros(18)
    w[list(poor)] = np.linalg.lstsq(X[:, poor], y, rcond=None)[0]
    pool = alternative_supports(f, Sparsity(4), w)
    assert pool.supports[0].numbers == ranked[0]
    assert pool.supports[0].excess < 0
    assert "The best of them is better than the model" in str(pool)
    two = alternative_supports(f, Sparsity(4), w, tolerance=1.0, most=2)
    assert [support.numbers for support in two.supports] == [ranked[0], poor]  # the model is always listed
    alone = alternative_supports(f, Sparsity(4), w, most=1)
    assert alone.own == tuple(map(str, poor))
    assert alone.more


def test_single_precision_has_the_same_alternatives():
    X, y = equally_correlated(0.3, 1)
    models = [LinearModel(X.astype(dtype), y.astype(dtype)) for dtype in (np.float32, np.float64)]
    pools = [alternative_supports(f, Sparsity(4), minimize(f, Sparsity(4)).w) for f in models]
    assert len(pools[0].supports) > 1
    for one, other in zip(*(pool.supports for pool in pools), strict=True):
        assert one.numbers == other.numbers
        assert one.excess == pytest.approx(other.excess, abs=1e-6)


def test_shares_substitutes_and_records():
    X, y = equally_correlated(0.6, 3)
    f = LinearModel(X, y)
    pool = alternative_supports(
        f, Sparsity(4), minimize(f, Sparsity(4)).w, tolerance=0.1, most=7, label=lambda j: (j, f"c{j}")
    )
    assert sum(pool.shares.values()) == pytest.approx(4.0)
    assert list(pool.shares.values()) == sorted(pool.shares.values(), reverse=True)
    assert set(pool.substitutes) == set(pool.own)
    for name, pairs in pool.substitutes.items():
        for other, excess in pairs:
            [support] = [one for one in pool.supports if one.removed == (name,) and one.added == (other,)]
            assert support.excess == excess
    record = json.loads(json.dumps(pool.to_dict()))
    assert len(record["supports"]) == 7
    assert record["complete"] is False
    pandas = pytest.importorskip("pandas")
    frame = pool.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["excess"].tolist() == [support.excess for support in pool.supports]
    assert "<table>" in pool._repr_html_()
    assert "found by exchanges" in str(pool).lower()
    assert str(pool).count("\n") >= len(pool.shares)


def test_nothing_chosen_has_no_alternatives():
    f = LinearModel(np.eye(3), np.ones(3))
    pool = alternative_supports(f, Sparsity(0), np.zeros(3))
    assert [support.numbers for support in pool.supports] == [()]
    assert str(pool).startswith("The model has no feature")


def test_what_cannot_be_ranked_is_refused():
    f = LinearModel(np.eye(3), np.ones(3), Quantile(0.5, 0.0))
    with pytest.raises(CapabilityError, match="a loss with a kink has no second derivatives"):
        alternative_supports(f, Sparsity(1), np.array([1.0, 0.0, 0.0]))
    overlapping = OverlappingGroupSparsity([[0, 1], [1, 2]], 1)
    with pytest.raises(CapabilityError, match="these overlap"):
        alternative_supports(LinearModel(np.eye(3), np.ones(3)), overlapping, np.array([1.0, 1.0, 0.0]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"tolerance": 0.0}, "tolerance must be"), ({"tolerance": 2}, "tolerance must be"), ({"most": 0}, "most must be")],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        alternative_supports(LinearModel(np.eye(3), np.ones(3)), Sparsity(1), np.array([1.0, 0.0, 0.0]), **settings)
