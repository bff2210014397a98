"""The gap between an answer and a lower bound."""

from __future__ import annotations

from math import inf, isfinite

PROVED = 1e-6
"""The relative gap that counts as none: values that differ by less are the same to anybody who uses a model."""


def relative_gap(value: float, bound: float, least: float = -inf) -> float:
    """Return how far a lower bound is below a value, as a share of how far that is above the objective's least value.

    Parameters
    ----------
    value, bound : float
        f at an answer, and a number that f is not below.
    least : float
        A number that f never falls below, such as 0 for squared errors (`Objective.lower_bound`); -inf if none is
        known, which counts as 0.

    Returns
    -------
    float
        From 0, the answer is optimal, to 1, nothing is known.

    Examples
    --------
    >>> relative_gap(2.0, 1.5, 0.0)
    0.25
    """
    whole = value - least if isfinite(least) else abs(value)
    return min(1.0, max(0.0, (value - bound) / whole)) if whole > 0 else float(value > bound)
