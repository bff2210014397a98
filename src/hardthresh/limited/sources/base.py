"""The contract of a source: it returns examples, whose attributes are bought within a budget.

The user guide shows how to write one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Never, SupportsIndex

import numpy as np

from hardthresh.core.errors import CapabilityError, HardThreshError, InvalidInputError, format_value
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array, is_integer
from hardthresh.limited.cost_model import CostModel, Purchase
from hardthresh.limited.meter import Meter

from .values import as_target


@stored("purchase/example")
@dataclass(slots=True)
class Example:
    """An example of a source.

    Attributes
    ----------
    id : object
        Its number or name, which the measuring function receives and messages contain.
    y : float or None
        Its target; None before the first purchase if the target is measured together with the attributes.
    content : object
        Any data that the source needs to read the attributes.
    """

    id: Any
    y: float | None = None
    content: Any = None


class Examples:
    """Examples that `AttributeSource.draw` returned; `observe` buys and returns their attributes.

    They cannot be copied or pickled, because the purchases of a copy would not be counted.

    Parameters
    ----------
    source : AttributeSource
        The source of the examples.
    examples : sequence of Example
        The examples; no other object may hold them.

    Attributes
    ----------
    paid : int
        The number of examples that the last purchase was paid for, including those that lack a value; all of them
        before the first purchase.
    places : int array
        The positions of the remaining examples among those that were drawn, from 0.
    reached : int
        The number of examples that the last purchase reached, smaller than all of them if the source ended.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.limited import ArraySource
    >>> source = ArraySource([[1.0, 2.0], [np.nan, 4.0]], [0.0, 1.0], n_observed=1, shuffle=False)
    >>> examples = source.draw(2)
    >>> examples.observe([0])  # the second example lacks the value: it is paid for, and dropped
    array([[1.]])
    >>> examples.ids, examples.paid, source.meter.attributes
    ([0], 2, 2)
    """

    def __init__(self, source: AttributeSource, examples: Sequence[Example]) -> None:
        self.paid = self.reached = len(examples)
        self.places: Array = np.arange(len(examples))
        self._source = source
        self._examples = list(examples)
        self._purchase = source.cost_model.purchase([])
        self._values: Array = np.empty((len(self._examples), 0))
        self._asked = False
        self._broken = False

    def __len__(self) -> int:
        return len(self._examples)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Never:
        raise CapabilityError("examples cannot be copied: what a copy buys would not be counted")

    @property
    def owned(self) -> Array:
        """The attributes of each example that were bought so far, increasing."""
        return self._purchase.owned

    @property
    def purchase(self) -> Purchase:
        """The last purchase, which was made for each of the `paid` examples."""
        return self._purchase

    @property
    def ids(self) -> list[Any]:
        """The names of the examples."""
        return [example.id for example in self._examples]

    def observe(self, indices: Any) -> Array:
        """Buy and return attributes of each example, in float64, shape (len(self), len(indices)).

        An empty request is not forwarded to the source. Examples that lack one of the attributes are dropped; `ids` has
        the remaining ones. An absent example (a patient who did not come) costs nothing. An example that lacks a value,
        NaN, is paid for.

        Parameters
        ----------
        indices : int array
            The attributes, each in 0 .. d - 1.

        Returns
        -------
        array, shape (len(self), len(indices))
            The values.

        Raises
        ------
        BudgetError
            If an example would cost more than the budget; nothing is bought then.
        InvalidInputError
            For indices out of range, before anything is bought, and for infinite values.
        HardThreshError
            If an exception interrupted an earlier purchase for these examples. Its values are paid for but lost, so the
            budget does not allow to buy them again.
        """
        return self._observed(indices, ask=False)

    def answers(self, indices: Any, check: Callable[[Array], None] | None = None) -> tuple[Array, Array]:
        """Return attributes, as `observe` does, and the targets, even if only the targets have to be requested.

        Parameters
        ----------
        indices : int array
            The attributes.
        check : callable, optional
            It is called with an array of one target, for each target that arrives with the attributes, before the next
            example is bought. It raises InvalidInputError to refuse the target.

        Raises
        ------
        BudgetError, InvalidInputError, HardThreshError
            As in `observe` and `targets`. If `check` raises InvalidInputError, its message is extended by the example
            and what to do.
        """
        values = self._observed(indices, ask=None in self.known_targets(), check=check)
        return values, self.targets()

    def known_targets(self) -> list[float | None]:
        """Return the target of each example; None if it arrives with the attributes and nothing was bought yet."""
        return [example.y for example in self._examples]

    def targets(self) -> Array:
        """Return the target of each example, shape (len(self),), in float64. Targets cost nothing.

        Raises
        ------
        HardThreshError
            If the targets arrive with the attributes, and nothing was bought yet.
        """
        for example in self._examples:
            if example.y is None:
                raise HardThreshError(
                    f"the target of example {format_value(example.id)} comes with its attributes: observe first"
                )
        return np.array(self.known_targets(), dtype=np.float64)

    def _observed(self, indices: Any, *, ask: bool, check: Callable[[Array], None] | None = None) -> Array:
        """Return attributes, after a purchase if some are new, or if `ask` is set and none was made before."""
        if self._broken:
            raise HardThreshError(
                "a purchase for these examples was interrupted; draw others: what it bought is paid for, and lost"
            )
        wanted = self._source._checked(indices)
        purchase = self._source.cost_model.purchase(wanted, self.owned)
        if purchase.new.size or (ask and not self._asked):
            self._broken = True
            self._buy(purchase, check)
            self._broken = False
        values: Array = self._values[:, np.searchsorted(self.owned, wanted)]
        return values

    def _buy(self, purchase: Purchase, check: Callable[[Array], None] | None) -> None:
        """Read attributes, count received values even after an interruption, and drop examples that lack a value."""
        meter, new = self._source.meter, purchase.new
        unknown = {place for place, example in enumerate(self._examples) if example.y is None}
        came: list[int] = []
        rows: list[Array] = []
        self.reached = 0
        try:
            for place, row in enumerate(self._source.read(self._examples, new)):
                self.reached = place + 1
                if row is not None:
                    target_came = place in unknown and not np.any(np.isnan(row))
                    if target_came:
                        _check_targets(self._examples[place : place + 1])
                    came.append(place)
                    rows.append(row)
                    self._check_finite(self._examples[place], new, row)
                    if target_came and check is not None:
                        self._check_target(self._examples[place], check)
        finally:
            self.paid = len(rows)
            if not self._asked:
                meter.draw(len(rows) - len(self))
            meter.add(purchase, len(rows))
        values = np.array(rows, dtype=np.float64).reshape(len(rows), new.size)
        whole = np.flatnonzero(~np.isnan(values).any(axis=1))
        kept = [came[place] for place in whole]
        self._examples = [self._examples[place] for place in kept]
        self.places = self.places[kept]
        order = np.argsort(np.concatenate([self.owned, new]))
        self._values = np.hstack([self._values[kept], values[whole]])[:, order]
        self._purchase, self._asked = purchase, True

    def _check_finite(self, example: Example, indices: Array, row: Array) -> None:
        infinite = np.flatnonzero(np.isinf(row))
        if infinite.size:
            raise InvalidInputError(
                f"{self._source._named(indices[infinite[0]])} of example {format_value(example.id)} is "
                f"{row[infinite[0]]}; a measurement must be a finite number"
            )

    def _check_target(self, example: Example, check: Callable[[Array], None]) -> None:
        """Raise InvalidInputError for a target that `check` refuses, with the example and what to do."""
        try:
            check(np.array([example.y], dtype=np.float64))
        except InvalidInputError as error:
            raise InvalidInputError(
                f"the target of example {format_value(example.id)} is refused: {error}{self._source._remedy()}"
            ) from error


class AttributeSource(ABC):
    """Base class of sources, which return examples whose attributes have to be bought, and enforce the budget.

    Every example is returned once. A subclass has two methods: `next_examples` returns the next examples, and `read`
    returns their attributes. Values that were bought are kept with the example, so nothing is read twice. The user
    guide has an example of a subclass.

    Parameters
    ----------
    cost_model : CostModel
        Attributes, prices and budget.
    feature_names : sequence of str, optional
        The names of the attributes.

    Attributes
    ----------
    cost_model : CostModel
        Attributes, prices and budget.
    meter : Meter
        The numbers of attributes and examples bought so far, and their cost.
    feature_names : array of str, or None
        The names of the attributes.
    targets_known : bool
        Whether an example has its target when it is drawn; otherwise the target arrives with the first attributes.
    ended : bool
        Whether `read` found that there are no more examples.

    Notes
    -----
    Cost: one pass over the examples. Guarantee: the attributes of no example cost more than the budget.
    """

    targets_known = True
    ended = False

    def __init__(self, cost_model: CostModel, feature_names: Sequence[str] | None = None) -> None:
        self.cost_model = cost_model
        self.meter = Meter()
        self.feature_names = None if feature_names is None else np.asarray(list(feature_names), dtype=object)
        if self.feature_names is not None and self.feature_names.size != cost_model.n_features:
            raise InvalidInputError(
                f"feature_names has {self.feature_names.size} names; {cost_model.n_features} are needed, one for each "
                "attribute"
            )
        check_distinct(self.feature_names)

    @property
    def n_features(self) -> int:
        """The number of attributes, d."""
        return self.cost_model.n_features

    @property
    def remaining(self) -> int | None:
        """The number of examples left; None if it is not known."""
        return None

    def draw(self, count: int) -> Examples:
        """Return the next `count` examples, or fewer if the source has no more.

        Raises
        ------
        InvalidInputError
            If `count` is not an integer >= 0, or a target is known and is not a finite number.
        """
        if not (is_integer(count) and count >= 0):
            raise InvalidInputError(f"count must be an integer >= 0, got {format_value(count)}")
        examples = self.next_examples(int(count))
        if self.targets_known:
            _check_targets(examples)
        self.meter.draw(len(examples))
        return Examples(self, examples)

    @abstractmethod
    def next_examples(self, count: int) -> Sequence[Example]:
        """Return up to `count` examples that were not returned before; an empty sequence if there are no more."""

    @abstractmethod
    def read(self, examples: Sequence[Example], indices: Array) -> Iterable[Array | None]:
        """Return the attributes `indices` of each example in turn, or None for an absent example, which costs nothing.

        The indices increase, and were not read of these examples before. NaN is a missing value, which is paid for. The
        iterable may end early if there are no more examples. If `targets_known` is False, the method sets ``example.y``
        of each example without NaN.
        """

    def _remedy(self) -> str:
        """Return the end of a message, which says what to do about the values that were read last; by default empty."""
        return ""

    def _named(self, j: int) -> str:
        """Return the name of an attribute in messages."""
        return (
            f"attribute {j}" if self.feature_names is None else f"attribute {j} ({format_value(self.feature_names[j])})"
        )

    def _checked(self, indices: Any) -> Array:
        wanted = np.asarray(indices)
        if wanted.ndim != 1 or (wanted.size and wanted.dtype.kind not in "iu"):
            raise InvalidInputError(f"indices must be a list of integers, got {format_value(indices)}")
        outside = wanted[(wanted < 0) | (wanted >= self.n_features)]
        if outside.size:
            raise InvalidInputError(f"there is no attribute {outside[0]}; there are {self.n_features}, counted from 0")
        return wanted.astype(np.intp)


def _check_targets(examples: Iterable[Example]) -> None:
    """Convert the targets of examples to floats; all targets of sources are validated here."""
    for example in examples:
        example.y = as_target(example.y, example.id)


def check_distinct(names: Iterable[Any] | None) -> None:
    """Raise InvalidInputError if two attributes have the same name."""
    seen = set()
    for name in () if names is None else names:
        if name in seen:
            raise InvalidInputError(f"two attributes are called {format_value(name)}; each needs a name of its own")
        seen.add(name)
