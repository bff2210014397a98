"""The terms of a study: what can be measured, in which units and ranges, for which price, and what may be spent."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.typing import Array
from hardthresh.limited import LimitedAttributeLogisticRegression, LimitedAttributeRegression
from hardthresh.limited.contract import Algorithm
from hardthresh.limited.cost_model import CostModel

from .attributes import Attribute
from .reading import (
    LONGEST_HOLD,
    check_distinct,
    check_keys,
    named_tables,
    read_attribute,
    read_panel,
    read_target,
    suggestion,
    text_of,
)

EXPORTED = (
    *("question", "state", "holder", "asked_at", "answered_at", "subject"),
    *("cost", "prediction", "missing", "corrected", "reason"),
)
"""The columns that an export of answers has besides those of the attributes and the target."""


def sum_of_money(total: float) -> float:
    """Return a sum without its rounding error: with the ten digits that `Terms.money` shows."""
    return float(f"{total:.10g}")


@dataclass(frozen=True)
class Terms:
    """The terms of a study, which are fixed when it begins. Make them with `Terms.read` or `Terms.parse`.

    Attributes
    ----------
    attributes : tuple of Attribute
        What can be measured.
    target : Attribute
        What is to be predicted: a number, or of kind "yes/no" one of two classes.
    n_nonzero_coefs : int
        s, the number of columns that a prediction may need.
    budget_per_example : float
        What may be spent on one example.
    panels : mapping from str to float
        The price of each panel.
    total_budget : float or None
        What may be spent on all examples.
    examples : int or None
        How many examples there will be at most, also those that are skipped.
    prediction_budget : float or None
        What the attributes of a prediction may cost.
    title, currency : str
        For people.
    hold_hours : float or None
        A question that was held longer may go to another person.
    text : str
        The TOML that they were read from.

    Examples
    --------
    >>> from hardthresh.study import Terms
    >>> terms = Terms.parse('''
    ... n_nonzero_coefs = 1
    ... budget_per_example = 4.0
    ... [target]
    ... name = "stay"
    ... unit = "days"
    ... [panels.blood]
    ... price = 3.0
    ... [attributes.age]
    ... range = [0, 110]
    ... [attributes.creatinine]
    ... unit = "umol/l"
    ... units = { "mg/dl" = 88.42 }
    ... panel = "blood"
    ... ''')
    >>> terms.attribute("creatinine").parse("1.5 mg/dl")
    132.63
    >>> terms.cost_model.price, terms.columns
    (array([1., 3.]), ['age', 'creatinine'])
    """

    attributes: tuple[Attribute, ...]
    target: Attribute
    n_nonzero_coefs: int
    budget_per_example: float
    panels: Mapping[str, float] = field(default_factory=dict)
    total_budget: float | None = None
    examples: int | None = None
    prediction_budget: float | None = None
    title: str = ""
    currency: str = ""
    hold_hours: float | None = None
    text: str = field(default="", repr=False)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Return the terms in a TOML file.

        Raises
        ------
        InvalidInputError
            If they make no sense; the message names the entry.
        OSError
            If the file cannot be read.
        """
        try:
            return cls.parse(Path(path).read_text(encoding="utf-8-sig"))
        except UnicodeDecodeError as error:
            raise InvalidInputError(f"{path} is not a text in UTF-8: {error}") from error
        except InvalidInputError as error:
            raise InvalidInputError(f"{path}: {error}") from error

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the terms in a TOML text.

        Raises
        ------
        InvalidInputError
            As in `read`.
        """
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidInputError(f"not TOML: {error}") from error
        check_keys("the terms", table, [*_SETTINGS, "target", "panels", "attributes"])
        for name in ("n_nonzero_coefs", "budget_per_example", "target", "attributes"):
            if name not in table:
                raise InvalidInputError(f"the terms need {name}")
        panels = [read_panel(name, entry) for name, entry in named_tables("panels", table.get("panels", {}))]
        check_distinct("a panel", [name for name, _ in panels])
        attributes = tuple(
            read_attribute(name, entry) for name, entry in named_tables("attributes", table["attributes"])
        )
        terms = cls(
            attributes=attributes,
            target=read_target(table["target"]),
            panels=dict(panels),
            text=text,
            **{name: read(name, table[name]) for name, read in _SETTINGS.items() if name in table},
        )
        terms._check()
        return terms

    def _check(self) -> None:
        """Raise InvalidInputError where entries do not fit together."""
        if not self.attributes:
            raise InvalidInputError("attributes is empty: name at least one thing that can be measured")
        alone = {attribute.name for attribute in self.attributes if not attribute.panel}
        for name in alone & self.panels.keys():
            raise InvalidInputError(f"{name!r} is both a panel and an attribute that is bought alone: rename one")
        for attribute in self.attributes:
            if attribute.name == self.target.name:
                raise InvalidInputError(f"{attribute.name!r} is both an attribute and the target")
            if attribute.panel and attribute.panel not in self.panels:
                raise InvalidInputError(
                    f"attribute {attribute.name!r} is in panel {attribute.panel!r}, which has no price"
                    f"{suggestion(attribute.panel, self.panels)}"
                )
        for name in self.panels.keys() - {attribute.panel for attribute in self.attributes}:
            raise InvalidInputError(f"panel {name!r} has no attributes")
        names = [attribute.name for attribute in self.attributes]
        names += [column for column in self.columns if column not in names]  # the levels of categories
        check_distinct("an attribute, a level or the target", [*names, self.target.name])
        for name in {*names, self.target.name} & {*EXPORTED}:
            raise InvalidInputError(f"{name!r} is the name of a column of the export: choose another one")
        self.estimator.start(len(self.columns), self.columns)  # checks s, the prices and the budgets
        if self.total_budget is not None and self.total_budget < self.budget_per_example:
            raise InvalidInputError(
                f"total_budget is {self.total_budget:g}, less than budget_per_example, {self.budget_per_example:g}"
            )

    @property
    def is_class(self) -> bool:
        """Whether the target is one of two classes."""
        return self.target.kind == "yes/no"

    @cached_property
    def columns(self) -> list[str]:
        """The names of the columns of the model, in order."""
        return [column for attribute in self.attributes for column in attribute.columns]

    @cached_property
    def attribute_of(self) -> list[int]:
        """The number of the attribute of each column."""
        return [number for number, attribute in enumerate(self.attributes) for _ in attribute.columns]

    @property
    def estimator(self) -> Any:
        """An estimator with these settings, not fitted."""
        kind = LimitedAttributeLogisticRegression if self.is_class else LimitedAttributeRegression
        owners = [self.attributes[number] for number in self.attribute_of]
        labels = [owner.panel or owner.name for owner in owners]
        alone = {attribute.name: attribute.price for attribute in self.attributes if not attribute.panel}
        return kind(
            self.n_nonzero_coefs,
            costs={**self.panels, **alone},
            panels=labels,
            budget=self.budget_per_example,
            prediction_budget=self.prediction_budget,
        )

    @cached_property
    def cost_model(self) -> CostModel:
        """The columns, their panels and prices, and the budget for one example."""
        cost_model: CostModel = self.estimator._cost_model(len(self.columns), self.columns)
        return cost_model

    @property
    def algorithm(self) -> Algorithm[Any]:
        """What chooses the questions."""
        algorithm: Algorithm[Any] = self.estimator._algorithm(len(self.columns))
        return algorithm

    def attribute(self, name: str) -> Attribute:
        """Return the attribute, or the target, with a name.

        Raises
        ------
        InvalidInputError
            If there is none; the message names a similar one.
        """
        if name == self.target.name:
            return self.target
        try:
            return self._by_name[name]
        except (KeyError, TypeError):
            raise InvalidInputError(
                f"there is no attribute {format_value(name)}{suggestion(name, [*self._by_name, self.target.name])}"
            ) from None

    @cached_property
    def _by_name(self) -> dict[str, Attribute]:
        return {attribute.name: attribute for attribute in self.attributes}

    def attributes_at(self, indices: Array) -> tuple[Attribute, ...]:
        """Return the attributes of some columns, in order."""
        return tuple(self.attributes[number] for number in dict.fromkeys(self.attribute_of[j] for j in indices))

    def columns_at(self, names: Iterable[str]) -> list[int]:
        """Return the increasing indices of the columns of some attributes."""
        wanted = set(names)
        return [j for j, number in enumerate(self.attribute_of) if self.attributes[number].name in wanted]

    def money(self, amount: float) -> str:
        """Return a sum of money as people read it."""
        return f"{amount:,.10g} {self.currency}".rstrip()


_SETTINGS: dict[str, Any] = {
    "n_nonzero_coefs": lambda name, value: checked_integer(name, value, least=1),
    "budget_per_example": lambda name, value: checked_number(name, value, above=0.0),
    "total_budget": lambda name, value: checked_number(name, value, above=0.0),
    "examples": lambda name, value: checked_integer(name, value, least=1),
    "prediction_budget": lambda name, value: checked_number(name, value, above=0.0),
    "title": text_of,
    "currency": text_of,
    "hold_hours": lambda name, value: checked_number(name, value, above=0.0, most=LONGEST_HOLD),
}
