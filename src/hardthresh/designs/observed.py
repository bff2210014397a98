"""The linear map from a matrix, dense or factored, to some of its entries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hardthresh.arrays import FactoredMatrix, Pattern
from hardthresh.core.meter import Meter
from hardthresh.core.typing import Array

from .base import LinearMap


@dataclass(frozen=True, eq=False)
class ObservedEntries(LinearMap):
    """The linear map from a matrix to some of its entries, which may be repeated.

    Attributes
    ----------
    pattern : Pattern
        The places.
    which : array, shape (n,), or None
        The place of each observation, increasing; None if each place is observed once.
    factored : bool
        Whether points and gradients are kept as factored matrices.
    dtype : numpy.dtype
        Of the points.
    meter : Meter or None
        Where data passes are counted: one for each sweep over all observations.
    share : float
        The share of a data pass that a sweep over these entries counts as.
    """

    pattern: Pattern
    which: np.ndarray | None
    factored: bool
    dtype: np.dtype[Any]
    meter: Meter | None = None
    share: float = 1.0

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return self.pattern.shape

    @property
    def places(self) -> np.ndarray:
        """The place of each observation in the pattern, increasing."""
        return np.arange(self.pattern.rows.shape[0]) if self.which is None else self.which

    def zeros(self) -> Array:
        """Return the zero matrix."""
        return FactoredMatrix.zeros(self.shape, self.dtype) if self.factored else np.zeros(self.shape, self.dtype)

    def predict(self, W: Array) -> np.ndarray:
        """Return the observed entries of a matrix in either form."""
        self._count()
        places = self.pattern
        found = W.entries(places) if isinstance(W, FactoredMatrix) else W[places.rows, places.cols]
        return found if self.which is None else found[self.which]

    def pullback(self, r: np.ndarray) -> Array:
        """Return the matrix with these numbers where they were observed, added up, and zero elsewhere."""
        self._count()
        if self.which is not None:
            r = np.bincount(self.which, r, self.pattern.rows.shape[0]).astype(self.dtype, copy=False)
        if self.factored:
            return FactoredMatrix.sparse(self.pattern, r)
        full = np.zeros(self.shape, self.dtype)
        full[self.pattern.rows, self.pattern.cols] = r
        return full

    def rows(self, indices: Array) -> ObservedEntries:
        """Return the map to some of the observations, whose places must be increasing."""
        chosen = self.places[indices]
        part, _ = observe(
            self.pattern.rows[chosen], self.pattern.cols[chosen], self.shape, factored=self.factored, dtype=self.dtype
        )
        return replace(part, meter=self.meter, share=self.share * indices.shape[0] / self.places.shape[0])

    def metered(self, meter: Meter, share: float = 1.0) -> ObservedEntries:
        """Return the same map, counting its sweeps."""
        return replace(self, meter=meter, share=share)

    def _count(self) -> None:
        if self.meter is not None:
            self.meter.add(self.share)


def observe(
    rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int], *, factored: bool, dtype: Any
) -> tuple[ObservedEntries, np.ndarray]:
    """Return the map to the entries at some positions, and the order by row and column in which it returns them.

    Parameters
    ----------
    rows, cols : array of int, shape (m,)
        The places, counted from 0.
    shape : tuple of int
        The shape (p, q) of the matrix.
    factored : bool
        Whether the matrix is given as a `hardthresh.arrays.FactoredMatrix`.
    dtype : dtype
        Of the entries.

    Returns
    -------
    design : ObservedEntries
        The map.
    order : array of int, shape (m,)
        The order.
    """
    order = np.lexsort((cols, rows))
    rows, cols = rows[order], cols[order]
    new = np.ones(rows.shape[0], dtype=bool)
    new[1:] = (np.diff(rows) != 0) | (np.diff(cols) != 0)
    pattern = Pattern.of(rows[new], cols[new], shape)
    which = None if bool(np.all(new)) else np.cumsum(new) - 1
    return ObservedEntries(pattern, which, factored, np.dtype(dtype)), order
