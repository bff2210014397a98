"""Small linear algebra that is shared: products, symmetric parts, conjugate gradients, safe solves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf, isqrt

import numpy as np
from array_api_compat import device
from scipy.linalg import get_lapack_funcs
from scipy.sparse import csr_array

from hardthresh.core.choosing import choose, choose_array, larger, power_above, ratio_if
from hardthresh.core.lazy import at_hand, inner, scalar
from hardthresh.core.threads import blas_libraries, in_pieces
from hardthresh.core.typing import Array, is_numpy

from .namespace import namespace
from .pieces import THINNEST, number_of_pieces, ranges, split, sum_in_order

blas_libraries()  # found on import: the first fit of a small table would take several times as long as the others

_SAFE = 1e3  # times rounding: smaller pivots are left to the eigenvalues
DEPENDENT = 1e-9
"""A column is a combination of others if they leave less than this share of its squares unexplained, by products of
columns; the compiled kernel has the same number. Of 240 fits, most of them to nearly dependent columns, f is higher in
4 and lower in 3 with 1e-10, higher in 4 with 1e-8, and higher in 28 and lower in 10 with 1e-6."""
_LARGE, _SPARSE = 500, 20
"""From this side on, a matrix with fewer than 1/20 of its entries is multiplied as a sparse one."""
_SMALL = 16  # times fewer numbers than A has are in partial sums: their additions cost little next to the product
_RELEASED = 501  # numbers from which on matmul of NumPy 2 releases the interpreter's lock
_ATTAINABLE = 10
"""Units of rounding in the residual that conjugate gradients attain. Of the Newton systems of 40 matrix completions in
float32, a unit leaves 117 of 246 that run to their limit of 1024 products, four units 14, and ten none."""

_UNASKED = 8
"""Products that a device makes before the host asks whether conjugate gradients have ended."""


def product(A: Array, B: Array) -> Array:
    """Return A B, for a large product of NumPy arrays in pieces on several threads.

    Parameters
    ----------
    A : array, shape (m, n)
        The large factor.
    B : array, shape (n,) or (n, p)
        The other factor.

    Returns
    -------
    array, shape (m,) or (m, p)
        Bitwise identical for any number of threads.

    Notes
    -----
    If the columns of A are contiguous and the result is small, A is split into columns, whose products are added in
    order; otherwise it is split into rows. ``numpy.dot`` always releases the interpreter lock, but copies arrays that
    are not contiguous; ``numpy.matmul`` releases it if a piece returns enough numbers.
    """
    width = 1 if B.ndim == 1 else B.shape[1]
    pieces = number_of_pieces(A, A.shape, width) if is_numpy(B) else 1
    turned = B.ndim == 2 and is_numpy(A) and (A.flags.f_contiguous or A.shape[0] < A.shape[1])
    if pieces == 1:
        return _turned(np.matmul, A, B) if turned else A @ B
    m, n = A.shape
    released = m * width >= pieces * _RELEASED
    summed = _SMALL * pieces * m * width <= A.size or not released
    if A.flags.f_contiguous and summed:
        dot = partial(_turned, np.dot) if turned else np.dot
        return sum_in_order(in_pieces(lambda some: dot(A[:, some], B[some]), ranges(n, pieces)))
    either = np.dot if A.flags.c_contiguous and not released else np.matmul
    multiply = partial(_turned, either) if turned else either
    return np.concatenate(in_pieces(lambda rows: multiply(A[rows], B), ranges(m, max(1, min(pieces, m // THINNEST)))))


def _turned(multiply: Callable[[Array, Array], Array], A: Array, B: Array) -> Array:
    """Return A B as (B' A')'; for a few columns B that is faster where A is the transpose of an array in C order."""
    return multiply(B.T, A.T).T


def gram_product(X: Array) -> Array:
    """Return X'X, for a large NumPy array in pieces on several threads.

    Parameters
    ----------
    X : array, shape (n, d)
        The matrix.

    Returns
    -------
    array, shape (d, d)
        Bitwise identical for any number of threads.
    """
    n, d = X.shape
    pieces = number_of_pieces(X, X.shape, d / 2)
    if pieces == 1:
        return X.T @ X
    if pieces * d <= n:
        return sum_in_order(in_pieces(lambda rows: X[rows].T @ X[rows], ranges(n, pieces)))
    blocks = ranges(d, max(2, isqrt(2 * pieces)))
    pairs = [(left, right) for i, left in enumerate(blocks) for right in blocks[: i + 1]]
    gram = np.empty((d, d), dtype=X.dtype)

    def fill(pair: tuple[slice, slice]) -> None:
        left, right = pair
        gram[left, right] = X[:, left].T @ X[:, right]
        if left != right:
            gram[right, left] = gram[left, right].T

    in_pieces(fill, pairs)
    return gram


def column_squares(X: np.ndarray) -> np.ndarray:
    """Return the sum of the squares of each column, for a large array in pieces on several threads.

    Parameters
    ----------
    X : array, shape (n, d)
        A NumPy array of floating-point numbers.

    Returns
    -------
    array, shape (d,)
        Bitwise identical for any number of threads; not finite if an entry is not, or if a sum overflows.
    """
    pieces = split(X)
    with np.errstate(over="ignore"):
        parts = in_pieces(lambda some: np.einsum("ij,ij->j", some, some), pieces)  # without a copy
        return sum_in_order(parts) if pieces[0].shape[1] == X.shape[1] else np.concatenate(parts)


def times_transpose(A: Array, B: Array) -> Array:
    """Return A B', where a large NumPy matrix B with few non-zeros is multiplied as a sparse matrix.

    Parameters
    ----------
    A : array, shape (m, n)
        The left factor.
    B : array, shape (p, n)
        The right factor, not yet transposed.

    Returns
    -------
    array, shape (m, p)
    """
    if is_numpy(B) and B.shape[1] >= _LARGE and _SPARSE * np.count_nonzero(B) < B.size:
        image: Array = (csr_array(B) @ A.T).T
        return image
    return A @ B.T


def symmetric_part(A: Array, diagonal: Array | None = None) -> Array:
    """Return (A + A') / 2 plus a diagonal matrix: a new array that is exactly symmetric.

    Parameters
    ----------
    A : array, shape (n, n)
        A matrix that is symmetric up to rounding.
    diagonal : array, shape (n,), optional
        The numbers to add to the diagonal.

    Returns
    -------
    array, shape (n, n)
    """
    even = A + A.T
    even *= 0.5
    if diagonal is None:
        return even
    if is_numpy(even):
        np.einsum("ii->i", even)[...] += diagonal
        return even
    return even + namespace(even).eye(even.shape[0], dtype=even.dtype, device=device(even)) * diagonal


def conjugate_gradients(apply: Callable[[Array], Array], b: Array, iterations: int, tol: float = 0.0) -> Array:
    """Return an approximate solution x of A x = b for a symmetric positive semidefinite A, from x = 0.

    Parameters
    ----------
    apply : callable
        Multiplies A with an array like `b`.
    b : array
        Right-hand side.
    iterations : int
        Largest number of products with A.
    tol : float
        Stop when the norm of the residual is at most tol times that of `b`.

    Notes
    -----
    Every iterate x satisfies b'x >= 0, so stopping early still gives a descent direction; a direction without curvature
    ends the iteration. So does a residual of norm at most 10 eps norm(A) norm(x), with the largest curvature of a
    direction for norm(A): iterates hardly get closer in this precision (Greenbaum 1997). In the null space of A a
    product is rounding, and so is the curvature: a step that is divided by it makes the residual grow by 1 / eps. In
    exact arithmetic it grows by no more than the square root of the condition number, which for numbers up to 1 / eps
    is 1 / sqrt(eps); the limit is in between. A device may make some products after the end, which change nothing.

    References
    ----------
    A. Greenbaum (1997), Estimating the attainable accuracy of recursively computed residual methods, *SIAM Journal on
    Matrix Analysis and Applications* 18, 535-551.
    """
    xp = namespace(b)
    size = inner(b, b) ** 0.5
    alive = (size > 0.0) & (size < inf)
    if at_hand(alive) and not alive:
        return xp.zeros_like(b)
    # in which no product leaves the range; a power of two rounds nothing
    unit = choose(alive, power_above(size), 1.0)
    b = (1.0 / unit) * b
    x = xp.zeros_like(b)
    residual, direction = b, b
    rho = inner(residual, residual)
    enough = tol * tol * rho
    eps = float(xp.finfo(b.dtype).eps)
    growth = eps ** (-4 / 3)  # of the square
    largest: float = 0.0  # curvature of a direction
    for number in range(1, iterations + 1):
        alive = alive & (rho > enough) & (rho > 0.0)
        asked = at_hand(alive) or number % _UNASKED == 0 or (tol > 0.0 and number == iterations)
        if asked and not alive:
            break
        image = apply(direction)
        curvature = inner(direction, image)
        alive = alive & (curvature > 0.0)
        if at_hand(alive) and not alive:
            break
        largest = larger(largest, ratio_if(alive, curvature, inner(direction, direction)))
        step = ratio_if(alive, rho, curvature)
        residual = residual - step * image
        rho, before = inner(residual, residual), rho
        alive = alive & (rho <= growth * before)
        if at_hand(alive) and not alive:
            break
        x = choose_array(alive, x + step * direction, x)
        alive = alive & (rho**0.5 > _ATTAINABLE * eps * largest * inner(x, x) ** 0.5)
        direction = residual + ratio_if(alive, rho, before) * direction
    return unit * x


def inverse_semidefinite(A: Array) -> Array:
    """Return the pseudo-inverse of a symmetric positive semidefinite matrix in the units of its diagonal.

    The matrix is first scaled to unit diagonal, so that the threshold does not depend on the units of the columns.
    Eigenvalues below n eps times the largest are treated as zero, so duplicate columns share their weight. Cost:
    O(n^3).

    Parameters
    ----------
    A : array, shape (n, n)
        The matrix.

    Returns
    -------
    array, shape (n, n)
    """
    xp = namespace(A)
    if A.shape[0] == 0:
        return A
    diagonal = xp.linalg.diagonal(A)
    scale = xp.where(diagonal > 0, 1 / xp.sqrt(xp.where(diagonal > 0, diagonal, xp.ones_like(diagonal))), 0 * diagonal)
    unit = A * scale[:, None] * scale[None, :]
    inverse = inverse_definite(unit) if is_numpy(A) else None
    if inverse is not None:
        return inverse * scale[:, None] * scale[None, :]
    values, vectors = xp.linalg.eigh(unit)
    cut = A.shape[0] * float(xp.finfo(A.dtype).eps) * scalar(xp.max(values))
    kept = values > cut
    inverse = xp.where(kept, 1 / xp.where(kept, values, xp.ones_like(values)), xp.zeros_like(values))
    return ((vectors * inverse[None, :]) @ vectors.T) * scale[:, None] * scale[None, :]


def inverse_definite(A: np.ndarray) -> np.ndarray | None:
    """Return the inverse of a symmetric matrix of unit diagonal, or None if it is not safely positive definite.

    Parameters
    ----------
    A : array, shape (n, n)
        The matrix.

    Returns
    -------
    array, shape (n, n), or None
    """
    if A.shape[0] == 0:
        return A
    potrf, potri = get_lapack_funcs(("potrf", "potri"), (A,))
    factor, failed = potrf(A, lower=True)
    if failed or np.min(factor.diagonal()) ** 2 < _SAFE * A.shape[0] * np.finfo(A.dtype).eps:
        return None
    lower, failed = potri(factor, lower=True)  # with zeros above the diagonal, as potrf leaves them
    if failed:
        return None
    inverse: np.ndarray = lower + lower.T
    np.einsum("ii->i", inverse)[...] = lower.diagonal()
    return inverse


def is_regular(A: np.ndarray) -> bool:
    """Return whether a symmetric positive semidefinite matrix is non-singular, beyond rounding.

    It is if the regression of each column on the previous ones leaves more than a billionth of it unexplained.

    Parameters
    ----------
    A : array, shape (n, n)
        The matrix, of float64.

    Returns
    -------
    bool
    """
    diagonal = A.diagonal()
    if not diagonal.size or not bool(np.all((diagonal > 0.0) & (diagonal < inf))):
        return not diagonal.size
    scale = 1.0 / np.sqrt(diagonal)
    potrf = get_lapack_funcs("potrf", (A,))
    factor, failed = potrf(A * scale * scale[:, None], lower=True)
    return bool(not failed and np.min(factor.diagonal()) ** 2 > DEPENDENT)


def inverse_factor(A: np.ndarray, eps: float) -> np.ndarray:
    """Return F with F' A F = I for a positive semidefinite matrix of unit diagonal, with as many columns as its rank.

    Rows and columns of A that depend linearly on others, up to 1000 n eps times the diagonal, are left out, and their
    rows of F are zero. So F F' is a generalised inverse of A: the inverse of a definite submatrix of A. It is not
    specified which of several dependent columns are left out. Cost: O(n^3).

    Parameters
    ----------
    A : array, shape (n, n)
        The matrix; zeros on its diagonal are columns of zeros.
    eps : float
        The rounding of its entries.
    """
    n = A.shape[0]
    factor = np.zeros((n, n))
    if n == 0:
        return factor
    pstrf = get_lapack_funcs("pstrf", (factor,))
    upper, order, rank, _ = pstrf(A, tol=_SAFE * n * eps)
    factor[order[:rank] - 1, :rank] = np.linalg.inv(np.triu(upper[:rank, :rank]))
    return factor[:, :rank]


def solve_semidefinite(A: Array, b: Array) -> Array:
    """Return a solution x of A x = b for a symmetric positive semidefinite A, singular or not.

    Parameters
    ----------
    A : array, shape (n, n)
        The matrix.
    b : array, shape (n,) or (n, m)
        The right-hand side.

    Returns
    -------
    array, like b
    """
    return inverse_semidefinite(A) @ b
