"""A study: several people measure what it asks for, day by day, and it learns from their answers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import fields
from threading import RLock
from typing import Any, Self

from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import HardThreshError, InvalidInputError, plural
from hardthresh.limited.attribute_learner import AttributeLearner
from hardthresh.limited.relearning import Batch, relearned
from hardthresh.storage import StorageError, from_bytes

from .errors import QuestionBack
from .log import Event, StudyLog, Transaction
from .question import Question
from .reading import checked_name, checked_names, same_subject
from .records import Learned, Receipt, Status, learned_examples
from .requests import (
    check_change,
    check_held,
    check_open,
    checked_reason,
    checked_text,
    digest,
    held_question,
    nothing_to_ask,
    now,
    open_question,
    question_number,
    repeated,
)
from .same import nearly_equal
from .state import StudyState, history, question_until
from .terms import Terms
from .transactions import StudyFile

MOST_QUESTIONS = 1000
"""Questions that one person may ask for at once; arbitrary: a batch rarely has more."""


class Study(StudyFile):
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
    together never exceed ``total_budget`` by more than rounding (a part in 1e9), no question is with two persons, and
    no example is bought twice. On one machine the coefficients are, bit for bit, those of one learner that is told the
    same answers in the same order; on another one they differ by rounding.

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
            If the file is there, or the terms were changed after they had been read.
        """
        name = checked_name("the name of a person", who)
        if not terms.text:
            raise InvalidInputError("the terms of a study are read from TOML, with Terms.read or Terms.parse")
        read = Terms.parse(terms.text)
        if changed := [field.name for field in fields(read) if getattr(read, field.name) != getattr(terms, field.name)]:
            raise InvalidInputError(
                f"{changed[0]} differs from the TOML of the terms: change the TOML, and read it again"
            )
        return cls(StudyLog.create(path, terms.text, name, now()))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open the study in a file.

        Raises
        ------
        InvalidInputError
            If there is none, or it is something else.
        """
        return cls(StudyLog.open(path))

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
                return tuple(
                    question_until(self.terms, transaction, number, earlier.number)
                    for number in earlier.body["numbers"]
                )
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
        number, confirmed = question_number(number), self._known_names(confirmed)
        subject = None if subject is None else checked_name("the subject", subject)
        doubts: list[QuestionBack] = []

        def answered(state: StudyState, transaction: Transaction) -> dict[str, Any]:
            question = held_question(transaction, state, number, who)
            parsed = self._parsed(question, values)
            for name in parsed.keys() & question.values.keys():
                known = self.terms.attribute(name).format(question.values[name])
                raise InvalidInputError(f"{name} of question {number} was told before, {known}; correct it instead")
            if subject and question.subject and not same_subject(subject, question.subject):
                raise InvalidInputError(
                    f"question {number} is about {question.subject!r}, not {subject!r}; correct the subject, or skip "
                    "the question if the first values are of somebody else"
                )
            self._check_subject(transaction, state, question, subject)
            typed = self._typed(values, parsed)
            if doubted := self._doubted(parsed, confirmed):
                doubts.append(doubted)
                return {"doubts": doubted.doubts, "typed": typed}
            return {"values": parsed, "typed": typed, "confirmed": sorted(confirmed & parsed.keys())}

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
            The names of attributes, or of panels, that must be paid all the same, besides those that were told.
        reason : str
            Why.
        key : str, optional
            As in `ask`.

        Returns
        -------
        Receipt
            What became of the request.

        Raises
        ------
        LateAnswer, InvalidInputError, StudyClosed
            As in `tell`.
        """
        number, given = question_number(number), sorted(checked_names("bought", bought))

        def skipped(state: StudyState, transaction: Transaction) -> dict[str, Any]:
            question = held_question(transaction, state, number, who)
            names = self._bought_names(given, question)
            self._check_asked(question, names)
            return {"bought": sorted(names), "reason": checked_text(reason)}

        return self._about(number, who, "skipped", skipped, ("skip", number, given, reason), key=key)

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

        Returns
        -------
        Receipt
            What became of the request.

        Raises
        ------
        LateAnswer
            If the question is not open, or nobody has it.
        StudyClosed
            If the study is closed.
        """
        number = question_number(number)

        def given_back(state: StudyState, transaction: Transaction) -> dict[str, Any]:
            question = open_question(transaction, state, number)
            check_held(transaction, question)
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
        subject: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Correct values that were told before; the old ones stay in the log.

        If the example was learned from, the coefficients are computed again from the corrected values. The questions
        that were asked stay as they were, and the attributes that the predictor uses stay too, until the study compares
        them with others again, from the corrected values. An example that was not learned from, because a value could
        not be measured or it was skipped, stays out, since another one took its place; an attribute of it that was told
        as missing, and is corrected to a value, is paid now.

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
        subject : str, optional
            What people call the example, if that was wrong; `values` may be empty then.
        key : str, optional
            As in `ask`.

        Returns
        -------
        Receipt
            What became of the request.

        Raises
        ------
        QuestionBack, InvalidInputError, StudyClosed
            As in `tell`; InvalidInputError also if nothing would change, or the total budget does not cover what has to
            be paid now.
        """
        number, confirmed = question_number(number), self._known_names(confirmed)
        subject = None if subject is None else checked_name("the subject", subject)
        doubts: list[QuestionBack] = []

        def corrected(state: StudyState, transaction: Transaction) -> dict[str, Any]:
            question, dropped = self._answered(transaction, state, number)
            self._check_subject(transaction, state, question, subject)
            parsed = {} if subject is not None and not values else self._parsed(question, values)
            for name in parsed.keys() - question.values.keys():
                raise InvalidInputError(f"{name} of question {number} was not told yet; tell it")
            check_change(question, parsed, subject)
            typed = self._typed(values if parsed else {}, parsed)
            if doubted := self._doubted(parsed, confirmed):
                doubts.append(doubted)
                return {"doubts": doubted.doubts, "typed": typed}
            self._check_late_payment(state, question, parsed)
            return {
                "values": parsed,
                "typed": typed,
                "old": {name: question.values[name] for name in parsed},
                "old subject": question.subject if subject is not None else None,
                "confirmed": sorted(confirmed & parsed.keys()),
                "dropped": dropped,
                "reason": checked_reason("a correction", reason),
            }

        request = ("correct", number, values, sorted(confirmed), reason, subject)
        receipt = self._about(number, who, "corrected", corrected, request, key=key, subject=subject, doubts=doubts)
        if doubts:
            raise doubts[0]
        return receipt

    def withdraw(self, number: int, who: str, *, reason: str, key: str | None = None) -> Receipt:
        """Take an answered example out of what is learned from; it stays paid.

        The coefficients are computed again without it. The attributes that the predictor uses stay, until the study
        compares them with others again. The values stay in the log, which is never changed.

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

        Returns
        -------
        Receipt
            What became of the request.

        Raises
        ------
        InvalidInputError
            If nothing was told of it, it is open, or it was withdrawn before.
        StudyClosed
            If the study is closed.
        """
        number = question_number(number)

        def withdrawn(state: StudyState, transaction: Transaction) -> dict[str, Any]:
            if number in state.open:
                raise InvalidInputError(f"question {number} is still open; skip it instead")
            _, dropped = self._answered(transaction, state, number)
            return {"dropped": dropped, "reason": checked_reason("a withdrawal", reason)}

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

        Returns
        -------
        Receipt
            What became of the request.

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
                    f"answer, skip or give back {plural(len(held), 'open question')} before you close the study, such "
                    f"as {numbers}"
                )
            return {"reason": checked_text(reason)}

        return self._about(None, who, "closed", closed, ("close", reason), key=key)

    def status(self) -> Status:
        """Return how the study stands: budget, examples, open questions, and the present predictor."""
        with self._reading() as (transaction, state):
            learner, terms = state.learner, self.terms
            spent, committed = state.spent_so_far(), state.committed()
            answered = state.answered(transaction)
            ended = not (state.closed or state.open) and self._free_question(state, "") is None
            return Status(
                events=state.event,
                asked=state.asked,
                answered=answered,
                left_out=state.asked - answered - (0 if state.closed else len(state.open)),
                waiting=tuple(state.waiting),
                to_come=0 if ended or state.closed else state.to_come,
                spent=spent,
                reserved=committed - spent,
                left=None if terms.total_budget is None else max(0.0, terms.total_budget - committed),
                open=() if state.closed else tuple(state.open.values()),
                chosen=tuple(terms.columns[j] for j in learner.final_state().support),
                closed=state.closed,
                ended=str(nothing_to_ask(terms, state)) if ended else "",
            )

    def learned(self) -> Learned:
        """Return the examples that were learned from, as they were corrected, with their honest predictions."""
        with self._lock:
            with self._reading() as (transaction, state):
                if self._learned and self._learned[0] == state.changed:
                    return self._learned[1]
                batches = history(self.terms, transaction, state.event)
            _, lessons = relearned(state.learner, batches, self.terms.examples)  # without a lock on the file
            learned = learned_examples(self.terms, batches, lessons)
            self._learned = state.changed, learned
            return learned

    def model(self) -> Any:
        """Return a fitted estimator, made of the answers so far; its columns are ``terms.columns``.

        Warns
        -----
        ConvergenceWarning
            If there were too few answers to choose attributes by more than chance.
        """
        with self._reading() as (_, state):
            return AttributeLearner(self.terms.estimator, state.learner, self.terms.columns).model()

    def question(self, number: int) -> Question:
        """Return a question that was asked, with everything that was told of it, as it was corrected.

        Raises
        ------
        InvalidInputError
            If there is no such question.
        """
        with self._reading() as (transaction, _):
            return question_until(self.terms, transaction, number)

    def held_question(self, number: int, who: str) -> Question:
        """Return an open question that a person holds, with what was told of it.

        Raises
        ------
        LateAnswer
            If the question is not with this person; the message says what became of it.
        InvalidInputError
            If there is no such question.
        """
        with self._reading() as (transaction, state):
            return held_question(transaction, state, question_number(number), who)

    def events(self, after: int = 0) -> Iterator[Event]:
        """Return an iterator over the events of the study after one, in order, as they are now."""
        with self._reading() as (transaction, _):
            return iter(list(transaction.events(after)))

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """Yield the study as it is now, for several reads that have to agree while others go on.

        It is a copy in memory, which takes no lock on the file, and cannot be written to. Cost: the file is copied, and
        the stored learner is read.
        """
        with self._log.copied() as log:
            snapshot = copy(self)
            snapshot._log, snapshot._lock, snapshot._state = log, RLock(), None
            yield snapshot
            self._learned = snapshot._learned  # so that it is computed once

    def verify(self) -> None:
        """Check that no event was changed or is missing, and that the events give what was stored besides them.

        Events that were cut off at the end are not noticed by this alone: note the checksum of the last event
        elsewhere, and compare. On another machine the learner may differ by rounding, up to `ROUNDING` of the largest
        number of each array. Cost: the study is learned from the beginning, once more for each correction.

        Raises
        ------
        InvalidInputError
            If an event was changed or is missing; the message names it.
        HardThreshError
            If the events give another learner, or other batches.
        """
        with self._log.copied() as log, log.reading() as transaction:
            transaction.verify()
            state, batches = StudyState.begin(self.terms), []
            for event in transaction.events():
                outcome = state.apply(event, transaction)
                if isinstance(outcome, Batch):
                    batches.append((event.number, outcome))
            stored = StudyState.load(self.terms, transaction)
            for event in transaction.events(stored.event):
                stored.apply(event, transaction)
            known = _read_batches(transaction)
        if known is None or not (nearly_equal(batches, known) and nearly_equal(state.learner, stored.learner)):
            raise HardThreshError(
                f"the events of {self.path} do not give what was learned in it; restore a copy. If the study was moved "
                "from a machine with another processor: there, attributes that predict nearly alike may have been "
                "chosen by rounding"
            )


def _read_batches(transaction: Transaction) -> list[tuple[int, Batch]] | None:
    """Return the event and the content of each batch; None if one cannot be read."""
    try:
        return [(event, from_bytes(content.encode(), "a batch")) for event, content in transaction.batches()]
    except StorageError:
        return None
