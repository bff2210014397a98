"""Least squares on a few of many columns: adding, dropping and exchanging columns on a tableau of the Gram matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtrs

from hardthresh.core.compiled import kernel

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
        Coefficients of the chosen columns, of the right signs; default zero. Everything is computed as a change from
        them, so that large coefficients cause no rounding.
    n_free : int
        How many of the first chosen columns may never leave.
    gram_rows : array of int, shape (m,), optional
        The row of `gram` for each column of the tableau, so that G is a block of the matrix; default all.
    signs : array of shape (m,), optional
        +1 or -1 for the columns whose coefficient may have this sign only, 0 for the others; for one right-hand side.

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
        signs: np.ndarray | None = None,
    ) -> None:
        start_columns = np.asarray(chosen, dtype=np.int64)
        self._gram, self.n_free = np.ascontiguousarray(gram, dtype=np.float64), n_free
        self.signs = None if signs is None else np.ascontiguousarray(signs, dtype=np.float64)
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
        self._kept_out: list[int] = []
        self._compute(start_columns)
        if signs is not None:
            self._restore_signs(self._start_coef)

    def _compute(self, wanted: np.ndarray) -> None:
        """Compute everything from the Gram matrix for some columns, without combinations of earlier ones."""
        compiled = kernel()
        if compiled is not None:
            m, self.slots = self._norms.size, wanted.size
            self._table = np.empty((self._sides + self.slots, self.slots + m))
            self._chosen = np.empty(self.slots, np.int64)
            self._unexplained, self._excluded = np.empty(m), np.empty(m)
            self.take(compiled.compute(self.arrays, self.n_free, wanted))
            self._excluded[self._kept_out] = np.inf
            return
        block = self._gram_rows[wanted]
        scale = np.sqrt(self._norms[wanted])
        kept, factor = independent_columns(self._gram[np.ix_(block, block)], scale)
        scale, chosen = scale[kept], wanted[kept]
        self._chosen, self.size, self.n_free = chosen, chosen.size, int(np.count_nonzero(kept < self.n_free))
        slope, rise = self._start_on(chosen)
        m, s = self._norms.size, chosen.size
        rows = self._rows(chosen)
        half = dtrtrs(factor, rows / scale[:, None], lower=1)[0] if s else rows  # factor^-1 G_S.
        pull = slope[..., chosen]
        change = (dpotrs(factor, (pull / scale).T, lower=1)[0].T / scale).reshape(pull.shape) if s else pull
        inverse = dpotri(factor, lower=1)[0] if s else factor
        self.slots, q = s, self._sides
        self._table = np.zeros((q + s, s + m))  # -b and g of each side, then A and U of each chosen column
        self._table[:q, :s], self._table[:q, s:] = -(self._start_coef[..., chosen] + change), slope - change @ rows
        self._table[q:, :s] = (np.tril(inverse) + np.tril(inverse, -1).T) / np.outer(scale, scale)
        if s:
            self._table[q:, s:] = dtrtrs(factor, half, lower=1, trans=1)[0] / scale[:, None]
        self._unexplained = self._norms - np.sum(half * half, axis=0)
        self._excluded = np.zeros(m)  # infinite for the chosen columns, so that adding them gains nothing
        self._excluded[[*chosen, *self._kept_out]] = np.inf
        self.decrease = 0.5 * float(change.ravel() @ pull.ravel()) - rise

    def _start_on(self, chosen: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the slope at the start once columns that are not chosen are set to zero, and by how much q rises."""
        zeroed = self._start_coef.copy()
        zeroed[..., chosen] = 0.0
        removed = np.flatnonzero(zeroed.reshape(self._sides, -1).any(axis=0))
        if removed.size == 0:
            return self._start_slope, 0.0
        pull = zeroed[..., removed] @ self._rows(removed)
        rise = zeroed[..., removed].ravel() @ (self._start_slope + 0.5 * pull)[..., removed].ravel()
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
        for name in ("_table", "_unexplained", "_excluded", "_chosen"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def minimiser(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the minimiser of the same quadratic on other columns, of which the free ones come first.

        These are the columns that are chosen in it, without combinations of others, and their coefficients. Columns
        that have no coefficient there or at the start are not read.
        """
        columns = np.union1d(chosen, np.flatnonzero(self._start_coef.reshape(self._sides, -1).any(axis=0)))
        part = object.__new__(type(self))
        vars(part).update(vars(self), _kept_out=[], signs=None if self.signs is None else self.signs[columns])
        for name in ("_gram_rows", "_norms", "_dependent", "_start_slope", "_start_coef"):
            setattr(part, name, np.ascontiguousarray(getattr(self, name)[..., columns]))
        part._kernel_rows = part._gram_rows
        part._compute(columns.searchsorted(chosen))
        if part.signs is not None:
            part._restore_signs(part._start_coef)
        return columns[part.chosen], part.coef

    @property
    def arrays(self) -> tuple[np.ndarray | None, ...]:
        """The arrays that the compiled kernel reads and, from the table on, changes."""
        return (
            self._gram, self._kernel_rows, self._norms, self._dependent, self._start_slope, self._start_coef,
            self.signs, self._table, self._unexplained, self._excluded, self._chosen,
        )  # fmt: skip

    @property
    def numbers(self) -> tuple[int, int, float]:
        """What is no array: how many columns are chosen, how many of them are free, and the decrease."""
        return self.size, self.n_free, self.decrease

    def take(self, numbers: tuple[int, int, float]) -> None:
        """Take the numbers from the compiled kernel, which has changed the arrays."""
        self.size, self.n_free, self.decrease = numbers

    @property
    def chosen(self) -> list[int]:
        """The chosen columns, by their slots."""
        chosen: list[int] = self._chosen[: self.size].tolist()
        return chosen

    @property
    def coef(self) -> np.ndarray:
        """The coefficients of the chosen columns, in their order, shape (s,) or (s, r)."""
        coef: np.ndarray = -(self._table[0, : self.size] if self._is_single else self._coefs.T)
        return coef

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
        """The negative coefficients of the chosen columns, shape (r, s)."""
        return self._table[: self._sides, : self.size]

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
        costs[: self.n_free] = np.inf
        return costs

    def _inverse_diagonal(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the diagonal of A, and where rounding has cancelled it (1 there): these columns cannot be dropped."""
        size = self.size
        diagonal = self._table[self._sides : self._sides + size, :size].diagonal()
        cancelled = ~(diagonal > 0)
        return np.where(cancelled, 1.0, diagonal), cancelled

    def lowest_chosen_score(self) -> float:
        """Return the lowest score that a chosen column would have if it were not chosen; 0 if none may leave.

        The score of column i, once dropped, is :math:`g_i^2 / 2G_{ii}`: its cost divided by :math:`A_{ii} G_{ii}`, the
        inverse of the share that the other chosen columns leave unexplained. It is comparable with the scores of
        columns outside the tableau, for which this share is not known.
        """
        size, free = self.size, self.n_free
        if size == free:
            return 0.0
        inverse_share = self._inverse_diagonal()[0][free:] * self._norms[self._chosen[free:size]]
        return float((self.costs()[free:] / inverse_share).min())

    def highest_score(self) -> float:
        """Return the highest score, :math:`g_j^2 / 2G_{jj}`, of the columns that are not chosen."""
        if self._norms.size == 0:
            return 0.0
        slopes = self._allowed(self._slopes)
        scores = (0.5 * slopes * (slopes / np.where(self._norms > 0, self._norms, np.inf))).sum(axis=0)
        return float(scores.max())

    def gains(self) -> np.ndarray:
        """Return by how much q falls when each column is added; 0 for chosen columns and combinations of them."""
        slopes = self._allowed(self._slopes)
        usable = np.where(self._unexplained > self._dependent, self._unexplained, np.inf) + self._excluded
        gains: np.ndarray = (0.5 * slopes * (slopes / usable)).sum(axis=0)
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
        best = int(equal[0])
        return best, float(gain[best])

    def exchanges(self, count: int) -> list[tuple[int, int, float]]:
        """Return the best exchanges of `count` chosen columns, largest decrease first; see `best_exchange`."""
        gain, loss = self._exchange_gains()
        falls = gain.max(axis=1) - loss
        best = np.argsort(-falls, kind="stable")[:count]
        return [(self.n_free + int(i), _first_best(gain[i]), 0.5 * float(falls[i])) for i in best]

    def best_exchange(self) -> tuple[int, int, float]:
        """Return the slot of a chosen column, the column to replace it, and by how much q falls (< 0 if it rises).

        Of copies that could replace it the first does.
        """
        if self.size == self.n_free or self._unexplained.size == 0:
            return 0, 0, 0.0
        gain, loss = self._exchange_gains()
        fall = gain.max(axis=1) - loss
        i = int(fall.argmax())
        return self.n_free + i, _first_best(gain[i]), 0.5 * float(fall[i])

    def _exchange_gains(self) -> tuple[np.ndarray, np.ndarray]:
        """Return twice the gain of each column (axis 1) once a chosen one (axis 0) is dropped, and twice its cost."""
        size, free = self.size, self.n_free
        diagonal, cancelled = self._inverse_diagonal()
        scale = 1.0 / np.sqrt(diagonal[free:])
        shifts = -self._coefs[:, free:] * scale
        scaled = (
            self._table[self._sides + free : self._sides + size, self.slots :] * scale[:, None]
        )  # U_ij / sqrt(A_ii)
        slopes = [
            self._allowed(scaled * shift[:, None] + slope) for shift, slope in zip(shifts, self._slopes, strict=True)
        ]
        unexplained = np.multiply(scaled, scaled, out=scaled)  # in place, as these arrays are large
        unexplained += np.maximum(self._unexplained, self._dependent) + self._excluded
        gains = slopes[0] / unexplained
        gains *= slopes[0]
        for slope in slopes[1:]:
            gains += slope / unexplained * slope
        loss = (shifts * shifts).sum(axis=0)
        loss[cancelled[free:]] = np.inf
        return gains, loss

    def add(self, j: int) -> bool:
        """Add a column, unless it is a combination of those chosen, and return whether q has fallen.

        Columns whose signs become wrong leave.
        """
        if not self._unexplained[j] > self._dependent[j]:
            return False
        decrease = self.decrease
        before = None if self.signs is None else self._all_coefficients(self._chosen[: self.size], self.coef)
        self._enter(j)
        if before is not None:
            self._restore_signs(before)
        return self.decrease > decrease

    def drop(self, slot: int) -> None:
        """Drop the column in a slot, which the last chosen column takes; columns with wrong signs leave too."""
        before = None if self.signs is None else self._all_coefficients(self._chosen[: self.size], self.coef)
        self._leave(slot)
        if before is not None:
            self._restore_signs(before)

    def keep_out(self, column: int | None) -> None:
        """Keep a column that is not chosen out until this is called again; None for no column."""
        self._excluded[self._kept_out] = 0.0
        self._kept_out = [] if column is None else [column]
        self._excluded[self._kept_out] = np.inf

    def _rows(self, chosen: np.ndarray) -> np.ndarray:
        """Return some rows of G."""
        rows: np.ndarray = self._gram[self._gram_rows[chosen]].take(self._gram_rows, axis=1)
        return rows

    def _allowed(self, slope: np.ndarray) -> np.ndarray:
        """Return slopes, with zero where a coefficient would have the wrong sign."""
        return slope if self.signs is None else np.where(slope * self.signs < 0, 0.0, slope)

    def _enter(self, j: int) -> None:
        size = self.size
        if size == self.slots:
            self.reserve(2 * size + 8)
        table, slots, chosen, q = self._table, self.slots, self._chosen[:size], self._sides
        products = self._gram[self._gram_rows[j]].take(self._gram_rows)
        row = -(products[chosen] @ table[q : q + size])
        row[slots:] += products
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
        table[q + size] = row
        self._chosen[size], self.size = j, size + 1
        self._excluded[j] = np.inf
        for slope in slopes:
            self.decrease += 0.5 * slope * (slope / float(unexplained))

    def _leave(self, slot: int) -> None:
        table, last, j, q = self._table, self.size - 1, self._chosen[slot], self._sides
        diagonal = table[q + slot, slot]
        doubtful = not diagonal * self._norms[j] < 1.0 / _DOUBTFUL  # also where it is NaN
        if doubtful and self._error(table[q + slot], np.delete(self._chosen[: self.size], slot), j) > _ERROR:
            self._chosen[slot] = self._chosen[last]
            self._compute(self._chosen[:last].copy())
            return
        row = table[q + slot] / diagonal
        for coef in table[:q, slot].tolist():
            self.decrease -= 0.5 * coef * (coef / float(diagonal))
        self._unexplained = self._unexplained + row[self.slots :] * (row[self.slots :] * diagonal)
        self._update(row, slot)
        self._excluded[j] = 0.0
        table[q + slot], self._chosen[slot] = table[q + last], self._chosen[last]  # the last one takes its slot
        table[: q + last + 1, slot] = table[: q + last + 1, last]
        table[q + last] = 0.0
        table[: q + last + 1, last] = 0.0
        self.size = last

    def _error(self, row: np.ndarray, others: np.ndarray, j: int) -> float:
        """Return the error of `row`, the regression of column j, at the `others`, where it must be zero.

        It is in units of the columns, as a share of a coefficient.
        """
        there = row[self.slots :][others]
        return float(np.max(np.abs(there) * np.sqrt(self._norms[j] / self._norms[others]), initial=0.0))

    def _update(self, row: np.ndarray, column: int) -> None:
        """Subtract from each row of the table its entry in a column times a row."""
        used = self._table[
            : self._sides + self.size
        ]  # whole rows: the transpose is contiguous for Fortran, and changed in place
        dger(-1.0, row, used[:, column].copy(), a=used.T, overwrite_a=1)

    def reserve(self, slots: int) -> None:
        """Make room for so many chosen columns, if there is less."""
        if slots <= self.slots:
            return
        size, used = self.size, self._sides + self.size
        table, chosen = np.zeros((self._sides + slots, slots + self._gram_rows.size)), np.zeros(slots, np.int64)
        table[:used, :size] = self._table[:used, :size]
        table[:used, slots:] = self._table[:used, self.slots :]
        chosen[:size] = self._chosen[:size]
        self._table, self._chosen, self.slots = table, chosen, slots

    def _restore_signs(self, point: np.ndarray) -> None:
        """Drop columns until all signs are right, from coefficients with right signs.

        Each round goes towards the minimiser until a coefficient is zero, and drops that column: a step of Lawson and
        Hanson's method (1974), so that q never exceeds its value at the start.
        """
        assert self.signs is not None
        while True:
            coef = self.coef
            chosen = self._chosen[: self.size]
            wrong = np.flatnonzero(coef * self.signs[chosen] < 0)
            if wrong.size == 0:
                return
            here = point[chosen]
            reach = here[wrong] / (here[wrong] - coef[wrong])
            slot = int(wrong[int(np.argmin(reach))])
            point = self._all_coefficients(chosen, here + float(np.min(reach)) * (coef - here))
            self._leave(slot)


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
