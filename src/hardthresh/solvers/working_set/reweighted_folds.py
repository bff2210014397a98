"""Paths of the folds of a table in blocks by least squares of working responses: of quadratic models of any loss.

Each fold has an approximation of its own, on its own training rows, so that there are no sums to share; but one reading
serves all folds. It gives the moments, and a second one screens the columns; products of the columns of the working
sets come from what is kept.
"""

from __future__ import annotations

import numpy as np

from hardthresh.core.constraint import CoordinateBudget
from hardthresh.objectives.block_rows import Point, powers_of_two
from hardthresh.objectives.blocked_model import BlockedModel
from hardthresh.objectives.working_readings import (
    Approximations,
    largest_curvatures,
    working_moments,
    working_products,
    working_residuals,
)

from .blocked_folds import BlockSearch
from .fold_moments import FoldFit
from .model import Gram
from .training_fold import LEAST_CURVATURE


class ReweightedFolds(BlockSearch):
    """Folds that search least squares of the working responses at a point of each.

    Parameters
    ----------
    objective : BlockedModel
        The table, and the loss.
    selection : CoordinateBudget
        Which columns are free, and their bounds; its budget is not used.
    points : array, shape (n_folds, d) or (n_folds, d + 1)
        Where the loss of each fold is approximated, in the coordinates of the objective.
    left_out : array of int, shape (n_folds,)
        The rows that each leaves out: those of a fold, or with -1 none.
    expected : bool
        Whether second derivatives are those of the expected targets; see `Approximations`.
    intercept, standardize, tol :
        As for `generalized_fold_paths`.

    Attributes
    ----------
    numbers : list of int
        The folds whose approximations are finite; others are left out.
    totals : array, shape (n_numbers,)
        The weights of their rows, by second derivatives.

    Notes
    -----
    Cost: a sweep over kept columns, and a reading.
    """

    def __init__(
        self,
        objective: BlockedModel,
        selection: CoordinateBudget,
        points: np.ndarray,
        left_out: np.ndarray,
        *,
        expected: bool,
        intercept: bool,
        standardize: bool,
        tol: float,
    ) -> None:
        super().__init__(objective, selection, intercept=intercept, standardize=standardize, tol=tol)
        self._model, self._arguments = objective, objective.folds.arguments
        near = Approximations(self._on_kept(points), left_out, np.zeros(len(points)), objective.loss, expected)
        (largest,) = objective.kept.sums(largest_curvatures, *self._arguments, near, len(objective.engine.blocks))
        most = largest.max(axis=0)
        self._near, self._points = near._replace(floors=LEAST_CURVATURE * np.where(most == 0.0, 1.0, most)), points
        units = objective.units
        given = self._on_data(), units.mean, powers_of_two(units.inverse_scale, units.dtype)
        sums = objective.read(working_moments, *self._arguments, *given, products=3 * len(points))
        finite = np.all([np.isfinite(part).all(axis=0) for part in sums], axis=0)
        self.numbers = [int(number) for number in np.flatnonzero(finite)]
        self._near, self._points = self._near.some(self.numbers), points[self.numbers]
        self._keep_moments(*(part[:, finite] for part in sums))

    def _keep_moments(self, totals: np.ndarray, linear: np.ndarray, squares: np.ndarray, crossed: np.ndarray) -> None:
        """Set the null models of the folds from the sums of `working_moments`."""
        units = self._objective.units
        self.totals, (gap, square) = totals[0], totals[1:] / totals[0]
        levels = np.array([point.level for point in self._on_data().points])
        self._folds = []
        for i, total in enumerate(self.totals):
            mean, second, product = (part[:, i] * units.inverse_scale / total for part in (linear, squares, crossed))
            second *= units.inverse_scale
            product += levels[i] * mean * (not self._intercept)
            level, spread = levels[i] + gap[i], square[i] - gap[i] ** 2
            if self._intercept:
                second, product = np.maximum(second - mean * mean, 0.0), product - gap[i] * mean
            else:
                mean, level, spread = np.zeros_like(mean), 0.0, spread + level * level
            self._folds.append(self._fold(mean, second, product, float(level), float(spread)))

    def mean_curvatures(self, totals: np.ndarray) -> np.ndarray:
        """Return the mean curvature of each fold, for the weights of the rows that all folds train on."""
        curvatures: np.ndarray = self.totals / totals[self.numbers]
        return curvatures

    def _on_kept(self, points: np.ndarray) -> tuple[Point, ...]:
        """Return points in terms of what is kept."""
        return tuple(self._model.kept.point(point) for point in points)

    def _on_data(self) -> Approximations:
        """Return the approximations as the table sees them."""
        return self._near._replace(points=tuple(self._objective.units.point(point) for point in self._points))

    def _extend_gram(self, number: int) -> None:
        if not self._lacks(number):
            return
        kept, lacking = self._model.kept, [i for i in range(len(self._folds)) if self._lacks(i)]
        kept.include(self._every())
        near = self._near._replace(points=self._on_kept(self._points)).some(lacking)
        own = [self._folds[i].working_set for i in lacking]
        places = tuple(kept.places(columns) for columns in own)
        found = kept.sums(working_products, *self._arguments, near, places)
        for i, columns, sums in zip(lacking, own, found, strict=True):
            factor, shift = kept.change(columns)
            change = np.diag(np.append(factor, 1.0))
            change[:-1, -1] = shift
            products = change @ sums @ change.T / sums[-1, -1]
            gram = products[:-1, :-1]
            if self._intercept:
                gram -= np.outer(products[:-1, -1], products[:-1, -1])
            self._folds[i].gram, self._folds[i].diagonal = Gram(columns, gram), gram.diagonal().copy()

    def _slopes(self, fits: list[tuple[int, FoldFit]]) -> np.ndarray:
        units = self._objective.units
        points = [(number, units.point(self._coordinates(fit), level=fit.intercept)) for number, fit in fits]
        given = self._on_data(), points, units.centre
        slopes, products = self._model.read(working_residuals, *self._arguments, *given, products=len(points))
        found = [units.gradient(products[:, i], slopes[i], units.centre) for i in range(len(fits))]
        own = self.totals[[number for number, _ in fits]]
        result: np.ndarray = units.total * np.stack(found)[:, : units.mean.size] / own[:, None]
        return result
