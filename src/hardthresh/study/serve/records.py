"""What was asked and answered so far, question by question, read from the events of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..attributes import Attribute
from ..log import Event
from ..study import Study


@dataclass(frozen=True)
class Record:
    """One question and its answers as they are now.

    Attributes
    ----------
    number : int
        The number of the question.
    attributes : tuple of Attribute
        What was asked, without the target.
    state : str
        "open", "answered", "skipped" or "withdrawn".
    who, at : str
        Who did the last of it, and when.
    subject : str or None
        What people call the example.
    values : mapping from str to float or None
        What was told, as it was corrected; also the target.
    corrections : int
        How often it was corrected.
    """

    number: int
    attributes: tuple[Attribute, ...]
    state: str
    who: str
    at: str
    subject: str | None = None
    values: Mapping[str, float | None] = field(default_factory=dict)
    corrections: int = 0


class Records:
    """The records of a study, which take in the events that are new."""

    def __init__(self) -> None:
        self._last = 0
        self._records: dict[int, Record] = {}

    def latest(self, study: Study) -> Mapping[int, Record]:
        """Return the record of every question that was asked, by number."""
        for event in study.events(after=self._last):
            self._last = event.number
            if event.question is not None and event.action != "doubted":
                self._take_in(study, event.question, event)
        return self._records

    def _take_in(self, study: Study, number: int, event: Event) -> None:
        terms = study.terms
        if number not in self._records:
            attributes = terms.attributes_at(event.body["columns"])
            self._records[number] = Record(number, attributes, "open", event.who, event.at)
        record = replace(self._records[number], who=event.who, at=event.at)
        if event.action in ("told", "corrected"):
            record = replace(record, values={**record.values, **event.body["values"]})
        if event.action == "told":
            names = [attribute.name for attribute in (*record.attributes, terms.target)]
            whole = all(name in record.values for name in names)
            record = replace(record, state="answered" if whole else "open", subject=event.subject or record.subject)
        elif event.action == "corrected":
            record = replace(record, corrections=record.corrections + 1)
        elif event.action in ("skipped", "withdrawn"):
            record = replace(record, state=event.action)
        self._records[number] = record
