"""Least squares on a few columns of many, by a Gram tableau: adding, dropping and exchanging columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from scipy.linalg.blas import dger

from hardthresh.arrays import inverse_semidefinite

_DEPENDENT = 1e-9  # a column of which less than this share is left counts as a combination of the chosen ones


class Tableau:
    r"""The minimisers of a quadratic over chosen columns, with what every other column would bring.

    .. math:: q(b) = \tfrac12 b^\top G b - c^\top b, \qquad b_j = 0 \text{ for } j \notin S

    With A the inverse of G_SS, the tableau holds b and A, the gradient's negative :math:`g = c - G b`, the
    regressions :math:`U = A \, G_{S \cdot}` of all columns on the chosen ones, and
    :math:`h_j = G_{jj} - G_{jS} U_j`, what these leave of each column. Adding j lowers q by :math:`g_j^2 / 2h_j`,
    dropping i raises it by :math:`b_i^2 / 2A_{ii}`, and either is one update of rank one.

    Parameters
    ----------
    gram : array, shape (m, m)
        G, positive semidefinite, float64. It is shared, never written to.
    target : array, shape (m,)
        c.
    chosen : sequence of int
        S, the `free` ones first.
    free : int
        How many of the first chosen columns may never leave.
    signs : array of shape (m,), optional
        +1 or -1 for the columns whose coefficient may have this sign only, 0 for the others.
    feasible : sequence of float
        Where there are signs: coefficients of the chosen columns that have them.

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
        target: np.ndarray,
        chosen: Sequence[int] = (),
        *,
        free: int = 0,
        signs: np.ndarray | None = None,
        feasible: Sequence[float] = (),
    ) -> None:
        m, s = gram.shape[0], len(chosen)
        self.gram, self.free, self.signs = gram, free, signs
        self.chosen = list(chosen)
        self.slots = s
        diagonal = gram.diagonal()
        rows = gram[self.chosen]
        inverse = inverse_semidefinite(rows[:, self.chosen])
        coef = inverse @ target[self.chosen]
        self._table = np.zeros((s + 1, s + m))  # row 0: -b and g; row i: A and U of the i-th chosen column
        self._table[0, :s], self._table[0, s:] = -coef, target - coef @ rows
        self._table[1:, :s], self._table[1:, s:] = inverse, inverse @ rows
        self._left = diagonal - np.sum(rows * self._table[1:, s:], axis=0)
        self._least = np.where(diagonal > 0, _DEPENDENT * diagonal, np.inf)
        self._barred = np.zeros(m)  # infinite for the chosen columns: nothing is gained by adding them
        self._barred[self.chosen] = np.inf
        self.decrease = 0.5 * float(coef @ target[self.chosen])
        self._mend(feasible)

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
        size = self.size
        costs = 0.5 * self.coef**2 / self._table[1 : size + 1, :size].diagonal()
        costs[: self.free] = np.inf
        return costs

    def best_addition(self) -> tuple[int, float]:
        """Return the column whose addition lowers q most, and by how much; 0 where none can be added."""
        if self._left.size == 0:
            return 0, 0.0
        slope = self._allowed(self.slope)
        usable = np.where(self._left > self._least, self._left, np.inf) + self._barred
        gain = 0.5 * slope * slope / usable
        best = int(gain.argmax())
        return best, float(gain[best])

    def best_exchange(self) -> tuple[int, int, float]:
        """Return the place of a chosen column, the one to take that place, and by how much q falls (or rises: < 0)."""
        size, free = self.size, self.free
        if size == free:
            return 0, 0, 0.0
        scale = 1.0 / np.sqrt(self._table[1 + free : size + 1, free:size].diagonal())
        shift = self.coef[free:] * scale
        bend = self._table[1 + free : size + 1, self.slots :] * scale[:, None]
        gain = bend * shift[:, None]
        gain += self.slope
        gain = self._allowed(gain)
        gain *= gain
        bend *= bend
        bend += np.maximum(self._left, self._least) + self._barred
        gain /= bend
        fall = gain.max(axis=1) - shift * shift
        place = int(fall.argmax())
        return place + free, int(gain[place].argmax()), 0.5 * float(fall[place])

    def add(self, j: int) -> None:
        """Let a column in; columns whose sign that turns wrong leave."""
        before = self.coef
        self._enter(j)
        self._mend([*before, 0.0])

    def drop(self, place: int) -> None:
        """Let the column at a place of `chosen` out, the last one takes its place; wrong signs leave as well."""
        before = _without(self.coef, place)
        self._leave(place)
        self._mend(before)

    def _allowed(self, slope: np.ndarray) -> np.ndarray:
        """Return slopes with zeros where a coefficient would have the wrong sign."""
        return slope if self.signs is None else np.where(slope * self.signs < 0, 0.0, slope)

    def _enter(self, j: int) -> None:
        size = self.size
        if size == self.slots:
            self._make_room(2 * size + 8)
        table, slots = self._table, self.slots
        row = -(self.gram[j, self.chosen] @ table[1 : size + 1])
        row[slots:] += self.gram[j]
        row[size] = 1.0
        left, slope = self._left[j], table[0, slots + j]
        self._left = self._left - row[slots:] ** 2 / left
        row /= left
        self._update(row, slots + j)
        table[size + 1] = row
        self.chosen.append(j)
        self._barred[j] = np.inf
        self.decrease += 0.5 * float(slope) ** 2 / float(left)

    def _leave(self, place: int) -> None:
        table, last = self._table, self.size - 1
        spread = table[place + 1, place]
        row = table[place + 1] / spread
        self.decrease -= 0.5 * float(table[0, place]) ** 2 / float(spread)
        self._left = self._left + row[self.slots :] ** 2 * spread
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
        table = np.zeros((slots + 1, slots + self.gram.shape[0]))
        table[: size + 1, :size] = self._table[: size + 1, :size]
        table[: size + 1, slots:] = self._table[: size + 1, self.slots :]
        self._table, self.slots = table, slots

    def _mend(self, feasible: Sequence[float]) -> None:
        """Restore the signs, from coefficients that have them: go towards the minimiser until one is zero, drop it.

        Each round is a step of Lawson and Hanson's method, so q never exceeds its value at the start.
        """
        if self.signs is None:
            return
        point = np.asarray(feasible)
        while True:
            coef = self.coef
            wrong = np.flatnonzero(coef * self.signs[self.chosen] < 0)
            if wrong.size == 0:
                return
            reach = point[wrong] / (point[wrong] - coef[wrong])
            first = int(wrong[int(np.argmin(reach))])
            point = _without(point + float(np.min(reach)) * (coef - point), first)
            self._leave(first)


def _without(x: np.ndarray, place: int) -> np.ndarray:
    """Return a vector whose last entry has taken the place of another one."""
    rest = x[:-1].copy()
    if place < rest.shape[0]:
        rest[place] = x[-1]
    return rest
