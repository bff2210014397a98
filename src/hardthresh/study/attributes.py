"""Attributes: what can be measured, and what people type as numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, TypeAlias
from unicodedata import normalize

from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.typing import is_real
from hardthresh.limited.learner import LARGEST

from .typed_numbers import advice_on

MISSING = "missing"
"""What is typed for a value that could not be measured."""
LONGEST_VALUE = 200
"""Characters of a typed value: a number, a unit and blanks, or a level; arbitrary above the 100 of a name."""

NUMBER = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?)\s*(.*)", re.ASCII)
"""A typed number, and its unit."""
_YES_NO = {"yes": 1.0, "no": 0.0, "y": 1.0, "n": 0.0, "true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}
Kind: TypeAlias = Literal["number", "integer", "yes/no", "ordered", "category"]


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
        return _parsed(self, typed)

    def format(self, value: float | None) -> str:
        """Return a value as people read it, with its unit."""
        if value is None:
            return MISSING
        if self.levels:
            return self.levels[int(value)]
        if self.kind == "yes/no":
            return "yes" if value else "no"
        return f"{value:.12g} {self.unit}".rstrip()

    @property
    def squared_unit(self) -> str:
        """The unit of its squares, such as "kg²" or "(t/ha)²"."""
        return f"{self.unit}²" if self.unit.isalpha() or not self.unit else f"({self.unit})²"

    def to_dict(self) -> dict[str, Any]:
        """Return what somebody who measures it has to know, in plain types, for JSON."""
        return {
            "kind": self.kind,
            "unit": self.unit,
            "units": dict(self.units),
            "range": self.range and list(self.range),
            "possible": self.possible and list(self.possible),
            "levels": list(self.levels),
            "help": self.help,
        }

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


def _parsed(attribute: Attribute, typed: Any) -> float | None:
    """Return a typed value as a number; None if it could not be measured: see `Attribute.parse`."""
    if typed is None or (isinstance(typed, str) and typed.strip().casefold() == MISSING):
        return None
    if isinstance(typed, str) and not (len(typed) <= LONGEST_VALUE and typed.strip().isprintable()):
        raise InvalidInputError(
            f"{attribute.name} must be at most {LONGEST_VALUE} printable characters, got {format_value(typed)}"
        )
    if attribute.levels:
        return _level(attribute, typed)
    if attribute.kind == "yes/no":
        return _yes_no(attribute, typed)
    value = _number(attribute, typed)
    if attribute.kind == "integer" and value != round(value):
        raise InvalidInputError(f"{attribute.name} must be a whole number, got {format_value(typed)}")
    if attribute.possible is not None and not attribute.possible[0] <= value <= attribute.possible[1]:
        low, high = attribute.possible
        raise InvalidInputError(
            f"{attribute.name} is {value:g}{f' {attribute.unit}' if attribute.unit else ''}, which is not possible: it "
            f"must be from {low:g} to {high:g}; measure it again, or report it {MISSING}"
        )
    return value


def _level(attribute: Attribute, typed: Any) -> float:
    """Return the number of a level, which is given by its name."""
    if isinstance(typed, str):
        wanted = normalize("NFC", typed.strip()).casefold()
        for number, level in enumerate(attribute.levels):
            if level.casefold() == wanted:
                return float(number)
    known = ", ".join(attribute.levels)
    raise InvalidInputError(f"{attribute.name} must be one of {known}, or {MISSING}; got {format_value(typed)}")


def _yes_no(attribute: Attribute, typed: Any) -> float:
    if isinstance(typed, bool) or (is_real(typed) and typed in (0, 1)):
        return float(typed)
    value = _YES_NO.get(typed.strip().casefold()) if isinstance(typed, str) else None
    if value is None:
        raise InvalidInputError(f"{attribute.name} must be yes or no, or {MISSING}; got {format_value(typed)}")
    return value


def _number(attribute: Attribute, typed: Any) -> float:
    """Return a number in the unit of the attribute; a text may have another unit that is known."""
    unit = ""
    if isinstance(typed, str):
        found = NUMBER.fullmatch(typed.strip())
        unit = "" if found is None else found[2].strip()
        advice = "" if found and unit in ("", attribute.unit, *attribute.units) else advice_on(typed.strip())
        if found is None or advice:
            raise InvalidInputError(
                f"{attribute.name} must be a number, or {MISSING}; got {format_value(typed)}{advice}"
            )
        value = float(found[1])
    elif is_real(typed):
        try:
            value = float(typed)
        except OverflowError:
            value = float("inf")
    else:
        raise InvalidInputError(f"{attribute.name} must be a number, or {MISSING}; got {format_value(typed)}")
    if unit and unit != attribute.unit:
        if unit not in attribute.units:
            if not attribute.unit:
                raise InvalidInputError(
                    f"{attribute.name} has no unit, got {format_value(typed)}; write the number alone"
                )
            known = ", ".join([attribute.unit, *attribute.units])
            raise InvalidInputError(f"{attribute.name} is in {known}, got {format_value(typed)}")
        value *= attribute.units[unit]
    if not (isfinite(value) and abs(value) <= LARGEST):
        raise InvalidInputError(
            f"{attribute.name} must be a finite number of at most {LARGEST:g} in size, got {format_value(typed)}"
        )
    return value
