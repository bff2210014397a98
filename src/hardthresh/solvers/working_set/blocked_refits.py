"""The refits of the folds of a table in blocks: all together, by Newton steps whose sums are of kept columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import inf

import numpy as np

from hardthresh.arrays import is_regular, solve_semidefinite
from hardthresh.core.constraint import CoordinateBudget
from hardthresh.losses import Loss
from hardthresh.objectives.blocked_model import BlockedModel
from hardthresh.objectives.refit_readings import Fits, training_models
from hardthresh.objectives.working_readings import offset_sums
from hardthresh.solvers.newton import DAMPING

from .fold_path import FoldPath
from .fold_refits import FoldRefits
from .model import union
from .newton_together import Model, minimise_together
from .refits import step_within
from .support_grid import different_refits

_NEAR = 1e-9
"""Share by which the values at null models may be above their minima, whose last steps are taken without a look."""


def two_classes(loss: Loss, mean: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of two classes, 0 and 1 or -1 and 1, and their shares, from the mean of the numbers."""
    low = -1.0 if bool(np.all(loss.in_domain(np.full(1, -1.0)))) else 0.0  # a hinge has a value between them too
    share = (mean - low) / (1.0 - low)
    return np.array([low, 1.0]), np.array([1.0 - share, share])


def best_constant(objective: BlockedModel) -> float:
    """Return the constant whose predictions, offset included, have the least mean loss: sweeps over kept columns."""
    totals = np.full(objective.folds.count + 1, objective.units.total)
    return BlockedRefits(objective, totals, CoordinateBudget(0, 0), True).constant()


@dataclass(frozen=True, slots=True, eq=False)
class NullModels:
    """The null models of folds, of the intercept and the free columns.

    Attributes
    ----------
    points : array, shape (n_folds, d) or (n_folds, d + 1)
        In the coordinates of the objective.
    values : array, shape (n_folds,)
        The mean losses.
    converged : array of bool, shape (n_folds,)
        Which are minima.
    """

    points: np.ndarray
    values: np.ndarray
    converged: np.ndarray


class BlockedRefits:
    """Minimisers of the loss on few columns, of all folds together; coordinates are those of the objective.

    Parameters
    ----------
    objective : BlockedModel
        The table.
    totals : array, shape (n_folds + 1,)
        The weight of the rows that each fold trains on, and of all rows.
    selection : CoordinateBudget
        The free columns, and the bounds.
    intercept : bool
        Whether there is an intercept.
    """

    def __init__(
        self, objective: BlockedModel, totals: np.ndarray, selection: CoordinateBudget, intercept: bool
    ) -> None:
        self._objective, self._totals, self._bounds, self._intercept = objective, totals, selection.bounds, intercept
        d = objective.units.mean.size
        self._free = np.sort(np.array([j for j in selection.free if j < d], dtype=np.int64))
        objective.kept.include(self._free)
        self._found: dict[tuple[int, bytes, bytes], tuple[np.ndarray, float, bool]] = {}
        self._offset = 0.0
        if objective.moments.with_offset:
            self._offset = float(objective.kept.sums(offset_sums)[0]) / objective.units.total

    def null_models(self, means: np.ndarray) -> NullModels:
        """Return the null models, for the means of the targets."""
        count, free, size = means.size, self._free, self._objective.units.size
        start = [np.append(np.zeros(free.size), [self._level(mean)] * self._intercept) for mean in means]
        ridges = [np.zeros(free.size)] * count
        coefs, values, converged = self._minimise([free] * count, ridges, np.arange(count), start)
        points = np.zeros((count, size))
        for point, coef in zip(points, coefs, strict=True):
            point[free] = coef[: free.size]
            if self._intercept:
                point[-1] = coef[-1]
        return NullModels(points, values, converged)

    def constant(self) -> float:
        """Return the best constant for all rows."""
        start = self._level(float(self._objective.moments.target_mean))
        none, last = np.empty(0, dtype=np.int64), np.array([self._totals.size - 1])
        (coef,), _, _ = self._minimise([none], [np.empty(0)], last, [np.array([start])])
        return float(coef[0]) + float(self._objective.units.level)

    def _level(self, mean: float) -> float:
        """Return an intercept to start from, for the mean of the targets: without an offset often the best one."""
        loss, units = self._objective.loss, self._objective.units
        level = units.level
        if loss.classifies:
            level = loss.constant(*two_classes(loss, mean))
        elif loss.linear_in_target and mean > 0:
            level = loss.link(mean)
        return float(level - self._offset - units.level)

    def on(
        self,
        numbers: Sequence[int],
        nulls: NullModels,
        found: list[FoldPath],
        alphas: np.ndarray,
        penalties: list[np.ndarray],
    ) -> list[tuple[FoldRefits, np.ndarray]]:
        """Return the fits on the supports that least squares has found, and their values.

        Parameters
        ----------
        numbers : sequence of int
            The folds.
        nulls : NullModels
            Where the fits of all folds start.
        found : list of FoldPath
            The supports of these folds, and the minimisers of quadratic approximations, to which the first steps lead.
        alphas : array, shape (n_ridges,)
            The ridges.
        penalties : list of array, shape (d,)
            The share of each column in a ridge, of all folds.
        """
        columns: list[np.ndarray] = []
        ridges: list[np.ndarray] = []
        starts: list[np.ndarray] = []
        goals: list[np.ndarray] = []
        owners: list[int] = []
        grids = []
        for number, path in zip(numbers, found, strict=True):
            used = union(path.columns, self._free)
            own = np.isin(used, self._free) | np.zeros((*path.intercepts.shape, used.size), dtype=bool)
            own[:, :, used.searchsorted(path.columns)] |= path.coefs != 0
            refit_of, refits, _ = different_refits(own, alphas)
            near, levels = np.zeros((refit_of.size, used.size)), path.intercepts.ravel() - self._objective.units.level
            near[:, used.searchsorted(path.columns)] = path.coefs.reshape(refit_of.size, -1)
            grids.append((used, refit_of, refits, len(owners)))
            for place in refits:
                some = used[own.reshape(-1, used.size)[place]]
                columns.append(some)
                ridges.append(float(alphas[place % alphas.size]) * penalties[number][some])
                starts.append(np.append(nulls.points[number, some], [nulls.points[number, -1]] * self._intercept))
                goals.append(np.append(near[place, used.searchsorted(some)], [levels[place]] * self._intercept))
                owners.append(number)
        self._objective.kept.include(reduce(union, columns))
        keys = list(zip(owners, map(bytes, columns), map(bytes, ridges), strict=True))
        new = [i for i, key in enumerate(keys) if key not in self._found]
        some, own_ridges, begun, aims = ([parts[i] for i in new] for parts in (columns, ridges, starts, goals))
        made = self._from_null_models(some, own_ridges, begun, aims, np.array(owners)[new], nulls)
        self._found |= zip([keys[i] for i in new], made, strict=True)
        coefs, values, converged = (list(parts) for parts in zip(*(self._found[key] for key in keys), strict=True))
        fits = []
        for used, refit_of, refits, first in grids:
            slopes, levels = np.zeros((refits.size, used.size)), np.zeros(refits.size)
            for i in range(refits.size):
                some = columns[first + i]
                slopes[i, used.searchsorted(some)] = coefs[first + i][: some.size]
                if self._intercept:
                    levels[i] = coefs[first + i][-1]
            failed = np.zeros(refit_of.size, dtype=bool)
            failed[refits[~np.array(converged[first : first + refits.size])]] = True
            shown = levels[refit_of], np.zeros(refit_of.shape), failed.reshape(refit_of.shape)
            fits.append((FoldRefits(used, slopes[refit_of], *shown), np.array(values)[first + refit_of]))
        return fits

    def _from_null_models(
        self,
        columns: list[np.ndarray],
        ridges: list[np.ndarray],
        starts: list[np.ndarray],
        goals: list[np.ndarray],
        owners: np.ndarray,
        nulls: NullModels,
    ) -> Iterator[tuple[np.ndarray, float, bool]]:
        """Yield the coefficients of each of several fits, its value, and whether it has converged.

        Parameters
        ----------
        columns, ridges, starts, owners :
            As for `_minimise`.
        goals : list of array, like `starts`
            Where the first steps lead.
        nulls : NullModels
            Where they start.
        """
        if not columns:
            return iter(())
        values = nulls.values[owners] * (1.0 + _NEAR)
        boxes = [self._box(some, start.size) for some, start in zip(columns, starts, strict=True)]
        goals = [goal if box is None else np.clip(goal, *box) for goal, box in zip(goals, boxes, strict=True)]
        first = [
            goal - start if value > 0.0 and np.isfinite(goal).all() and np.any(goal != start) else None
            for goal, start, value in zip(goals, starts, values, strict=True)
        ]
        values = np.where([step is None for step in first], inf, values)
        coefs, values, converged = self._minimise(columns, ridges, owners, starts, first, values)
        return zip(coefs, values.tolist(), converged.tolist(), strict=True)

    def point(self, fit: FoldRefits, ridge: int) -> np.ndarray:
        """Return the point of the fit of the largest budget with a ridge."""
        point = np.zeros(self._objective.units.size)
        point[fit.columns] = fit.coefs[-1, ridge]
        if self._intercept:
            point[-1] = fit.intercepts[-1, ridge]
        return point

    def _minimise(
        self,
        columns: list[np.ndarray],
        ridges: list[np.ndarray],
        owners: np.ndarray,
        starts: list[np.ndarray],
        first: Sequence[np.ndarray | None] | None = None,
        values: np.ndarray | float = inf,
    ) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """Minimise all fits together, by Newton steps that are halved until f decreases.

        Parameters
        ----------
        columns, ridges : list of array, shape (s,)
            The columns of each fit, and their ridges.
        owners : array of int, shape (q,)
            The fold of each.
        starts : list of array, shape (s,) or (s + 1,)
            Where they start, with an intercept last if the model has one.
        first, values :
            As for `minimise_together`.

        Returns
        -------
        coefs : list of array, like `starts`
        values : array, shape (q,)
        converged : array of bool, shape (q,)
        """
        boxes = [self._box(some, start.size) for some, start in zip(columns, starts, strict=True)]

        def models(active: np.ndarray, trial: list[np.ndarray], curved: np.ndarray) -> list[Model]:
            return self._models(columns, ridges, owners, active, trial, curved)

        def step(i: int, point: np.ndarray, gradient: np.ndarray, hessian: np.ndarray) -> np.ndarray:
            box = boxes[i]
            return self._step(gradient, hessian, None if box is None else box - point)

        within = [start if box is None else np.clip(start, *box) for start, box in zip(starts, boxes, strict=True)]
        return minimise_together(within, models, step, first, values)

    def _box(self, columns: np.ndarray, size: int) -> np.ndarray | None:
        """Return the bounds of some columns, and of an intercept, which has none."""
        if self._bounds is None:
            return None
        box = np.stack([np.full(size, -inf), np.full(size, inf)])
        box[:, : columns.size] = self._bounds[:, columns]
        return box

    def _step(self, gradient: np.ndarray, hessian: np.ndarray, box: np.ndarray | None) -> np.ndarray:
        """Return the step to the minimum of a quadratic model, within bounds of the changes if there are any."""
        bound = self._objective.loss.curvature_bound
        if bound < inf and not is_regular(hessian):  # as where few residuals are within the delta of Huber's loss
            hessian = hessian + DAMPING * bound * np.eye(gradient.size)
        if box is not None:
            return -step_within(hessian, gradient, box)[0]
        step: np.ndarray = -solve_semidefinite(hessian, gradient)
        return step

    def _models(
        self,
        columns: list[np.ndarray],
        ridges: list[np.ndarray],
        owners: np.ndarray,
        active: np.ndarray,
        trial: list[np.ndarray],
        curved: np.ndarray,
    ) -> list[Model]:
        """Return f, its gradient and, where it is asked for, its Hessian at points of some fits: a sweep."""
        objective, kept = self._objective, self._objective.kept
        changes = [kept.change(columns[i]) for i in active]
        places = tuple(kept.places(columns[i]) for i in active)
        coefs, levels = np.zeros((active.size, kept.index.size)), np.full(active.size, objective.units.level)
        for row, at, (factor, shift), point in zip(range(active.size), places, changes, trial, strict=True):
            coefs[row, at] = point[: at.size] * factor
            levels[row] += point[: at.size] @ shift + point[at.size :].sum()
        folds = np.where(owners[active] < objective.folds.count, owners[active], -1)
        fits = Fits(places, coefs, levels, folds)
        values, flat = kept.sums(training_models, *objective.folds.arguments, fits, objective.loss, curved)
        models, start = [], 0
        for row, i in enumerate(active):
            (factor, shift), total = changes[row], self._totals[owners[i]]
            size = factor.size + 1
            point, ridge = trial[row], np.append(ridges[i], np.zeros(trial[row].size - ridges[i].size))
            change = np.diag(np.append(factor, 1.0))
            change[:-1, -1] = shift
            change = change[: point.size]  # without its last row there is no intercept
            gradient = change @ flat[start : start + size] / total + ridge * point
            start += size
            hessian = None
            if curved[row]:
                hessian = flat[start : start + size * size].reshape(size, size) / total
                hessian = change @ hessian @ change.T + np.diag(ridge)
                start += size * size
            value = float(values[row]) / total + 0.5 * float(ridge @ point**2)
            models.append((value if np.isfinite(value) else inf, gradient, hessian))
        return models
