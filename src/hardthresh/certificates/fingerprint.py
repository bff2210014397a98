"""Fingerprints of problems, to check whether a stored search belongs to a given problem."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from hardthresh.arrays import move, namespace
from hardthresh.core.constraint import CoordinateBudget
from hardthresh.core.objective import value_rounding
from hardthresh.core.randomness import Purpose, generator
from hardthresh.core.schema import stored

_POINTS = 3
"""Random points at which f is compared. Two quadratics with the same value at one such point are the same but by a
chance of zero; three are for rounding."""

_SAME = 1e-10
"""Values of f that differ by less than this share are the same: a tenth of what a proof is accurate to. On another
machine, sums are rounded otherwise."""


@stored("certificate/problem_fingerprint")
@dataclass(frozen=True, slots=True, eq=False)
class ProblemFingerprint:
    """What tells a problem from others: the best k of some columns, for a quadratic objective f.

    f depends on the data, the weights and offsets of their rows, and the ridge. Rows in another order are the same.

    Attributes
    ----------
    k : int
        The number of columns to choose.
    candidates : int
        The number of columns to choose from.
    free : tuple of int
        The coordinates that are always in.
    values : array
        f at zero, and at random points of the scale of the answer.
    rounding : array
        How much of each may be rounding.
    """

    k: int
    candidates: int
    free: tuple[int, ...]
    values: np.ndarray
    rounding: np.ndarray

    @classmethod
    def of(cls, objective: Any, budget: CoordinateBudget) -> ProblemFingerprint:
        """Return the fingerprint of a problem. Cost: six data passes."""
        zero = objective.evaluate(objective.zeros())
        xp, slope = namespace(zero.point), zero.gradient
        diagonal = objective.hessian_diag(zero)
        unit = xp.sqrt(xp.where(diagonal > 0, diagonal, xp.ones_like(diagonal)))
        largest = float(xp.max(xp.abs(slope) / unit))
        scale = (largest or 1.0) / sqrt(slope.shape[0])
        points = [zero]
        for number in range(_POINTS):
            drawn = generator(0, number, Purpose.FINGERPRINT).standard_normal(slope.shape[0])
            points.append(objective.evaluate(scale * xp.astype(move(drawn, slope), slope.dtype) / unit))
        return cls(
            k=budget.budget,
            candidates=budget.candidates,
            free=tuple(budget.free),
            values=np.array([at.value for at in points]),
            rounding=np.array([value_rounding(objective, at) for at in points]),
        )

    def difference(self, other: ProblemFingerprint) -> str:
        """Return what this problem is about, where that is not what another one is about; empty if both are the same.

        Examples
        --------
        >>> one = ProblemFingerprint(6, 40, (), np.ones(4), np.zeros(4))
        >>> one.difference(ProblemFingerprint(7, 40, (), np.ones(4), np.zeros(4)))
        'of k = 6, not of k = 7'
        >>> one.difference(one)
        ''
        """
        if self.k != other.k:
            return f"of k = {self.k}, not of k = {other.k}"
        if self.candidates != other.candidates:
            return f"about a choice among {self.candidates} features, not {other.candidates}"
        if self.free != other.free:
            return "about other features that are always included, or none, or about models with another intercept"
        near = _SAME * np.maximum(np.abs(self.values), np.abs(other.values))
        if np.all(np.abs(self.values - other.values) <= np.maximum(near, np.maximum(self.rounding, other.rounding))):
            return ""
        return "about other data, weights or offsets, or another ridge (alpha)"
