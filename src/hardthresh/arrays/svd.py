"""The largest singular values and vectors of a matrix: exactly, by Lanczos, or by block power steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.typing import Array, is_numpy

from .factored import FactoredMatrix
from .namespace import namespace, to_numpy

METHODS = ("auto", "lapack", "lanczos", "randomized", "subspace")

_SMALL = 200  # side up to which all singular values are computed: LAPACK is fast there. Arbitrary
_OVERSAMPLING, _POWER_STEPS = 10, 2  # columns more than the rank, and power steps, as Halko et al. recommend


def truncated_svd(A: Array, rank: int, method: str = "auto", start: Array | None = None) -> tuple[Array, Array, Array]:
    r"""Return :math:`U, s, V^\top` of the largest singular values of a matrix.

    Parameters
    ----------
    A : array or FactoredMatrix, shape (p, q)
        Finite real numbers. A factored matrix without a sparse part is decomposed exactly by two thin QR
        decompositions, with any method; one with a sparse part is only multiplied, except with "lapack".
    rank : int
        The number of singular values, >= 0, at most min(p, q) of which exist.
    method : {"auto", "lapack", "lanczos", "randomized", "subspace"}
        "lapack" computes all of them; "lanczos" (ARPACK; NumPy only) is faster for a few of a large matrix, but blind
        to singular values below the square root of rounding times the largest; "randomized" takes two block power
        steps, and is approximate; "subspace" takes a single step from `start`, for matrices that change little from
        call to call, and is "randomized" where `start` has fewer than `rank` columns. "auto" is "lanczos" for float64
        NumPy matrices of which it wants less than a fifth of more than 200, else "lapack"; for a factored matrix with a
        sparse part, less than a half in either precision.
    start : array, shape (q, any), optional
        Approximate right singular vectors, from which "lanczos", "randomized" and "subspace" start.

    Returns
    -------
    U : array, shape (p, r)
    s : array, shape (r,)
        The singular values, decreasing, without those of the size of rounding errors, so r may be less than `rank`.
    Vt : array, shape (r, q)

    Raises
    ------
    InvalidInputError
        For an unknown method, or Lanczos on another array library.

    Notes
    -----
    Cost O(p q min(p, q)), or O(p q r) for each of a few dozen steps of "lanczos", of the two of "randomized" and
    the one of "subspace"; for a factored matrix of n entries beside products of m columns, n + (p + q) m stands for
    p q. Deterministic: what is random in "randomized" is drawn from a fixed seed.

    References
    ----------
    Halko, Martinsson and Tropp (2011), *Finding structure with randomness*, Algorithm 4.4.
    """
    if method not in METHODS:
        raise InvalidInputError(
            f"the method of a truncated SVD is one of {', '.join(METHODS)}; got {format_value(method)}"
        )
    small = min(A.shape)
    if method == "subspace" and (start is None or start.shape[1] < rank):
        method = "randomized"
    if isinstance(A, FactoredMatrix):
        return _of_factors(A, rank, method, start)
    if method == "auto":
        large = small > _SMALL and 5 * rank < small
        method = "lanczos" if large and is_numpy(A) and A.dtype == np.float64 else "lapack"
    if method == "lanczos" and not is_numpy(A):
        raise InvalidInputError("Lanczos works on NumPy arrays only; use method='lapack' or 'randomized'")
    none = not bool(namespace(A).any(A != 0))  # where ARPACK cannot start
    if method == "lapack" or rank >= small - 1 or rank == 0 or none:
        U, s, Vt = _lapack(A)
    elif method == "lanczos":
        U, s, Vt = _lanczos(A, rank, start)
    elif method == "randomized":
        U, s, Vt = _block_power(A, rank, start)
    else:
        U, s, Vt = _block_step(A, start)
    return _leading(A, U, s, Vt, rank)


def _of_factors(
    A: FactoredMatrix, rank: int, method: str, start: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the truncated decomposition of a factored matrix."""
    small = min(A.shape)
    if A.pattern is None:
        (Q, left), (P, right) = (np.linalg.qr(factor) for factor in A.factors())
        inner, s, outer = np.linalg.svd(left @ right.T, full_matrices=False)
        U, s, Vt = _leading(A, inner, s, outer, rank)
        return Q @ U, s, Vt @ P.T
    size = np.sqrt(A.inner(A))
    if method == "auto" and small > _SMALL and 2 * rank < small:
        method = "lanczos"
    if method in ("auto", "lapack") or rank >= small - 1 or rank == 0 or not size > 0.0:
        U, s, Vt = np.linalg.svd(A.to_dense(), full_matrices=False)
    elif method == "lanczos":
        U, s, Vt = (part.astype(A.dtype) for part in _lanczos_of_operator(A.astype(np.float64), rank, start, size))
    elif method == "randomized":
        U, s, Vt = _block_power(A, rank, start)
    else:
        U, s, Vt = _block_step(A, start)
    return _leading(A, U, s, Vt, rank)


def _leading(A: Array, U: Array, s: Array, Vt: Array, rank: int) -> tuple[Array, Array, Array]:
    xp = namespace(s)
    if s.shape[0]:
        rounding = max(A.shape) * float(xp.finfo(s.dtype).eps) * float(s[0])
        rank = min(rank, int(xp.count_nonzero(s > rounding)))
    return xp.asarray(U[:, :rank], copy=True), s[:rank], xp.asarray(Vt[:rank, :], copy=True)


def _lapack(A: Array) -> tuple[Array, Array, Array]:
    """Return all singular values and vectors; by the slower QR iteration where divide and conquer does not converge."""
    try:
        U, s, Vt = namespace(A).linalg.svd(A, full_matrices=False)
    except np.linalg.LinAlgError:
        from scipy.linalg import svd  # not for everybody: it takes a while to import

        U, s, Vt = svd(A, full_matrices=False, lapack_driver="gesvd")
    return U, s, Vt


def _lanczos(A: np.ndarray, rank: int, start: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    size = np.max(np.abs(A))
    unit = A / size  # ARPACK multiplies with A'A, whose entries would leave the range much earlier
    U, s, Vt = _arpack(unit, rank, _first_vector(unit, unit.dtype, start)) or np.linalg.svd(unit, full_matrices=False)
    return U, size * s, Vt


def _lanczos_of_operator(
    A: FactoredMatrix, rank: int, start: np.ndarray | None, size: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from scipy.sparse.linalg import LinearOperator  # not for everybody: it takes a while to import

    unit = A / size
    operator = LinearOperator(
        A.shape, matvec=unit.__matmul__, rmatvec=unit.transposed_times, matmat=unit.__matmul__,
        rmatmat=unit.transposed_times, dtype=A.dtype,
    )  # fmt: skip
    found = _arpack(operator, rank, _first_vector(unit, A.dtype, start))
    U, s, Vt = found or np.linalg.svd(unit.to_dense(), full_matrices=False)
    return U, size * s, Vt


def _first_vector(A: Any, dtype: Any, start: np.ndarray | None) -> Any:
    """Return the start of Lanczos in the smaller of the two spaces, where ARPACK works: near the known vectors."""
    v0 = np.random.default_rng(0).standard_normal(min(A.shape)).astype(dtype)
    if start is None or not start.shape[1]:
        return v0
    known = np.sum(start, axis=1)
    known = A @ known if A.shape[0] < A.shape[1] else known
    length = np.linalg.norm(known)
    return v0 * (length / np.linalg.norm(v0) / 100) + known if length > 0 else v0


def _arpack(A: Any, rank: int, v0: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the decomposition, decreasing, or None if ARPACK has not converged or broken down."""
    from scipy.sparse.linalg import ArpackError, svds

    try:
        U, s, Vt = svds(A, k=rank, v0=v0, solver="arpack")
    except ArpackError:
        return None
    order = np.argsort(-s, kind="stable")
    return U[:, order], s[order], Vt[order]


def _block_power(A: Array, rank: int, start: Array | None) -> tuple[Array, Array, Array]:
    xp, transposed = _library(A)
    width = min(rank + _OVERSAMPLING, *A.shape)
    block = np.random.default_rng(0).standard_normal((A.shape[1], width))
    if start is not None:
        block[:, : min(width, start.shape[1])] = to_numpy(start)[:, :width]
    Y = A @ xp.asarray(block, dtype=A.dtype)
    for _ in range(_POWER_STEPS):
        Q, _ = xp.linalg.qr(transposed(xp.linalg.qr(Y)[0]))
        Y = A @ Q
    return _between(xp, xp.linalg.qr(Y)[0], transposed)


def _block_step(A: Array, start: Array | None) -> tuple[Array, Array, Array]:
    xp, transposed = _library(A)
    return _between(xp, xp.linalg.qr(A @ start)[0], transposed)


def _between(xp: Any, Q: Array, transposed: Any) -> tuple[Array, Array, Array]:
    """Return the decomposition of Q Q'A, from the transpose of A as a function."""
    image = transposed(Q)
    if image.shape[0] < image.shape[1]:
        inner, s, Vt = xp.linalg.svd(image.T, full_matrices=False)
        return Q @ inner, s, Vt
    P, right = xp.linalg.qr(image)
    inner, s, Vt = xp.linalg.svd(right.T, full_matrices=False)
    return Q @ inner, s, Vt @ P.T


def _library(A: Array) -> tuple[Any, Any]:
    """Return the library of the thin matrices around A, and the product of its transpose with them."""
    if isinstance(A, FactoredMatrix):
        return np, A.transposed_times
    return namespace(A), lambda X: A.T @ X
