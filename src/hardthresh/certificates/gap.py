"""The gap between an answer and a lower bound, as a number and in words."""

from __future__ import annotations

from math import isfinite

from hardthresh.core.numbers import number, percent
from hardthresh.solvers.branch_and_bound.solver import PROVED

WEAK = 0.5
"""The relative gap from which a bound counts as saying nothing. Arbitrary."""


def relative_gap(value: float, bound: float, least: float) -> float:
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


def bound_sentence(value: float, bound: float | None, gap: float | None) -> str:
    """Return what a lower bound says about an answer, for people: a weak one says nothing."""
    if bound is None or gap is None:
        return "Not proved: that no other set of this size, two or more exchanges away, is better."
    if gap >= WEAK:
        return (
            f"Lower bound: nothing is proved. It is {percent(gap)} below the objective; that is a weakness of the "
            "bound, and says nothing against the model."
        )
    if gap <= PROVED:
        return f"Lower bound: proved to {PROVED:.0e} relative that no other set of this size has a lower objective."
    return (
        f"Lower bound: no set of this size has an objective below {number(bound)}, and this one has {number(value)} "
        f"(gap {percent(gap)})."
    )


def gap_sentence(gap: float | None) -> str:
    """Return the same in short, for the head of a summary; empty without a bound."""
    if gap is None:
        return ""
    if gap >= WEAK:
        return f"Gap to a lower bound of all sets: {percent(gap)}: nothing is proved, and nothing said against this set"
    if gap <= PROVED:
        return "Gap to a lower bound of all sets: none, so that no other set of this size is better"
    return f"Gap to a lower bound of all sets: {percent(gap)}: no set of this size has an objective lower by more"
