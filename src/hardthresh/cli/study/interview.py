"""A question that is answered in a terminal, value by value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.printed import one_line

from .printing import allowed, units

if TYPE_CHECKING:
    from hardthresh.study import Attribute, Receipt, Study


def interview(study: Study, number: int, who: str, subject: str | None) -> Receipt:
    """Ask for what a question still needs, and tell it panel by panel, and at an interruption what was typed so far.

    Each value is checked when it is typed: one that makes no sense is asked for again, and one outside its range has to
    be confirmed. Nothing typed leaves a value for later.

    Raises
    ------
    LateAnswer
        If the question is not with this person.
    InvalidInputError
        If it was never asked, or nothing at all is typed.
    """
    question = study.held_question(number, who)
    typer.echo(
        f'Question {number}. Type each value; "missing" if it could not be measured; nothing to leave it for later.'
    )

    def told(values: dict[str, str]) -> Receipt:
        """Tell values, each of which is within its range, or was confirmed when it was typed."""
        outside = [name for name, text in values.items() if _outside(study, name, text)]
        return study.tell(number, values, who, confirmed=outside, subject=subject)

    receipt, stored = None, list[str]()
    with _reported(stored):
        for panel, attributes in (*question.panels, ("", (study.terms.target,))):
            needed = [attribute for attribute in attributes if attribute.name in question.needed]
            if panel and needed:
                typer.echo(f"{panel} ({study.terms.money(study.terms.panels[panel])})")
            values: dict[str, str] = {}
            try:
                for attribute in needed:
                    if text := _typed(attribute):
                        values[attribute.name] = text
            finally:  # also at Ctrl-C
                if values:
                    receipt = told(values)
                    stored.extend(values)
    if receipt is None:
        raise InvalidInputError(f"nothing was typed; question {number} stays with {who}")
    return receipt


@contextmanager
def _reported(stored: list[str]) -> Iterator[None]:
    """Say which values were stored before an interruption, or an error."""
    try:
        yield
    except BaseException:
        if stored:
            typer.echo(f"\nstored: {', '.join(stored)}")
        raise


def _outside(study: Study, name: str, text: str) -> bool:
    attribute = study.terms.attribute(name)
    return attribute.outside(attribute.parse(text))


def _typed(attribute: Attribute) -> str:
    """Return what is typed, which makes sense and is confirmed if it is outside of its range; "" is left for later."""
    hints = "; ".join(filter(None, (units(attribute), allowed(attribute), one_line(attribute.help))))
    while True:
        text: str = typer.prompt(f"  {attribute.name} ({hints})", default="", show_default=False).strip()
        if not text:
            return ""
        try:
            value = attribute.parse(text)
        except InvalidInputError as error:
            typer.echo(f"    {error}")
            continue
        if not attribute.outside(value) or typer.confirm(
            f"    {attribute.format(value)} is outside of {allowed(attribute)}: is it right?"
        ):
            return text
