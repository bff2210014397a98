"""Cross-validation of more than two classes over blocks: that in memory with the same folds, in one reading.

Checks 3 and 4 of scale.md.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from folds_of_blocks import assert_same, bits, both, pairs
from hardthresh import SparseLogisticRegressionCV
from hardthresh.core import InvalidInputError, NothingFoundWarning
from hardthresh.designs import DaskEngine, Serial, Threads, from_arrays, from_dask
from hardthresh.losses import Multinomial
from hardthresh.objectives import MultiOutputModel, blocked_classes
from hardthresh.objectives.block_folds import BlockFolds
from hardthresh.objectives.class_fits import ClassFits, class_models, held_out_classes
from hardthresh.objectives.guess import simple_guess, some_rows
from levels import at_most, only_at, reaches

N, D, FOLDS = 800, 24, 4
SIZES = [0, 1, 2, 3, 4, 6]
LABELS = np.array(["ant", "bee", "cat", "dog"])

pytestmark = pytest.mark.filterwarnings("ignore:1 constant column")


def data(seed=0, q=3, n=N, d=D, dtype=np.float64):
    """Correlated columns far from zero, one constant, q classes, weights of zero, offsets, and folds."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 1:] += 0.5 * X[:, :-1]
    coef = np.zeros((d, q))
    coef[rng.choice(np.delete(np.arange(d), 7), 4, replace=False)] = rng.standard_normal((4, q))
    offset = 0.2 * rng.standard_normal((n, q))
    u = X @ coef + offset + rng.gumbel(size=(n, q))
    X += 5.0
    X[:, 7] = 2.0
    y, weight = LABELS[np.argmax(u, axis=1)], rng.integers(0, 3, n).astype(float)
    return X.astype(dtype), y, weight, offset, rng.integers(FOLDS, size=n)


@pytest.mark.slow
def test_tables_have_the_comparison_of_rows_in_memory():
    """Check 3 of scale.md: chosen k, support and held-out scores, of ten tables at the level all.

    Refits in memory end within 1e-10 of the minimum.
    """
    for seed in range(10 if reaches("all") else 3):
        X, y, weight, offset, fold = data(seed, 3 + seed % 2, n=800)
        model = SparseLogisticRegressionCV(n_nonzero_coefs=[0, 2, 4, 5], alphas=[0.01, 0.1])
        blocked, plain = both(model, X, y, fold, weight, offset if seed % 2 else None)
        assert_same(blocked, plain, 1e-6)
        assert blocked.best_n_nonzero_coefs_ > 0
        assert set(blocked.history_["readings"]) == {1}
        assert blocked.held_out_scores_.keys() == plain.held_out_scores_.keys()


SETTINGS = {
    "default": {"n_nonzero_coefs": "auto", "alphas": "auto"},
    "no intercept": {"fit_intercept": False},
    "no scale": {"standardize": False},
    "always": {"always_include": [0, 11]},
    "one standard error": {"rule": "one_standard_error"},
    "no average": {"averaging": "none", "alphas": [0.01]},
    "balanced": {"class_weight": "balanced"},
    "beyond 10": {"n_nonzero_coefs": [0, 4, 14], "alphas": [0.1]},
}


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_are_those_in_memory(setting):
    X, y, weight, offset, fold = data(3)
    model = SparseLogisticRegressionCV(**{"n_nonzero_coefs": SIZES, "alphas": [0.01, 0.1], **SETTINGS[setting]})
    assert_same(*both(model, X, y, fold, weight, offset), 1e-6)


@only_at("pairs")
@pytest.mark.parametrize("storage", ["float32", "sparse", "one block"])
def test_storage_changes_nothing(storage):
    X, y, weight, _, fold = data(dtype=np.float32 if storage == "float32" else np.float64)
    model = SparseLogisticRegressionCV(n_nonzero_coefs=SIZES, alphas=[0.01, 0.1])
    table = sp.csr_array(X) if storage == "sparse" else X
    found = clone(model).fit(from_arrays(table, y, weight, fold=fold, rows=N if storage == "one block" else 256))
    expected = clone(model).set_params(cv=pairs(fold)).fit(X, y, weight)
    assert_same(found, expected, 1e-4 if storage == "float32" else 1e-6)
    assert found.coef_.dtype == expected.coef_.dtype


@only_at("pairs")
def test_drawn_folds_and_bits_are_the_same_on_any_engine():
    """Check 4 of scale.md."""
    X, y, weight, *_ = data(dtype=np.float32)
    model = SparseLogisticRegressionCV(n_nonzero_coefs=[0, 2, 4], alphas=[0.1], cv=3, random_state=3)
    blocks = from_arrays(X, y, weight, rows=128)
    serial = clone(model).fit(Serial(blocks))
    assert serial.grid_scores_.shape[2] == 3
    assert bits(clone(model).fit(Threads(blocks, 4))) == bits(serial)
    folds = BlockFolds(3, model._seed())
    drawn = np.concatenate([folds.of(b, None, block.rows) for b, block in enumerate(blocks)])
    assert_same(serial, clone(model).set_params(cv=pairs(drawn)).fit(X, y, weight), 1e-4)


@only_at("pairs")
def test_bits_are_those_of_a_cluster():
    """Check 4 of scale.md: two workers and leaves of one block and of eight."""
    distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'hardthresh[dask]'")
    import dask.array as da

    X, y, *_ = data(n=600, d=12)
    model = SparseLogisticRegressionCV(n_nonzero_coefs=[0, 2], alphas=[0.1], cv=2)
    serial = clone(model).fit(from_arrays(X, y, rows=100))
    lazy = [da.from_array(part, chunks=(100, *part.shape[1:])) for part in (X, y)]
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        for size in (1, 8):
            assert bits(clone(model).fit(DaskEngine(from_dask(*lazy), leaf_size=size))) == bits(serial)


def test_a_fold_is_trained_on_its_own_rows():
    """A slow twin: the model of a fold is that of its training rows, and nothing about it is a reading."""
    X, y, weight, offset, fold = data()
    numbers = np.searchsorted(LABELS, y).astype(float)
    engine = Serial(from_arrays(X, numbers, weight, offset, fold=fold, rows=256))
    guess = simple_guess(some_rows(engine), Multinomial(3), np.arange(D))
    model = blocked_classes(engine, 3, guess=guess, folds=BlockFolds(FOLDS, labels=np.arange(FOLDS)))
    rng, loss = np.random.default_rng(0), Multinomial(3)
    for left in (-1, 1, FOLDS - 1):
        kept = fold != left
        trained = model.training_model(left, 0.1, intercept=True, scale=True)
        mean = np.average(X[kept], axis=0, weights=weight[kept])
        deviation = np.sqrt(np.average((X[kept] - mean) ** 2, axis=0, weights=weight[kept]))
        varies = np.append(deviation > 1e-9, True)
        Z = np.column_stack([(X[kept] - mean) / np.where(deviation > 1e-9, deviation, np.inf), np.ones(kept.sum())])
        plain = MultiOutputModel(
            Z, numbers[kept], loss, sample_weight=weight[kept], offset=offset[kept], l2=np.full(D + 1, 0.1)
        )
        W = rng.standard_normal(plain.shape) * varies[:, None]
        at, expected = trained.evaluate(W), plain.evaluate(W)
        assert at.value == pytest.approx(expected.value, rel=1e-10)
        np.testing.assert_allclose(at.gradient[varies], expected.gradient[varies], atol=1e-9)
        np.testing.assert_allclose(trained.output_block(at), plain.output_block(expected), rtol=1e-9)
        columns = np.array([2, 7, 9])
        means, covariance = model.column_moments(columns, left)
        np.testing.assert_allclose(means, mean[columns])
        np.testing.assert_allclose(covariance, np.cov(X[kept][:, columns].T, aweights=weight[kept], ddof=0), atol=1e-9)
        block = rng.standard_normal((3, 2))
        near = trained.least_squares(at, block, block, np.full(D + 1, 0.2))
        U, G = (
            Z @ W,
            plain.mean_loss.slopes(expected.prediction) / (weight[kept] / weight[kept].sum())[:, None].clip(1e-300),
        )
        G[weight[kept] == 0] = 0.0
        twin = MultiOutputModel(Z, U @ block - G @ block, sample_weight=weight[kept], l2=0.2)
        V = rng.standard_normal((D + 1, 2)) * varies[:, None]
        gap = near.value(V) - near.value(0.0 * V)
        assert gap == pytest.approx(twin.value(V) - twin.value(0.0 * V), rel=1e-8)
    assert engine.readings == 1


def test_models_of_fits_are_those_of_the_rows():
    """A slow twin of the sweeps over kept columns."""
    rng = np.random.default_rng(0)
    Z, y, fold = rng.standard_normal((200, 4)), rng.integers(0, 3, 200).astype(float), rng.integers(0, 2, 200)
    weight, offset = rng.integers(0, 3, 200).astype(float), rng.standard_normal((200, 3))
    loss, folds, places = (
        Multinomial(3),
        BlockFolds(2, labels=np.arange(2)),
        (np.array([0, 3]), np.array([], dtype=int)),
    )
    fits = ClassFits(places, (rng.standard_normal((2, 3)), np.zeros((0, 3))), rng.standard_normal((2, 3)))
    axes = loss.axes(3)
    values, flat = class_models(Z, y, weight, offset, folds, 0, fold, 1, fits, loss, axes)
    own, at = weight * (fold != 1), 0
    for i, columns in enumerate(places):
        some = np.column_stack([Z[:, columns], np.ones(200)])
        u = Z[:, columns] @ fits.coefs[i] + fits.levels[i] + offset
        assert values[i] == pytest.approx(own @ loss.value(y, u))
        size = 2 * some.shape[1]
        gradient = some.T @ (own[:, None] * loss.gradient(y, u) @ axes)
        np.testing.assert_allclose(flat[at : at + size], gradient.ravel(), atol=1e-10)
        bends = axes.T @ loss.blocks(y, u) @ axes
        hessian = np.einsum("n,nab,ni,nj->abij", own, bends, some, some)
        np.testing.assert_allclose(flat[at + size : at + size + size**2], hessian.ravel(), atol=1e-10)
        at += size + size**2
    assert at == flat.size
    values, right, gains, totals = held_out_classes(Z, y, weight, offset, folds, 0, fold, fits, np.array([1, 1]), loss)
    out, w = fold == 1, weight[fold == 1]
    u = [(Z[:, columns] @ fits.coefs[i] + fits.levels[i] + offset)[out] for i, columns in enumerate(places)]
    losses = [loss.value(y[out], part) for part in u]
    np.testing.assert_allclose(values, [w @ part for part in losses])
    for c in range(3):
        ours = w * (y[out] == c)
        np.testing.assert_allclose(right[:, c], [ours @ (part.argmax(axis=1) == c) for part in u])
        assert totals[1, c] == ours.sum()
    gain = losses[0] - losses[1]
    expected = [part for size in (w, w * w) for part in (size.sum(), size @ gain, size @ gain**2)]
    np.testing.assert_allclose(gains[1], expected)


def test_a_fold_that_trains_without_a_class_is_refused():
    X, y, _, _, fold = data()
    with pytest.raises(InvalidInputError, match="fold 2 of cv trains on rows without the class 'cat'; use fewer or"):
        SparseLogisticRegressionCV().fit(from_arrays(X, y, fold=np.where(y == "cat", 2, fold % 2), rows=256))


@pytest.mark.slow
def test_noise_has_no_model():
    X, _, _, _, fold = data()
    y = LABELS[np.random.default_rng(9).integers(0, 3, N)]
    model = SparseLogisticRegressionCV(n_nonzero_coefs=SIZES, alphas=[0.1])
    with pytest.warns(NothingFoundWarning, match="no number of features predicts clearly better than none"):
        found = model.fit(from_arrays(X, y, fold=fold, rows=256))
    assert not found.found_
    assert found.support_.size == 0
