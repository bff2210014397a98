"""Every way of storing a data matrix is the explicit dense matrix, only cheaper."""

import warnings
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from hardthresh.arrays import to_numpy
from hardthresh.constraints import Sparsity
from hardthresh.core import InvalidInputError
from hardthresh.core.meter import Meter
from hardthresh.designs import DenseDesign, SparseDesign, Standardized, as_design, centred_block, dense, standardize
from hardthresh.objectives import LinearModel
from hardthresh.solvers import minimize
from levels import draws, slow_beyond
from matrices import WEIGHTS, assert_is, like, strict, torch

N = 9


def matrix(d=5, dtype=float):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, d)) * (rng.random((N, d)) < 0.7) + 3.0 * (np.arange(d) == 1)
    return X.astype(dtype)


def diagonals(X):
    with warnings.catch_warnings():  # SciPy finds it unwise, and so it is
        warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
        return sp.dia_array(X)


STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "list": lambda X: X.tolist(),
    "csc_array": sp.csc_array,
    "csr_array": sp.csr_array,
    "coo_array": sp.coo_array,
    "lil_array": sp.lil_array,
    "dok_array": sp.dok_array,
    "dia_array": diagonals,
    "bsr_array": sp.bsr_array,
    "csr_matrix": sp.csr_matrix,
    "csc_matrix": sp.csc_matrix,
    "strict": strict,
    "torch": torch,
}
storages = pytest.mark.parametrize("storage", STORAGES)
widths = pytest.mark.parametrize("d", [1, 5, 100])


@storages
@widths
def test_every_storage_is_the_matrix(storage, d):
    X = matrix(d)
    assert_is(as_design(STORAGES[storage](X)), X)


@storages
@widths
def test_columns_and_rows(storage, d):
    X = matrix(d)
    design = as_design(STORAGES[storage](X))
    columns = np.arange(d)[:: max(1, d // 3)]
    rows = np.array([1, 2, 5, 7])
    assert_is(design.columns(like(design, columns)), X[:, columns])
    assert_is(design.rows(like(design, rows)), X[rows])
    assert_is(design.rows(slice(2, 6)), X[2:6])
    both = design.columns(like(design, columns)).rows(like(design, rows))
    assert_is(both, X[np.ix_(rows, columns)])
    nothing = design.columns(like(design, columns[:0]))
    assert nothing.shape == (N, 0)
    np.testing.assert_array_equal(to_numpy(nothing.predict(nothing.zeros(0))), np.zeros(N))


def explicit(X, weights, scale, intercept):
    """The standardised matrix, written out."""
    mean = weights @ X
    deviation = np.sqrt(weights @ (X - mean) ** 2)
    if not intercept:
        deviation = np.sqrt(weights @ X**2)
        mean = 0 * mean
    constant = np.ptp(X[weights > 0], axis=0) == 0 if intercept else deviation == 0
    centred = np.where(constant, 0.0, X - mean)
    if scale:
        centred = centred / np.where(constant, 1.0, deviation)
    return np.column_stack([centred, np.ones(len(X))]) if intercept else centred


@slow_beyond(11)
@storages
@widths
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_standardized_is_the_explicit_matrix(storage, d, scale, intercept):
    X = matrix(d)
    if d > 1:
        X[:, 1] = 7.5  # constant
        X[:, 0] = 0.0
    plain = as_design(STORAGES[storage](X))
    design = standardize(plain, like(plain, WEIGHTS), scale=scale, intercept=intercept)
    Z = explicit(X, WEIGHTS, scale, intercept)
    assert_is(design, Z, tol=1e-10)
    columns = np.unique([0, d // 2, d - 1, Z.shape[1] - 1])
    assert_is(design.columns(like(plain, columns)), Z[:, columns], tol=1e-10)
    assert_is(design.columns(like(plain, columns[:-1])), Z[:, columns[:-1]], tol=1e-10)
    rows = np.array([0, 3, 8])
    assert_is(design.rows(like(plain, rows)), Z[rows], tol=1e-10)


# --- gram ------------------------------------------------------------------------------------------------------------

MANY_WEIGHTS = (np.full(N, 0.25), WEIGHTS, np.zeros(N), np.eye(N)[3])


def assert_grams(design, X, weights=WEIGHTS):
    """A design's products with itself and with other columns of its own kind are those of the matrices."""
    d, w = X.shape[1], like(design, weights)
    weighted = X.T @ (weights[:, None] * X)
    gram = to_numpy(design.gram(w))
    np.testing.assert_allclose(gram, weighted, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(gram, gram.T, rtol=1e-10, atol=1e-12)
    some, last, none = np.unique([0, d // 2, d - 1]), np.array([d - 1]), np.arange(0)
    for columns, others in ((some, last), (last, some), (some[:-1], last), (some, none), (none, some)):
        one, other = design.columns(like(design, columns)), design.columns(like(design, others))
        crossed = to_numpy(one.gram(w, other))
        assert crossed.shape == (columns.size, others.size)
        np.testing.assert_allclose(crossed, weighted[np.ix_(columns, others)], rtol=1e-10, atol=1e-10)


@storages
@widths
def test_the_gram_matrix(storage, d):
    X = matrix(d)
    design = as_design(STORAGES[storage](X))
    for weights in MANY_WEIGHTS:
        assert_grams(design, X, weights)


@storages
@pytest.mark.parametrize("d", [1, 5])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_gram_matrix_of_standardized_columns(storage, d, scale, intercept):
    """The last column is that of ones where there is one; the weights need not be those of the means."""
    X = matrix(d)
    if d > 1:
        X[:, 1] = 7.5
    plain = as_design(STORAGES[storage](X))
    design = standardize(plain, like(plain, WEIGHTS), scale=scale, intercept=intercept)
    for weights in MANY_WEIGHTS[:2]:
        assert_grams(design, explicit(X, WEIGHTS, scale, intercept), weights)


@pytest.mark.parametrize("storage", ["C", "csc_array"])
@pytest.mark.parametrize("centred", [True, False])
def test_metered_designs_say_the_same_and_count(storage, centred):
    X = matrix()
    plain = as_design(STORAGES[storage](X))
    if centred:
        plain = standardize(plain, WEIGHTS, scale=True, intercept=True)
        X = explicit(X, WEIGHTS, True, True)
    meter = Meter()
    d = X.shape[1]
    design = plain.metered(meter)
    assert_grams(design, X)
    first, rest = design.columns(np.arange(2)), design.columns(np.arange(2, d))
    for count, cost in (
        (lambda: design.gram(WEIGHTS), 1.0),
        (lambda: first.gram(WEIGHTS), 2 / d),
        (lambda: first.gram(WEIGHTS, rest), 1.0),
        (lambda: design.pullback(np.ones(N)), 1.0),
        (lambda: design.pullback(np.ones((N, 3))), 3.0),
        (lambda: design.predict(np.ones(d)), 1.0),
        (lambda: design.predict(np.ones((d, 3))), 3.0),
    ):
        before = meter.passes
        count()
        np.testing.assert_allclose(meter.passes - before, cost)


@pytest.mark.parametrize("storage", ["C", "F"])
def test_the_gram_matrix_in_blocks_of_rows(storage, monkeypatch):
    """Where the weights differ a scaled copy is made, of so many rows at a time."""
    X = matrix()
    design = as_design(STORAGES[storage](X))
    for entries in (1, 11, 1000):
        monkeypatch.setattr(dense, "_GRAM_BLOCK", entries)
        assert_grams(design, X)


@storages
@pytest.mark.parametrize("equal", [True, False])
def test_the_gram_matrix_of_float32_is_float32(storage, equal):
    X = STORAGES[storage](matrix(dtype=np.float32))
    design = as_design(X if storage != "list" else np.asarray(X, np.float32))
    weights = like(design, np.float32(np.full(N, 1 / N) if equal else WEIGHTS))
    for each in (design, standardize(design, weights, scale=True, intercept=True)):
        part = each.columns(like(design, np.array([0, 2])))
        assert each.gram(weights).dtype == part.gram(weights, each).dtype == design.zeros(1).dtype


def test_the_gram_matrix_changes_nothing():
    for X in (matrix(), sp.csc_array(matrix())):
        weights = WEIGHTS.copy()
        weights.flags.writeable = False
        before = X.copy()
        design = as_design(X)
        design.gram(weights)
        design.columns(np.array([1])).gram(weights, design)
        assert np.array_equal(*(x.toarray() if sp.issparse(x) else x for x in (X, before)))


@pytest.mark.parametrize("storage", ["C", "csc_array"])
def test_standardized_columns_have_weighted_mean_0_and_variance_1(storage):
    design = standardize(as_design(STORAGES[storage](matrix())), WEIGHTS, scale=True, intercept=True)
    Z = design.dense()[:, :-1]
    np.testing.assert_allclose(WEIGHTS @ Z, 0, atol=1e-12)
    np.testing.assert_allclose(WEIGHTS @ Z**2, 1, rtol=1e-12)


@pytest.mark.parametrize("storage", ["C", "csc_array"])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1e8, -3.3e-9])
def test_a_constant_column_counts_as_zero(storage, value):
    """Also where rounding keeps its computed variance from being exactly zero."""
    X = np.random.default_rng(2).standard_normal((1000, 3))
    X[:, 1] = value
    weights = np.random.default_rng(3).random(1000)
    design = standardize(as_design(STORAGES[storage](X)), weights / weights.sum(), scale=True, intercept=True)
    gradient = design.pullback(np.random.default_rng(4).standard_normal(1000))
    assert gradient[1] == 0.0
    assert (gradient[[0, 2]] != 0).all()
    assert not design.dense()[:, 1].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", ["C", "F", "csc_array", "torch"])
def test_a_constant_column_has_no_deviation(storage, dtype):
    """Whatever the rounding of 1/n, of the sum of the weights, and of a sum of n numbers."""
    for n, value in product((3, 26, 257, 100_003), (-7.25, 0.1, 3e7)):
        X = np.random.default_rng(n).standard_normal((n, 2)).astype(dtype)
        X[:, 0] = value
        design = as_design(STORAGES[storage](X))
        for weights in (np.full(n, 1 / n), np.full(n, 2.5), np.random.default_rng(1).random(n)):
            weights = weights.astype(dtype)  # in float32 n weights of 1/n do not sum to 1
            mean, deviation = design.moments(like(design, weights))
            share = weights / weights.sum(dtype=float)
            assert deviation[0] == 0.0, (n, value)
            np.testing.assert_allclose(to_numpy(mean), share @ X.astype(float), rtol=1e-6, atol=1e-7)
            spread = np.sqrt(share @ (X[:, 1] - share @ X[:, 1]) ** 2)
            np.testing.assert_allclose(to_numpy(deviation)[1], spread, rtol=1e-5)


def test_a_float32_column_of_exact_small_differences_is_not_constant():
    """Of years or identifiers, for example: 13 units in the last place."""
    x = (np.arange(30) % 3 + 1e6).astype(np.float32)
    deviation = as_design(x[:, None]).moments(np.full(30, 1 / 30))[1]
    assert deviation[0] == pytest.approx(np.std(x.astype(float)), rel=1e-6)


@pytest.mark.parametrize("storage", ["C", "F", "csc_array"])
def test_a_float32_column_that_varies_in_its_last_bit_is_constant(storage):
    X = np.random.default_rng(0).standard_normal((50, 2)).astype(np.float32)
    X[:, 0] = np.float32(7.25)
    X[::2, 0] = np.nextafter(np.float32(7.25), np.float32(8))
    X[:, 1] = 2000 + np.arange(50) % 7  # years are not
    _, deviation = as_design(STORAGES[storage](X)).moments(np.full(50, 0.02, np.float32))
    assert deviation[0] == 0.0
    np.testing.assert_allclose(deviation[1], X[:, 1].std(dtype=float), rtol=1e-6)


@pytest.mark.parametrize("storage", ["C", "F", "csc_array", "csr_array"])
def test_a_column_whose_squares_overflow_is_refused(storage):
    X = np.random.default_rng(0).standard_normal((40, 6))
    X[:, 0] *= 1e160
    with pytest.raises(InvalidInputError, match="column overflows"):
        standardize(as_design(STORAGES[storage](X)), np.full(40, 1 / 40), scale=True, intercept=True)


@pytest.mark.parametrize("storage", ["C", "csc_array"])
def test_a_large_offset_does_not_swallow_the_variance(storage):
    x = np.random.default_rng(2).standard_normal(1000)
    design = as_design(STORAGES[storage](np.column_stack([x + 1e6, x])))
    _, deviation = design.moments(np.full(1000, 1e-3))
    np.testing.assert_allclose(deviation, np.std(x), rtol=1e-6)


@given(st.lists(st.integers(0, 3), min_size=6, max_size=6).filter(any), st.integers(0, 2**12 - 1))
@draws(40)
def test_sparse_moments_are_dense_moments(counts, mask):
    X = np.where(
        [[mask >> (2 * i + j) & 1 for j in range(2)] for i in range(6)], 1.5 + np.arange(12.0).reshape(6, 2), 0
    )
    weights = np.array(counts) / sum(counts)
    for one, other in zip(DenseDesign(X).moments(weights), SparseDesign(sp.csc_array(X)).moments(weights), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(one == 0, other == 0)


@storages
def test_float32_stays_float32(storage):
    X = STORAGES[storage](matrix(dtype=np.float32))
    design = as_design(X if storage != "list" else np.asarray(X, np.float32))
    weights = like(design, WEIGHTS.astype(np.float32))
    for each in (design, standardize(design, weights, scale=True, intercept=True)):
        dtype = each.zeros(1).dtype
        assert "float32" in str(dtype)
        assert each.predict(each.zeros(each.shape[1])).dtype == dtype
        assert each.pullback(each.zeros(N)).dtype == dtype
        assert each.dense().dtype == dtype
        assert all(moment.dtype == dtype for moment in each.moments(weights))


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool, np.float16])
@pytest.mark.parametrize("storage", ["C", "csr_array"])
def test_other_numbers_become_float64(storage, dtype):
    if storage != "C" and dtype is np.float16:
        return  # scipy has no sparse arrays of half precision
    X = np.array([[1, 0], [0, 1], [1, 1]], dtype=dtype)
    design = as_design(STORAGES[storage](X))
    assert design.zeros(1).dtype == np.float64
    np.testing.assert_array_equal(design.dense(), X.astype(float))


def test_dense_data_are_not_copied():
    for X in (matrix(), np.asfortranarray(matrix())):
        assert np.shares_memory(as_design(X).dense(), X)
    X = sp.csc_array(matrix())
    assert np.shares_memory(as_design(X)._X.data, X.data)


def test_data_are_not_changed():
    for X in (matrix(), sp.csr_array(matrix()), sp.coo_array(matrix())):
        before = X.copy()
        design = standardize(as_design(X), WEIGHTS, scale=True, intercept=True)
        design.pullback(np.ones(N))
        design.predict(np.ones(6))
        assert np.array_equal(*(x.toarray() if sp.issparse(x) else x for x in (X, before)))


def test_unsorted_and_duplicate_sparse_entries():
    X = sp.coo_array(([1.0, 2.0, 3.0, 4.0], ([0, 0, 2, 1], [1, 1, 0, 1])), shape=(3, 2))
    design = as_design(X)
    np.testing.assert_array_equal(design.dense(), X.toarray())
    mean, deviation = design.moments(np.full(3, 1 / 3))
    np.testing.assert_allclose(mean, X.toarray().mean(axis=0))
    np.testing.assert_allclose(deviation, X.toarray().std(axis=0))
    raw = sp.csc_array((np.array([1.0, 2.0, 3.0]), np.array([0, 0, 2]), np.array([0, 2, 3])), shape=(3, 2))
    mean, deviation = as_design(raw).moments(np.full(3, 1 / 3))
    np.testing.assert_allclose(mean, raw.toarray().mean(axis=0))
    np.testing.assert_allclose(deviation, raw.toarray().std(axis=0))
    assert raw.data.size == 3  # ours, not the caller's, was put in order


def test_a_sparse_design_is_never_made_dense(monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 4000), density=0.01, random_state=rng, format="csr", data_sampler=rng.standard_normal)
    y = X[:, [7]].toarray().ravel() * 3.0
    largest = []
    for kind in (sp.csc_array, sp.csr_array, sp.coo_array):
        dense = kind.toarray

        def watched(self, *arguments, dense=dense, **settings):
            largest.append(self.shape[0] * self.shape[1])
            return dense(self, *arguments, **settings)

        monkeypatch.setattr(kind, "toarray", watched)
        monkeypatch.setattr(kind, "todense", watched)
    design = standardize(as_design(X), np.full(300, 1 / 300), scale=True, intercept=True)
    assert not largest
    for loss, target in (("squared", y), ("logistic", (y > 0).astype(float))):
        minimize(LinearModel(design, target, loss=loss), Sparsity(5, free=(4000,)), max_iter=10)
        minimize(LinearModel(as_design(X), target, loss=loss), Sparsity(5), max_iter=10)
    assert max(largest, default=0) <= 300 * 600  # Gram matrices of working sets


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), "matrix"),
        (np.ones((2, 2, 2)), "matrix"),
        (5.0, "matrix"),
        (np.array([[1.0, np.nan]]), "NaN or infinity"),
        (np.array([[1.0, -np.inf]]), "NaN or infinity"),
        (np.array([["a", "b"]]), "numeric"),
        (np.array([[1, None]], dtype=object), "numeric"),
        (np.array([[1j, 2.0]]), "numeric|real"),
        (sp.csr_array(np.array([[1.0, np.nan]])), "NaN or infinity"),
        (sp.csr_array(np.array([[1j, 0.0]])), "numeric|real"),
        (sp.dok_array(np.array([[1j, 0.0]])), "numeric|real"),
        (sp.coo_array(np.ones(3)), "matrix"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_arguments_other_than_numeric_matrices_are_refused(X, message):
    with pytest.raises(InvalidInputError, match=message):
        as_design(X)


@pytest.mark.parametrize("storage", ["C", "F", "strided", "csc_array"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("in_pieces", [True, False])
def test_one_entry_that_is_not_finite_is_noticed(storage, dtype, bad, in_pieces, monkeypatch):
    if in_pieces:
        monkeypatch.setattr("hardthresh.arrays.pieces._PIECE", 1e-9)
    for i, j in product((0, 24, 49), (0, 20, 39)):
        X = np.zeros((50, 40), dtype=dtype)
        X[i, j] = bad
        with pytest.raises(InvalidInputError, match="X contains NaN or infinity"):
            as_design(STORAGES[storage](X))


@pytest.mark.parametrize("storage", ["C", "F", "csc_array"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_finite_entries_whose_squares_overflow_are_taken(storage, dtype):
    X = np.full((50, 40), 0.9 * np.finfo(dtype).max, dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert as_design(STORAGES[storage](X)).shape == (50, 40)


def test_a_design_is_taken_as_it_is():
    design = as_design(matrix())
    assert as_design(design) is design
    assert isinstance(standardize(design, WEIGHTS, scale=True, intercept=False), Standardized)


# --- parts that are not copied ---------------------------------------------------------------------------------------

PARTS = pytest.mark.parametrize("order", ["C", "F"])
SHARES = pytest.mark.parametrize("share", [1, 1000], ids=["copied for products", "never copied"])


@pytest.fixture
def everything_is_large(monkeypatch):
    """Let no part of a matrix be copied at once, and blocks have two or three rows."""
    monkeypatch.setattr(dense, "_LARGEST_COPY", 12)


@PARTS
@SHARES
@pytest.mark.parametrize(
    "rows", [[0, 1, 2, 3, 5, 8], [3, 8], [8, 0, 0, 3, 5, 5], list(range(2, 8))], ids=["many", "few", "twice", "slice"]
)
@pytest.mark.usefixtures("everything_is_large")
def test_rows_and_columns_that_are_not_copied_are_the_matrix(order, share, rows, monkeypatch):
    monkeypatch.setattr(dense, "_LARGEST_SHARE", share)
    X, rows, columns = np.asarray(matrix(7), order=order), np.array(rows), np.array([0, 2, 3, 4, 5])
    design = as_design(X)
    of_rows, of_columns = design.rows(rows), design.columns(columns)
    assert of_rows.lazy is (rows.size > 1 and not np.array_equal(rows, np.arange(2, 8)))
    assert of_columns.lazy
    assert_is(of_rows, X[rows])
    assert_is(of_rows.rows(np.array([0, 1])), X[rows[:2]])
    assert_grams(of_columns, X[:, columns])  # before and after a copy may be made
    assert_is(of_columns, X[:, columns])
    assert_grams(of_columns, X[:, columns])
    assert_is(of_columns.columns(np.array([1, 3])), X[:, columns[[1, 3]]])
    for both in (of_rows.columns(columns), of_columns.rows(rows)):
        assert_is(both, X[np.ix_(rows, columns)])
        assert_grams(both, X[np.ix_(rows, columns)], WEIGHTS[: rows.size])
    Z = standardize(design, WEIGHTS, scale=True, intercept=True)
    assert_is(Z.columns(np.arange(2, 8)), Z.dense()[:, 2:], tol=1e-10)
    assert_grams(Z.rows(rows), Z.dense()[rows], WEIGHTS[: rows.size])


@PARTS
@pytest.mark.usefixtures("everything_is_large")
def test_the_gram_matrix_of_columns_that_are_copied_with_others_that_are_not(order):
    X = np.asarray(matrix(7), order=order)
    few, many = as_design(X[:, :1]), as_design(X).columns(np.arange(1, 7))
    expected = X[:, :1].T @ (WEIGHTS[:, None] * X[:, 1:])
    np.testing.assert_allclose(few.gram(WEIGHTS, many), expected, rtol=1e-12)
    np.testing.assert_allclose(many.gram(WEIGHTS, few), expected.T, rtol=1e-12)


@pytest.mark.usefixtures("everything_is_large")
def test_rows_that_are_left_out_may_hold_anything():
    X = matrix(5)
    X[[1, 4]] = -np.finfo(float).max  # as some programs write what is missing
    rows = np.array([0, 2, 3, 5, 6, 7, 8])
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        assert_is(as_design(X).rows(rows), X[rows])


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("weights", [np.full(9, 1 / 9), np.arange(9.0)])
@np.errstate(over="ignore", invalid="ignore")
def test_squares_of_sparse_entries_may_overflow_if_those_of_centred_ones_do_not(scale, weights):
    """A constant column, and one far from zero: what is computed is that of dense columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9, 5)) * [1, 1, 1e152, 1, 1] + [0, 0, 1e156, 0, 0]
    X[:, 3] = 1e160
    dense, sparse = (
        standardize(as_design(A), np.full(9, 1 / 9), scale=scale, intercept=True) for A in (X, sp.csc_array(X))
    )
    size = np.sqrt(np.diag(dense.columns(np.arange(6)).gram(np.full(9, 1 / 9))))
    size[3] = 1.0
    some, others = np.array([0, 2, 3, 5]), np.array([1, 4])
    left, right = size[some][:, None], size[others]
    assert_allclose(
        sparse.columns(some).gram(weights) / left / left.T, dense.columns(some).gram(weights) / left / left.T, atol=1e-7
    )
    assert_allclose(
        sparse.columns(some).gram(weights, sparse.columns(others)) / left / right,
        dense.columns(some).gram(weights, dense.columns(others)) / left / right,
        atol=1e-7,
    )
    assert_allclose(sparse.pullback_squares(weights) / size**2, dense.pullback_squares(weights) / size**2, atol=1e-7)


@pytest.mark.parametrize("intercept", [False, True])
def test_known_squares_follow_the_sum_of_the_weights(intercept):
    """Those of the weights that a design was standardised by are not computed again, for any multiple of them."""
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(20))
    design = standardize(as_design(rng.standard_normal((20, 4))), weights, scale=False, intercept=intercept)
    for times in (1.0, 0.25, 3.0):
        expected = (times * weights) @ np.asarray(design.dense()) ** 2
        np.testing.assert_allclose(design.pullback_squares(times * weights), expected, rtol=1e-12)


def slow_part_moments(X, weights, y, parts, centred):
    """The sums of the definition, one part after another, in double precision."""
    found = []
    for rows in parts:
        Z, s, target = X[rows].astype(float), weights[rows], y[rows]
        mean = s @ Z / s.sum() if centred else np.zeros(X.shape[1])
        gaps = Z - mean
        found.append((mean, s @ gaps**2, (s * (target - centred * (s @ target) / s.sum())) @ gaps))
    return [np.stack(each) for each in zip(*found, strict=True)]


PARTS = {
    "slices": [np.arange(0, 4), np.arange(4, 9)],
    "mixed": [np.array([1, 8, 3]), np.array([2, 4, 5, 7])],
    "twice": [np.array([1, 1, 4, 2, 8]), np.arange(9)],
}


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("standardized", ["as it is", "scaled", "scaled, intercept"])
@storages
def test_moments_of_parts(storage, standardized, centred, parts):
    X, y = matrix(), np.random.default_rng(1).standard_normal(N) + 2.0
    design = as_design(STORAGES[storage](X))
    if standardized != "as it is":
        design = standardize(design, like(design, WEIGHTS), scale=True, intercept=standardized != "scaled")
        X = to_numpy(design.dense())
    rows = [like(design, part) for part in PARTS[parts]]
    found = design.part_moments(like(design, WEIGHTS), like(design, y), rows, centred=centred)
    for one, other in zip(found, slow_part_moments(X, WEIGHTS, y, PARTS[parts], centred), strict=True):
        assert_allclose(to_numpy(one), other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [16, 1 << 18])
def test_moments_of_parts_keep_small_variances_of_large_columns(order, dtype, block, monkeypatch):
    """In blocks of any size: nothing that cancels is subtracted, nor the rounding of a mean kept."""
    monkeypatch.setattr(dense, "_BLOCK", block)
    rng = np.random.default_rng(2)
    level = {np.float32: 1e4, np.float64: 1e9}[dtype]
    X = np.array(level + rng.integers(-3, 4, (300, 70)), dtype=dtype, order=order)
    X[:, 3] = X[0, 3]
    y, weights = rng.standard_normal(300).astype(dtype), rng.uniform(0.5, 2.0, 300).astype(dtype)
    parts = [np.arange(100), np.sort(rng.permutation(np.arange(100, 300))[:150])]
    found = DenseDesign(X).part_moments(weights, y, parts, centred=True)
    shifted = slow_part_moments(X.astype(float) - level, weights.astype(float), y.astype(float), parts, True)
    assert_allclose(found[0], shifted[0] + level, rtol=1e-15)
    assert_allclose(found[1], shifted[1], rtol=1e-9, atol=1e-9)
    assert_allclose(found[2], shifted[2], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("order", ["C", "F"])
def test_moments_of_parts_are_accurate_at_any_distance_from_zero(order):
    """Those of columns near zero are not centred; a column may be near in one part, and far in the other."""
    rng = np.random.default_rng(4)
    Z, y, weights = rng.standard_normal((200, 8)), rng.standard_normal(200) + 3.0, rng.uniform(0.5, 2.0, 200)
    level = np.array([0.0, 1.0, 9.0, 11.0, 100.0, 1e6, 0.0, 0.0])
    Z[:, 6], Z[:80, 7] = 0.0, 0.0
    X = np.array(Z + level, order=order)
    X[100:, 4] -= 100.0
    parts = [np.arange(80), np.arange(100, 200)]
    mean, squares, products = DenseDesign(X).part_moments(weights, y, parts, centred=True)
    exact = slow_part_moments(Z, weights, y, parts, True)
    shift = np.stack([level, np.where(np.arange(8) == 4, 0.0, level)])
    assert_allclose(mean, exact[0] + shift, rtol=1e-13)
    rounding = 1e-13 * np.maximum(1.0, 100.0 * shift)  # of the entries once the level is added, and more
    for found, expected in ((squares, exact[1]), (products, exact[2])):
        assert np.all(np.abs(found - expected) <= rounding * 200)
    assert_allclose(squares[0, 6:], 0.0, atol=0)


@pytest.mark.parametrize("storage", [np.asarray, sp.csc_array])
@pytest.mark.parametrize("factor", [2.0**80, 2.0**-80])
def test_squares_and_products_of_standardised_columns_stay_in_single_precision(storage, factor):
    """Whatever the scale of a column, whose squares alone leave its range."""
    X = matrix().astype(np.float32)
    X[:, 2] *= np.float32(factor)
    r = np.random.default_rng(1).uniform(0.1, 1.0, N).astype(np.float32)
    design = standardize(
        as_design(storage(X)), (WEIGHTS / WEIGHTS.sum()).astype(np.float32), scale=True, intercept=True
    )
    Z = design.dense().astype(float)
    center = np.linspace(0.0, 0.5, Z.shape[1]).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for gap in (None, center):
            found = design.pullback_squares(r, gap)
            assert found.dtype == np.float32
            assert_allclose(found, r @ (Z - (0.0 if gap is None else gap)) ** 2, rtol=1e-5)
        assert_allclose(design.gram(r), Z.T @ (r[:, None] * Z), rtol=1e-5, atol=2e-5)
        moments = design.part_moments(r, r, [np.arange(4), np.arange(4, 9)], centred=True)
    for one, other in zip(moments, slow_part_moments(Z, r, r, [np.arange(4), np.arange(4, 9)], True), strict=True):
        assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_moments_of_parts_count_three_passes_over_their_rows():
    meter = Meter()
    design = as_design(matrix()).metered(meter)
    design.part_moments(WEIGHTS, WEIGHTS, [np.arange(3), np.arange(3, 9)], centred=True)
    assert meter.passes == 3.0


@pytest.mark.parametrize("columns", [[0, 2, 3], [1], [], [2, 5]])
@pytest.mark.parametrize("temporary", [1, 1 << 15])
@storages
def test_a_block_is_a_copy_of_some_rows_and_columns(storage, temporary, columns, monkeypatch):
    monkeypatch.setattr(dense, "_TEMPORARY", temporary)
    design = as_design(STORAGES[storage](matrix()))
    whole = standardize(design, like(design, WEIGHTS), scale=True, intercept=True)
    rows, center = np.array([7, 1, 1, 4]), np.arange(1.0, len(columns) + 1)
    where, some = like(design, rows), like(design, np.array(columns, dtype=int))
    X = to_numpy(whole.dense())
    expected = X[np.ix_(rows, columns)]
    assert_allclose(to_numpy(whole.block(where, some).dense()), expected, rtol=0, atol=1e-14)
    less = centred_block(whole, where, some, like(design, center))
    assert_allclose(to_numpy(less.dense()), expected - center, rtol=0, atol=1e-14)
    weights = like(design, np.array([1.0, 2.0, 0.5, 0.0]))
    gram = (expected - center).T * [1.0, 2.0, 0.5, 0.0] @ (expected - center)
    assert_allclose(to_numpy(less.gram(weights)), gram, rtol=0, atol=1e-12)
    assert_allclose(to_numpy(whole.dense()), X, rtol=0, atol=0)  # nothing was written into it


@pytest.mark.parametrize("block", [64, 1 << 18])
@pytest.mark.parametrize("intercept", [True, False])
@storages
def test_products_for_screening_are_products_up_to_single_precision(storage, intercept, block, monkeypatch):
    monkeypatch.setattr(dense, "_SINGLE", 0)
    monkeypatch.setattr(dense, "_BLOCK", block)
    X = matrix(100)
    X[:, 1] -= 3.0  # else its mean is too far from zero
    design = as_design(STORAGES[storage](X))
    design = standardize(design, like(design, WEIGHTS), scale=True, intercept=intercept)
    R = np.random.default_rng(3).standard_normal((N, 6)) * 10.0 ** np.array([0, 3, -3, 60, -60, 0])
    R[:, 5] = 0.0
    found, exact = (to_numpy(f(like(design, R))) for f in (design.screening_pullback, design.pullback))
    norms = np.linalg.norm(to_numpy(design.dense()), axis=0)[:, None] * np.linalg.norm(R, axis=0)
    assert np.all(np.abs(found - exact) <= 1e-6 * norms)
    rounded = isinstance(found, np.ndarray) and storage in ("C", "F", "strided", "list")
    assert np.any(found != exact) == rounded  # so that the tolerance is tested


@pytest.mark.parametrize("ruin", [lambda X: X + 1e5, lambda X: X * 1e-40, lambda X: X * 1e60, lambda X: X * 1e-100])
def test_products_for_screening_are_exact_where_single_precision_is_not_enough(ruin, monkeypatch):
    monkeypatch.setattr(dense, "_SINGLE", 0)
    X = np.random.default_rng(4).standard_normal((40, 6))
    X[:, 2] = ruin(X[:, 2])
    design = standardize(DenseDesign(X), np.full(40, 1 / 40), scale=True, intercept=True)
    R = np.random.default_rng(5).standard_normal((40, 4))
    assert_allclose(design.screening_pullback(R), design.pullback(R), rtol=0, atol=0)


def test_products_for_screening_of_columns_that_overflow_single_precision_are_exact(monkeypatch):
    monkeypatch.setattr(dense, "_SINGLE", 0)
    X, R = np.random.default_rng(6).standard_normal((2, 30, 5))
    X[3, 1] = 1e200
    assert_allclose(DenseDesign(X).screening_pullback(R), DenseDesign(X).pullback(R), rtol=0, atol=0)
