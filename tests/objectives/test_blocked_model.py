"""Models over blocks of rows are those in memory: values, derivatives, parts, and the answers of solvers."""

import numpy as np
import pytest
import scipy.sparse as sp

from hardthresh import minimize
from hardthresh.constraints import Sparsity
from hardthresh.core import LinearObjective
from hardthresh.designs import Serial, as_design, from_arrays, standardize
from hardthresh.losses import pointwise_losses
from hardthresh.objectives import LinearModel, blocked_model
from hardthresh.objectives import blocked as objectives_of_blocks
from hardthresh.objectives.inputs import mean_weights
from hardthresh.solvers import IHT, HardThresholdingPursuit, WorkingSet
from levels import in_turn, slow_beyond

N, D, ROWS = 4000, 12, 200
SMOOTH = sorted(name for name, cls in pointwise_losses().items() if cls().kink() is None)


def table(loss, seed=0, *, n=N, d=D, weighted=True, offset=True, dtype=np.float64):
    """A table with a constant column, one far from zero, zero weights and offsets, and targets of a loss."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 1] = 3.0
    X[:, 2] = X[:, 2] + 20.0
    X = X.astype(dtype)
    known = 0.3 * rng.standard_normal(n) if offset else None
    weight = rng.integers(0, 3, n).astype(float) if weighted else None
    y = pointwise_losses()[loss]().example_target(0.4 * (X[:, 3] - X[:, 5]) + (0 if known is None else known), rng)
    return X, y, weight, known


def both(loss, X, y, weight, offset, *, l2=0.0, intercept=True, scale=True, rows=ROWS):
    """The same model over blocks and in memory, and the level that the first one's intercept leaves out."""
    blocks = from_arrays(X, y, sample_weight=weight, offset=offset, rows=rows)
    blocked = blocked_model(Serial(blocks), loss, l2=l2, intercept=intercept, scale=scale)
    design = as_design(X)
    weights = mean_weights(weight, design.zeros(1), X.shape[0])
    standardized = standardize(design, weights, scale=scale, intercept=intercept)
    level = blocked.units.level
    known = (0.0 if offset is None else offset) + np.full(X.shape[0], level)
    ridge = np.full(standardized.shape[1], l2)
    ridge[X.shape[1] :] = 0.0
    plain = LinearModel(standardized, y, loss, sample_weight=weight, offset=known, l2=ridge)
    return blocked, plain


def points(d, dtype=np.float64):
    rng = np.random.default_rng(1)
    sparse = np.where(rng.random(d) < 0.3, 0.2 * rng.standard_normal(d), 0.0)
    return [np.zeros(d, dtype), sparse.astype(dtype), (0.1 * rng.standard_normal(d)).astype(dtype)]


@slow_beyond(4)
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize(
    "settings",
    [{}, {"l2": 0.3, "intercept": False}, {"scale": False, "l2": 0.1}],
    ids=["plain", "ridge, no intercept", "no scale"],
)
def test_derivatives_are_those_in_memory(loss, settings):
    """Check 1 of scale.md: weights (0 among them), offset, ridge, no intercept, a constant column; 20 blocks."""
    X, y, weight, offset = table(loss)
    blocked, plain = both(loss, X, y, weight, offset, **settings)
    assert isinstance(blocked, LinearObjective)
    assert len(blocked.engine.blocks) == 20
    everything = points(blocked.shape[0])
    for w, many in zip(everything, blocked.evaluate_many(everything), strict=True):
        at, expected = blocked.evaluate(w), plain.evaluate(w)
        size = np.abs(expected.gradient).max()
        np.testing.assert_allclose(at.value, expected.value, rtol=1e-12)
        np.testing.assert_allclose(at.gradient, expected.gradient, rtol=0, atol=1e-11 * max(size, 1.0))
        np.testing.assert_array_equal(many.gradient, at.gradient)
        np.testing.assert_allclose(blocked.value(w), expected.value, rtol=1e-11)
        bend = plain.hessian_diag(expected)
        np.testing.assert_allclose(blocked.hessian_diag(at), bend, rtol=1e-11, atol=1e-11 * bend.max())
        v = everything[2]
        image = plain.curvature(expected, v)
        np.testing.assert_allclose(blocked.curvature(at, v), image, rtol=0, atol=1e-11 * np.abs(image).max())
        np.testing.assert_allclose(blocked.curvature_along(at, v), plain.curvature_along(expected, v), rtol=1e-11)


@slow_beyond(4)
@pytest.mark.parametrize("loss", SMOOTH)
def test_parts_are_those_in_memory(loss):
    """Check 1 of scale.md: the models of some columns, and blocks of the Hessian."""
    X, y, weight, offset = table(loss)
    blocked, plain = both(loss, X, y, weight, offset, l2=0.1)
    w = points(D + 1)[1]
    at, expected = blocked.evaluate(w), plain.evaluate(w)
    one, two = np.array([0, 3, 12]), np.array([2, 5, 7])
    bend = plain.hessian(expected)
    size = np.abs(bend).max()
    for chosen in (one, two, np.union1d(one, two)):
        small, small_plain = blocked.columns(chosen), plain.columns(chosen)
        np.testing.assert_allclose(small.hessian(at), bend[np.ix_(chosen, chosen)], rtol=0, atol=1e-11 * size)
        v = w[chosen] + 0.1
        here, there = small.evaluate(v), small_plain.evaluate(v)
        np.testing.assert_allclose(here.value, there.value, rtol=1e-11)
        np.testing.assert_allclose(here.gradient, there.gradient, rtol=0, atol=1e-11 * size)
        np.testing.assert_allclose(small.hessian(here), small_plain.hessian(there), rtol=0, atol=1e-11 * size)
    crossed = blocked.columns(one).cross_hessian(at, blocked.columns(two))
    np.testing.assert_allclose(crossed, bend[np.ix_(one, two)], rtol=0, atol=1e-11 * size)
    inner = blocked.columns(np.union1d(one, two)).columns(np.array([1, 2]))
    np.testing.assert_allclose(inner.hessian(at), bend[np.ix_([2, 3], [2, 3])], rtol=0, atol=1e-11 * size)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_single_precision_is_that_of_the_data(loss):
    """Check 1 of scale.md: float32."""
    X, y, weight, offset = table(loss, dtype=np.float32)
    blocked, _ = both(loss, X, y, weight, offset)
    exact = both(loss, X.astype(np.float64), y, weight, offset)[0]
    for w in points(D + 1, np.float32):
        point = exact.units.coordinates(blocked.units.point(w))
        at, expected = blocked.evaluate(w), exact.evaluate(point)
        assert at.gradient.dtype == np.float32
        np.testing.assert_allclose(at.value, expected.value, rtol=1e-6)
        np.testing.assert_allclose(at.gradient, expected.gradient, rtol=0, atol=2e-6)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_sparse_blocks_are_dense_ones(loss):
    """Check 1 of scale.md: CSR blocks, by algebra."""
    X, y, weight, offset = table(loss)
    X[np.random.default_rng(2).random(X.shape) < 0.7] = 0.0
    dense, plain = both(loss, X, y, weight, offset)
    sparse = blocked_model(
        Serial(from_arrays(sp.csr_array(X), y, sample_weight=weight, offset=offset, rows=ROWS)), loss
    )
    np.testing.assert_allclose(sparse.units.mean, dense.units.mean, rtol=1e-12)
    for w in points(D + 1):
        w[-1] += sparse.units.level - dense.units.level  # of rows of one mean each
        np.testing.assert_allclose(sparse.evaluate(w).gradient, plain.evaluate(w).gradient, rtol=0, atol=1e-11)
    chosen = np.array([0, 3, 12])
    at, expected = sparse.evaluate(w), plain.evaluate(w)
    np.testing.assert_allclose(
        sparse.columns(chosen).hessian(at), plain.columns(chosen).hessian(expected), rtol=0, atol=1e-11
    )


def test_thirty_two_points_are_one_reading_and_known_ones_none():
    """A gradient is a reading; 32 share one, and what was asked before is remembered."""
    X, y, weight, offset = table("squared", d=40)
    blocked, _ = both("squared", X, y, weight, offset)
    rng = np.random.default_rng(0)
    asked = [rng.standard_normal(41) for _ in range(33)]
    assert blocked.readings == 1
    blocked.evaluate_many(asked[:32])
    assert blocked.readings == 2
    blocked.evaluate_many(asked)
    assert blocked.readings == 3


def test_kept_columns_are_read_once_for_each_point():
    """Value, gradient and rounding of a point are one sweep over kept columns, and other columns change nothing."""
    X, y, weight, offset = table("logistic")
    blocked, plain = both("logistic", X, y, weight, offset)
    chosen, w = np.array([3, 5, 12]), np.array([0.4, -0.2, 0.1])
    few, expected = blocked.columns(chosen), plain.columns(chosen).evaluate(w)
    sweeps, sums = [], few._columns.sums
    few._columns.sums = lambda task, *arguments: sweeps.append(task) or sums(task, *arguments)
    at = few.evaluate(w)
    few.rounding(at)
    few.value(w)
    assert len(sweeps) == 1
    np.testing.assert_allclose(at.gradient, expected.gradient, rtol=1e-11)
    blocked.columns(np.array([0, 4]))  # now other places have the columns
    np.testing.assert_allclose(few.evaluate(w).gradient, expected.gradient, rtol=1e-11)
    assert len(sweeps) == 2


def test_points_of_kept_columns_are_one_sweep(monkeypatch):
    """Values and gradients at several points of a part are those one by one, in passes too, from one sweep."""
    X, y, weight, offset = table("logistic")
    blocked, _ = both("logistic", X, y, weight, offset, l2=0.1)
    part = blocked.columns(np.array([0, 3, 5, D]))
    asked, sweep, sweeps = points(4), blocked.engine.sweep, []
    monkeypatch.setattr(blocked.engine, "sweep", lambda *args, **kwargs: sweeps.append(1) or sweep(*args, **kwargs))
    begun = blocked.passes
    found = part.evaluate_many(asked)
    assert len(sweeps) == 1
    together = blocked.passes - begun
    other, _ = both("logistic", X, y, weight, offset, l2=0.1)  # which remembers none of them
    one_by_one = other.columns(np.array([0, 3, 5, D]))
    begun = other.passes
    for w, at in zip(asked, found, strict=True):
        alone = one_by_one.evaluate(w)
        assert at.value == alone.value
        np.testing.assert_allclose(at.gradient, alone.gradient, rtol=1e-12, atol=1e-15)
    assert other.passes - begun == pytest.approx(together)
    assert part.evaluate_many([]) == []


SOLVERS = [WorkingSet(), IHT(), HardThresholdingPursuit()]


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("seed", range(5))
def test_solvers_find_what_they_find_in_memory(solver, loss, seed):
    """Check 2 of scale.md; its other seeds are those of ``benchmarks/scale.py --task readings``."""
    X, y, weight, offset = table(loss, seed, n=2000, d=60)
    blocked, plain = both(loss, X, y, weight, offset, l2=0.01, rows=256)
    constraint = Sparsity(5, free=(60,))
    found, expected = (minimize(model, constraint, solver, tol=1e-10) for model in (blocked, plain))
    assert found.converged
    np.testing.assert_array_equal(found.support.indices, expected.support.indices)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-8)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_part_asked_for_before_columns_were_added_is_still_the_same(loss, intercept):
    """The intercept of an older part is no other column when a later part has brought products of more columns."""
    blocked, _ = both(loss, *table(loss), intercept=intercept)
    d = blocked.units.size
    at = blocked.evaluate(points(d)[2])
    older = blocked.columns(np.array([3, d - 1]))
    newer = blocked.columns(np.array([1, 4, 10, d - 1]))
    crossed = older.cross_hessian(at, newer), newer.cross_hessian(at, older)
    exact = blocked.hessian(at)
    np.testing.assert_allclose(crossed[0], exact[np.ix_([3, d - 1], [1, 4, 10, d - 1])], rtol=0, atol=1e-12)
    np.testing.assert_allclose(crossed[1], crossed[0].T, rtol=0, atol=1e-12)


@pytest.mark.slow
@in_turn("loss,intercept,room", ["squared", "logistic", "poisson"], [True, False], [None, 1])
def test_hessians_at_several_points_are_one_reading_where_there_is_room(loss, intercept, room, monkeypatch):
    """Values, gradients, diagonals and images at more points than are remembered otherwise are those in memory."""
    if room is not None:
        monkeypatch.setattr(objectives_of_blocks, "_ROOM", room)
    blocked, plain = both(loss, *table(loss, d=30), l2=0.1, intercept=intercept)
    rng = np.random.default_rng(2)
    every = []
    for _ in range(70):
        w = np.zeros(blocked.shape)
        w[rng.choice(np.arange(3, 30), 3, replace=False)] = 0.2 * rng.standard_normal(3)
        every.append(w)
    blocked.columns(np.arange(5, 9))
    own = np.eye(blocked.shape[0])[np.flatnonzero(every[0])[0]]
    blocked.curvature(blocked.evaluate(every[0]), own)  # of which the diagonal is not known then
    before = blocked.readings
    for place, w in enumerate(every):
        blocked.expand(every[place:])
        at, there = blocked.evaluate(w), plain.evaluate(w)
        np.testing.assert_allclose([at.value, *at.gradient], [there.value, *there.gradient], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(blocked.hessian_diag(at), plain.hessian_diag(there), rtol=1e-8)
        direction = np.where(w != 0, rng.standard_normal(w.size), 0.0)
        direction[30:] = 0.7
        expected = plain.curvature(there, direction)
        np.testing.assert_allclose(blocked.curvature(at, direction), expected, rtol=1e-8, atol=1e-10)
    known = loss == "squared" and room is not None  # all is known of the first point then
    assert blocked.readings - before == (1 if room is None else len(every) - known)
