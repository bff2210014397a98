"""Means and shares with their confidence intervals, and p-values of several tests."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, sqrt

import numpy as np
from scipy.stats import binomtest, t

from hardthresh.core.numbers import number, percent
from hardthresh.core.typing import Array

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its confidence interval.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        The ends of the interval; infinite where there is too little to estimate it from.
    """

    value: float
    low: float
    high: float

    @property
    def estimate(self) -> str:
        """The estimate as text."""
        return self._text(self.value)

    def __str__(self) -> str:
        return f"{self.estimate} ({self._text(self.low)} to {self._text(self.high)})"

    @staticmethod
    def _text(x: float) -> str:
        return number(x)

    def to_dict(self) -> dict[str, float | None]:
        """Return the three numbers by name, None for one that is not finite, which JSON does not have."""
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        return {name: x if isfinite(x) else None for name, x in numbers.items()}


class Share(Interval):
    """A share of cases, in per cent."""

    __slots__ = ()

    @staticmethod
    def _text(x: float) -> str:
        return "unknown" if x != x else percent(x)


def mean_interval(numbers: Array, level: float = LEVEL, *, least: float = -inf) -> Interval:
    """Return the mean of some numbers with Student's interval, mean ± t s / sqrt(n), cut off below `least`."""
    n = len(numbers)
    if not n:
        return Interval(np.nan, least, inf)
    mean = float(np.mean(numbers))
    if n == 1:
        return Interval(mean, least, inf)
    half = float(t.ppf(0.5 + level / 2, n - 1)) * float(np.std(numbers, ddof=1)) / sqrt(n)
    return Interval(mean, max(least, mean - half), mean + half)


def share_interval(count: int, total: int, level: float = LEVEL) -> Share:
    """Return a share of cases with Wilson's interval; 0 to 1 where there are no cases."""
    if not total:
        return Share(np.nan, 0.0, 1.0)
    ends = binomtest(count, total).proportion_ci(level, method="wilson")
    return Share(count / total, float(ends.low), float(ends.high))


def holm(p: Array) -> Array:
    """Return p-values adjusted by Holm's method: the i-th smallest of m times m - i + 1, and not below smaller ones."""
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted
