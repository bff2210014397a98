"""The gap between a solution and a lower bound."""

from __future__ import annotations

from math import inf, isfinite

PROVED = 1e-6
"""The relative gap that counts as none: values that differ by less are the same to anybody who uses a model."""


def relative_gap(value: float, bound: float, least: float = -inf) -> float:
    """Return the gap between a value and a lower bound, relative to the distance of the value from its minimum.

    Parameters
    ----------
    value, bound : float
        f at a solution, and a lower bound of f on the constraint set.
    least : float
        A lower bound of f over all points, such as 0 for squared errors (`Objective.lower_bound`); -inf if none is
        known, in which case 0 is used.

    Returns
    -------
    float
        In [0, 1]: 0 if the solution is proved to be optimal, 1 if nothing is proved.

    Examples
    --------
    >>> relative_gap(2.0, 1.5, 0.0)
    0.25
    """
    whole = value - least if isfinite(least) else abs(value)
    return min(1.0, max(0.0, (value - bound) / whole)) if whole > 0 else float(value > bound)
