"""The columns that least squares chooses on each of many halves of the rows, for stability selection.

The halves share their products with the data: three for the moments of all columns, and one for each round of
screening. Nothing that a half decides depends on the rows of another: its columns are standardised, screened and
searched by moments of its own rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hardthresh.arrays import double, move
from hardthresh.core.constraint import CoordinateBudget
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.threads import serial_blas
from hardthresh.objectives import LinearModel
from hardthresh.solvers.gains import twice_gains

from .fold_path import checked_ridges, checked_training
from .half_search import HalfSearch
from .training_sets import ENTRIES, TrainingSets, row_shares

_FIRST = 64
"""How many columns of the highest correlation with y a half begins with. With 500 rows, 5,000 columns and k = 10, 100
halves take 22 single fits with 32 to 64 and choose what independent fits do; with 256 and without screening on the way
24, and at a correlation of .9 one half in thirty chooses worse."""
_ROUNDS = 4
"""Limit of the searches of a half. On these data no half asks for more than 3; of 200 rows, 1,000 columns and k = 20 a
quarter does, whose columns are as good as exchangeable."""
_MOMENTS = 4
"""The mean, the variance, the covariance with y and the ridge of each column are kept for all halves of a batch."""


@serial_blas()
def least_squares_half_samples(
    objective: LinearModel,
    selection: CoordinateBudget,
    training: Sequence[np.ndarray],
    ridge: float = 0.0,
    *,
    intercept: bool,
    standardize: bool,
    tol: float = 1e-8,
) -> list[np.ndarray]:
    """Return the columns that a least-squares problem chooses on each of several sets of rows, halves of them or not.

    Parameters
    ----------
    objective : LinearModel
        The squared loss on all rows. Its own ridge is not used.
    selection : CoordinateBudget
        How many columns are chosen, which are free, and their bounds.
    training : sequence of array of int
        The rows of each set.
    ridge : float
        The ridge >= 0 of the columns that are not free.
    intercept : bool
        Whether the last column is one everywhere, and free.
    standardize : bool
        Whether the ridge is that of columns scaled to unit variance over the rows of a set, or of the columns as they
        are.
    tol : float
        Decrease of an exchange, relative to the null model, that counts as progress.

    Returns
    -------
    list of array of int
        The columns of each set, increasing, with the free ones and without that of ones.

    Raises
    ------
    InvalidInputError
        For another loss, a ridge that is negative or not finite, or rows that are empty, of no weight, or anything but
        row numbers.

    Notes
    -----
    For each set:

    1. The 64 columns of the highest correlation with y are its first working set.
    2. Columns are screened at the fits of 4, 10, 25, ... and k columns of a forward path. Those with a score above 0.4
       of the highest of the working set join it, at most 32 at a fit, or as many as the fit has.
    3. The fit of k columns is improved by exchanges. Columns are screened there, now with the least score that a chosen
       one would have as the reference, and at the fits without each of four parts of it.
    4. Sweeps over numbers near k, exchanges, add-drop moves and replacements choose the columns, as in
       `hardthresh.solvers.WorkingSet`. Columns are screened once more; this step is repeated if one joins, up to four
       times.

    Heuristic, as that solver is. With 500 rows, 5,000 columns and k = 10 the choice is that of an independent fit in
    all halves where neighbours correlate by .5 and by .9; see ``benchmarks/stability.py``. Where chosen columns are
    as many as a tenth of the rows or more, both often end at different supports of similar value.

    Cost: three products of the data with a right-hand side for each set, in double precision, and some ten in single
    precision; for each set a Gram matrix of its working set of 100 to 300 columns, and some hundred updates of a
    tableau.
    """
    if not objective.traits.quadratic:
        raise InvalidInputError(f"half-samples share their work for the squared loss only, not for {objective.loss}")
    training = checked_training(training, objective)
    own = float(checked_ridges([ridge], 1)[0, 0])
    supports: list[np.ndarray] = []
    size = max(1, ENTRIES // (_MOMENTS * max(objective.design.shape)))
    for start in range(0, len(training), size):
        some = training[start : start + size]
        halves = _HalfSamples(objective, selection, some, intercept=intercept, standardize=standardize, tol=tol)
        supports += halves.supports(selection.budget, own)
    return supports


class _HalfSamples(HalfSearch, TrainingSets):
    """Sets of rows whose moments are products of the data with the weights of all of them."""

    def __init__(
        self,
        objective: LinearModel,
        selection: CoordinateBudget,
        training: list[np.ndarray],
        *,
        intercept: bool,
        standardize: bool,
        tol: float,
    ) -> None:
        super().__init__(objective, selection, training, intercept=intercept, standardize=standardize, tol=tol)
        y, shares = double(self._y), row_shares(training, double(self._row_weights))
        level = y @ shares if intercept else np.zeros(len(training))
        gaps = y[:, None] - level
        spread = (shares * gaps**2).sum(axis=0)
        design = self._design.double()
        share, weighted = (move(part, self._y) for part in (shares, shares * gaps))
        mean, slope = (double(design.pullback(part)).T.copy() for part in (share, weighted))
        variance = double(design.pullback_squares(share)).T.copy()
        size = variance.mean(axis=0)
        if intercept:
            variance -= mean * mean  # columns are centred over all rows; what rounding would blur counts as constant
        else:
            mean[:] = 0.0
        each = zip(mean, variance, slope, level.tolist(), spread.tolist(), strict=True)
        self._folds = [self._fold(*moments) for moments in each]
        self._single = self._in_single(size)

    def supports(self, budget: int, ridge: float) -> list[np.ndarray]:
        """Return the columns that each set chooses with a ridge."""
        numbers = range(len(self._folds))
        for number in numbers:
            self._begin(number, ridge)
        for fits_of in (self._fits_along_path, self._fits_after_exchanges):
            for number in numbers:
                self._folds[number].fits = fits_of(number, budget, ridge)
            self._screen_at_fits()
        supports, changed = [self._free] * len(self._folds), list(numbers)
        for _ in range(_ROUNDS):
            for fold in self._folds:
                fold.fits = []
            for number in changed:
                supports[number] = self._search(number, budget, ridge)
            sizes = [fold.working_set.size for fold in self._folds]
            self._screen_at_fits()
            changed = [number for number in numbers if self._folds[number].working_set.size > sizes[number]]
            if not changed:
                break
        return supports

    def _begin(self, number: int, ridge: float) -> None:
        """Set the first working set: the free columns, and those of the highest correlation with y."""
        fold = self._folds[number]
        score = twice_gains(fold.slope, fold.variance + ridge * fold.penalty, self._bounds)
        others = np.flatnonzero(fold.outside)
        if others.size > _FIRST:
            others = others[np.argpartition(-score[others], _FIRST - 1)[:_FIRST]]
        fold.outside[others] = False
        fold.working_set = np.sort(np.concatenate([self._free, others]))
