"""The columns that a model chooses on each of many halves of the rows of a table in blocks, for stability selection.

The halves share their readings: one for the moments of all columns and the products of the first working set, one that
screens the others, and one for the products of those that a half adds.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from hardthresh.core.constraint import CoordinateBudget
from hardthresh.core.errors import plural
from hardthresh.core.threads import serial_blas
from hardthresh.designs.engine import NUMBER
from hardthresh.objectives.block_rows import Point, powers_of_two
from hardthresh.objectives.blocked import Blocked
from hardthresh.objectives.half_readings import (
    BlockHalves,
    Quadratic,
    half_moments,
    half_products,
    half_slopes,
)
from hardthresh.objectives.readings import together

from .fold_moments import FoldFit
from .half_search import HalfSearch
from .model import Gram, difference, union

_ENTRIES = 1 << 24
"""Limit of the numbers that one reading sums: 128 MB. The halves of wider tables are read in several groups."""
_FLOOR = 0.25
"""The second derivative of a row that has a slope and none, of the mean of all rows at their fit. Of three tables of
2000 rows, with noise of deviation 2, Huber's loss and eight halves of five columns, the frequencies differ in sum from
those in memory by .25, 1.0 and .75 with a delta of .03, and by 0, .25 and 0 with 1.345; of .1 by 1.75, 4.25 and 3.0,
and of .5 by .25, 1.25 and .25, and 0, .5 and .5."""
_LEAST_ROWS = 5.0
r"""Halves whose second derivatives are those of fewer rows, :math:`(\sum h)^2 / \sum h^2`, fail. With
fewer, as with a delta of .01 of these tables, they differ by 2.25, .75 and 2.0."""
_MOMENTS = 3
"""The sums of a half have so many numbers for each column."""


@serial_blas()
def blocked_half_samples(
    objective: Blocked,
    selection: CoordinateBudget,
    halves: BlockHalves,
    ridge: float,
    at: np.ndarray,
    *,
    intercept: bool,
    standardize: bool,
    tol: float = 1e-8,
) -> list[np.ndarray | str]:
    """Return the columns that a model chooses on each of several halves of the rows of a table in blocks.

    Parameters
    ----------
    objective : Blocked
        A model of the table. The columns that it holds are those with which each half begins; its own ridge is not
        used.
    selection : CoordinateBudget
        How many columns are chosen, which are free, and their bounds.
    halves : BlockHalves
        The halves.
    ridge : float
        The ridge >= 0 of the columns that are not free.
    at : array, shape (d,) or (d + 1,)
        The fit to all rows. A loss that is not squared is expanded there to second order.
    intercept, standardize, tol :
        As for `least_squares_half_samples`. For a loss that is not squared, the ridge is that of columns scaled to unit
        variance over all rows.

    Returns
    -------
    list of array of int, or str
        The columns of each half, increasing, with the free ones and without that of ones; or why it has none: no
        weight, or a loss with curvature in too few of its rows, such as Huber's with a delta that is small beside the
        noise.

    Notes
    -----
    The search of a half is that of `least_squares_half_samples`, but for its screening: once, at the fits of a forward
    path and at the fit of k columns after exchanges, with and without parts of it. A loss that is not squared is then
    expanded again, at that fit of each half.

    Cost: two or three readings, or where the objective holds all columns one of the squared loss and two of others.
    Halves share these as long as they have at most 16 million sums together: 3 d of each half, and the square of the
    number of columns with which it begins; others share further readings. The gradients of a reading are at most as
    many numbers, one for each column and each of some ten points of a half. 200 halves of 20,000 columns take seven.
    """
    units, loss = objective.units, objective.loss
    size = max(1, _ENTRIES // (_MOMENTS * units.mean.size + objective.members.size**2))
    settings: Any = {"intercept": intercept, "standardize": standardize, "tol": tol}
    everywhere = Quadratic(units.level)
    if not loss.quadratic:
        point = units.point(at)
        point = point._replace(coef=point.coef[:, None], level=np.array([point.level]))
        mean_curvature = objective.columns(np.flatnonzero(at)).mean_curvature(at) or loss.curvature_bound
        everywhere = Quadratic(units.level, loss, point, _FLOOR * mean_curvature)
    found: dict[int, np.ndarray | str] = {}
    for start in range(0, len(halves), size):
        which, model = np.arange(start, min(start + size, len(halves))), everywhere
        members = [objective.members] * which.size
        search = _BlockedHalves(objective, selection, halves, which, model, members, **settings)
        fits = search.screen(selection.budget, ridge)
        if loss.quadratic:
            search.read_products()
        elif fits:  # expanded at those of each half, which the next reading needs for products of new columns anyway
            model = model._replace(at=search.predictors(fits, len(halves)))
            found |= search.failed
            search = _BlockedHalves(objective, selection, halves, search.which, model, search.members, **settings)
        found |= search.failed
        found |= zip(search.which.tolist(), search.supports(selection.budget, ridge), strict=True)
    return [found[number] for number in range(len(halves))]


def _failed(which: np.ndarray, omega: np.ndarray, curved: np.ndarray, total: np.ndarray) -> dict[int, str]:
    """Return why halves cannot be searched, by their numbers, from the sums of `half_moments`."""
    rows = np.zeros(which.size)
    known = (total > 0) & (curved[2] > 0)
    rows[known] = (curved[0] * curved[1] ** 2)[known] / (total * curved[2])[known]
    return {
        int(number): (
            f"the loss has curvature in {plural(int(count), 'row')} of the half, and at least {_LEAST_ROWS:g} are "
            "needed; give more rows, and to Huber's loss a larger delta"
            if whole > 0
            else "no row of the half has a weight"
        )
        for number, bend, count, whole in zip(which, omega, rows, total, strict=True)
        if not (bend > 0 and count >= _LEAST_ROWS)
    }


class _BlockedHalves(HalfSearch):
    """Halves whose moments and Gram matrices are sums over the blocks."""

    def __init__(
        self,
        objective: Blocked,
        selection: CoordinateBudget,
        halves: BlockHalves,
        which: np.ndarray,
        model: Quadratic,
        members: list[np.ndarray],
        *,
        intercept: bool,
        standardize: bool,
        tol: float,
    ) -> None:
        units = objective.units
        eps = float(np.finfo(units.dtype).eps)
        standardize = standardize and objective.loss.quadratic
        super().__init__(selection, units.size, eps, intercept=intercept, standardize=standardize, tol=tol)
        if self._bounds is not None:
            self._bounds = self._bounds[:, : units.mean.size]  # of the columns: moments have no intercept
        self._objective, self._halves, self._model = objective, halves, model
        self._together = max(1, _ENTRIES // units.mean.size)
        members = [union(self._free, own) for own in members]
        columns: np.ndarray = reduce(union, members)
        places = [np.searchsorted(columns, own) for own in members]
        factor = powers_of_two(units.inverse_scale, units.dtype)
        targets, curved, *sums = objective.engine.sweep(
            together,
            (half_moments, (halves, NUMBER, which, self._model, units.mean, factor)),
            (half_products, (halves, NUMBER, which, self._model, units.scaled(columns), places, places)),
        )
        self.failed = _failed(which, targets[1], curved, targets[0])
        able = np.array([number not in self.failed for number in which.tolist()], dtype=bool)
        self.which = which = which[able]
        total, omega, product, spread = targets[:, able]
        linear, crossed, square = (part[able] for part in sums[:3])
        members = [own for own, on in zip(members, able, strict=True) if on]
        products = [own for own, on in zip(sums[3:], able, strict=True) if on]
        self._bend, self._omega = omega / total, omega
        scale = units.inverse_scale / omega[:, None]
        mean, slope, variance = linear * scale, crossed * scale, square * scale * units.inverse_scale
        level = product / omega if intercept else np.zeros(which.size)
        spread = spread / omega - level * level
        if intercept:
            variance -= mean * mean
            slope -= mean * level[:, None]
        else:
            mean = np.zeros_like(mean)
        each = zip(mean, variance, slope, level.tolist(), spread.tolist(), strict=True)
        self._folds = [self._fold(*moments) for moments in each]
        for fold, own, sums, divisor in zip(self._folds, members, products, omega, strict=True):
            some = own[fold.outside[own]]
            fold.working_set = union(self._free, some)
            fold.outside[some] = False
            held = np.searchsorted(own, fold.working_set)
            self._add(fold, fold.working_set, sums[np.ix_(held, held)] / divisor)

    @property
    def members(self) -> list[np.ndarray]:
        """The working set of each half."""
        return [fold.working_set for fold in self._folds]

    def screen(self, budget: int, ridge: float) -> list[FoldFit]:
        """Return the fit of each half after exchanges, and add columns by the gradients there and at other fits.

        That is a reading, unless all columns are there.
        """
        found = []
        for number, (fold, own) in enumerate(zip(self._folds, self._ridges(ridge), strict=True)):
            fold.fits = self._fits_after_exchanges(number, budget, own)
            found.append(fold.fits[0])
            fold.fits += self._fits_along_path(number, budget, own)
        if any(fold.outside.any() for fold in self._folds):
            self._screen_at_fits()
        return found

    def supports(self, budget: int, ridge: float) -> list[np.ndarray]:
        """Return the columns that each half chooses with a ridge of the mean loss."""
        return [self._search(number, budget, own) for number, own in enumerate(self._ridges(ridge))]

    def predictors(self, fits: list[FoldFit], count: int) -> Point:
        """Return a fit of each half as a linear predictor, by the numbers of all halves."""
        found = self._predictors(fits)
        coefs, levels = np.zeros((found.columns.size, count)), np.zeros(count)
        coefs[:, self.which], levels[self.which] = found.coef, found.level + self._objective.units.level
        return found._replace(coef=coefs, level=levels)

    def _ridges(self, ridge: float) -> list[float]:
        """Return the ridge of the quadratic model of each half, whose weights have another sum than those of rows."""
        return [ridge / bend for bend in self._bend.tolist()]

    def read_products(self) -> None:
        """Add the products of the columns that screening has added: a reading, if there are any."""
        new = [difference(fold.working_set, np.sort(fold.gram.columns)) for fold in self._folds]
        changed = [number for number, own in enumerate(new) if own.size]
        if not changed:
            return
        columns: np.ndarray = reduce(union, [self._folds[number].working_set for number in changed])
        every = [np.concatenate([self._folds[number].gram.columns, new[number]]) for number in changed]
        products = self._objective.engine.sweep(
            half_products,
            self._halves,
            NUMBER,
            self.which[changed],
            self._model,
            self._objective.units.scaled(columns),
            [np.searchsorted(columns, new[number]) for number in changed],
            [np.searchsorted(columns, own) for own in every],
        )
        for number, own, sums in zip(changed, every, products, strict=True):
            self._add(self._folds[number], own, sums / self._omega[number])

    def _add(self, fold: Any, columns: np.ndarray, products: np.ndarray) -> None:
        """Add the mean products of the last columns with all of them to the Gram matrix of a half."""
        new = columns[columns.size - len(products) :]
        covariance = products - np.outer(fold.mean[new], fold.mean[columns])
        known = columns.size - new.size
        matrix = np.empty((columns.size, columns.size))
        matrix[:known, :known] = fold.gram.matrix
        matrix[known:, :known] = covariance[:, :known]
        matrix[:known, known:] = covariance[:, :known].T
        block = covariance[:, known:]
        matrix[known:, known:] = 0.5 * (block + block.T)
        fold.diagonal = np.concatenate([fold.diagonal, matrix.diagonal()[known:]])
        fold.gram = Gram(columns, matrix)

    def _extend_gram(self, number: int) -> None:
        """Do nothing: the products of all halves are read together."""

    def _slopes(self, fits: list[tuple[int, FoldFit]]) -> np.ndarray:
        units = self._objective.units
        numbers, predictors = np.array([number for number, _ in fits]), self._predictors([fit for _, fit in fits])
        (products,) = self._objective.engine.sweep(
            half_slopes, self._halves, NUMBER, self.which[numbers], self._model, predictors, units.mean
        )
        slopes: np.ndarray = products * units.inverse_scale / self._omega[numbers, None]
        return slopes

    def _predictors(self, fits: list[FoldFit]) -> Point:
        """Return some fits as linear predictors of the targets less what is known of their level."""
        units = self._objective.units
        columns: np.ndarray = reduce(union, [fit.columns for fit in fits])
        coefs = np.zeros((columns.size, len(fits)))
        for place, fit in enumerate(fits):
            coefs[np.searchsorted(columns, fit.columns), place] = fit.coef
        coefs *= units.inverse_scale[columns][:, None]
        return Point(columns, units.mean[columns], coefs, np.array([fit.intercept for fit in fits]))
