"""A question: what is to be measured of one example, and what was told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self

from .attributes import Attribute
from .log import Event
from .terms import Terms


@dataclass(frozen=True)
class Question:
    """What is to be measured of one example, and what was told of it so far.

    Attributes
    ----------
    number : int
        The number of the question, which is that of the example, from 0.
    attributes : tuple of Attribute
        What is to be measured.
    target : Attribute
        What is to be predicted.
    price : float
        What that costs.
    holder : str or None
        Who has it; None if it was given back, or is closed.
    since : str
        Since when, in UTC and ISO 8601.
    subject : str or None
        What people call the example.
    values : mapping from str to float or None
        What was told so far, as it was corrected, in the units of the terms; None for what could not be measured.
    bought : frozenset of str
        The names of attributes that have been paid: those that were ever told as measured, also in a correction, and
        those that had to be paid when the question was skipped.
    skipped, withdrawn : bool
        Whether it was closed without an answer, or its example was taken out of what is learned from.
    """

    number: int
    attributes: tuple[Attribute, ...]
    target: Attribute
    price: float
    holder: str | None
    since: str
    subject: str | None = None
    values: Mapping[str, float | None] = field(default_factory=lambda: MappingProxyType({}))
    bought: frozenset[str] = frozenset()
    skipped: bool = False
    withdrawn: bool = False

    @classmethod
    def first_asked(cls, terms: Terms, event: Event) -> Self:
        """Return a question that nobody had before the event that asks it."""
        assert event.question is not None
        columns = event.body["columns"]
        return cls(
            number=event.question,
            attributes=terms.attributes_at(columns),
            target=terms.target,
            price=terms.cost_model.cost(columns),
            holder=event.who,
            since=event.at,
        )

    @property
    def needed(self) -> tuple[str, ...]:
        """The names of what is still to be told, the target last."""
        if self.skipped or self.withdrawn:
            return ()
        names = [attribute.name for attribute in (*self.attributes, self.target)]
        return tuple(name for name in names if name not in self.values)

    @property
    def panels(self) -> tuple[tuple[str, tuple[Attribute, ...]], ...]:
        """The attributes by panel, with the name of the panel; those that are bought alone have the empty name."""
        grouped: dict[str, list[Attribute]] = {}
        for attribute in self.attributes:
            grouped.setdefault(attribute.panel, []).append(attribute)
        return tuple((panel, tuple(members)) for panel, members in grouped.items())

    @property
    def lacking(self) -> list[str]:
        """The names of what could not be measured."""
        return [name for name, value in self.values.items() if value is None]

    def after(self, event: Event) -> Self:
        """Return the question after the next event about it."""
        match event.action:
            case "asked":
                return replace(self, holder=event.who, since=event.at)
            case "told" | "corrected":
                values = {**self.values, **event.body["values"]}
                measured = {name for name, value in event.body["values"].items() if value is not None}
                changed = replace(
                    self,
                    subject=event.subject or self.subject,
                    values=MappingProxyType(values),
                    bought=self.bought | (measured - {self.target.name}),
                )
                if event.action == "corrected":
                    return changed
                return replace(changed, since=event.at, holder=self.holder if changed.needed else None)
            case "given back":
                return replace(self, holder=None, since=event.at)
            case "skipped":
                return replace(self, holder=None, skipped=True, bought=self.bought | {*event.body["bought"]})
            case "withdrawn":
                return replace(self, withdrawn=True)
        return self

    def _said(self, name: str, value: float | None) -> float | str | None:
        """Return a value as it may be told: a number, or the name of a level."""
        [attribute] = [one for one in (*self.attributes, self.target) if one.name == name]
        is_number = attribute.kind in ("number", "integer")
        return value if value is None or is_number else attribute.format(value)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, for JSON: attributes, panels and levels by their names."""
        return {
            "question": self.number,
            "attributes": [attribute.name for attribute in self.attributes],
            "panels": [
                {"panel": panel, "attributes": [attribute.name for attribute in attributes]}
                for panel, attributes in self.panels
            ],
            "price": self.price,
            "holder": self.holder,
            "since": self.since,
            "subject": self.subject,
            "values": {name: self._said(name, value) for name, value in self.values.items()},
            "needed": list(self.needed),
        }

    def described(self) -> dict[str, Any]:
        """Return `to_dict` with "details": what the terms say of each attribute and of the target, by name."""
        return self.to_dict() | {
            "details": {attribute.name: attribute.to_dict() for attribute in (*self.attributes, self.target)}
        }
