"""Groups of coordinates: sums over groups, and masks, in any array library."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import frexp

import numpy as np
from array_api_compat import device

from hardthresh.core.errors import NotFiniteError
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array, is_numpy

from .indexing import gather, mask_of
from .namespace import move, namespace


def scaled_squares(z: Array) -> Array:
    """Return the squares of the entries of a vector divided by a common power of four, so that they do not overflow.

    The power is that of the largest entry, and the division is exact. The squares are computed in float64 for NumPy and
    in the dtype of the vector otherwise; squares that are too small relative to the largest one underflow to 0.

    Parameters
    ----------
    z : array, shape (n,)
        The vector.

    Returns
    -------
    array, shape (n,)

    Raises
    ------
    NotFiniteError
        For a NaN.
    """
    xp = namespace(z)
    size = float(xp.max(xp.abs(z)))
    if size != size:
        raise NotFiniteError("the point to threshold contains NaN; check the data, or take a smaller step")
    limit = 1000 if xp.finfo(z.dtype).bits == 64 else 120
    unit = z * 2.0 ** -max(-limit, min(limit, frexp(size)[1] if size < float("inf") else 0))
    if is_numpy(unit):
        unit = unit.astype(np.float64, copy=False)
    squares: Array = unit * unit
    return squares


@stored("support/grouping")
@dataclass(frozen=True, eq=False)
class Grouping:
    """A partition of coordinates into groups 0, 1, ... and those in no group.

    Parameters
    ----------
    numbers : array of int, shape (d,)
        The group of each coordinate; `count` for coordinates in no group.
    count : int
        The number of groups, none of which is empty.

    Notes
    -----
    Cost of all methods O(d).
    """

    numbers: np.ndarray
    count: int
    sizes: np.ndarray = field(init=False)
    """The number of coordinates of each group."""
    order: np.ndarray = field(init=False)
    """The coordinates, group by group, increasing in each; those in no group come last."""

    def __post_init__(self) -> None:
        sizes = np.bincount(self.numbers, minlength=self.count + 1)[: self.count]
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "order", np.argsort(self.numbers, kind="stable"))

    def sums(self, v: Array) -> Array:
        """Return the sum of the entries of a vector over each group, shape (count,), bitwise reproducible."""
        if is_numpy(v):
            return np.bincount(self.numbers, weights=v, minlength=self.count + 1)[: self.count]
        xp = namespace(v)
        padded = xp.concat([v, xp.zeros(1, dtype=v.dtype, device=device(v))])
        parts, places = [v[:0]], []
        starts = np.cumsum(self.sizes) - self.sizes
        width = np.ceil(np.log2(np.maximum(self.sizes, 1))).astype(int)  # tables of similar sizes waste at most half
        for exponent in np.unique(width):
            groups = np.flatnonzero(width == exponent)
            columns = np.arange(2**exponent)
            place = np.minimum(starts[groups, None] + columns, self.order.size - 1)
            table = np.where(columns < self.sizes[groups, None], self.order[place], self.numbers.size)
            some = gather(padded, move(table.reshape(-1), v))
            parts.append(xp.sum(xp.reshape(some, table.shape), axis=1))
            places.append(groups)
        back = np.argsort(np.concatenate(places)) if places else np.arange(0)
        return gather(xp.concat(parts), move(back, v))

    def mask(self, groups: Array, *, none: bool) -> Array:
        """Return which coordinates are in given groups; coordinates in no group are included if `none` is True."""
        xp = namespace(groups)
        chosen = mask_of(groups, self.count)
        rest = xp.full(1, none, dtype=xp.bool, device=device(groups))
        return gather(xp.concat([chosen, rest]), move(self.numbers, groups))

    def leaders(self, magnitude: Array, m: int) -> Array:
        """Return which coordinates are among the m largest of their group; the lowest index wins a tie.

        Cost O(d log d).
        """
        xp = namespace(magnitude)
        if is_numpy(magnitude):
            order = np.lexsort((-magnitude, self.numbers))
        else:
            order = xp.argsort(-magnitude, stable=True)
            order = gather(order, xp.argsort(gather(move(self.numbers, magnitude), order), stable=True))
        sizes = np.append(self.sizes, self.numbers.size - int(np.sum(self.sizes)))
        rank = np.arange(self.numbers.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        leads = (rank < m) & (self.numbers[self.order] < self.count)
        return mask_of(xp.sort(order[move(leads, magnitude)]), self.numbers.size)
