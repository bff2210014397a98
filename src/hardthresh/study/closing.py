"""What a study leaves behind: its final model, and a page about it."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from hardthresh import __version__
from hardthresh.core.errors import InvalidInputError, plural
from hardthresh.core.files import write_file
from hardthresh.core.numbers import number, percent, signed
from hardthresh.core.printed import one_line
from hardthresh.report.page import chart, check_installed, environment
from hardthresh.report.plots.study import plot_progress
from hardthresh.storage import save

from .attributes import Attribute
from .drift import Drift, drift
from .log import Event
from .outcomes import Record, records_of
from .predicting import NO_MODEL, Coefficient, Predictor, predictor
from .progress import Progress, progress
from .records import Learned
from .study import Study
from .terms import Terms

_LISTED = 50
"""Rows of a list of corrections, or of examples that were not learned from; arbitrary: the audit trail has all."""


def save_model(study: Study, path: str | PathLike[str]) -> None:
    """Save the model as it stands, with the terms of the study as a note, for `hardthresh.load`.

    Raises
    ------
    InvalidInputError
        If no example is learned from.
    StorageError
        If the name of the file does not end in .json.
    OSError
        If it cannot be written.
    """
    if not study.status().answered:
        raise InvalidInputError(f"{NO_MODEL} to write to {path}")
    save(study.model(), path, notes={"terms": study.terms.text})


def write_study(study: Study, path: str | PathLike[str], *, date: datetime.date | None = None) -> Path:
    """Write a self-contained HTML page about a study, open or closed, without scripts or external resources.

    It shows what was spent, the error of predictions that were made before their examples were learned from, the model
    in the units of the terms with what a prediction costs, how often each attribute was asked for, measured and
    missing, drift, corrections, examples that were not learned from, who told how many values, and what may be
    concluded and what not. Equal input gives an equal file.

    Parameters
    ----------
    study : Study
        The study.
    path : path-like
        The .html file to write; a file that is there is replaced, in one step.
    date : datetime.date, optional
        The date of the page. Default: today.

    Returns
    -------
    pathlib.Path
        Path of the page.

    Raises
    ------
    MissingDependencyError
        If jinja2 or matplotlib is not installed.
    OSError
        If the file cannot be written; its ``filename`` is `path`.
    """
    check_installed()
    with study.snapshot() as now:
        terms, learned, status, events = now.terms, now.learned(), now.status(), list(now.events())
        model = predictor(now) if learned.questions.size else None
    records = records_of(events, terms)
    reached, shift = progress(learned), drift(learned)
    text: str = (
        environment()
        .get_template("study.html.jinja")
        .render(
            title=one_line(terms.title) or f"Study of {terms.target.name}",
            terms=terms,
            status=status,
            progress=reached,
            model=model,
            coefficients=[] if model is None else _coefficients(model, learned, terms),
            purchases={} if model is None else _purchases(model, terms),
            chart=chart("progress", lambda ax: plot_progress(reached, ax), height=330) if model else None,
            attributes=_attributes(terms, records, reached, model),
            drift=str(shift).splitlines(),
            conclusions=conclusions(terms, learned, records, reached, shift),
            corrections=_changes(event for event in events if event.action == "corrected"),
            left_out=[record for record in records if record.outcome(status.waiting) in _NOT_LEARNED],
            states={record.number: record.outcome(status.waiting) for record in records},
            listed=_LISTED,
            people=_people(records, events),
            asked_back=sum(event.action == "doubted" for event in events),
            last=events[-1] if events else None,
            began=events[0] if events else None,
            version=__version__,
            plural=plural,
            one_line=one_line,
            date=(datetime.date.today() if date is None else date).isoformat(),
        )
    )
    write_file(path, text.encode(errors="replace"))
    return Path(path)


_NOT_LEARNED = ("dropped", "skipped", "withdrawn")


def _coefficients(model: Predictor, learned: Learned, terms: Terms) -> list[tuple[str, str, str]]:
    """Return each column with its coefficient and the effect of a standard deviation, the largest effect first."""
    place = {name: number for number, name in enumerate(learned.columns)}
    outcome = "log odds" if terms.is_class else terms.target.unit
    effects: dict[Coefficient, float | None] = {}
    for one in model.coefficients:
        seen = learned.values[:, place[one.column]]
        seen = seen[np.isfinite(seen)]  # none where all examples with this column were withdrawn
        effects[one] = one.value * float(np.std(seen)) if seen.size else None

    def effect(one: Coefficient) -> str:
        value = effects[one]
        return "unknown" if value is None else f"{signed(value)} {outcome}".rstrip()

    return [
        (one.column, f"{signed(one.value)} {one.per(terms)}".rstrip(), effect(one))
        for one in sorted(model.coefficients, key=lambda one: -abs(effects[one] or 0.0))
    ]


def _purchases(model: Predictor, terms: Terms) -> dict[str, float]:
    """Return what has to be bought for a prediction, panels and single attributes, with the prices."""
    return {one.panel or one.name: terms.panels.get(one.panel, one.price) for one in model.attributes}


@dataclass(frozen=True, slots=True)
class AttributeCount:
    """How often an attribute was asked for, and what came of it.

    Attributes
    ----------
    attribute : Attribute
        The attribute.
    asked, measured, missing : int
        How often it was asked for, measured, and could not be measured.
    share : float
        The share of the latest batches in which one of its columns was chosen.
    needed : bool
        Whether the model needs it.
    """

    attribute: Attribute
    asked: int
    measured: int
    missing: int
    share: float
    needed: bool


def _attributes(
    terms: Terms, records: list[Record], reached: Progress, model: Predictor | None
) -> list[AttributeCount]:
    """Return the counts of each attribute, in the order of the terms."""
    shares = {column.name: column.share for column in reached.chosen}
    asked = [{attribute.name for attribute in record.attributes} for record in records]
    return [
        AttributeCount(
            attribute,
            sum(attribute.name in names for names in asked),
            sum(record.values.get(attribute.name) is not None for record in records),
            sum(attribute.name in record.lacking for record in records),
            max(shares.get(column, 0.0) for column in attribute.columns),
            model is not None and attribute in model.attributes,
        )
        for attribute in terms.attributes
    ]


@dataclass(frozen=True, slots=True)
class Change:
    """A correction: which question, what, when, by whom, and why."""

    question: int
    names: str
    at: str
    who: str
    reason: str


def _changes(events: Iterable[Event]) -> list[Change]:
    return [
        Change(
            event.question or 0,
            ", ".join(event.body["values"]),
            event.at[:10],
            event.who,
            one_line(event.body.get("reason", "")),
        )
        for event in events
    ]


def _people(records: list[Record], events: list[Event]) -> list[tuple[str, int, int, int]]:
    """Return for each person the questions they told values of, the values, and all of their events."""
    names = sorted({event.who for event in events})
    return [
        (
            who,
            sum(who in record.told for record in records),
            sum(record.told.get(who, 0) for record in records),
            sum(event.who == who for event in events),
        )
        for who in names
    ]


@dataclass(frozen=True, slots=True)
class Conclusions:
    """Sentences about what a study shows, and what it does not."""

    may: tuple[str, ...]
    may_not: tuple[str, ...]


def conclusions(terms: Terms, learned: Learned, records: list[Record], reached: Progress, shift: Drift) -> Conclusions:
    """Return what may be concluded from a study, and what not, in sentences."""
    if not learned.questions.size:
        return Conclusions((), ("Nothing was learned from a complete round, so nothing can be concluded.",))
    error = reached.errors[0]
    how = (
        f"on the latest {plural(reached.window, 'example')}, each predicted before it was learned from, the "
        f"{error.name} was {error.model} ({percent(reached.level)} interval); without attributes it was "
        f"{number(error.null.value)}"
    )
    may, may_not = [], []
    if error.gain.low > 0:
        may.append(f"The model predicts better than no model: {how}.")
    else:
        may_not.append(f"That the model predicts better than no model: {how}, and the difference may be chance.")
    if reached.settled:
        may.append(reached.choice)
    else:
        may_not.append(f"That these are the right attributes. {reached.choice} More examples may change it.")
    if shift.found:
        names = ", ".join(test.name for test in shift.found)
        may_not.append(f"That the model suits later examples: early and late ones differ ({names}).")
    elif shift.tests:
        may.append(
            "No drift was found between early and late examples at this look; below it says what would be found."
        )
    dropped = sum(record.outcome(()) == "dropped" for record in records)
    if dropped:
        were = "was" if dropped == 1 else "were"
        may_not.append(
            f"Anything about examples in which an attribute could not be measured: {dropped:,} {were} dropped. If the "
            "reason has to do with the target, the model describes the others only."
        )
    may_not += [
        "That an attribute which is not in the model is irrelevant: one with the same information may be in its place.",
        "That an attribute causes anything: the model predicts.",
        "Confidence intervals of the coefficients: the same examples chose the attributes, so that these are often too "
        "large.",
        "An interval or a test of drift, if the study was closed because of it: both hold at one look.",
        "How well it predicts at another place or time, or with other devices.",
    ]
    return Conclusions(tuple(may), tuple(may_not))
