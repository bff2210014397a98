"""Print a fitted model in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hardthresh.core.errors import HardThreshError
from hardthresh.core.progress import format_duration
from hardthresh.report.facts import CrossValidation, Facts, Feature, read
from hardthresh.report.numbers import mean_and_error, percent, signed

ROWS = 40  # at most, of the curve; arbitrary: it fits one screen
RIVALS = 5  # features, at most, that are listed as chosen only by folds
BAR = 12  # the longest bar of the table, in characters

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
        A sparse linear or logistic regression.
    notes : mapping
        The notes that `hardthresh.cli.learning.learn` keeps with a model; may be empty.
    """
    facts = read(model)
    cv = facts.cross_validation
    console.print(_headline(facts, notes.get("data", {})))
    console.print()
    console.print(_table(facts, float(np.ravel(model.intercept_)[0])))
    console.print(_reading(facts), style="dim", markup=False)
    if facts.separated:
        console.print(_SEPARATED)
    if cv is not None:
        console.print(_doubts(model, facts, cv), style="dim", markup=False)
    console.print()
    if cv is not None:
        console.print("How many features?", style="bold")
        for line in curve(cv, width=min(console.width, 100)):
            console.print(line, no_wrap=True, overflow="crop")
        console.print(_advice(cv), style="dim")
        console.print()
    console.print("Certificate", style="bold")
    console.print(Padding(Text(_certificate(model)), (0, 0, 0, 2)))
    console.print()
    console.print(_convergence(model, notes))


def _headline(facts: Facts, data: Mapping[str, Any]) -> Text:
    explained = f" explain {data['target']}" if "target" in data else ""
    versus = f": {facts.classes[1]} against {facts.classes[0]}" if facts.classes else ""
    line = Text(f"{len(facts.features)} of {facts.n_features:,} features{explained}{versus}", style="bold")
    if "n" in data:
        counts = ", ".join(f"{label}: {count:,}" for label, count in data.get("classes", {}).items())
        line.append(f"\n{data['source']}: {data['n']:,} rows" + (f" ({counts})" if counts else ""), "not bold dim")
    return line


def _table(facts: Facts, intercept: float) -> Table:
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
    table.add_row("(intercept)", signed(intercept), style="dim")
    return table


def _votes(feature: Feature, cv: CrossValidation | None) -> list[str]:
    """Return how often the folds choose a feature, if there are folds."""
    if cv is None:
        return []
    return ["always" if feature.requested else percent(feature.share or 0.0)]


def _reading(facts: Facts) -> str:
    logarithm = f"the log-odds of {facts.classes[1]}" if facts.classes else f"the logarithm of {facts.multiplies}"
    what = logarithm if facts.multiplies else "the target"
    counted = " Features are counted from 0." if facts.numbered else ""
    return (
        f"A coefficient is the change of {what} when the feature grows by one, or by one standard deviation.{counted}"
    )


def _doubts(model: Any, facts: Facts, cv: CrossValidation) -> str:
    """Return an explanation of the column of folds, and the features that only folds choose."""
    shares = np.asarray(model.selection_frequency_)
    others = [j for j in np.argsort(-shares, kind="stable")[: len(facts.features) + RIVALS] if j not in model.support_]
    rivals = [f"{facts.names[j]} ({percent(float(shares[j]))})" for j in others[:RIVALS] if shares[j] > 0]
    also = f" They also choose {', '.join(rivals)}." if rivals else " They choose no other feature."
    return f"In folds: share of the {cv.folds.shape[1]} fits, each without one fold, that choose the feature.{also}"


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
    yield Text(f"  {'k':>4}  {title}", style="dim")
    low, high = float((cv.mean - cv.error).min()), float((cv.mean + cv.error).max())
    cells = max(width - 44, 16)

    def cell(score: float) -> int:
        return round((cells - 1) * (score - low) / (high - low)) if high > low else 0

    last = len(cv.k) - 1
    shown = {cv.chosen, cv.best, cv.sparsest, *np.linspace(0, last, min(last + 1, ROWS)).round().astype(int).tolist()}
    for row in sorted(shown):
        mean, error = float(cv.mean[row]), float(cv.error[row])
        start, stop = cell(mean - error), cell(mean + error) + 1
        bar = [" "] * cells
        bar[start:stop] = "─" * (stop - start)
        bar[cell(cv.threshold)] = "┊" if bar[cell(cv.threshold)] == " " else "┼"
        bar[cell(mean)] = "●"
        name = "chosen" if row == cv.chosen else "best" if row == cv.best else "sparsest" if row == cv.sparsest else ""
        value, _, margin = mean_and_error(mean, error).partition(" ± ")
        line = f"  {cv.k[row]:>4}  {value:>8} ± {margin:<8} {''.join(bar)} {name}"
        yield Text(line, style="bold" if row == cv.chosen else "")


def _advice(cv: CrossValidation) -> str:
    few, best = cv.k[cv.sparsest], cv.k[cv.best]
    if best == min(cv.k):
        return f"{best} is best; no smaller number was compared."
    if few == best:
        return f"{best} is best; fewer features are worse by more than one standard error (the line ┊)."
    return f"{best} is best; {few} is within one standard error of it (the line ┊)."


def _certificate(model: Any) -> str:
    try:
        return str(model.certificate())
    except HardThreshError as error:
        return f"None: {error}."


def _convergence(model: Any, notes: Mapping[str, Any]) -> Text:
    seconds = f" ({format_duration(notes['seconds'])} in total)" if "seconds" in notes else ""
    done, style = ("Converged", "") if model.converged_ else ("NOT converged", "bold red")
    return Text(f"{done} after {model.n_iter_} iterations: {model.stop_reason_}{seconds}.", style=style)
