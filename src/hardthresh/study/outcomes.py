"""What became of each question of a study, from its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .attributes import Attribute
from .log import Event
from .terms import Terms


@dataclass
class Record:
    """One question, from the first time it was asked to its end.

    Attributes
    ----------
    number : int
        The number of the question.
    attributes : tuple of Attribute
        What was to be measured.
    asked_at : str
        When it was asked first, in UTC and ISO 8601.
    holder : str or None
        Who has it, or had it last.
    subject : str or None
        What people call the example.
    values : dict
        The values as they stand, in the units of the terms; None for what could not be measured.
    answered_at : str or None
        When the last value was told, if all were.
    told : dict from str to int
        How many values each person told.
    bought : tuple of str
        What a person who skipped it said was paid all the same.
    corrected : set of str
        The names of values that were corrected.
    skipped, withdrawn : bool
        What else became of it.
    reason : str
        The last that was given.
    """

    number: int
    attributes: tuple[Attribute, ...]
    asked_at: str
    holder: str | None
    subject: str | None = None
    values: dict[str, float | None] = field(default_factory=dict)
    answered_at: str | None = None
    told: dict[str, int] = field(default_factory=dict)
    bought: tuple[str, ...] = ()
    corrected: set[str] = field(default_factory=set)
    skipped: bool = False
    withdrawn: bool = False
    reason: str = ""

    @property
    def lacking(self) -> list[str]:
        """The names of what could not be measured."""
        return [name for name, value in self.values.items() if value is None]

    def state(self, learned: Iterable[int]) -> str:
        """Return what became of it in a word or two, given the questions that were learned from."""
        if self.withdrawn or self.skipped:
            return "withdrawn" if self.withdrawn else "skipped"
        if self.answered_at is None:
            return "open"
        if self.lacking:
            return "dropped"
        return "learned" if self.number in learned else "waiting"

    def cost(self, terms: Terms) -> float:
        """Return what was paid for it, or for what was measured of it so far."""
        measured = {name for name, value in self.values.items() if value is not None}
        return terms.cost_model.cost(terms.columns_at([*measured, *self.bought]))


def records_of(events: Iterable[Event], terms: Terms) -> list[Record]:
    """Return what became of each question, in the order of their numbers."""
    found: dict[int, Record] = {}
    for event in events:
        if event.question is not None:
            if event.question not in found:
                attributes = terms.attributes_at(event.body["columns"])
                found[event.question] = Record(event.question, attributes, event.at, event.who)
            _take_in(found[event.question], event, terms)
    return [found[number] for number in sorted(found)]


def _take_in(record: Record, event: Event, terms: Terms) -> None:
    """Change a record by the next event about it."""
    record.subject = event.subject or record.subject
    record.reason = event.body.get("reason") or record.reason
    match event.action:
        case "asked" | "asked again":
            record.holder = event.who
        case "given back":
            record.holder = None
        case "told":
            record.values.update(event.body["values"])
            record.told[event.who] = record.told.get(event.who, 0) + len(event.body["values"])
            if len(record.values) == len(record.attributes) + 1:  # with the target
                record.answered_at = event.at
        case "corrected":
            record.values.update(event.body["values"])
            record.corrected.update(event.body["values"])
        case "skipped":
            record.skipped, record.bought = True, tuple(event.body["bought"])
        case "withdrawn":
            record.withdrawn = True
