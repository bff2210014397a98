"""The search of the paths of all folds, from statistics of their training rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .effort import EFFORTS
from .fold_moments import Fold
from .fold_path import FoldPath
from .search import descend, forward_backward, grow
from .training_sets import WorkingSets

_SCREENING_RATIO = EFFORTS["fast"].screening_ratio
"""A fold only has to rank the budgets."""


class FoldSearch(WorkingSets):
    """Folds whose moments are sums of those of parts of the rows, and which search paths on their working sets."""

    def _null_models(
        self,
        weight: np.ndarray,
        share: np.ndarray,
        mean_of_part: np.ndarray,
        squares: np.ndarray,
        products: np.ndarray,
        level: np.ndarray,
        spread: np.ndarray,
    ) -> Iterator[Fold]:
        """Yield each fold with its moments, from those of the parts.

        Parameters
        ----------
        weight : array, shape (n_parts,)
            The weight of each part.
        share : array, shape (n_folds, n_parts)
            The share that a part has in the weight of a fold.
        mean_of_part, squares, products : array, shape (n_parts, d)
            The means of the columns over each part, and the sums of squares and of products with y about them.
        level, spread : array, shape (n_parts,)
            The mean and the variance of y.
        """
        for shares in share:
            mean, y_mean = shares @ mean_of_part, float(shares @ level)
            gap, y_gap, per_weight = mean_of_part - mean, level - y_mean, shares / weight
            variance = per_weight @ squares + shares @ (gap * gap)
            slope = per_weight @ products + (shares * y_gap) @ gap
            yield self._fold(mean, variance, slope, y_mean, float(shares @ (spread + y_gap * y_gap)))

    def _screen(self, budgets: list[int], ridges: list[float], *, with_exchanges: bool) -> None:
        """Add columns to the folds' working sets by the gradients at fits with some budgets, greedy or exchanged."""
        for number, (fold, ridge) in enumerate(zip(self._folds, ridges, strict=True)):
            tableau = self._tableau(number, ridge)
            rounding, negligible = self._tolerances(fold, tableau)
            fold.fits = []
            for k in budgets:
                size = tableau.n_free + k
                grow(tableau, size, rounding)
                best = descend(tableau, size, rounding, negligible) if with_exchanges else tableau
                full = with_exchanges and best.size == size
                score = best.lowest_chosen_score() if full else best.highest_score()
                threshold = max(_SCREENING_RATIO * score, rounding) if k else 0.0
                fold.fits.append(fold.fit(np.array(best.chosen, dtype=np.int64), best.coef, ridge, threshold))
        self._screen_at_fits()

    def _path(self, number: int, budgets: list[int], ridges: list[float]) -> FoldPath:
        """Return the fits of a fold, of which those with the same ridge are searched together."""
        fold = self._folds[number]
        coefs = np.zeros((len(budgets), len(ridges), fold.working_set.size))
        for place, ridge in enumerate(ridges):
            tableau = self._tableau(number, ridge)
            rounding, negligible = self._tolerances(fold, tableau)
            best = forward_backward(tableau, {tableau.n_free + k for k in budgets}, rounding, negligible)
            fits = [best[tableau.n_free + k] for k in budgets]
            rows = np.repeat(np.arange(len(fits)), [fit.size for fit in fits])
            coefs[rows, place, np.concatenate([fit.chosen for fit in fits])] = np.concatenate(
                [fit.coef for fit in fits]
            )
        used = np.flatnonzero(coefs.any(axis=(0, 1)))
        coefs = coefs[:, :, used]
        columns = fold.working_set[used]
        return FoldPath(columns, coefs, fold.level - coefs @ fold.mean[columns])
