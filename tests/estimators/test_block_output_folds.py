"""Cross-validation of several outputs over blocks: that in memory with the same folds, in two readings.

Checks 3 and 4 of scale.md.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from folds_of_blocks import assert_same, bits, both, pairs
from hardthresh import SparseLinearRegressionCV
from hardthresh.core import NothingFoundWarning
from hardthresh.designs import DaskEngine, Serial, Threads, from_arrays, from_dask
from hardthresh.losses import MultiTask
from hardthresh.objectives import MultiOutputModel, blocked_outputs
from hardthresh.objectives.block_folds import BlockFolds
from levels import at_most, only_at

N, D, Q, FOLDS = 1500, 40, 2, 4
SIZES = [0, 1, 2, 3, 4, 6, 8]

pytestmark = pytest.mark.filterwarnings("ignore:1 constant column")


def data(seed=0, q=Q, n=N, d=D, dtype=np.float64):
    """Correlated columns far from zero, one constant, q outputs of a large mean, weights of zero, and folds."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 1:] += 0.5 * X[:, :-1]
    X += 5.0
    X[:, 7] = 2.0
    coef = np.zeros((d, q))
    coef[rng.choice(np.delete(np.arange(d), 7), 4, replace=False)] = rng.standard_normal((4, q))
    y = 100.0 + 0.3 * X @ coef + rng.standard_normal((n, q))
    weight, offset = rng.integers(0, 3, n).astype(float), 0.2 * rng.standard_normal((n, q))
    return X.astype(dtype), y, weight, offset, rng.integers(FOLDS, size=n)


@pytest.mark.slow
def test_ten_tables_have_the_comparison_of_rows_in_memory():
    """Check 3 of scale.md: chosen k, support and held-out scores, in two readings, with weights of zero."""
    for seed in range(10):
        X, y, weight, offset, fold = data(seed, 2 + seed % 2)
        model = SparseLinearRegressionCV(n_nonzero_coefs=SIZES)
        blocked, plain = both(model, X, y, fold, weight, offset)
        assert_same(blocked, plain, 1e-9)
        assert blocked.best_n_nonzero_coefs_ > 0
        assert blocked.history_["readings"][-1] == 2
        np.testing.assert_allclose(blocked.coefs_path_, plain.coefs_path_, atol=1e-7)


SETTINGS = {
    "no intercept": {"fit_intercept": False},
    "no scale": {"standardize": False},
    "always": {"always_include": [0, 11]},
    "one standard error": {"rule": "one_standard_error"},
    "no average": {"averaging": "none", "alphas": [0.0, 0.1]},
    "default": {"n_nonzero_coefs": "auto"},
    "search": {"n_nonzero_coefs": "search", "max_nonzero_coefs": 12},
    "beyond 30": {"n_nonzero_coefs": [0, 4, 34]},
}


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_are_those_in_memory(setting):
    X, y, weight, offset, fold = data(3)
    model = SparseLinearRegressionCV(**{"n_nonzero_coefs": SIZES, **SETTINGS[setting]})
    assert_same(*both(model, X, y, fold, weight, offset))


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("storage", ["float32", "sparse", "one block", "labels", "one output", "equal outputs"])
def test_storage_changes_nothing(storage):
    X, y, weight, _, fold = data(dtype=np.float32 if storage == "float32" else np.float64)
    y = {"one output": y[:, :1], "equal outputs": np.column_stack([y[:, 0], np.full(N, 3.0)])}.get(storage, y)
    model = SparseLinearRegressionCV(n_nonzero_coefs=SIZES)
    labels = np.array(["north", "south", "west", "east"])[fold] if storage == "labels" else fold
    table = sp.csr_array(X) if storage == "sparse" else X
    found = clone(model).fit(from_arrays(table, y, weight, fold=labels, rows=N if storage == "one block" else 256))
    expected = clone(model).set_params(cv=pairs(np.unique(labels, return_inverse=True)[1])).fit(X, y, weight)
    assert_same(found, expected, 1e-4 if storage == "float32" else 1e-8)
    assert found.coef_.dtype == expected.coef_.dtype
    assert found.predict(X).shape == y.shape


@only_at("pairs")
def test_drawn_folds_and_bits_are_the_same_on_any_engine():
    """Check 4 of scale.md."""
    X, y, weight, *_ = data(dtype=np.float32)
    model = SparseLinearRegressionCV(n_nonzero_coefs=SIZES, cv=4, random_state=3)
    blocks = from_arrays(X, y, weight, rows=128)
    serial = clone(model).fit(Serial(blocks))
    assert serial.grid_scores_.shape[2] == 4
    assert bits(clone(model).fit(Threads(blocks, 4))) == bits(serial)
    assert bits(clone(model).set_params(random_state=4).fit(blocks)) != bits(serial)
    folds = BlockFolds(4, model._seed())
    drawn = np.concatenate([folds.of(b, None, block.rows) for b, block in enumerate(blocks)])
    assert_same(serial, clone(model).set_params(cv=pairs(drawn)).fit(X, y, weight), 1e-4)


@only_at("pairs")
def test_bits_are_those_of_a_cluster():
    """Check 4 of scale.md: two workers and leaves of one block and of eight."""
    distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'hardthresh[dask]'")
    import dask.array as da

    X, y, weight, *_ = data()
    model = SparseLinearRegressionCV(n_nonzero_coefs=SIZES)
    serial = clone(model).fit(from_arrays(X, y, weight, rows=100))
    lazy = [da.from_array(part, chunks=(100, *part.shape[1:])) for part in (X, y, weight)]
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        for size in (1, 8):
            assert bits(clone(model).fit(DaskEngine(from_dask(*lazy), leaf_size=size))) == bits(serial)


def test_a_fold_is_trained_on_its_own_rows():
    """A slow twin: the model of a fold is that of its training rows, standardised by their own moments."""
    X, y, weight, offset, fold = data()
    blocks = from_arrays(X, y, weight, offset, fold=fold, rows=256)
    engine = Serial(blocks)
    model = blocked_outputs(engine, folds=BlockFolds(FOLDS, labels=np.arange(FOLDS)))
    rng = np.random.default_rng(0)
    for left in (-1, *range(FOLDS)):
        kept = fold != left
        trained = model.training_model(left, 0.1, intercept=True, scale=True)
        mean = np.average(X[kept], axis=0, weights=weight[kept])
        deviation = np.sqrt(np.average((X[kept] - mean) ** 2, axis=0, weights=weight[kept]))
        varies = deviation > 1e-9
        Z = np.column_stack([(X[kept] - mean) * varies / np.where(varies, deviation, 1.0), np.ones(kept.sum())])
        gap = (y - offset)[kept]
        level = np.average(gap, axis=0, weights=weight[kept])
        plain = MultiOutputModel(Z, gap - level, sample_weight=weight[kept], l2=0.1)
        W = rng.standard_normal(plain.shape) * np.append(varies, True)[:, None]
        at, expected = trained.evaluate(W), plain.evaluate(W)
        assert at.value == pytest.approx(expected.value, rel=1e-10)
        np.testing.assert_allclose(at.gradient[np.append(varies, True)], expected.gradient[np.append(varies, True)])
        columns = np.array([2, 7, 9])
        means, covariance = model.column_moments(columns, left)
        np.testing.assert_allclose(means, mean[columns])
        np.testing.assert_allclose(covariance, np.cov(X[kept][:, columns].T, aweights=weight[kept], ddof=0), atol=1e-9)
    assert engine.readings == 1


def test_no_held_out_row_has_a_say():
    """What a fold fits has the same bits whatever the outputs are of the rows that it holds out."""
    X, y, _, _, fold = data()
    found = []
    for add in (0.0, 50.0 * X[:, 20:22]):
        folds = BlockFolds(FOLDS, labels=np.arange(FOLDS))
        other = np.where(fold[:, None] == 1, y + add, y)
        model = blocked_outputs(Serial(from_arrays(X, other, fold=fold, rows=256)), folds=folds)
        found.append(model.training_model(1, 0.0, intercept=True, scale=True).evaluate(model.zeros()))
    np.testing.assert_allclose(found[0].gradient, found[1].gradient, atol=1e-9)
    assert found[0].value == pytest.approx(found[1].value, rel=1e-9)


def test_noise_has_no_model():
    X, _, _, _, fold = data()
    noise = np.random.default_rng(9).standard_normal((N, Q))
    with pytest.warns(NothingFoundWarning, match="no number of features predicts clearly better than none"):
        found = SparseLinearRegressionCV(n_nonzero_coefs=SIZES).fit(from_arrays(X, noise, fold=fold, rows=256))
    assert not found.found_
    assert found.support_.size == 0


@pytest.mark.slow
def test_a_fold_column_of_which_some_rows_lack_a_value_is_read_again():
    X, y, *_ = data(n=8 * 128)
    fold = np.repeat(np.arange(8), 128) // 2  # four blocks of eight are looked at first
    assert_same(*both(SparseLinearRegressionCV(n_nonzero_coefs=[1, 2, 4]), X, y, fold, rows=128))


def test_outputs_are_a_loss_of_their_own():
    """What is asked of a table with several outputs is their loss, so that scores are means over these."""
    X, y, _, _, fold = data(q=3)
    found = SparseLinearRegressionCV(n_nonzero_coefs=SIZES).fit(from_arrays(X, y, fold=fold, rows=256))
    assert found.scorer_name_ == "neg_mean_squared_error"
    assert MultiTask().score_scale == 2.0
    assert found.coef_.shape == (3, D)
    assert -found.mean_scores_.max() == pytest.approx(1.0, abs=0.1)  # the noise of an output
