"""Directions along which a mean loss decreases indefinitely: separated classes, dummies of zero counts."""

from __future__ import annotations

import numpy as np

from hardthresh.arrays import namespace
from hardthresh.core.typing import Array
from hardthresh.designs import Design
from hardthresh.losses.contrasts import Contrasts

_FAR = 100.0
"""Length, in units of the prediction, of the move along a direction: exp(-100) is nothing next to any other loss."""
_TOLERANCE, _NOTHING = 1e-7, 1e-6
"""Tolerance of the constraints, as in the solver of linear programs, and the size of a move that counts as none."""
_ROUNDING = 1e-11
"""Share of the largest entry of a direction that others, which would be 0, may have by the rounding of the program.
Arbitrary: it had 1e-13 for classes of which one is separated."""
_ROWS = 1000
"""With how many rows the search begins, and how many it takes in at a time; not crucial."""


def falling_direction(contrasts: Contrasts, design: Design, slopes: Array, gradient: Array) -> np.ndarray | None:
    """Return a direction of the coefficients along which a mean loss decreases indefinitely, or None.

    Parameters are those of `has_no_recession`. Where the gradient is small the slopes may show that there is none; else
    a linear program decides.

    Returns
    -------
    array, shape (s,) or (s, q), or None
    """
    if has_no_recession(contrasts, design, slopes, gradient):
        return None
    rows = slice(None) if contrasts.counted.all() else contrasts.counted
    v = recession_direction(contrasts.matrix(design)[rows], contrasts.signs[rows])
    return None if v is None else contrasts.direction(v)


def recession_direction(X: np.ndarray, signs: np.ndarray) -> np.ndarray | None:
    r"""Return a direction v along which no loss rises and some fall indefinitely, or None.

    .. math:: \max_v \sum_i s_i x_i^\top v \quad \text{such that} \quad
              s_i x_i^\top v \ge 0, \quad x_i^\top v = 0 \text{ where } s_i = 0, \quad |v_j| \, \max_i |x_{ij}| \le 1

    Parameters
    ----------
    X : array, shape (n, s)
        The columns.
    signs : array, shape (n,)
        The direction of its prediction in which each loss falls indefinitely, +1 or -1; 0 where it has a minimiser.

    Returns
    -------
    array, shape (s,), or None
        Of a length that moves the prediction that moves most by 100, where what is left of the loss is rounding.

    Notes
    -----
    Cost: linear programs with s unknowns and some of the rows, to which those are added whose loss rises most, until
    none rises; each time X is read once.

    References
    ----------
    K. Konis (2007), *Linear programming algorithms for detecting separated data in binary logistic regression models*.
    """
    size = np.maximum(X.max(axis=0, initial=0.0), -X.min(axis=0, initial=0.0))
    used = np.flatnonzero(size > 0)
    Z, scale = X if used.size == size.size else X[:, used], size[used]
    gain = (signs @ Z) / scale
    rows = np.unique(np.linspace(0, len(Z) - 1, min(_ROWS, len(Z))).astype(int))
    while True:
        x = _best_direction(gain, Z[rows] / scale, signs[rows])
        if x is None or gain @ x <= _NOTHING:  # fewer rows leave more directions, none of which gains anything
            return None
        moved = Z @ (x / scale)
        rises = np.where(signs != 0, -signs * moved, np.abs(moved))
        missed = np.setdiff1d(np.flatnonzero(rises > _TOLERANCE), rows)
        if missed.size == 0:
            break
        worst = np.argsort(-rises[missed], kind="stable")[:_ROWS]
        rows = np.union1d(rows, missed[worst])
    farthest = float(np.max(np.abs(moved), initial=0.0))
    rounding = 8.0 * float(np.finfo(np.float64).eps * np.abs(x).sum())  # of entries that would be 0, as of two classes
    allowed = np.abs(Z) @ ((_NOTHING * np.abs(x) + _ROUNDING * np.max(np.abs(x))) / scale) + rounding
    if farthest <= _NOTHING or np.any(rises > allowed):
        return None  # the program misses what is small next to the largest entry of a column
    v = np.zeros(X.shape[1])
    v[used] = _FAR / farthest * x / scale
    return v


def has_no_recession(contrasts: Contrasts, design: Design, slopes: Array, gradient: Array) -> bool:
    r"""Return whether the slopes at one point alone show that no direction as in `recession_direction` exists.

    Along such a direction v no loss rises, so :math:`\sum_i |\lambda_i x_i^\top v| = |g^\top v| \le \|g\| \|v\|`
    for the derivatives :math:`\lambda` in contrasts and the gradient g; but the sum is at least
    :math:`\mu \|v\| / R` for the smallest eigenvalue :math:`\mu` of :math:`\sum_i |\lambda_i| x_i x_i^\top` and the
    largest norm R of a row.

    Parameters
    ----------
    contrasts : Contrasts
        The functions of the predictions, whose rows :math:`x_i` are.
    design : Design, shape (n, s)
        The columns.
    slopes : array, shape (n,) or (n, q)
        The derivatives of the mean loss in the predictions.
    gradient : array, shape (s,) or (s, q)
        X' slopes.

    Returns
    -------
    bool
        False if nothing is known.

    Notes
    -----
    The sum over some of the contrasts is not larger, so it is enough to examine some.
    """
    X, own = contrasts.some(design, slopes)
    weights, g = np.abs(own), contrasts.gradient(gradient)
    size = np.max(np.abs(X), axis=0, initial=0.0)
    used = np.flatnonzero(size > 0)
    if not used.size:
        return True
    Z = X[:, used] / size[used]
    eigenvalues = np.linalg.eigvalsh(Z.T @ (weights[:, None] * Z))
    longest = np.sqrt(np.max(np.einsum("ij,ij->i", Z, Z)))
    rounding = used.size * float(namespace(gradient).finfo(gradient.dtype).eps) * eigenvalues[-1]
    return bool(eigenvalues[0] - rounding > 2.0 * longest * np.linalg.norm(g[used] / size[used]))


def _best_direction(gain: np.ndarray, Z: np.ndarray, signs: np.ndarray) -> np.ndarray | None:
    """Return the direction, of entries up to 1, that gains most and along which no loss of some rows Z rises."""
    from scipy.optimize import linprog  # an import of 0.1 seconds that hardly anybody needs

    may_fall = signs != 0
    found = linprog(
        -gain,
        A_ub=-(signs[may_fall, None] * Z[may_fall]) if may_fall.any() else None,
        b_ub=np.zeros(np.count_nonzero(may_fall)) if may_fall.any() else None,
        A_eq=Z[~may_fall] if not may_fall.all() else None,
        b_eq=np.zeros(np.count_nonzero(~may_fall)) if not may_fall.all() else None,
        bounds=(-1.0, 1.0),
        method="highs",
    )
    x: np.ndarray | None = found.x
    return x
