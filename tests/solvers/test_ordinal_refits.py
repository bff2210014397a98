"""Refits of ordered classes, whose thresholds the kernel knows as no columns, against their NumPy twins."""

from itertools import combinations
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hardthresh.constraints import Sparsity
from hardthresh.core.compiled import kernel
from hardthresh.objectives import OrdinalModel
from hardthresh.solvers import WorkingSet, minimize
from hardthresh.solvers.refinement import refine
from hardthresh.solvers.working_set.kernel_model import KernelModel, numpy_loss
from hardthresh.solvers.working_set.refit_search import RefitSearch
from hardthresh.solvers.working_set.refits import ColumnsToRefit, numpy_parts, refit, refit_to_the_end
from levels import draws
from numpy_code import use_numpy

compiled = pytest.mark.skipif(kernel() is None, reason="the compiled kernel was not built, or HARDTHRESH_PURE is set")
seeds, counts = st.integers(0, 10**6), st.integers(2, 6)
kinds = st.sets(st.sampled_from(["weights", "offset", "ridges"]))


def by_numpy(function, *arguments):
    """Return what a function returns without the kernel."""
    with pytest.MonkeyPatch.context() as patch:
        use_numpy(patch)
        return function(*arguments)


def drawn(seed, n, d, n_classes, kind=(), rho=0.5):
    """Return a model of d correlated columns and classes that all occur."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    u = X[:, 0] - X[:, d // 2] + rng.choice([0.3, 1.0]) * rng.logistic(size=n)
    y = np.searchsorted(np.quantile(u, np.arange(1, n_classes) / n_classes), u).astype(float)
    y[:n_classes] = np.arange(n_classes)
    weights = rng.integers(0, 3, n).astype(float) if "weights" in kind else np.ones(n)
    weights[:n_classes] = 1.0
    offset = rng.choice([0.3, 3.0]) * rng.standard_normal(n) if "offset" in kind else None
    l2 = 10.0 ** rng.uniform(-3, 0, d) if "ridges" in kind else 0.01
    return OrdinalModel(X, y, sample_weight=weights, offset=offset, l2=l2)


def searched(f):
    """Return a search whose fixed columns are the thresholds, and their places."""
    d = f.shape[0] - f.n_thresholds
    thresholds = np.arange(d, f.shape[0])
    return RefitSearch(f, thresholds, 1e-9), tuple(thresholds.tolist())


def value_of(f, point):
    """Return what the kernel computes as f, without a step."""
    known = KernelModel.of_model(f, *numpy_loss(f))
    l2, prediction = np.full(f.shape[0], f.l2), np.empty(known.n_examples)
    arguments = (l2, point.copy(), prediction, None, 0, 1, 0.0, 0.0, 0.0, 0.0, inf, inf)
    return kernel().refit(known.loss, known.columns, known.offset, *arguments)[0]


@compiled
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e3, 1e8])
def test_the_compiled_loss_is_that_of_numpy_to_rounding(n_classes, size):
    f = drawn(n_classes, 30, 3, n_classes, {"weights"})
    u = size * np.random.default_rng(0).standard_normal(30)
    f = OrdinalModel(f.data, f.y, sample_weight=f.weights, offset=u)
    for gap in (1e-12, 1e-3, 1.0, 50.0, 1e4):
        point = np.append(np.zeros(3), gap * (np.arange(n_classes - 1) - 0.7))
        rounding = 1e-15 * max(size, 1.0) / gap  # NumPy takes the distance of two thresholds from two predictions
        if rounding < 0.1:
            assert_allclose(value_of(f, point), f.value(point), rtol=1e-13 + rounding)


@compiled
def test_thresholds_out_of_order_have_an_infinite_loss():
    f = drawn(0, 30, 3, 4)
    for thresholds in ([1.0, 0.0, 2.0], [0.0, 0.0, 1.0], [np.nan, 0.0, 1.0]):
        point = np.append(np.zeros(3), thresholds)
        assert not np.isfinite(value_of(f, point))
        with np.errstate(all="ignore"):
            assert not np.isfinite(f.value(point))


@compiled
@draws(100)
@given(seeds, st.integers(10, 60), st.integers(1, 12), counts, kinds)
def test_compiled_refits_and_scores_agree_with_numpy(seed, n, d, n_classes, kind):
    f = drawn(seed, n, d, n_classes, kind)
    rng = np.random.default_rng(seed)
    few = sorted(rng.choice(d, rng.integers(0, min(d, 5) + 1), replace=False).tolist())
    search, thresholds = searched(f)
    twin = by_numpy(lambda: searched(f)[0].fit((*few, *thresholds)))
    fit = search.fit((*few, *thresholds))
    assert fit.chosen == twin.chosen
    assert_allclose(fit.value, twin.value, rtol=1e-9)
    assert_allclose(fit.coef, twin.coef, rtol=1e-6, atol=1e-6)
    ours, expected = search.scores(fit), by_numpy(search.scores, fit)
    assert_array_equal(ours.unexplained == inf, expected.unexplained == inf)
    for name in ("coef", "inverse", "slope", "unexplained", "regressions"):
        numbers = getattr(expected, name)
        scale = np.max(np.abs(numbers[np.isfinite(numbers)]), initial=0.0)
        assert_allclose(getattr(ours, name), numbers, rtol=1e-9, atol=1e-9 * max(scale, 1.0), err_msg=name)


@pytest.mark.slow
@compiled
@draws(30)
@given(seeds, st.integers(30, 60), st.integers(2, 12), counts, kinds, st.integers(1, 4), st.booleans())
def test_the_search_is_the_same_without_the_kernel(seed, n, d, n_classes, kind, k, deep):
    f = drawn(seed, n, d, n_classes, kind)

    def found():
        search, thresholds = searched(f)
        start = search.fit(thresholds)
        return search.lowest(start, k, 1.6, (0.5, 1.0)) if deep else search.reached(start, k, 2.0)[0]

    ours, twin = found(), by_numpy(found)
    assert_allclose(ours.value, twin.value, rtol=1e-9)
    assert len(ours.chosen) == len(twin.chosen)


@compiled
@draws(50)
@given(seeds, st.integers(10, 60), st.integers(1, 8), counts, kinds)
def test_compiled_steps_lead_where_refine_does(seed, n, d, n_classes, kind):
    f = drawn(seed, n, d, n_classes, kind)
    free = tuple(range(d, f.shape[0]))
    constraint = Sparsity(d, free=free)
    w = f.null_point()
    w[:d] = 0.1 * np.random.default_rng(seed).standard_normal(d)
    start, options = constraint.project(w), {"rounds": 30, "tol": 1e-12}
    ours = refit_to_the_end(f, constraint, start, **options)
    twin = refine(f, constraint, start, cg_iterations=0, **options)
    assert ours.minimal == twin.minimal
    assert_allclose(ours.value, twin.value, rtol=1e-9)
    assert_allclose(ours.projection.point, twin.projection.point, rtol=1e-4, atol=1e-4)
    assert_allclose(ours.prediction, f.predict(ours.projection.point), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@compiled
@draws(30)
@given(seeds, st.integers(20, 60), st.integers(1, 8), counts, kinds)
def test_compiled_refits_of_folds_agree_with_numpy(seed, n, d, n_classes, kind):
    f = drawn(seed, n, d, n_classes, kind)
    rng = np.random.default_rng(seed)
    chosen = rng.random((4, f.shape[0])) < 0.5
    chosen[:, d:] = True
    grid = chosen, np.array([10.0, 1.0, 1.0, 0.5]), np.array([-1, 0, 1, -1])
    columns = ColumnsToRefit(*numpy_parts(f), f.null_point())
    (ours, converged), (twin, expected) = columns.refits(*grid), by_numpy(columns.refits, *grid)
    assert_array_equal(converged, expected)
    assert_allclose(ours, twin, rtol=1e-6, atol=1e-6)
    chosen[0, d] = False
    assert_allclose(columns.refits(*grid)[0], by_numpy(columns.refits, *grid)[0], rtol=1e-9, atol=1e-9)
    Z, (_, mean_loss, offset, l2) = f.design.dense(), numpy_parts(f)
    _, prediction, value = refit(Z, mean_loss, offset, l2, f.null_point())
    assert_allclose(value, by_numpy(refit, Z, mean_loss, offset, l2, f.null_point())[2], rtol=1e-9)
    assert prediction.shape == (2 * n,)


def test_a_search_that_may_drop_a_threshold_is_one_of_numpy():
    f = drawn(1, 40, 4, 4)
    every, some = np.array([4, 5, 6]), np.array([4, 6])
    assert RefitSearch(f, every, 1e-9)._columns.known is not None
    assert RefitSearch(f, some, 1e-9)._columns.known is None
    part = f.columns(np.array([0, 2, 4, 6]))
    assert KernelModel.of_model(part, *numpy_loss(part)) is None
    found = RefitSearch(f, some, 1e-9)
    assert_allclose(found.fit((0, 4, 5, 6)).value, searched(f)[0].fit((0, 4, 5, 6)).value, rtol=1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("effort", ["balanced", "thorough"])
def test_the_best_subset_is_reached(seed, effort):
    """Among columns of correlation 0.95, where the gains of single columns mislead."""
    f = drawn(seed, 60, 14, 4, rho=0.95)
    search, thresholds = searched(f)
    best = min(search.fit((*few, *thresholds)).value for few in combinations(range(14), 3))
    run = minimize(f, Sparsity(3, free=thresholds), WorkingSet(effort=effort))
    assert run.converged
    assert run.value <= best * (1 + 1e-6)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_the_diagonal_of_the_hessian_is_its_diagonal(n_classes):
    f = drawn(n_classes, 50, 5, n_classes, {"weights", "offset", "ridges"})
    at = f.evaluate(f.null_point() + np.append(0.3 * np.ones(5), np.zeros(n_classes - 1)))
    assert_allclose(f.hessian_diag(at), f.hessian(at).diagonal(), rtol=1e-12)
