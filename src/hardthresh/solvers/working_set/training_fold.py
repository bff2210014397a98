"""The training rows of a fold of a loss that is not squared: its null model, quadratic approximations, and refits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardthresh.arrays import double, gather, move, namespace
from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.constraint import CoordinateBudget
from hardthresh.losses.expansion import Expansion
from hardthresh.objectives import LinearModel

from .fold_path import FoldPath
from .fold_refits import FewColumns, FoldRefits
from .model import union
from .refits import ColumnsToRefit
from .support_grid import ENTRIES

LEAST_CURVATURE = 1e-4
"""The curvature of a loss counts as at least this share of the largest one: working responses are divided by it. Rows
with less, of a probability within 1e-5 of 0 or 1 beside others of 1/2, or of an expected count of 1 beside others of
10,000, have no say in the moments of a column. Arbitrary, and rare at the null model."""
_ROUNDING = 1e-10
"""Numbers that differ by this share count as equal: far above the rounding of a loss, and far below what matters."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkingResponses:
    """A quadratic approximation of the loss of a fold: least squares with a weight for each row.

    Attributes
    ----------
    target, curvature : array, shape (n_rows,)
        Working responses without the offset, and the curvatures of the losses.
    """

    target: np.ndarray
    curvature: np.ndarray

    def mean_curvature(self, weights: np.ndarray) -> float:
        """Return the mean curvature, by weights of the rows that sum to one."""
        return float(weights @ self.curvature)

    def is_finite(self) -> bool:
        """Return whether all numbers are finite."""
        return bool(np.isfinite(self.target).all() and np.isfinite(self.curvature).all())


@dataclass(frozen=True, slots=True, eq=False)
class NullModel(WorkingResponses):
    """The null model of a fold, of the intercept and the free columns, and its approximation by expected curvatures.

    Attributes
    ----------
    coef : array, shape (n_free,)
        The coefficients, with that of the column of ones.
    converged : bool
        Whether it is a minimum.
    value : float
        The mean loss.
    """

    coef: np.ndarray
    converged: bool
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class TrainingFold:
    """The training rows of a fold and its null model.

    Attributes
    ----------
    objective, selection, intercept, standardize :
        As for `generalized_fold_paths`.
    free : array of int
        The free columns, without the intercept.
    rows : array of int
        The training rows.
    y, weights, offset : array, shape (n_rows,)
        Of these rows, in double precision; the weights sum to one.
    """

    objective: LinearModel
    selection: CoordinateBudget
    intercept: bool
    standardize: bool
    free: np.ndarray
    rows: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    offset: np.ndarray | None

    @classmethod
    def of(
        cls,
        objective: LinearModel,
        selection: CoordinateBudget,
        rows: np.ndarray,
        *,
        intercept: bool,
        standardize: bool,
    ) -> TrainingFold:
        """Return the fold of some training rows."""
        last = objective.shape[0] - 1
        free = np.array([j for j in selection.free if not (intercept and j == last)], dtype=np.int64)
        where = move(rows, objective.y)
        y, weights = double(gather(objective.y, where)), double(gather(objective.weights, where))
        offset = None if objective.offset is None else double(gather(objective.offset, where))
        return cls(
            objective, selection, intercept, standardize, np.sort(free), rows, y, weights / weights.sum(), offset
        )

    @without_overflow_warnings
    def null_model(self) -> NullModel:
        """Return the null model."""
        loss, few = self.objective.loss, self.few_columns(self.free)
        every = np.ones((1, few.model.penalties.size), dtype=bool)
        (coef,), (converged,) = few.model.refits(every, np.zeros(1), np.array([-1]), few.bounds)
        prediction = coef @ few.model.columns
        u = self.with_offset(prediction)
        near, value = self.working_responses(prediction, loss.mean(u)), float(loss.value(self.y, u) @ self.weights)
        return NullModel(near.target, near.curvature, coef, bool(converged), value)

    def with_offset(self, prediction: np.ndarray) -> np.ndarray:
        """Return predictions with the offset."""
        return prediction if self.offset is None else prediction + self.offset

    def working_responses(self, prediction: np.ndarray, y: np.ndarray) -> WorkingResponses:
        """Return the quadratic approximation at predictions without the offset, with the curvatures of some targets."""
        loss, u = self.objective.loss, self.with_offset(prediction)
        curvature = loss.curvature(y, u)
        least = LEAST_CURVATURE * (curvature.max() or 1.0)  # 0 where a hinge is flat
        near = Expansion(loss.gradient(self.y, u), curvature).at_least(least)
        return WorkingResponses(near.responses(prediction), near.curvature)

    def is_affine(self, null: NullModel) -> bool:
        """Return whether least squares of y chooses what that of the working responses does.

        These are an affine function of y if the null model predicts the same for all rows, whose curvatures are the
        same then, as without an offset and free columns.
        """
        least, most = self.y.argmin(), self.y.argmax()
        run = float(self.y[most] - self.y[least])
        slope = float(null.target[most] - null.target[least]) / run if run else 0.0
        gap = null.target - null.target[least] - slope * (self.y - self.y[least])
        return bool(np.abs(gap).max() <= _ROUNDING * np.abs(null.target).max())

    def on_all_rows(self, near: WorkingResponses) -> LinearModel:
        """Return least squares of the working responses, where rows of other folds have no weight."""
        like = self.objective.y
        y, sample_weight = np.zeros(like.shape[0]), np.zeros(like.shape[0])
        y[self.rows] = near.target  # a row may be drawn twice, but is the same
        sample_weight[self.rows] = self.weights * near.curvature
        y, sample_weight = (namespace(like).astype(move(x, like), like.dtype) for x in (y, sample_weight))
        return LinearModel(self.objective.design, y, sample_weight=sample_weight)

    def path(self, null: NullModel, fits: FoldRefits, budgets: list[int], ridges: np.ndarray) -> FoldPath:
        """Return the path of some fits, and whether the null model has converged."""
        path = fits.path(budgets, ridges)
        if not null.converged:
            path.unconverged.insert(0, "the null model has not converged; the free columns may separate the targets")
        return path

    @without_overflow_warnings
    def near_largest(self, fits: FoldRefits, ridges: np.ndarray) -> WorkingResponses | None:
        """Return the quadratic approximation of the loss at the fit of the largest budget; None if it is not finite.

        Its ridge is that by which `least_squares_fold_paths` screens. The curvatures are those of the losses there, so
        that its minimum is a step of Newton's method from that fit.
        """
        ridge = int(np.argsort(ridges, kind="stable")[(ridges.size - 1) // 3])
        prediction = self.predictions(fits.columns, fits.coefs[-1, ridge], fits.intercepts[-1, ridge])
        near = self.working_responses(prediction, self.y)
        return near if near.is_finite() else None

    def predictions(self, columns: np.ndarray, coefs: np.ndarray, intercepts: np.ndarray) -> np.ndarray:
        """Return the predictions of some fits for the training rows, without the offset, along the last axis."""
        design, like = self.objective.design, self.objective.y
        block = design.block(move(self.rows, like), move(columns, like))
        flat = np.ascontiguousarray(coefs.reshape(intercepts.size, columns.size).T)
        u = double(block.predict(namespace(like).astype(move(flat, like), like.dtype)))
        predictions: np.ndarray = u.T.reshape(*coefs.shape[:-1], self.rows.size) + intercepts[..., None]
        return predictions

    def lower(self, fits: FoldRefits, others: FoldRefits, negligible: float) -> FoldRefits:
        """Return for each budget and ridge the first fit, or the other if f is lower there by more than is negligible.

        Of equal fits, as of all rows without error, rounding would choose otherwise.
        """
        return fits.replaced(self.values(others) < self.values(fits) - negligible, others)

    @without_overflow_warnings
    def values(self, fits: FoldRefits) -> np.ndarray:
        """Return f at all fits, shape (n_budgets, n_ridges); infinite where it is not a number."""
        values = np.empty(fits.intercepts.shape)
        size = max(1, ENTRIES // (self.rows.size * fits.intercepts.shape[1]))
        for start in range(0, len(values), size):
            some = slice(start, start + size)
            u = self.with_offset(self.predictions(fits.columns, fits.coefs[some], fits.intercepts[some]))
            values[some] = self.objective.loss.value(self.y, u) @ self.weights
        values += fits.ridge_terms
        return np.where(np.isnan(values), np.inf, values)

    def refitted(self, null: NullModel, found: FoldPath, ridges: np.ndarray) -> FoldRefits:
        """Return the fits of all budgets and ridges on the supports that least squares has found."""
        columns = union(found.columns, self.free)
        chosen = np.zeros((*found.intercepts.shape, columns.size), dtype=bool)
        chosen[:, :, columns.searchsorted(found.columns)] = found.coefs != 0
        chosen[:, :, columns.searchsorted(self.free)] = True
        return self.fits_on(null, columns, chosen, ridges)

    def fits_on(self, null: NullModel, columns: np.ndarray, chosen: np.ndarray, ridges: np.ndarray) -> FoldRefits:
        """Return the fits on some supports: half of the ridges, or of the budgets, at a time if there are many entries.

        Parameters
        ----------
        null : NullModel
            Where to start.
        columns : array of int
            Some columns, increasing.
        chosen : array of bool, shape (n_budgets, n_ridges, n_columns)
            Which of them are in the support of each budget and ridge.
        ridges : array, shape (n_ridges,)
            The ridges.
        """
        used = chosen.any(axis=(0, 1))
        columns, chosen = columns[used], chosen[:, :, used]
        if columns.size * self.rows.size <= ENTRIES or chosen.shape[:2] == (1, 1):
            return self.few_columns(columns, null.coef).fits(chosen, ridges)
        axis, middle = (1, ridges.size // 2) if ridges.size > 1 else (0, len(chosen) // 2)
        first, second = np.split(chosen, [middle], axis=axis)
        low, high = (ridges[:middle], ridges[middle:]) if axis == 1 else (ridges, ridges)
        return self.fits_on(null, columns, first, low).joined(self.fits_on(null, columns, second, high), axis)

    def few_columns(self, columns: np.ndarray, null: np.ndarray | None = None) -> FewColumns:
        """Return some columns of the fold, to be refitted.

        Parameters
        ----------
        columns : array of int
            Which ones, increasing; the free ones among them.
        null : array, shape (n_free,), optional
            The coefficients of the null model, with that of the column of ones.
        """
        design, like = self.objective.design, self.objective.y
        X = double(design.block(move(self.rows, like), move(columns, like)).dense()).T
        size = columns.size + self.intercept
        rows, penalties, start = np.ones((size, self.rows.size)), np.zeros(size), np.zeros(size)
        mean = X @ self.weights if self.intercept else np.zeros(columns.size)
        some = rows[: columns.size]
        np.subtract(X, mean[:, None], out=some)
        scale = np.sqrt((some * some) @ self.weights)
        scale[scale == 0.0] = 1.0
        some /= scale[:, None]
        penalties[: columns.size] = 1.0 if self.standardize else scale**-2.0
        free = columns.searchsorted(self.free)
        penalties[free] = 0.0
        if null is not None:
            start[np.append(free, columns.size) if self.intercept else free] = null
        elif self.intercept:
            start[-1] = self.level()
        bounds = None
        if self.selection.bounds is not None:
            bounds = np.stack([np.full(size, -np.inf), np.full(size, np.inf)])  # also of the intercept
            bounds[:, : columns.size] = self.selection.bounds[:, columns] * scale
        mean_loss = self.objective.loss.prepare(self.y, self.weights)
        model = ColumnsToRefit(rows, mean_loss, self.offset, penalties, start)
        return FewColumns(columns, mean, scale, bounds, self.intercept, model)

    def level(self) -> float:
        """Return an intercept to start from."""
        level: float = self.objective.loss.initial_prediction(self.y, self.weights)
        return level if self.offset is None else level - float(self.weights @ self.offset)
