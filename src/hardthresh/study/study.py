"""A study: several people measure what it asks for, day by day, and it learns from their answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import RLock
from typing import Any, Self

import numpy as np

from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import HardThreshError, InvalidInputError, format_value, plural
from hardthresh.core.typing import Array, is_integer
from hardthresh.limited.attribute_learner import AttributeLearner
from hardthresh.limited.relearning import Batch, relearned
from hardthresh.storage import to_bytes

from .answers import QuestionBack
from .log import Event, StudyLog, Transaction
from .records import Learned, Receipt, Status
from .requests import (
    age,
    check_open,
    checked_reason,
    checked_text,
    digest,
    held_question,
    nothing_to_ask,
    now,
    open_question,
    repeated,
)
from .state import Question, StudyState, Values, history, told
from .terms import Terms, checked_name, suggestion

MOST_QUESTIONS = 1000
"""Questions that one person may ask for at once; arbitrary: a batch rarely has more."""


class Study:
    """A study in a file, which several programs may have open at the same time.

    Each method is one transaction, written whole or not at all, also when the process is killed. A question belongs to
    one person until it is answered, skipped, or given back. Make one with `Study.create` or `Study.open`.

    Parameters
    ----------
    log : StudyLog
        The file.

    Attributes
    ----------
    path : Path
        The file.
    terms : Terms
        The terms.

    Notes
    -----
    Guarantee: no example costs more than ``budget_per_example``, what was spent and what open questions may cost
    together never exceed ``total_budget``, no question is with two persons, and no example is bought twice. The
    coefficients are, bit for bit, those of one learner that is told the same answers in the same order.

    Cost: a request reads the events that this object has not seen, and writes one row; a correction of what was
    learned from reads all of them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from hardthresh.study import Study, Terms
    >>> terms = Terms.parse('''
    ... n_nonzero_coefs = 1
    ... budget_per_example = 2
    ... [target]
    ... name = "stay"
    ... [attributes.age]
    ... range = [0, 110]
    ... [attributes.pulse]
    ... [attributes.weight]
    ... unit = "kg"
    ... ''')
    >>> folder = TemporaryDirectory()
    >>> study = Study.create(Path(folder.name) / "study.db", terms, who="Ann")
    >>> [question] = study.ask("Ann")
    >>> question.needed
    ('age', 'pulse', 'stay')
    >>> study.tell(question.number, {"age": 50, "pulse": 72}, "Ann").needed
    ('stay',)
    >>> study.tell(question.number, {"stay": 4}, "Ann").learned
    True
    >>> study.status().spent
    2.0
    >>> folder.cleanup()
    """

    def __init__(self, log: StudyLog) -> None:
        self._log = log
        self._lock = RLock()
        self._state: StudyState | None = None
        with log.reading() as transaction:
            self.terms = Terms.parse(transaction.terms)

    @classmethod
    def create(cls, path: str | os.PathLike[str], terms: Terms, who: str) -> Self:
        """Begin a study in a new file.

        Parameters
        ----------
        path : path
            The file, which must not exist.
        terms : Terms
            The terms, which never change; they must have been read from TOML.
        who : str
            Who begins it.

        Raises
        ------
        InvalidInputError
            If the file is there.
        """
        name = checked_name("the name of a person", who)
        if not terms.text:
            raise InvalidInputError("the terms of a study are read from TOML, with Terms.read or Terms.parse")
        study = cls(StudyLog.create(path, terms.text))
        study._do("created", name, lambda state: {})
        return study

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open the study in a file.

        Raises
        ------
        InvalidInputError
            If there is none, or it is something else.
        """
        return cls(StudyLog.open(path))

    @property
    def path(self) -> Path:
        """The file."""
        return self._log.path

    @property
    def closed(self) -> bool:
        """Whether the study is closed."""
        return self._read().closed

    def __repr__(self) -> str:
        return f"Study({str(self.path)!r})"

    def ask(self, who: str, count: int = 1, *, key: str | None = None) -> tuple[Question, ...]:
        """Return questions that a person holds: first those that the person has, then new ones.

        Parameters
        ----------
        who : str
            The person.
        count : int
            How many questions the person wants to hold, 1 to 1000.
        key : str, optional
            The key of the request, if it may be repeated: at most 64 printable characters.

        Returns
        -------
        tuple of Question
            One to `count`; fewer if there are no more now.

        Raises
        ------
        BudgetUsed
            If the person has none, and the total budget does not cover another question.
        NothingToAsk
            If the person has none, and all questions of this round are with others, or all examples were used.
        StudyClosed
            If the study is closed.
        """
        who = checked_name("the name of a person", who)
        count = checked_integer("the number of questions", count, least=1, most=MOST_QUESTIONS)
        request = digest("ask", who, count)
        with self._writing() as (transaction, state):
            if earlier := repeated(transaction, key, request):
                return tuple(self._question_of(transaction, state, number) for number in earlier.body["numbers"])
            check_open(state)
            held = [number for number, question in state.open.items() if question.holder == who][:count]
            for _ in range(count - len(held)):
                number = self._free_question(state, who)
                if number is None:
                    break
                columns = (
                    self.terms.columns_at(a.name for a in state.open[number].attributes)
                    if (number in state.open)
                    else state.new_questions(1)[0][1].tolist()
                )
                self._add(transaction, state, who, "asked", number, {"columns": columns})
                held.append(number)
            if not held:
                raise nothing_to_ask(self.terms, state)
            if key is not None:
                self._add(transaction, state, who, "asked again", None, {"numbers": held}, key=key, request=request)
            return tuple(state.open[number] for number in held)

    def tell(
        self,
        number: int,
        values: Mapping[str, Any],
        who: str,
        *,
        confirmed: Iterable[str] = (),
        subject: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Tell values of a question, all or some of them; the example is learned from when all are there.

        Parameters
        ----------
        number : int
            The question, which the person must hold.
        values : mapping from str to number, str or None
            Values of attributes that were asked for, and of the target: numbers in the units of the terms, or texts
            such as "1.2 mg/dl". None or "missing" is a value that could not be measured: it is not paid, and the
            example is not learned from.
        who : str
            The person.
        confirmed : iterable of str
            The names of values that are right, although they are outside of their ranges.
        subject : str, optional
            What people call the example; no two questions may be answered about the same.
        key : str, optional
            As in `ask`.

        Returns
        -------
        Receipt
            Whether the question is complete, and what is still needed.

        Raises
        ------
        QuestionBack
            If values are outside of their ranges and not confirmed. Nothing was learned; the log has the values.
        LateAnswer
            If the question is not with this person.
        InvalidInputError
            For values that make no sense, and names that were not asked for.
        StudyClosed
            If the study is closed.
        """
        confirmed = self._known_names(confirmed)
        subject = None if subject is None else checked_name("the subject", subject)
        doubts: list[QuestionBack] = []

        def answered(state: StudyState, transaction: Transaction) -> dict[str, Any]:
            question = held_question(transaction, state, number, who)
            parsed = self._parsed(question, values)
            for name in parsed.keys() & question.values.keys():
                known = self.terms.attribute(name).format(question.values[name])
                raise InvalidInputError(f"{name} of question {number} was told before, {known}; correct it instead")
            self._check_subject(transaction, question, subject)
            if doubted := self._doubted(parsed, confirmed):
                doubts.append(doubted)
                return {"doubts": doubted.doubts}
            return {"values": parsed, "confirmed": sorted(confirmed & parsed.keys())}

        request = ("tell", number, values, sorted(confirmed), subject)
        receipt = self._about(number, who, "told", answered, request, key=key, subject=subject, doubts=doubts)
        if doubts:
            raise doubts[0]
        return receipt

    def skip(
        self, number: int, who: str, *, bought: Iterable[str] = (), reason: str = "", key: str | None = None
    ) -> Receipt:
        """Close a question about an example that is not there; another example takes its place.

        Parameters
        ----------
        number : int
            The question, which the person must hold.
        who : str
            The person.
        bought : iterable of str
            The names of attributes that must be paid all the same, besides those that were told.
        reason : str
            Why.
        key : str, optional
            As in `ask`.

        Raises
        ------
        LateAnswer, InvalidInputError, StudyClosed
            As in `tell`.
        """
        names = self._known_names(bought)

        def skipped(state: StudyState, transaction: Transaction) -> dict[str, Any]:
            question = held_question(transaction, state, number, who)
            self._check_asked(question, names)
            return {"bought": sorted(names), "reason": checked_text(reason)}

        return self._about(number, who, "skipped", skipped, ("skip", number, sorted(names), reason), key=key)

    def give_back(self, number: int, who: str, *, reason: str = "", key: str | None = None) -> Receipt:
        """Give back a question, so that another person may have it; anybody may give back any question.

        Values that were told stay with the question.

        Parameters
        ----------
        number : int
            The question.
        who : str
            The person.
        reason : str
            Why.
        key : str, optional
            As in `ask`.

        Raises
        ------
        LateAnswer
            If the question is not open.
        StudyClosed
            If the study is closed.
        """

        def given_back(state: StudyState, transaction: Transaction) -> dict[str, Any]:
            question = open_question(transaction, state, number)
            return {"held by": question.holder, "reason": checked_text(reason)}

        return self._about(number, who, "given back", given_back, ("give back", number, reason), key=key)

    def correct(
        self,
        number: int,
        values: Mapping[str, Any],
        who: str,
        *,
        reason: str,
        confirmed: Iterable[str] = (),
        key: str | None = None,
    ) -> Receipt:
        """Correct values that were told before; the old ones stay in the log.

        If the example was learned from, everything is learned again from the corrected values: the questions that were
        asked stay as they were, and the present coefficients and the next questions are those of the corrected values.

        Parameters
        ----------
        number : int
            The question, which may be anybody's.
        values : mapping from str to number, str or None
            The corrected values, as in `tell`; None takes the example out, as it lacks a value now.
        who : str
            The person.
        reason : str
            Why: not empty.
        confirmed : iterable of str
            As in `tell`.
        key : str, optional
            As in `ask`.

        Raises
        ------
        QuestionBack, InvalidInputError, StudyClosed
            As in `tell`.
        """
        confirmed = self._known_names(confirmed)
        doubts: list[QuestionBack] = []

        def corrected(state: StudyState, transaction: Transaction) -> dict[str, Any]:
            question = self._answered(transaction, state, number)
            parsed = self._parsed(question, values)
            for name in parsed.keys() - question.values.keys():
                raise InvalidInputError(f"{name} of question {number} was not told yet; tell it")
            if doubted := self._doubted(parsed, confirmed):
                doubts.append(doubted)
                return {"doubts": doubted.doubts}
            old = {name: question.values[name] for name in parsed}
            return {"values": parsed, "old": old, "reason": checked_reason(reason)}

        request = ("correct", number, values, sorted(confirmed), reason)
        receipt = self._about(number, who, "corrected", corrected, request, key=key, doubts=doubts)
        if doubts:
            raise doubts[0]
        return receipt

    def withdraw(self, number: int, who: str, *, reason: str, key: str | None = None) -> Receipt:
        """Take an answered example out of what is learned from, as if it had not been there; it stays paid.

        The values stay in the log, which is never changed.

        Parameters
        ----------
        number : int
            The question, which may be anybody's.
        who : str
            The person.
        reason : str
            Why: not empty.
        key : str, optional
            As in `ask`.

        Raises
        ------
        InvalidInputError
            If it was not answered, or is not learned from.
        StudyClosed
            If the study is closed.
        """

        def withdrawn(state: StudyState, transaction: Transaction) -> dict[str, Any]:
            if number in state.open:
                raise InvalidInputError(f"question {number} is still open; skip it instead")
            self._answered(transaction, state, number)
            return {"reason": checked_reason(reason)}

        return self._about(number, who, "withdrawn", withdrawn, ("withdraw", number, reason), key=key)

    def close(self, who: str, *, reason: str = "", key: str | None = None) -> Receipt:
        """End the study: no more questions, answers or corrections.

        Parameters
        ----------
        who : str
            The person.
        reason : str
            Why.
        key : str, optional
            As in `ask`.

        Raises
        ------
        InvalidInputError
            If questions are open: they have to be answered, skipped, or given back first. A question that was given
            back, and of which nothing was told, does not count.
        StudyClosed
            If it is closed.
        """

        def closed(state: StudyState, transaction: Transaction) -> dict[str, Any]:
            check_open(state)
            held = [q for q in state.open.values() if q.holder is not None or q.values]
            if held:
                numbers = ", ".join(str(question.number) for question in held[:5])
                raise InvalidInputError(
                    f"{plural(len(held), 'question')} (such as {numbers}) are open: answer, skip or give them back "
                    "before you close the study"
                )
            return {"reason": checked_text(reason)}

        return self._about(None, who, "closed", closed, ("close", reason), key=key)

    def status(self) -> Status:
        """Return how the study stands: budget, examples, open questions, and the present predictor."""
        state = self._read()
        learner, terms = state.learner, self.terms
        spent, committed = state.spent_so_far(), state.committed()
        return Status(
            events=state.event,
            asked=learner.next_example - self._untouched(state),
            answered=learner.meter.examples - learner.dropped,
            dropped=learner.dropped,
            spent=spent,
            reserved=committed - spent,
            left=None if terms.total_budget is None else max(0.0, terms.total_budget - committed),
            open=tuple(state.open.values()),
            chosen=tuple(terms.columns[j] for j in learner.final_state().support),
            closed=state.closed,
        )

    def learned(self) -> Learned:
        """Return the examples that were learned from, as they were corrected, with their honest predictions."""
        with self._lock, self._log.reading() as transaction:
            state = self._caught_up(transaction)
            batches = history(self.terms, transaction, state.event)
            _, predictions = relearned(state.learner, batches)
        d = len(self.terms.columns)
        count = [int(np.count_nonzero(values.kept)) for _, values in batches]
        table = [np.full((n, d), np.nan) for n in count]
        for rows, (batch, values) in zip(table, batches, strict=True):
            rows[:, batch.indices] = values.x
        costs = [self.terms.cost_model.cost(batch.indices) for batch, _ in batches]

        def joined(parts: list[Array], dtype: Any = np.float64) -> Array:
            return np.concatenate(parts) if parts else np.zeros(0, dtype)

        return Learned(
            questions=joined([batch.examples[values.kept] for batch, values in batches], np.int64),
            values=np.concatenate(table) if table else np.zeros((0, d)),
            target=joined([values.y for _, values in batches]),
            prediction=joined(predictions),
            batch=np.repeat(np.arange(len(batches)), count),
            chosen=tuple(batch.choice.chosen for batch, _ in batches),
            money=np.repeat(np.array(costs), count),
            columns=tuple(self.terms.columns),
            is_class=self.terms.is_class,
        )

    def model(self) -> Any:
        """Return a fitted estimator, made of the answers so far; its columns are ``terms.columns``.

        Warns
        -----
        ConvergenceWarning
            If there were too few answers to choose attributes by more than chance.
        """
        with self._lock:
            learner = self._read().learner
            return AttributeLearner(self.terms.estimator, learner, self.terms.columns).model()

    def question(self, number: int) -> Question:
        """Return a question that was asked, with everything that was told of it, as it was corrected.

        Raises
        ------
        InvalidInputError
            If there is no such question.
        """
        with self._lock, self._log.reading() as transaction:
            return self._question_of(transaction, self._caught_up(transaction), number)

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the events of the study after one, in order."""
        with self._log.reading() as transaction:
            yield from transaction.events(after)

    def verify(self) -> None:
        """Check that no event was changed or is missing, and that the events give the stored learner.

        Raises
        ------
        InvalidInputError
            If an event was changed or is missing; the message names it.
        HardThreshError
            If the events give another learner.
        """
        with self._log.reading() as transaction:
            transaction.verify()
            state = StudyState.begin(self.terms)
            for event in transaction.events():
                state.apply(event, transaction)
            stored = StudyState.load(self.terms, transaction.learner)
            for event in transaction.events(stored.event):
                stored.apply(event, transaction)
            if to_bytes(state.learner) != to_bytes(stored.learner):
                raise HardThreshError(f"the events of {self.path} do not give the learner in it; restore a copy")

    def _read(self) -> StudyState:
        """Return the present state."""
        with self._lock, self._log.reading() as transaction:
            return self._caught_up(transaction)

    def _caught_up(self, transaction: Transaction) -> StudyState:
        """Return the state after all events in the file."""
        state = self._state
        if state is None:
            state = StudyState.load(self.terms, transaction.learner)
        self._state = None  # if an event cannot be applied, the next attempt begins with the stored learner
        for event in transaction.events(state.event):
            state.apply(event, transaction)
        self._state = state
        return state

    @contextmanager
    def _writing(self) -> Iterator[tuple[Transaction, StudyState]]:
        """Yield a transaction and the present state, which is forgotten if the transaction fails."""
        with self._lock:
            with self._log.writing() as transaction:
                state = self._caught_up(transaction)
                self._state = None
                yield transaction, state
            self._state = state

    def _add(
        self, transaction: Transaction, state: StudyState, who: str, action: str, *content: Any, **request: Any
    ) -> Event:
        """Write an event, apply it to the state, and write what it led to."""
        event = transaction.add(now(), who, action, *content, **request)
        outcome = state.apply(event, transaction)
        if isinstance(outcome, Batch):
            transaction.add_batch(event.number, to_bytes(outcome).decode())
            transaction.set_learner(event.number, state.corrected, to_bytes(state.learner).decode())
        elif outcome is not None:
            transaction.set_learner(transaction.batches()[-1][0], event.number, to_bytes(outcome).decode())
        return event

    def _do(self, action: str, who: str, body: Callable[[StudyState], dict[str, Any]]) -> None:
        with self._writing() as (transaction, state):
            self._add(transaction, state, who, action, None, body(state))

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
        question = self._question_of(transaction, state, event.question, until=event.number)
        closed = event.action in ("skipped", "withdrawn")
        return Receipt(
            event=event.number,
            number=question.number,
            complete=not question.needed and not closed,
            learned=not (question.needed or question.lacking or closed),
            needed=() if closed else question.needed,
            cost=state.price_of([*question.measured, *event.body.get("bought", ())]),
        )

    def _question_of(
        self, transaction: Transaction, state: StudyState, number: int, until: int | None = None
    ) -> Question:
        """Return a question as its events have made it, up to one of them."""
        if until is None and number in state.open:
            return state.open[number]
        question: Question | None = None
        if is_integer(number) and 0 <= number < 2**63:
            for event in transaction.events(question=int(number)):
                if until is not None and event.number > until:
                    break
                if event.action == "asked" and question is None:
                    question = state.question(number, np.array(event.body["columns"], dtype=np.intp), event)
                elif question is not None and event.action in ("told", "corrected"):
                    question = told(question, event.body["values"], event.subject, event.at)
        if question is None:
            raise InvalidInputError(f"question {format_value(number)} was never asked; see status")
        return question

    def _free_question(self, state: StudyState, who: str) -> int | None:
        """Return a question that a person may have: one given back or held too long, or a new one within the budget."""
        for number, question in state.open.items():
            if question.holder is None or (question.holder != who and self._expired(question)):
                return number
        new = state.new_questions(1)
        if not new:
            return None
        number, indices = new[0]
        if self.terms.examples is not None and number >= self.terms.examples:
            return None
        return number if self._affordable(state, self.terms.cost_model.cost(indices)) else None

    def _affordable(self, state: StudyState, price: float) -> bool:
        total = self.terms.total_budget
        return total is None or bool(self.terms.cost_model.within_budget(state.committed() + price, total))

    def _expired(self, question: Question) -> bool:
        hours = self.terms.hold_hours
        return hours is not None and age(question.since) > timedelta(hours=hours)

    def _untouched(self, state: StudyState) -> int:
        """Return how many questions of the open query nobody has had."""
        answers = state.learner.answers
        if answers is None:
            return 0
        return sum(
            not answered and number not in state.open
            for number, answered in zip(answers.ids, answers.answered, strict=True)
        )

    def _parsed(self, question: Question, values: Mapping[str, Any]) -> Values:
        """Return typed values as numbers, by the names of what was asked for."""
        if not isinstance(values, Mapping) or not values:
            raise InvalidInputError(f"values must be a mapping from names to values, got {format_value(values)}")
        self._check_asked(question, values)
        return {name: self.terms.attribute(name).parse(typed) for name, typed in values.items()}

    def _check_asked(self, question: Question, names: Iterable[str]) -> None:
        asked = [attribute.name for attribute in (*question.attributes, question.target)]
        for name in names:
            self.terms.attribute(name)
            if name not in asked:
                raise InvalidInputError(
                    f"{name} was not asked for in question {question.number}{suggestion(name, asked)}; "
                    "what was not asked for is not bought"
                )

    def _known_names(self, names: Iterable[str]) -> set[str]:
        return {self.terms.attribute(name).name for name in ([names] if isinstance(names, str) else names)}

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

    def _check_subject(self, transaction: Transaction, question: Question, subject: str | None) -> None:
        if subject is None:
            return
        if question.subject not in (None, subject):
            raise InvalidInputError(
                f"question {question.number} is about {question.subject!r}, not {subject!r}; skip it if the first "
                "values are of somebody else"
            )
        other = transaction.question_of(subject, question.number)
        if other is not None:
            raise InvalidInputError(
                f"{subject!r} was examined before, in question {other}; no example is bought twice: take another one"
            )

    def _answered(self, transaction: Transaction, state: StudyState, number: int) -> Question:
        """Return a question of which something was told, and which is or will be learned from."""
        if number in state.open:
            return state.open[number]
        question = self._question_of(transaction, state, number)
        actions = {event.action for event in transaction.events(question=number)}
        if "withdrawn" in actions:
            raise InvalidInputError(f"question {number} was withdrawn, and is not learned from")
        if "skipped" in actions or question.lacking or question.needed:
            raise InvalidInputError(
                f"question {number} was not answered whole, so another example took its place; it is not learned from"
            )
        return question
