"""Least squares on a few columns of many, by a Gram tableau: adding, dropping and exchanging columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from scipy.linalg.blas import dger

from hardthresh.arrays import inverse_definite

_TIE = 1 - 1e-7  # gains above this share of the best are equal to it
_DEPENDENT = 1e-9  # a column of which less than this share is left counts as a combination of the chosen ones


class Tableau:
    r"""The minimisers of a quadratic over chosen columns, with what every other column would bring.

    .. math:: q(b) = \tfrac{1}{2} b^\top G b - c^\top b, \qquad b_j = 0 \text{ for } j \notin S

    With A the inverse of G_SS, the tableau holds b and A, the gradient's negative :math:`g = c - G b`, the
    regressions :math:`U = A \, G_{S \cdot}` of all columns on the chosen ones, and
    :math:`h_j = G_{jj} - G_{jS} U_j`, what these leave of each column. Adding j lowers q by :math:`g_j^2 / 2h_j`,
    dropping i raises it by :math:`b_i^2 / 2A_{ii}`, and either is one update of rank one.

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
        them, so that nothing is lost in their size.
    free : int
        How many of the first chosen columns may never leave.
    columns : array of int, shape (m,), optional
        Which of the p columns the tableau is about, so that G is their block; default all.
    signs : array of shape (m,), optional
        +1 or -1 for the columns whose coefficient may have this sign only, 0 for the others.

    Attributes
    ----------
    decrease : float
        How much lower q is than at the coefficients that the tableau was made with.

    Notes
    -----
    A workspace, not a value: its methods change it, `copy` is cheap. Cost of a change O(s m) for s chosen columns, of
    `best_exchange` the same with a larger constant. Everything is relative to the columns' own scales.

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
        given = np.asarray(chosen, dtype=np.intp)
        before = np.zeros(given.size) if coef is None else np.asarray(coef)
        self._gram, self.signs = gram, signs
        self._columns = np.arange(gram.shape[0]) if columns is None else columns
        block = self._columns[given]
        kept, inverse = _basis(gram[np.ix_(block, block)])
        self.chosen, self.free = given[kept].tolist(), int(np.count_nonzero(kept < free))
        self.decrease = 0.0
        if kept.size < given.size:  # dependent columns give their coefficients up
            rest = np.delete(np.arange(given.size), kept)
            pull = self._rows(given[rest]).T @ before[rest]
            self.decrease = -float(before[rest] @ (slope + 0.5 * pull)[given[rest]])
            slope, before = slope + pull, before[kept]
        m, s = self._columns.size, kept.size
        self.slots = s
        rows = self._rows(np.asarray(self.chosen, dtype=np.intp))
        change = inverse @ slope[self.chosen]
        self._table = np.zeros((s + 1, s + m))  # row 0: -b and g; row i: A and U of the i-th chosen column
        self._table[0, :s], self._table[0, s:] = -(before + change), slope - change @ rows
        self._table[1:, :s], self._table[1:, s:] = inverse, inverse @ rows
        self._norms = diagonal = gram.diagonal()[self._columns]
        self._left = diagonal - np.sum(rows * self._table[1:, s:], axis=0)
        self._least = np.where(diagonal > 0, _DEPENDENT * diagonal, np.inf)
        self._barred = np.zeros(m)  # infinite for the chosen columns: nothing is gained by adding them
        self._barred[self.chosen] = np.inf
        self.decrease += 0.5 * float(change @ slope[self.chosen])
        if signs is not None:
            self._mend(before)

    def copy(self) -> Self:
        """Return an independent tableau that shares the Gram matrix."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        for name in ("_table", "_left", "_barred"):
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
        spread, eaten = self._spread()
        costs: np.ndarray = 0.5 * self.coef * (self.coef / spread)
        costs[eaten] = np.inf
        costs[: self.free] = np.inf
        return costs

    def _spread(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the diagonal of A, and where rounding has eaten it (and 1 stands for it): such a column must stay."""
        size = self.size
        diagonal = self._table[1 : size + 1, :size].diagonal()
        eaten = ~(diagonal > 0)
        return np.where(eaten, 1.0, diagonal), eaten

    def least_missed(self) -> float:
        """Return what the least useful chosen column would promise from outside, and nothing where none may leave.

        Of i, once dropped, that is :math:`g_i^2 / 2G_{ii}`: its cost divided by :math:`A_{ii} G_{ii}`, which says how
        much of the column the other chosen ones explain. It compares with what is known of columns that are not in
        the tableau, of which nobody knows how much the chosen ones explain.
        """
        size, free = self.size, self.free
        if size == free:
            return 0.0
        explained = self._spread()[0][free:] * self._norms[self.chosen[free:]]
        return float((self.costs()[free:] / explained).min())

    def most_promising(self) -> float:
        """Return what the best column that is not chosen promises by its slope alone, :math:`g_j^2 / 2G_{jj}`."""
        if self._norms.size == 0:
            return 0.0
        slope = self._allowed(self.slope)
        return float((0.5 * slope * (slope / np.where(self._norms > 0, self._norms, np.inf))).max())

    def gains(self) -> np.ndarray:
        """Return by how much q falls when a column is added; 0 for the chosen ones and where none is left of it."""
        slope = self._allowed(self.slope)
        usable = np.where(self._left > self._least, self._left, np.inf) + self._barred
        gains: np.ndarray = 0.5 * slope * (slope / usable)
        return gains

    def best_addition(self) -> tuple[int, float]:
        """Return the column whose addition lowers q most, and by how much; 0 where none can be added.

        Among equals the first wins: where one column short of a perfect fit any column completes it, not rounding.
        """
        if self._left.size == 0:
            return 0, 0.0
        gain = self.gains()
        first = int((gain >= _TIE * gain.max()).argmax())
        return first, float(gain[first])

    def exchanges(self, count: int) -> list[tuple[int, int, float]]:
        """Return the best exchanges, as `best_exchange` does the best one, each of another chosen column."""
        gain, loss = self._exchange_gains()
        falls = gain.max(axis=1) - loss
        best = np.argsort(-falls, kind="stable")[:count]
        return [(int(i) + self.free, int(gain[i].argmax()), 0.5 * float(falls[i])) for i in best]

    def best_exchange(self) -> tuple[int, int, float]:
        """Return the place of a chosen column, the one to take that place, and by how much q falls (or rises: < 0)."""
        if self.size == self.free or self._left.size == 0:
            return 0, 0, 0.0
        gain, loss = self._exchange_gains()
        fall = gain.max(axis=1) - loss
        place = int(fall.argmax())
        return place + self.free, int(gain[place].argmax()), 0.5 * float(fall[place])

    def _exchange_gains(self) -> tuple[np.ndarray, np.ndarray]:
        """Return twice what each column (axis 1) gains when a chosen one (axis 0) is gone, and what that loses."""
        size, free = self.size, self.free
        spread, eaten = self._spread()
        scale = 1.0 / np.sqrt(spread[free:])
        shift = self.coef[free:] * scale
        bend = self._table[1 + free : size + 1, self.slots :] * scale[:, None]
        slope = bend * shift[:, None]
        slope += self.slope
        slope = self._allowed(slope)
        bend *= bend
        bend += np.maximum(self._left, self._least) + self._barred
        bend = np.divide(slope, bend, out=bend)
        bend *= slope
        loss = shift * shift
        loss[eaten[free:]] = np.inf
        return bend, loss

    def add(self, j: int) -> None:
        """Let a column in; columns whose sign that turns wrong leave."""
        before = self.coef
        self._enter(j)
        if self.signs is not None:
            self._mend(np.append(before, 0.0))

    def drop(self, place: int) -> None:
        """Let the column at a place of `chosen` out, the last one takes its place; wrong signs leave as well."""
        before = self.coef
        self._leave(place)
        if self.signs is not None:
            self._mend(_without(before, place))

    def _rows(self, chosen: np.ndarray) -> np.ndarray:
        """Return some rows of G."""
        rows: np.ndarray = self._gram[self._columns[chosen]].take(self._columns, axis=1)
        return rows

    def _allowed(self, slope: np.ndarray) -> np.ndarray:
        """Return slopes with zeros where a coefficient would have the wrong sign."""
        return slope if self.signs is None else np.where(slope * self.signs < 0, 0.0, slope)

    def _enter(self, j: int) -> None:
        size = self.size
        if size == self.slots:
            self._make_room(2 * size + 8)
        table, slots = self._table, self.slots
        products = self._gram[self._columns[j]].take(self._columns)
        row = -(products[self.chosen] @ table[1 : size + 1])
        row[slots:] += products
        row[size] = 1.0
        left, slope = self._left[j], table[0, slots + j]
        self._left = self._left - row[slots:] * (row[slots:] / left)
        row /= left
        self._update(row, slots + j)
        table[size + 1] = row
        self.chosen.append(j)
        self._barred[j] = np.inf
        self.decrease += 0.5 * float(slope) * (float(slope) / float(left))

    def _leave(self, place: int) -> None:
        table, last = self._table, self.size - 1
        spread = table[place + 1, place]
        row = table[place + 1] / spread
        self.decrease -= 0.5 * float(table[0, place]) * (float(table[0, place]) / float(spread))
        self._left = self._left + row[self.slots :] * (row[self.slots :] * spread)
        self._update(row, place)
        self._barred[self.chosen[place]] = 0.0
        table[place + 1], self.chosen[place] = table[last + 1], self.chosen[last]  # the last one takes its place
        table[: last + 2, place] = table[: last + 2, last]
        table[last + 1] = 0.0
        table[: last + 2, last] = 0.0
        self.chosen.pop()

    def _update(self, row: np.ndarray, column: int) -> None:
        """Subtract from each row of the table its entry in a column times a row."""
        used = self._table[: self.size + 1]
        dger(-1.0, row, used[:, column].copy(), a=used.T, overwrite_a=1)

    def _make_room(self, slots: int) -> None:
        size = self.size
        table = np.zeros((slots + 1, slots + self._columns.size))
        table[: size + 1, :size] = self._table[: size + 1, :size]
        table[: size + 1, slots:] = self._table[: size + 1, self.slots :]
        self._table, self.slots = table, slots

    def _mend(self, point: np.ndarray) -> None:
        """Restore the signs, from coefficients that have them: go towards the minimiser until one is zero, drop it.

        Each round is a step of Lawson and Hanson's method, so q never exceeds its value at the start.
        """
        assert self.signs is not None
        while True:
            coef = self.coef
            wrong = np.flatnonzero(coef * self.signs[self.chosen] < 0)
            if wrong.size == 0:
                return
            reach = point[wrong] / (point[wrong] - coef[wrong])
            first = int(wrong[int(np.argmin(reach))])
            point = _without(point + float(np.min(reach)) * (coef - point), first)
            self._leave(first)


def _basis(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of columns that are no combinations of those before them, and the inverse of their block."""
    scale = np.sqrt(gram.diagonal())
    inverse = None
    if np.all(scale > 0):
        inverse = inverse_definite(gram / scale[:, None] / scale[None, :])
    if inverse is not None:
        return np.arange(scale.size), inverse / scale[:, None] / scale[None, :]
    one_by_one = Tableau(gram, np.zeros(scale.size))
    for j in range(scale.size):
        if one_by_one._left[j] > one_by_one._least[j]:
            one_by_one._enter(j)
    size = one_by_one.size
    return np.array(one_by_one.chosen, dtype=np.intp), one_by_one._table[1 : size + 1, :size]


def _without(x: np.ndarray, place: int) -> np.ndarray:
    """Return a vector whose last entry has taken the place of another one."""
    rest = x[:-1].copy()
    if place < rest.shape[0]:
        rest[place] = x[-1]
    return rest
