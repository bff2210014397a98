"""The truncated decomposition, by whatever method, against LAPACK's full one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.arrays import METHODS, to_numpy, truncated_svd
from hardthresh.core import InvalidInputError
from levels import draws

SHAPES = [(6, 6), (9, 4), (4, 9), (1, 5), (5, 1)]


def decaying(seed, shape, dtype=float):
    """A matrix whose singular values halve from one to the next."""
    rng = np.random.default_rng(seed)
    U, _ = np.linalg.qr(rng.standard_normal((shape[0], min(shape))))
    V, _ = np.linalg.qr(rng.standard_normal((shape[1], min(shape))))
    return ((U * 0.5 ** np.arange(min(shape))) @ V.T).astype(dtype)


def check(A, rank, U, s, Vt, tol):
    exact = np.linalg.svd(A, compute_uv=False)
    r = min(rank, min(A.shape))
    assert U.shape == (A.shape[0], r)
    assert Vt.shape == (r, A.shape[1])
    np.testing.assert_allclose(s, exact[:r], rtol=0, atol=tol * exact[0])
    np.testing.assert_allclose(U.T @ U, np.eye(r), rtol=0, atol=tol)
    np.testing.assert_allclose(Vt @ Vt.T, np.eye(r), rtol=0, atol=tol)
    left = np.sqrt(np.sum(exact[r:] ** 2))
    assert np.linalg.norm(A - (U * s) @ Vt) <= left + tol * exact[0]


@given(
    st.integers(0, 2**31), st.sampled_from(SHAPES), st.integers(0, 8), st.sampled_from(["auto", "lapack", "lanczos"])
)
@draws(60)
def test_exact_methods_find_the_nearest_matrix(seed, shape, rank, method):
    A = decaying(seed, shape)
    check(A, rank, *truncated_svd(A, rank, method), 1e-10)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_matrices(method, dtype):
    A = decaying(0, (300, 250), dtype)
    U, s, Vt = truncated_svd(A, 7, method)
    assert U.dtype == s.dtype == Vt.dtype == dtype
    check(A, 7, U, s, Vt, 1e-3 if method == "randomized" else 50 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("method", METHODS)
def test_singular_values_that_are_rounding_are_left_out(method):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((230, 3)) @ rng.standard_normal((3, 220))
    U, s, Vt = truncated_svd(A, 6, method)
    assert s.shape == (3,)
    np.testing.assert_allclose((U * s) @ Vt, A, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(4, 3), (230, 240)])
def test_zero_has_no_singular_vectors(method, shape):
    U, s, Vt = truncated_svd(np.zeros(shape), 2, method)
    assert (U.shape, s.shape, Vt.shape) == ((shape[0], 0), (0,), (0, shape[1]))


@pytest.mark.parametrize("method", ["lanczos", "randomized"])
def test_a_start_changes_nothing_but_the_way(method):
    A = decaying(1, (240, 230))
    _, _, Vt = truncated_svd(A, 5, "lapack")
    for start in (Vt.T, np.zeros((230, 0)), np.linalg.qr(np.random.default_rng(0).standard_normal((230, 9)))[0]):
        U, s, Wt = truncated_svd(A, 5, method, start)
        check(A, 5, U, s, Wt, 1e-3 if method == "randomized" else 1e-10)
    again = truncated_svd(A, 5, method, Vt.T)
    for one, other in zip(truncated_svd(A, 5, method, Vt.T), again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_good_start_makes_block_power_exact():
    A = np.random.default_rng(3).standard_normal((260, 250))  # a flat spectrum: two steps do not resolve it
    exact = truncated_svd(A, 5, "lapack")
    cold = truncated_svd(A, 5, "randomized")[1]
    warm = truncated_svd(A, 5, "randomized", exact[2].T)[1]
    assert np.max(np.abs(warm - exact[1])) < 1e-8 < np.max(np.abs(cold - exact[1]))


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
@pytest.mark.parametrize("method", ["auto", "lapack", "randomized"])
def test_other_array_libraries(library, method):
    xp = pytest.importorskip(library, reason=f"{library} is not installed")
    A = decaying(2, (20, 30))
    U, s, Vt = (to_numpy(x) for x in truncated_svd(xp.asarray(A), 3, method))
    check(A, 3, U, s, Vt, 1e-6)


def test_unknown_methods_and_other_libraries_are_refused():
    with pytest.raises(InvalidInputError, match="auto, lapack, lanczos, randomized, subspace; got 'svd'"):
        truncated_svd(np.eye(3), 1, "svd")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(InvalidInputError, match="NumPy arrays only"):
        truncated_svd(torch.eye(3), 1, "lanczos")


def test_small_singular_values_of_float32_are_kept_by_default():
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((230, 2)))[0] for _ in range(2))
    A = ((U * [1.0, 1e-4]) @ V.T).astype(np.float32)  # below the square root of rounding
    np.testing.assert_allclose(truncated_svd(A, 2)[1], [1.0, 1e-4], rtol=1e-2)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_lanczos_in_any_units(scale):
    A = decaying(4, (230, 220))
    U, s, Vt = truncated_svd(scale * A, 4, "lanczos")
    check(A, 4, U, s / scale, Vt, 1e-10)


def test_lanczos_that_does_not_converge_is_left_to_lapack(monkeypatch):
    import scipy.sparse.linalg as spla

    def fail(*args, **options):
        raise spla.ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))

    monkeypatch.setattr(spla, "svds", fail)
    A = decaying(5, (230, 220))
    check(A, 4, *truncated_svd(A, 4, "lanczos"), 1e-12)


def test_failures_of_divide_and_conquer_fall_back_to_the_qr_iteration(monkeypatch):
    """LAPACK's gesdd does not converge on some harmless matrices."""
    A = np.random.default_rng(0).standard_normal((7, 5))

    def fails(*_, **__):
        raise np.linalg.LinAlgError("SVD did not converge")

    expected = truncated_svd(A, 3)
    monkeypatch.setattr(np.linalg, "svd", fails)
    for one, other in zip(truncated_svd(A, 3), expected, strict=True):
        np.testing.assert_allclose(np.abs(one), np.abs(other), atol=1e-12)
