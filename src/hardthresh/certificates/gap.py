"""The gap between a solution and a lower bound, as text."""

from __future__ import annotations

from hardthresh.core.gap import PROVED
from hardthresh.core.numbers import number, percent

WEAK = 0.5
"""The relative gap from which a bound counts as saying nothing. Arbitrary."""


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
