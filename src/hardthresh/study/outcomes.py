"""What became of each question of a study, from its events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from .attributes import Attribute
from .log import Event
from .terms import Terms


@dataclass(frozen=True)
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
    who, at : str
        Who did the last of it, and when.
    holder : str or None
        Who has it, or had it last.
    subject : str or None
        What people call the example.
    values : mapping from str to float or None
        The values as they stand, in the units of the terms; None for what could not be measured.
    answered_at : str or None
        When the last value was told, if all were.
    told : mapping from str to int
        How many values each person told.
    bought : frozenset of str
        The names of what was measured, or had to be paid when it was skipped.
    corrected : frozenset of str
        The names of values that were corrected.
    corrections : int
        How often it was corrected.
    dropped, skipped, withdrawn : bool
        What else became of it: something could not be measured, so it was not learned from; it was skipped, withdrawn.
    reason : str
        The last that was given.
    event : int
        The number of the last event about it.
    """

    number: int
    attributes: tuple[Attribute, ...]
    asked_at: str
    who: str
    at: str
    holder: str | None
    subject: str | None = None
    values: Mapping[str, float | None] = field(default_factory=dict)
    answered_at: str | None = None
    told: Mapping[str, int] = field(default_factory=dict)
    bought: frozenset[str] = frozenset()
    corrected: frozenset[str] = frozenset()
    corrections: int = 0
    dropped: bool = False
    skipped: bool = False
    withdrawn: bool = False
    reason: str = ""
    event: int = 0

    @property
    def lacking(self) -> list[str]:
        """The names of what could not be measured."""
        return [name for name, value in self.values.items() if value is None]

    @property
    def state(self) -> str:
        """What became of the question: "open", "answered", "skipped" or "withdrawn"."""
        if self.withdrawn or self.skipped:
            return "withdrawn" if self.withdrawn else "skipped"
        return "open" if self.answered_at is None else "answered"

    def outcome(self, learned: Collection[int]) -> str:
        """Return what became of the example, given the questions that were learned from."""
        if self.state != "answered":
            return self.state
        if self.dropped or self.lacking:
            return "dropped"
        return "learned" if self.number in learned else "waiting"

    def cost(self, terms: Terms) -> float:
        """Return what was paid for it, or for what was measured of it so far."""
        return terms.cost_model.cost(terms.columns_at(self.bought))

    def _bought(self, event: Event) -> frozenset[str]:
        """Return what is paid after an event with values: also what was measured and is corrected to missing."""
        return self.bought | {name for name, value in event.body["values"].items() if value is not None}

    def after(self, event: Event) -> Record:
        """Return the record after the next event about the question."""
        now = replace(
            self,
            who=event.who,
            at=event.at,
            reason=event.body.get("reason") or self.reason,
            event=event.number,
        )
        match event.action:
            case "asked":
                return replace(now, holder=event.who)
            case "given back":
                return replace(now, holder=None)
            case "told":
                values = {**self.values, **event.body["values"]}
                told = {**self.told, event.who: self.told.get(event.who, 0) + len(event.body["values"])}
                whole = len(values) == len(self.attributes) + 1  # with the target
                return replace(
                    now,
                    subject=event.subject or self.subject,
                    values=values,
                    told=told,
                    bought=self._bought(event),
                    answered_at=event.at if whole else None,
                    dropped=whole and None in values.values(),
                )
            case "corrected":
                return replace(
                    now,
                    subject=event.subject or self.subject,
                    values={**self.values, **event.body["values"]},
                    bought=self._bought(event),
                    corrected=self.corrected | event.body["values"].keys(),
                    corrections=self.corrections + 1,
                )
            case "skipped":
                return replace(now, skipped=True, bought=self.bought | {*event.body["bought"]})
            case "withdrawn":
                return replace(now, withdrawn=True)
        return self


class Records:
    """What became of each question, which takes in one event after the other.

    Attributes
    ----------
    event : int
        The number of the last event that was taken in.
    """

    def __init__(self, terms: Terms) -> None:
        self.event = 0
        self._terms = terms
        self._records: dict[int, Record] = {}

    def after(self, events: Iterable[Event]) -> Mapping[int, Record]:
        """Take in the next events, and return the records by number, in the order in which they were asked first."""
        for event in events:
            self.event, number = event.number, event.question
            if number is None:
                continue
            if number not in self._records:
                attributes = self._terms.attributes_at(event.body["columns"])
                self._records[number] = Record(number, attributes, event.at, event.who, event.at, event.who)
            self._records[number] = self._records[number].after(event)
        return dict(self._records)


def records_of(events: Iterable[Event], terms: Terms) -> list[Record]:
    """Return what became of each question, in the order of their numbers."""
    found = Records(terms).after(events)
    return [found[number] for number in sorted(found)]
