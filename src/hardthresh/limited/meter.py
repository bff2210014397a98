"""The meter that counts what is bought, and refuses what the budget does not cover."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardthresh.core.errors import HardThreshError
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array

from .cost_model import Market


class BudgetError(HardThreshError, ValueError):
    """More was asked for than the budget for one example covers."""


@stored("purchase/meter")
@dataclass
class Meter:
    """Counts attributes, examples and money, and enforces the budget for each example.

    Attributes
    ----------
    market : Market
        The prices and the budget.
    attributes : int
        Attributes bought: each attribute of each example counts once, however often it is asked for.
    examples : int
        Examples drawn, without those that turned out not to be there.
    max_per_example : int
        The most attributes bought of one example.
    money : float
        What all of it cost; with equal prices the same as `attributes`.
    """

    market: Market
    attributes: int = 0
    examples: int = 0
    max_per_example: int = 0
    money: float = 0.0

    def draw(self, count: int) -> None:
        """Count examples that were handed out; a negative number takes back those that were not there after all."""
        self.examples += count

    def covered(self, owned: Array, indices: Array) -> Array:
        """Return what is owned of an example, increasing, when `indices`, and their panels, are bought too.

        Raises
        ------
        BudgetError
            If that would cost more than the budget for one example.
        """
        wanted = self.market.bundle(np.union1d(owned, indices))
        if not self.market.affords(cost := self.market.cost(wanted)):
            plain = self.market.plain
            what = f"{wanted.size} attributes" if plain else f"attributes for {cost:g}"
            raise BudgetError(
                f"{what} of one example were asked for, {owned.size} of them bought before; the budget is "
                f"{self.market.n_observed if plain else self.market.budget:g}"
            )
        return wanted

    def buy(self, owned: Array, indices: Array, count: int) -> Array:
        """Charge `count` examples, of which `owned` is bought already, for `indices`; return what is owned then.

        Raises
        ------
        BudgetError
            If that would cost more than the budget for one example; nothing is charged then.
        """
        wanted = self.covered(owned, indices)
        self.attributes += (wanted.size - owned.size) * count
        self.money += (self.market.cost(wanted) - self.market.cost(owned)) * count
        self.max_per_example = max(self.max_per_example, wanted.size) if count else self.max_per_example
        return wanted
