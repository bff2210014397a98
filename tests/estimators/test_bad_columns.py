"""Errors about a column of a data frame name it, for every estimator; and so do those about columns of an array."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

import hardthresh.estimators
import hardthresh.limited.estimators
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.registry import registered

pandas = pytest.importorskip("pandas")

CLASSES = [entry.cls for entry in registered("estimator").values()]
every = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


def table(city):
    X = np.random.default_rng(0).standard_normal((6, 2))
    return pandas.DataFrame({"age": X[:, 0], "city": pandas.Series(city, dtype=None), "size": X[:, 1]})


def fit(cls, X, **settings):
    return cls(**settings).fit(X, np.tile([1.0, 2.0], 3))


@every
def test_a_column_of_text_is_named(cls):
    X = table(["1", "2", "Rome", "4", "5", "6"])
    encodes = "categorical_features" in cls().get_params()
    advice = "name it in categorical_features" if encodes else "encode it as numbers"
    with pytest.raises(InvalidInputError, match=rf"column 'city' holds text, such as '1'; (?!convert).*{advice}"):
        fit(cls, X)


@every
def test_a_column_of_numbers_as_text_is_to_be_converted(cls):
    X = table(["1", "2.5", None, "-4e3", "5", "6"])
    with pytest.raises(InvalidInputError, match=r"column 'city' holds text, such as '1'; convert it to float, or if"):
        fit(cls, X)


@every
def test_a_column_of_dates_is_named(cls):
    X = table(pandas.date_range("2024-01-01", periods=6))
    with pytest.raises(InvalidInputError, match=r"column 'city' is of type datetime64.*; .* days since the first"):
        fit(cls, X)


@every
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_a_column_with_infinity_is_named(cls, convert):
    X = table([1.0, np.inf, 3.0, 4.0, 5.0, 6.0])
    X = X if convert is np.asarray else convert(X.to_numpy())
    model = cls(missing="unstored") if sp.issparse(X) and "missing" in cls().get_params() else cls()
    if sp.issparse(X) and "Graph" in cls.__name__:
        pytest.skip("takes no sparse tables")
    name = r"column 1 \(counted from 0\)" if sp.issparse(X) else "column 'city'"
    with pytest.raises(InvalidInputError, match=f"{name}: Input X contains infinity"):
        model.fit(X, np.tile([1.0, 2.0], 3))


def test_a_missing_entry_is_named_where_none_may_be():
    with pytest.raises(InvalidInputError, match=r"X contains NaN: 1 missing value in column 'city'; fill them in with"):
        fit(hardthresh.SparsePoissonRegression, table([1.0, np.nan, 3.0, 4.0, 5.0, 6.0]))


@pytest.mark.parametrize("cls", [hardthresh.SparsePoissonRegression, hardthresh.LimitedAttributeRegression])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_column_of_text_is_named_by_predict(cls):
    model = fit(cls, table(np.arange(6.0)), n_nonzero_coefs=1)
    with pytest.raises(InvalidInputError, match="column 'city' holds text, such as 'Rome'"):
        model.predict(table(["Rome"] * 6))


def test_other_names_are_not_blamed_on_a_column():
    model = fit(hardthresh.SparsePoissonRegression, table(np.arange(6.0)), n_nonzero_coefs=1)
    with pytest.raises(ValueError, match=r"^The feature names should match"):
        model.predict(table(["Rome"] * 6).rename(columns={"age": "years"}))


@pytest.mark.parametrize("change", ["order", "another column", "both"])
def test_columns_in_another_order_are_told_how_to_be_sorted(change):
    X = table(np.arange(6.0))
    model = fit(hardthresh.SparsePoissonRegression, X, n_nonzero_coefs=1)
    other = X.iloc[:, ::-1] if change != "another column" else X
    other = other.assign(weight=1.0) if change != "order" else other
    with pytest.raises(ValueError, match=r"^The feature names should match[^X]*X\[model.feature_names_in_\] has them"):
        model.predict(other)
    np.testing.assert_array_equal(model.predict(other[model.feature_names_in_]), model.predict(X))
    with pytest.raises(ValueError, match=r"yet now missing:\n- age\nX does not have age: add or rename"):
        model.predict(X.drop(columns="age"))


@every
def test_a_frame_without_columns_is_refused(cls):
    with pytest.raises(InvalidInputError, match=r"X is a data frame without columns \(6 rows\)"):
        fit(cls, table(np.arange(6.0))[[]])


@every
def test_an_array_without_columns_is_refused(cls):
    with pytest.raises(InvalidInputError, match=r"^X has no columns; give one or more\. .* \(shape=\(6, 0\)\)"):
        fit(cls, np.empty((6, 0)))


def test_lists_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match="inhomogeneous"):
        hardthresh.SparsePoissonRegression().fit([[1.0, 2.0], [1.0]], [1.0, 2.0])


@every
def test_complex_numbers_are_refused_in_one_line(cls):
    with pytest.raises(InvalidInputError, match=r"^Complex data not supported: X has dtype complex128; .* X\.real$"):
        fit(cls, np.ones((6, 2)) + 1j)


UNREADABLE = {
    "X is a tensor that requires gradients; give X.detach()": lambda X: X.requires_grad_(),
    "X has dtype torch.bfloat16, which NumPy lacks; give X.to(torch.float32)": lambda X: X.bfloat16(),
    "X is a tensor of the layout torch.sparse_coo; give X.to_dense(), or a": lambda X: X.to_sparse(),
    "X is a tensor on the device meta, which holds no numbers": lambda X: X.to("meta"),
}


@pytest.mark.parametrize("message", UNREADABLE)
@every
def test_tensors_that_cannot_be_read_say_what_to_do(cls, message):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        fit(cls, UNREADABLE[message](torch.ones(6, 2)))


def test_tensors_on_a_device_say_how_to_fit_there():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from torch._subclasses.fake_tensor import FakeTensorMode  # devices that are not here

    with FakeTensorMode():
        X = torch.empty(6, 2, device="cuda")
    message = r"device cuda:0; .*SCIPY_ARRAY_API=1 before Python starts .*array_api_dispatch=True.* give X\.cpu\(\)$"
    with pytest.raises(InvalidInputError, match=message):
        hardthresh.SparseLinearRegression().fit(X, np.ones(6))


def test_targets_weights_and_new_rows_that_cannot_be_read_are_named():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X = torch.tensor(np.random.default_rng(0).standard_normal((20, 3)))
    y = X[:, 1].clone()
    model = hardthresh.SparseLinearRegression(n_nonzero_coefs=1).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"^y is a tensor that requires gradients; give y\.detach\(\)$"):
        model.fit(X, y.clone().requires_grad_())
    with pytest.raises(InvalidInputError, match=r"^sample_weight has dtype torch\.bfloat16, which NumPy lacks"):
        model.fit(X, y, sample_weight=torch.ones(20, dtype=torch.bfloat16))
    with pytest.raises(InvalidInputError, match=r"^X has dtype torch\.bfloat16"):
        model.predict(X.bfloat16())


@pytest.mark.parametrize("where", ["fit", "predict"])
def test_missing_and_infinite_values_of_a_tensor_are_located(where):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X = torch.tensor(np.random.default_rng(0).standard_normal((20, 3)))
    model = hardthresh.SparseLinearRegression(n_nonzero_coefs=1).fit(X, X[:, 1])
    use = model.predict if where == "predict" else lambda rows: model.fit(rows, X[:, 1])
    for value, message in (
        (np.nan, "1 missing value in column 2 (counted from 0); fill"),
        (np.inf, "column 2 (counted"),
    ):
        wrong = X.clone()
        wrong[3, 2] = value
        with pytest.raises(InvalidInputError, match=re.escape(message)):
            use(wrong)
