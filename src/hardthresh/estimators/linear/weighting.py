"""The meaning of sample weights in standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, Self

import numpy as np

from hardthresh.arrays import double

Weights = Literal["", "frequency", "precision", "sampling"]
ROLES: dict[Weights, str] = {
    "frequency": "frequencies: a weight of 2 is a row given twice",
    "precision": "relative precisions, whose scale makes no difference",
    "sampling": "sampling weights, whose scale makes no difference",
}
"""What weights of rows may be, in words."""
_ROUNDING = 1e-9
"""Weights and their sums that differ by less than this share are the same: far above the rounding of a sum in double
precision."""


def counts_of(objective: Any) -> np.ndarray:
    """Return the weights of an objective as `fit` got them, with a mean of 1 if their sum overflows."""
    total = float(objective.targets.n_examples)
    return double(objective.weights) * (total if isfinite(total) else float(objective.y.shape[0]))


@dataclass(frozen=True, slots=True)
class Weighting:
    """The weights of some rows.

    Attributes
    ----------
    rows : int
        The number of rows of positive weight.
    total : float
        The sum of their weights.
    whole, equal : bool
        Whether all weights are whole numbers, and whether all are known to be the same.
    rounding : float
        By which share numbers may differ from others that they equal.
    """

    rows: int
    total: float
    whole: bool
    equal: bool
    rounding: float = _ROUNDING

    @classmethod
    def of(cls, weights: np.ndarray, eps: float) -> Self:
        """Return that of weights, shape (n,), whose shares in their sum were rounded to numbers with an eps."""
        rounding = max(_ROUNDING, eps)  # half of eps each, and no more for the sum
        whole, equal = (
            bool(np.allclose(weights, like, rtol=rounding, atol=0.0)) for like in (np.round(weights), weights[0])
        )
        return cls(weights.size, float(weights.sum()), whole, equal, rounding)

    def role(self, robust: bool, said: Weights) -> Weights:
        """Return what standard errors take the weights for; nothing where they change nothing.

        Parameters
        ----------
        robust : bool
            Whether the errors are robust.
        said : str
            What the weights are said to be; empty if nothing is said.
        """
        as_rows = np.isclose(self.total, self.rows, rtol=self.rounding, atol=0.0)
        if self.equal and (as_rows if said else self.total <= self.rows * (1 + self.rounding)):
            return ""
        if said:
            return said
        if robust:
            return "frequency" if self.whole else "sampling"
        return "frequency" if self.total >= self.rows * (1 - self.rounding) else "precision"
