"""Checks of requests, and why there is no answer to one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, format_value, plural
from hardthresh.core.typing import is_integer

from .errors import BudgetUsed, LateAnswer, NothingToAsk, RepeatedKey, StudyClosed
from .log import Event, Transaction
from .question import Question
from .reading import checked_name
from .state import StudyState
from .terms import Terms


def question_number(number: Any) -> int:
    """Return the number of a question as a plain integer.

    Raises
    ------
    InvalidInputError
        If it is none.
    """
    if not (is_integer(number) and 0 <= number < 2**63):
        raise InvalidInputError(f"question {format_value(number)} was never asked; ask for one first")
    return int(number)


def check_open(state: StudyState) -> None:
    if state.closed:
        raise StudyClosed("the study is closed; it can be read and exported")


def open_question(transaction: Transaction, state: StudyState, number: int) -> Question:
    """Return an open question; for another one raise LateAnswer with what became of it, or StudyClosed."""
    check_open(state)
    if number in state.open:
        return state.open[number]
    about = [event for event in transaction.events(question=number) if event.action != "doubted"]
    if not about:
        raise InvalidInputError(f"question {number} was never asked; ask for one first")
    last = [event for event in about if event.action in _ENDS][-1]
    done, advice = _ENDS[last.action]
    raise LateAnswer(f"question {number} was {done} by {last.who} at {last.at}{advice}")


_ENDS = {
    "told": ("answered", "; to change an answer, correct it"),
    "skipped": ("skipped", ", which is final: another example took its place"),
    "withdrawn": ("withdrawn", ", which cannot be undone"),
}
"""What may end a question: the event, how a message calls it, and what can be done about it."""


def check_held(transaction: Transaction, question: Question) -> None:
    """Raise LateAnswer if nobody has an open question."""
    if question.holder is None:
        back = [event for event in transaction.events(question=question.number) if event.action == "given back"][-1]
        raise LateAnswer(
            f"question {question.number} was given back by {back.who} at {back.at}, and nobody has it; it goes to "
            "whoever asks next"
        )


def check_change(question: Question, values: Mapping[str, float | None], subject: str | None) -> None:
    """Raise InvalidInputError if a correction would change nothing."""
    if subject in (None, question.subject) and all(question.values[name] == value for name, value in values.items()):
        raise InvalidInputError(
            f"question {question.number} has these values already, so nothing would change; give the right ones"
        )


def held_question(transaction: Transaction, state: StudyState, number: int, who: str) -> Question:
    """Return an open question that a person holds; else raise LateAnswer with what became of it."""
    question = open_question(transaction, state, number)
    who = checked_name("the name of a person", who)
    check_held(transaction, question)
    if question.holder != who:
        raise LateAnswer(f"question {number} is with {question.holder} since {question.since}, not with {who}")
    return question


def nothing_to_ask(terms: Terms, state: StudyState) -> NothingToAsk:
    """Return why there is no question."""
    held = ", ".join(
        f"{question.number} (with {question.holder} since {question.since})"
        for question in list(state.open.values())[:5]
    )
    then = "wait for their answers" if held else "close the study"
    if terms.examples is not None and state.asked >= terms.examples:
        return NothingToAsk(f"all {plural(terms.examples, 'example')} of the terms were asked about; {then}")
    new = state.new_questions(1)
    if not new and held:
        return NothingToAsk(
            f"the open questions of this round are with others: {held}; the next questions depend on their answers. "
            "Wait, or give back those that nobody works on"
        )
    if not new:
        return NothingToAsk("the study has no more questions; close it")
    [(_, indices)] = new
    price, total = terms.cost_model.cost(indices), terms.total_budget
    assert total is not None
    reserved = state.committed() - state.spent
    waits = f", {terms.money(reserved)} of it for open questions: {held}" if reserved else ""
    return BudgetUsed(
        f"the next question may cost {terms.money(price)}, but {terms.money(state.committed())} of the total budget of "
        f"{terms.money(total)} are used{waits}; {then}"
    )


def repeated(transaction: Transaction, key: str | None, request: str) -> Event | None:
    """Return the event of an earlier request with the same key; None if there was none.

    Raises
    ------
    RepeatedKey
        If its content was another one.
    """
    if key is None:
        return None
    if not (isinstance(key, str) and 1 <= len(key) <= 64 and key.isprintable()):
        raise InvalidInputError(f"a key must have 1 to 64 printable characters, got {format_value(key)}")
    event = transaction.with_key(key)
    if event is not None and event.request != request:
        raise RepeatedKey(f"key {key!r} was used for another request, event {event.number}; use a new key")
    return event


def digest(*content: Any) -> str:
    """Return a digest of a request."""
    try:
        return sha256(json.dumps(content, sort_keys=True, default=_plain).encode()).hexdigest()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"values must be numbers, texts or None: {error}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"got {format_value(value)}")


def checked_text(reason: str) -> str:
    if not (isinstance(reason, str) and reason.isprintable() and len(reason) <= 1000):
        raise InvalidInputError(f"a reason must have at most 1000 printable characters, got {format_value(reason)}")
    return reason


def checked_reason(what: str, reason: str) -> str:
    if not checked_text(reason).strip():
        raise InvalidInputError(f"{what} needs a reason")
    return reason


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def age(since: str) -> timedelta:
    return datetime.now(UTC) - datetime.fromisoformat(since)
