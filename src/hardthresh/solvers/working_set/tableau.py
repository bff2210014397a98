"""Least squares on a few of many columns: adding, dropping and exchanging columns on a tableau of the Gram matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtrs

from hardthresh.core.compiled import kernel
from hardthresh.solvers.gains import twice_gains

_TIE = 1 - 1e-7
"""Gains above this share of the best one are ties: the rounding that `_ERROR` permits changes a gain by less."""
_DEPENDENT = 1e-9
"""A column is a combination of the chosen ones if they leave less than this share of it unexplained. Of 240 fits, most
of them to nearly dependent columns, f is higher in 4 and lower in 3 with 1e-10, higher in 4 with 1e-8, and higher in 28
and lower in 10 with 1e-6."""
_DOUBTFUL = 1e-3
"""The error is estimated if the chosen columns leave less than this share of a column unexplained, because rounding is
divided by this share. These 240 fits are the same with 1e-5 to 0.1."""
_ERROR = 1e-10
"""Above this error, as a share of a coefficient, the tableau is computed anew. These 240 fits are the same with 1e-13
to 1e-9; 2 have a higher f with 1e-8."""


class Tableau:
    r"""The minimiser of a quadratic over chosen columns, with the gain of every other column.

    .. math:: q(b) = \tfrac{1}{2} b^\top G b - c^\top b, \qquad b_j = 0 \text{ for } j \notin S

    With A the inverse of G_SS, the tableau holds b and A, the gradient's negative :math:`g = c - G b`, the
    regressions :math:`U = A \, G_{S \cdot}` of all columns on the chosen ones, and
    :math:`h_j = G_{jj} - G_{jS} U_j`, what these leave of each column unexplained. Adding j lowers q by
    :math:`g_j^2 / 2h_j`, dropping i raises it by :math:`b_i^2 / 2A_{ii}`, and either is one update of rank one.
    After i is dropped, column j has the slope :math:`g_j + b_i U_{ij} / A_{ii}` and the unexplained part
    :math:`h_j + U_{ij}^2 / A_{ii}`: an exchange lowers q by the gain of j with these, less the cost of i.

    Where coefficients have bounds, those that meet one stay there: S are the chosen columns that move, and the others
    are held, at a level :math:`v_i`. A column that meets a bound of zero is no longer chosen, unless it is free. In
    everything above b are then the coefficients that move, and c has lost what the held ones explain. Column i, once
    dropped from its level, raises q by :math:`g_i v_i + h_i v_i^2 / 2`, and leaves column j the slope
    :math:`g_j + v_i (G_{ij} - G_{iS} U_j)`. The gain of a column that meets a bound on its way is that up to there;
    what it gains when the others meet bounds, too, is only known once it has been added.

    With r right-hand sides, c and b are matrices of r columns, q is the sum over these, and a column is chosen for all
    of them: squares of b and g are sums over the sides, and nothing else changes.

    Columns have the numbers 0 to m - 1, whatever rows of the matrix `gram` belong to them. A slot is the place of a
    column in `chosen`.

    Parameters
    ----------
    gram : array, shape (p, p)
        Products of p >= m columns, positive semidefinite, float64. It is shared, never written to.
    slope : array, shape (m,) or (m, r)
        :math:`c - G b` at the coefficients `coef`; c itself if these are zero.
    chosen : sequence of int
        S, the ones that may not leave first.
    coef : array, shape (s,) or (s, r), optional
        Coefficients of the chosen columns, within the bounds; default zero. Everything is computed as a change from
        them, so that large coefficients cause no rounding.
    n_free : int
        How many of the first chosen columns may never leave.
    gram_rows : array of int, shape (m,), optional
        The row of `gram` for each column of the tableau, so that G is a block of the matrix; default all.
    bounds : array, shape (2, m), optional
        The lower bounds, <= 0, and the upper ones, >= 0, of the coefficients; for one right-hand side.

    Attributes
    ----------
    size : int
        How many columns are chosen, free ones included.
    decrease : float
        How much lower q is than at `coef`.
    n_free : int
        As given, less those that are combinations of other free columns.
    slots : int
        For how many chosen columns there is room; `reserve` makes more.

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
        self._dependent = np.where(self._norms > 0, _DEPENDENT * self._norms, np.inf)
        self._start_slope = np.ascontiguousarray(np.asarray(slope, dtype=np.float64).T)  # one row for each side
        self._sides = 1 if slope.ndim == 1 else slope.shape[1]
        start = np.zeros((start_columns.size, *slope.shape[1:])) if coef is None else coef
        self._start_coef = self._all_coefficients(start_columns, start.T)
        self._is_free = np.zeros(rows.size, np.int64)
        self._is_free[start_columns[:n_free]] = 1
        self._kept_out: list[int] = []
        self._compute_within_bounds(start_columns)

    def _compute_within_bounds(self, wanted: np.ndarray) -> None:
        """Compute everything for some columns, from the start, none of them held before."""
        self._held, self._n_held, self._level = np.zeros(0, np.int64), 0, np.zeros(self._norms.size)
        self._compute(wanted)
        compiled = kernel()
        if self.bounds is None:
            return
        if compiled is None:
            self._settle(self._start_coef)
        else:
            self.take(compiled.settle(self.arrays, *self.numbers, self._start_coef))

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
        self._chosen, self._moving, self.n_free = chosen, chosen.size, int(self._is_free[[*chosen, *held]].sum())
        slope, rise = self._start_on(chosen)
        m, s = self._norms.size, chosen.size
        rows = self._rows(chosen)
        half = dtrtrs(factor, rows / scale[:, None], lower=1)[0] if s else rows  # factor^-1 G_S.
        pull = slope[..., chosen]
        change = (dpotrs(factor, (pull / scale).T, lower=1)[0].T / scale).reshape(pull.shape) if s else pull
        inverse = dpotri(factor, lower=1)[0] if s else factor
        self.slots, q = s + held.size, self._sides
        self._held = np.concatenate([held, np.zeros(s, np.int64)])
        self._table = np.zeros(
            (q + self.slots, self.slots + m)
        )  # -b and g of each side, then A and U of each column of S
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

    def minimiser(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the minimiser of the same quadratic on other columns, of which the free ones come first.

        These are the columns that are chosen in it, without combinations of others, and their coefficients. Columns
        that have no coefficient there or at the start are not read.
        """
        columns = np.union1d(chosen, np.flatnonzero(self._start_coef.reshape(self._sides, -1).any(axis=0)))
        part = object.__new__(type(self))
        vars(part).update(vars(self), _kept_out=[])
        for name in ("_gram_rows", "_norms", "_dependent", "_start_slope", "_start_coef", "bounds", "_is_free"):
            whole = getattr(self, name)
            setattr(part, name, None if whole is None else np.ascontiguousarray(whole[..., columns]))
        part._kernel_rows = part._gram_rows
        part._compute_within_bounds(columns.searchsorted(chosen))
        return columns[part.chosen], part.coef

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

    def costs(self) -> np.ndarray:
        """Return by how much q rises when a chosen column is dropped: infinite for free ones."""
        diagonal, cancelled = self._inverse_diagonal()
        costs: np.ndarray = (0.5 * self._coefs * (self._coefs / diagonal)).sum(axis=0)
        costs[cancelled] = np.inf
        if self._n_held:
            held = self._held[: self._n_held]
            level = self._level[held]
            costs = np.concatenate([costs, level * (self.slope[held] + 0.5 * level * self._unexplained[held])])
        costs[self.are_free(self.chosen)] = np.inf
        return costs

    def _inverse_diagonal(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the diagonal of A, and where rounding has cancelled it (1 there): these columns cannot be dropped."""
        size = self._moving
        diagonal = self._table[self._sides : self._sides + size, :size].diagonal()
        cancelled = ~(diagonal > 0)
        return np.where(cancelled, 1.0, diagonal), cancelled

    def lowest_chosen_score(self) -> float:
        """Return the lowest score that a chosen column would have if it were not chosen; 0 if none may leave.

        The score of column i, once dropped, is :math:`g_i^2 / 2G_{ii}`: its cost divided by :math:`A_{ii} G_{ii}`, the
        inverse of the share that the other chosen columns leave unexplained. It is comparable with the scores of
        columns outside the tableau, for which this share is not known. That of a held column ends at its bound.
        """
        if self.size == self.n_free:
            return 0.0
        held = self._held[: self._n_held]
        scores = self.costs()
        scores[: self._moving] /= self._inverse_diagonal()[0] * self._norms[self._chosen[: self._moving]]
        slope = self._slopes[:, held] + self._level[held] * self._unexplained[held]
        scores[self._moving :] = 0.5 * self._twice_gains(slope, self._norms[held], held).sum(axis=0)
        return float(scores[~self.are_free(self.chosen)].min())

    def highest_score(self) -> float:
        """Return the highest score, :math:`g_j^2 / 2G_{jj}` or less at a bound, of the columns that are not chosen."""
        if self._norms.size == 0:
            return 0.0
        rest = np.where(self._norms > 0, self._norms, np.inf) + self._excluded
        return float(0.5 * self._twice_gains(self._slopes, rest).sum(axis=0).max())

    def gains(self) -> np.ndarray:
        """Return by how much q falls when each column is added; 0 for chosen columns and combinations of them."""
        usable = np.where(self._unexplained > self._dependent, self._unexplained, np.inf) + self._excluded
        gains: np.ndarray = 0.5 * self._twice_gains(self._slopes, usable).sum(axis=0)
        return gains

    def _twice_gains(self, slope: np.ndarray, rest: np.ndarray, some: np.ndarray | slice = slice(None)) -> np.ndarray:
        return twice_gains(slope, rest, None if self.bounds is None else self.bounds[:, some])

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
        best = int(equal[0])
        return best, float(gain[best])

    def exchanges(self, count: int) -> list[tuple[int, int, float]]:
        """Return the best exchanges of `count` chosen columns, largest decrease first; see `best_exchange`."""
        gain, loss = self._exchange_gains()
        falls = gain.max(axis=1) - loss
        best = [i for i in np.argsort(-falls, kind="stable").tolist() if loss[i] < np.inf][:count]
        return [(i, _first_best(gain[i]), 0.5 * float(falls[i])) for i in best]

    def best_exchange(self) -> tuple[int, int, float]:
        """Return the slot of a chosen column, the column to replace it, and by how much q falls (< 0 if it rises).

        Of copies that could replace it the first does.
        """
        if self.size == self.n_free or self._unexplained.size == 0:
            return 0, 0, 0.0
        gain, loss = self._exchange_gains()
        fall = gain.max(axis=1) - loss
        i = int(fall.argmax())
        return i, _first_best(gain[i]), 0.5 * float(fall[i])

    def _exchange_gains(self) -> tuple[np.ndarray, np.ndarray]:
        """Return twice the gain of each column (axis 1) once a chosen one (axis 0) is dropped, and twice its cost."""
        size, diagonal = self._moving, self._inverse_diagonal()[0]
        scale = 1.0 / np.sqrt(diagonal)
        shifts = -self._coefs * scale
        scaled = self._table[self._sides : self._sides + size, self.slots :] * scale[:, None]  # U_ij / sqrt(A_ii)
        slopes = [scaled * shift[:, None] + slope for shift, slope in zip(shifts, self._slopes, strict=True)]
        rest = np.maximum(self._unexplained, self._dependent) + self._excluded
        unexplained = np.multiply(scaled, scaled, out=scaled)  # in place, as these arrays are large
        unexplained += rest
        gains = self._twice_gains(slopes[0], unexplained)
        for slope in slopes[1:]:
            gains += self._twice_gains(slope, unexplained)
        loss = 2.0 * self.costs()
        loss[:size] = np.where(loss[:size] < np.inf, (shifts * shifts).sum(axis=0), np.inf)
        for j in self._held[: self._n_held].tolist():
            row = self._regress(j)[self.slots :]
            gains = np.vstack([gains, self._twice_gains(self.slope + self._level[j] * row, rest)])
        return gains, loss

    def add(self, j: int) -> bool:
        """Add a column, unless it is a combination of those chosen, and return whether q has fallen.

        Columns that meet a bound are held there, or leave if it is zero.
        """
        if not self._unexplained[j] > self._dependent[j]:
            return False
        decrease = self.decrease
        before = None if self.bounds is None else self._point()
        self._enter(j, 0.0)
        if before is not None:
            self._settle(before)
        return self.decrease > decrease

    def drop(self, slot: int) -> None:
        """Drop the column in a slot, which the last one that moves takes; others may meet bounds, or move again."""
        before = None if self.bounds is None else self._point()
        if slot < self._moving:
            self._leave(slot, 0.0)
        else:
            self._shift(self._not_held(slot - self._moving), 0.0)
        if before is not None:
            self._settle(before)

    def keep_out(self, column: int | None) -> None:
        """Keep a column that is not chosen out until this is called again; None for no column."""
        self._excluded[self._kept_out] = 0.0
        self._kept_out = [] if column is None else [column]
        self._excluded[self._kept_out] = np.inf

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
        if unexplained < _DOUBTFUL * self._norms[j] and self._error(row / unexplained, chosen, j) > _ERROR:
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
        if doubtful and self._error(table[q + slot], np.delete(self._chosen[: self._moving], slot), j) > _ERROR:
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

    def _point(self) -> np.ndarray:
        """Return the coefficients of all columns, for one right-hand side."""
        point = self._level.copy()
        point[self._chosen[: self._moving]] = -self._table[0, : self._moving]
        return point

    def _settle(self, point: np.ndarray) -> None:
        """Go from a point within the bounds to the minimiser within them, on the chosen columns.

        Each coefficient stays at the first bound that it meets; in the end that which lowers q most may move again, as
        long as there is one. These are the steps of Lawson and Hanson (1974) and of Stark and Parker (1995,
        *Computational Statistics* 10, 129-141): finite, and q never exceeds its value at the start.
        """
        while True:
            self._go_within_bounds(point)
            decrease, place = self.decrease, self._best_release()
            if place is None:
                return
            point = self._point()
            j = self._not_held(place)
            self._level[j] = 0.0
            self._enter(j, float(point[j]))
            self._go_within_bounds(point)
            if not self.decrease > decrease:  # rounding
                return

    def _go_within_bounds(self, point: np.ndarray) -> None:
        """Go from a point within the bounds towards the minimiser, and leave each coefficient at the bound it meets."""
        assert self.bounds is not None
        while True:
            chosen = self._chosen[: self._moving]
            coef, (lower, upper) = -self._table[0, : self._moving], self.bounds[:, chosen]
            beyond = np.flatnonzero((coef < lower) | (coef > upper))
            if beyond.size == 0:
                return
            here, met = point[chosen], np.where(coef < lower, lower, upper)
            reach = (here[beyond] - met[beyond]) / (here[beyond] - coef[beyond])
            slot = int(beyond[int(np.argmin(reach))])
            here = here + float(np.min(reach)) * (coef - here)
            here[slot] = met[slot]
            point = self._all_coefficients(chosen, here)
            self._leave(slot, float(met[slot]))

    def _best_release(self) -> int | None:
        """Return the place of the held column that lowers q most when it moves; None if none does."""
        assert self.bounds is not None
        held = self._held[: self._n_held]
        level, slope, rest = self._level[held], self.slope[held], self._unexplained[held]
        usable = rest > self._dependent[held]
        rest = np.where(usable, rest, np.inf)
        by = np.minimum(np.maximum(level + slope / rest, self.bounds[0, held]), self.bounds[1, held]) - level
        counts = usable & (np.abs(by) > _ERROR * np.abs(level))
        gain = np.where(counts, by * (slope - 0.5 * by * np.where(usable, rest, 0.0)), 0.0)
        place = int(gain.argmax()) if held.size else 0
        return place if held.size and gain[place] > 0.0 else None


def _first_best(gain: np.ndarray) -> int:
    """Return the first column whose gain is the best one, up to rounding."""
    return int((gain >= _TIE * gain.max()).argmax())


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
