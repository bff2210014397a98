"""How hard the working-set solver searches, and where its greedy walk reads the data."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf

FIRST_MARK, STRIDE, FURTHEST = 4, 2.5, 3
"""The greedy walk reads the data at 4, 10, 25, 63, ... columns; a run leaves it at the last of them below its budget,
to go out to three times as many columns and back."""


def next_mark(walked: int) -> int:
    """Return how many columns the walk has when it reads the data next."""
    return max(FIRST_MARK, ceil(STRIDE * walked))


def most_at_mark(walked: int) -> int:
    """Return how many columns may join the working set when the walk reads the data."""
    return max(64, 2 * walked)


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to search.

    Attributes
    ----------
    share : float
        A column joins the working set if it promises this share of what the least useful chosen one would promise from
        outside, or on the walk, of what the best one inside that is not chosen promises; a promise is g^2 / 2H.
    looks : tuple of float
        The budgets at which the data are read for the runs that leave the walk together, before they arrive at their
        own, as shares of the walk's next reading; of a quadratic only.
    swings : tuple of float
        How many columns a swing adds and drops again, as shares of k.
    exchanges : int
        For how many chosen columns the exchange with every column of the data is looked at in the end.
    insist : float
        A run on a quadratic that has arrived goes on if a column outside its working set promises this share of what
        the least useful chosen one would promise from outside: always if 0, never if infinite. Others always do.
    """

    share: float
    looks: tuple[float, ...] = ()
    swings: tuple[float, ...] = ()
    exchanges: int = 0
    insist: float = inf


EFFORTS = {
    "fast": Effort(share=0.35, looks=(1.0,)),
    "balanced": Effort(share=0.35, looks=(1.0, 0.64), swings=(0.25,), insist=0.8),
    "thorough": Effort(share=0.2, looks=(1.0, 0.64, 1.0), swings=(0.25, 0.5, 1.0), exchanges=16, insist=0.0),
}
