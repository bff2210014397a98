"""The fields of the page's forms: what was typed into them, and what has to be said about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hardthresh.core.errors import InvalidInputError
from hardthresh.report.page import capitalized

from ..attributes import MISSING, NUMBER, Attribute
from ..errors import QuestionBack
from ..terms import Terms
from .bodies import with_decimal_point

Form = Mapping[str, list[str]]


@dataclass(frozen=True)
class Field:
    """A field for one attribute.

    Attributes
    ----------
    attribute : Attribute
        What is typed.
    id : str
        Its id on the page.
    typed : str
        What was typed, or the name of the level that was chosen.
    unit : str
        The unit that was chosen.
    missing : bool
        Whether it could not be measured.
    error : str
        What is wrong with it.
    doubt : str
        What has to be confirmed, if the value is outside of its range.
    confirmed : bool
        Whether it was.
    """

    attribute: Attribute
    id: str
    typed: str = ""
    unit: str = ""
    missing: bool = False
    error: str = ""
    doubt: str = ""
    confirmed: bool = False

    @property
    def levels(self) -> tuple[str, ...]:
        """What can be chosen; empty for numbers."""
        if self.attribute.levels:
            return self.attribute.levels
        return ("no", "yes") if self.attribute.kind == "yes/no" else ()

    @property
    def content(self) -> str:
        """What a confirmation is about: it does not hold for another value."""
        return f"{self.typed} {self.unit}".strip()

    @property
    def told(self) -> bool:
        """Whether there is anything to tell."""
        return self.missing or bool(self.typed)

    @property
    def value(self) -> str | None:
        """What is told to the study."""
        if self.missing:
            return None
        if self.levels:
            return self.typed
        number = with_decimal_point(self.typed)
        found = NUMBER.fullmatch(number)
        return f"{number} {self.unit}".rstrip() if found and not found[2] else number

    @property
    def keyboard(self) -> str:
        """The keyboard of a phone; that for decimals has no minus."""
        low = min((limits[0] for limits in (self.attribute.range, self.attribute.possible) if limits), default=-1.0)
        return "text" if low < 0 else "numeric" if self.attribute.kind == "integer" else "decimal"

    def check(self) -> Field:
        """Return the field, with what is wrong with it."""
        if self.missing and self.typed:
            return replace(self, error=f"Give a value or choose “{NOT_MEASURED}”, not both.")
        try:
            if self.told:
                self.attribute.parse(self.value)
        except InvalidInputError as error:
            return replace(self, error=f"{capitalized(str(error))}.")
        return self


NOT_MEASURED = "could not be measured"


def blank_fields(terms: Terms, names: Iterable[str]) -> tuple[Field, ...]:
    """Return empty fields for some attributes, or the target."""
    place = {attribute.name: number for number, attribute in enumerate((*terms.attributes, terms.target))}
    found = [terms.attribute(name) for name in names]
    return tuple(Field(attribute, f"field-{place[attribute.name]}", unit=attribute.unit) for attribute in found)


def filled_fields(fields: Iterable[Field], values: Mapping[str, float | None]) -> tuple[Field, ...]:
    """Return fields that show values."""
    return tuple(_filled(field, values[field.attribute.name]) for field in fields)


def _filled(field: Field, value: float | None) -> Field:
    if value is None:
        return replace(field, missing=True)
    return replace(field, typed=field.attribute.format(value).removesuffix(field.attribute.unit).strip())


def typed_fields(fields: Iterable[Field], form: Form) -> tuple[Field, ...]:
    """Return the fields with what a form says, checked."""
    return tuple(_typed(field, form).check() for field in fields)


def _typed(field: Field, form: Form) -> Field:
    def first(what: str) -> str:
        return form.get(f"{what}:{field.attribute.name}", [""])[0].strip()

    typed = replace(
        field, typed=first("value"), unit=first("unit") or field.attribute.unit, missing=bool(first("missing"))
    )
    if typed.typed.casefold() == MISSING:
        typed = replace(typed, typed="", missing=True)
    return replace(typed, confirmed=first("confirm") == typed.content != "")


def doubted(fields: Iterable[Field], back: QuestionBack) -> tuple[Field, ...]:
    """Return the fields with the questions that came back about them."""
    doubts = {name: (value, low, high, unit) for name, value, low, high, unit in back.doubts}
    return tuple(
        replace(field, doubt=_doubt(*doubts[field.attribute.name])) if field.attribute.name in doubts else field
        for field in fields
    )


def _doubt(value: float, low: float, high: float, unit: str) -> str:
    return f"{value:g} {unit}".rstrip() + f" is outside of the expected {low:g} to {high:g}."


def values_of(fields: Iterable[Field]) -> dict[str, Any]:
    """Return what the fields tell, by the names of the attributes."""
    return {field.attribute.name: field.value for field in fields if field.told}


def confirmed_of(fields: Iterable[Field]) -> tuple[str, ...]:
    """Return the attributes whose values were confirmed."""
    return tuple(field.attribute.name for field in fields if field.confirmed)
