"""A source that reads rows from an iterable, and keeps only those of the examples in use in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from itertools import islice
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.typing import Array
from hardthresh.limited.cost_model import CostModel

from .base import AttributeSource, Example
from .values import as_numbers


class RowSource(AttributeSource):
    """A source of the rows of an iterable, each used once, in their order.

    Parameters
    ----------
    rows : iterable of (row, y)
        A row is a sequence of n_features numbers, or a mapping from name to number, which may have other keys too. None
        and NaN are missing values: they are paid for, and the example is dropped. y is a finite number. Rows are read
        when examples are drawn. If the iterable has a length, the number of examples is known.
    n_features : int, optional
        d; by default the number of `feature_names`.
    n_observed : int in 1 .. d, optional
        s', the number of attributes that may be observed of one example.
    costs, panels, budget
        Prices, attributes that are bought together, and the budget in money: see `CostModel.of`. With `feature_names`,
        `costs` may be a mapping from name to price.
    feature_names : sequence of str, optional
        The names of the attributes: required if rows are mappings.

    Raises
    ------
    InvalidInputError
        As in `CostModel.of`. While rows are read: for an item that is not a pair, a row of another length or without a
        required name, and anything but numbers. The message has the number of the example, from 0.

    Notes
    -----
    Cost: one pass over the iterable. Memory: the rows of the examples in use. If the source is in a `Journal`, the
    iterable must begin with the same rows at every start.

    Examples
    --------
    >>> rows = (([k, k**2, k**3], 2 * k) for k in range(10))
    >>> source = RowSource(rows, n_features=3, n_observed=2)
    >>> first = source.draw(3)
    >>> first.observe([0, 2])
    array([[0., 0.],
           [1., 1.],
           [2., 8.]])
    >>> first.targets()
    array([0., 2., 4.])
    >>> patients = [({"age": 61, "pulse": 70}, 1.0), ({"age": 35, "pulse": None}, 0.0)]
    >>> source = RowSource(patients, n_observed=1, feature_names=["age", "pulse"])
    >>> both = source.draw(2)
    >>> both.observe([1])  # the pulse of the second example is missing
    array([[70.]])
    >>> both.ids
    [0]
    """

    def __init__(
        self,
        rows: Iterable[tuple[Any, Any]],
        n_features: int | None = None,
        n_observed: int | None = None,
        *,
        costs: Sequence[float] | Mapping[Any, float] | None = None,
        panels: Sequence[Any] | None = None,
        budget: float | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(
            CostModel.of(
                n_features, n_observed, costs=costs, panels=panels, budget=budget, feature_names=feature_names
            ),
            feature_names,
        )
        self._length = len(rows) if isinstance(rows, Sized) else None
        self._rows: Iterator[tuple[Any, Any]] = iter(rows)
        self._drawn = 0

    @property
    def remaining(self) -> int | None:
        """The number of examples left; None if the iterable has no length."""
        return None if self._length is None else self._length - self._drawn

    def next_examples(self, count: int) -> list[Example]:
        return [self._example(item) for item in islice(self._rows, count)]

    def _example(self, item: Any) -> Example:
        number = self._drawn
        self._drawn += 1
        try:
            row, y = item
        except (TypeError, ValueError):
            raise InvalidInputError(f"example {number} is {format_value(item)}; a pair (row, y) is needed") from None
        if isinstance(row, Mapping) and self.feature_names is None:
            raise InvalidInputError(f"the row of example {number} is a mapping; say which names with feature_names")
        if not isinstance(row, Mapping):
            row = row if isinstance(row, (list, tuple, np.ndarray)) else np.asarray(row)
            if np.ndim(row) == 0 or len(row) != self.n_features:
                has = "no length" if np.ndim(row) == 0 else f"{len(row)} values"
                raise InvalidInputError(
                    f"the row of example {number} has {has}; {self.n_features} are needed, one for each attribute"
                )
        return Example(number, y, row)

    def read(self, examples: Sequence[Example], indices: Array) -> Iterator[Array]:
        for example in examples:
            row = example.content
            values = row[indices] if isinstance(row, np.ndarray) else [self._cell(example, j) for j in indices.tolist()]
            yield as_numbers(values, indices.size, f"example {example.id}", lambda place: self._named(indices[place]))

    def _cell(self, example: Example, j: int) -> Any:
        if not isinstance(example.content, Mapping):
            return example.content[j]
        assert self.feature_names is not None
        try:
            return example.content[self.feature_names[j]]
        except KeyError:
            raise InvalidInputError(
                f"example {example.id} has no {format_value(self.feature_names[j])}; use None for a gap"
            ) from None
