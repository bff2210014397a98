"""A factored matrix is its dense twin in everything that solvers, constraints and users do with it."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.arrays import FactoredMatrix, Pattern, all_finite, as_floating, namespace, to_numpy, truncated_svd
from hardthresh.constraints import Rank
from hardthresh.core import InvalidInputError
from hardthresh.core.stationarity import norm
from levels import draws

SHAPES = [(7, 5), (5, 7), (1, 6), (6, 1), (12, 12)]


def some_pattern(rng, shape, density=0.4):
    return Pattern.of(*np.nonzero(rng.random(shape) < density), shape)


def random_matrix(seed, shape, products=2, width=2, sparse=True, dtype=float, pattern=None):
    """A factored matrix and its dense twin."""
    rng = np.random.default_rng(seed)
    matrix, twin = FactoredMatrix.zeros(shape, dtype), np.zeros(shape, dtype)
    for _ in range(products):
        left, right = (rng.standard_normal((side, width)).astype(dtype) for side in shape)
        matrix, twin = matrix + FactoredMatrix.product(left, right), twin + left @ right.T
    if sparse:
        pattern = some_pattern(rng, shape) if pattern is None else pattern
        data = rng.standard_normal(pattern.rows.size).astype(dtype)
        matrix = matrix + FactoredMatrix.sparse(pattern, data)
        twin[pattern.rows, pattern.cols] += data
    return matrix, twin


matrices = st.builds(
    random_matrix, st.integers(0, 2**31), st.sampled_from(SHAPES), st.integers(0, 4), st.integers(0, 3), st.booleans()
)


def same_shape_pairs():
    def pair(seed, shape, products, sparse, common):
        pattern = some_pattern(np.random.default_rng(seed), shape) if common else None
        return tuple(random_matrix(seed + i, shape, products[i], 2, sparse[i], pattern=pattern) for i in (0, 1))

    return st.builds(
        pair,
        st.integers(0, 2**31),
        st.sampled_from(SHAPES),
        st.tuples(st.integers(0, 3), st.integers(0, 3)),
        st.tuples(st.booleans(), st.booleans()),
        st.booleans(),
    )


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


@given(matrices, st.floats(-4, 4))
@draws(60)
def test_one_matrix(pair, c):
    A, D = pair
    assert (A.shape, A.ndim, A.size, A.dtype) == (D.shape, D.ndim, D.size, D.dtype)
    close(A, D)
    close(-A, -D)
    close(A * c, D * c)
    close(c * A, c * D)
    close(np.float64(c) * A, c * D)
    close(A / 3.0, D / 3.0)
    close(A.T, D.T)
    close(A.T.T, D)
    rng = np.random.default_rng(0)
    right, left = rng.standard_normal((D.shape[1], 3)), rng.standard_normal((3, D.shape[0]))
    close(A @ right, D @ right)
    close(A @ right[:, 0], D @ right[:, 0])
    close(left @ A, left @ D)
    close(left[0] @ A, left[0] @ D)
    close(A.transposed_times(left.T), D.T @ left.T)
    xp = namespace(A)
    close(float(xp.sum(A)), D.sum())
    close(xp.zeros_like(A), np.zeros_like(D))
    close(xp.ones_like(A), np.ones_like(D))
    close(norm(A), np.linalg.norm(D))
    assert all_finite(A)
    for again in (pickle.loads(pickle.dumps(A)), xp.asarray(D), xp.asarray(A), to_numpy(A)):
        close(again, D)
    for dense in (True, False):
        pattern = some_pattern(rng, D.shape, 0.9 if dense else 0.1)
        close(A.entries(pattern), D[pattern.rows, pattern.cols])


@given(same_shape_pairs())
@draws(60)
def test_two_matrices(pairs):
    (A, D), (B, E) = pairs
    close(A + B, D + E)
    close(A - 2.0 * B, D - 2.0 * E)
    close(float(namespace(A).sum(A * B)), np.sum(D * E))
    close(np.asarray(A * B), D * E)
    close(A - A, np.zeros_like(D))
    for mixed, expected in ((A - E, D - E), (E - A, E - D), (A + E, D + E), (E + A, E + D), (A * E, D * E)):
        assert type(mixed) is np.ndarray
        close(mixed, expected)


def test_numpy_takes_it_for_a_dense_matrix():
    A, D = random_matrix(0, (4, 3))
    close(np.abs(A), np.abs(D))
    close(np.max(A), np.max(D))
    close(np.mean(A, axis=0), np.mean(D, axis=0))
    close(np.linalg.norm(A), np.linalg.norm(D))
    assert np.asarray(A, dtype=np.float32).dtype == np.float32
    assert np.isfinite(A).all()
    with pytest.raises(ValueError, match="no dense array"):
        np.asarray(A, copy=False)


def test_sums_of_matrices_with_a_common_factor_stay_thin():
    """A point and tangent directions at the same bases have 2 r columns, however many are added."""
    rng = np.random.default_rng(1)
    constraint = Rank(3)
    projection = constraint.project(random_matrix(2, (40, 30), 2, 3, sparse=False)[0])
    directions = [projection.support.restrict(random_matrix(seed, (40, 30))[0]) for seed in range(3)]
    point, *directions = pickle.loads(pickle.dumps((projection.point,))) + tuple(directions)
    moved = point
    for direction in directions:
        moved = moved + float(rng.random()) * direction - 0.5 * direction
    assert projection.point.width == 3
    assert all(direction.width == 6 for direction in directions)
    assert moved.width == 6


def test_it_is_never_wider_than_its_shorter_side():
    A, D = random_matrix(3, (6, 9), products=7, width=2, sparse=False)
    assert A.width <= 6
    close(A, D)


@pytest.mark.parametrize("sparse", [True, False])
def test_the_norm_of_what_nearly_cancels(sparse):
    A, _ = random_matrix(4, (30, 20), 1, 3, sparse=sparse)
    tiny, E = random_matrix(5, (30, 20), 1, 1, sparse=False)
    twin = FactoredMatrix(A.shape, A.precision, tuple(pickle.loads(pickle.dumps(A.thin)))) + 1e-9 * tiny
    twin = twin + FactoredMatrix.sparse(A.pattern, A.data) if sparse else twin
    np.testing.assert_allclose(norm(twin - A), 1e-9 * np.linalg.norm(E), rtol=1e-5)


def test_float32_stays_float32():
    A, D = random_matrix(6, (8, 5), dtype=np.float32)
    for result in (A, -A, 2.0 * A, A + A, A.T, A @ D.T, namespace(A).sum(A * A), A.entries(A.pattern), 0.5 * (A - A)):
        assert result.dtype == np.float32
    assert A.astype(np.float64).dtype == np.float64
    assert as_floating(D.astype(float), A).dtype == np.float32


def test_two_precisions_make_the_larger_one():
    A, D = random_matrix(6, (8, 5), dtype=np.float32)
    B, E = random_matrix(7, (8, 5))
    factor = np.ones((8, 1), dtype=np.float32)
    for result, dense in ((A + B, D + E), (B + A, D + E), (A - B, D - E), (B - A, E - D)):
        assert result.dtype == np.asarray(result).dtype == result.data.dtype == np.float64
        assert {part.dtype for term in result.thin for part in (term.left, term.right)} == {np.dtype(np.float64)}
        np.testing.assert_allclose(result, dense, rtol=1e-5, atol=1e-5)
    for one, other in ((factor, np.ones((5, 1))), (np.ones((8, 1)), factor[:5]), (factor.astype(int), factor[:5])):
        product = FactoredMatrix.product(one, other)
        assert product.dtype == product.to_dense().dtype == np.float64
    assert FactoredMatrix.product(factor, factor[:5]).dtype == np.float32


def test_other_dtypes_become_float64():
    whole = FactoredMatrix.dense(np.ones((3, 4), dtype=int))
    pattern = some_pattern(np.random.default_rng(0), (3, 4))
    for made in (
        whole,
        FactoredMatrix.zeros((3, 4), bool),
        FactoredMatrix.dense(np.ones((3, 4), dtype=np.float16)),
        FactoredMatrix.sparse(pattern, np.ones(pattern.rows.size, dtype=np.int32)),
    ):
        assert made.dtype == made.to_dense().dtype == np.float64
    close(0.5 * whole, np.full((3, 4), 0.5))
    with pytest.raises(InvalidInputError, match="float32 or float64"):
        whole.astype(int)
    for wrong in ([[1j]], [["a"]]):
        with pytest.raises(InvalidInputError, match="real numbers"):
            FactoredMatrix.dense(wrong)


def test_comparison_is_entry_by_entry():
    A, _ = random_matrix(8, (4, 3))
    twin = FactoredMatrix.dense(A.to_dense())
    E = A.to_dense()
    E[1, 2] += 1.0
    for one, other in ((A, E), (E, A), (twin, E), (A, FactoredMatrix.dense(E))):
        np.testing.assert_array_equal(one == other, A.to_dense() == E)
        np.testing.assert_array_equal(one != other, A.to_dense() != E)
    assert (twin == A).all()
    assert not (A == 0.0).any()
    with pytest.raises(TypeError, match="unhashable"):
        hash(A)


def test_points_cross_between_the_forms():
    A, D = random_matrix(7, (4, 3))
    assert isinstance(as_floating(D, A), FactoredMatrix)
    assert isinstance(as_floating(D.tolist(), A), FactoredMatrix)
    assert type(as_floating(A, D)) is np.ndarray
    assert as_floating(A, A) is A
    close(as_floating(D, A), D)


def test_a_nan_anywhere_is_seen():
    for sparse in (True, False):
        A, _ = random_matrix(8, (4, 3), 1, 1, sparse=sparse)
        (A.data if sparse else A.thin[0].right).flat[0] = np.nan
        assert not all_finite(A)
        with pytest.raises(InvalidInputError, match="NaN"):
            Rank(1).project(A)


def test_invalid_arguments_are_refused():
    A, _ = random_matrix(9, (4, 3))
    with pytest.raises(InvalidInputError, match=r"\(4, 3\) and \(3, 4\)"):
        A + A.T
    with pytest.raises(TypeError, match="thin dense"):
        A @ A.T
    with pytest.raises(InvalidInputError, match="1 dimensions"):
        FactoredMatrix.dense(np.ones(3))
    with pytest.raises(InvalidInputError, match="one library"):
        namespace(A, np.eye(3))


# --- decompositions and the constraint --------------------------------------------------------------------------------


def gapped(seed, shape, sparse, dtype=float):
    """A factored matrix of clear rank 3, with a little sparse noise on top."""
    A, _ = random_matrix(seed, shape, 1, 3, sparse=False, dtype=dtype)
    if sparse:
        pattern = some_pattern(np.random.default_rng(seed), shape, 0.1)
        noise = np.random.default_rng(seed + 1).standard_normal(pattern.rows.size).astype(dtype)
        A = A + FactoredMatrix.sparse(pattern, dtype(0.01) * noise)
    return A


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("method", ["auto", "lapack", "lanczos", "randomized", "subspace"])
@pytest.mark.parametrize("shape", [(30, 20), (260, 230), (230, 260)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_truncated_decompositions_are_those_of_the_dense_matrix(sparse, method, shape, dtype):
    A = gapped(0, shape, sparse, dtype)
    exact = np.linalg.svd(A.to_dense().astype(float))
    start = exact[2][:3].T.astype(dtype)
    U, s, Vt = truncated_svd(A, 3, method, start)
    assert U.dtype == s.dtype == Vt.dtype == dtype
    tol = 1e-10 if dtype is float else 1e-4
    np.testing.assert_allclose(s, exact[1][:3], rtol=tol)
    np.testing.assert_allclose((U * s) @ Vt, (exact[0][:, :3] * exact[1][:3]) @ exact[2][:3], atol=tol * exact[1][0])
    np.testing.assert_allclose(U.T @ U, np.eye(3), atol=tol)


def test_lanczos_that_does_not_converge_is_left_to_lapack(monkeypatch):
    import scipy.sparse.linalg as spla

    def fail(*args, **options):
        raise spla.ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))

    monkeypatch.setattr(spla, "svds", fail)
    A = gapped(1, (230, 220), sparse=True)
    np.testing.assert_allclose(truncated_svd(A, 3, "lanczos")[1], np.linalg.svd(A.to_dense())[1][:3])


@pytest.mark.parametrize("method", ["auto", "lanczos", "randomized"])
def test_zero_has_no_singular_vectors(method):
    pattern = Pattern.of(np.array([0, 3]), np.array([1, 2]), (230, 240))
    for zero in (FactoredMatrix.zeros((230, 240)), FactoredMatrix.sparse(pattern, np.zeros(2))):
        U, s, Vt = truncated_svd(zero, 2, method)
        assert (U.shape, s.shape, Vt.shape) == ((230, 0), (0,), (0, 240))


@given(st.integers(0, 2**31), st.sampled_from([(7, 5), (5, 7), (12, 12)]), st.integers(0, 6), st.booleans())
@draws(40)
def test_rank_on_a_factored_matrix_is_rank_on_the_dense_one(seed, shape, rank, sparse):
    constraint = Rank(rank)
    (A, D), (B, E) = (random_matrix(seed + i, shape, 2, 2, sparse) for i in (0, 1))
    ours, theirs = constraint.project(A), constraint.project(D)
    close(ours.point, theirs.point)
    assert ours.support == theirs.support
    U, s, Vt = ours.support
    close((U * s) @ Vt, theirs.point)
    close(ours.support.restrict(B), theirs.support.restrict(E))
    close(constraint.hard_threshold(B), constraint.hard_threshold(E))
    assert constraint.is_full(ours.support) == constraint.is_full(theirs.support)
    other = constraint.project(B).support
    both, twins = (ours.support | other), (theirs.support | constraint.project(E).support)
    close(both.restrict(B), twins.restrict(E))
    assert both.values is None


def test_scipy_agrees_about_patterns():
    rng = np.random.default_rng(2)
    pattern = some_pattern(rng, (9, 6))
    data = rng.standard_normal(pattern.rows.size)
    expected = sp.coo_array((data, (pattern.rows, pattern.cols)), shape=(9, 6))
    np.testing.assert_array_equal(pattern.csr(data).toarray(), expected.toarray())
    assert pattern.is_like(pickle.loads(pickle.dumps(pattern)))
    assert not pattern.is_like(some_pattern(rng, (9, 6)))
