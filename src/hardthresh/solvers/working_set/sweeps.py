"""The arrays of a tableau of least squares, and the sweeps of rank one by which columns enter, leave and are held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtrs

from hardthresh.arrays.linalg import DEPENDENT
from hardthresh.core.compiled import kernel

_DOUBTFUL = 1e-3
"""The error is estimated if the chosen columns leave less than this share of a column unexplained, because rounding is
divided by this share. The 240 fits of `DEPENDENT` are the same with 1e-5 to 0.1."""
ERROR = 1e-10
"""Above this error, as a share of a coefficient, the tableau is computed anew. These 240 fits are the same with 1e-13
to 1e-9; 2 have a higher f with 1e-8."""


class Sweeps:
    """The arrays of a `Tableau`, which documents them and the parameters, and what changes them.

    Nothing here asks whether a coefficient is within its bounds.
    """

    def __init__(
        self,
        gram: np.ndarray,
        slope: np.ndarray,
        chosen: Sequence[int] = (),
        coef: np.ndarray | None = None,
        *,
        n_free: int = 0,
        gram_rows: np.ndarray | None = None,
        bounds: np.ndarray | None = None,
    ) -> None:
        start_columns = np.asarray(chosen, dtype=np.int64)
        self._gram, self.n_free = np.ascontiguousarray(gram, dtype=np.float64), n_free
        self.bounds = None if bounds is None else np.ascontiguousarray(bounds, dtype=np.float64)
        rows = np.arange(gram.shape[0]) if gram_rows is None else gram_rows
        self._gram_rows = np.ascontiguousarray(rows, dtype=np.int64)
        is_whole = rows.size == gram.shape[0] and bool(np.all(rows == np.arange(rows.size)))
        self._kernel_rows = None if is_whole else self._gram_rows  # the kernel copies no row of a whole matrix
        self._norms = self._gram.diagonal()[self._gram_rows]
        self._dependent = np.where(self._norms > 0, DEPENDENT * self._norms, np.inf)
        self._start_slope = np.ascontiguousarray(np.asarray(slope, dtype=np.float64).T)  # one row for each side
        self._sides = 1 if slope.ndim == 1 else slope.shape[1]
        start = np.zeros((start_columns.size, *slope.shape[1:])) if coef is None else coef
        self._start_coef = self._all_coefficients(start_columns, start.T)
        self._is_free = np.zeros(rows.size, np.int64)
        self._is_free[start_columns[:n_free]] = 1
        self._kept_out: list[int] = []
        self._begin(start_columns)

    def _begin(self, wanted: np.ndarray) -> None:
        """Compute everything for some columns, from the start, none of them held before."""
        self._held, self._n_held, self._level = np.zeros(0, np.int64), 0, np.zeros(self._norms.size)
        self._compute(wanted)

    def _compute(self, wanted: np.ndarray) -> None:
        """Compute everything from the Gram matrix for some columns besides the held ones.

        Combinations of earlier columns are left out.
        """
        compiled, held = kernel(), self._held[: self._n_held]
        if compiled is not None:
            m, self.slots = self._norms.size, wanted.size + held.size
            self._held = np.concatenate([held, np.zeros(wanted.size, np.int64)])
            self._table = np.empty((self._sides + self.slots, self.slots + m))
            self._chosen = np.empty(self.slots, np.int64)
            self._unexplained, self._excluded = np.empty(m), np.empty(m)
            self.take(compiled.compute(self.arrays, held.size, self.n_free, wanted))
            self._excluded[self._kept_out] = np.inf
            return
        block = self._gram_rows[wanted]
        scale = np.sqrt(self._norms[wanted])
        kept, factor = independent_columns(self._gram[np.ix_(block, block)], scale)
        scale, chosen = scale[kept], wanted[kept]
        self._moving, self.n_free = chosen.size, int(self._is_free[[*chosen, *held]].sum())
        slope, rise = self._start_on(chosen)
        m, s = self._norms.size, chosen.size
        rows = self._rows(chosen)
        half = dtrtrs(factor, rows / scale[:, None], lower=1)[0] if s else rows  # factor^-1 G_S.
        pull = slope[..., chosen]
        change = (dpotrs(factor, (pull / scale).T, lower=1)[0].T / scale).reshape(pull.shape) if s else pull
        inverse = dpotri(factor, lower=1)[0] if s else factor
        self.slots, q = s + held.size, self._sides
        self._held = np.concatenate([held, np.zeros(s, np.int64)])
        self._chosen = np.concatenate([chosen, np.zeros(held.size, np.int64)])
        # The table: -b and g of each side, then A and U of each column of S.
        self._table = np.zeros((q + self.slots, self.slots + m))
        moving, slopes = self._table[: q + s, :s], self._table[: q + s, self.slots :]
        moving[:q], slopes[:q] = -(self._start_coef[..., chosen] + change), slope - change @ rows
        moving[q:] = (np.tril(inverse) + np.tril(inverse, -1).T) / np.outer(scale, scale)
        if s:
            slopes[q:] = dtrtrs(factor, half, lower=1, trans=1)[0] / scale[:, None]
        self._unexplained = self._norms - np.sum(half * half, axis=0)
        self._excluded = np.zeros(m)  # infinite for the chosen columns, so that adding them gains nothing
        self._excluded[[*chosen, *held, *self._kept_out]] = np.inf
        self.decrease = 0.5 * float(change.ravel() @ pull.ravel()) - rise

    def _start_on(self, chosen: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the slope at the start once all other columns are at their levels, and by how much q rises."""
        change = self._start_coef - self._level
        change[..., chosen] = 0.0
        removed = np.flatnonzero(change.reshape(self._sides, -1).any(axis=0))
        if removed.size == 0:
            return self._start_slope, 0.0
        pull = change[..., removed] @ self._rows(removed)
        rise = change[..., removed].ravel() @ (self._start_slope + 0.5 * pull)[..., removed].ravel()
        return self._start_slope + pull, float(rise)

    def _all_coefficients(self, chosen: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Return coefficients of chosen columns as those of all columns, one row for each side if there are several."""
        full = np.zeros((*coef.shape[:-1], self._norms.size))
        full[..., chosen] = coef
        return full

    def copy(self) -> Self:
        """Return an independent tableau that shares the Gram matrix."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        for name in ("_table", "_unexplained", "_excluded", "_chosen", "_held", "_level"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    @property
    def arrays(self) -> tuple[np.ndarray | None, ...]:
        """The arrays that the compiled kernel reads and, from the table on, changes."""
        return (
            self._gram, self._kernel_rows, self._norms, self._dependent, self._start_slope, self._start_coef,
            self.bounds, self._is_free, self._table, self._unexplained, self._excluded, self._chosen, self._held,
            self._level,
        )  # fmt: skip

    @property
    def numbers(self) -> tuple[int, int, int, float]:
        """What is no array: how many columns move, are held, and are free, and the decrease."""
        return self._moving, self._n_held, self.n_free, self.decrease

    def take(self, numbers: tuple[int, int, int, float]) -> None:
        """Take the numbers from the compiled kernel, which has changed the arrays."""
        self._moving, self._n_held, self.n_free, self.decrease = numbers

    @property
    def size(self) -> int:
        """How many columns are chosen, free ones and held ones included."""
        size: int = self._moving + self._n_held
        return size

    @property
    def chosen(self) -> list[int]:
        """The chosen columns, by their slots."""
        return [*self._chosen[: self._moving].tolist(), *self._held[: self._n_held].tolist()]

    @property
    def coef(self) -> np.ndarray:
        """The coefficients of the chosen columns, in their order, shape (s,) or (s, r)."""
        if not self._is_single:
            return -self._coefs.T
        return np.concatenate([-self._table[0, : self._moving], self._level[self._held[: self._n_held]]])

    def are_free(self, columns: np.ndarray | list[int]) -> np.ndarray:
        """Return whether each of some columns may never leave."""
        free: np.ndarray = self._is_free[columns] != 0
        return free

    @property
    def slope(self) -> np.ndarray:
        """The negative gradient of q at the minimiser, for all columns, shape (m,) or (m, r)."""
        return self._table[0, self.slots :] if self._is_single else self._slopes.T

    @property
    def _is_single(self) -> bool:
        """Whether there is one right-hand side, given as a vector."""
        return self._start_slope.ndim == 1

    @property
    def _coefs(self) -> np.ndarray:
        """The negative coefficients of the columns that move, shape (r, s)."""
        return self._table[: self._sides, : self._moving]

    @property
    def _slopes(self) -> np.ndarray:
        """The slopes of all columns, shape (r, m)."""
        return self._table[: self._sides, self.slots :]

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return int(self._norms.size)

    def _rows(self, chosen: np.ndarray) -> np.ndarray:
        """Return some rows of G."""
        rows: np.ndarray = self._gram[self._gram_rows[chosen]].take(self._gram_rows, axis=1)
        return rows

    def _regress(self, j: int) -> np.ndarray:
        """Return minus the regression of a column on those that move, by slots, and what they leave of its products."""
        table, slots, q, size = self._table, self.slots, self._sides, self._moving
        products = self._gram[self._gram_rows[j]].take(self._gram_rows)
        row: np.ndarray = -(products[self._chosen[:size]] @ table[q : q + size])
        row[slots:] += products
        return row

    def _enter(self, j: int, start: float) -> None:
        """Let a column move whose coefficient is `start` now."""
        size = self._moving
        if self.size == self.slots:
            self.reserve(2 * self.size + 8)
        table, slots, chosen, q = self._table, self.slots, self._chosen[:size], self._sides
        row = self._regress(j)
        row[size] = 1.0
        unexplained, slopes = self._unexplained[j], table[:q, slots + j].tolist()
        if unexplained < _DOUBTFUL * self._norms[j] and self._error(row / unexplained, chosen, j) > ERROR:
            self._compute(np.append(chosen, j))
            if self._excluded[j] == 0.0:
                self._unexplained[j] = 0.0  # a combination of the others, up to rounding
            return
        self._unexplained = self._unexplained - row[slots:] * (row[slots:] / unexplained)
        row /= unexplained
        self._update(row, slots + j)
        table[:q, size] -= start
        table[q + size] = row
        self._chosen[size], self._moving = j, size + 1
        self._excluded[j] = np.inf
        for slope in slopes:
            self.decrease += 0.5 * slope * (slope / float(unexplained))

    def _leave(self, slot: int, value: float) -> None:
        """Set the coefficient in a slot to a value from where it does not move, and hold it there unless it is zero.

        Free columns are held at zero, too. The last column that moves takes the slot.
        """
        table, last, j, q = self._table, self._moving - 1, self._chosen[slot], self._sides
        is_held = value != 0.0 or self._is_free[j] != 0
        if is_held:
            self._held[self._n_held] = j
            self._level[j], self._n_held = value, self._n_held + 1
        diagonal = table[q + slot, slot]
        doubtful = not diagonal * self._norms[j] < 1.0 / _DOUBTFUL  # also where it is NaN
        if doubtful and self._error(table[q + slot], np.delete(self._chosen[: self._moving], slot), j) > ERROR:
            self._chosen[slot] = self._chosen[last]
            self._compute(self._chosen[:last].copy())
            return
        table[:q, slot] += value
        row = table[q + slot] / diagonal
        for coef in table[:q, slot].tolist():
            self.decrease -= 0.5 * coef * (coef / float(diagonal))
        self._unexplained = self._unexplained + row[self.slots :] * (row[self.slots :] * diagonal)
        self._update(row, slot)
        self._excluded[j] = np.inf if is_held else 0.0
        table[q + slot], self._chosen[slot] = table[q + last], self._chosen[last]  # the last one takes its slot
        table[: q + last + 1, slot] = table[: q + last + 1, last]
        table[q + last] = 0.0
        table[: q + last + 1, last] = 0.0
        self._moving = last

    def _shift(self, j: int, value: float) -> None:
        """Set the coefficient of a column that does not move to a value."""
        by = value - float(self._level[j])
        row = self._regress(j)
        self.decrease += by * float(self.slope[j] - 0.5 * by * self._unexplained[j])
        self._table[0] -= by * row  # what is -b and g there
        self._level[j] = value

    def _not_held(self, place: int) -> int:
        """Take a column out of those that are held, and return it; its level stays."""
        j, self._n_held = int(self._held[place]), self._n_held - 1
        self._held[place] = self._held[self._n_held]
        self._excluded[j] = 0.0
        return j

    def _error(self, row: np.ndarray, others: np.ndarray, j: int) -> float:
        """Return the error of `row`, the regression of column j, at the `others`, where it must be zero.

        It is in units of the columns, as a share of a coefficient.
        """
        there = row[self.slots :][others]
        return float(np.max(np.abs(there) * np.sqrt(self._norms[j] / self._norms[others]), initial=0.0))

    def _update(self, row: np.ndarray, column: int) -> None:
        """Subtract from each row of the table its entry in a column times a row."""
        used = self._table[
            : self._sides + self._moving
        ]  # whole rows: the transpose is contiguous for Fortran, and changed in place
        dger(-1.0, row, used[:, column].copy(), a=used.T, overwrite_a=1)

    def reserve(self, slots: int) -> None:
        """Make room for so many chosen columns, if there is less."""
        if slots <= self.slots:
            return
        size, used, held = self._moving, self._sides + self._moving, self._held[: self._n_held]
        table, chosen = np.zeros((self._sides + slots, slots + self._gram_rows.size)), np.zeros(slots, np.int64)
        table[:used, :size] = self._table[:used, :size]
        table[:used, slots:] = self._table[:used, self.slots :]
        chosen[:size] = self._chosen[:size]
        self._table, self._chosen, self.slots = table, chosen, slots
        self._held = np.concatenate([held, np.zeros(slots - held.size, np.int64)])


def independent_columns(gram: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of columns that are not combinations of those before them, and their Cholesky factor.

    The factor is that of the Gram matrix of the kept columns divided by their `scale`, so that the squares on its
    diagonal are the shares of the columns that are unexplained when they are regressed on those before them.
    """
    unit = gram / np.where(scale > 0, scale, 1.0) / np.where(scale > 0, scale, 1.0)[:, None]
    factor, failed = dpotrf(unit, lower=1, clean=1)
    if not failed and np.min(factor.diagonal(), initial=1.0) ** 2 > DEPENDENT:
        return np.arange(scale.size), factor
    kept: list[int] = []
    factor = np.zeros_like(unit)
    for j in range(scale.size):
        size = len(kept)
        row = dtrtrs(factor[:size, :size], unit[kept, j], lower=1)[0] if size else np.empty(0)
        unexplained = unit[j, j] - row @ row
        if unexplained > DEPENDENT:
            factor[size, :size], factor[size, size] = row, np.sqrt(unexplained)
            kept.append(j)
    return np.array(kept, dtype=np.intp), factor[: len(kept), : len(kept)]
