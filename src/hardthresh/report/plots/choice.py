"""Charts of the choice of k: the scores of a cross-validation, and a criterion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.numbers import mean_and_error, number
from hardthresh.estimators.choice_facts import CrossValidation, cross_validation

from .style import (
    BAND,
    DARK,
    INK,
    LEGEND,
    LIGHT,
    MUTED,
    PALE,
    is_narrow,
    line_break,
    styled_axes,
    takes_axes,
    wrapped,
    write_only,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@takes_axes
def plot_cv(estimator: Any, ax: Axes | None = None) -> Axes:
    """Draw the cross-validated score against k, the rank or the number of edges, with its band of one standard error.

    Markers show the chosen k and the smallest k whose mean score is within one standard error of the best. Pale lines
    are the folds. The dotted line is the score of the models without features. If ridges were compared too, the best
    ridge of each k is used. If the estimator is an average of several models, the marker shows the best of these.

    Parameters
    ----------
    estimator : fitted estimator with cross-validation
        The estimator. Scores of scikit-learn whose names begin with ``neg_`` are drawn as errors.
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
    cv = cross_validated(cross_validation(estimator), estimator)
    ax = styled_axes(ax, height=4.0)
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
        label=f"smallest within{line_break(ax)}one standard error: {cv.symbol} = {cv.k[cv.sparsest]}",
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
    number_axis(ax, cv)
    ax.set_ylabel(f"{wrapped(cv.measure, 26)}\n({'lower' if cv.lower_is_better else 'higher'} is better)")
    ax.legend(**LEGEND, loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=1 if is_narrow(ax) else 2)
    return ax


@takes_axes
def plot_criterion(candidates: Any, values: Any, ax: Axes | None = None, *, name: str = "EBIC") -> Axes:
    r"""Draw an information criterion against k; smaller is better.

    Parameters
    ----------
    candidates : array of int, shape (n_candidates,)
        The numbers that were compared, such as `candidates_` of an estimator that used an information criterion.
    values : array, shape (n_candidates,)
        The criterion of each candidate, such as `criterion_path_`. NaN is not drawn.
    {ax}
    name : str
        The name of the criterion, for the label of the axis.

    {returns}
    InvalidInputError
        If there is not one value for each candidate.

    Examples
    --------
    >>> import numpy as np
    >>> import hardthresh as ht
    >>> from hardthresh.report import plot_criterion
    >>> X = np.random.default_rng(0).standard_normal((60, 20))
    >>> model = ht.SparseLinearRegression().fit(X, X[:, 3] - X[:, 7])
    >>> plot_criterion(model.candidates_, model.criterion_path_).get_ylabel()
    'EBIC\n(lower is better)'
    """
    k, values = np.asarray(candidates), np.asarray(values, dtype=np.float64)
    if k.ndim != 1 or k.shape != values.shape:
        raise InvalidInputError(f"each candidate needs one value, but their shapes are {k.shape} and {values.shape}")
    ax = styled_axes(ax, height=3.4)
    if not np.isfinite(values).any():
        return write_only(ax, "too few rows to compare anything")
    ax.plot(k, values, color=DARK, linewidth=1.6, zorder=2)
    for size, value in zip(k.tolist(), values.tolist(), strict=True):
        (dot,) = ax.plot(size, value, "o", color=DARK, markersize=4.0, zorder=3)
        dot.set_gid(f"k = {size}: {number(value)}")
    best = int(np.nanargmin(values))
    label = f"least: k = {k[best]}"
    ax.plot(k[best], values[best], "o", color=DARK, markersize=9.0, linestyle="none", zorder=4, label=label)
    whole_ticks(ax, k, "k, the number chosen")
    ax.set_ylabel(f"{name}\n(lower is better)")
    ax.legend(**LEGEND, loc="lower left", bbox_to_anchor=(-0.01, 1.0))
    return ax


def cross_validated(cv: CrossValidation | None, estimator: Any) -> CrossValidation:
    """Return the cross-validation of an estimator; raise an error that says what to do if there is none."""
    if cv is None:
        raise without_curve(estimator)
    return cv


def without_curve(estimator: Any) -> InvalidInputError:
    """Return the error of an estimator that has no curve over its size."""
    kind, sizes = type(estimator).__name__, {"rank_": "rank", "n_edges_": "number of edges"}
    size = next((what for fitted, what in sizes.items() if hasattr(estimator, fitted)), "k")
    if hasattr(estimator, "learning_curve_"):
        return InvalidInputError(f"{kind} has no curve over k; plot_learning_curve draws how it learned.")
    if hasattr(estimator, "criterion_path_"):
        folds = 'criterion="cv"' if kind.endswith("CV") else f"{kind}CV"
        return InvalidInputError(
            f"{kind} chose {size} by a criterion: plot_criterion(model.candidates_, model.criterion_path_) draws it; "
            f"use {folds} to choose it by cross-validation."
        )
    return InvalidInputError(
        f"there is no curve over {size}, because {kind} was fitted for one given {size}; "
        f"use {kind}CV to choose it by cross-validation."
    )


def number_axis(ax: Axes, cv: CrossValidation) -> None:
    """Set the ticks and the label of an axis of candidates."""
    whole_ticks(ax, cv.k, "rank" if cv.unit == "rank" else f"k, the number of {cv.unit}s")


def whole_ticks(ax: Axes, k: np.ndarray, label: str) -> None:
    """Set integer ticks along x; on a logarithmic scale if the candidates grow by factors."""
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator, StrMethodFormatter

    gaps = np.diff(k)
    if len(gaps) > 2 and k[0] > 0 and gaps.max() > 3 * gaps.min():
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(FixedLocator(_apart(k, share=0.12 if is_narrow(ax) else 0.06)))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        if len(gaps) == 0:
            ax.set_xlim(k[0] - 1, k[0] + 1)
    ax.set_xlabel(label)


def _apart(k: np.ndarray, share: float) -> list[int]:
    """Return the candidates to label on a logarithmic axis, at least a given share of its length apart."""
    gap = (k[-1] / k[0]) ** share
    ticks = [int(k[0])]
    for candidate in k[1:].tolist():
        if candidate >= gap * ticks[-1]:
            ticks.append(candidate)
    return ticks
