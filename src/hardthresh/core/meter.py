"""The unit of cost: passes over the data."""

from __future__ import annotations


class Meter:
    """A counter of data passes.

    One pass is the cost of one product X^T r with all of X; X w for a w with s of its d entries non-zero is s/d of a
    pass, and work on a mini-batch counts by its share of the rows. A meter belongs to one run; designs add to it,
    nobody else.

    Parameters
    ----------
    passes : float
        How many there were before; more are added to the attribute of this name.
    """

    __slots__ = ("passes",)

    def __init__(self, passes: float = 0.0) -> None:
        self.passes = passes

    def add(self, passes: float) -> None:
        """Count some more passes."""
        self.passes += passes
