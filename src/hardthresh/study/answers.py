"""What people type, as numbers: units, levels, and the values that could not be measured."""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, Any

from hardthresh.core.errors import HardThreshError, InvalidInputError, format_value
from hardthresh.core.typing import is_real
from hardthresh.limited.learner import LARGEST

if TYPE_CHECKING:
    from .attributes import Attribute

MISSING = "missing"
"""What is typed for a value that could not be measured."""

_NUMBER = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?)\s*(.*)", re.ASCII)
_YES_NO = {"yes": 1.0, "no": 0.0, "y": 1.0, "n": 0.0, "true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}


class QuestionBack(InvalidInputError):
    """Values are outside of their ranges; they become data when they are confirmed.

    Attributes
    ----------
    doubts : tuple of (str, float, float, float, str)
        For each the name of the attribute, the value, the range, and the unit.
    """

    def __init__(self, doubts: tuple[tuple[str, float, float, float, str], ...]) -> None:
        self.doubts = doubts
        listed = "; ".join(
            f"{name} is {value:g}{f' {unit}' if unit else ''}, outside of {low:g} to {high:g}"
            for name, value, low, high, unit in doubts
        )
        super().__init__(f"{listed}: look again; confirm the value if it is right, correct it, or report it missing")


class LateAnswer(HardThreshError):
    """A question is not with this person any more, or was answered, skipped or given back."""


class NothingToAsk(HardThreshError):
    """There is no question for this person now; the message says why."""


class BudgetUsed(NothingToAsk):
    """The budget of the study does not cover another question."""


class StudyClosed(HardThreshError):
    """The study is closed."""


class RepeatedKey(HardThreshError):
    """A request has the key of an earlier one, but other content."""


def parsed(attribute: Attribute, typed: Any) -> float | None:
    """Return a typed value as a number; None if it could not be measured: see `Attribute.parse`."""
    if typed is None or (isinstance(typed, str) and typed.strip().casefold() == MISSING):
        return None
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
        wanted = typed.strip().casefold()
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
        found = _NUMBER.fullmatch(typed.strip())
        if found is None or found[2].startswith(","):
            hint = "" if found is None else "; write a point, not a comma"
            raise InvalidInputError(f"{attribute.name} must be a number, or {MISSING}; got {format_value(typed)}{hint}")
        value, unit = float(found[1]), found[2].strip()
    elif is_real(typed):
        try:
            value = float(typed)
        except OverflowError:
            value = float("inf")
    else:
        raise InvalidInputError(f"{attribute.name} must be a number, or {MISSING}; got {format_value(typed)}")
    if unit and unit != attribute.unit:
        if unit not in attribute.units:
            known = ", ".join(filter(None, [attribute.unit, *attribute.units])) or "no unit"
            raise InvalidInputError(f"{attribute.name} is in {known}, got {format_value(typed)}")
        value *= attribute.units[unit]
    if not (isfinite(value) and abs(value) <= LARGEST):
        raise InvalidInputError(
            f"{attribute.name} must be a finite number of at most {LARGEST:g} in size, got {format_value(typed)}"
        )
    return value
