"""The contract of a source: it hands out examples, whose attributes are bought one by one within a budget.

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
    """An example that a source hands out.

    Attributes
    ----------
    id : object
        Its name, for those who measure it and for messages.
    y : float or None
        Its target; None where it comes with the first answer, until then.
    content : object
        Whatever the source needs to read its attributes.
    """

    id: Any
    y: float | None = None
    content: Any = None


class Examples:
    """Examples of a source, whose attributes are read, and paid for, through `observe`.

    They cannot be copied or pickled: what a copy buys would not be counted.

    Parameters
    ----------
    source : AttributeSource
        Where they come from.
    examples : sequence of Example
        The examples, which no other object holds.

    Attributes
    ----------
    paid : int
        The number of examples that the last purchase was paid for, including those with a gap; all of them before the
        first purchase.
    places : int array
        Which of the examples that were handed out are left, counted from 0.
    reached : int
        The number of examples that the last purchase reached before the source turned out to be empty.
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
        """The attributes bought so far, increasing."""
        return self._purchase.owned

    @property
    def purchase(self) -> Purchase:
        """What the last purchase was, of each of the `paid` examples."""
        return self._purchase

    @property
    def ids(self) -> list[Any]:
        """The names of the examples."""
        return [example.id for example in self._examples]

    def observe(self, indices: Any) -> Array:
        """Return some attributes of each example, shape (len(self), len(indices)), in float64; new ones are paid.

        An empty request is not forwarded to the source. Examples that lack one of the attributes are dropped: `ids` has
        those that are left. An example that is not there at all (a patient who did not come) costs nothing; one with a
        gap, NaN, is paid for all the same.

        Raises
        ------
        BudgetError
            If an example would cost more than the budget; nothing is bought then.
        InvalidInputError
            For indices out of range, or infinite values.
        HardThreshError
            If an earlier purchase was interrupted, by any exception: what it bought is paid for, but lost, so nothing
            more can be bought of these examples within the budget.
        """
        return self._observed(indices, ask=False)

    def answers(self, indices: Any, check: Callable[[Array], None] | None = None) -> tuple[Array, Array]:
        """Return some attributes, as `observe` does, and the targets, even if only these have to be asked for.

        Parameters
        ----------
        indices : int array
            The attributes.
        check : callable, optional
            Takes an array with one target that came with the attributes, before the next example is bought, and raises
            InvalidInputError if it refuses the target.

        Raises
        ------
        BudgetError, InvalidInputError, HardThreshError
            As `observe` and `targets`; and InvalidInputError, with the example and what to do, if `check` raises it.
        """
        values = self._observed(indices, ask=None in self.known_targets(), check=check)
        return values, self.targets()

    def known_targets(self) -> list[float | None]:
        """Return the target of each example; None where it comes with the attributes and nothing was observed yet."""
        return [example.y for example in self._examples]

    def targets(self) -> Array:
        """Return the target of each example, shape (len(self),), which is free.

        Raises
        ------
        HardThreshError
            If the targets come with the attributes, and nothing was observed yet.
        """
        for example in self._examples:
            if example.y is None:
                raise HardThreshError(
                    f"the target of example {format_value(example.id)} comes with its attributes: observe first"
                )
        return np.array(self.known_targets(), dtype=np.float64)

    def _observed(self, indices: Any, *, ask: bool, check: Callable[[Array], None] | None = None) -> Array:
        """Return attributes, after a purchase if some are new, or if `ask` is set and there was none before."""
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
        """Read attributes, count what came even if reading is interrupted, and drop examples with gaps."""
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
        """Raise InvalidInputError, with the example and what to do, for a target that `check` refuses."""
        try:
            check(np.array([example.y], dtype=np.float64))
        except InvalidInputError as error:
            raise InvalidInputError(
                f"the target of example {format_value(example.id)} is refused: {error}{self._source._remedy()}"
            ) from error


class AttributeSource(ABC):
    """Hands out examples whose attributes have to be bought, and enforces the budget for each of them.

    Every example is handed out once. A subclass says which examples come next (`next_examples`) and reads attributes
    (`read`). What was bought of an example is kept with it, so nothing is read twice.

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
        What was bought so far.
    feature_names : array of str, or None
        The names of the attributes.
    targets_known : bool
        Whether an example has its target when it is handed out; else it comes with the first answer.
    ended : bool
        Whether reading has shown that there are no more examples.
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
        """The number of examples left; None where that is not known."""
        return None

    def draw(self, count: int) -> Examples:
        """Return the next `count` examples, or fewer if the source has no more.

        Raises
        ------
        InvalidInputError
            If `count` is not an integer >= 0, or a target that is known is not a finite number.
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
        """Return up to `count` examples that were not handed out before; none when there are no more."""

    @abstractmethod
    def read(self, examples: Sequence[Example], indices: Array) -> Iterable[Array | None]:
        """Return some attributes of each example in turn, or None for an example that is not there and costs nothing.

        The indices increase, and were not read of these examples before. NaN is a value that cannot be had but is paid
        for. It may end early when there are no more examples. Where `targets_known` is False it sets ``example.y`` of
        each example without NaN.
        """

    def _remedy(self) -> str:
        """Return what to do about the answer that was read last, for the end of a message; by default nothing."""
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
    """Make the targets of examples floats; the one place where the targets of a source are validated."""
    for example in examples:
        example.y = as_target(example.y, example.id)


def check_distinct(names: Iterable[Any] | None) -> None:
    """Raise InvalidInputError if two attributes have the same name."""
    seen = set()
    for name in () if names is None else names:
        if name in seen:
            raise InvalidInputError(f"two attributes are called {format_value(name)}; each needs a name of its own")
        seen.add(name)
