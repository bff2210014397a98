"""The state of a study, which its events determine: the learner, and the questions that are open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from hardthresh.core.errors import HardThreshError, InvalidInputError, format_value
from hardthresh.core.typing import Array, is_integer
from hardthresh.limited import Learner
from hardthresh.limited.relearning import Batch, BatchValues, relearned
from hardthresh.storage import from_bytes

from .log import Event, Transaction
from .outcomes import Records
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
        The questions whose answers are complete, and will be learned from with the rest of their batch.
    closed : bool
        Whether the study is closed.
    checksum : str or None
        That of the last event that is included; None before the first.
    excluded : int or None
        How many examples of the batches that were learned from are not learned from any more, as they were withdrawn or
        lack a value now; None if they were not counted yet.
    """

    terms: Terms
    learner: Learner
    event: int = 0
    corrected: int = 0
    changed: int = 0
    open: dict[int, Question] = field(default_factory=dict)
    waiting: dict[int, Question] = field(default_factory=dict)
    closed: bool = False
    checksum: str | None = None
    excluded: int | None = 0

    @classmethod
    def begin(cls, terms: Terms) -> StudyState:
        """Return the state before the first event."""
        return cls(terms, Learner.of(terms.algorithm, terms.cost_model, length=terms.examples))

    @classmethod
    def load(cls, terms: Terms, transaction: Transaction) -> StudyState:
        """Return the state of which the learner was stored; no question was open then."""
        if transaction.learner is None:
            return cls.begin(terms)
        event, corrected, content = transaction.learner
        learner = from_bytes(content.encode(), "the learner of the study")
        checksum = transaction.checksum(event)
        excluded = None if corrected else 0
        return cls(terms, learner, event, corrected, max(event, corrected), checksum=checksum, excluded=excluded)

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

    @property
    def to_come(self) -> int:
        """How many answers the round still needs."""
        answers = self.learner.answers
        return 0 if answers is None else int(np.count_nonzero(~answers.answered))

    def committed(self) -> float:
        """Return what was spent, and what the open questions may cost, which in a closed study is nothing."""
        if self.closed:
            return self.spent_so_far()
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

    def answered(self, transaction: Transaction) -> int:
        """Return the number of examples that are learned from, at once or with the rest of their batch."""
        if self.excluded is None:
            batches = history(self.terms, transaction, self.event)
            self.excluded = sum(int(np.count_nonzero(~values.kept)) for _, values in batches)
        return self.learner.meter.examples - self.learner.dropped - self.excluded

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
        self.event, self.checksum = event.number, event.checksum
        if event.action == "closed":
            self.closed = True
            self.waiting.clear()  # the model uses these answers
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
        self.open[number] = Question.first_asked(self.terms, event)

    def _answered(self, question: Question) -> Batch | None:
        """Learn from a question whose answer is complete, or drop it if something could not be measured."""
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
        elif event.body["dropped"]:
            self._pay_late(number, event, transaction)
        elif event.number > self.corrected:
            return self._relearn(event.number, transaction)
        return None

    def _pay_late(self, number: int, event: Event, transaction: Transaction) -> None:
        """Pay for values of an example that was dropped which a correction says were measured after all."""
        before = question_until(self.terms, transaction, number, event.number - 1)
        after = before.after(event)
        if after.bought > before.bought:
            owned, bought = (self.terms.columns_at(question.bought) for question in (before, after))
            self.learner.pay_late(np.array(bought, dtype=np.intp), np.array(owned, dtype=np.intp))

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
        self.corrected, self.excluded = event, None
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


def question_until(terms: Terms, transaction: Transaction, number: int, until: int | None = None) -> Question:
    """Return a question as its events have made it, up to one of them."""
    question: Question | None = None
    if is_integer(number) and 0 <= number < 2**63:
        for event in transaction.events(question=int(number), until=until):
            question = (question or Question.first_asked(terms, event)).after(event)
    if question is None:
        raise InvalidInputError(f"question {format_value(number)} was never asked; see status")
    return question


def history(terms: Terms, transaction: Transaction, until: int) -> list[tuple[Batch, BatchValues]]:
    """Return what was learned from up to an event, with the values as they were corrected up to then."""
    questions = Records(terms).after(transaction.events(until=until))
    return [(batch, values_of(terms, batch, questions)) for batch in stored_batches(transaction, until)]


def stored_batches(transaction: Transaction, until: int) -> list[Batch]:
    """Return what was learned from together up to an event, in order."""
    return [from_bytes(content.encode(), "a batch") for event, content in transaction.batches() if event <= until]


def values_of(terms: Terms, batch: Batch, questions: Mapping[int, Question]) -> BatchValues:
    """Return the values of a batch; an example that was withdrawn, or now lacks a value, is not kept."""
    rows, targets, kept = [], [], []
    for number in batch.examples.tolist():
        question = questions[number]
        kept.append(not (question.withdrawn or question.lacking))
        if kept[-1]:
            row, y = encoded(terms, batch.indices, question.values)
            rows.append(row)
            targets.append(y)
    x = np.array(rows).reshape(len(rows), batch.indices.size)
    return BatchValues(np.array(kept), x, np.array(targets))
