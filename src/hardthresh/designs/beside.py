"""Several designs of the same rows, concatenated by columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import isnan, nan

import numpy as np

from hardthresh.core.typing import Array

from .base import Design


class SideBySide(Design):
    """The columns of several designs of the same rows, concatenated, as NumPy arrays of one dtype.

    Parameters
    ----------
    parts : sequence of Design
        One or more, such as a few dense covariates and many genotypes.

    Notes
    -----
    A product costs what those of the parts cost.
    """

    def __init__(self, parts: Sequence[Design]) -> None:
        self._parts = tuple(parts)
        self.stores_zeros = all(part.stores_zeros for part in self._parts)
        self.lazy = any(part.lazy for part in self._parts)
        self.lacks = {what: why for part in self._parts for what, why in part.lacks.items()}

    @property
    def shape(self) -> tuple[int, int]:
        return self._parts[0].shape[0], sum(part.shape[1] for part in self._parts)

    @property
    def readings(self) -> float:
        return max((part.readings for part in self._parts if not isnan(part.readings)), default=nan)

    def zeros(self, size: int) -> Array:
        return self._parts[0].zeros(size)

    def _ends(self) -> list[int]:
        """Return where each part begins, and where the last one ends."""
        return [0, *accumulate(part.shape[1] for part in self._parts)]

    def _slices(self) -> list[tuple[Design, slice]]:
        """Return the parts with their columns."""
        ends = self._ends()
        return [(part, slice(a, b)) for part, a, b in zip(self._parts, ends, ends[1:], strict=False)]

    def predict(self, w: Array) -> Array:
        return sum(part.predict(w[some]) for part, some in self._slices())

    def pullback(self, r: Array) -> Array:
        return np.concatenate([part.pullback(r) for part in self._parts])

    def gram(self, weights: Array, other: Design | None = None) -> Array:
        if other is not None and not isinstance(other, SideBySide):
            return np.concatenate([part.gram(weights, other) for part in self._parts])
        right = self if other is None else other
        places = range(len(right._parts))
        return np.block([[self._crossed(i, j, weights, right) for j in places] for i in range(len(self._parts))])

    def _crossed(self, i: int, j: int, weights: Array, right: SideBySide) -> Array:
        """Return the Gram matrix of part i with part j of another design, which may be this one."""
        if right is not self:
            return self._parts[i].gram(weights, right._parts[j])
        if i == j:
            return self._parts[i].gram(weights)
        return self._parts[i].gram(weights, self._parts[j]) if i < j else self._crossed(j, i, weights, self).T

    def pullback_squares(self, r: Array, center: Array | None = None) -> Array:
        return np.concatenate(
            [part.pullback_squares(r, None if center is None else center[some]) for part, some in self._slices()]
        )

    def moments(self, weights: Array) -> tuple[Array, Array]:
        means, deviations = zip(*(part.moments(weights) for part in self._parts), strict=True)
        return np.concatenate(means), np.concatenate(deviations)

    def part_moments(
        self, weights: Array, y: Array, parts: Sequence[Array], *, centred: bool
    ) -> tuple[Array, Array, Array]:
        moments = [part.part_moments(weights, y, parts, centred=centred) for part in self._parts]
        mean, squares, products = (np.concatenate(each, axis=1) for each in zip(*moments, strict=True))
        return mean, squares, products

    def columns(self, indices: Array) -> Design:
        indices, ends = np.asarray(indices), self._ends()
        places = np.searchsorted(indices, ends)
        chosen = [
            part.columns(indices[a:b] - start)
            for part, a, b, start in zip(self._parts, places, places[1:], ends, strict=False)
            if b > a
        ]
        return SideBySide(chosen or [self._parts[0].columns(indices)])

    def rows(self, indices: Array | slice) -> Design:
        return SideBySide([part.rows(indices) for part in self._parts])

    def dense(self) -> Array:
        return np.concatenate([part.dense() for part in self._parts], axis=1)

    def double(self) -> Design:
        return SideBySide([part.double() for part in self._parts])
