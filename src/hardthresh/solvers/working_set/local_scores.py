"""What the quadratic model of f at a refit says of the columns of a working set, compiled or not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs

from hardthresh.arrays import double
from hardthresh.arrays.linalg import DEPENDENT
from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.compiled import kernel
from hardthresh.objectives import LinearModel
from hardthresh.solvers.gains import twice_gains

from .kernel_model import KernelModel, numpy_loss
from .refits import PREDICTED, newton, predict, refit_by_kernel, ridges_of

_EXCHANGES, NEARLY = 5, 0.95
"""How many exchanges are tried at a point, and of which share of its cost the modelled gain must be. Of the exchanges
that lowered f on 89 simulated classifiers, all had a share above 0.95, and 95 % were among the four with the largest.
With 3 exchanges the lowest f of 14 variants was reached on 61 of them, with 5 on 65."""
_REGULAR = 1e-12
"""What is added to the diagonal of correlations, so that those of dependent columns have a Cholesky factor: far above
rounding and far below the unexplained share."""


@dataclass(frozen=True, slots=True, eq=False)
class Refit:
    """The minimiser of f on some columns.

    Attributes
    ----------
    chosen : tuple of int
        The columns, increasing, as places in the working set.
    coef : array, shape (s,)
        Their coefficients.
    value : float
        f; infinite if it is not finite.
    """

    chosen: tuple[int, ...]
    coef: np.ndarray
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Chosen columns that are held at their bounds, in the quadratic model of f; see `Tableau`.

    Attributes
    ----------
    level, slope : array, shape (t,)
        v and g.
    regressions : array, shape (t, s)
        Their regressions on the columns that move.
    rows : array, shape (t, m)
        What these leave unexplained of their products with all columns.
    rest : array, shape (t, t)
        The same for each other; h is the diagonal.
    """

    level: np.ndarray
    slope: np.ndarray
    regressions: np.ndarray
    rows: np.ndarray
    rest: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class LocalScores:
    """What the quadratic model of f at a `Refit` says about its columns and all others, in the notation of `Tableau`.

    All is at the minimiser of the model on the chosen columns. The refit ends near it, but not there: among near copies
    of the chosen columns, of which little is unexplained, even the small slope that is left would be a large gain.

    Attributes
    ----------
    coef, inverse : array, shape (s,) and (s, s)
        b and A, of the s columns that move.
    slope, unexplained : array, shape (m,)
        g and h; h is infinite for chosen columns and combinations of them.
    regressions : array, shape (s, m)
        U.
    fixed : array of bool, shape (s + t,)
        The chosen columns that may not be dropped, by their places.
    moving : array of bool, shape (s + t,)
        Which of the chosen columns move; the other t are held at their bounds.
    held : Held
        These.
    bounds : array, shape (2, m), or None
        The bounds of all columns.
    """

    coef: np.ndarray
    inverse: np.ndarray
    slope: np.ndarray
    unexplained: np.ndarray
    regressions: np.ndarray
    fixed: np.ndarray
    moving: np.ndarray
    held: Held
    bounds: np.ndarray | None

    @property
    def _diagonal(self) -> np.ndarray:
        """The diagonal of A to divide by: 1 in place of 0."""
        own = self.inverse.diagonal()
        return np.where(own == 0, 1.0, own)

    def gains(self) -> np.ndarray:
        """Return by how much the model falls when each column is added."""
        gains: np.ndarray = 0.5 * twice_gains(self.slope, self.unexplained, self.bounds)
        return gains

    def costs(self) -> np.ndarray:
        """Return by how much it rises when each chosen column is dropped; infinite if it may not be.

        It is infinite, too, for a column without curvature, as one by which a partial likelihood is monotone: of that
        the model says nothing.
        """
        costs, level = np.empty(self.fixed.size), self.held.level
        flat = self.inverse.diagonal() == 0  # no curvature, of which A has the pseudo-inverse
        costs[self.moving] = np.where(flat, inf, 0.5 * self.coef * (self.coef / self._diagonal))
        costs[~self.moving] = level * (self.held.slope + 0.5 * level * self.held.rest.diagonal())
        costs[self.fixed] = inf
        return costs

    def cost(self, dropped: np.ndarray) -> float:
        """Return by how much it rises when several chosen columns are dropped together."""
        gone = np.zeros(self.fixed.size, dtype=bool)
        gone[dropped] = True
        level = np.where(gone[~self.moving], self.held.level, 0.0)
        part = gone[self.moving]
        coef = (self.coef + level @ self.held.regressions)[part]
        rise = level @ (self.held.slope + 0.5 * self.held.rest @ level)
        return float(rise) + 0.5 * float(coef @ np.linalg.solve(self.inverse[np.ix_(part, part)], coef))

    def exchanges(self) -> list[tuple[int, int]]:
        """Return the best exchanges: the place of a chosen column, and the column that replaces it."""
        costs, diagonal = self.costs(), self._diagonal[:, None]
        slope, unexplained = (np.empty((costs.size, self.slope.size)) for _ in range(2))
        slope[self.moving] = self.slope + self.coef[:, None] * self.regressions / diagonal
        slope[~self.moving] = self.slope + self.held.level[:, None] * self.held.rows
        unexplained[self.moving] = self.unexplained + self.regressions * self.regressions / diagonal
        unexplained[~self.moving] = self.unexplained
        gains = 0.5 * twice_gains(slope, unexplained, self.bounds)
        added = gains.argmax(axis=1)
        gain = gains[np.arange(added.size), added]
        close = np.flatnonzero(gain >= NEARLY * costs)
        best = close[np.argsort((costs - gain)[close], kind="stable")[:_EXCHANGES]]
        return [(int(i), int(added[i])) for i in best]


class ColumnsToSearch:
    """A model of the columns of a working set: the refits of some of them, and the scores of all at a refit.

    Parameters
    ----------
    model : LinearModel
        f, of these columns only.
    fixed : frozenset of int
        The columns that are always chosen, as places in the working set.
    bounds : array, shape (2, m), or None
        The bounds of the coefficients.

    Attributes
    ----------
    l2, null : array, shape (m,)
        The ridge of each column, and its coefficient in the null model.
    n_examples : int
        The number of rows.
    known : KernelModel or None
        What the kernel is given, if it knows the loss and the thresholds of ordered classes are all fixed.
    """

    def __init__(self, model: LinearModel, fixed: frozenset[int], bounds: np.ndarray | None) -> None:
        self._model, self.l2, self.null = model, ridges_of(model), double(model.null_point())
        self._mean_loss, self._offset = numpy_loss(model)
        self.n_examples, self.bounds, self._fixed = int(model.y.shape[0]), bounds, fixed
        known = KernelModel.of_model(model, self._mean_loss, self._offset)
        stays = known is not None and fixed.issuperset(range(known.columns.shape[0], self.l2.size))
        self.known = known if stays else None

    @without_overflow_warnings
    def refitted(self, places: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the minimiser on some columns, increasing, and f there."""
        l2, known = self.l2[places], None if self.known is None else self.known.of_columns(places)
        bounds = None if self.bounds is None else self.bounds[:, places]
        found = refit_by_kernel(known, l2, start, bounds)
        if found is None:
            Z = self._columns[places].T
            found = newton(Z, self._mean_loss, self._offset, l2, start, PREDICTED, inf, bounds)[:3]
        return found[0], found[2]

    @cached_property
    def _columns(self) -> np.ndarray:
        """A row for each column, for NumPy."""
        if self.known is not None and self.known.n_thresholds == 0:
            return self.known.columns
        return np.ascontiguousarray(double(self._model.design.dense()).T)

    def scores(self, fit: Refit) -> LocalScores:
        """Return what the quadratic model at a minimiser says of all columns."""
        compiled, known = kernel(), self.known
        if compiled is None or known is None:
            return self._by_numpy(fit, slice(None))
        chosen, moving = np.array(fit.chosen, dtype=np.int64), self._moving(fit)
        some, m = chosen[moving], self.l2.size
        slope, unexplained = np.empty(m), np.empty(m)
        regressions, inverse = np.empty((some.size, m)), np.empty((some.size, some.size))
        coef, prediction = fit.coef[moving], known.of_columns(chosen).predict(fit.coef)
        compiled.scores(
            known.loss, np.ascontiguousarray(known.examples), some, self.l2, prediction,
            coef, slope, unexplained, regressions, inverse,
        )  # fmt: skip
        held = self._held(fit, slice(None), chosen, slope, regressions)
        unexplained[chosen] = inf
        return LocalScores(coef, inverse, slope, unexplained, regressions, self.stay(fit), moving, held, self.bounds)

    def own_scores(self, fit: Refit) -> LocalScores:
        """Return what it says of the columns of the refit alone."""
        return self._by_numpy(fit, list(fit.chosen))

    def _moving(self, fit: Refit) -> np.ndarray:
        """Return which of the columns of a refit are not held at a bound."""
        if self.bounds is None:
            return np.ones(len(fit.chosen), dtype=bool)
        lower, upper = self.bounds[:, list(fit.chosen)]
        moving: np.ndarray = (lower < fit.coef) & (fit.coef < upper)
        return moving

    def _held(
        self,
        fit: Refit,
        of: list[int] | slice,
        chosen: np.ndarray,
        slope: np.ndarray,
        regressions: np.ndarray,
    ) -> Held:
        """Return what the model says of the columns of a refit that are held, among all or the chosen ones.

        `chosen` are their numbers among these, like those of slope and regressions.
        """
        moving = self._moving(fit)
        held, level, l2 = chosen[~moving], fit.coef[~moving], self.l2[of]
        if held.size == 0:
            return Held(level, level, np.empty((0, int(moving.sum()))), np.empty((0, l2.size)), np.empty((0, 0)))
        prediction = predict(self._columns[list(fit.chosen)].T, fit.coef, self._offset)
        X, few, inner = self._columns[of].T, self._columns[of][held], self._mean_loss.inner_hessian(prediction)
        rows = (few * inner.diagonal) @ X - inner.image(few.T).T @ inner.image(X)
        rows[np.arange(held.size), held] += l2[held]
        rows -= rows[:, chosen[moving]] @ regressions
        return Held(level, slope[held] - l2[held] * level, regressions[:, held].T, rows, rows[:, held])

    def stay(self, fit: Refit) -> np.ndarray:
        """Return which of the columns of a refit may not be dropped."""
        return np.array([j in self._fixed for j in fit.chosen], dtype=bool)

    def _by_numpy(self, fit: Refit, of: list[int] | slice) -> LocalScores:
        """Return these scores of all columns or of the chosen ones, computed by NumPy."""
        prediction, moving = predict(self._columns[list(fit.chosen)].T, fit.coef, self._offset), self._moving(fit)
        X, l2 = self._columns[of].T, self.l2[of]
        every = np.array(fit.chosen, dtype=np.int64) if isinstance(of, slice) else np.arange(len(of))
        chosen = every[moving].tolist()
        few = X.T[chosen]
        inner = self._mean_loss.inner_hessian(prediction)
        slope = -(self._mean_loss.slopes(prediction) @ X)
        image, image_of_few = inner.image(X), inner.image(few.T)
        diagonal = inner.diagonal @ self._squares[:, of] - np.einsum("ij,ij->j", image, image) + l2
        cross = (few * inner.diagonal) @ X - image_of_few.T @ image  # the Hessian's rows of the chosen columns
        cross[np.arange(len(chosen)), chosen] += l2[chosen]
        scale = np.sqrt(np.maximum(diagonal[chosen], np.finfo(float).tiny))
        correlation = cross[:, chosen] / np.outer(scale, scale)
        correlation.flat[:: len(chosen) + 1] += _REGULAR
        coef, unexplained, regressions, inverse = fit.coef[moving], diagonal, cross, correlation
        if chosen:
            factor = dpotrf(correlation, lower=1)[0]
            half = dtrtrs(factor, cross / scale[:, None], lower=1)[0]
            unexplained = diagonal - np.einsum("ij,ij->j", half, half)
            regressions = dtrtrs(factor, half, lower=1, trans=1)[0] / scale[:, None]
            lower = np.tril(dpotri(factor, lower=1)[0])
            inverse = (lower + np.tril(lower, -1).T) / np.outer(scale, scale)
            left = slope[chosen] - l2[chosen] * coef
            slope, coef = slope - left @ regressions, coef + inverse @ left
            slope[chosen] = 0.0
        unexplained = np.where(unexplained > DEPENDENT * diagonal, unexplained, inf)
        unexplained[every] = inf
        held, bounds = self._held(fit, of, every, slope, regressions), self.bounds
        bounds = bounds if bounds is None else bounds[:, of]
        return LocalScores(coef, inverse, slope, unexplained, regressions, self.stay(fit), moving, held, bounds)

    @cached_property
    def _squares(self) -> np.ndarray:
        squares: np.ndarray = np.square(self._columns).T
        return squares
