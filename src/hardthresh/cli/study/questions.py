"""``hardthresh study ask``, ``skip``, ``give-back``, ``withdraw``: questions without their answers."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import names_of
from .options import AsJson, Key, Number, Reason, StudyFile, Who, name_of
from .printing import print_json, print_lines, print_receipt, question_text

NO_QUESTION = 1
"""The exit code of `ask` where there is nothing to ask, now or for good; 2 is that of a user error."""


def ask(
    study: StudyFile,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of questions to hold.")] = 1,
    who: Who = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show what to measure next.

    These are the questions that you hold, and new ones up to --count. A question belongs to you until you answer it,
    skip it or give it back. The exit code is 1 if there is nothing to ask: the budget is used, the study is closed, or
    all questions of this round are with others.
    """
    from hardthresh.study import NothingToAsk, Study, StudyClosed

    from ..terminal import write_stderr

    found = Study.open(study)
    try:
        questions = found.ask(name_of(who), count, key=key)
    except (NothingToAsk, StudyClosed) as error:
        write_stderr(f"nothing to ask: {error}")
        raise typer.Exit(NO_QUESTION) from error
    if as_json:
        print_json([question.described() for question in questions])
        return
    print_lines("\n\n".join(question_text(question, found.terms, study) for question in questions))


def skip(
    study: StudyFile,
    question: Number,
    bought: Annotated[list[str] | None, typer.Option(help="What was paid for all the same, NAME,...")] = None,
    reason: Reason = "",
    who: Who = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Skip an example that is not there, such as a patient who did not come; another takes its place."""
    from hardthresh.study import Study

    found = Study.open(study)
    receipt = found.skip(question, name_of(who), bought=tuple(names_of(bought)), reason=reason, key=key)
    cost = f", at a cost of {found.terms.money(receipt.cost)}" if receipt.cost else ""
    print_receipt(receipt, f"Question {receipt.number} is skipped{cost}.", as_json)


def give_back(
    study: StudyFile,
    question: Number,
    reason: Reason = "",
    who: Who = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Give a question back, yours or that of somebody else, so that another person may answer it."""
    from hardthresh.study import Study

    receipt = Study.open(study).give_back(question, name_of(who), reason=reason, key=key)
    print_receipt(receipt, f"Question {receipt.number} is given back.", as_json)


def withdraw(
    study: StudyFile,
    question: Number,
    reason: Annotated[str, typer.Option(help="Why, for the audit trail.")],
    who: Who = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Take an answered example out of what is learned from.

    It stays paid, and its values stay in the audit trail, from which nothing is ever removed.
    """
    from hardthresh.study import Study

    found = Study.open(study)
    receipt = found.withdraw(question, name_of(who), reason=reason, key=key)
    event = next(found.events(receipt.event - 1))
    effect = "it was not learned from anyway" if event.body["dropped"] else "the coefficients are computed without it"
    print_receipt(receipt, f"Question {receipt.number} is withdrawn; {effect}.", as_json)
