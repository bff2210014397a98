"""The state of a study, which its events determine: the learner, and the questions that are open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from hardthresh.core.errors import HardThreshError
from hardthresh.core.typing import Array
from hardthresh.limited import Learner
from hardthresh.limited.relearning import Batch, BatchValues, relearned
from hardthresh.storage import from_bytes

from .log import Event, Transaction
from .question import Question
from .terms import Terms

Values = dict[str, float | None]


@dataclass
class StudyState:
    """What the events of a study have led to.

    Attributes
    ----------
    terms : Terms
        The terms.
    learner : Learner
        The learner.
    event : int
        The number of the last event that is included.
    corrected : int
        Corrections of what was learned from are included up to this event.
    changed : int
        The event with which the examples that were learned from changed last.
    open : dict
        The open questions by their number.
    waiting : dict
        The questions that were answered, and will be learned from with the rest of their batch.
    closed : bool
        Whether the study is closed.
    """

    terms: Terms
    learner: Learner
    event: int = 0
    corrected: int = 0
    changed: int = 0
    open: dict[int, Question] = field(default_factory=dict)
    waiting: dict[int, Question] = field(default_factory=dict)
    closed: bool = False

    @classmethod
    def begin(cls, terms: Terms) -> StudyState:
        """Return the state before the first event."""
        return cls(terms, Learner.of(terms.algorithm, terms.cost_model, length=terms.examples))

    @classmethod
    def load(cls, terms: Terms, stored: tuple[int, int, str] | None) -> StudyState:
        """Return the state of which the learner was stored; no question was open then."""
        if stored is None:
            return cls.begin(terms)
        event, corrected, content = stored
        learner = from_bytes(content.encode(), "the learner of the study")
        return cls(terms, learner, event, corrected, max(event, corrected))

    @property
    def spent(self) -> float:
        """What has been paid for questions that are not open."""
        return self.learner.meter.money

    @property
    def asked(self) -> int:
        """How many questions were handed out."""
        answers = self.learner.answers
        if answers is None:
            return self.learner.next_example
        answered = dict(zip(answers.ids, answers.answered.tolist(), strict=True))
        untouched = [number for number, done in answered.items() if not (done or number in self.open)]
        return self.learner.next_example - len(untouched)

    def committed(self) -> float:
        """Return what was spent, and what the open questions may cost."""
        return self.spent + sum(question.price for question in self.open.values())

    def spent_so_far(self) -> float:
        """Return what was spent, also on the measured values of open questions."""
        return self.spent + sum(self.price_of(question.bought) for question in self.open.values())

    def price_of(self, names: Iterable[str]) -> float:
        """Return what some attributes of one example cost."""
        return self.terms.cost_model.cost(self.terms.columns_at(names))

    def new_questions(self, count: int) -> list[tuple[int, Array]]:
        """Return up to `count` questions of the learner that nobody has had."""
        if count < 1 or self.learner.done:
            return []
        asked = self.learner.questions(count + len(self.open))
        return [(number, indices) for number, indices in asked if number not in self.open][:count]

    def learns_from(self, number: int, transaction: Transaction) -> bool:
        """Return whether an answered example was learned from, or will be with the rest of its batch."""
        return number in self.waiting or any(
            number in batch.examples for batch in stored_batches(transaction, self.event)
        )

    def columns_of(self, number: int) -> list[int]:
        """Return the columns of an open question, or of the next new one."""
        if number in self.open:
            return self.terms.columns_at(attribute.name for attribute in self.open[number].attributes)
        [(new, indices)] = self.new_questions(1)
        assert new == number
        columns: list[int] = indices.tolist()
        return columns

    def apply(self, event: Event, transaction: Transaction) -> Batch | Learner | None:
        """Take in the next event.

        Returns
        -------
        Batch, Learner or None
            The answers that were learned from because of it; or the learner that learned again from corrected answers,
            as it was after the last batch; or None.
        """
        if event.number != self.event + 1:
            raise HardThreshError(f"event {self.event + 1} of the study is missing; restore a copy of the file")
        self.event = event.number
        if event.action == "closed":
            self.closed = True
        elif event.question is not None:
            outcome = self._apply_to_question(event.question, event, transaction)
            if outcome is not None:
                self.changed = event.number
            return outcome
        return None

    def _apply_to_question(self, number: int, event: Event, transaction: Transaction) -> Batch | Learner | None:
        if event.action == "asked" and number not in self.open:
            self._ask_new(number, event)
        elif event.action in ("corrected", "withdrawn"):
            return self._corrected(number, event, transaction)
        elif number in self.open:
            self.open[number] = self.open[number].after(event)
            if event.action == "skipped":
                self._drop(self.open.pop(number))
            elif not self.open[number].needed:
                return self._answered(self.open.pop(number))
        return None

    def _ask_new(self, number: int, event: Event) -> None:
        """Give a question that nobody has had to a person."""
        new = self.new_questions(1)
        if not new or new[0][0] != number or new[0][1].tolist() != event.body["columns"]:
            raise HardThreshError(
                f"question {number} was asked by another version of hardthresh, which chose other attributes; "
                "install the version that began the study"
            )
        self.open[number] = self.question(number, new[0][1], event)

    def question(self, number: int, indices: Array, event: Event) -> Question:
        """Return a new question."""
        return Question(
            number=number,
            attributes=self.terms.attributes_at(indices),
            target=self.terms.target,
            price=self.terms.cost_model.cost(indices),
            holder=event.who,
            since=event.at,
        )

    def _answered(self, question: Question) -> Batch | None:
        """Learn from a complete question, or drop it if something could not be measured."""
        if question.lacking:
            self._drop(question)
            return None
        learner = self.learner
        before, answers = learner.state, learner.answers
        assert answers is not None
        learner.tell(question.number, *encoded(self.terms, answers.indices, question.values))
        self.waiting[question.number] = question
        if learner.answers is not None:
            return None
        self.waiting.clear()
        return Batch.between(before, answers, learner)

    def _drop(self, question: Question) -> None:
        """Replace an example that cannot be learned from by another one; what was bought stays paid."""
        self.learner.skip(question.number, paid=np.array(self.terms.columns_at(question.bought), dtype=np.intp))

    def _corrected(self, number: int, event: Event, transaction: Transaction) -> Learner | None:
        """Take in a correction, or that an example was withdrawn."""
        if number in self.open:
            self.open[number] = self.open[number].after(event)
        elif number in self.waiting:
            question = self.waiting.pop(number).after(event)
            if event.action == "withdrawn" or question.lacking:
                self.learner.withdraw(number)
            else:
                assert self.learner.answers is not None
                self.learner.amend(number, *encoded(self.terms, self.learner.answers.indices, question.values))
                self.waiting[number] = question
        elif event.number > self.corrected and not event.body["dropped"]:
            return self._relearn(event.number, transaction)
        return None

    def _relearn(self, event: int, transaction: Transaction) -> Learner:
        """Learn again from everything as it was corrected up to an event, after the questions that were asked."""
        present = self.learner
        again, _ = relearned(present, history(self.terms, transaction, event), self.terms.examples)
        self.learner = replace(
            again,
            state=replace(again.state, length=present.state.length),
            answers=present.answers,
            meter=present.meter,
            next_example=present.next_example,
            dropped=present.dropped,
        )
        self.corrected = event
        return again


def encoded(terms: Terms, indices: Array, values: Mapping[str, float | None]) -> tuple[Array, float]:
    """Return the values of some columns, and the target."""
    row: list[float] = []
    for attribute in terms.attributes_at(indices):
        value = values[attribute.name]
        assert value is not None
        row += attribute.encode(value)
    target = values[terms.target.name]
    assert target is not None
    return np.array(row), target


def all_answers(transaction: Transaction, until: int) -> dict[int, Values | None]:
    """Return the values of each question as they were corrected up to an event; None for one that was withdrawn."""
    answers: dict[int, Values | None] = {}
    for event in transaction.events():
        if event.number > until:
            break
        if event.question is None:
            continue
        known = answers.setdefault(event.question, {})
        if event.action == "withdrawn":
            answers[event.question] = None
        elif event.action in ("told", "corrected") and known is not None:
            known.update(event.body["values"])
    return answers


def history(terms: Terms, transaction: Transaction, until: int) -> list[tuple[Batch, BatchValues]]:
    """Return what was learned from up to an event, with the values as they were corrected up to then."""
    answers = all_answers(transaction, until)
    return [(batch, values_of(terms, batch, answers)) for batch in stored_batches(transaction, until)]


def stored_batches(transaction: Transaction, until: int) -> list[Batch]:
    """Return what was learned from together up to an event, in order."""
    return [from_bytes(content.encode(), "a batch") for event, content in transaction.batches() if event <= until]


def values_of(terms: Terms, batch: Batch, answers: Mapping[int, Values | None]) -> BatchValues:
    """Return the values of a batch; an example that was withdrawn, or now lacks a value, is not kept."""
    rows, targets, kept = [], [], []
    for number in batch.examples.tolist():
        values = answers[number]
        kept.append(values is not None and None not in values.values())
        if kept[-1]:
            assert values is not None
            row, y = encoded(terms, batch.indices, values)
            rows.append(row)
            targets.append(y)
    x = np.array(rows).reshape(len(rows), batch.indices.size)
    return BatchValues(np.array(kept), x, np.array(targets))
