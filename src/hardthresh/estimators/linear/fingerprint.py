"""Fingerprints of training data, to detect changes in place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isnan

import numpy as np

from hardthresh.arrays import move, namespace
from hardthresh.core.objective import UNITS
from hardthresh.core.typing import Array
from hardthresh.designs import Design

_COVARIATES = 1000
"""The most columns beside a file that are examined: more than there are covariates of genotypes."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A fingerprint of training data, to tell whether they were changed.

    Attributes
    ----------
    rows : array, shape (n_samples,)
        For each row one random combination of its standardised entries.
    targets : array, shape (n_samples,)
        A copy of the targets.
    rounding : float
        Largest difference of two computations of `rows`, for example with other numbers of threads.
    """

    rows: Array
    targets: Array
    rounding: float

    def agrees(self, other: Fingerprint) -> bool:
        """Return whether two fingerprints are those of the same data."""
        xp = namespace(self.rows)
        return bool(xp.all(self.targets == other.targets)) and bool(
            xp.all(xp.abs(self.rows - other.rows) <= self.rounding)
        )

    @classmethod
    def of(cls, design: Design, y: Array, weights: Array, far: Array) -> Fingerprint:
        """Return the fingerprint of standardised columns and targets. Cost: one data pass, and two numbers per row.

        Of a design whose readings are counted, a file that is refused once it has changed, it is that of the first
        1,000 columns, the covariates among them, without a pass.

        Parameters
        ----------
        design : Design, shape (n, p)
            The columns, the first of which are those of the data.
        y : array, shape (n,) or (n, q)
            The targets.
        weights : array, shape (n,)
            The weights of the rows of the design.
        far : array, shape (d,)
            The mean of each column of the data, divided by its scale.
        """
        xp, d = namespace(far), far.shape[0]
        squares = design.pullback_squares(weights)  # which the design knows
        unit = xp.sqrt(xp.where(squares > 0, squares, xp.ones_like(squares)))
        drawn = xp.astype(move(_drawn(unit.shape[0]), unit), unit.dtype)
        if not isnan(design.readings):
            drawn[_COVARIATES:] = 0.0
        terms = float(xp.sum(xp.abs(drawn[:d]) * (xp.abs(far) / unit[:d] + 1.0)))
        rounding = UNITS * float(xp.finfo(unit.dtype).eps) * terms
        return cls(design.predict(drawn / unit), xp.asarray(y, copy=True), rounding)


@lru_cache(maxsize=1)
def _drawn(size: int) -> np.ndarray:
    """Return random numbers, the same for every fit; to draw them takes as long as to read a small table."""
    return np.random.default_rng(0).standard_normal(size)
