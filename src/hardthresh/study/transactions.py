"""The transactions of a study: what every request has in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import RLock
from typing import Any

from hardthresh.core.errors import HardThreshError, InvalidInputError, format_value
from hardthresh.limited.relearning import Batch
from hardthresh.storage import to_bytes

from .errors import QuestionBack
from .log import Event, StudyCopy, StudyLog, Transaction
from .question import Question
from .reading import checked_name, checked_names, same_subject
from .records import Learned, Receipt
from .requests import age, check_open, digest, now, repeated
from .state import StudyState, Values, question_until
from .terms import Terms


class StudyFile:
    """The file of a study, and the state that its events have led to. See `Study`."""

    def __init__(self, log: StudyLog | StudyCopy) -> None:
        self._log = log
        self._lock = RLock()
        self._state: StudyState | None = None
        self._learned: tuple[int, Learned] | None = None  # what was learned from after an event that changed it
        with log.reading() as transaction:
            self.terms = Terms.parse(transaction.terms)
            self._seen = (transaction.last, transaction.checksum(transaction.last))  # the last event, and its checksum

    @property
    def path(self) -> Path:
        """The file."""
        return self._log.path

    @property
    def closed(self) -> bool:
        """Whether the study is closed."""
        with self._reading() as (_, state):
            return state.closed

    def __repr__(self) -> str:
        return f"Study({str(self.path)!r})"

    @contextmanager
    def _reading(self) -> Iterator[tuple[Transaction, StudyState]]:
        """Yield a transaction that only reads, and the present state, which other threads do not change meanwhile."""
        with self._lock, self._log.reading() as transaction:
            yield transaction, self._caught_up(transaction)

    def _caught_up(self, transaction: Transaction) -> StudyState:
        """Return the state after all events in the file."""
        if transaction.terms != self.terms.text or transaction.checksum(self._seen[0]) != self._seen[1]:
            raise HardThreshError(
                f"{self.path} was replaced by another file, or by an older copy, while it was open; open it again, or "
                "restart the server, to go on with that file"
            )
        state = self._state
        if state is None:
            state = StudyState.load(self.terms, transaction)
        self._state = None  # if an event cannot be applied, the next attempt begins with the stored learner
        if transaction.last < state.event:
            raise InvalidInputError(
                f"{self.path} is damaged: it ends with event {transaction.last}, and event {state.event} was learned "
                "from; restore a copy"
            )
        for event in transaction.events(state.event):
            state.apply(event, transaction)
        self._state, self._seen = state, (state.event, state.checksum)
        return state

    @contextmanager
    def _writing(self) -> Iterator[tuple[Transaction, StudyState]]:
        """Yield a transaction and the present state, which is forgotten if the transaction fails."""
        with self._lock:
            with self._log.writing() as transaction:
                state = self._caught_up(transaction)
                self._state = None
                yield transaction, state
            self._state, self._seen = state, (state.event, state.checksum)

    def _add(
        self, transaction: Transaction, state: StudyState, who: str, action: str, *content: Any, **request: Any
    ) -> Event:
        """Write an event, apply it to the state, and write what it led to."""
        event = transaction.add(now(), who, action, *content, **request)
        outcome = state.apply(event, transaction)
        if state.learner.diverged:
            raise InvalidInputError(
                "with these values sums of squares overflow, so nothing could be learned any more, and they were not "
                "taken; correct values of this round that are far too large"
            )
        if isinstance(outcome, Batch):
            transaction.add_batch(event.number, to_bytes(outcome).decode())
            transaction.set_learner(event.number, state.corrected, to_bytes(state.learner).decode())
        elif outcome is not None:
            transaction.set_learner(transaction.batches()[-1][0], event.number, to_bytes(outcome).decode())
        return event

    def _about(
        self,
        number: int | None,
        who: str,
        action: str,
        make: Callable[[StudyState, Transaction], dict[str, Any]],
        content: tuple[Any, ...],
        *,
        key: str | None,
        subject: str | None = None,
        doubts: list[QuestionBack] | None = None,
    ) -> Receipt:
        """Write the event that `make` returns the body of, unless the request repeats an earlier one."""
        who = checked_name("the name of a person", who)
        request = digest(who, *content)
        with self._writing() as (transaction, state):
            if earlier := repeated(transaction, key, request):
                if doubts is not None and "doubts" in earlier.body:
                    doubts.append(QuestionBack(tuple(map(tuple, earlier.body["doubts"]))))
                return self._receipt(transaction, state, earlier)
            check_open(state)
            body = make(state, transaction)
            done = "doubted" if "doubts" in body else action
            event = self._add(
                transaction, state, who, done, number, body, subject=subject, key=key, request=request if key else None
            )
            return self._receipt(transaction, state, event)

    def _receipt(self, transaction: Transaction, state: StudyState, event: Event) -> Receipt:
        """Return what became of a question by an event, whatever has happened since."""
        if event.question is None:
            return Receipt(event.number, -1)
        question = question_until(self.terms, transaction, event.question, event.number)
        complete = not (question.needed or question.skipped or question.withdrawn)
        return Receipt(
            event=event.number,
            number=question.number,
            complete=complete,
            learned=complete and not (question.lacking or event.body.get("dropped", False)),
            needed=question.needed,
            cost=state.price_of(question.bought),
        )

    def _free_question(self, state: StudyState, who: str) -> int | None:
        """Return a question that a person may have: one given back or held too long, or a new one within the budget."""
        for number, question in state.open.items():
            if question.holder is None or (question.holder != who and self._expired(question)):
                return number
        new = state.new_questions(1)
        if not new:
            return None
        number, indices = new[0]
        if self.terms.examples is not None and state.asked >= self.terms.examples:
            return None
        return number if self._affordable(state, self.terms.cost_model.cost(indices)) else None

    def _affordable(self, state: StudyState, price: float) -> bool:
        total = self.terms.total_budget
        return total is None or bool(self.terms.cost_model.within_budget(state.committed() + price, total))

    def _expired(self, question: Question) -> bool:
        hours = self.terms.hold_hours
        return hours is not None and age(question.since) > timedelta(hours=hours)

    def _parsed(self, question: Question, values: Mapping[str, Any]) -> Values:
        """Return typed values as numbers, by the names of what was asked for."""
        if not isinstance(values, Mapping) or not values:
            raise InvalidInputError(f"values must be a mapping from names to values, got {format_value(values)}")
        self._check_asked(question, values)
        return {name: self.terms.attribute(name).parse(typed) for name, typed in values.items()}

    def _typed(self, values: Mapping[str, Any], parsed: Values) -> dict[str, str]:
        """Return the texts that were typed where a value reads otherwise in the unit of the terms, such as "150 lb"."""
        return {
            name: typed
            for name, typed in values.items()
            if isinstance(typed, str) and typed.strip() != self.terms.attribute(name).format(parsed[name])
        }

    def _check_asked(self, question: Question, names: Iterable[str]) -> None:
        asked = [attribute.name for attribute in (*question.attributes, question.target)]
        for name in names:
            self.terms.attribute(name)
            if name not in asked:
                raise InvalidInputError(
                    f"{name} was not asked for in question {question.number}; what was not asked for is not bought"
                )

    def _known_names(self, names: Iterable[str]) -> set[str]:
        return {self.terms.attribute(name).name for name in checked_names("confirmed", names)}

    def _bought_names(self, names: Iterable[str], question: Question) -> set[str]:
        """Return the names of attributes; that of a panel stands for what was asked for of it."""
        bought: set[str] = set()
        for name in names:
            members = {attribute.name for attribute in question.attributes if attribute.panel == name}
            if name in self.terms.panels and not members:
                raise InvalidInputError(f"panel {name!r} was not asked for in question {question.number}")
            bought |= members or self._known_names([name])
        return bought

    def _doubted(self, values: Values, confirmed: set[str]) -> QuestionBack | None:
        """Return the question back about values outside of their ranges."""
        doubts = []
        for name, value in values.items():
            attribute = self.terms.attribute(name)
            if attribute.outside(value) and name not in confirmed:
                assert attribute.range is not None
                assert value is not None
                doubts.append((name, value, *attribute.range, attribute.unit))
        return QuestionBack(tuple(doubts)) if doubts else None

    def _check_late_payment(self, state: StudyState, question: Question, values: Values) -> None:
        """Raise InvalidInputError if a correction has to be paid, and the total budget does not cover it."""
        measured = {name for name, value in values.items() if value is not None} - {self.terms.target.name}
        price = state.price_of(question.bought | measured) - state.price_of(question.bought)
        if question.number not in state.open and price > 0 and not self._affordable(state, price):
            raise InvalidInputError(
                f"a value that was measured costs {self.terms.money(price)}, which the rest of the total budget of "
                f"{self.terms.money(self.terms.total_budget or 0.0)} does not cover; leave it missing: another example "
                "took the place of this one, which is not learned from in any case"
            )

    def _check_subject(
        self, transaction: Transaction, state: StudyState, question: Question, subject: str | None
    ) -> None:
        """Raise InvalidInputError if another question that was paid is about the same subject."""
        if subject is None:
            return
        for number in sorted({number for number, one in transaction.subjects() if same_subject(subject, one)}):
            other = question_until(self.terms, transaction, number)
            same = other.subject is not None and same_subject(subject, other.subject)
            if same and number != question.number and (other.bought or number in state.open):
                raise InvalidInputError(
                    f"{other.subject!r} was examined before, in question {number}; no example is bought twice: take "
                    "another one, or correct the subject of that question"
                )

    def _answered(self, transaction: Transaction, state: StudyState, number: int) -> tuple[Question, bool]:
        """Return a question of which something was told, and whether its example was dropped."""
        question = question_until(self.terms, transaction, number)
        if number in state.open:
            return question, False
        if question.withdrawn:
            raise InvalidInputError(f"question {number} was withdrawn, which cannot be undone")
        if not question.values:
            raise InvalidInputError(
                f"question {number} was skipped before anything was told of it, which is final: another example took "
                "its place"
            )
        return question, not state.learns_from(number, transaction)
