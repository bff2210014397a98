"""Basic feasibility and the smallest L of L-stationarity, against their closed formulas for sparsity."""

from dataclasses import replace
from itertools import combinations
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.certificates import certify
from hardthresh.constraints import Coordinates, Sparsity
from hardthresh.core import Evaluation, HardThreshError, feasibility_residual, iterate, minimize, smallest_lipschitz
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.state import Trace
from hardthresh.core.stationarity import (
    Certificate,
    certify_point,
    leading_norm,
    norm,
    reference_is_stationary,
    remaining_gradient,
    restricted_smoothness,
)
from hardthresh.core.stopping import Run, Stationarity
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT, HardThresholdingPursuit
from hardthresh.solvers.steepest import is_steep
from levels import draws, only_at


def at(point, gradient):
    return Evaluation(np.array(point, dtype=float), 1.0, np.array(gradient, dtype=float))


@given(
    st.lists(st.floats(0.1, 10), min_size=3, max_size=3),
    st.lists(st.floats(-10, 10, allow_subnormal=False), min_size=5, max_size=5),
    st.integers(0, 2**8 - 1),
)
@draws(60)
def test_the_smallest_L_of_a_full_support(inside, outside, signs):
    """P(w - g/L) = w with g_S = 0 if and only if max |g_off| / L <= min |w_S|."""
    w, g = np.zeros(8), np.zeros(8)
    w[[1, 4, 6]] = np.where([signs >> i & 1 for i in range(3)], inside, np.negative(inside))
    g[[0, 2, 3, 5, 7]] = outside
    expected = np.max(np.abs(outside)) / np.min(inside)
    support = Coordinates(np.array([1, 4, 6]))
    np.testing.assert_allclose(smallest_lipschitz(Sparsity(3), at(w, g), support), expected, rtol=1e-8, atol=1e-300)
    assert feasibility_residual(Sparsity(3), at(w, g), support) == 0.0


def test_the_smallest_L_leaves_out_the_gradient_on_the_support():
    w, g = [2.0, -4.0, 0.0], [0.3, -0.4, 1.0]
    support = Coordinates(np.array([0, 1]))
    np.testing.assert_allclose(smallest_lipschitz(Sparsity(2), at(w, g), support), 0.5, rtol=1e-8)
    np.testing.assert_allclose(feasibility_residual(Sparsity(2), at(w, g), support), 0.5)


def test_a_support_with_room_is_stationary_only_where_the_gradient_vanishes():
    w, support = [2.0, 0.0, 0.0], Coordinates(np.array([0]))
    assert smallest_lipschitz(Sparsity(2), at(w, [0.0, 0.0, 0.1]), support) == inf
    assert smallest_lipschitz(Sparsity(2), at(w, [0.0, 0.0, 0.0]), support) == 0.0
    np.testing.assert_allclose(feasibility_residual(Sparsity(2), at(w, [0.0, 0.0, 0.1]), support), 0.1, rtol=1e-6)
    assert feasibility_residual(Sparsity(2), at(w, [0.0, 0.0, 0.0]), support) == 0.0


def test_zero_with_room_sees_the_leading_gradient():
    zero, support = [0.0, 0.0, 0.0], Coordinates(np.array([], dtype=np.int64))
    residual = feasibility_residual(Sparsity(2), at(zero, [3.0, -4.0, 1.0]), support)
    np.testing.assert_allclose(residual, 5.0, rtol=1e-6)


def test_without_room_for_anything_every_L_will_do():
    zero, support = [0.0, 0.0, 0.0], Coordinates(np.array([], dtype=np.int64))
    assert smallest_lipschitz(Sparsity(0), at(zero, [3.0, -4.0, 1.0]), support) == 0.0
    free = Sparsity(0, free=(1,))
    assert smallest_lipschitz(free, at([0.0, 2.0, 0.0], [3.0, 0.0, 1.0]), Coordinates(np.array([1]))) == 0.0
    assert smallest_lipschitz(free, at(zero, [3.0, 0.0, 1.0]), Coordinates(np.array([1]))) == 0.0
    single = Evaluation(np.zeros(3, np.float32), 1.0, np.ones(3, np.float32))
    assert smallest_lipschitz(Sparsity(0), single, support) == 0.0


def test_a_bound_that_holds_counts_as_feasible():
    constraint = Sparsity(2, lower=0.0, upper=1.0)
    here = at([1.0, 0.5, 0.0], [-3.0, 0.0, 0.0])
    assert feasibility_residual(constraint, here, Coordinates(np.array([0, 1]))) == 0.0
    there = at([1.0, 0.5, 0.0], [3.0, 0.0, 0.0])
    assert feasibility_residual(constraint, there, Coordinates(np.array([0, 1]))) == 3.0


# --- two ways to say the same: Lemma 1 and Definition 2 ---------------------------------------------------------------


def integer_case(rng):
    """Small integers, so that there are ties, zeros, too few non-zeros, and basic feasible points of all kinds."""
    n = int(rng.integers(1, 8))
    k = int(rng.integers(0, n + 1))
    size = k if rng.random() < 0.6 else int(rng.integers(0, k + 1))
    chosen = rng.permutation(n)[:size]
    w, g = np.zeros(n), rng.integers(-4, 5, n).astype(float)
    w[chosen] = rng.integers(1, 4, size) * rng.choice([-1.0, 1.0], size)
    if rng.random() < 0.7:
        g[chosen] = 0.0
    if rng.random() < 0.15:
        g[:] = 0.0
    return Sparsity(k), at(w, g)


@only_at("pairs")
def test_lemma_1_and_definition_2_agree_on_integers():
    rng = np.random.default_rng(0)
    seen = {"none": 0, "every": 0, "threshold": 0, "k = 0": 0, "k = n": 0, "room": 0, "not feasible": 0}
    for _ in range(2000):
        constraint, point = integer_case(rng)
        support = Coordinates(np.flatnonzero(point.point))
        smallest = smallest_lipschitz(constraint, point, support, tol=0.0)
        threshold = 0.0 < smallest < inf
        levels = smallest * np.array([0.5, 1 - 1e-6, 1.0, 1 + 1e-6, 2.0]) if threshold else [1e-3, 1.0, 4 / 3, 1e6]
        for L in levels:
            assert reference_is_stationary(constraint, point, L) == (smallest <= L), (constraint, point, L)
        seen["threshold" if threshold else "none" if smallest == inf else "every"] += 1
        seen["k = 0"] += constraint.k == 0
        seen["k = n"] += constraint.k == point.point.size
        seen["room"] += len(support) < constraint.k
        seen["not feasible"] += feasibility_residual(constraint, point, support) > 0
    assert min(seen.values()) >= 200, seen


@pytest.mark.slow
def test_the_formula_and_the_bisection_agree():
    """A bound that never holds sends the same question the other way."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        constraint, point = integer_case(rng)
        support = Coordinates(np.flatnonzero(point.point))
        bisected = smallest_lipschitz(Sparsity(constraint.k, lower=-1e9), point, support)
        np.testing.assert_allclose(bisected, smallest_lipschitz(constraint, point, support), rtol=1e-8)


def test_a_tie_is_stationary_whichever_of_the_two_is_kept():
    """A projection need not be the one that the rule for ties prefers."""
    for w, g in (([1.0, 0.0], [0.0, -1.0]), ([0.0, 1.0], [-1.0, 0.0])):
        point = at(w, g)
        assert smallest_lipschitz(Sparsity(1), point, Coordinates(np.flatnonzero(point.point)), tol=0.0) == 1.0
        assert reference_is_stationary(Sparsity(1), point, 1.0)
        assert not reference_is_stationary(Sparsity(1), point, 0.999)


def test_a_point_outside_of_the_set_is_not_stationary():
    assert not reference_is_stationary(Sparsity(1), at([1.0, 1.0], [0.0, 0.0]), 1.0)


def test_the_example_of_the_paper():
    """Basic feasible, and L-stationary for no L below 4."""
    point, support = at([0.0, 1.0], [-4.0, 0.0]), Coordinates(np.array([1]))
    assert feasibility_residual(Sparsity(1), point, support) == 0.0
    assert smallest_lipschitz(Sparsity(1), point, support, tol=0.0) == 4.0


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_other_array_libraries_say_the_same(library):
    xp = pytest.importorskip(library)
    w, g, support = [0.0, 2.0, 0.0, -1.0], [1.0, 0.0, -3.0, 0.0], [1, 3]
    point = Evaluation(xp.asarray(w), 1.0, xp.asarray(g))
    for constraint in (Sparsity(2), Sparsity(2, free=(1,)), Sparsity(3)):
        smallest = smallest_lipschitz(constraint, point, Coordinates(xp.asarray(support)), tol=4.0)
        assert smallest == smallest_lipschitz(constraint, at(w, g), Coordinates(np.array(support)), tol=4.0)
        for L in (1.5, 2.9, 3.1):
            assert reference_is_stationary(constraint, point, L) == reference_is_stationary(constraint, at(w, g), L)


def test_stored_points_have_the_stored_residual_and_smallest_L(specs):
    """The residual was stored as a largest magnitude."""
    with np.load(specs / "golden" / "piht_unit.npz") as golden:
        cases = zip(*(golden[name] for name in ("n", "K", "x", "g", "smallest_L", "bf_residual")), strict=True)
        for n, k, w, g, smallest, residual in cases:
            constraint, point = Sparsity(int(k)), at(w[:n], g[:n])
            support = constraint.project(point.point).support
            assert np.max(np.abs(remaining_gradient(constraint, point, support))) == residual
            assert (feasibility_residual(constraint, point, support) == 0.0) == (residual == 0.0)
            assert smallest_lipschitz(constraint, point, support, tol=0.0) == smallest
            for L in (0.5 * smallest, (1 - 1e-6) * smallest, smallest, 2 * smallest, 1e3):
                if 0.0 < L < inf:
                    assert reference_is_stationary(constraint, point, L) == (smallest <= L)


def test_stored_points_are_thresholded_as_stored(specs):
    with np.load(specs / "golden" / "piht_unit.npz") as golden:
        for z, k, thresholded in zip(golden["ht_v"], golden["ht_K"], golden["ht_out"], strict=True):
            np.testing.assert_array_equal(Sparsity(int(k)).project(z).point, thresholded)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_smallest_L_follows_the_scales(scale):
    support = Coordinates(np.array([0, 1]))
    one = smallest_lipschitz(Sparsity(2), at([2.0, -4.0, 0.0], [0.0, 0.0, 1.0]), support)
    other = smallest_lipschitz(Sparsity(2), at([2.0, -4.0, 0.0], [0.0, 0.0, scale]), support)
    np.testing.assert_allclose(other / one, scale, rtol=1e-8)


def test_norms():
    v = np.array([3.0, -4.0, 1.0])
    assert norm(v) == pytest.approx(np.sqrt(26))
    assert leading_norm(Sparsity(2), v) == pytest.approx(5.0)
    assert leading_norm(Sparsity(2, lower=0.0), v) == pytest.approx(5.0)


def test_restricted_smoothness_lies_between_the_restricted_and_the_full():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 12)) * np.linspace(0.5, 2, 12)
    objective = LinearModel(X, rng.standard_normal(50))
    gram = X.T @ X / 50
    full = np.linalg.eigvalsh(gram)[-1]
    restricted = max(np.linalg.eigvalsh(gram[np.ix_(c, c)])[-1] for c in combinations(range(12), 4))
    estimate = restricted_smoothness(objective, Sparsity(2), objective.evaluate(np.zeros(12)))
    assert 0.7 * restricted <= estimate <= restricted * (1 + 1e-9)
    assert restricted < 0.95 * full
    wide = restricted_smoothness(objective, Sparsity(12), objective.evaluate(np.zeros(12)), iterations=200)
    np.testing.assert_allclose(wide, full, rtol=1e-3)


def test_the_certificate_of_a_result():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 30))
    objective = LinearModel(X, X[:, 3] - 2 * X[:, 20] + 0.1 * rng.standard_normal(100))
    run = minimize(objective, Sparsity(2), HardThresholdingPursuit())
    certificate = certify(run)
    gradient = objective.evaluate(run.w).gradient
    off = np.abs(np.delete(gradient, run.support)).max()
    np.testing.assert_allclose(certificate.smallest_L, off / np.abs(run.w[run.support]).min(), rtol=1e-8)
    assert certificate.basic_feasibility <= 1e-6 * certificate.gradient_scale
    np.testing.assert_allclose(
        certificate.gradient_scale, np.linalg.norm(np.sort(np.abs(objective.evaluate(np.zeros(30)).gradient))[-2:])
    )
    assert certificate.is_stationary()
    assert not certificate.is_stationary(L=0.5 * certificate.smallest_L)
    assert certificate.is_stationary(L=1.001 * certificate.smallest_L)
    assert certificate.is_stationary(L=inf)
    for none in (0.0, -1.0, np.nan, "a", True, [1.0]):
        with pytest.raises(InvalidInputError, match="L must be a number > 0"):
            certificate.is_stationary(L=none)
    for none in (-1.0, np.nan, "a", None):
        with pytest.raises(InvalidInputError, match="tol must be a number >= 0"):
            certificate.is_stationary(tol=none)

    wrong = np.zeros(30)
    wrong[[0, 1]] = 1.0
    poor = certify_point(objective, Sparsity(2), objective.evaluate(wrong), Coordinates(np.array([0, 1])))
    assert not poor.is_stationary()


@pytest.mark.parametrize(("residual", "scale"), [(inf, inf), (1e203, inf), (np.nan, 1.0), (0.0, np.nan), (inf, 1.0)])
def test_what_is_not_finite_certifies_nothing(residual, scale):
    certificate = Certificate(basic_feasibility=residual, smallest_L=0.0, smoothness=1.0, gradient_scale=scale)
    assert not certificate.is_stationary()
    assert not certificate.is_stationary(L=inf)
    assert not (certificate.is_stationary(tol=inf) and not np.isfinite(residual))


@pytest.mark.parametrize("size", [1.0, inf], ids=str)
def test_a_gradient_that_overflows_is_not_basic_feasible(size):
    """Neither for the certificate, nor for the rule that ends a run; with room in the budget, or without."""
    objective = LinearModel(np.eye(3), np.array([3.0, 2.0, 1.0]))
    at = objective.evaluate(np.array([1.0, 0.0, 0.0]))
    at = replace(at, gradient=np.array([-size, -size, 0.0]))
    trace = Trace(0.0, null_value=1.0, null_gradient=size, size=1.0)
    state = replace(next(iterate(objective, Sparsity(1), IHT())), at=at, trace=trace)
    for constraint in (Sparsity(1), Sparsity(3)):
        assert not certify_point(objective, constraint, at, Coordinates(np.array([0])), trace).is_stationary(L=inf)
        assert Stationarity().check(Run(objective, constraint, state, 0.0)) is None
        assert is_steep(constraint, state)


@pytest.mark.parametrize("constraint", [Sparsity(0, free=(0, 2)), Sparsity(0, free=(0, 2), lower=-100.0)])
def test_a_null_model_that_is_the_answer_is_fitted_to_the_end(constraint):
    """What is left of its gradient is rounding, and so is the null model's."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 6))
    run = minimize(LinearModel(X, X[:, 0] + rng.standard_normal(50)), constraint, HardThresholdingPursuit())
    certificate = certify(run)
    assert certificate.basic_feasibility <= 1e-14
    assert certificate.gradient_scale >= 1e-3
    assert certificate.smallest_L == 0.0
    assert certificate.is_stationary()


@pytest.mark.parametrize("seed", [100, 801, 3971])
def test_a_global_minimiser_passes_although_the_smoothness_is_an_estimate_from_below(seed):
    """Of 4000 small problems these are the ones where the estimate by power iteration was below the smallest L."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(4, 9)), int(rng.integers(4, 9)), int(rng.integers(1, 4))
    X = rng.integers(-1, 2, (n, d)).astype(float) if seed % 2 else rng.standard_normal((n, d))
    f = LinearModel(X, rng.integers(-2, 3, n).astype(float))
    points = []
    for support in map(list, combinations(range(d), k)):
        w = np.zeros(d)
        w[support] = np.linalg.lstsq(X[:, support], f.y, rcond=None)[0]
        points.append(w)
    w = min(points, key=f.value)
    certificate = certify_point(f, Sparsity(k), f.evaluate(w), Coordinates(np.flatnonzero(w)))
    assert certificate.is_stationary()
    assert certificate.smoothness <= np.linalg.eigvalsh(X.T @ X / n).max() * (1 + 1e-12)


def test_rounding_with_room_passes_and_a_gradient_with_room_does_not():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 5))
    w = (0.1 + 0.2) * np.eye(5)[0]
    for other, passes in ((0.0, True), (1e-3, False)):
        f = LinearModel(X, 0.3 * X[:, 0] + other * X[:, 1])
        assert certify_point(f, Sparsity(3), f.evaluate(w), Coordinates(np.array([0]))).is_stationary() == passes


def test_a_result_without_data_says_so_and_takes_the_objective_of_its_run():
    X, y = np.random.default_rng(0).standard_normal((30, 4)), np.arange(30.0)
    run = minimize(LinearModel(X, y), Sparsity(1), HardThresholdingPursuit())
    loaded = replace(run, objective=None)
    with pytest.raises(HardThreshError, match=r"does not contain the data; call certify\(result, objective\)"):
        certify(loaded)
    assert certify(loaded, LinearModel(X, y)) == certify(run)
    with pytest.raises(InvalidInputError, match="not the objective of the run: its value at the answer is"):
        certify(loaded, LinearModel(X, y + 1.0))
    with pytest.raises(InvalidInputError, match=r"points of shape \(3,\), the answer has shape \(4,\)"):
        certify(loaded, LinearModel(X[:, :3], y))
