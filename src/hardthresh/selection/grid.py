"""The held-out scores of a grid: numbers of features, each with several ridges, in each fold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardthresh.core.errors import InvalidInputError

EQUAL = 1e-10
"""Mean scores that differ by this share of the best count as equal. Arbitrary, between the rounding of a mean (1e-15)
and differences that matter for a choice."""


@dataclass(frozen=True, slots=True)
class GridScores:
    """The scores of a grid of models in each fold; higher is better.

    Attributes
    ----------
    sizes : array of int, shape (n_sizes,)
        The numbers of features or groups, increasing.
    ridges : array, shape (n_ridges,)
        The ridges, increasing.
    scores : array, shape (n_sizes, n_ridges, n_folds)
        The scores.
    """

    sizes: np.ndarray
    ridges: np.ndarray
    scores: np.ndarray

    def __post_init__(self) -> None:
        if not np.all(np.isfinite(self.scores)):
            raise InvalidInputError("a held-out score is NaN or infinite; check the scoring and the folds")

    @property
    def mean(self) -> np.ndarray:
        """The mean over the folds, shape (n_sizes, n_ridges)."""
        return np.asarray(self.scores.mean(axis=2))

    @property
    def standard_error(self) -> np.ndarray:
        """The standard error of that mean, shape (n_sizes, n_ridges); 0 with one fold."""
        return standard_error(self.scores)

    @property
    def best(self) -> tuple[int, int]:
        """The places of size and ridge of the best mean score: of equal ones the fewest features, then most ridge."""
        mean = self.mean
        return self._sparsest(mean >= mean.max() - EQUAL * abs(mean.max()))

    @property
    def one_standard_error(self) -> tuple[int, int]:
        """The places of the fewest features, and then the most ridge, within one standard error of the best."""
        mean, best = self.mean, self.best
        return self._sparsest(mean >= mean[best] - self.standard_error[best] - EQUAL * abs(mean[best]))

    @property
    def ends_high(self) -> bool:
        """Whether sizes above half of the largest are better than the others by more than a standard error.

        That is the standard error of the mean difference of the best in both halves.
        """
        best, lower = self.best, self.sizes <= self.sizes[-1] / 2
        if lower[best[0]] or not lower.any():
            return False
        other = np.unravel_index(np.argmax(self.mean[lower]), self.mean[lower].shape)
        gain = self.scores[best] - self.scores[lower][other]
        return bool(gain.mean() > standard_error(gain))

    def chosen(self, rule: str) -> tuple[int, int]:
        """Return the places that a rule, "best" or "one_standard_error", chooses."""
        return self.best if rule == "best" else self.one_standard_error

    def _sparsest(self, allowed: np.ndarray) -> tuple[int, int]:
        row = int(np.argmax(allowed.any(axis=1)))
        return row, int(np.flatnonzero(allowed[row])[-1])


def standard_error(scores: np.ndarray) -> np.ndarray:
    """Return the standard error of the mean over the last axis; 0 if that has one entry."""
    count = scores.shape[-1]
    if count == 1:
        return np.zeros(scores.shape[:-1])
    size = float(np.max(np.abs(scores))) or 1.0  # no overflow in the square of a large score
    return np.asarray(size * (scores / size).std(axis=-1, ddof=1) / np.sqrt(count))
