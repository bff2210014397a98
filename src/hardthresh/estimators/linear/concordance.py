"""Harrell's concordance index C of predictions and censored times."""

from __future__ import annotations

import numpy as np


def concordance(y: np.ndarray, u: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
    r"""Return Harrell's C, the share of comparable pairs whose predictions are in the right order.

    .. math:: C = \frac{\sum_{(i, j)} s_i s_j \bigl(1[u_i > u_j] + \tfrac{1}{2} 1[u_i = u_j]\bigr)}
                       {\sum_{(i, j)} s_i s_j}

    over the pairs of one stratum with an event i and a j that lives longer: :math:`t_i < t_j`, or
    :math:`t_i = t_j` and j is censored.

    Parameters
    ----------
    y : array, shape (n, 2) or (n, 3)
        Times, events, and strata.
    u : array, shape (n,)
        Predictions: larger where an event is expected earlier.
    sample_weight : array, shape (n,), optional
        Non-negative weights s.

    Returns
    -------
    float
        NaN if no pair can be compared.

    Notes
    -----
    Cost: O(n log n) for each doubling of the number of times. Each pair is counted once, at the highest binary digit in
    which the places of its times differ.

    References
    ----------
    F. E. Harrell, R. M. Califf, D. B. Pryor, K. L. Lee and R. A. Rosati (1982), Evaluating the yield of medical tests,
    *JAMA* 247, 2543-2546.

    Examples
    --------
    >>> import numpy as np
    >>> concordance(np.array([[1.0, 1.0], [2.0, 0.0], [3.0, 1.0]]), np.array([3.0, 1.0, 2.0]))
    1.0
    """
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    event = y[:, 1] > 0
    place = 2 * np.unique(y[:, 0], return_inverse=True)[1] + ~event  # censored times are after events at the same time
    stratum = np.unique(y[:, 2], return_inverse=True)[1] if y.shape[1] == 3 else np.zeros(len(y), dtype=np.int64)
    rank = np.unique(u, return_inverse=True)[1]
    order = np.argsort(rank, kind="stable")
    place, stratum, rank = place[order], stratum[order], rank[order]
    event, weights = event[order], weights[order]
    ordered = tied = total = 0.0
    digits = int(place.max(initial=0)).bit_length()
    for digit in range(digits):
        block = (stratum << (digits - digit)) + (place >> (digit + 1))
        late = (place >> digit) & 1 == 1
        order = np.argsort(block, kind="stable")  # by block, and in each by prediction
        in_block, in_rank = block[order], rank[order]
        later = np.where(late, weights, 0.0)[order]
        first = np.where(event & ~late, weights, 0.0)[order]
        starts = np.flatnonzero(np.r_[True, in_block[1:] != in_block[:-1]])
        ties = np.flatnonzero(np.r_[True, (in_block[1:] != in_block[:-1]) | (in_rank[1:] != in_rank[:-1])])
        of_tie_late, of_tie_first = np.add.reduceat(later, ties), np.add.reduceat(first, ties)
        sums = np.cumsum(of_tie_late)
        block_of_tie = np.searchsorted(starts, ties, side="right") - 1
        first_tie = np.searchsorted(ties, starts)
        before = sums - of_tie_late
        below = before - before[first_tie][block_of_tie]
        all_late = np.add.reduceat(later, starts)
        ordered += float(of_tie_first @ below)
        tied += float(of_tie_first @ of_tie_late)
        total += float(np.add.reduceat(first, starts) @ all_late)
    return (ordered + 0.5 * tied) / total if total > 0 else float("nan")
