"""The contract of a source: examples whose attributes are bought one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import Array

from .market import Market
from .meter import Meter


class Examples:
    """A few examples of a source, each handed out once; their attributes are read, and paid, through `observe`."""

    def __init__(self, source: AttributeSource, ids: Sequence[Any]) -> None:
        self.ids = list(ids)
        self.owned: Array = np.empty(0, dtype=np.intp)
        self._source = source

    def __len__(self) -> int:
        return len(self.ids)

    def observe(self, indices: Any) -> Array:
        """Return some attributes of each example, shape (len(self), len(indices)), in float64; new ones are paid.

        Examples of which nothing can be had (a patient who did not come) are dropped: `ids` has what is left.

        Raises
        ------
        BudgetError
            If an example would cost more than the budget.
        InvalidInputError
            For indices out of range, or values that are NaN or infinite.
        """
        wanted = self._source._checked(indices)
        self.owned = self._source.meter.buy(self.owned, wanted, len(self))
        values, kept = self._source._read(self.ids, wanted)
        self.ids = [id_ for id_, keep in zip(self.ids, kept, strict=True) if keep]
        for row, column in np.argwhere(~np.isfinite(values)):
            raise InvalidInputError(
                f"attribute {wanted[column]} of example {self.ids[row]!r} is {values[row, column]}; a measurement must "
                "be a finite number"
            )
        return values

    def targets(self) -> Array:
        """Return the target of each example, shape (len(self),), which is free."""
        y = np.asarray(self._source._targets(self.ids), dtype=np.float64)
        for row in np.flatnonzero(~np.isfinite(y)):
            raise InvalidInputError(f"the target of example {self.ids[row]!r} is {y[row]}; it must be a finite number")
        return y


class AttributeSource(ABC):
    """Hands out examples whose attributes have to be bought, and enforces the budget for each of them.

    Every example is handed out once. A new kind of source says which come next, and reads attributes and targets.

    Attributes
    ----------
    market : Market
        Attributes, prices and budget.
    meter : Meter
        What was bought so far.
    feature_names : array of str, or None
        The names of the attributes.
    """

    def __init__(self, market: Market, feature_names: Sequence[str] | None = None) -> None:
        self.market = market
        self.meter = Meter(market)
        self.feature_names = None if feature_names is None else np.asarray(feature_names, dtype=object)

    @property
    def n_features(self) -> int:
        """d, the number of attributes."""
        return self.market.n_features

    @property
    def remaining(self) -> int | None:
        """How many examples are left; None where that is not known."""
        return None

    def draw(self, count: int) -> Examples:
        """Hand out the next `count` examples, fewer if the source has no more: none at all when it is empty."""
        ids = self._next(count)
        self.meter.draw(len(ids))
        return Examples(self, ids)

    @abstractmethod
    def _next(self, count: int) -> Sequence[Any]:
        """Return the names of up to `count` examples that were not handed out before."""

    @abstractmethod
    def _read(self, ids: Sequence[Any], indices: Array) -> tuple[Array, Array]:
        """Return attributes of those examples that can be had, shape (n_kept, n_indices), and which of all they are."""

    @abstractmethod
    def _targets(self, ids: Sequence[Any]) -> Array:
        """Return the targets of some examples."""

    def _checked(self, indices: Any) -> Array:
        wanted = np.asarray(indices)
        if wanted.ndim != 1 or (wanted.size and wanted.dtype.kind not in "iu"):
            raise InvalidInputError(f"indices must be a list of integers, got {indices!r}")
        outside = wanted[(wanted < 0) | (wanted >= self.n_features)]
        if outside.size:
            raise InvalidInputError(f"there is no attribute {outside[0]}; there are {self.n_features}, counted from 0")
        return wanted.astype(np.intp)
