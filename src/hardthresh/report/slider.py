"""The models of a path, one for each position of the slider of the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hardthresh.core.errors import plural
from hardthresh.core.numbers import mean_and_error, number, percent, signed
from hardthresh.estimators.facts import Facts
from hardthresh.estimators.linear.rows import PathRows

_LISTED = 12
"""Largest number of features that are listed for each model, those of the largest effects. Arbitrary: with 30
models the page stays below half a megabyte."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A feature of a model with the length of its bar, in per cent of the longest one of all models."""

    name: str
    effect: str
    length: int
    negative: bool
    new: bool


@dataclass(frozen=True, slots=True)
class Position:
    """One model of a path.

    Attributes
    ----------
    says : str
        Its number of features and its score, in words.
    chosen : bool
        Whether it is the chosen one.
    features : tuple of Bar
        The features of the largest effects.
    more : int
        The number of its other features.
    left : tuple of str
        The features that the model before has and this one has not.
    rows : tuple of (str, str, str)
        Some rows: which one, its target and the prediction of this model.
    """

    says: str
    chosen: bool
    features: tuple[Bar, ...]
    more: int
    left: tuple[str, ...]
    rows: tuple[tuple[str, str, str], ...]


def positions(facts: Facts, loss: Any, path_rows: PathRows | None) -> list[Position]:
    """Return the models of a path in the order of their sizes; none if there is no path.

    Parameters
    ----------
    facts : Facts
        The facts about the fitted estimator.
    loss : Loss
        Its loss, which says what predictions are.
    path_rows : PathRows or None
        Rows with the predictions of all models, if they are known.
    """
    path = facts.path
    if path is None:
        return []
    longest = float(np.abs(path.effects).max(initial=0.0)) or 1.0
    before: set[int] = set()
    found = []
    for place, effects in enumerate(path.effects):
        features = np.flatnonzero(effects)
        order = features[np.argsort(-np.abs(effects[features]), kind="stable")].tolist()
        bars = tuple(
            Bar(
                name=facts.names[j],
                effect=(number if facts.outputs else signed)(float(effects[j])),
                length=max(1, round(100 * abs(float(effects[j])) / longest)),
                negative=bool(effects[j] < 0),
                new=place > 0 and j not in before,
            )
            for j in order[:_LISTED]
        )
        left = tuple(facts.names[j] for j in sorted(before - set(order)))
        before = set(order)
        rows = () if path_rows is None else _rows(facts, loss, path_rows, place)
        says = f"{plural(int(path.k[place]), facts.unit)}{_score(facts, place)}"
        found.append(Position(says, place == path.chosen, bars, len(order) - len(bars), left, rows))
    return found


def _score(facts: Facts, place: int) -> str:
    """Return the score of a model, after a colon."""
    cv, path = facts.cross_validation, facts.path
    if cv is not None and path is not None:
        return f": held-out {cv.measure} {mean_and_error(float(path.mean[place]), float(path.error[place]))}"
    return f": {facts.criterion} {number(float(facts.criterion_values[place]))}"


def _rows(facts: Facts, loss: Any, rows: PathRows, place: int) -> tuple[tuple[str, str, str], ...]:
    """Return which rows there are, their targets, and what a model predicts for them, in words."""
    decision = bool(facts.classes) and not loss.multiplies
    return tuple(
        (
            f"{which:,}",
            _time(y) if loss.target_kind == "times" else _target(facts, y),
            _prediction(facts, predicted, decision=decision),
        )
        for which, y, predicted in zip(rows.number.tolist(), rows.y, rows.predicted[place], strict=True)
    )


def _time(y: Any) -> str:
    """Return a time, with a plus if the event has not happened by then."""
    return f"{number(float(y[0]))}{'' if y[1] else ' +'}"


def _target(facts: Facts, y: Any) -> str:
    if facts.classes:
        return facts.classes[max(int(y), 0)]  # a margin has the classes -1 and 1
    return ", ".join(map(number, np.atleast_1d(y).tolist()))


def _prediction(facts: Facts, mean: Any, *, decision: bool) -> str:
    if decision:
        return f"{facts.classes[int(mean > 0)]}: {signed(float(mean))}"
    if facts.classes and np.ndim(mean):
        best = int(np.argmax(mean))
        return f"{facts.classes[best]}: {percent(float(mean[best]))}"
    if facts.classes:
        return f"{facts.classes[-1]}: {percent(float(mean))}"
    return ", ".join(map(number, np.atleast_1d(mean).tolist()))
