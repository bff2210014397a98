"""The search on a half of the rows, from statistics of these rows."""

from __future__ import annotations

import numpy as np

from .effort import EFFORTS
from .fold_moments import FoldFit
from .model import with_neighbours
from .search import Fit, add_drop_counts, descend, forward_backward, grow
from .state import next_checkpoint
from .tableau import Tableau
from .training_sets import WorkingSets

RATIO = 0.4
"""A column joins the working set if its score is more than this share of the reference score. With .2 the halves of
500 rows, 5,000 columns and k = 10 take 26 to 34 fits and choose the same, with .6 18 to 20, and of 200 rows, 1,000
columns and k = 10 a mean residual sum of squares that is higher by .6 %."""
_EFFORT = EFFORTS["balanced"]
"""A half is searched as the default solver does."""


class HalfSearch(WorkingSets):
    """Sets of rows that are searched on their working sets, and the fits at which columns are screened."""

    def _fits_along_path(self, number: int, budget: int, ridge: float) -> list[FoldFit]:
        """Return the fits of a forward path at which columns are to be screened."""
        fold, tableau = self._folds[number], self._tableau(number, ridge)
        rounding, _ = self._tolerances(fold, tableau)
        fits: list[FoldFit] = []
        checkpoint = 0
        while checkpoint < budget:
            checkpoint = min(next_checkpoint(checkpoint), budget)
            grow(tableau, tableau.n_free + checkpoint, rounding)
            threshold = max(RATIO * tableau.highest_score(), rounding)
            fits.append(fold.fit(np.array(tableau.chosen, dtype=np.int64), tableau.coef, ridge, threshold))
        return fits

    def _fits_after_exchanges(self, number: int, budget: int, ridge: float) -> list[FoldFit]:
        """Return the fit of the forward path after exchanges, and those without each part of it."""
        fold, tableau = self._folds[number], self._tableau(number, ridge)
        rounding, negligible = self._tolerances(fold, tableau)
        size = tableau.n_free + budget
        grow(tableau, size, rounding)
        best = descend(tableau, size, rounding, negligible)
        threshold = _threshold(Fit.of(best), budget, rounding)
        chosen = np.array(best.chosen, dtype=np.int64)
        return [
            fold.fit(chosen, best.coef, ridge, threshold),
            *(
                fold.fit(np.asarray(some, dtype=np.int64), coef, ridge, threshold)
                for some, coef in map(best.minimiser, _without_parts(best, chosen))
            ),
        ]

    def _search(self, number: int, budget: int, ridge: float) -> np.ndarray:
        """Return the columns of the best fit to a working set, and note the fit."""
        fold, tableau = self._folds[number], self._tableau(number, ridge)
        rounding, negligible = self._tolerances(fold, tableau)
        size, moves = tableau.n_free + budget, _EFFORT.moves
        sizes = {tableau.n_free + k for k in with_neighbours({budget}, moves.nearby)}
        counts = {size: add_drop_counts(budget, moves.add_drop)}
        fit = forward_backward(tableau, sizes, rounding, negligible, counts, replaced=moves.replaced)[size]
        fold.fits = [fold.fit(fit.chosen, fit.coef, ridge, _threshold(fit, budget, rounding))]
        return np.sort(fold.working_set[fit.chosen])


def _threshold(fit: Fit, budget: int, rounding: float) -> float:
    """Return the score above which a column joins the working set at a fit: any, if it has fewer columns than k."""
    full = 0 < budget <= fit.size - fit.n_free
    return max(RATIO * fit.lowest_chosen_score, rounding) if full else rounding


def _without_parts(tableau: Tableau, chosen: np.ndarray) -> list[np.ndarray]:
    """Return the chosen columns without each of some parts, the free ones first."""
    free, rest = chosen[is_free := tableau.are_free(chosen)], np.sort(chosen[~is_free])
    part = np.arange(rest.size) % _EFFORT.parts
    return [np.concatenate([free, rest[part != left_out]]) for left_out in range(min(_EFFORT.parts, rest.size))]
