"""The meter, which adds up purchases, and the cost of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from hardthresh.core.schema import Fields, stored
from hardthresh.core.typing import Array

from .cost_model import CostModel, Purchase


def _without_cost_model(fields: Fields) -> Fields:
    """Return the fields of version 2. Before, a meter had a cost model, ``market``, and enforced its budget."""
    return {name: value for name, value in fields.items() if name != "market"}


@stored("purchase/meter", upgrades=[_without_cost_model])
@dataclass
class Meter:
    """Adds up the attributes, examples and money of purchases.

    A source has a meter of what it sold, and a learner has a meter of what it paid for.

    Attributes
    ----------
    attributes : int
        The number of attributes bought. Each attribute of each example counts once, even if it is requested again.
    examples : int
        The number of examples drawn, without absent ones, such as patients who did not come.
    max_per_example : int
        The largest number of attributes bought of one example.
    money : float
        The total cost, in the unit of the prices; equal to `attributes` if all prices are 1.

    Examples
    --------
    >>> from hardthresh.limited import CostModel, Meter
    >>> meter = Meter()
    >>> meter.draw(10)
    >>> meter.add(CostModel.of(4, costs=[2.0, 3.0, 1.0, 1.0], budget=6.0).purchase([0, 1]), count=10)
    >>> meter
    Meter(attributes=20, examples=10, max_per_example=2, money=50.0)
    """

    attributes: int = 0
    examples: int = 0
    max_per_example: int = 0
    money: float = 0.0

    def draw(self, count: int) -> None:
        """Add `count` examples that a source returned; a negative number subtracts those that were absent."""
        self.examples += count

    def add(self, purchase: Purchase, count: int) -> None:
        """Add a purchase that was made for each of `count` examples."""
        self.attributes += purchase.new.size * count
        self.money += purchase.cost * count
        if count:
            self.max_per_example = max(self.max_per_example, purchase.owned.size)


@stored("purchase/budget")
@dataclass(frozen=True)
class Spending:
    """The cost of a model: what was bought to learn it, and the price of a prediction.

    Attributes
    ----------
    attributes : int
        The number of attributes bought.
    examples : int
        The number of examples drawn, without absent ones.
    dropped : int
        The number of examples that were paid for but not learned from, because a value was missing.
    unused : int or None
        The number of examples left in the source; None if it is not known.
    max_per_example : int
        The largest number of attributes bought of one example.
    money : float
        The total cost, in the unit of the prices; equal to `attributes` if all prices are 1.
    per_example : float
        The budget for one example, in the same unit.
    per_prediction : float
        The cost of a prediction, in the same unit.
    """

    attributes: int
    examples: int
    dropped: int
    unused: int | None
    max_per_example: int
    money: float
    per_example: float
    per_prediction: float

    @classmethod
    def of(cls, meter: Meter, cost_model: CostModel, support: Array, dropped: int, unused: int | None) -> Self:
        """Return the cost of a model with a given support, from the meter of its learner."""
        return cls(
            attributes=meter.attributes,
            examples=meter.examples,
            dropped=dropped,
            unused=unused,
            max_per_example=meter.max_per_example,
            money=meter.money,
            per_example=cost_model.budget,
            per_prediction=cost_model.cost(support),
        )
