"""The cost model: the panels in which attributes are sold, their prices, and the budget for one example."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, Self

import numpy as np

from hardthresh.arrays import top_k
from hardthresh.core.checking import checked_number
from hardthresh.core.errors import CapabilityError, HardThreshError, InvalidInputError, format_value
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array, is_integer

ROUNDING = 1e-9
"""The relative amount by which a sum of prices may exceed the budget. The rounding error of a sum of 10^6 prices is at
most 1e-10, and a price below 1e-9 of the budget is negligible; arbitrary between these."""
_NOTHING = np.empty(0, dtype=np.intp)


class BudgetError(HardThreshError, ValueError):
    """A request would cost more than the budget for one example."""


@dataclass(frozen=True, slots=True, eq=False)
class Purchase:
    """The attributes of one example that are bought at one time.

    Attributes
    ----------
    new : int array
        The attributes that are bought, increasing.
    owned : int array
        The attributes that are owned afterwards, increasing.
    cost : float
        The price of `new`.
    """

    new: Array
    owned: Array
    cost: float


@stored("purchase/cost_model")
@dataclass(frozen=True, eq=False)
class CostModel:
    """The panels in which attributes are sold, the price of each panel, and the budget for one example.

    A *panel* is a set of attributes that are bought together, such as the values of one blood test. Without panels
    every attribute is a panel of its own; without prices each attribute costs 1, and the budget is the number s' of
    attributes that may be observed of one example. `CostModel.of` makes a cost model. Its arrays are read-only.

    Attributes
    ----------
    panel : int array, shape (n_features,)
        The panel of each attribute, numbered from 0.
    price : float array, shape (n_panels,)
        The price of each panel, > 0.
    budget : float
        The largest sum of prices for one example, > 0, in the unit of `price`.

    Examples
    --------
    >>> lab = CostModel.of(4, costs=[20.0, 1.0, 1.0, 90.0], budget=100.0)
    >>> lab.price, lab.cost([0, 1]), lab.uniform
    (array([20.,  1.,  1., 90.]), 21.0, False)
    """

    panel: Array
    price: Array
    budget: float

    def __post_init__(self) -> None:
        for name, dtype in (("panel", np.intp), ("price", np.float64)):
            own = np.array(getattr(self, name), dtype=dtype)
            own.setflags(write=False)
            object.__setattr__(self, name, own)

    def __reduce__(self) -> tuple[type[Self], tuple[Array, Array, float]]:
        return type(self), (self.panel, self.price, self.budget)

    @classmethod
    def of(
        cls,
        n_features: int | None = None,
        n_observed: int | None = None,
        *,
        costs: Sequence[float] | Mapping[Any, float] | None = None,
        panels: Sequence[Any] | None = None,
        budget: float | None = None,
        feature_names: Sequence[Any] | None = None,
    ) -> Self:
        """Return the cost model for `n_features` attributes.

        Parameters
        ----------
        n_features : int >= 1, optional
            d, the number of attributes; by default that of `feature_names`.
        n_observed : int in 1 .. n_features, optional
            s', the number of attributes that may be observed of one example: the budget if there are no `costs`.
        costs : array, shape (n_features,), or mapping from panel to price, optional
            Prices, positive and finite. An array has the price of each attribute, and a panel costs the sum of these.
            A mapping has the price of each panel, or without panels that of each attribute by name.
        panels : sequence of labels, shape (n_features,), optional
            Attributes with the same label are bought together.
        budget : float > 0, optional
            The largest cost of one example. Required with `costs`, and an error without them.
        feature_names : sequence of str, optional
            The names of the attributes: the keys of `costs` if that is a mapping and there are no panels.

        Returns
        -------
        CostModel
            The cost model, whose panels are numbered in order of appearance.

        Raises
        ------
        InvalidInputError
            For values outside of these ranges, for shapes that do not match, and for a budget that is smaller than the
            price of some panel, because its attributes could never be observed.

        Examples
        --------
        >>> CostModel.of(500, 50).budget
        50.0
        >>> panels = ["blood", "blood", "blood", "scan"]
        >>> lab = CostModel.of(4, costs={"blood": 20.0, "scan": 90.0}, panels=panels, budget=100.0)
        >>> lab.cost([0, 2]), lab.cost([1, 3]), lab.whole_panels([0])
        (20.0, 110.0, array([0, 1, 2]))
        """
        if n_features is None:
            if feature_names is None:
                raise InvalidInputError("give n_features, the number of attributes, or feature_names")
            n_features = len(feature_names)
        if not (is_integer(n_features) and n_features >= 1):
            raise InvalidInputError(f"the number of attributes must be an integer >= 1, got {format_value(n_features)}")
        if panels is None and isinstance(costs, Mapping):
            if feature_names is None:
                raise InvalidInputError("costs by name need names of the attributes, or panels; give an array else")
            panels = feature_names
        labels, panel = _numbered(panels, int(n_features))
        price = _prices(costs, labels, panel)
        cost_model = cls(panel, price, _budget(n_observed, budget, int(n_features), priced=costs is not None))
        dearest = int(np.argmax(price))
        if not cost_model.within_budget(price[dearest]):
            raise InvalidInputError(
                f"{format_value(labels[dearest])} costs {price[dearest]:g}, more than the budget of "
                f"{cost_model.budget:g} for one example, so it can never be bought; raise the budget or leave it out"
            )
        return cost_model

    @property
    def n_features(self) -> int:
        """The number of attributes, d."""
        return int(self.panel.size)

    @cached_property
    def uniform(self) -> bool:
        """Whether every attribute is sold alone, and all have the same price."""
        return self.price.size == self.panel.size and bool(np.all(self.price == self.price[0]))

    @property
    def n_observed(self) -> int:
        """The number of attributes of one example that the budget buys, s'; CapabilityError unless `uniform`."""
        return self.count_for(self.budget)

    @property
    def allowance(self) -> float:
        """The budget for one example: `n_observed` if `uniform`, else in money."""
        return self.n_observed if self.uniform else self.budget

    def same_as(self, other: CostModel) -> bool:
        """Return whether panels, prices and budget are equal."""
        arrays = ((self.panel, other.panel), (self.price, other.price))
        return self.budget == other.budget and all(np.array_equal(mine, yours) for mine, yours in arrays)

    def count_for(self, money: float) -> int:
        """Return how many attributes of one example an amount of money buys, for equal prices (`uniform`).

        Raises
        ------
        CapabilityError
            If the prices differ or there are panels: the number then depends on which attributes are bought.
        """
        if not self.uniform:
            raise CapabilityError("prices differ, or attributes are sold in panels: it depends on which are bought")
        return min(self.n_features, int(money / float(self.price[0]) * (1 + ROUNDING)))

    def cost(self, indices: Any) -> float:
        """Return the cost of the attributes `indices` of one example; each of their panels is paid once."""
        with np.errstate(over="ignore"):  # infinity is more than any budget
            return float(np.sum(self.price[np.unique(self.panel[np.asarray(indices, dtype=np.intp)])]))

    def within_budget(self, cost: Any, budget: float | None = None) -> Any:
        """Return whether a cost, or each of several costs, is at most `budget`, by default that of the cost model."""
        return cost <= (self.budget if budget is None else budget) * (1 + ROUNDING)

    def purchase(self, indices: Any, owned: Array = _NOTHING) -> Purchase:
        """Return the purchase after which an example has the attributes `indices` and those `owned` before.

        Whole panels are bought.

        Raises
        ------
        BudgetError
            If the attributes owned afterwards cost more than the budget for one example.
        """
        all_owned = self.whole_panels(np.union1d(owned, indices))
        if not self.within_budget(cost := self.cost(all_owned)):
            what = f"{all_owned.size} attributes" if self.uniform else f"attributes for {cost:g}"
            raise BudgetError(
                f"{what} of one example were asked for, {owned.size} of them bought before; the budget is "
                f"{self.allowance:g}"
            )
        all_owned.setflags(write=False)
        return Purchase(np.setdiff1d(all_owned, owned, assume_unique=True), all_owned, cost - self.cost(owned))

    def whole_panels(self, indices: Any) -> Array:
        """Return all attributes of the panels that contain any of `indices`, in increasing order."""
        indices = np.asarray(indices, dtype=np.intp)
        if self.price.size == self.panel.size:
            return np.unique(indices)
        return np.flatnonzero(np.isin(self.panel, np.unique(self.panel[indices])))

    @cached_property
    def prediction_limit(self) -> float:
        """L, the largest cost of the attributes of a prediction that leaves enough of the budget to explore.

        A panel of price p can be part of a predictor of cost L, and can be observed together with the attributes of any
        predictor of cost L, only if p <= L and p <= budget - L. Hence p is at most half of the budget. L is the budget
        minus the highest price of a panel that costs at most half of the budget; 0 if there is no such panel; and the
        whole budget if this buys all attributes.
        """
        if self._affords_all:
            return self.budget
        usable = self.price[self.within_budget(self.price, self.budget / 2)]
        return self.budget - float(np.max(usable)) if usable.size else 0.0

    @cached_property
    def _affords_all(self) -> bool:
        """Whether the budget buys all attributes of an example."""
        return bool(self.within_budget(self.cost(np.arange(self.n_features))))

    def panel_limit(self, limit: float) -> float:
        """Return the highest price of a panel that a predictor of cost `limit` can have, and can be explored beside."""
        return limit if self._affords_all else min(limit, self.budget - limit)

    def partition(self, support: Array, dearest: float = inf) -> Array:
        """Return a partition of the attributes; the budget buys each part together with `support`.

        The returned int array of shape (d,) has the part of each attribute, numbered from 0. It is -1 for attributes
        of the panels of `support`, and of panels that cost more than `dearest`. Panels are assigned in order, and a new
        part begins when the next panel would exceed the budget: with equal prices there are ceil((d - s)/(s' - s))
        parts for a support of s attributes.
        """
        left_out = ~self.within_budget(self.price, dearest)
        left_out[self.panel[self.whole_panels(support)]] = True
        room = self.budget - self.cost(support)
        part_of = np.full(self.price.size, -1)
        part, left = -1, 0.0
        for panel in np.flatnonzero(~left_out):
            if part < 0 or self.price[panel] > left + self.budget * ROUNDING:
                part, left = part + 1, room
            part_of[panel] = part
            left -= float(self.price[panel])
        return part_of[self.panel]

    def choose(self, score: Array, count: int, limit: float) -> Array:
        """Return at most `count` attributes with large scores >= 0, whose panels cost at most `limit` together.

        With equal prices these are the attributes with the largest scores, lowest index first among equals: hard
        thresholding. Otherwise this is a greedy heuristic for a knapsack problem. It sorts the panels by the sum of
        their squared scores, and a second time by this sum divided by the price; takes panels in this order while they
        fit into `limit`; and keeps the largest scores of these panels. It returns the choice with the larger sum of
        squared scores.
        """
        if self.uniform:
            return top_k(score, min(count, self.count_for(limit)))
        energy = np.bincount(self.panel, weights=score**2, minlength=self.price.size)
        choices = []
        for merit in (energy, energy / self.price):
            inside = np.isin(self.panel, self._fill(merit, limit, count)) & (score > 0)
            choices.append(top_k(np.where(inside, score, 0.0), min(count, int(np.count_nonzero(inside)))))
        return max(choices, key=lambda chosen: float(np.sum(score[chosen] ** 2)))

    def extend(self, support: Array, score: Array) -> Array:
        """Return the attributes of the panels of `support`, and of panels with large scores within the budget."""
        owned = self.whole_panels(support)
        energy = np.bincount(self.panel, weights=score**2, minlength=self.price.size)
        energy[self.panel[owned]] = 0.0
        room = self.budget - self.cost(owned)
        choices = [self._fill(merit, room, self.n_features) for merit in (energy, energy / self.price)]
        bought = max(choices, key=lambda panels: float(np.sum(energy[panels])))
        return np.flatnonzero(np.isin(self.panel, np.union1d(self.panel[owned], bought)))

    def _fill(self, merit: Array, limit: float, count: int) -> Array:
        """Return panels in order of decreasing merit that fit into a limit, until they have `count` attributes."""
        bought: list[int] = []
        sizes = np.bincount(self.panel, minlength=self.price.size)
        for panel in np.argsort(-merit, kind="stable"):
            if count <= 0 or not merit[panel] > 0:
                break
            if self.price[panel] <= limit + self.budget * ROUNDING:
                bought.append(int(panel))
                limit -= float(self.price[panel])
                count -= int(sizes[panel])
        return np.array(bought, dtype=np.intp)


def _numbered(panels: Sequence[Any] | None, n_features: int) -> tuple[list[Any], Array]:
    """Return the labels of the panels in order of appearance, and for each attribute the number of its panel."""
    if panels is None:
        return [f"attribute {j}" for j in range(n_features)], np.arange(n_features)
    if isinstance(panels, str) or not isinstance(panels, Iterable):
        raise InvalidInputError(f"panels must be a list of labels, one for each attribute; got {format_value(panels)}")
    listed = list(panels)
    if len(listed) != n_features:
        raise InvalidInputError(f"panels has {len(listed)} labels; one for each of {n_features} attributes is needed")
    labels = list(dict.fromkeys(listed))
    number = {label: i for i, label in enumerate(labels)}
    return labels, np.array([number[label] for label in listed], dtype=np.intp)


def _prices(costs: Any, labels: list[Any], panel: Array) -> Array:
    """Return the price of each panel."""
    if isinstance(costs, Mapping):
        missing = [label for label in labels if label not in costs]
        if missing:
            raise InvalidInputError(f"costs has no price for {format_value(missing[0])}; give one for every panel")
        price = _numeric([costs[label] for label in labels])
    else:
        each = np.ones(panel.size) if costs is None else _numeric(costs)
        if each.shape != panel.shape:
            raise InvalidInputError(
                f"costs has shape {each.shape}; ({panel.size},) is needed, one price for each attribute"
            )
        price = np.bincount(panel, weights=each)
        if np.any(~(each > 0)):
            price[panel[np.flatnonzero(~(each > 0))]] = np.nan
    bad = np.flatnonzero(~(np.isfinite(price) & (price > 0)))
    if bad.size:
        raise InvalidInputError(f"prices must be finite and > 0; that of {format_value(labels[bad[0]])} is not")
    return price


def _numeric(prices: Any) -> Array:
    try:
        return np.asarray(prices, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(f"costs must be numbers, got {format_value(prices)}") from None


def _budget(n_observed: Any, budget: Any, n_features: int, *, priced: bool) -> float:
    """Return the budget for one example."""
    if priced:
        if n_observed is not None:
            raise InvalidInputError("with costs, give budget=, what may be spent on one example, instead of n_observed")
        return checked_number("with costs, budget", budget, above=0.0)
    if budget is not None:
        raise InvalidInputError("budget is in the unit of costs; without costs give n_observed, a number of attributes")
    if not (is_integer(n_observed) and 1 <= n_observed <= n_features):
        raise InvalidInputError(
            f"n_observed must be an integer in 1 .. {n_features}, the number of attributes; "
            f"got {format_value(n_observed)}"
        )
    return float(n_observed)
