"""Stability selection of several outputs over blocks: what fits to the same halves in memory choose, in one reading.

Checks 3 and 4 of scale.md.
"""

import numpy as np
import pytest
import scipy.sparse as sp

import hardthresh as ht
from hardthresh.core import CapabilityError
from hardthresh.designs import Serial, Threads, from_arrays
from hardthresh.estimators.base import seed_of
from hardthresh.objectives import MultiOutputModel, blocked_outputs, half_outputs
from hardthresh.objectives.half_readings import BlockHalves
from levels import at_most

N, D, PAIRS, ROWS = 1200, 40, 4, 256

pytestmark = pytest.mark.filterwarnings("ignore:1 constant column")


def data(seed=0, q=2, n=N, d=D):
    """Neighbours that correlate, a constant column, outputs of a large mean, weights of zero and offsets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 1:] += 0.5 * X[:, :-1]
    X += 5.0
    X[:, 7] = 2.0
    coef = np.zeros((d, q))
    coef[rng.choice(np.delete(np.arange(d), 7), 4, replace=False)] = rng.standard_normal((4, q))
    y = 100.0 + 0.3 * X @ coef + 3.0 * rng.standard_normal((n, q))
    return X, y, rng.integers(0, 3, n).astype(float), 0.2 * rng.standard_normal((n, q))


def halves_in_memory(halves, y, weight):
    """The rows of each half of a table that is cut into blocks."""
    parts = [slice(start, start + ROWS) for start in range(0, len(y), ROWS)]
    sides = np.concatenate([halves.of(b, y[part], weight[part]) for b, part in enumerate(parts)])
    return [np.flatnonzero(sides[:, half // 2] == half % 2) for half in range(len(halves))]


def choices_in_memory(model, X, y, weight, offset):
    """The slow twin: what a fit to the rows of each half chooses."""
    fits = [
        model.fit(X[rows], y[rows], weight[rows], offset[rows]).get_support()
        for rows in halves_in_memory(BlockHalves(PAIRS, seed_of(1)), y, weight)
    ]
    return np.mean(fits, axis=0)


SETTINGS = {
    "no intercept": {"fit_intercept": False},
    "no scale": {"standardize": False, "alpha": 0.5},
    "ridge": {"alpha": 0.3},
    "always": {"always_include": [0, 5]},
}


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("setting", ["ten tables", *SETTINGS])
def test_halves_choose_what_fits_to_their_rows_choose(setting):
    """Check 3 of scale.md: all frequencies are those in memory, in one reading beside that of the fit."""
    for seed in range(10) if setting == "ten tables" else [3]:
        table = data(seed, 2 + seed % 2)
        model = ht.SparseLinearRegression(n_nonzero_coefs=4, **SETTINGS.get(setting, {}))
        engine = Serial(from_arrays(*table, rows=ROWS))
        found = ht.StabilitySelection(model, n_pairs=PAIRS, random_state=1).fit(engine)
        expected = choices_in_memory(model, *table)
        np.testing.assert_allclose(found.inclusion_frequencies_, expected, atol=1e-12)
        assert np.count_nonzero((expected > 0) & (expected < 1)) > 0
        assert (engine.readings, found.n_failed_, found.n_pairs_) == (2, 0, PAIRS)


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["float32", "sparse"])
def test_storage_changes_nothing(storage):
    X, y, weight, offset = data()
    stored = X.astype(np.float32) if storage == "float32" else sp.csr_array(X)
    selector = ht.StabilitySelection(ht.SparseLinearRegression(n_nonzero_coefs=4), n_pairs=PAIRS, random_state=1)
    found = selector.fit(from_arrays(stored, y, weight, offset, rows=ROWS)).inclusion_frequencies_
    np.testing.assert_allclose(
        found, choices_in_memory(ht.SparseLinearRegression(n_nonzero_coefs=4), X, y, weight, offset)
    )


def test_a_half_has_the_model_of_its_rows(monkeypatch):
    """A slow twin, with halves that are read in groups of three; and the bits of any engine: check 4 of scale.md."""
    X, y, weight, offset = data(q=3)
    halves, blocks = BlockHalves(PAIRS, 5), from_arrays(X, y, weight, offset, rows=ROWS)
    models = [blocked_outputs(engine, l2=0.1) for engine in (Serial(blocks), Threads(blocks, 4))]
    found = [[*half_outputs.half_models(model, halves, scale=True)] for model in models]
    monkeypatch.setattr(half_outputs, "_ENTRIES", 3 * D * (D + 9))
    readings = models[0].engine.readings
    groups = [*half_outputs.half_models(models[0], halves, scale=True)]
    assert models[0].engine.readings == readings + 3
    W = np.random.default_rng(0).standard_normal(models[0].shape)
    W[7] = 0.0
    for rows, half, threads, grouped in zip(halves_in_memory(halves, y, weight), *found, groups, strict=True):
        w = weight[rows]
        mean = np.average(X[rows], axis=0, weights=w)
        deviation = np.sqrt(np.average((X[rows] - mean) ** 2, axis=0, weights=w))
        Z = np.column_stack([(X[rows] - mean) / np.where(deviation > 1e-9, deviation, 1.0), np.ones(rows.size)])
        gap = y[rows] - offset[rows]
        ridge = np.append(np.full(D, 0.1), 0.0)
        plain = MultiOutputModel(Z, gap - np.average(gap, axis=0, weights=w), sample_weight=w, l2=ridge)
        assert half.value(W) == pytest.approx(plain.value(W), rel=1e-10)
        assert half.moments.n_rows == rows.size
        assert half.value(W) == threads.value(W)
        assert half.value(W) == pytest.approx(grouped.value(W), rel=1e-12)


def test_halves_without_weight_fail_and_are_left_out():
    """All rows of positive weight but one are in two blocks of one row each, so that both halves are empty."""
    X, y, *_ = data(n=4)
    model = blocked_outputs(Serial(from_arrays(X, y, rows=1)))
    assert [*half_outputs.half_models(model, BlockHalves(1, 0), scale=True)] == ["no row of the half has a weight"] * 2


def test_more_than_two_classes_are_refused_before_the_fit():
    """Some rows are enough to see them; a third class that these lack is found by the fit."""
    X, *_ = data()
    y = np.arange(N) % 3
    selector = ht.StabilitySelection(ht.SparseLogisticRegression(n_nonzero_coefs=2), n_pairs=2)
    message = "halves of a table in blocks are not searched for more than two classes"
    engine = Serial(from_arrays(X, y, rows=ROWS))
    with pytest.raises(CapabilityError, match=message):
        selector.fit(engine)
    assert engine.readings == 0
    with pytest.raises(CapabilityError, match=message):
        selector.fit(from_arrays(X, rows=ROWS), y)
    late = np.where(np.arange(N) // 100 == 3, 2, np.arange(N) % 2)  # in the fourth of twelve blocks
    with pytest.raises(CapabilityError, match=message):
        selector.fit(from_arrays(X, late, rows=100))
