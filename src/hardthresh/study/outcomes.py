"""What became of each question of a study, from its events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from .log import Event
from .question import Question
from .terms import Terms


@dataclass(frozen=True)
class Record(Question):
    """One question, from the first time it was asked to its end.

    Attributes
    ----------
    holder : str or None
        Who has it, or had it last.
    event : int
        The number of the last event about it.
    asked_at : str
        When it was asked first, in UTC and ISO 8601.
    who, at : str
        Who did the last of it, and when.
    answered_at : str or None
        When the last value was told, if all were.
    told : mapping from str to int
        How many values each person told.
    corrected : frozenset of str
        The names of values that were corrected.
    corrections : int
        How often it was corrected.
    dropped : bool
        Whether something could not be measured, so that it was not learned from.
    reason : str
        The last that was given.
    """

    event: int = 0
    asked_at: str = ""
    who: str = ""
    at: str = ""
    answered_at: str | None = None
    told: Mapping[str, int] = field(default_factory=dict)
    corrected: frozenset[str] = frozenset()
    corrections: int = 0
    dropped: bool = False
    reason: str = ""

    @property
    def state(self) -> str:
        """What became of the question: "open", "answered", "dropped" (a value is missing), "skipped" or "withdrawn"."""
        if self.withdrawn or self.skipped:
            return "withdrawn" if self.withdrawn else "skipped"
        if self.answered_at is None:
            return "open"
        return "dropped" if self.dropped or self.lacking else "answered"

    def outcome(self, waiting: Collection[int]) -> str:
        """Return what became of the example, given the questions that wait for the rest of their round.

        It is "learned" or "waiting" if it was answered, else its state.
        """
        if self.state != "answered":
            return self.state
        return "waiting" if self.number in waiting else "learned"

    def cost(self, terms: Terms) -> float:
        """Return what was paid for it, or for what was measured of it so far."""
        return terms.cost_model.cost(terms.columns_at(self.bought))

    def after(self, event: Event) -> Self:
        """Return the record after the next event about the question."""
        if event.action == "doubted":
            return self
        now = replace(
            super().after(event),
            event=event.number,
            asked_at=self.asked_at or event.at,
            who=event.who,
            at=event.at,
            reason=event.body.get("reason") or self.reason,
        )
        match event.action:
            case "told":
                count = self.told.get(event.who, 0) + len(event.body["values"])
                answered = not now.needed
                return replace(
                    now,
                    holder=self.holder,
                    told={**self.told, event.who: count},
                    answered_at=event.at if answered else None,
                    dropped=answered and bool(now.lacking),
                )
            case "corrected":
                return replace(
                    now,
                    corrected=self.corrected | event.body["values"].keys(),
                    corrections=self.corrections + 1,
                    dropped=self.dropped or event.body["dropped"],
                )
            case "skipped":
                return replace(now, holder=self.holder)
        return now


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
                self._records[number] = Record.first_asked(self._terms, event)
            self._records[number] = self._records[number].after(event)
        return dict(self._records)


def records_of(events: Iterable[Event], terms: Terms) -> list[Record]:
    """Return what became of each question, in the order of their numbers."""
    found = Records(terms).after(events)
    return [found[number] for number in sorted(found)]
