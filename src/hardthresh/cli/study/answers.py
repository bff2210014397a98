"""``hardthresh study tell`` and ``correct``: values of an example, from the command line, a file or a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hardthresh.core.errors import InvalidInputError, plural

from ..options import names_of
from ..tables import as_option
from ..terminal import asks_people
from .options import AsJson, Key, Number, StudyFile, Who, name_of
from .printing import print_json, print_lines, print_receipt, receipt_text
from .typed import QUESTION, Row, assignments, read_answers

if TYPE_CHECKING:
    from hardthresh.study import Receipt, Study

Confirmed = Annotated[
    list[str] | None, typer.Option("--confirm", help="Names of values outside their range that are right, NAME,...")
]


def tell(
    study: StudyFile,
    question: Annotated[int | None, typer.Argument(metavar="QUESTION", help="The number of the question.")] = None,
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME=VALUE]...", help='Such as age=61 "creatinine=1.2 mg/dl" FEV1=missing.'),
    ] = None,
    *,
    answers: Annotated[
        Path | None,
        typer.Option("--from", help="A .json, .csv or .tsv file with values, of one question or more."),
    ] = None,
    confirm: Confirmed = None,
    subject: Annotated[str | None, typer.Option(help="Who or what the example is, such as a pseudonym.")] = None,
    who: Who = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Tell the values of an example, all at once or some of them.

    The question stays yours until all are told. A value may have one of the units of the terms, as in
    "creatinine=1.2 mg/dl", and is "missing" if it could not be measured. Values outside their range are asked back:
    they are not learned from until they are corrected, or confirmed by --confirm NAME. Without values, and in a
    terminal, each value is asked for.
    """
    from hardthresh.study import Study

    found, name, confirmed = Study.open(study), name_of(who), tuple(names_of(confirm))
    if answers is not None:
        if values:
            raise InvalidInputError("give values, or --from FILE, not both")
        _tell_rows(found, answers, name, question=question, confirmed=confirmed, subject=subject, key=key, json=as_json)
    elif question is None:
        raise InvalidInputError("give the number of the question, as hardthresh study ask prints it")
    elif values:
        with _asked_back():
            receipt = found.tell(question, assignments(values), name, confirmed=confirmed, subject=subject, key=key)
        print_receipt(receipt, receipt_text(receipt, found), as_json)
    elif asks_people():
        from .interview import interview

        print_lines(receipt_text(interview(found, question, name, subject), found))
    else:
        raise InvalidInputError("give values such as age=61, or --from FILE; in a terminal each is asked for")


def _tell_rows(
    study: Study,
    path: Path,
    who: str,
    *,
    question: int | None,
    confirmed: tuple[str, ...],
    subject: str | None,
    key: str | None,
    json: bool,
) -> None:
    """Tell the rows of a file one after the other, and print the replies, also those before an error."""
    rows = read_answers(path, [*(attribute.name for attribute in study.terms.attributes), study.terms.target.name])
    receipts: list[Receipt] = []
    try:
        for number, row in enumerate(rows, 1):
            told = _question_of(row, question if len(rows) == 1 else None)
            with _asked_back(f"{row.place} (question {told}): ", before=len(receipts)):
                receipts.append(
                    study.tell(
                        told,
                        row.values,
                        who,
                        confirmed=confirmed,
                        subject=subject if row.subject is None else row.subject,
                        key=key if key is None or len(rows) == 1 else f"{key}/{number}",
                    )
                )
    finally:
        if json:
            print_json([receipt.to_dict() for receipt in receipts])
        else:
            print_lines(*(receipt_text(receipt, study) for receipt in receipts))


def correct(
    study: StudyFile,
    question: Number,
    reason: Annotated[str, typer.Option(help="Why, for the audit trail.")],
    values: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help="The right values, as of tell.")
    ] = None,
    confirm: Confirmed = None,
    subject: Annotated[str | None, typer.Option(help="Who or what the example really is.")] = None,
    who: Who = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Correct values, also those that were learned from; the old ones stay in the audit trail.

    The questions that were asked stay as they are, and the coefficients are computed again from the corrected values.
    """
    if not values and subject is None:
        raise InvalidInputError("give the right values, such as age=61, or the right --subject")

    from hardthresh.study import Study

    found = Study.open(study)
    with _asked_back():
        receipt = found.correct(
            question,
            assignments(values or []),
            name_of(who),
            reason=reason,
            confirmed=tuple(names_of(confirm)),
            subject=subject,
            key=key,
        )
    if receipt.learned:
        effect = "the coefficients are computed again"
    elif receipt.needed:
        effect = f"still needed: {', '.join(receipt.needed)}"
    else:
        effect = "the example is not learned from"
    print_receipt(receipt, f"Question {receipt.number} is corrected; {effect}.", as_json)


def _question_of(row: Row, given: int | None) -> int:
    """Return which question a row of a file answers, which the command line may say, too, of a single row."""
    number = given if row.question is None else row.question
    if number is None:
        raise InvalidInputError(f'{row.place}: give the number of the question that it answers as "{QUESTION}"')
    if given not in (None, number):
        raise InvalidInputError(f"{row.place}: it answers question {number}, not {given}")
    return number


@contextmanager
def _asked_back(place: str = "", before: int = 0) -> Iterator[None]:
    """Say in which row of a file a wrong value is, how values that are asked back are confirmed, what was stored."""
    from hardthresh.study import LateAnswer, QuestionBack

    stored = "no value of this command was stored"
    if before:
        stored = f"no value of this row was stored, but those of {plural(before, 'row')} before it: take these rows out"
    try:
        yield
    except QuestionBack as error:
        names = as_option(name for name, *_ in error.doubts)
        raise InvalidInputError(f"{place}{error}; to confirm, add --confirm {names}; {stored}") from error
    except (InvalidInputError, LateAnswer) as error:
        raise InvalidInputError(f"{place}{error}{f'; {stored}' if before else ''}") from error
