"""Charts of a run: the objective over its iterations, the bounds of a proof, and a learning curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.certificates import Proof
from hardthresh.core.numbers import number
from hardthresh.estimators.run_facts import learning_curve, progress

from .style import (
    AXIS,
    BAND,
    DARK,
    LEGEND,
    LIGHT,
    MUTED,
    PALE,
    TITLE,
    check_drawn,
    styled_axes,
    takes_axes,
    write_only,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST_SPAN = 1e-3
"""The least height of a chart of bounds, relative to them: four digits tell its ticks apart."""


@takes_axes
def plot_convergence(result_or_estimator: Any, ax: Axes | None = None) -> Axes:
    """Draw the objective after each iteration against the number of data passes so far.

    The vertical axis is logarithmic if the objective falls by more than a factor of 100.

    Parameters
    ----------
    result_or_estimator : Result or fitted estimator
        A run with its history. If no passes were recorded, the horizontal axis counts iterations.
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
    ax = styled_axes(ax, height=3.4)
    ax.plot(passes, value, color=DARK, linewidth=1.6, zorder=2)
    for t, (x, y) in enumerate(zip(passes, value, strict=True)) if len(value) <= 100 else ():
        (dot,) = ax.plot(x, y, "o", color=DARK, markersize=4.0, zorder=3)
        dot.set_gid(f"iteration {t}: {number(y)} after {number(x)} passes")
    if value.min() > 0 and value.max() > 100 * value.min():
        ax.set_yscale("log")
    ax.set_xlabel("data passes" if counted else "iteration")
    ax.set_ylabel("objective (mean loss)")
    return ax


@takes_axes
def plot_gap(proof: Proof, ax: Axes | None = None) -> Axes:
    """Draw the lower bound and the best objective over the time of a search for a proof.

    The lines start at the time of the first bound, or at 0 seconds if there is only one, and end in a dot.

    Parameters
    ----------
    proof : Proof
        What ``model.prove()`` returned.
    {axes}
    InvalidInputError
        If it is not a Proof.

    Examples
    --------
    >>> import numpy as np
    >>> import hardthresh as ht
    >>> from hardthresh.report import plot_gap
    >>> X = np.random.default_rng(0).standard_normal((50, 20))
    >>> model = ht.SparseLinearRegression(n_nonzero_coefs=3).fit(X, X[:, 3] - X[:, 9] + X[:, 2])
    >>> plot_gap(model.prove()).get_ylabel()
    'objective (mean loss)'
    """
    check_drawn(proof, Proof, "the Proof that model.prove() returns")
    ax = styled_axes(ax, height=3.4)
    seconds, lower, upper = (proof.history[name] for name in ("seconds", "lower_bound", "upper_bound"))
    known = np.isfinite(lower)
    if not known.any():
        return write_only(ax, "there is no lower bound to be drawn")
    if known.sum() > 1:
        known[np.argmax(known)] = False  # the least value of any objective, such as 0, which would set the scale
    seconds, lower, upper = (np.append(column[known], column[known][-1]) for column in (seconds, lower, upper))
    seconds[-1] = max(proof.seconds, seconds[-1])
    if known.sum() == 1:
        seconds[0] = 0.0
    lower[-1], upper[-1] = proof.lower_bound, proof.upper_bound
    ax.fill_between(seconds, lower, upper, step="post", color=BAND, linewidth=0.0, zorder=1)
    lines = ((upper, DARK, 3.2, "best set found"), (lower, LIGHT, 1.6, "no set is below"))  # one shows below the other
    for column, color, width, label in lines:
        (line,) = ax.plot(
            *(seconds, column),
            color=color,
            linewidth=width,
            drawstyle="steps-post",
            marker="o",
            markersize=2.5 * width,
            markevery=[-1],
            zorder=2,
            label=label,
        )
        line.set_gid(f"{label}: {number(column[-1])} after {number(seconds[-1])} seconds")
    least = _LEAST_SPAN * max(abs(upper[-1]), np.finfo(np.float64).tiny)
    if np.ptp(ax.get_ylim()) < least:
        ax.set_ylim(upper[-1] - least / 2, upper[-1] + least / 2)
    ax.ticklabel_format(axis="both", useOffset=False)
    ax.set_xlim(left=0.0)
    ax.set_title(proof.status, **TITLE)
    ax.set_xlabel("seconds")
    ax.set_ylabel("objective (mean loss)")
    ax.legend(**LEGEND, loc="best")
    return ax


@takes_axes
def plot_learning_curve(result_or_estimator: Any, ax: Axes | None = None) -> Axes:
    """Draw the error of predictions that were made before their examples were used, against the number of examples.

    Every example is predicted before it is used (prequential evaluation), so this estimates the error at each time
    without a test set. The pale line shows windows of examples, without very short ones; the dark line shows the mean
    over the last fifth of the examples so far. Both axes are logarithmic; the upper axis counts the attributes that
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
    ax = styled_axes(ax, height=3.8)
    counts = np.diff(curve["examples"], prepend=0)
    shown = (curve["squared_error"] > 0) & (2 * counts >= np.median(counts))  # a perfect prediction has no logarithm
    if not shown.any():
        return write_only(ax, "there is no error to be drawn")
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
    ax.legend(**LEGEND, loc="lower left")
    return ax


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
    top.tick_params(color=AXIS, labelcolor=MUTED)
    paid = getattr(result_or_estimator, "budget_", None) or getattr(result_or_estimator, "meter", None)
    money = "" if paid is None or paid.money == paid.attributes else f" ({number(paid.money)} paid in all)"
    top.set_xlabel(f"attributes bought{money}", color=MUTED)
