"""``hardthresh study status``: budget, examples, open questions, errors, the choice of attributes, drift."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardthresh.core.errors import plural
from hardthresh.core.printed import PrintedTable, one_line

from .options import AsJson, StudyFile
from .printing import print_json, print_lines, when

if TYPE_CHECKING:
    from hardthresh.study import Status, Study


def status(study: StudyFile, as_json: AsJson = False) -> None:
    """Show the budget, who holds what, the error so far, the chosen attributes, and drift.

    Each example is predicted before it is learned from, so the error needs no test set.
    """
    from hardthresh.study import Study
    from hardthresh.study.summaries import latest_progress, status_summary

    with Study.open(study).snapshot() as found:
        now = found.status()
        if as_json:
            print_json(status_summary(found) | {"questions": [question.to_dict() for question in now.open]})
            return
        reached, shift = latest_progress(found)
        print_lines("\n\n".join((_head(found, now), *_open(now), str(reached), str(shift))))


def _head(study: Study, now: Status) -> str:
    """Return what was spent and asked, beside the limits."""
    terms = study.terms
    total = "no limit" if terms.total_budget is None else terms.money(terms.total_budget)
    left = "no limit" if now.left is None else terms.money(now.left)
    most = "" if terms.examples is None else f" of at most {terms.examples:,}"
    left_out = f", {now.left_out:,} left out" if now.left_out else ""
    waiting = ""
    last = now.answered - study.learned().questions.size
    if last and (now.closed or now.ended):
        waiting = f" ({last:,} in the last round, which is incomplete: the model uses them)"
    elif now.waiting:
        waits = "waits" if len(now.waiting) == 1 else "wait"
        waiting = f" ({len(now.waiting):,} {waits} for the rest of the round, {plural(now.to_come, 'answer')} to come)"
    state = "closed" if now.closed else "open"
    return "\n".join(
        [
            f"{one_line(terms.title) or study.path}: {state}, {plural(now.events, 'event')}",
            f"Spent {terms.money(now.spent)}, reserved for open questions {terms.money(now.reserved)}, left {left} "
            f"(limit {total}; {terms.money(terms.budget_per_example)} for an example)",
            f"Asked about {plural(now.asked, 'example')}{most}; {now.answered:,} answered{waiting}{left_out}",
            *([f"No more questions: {now.ended}."] if now.ended else []),
        ]
    )


def _open(now: Status) -> list[str]:
    """Return the table of open questions, if there are any."""
    if not now.open:
        return []
    rows = [
        (
            str(question.number),
            one_line(question.holder or "nobody"),
            when(question.since),
            one_line(question.subject or ""),
            f"{len(question.needed)} of {1 + sum(len(attributes) for _, attributes in question.panels)}",
        )
        for question in now.open
    ]
    header = ("question", "held by", "since", "subject", "still needed")
    return [
        PrintedTable([plural(len(rows), "open question")], header, rows, left=("held by", "since", "subject")).to_text()
    ]
