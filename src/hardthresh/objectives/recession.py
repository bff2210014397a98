"""Directions along which a sum of pointwise losses falls for ever: separated classes, dummies of zero counts."""

from __future__ import annotations

import numpy as np

_FAR = 100.0
"""How far, in units of the prediction, a direction is followed: exp(-100) is nothing next to any other loss."""


def recession_direction(X: np.ndarray, signs: np.ndarray) -> np.ndarray | None:
    r"""Return a direction v along which no loss rises and some fall for ever, or None.

    .. math:: \max_v \sum_i s_i x_i^\top v \quad \text{such that} \quad
              s_i x_i^\top v \ge 0, \quad x_i^\top v = 0 \text{ where } s_i = 0, \quad |v_j| \, \max_i |x_{ij}| \le 1

    Parameters
    ----------
    X : array, shape (n, s)
        The columns.
    signs : array, shape (n,)
        The direction of its prediction in which each loss falls for ever, +1 or -1; 0 where it has a minimiser.

    Returns
    -------
    array, shape (s,), or None
        Of a length that moves the prediction that moves most by 100, where what is left of the loss is rounding.

    Notes
    -----
    Cost: a linear program with s unknowns and n rows.

    References
    ----------
    K. Konis (2007), *Linear programming algorithms for detecting separated data in binary logistic regression models*.
    """
    from scipy.optimize import linprog  # an import of 0.1 seconds that hardly anybody needs

    size = np.max(np.abs(X), axis=0, initial=0.0)
    used = np.flatnonzero(size > 0)
    Z = X[:, used] / size[used]
    may_fall = signs != 0
    found = linprog(
        -(signs @ Z),
        A_ub=-(signs[may_fall, None] * Z[may_fall]) if may_fall.any() else None,
        b_ub=np.zeros(np.count_nonzero(may_fall)) if may_fall.any() else None,
        A_eq=Z[~may_fall] if not may_fall.all() else None,
        b_eq=np.zeros(np.count_nonzero(~may_fall)) if not may_fall.all() else None,
        bounds=(-1.0, 1.0),
        method="highs",
    )
    if found.x is None:
        return None
    moved = Z @ found.x
    farthest = float(np.max(np.abs(moved), initial=0.0))
    if farthest <= 1e-6:  # the solver's own tolerance is 1e-7
        return None
    v = np.zeros(X.shape[1])
    v[used] = _FAR / farthest * found.x / size[used]
    return v
