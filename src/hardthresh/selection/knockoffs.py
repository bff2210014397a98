"""Selection of columns from the importances of columns and their knockoffs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_ROUNDING = 1e-12
"""A mean of e-values counts as equal to what it is compared with up to this share: thousands of units of rounding."""


def difference(own: np.ndarray, of_knockoff: np.ndarray) -> np.ndarray:
    """Return the importance of columns less that of their knockoffs."""
    return np.asarray(own - of_knockoff)


def signed_maximum(own: np.ndarray, of_knockoff: np.ndarray) -> np.ndarray:
    """Return the larger importance of each pair, negative if it is the knockoff's; 0 if they are equal."""
    return np.asarray(np.maximum(own, of_knockoff) * np.sign(own - of_knockoff))


def knockoff_statistics(
    importances: Callable[[np.ndarray], np.ndarray],
    contrast: Callable[[np.ndarray, np.ndarray], np.ndarray],
    columns: np.ndarray,
    copies: np.ndarray,
    beside: np.ndarray,
    swapped: np.ndarray,
) -> np.ndarray:
    """Return by how much each column is more important than its knockoff.

    Parameters
    ----------
    importances : callable
        Takes a table and returns the importance of each of its columns, whatever their order.
    contrast : callable
        Takes the importances of columns and of their knockoffs, and returns W: `difference` or `signed_maximum`. If the
        two change places, the sign of W has to change, and nothing else.
    columns, copies : array, shape (n, m)
        The columns and their knockoffs.
    beside : array, shape (n, p)
        Columns without a knockoff, the last ones of the table.
    swapped : array of bool, shape (m,)
        Which columns take the place of their knockoff in the table. Drawn at random, it keeps what depends on the order
        after all, such as ties, from favouring columns over knockoffs.

    Returns
    -------
    array, shape (m,)
        W. If a column and its knockoff change places, the sign of their W changes, and no other.
    """
    m = columns.shape[1]
    first, second = np.where(swapped, copies, columns), np.where(swapped, columns, copies)
    values = importances(np.column_stack([first, second, beside]))
    statistics = contrast(values[:m], values[m : 2 * m])
    return np.where(swapped, -statistics, statistics) + 0.0  # which turns -0 into 0


def smallest_proportions(statistics: np.ndarray, offset: int = 1) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the possible thresholds, and the estimated proportion of false discoveries at each.

    .. math:: \hat q(t) = \frac{\text{offset} + \#\{j : W_j \le -t\}}{\max(1, \#\{j : W_j \ge t\})}

    Parameters
    ----------
    statistics : array, shape (d,)
        W: large if the column says more than its knockoff, with independent signs where it is null.
    offset : {1, 0}
        1 for control of the false discovery rate; 0 for that of the modified one, whose denominator is larger by
        1 / q.

    Returns
    -------
    thresholds : array
        The different sizes of W that are not 0, increasing.
    proportions : array
        The estimate at each.
    """
    sizes = np.unique(np.abs(statistics[statistics != 0]))
    increasing = np.sort(statistics)
    positive = increasing.size - np.searchsorted(increasing, sizes, side="left")
    negative = np.searchsorted(increasing, -sizes, side="right")
    return sizes, (offset + negative) / np.maximum(positive, 1)


def knockoff_threshold(statistics: np.ndarray, fdr: float, offset: int = 1) -> float:
    r"""Return the smallest threshold at which the estimated proportion of false discoveries is at most a level.

    .. math:: T = \min\{t > 0 : \frac{\text{offset} + \#\{j : W_j \le -t\}}{\max(1, \#\{j : W_j \ge t\})}
              \le q\}

    Parameters
    ----------
    statistics : array, shape (d,)
        W, positive if the column is more important than its knockoff, and negative if it is less important.
    fdr : float
        q, the level, in (0, 1).
    offset : {1, 0}
        1 controls the false discovery rate, 0 the modified one.

    Returns
    -------
    float
        The threshold T; infinity if there is none. With ``offset=1`` there is none if fewer than 1 / q statistics are
        positive.

    Notes
    -----
    Guarantee: if the signs of W of the null columns are independent and symmetric, given all absolute values and the
    other signs, the expected proportion of null columns among those with W >= T is at most q with ``offset=1`` (Theorem
    2 of Barber and Candes). With ``offset=0`` the expectation of V / (R + 1/q) is at most q, if V of R columns are null
    (Theorem 1).

    References
    ----------
    Barber and Candes (2015), *Controlling the false discovery rate via knockoffs*, Annals of Statistics 43.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.selection import knockoff_threshold
    >>> W = np.array([9.0, 8.0, 7.0, 6.0, -1.0, 0.5])
    >>> knockoff_threshold(W, 0.25), knockoff_threshold(W, 0.2), knockoff_threshold(W, 0.2, offset=0)
    (6.0, inf, 0.5)
    """
    sizes, proportions = smallest_proportions(statistics, offset)
    return float(sizes[proportions <= fdr].min(initial=np.inf))


def knockoff_e_values(statistics: np.ndarray, threshold: float) -> np.ndarray:
    r"""Return the knockoff e-value of each column, :math:`d \, 1[W_j \ge T] / (1 + \#\{i : W_i \le -T\})`.

    Parameters
    ----------
    statistics : array, shape (d,)
        W, positive if the column is more important than its knockoff, and negative if it is less important.
    threshold : float
        T, from `knockoff_threshold` at any level.

    Returns
    -------
    array, shape (d,)
        The e-values. The expected sum over the null columns is at most d (Ren and Barber 2024); this also holds for the
        mean over several dependent draws of the knockoffs.

    References
    ----------
    Ren and Barber (2024), *Derandomised knockoffs: leveraging e-values for false discovery rate control*, Journal of
    the Royal Statistical Society B 86.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.selection import knockoff_e_values
    >>> knockoff_e_values(np.array([9.0, 8.0, 7.0, 6.0, -1.0, 0.5]), threshold=1.0)
    array([3., 3., 3., 3., 0., 0.])
    """
    return np.asarray(statistics.size * (statistics >= threshold) / (1 + np.count_nonzero(statistics <= -threshold)))


def select_by_e_values(e_values: np.ndarray, fdr: float) -> np.ndarray:
    r"""Return the columns that the Benjamini-Hochberg procedure for e-values (e-BH) selects.

    It selects the k columns with the largest e-values, for the largest k such that each of them is at least d / (q k).

    Parameters
    ----------
    e_values : array, shape (d,)
        Non-negative numbers.
    fdr : float
        q, the level, in (0, 1).

    Returns
    -------
    array of int
        The columns, increasing.

    Notes
    -----
    Guarantee: the false discovery rate is at most q if the e-values of the null columns have an expected sum of at most
    d, under any dependence (Wang and Ramdas 2022, *False discovery rate control with e-values*, Journal of the Royal
    Statistical Society B 84).

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.selection import select_by_e_values
    >>> select_by_e_values(np.array([0.0, 8.0, 9.0, 1.0]), 0.25)
    array([1, 2])
    """
    d = e_values.size
    decreasing = np.sort(e_values)[::-1]
    enough = np.flatnonzero(decreasing * (fdr * np.arange(1, d + 1)) >= d * (1.0 - _ROUNDING))
    if not enough.size:
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(e_values >= decreasing[enough[-1]])
