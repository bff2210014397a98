"""Charts of a fitted model with matplotlib, readable in grey. Global settings are not changed.

The group id of an artist is its description in words and numbers, which the HTML report shows as a tooltip.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.numbers import mean_and_error, number, signed
from hardthresh.estimators.facts import CrossValidation, Facts, cross_validation, learning_curve, progress, read

from .optional import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, MUTED, PALE, GRID = "#1b2430", "#5a6675", "#c8cfd7", "#e4e8ed"
DARK, LIGHT, BAND = "#17568f", "#e08a2e", "#d5e3f0"  # which differ in grey, too
SHOWN = 40
"""Largest number of bars; more are not legible."""
MARKERS = "os^vDPX*"
"""Markers of the strongest lines of a path, which the legend names."""

_AXES = """ax : matplotlib Axes, optional
    The axes to draw on. Default: a new figure of `matplotlib.pyplot`.

Returns
-------
matplotlib Axes

Raises
------
MissingDependencyError
    If matplotlib is not installed."""
_Plot = TypeVar("_Plot", bound=Callable[..., Any])


def _takes_axes(plot: _Plot) -> _Plot:
    """Decorator: replace ``{axes}`` in a docstring by what all charts share: `ax`, Returns, beginning of Raises."""
    plot.__doc__ = cleandoc(plot.__doc__ or "").replace("{axes}", _AXES)
    return plot


@_takes_axes
def plot_coefficients(estimator: Any, ax: Axes | None = None) -> Axes:
    """Draw the chosen features as horizontal bars, the largest effect on top.

    The length of a bar is coefficient x standard deviation of the feature, so that features in different units can be
    compared, or the coefficient itself if the features were not standardised. At most 40 bars are drawn; the title
    gives the number of the others.

    Parameters
    ----------
    estimator : fitted estimator
        A sparse linear or logistic regression, with or without cross-validation.
    {axes}

    Examples
    --------
    >>> import hardthresh as ht
    >>> from hardthresh.datasets import load_colon
    >>> from hardthresh.report import plot_coefficients
    >>> colon = load_colon()
    >>> model = ht.SparseLogisticRegression(n_nonzero_coefs=3).fit(colon.data, colon.target)
    >>> ax = plot_coefficients(model)
    >>> len(ax.patches)
    3
    """
    facts = read(estimator)
    shown = facts.features[:SHOWN]
    ax = _styled_axes(ax, height=coefficients_height(len(facts.features)))
    if not shown:
        return _write_only(ax, "no feature is chosen")
    bars = ax.barh(
        range(len(shown)),
        [feature.effect for feature in shown],
        height=0.62,
        color=[DARK if feature.effect > 0 else LIGHT for feature in shown],
        zorder=2,
    )
    for bar, feature in zip(bars, shown, strict=True):
        bar.set_gid(f"{feature.name}: {signed(feature.effect)} per {facts.per}")
    ax.axvline(0.0, color=INK, linewidth=1.0, zorder=3)
    for row, feature in enumerate(shown):
        side = 1 if feature.effect >= 0 else -1
        ax.annotate(
            signed(feature.effect),
            (feature.effect, row),
            xytext=(4 * side, 0),
            textcoords="offset points",
            ha="left" if side > 0 else "right",
            va="center",
            color=MUTED,
            fontsize="small",
        )
    ax.set_yticks(range(len(shown)), labels=[shortened(feature.name) for feature in shown], parse_math=False)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.margins(x=0.35 if _is_narrow(ax) else 0.16)  # room for the numbers
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(f"{_effect(facts)}{_break(ax)}per {facts.per}", parse_math=False)
    if len(facts.features) > len(shown):
        left_out = len(facts.features) - len(shown)
        ax.set_title(f"the {len(shown)} largest; {left_out} smaller are not drawn", **_TITLE)
    return ax


@_takes_axes
def plot_path(estimator: Any, ax: Axes | None = None) -> Axes:
    """Draw the coefficients of all features against k, with those of the final model in the foreground.

    Parameters
    ----------
    estimator : fitted estimator with cross-validation
        Its coefficients for each k, fitted on all rows, are drawn per standard deviation of the features; per unit if
        they were not standardised.
    {axes}
    InvalidInputError
        If the estimator has no path because its k was given.

    Examples
    --------
    >>> import hardthresh as ht
    >>> from hardthresh.datasets import load_colon
    >>> from hardthresh.report import plot_path
    >>> colon = load_colon()
    >>> model = ht.SparseLogisticRegressionCV(n_nonzero_coefs=range(1, 4), cv=3).fit(colon.data, colon.target)
    >>> plot_path(model).get_xlabel()
    'k, the number of features'
    """
    facts = read(estimator)
    cv = _cross_validated(facts.cross_validation, estimator)
    ax = _styled_axes(ax, height=4.2)
    if not cv.effects.any():
        return _write_only(ax, "no feature is chosen at any k")
    ax.axhline(0.0, color=INK, linewidth=1.0)
    ax.axvline(cv.k[cv.chosen], color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)))
    drawn = np.where(_near_nonzero(cv.effects), cv.effects, np.nan)
    final = [feature.index for feature in facts.features]
    for j in sorted(set(np.flatnonzero(cv.effects.any(axis=0)).tolist()) - set(final)):
        (line,) = ax.plot(cv.k, drawn[:, j], color=PALE, linewidth=0.9, zorder=1)
        line.set_gid(f"{facts.names[j]}: not in the final model")
    markers = dict(zip(final, MARKERS, strict=False))
    for feature in sorted(facts.features, key=lambda feature: -feature.effect):
        j, color = feature.index, DARK if feature.effect > 0 else LIGHT
        (line,) = ax.plot(cv.k, drawn[:, j], color=color, linewidth=1.7, zorder=2)
        line.set_gid(f"{feature.name}: {signed(feature.effect)} in the final model")
        if j in markers:
            line.set(marker=markers[j], markersize=5.5, label=shortened(facts.names[j], 20))
    _number_axis(ax, cv)
    ax.set_ylabel(f"{_effect(facts)}\nper {facts.per}", parse_math=False)
    if markers:
        place = (
            {"loc": "lower left", "bbox_to_anchor": (-0.01, 1.0), "ncols": 2}
            if _is_narrow(ax)
            else {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        )
        for text in ax.legend(**_LEGEND, **place).get_texts():
            text.set_parse_math(False)
    return ax


@_takes_axes
def plot_cv(estimator: Any, ax: Axes | None = None) -> Axes:
    """Draw the cross-validated score against k, the rank or the number of edges, with its band of one standard error.

    Markers show the chosen k and the smallest k whose mean score is within one standard error of the best. Pale lines
    are the folds. The dotted line is the score of the models without features. Where ridges were compared too, each k
    has its best one. If the estimator is the average of several models, the marker shows the best of these.

    Parameters
    ----------
    estimator : fitted estimator with cross-validation
        Scores of scikit-learn whose names begin with ``neg_`` are drawn as errors.
    {axes}
    InvalidInputError
        If the estimator was not cross-validated because its k was given.

    Examples
    --------
    >>> import hardthresh as ht
    >>> from hardthresh.datasets import load_colon
    >>> from hardthresh.report import plot_cv
    >>> colon = load_colon()
    >>> model = ht.SparseLogisticRegressionCV(n_nonzero_coefs=range(1, 4), cv=3).fit(colon.data, colon.target)
    >>> plot_cv(model).get_xlabel()
    'k, the number of features'
    """
    cv = _cross_validated(cross_validation(estimator), estimator)
    ax = _styled_axes(ax, height=4.0)
    ax.plot(cv.k, cv.folds, color=PALE, linewidth=0.9, zorder=1)
    ax.fill_between(
        cv.k, cv.mean - cv.error, cv.mean + cv.error, color=BAND, linewidth=0, zorder=0.5, label="± one standard error"
    )
    ax.plot(cv.k, cv.mean, color=DARK, linewidth=1.9, zorder=2, label=f"mean of {cv.folds.shape[1]} folds")
    ax.axhline(cv.threshold, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1.5)
    if cv.null is not None:
        null = ax.axhline(cv.null, color=INK, linewidth=1.3, linestyle=(0, (1, 2)), zorder=1.5)
        null.set(label=f"no {cv.unit}s: {number(cv.null)}", gid=f"without {cv.unit}s: {number(cv.null)}")
    for k, mean, error in zip(cv.k, cv.mean, cv.error, strict=True):
        (dot,) = ax.plot(k, mean, "o", color=DARK, markersize=4.0, zorder=2.5)
        dot.set_gid(f"{cv.symbol} = {k}: {mean_and_error(mean, error)}")
    ax.plot(
        *(cv.k[cv.sparsest], cv.mean[cv.sparsest]),
        *("D",),
        markersize=11.0,
        markerfacecolor="none",
        markeredgecolor=LIGHT,
        markeredgewidth=2.0,
        linestyle="none",
        zorder=3,
        label=f"smallest within{_break(ax)}one standard error: {cv.symbol} = {cv.k[cv.sparsest]}",
    )
    ax.plot(
        *(cv.k[cv.chosen], cv.mean[cv.chosen]),
        *("o",),
        color=DARK,
        markersize=9.0,
        linestyle="none",
        zorder=4,
        label=f"{cv.role}: {cv.symbol} = {cv.k[cv.chosen]}",
    )
    _number_axis(ax, cv)
    ax.set_ylabel(f"{cv.measure}\n({'lower' if cv.lower_is_better else 'higher'} is better)")
    ax.legend(**_LEGEND, loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=1 if _is_narrow(ax) else 2)
    return ax


@_takes_axes
def plot_calibration(estimator: Any, ax: Axes | None = None) -> Axes:
    """Draw the mean target against the mean prediction of held-out rows, in bins by the prediction.

    The rows of a bin have similar predictions, each by the models that were fitted without the row. Points on the
    diagonal are calibrated: of the rows that are predicted to have a probability of 0.8, four in five are of the class.
    The area of a point is the weight of its rows.

    Parameters
    ----------
    estimator : fitted estimator with cross-validation
        A sparse linear, logistic, Poisson or gamma regression that chose its number of features.
    {axes}
    InvalidInputError
        If the estimator has no predictions of held-out rows.

    Examples
    --------
    >>> import hardthresh as ht
    >>> from hardthresh.datasets import load_colon
    >>> from hardthresh.report import plot_calibration
    >>> colon = load_colon()
    >>> model = ht.SparseLogisticRegressionCV(n_nonzero_coefs=range(4), cv=3).fit(colon.data, colon.target)
    >>> plot_calibration(model).get_xlabel()
    'predicted probability of 1'
    """
    cv = _cross_validated(cross_validation(estimator), estimator)
    if not len(cv.calibration):
        raise InvalidInputError(
            f"{type(estimator).__name__} has no predictions of held-out rows; the sparse linear estimators with "
            "cross-validation have them"
        )
    predicted, observed, weight = cv.calibration.T
    ax = _styled_axes(ax, height=4.2)
    low, high = min(predicted.min(), observed.min()), max(predicted.max(), observed.max())
    ax.plot([low, high], [low, high], color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1, label="calibrated")
    ax.plot(predicted, observed, color=DARK, linewidth=1.2, zorder=2)
    for x, y, area in zip(predicted, observed, 60.0 * weight / weight.max(), strict=True):
        dot = ax.scatter(x, y, s=area, color=DARK, zorder=3)
        dot.set_gid(f"predicted {number(x)}, observed {number(y)}")
    label = (
        f"probability of {shortened(str(estimator.classes_[1]), 20)}" if hasattr(estimator, "classes_") else "target"
    )
    ax.set_xlabel(f"predicted {label}", parse_math=False)
    ax.set_ylabel(f"observed {'share' if hasattr(estimator, 'classes_') else 'mean'}\nof held-out rows")
    line = {score.key: score.value for score in cv.held_out}
    if np.isfinite(slope := line.get("calibration_slope", np.nan)):
        ax.set_title(f"slope {number(slope)} (calibrated: 1)", **_TITLE)
    ax.legend(**_LEGEND, loc="lower right")
    return ax


@_takes_axes
def plot_convergence(result_or_estimator: Any, ax: Axes | None = None) -> Axes:
    """Draw the objective of every iteration against the data passes up to it.

    The vertical axis is logarithmic if the objective falls by more than a factor of 100.

    Parameters
    ----------
    result_or_estimator : Result or fitted estimator
        A run with its history; without recorded passes, the horizontal axis counts iterations.
    {axes}

    Examples
    --------
    >>> import hardthresh as ht
    >>> from hardthresh.datasets import load_colon
    >>> from hardthresh.report import plot_convergence
    >>> colon = load_colon()
    >>> model = ht.SparseLogisticRegression(n_nonzero_coefs=3).fit(colon.data, colon.target)
    >>> plot_convergence(model).get_ylabel()
    'objective (mean loss)'
    """
    history = progress(result_or_estimator)
    value = np.asarray(history["value"], dtype=np.float64)
    counted = "passes" in history and bool(np.all(np.isfinite(history["passes"])))
    passes = np.asarray(history["passes"] if counted else np.arange(len(value)), dtype=np.float64)
    ax = _styled_axes(ax, height=3.4)
    ax.plot(passes, value, color=DARK, linewidth=1.6, zorder=2)
    for t, (x, y) in enumerate(zip(passes, value, strict=True)) if len(value) <= 100 else ():
        (dot,) = ax.plot(x, y, "o", color=DARK, markersize=4.0, zorder=3)
        dot.set_gid(f"iteration {t}: {number(y)} after {number(x)} passes")
    if value.min() > 0 and value.max() > 100 * value.min():
        ax.set_yscale("log")
    ax.set_xlabel("data passes" if counted else "iteration")
    ax.set_ylabel("objective (mean loss)")
    return ax


@_takes_axes
def plot_learning_curve(result_or_estimator: Any, ax: Axes | None = None) -> Axes:
    """Draw the error of predictions made before their examples were learned from, against the examples bought.

    Every example is predicted before it is learned from, so this is an honest estimate of the error at each time,
    without a test set. The pale line has the windows of examples, but those of only a few; the dark one has the mean
    over the last fifth of the examples until then. Both axes are logarithmic; the upper one counts the attributes that
    were bought.

    Parameters
    ----------
    result_or_estimator : LearningResult or fitted estimator
        A model learned from bought attributes: `LimitedAttributeRegression`, `LimitedAttributeLogisticRegression`, or
        the result of such a solver.
    {axes}
    InvalidInputError
        If there is no learning curve.

    Examples
    --------
    >>> import numpy as np
    >>> import hardthresh as ht
    >>> from hardthresh.report import plot_learning_curve
    >>> X = np.random.default_rng(0).standard_normal((2000, 30))
    >>> model = ht.LimitedAttributeRegression(n_nonzero_coefs=2, n_observed=8).fit(X, X[:, 3] - X[:, 9])
    >>> plot_learning_curve(model).get_xlabel()
    'examples'
    """
    curve = learning_curve(result_or_estimator)
    ax = _styled_axes(ax, height=3.8)
    counts = np.diff(curve["examples"], prepend=0)
    shown = (curve["squared_error"] > 0) & (2 * counts >= np.median(counts))  # a perfect prediction has no logarithm
    if not shown.any():
        return _write_only(ax, "there is no error to be drawn")
    examples, attributes = curve["examples"], curve["attributes"]
    (pale,) = ax.plot(
        examples[shown], curve["squared_error"][shown], color=PALE, linewidth=0.9, zorder=1, label="windows"
    )
    pale.set_gid(f"{np.count_nonzero(shown)} windows of predictions made before learning")
    mean = _recent_mean(examples, curve["squared_error"])
    ax.plot(examples, mean, color=DARK, linewidth=1.9, zorder=2, label="mean of the last fifth")
    (dot,) = ax.plot(examples[-1], mean[-1], "o", color=DARK, markersize=5.0, zorder=3)
    dot.set_gid(f"{number(mean[-1])} after {number(examples[-1])} examples")
    ax.set(xscale="log", yscale="log", xlabel="examples", ylabel=_measured(result_or_estimator))
    _attributes_axis(ax, examples, attributes, result_or_estimator)
    ax.legend(**_LEGEND, loc="lower left")
    return ax


_LEGEND: dict[str, Any] = {
    "frameon": False,
    "fontsize": "small",
    "labelcolor": INK,
    "borderaxespad": 0.2,
    "handlelength": 1.6,
}
_TITLE: dict[str, Any] = {"loc": "left", "fontsize": "small", "color": MUTED}


def coefficients_height(n_features: int) -> float:
    """Return the height, in inches, of a chart with a bar for each feature."""
    return 0.9 + 0.29 * max(1, min(n_features, SHOWN))


def shortened(name: str, length: int = 28) -> str:
    """Return the beginning and the end of a name that is too long for a label."""
    return name if len(name) <= length else f"{name[: length // 2]}…{name[-(length - length // 2 - 1) :]}"


def _styled_axes(ax: Axes | None, height: float) -> Axes:
    """Return the given axes, or those of a new figure, without lines that carry no information."""
    if ax is None:
        pyplot = import_optional("matplotlib.pyplot", "charts need", extra="plot")
        ax = pyplot.subplots(figsize=(7.2, height), layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color("#9aa5b1")
    ax.tick_params(color="#9aa5b1", labelcolor=MUTED)
    ax.xaxis.label.set_color(MUTED)
    ax.yaxis.label.set_color(MUTED)
    ax.grid(color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    return ax


def _write_only(ax: Axes, sentence: str) -> Axes:
    ax.text(0.5, 0.5, sentence, transform=ax.transAxes, ha="center", va="center", color=MUTED)
    ax.set_axis_off()
    return ax


def _effect(facts: Facts) -> str:
    if facts.classes:
        return f"change of log-odds of {shortened(facts.classes[-1], 20)}"
    return f"change of the logarithm of {facts.multiplies}" if facts.multiplies else "change of the prediction"


def _is_narrow(ax: Axes) -> bool:
    return bool(ax.bbox.width < 4.5 * ax.figure.dpi)


def _break(ax: Axes) -> str:
    return "\n" if _is_narrow(ax) else " "


def _cross_validated(cv: CrossValidation | None, estimator: Any) -> CrossValidation:
    if cv is None:
        kind, sizes = type(estimator).__name__, {"rank_": "rank", "n_edges_": "number of edges"}
        size = next((what for fitted, what in sizes.items() if hasattr(estimator, fitted)), "k")
        if hasattr(estimator, "learning_curve_"):
            raise InvalidInputError(f"{kind} has no curve over k; plot_learning_curve draws how it learned.")
        raise InvalidInputError(
            f"there is no curve over {size}, because {kind} was fitted for one given {size}; "
            f"use {kind}CV to choose it by cross-validation."
        )
    return cv


def _number_axis(ax: Axes, cv: CrossValidation) -> None:
    """Set integer ticks along x; on a logarithmic scale if the candidates grow by factors."""
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator, StrMethodFormatter

    gaps = np.diff(cv.k)
    if len(gaps) > 2 and cv.k[0] > 0 and gaps.max() > 3 * gaps.min():
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(FixedLocator(_apart(cv.k, share=0.12 if _is_narrow(ax) else 0.06)))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        if len(gaps) == 0:
            ax.set_xlim(cv.k[0] - 1, cv.k[0] + 1)
    ax.set_xlabel("rank" if cv.unit == "rank" else f"k, the number of {cv.unit}s")


def _apart(k: np.ndarray, share: float) -> list[int]:
    """Return the candidates to label on a logarithmic axis, at least a given share of its length apart."""
    gap = (k[-1] / k[0]) ** share
    ticks = [int(k[0])]
    for candidate in k[1:].tolist():
        if candidate >= gap * ticks[-1]:
            ticks.append(candidate)
    return ticks


def _near_nonzero(effects: np.ndarray) -> np.ndarray:
    """Return where a path or its neighbour over k is not zero, so that its line is drawn."""
    near: np.ndarray = np.pad(effects != 0, ((1, 1), (0, 0)))
    near = near[:-2] | near[1:-1] | near[2:]
    return near


def _recent_mean(examples: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return the mean error over the last fifth of the examples until the end of each window."""
    counts = np.diff(examples, prepend=0).astype(np.float64)
    summed = np.concatenate([[0.0], np.cumsum(counts * error)])
    seen = np.concatenate([[0.0], np.cumsum(counts)])
    ends = np.arange(1, len(seen))
    begins = np.minimum(np.searchsorted(seen, 0.8 * seen[1:], side="right") - 1, ends - 1)
    mean: np.ndarray = (summed[ends] - summed[begins]) / np.maximum(1.0, seen[ends] - seen[begins])
    return mean


def _measured(result_or_estimator: Any) -> str:
    return f"{'Brier score' if hasattr(result_or_estimator, 'classes_') else 'squared error'}\nbefore learning"


def _attributes_axis(ax: Axes, examples: np.ndarray, attributes: np.ndarray, result_or_estimator: Any) -> None:
    """Count the attributes that were bought along the top, and say what was paid where prices differ."""
    known = np.log(np.maximum(1, np.stack([examples, attributes])))

    def translated(values: Any, source: np.ndarray, target: np.ndarray) -> Any:
        log = np.log(np.maximum(values, 1e-9))
        inside = np.interp(log, source, target)
        return np.exp(inside + np.minimum(log - source[0], 0.0) + np.maximum(log - source[-1], 0.0))

    top = ax.secondary_xaxis(
        "top",
        functions=(lambda x: translated(x, known[0], known[1]), lambda x: translated(x, known[1], known[0])),
    )
    top.spines["top"].set_visible(False)
    top.tick_params(color="#9aa5b1", labelcolor=MUTED)
    paid = getattr(result_or_estimator, "budget_", None) or getattr(result_or_estimator, "meter", None)
    money = "" if paid is None or paid.money == paid.attributes else f" ({number(paid.money)} paid in all)"
    top.set_xlabel(f"attributes bought{money}", color=MUTED)
