"""A source for simulations: a complete table, whose attributes are bought as if they were unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.randomness import Purpose, generator
from hardthresh.core.typing import Array
from hardthresh.limited.cost_model import CostModel

from .base import AttributeSource, Example
from .values import as_target


class ArraySource(AttributeSource):
    """A source of the rows of a complete table, each used once, to simulate purchases.

    Parameters
    ----------
    X : array or scipy.sparse array, shape (n, d)
        Attributes, of a numeric or Boolean dtype. A sparse array is converted to CSR; a dense array is not copied.
        Only values that are bought are read. NaN is a missing value: it is paid for, and the example is dropped.
    y : array, shape (n,)
        Finite targets, which cost nothing.
    n_observed : int in 1 .. d, optional
        s', the number of attributes that may be observed of one example.
    seed : int
        The seed of the order of the examples.
    shuffle : bool
        Whether to return the examples in random order instead of the order of the rows.
    costs, panels, budget
        Prices, attributes that are bought together, and the budget in money: see `CostModel.of`.
    feature_names : sequence of str, optional
        The names of the attributes; by default the columns of `X` if it is a data frame.
    cost_model : CostModel, optional
        The prices and the budget; it replaces `n_observed`, `costs`, `panels` and `budget`.

    Raises
    ------
    InvalidInputError
        For shapes that do not match, other dtypes, targets that are NaN or infinite, and as in `CostModel.of`; during a
        purchase, for infinite values.

    Notes
    -----
    Cost: a purchase reads the requested cells only (of a sparse array, the requested rows). Memory: O(n) for the order.

    Examples
    --------
    >>> import numpy as np
    >>> source = ArraySource(np.arange(12.0).reshape(3, 4), [1.0, 2.0, 3.0], n_observed=2, shuffle=False)
    >>> patients = source.draw(2)
    >>> patients.observe([0, 3])
    array([[0., 3.],
           [4., 7.]])
    >>> patients.observe([3])  # bought before: costs nothing
    array([[3.],
           [7.]])
    >>> source.meter.attributes, source.meter.examples, source.remaining
    (4, 2, 1)
    >>> patients.observe([1])
    Traceback (most recent call last):
    hardthresh.limited.cost_model.BudgetError: 3 attributes of one example were asked for, 2 of them bought before; ...
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        n_observed: int | None = None,
        *,
        seed: int = 0,
        shuffle: bool = True,
        costs: Sequence[float] | Mapping[Any, float] | None = None,
        panels: Sequence[Any] | None = None,
        budget: float | None = None,
        feature_names: Sequence[str] | None = None,
        cost_model: CostModel | None = None,
    ) -> None:
        if feature_names is None and hasattr(X, "columns"):
            feature_names = list(X.columns)
        self._X = X.tocsr() if issparse(X) else np.asarray(X)
        self._y = np.asarray(y, dtype=np.float64)
        if self._X.ndim != 2 or self._y.shape != self._X.shape[:1]:
            raise InvalidInputError(
                "X must be a table and y have one number for each of its rows, got shapes "
                f"{self._X.shape} and {self._y.shape}"
            )
        for row in np.flatnonzero(~np.isfinite(self._y))[:1]:
            as_target(float(self._y[row]), int(row))
        if self._X.dtype.kind not in "fiub":
            raise InvalidInputError(f"X must be numeric, got dtype {self._X.dtype}")
        if cost_model is None:
            cost_model = CostModel.of(
                self._X.shape[1], n_observed, costs=costs, panels=panels, budget=budget, feature_names=feature_names
            )
        elif (
            any(term is not None for term in (n_observed, costs, panels, budget))
            or cost_model.n_features != self._X.shape[1]
        ):
            raise InvalidInputError(
                f"a cost model is for tables of its {cost_model.n_features} attributes, and takes the place of "
                "n_observed, costs, panels and budget"
            )
        super().__init__(cost_model, feature_names)
        n = self._X.shape[0]
        self._order = generator(seed, 0, Purpose.ORDER_OF_ROWS).permutation(n) if shuffle else np.arange(n)
        self._position = 0

    @property
    def remaining(self) -> int:
        """The number of examples left."""
        return len(self._order) - self._position

    def next_examples(self, count: int) -> list[Example]:
        ids = self._order[self._position : self._position + count].tolist()
        self._position += len(ids)
        return [Example(i, y) for i, y in zip(ids, self._y[ids].tolist(), strict=True)]

    def read(self, examples: Sequence[Example], indices: Array) -> Array:
        rows: Any = self._X[[example.id for example in examples]][:, indices]
        return rows.toarray() if issparse(rows) else rows
