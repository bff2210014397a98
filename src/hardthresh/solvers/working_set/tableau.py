"""Least squares on a few of many columns: adding, dropping and exchanging columns on a tableau of the Gram matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hardthresh.core.compiled import kernel
from hardthresh.solvers.gains import twice_gains

from .sweeps import ERROR, Sweeps

_TIE = 1 - 1e-7
"""Gains above this share of the best one are ties: the rounding that `ERROR` permits changes a gain by less."""


class Tableau(Sweeps):
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
        super().__init__(gram, slope, chosen, coef, n_free=n_free, gram_rows=gram_rows, bounds=bounds)
        self._go_to_minimum()

    def _go_to_minimum(self) -> None:
        """Go from the start to the minimiser within the bounds on the columns for which everything is computed."""
        compiled = kernel()
        if self.bounds is None:
            return
        if compiled is None:
            self._settle(self._start_coef)
        else:
            self.take(compiled.settle(self.arrays, *self.numbers, self._start_coef))

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
        part._begin(columns.searchsorted(chosen))
        part._go_to_minimum()
        return columns[part.chosen], part.coef

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
        counts = usable & (np.abs(by) > ERROR * np.abs(level))
        gain = np.where(counts, by * (slope - 0.5 * by * np.where(usable, rest, 0.0)), 0.0)
        place = int(gain.argmax()) if held.size else 0
        return place if held.size and gain[place] > 0.0 else None


def _first_best(gain: np.ndarray) -> int:
    """Return the first column whose gain is the best one, up to rounding."""
    return int((gain >= _TIE * gain.max()).argmax())
