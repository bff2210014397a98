"""The meter, which adds up what is bought, and the cost of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from hardthresh.core.schema import Fields, stored
from hardthresh.core.typing import Array

from .cost_model import CostModel, Purchase


def _without_cost_model(fields: Fields) -> Fields:
    """Return the fields of version 2: until then a meter had a cost model, ``market``, and enforced its budget."""
    return {name: value for name, value in fields.items() if name != "market"}


@stored("purchase/meter", upgrades=[_without_cost_model])
@dataclass
class Meter:
    """Adds up attributes, examples and money.

    A source has a meter for what it sold, a learner one for what it paid; both add up the same `Purchase`.

    Attributes
    ----------
    attributes : int
        Attributes bought: each attribute of each example counts once, however often it is asked for.
    examples : int
        Examples drawn, without those that turned out not to be there.
    max_per_example : int
        The most attributes bought of one example.
    money : float
        The total cost; with equal prices of 1 the same as `attributes`.
    """

    attributes: int = 0
    examples: int = 0
    max_per_example: int = 0
    money: float = 0.0

    def draw(self, count: int) -> None:
        """Count examples that were handed out; a negative number takes back those that were not there after all."""
        self.examples += count

    def add(self, purchase: Purchase, count: int) -> None:
        """Count a purchase that was made for each of `count` examples."""
        self.attributes += purchase.new.size * count
        self.money += purchase.cost * count
        if count:
            self.max_per_example = max(self.max_per_example, purchase.owned.size)


@stored("purchase/budget")
@dataclass(frozen=True)
class Spending:
    """What a model has cost so far, and what predictions with it cost.

    Attributes
    ----------
    attributes : int
        Attributes bought.
    examples : int
        Examples drawn.
    dropped : int
        Those of which something that was asked for could not be had: paid, but not learned from.
    unused : int or None
        Examples left in the source; None where that is not known.
    max_per_example : int
        The most attributes bought of one example.
    money : float
        What all of it cost; with equal prices the number of attributes.
    per_example : float
        What one example was allowed to cost: ``budget`` of the cost model.
    per_prediction : float
        What a prediction costs.
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
        """Return the spending on a model with some support, by the meter of its learner."""
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
