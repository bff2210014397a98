"""Estimators on tables of Dask: what they refuse, and what they return lazily."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hardthresh import (
    SparseLinearRegression,
    SparseLinearSVC,
    SparseLogisticRegression,
    SparseOrdinalRegression,
    SparsePoissonRegression,
)
from hardthresh.core import CapabilityError, InvalidInputError
from hardthresh.estimators import LowRankImputer

da = pytest.importorskip("dask.array", reason="dask is not installed: pip install 'hardthresh[dask]'")

N, D = 90, 6


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    return X, X[:, 1] - X[:, 4] + 0.5 * rng.standard_normal(N)


def chunked(x, rows=40):
    return da.from_array(x, chunks=(rows, *x.shape[1:]))


REFUSED = {
    "fit of a transformer": lambda X, y, model: LowRankImputer(rank=1).fit(X),
    "lazy targets of X in memory": lambda X, y, model: SparseLinearRegression().fit(np.ones((N, D)), y),
    "a lazy offset of X in memory": lambda X, y, model: model.predict(np.ones((N, D)), offset=y),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_dask_is_never_made_into_numpy_behind_the_back(call):
    """The silent conversion must not come back: 1029 MB for a table of 763 MB (scale.md, section 1)."""
    X, y = data()
    model = SparseLinearRegression(n_nonzero_coefs=2).fit(X, y)
    with pytest.raises(CapabilityError, match=r"is a Dask Array, which would have to be here as a whole; give \w+\.c"):
        call(chunked(X), chunked(y), model)


def labelled(y):
    return np.array(["low", "middle", "up"])[np.searchsorted([-0.5, 0.5], y)]


MODELS = {
    "regression": (SparseLinearRegression(n_nonzero_coefs=2), lambda y: y, ["predict"]),
    "two outputs": (SparseLinearRegression(n_nonzero_coefs=2), lambda y: np.column_stack([y, -y]), ["predict"]),
    "a column of targets": (SparseLinearRegression(n_nonzero_coefs=2), lambda y: y[:, None], ["predict"]),
    "no feature": (SparseLinearRegression(n_nonzero_coefs=0), lambda y: y, ["predict"]),
    "two classes": (
        SparseLogisticRegression(n_nonzero_coefs=2),
        lambda y: y > 0,
        ["predict", "decision_function", "predict_proba", "predict_log_proba"],
    ),
    "named classes": (SparseLogisticRegression(n_nonzero_coefs=2), labelled, ["predict", "predict_proba"]),
    "ordered classes": (
        SparseOrdinalRegression(n_nonzero_coefs=2),
        lambda y: np.round(y),
        ["predict", "predict_proba"],
    ),
    "support vectors": (SparseLinearSVC(n_nonzero_coefs=2), lambda y: y > 0, ["predict", "decision_function"]),
    "counts": (SparsePoissonRegression(n_nonzero_coefs=2), lambda y: np.round(np.exp(y)), ["predict"]),
}


@pytest.mark.parametrize(("model", "targets", "methods"), MODELS.values(), ids=MODELS)
def test_predictions_are_lazy_and_the_same(model, targets, methods):
    X, y = data()
    model.fit(X, targets(y))
    computed = []

    def seen(part):
        computed.append(part.shape)
        return part

    lazy = chunked(X).map_blocks(seen, meta=np.empty((0, 0)))
    for name in methods:
        expected, found = getattr(model, name)(X), getattr(model, name)(lazy)
        assert isinstance(found, da.Array)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert found.chunks[0] == lazy.chunks[0]
        assert not computed
        found = found.compute()
        assert found.dtype == expected.dtype
        if found.dtype.kind == "f":
            assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
        else:
            assert_array_equal(found, expected)
        assert computed
        computed.clear()


@pytest.mark.parametrize("cut", ["columns", "unknown", "memory"])
def test_offsets_come_in_the_chunks_of_x(cut):
    X, y = data()
    offset = np.linspace(-1, 1, N)
    model = SparsePoissonRegression(n_nonzero_coefs=2).fit(X, np.round(np.exp(y + offset)), offset=offset)
    expected = model.predict(X, offset)
    lazy, known = chunked(X), chunked(offset, 13)
    if cut == "columns":
        lazy = lazy.rechunk((40, 2))
    if cut == "memory":
        known = offset
    if cut == "unknown":
        every = da.ones(N, chunks=40) > 0
        lazy, known = lazy[every], chunked(offset)[every]
    assert_allclose(model.predict(lazy, known).compute(), expected, rtol=1e-12)
    with pytest.warns(UserWarning, match="was fitted with an offset; predict without one leaves it out"):
        without = model.predict(lazy)
    assert_allclose(without.compute(), expected / np.exp(offset), rtol=1e-12)


def test_wrong_offsets_are_refused():
    X, y = data()
    model = SparseLinearRegression(n_nonzero_coefs=2).fit(X, y)
    unknown = chunked(X)[da.ones(N, chunks=40) > 0]
    with pytest.raises(InvalidInputError, match=r"offset has shape \(5,\); X has 90 rows"):
        model.predict(chunked(X), np.zeros(5))
    with pytest.raises(InvalidInputError, match=r"lengths of the chunks of X are not known, so offset cannot be cut"):
        model.predict(unknown, np.zeros(N))


def test_chosen_columns_are_lazy():
    X, y = data()
    model = SparseLinearRegression(n_nonzero_coefs=2).fit(X, y)
    found = model.transform(chunked(X))
    assert isinstance(found, da.Array)
    assert_array_equal(found.compute(), X[:, [1, 4]])
    for call in (model.predict, model.transform):
        with pytest.raises(InvalidInputError, match=r"X has 5 "):
            call(chunked(X[:, :5]))


def test_of_a_data_frame_only_chosen_columns_are_read():
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    X, y = data()
    here = pd.DataFrame(X, columns=list("abcdef"))
    model = SparseLinearRegression(n_nonzero_coefs=2).fit(here, y)
    broken = here.assign(a=np.nan)  # is not chosen
    lazy = dd.from_pandas(broken, npartitions=3)
    found = model.predict(lazy)
    assert isinstance(found, da.Array)
    assert_allclose(found.compute(), model.predict(here), rtol=1e-12)
    pd.testing.assert_frame_equal(model.transform(lazy).compute(), here[["b", "e"]])
    with pytest.raises(InvalidInputError, match=r"X\[model.feature_names_in_\] has them"):
        model.predict(lazy[list("bacdef")])


def test_categories_are_predicted_part_by_part():
    pd = pytest.importorskip("pandas")
    X, y = data()
    here = pd.DataFrame(X, columns=list("abcdef")).assign(city=pd.Categorical(labelled(y)))
    model = SparseLinearRegression(n_nonzero_coefs=2).fit(here, y)
    with pytest.raises(CapabilityError, match=r"categorical columns, .*; predict them part by part"):
        model.predict(chunked(np.ones((N, 7))))
