"""The terms of a study: what can be measured, in which units and ranges, for which price, and what may be spent."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, get_args

from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.typing import Array
from hardthresh.limited import LimitedAttributeLogisticRegression, LimitedAttributeRegression
from hardthresh.limited.contract import Algorithm
from hardthresh.limited.cost_model import CostModel
from hardthresh.limited.learner import LARGEST

from .answers import MISSING, parsed

Kind: TypeAlias = Literal["number", "integer", "yes/no", "ordered", "category"]

LONGEST_NAME = 100
"""Characters of the name of an attribute, of a person, or a unit; arbitrary: it must fit on a line of a phone."""


@dataclass(frozen=True)
class Attribute:
    """Something that can be measured of an example, or the target.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "integer", "yes/no", "ordered", "category"}
        What its values are. "yes/no" is 0 or 1, "ordered" is 0, 1, 2, ... in the order of `levels`, and "category" has
        a column of 0 and 1 for each of `levels` but the first.
    unit : str
        The unit of the values; empty if there is none.
    units : mapping from str to float
        Other units that may be typed, and how many of `unit` one of them is.
    range : tuple of two floats, or None
        Values outside are asked back, and become data when they are confirmed.
    possible : tuple of two floats, or None
        Values outside are never data.
    levels : tuple of str
        Of kinds "ordered" and "category", and of a target with two classes.
    panel : str
        The panel that it is bought in; empty if it is bought alone.
    price : float
        What it costs if it is bought alone.
    help : str
        What the person who measures should know.
    """

    name: str
    kind: Kind = "number"
    unit: str = ""
    units: Mapping[str, float] = field(default_factory=dict)
    range: tuple[float, float] | None = None
    possible: tuple[float, float] | None = None
    levels: tuple[str, ...] = ()
    panel: str = ""
    price: float = 1.0
    help: str = ""

    def __hash__(self) -> int:
        return hash((self.name, self.kind, self.unit, self.levels, self.panel))

    def parse(self, typed: Any) -> float | None:
        """Return a typed value as a number in `unit`, or the number of its level; None if it could not be measured.

        Parameters
        ----------
        typed : float, str or None
            A number; a text such as "1.2", "1.2 mg/dl", "yes" or a level; None or "missing".

        Raises
        ------
        InvalidInputError
            For anything else, for another unit, or a value that is not `possible`.
        """
        return parsed(self, typed)

    def format(self, value: float | None) -> str:
        """Return a value as people read it, with its unit."""
        if value is None:
            return MISSING
        if self.levels:
            return self.levels[int(value)]
        if self.kind == "yes/no":
            return "yes" if value else "no"
        return f"{value:.12g} {self.unit}".rstrip()

    def outside(self, value: float | None) -> bool:
        """Return whether a value has to be confirmed, as it is outside of the range."""
        return value is not None and self.range is not None and not self.range[0] <= value <= self.range[1]

    @property
    def columns(self) -> list[str]:
        """The names of its columns in the model."""
        return [f"{self.name}={level}" for level in self.levels[1:]] if self.kind == "category" else [self.name]

    def encode(self, value: float) -> list[float]:
        """Return a value in its columns."""
        if self.kind == "category":
            return [float(value == level) for level in range(1, len(self.levels))]
        return [value]


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
            return cls.parse(Path(path).read_text(encoding="utf-8"))
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
        _check_keys("the terms", table, [*_SETTINGS, "target", "panels", "attributes"])
        for name in ("n_nonzero_coefs", "budget_per_example", "target", "attributes"):
            if name not in table:
                raise InvalidInputError(f"the terms need {name}")
        panels = {name: _panel(name, entry) for name, entry in _tables("panels", table.get("panels", {}))}
        attributes = tuple(_attribute(name, entry) for name, entry in _tables("attributes", table["attributes"]))
        terms = cls(
            attributes=attributes,
            target=_target(table["target"]),
            panels=panels,
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
        if len(set(self.columns)) < len(self.columns):
            raise InvalidInputError("two columns have the same name: rename an attribute or a level")
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


def suggestion(name: Any, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: a similar one that is known, if there is one."""
    close = get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _check_keys(where: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    known = list(known)
    for name in table:
        if name not in known:
            raise InvalidInputError(f"{where} cannot have {name!r}{suggestion(name, known)}")


def _tables(what: str, value: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return named tables of the TOML file."""
    if not (isinstance(value, dict) and all(isinstance(entry, dict) for entry in value.values())):
        raise InvalidInputError(f"{what} must be tables, such as [{what}.age]")
    return list(value.items())


def _text(name: str, value: Any) -> str:
    if not (isinstance(value, str) and value.isprintable() and len(value) <= 1000):
        raise InvalidInputError(
            f"{name} must be a printable text of at most 1000 characters, got {format_value(value)}"
        )
    return value


def checked_name(what: str, value: Any) -> str:
    """Return the name of an attribute, level, unit, panel or person."""
    name = value.strip() if isinstance(value, str) else value
    if not (isinstance(name, str) and name and name.isprintable() and len(name) <= LONGEST_NAME):
        raise InvalidInputError(f"{what} must have 1 to {LONGEST_NAME} printable characters, got {format_value(value)}")
    return name


def _limits(name: str, value: Any) -> tuple[float, float]:
    if not (isinstance(value, list) and len(value) == 2):
        raise InvalidInputError(f"{name} must be a list of two numbers, got {format_value(value)}")
    low, high = (checked_number(name, end, least=-LARGEST, most=LARGEST) for end in value)
    if not low < high:
        raise InvalidInputError(f"{name} must increase, got {format_value(value)}")
    return low, high


def _levels(name: str, value: Any) -> tuple[str, ...]:
    if not (isinstance(value, list) and len(value) >= 2):
        raise InvalidInputError(f"{name} must be a list of at least two texts, got {format_value(value)}")
    levels = tuple(checked_name(f"a level of {name}", level) for level in value)
    if len({level.casefold() for level in levels}) < len(levels) or MISSING in levels:
        raise InvalidInputError(f"{name} must differ from each other and from {MISSING!r}, got {format_value(value)}")
    return levels


def _panel(name: str, entry: Mapping[str, Any]) -> float:
    checked_name("the name of a panel", name)
    _check_keys(f"panel {name!r}", entry, ["price"])
    return checked_number(f"the price of panel {name!r}", entry.get("price"), above=0.0)


def _attribute(name: str, entry: Mapping[str, Any]) -> Attribute:
    """Return an attribute from its table in the TOML file."""
    checked_name("the name of an attribute", name)
    if "=" in name or name != name.strip():
        raise InvalidInputError(f"the name of an attribute has no '=' and no blanks at its ends, got {name!r}")
    where = f"attribute {name!r}"
    _check_keys(where, entry, ["kind", "unit", "units", "range", "possible", "levels", "panel", "price", "help"])
    kind = entry.get("kind", "number")
    if kind not in get_args(Kind):
        kinds = ", ".join(get_args(Kind))
        raise InvalidInputError(f"the kind of {where} must be one of {kinds}; got {format_value(kind)}")
    if (kind in ("ordered", "category")) != ("levels" in entry):
        raise InvalidInputError(f"{where} must have levels if it is ordered or a category, and only then")
    if kind not in ("number", "integer"):
        _check_keys(f"{where}, which is not a number,", entry, ["kind", "levels", "panel", "price", "help"])
    if "panel" in entry and "price" in entry:
        raise InvalidInputError(f"{where} is bought in a panel, which has the price: leave its own price out")
    units = entry.get("units", {})
    if not isinstance(units, dict):
        raise InvalidInputError(f"the units of {where} must be a table, such as {{ 'mg/dl' = 88.42 }}")
    if units and not entry.get("unit"):
        raise InvalidInputError(f"{where} has other units: give its own unit too")
    limits = {name: _limits(f"the {name} of {where}", entry[name]) for name in ("range", "possible") if name in entry}
    if len(limits) == 2:
        (low, high), (least, most) = limits["range"], limits["possible"]
        if low < least or high > most:
            raise InvalidInputError(f"the range of {where} must lie within what is possible")
    return Attribute(
        name=name,
        kind=kind,
        unit=_unit(where, entry.get("unit", "")),
        units={
            _unit(where, unit): checked_number(f"unit {unit!r} of {where}", factor, above=0.0)
            for unit, factor in units.items()
        },
        levels=_levels(f"the levels of {where}", entry["levels"]) if "levels" in entry else (),
        panel=checked_name(f"the panel of {where}", entry["panel"]) if "panel" in entry else "",
        price=checked_number(f"the price of {where}", entry.get("price", 1.0), above=0.0),
        help=_text(f"the help of {where}", entry.get("help", "")),
        **limits,
    )


def _unit(where: str, unit: Any) -> str:
    if not unit and isinstance(unit, str):
        return unit
    name = checked_name(f"a unit of {where}", unit)
    if name[0] in "0123456789+-.":
        raise InvalidInputError(f"a unit of {where} must not begin like a number, got {name!r}")
    return name


def _target(entry: Any) -> Attribute:
    """Return the target from its table in the TOML file."""
    if not isinstance(entry, dict):
        raise InvalidInputError("target must be a table: [target], with a name")
    _check_keys("the target", entry, ["name", "kind", "unit", "units", "range", "possible", "levels", "help"])
    if "name" not in entry:
        raise InvalidInputError("the target needs a name")
    name = checked_name("the name of the target", entry["name"])
    rest = {key: value for key, value in entry.items() if key not in ("name", "kind", "levels")}
    kind = entry.get("kind", "number")
    if kind not in ("number", "class"):
        raise InvalidInputError(f"the kind of the target must be number or class, got {format_value(kind)}")
    if kind == "number":
        if "levels" in entry:
            raise InvalidInputError("the target has levels: its kind must be class")
        return _attribute(name, rest)
    levels = _levels("the levels of the target", entry.get("levels", ["no", "yes"]))
    if len(levels) != 2:
        raise InvalidInputError(f"the target must have two levels, got {format_value(list(levels))}")
    _check_keys("the target, which is a class,", rest, ["help"])
    return Attribute(name, "yes/no", levels=levels, help=_text("the help of the target", rest.get("help", "")))


_SETTINGS: dict[str, Any] = {
    "n_nonzero_coefs": lambda name, value: checked_integer(name, value, least=1),
    "budget_per_example": lambda name, value: checked_number(name, value, above=0.0),
    "total_budget": lambda name, value: checked_number(name, value, above=0.0),
    "examples": lambda name, value: checked_integer(name, value, least=1),
    "prediction_budget": lambda name, value: checked_number(name, value, above=0.0),
    "title": _text,
    "currency": _text,
    "hold_hours": lambda name, value: checked_number(name, value, above=0.0),
}
