"""Several outputs of tables in blocks: the models that are fitted to them in memory, after one reading."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import hardthresh as ht
from hardthresh import SparseHuberRegression, SparseLinearRegression
from hardthresh.core import CapabilityError, InvalidInputError
from hardthresh.designs import DaskEngine, Serial, Threads, from_arrays, from_dask
from levels import at_most, only_at, slow_beyond

N, D, K = 2000, 60, 4


def data(seed=0, q=2, n=N, d=D, dtype=np.float64):
    """Correlated columns, one constant, and q outputs of a large mean that share K of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 1:] += 0.5 * X[:, :-1]
    X[:, 7] = 2.0
    coef = np.zeros((d, q))
    coef[rng.choice(np.delete(np.arange(d), 7), K, replace=False)] = rng.standard_normal((K, q))
    y = 100.0 + 0.3 * X @ coef + rng.standard_normal((n, q))
    return X.astype(dtype), y, rng.integers(0, 3, n).astype(float), 0.2 * rng.standard_normal((n, q))


def assert_same_model(blocked, plain, rtol=1e-8):
    np.testing.assert_array_equal(blocked.support_, plain.support_)
    assert blocked.coef_.shape == plain.coef_.shape
    np.testing.assert_allclose(blocked.coef_, plain.coef_, rtol=0, atol=rtol * np.abs(plain.coef_).max())
    np.testing.assert_allclose(blocked.intercept_, plain.intercept_, rtol=rtol)
    np.testing.assert_allclose(blocked.objective_, plain.objective_, rtol=max(rtol, 1e-8))


SETTINGS = {
    "as it is": {},
    "no intercept": {"fit_intercept": False},
    "no scale": {"standardize": False},
    "ridge": {"alpha": 0.3},
    "always": {"always_include": [0, 11]},
    "groups": {"groups": np.arange(D) // 3, "n_nonzero_groups": 2, "n_nonzero_coefs": None},
    "auto": {"n_nonzero_coefs": "auto"},
    "pursuit": {"solver": "pursuit"},
}

pytestmark = pytest.mark.filterwarnings("ignore:1 constant column")


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("q", [2, 3])
def test_twenty_tables_have_the_model_of_rows_in_memory(q):
    """Checks 2 and 3 of scale.md: the same features and coefficients, with weights of zero among them; one reading."""
    for seed in range(20):
        X, y, weight, offset = data(seed, q)
        model = SparseLinearRegression(n_nonzero_coefs=K)
        blocked = clone(model).fit(from_arrays(X, y, weight, offset, rows=512))
        assert_same_model(blocked, clone(model).fit(X, y, weight, offset))
        assert set(blocked.history_["readings"]) == {1}


@slow_beyond(4)
@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_are_those_in_memory(setting):
    X, y, weight, offset = data(3)
    model = SparseLinearRegression(**{"n_nonzero_coefs": K, **SETTINGS[setting]})
    blocked = clone(model).fit(from_arrays(X, y, weight, offset, rows=512))
    plain = clone(model).fit(X, y, weight, offset)
    assert_same_model(blocked, plain)
    if setting == "auto":
        np.testing.assert_allclose(blocked.criterion_path_, plain.criterion_path_, rtol=1e-10)


@pytest.mark.slow
def test_predictions_scores_and_certificates_are_those_in_memory():
    X, y, weight, offset = data(q=3)
    blocks = from_arrays(X, y, weight, offset, rows=512)
    blocked, plain = (SparseLinearRegression(n_nonzero_coefs=K).fit(*of) for of in ((blocks,), (X, y, weight, offset)))
    np.testing.assert_allclose(blocked.predict(blocks), plain.predict(X, offset), rtol=1e-12)
    np.testing.assert_allclose(blocked.predict(from_arrays(X, rows=512), offset), plain.predict(X, offset), rtol=1e-12)
    np.testing.assert_allclose(blocked.score(blocks), plain.score(X, y, weight, offset), rtol=1e-10)
    found, expected = blocked.certificate(), plain.certificate()
    assert (found.exact, found.fitted) == (expected.exact, True)
    assert (found.swap.removed, found.swap.added) == (expected.swap.removed, expected.swap.added)
    np.testing.assert_allclose(found.lower_bound, expected.lower_bound, rtol=1e-8)
    assert str(blocked.summary()) == str(plain.summary()).split("\n\nHow well")[0]
    for ours, theirs in zip(blocked.inference().intervals, plain.inference().intervals, strict=True):
        assert (ours.index, ours.output) == (theirs.index, theirs.output)
        np.testing.assert_allclose([ours.lower, ours.upper], [theirs.lower, theirs.upper], rtol=1e-8)


@pytest.mark.parametrize("storage", ["float32", "sparse", "beside", "one output", "copies"])
def test_storage_changes_nothing(storage):
    X, y, weight, _ = data(dtype=np.float32 if storage == "float32" else np.float64)
    y = y[:, :1] if storage == "one output" else y
    if storage == "copies":  # of rank D - 3: products have no Cholesky factor without pivots
        X[:, [20, 30]] = X[:, [10, 10]]
    model, single = SparseLinearRegression(n_nonzero_coefs=K), storage == "float32"
    rows = from_arrays(sp.csr_array(X) if storage == "sparse" else X, y, weight, rows=512)
    given = (from_arrays(X, rows=512), y, weight) if storage == "beside" else (rows,)
    blocked, plain = clone(model).fit(*given), clone(model).fit(X, y, weight)
    assert_same_model(blocked, plain, 1e-5 if single else 1e-8)
    assert blocked.coef_.dtype == plain.coef_.dtype
    assert blocked.predict(rows).shape == plain.predict(X).shape == y.shape
    np.testing.assert_allclose(blocked.score(rows), plain.score(X, y, weight), rtol=1e-4 if single else 1e-10)
    if storage == "one output":
        assert_same_model(blocked.set_params(warm_start=True).fit(*given), plain)


def test_bits_do_not_depend_on_the_engine():
    """Check 4 of scale.md."""
    X, y, weight, _ = data(n=5000, dtype=np.float32)
    table = from_arrays(X, y, weight, rows=128)
    engines = [Serial(table), Threads(table, 4)]
    models = [SparseLinearRegression(n_nonzero_coefs=K).fit(engine) for engine in engines]
    first = models[0].coef_.tobytes() + models[0].intercept_.tobytes()
    assert all(model.coef_.tobytes() + model.intercept_.tobytes() == first for model in models)
    scores = {model.score(engine) for model, engine in zip(models, engines, strict=True)}
    assert len(scores) == 1


@only_at("pairs")
def test_bits_are_those_of_a_cluster():
    """Check 4 of scale.md: two workers, arrays of Dask, and predictions that are computed once they are asked for."""
    distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'hardthresh[dask]'")
    import dask.array as da

    X, y, weight, _ = data()
    serial = SparseLinearRegression(n_nonzero_coefs=K).fit(from_arrays(X, y, weight, rows=100))
    lazy = [da.from_array(part, chunks=(100, *part.shape[1:])) for part in (X, y, weight)]
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
    ):
        model = SparseLinearRegression(n_nonzero_coefs=K).fit(*lazy)
        found = model.predict(lazy[0])
        assert hasattr(found, "dask")
        np.testing.assert_allclose(found.compute(), serial.predict(X), rtol=1e-12)
        assert model.score(*lazy) == serial.score(from_arrays(X, y, weight, rows=100))
        others = [clone(model).fit(DaskEngine(from_dask(*lazy), leaf_size=size)) for size in (1, 8)]
    for other in (model, *others):
        assert other.coef_.tobytes() == serial.coef_.tobytes()
        assert other.intercept_.tobytes() == serial.intercept_.tobytes()


def test_a_fit_is_stored_and_forgets_a_column_of_targets(tmp_path):
    X, y, *_ = data()
    model = SparseLinearRegression(n_nonzero_coefs=K).fit(X, y[:, :1])
    model.fit(from_arrays(X, y, rows=512))
    ht.save(model, tmp_path / "model.json")
    for other in (ht.load(tmp_path / "model.json"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert model.predict(X).shape == y.shape
    warm = clone(model).set_params(warm_start=True).fit(X, y).fit(from_arrays(X, y, rows=512))
    assert_same_model(warm, model)


def outputs_of_blocks(second):
    """A table whose first block has two outputs, and whose last one something else."""
    X, y, *_ = data(n=100)
    parts = [from_arrays(X, part, rows=100) for part in (y, second(y))]
    return Serial(parts[0]).on_blocks(type(parts[0])((*parts[0].blocks, *parts[1].blocks), D, np.dtype(float)))


REFUSED = {
    "other numbers": (
        lambda: outputs_of_blocks(lambda y: np.column_stack([y, y])),
        InvalidInputError,
        r"\(n, 2\).*\(n, 4\)",
    ),
    "one number": (lambda: outputs_of_blocks(lambda y: y[:, 0]), InvalidInputError, r"\(n,\).*\(n, 2\)"),
    "no outputs": (lambda: from_arrays(np.eye(50), np.ones((50, 0))), InvalidInputError, "y must have shape"),
    "NaN": (lambda: from_arrays(np.eye(50), np.full((50, 2), np.nan)), InvalidInputError, "y contains NaN"),
    "an offset": (
        lambda: from_arrays(np.eye(50), np.ones((50, 2)), offset=np.ones(50)),
        InvalidInputError,
        "an offset of shape",
    ),
    "columns": (
        lambda: from_arrays(np.zeros((50, 2100)), np.ones((50, 2))),
        CapabilityError,
        "several outputs are fitted over blocks of at most 2,048 columns, X has 2,100",
    ),
}


@pytest.mark.parametrize(("table", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_tables_are_refused(table, error, message):
    with pytest.raises(error, match=message):
        SparseLinearRegression(n_nonzero_coefs=2).fit(table())


MODELS = {
    "huber": (
        SparseHuberRegression(n_nonzero_coefs=2, delta=1.0),
        "several outputs of the Huber loss are not fitted over blocks; give one at a time",
    ),
}


@pytest.mark.parametrize(("model", "message"), MODELS.values(), ids=MODELS)
def test_other_models_refuse_several_outputs_before_a_reading(model, message):
    X, y, *_ = data()
    engine = Serial(from_arrays(X, y, rows=512))
    with pytest.raises(CapabilityError, match=message):
        model.fit(engine)
    assert engine.readings == 0


def test_scores_need_the_outputs_of_the_model():
    X, y, *_ = data()
    model = SparseLinearRegression(n_nonzero_coefs=2).fit(from_arrays(X, y, rows=512))
    for other in (y[:, 0], np.column_stack([y, y])):
        with pytest.raises(InvalidInputError, match=r"\(n, 2\) is needed"):
            model.score(from_arrays(X, other, rows=512))
    single = SparseLinearRegression(n_nonzero_coefs=2).fit(X, y[:, 0])
    with pytest.raises(InvalidInputError, match=r"\(n,\) is needed"):
        single.score(from_arrays(X, y, rows=512))


@pytest.mark.parametrize("q", [1, 2])
def test_scores_keep_the_digits_that_a_far_intercept_takes(q):
    """Of columns of a large mean the intercept is far from the targets: variances about it lose eleven digits."""
    X, y, *_ = data(q=q)
    X, y = X + 1e6, y if q > 1 else y[:, 0]
    blocks = from_arrays(X, y, rows=512)
    model = SparseLinearRegression(n_nonzero_coefs=K).fit(X, y)
    assert np.abs(model.intercept_).max() > 1e5
    np.testing.assert_allclose(model.score(blocks), model.score(X, y), rtol=1e-8)
