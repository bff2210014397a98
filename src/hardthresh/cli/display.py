"""Print a fitted model in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from textwrap import wrap
from typing import Any

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hardthresh.core.errors import HardThreshError, plural
from hardthresh.core.numbers import mean_and_error, number, percent, signed
from hardthresh.core.progress import format_duration
from hardthresh.estimators import words
from hardthresh.estimators.block_posing import MOST_OF_CLASSES
from hardthresh.estimators.choice_facts import CrossValidation
from hardthresh.estimators.facts import Facts, Feature, read

ROWS = 40  # at most, of the curve; arbitrary: it fits one screen
RIVALS = 5  # features, at most, that are listed as chosen only by folds
BAR = 12  # the longest bar of the table, in characters
_BESIDE_BAR = 29  # characters of a line of the curve besides its bar and its name, as `_line` sets them

_SEPARATED = (
    "These features separate the classes perfectly on the training rows, so only the ridge (--alpha) or the end of the "
    "run determines the size of the coefficients: read their signs and their ranking."
)


def print_model(console: Console, model: Any, notes: Mapping[str, Any]) -> None:
    """Print a fitted model.

    Parameters
    ----------
    console : rich.console.Console
        The console to print on.
    model : fitted estimator
        A sparse linear model.
    notes : mapping
        The notes that `hardthresh.cli.learning.learn` keeps with a model; may be empty.
    """
    _print_model(console, model, notes)
    console.print("Certificate", style="bold")
    console.print(Padding(Text(_certificate(model)), (0, 0, 0, 2)))
    console.print()
    console.print(_convergence(model, notes))


def _print_model(console: Console, model: Any, notes: Mapping[str, Any]) -> None:
    """Print the coefficients of a model, and how well it predicts."""
    facts = read(model)
    cv = facts.cross_validation
    console.print(_headline(facts, notes.get("data", {})))
    console.print()
    console.print(_table_of_outputs(facts, model) if facts.outputs else _table(facts, _levels(model)))
    if facts.features:
        console.print(_reading(facts), style="dim", markup=False)
    if facts.separated:
        console.print(_SEPARATED)
    if cv is None:
        if notes.get("scores"):
            console.print(f"\nOn the rows of the fit: {_fit_scores(notes['scores'])}", markup=False)
        if facts.criterion:
            k, number_of = f"k = {facts.budget}", f"the number of {facts.unit}s that {words.chosen_by(facts)}"
            console.print(f"\n{k}, {number_of}", markup=False)
        validated = "leave --criterion out" if facts.criterion else "add --cv 5"
        if facts.outputs and facts.classes and notes.get("read") and facts.n_features > MOST_OF_CLASSES:
            validated = f"folds of more than two classes in blocks are for {MOST_OF_CLASSES:,} columns"
        console.print(f"\nnot validated: {validated}", style="bold", markup=False)
    elif cv.found:
        console.print(_doubts(model, facts, cv), style="dim", markup=False)
    console.print()
    if cv is not None:
        if cv.held_out:
            console.print(_held_out(cv))
            console.print()
        console.print(f"How many {cv.unit}s?", style="bold")
        for line in curve(cv, width=min(console.width, 100)):
            console.print(line, no_wrap=True, overflow="crop")
        console.print(_advice(facts, cv), style="dim")
        console.print()


def _headline(facts: Facts, data: Mapping[str, Any]) -> Text:
    line = Text(words.headline(facts, data.get("target")), style="bold")
    for more in ("; ".join(words.qualifications(facts)), words.nothing_found(facts)):
        line.append(f"\n{more}" if more else "")
    if "n" in data:
        counts = ", ".join(f"{label}: {count:,}" for label, count in data.get("classes", {}).items())
        line.append(f"\n{data['source']}: {data['n']:,} rows" + (f" ({counts})" if counts else ""), "not bold dim")
    return line


def _held_out(cv: CrossValidation) -> Table:
    """Return the table of the scores on held-out rows, beside those of the best constant."""
    table = Table(box=None, header_style="bold", padding=(0, 1))
    table.add_column("Held-out rows")
    table.add_column("this model", justify="right")
    table.add_column("without features", justify="right")
    for score in cv.held_out:
        table.add_row(*words.score_cells(score))
    return table


def _levels(model: Any) -> list[tuple[str, float]]:
    """Return the intercept or the thresholds of a model with their names; a model of hazards has none."""
    if hasattr(model, "thresholds_"):
        between = pairwise(map(str, model.classes_))
        names = [f"({low} | {high})" for low, high in between]
        return list(zip(names, np.asarray(model.thresholds_).tolist(), strict=True))
    return [("(intercept)", float(np.ravel(model.intercept_)[0]))] if hasattr(model, "intercept_") else []


def _fit_scores(scores: Mapping[str, float]) -> str:
    """Return how well a model fits its own rows."""
    words = {"r2": "R²", "d2": "D²"}
    return ", ".join(f"{words.get(name, name)} {value:.3g}" for name, value in scores.items())


def _table(facts: Facts, levels: Sequence[tuple[str, float]]) -> Table:
    """Return the table of features, the largest effect first."""
    table = Table(box=None, header_style="bold", padding=(0, 1))
    table.add_column("feature", overflow="fold")
    table.add_column("coefficient", justify="right")
    table.add_column("per standard deviation", justify="right")
    table.add_column()
    if facts.cross_validation is not None:
        table.add_column("in folds", justify="right")
    largest = max((abs(feature.effect) for feature in facts.features), default=0.0) or 1.0
    for feature in facts.features:
        length = max(1, round(BAR * abs(feature.effect) / largest))
        bar = Text("█" * length, style="red" if feature.effect < 0 else "green")
        numbers = signed(feature.coefficient), signed(feature.effect)
        table.add_row(Text(feature.name), *numbers, bar, *_votes(feature, facts.cross_validation))
    for name, value in levels:
        table.add_row(Text(name), signed(value), style="dim")
    return table


def _table_of_outputs(facts: Facts, model: Any) -> Table:
    """Return the table of the coefficients of several outputs or classes, the largest feature first.

    If more of them than fit on a line, it has the length of the coefficients of each feature.
    """
    table = Table(box=None, header_style="bold", padding=(0, 1))
    table.add_column("feature", overflow="fold")
    for output in facts.listed_outputs or ("size",):
        table.add_column(Text(output), justify="right")
    if facts.cross_validation is not None:
        table.add_column("in folds", justify="right")
    coef = np.asarray(model.coef_)
    for feature in facts.features:
        each = map(signed, coef[:, feature.index].tolist()) if facts.listed_outputs else [number(feature.coefficient)]
        table.add_row(Text(feature.name), *each, *_votes(feature, facts.cross_validation))
    if facts.listed_outputs:
        table.add_row("(intercept)", *map(signed, np.asarray(model.intercept_).tolist()), style="dim")
    return table


def _votes(feature: Feature, cv: CrossValidation | None) -> list[str]:
    """Return how often the folds choose a feature, if there are folds."""
    if cv is None:
        return []
    return ["always" if feature.requested else percent(feature.share or 0.0)]


def _reading(facts: Facts) -> str:
    counted = " Features are counted from 0." if facts.numbered else ""
    if facts.outputs:
        if not facts.listed_outputs:
            what = "classes" if facts.classes else "outputs"
            return f"Size: the length of the coefficients of all {len(facts.outputs)} {what} together.{counted}"
        if facts.classes:
            return (
                f"A positive coefficient makes its class likelier when the feature grows; a row adds up to 0.{counted}"
            )
        return f"A coefficient is the change of its output when the feature grows by one.{counted}"
    two = len(facts.classes) == 2
    logarithm = f"the log-odds of {facts.classes[1]}" if two else f"the logarithm of {facts.multiplies}"
    decision = f"the decision value, which is positive for {facts.classes[1]}," if two else "the target"
    what = logarithm if facts.multiplies else decision
    return (
        f"A coefficient is the change of {what} when the feature grows by one, or by one standard deviation.{counted}"
    )


def _doubts(model: Any, facts: Facts, cv: CrossValidation) -> str:
    """Return an explanation of the column of folds, and the features that only folds choose."""
    shares = np.asarray(model.selection_frequency_)
    others = [j for j in np.argsort(-shares, kind="stable")[: len(facts.features) + RIVALS] if j not in model.support_]
    rivals = [f"{facts.names[j]} ({percent(float(shares[j]))})" for j in others[:RIVALS] if shares[j] > 0]
    fits = "averages of fits" if cv.models else "fits"
    choose = "keep" if cv.models else "choose"  # they are thinned as that of all rows
    also = f" They also {choose} {', '.join(rivals)}." if rivals else f" They {choose} no other feature."
    return f"In folds: share of the {cv.folds.shape[1]} {fits}, each without one fold, that {choose} the feature.{also}"


def curve(cv: CrossValidation, width: int) -> Iterator[Text]:
    """Yield the lines of a chart: the mean score for each k with its standard error, on a common scale.

    Parameters
    ----------
    cv : CrossValidation
        The scores.
    width : int
        Of the lines, in characters.
    """
    better = "lower" if cv.lower_is_better else "higher"
    title = f"held-out {cv.measure} ± standard error ({better} is better)"
    first, *more = wrap(title, max(width - 8, 1))
    yield Text(f"  {'k':>4}  {first}", style="dim")
    for line in more:
        yield Text(f"        {line}", style="dim")
    rows = [_Row(str(k), *scores) for k, *scores in zip(cv.k, cv.mean, cv.error, strict=True)]
    names = {cv.sparsest: "sparsest", cv.best: "best", cv.chosen: cv.role}
    cells = max(width - _BESIDE_BAR - max(map(len, ("no features", *names.values()))), 16)
    scale = _Scale.of(cv, cells)
    last = len(rows) - 1
    shown = {cv.chosen, cv.best, cv.sparsest, *np.linspace(0, last, min(last + 1, ROWS)).round().astype(int).tolist()}
    if cv.null is not None and cv.null_error is not None and cv.k[0] != 0:
        yield Text(_line(_Row("none", cv.null, cv.null_error), "no features", scale))
    for row in sorted(shown):
        name = names.get(row, "no features" if cv.k[row] == 0 and cv.unit != "rank" else "")
        yield Text(_line(rows[row], name, scale), style="bold" if row == cv.chosen and cv.found else "")


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the chart: the name of a candidate, its mean score and the standard error of that."""

    k: str
    mean: float
    error: float


@dataclass(frozen=True, slots=True)
class _Scale:
    """The scores at the first and at the last of the cells of a chart, and the scores that all of its lines mark."""

    low: float
    high: float
    cells: int
    marks: tuple[tuple[float, str], ...]

    @classmethod
    def of(cls, cv: CrossValidation, cells: int) -> _Scale:
        """Return the scale of all candidates with features, and of none unless that is far from several others.

        It would dwarf their differences there.
        """
        used = cv.k > 0 if np.any(cv.k > 0) else cv.k >= 0
        low, high = float((cv.mean - cv.error)[used].min()), float((cv.mean + cv.error)[used].max())
        marks = ((cv.threshold, "┊"),) if cv.null is None else ((cv.threshold, "┊"), (cv.null, "│"))
        span = high - low
        if cv.null is not None and (used.sum() == 1 or low - span <= cv.null <= high + span):
            low, high = min(low, cv.null), max(high, cv.null)
        return cls(low, high, cells, marks)

    def cell(self, score: float) -> int:
        """Return the cell of a score; the last one, or the first, if it is outside."""
        share = (score - self.low) / (self.high - self.low) if self.high > self.low else 0.0
        return round((self.cells - 1) * min(max(share, 0.0), 1.0))


def _line(row: _Row, name: str, scale: _Scale) -> str:
    """Return a line of the chart; a mean outside the scale is an arrow at its end."""
    bar = [" "] * scale.cells
    start, stop = scale.cell(row.mean - row.error), scale.cell(row.mean + row.error) + 1
    bar[start:stop] = "─" * (stop - start)
    for mark, sign in scale.marks:
        if scale.low <= mark <= scale.high:
            bar[scale.cell(mark)] = sign if bar[scale.cell(mark)] == " " else "┼"
    bar[scale.cell(row.mean)] = "▶" if row.mean > scale.high else "◀" if row.mean < scale.low else "●"
    value, _, margin = mean_and_error(row.mean, row.error).partition(" ± ")
    return f"  {row.k:>4}  {value:>8} ± {margin:<8} {''.join(bar)} {name}"


def _advice(facts: Facts, cv: CrossValidation) -> str:
    best = "No other feature could be chosen." if words.all_requested(facts) else _best_number(cv)
    fewest = "with only the features on request" if any(one.requested for one in facts.features) else "without features"
    about = words.extended(cv), words.ridges(cv), words.average_may_lose(cv)
    return " ".join(filter(None, (best, _null_line(cv, fewest), _pooled(cv), *about)))


def _null_line(cv: CrossValidation, fewest: str) -> str:
    """Return where the chart has the score without features, if that was compared."""
    if cv.null is None:
        return ""
    scale = _Scale.of(cv, 1)
    if scale.low <= cv.null <= scale.high:
        return f"The line │ is the score {fewest}."
    return f"The score {fewest} is beyond the chart ({'▶' if cv.null > scale.high else '◀'})."


def _pooled(cv: CrossValidation) -> str:
    """Return why the table of held-out scores and the chart have different numbers, if both are shown."""
    if not cv.held_out:
        return ""
    return "The chart has means over the folds; the table above has the scores of all held-out rows together."


def _best_number(cv: CrossValidation) -> str:
    """Return which number is best, and how it compares with smaller ones."""
    few, best = cv.k[cv.sparsest], cv.k[cv.best]
    if len(cv.k) == 1:
        return f"No other number than {best} was compared."
    if best == 0:
        return f"No number of {cv.unit}s is better than none."
    if not cv.found:
        return f"{best} is best, but not clearly better than none{words.permutation_test(cv)}."
    if few < best:
        return f"{best} is best; {few} is within one standard error of it (the line ┊)."
    if best == min(cv.k):
        return f"{best} is best; no smaller number was compared."
    return f"{best} is best; fewer {cv.unit}s are worse by more than one standard error (the line ┊)."


def _certificate(model: Any) -> str:
    try:
        return str(model.certificate())
    except HardThreshError as error:
        return f"None: {error}."


def _convergence(model: Any, notes: Mapping[str, Any]) -> Text:
    read = f"; {notes['read']}, with those of the score and the certificate" if "read" in notes else ""
    seconds = f" ({format_duration(notes['seconds'])} in total{read})" if "seconds" in notes else ""
    done, style = ("Converged", "") if model.converged_ else ("NOT converged", "bold red")
    return Text(f"{done} after {plural(model.n_iter_, 'iteration')}: {model.stop_reason_}{seconds}.", style=style)
