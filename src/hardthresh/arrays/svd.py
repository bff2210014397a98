"""The largest singular values and vectors of a matrix: exactly, by Lanczos, or by block power steps."""

from __future__ import annotations

import numpy as np
from array_api_compat import is_numpy_array

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import Array

from .namespace import namespace, to_numpy

METHODS = ("auto", "lapack", "lanczos", "randomized")

_SMALL = 200  # matrices with a side of at most this are left to LAPACK
_OVERSAMPLING, _POWER_STEPS = 10, 2


def truncated_svd(A: Array, rank: int, method: str = "auto", start: Array | None = None) -> tuple[Array, Array, Array]:
    r"""Return :math:`U, s, V^\top` of the largest singular values of a matrix.

    Parameters
    ----------
    A : array, shape (p, q)
        Finite reals.
    rank : int
        How many, >= 0; more than A has are not found.
    method : {"auto", "lapack", "lanczos", "randomized"}
        "lapack" computes all of them; "lanczos" (ARPACK; NumPy only) is faster for a few of a large matrix, but blind
        to singular values below the square root of rounding times the largest; "randomized" takes two block power
        steps, and is approximate. "auto" is "lanczos" for float64 NumPy matrices of which it wants less than a fifth
        of more than 200, else "lapack".
    start : array, shape (q, any), optional
        Approximate right singular vectors: where "lanczos" and "randomized" start.

    Returns
    -------
    U : array, shape (p, r)
    s : array, shape (r,)
        Decreasing; those that are rounding next to the largest are left out, so r may be less than `rank`.
    Vt : array, shape (r, q)

    Raises
    ------
    InvalidInputError
        For an unknown method, or Lanczos on another array library.

    Notes
    -----
    Cost O(p q min(p, q)), or O(p q r) for each of a few dozen steps of "lanczos" or of the two of "randomized".
    Deterministic: what is random in "randomized" is drawn from a fixed seed.

    References
    ----------
    Halko, Martinsson and Tropp (2011), *Finding structure with randomness*, Algorithm 4.4.
    """
    if method not in METHODS:
        raise InvalidInputError(f"the method of a truncated SVD is one of {', '.join(METHODS)}; got {method!r}")
    small = min(A.shape)
    if method == "auto":
        large = small > _SMALL and 5 * rank < small
        method = "lanczos" if large and is_numpy_array(A) and A.dtype == np.float64 else "lapack"
    if method == "lanczos" and not is_numpy_array(A):
        raise InvalidInputError("Lanczos works on NumPy arrays only; use method='lapack' or 'randomized'")
    none = not bool(namespace(A).any(A != 0))  # where ARPACK cannot start
    if method == "lapack" or rank >= small - 1 or rank == 0 or none:
        U, s, Vt = namespace(A).linalg.svd(A, full_matrices=False)
    elif method == "lanczos":
        U, s, Vt = _lanczos(A, rank, start)
    else:
        U, s, Vt = _block_power(A, rank, start)
    return _leading(A, U, s, Vt, rank)


def _leading(A: Array, U: Array, s: Array, Vt: Array, rank: int) -> tuple[Array, Array, Array]:
    xp = namespace(s)
    if s.shape[0]:
        rounding = max(A.shape) * float(xp.finfo(s.dtype).eps) * float(s[0])
        rank = min(rank, int(xp.count_nonzero(s > rounding)))
    return xp.asarray(U[:, :rank], copy=True), s[:rank], xp.asarray(Vt[:rank, :], copy=True)


def _lanczos(A: np.ndarray, rank: int, start: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from scipy.sparse.linalg import ArpackError, svds  # not for everybody: it takes a while to import

    size = np.max(np.abs(A))
    unit = A / size  # ARPACK multiplies with A'A, whose entries would leave the range much earlier
    v0 = np.random.default_rng(0).standard_normal(min(A.shape)).astype(A.dtype)
    if start is not None and start.shape[1]:
        known = np.sum(start, axis=1)
        known = unit @ known if A.shape[0] < A.shape[1] else known  # ARPACK works in the smaller of the two spaces
        length = np.linalg.norm(known)
        v0 = v0 * (length / np.linalg.norm(v0) / 100) + known if length > 0 else v0
    try:
        U, s, Vt = svds(unit, k=rank, v0=v0, solver="arpack")
    except ArpackError:  # it has not converged, or broken down
        U, s, Vt = np.linalg.svd(unit, full_matrices=False)
    order = np.argsort(-s, kind="stable")
    return U[:, order], size * s[order], Vt[order]


def _block_power(A: Array, rank: int, start: Array | None) -> tuple[Array, Array, Array]:
    xp = namespace(A)
    width = min(rank + _OVERSAMPLING, *A.shape)
    block = np.random.default_rng(0).standard_normal((A.shape[1], width))
    if start is not None:
        block[:, : min(width, start.shape[1])] = to_numpy(start)[:, :width]
    Y = A @ xp.asarray(block, dtype=A.dtype)
    for _ in range(_POWER_STEPS):
        Q, _ = xp.linalg.qr(A.T @ xp.linalg.qr(Y)[0])
        Y = A @ Q
    Q, _ = xp.linalg.qr(Y)
    inner, s, Vt = xp.linalg.svd(Q.T @ A, full_matrices=False)
    return Q @ inner, s, Vt
