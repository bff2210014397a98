"""Questions and replies as text, and as JSON."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardthresh.core.errors import plural
from hardthresh.core.printed import PrintedTable, one_line

from ..terminal import write_stdout
from .options import quoted

if TYPE_CHECKING:
    from hardthresh.study import Attribute, Question, Receipt, Study, Terms


def print_json(found: Any) -> None:
    """Print plain types as JSON."""
    write_stdout(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def print_lines(*lines: str) -> None:
    """Print lines; characters that control a terminal are left out of what people typed."""
    write_stdout("".join(f"{line}\n" for line in lines))


def allowed(attribute: Attribute) -> str:
    """Return the values that an attribute may have: its levels, or the range that is not asked back."""
    if attribute.levels:
        return ", ".join(attribute.levels)
    if attribute.kind == "yes/no":
        return "yes, no"
    if attribute.range is None:
        return "any whole number" if attribute.kind == "integer" else "any number"
    low, high = attribute.range
    return f"{low:g} to {high:g}"


def units(attribute: Attribute) -> str:
    """Return the units that may be typed, the one that is assumed first."""
    return " or ".join(filter(None, (attribute.unit, *attribute.units)))


def question_text(question: Question, terms: Terms, file: Path) -> str:
    """Return what is to be measured, in panels, and the command that answers."""
    needed = set(question.needed)
    rows = []
    for panel, attributes in question.panels:
        for place, attribute in enumerate(attributes):
            shared = f"{panel} ({terms.money(terms.panels[panel])})" if panel else ""
            label = shared if place == 0 else ""
            price = "" if panel else terms.money(attribute.price)
            rows.append(_row(attribute, question, needed, label or price))
    rows.append(_row(question.target, question, needed, "the target"))
    subject = f" about {one_line(question.subject)}" if question.subject else ""
    holder = f", held by {one_line(question.holder)}" if question.holder else ""
    words = " ".join(f"{shlex.quote(name)}=..." for name in question.needed[:2])
    more = " ..." if len(needed) > 2 else ""
    return PrintedTable(
        head=[
            f"Question {question.number}{subject}{holder} since {when(question.since)}; it costs at most "
            f"{terms.money(question.price)}."
        ],
        header=("", "measure", "unit", "range", "told", "note"),
        rows=rows,
        notes=["", f"Answer: hardthresh study tell {quoted(file)} {question.number} {words}{more}"],
        left=("", "measure", "unit", "range", "told", "note"),
    ).to_text()


def _row(attribute: Attribute, question: Question, needed: set[str], label: str) -> tuple[str, ...]:
    if attribute.name in needed:
        told = ""
    else:
        value = question.values.get(attribute.name)
        told = "missing" if value is None else attribute.format(value)
    return label, attribute.name, units(attribute), allowed(attribute), told, one_line(attribute.help or "")


def receipt_text(receipt: Receipt, study: Study) -> str:
    """Return what became of an answer."""
    terms = study.terms
    if not receipt.complete:
        return f"Question {receipt.number}: stored; still needed: {', '.join(receipt.needed)}."
    whole = f"Question {receipt.number} is complete, at a cost of {terms.money(receipt.cost)}"
    if not receipt.learned:
        return f"{whole}; it is not learned from, as a value is missing."
    status = study.status()
    if receipt.number in status.waiting and status.ended:
        return f"{whole}; the model uses it, although its round stays incomplete: {status.ended}."
    if receipt.number in status.waiting:
        return f"{whole}; it will be learned from with its round ({plural(status.to_come, 'answer')} to come)."
    return f"{whole}; it is learned from."


def print_receipt(receipt: Receipt, text: str, as_json: bool) -> None:
    """Print what became of a request: a sentence, or the reply as JSON."""
    if as_json:
        print_json(receipt.to_dict())
    else:
        print_lines(text)


def when(since: str) -> str:
    """Return a time of the log without seconds.

    Examples
    --------
    >>> when("2026-11-28T20:03:11.123456+00:00")
    '2026-11-28 20:03 UTC'
    """
    return f"{since[:10]} {since[11:16]} UTC"
