"""The charts of rows for each kind of target, with their captions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.arrays import double
from hardthresh.estimators.facts import Facts
from hardthresh.estimators.linear.rows import Rows

from .plots.classes import plot_confusion, plot_precision_recall, plot_roc
from .plots.features import plot_path
from .plots.fit import (
    plot_calibration,
    plot_coverage,
    plot_observed,
    plot_quantiles,
    plot_residuals,
    plot_rootogram,
)
from .plots.survival import plot_baseline_hazard, plot_survival

if TYPE_CHECKING:
    from matplotlib.axes import Axes


OUTPUTS = 4
"""Largest number of outputs, or classes, with charts of their own: fewer than have columns (`Facts.listed_outputs`), as
each has several charts. Arbitrary: more would be pages of them."""
_TIMES = 60
"""Largest number of times at which curves of the model are drawn. Arbitrary: more look the same."""


@dataclass(frozen=True, slots=True)
class RowChart:
    """A chart of rows for the report.

    Attributes
    ----------
    name : str
        Its name in the page.
    draw : callable
        Draws it on axes.
    height : int
        Its height in pixels.
    alt : str
        What it is a chart of, for those who do not see it.
    caption : str
        The line below it.
    """

    name: str
    draw: Callable[[Axes], object]
    height: int
    alt: str
    caption: str


def charts_of_rows(estimator: Any, rows: Rows, facts: Facts) -> list[RowChart]:
    """Return the charts that suit the targets of a model.

    Parameters
    ----------
    estimator : fitted estimator
        The model; the `target_kind` of its loss decides.
    rows : Rows
        The rows to draw.
    facts : Facts
        The facts about the model, such as its classes.
    """
    loss = estimator._loss
    if loss.target_kind == "times":
        return _times(estimator, rows)
    charts = _CHARTS.get(loss.target_kind)
    if rows.predicted.ndim != 1:
        charts = _several_classes if loss.classifies else _several_outputs
    return [] if charts is None else charts(loss, rows, facts)


def charts_of_calibration(estimator: Any, facts: Facts) -> list[RowChart]:
    """Return the charts of the calibration of held-out predictions: one, or one for each output or class."""
    cv = facts.cross_validation
    if cv is None or not cv.held_out:
        return []
    return [
        RowChart(
            "calibration" if len(cv.calibrations) == 1 else f"calibration-{c}",
            partial(plot_calibration, estimator, output=c),
            330,
            f"Chart of the mean target of held-out rows against their mean prediction, in {len(own.bins)} bins; "
            "calibrated predictions are on the diagonal.",
            "Held-out rows in bins by their prediction. On the dashed diagonal what is predicted is what is observed.",
        )
        for c, own in enumerate(cv.calibrations[:OUTPUTS])
        if len(own.bins) > 1
    ]


def charts_of_paths(estimator: Any, facts: Facts) -> list[RowChart]:
    """Return the charts of the coefficients of each output, or class, over k; none of a model of one."""
    return [
        RowChart(
            f"path-{c}",
            partial(plot_path, estimator, output=c),
            340,
            f"Line chart of the coefficients for {name} per {facts.per} against k, the number of {facts.unit}s.",
            f"The coefficients for {name} alone, with their signs.",
        )
        for c, name in enumerate(facts.outputs[:OUTPUTS])
    ]


def _numbers(loss: Any, rows: Rows, facts: Facts) -> list[RowChart]:
    predicted, weight = rows.predicted, rows.weight
    return [
        RowChart(
            "residuals",
            lambda ax: plot_residuals(rows.y, predicted, ax, sample_weight=weight),
            300,
            "Chart of the residuals of the rows against their predictions, with the mean of tenths of the rows.",
            "Where the line leaves zero, predictions are too low (above) or too high (below).",
        ),
        RowChart(
            "quantiles",
            lambda ax: plot_quantiles(rows.y - predicted, ax, sample_weight=weight),
            300,
            "Chart of the quantiles of the residuals against those of the normal distribution, which are a line.",
            "Ends that leave the line: more, or larger, errors than a normal distribution has.",
        ),
    ]


def _amounts(loss: Any, rows: Rows, facts: Facts) -> list[RowChart]:
    predicted = rows.predicted
    return [
        RowChart(
            "observed",
            lambda ax: plot_observed(rows.y, predicted, ax, sample_weight=rows.weight),
            330,
            "Chart of the mean target against the mean prediction in tenths of the rows; where equal, on the diagonal.",
            "Tenths of the rows by their prediction. Below the diagonal: predicted too high.",
        )
    ]


def _quantiles(loss: Any, rows: Rows, facts: Facts) -> list[RowChart]:
    return [
        RowChart(
            "coverage",
            lambda ax: plot_coverage(rows.y, rows.predicted, ax, quantile=loss.quantile, sample_weight=rows.weight),
            310,
            "Chart of the share of targets at or below the prediction in tenths of the rows; the aim is dashed.",
            f"Tenths of the rows by their prediction. Aim: {loss.quantile} of the targets are at or below it.",
        )
    ]


def _counts(loss: Any, rows: Rows, facts: Facts) -> list[RowChart]:
    if np.any(rows.y != np.round(rows.y)):
        return _amounts(loss, rows, facts)
    predicted = rows.predicted
    dispersion = 1.0 / loss.theta if hasattr(loss, "theta") else 0.0
    rootogram = RowChart(
        "rootogram",
        lambda ax: plot_rootogram(rows.y, predicted, ax, dispersion=dispersion, sample_weight=rows.weight),
        320,
        "Bars of the numbers of rows with each count, hanging from the numbers that the model expects.",
        "Bars hang from what the model expects. Below zero: the count occurs more often than that; above: less often.",
    )
    return [rootogram, *_amounts(loss, rows, facts)]


def _classes(loss: Any, rows: Rows, facts: Facts) -> list[RowChart]:
    y, names = (rows.y > 0).astype(np.int64), np.array(facts.classes)
    found = (rows.predicted > (0.5 if loss.multiplies else 0.0)).astype(np.int64)
    last, first = facts.classes[-1], facts.classes[0]
    value = f"the probability of {last}" if loss.multiplies else f"the decision value, which is positive for {last}"
    confusion = RowChart(
        "confusion",
        lambda ax: plot_confusion(names[y], names[found], ax, classes=names, sample_weight=rows.weight),
        300,
        f"Table of the numbers of rows of {first} and {last} that are predicted to be of each of them.",
        _caption_of_confusion(rows),
    )
    if len(np.unique(y)) != 2:
        return [confusion]
    return [
        RowChart(
            "roc",
            lambda ax: plot_roc(y, rows.predicted, ax, sample_weight=rows.weight),
            330,
            f"ROC curve: the share of {last} that is found against the share of {first} that is taken for it.",
            f"Each point is a threshold of {value}. On the dashed line: no better than chance.",
        ),
        RowChart(
            "precision",
            lambda ax: plot_precision_recall(y, rows.predicted, ax, sample_weight=rows.weight),
            330,
            f"Precision-recall curve: the share of {last} among rows above a threshold against the share of it found.",
            f"Each point is a threshold of {value}. Dashed: the share of {last} among all rows.",
        ),
        confusion,
    ]


def _caption_of_confusion(rows: Rows) -> str:
    counted = "Rows" if np.allclose(rows.weight, 1.0) else "Weighted rows"
    return f"{counted} of each class, by the class that the model predicts."


def _times(estimator: Any, rows: Rows) -> list[RowChart]:
    """Return the survival of groups of risk beside the curves of the model, and its baseline hazard."""
    time, event = rows.y[:, 0], rows.y[:, 1] > 0
    times, hazard = estimator.event_times_, estimator.baseline_cumulative_hazard_
    one, curves, some = not isinstance(times, dict), None, None
    own = one and not rows.held_out  # the predictions of folds do not go with the hazard of the final model
    charts = []
    if one:
        times, hazard = double(times), double(hazard)
        places = np.unique(np.linspace(0, len(times) - 1, min(_TIMES, len(times))).astype(int))
        centre = float(double(estimator.means_) @ double(estimator.coef_))
        if own:
            curves, some = np.exp(-np.exp(rows.predicted - centre)[:, None] * hazard[places]), times[places]
        charts.append(
            RowChart(
                "hazard",
                lambda ax: plot_baseline_hazard(times, hazard, ax),
                280,
                "Chart of the cumulative hazard of a row with mean features over time.",
                "The cumulative hazard of a row with mean features: where it is steeper, events are more frequent.",
            )
        )
    survival = RowChart(
        "survival",
        lambda ax: plot_survival(
            time, event, rows.predicted, ax, times=some, survival=curves, sample_weight=rows.weight
        ),
        340,
        "Chart of the share of rows without the event over time, in three groups of rows by their predicted risk.",
        "Thirds of the rows by their predicted risk. Steps: observed (Kaplan-Meier)."
        + (" Dashed: the mean curve of the model." if own else "")
        + ("" if one else " Rows of all strata together, although their hazards differ."),
    )
    return [survival, *charts]


def _several_outputs(loss: Any, rows: Rows, facts: Facts) -> list[RowChart]:
    """Return the residuals, and the mean targets by prediction, of each output."""
    charts = []
    for c, name in enumerate(facts.outputs[:OUTPUTS]):
        own = replace(rows, y=rows.y[:, c], predicted=rows.predicted[:, c])
        means = [] if rows.held_out else _amounts(loss, own, facts)  # those of held-out rows are the calibration
        for one in (_numbers(loss, own, facts)[0], *means):
            caption = f"{name[:1].upper()}{name[1:]}. {one.caption}"
            charts.append(replace(one, name=f"{one.name}-{c}", alt=f"{name}: {one.alt}", caption=caption))
    return charts


def _several_classes(loss: Any, rows: Rows, facts: Facts) -> list[RowChart]:
    names, y = np.array(facts.classes), rows.y.astype(np.int64)
    found = np.argmax(rows.predicted, axis=1)
    return [
        RowChart(
            "confusion",
            lambda ax: plot_confusion(names[y], names[found], ax, classes=names, sample_weight=rows.weight),
            max(300, 80 + 60 * len(names)),
            f"Table of the numbers of rows of each of {len(names)} classes that are predicted to be of each of them.",
            _caption_of_confusion(rows),
        )
    ]


_CHARTS: dict[str, Callable[[Any, Rows, Facts], list[RowChart]]] = {
    "numbers": _numbers,
    "amounts": _amounts,
    "counts": _counts,
    "quantiles": _quantiles,
    "classes": _classes,
}
