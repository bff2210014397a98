"""Every kind of data gives the same answer, and data of unusual shapes a finite one."""

import importlib

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from levels import inherited, slow_beyond


def flat(model):
    return np.reshape(model.coef_, -1)


def big_indices(X):
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def small_indices(X):
    X = sp.csc_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


CONTAINERS = {
    "Fortran order": np.asfortranarray,
    "every second row of a larger array": lambda X: np.repeat(X, 2, axis=0)[::2],
    "reversed": lambda X: X[::-1].copy()[::-1],
    "read-only": read_only,
    "lists": lambda X: X.tolist(),
    "objects that are numbers": lambda X: X.astype(object),
    **{
        f"{form}_{kind}": getattr(sp, f"{form}_{kind}")
        for form in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
        for kind in ("array", "matrix")
    },
    "64-bit indices": big_indices,
    "32-bit indices": small_indices,
}


@slow_beyond(13)
@inherited
@pytest.mark.parametrize("kind", CONTAINERS)
def test_the_container_does_not_matter(case, kind):
    X, y = case.data()
    X[np.abs(X) < 0.7] = 0.0
    there = case.make().fit(CONTAINERS[kind](X), y)
    here = case.make().fit(X, y)
    assert_array_equal(there.support_, here.support_)
    assert_allclose(there.coef_, here.coef_, rtol=1e-6)
    assert_allclose(there.intercept_, here.intercept_, rtol=1e-6)
    assert_allclose(case.scores(there)(CONTAINERS[kind](X)), case.scores(here)(X), rtol=1e-6)


@inherited
def test_sparse_data_that_store_zeros_and_duplicates(case):
    X, y = case.data()
    X[np.abs(X) < 0.7] = 0.0
    rows, columns = np.nonzero(X)
    halves = np.concatenate([0.25 * X[rows, columns], 0.75 * X[rows, columns], np.zeros(5)])
    places = [np.concatenate([i, i, np.arange(5)]) for i in (rows, columns)]
    there = case.make().fit(sp.coo_array((halves, tuple(places)), shape=X.shape), y)
    here = case.make().fit(X, y)
    assert_array_equal(there.support_, here.support_)
    assert_allclose(there.coef_, here.coef_, rtol=1e-6)


@inherited
@pytest.mark.parametrize("write", [False, True])
def test_a_memory_map_is_read_and_never_written(case, tmp_path, write):
    X, y = case.data()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r+" if write else "r")
    model = case.make().fit(mapped, y)
    assert_array_equal(model.coef_, case.make().fit(X, y).coef_)
    assert_array_equal(np.load(tmp_path / "X.npy"), X)


def test_no_argument_is_changed(case):
    X, y = case.data()
    weight, offset = np.linspace(0, 2, y.size), np.linspace(-1, 1, y.size)
    copies = [a.copy() for a in (X, y, weight, offset)]
    case.make().fit(X, y, sample_weight=weight, offset=offset).predict(X, offset=offset)
    for a, copy in zip((X, y, weight, offset), copies, strict=True):
        assert_array_equal(a, copy)


@inherited
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, np.int8, np.int32, np.int64, np.uint16, np.bool_]
)
def test_the_type_of_numbers(case, dtype, sparse):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (80, 10)) if dtype is np.bool_ else rng.integers(0, 9, (80, 10))
    y = case.target(2.0 * X[:, 3] - 1.5 * X[:, 6], rng, 0.3)
    if sparse and dtype is np.float16:
        pytest.skip("SciPy has no sparse float16")
    X = X.astype(dtype)
    there = case.make(k=2).fit(sp.csr_array(X) if sparse else X, y)
    here = case.make(k=2).fit(X.astype(float), y)
    assert_array_equal(there.support_, here.support_)
    assert_allclose(there.coef_, here.coef_, rtol=1e-3 if dtype is np.float32 else 1e-6)
    assert there.coef_.dtype == (np.float32 if dtype is np.float32 else np.float64)


def test_float32_stays_float32(case):
    X, y = case.data()
    model = case.make().fit(X.astype(np.float32), y, sample_weight=np.linspace(1, 2, y.size))
    assert model.coef_.dtype == np.float32
    assert case.scores(model)(X.astype(np.float32)).dtype == np.float32
    assert not case.transforms or model.transform(X.astype(np.float32)).dtype == np.float32
    if case.chooses:
        assert model.coefs_path_.dtype == np.float32


@inherited
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.bool_, np.float32])
def test_the_type_of_targets(case, dtype):
    X, _ = case.data()
    whole = np.round(np.clip(np.abs(X[:, 1]) * 9, 0, 100))
    whole = whole > np.median(whole) if case.loss.classifies or dtype is np.bool_ else whole
    if not case.loss.in_domain(whole).all():
        pytest.skip(f"a target of this type that is not among the {case.loss.domain}")
    there, here = (case.make().fit(X, whole.astype(kind)) for kind in (dtype, float))
    assert_array_equal(there.support_, here.support_)
    assert_allclose(there.coef_, here.coef_, rtol=1e-6)
    if case.loss.classifies:
        assert there.classes_.dtype == np.dtype(dtype)
        assert_array_equal(there.predict(X).astype(float), here.predict(X))


@inherited
def test_a_column_of_targets_is_taken_with_a_warning(case):
    if case.cls._takes_outputs:
        pytest.skip("predictions have a column, too: see test_several_outputs.py")
    X, y = case.data()
    with pytest.warns(Warning, match="A column-vector y was passed when a 1d array was expected"):
        there = case.make().fit(X, y[:, None])
    assert_array_equal(there.coef_, case.make().fit(X, y).coef_)


# data frames


def frame_of(library, X, names):
    if library == "pandas":
        return pytest.importorskip("pandas", reason="pandas is not installed").DataFrame(X, columns=names)
    if library == "polars":
        return pytest.importorskip("polars", reason="polars is not installed").DataFrame(X, schema=names)
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    return arrow.table([X[:, j] for j in range(X.shape[1])], names=names)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_data_frames_keep_their_names(case, library):
    X, y = case.data()
    names = [f"gene {j}" for j in range(X.shape[1])]
    frame = frame_of(library, X, names)
    model = case.make().fit(frame, y)
    assert_array_equal(model.feature_names_in_, names)
    assert_array_equal(model.get_feature_names_out(), [names[j] for j in model.support_])
    here = case.make().fit(X, y)
    assert_allclose(model.coef_, here.coef_, rtol=1e-4)  # columns lie in another order in memory
    assert_array_equal(model.support_, here.support_)
    assert not case.transforms or np.array_equal(np.asarray(model.transform(frame)), X[:, model.support_])
    removed = model.certificate().removed_name
    assert removed in names
    included = case.make(k=2, always_include=["gene 9", 0]).fit(frame, y)
    assert_allclose(included.coef_, case.make(k=2, always_include=[0, 9]).fit(X, y).coef_, rtol=1e-4)
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        model.predict(frame_of(library, X, names[::-1]))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_series_are_targets_and_weights(case, library):
    package = importlib.import_module(library) if library else None
    X, y = case.data()
    weight, offset = np.linspace(1, 2, y.size), np.linspace(-1, 1, y.size)
    there = case.make().fit(X, package.Series(y), sample_weight=package.Series(weight), offset=package.Series(offset))
    here = case.make().fit(X, y, sample_weight=weight, offset=offset)
    assert_array_equal(there.coef_, here.coef_)
    assert_array_equal(there.predict(X, offset=offset), here.predict(X, offset=offset))


@inherited
def test_an_index_that_is_not_in_order_does_not_mix_rows(case):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = case.data()
    shuffled = np.random.default_rng(0).permutation(y.size)
    frame = pandas.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])], index=shuffled)
    weight = np.linspace(0, 2, y.size)
    there = case.make().fit(frame, pandas.Series(y, index=shuffled[::-1]), sample_weight=pandas.Series(weight))
    assert_array_equal(there.coef_, case.make().fit(X, y, sample_weight=weight).coef_)


# unusual shapes


def assert_sound(model, X):
    assert np.all(np.isfinite(model.coef_))
    assert np.all(np.isfinite(model.intercept_))
    assert np.isfinite(model.objective_)
    assert model.predict(X).shape == (X.shape[0],)
    assert set(np.flatnonzero(flat(model))) <= set(model.support_.tolist())
    assert model.certificate() is not None
    assert str(model.certificate())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "d", "k"), [(10, 40, 3), (10, 40, 10), (10, 40, 40), (60, 1, 1), (60, 12, 12), (20, 20, 20)]
)
def test_any_shape_gives_a_finite_answer(plain, n, d, k):
    X, y = plain.data(n=n, d=d)
    model = plain.make(k=k, alpha=1e-3).fit(X, y)
    assert_sound(model, X)
    assert model.support_.size <= k


@inherited
def test_no_feature_at_all(case):
    X, y = case.data()
    model = case.make(n_nonzero_coefs=[0] if case.chooses else 0).fit(X, y)
    assert_array_equal(model.coef_, np.zeros_like(model.coef_))
    assert model.support_.size == 0
    assert_sound(model, X)
    constant = case.loss.constant(case.numbers(y), np.ones(y.size))
    assert_allclose(np.reshape(model.intercept_, ()), constant, rtol=1e-6)


def test_one_row(plain):
    X, y = plain.data(n=2)
    if plain.loss.classifies:
        model = plain.make(k=2).fit(X, y)  # two rows: one of each class
    else:
        with pytest.warns(UserWarning, match="12 constant columns"):
            model = plain.make(k=2).fit(X[:1], y[:1])
        assert_allclose(model.predict(X), y[0])
    assert_sound(model, X)


def test_two_rows(plain):
    X, y = plain.data(n=2)
    assert_sound(plain.make(k=1).fit(X, y), X)


def test_duplicate_columns(plain):
    X, y = plain.data()
    X[:, 5] = X[:, 1]
    X[:, 8] = -2 * X[:, 4]
    model = plain.make(k=5).fit(X, y)
    assert_sound(model, X)
    assert {1, 5} & set(model.support_.tolist())
    everything = plain.make(k=12).fit(X, y)
    assert_sound(everything, X)
    single = plain.make(k=10, alpha=0.0).fit(np.delete(X, [5, 8], axis=1), y)
    double = plain.make(k=12, alpha=0.0).fit(X, y)
    assert_allclose(double.objective_, single.objective_, rtol=1e-6)


def test_columns_of_very_unequal_scales(plain):
    X, y = plain.data()
    units = 10.0 ** np.linspace(-100, 100, X.shape[1])
    here, there = plain.make().fit(X, y), plain.make().fit(X * units, y)
    assert_array_equal(there.support_, here.support_)
    assert_allclose(flat(there) * units, flat(here), rtol=1e-6)
    assert_allclose(there.predict(X * units) == there.predict(X * units), True)


def test_a_small_signal_on_a_large_mean(plain):
    X, y = plain.data()
    there = plain.make().fit(X + 1e6, y)
    here = plain.make().fit(X, y)
    assert_array_equal(there.support_, here.support_)
    assert_allclose(there.coef_, here.coef_, rtol=1e-4)


def test_the_default_candidates_are_up_to_thirty(chooser):
    for d, numbers in ((5, range(6)), (14, [*range(11), 12, 14]), (35, [*range(11), 12, 14, 17, 20, 25, 30])):
        X, y = chooser.data(n=120, d=d)
        model = chooser.cls(cv=2).fit(X, y)
        assert_array_equal(model.candidates_, numbers)
        assert not model.range_extended_
