"""Charts of predictions against observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.numbers import number
from hardthresh.estimators.choice_facts import cross_validation
from hardthresh.estimators.linear.held_out import quantile_bins

from .choice import cross_validated, whole_ticks
from .style import (
    BAND,
    DARK,
    INK,
    LEGEND,
    LIGHT,
    MUTED,
    TITLE,
    is_narrow,
    logarithmic,
    shortened,
    styled_axes,
    takes_axes,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 2000
"""Most points of one chart: more make a report large and are not told apart."""
_COUNTS = 30
"""Largest count with a bar of its own: more are not legible."""


@takes_axes
def plot_calibration(estimator: Any, ax: Axes | None = None, *, output: int = 0) -> Axes:
    """Draw the mean target against the mean prediction of held-out rows, in bins by the prediction.

    The rows of a bin have similar predictions, each by a model that was fitted without the row. Predictions are
    calibrated if the points are on the diagonal: for example, four of five rows with a predicted probability of 0.8 are
    of the class. The area of a point is proportional to the weight of its rows.

    Parameters
    ----------
    estimator : fitted estimator with cross-validation
        A sparse model that chose its number of features, and whose predictions are means or probabilities.
    {ax}
    output : int
        The output or class to draw, counted from 0; for ordered classes, the probability of a class above this one is
        drawn.

    {returns}
    InvalidInputError
        If the estimator has no predictions of held-out rows, if these are not means, or if there is no such output.

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
    cv, kind = cross_validation(estimator), type(estimator).__name__
    if cv is None and not hasattr(estimator, "learning_curve_"):
        raise InvalidInputError(
            f"{kind} has no predictions of held-out rows, because it was not cross-validated; use {kind}CV."
        )
    cv = cross_validated(cv, estimator)
    if not cv.calibrations and not cv.held_out:
        raise InvalidInputError(
            f"{kind} has no predictions of held-out rows; the sparse linear estimators with "
            "cross-validation have them where features predict better than none"
        )
    if not cv.calibrations:
        raise InvalidInputError(
            f"{kind} has no calibration: that is for predictions of held-out rows which are means "
            "or probabilities, not quantiles or hazards; plot_coverage draws how many targets are below "
            "predicted quantiles"
        )
    own = cv.calibrations[checked_integer("output", output, 0, len(cv.calibrations) - 1, "the last output")]
    predicted, observed, weight = own.bins.T
    ax = styled_axes(ax, height=4.2)
    _beside_diagonal(ax, predicted, observed, weight, "calibrated")
    ax.set_xlabel(wrapped(shortened(own.predicted, 70), 32 if is_narrow(ax) else 80), parse_math=False)
    ax.set_ylabel(f"{shortened(own.observed, 40)}\nof held-out rows", parse_math=False)
    line = {score.key: score.value for score in cv.held_out}
    if np.isfinite(slope := line.get("calibration_slope", np.nan)):
        ax.set_title(f"slope {number(slope)} (calibrated: 1)", **TITLE)
    ax.legend(**LEGEND, loc="lower right")
    return ax


@takes_axes
def plot_observed(y: Any, predicted: Any, ax: Axes | None = None, *, sample_weight: Any = None) -> Axes:
    """Draw the mean target against the mean prediction of tenths of the rows, by their prediction.

    Points below the diagonal show predictions that are too high, points above it predictions that are too low. Both
    axes are logarithmic if all means are positive and differ by more than a factor of 20.

    Parameters
    ----------
    y, predicted : array, shape (n,)
        Targets and predictions.
    {ax}
    sample_weight : array, shape (n,), optional
        Weights; each tenth of the rows has a tenth of their sum.

    {returns}

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.report import plot_observed
    >>> predicted = np.arange(1.0, 101.0)
    >>> ax = plot_observed(2.0 * predicted, predicted)
    >>> len(ax.collections)
    10
    """
    y, predicted, weight = _rows(y, predicted, sample_weight)
    bins = quantile_bins(predicted, weight)
    total = np.bincount(bins, weight)
    kept = total > 0
    across, mean = (np.bincount(bins, weight * values)[kept] / total[kept] for values in (predicted, y))
    ax = styled_axes(ax, height=4.2)
    _beside_diagonal(ax, across, mean, total[kept], "predicted as observed")
    least, largest = min(across.min(), mean.min()), max(across.max(), mean.max())
    if least > 0 and largest > 20 * least:
        logarithmic(ax)
    ax.set_xlabel("mean prediction of a tenth of the rows")
    ax.set_ylabel("mean target")
    ax.legend(**LEGEND, loc="lower right")
    return ax


@takes_axes
def plot_residuals(y: Any, predicted: Any, ax: Axes | None = None, *, sample_weight: Any = None) -> Axes:
    """Draw the residuals against the predictions, with their mean over tenths of the rows.

    Where the line departs from zero, predictions have a systematic error that more features, or transformed features,
    could reduce. If the spread of the points grows with the prediction, so does the noise. At most 2,000 points are
    drawn, spread evenly over the predictions; the line uses all rows.

    Parameters
    ----------
    y, predicted : array, shape (n,)
        Targets and predictions.
    {ax}
    sample_weight : array, shape (n,), optional
        Weights.

    {returns}

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.report import plot_residuals
    >>> plot_residuals(np.array([1.0, 2.0, 4.0]), np.array([1.5, 2.0, 3.0])).get_ylabel()
    'residual: target less prediction'
    """
    y, predicted, weight = _rows(y, predicted, sample_weight)
    residuals = y - predicted
    order = np.argsort(predicted, kind="stable")
    shown = order[np.linspace(0, len(order) - 1, min(len(order), _POINTS)).astype(int)]
    ax = styled_axes(ax, height=3.6)
    ax.axhline(0.0, color=INK, linewidth=1.0, zorder=1)
    ax.plot(
        predicted[shown], residuals[shown], "o", color=DARK, alpha=0.45, markersize=3.0, markeredgewidth=0, zorder=2
    )
    bins = quantile_bins(predicted, weight)
    total = np.bincount(bins, weight)
    kept = total > 0
    across, mean = (np.bincount(bins, weight * values)[kept] / total[kept] for values in (predicted, residuals))
    ax.plot(across, mean, color=LIGHT, linewidth=1.9, zorder=3, label="mean of tenths of the rows")
    ax.set_xlabel("prediction")
    ax.set_ylabel("residual: target less prediction")
    ax.legend(**LEGEND, loc="lower left", bbox_to_anchor=(-0.01, 1.0))
    return ax


@takes_axes
def plot_quantiles(residuals: Any, ax: Axes | None = None, *, sample_weight: Any = None) -> Axes:
    """Draw the quantiles of residuals against those of the normal distribution (a QQ plot).

    Residuals on the line are normally distributed. Ends that depart from the line show heavy tails or outliers.

    Parameters
    ----------
    residuals : array, shape (n,)
        Residuals; they are divided by their standard deviation.
    {ax}
    sample_weight : array, shape (n,), optional
        Weights.

    {returns}

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.report import plot_quantiles
    >>> ax = plot_quantiles(np.random.default_rng(0).standard_normal(100))
    >>> ax.get_xlabel()
    'quantile of the normal distribution'
    """
    from scipy.special import ndtri

    residuals, _, weight = _rows(residuals, residuals, sample_weight)
    mean = np.average(residuals, weights=weight)
    spread = np.sqrt(np.average((residuals - mean) ** 2, weights=weight))
    order = np.argsort(residuals, kind="stable")
    below = (np.cumsum(weight[order]) - 0.5 * weight[order]) / weight.sum()
    expected, found = ndtri(below), (residuals[order] - mean) / (spread or 1.0)
    shown = np.unique(np.linspace(0, len(order) - 1, min(len(order), _POINTS)).astype(int))
    ax = styled_axes(ax, height=3.6)
    ends = np.array([expected[0], expected[-1]])
    ax.plot(ends, ends, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1, label="normal")
    ax.plot(expected[shown], found[shown], "o", color=DARK, markersize=3.0, markeredgewidth=0, zorder=2)
    ax.set_xlabel("quantile of the normal distribution")
    ax.set_ylabel("quantile of the residuals\nin standard deviations")
    ax.legend(**LEGEND, loc="lower right")
    return ax


@takes_axes
def plot_coverage(
    y: Any, predicted: Any, ax: Axes | None = None, *, quantile: float = 0.5, sample_weight: Any = None
) -> Axes:
    """Draw the share of targets at or below a predicted quantile, in tenths of the rows by their prediction.

    Parameters
    ----------
    y, predicted : array, shape (n,)
        Targets, and predictions of their quantile.
    {ax}
    quantile : float
        The predicted quantile. If the predictions are calibrated, this share of the targets is below them in all
        tenths.
    sample_weight : array, shape (n,), optional
        Weights.

    {returns}
    InvalidInputError
        If the quantile is not between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.report import plot_coverage
    >>> rng = np.random.default_rng(0)
    >>> ax = plot_coverage(rng.standard_normal(500), rng.uniform(1.28, 1.29, 500), quantile=0.9)
    >>> len(ax.lines)
    11
    """
    if not 0.0 < quantile < 1.0:
        raise InvalidInputError(f"quantile must be between 0 and 1, got {quantile}")
    y, predicted, weight = _rows(y, predicted, sample_weight)
    bins = quantile_bins(predicted, weight)
    total = np.bincount(bins, weight)
    kept = total > 0
    across, share = (np.bincount(bins, weight * v)[kept] / total[kept] for v in (predicted, y <= predicted))
    ax = styled_axes(ax, height=3.4)
    label = f"aim: {number(quantile)}"
    ax.axhline(quantile, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1, label=label)
    for x, value in zip(across, share, strict=True):
        (dot,) = ax.plot(x, value, "o", color=DARK, markersize=6.0, zorder=3)
        dot.set_gid(f"prediction about {number(x)}: {number(value)} at or below")
    ax.set_ylim(-0.03, 1.03)  # room for whole dots at the ends
    ax.set_xlabel("mean prediction of a tenth of the rows")
    ax.set_ylabel("share of targets at or\nbelow the prediction")
    ax.legend(**LEGEND, loc="lower left", bbox_to_anchor=(-0.01, 1.0))
    return ax


@takes_axes
def plot_rootogram(
    y: Any, predicted: Any, ax: Axes | None = None, *, dispersion: float = 0.0, sample_weight: Any = None
) -> Axes:
    """Draw a hanging rootogram: the observed and expected frequency of each count, on a square-root scale.

    The bars hang from the expected frequency. A bar that ends above zero shows a count that occurs less often than
    expected, one that ends below zero a count that occurs more often. Counts of 30 or more share one bar.

    Parameters
    ----------
    y : array of int, shape (n,)
        Counts.
    predicted : array, shape (n,)
        Expected counts.
    {ax}
    dispersion : float
        Counts have the variance m + dispersion m^2 at the expected count m: 0 for Poisson, more for negative binomial.
    sample_weight : array, shape (n,), optional
        Weights.

    {returns}
    InvalidInputError
        If targets are not counts.

    References
    ----------
    C. Kleiber and A. Zeileis (2016), Visualizing count data regressions using rootograms, *The American Statistician*
    70(3), 296-303.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.report import plot_rootogram
    >>> ax = plot_rootogram(np.array([0, 1, 1, 3]), np.full(4, 1.25))
    >>> len(ax.patches)
    4
    """
    y, mean, weight = _rows(y, predicted, sample_weight)
    if np.any(y != np.round(y)) or np.any(y < 0):
        raise InvalidInputError(f"a rootogram is of counts; y has {y[(y != np.round(y)) | (y < 0)][0]}")
    last = int(min(y.max(), _COUNTS))
    counts = np.arange(last + 1)
    expected = np.array([weight @ _chance(count, mean, dispersion) for count in counts.tolist()])
    observed = np.bincount(np.minimum(y, last).astype(int), weight, last + 1)
    expected[-1] = max(weight.sum() - expected[:-1].sum(), 0.0)  # of that count and all larger ones
    ax = styled_axes(ax, height=3.6)
    ax.use_sticky_edges = False  # which would cut the outline of the lowest bar
    tops, heights = np.sqrt(expected), np.sqrt(observed)
    bars = ax.bar(counts, heights, bottom=tops - heights, width=0.8, color=BAND, edgecolor=DARK, zorder=2)
    for bar, count, seen, wanted in zip(bars, counts, observed, expected, strict=True):
        bar.set_gid(f"{count}: {number(seen)} rows, {number(wanted)} expected")
    ax.plot(counts, tops, "o-", color=LIGHT, linewidth=1.6, markersize=4.0, zorder=3, label="expected by the model")
    ax.axhline(0.0, color=INK, linewidth=1.0, zorder=3)
    whole_ticks(ax, counts, f"count ({last}: {last} or more)")
    ax.set_ylabel("square root of the number\nof rows, hanging")
    ax.legend(**LEGEND, loc="lower left", bbox_to_anchor=(-0.01, 1.0))
    return ax


def _chance(count: int, mean: np.ndarray, dispersion: float) -> np.ndarray:
    """Return the probability of a count at each expected count: Poisson, or with a dispersion negative binomial."""
    from scipy.special import gammaln, xlog1py, xlogy

    if dispersion == 0.0:
        return np.asarray(np.exp(xlogy(count, mean) - mean - gammaln(count + 1.0)))
    size = 1.0 / dispersion
    chosen = gammaln(count + size) - gammaln(size) - gammaln(count + 1.0)
    return np.asarray(np.exp(chosen + xlogy(count, mean / (mean + size)) + xlog1py(size, -mean / (mean + size))))


def _beside_diagonal(ax: Axes, predicted: np.ndarray, observed: np.ndarray, weight: np.ndarray, label: str) -> None:
    """Draw what was observed against what was predicted, with the diagonal where both are equal."""
    low, high = min(predicted.min(), observed.min()), max(predicted.max(), observed.max())
    ax.plot([low, high], [low, high], color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1, label=label)
    ax.plot(predicted, observed, color=DARK, linewidth=1.2, zorder=2)
    for x, y, area in zip(predicted, observed, 60.0 * weight / weight.max(), strict=True):
        dot = ax.scatter(x, y, s=area, color=DARK, zorder=3)
        dot.set_gid(f"predicted {number(x)}, observed {number(y)}")


def _rows(y: Any, predicted: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return targets, predictions and weights of the rows of positive weight, as float64."""
    y, predicted = np.asarray(y, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if not y.shape == predicted.shape == weight.shape == (len(y),) or not np.any(weight > 0):
        raise InvalidInputError(
            f"one target, prediction and weight for each row are needed, got {y.shape}, {predicted.shape} and "
            f"{weight.shape}, with a positive weight"
        )
    rows = weight > 0
    return y[rows], predicted[rows], weight[rows]
