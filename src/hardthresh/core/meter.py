"""The unit of cost: passes over the data."""

from __future__ import annotations


class Meter:
    """A counter of data passes.

    One pass is the cost of one product X^T r with all of X; X w for a w with s of its d entries non-zero is s/d of a
    pass, and work on a mini-batch counts by its share of the rows. A meter belongs to one run, and only designs add to
    it.

    Parameters
    ----------
    passes : float
        The number of previous passes, to which others are added.
    """

    __slots__ = ("passes",)

    def __init__(self, passes: float = 0.0) -> None:
        self.passes = passes

    def add(self, passes: float) -> None:
        """Add a number of passes."""
        self.passes += passes
