"""Least squares on a few of many columns: adding, dropping and exchanging columns on a tableau of the Gram matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtrs

_TIE = 1 - 1e-7
"""Gains above this share of the best one are equal to it: more than the error that `_ERROR` allows a sum of them."""
_DEPENDENT = 1e-9
"""A column is a combination of the chosen ones if they leave less than this share of it unexplained."""
_DOUBTFUL = 1e-3
"""A column may bring errors in if the chosen ones leave less than this share of it: then the error is estimated."""
_ERROR = 1e-10
"""From this error on, as a share of a coefficient, the tableau is computed anew."""


class Tableau:
    r"""The minimiser of a quadratic over chosen columns, with the gain of every other column.

    .. math:: q(b) = \tfrac{1}{2} b^\top G b - c^\top b, \qquad b_j = 0 \text{ for } j \notin S

    With A the inverse of G_SS, the tableau holds b and A, the gradient's negative :math:`g = c - G b`, the
    regressions :math:`U = A \, G_{S \cdot}` of all columns on the chosen ones, and
    :math:`h_j = G_{jj} - G_{jS} U_j`, what these leave of each column unexplained. Adding j lowers q by
    :math:`g_j^2 / 2h_j`, dropping i raises it by :math:`b_i^2 / 2A_{ii}`, and either is one update of rank one.

    Parameters
    ----------
    gram : array, shape (p, p)
        Products of p >= m columns, positive semidefinite, float64. It is shared, never written to.
    slope : array, shape (m,)
        :math:`c - G b` at the coefficients `coef`; c itself if these are zero.
    chosen : sequence of int
        S, the `free` ones first.
    coef : array, shape (s,), optional
        Coefficients of the chosen columns, of the right signs; default zero. Everything is computed as a change from
        them, so that large coefficients cause no rounding.
    free : int
        How many of the first chosen columns may never leave.
    columns : array of int, shape (m,), optional
        The m of the p columns that the tableau is about, so that G is their block of the matrix; default all.
    signs : array of shape (m,), optional
        +1 or -1 for the columns whose coefficient may have this sign only, 0 for the others.

    Attributes
    ----------
    decrease : float
        How much lower q is than at `coef`.

    Notes
    -----
    A workspace, not a value: its methods change it, and `copy` is cheap. A change costs O(s m) for s chosen columns,
    `best_exchange` the same with a larger constant. All tolerances are relative to the scale of each column.

    If columns are nearly collinear, the rounding of an update is divided by the small share of a column that the others
    leave unexplained, and grows from one update to the next. It is estimated by the regressions of the chosen columns
    on each other, which must be 1 or 0. If they are off by more than 1e-10, the tableau is computed anew from the Gram
    matrix, by a Cholesky factor, in O(s^2 m).

    References
    ----------
    The sweep operator: Goodnight (1979), *A tutorial on the SWEEP operator*.
    """

    def __init__(
        self,
        gram: np.ndarray,
        slope: np.ndarray,
        chosen: Sequence[int] = (),
        coef: np.ndarray | None = None,
        *,
        free: int = 0,
        columns: np.ndarray | None = None,
        signs: np.ndarray | None = None,
    ) -> None:
        first = np.asarray(chosen, dtype=np.intp)
        self._gram, self.signs, self.free = gram, signs, free
        self._columns = np.arange(gram.shape[0]) if columns is None else columns
        self._start = (slope, first, np.zeros(first.size) if coef is None else np.asarray(coef))
        self._norms = gram.diagonal()[self._columns]
        self._dependent = np.where(self._norms > 0, _DEPENDENT * self._norms, np.inf)
        self._compute(first)
        if signs is not None:
            self._restore_signs(self._all_coefficients(first, self._start[2]))

    def _compute(self, wanted: np.ndarray) -> None:
        """Compute everything from the Gram matrix for some columns, without combinations of earlier ones."""
        slope, first, before = self._start
        block = self._columns[wanted]
        scale = np.sqrt(self._norms[wanted])
        kept, factor = independent_columns(self._gram[np.ix_(block, block)], scale)
        scale, chosen = scale[kept], wanted[kept]
        self.chosen, self.free = chosen.tolist(), int(np.count_nonzero(kept < self.free))
        start = self._all_coefficients(first, before)
        dropped = start.copy()
        dropped[chosen] = 0.0
        removed, self.decrease = np.flatnonzero(dropped), 0.0
        if removed.size:
            pull = dropped[removed] @ self._rows(removed)
            self.decrease = -float(dropped[removed] @ (slope + 0.5 * pull)[removed])
            slope = slope + pull
        m, s = self._norms.size, chosen.size
        rows = self._rows(chosen)
        half = dtrtrs(factor, rows / scale[:, None], lower=1)[0] if s else rows  # factor^-1 G_S.
        change = dpotrs(factor, slope[chosen] / scale, lower=1)[0] / scale if s else np.empty(0)
        inverse = dpotri(factor, lower=1)[0] if s else factor
        self.slots = s
        self._table = np.zeros((s + 1, s + m))  # row 0: -b and g; row i: A and U of the i-th chosen column
        self._table[0, :s], self._table[0, s:] = -(start[chosen] + change), slope - change @ rows
        self._table[1:, :s] = (np.tril(inverse) + np.tril(inverse, -1).T) / np.outer(scale, scale)
        if s:
            self._table[1:, s:] = dtrtrs(factor, half, lower=1, trans=1)[0] / scale[:, None]
        self._unexplained = self._norms - np.sum(half * half, axis=0)
        self._excluded = np.zeros(m)  # infinite for the chosen columns, so that adding them gains nothing
        self._excluded[self.chosen] = np.inf
        self.decrease += 0.5 * float(change @ slope[self.chosen])

    def _all_coefficients(self, chosen: Sequence[int] | np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Return coefficients of chosen columns as those of all columns."""
        full = np.zeros(self._norms.size)
        full[np.asarray(chosen, dtype=np.intp)] = coef
        return full

    def copy(self) -> Self:
        """Return an independent tableau that shares the Gram matrix."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        for name in ("_table", "_unexplained", "_excluded"):
            setattr(twin, name, getattr(self, name).copy())
        twin.chosen = list(self.chosen)
        return twin

    @property
    def size(self) -> int:
        """How many columns are chosen, free ones included."""
        return len(self.chosen)

    @property
    def coef(self) -> np.ndarray:
        """The coefficients of the chosen columns, in their order."""
        return -self._table[0, : self.size]

    @property
    def slope(self) -> np.ndarray:
        """The negative gradient of q at the minimiser, for all columns."""
        return self._table[0, self.slots :]

    def costs(self) -> np.ndarray:
        """Return by how much q rises when a chosen column is dropped: infinite for free ones."""
        diagonal, cancelled = self._inverse_diagonal()
        costs: np.ndarray = 0.5 * self.coef * (self.coef / diagonal)
        costs[cancelled] = np.inf
        costs[: self.free] = np.inf
        return costs

    def _inverse_diagonal(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the diagonal of A, and where rounding has cancelled it (1 there): these columns cannot be dropped."""
        size = self.size
        diagonal = self._table[1 : size + 1, :size].diagonal()
        cancelled = ~(diagonal > 0)
        return np.where(cancelled, 1.0, diagonal), cancelled

    def lowest_chosen_score(self) -> float:
        """Return the lowest score that a chosen column would have if it were not chosen; 0 if none may leave.

        The score of column i, once dropped, is :math:`g_i^2 / 2G_{ii}`: its cost divided by :math:`A_{ii} G_{ii}`, the
        inverse of the share that the other chosen columns leave unexplained. It is comparable with the scores of
        columns outside the tableau, for which this share is not known.
        """
        size, free = self.size, self.free
        if size == free:
            return 0.0
        inverse_share = self._inverse_diagonal()[0][free:] * self._norms[self.chosen[free:]]
        return float((self.costs()[free:] / inverse_share).min())

    def highest_score(self) -> float:
        """Return the highest score, :math:`g_j^2 / 2G_{jj}`, of the columns that are not chosen."""
        if self._norms.size == 0:
            return 0.0
        slope = self._allowed(self.slope)
        return float((0.5 * slope * (slope / np.where(self._norms > 0, self._norms, np.inf))).max())

    def gains(self) -> np.ndarray:
        """Return by how much q falls when each column is added; 0 for chosen columns and combinations of them."""
        slope = self._allowed(self.slope)
        usable = np.where(self._unexplained > self._dependent, self._unexplained, np.inf) + self._excluded
        gains: np.ndarray = 0.5 * slope * (slope / usable)
        return gains

    def best_addition(self) -> tuple[int, float]:
        """Return the column whose addition lowers q most, and by how much; a gain of 0 if none can be added.

        One column short of a perfect fit, any column completes it. Of equal gains that of the column with the largest
        unexplained share wins, and of copies the first: neither rounding nor the order of the columns decides.
        """
        if self._unexplained.size == 0:
            return 0, 0.0
        gain = self.gains()
        equal = np.flatnonzero(gain >= _TIE * gain.max())
        if equal.size == 0:  # gains are NaN, as where squares underflow
            return 0, 0.0
        if equal.size > 1 and gain[equal[0]] > 0.0:
            share = self._unexplained[equal] / self._norms[equal]
            equal = equal[share >= _TIE * share.max()]
        first = int(equal[0])
        return first, float(gain[first])

    def exchanges(self, count: int) -> list[tuple[int, int, float]]:
        """Return the best exchanges of `count` chosen columns, largest decrease first; see `best_exchange`."""
        gain, loss = self._exchange_gains()
        falls = gain.max(axis=1) - loss
        best = np.argsort(-falls, kind="stable")[:count]
        return [(int(i) + self.free, int(gain[i].argmax()), 0.5 * float(falls[i])) for i in best]

    def best_exchange(self) -> tuple[int, int, float]:
        """Return the place of a chosen column, the column to replace it, and by how much q falls (< 0 if it rises)."""
        if self.size == self.free or self._unexplained.size == 0:
            return 0, 0, 0.0
        gain, loss = self._exchange_gains()
        fall = gain.max(axis=1) - loss
        place = int(fall.argmax())
        return place + self.free, int(gain[place].argmax()), 0.5 * float(fall[place])

    def _exchange_gains(self) -> tuple[np.ndarray, np.ndarray]:
        """Return twice the gain of each column (axis 1) once a chosen one (axis 0) is dropped, and twice its cost."""
        size, free = self.size, self.free
        diagonal, cancelled = self._inverse_diagonal()
        scale = 1.0 / np.sqrt(diagonal[free:])
        shift = self.coef[free:] * scale
        curvature = self._table[1 + free : size + 1, self.slots :] * scale[:, None]
        slope = curvature * shift[:, None]
        slope += self.slope
        slope = self._allowed(slope)
        curvature *= curvature
        curvature += np.maximum(self._unexplained, self._dependent) + self._excluded
        gains = np.divide(slope, curvature, out=curvature)
        gains *= slope
        loss = shift * shift
        loss[cancelled[free:]] = np.inf
        return gains, loss

    def add(self, j: int) -> bool:
        """Add a column, unless it is a combination of those chosen, and return whether q has fallen.

        Columns whose signs become wrong leave.
        """
        if not self._unexplained[j] > self._dependent[j]:
            return False
        decrease = self.decrease
        before = None if self.signs is None else self._all_coefficients(self.chosen, self.coef)
        self._enter(j)
        if before is not None:
            self._restore_signs(before)
        return self.decrease > decrease

    def drop(self, place: int) -> None:
        """Drop the column at a place of `chosen`, which the last one takes; columns with wrong signs leave too."""
        before = None if self.signs is None else self._all_coefficients(self.chosen, self.coef)
        self._leave(place)
        if before is not None:
            self._restore_signs(before)

    def _rows(self, chosen: np.ndarray) -> np.ndarray:
        """Return some rows of G."""
        rows: np.ndarray = self._gram[self._columns[chosen]].take(self._columns, axis=1)
        return rows

    def _allowed(self, slope: np.ndarray) -> np.ndarray:
        """Return slopes, with zero where a coefficient would have the wrong sign."""
        return slope if self.signs is None else np.where(slope * self.signs < 0, 0.0, slope)

    def _enter(self, j: int) -> None:
        size = self.size
        if size == self.slots:
            self._enlarge(2 * size + 8)
        table, slots = self._table, self.slots
        products = self._gram[self._columns[j]].take(self._columns)
        row = -(products[self.chosen] @ table[1 : size + 1])
        row[slots:] += products
        row[size] = 1.0
        unexplained, slope = self._unexplained[j], table[0, slots + j]
        if unexplained < _DOUBTFUL * self._norms[j] and self._error(row / unexplained, self.chosen, j) > _ERROR:
            self._compute(np.asarray([*self.chosen, j], dtype=np.intp))
            if j not in self.chosen:
                self._unexplained[j] = 0.0  # a combination of the others, up to rounding
            return
        self._unexplained = self._unexplained - row[slots:] * (row[slots:] / unexplained)
        row /= unexplained
        self._update(row, slots + j)
        table[size + 1] = row
        self.chosen.append(j)
        self._excluded[j] = np.inf
        self.decrease += 0.5 * float(slope) * (float(slope) / float(unexplained))

    def _leave(self, place: int) -> None:
        table, last, j = self._table, self.size - 1, self.chosen[place]
        diagonal = table[place + 1, place]
        others = self.chosen[:place] + self.chosen[place + 1 :]
        if not diagonal * self._norms[j] < 1.0 / _DOUBTFUL and self._error(table[place + 1], others, j) > _ERROR:
            rest = self.chosen[:last]
            if place < last:
                rest[place] = self.chosen[last]
            self._compute(np.asarray(rest, dtype=np.intp))
            return
        row = table[place + 1] / diagonal
        self.decrease -= 0.5 * float(table[0, place]) * (float(table[0, place]) / float(diagonal))
        self._unexplained = self._unexplained + row[self.slots :] * (row[self.slots :] * diagonal)
        self._update(row, place)
        self._excluded[j] = 0.0
        table[place + 1], self.chosen[place] = table[last + 1], self.chosen[last]  # the last one takes its place
        table[: last + 2, place] = table[: last + 2, last]
        table[last + 1] = 0.0
        table[: last + 2, last] = 0.0
        self.chosen.pop()

    def _error(self, row: np.ndarray, others: list[int], j: int) -> float:
        """Return the error of `row`, the regression of column j, at the `others`, where it must be zero.

        It is in units of the columns, as a share of a coefficient.
        """
        there = row[self.slots :][others]
        return float(np.max(np.abs(there) * np.sqrt(self._norms[j] / self._norms[others]), initial=0.0))

    def _update(self, row: np.ndarray, column: int) -> None:
        """Subtract from each row of the table its entry in a column times a row."""
        used = self._table[: self.size + 1]
        dger(-1.0, row, used[:, column].copy(), a=used.T, overwrite_a=1)

    def _enlarge(self, slots: int) -> None:
        size = self.size
        table = np.zeros((slots + 1, slots + self._columns.size))
        table[: size + 1, :size] = self._table[: size + 1, :size]
        table[: size + 1, slots:] = self._table[: size + 1, self.slots :]
        self._table, self.slots = table, slots

    def _restore_signs(self, point: np.ndarray) -> None:
        """Drop columns until all signs are right, from coefficients with right signs.

        Each round goes towards the minimiser until a coefficient is zero, and drops that column: a step of Lawson and
        Hanson's method (1974), so that q never exceeds its value at the start.
        """
        assert self.signs is not None
        while True:
            coef = self.coef
            wrong = np.flatnonzero(coef * self.signs[self.chosen] < 0)
            if wrong.size == 0:
                return
            here = point[self.chosen]
            reach = here[wrong] / (here[wrong] - coef[wrong])
            first = int(wrong[int(np.argmin(reach))])
            point = self._all_coefficients(self.chosen, here + float(np.min(reach)) * (coef - here))
            self._leave(first)


def independent_columns(gram: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of columns that are not combinations of those before them, and their Cholesky factor.

    The factor is that of the Gram matrix of the kept columns divided by their `scale`, so that the squares on its
    diagonal are the shares of the columns that are unexplained when they are regressed on those before them.
    """
    unit = gram / np.where(scale > 0, scale, 1.0) / np.where(scale > 0, scale, 1.0)[:, None]
    factor, failed = dpotrf(unit, lower=1, clean=1)
    if not failed and np.min(factor.diagonal(), initial=1.0) ** 2 > _DEPENDENT:
        return np.arange(scale.size), factor
    kept: list[int] = []
    factor = np.zeros_like(unit)
    for j in range(scale.size):
        size = len(kept)
        row = dtrtrs(factor[:size, :size], unit[kept, j], lower=1)[0] if size else np.empty(0)
        unexplained = unit[j, j] - row @ row
        if unexplained > _DEPENDENT:
            factor[size, :size], factor[size, size] = row, np.sqrt(unexplained)
            kept.append(j)
    return np.array(kept, dtype=np.intp), factor[: len(kept), : len(kept)]
