"""Indexing, small linear algebra and namespaces, the same in three array libraries."""

from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.arrays import (
    all_finite,
    as_floating,
    column_squares,
    conjugate_gradients,
    gather,
    gather_columns,
    inverse_factor,
    inverse_semidefinite,
    linalg,
    mask_of,
    namespace,
    scatter,
    solve_semidefinite,
    symmetric_part,
    times_transpose,
    to_numpy,
    union,
    where_true,
)
from hardthresh.core import InvalidInputError
from levels import draws

LIBRARIES = ("numpy", "array_api_strict", "torch")
libraries = pytest.mark.parametrize("library", LIBRARIES)


def convert(x, library):
    if library == "torch":
        pytest.importorskip("torch", reason="torch is not installed")
    return import_module(library).asarray(np.array(x))


index_sets = st.sets(st.integers(0, 9)).map(lambda chosen: np.array(sorted(chosen), dtype=np.int64))


@libraries
@given(index_sets, index_sets)
@draws(40)
def test_index_sets(library, a, b):
    v = np.linspace(-2.0, 3.0, 10)
    ours, theirs = convert(v, library), convert(a, library)
    np.testing.assert_array_equal(to_numpy(gather(ours, theirs)), v[a])
    mask = np.isin(np.arange(10), a)
    np.testing.assert_array_equal(to_numpy(mask_of(theirs, 10)), mask)
    np.testing.assert_array_equal(to_numpy(where_true(mask_of(theirs, 10))), a)
    np.testing.assert_array_equal(to_numpy(scatter(gather(ours, theirs), theirs, 10)), np.where(mask, v, 0.0))
    np.testing.assert_array_equal(to_numpy(union(theirs, convert(b, library))), np.union1d(a, b))
    X = np.arange(30.0).reshape(3, 10)
    np.testing.assert_array_equal(to_numpy(gather_columns(convert(X, library), theirs)), X[:, a])
    rows = scatter(gather(convert(X.T, library), theirs), theirs, 10)
    np.testing.assert_array_equal(to_numpy(rows), np.where(mask[:, None], X.T, 0.0))


def test_gathered_columns_keep_their_order():
    X = np.arange(30.0).reshape(3, 10)
    some = np.array([1, 4, 7])
    assert gather_columns(np.asfortranarray(X), some).flags.f_contiguous
    for stored in (X, np.asfortranarray(X)):
        columns = gather_columns(stored, some)
        np.testing.assert_array_equal(columns, X[:, some])
        assert not np.shares_memory(columns, stored)


@libraries
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtypes_are_kept(library, dtype):
    v = convert(np.arange(4, dtype=dtype), library)
    some = convert(np.array([1, 3]), library)
    assert gather(v, some).dtype == v.dtype
    assert scatter(gather(v, some), some, 4).dtype == v.dtype
    A = convert(np.eye(4, dtype=dtype), library)
    assert solve_semidefinite(A, v).dtype == v.dtype
    assert conjugate_gradients(lambda x: A @ x, v, 3).dtype == v.dtype


def spd(n, rank, seed=0):
    root = np.random.default_rng(seed).standard_normal((n, rank))
    return root @ root.T


# --- conjugate gradients ---------------------------------------------------------------------------------------------


@libraries
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_symmetric_part_may_have_something_added_to_its_diagonal(library, order):
    A = np.asarray(np.random.default_rng(0).standard_normal((5, 5)), order=order)
    before, diagonal = A.copy(), np.arange(5.0)
    given = A if library == "numpy" else convert(A, library)
    for extra in (None, diagonal):
        expected = (A + A.T) / 2 + np.diag(np.zeros(5) if extra is None else extra)
        even = symmetric_part(given) if extra is None else symmetric_part(given, convert(extra, library))
        np.testing.assert_array_equal(to_numpy(even), expected)
    np.testing.assert_array_equal(A, before)


@libraries
@pytest.mark.parametrize("n", [3, 30])
def test_a_matrix_that_is_mostly_zeros_is_multiplied_as_a_sparse_one(library, n, monkeypatch):
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((n, 12)), 3.0 * np.eye(12)
    B[2, 7] = B[7, 2] = -1.0
    A, B = convert(A, library), convert(B, library)
    dense = times_transpose(A, B)
    monkeypatch.setattr(linalg, "_LARGE", 1)
    monkeypatch.setattr(linalg, "_SPARSE", 2)
    sparse = times_transpose(A, B)
    assert library != "numpy" or (sparse.flags.f_contiguous and not dense.flags.f_contiguous)  # another way was taken
    np.testing.assert_allclose(to_numpy(sparse), to_numpy(dense), rtol=1e-13)
    np.testing.assert_allclose(to_numpy(dense), to_numpy(A) @ to_numpy(B).T, rtol=1e-13)


@libraries
@pytest.mark.parametrize("n", [1, 2, 7])
def test_conjugate_gradients_solve_in_n_steps(library, n):
    A, b = spd(n, n + 3), np.arange(1.0, n + 1)
    ours = convert(A, library)
    x = conjugate_gradients(lambda v: ours @ v, convert(b, library), n + 2)
    np.testing.assert_allclose(to_numpy(x), np.linalg.solve(A, b), rtol=1e-6)


def test_conjugate_gradients_stop_early():
    calls = []
    A, b = np.diag([1.0, 2.0, 3.0, 4.0]), np.ones(4)

    def apply(v):
        calls.append(1)
        return A @ v

    assert not conjugate_gradients(apply, b, 0).any()
    assert not conjugate_gradients(apply, 0 * b, 9).any()
    assert not calls
    rough = conjugate_gradients(apply, b, 9, tol=0.3)
    assert 0 < len(calls) < 4
    assert np.linalg.norm(b - A @ rough) <= 0.3 * np.linalg.norm(b)


def test_every_early_stop_is_a_descent_direction():
    A, b = spd(6, 6), np.random.default_rng(1).standard_normal(6)
    for iterations in range(1, 7):
        assert b @ conjugate_gradients(lambda v: A @ v, b, iterations) > 0


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_conjugate_gradients_with_a_singular_matrix(rank):
    A = spd(5, rank, seed=2)
    b = A @ np.arange(1.0, 6.0)
    x = conjugate_gradients(lambda v: A @ v, b, 50, tol=1e-12)
    assert np.isfinite(x).all()
    np.testing.assert_allclose(A @ x, b, atol=1e-8 * max(1.0, np.abs(b).max()))
    wild = conjugate_gradients(lambda v: A @ v, np.ones(5), 50)
    assert np.isfinite(wild).all()


def test_conjugate_gradients_do_not_divide_by_the_rounding_of_a_product():
    """For copies of a column the Hessian X'X has a null space, in which products are rounding: X'(Xv) is not zero."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        X = rng.standard_normal((50, 1)) * [1.0, 1.0, 1.0]
        X[:, 2] *= 3.0
        b = 1e-16 * np.array([0.8, -1.1, 0.1])
        b -= (X.T @ (X @ b)) / np.sum(X * X)  # in the null space, but for rounding
        x = conjugate_gradients(lambda v, X=X: X.T @ (X @ v), b, 10)
        assert np.abs(x).max() < 1e-10


def test_conjugate_gradients_go_on_where_the_condition_is_bad():
    A, b = np.diag(10.0 ** np.arange(0, -13, -2)), np.ones(7)
    np.testing.assert_allclose(A @ conjugate_gradients(lambda v: A @ v, b, 500), b, atol=1e-3)
    large = np.float32(1e15) * np.diag([1.0, 3.0]).astype("f4")
    np.testing.assert_allclose(conjugate_gradients(lambda v: large @ v, large @ b[:2].astype("f4"), 5), 1.0, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(5))
def test_conjugate_gradients_stop_at_the_accuracy_of_the_precision(dtype, seed):
    """A tolerance below rounding is never met: in a null space rounding grows from one iteration to the next."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 100)).astype(dtype)
    b = X.T @ rng.standard_normal(60).astype(dtype)
    products = 0

    def apply(v):
        nonlocal products
        products += 1
        return X.T @ (X @ v)

    x = conjugate_gradients(apply, b, 2000, 1e-30)
    assert products < 300
    assert np.linalg.norm(b - X.T @ (X @ x)) <= 1e3 * np.finfo(dtype).eps * np.linalg.norm(b)


def test_an_inverse_factor_leaves_dependent_columns_out():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10, 6))
    X[:, 3], X[:, 5] = X[:, 0] - X[:, 1], 0.0
    X /= np.maximum(np.sqrt(np.sum(X * X, axis=0)), 1e-300)
    factor = inverse_factor(X.T @ X, 2e-16)
    assert factor.shape == (6, 4)
    np.testing.assert_allclose(factor.T @ (X.T @ X) @ factor, np.eye(4), atol=1e-12)
    assert np.count_nonzero(factor.any(axis=1)) == 4
    assert not factor[5].any()
    np.testing.assert_allclose(X @ factor @ (factor.T @ X.T @ X), X, atol=1e-12)  # the whole span
    assert inverse_factor(np.zeros((0, 0)), 2e-16).shape == (0, 0)
    assert inverse_factor(np.zeros((2, 2)), 2e-16).shape == (2, 0)


def test_conjugate_gradients_of_a_matrix():
    """Points need not be vectors."""
    b = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(conjugate_gradients(lambda v: 2.0 * v, b, 3), b / 2)


# --- semidefinite systems --------------------------------------------------------------------------------------------


@libraries
@pytest.mark.parametrize("n", [1, 2, 7])
def test_solve_semidefinite_solves(library, n):
    A, b = spd(n, n + 3), np.arange(1.0, n + 1)
    x = solve_semidefinite(convert(A, library), convert(b, library))
    np.testing.assert_allclose(to_numpy(x), np.linalg.solve(A, b), rtol=1e-8)


@libraries
def test_duplicate_columns_share_their_weight(library):
    A = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    x = solve_semidefinite(convert(A, library), convert(np.array([4.0, 4.0, 3.0]), library))
    np.testing.assert_allclose(to_numpy(x), [1.0, 1.0, 3.0], rtol=1e-12)


@libraries
@pytest.mark.parametrize("A", [np.zeros((3, 3)), np.diag([2.0, 0.0, 0.0])], ids=["zero", "zero diagonal"])
def test_zero_columns_stay_zero(library, A):
    x = to_numpy(solve_semidefinite(convert(A, library), convert(A @ np.ones(3), library)))
    np.testing.assert_allclose(x, np.diag(A) > 0, rtol=1e-12)


@pytest.mark.parametrize("units", [1e-12, 1.0, 1e12])
def test_the_units_of_the_columns_do_not_matter(units):
    A, b = spd(4, 6), np.arange(1.0, 5.0)
    scale = np.array([1.0, units, 1.0, 1 / units])
    x = solve_semidefinite(A * np.outer(scale, scale), b * scale)
    np.testing.assert_allclose(x * scale, np.linalg.solve(A, b), rtol=1e-8)


@libraries
def test_an_empty_system(library):
    assert solve_semidefinite(convert(np.zeros((0, 0)), library), convert(np.zeros(0), library)).shape == (0,)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_singular_but_consistent(rank):
    A = spd(5, rank, seed=3)
    b = A @ np.arange(1.0, 6.0)
    x = solve_semidefinite(A, b)
    np.testing.assert_allclose(A @ x, b, rtol=1e-8, atol=1e-8)
    assert np.abs(x).max() < 1e3


# --- the fast path of inverses against the eigenvalues ---------------------------------------------------------------


def slow_inverse(A):
    """The pseudo-inverse after scaling to unit diagonal, cut where the documentation says."""
    scale = np.array([a**-0.5 if a > 0 else 0.0 for a in np.diag(A)], dtype=A.dtype)
    values, vectors = np.linalg.eigh(A * np.outer(scale, scale))
    cut = len(A) * np.finfo(A.dtype).eps * values.max()
    inverse = sum(np.outer(v, v) / value for value, v in zip(values, vectors.T, strict=True) if value > cut)
    return inverse * np.outer(scale, scale)


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(0, 6), st.integers(-8, 8))
@draws(200)
def test_the_inverse_is_that_of_the_eigenvalues(seed, n, surplus, units):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((n, n + surplus)) * 10.0 ** (units * rng.random((n, 1)))
    A = root @ root.T
    A.flags.writeable = False
    inverse, size = inverse_semidefinite(A), np.sqrt(np.diag(A))
    np.testing.assert_allclose(
        inverse * np.outer(size, size), slow_inverse(A) * np.outer(size, size), rtol=1e-4, atol=1e-7 * condition(A)
    )
    np.testing.assert_allclose(inverse, inverse.T, rtol=1e-14)


def condition(A):
    size = np.sqrt(np.diag(A))
    return max(1.0, np.linalg.cond(A / np.outer(size, size)))


@given(st.integers(0, 10**6), st.integers(2, 10), st.integers(0, 3))
@draws(100)
def test_the_inverse_of_a_singular_matrix_is_the_pseudo_inverse(seed, n, missing):
    """Duplicates and zero columns: what Cholesky cannot do safely is left to the eigenvalues."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + 3, n))
    for j in range(min(missing, n - 1)):
        X[:, j] = [-X[:, n - 1], 0.0 * X[:, 0], X[:, n - 1] * 1e6][j]
    A = X.T @ X
    np.testing.assert_allclose(inverse_semidefinite(A), slow_inverse(A), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("gap", [1e-2, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 0.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nearly_equal_columns_fit_as_well_as_by_the_eigenvalues(gap, dtype):
    """Whichever of the two ways is taken: rounding times the condition is what an explicit inverse can do."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    X[:, 3] = X[:, 2] + gap * rng.standard_normal(30)
    X = X.astype(dtype)
    A, b = X.T @ X, X.T @ X.sum(axis=1)
    eps = np.finfo(A.dtype).eps
    close = min(1e-2, 10 * eps * np.linalg.cond(A.astype(float))) if gap else 100 * eps
    ours, slow = (np.abs(A @ (inverse @ b) - b).max() for inverse in (inverse_semidefinite(A), slow_inverse(A)))
    assert ours <= 3 * slow + close * np.abs(b).max()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_inverse_keeps_its_dtype(dtype):
    for A in (spd(4, 7), spd(4, 2)):
        assert inverse_semidefinite(A.astype(dtype)).dtype == dtype


def test_the_inverse_does_not_touch_what_is_behind_a_view():
    """Strided, transposed and read-only matrices."""
    whole = spd(8, 12)
    before = whole.copy()
    for A in (whole[::2, ::2], whole.T, whole[2:5, 2:5]):
        np.testing.assert_allclose(inverse_semidefinite(A) @ A, np.eye(len(A)), atol=1e-8)
    np.testing.assert_array_equal(whole, before)


@libraries
def test_inverses_are_the_same_in_every_library(library):
    for A in (spd(5, 9), spd(5, 3), np.zeros((2, 2))):
        inverse = to_numpy(inverse_semidefinite(convert(A, library)))
        np.testing.assert_allclose(inverse, inverse_semidefinite(A), rtol=1e-7, atol=1e-9)


# --- namespaces ------------------------------------------------------------------------------------------------------


def test_libraries_are_never_mixed():
    strict = convert(np.ones(2), "array_api_strict")
    with pytest.raises(InvalidInputError, match="one library"):
        namespace(np.ones(2), strict)
    with pytest.raises(InvalidInputError, match="one library"):
        as_floating(strict, like=np.ones(2))
    assert namespace(np.ones(2), None) is namespace(np.ones(2))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.float32([1, 2]), np.float32),
        (np.float64([1, 2]), np.float64),
        (np.int8([1, 2]), np.float64),
        (np.array([True, False]), np.float64),
        (np.float16([1, 2]), np.float64),
        (np.longdouble([1, 2]), np.float64),
        ([1, 2], np.float64),
        ([1.5, 2], np.float64),
    ],
)
def test_as_floating(given, expected):
    assert as_floating(given).dtype == expected
    assert as_floating(given, like=np.float32([0])).dtype == np.float32
    np.testing.assert_array_equal(as_floating(given), np.asarray(given, dtype=float))


@libraries
def test_as_floating_keeps_the_library(library):
    for dtype, expected in (("float32", "float32"), ("float64", "float64"), ("int32", "float64"), ("bool", "float64")):
        x = as_floating(convert(np.array([0, 1]).astype(dtype), library))
        assert type(x) is type(convert(np.ones(1), library))
        assert expected in str(x.dtype)
    like = convert(np.float32([0.0]), library)
    assert as_floating([1.0, 2.0], like=like).dtype == like.dtype
    assert type(as_floating([1.0, 2.0], like=like)) is type(like)


def test_a_floating_array_is_not_copied():
    x = np.ones(3)
    assert as_floating(x) is x or np.shares_memory(as_floating(x), x)


@pytest.mark.parametrize(
    "bad", [np.array(["a"]), np.array([None, 1]), np.array([1j]), ["x"], np.array("2020", "M8[D]")]
)
def test_non_numeric_arrays_are_refused(bad):
    with pytest.raises(InvalidInputError, match=r"column_of_mine must be (numeric|real)"):
        as_floating(bad, name="column_of_mine")
    with pytest.raises(InvalidInputError, match="column_of_mine must be"):
        as_floating(bad, like=np.ones(1), name="column_of_mine")


@libraries
def test_all_finite(library):
    for values, expected in (
        ([1.0, -2.0], True),
        ([], True),
        ([1e308, 1e308, -1e308], True),
        ([1.0, np.nan], False),
        ([np.inf, -np.inf], False),
        ([np.inf], False),
    ):
        assert all_finite(convert(np.array(values), library)) is expected


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(300, 70), (70, 300), (1, 900), (900, 1), (50, 0), (0, 5)])
@pytest.mark.parametrize("threads", [1, 3])
def test_squares_of_columns_in_pieces(order, dtype, shape, threads, monkeypatch):
    X = np.asarray(np.random.default_rng(0).standard_normal(shape), dtype=dtype, order=order)
    expected = (X.astype(np.float64) ** 2).sum(axis=0)
    rounding = 40 * np.finfo(dtype).eps
    np.testing.assert_allclose(column_squares(X), expected, rtol=rounding)
    monkeypatch.setattr("hardthresh.arrays.pieces._PIECE", 1e-9)
    monkeypatch.setattr("hardthresh.core.threads.thread_count", lambda: threads)
    in_pieces = column_squares(X)
    assert in_pieces.dtype == dtype
    np.testing.assert_allclose(in_pieces, expected, rtol=rounding)
    np.testing.assert_allclose(column_squares(X[:, ::-1]), expected[::-1], rtol=rounding)


@libraries
def test_to_numpy(library):
    x = np.arange(3.0)
    np.testing.assert_array_equal(to_numpy(convert(x, library)), x)
    assert to_numpy(x) is x


def test_to_numpy_of_a_tensor_that_has_a_gradient():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.ones(3, requires_grad=True)
    np.testing.assert_array_equal(to_numpy(x), np.ones(3))
