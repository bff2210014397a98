"""Readings: moments that keep their digits, sums that do not depend on how rows are cut, and what is masked."""

import pickle
import tracemalloc
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pytest
import scipy.sparse as sp

from hardthresh import SparseLinearRegression
from hardthresh.designs import Serial, from_arrays
from hardthresh.designs.blocks import Block
from hardthresh.losses import Logistic, Squared
from hardthresh.objectives import guess as guesses
from hardthresh.objectives import readings
from hardthresh.objectives.block_folds import BlockFolds
from hardthresh.objectives.block_rows import Point, Scaled
from hardthresh.objectives.first_reading import read_first
from hardthresh.objectives.guess import simple_guess, some_rows
from hardthresh.objectives.table_moments import TableMoments


def moments_of(X, y, rows, weight=None):
    engine = Serial(from_arrays(X, y, sample_weight=weight, rows=rows))
    guess = simple_guess(some_rows(engine), Squared())
    return read_first(engine, Squared(), guess).moments, engine


@pytest.mark.parametrize("known", [True, False])
def test_of_large_blocks_the_pilot_takes_some_rows(monkeypatch, known):
    """Check 6 of scale.md: what is brought to this process does not grow with the blocks."""
    monkeypatch.setattr(guesses, "room_for_rows", lambda blocks: 4 * 100 * 16)
    X = np.repeat(np.arange(40_000.0)[:, None], 2, axis=1)
    table = from_arrays(X, X[:, 0], rows=5000)
    if not known:
        table = replace(table, blocks=tuple(Uncounted(block) for block in table))
    found = some_rows(Serial(table), least=10_000)
    assert found.X.shape == (400, 2)
    expected = np.arange(100) * 50
    np.testing.assert_array_equal(found.y, np.concatenate([start + expected for start in (0, 10_000, 20_000, 35_000)]))
    small = from_arrays(X[:200], X[:200, 0], rows=100)
    np.testing.assert_array_equal(some_rows(Serial(small)).y, np.arange(200))
    folds = BlockFolds(3, seed=5)
    own = np.concatenate([folds.of(number, None, 5000)[expected] for number in (0, 2, 4, 7)])
    np.testing.assert_array_equal(some_rows(Serial(table), 10_000, folds).fold, own)


@pytest.mark.parametrize("folds", [None, BlockFolds(3, seed=5)], ids=["rows", "folds"])
@pytest.mark.parametrize("known", [True, False])
def test_of_few_rows_with_a_weight_only_these_are_brought_here(monkeypatch, known, folds):
    """Check 6 of scale.md: where most weights are 0, many blocks are looked at, each once, and few rows are sent."""
    monkeypatch.setattr(guesses, "room_for_rows", lambda blocks: 64_000)
    X = np.arange(32_000.0)[:, None] * np.ones(8)
    weight = (np.arange(32_000) % 500 == 7).astype(float)
    table = from_arrays(X, X[:, 0], weight, rows=1000)
    if not known:
        table = replace(table, blocks=tuple(Uncounted(block) for block in table))
    loaded = []
    monkeypatch.setattr(Serial, "rows", sent := Sent(Serial.rows, loaded))
    found = some_rows(Serial(table), least=50, folds=folds)
    np.testing.assert_array_equal(np.sort(found.y), np.flatnonzero(weight))
    assert sorted(loaded) == [*range(32)]
    assert sum(sent.rows) == found.X.shape[0] == 64
    if folds is not None:
        numbers = [folds.of(int(y) // 1000, None, 1000)[int(y) % 1000] for y in found.y]
        np.testing.assert_array_equal(found.fold, numbers)


def test_the_rows_of_a_pilot_leave_room_for_a_block():
    """Check 5 of scale.md: with the block that they are taken from they need no more than the blocks of a reading."""

    def room(rows, columns):
        table = from_arrays(np.empty((rows, columns), dtype=np.float32), np.empty(rows), rows=rows)
        return guesses.room_for_rows(table) / 2**20

    assert room(4096, 2000) > 4 * 4096 * 2000 * 4 / 2**20  # four whole blocks, as of most files
    assert room(1024, 20_000) + 1024 * 20_000 * 4 / 2**20 == 160
    assert room(32, 1 << 20) == 128  # as large as the second block of a reading
    assert room(128, 1 << 20) == 256


@pytest.mark.slow
@pytest.mark.parametrize("task", ["moments", "look"])
def test_a_reading_centres_few_columns_at_once(task):
    """Check 5 of scale.md: the sums of a wide block take far less memory than the block."""
    rng = np.random.default_rng(0)
    X, y, centre = rng.standard_normal((1024, 8000), dtype=np.float32), rng.standard_normal(1024), rng.random(8000)
    tracemalloc.start()
    if task == "look":
        *_, found = readings.look(X, y, None, None, (Point.constant(0.5),), Squared(), centre)
    else:
        *_, squares, found = readings.moments(X, y, None, None, centre, 0.0, Squared())
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < 0.5 * X.nbytes
    double = X.astype(float) - centre
    residual = 0.5 - y if task == "look" else y
    np.testing.assert_allclose(np.squeeze(found), double.T @ residual, atol=1e-2)
    if task == "moments":
        np.testing.assert_allclose(squares, np.sum(double**2, axis=0), rtol=1e-5)


class Sent:
    """`Engine.rows`, which notes the blocks that were asked for and how many rows were returned."""

    def __init__(self, function, loaded):
        self.function, self.loaded, self.rows = function, loaded, []

    def __get__(self, engine, kind):
        def rows(picks):
            found = self.function(engine, picks)
            self.loaded.extend(number for number, _ in picks)
            self.rows.append(found.X.shape[0])
            return found

        return rows


@dataclass(frozen=True, eq=False)
class Uncounted(Block):
    """A block that says nothing about its rows before it is read."""

    block: Block
    rows = None

    def load(self):
        return self.block.load()


@pytest.mark.parametrize(("dtype", "digits"), [(np.float32, 1e-3), (np.float64, 1e-9)])
def test_columns_far_from_zero_keep_their_deviation(dtype, digits):
    """Check 10 of scale.md: columns of mean 1e6 and deviation 1."""
    rng = np.random.default_rng(0)
    X = (1e6 + rng.standard_normal((20_000, 4))).astype(dtype)
    found, _ = moments_of(X, np.zeros(20_000), 1024)
    exact = X.astype(np.longdouble)
    np.testing.assert_allclose(found.deviation, exact.std(axis=0).astype(float), rtol=digits)
    np.testing.assert_allclose(found.mean, exact.mean(axis=0).astype(float), rtol=1e-12)


@pytest.mark.parametrize(("dtype", "mean", "digits"), [(np.float32, 1e4, 1e-5), (np.float64, 1e6, 1e-9)])
def test_full_columns_of_sparse_rows_keep_their_digits(dtype, mean, digits):
    """Columns that are hardly sparse and far from zero: deviations, and products with a target of deviation 1."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((6000, 3))
    X = np.where(rng.random((6000, 3)) < [0.0, 0.1, 0.9], 0.0, mean + Z).astype(dtype)
    y = Z[:, 0] + 3.0
    found, _ = moments_of(sp.csr_array(X), y, 1024)
    exact = X.astype(np.longdouble)
    gap = exact - exact.mean(axis=0)
    crossed = (gap * (y - y.mean())[:, None]).mean(axis=0)
    np.testing.assert_allclose(found.deviation, exact.std(axis=0).astype(float), rtol=digits)
    np.testing.assert_allclose(
        found.crossed / found.deviation, (crossed / exact.std(axis=0)).astype(float), atol=digits
    )
    point = Point(np.array([0]), np.zeros(1), np.full(1, 1e-4), 0.0)
    double = X.astype(np.float64)
    centre = double.mean(axis=0)
    for task, arguments in ((readings.expansions, (centre,)), (readings.moments, ())):
        given = ([point], [[point]], Logistic(), *arguments) if arguments else (centre, 3.0, Logistic())
        dense, sparse = (task(each, (y > 3.0).astype(float), None, None, *given) for each in (double, sp.csr_array(X)))
        for one, other in zip(dense, sparse, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize(("dtype", "mean"), [(np.float32, 1e4), (np.float64, 1e6)])
def test_a_fit_of_sparse_rows_is_that_of_dense_ones(dtype, mean):
    """The coefficient of a full column far from zero was silently .056, not .99."""
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((4000, 6))
    y, X = Z[:, 0] + 0.1 * rng.standard_normal(4000), np.where(np.arange(6) < 1, mean + Z, Z * (Z > 1.0)).astype(dtype)
    coef, expected = (
        SparseLinearRegression(n_nonzero_coefs=1).fit(from_arrays(each, y, rows=1024)).coef_
        for each in (sp.csr_array(X), X)
    )
    np.testing.assert_allclose(coef, expected, rtol=0, atol=1e-3)
    assert abs(coef[0] - 1.0) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [1, 7, 1000])
def test_merging_blocks_changes_no_moment(blocks):
    """Check 10 of scale.md: 1, 7 and 1000 blocks agree to 1e-13."""
    rng = np.random.default_rng(1)
    X, y = 5.0 + rng.standard_normal((20_000, 3)), rng.standard_normal(20_000)
    found, engine = moments_of(X, y, -(-20_000 // blocks))
    assert len(engine.blocks) == blocks
    exact = X.astype(np.longdouble)
    gap = exact - exact.mean(axis=0)
    np.testing.assert_allclose(found.deviation, exact.std(axis=0).astype(float), rtol=1e-13)
    crossed = ((gap * (y - y.mean())[:, None]).mean(axis=0)).astype(float)
    np.testing.assert_allclose(found.crossed, crossed, rtol=0, atol=1e-13)


def test_a_table_whose_first_rows_mislead_is_read_once_more():
    """Where the shift is so far from the mean that digits are lost, the moments are computed about the mean itself."""
    X = 1e8 + np.random.default_rng(0).standard_normal((5000, 2))
    engine = Serial(from_arrays(X, X[:, 0], rows=1024))
    guess = simple_guess(some_rows(engine), Squared())
    read_first(engine, Squared(), guess)
    assert engine.readings == 1
    found = read_first(engine, Squared(), replace(guess, shift=np.zeros(2))).moments
    assert engine.readings == 3
    np.testing.assert_allclose(found.deviation, X.astype(np.longdouble).std(axis=0).astype(float), rtol=1e-9)
    again = read_first(engine, Squared(), replace(guess, shift=np.zeros(2), members=np.arange(2)))
    assert engine.readings == 5
    exact = X - X.mean(axis=0)
    products = again.gram[0, :, :2] / np.outer(again.members.scale, again.members.scale)
    np.testing.assert_allclose(products, exact.T @ exact, rtol=1e-5, atol=1.0)


@pytest.mark.parametrize("outputs", [(), (2,)], ids=["one", "two"])
@pytest.mark.parametrize(("mean", "digits"), [(1e6, 1e-9), (1e8, 1e-7), (-1e10, 1e-5)])
def test_targets_far_from_zero_keep_their_variance(mean, digits, outputs):
    """Check 10 of scale.md, of y: with a mean of 1e8 deviations the variance was 0, or 2.7 times too large."""
    rng = np.random.default_rng(0)
    X, offset = rng.standard_normal((3000, 4)), 0.5 * mean + rng.standard_normal((3000, *outputs))
    y = mean + offset + X[:, 0].reshape(3000, *np.ones(len(outputs), int)) + rng.standard_normal((3000, *outputs))
    gap = (y.astype(np.longdouble) - offset) - (y.astype(np.longdouble) - offset).mean(axis=0)
    engine = Serial(from_arrays(X, y, offset=offset, rows=256))
    guess = simple_guess(some_rows(engine), Squared())
    for level, readings_of_it in ((guess.level, 1), (0.0 * guess.level, 2)):
        before = engine.readings
        found = read_first(engine, Squared(), replace(guess, level=level)).moments
        assert engine.readings - before == readings_of_it
        np.testing.assert_allclose(found.target_variance, np.mean(gap**2, axis=0).astype(float), rtol=digits)
        crossed = np.tensordot((X - X.mean(axis=0)).T, gap.astype(float), 1) / 3000
        np.testing.assert_allclose(found.crossed, crossed, rtol=0, atol=digits)


def test_targets_that_are_all_the_same_are_read_once():
    """The rounding of their mean is no distance from it."""
    X = np.random.default_rng(0).standard_normal((3000, 4))
    _, engine = moments_of(X, np.full(3000, 0.1), 256, np.random.default_rng(1).random(3000))
    assert engine.readings == 1


def test_rows_of_weight_zero_may_hold_anything():
    rng = np.random.default_rng(2)
    X, y, weight = rng.standard_normal((3000, 5)), rng.standard_normal(3000), rng.integers(0, 2, 3000).astype(float)
    dirty = np.where(weight[:, None] == 0, np.nan, X)
    clean, _ = moments_of(X[weight > 0], y[weight > 0], 1024)
    found, _ = moments_of(dirty, np.where(weight == 0, np.nan, y), 1024, weight)
    np.testing.assert_allclose(found.deviation, clean.deviation, rtol=1e-12)
    assert found.n_rows == np.count_nonzero(weight)


POINTS = [Point(np.array([j]), np.zeros(1), np.ones(1), 0.1 * j) for j in (1, 2)]
TASKS = {
    "moments": (readings.moments, (np.array([1.0, -2.0, 0.0]), 0.5, Logistic())),
    "look": (readings.look, ([Point(np.array([0, 2]), np.array([1.0, 0.0]), np.array([2.0, -1.0]), 0.3)], Logistic())),
    "expansions": (readings.expansions, (POINTS, [POINTS, POINTS[:1]], Logistic(), np.array([1.0, -2.0, 0.0]))),
    "gram": (
        readings.gram,
        (
            Scaled(np.array([0]), np.ones(1), np.full(1, 2.0)),
            Scaled(np.array([0, 2]), np.array([1.0, 0.0]), np.array([2.0, 3.0])),
        ),
    ),
    "score": (readings.score, ([Point(np.array([0]), np.zeros(1), np.ones(1), 0.0)], Logistic(), 0.0)),
}


@pytest.mark.parametrize("name", TASKS)
def test_sparse_rows_are_dense_ones_and_tasks_are_pure(name):
    """Tasks compose by addition, whatever the storage; they can be sent to another process, and change nothing."""
    task, arguments = pickle.loads(pickle.dumps(TASKS[name]))
    rng = np.random.default_rng(3)
    X = np.where(rng.random((2500, 3)) < 0.5, 0.0, rng.standard_normal((2500, 3)))
    y, weight, offset = (rng.random(2500) < 0.5).astype(float), rng.random(2500), rng.standard_normal(2500)
    before = X.copy()
    whole = task(X, y, weight, offset, *arguments)
    sparse = task(sp.csr_array(X), y, weight, offset, *arguments)
    cut = [task(X[rows], y[rows], weight[rows], offset[rows], *arguments) for rows in (slice(0, 700), slice(700, None))]
    for one, other, part in zip(
        whole, sparse, reduce(lambda a, b: [p + q for p, q in zip(a, b, strict=True)], cut), strict=True
    ):
        assert one.dtype == np.float64
        np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-9)
        np.testing.assert_allclose(part, one, rtol=1e-11, atol=1e-9)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("factor", [2.0**-140, 2.0**-300, 2.0**200])
@pytest.mark.parametrize("name", ["moments", "look", "gram", "newton", "expansions"])
def test_the_unit_of_the_weights_changes_no_bit(name, factor):
    """In single precision weights of 1e-42 are subnormal, and those of 1e60 infinite."""
    logistic = (Point(np.array([0, 2]), np.zeros(2), np.array([1.0, -0.5]), 0.1), Logistic())
    task, arguments = {**TASKS, "newton": (readings.newton, (np.array([0, 1]), *logistic))}[name]
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((2000, 3)).astype(np.float32), (rng.random(2000) < 0.5).astype(float)
    weight = 0.5 + rng.random(2000)
    found, scaled = (task(X, y, each, None, *arguments) for each in (weight, factor * weight))
    for one, other in list(zip(found, scaled, strict=True))[name == "moments" :]:  # the first of which counts rows
        np.testing.assert_array_equal(one * factor, other)


def test_moments_of_no_weight_are_refused():
    zero = np.zeros(1)
    with pytest.raises(Exception, match="all rows have weight 0"):
        TableMoments.of((np.zeros(7), np.zeros(2), zero, zero, zero), zero, 0.0, np.float64)
