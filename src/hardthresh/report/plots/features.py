"""Charts of coefficients: of the chosen features, and of all features over k."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.numbers import number, signed
from hardthresh.estimators.facts import Facts, read

from .choice import whole_ticks, without_curve
from .style import (
    DARK,
    INK,
    LEGEND,
    LIGHT,
    MUTED,
    PALE,
    SHOWN,
    TITLE,
    is_narrow,
    line_break,
    matrix_axes,
    shade,
    shortened,
    styled_axes,
    takes_axes,
    wrapped,
    write_only,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "os^vDPX*"
"""Markers of the strongest lines of a path, which the legend names."""


@takes_axes
def plot_coefficients(estimator: Any, ax: Axes | None = None) -> Axes:
    """Draw the chosen features as horizontal bars, the largest effect on top.

    The length of a bar is the coefficient times the standard deviation of the feature, so that features in different
    units can be compared; without standardisation it is the coefficient. At most 40 bars are drawn; the title gives the
    number of the others.

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
    shown, sized = facts.features[:SHOWN], number if facts.outputs else signed
    ax = styled_axes(ax, height=coefficients_height(len(facts.features)))
    if not shown:
        return write_only(ax, "no feature is chosen")
    bars = ax.barh(
        range(len(shown)),
        [feature.effect for feature in shown],
        height=0.62,
        color=[DARK if feature.effect > 0 else LIGHT for feature in shown],
        zorder=2,
    )
    for bar, feature in zip(bars, shown, strict=True):
        bar.set_gid(f"{feature.name}: {sized(feature.effect)} per {facts.per}")
    ax.axvline(0.0, color=INK, linewidth=1.0, zorder=3)
    for row, feature in enumerate(shown):
        side = 1 if feature.effect >= 0 else -1
        ax.annotate(
            sized(feature.effect),
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
    ax.margins(x=0.35 if is_narrow(ax) else 0.16)  # room for the numbers
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(
        f"{wrapped(_effect(facts), 32 if is_narrow(ax) else 80)}{line_break(ax)}per {facts.per}", parse_math=False
    )
    if len(facts.features) > len(shown):
        left_out = len(facts.features) - len(shown)
        ax.set_title(f"the {len(shown)} largest; {left_out} smaller are not drawn", **TITLE)
    return ax


@takes_axes
def plot_path(estimator: Any, ax: Axes | None = None, *, output: int | None = None) -> Axes:
    """Draw the coefficients of all features against k, with those of the final model in the foreground.

    Parameters
    ----------
    estimator : fitted estimator that chose its k, by cross-validation or by a criterion
        The estimator, whose coefficients for each k, fitted to all rows, are drawn per standard deviation of the
        features, or per unit if these were not standardised.
    {ax}
    output : int, optional
        The output or class whose coefficients are drawn, counted from 0. Default: the norm of the coefficients for all
        outputs or classes.

    {returns}
    InvalidInputError
        If the estimator has no path because its k was given, or there is no such output.

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
    path = facts.path
    if path is None:
        raise without_curve(estimator)
    effects, of_features = path.effects, {feature.index: feature.effect for feature in facts.features}
    if output is not None:
        if not facts.outputs:
            raise InvalidInputError(f"{facts.kind} has coefficients of one output; leave output={output!r} out")
        c = checked_integer("output", output, 0, len(path.by_output) - 1, "the last output")
        effects, of_features = path.by_output[c], {one.index: one.outputs[c] for one in facts.features}
    ax = styled_axes(ax, height=4.2)
    if not path.effects.any():
        return write_only(ax, "no feature is chosen at any k")
    ax.axhline(0.0, color=INK, linewidth=1.0)
    ax.axvline(path.k[path.chosen], color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)))
    drawn = np.where(_near_nonzero(effects), effects, np.nan)
    final = [feature.index for feature in facts.features]
    for j in sorted(set(np.flatnonzero(effects.any(axis=0)).tolist()) - set(final)):
        (line,) = ax.plot(path.k, drawn[:, j], color=PALE, linewidth=0.9, zorder=1)
        line.set_gid(f"{facts.names[j]}: not in the final model")
    markers = dict(zip(final, MARKERS, strict=False))
    for j, effect in sorted(of_features.items(), key=lambda item: -item[1]):
        (line,) = ax.plot(path.k, drawn[:, j], color=DARK if effect > 0 else LIGHT, linewidth=1.7, zorder=2)
        line.set_gid(f"{facts.names[j]}: {signed(effect)} in the final model")
        if j in markers:
            line.set(marker=markers[j], markersize=5.5, label=shortened(facts.names[j], 20))
    whole_ticks(ax, path.k, f"k, the number of {facts.unit}s")
    what = _effect(facts) if output is None else f"coefficient for {shortened(facts.outputs[output], 20)}"
    ax.set_ylabel(f"{wrapped(what, 28)}\nper {facts.per}", parse_math=False)
    if markers:
        place = (
            {"loc": "lower left", "bbox_to_anchor": (-0.01, 1.0), "ncols": 2}
            if is_narrow(ax)
            else {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        )
        for text in ax.legend(**LEGEND, **place).get_texts():
            text.set_parse_math(False)
    return ax


@takes_axes
def plot_correlations(correlation: Any, names: Any, ax: Axes | None = None, *, columns: Any = None) -> Axes:
    """Draw a matrix of correlations, such as those of the chosen features with their closest substitutes.

    Darker cells have a larger absolute correlation; the numbers show the sign. If a feature is strongly correlated with
    its substitute, the choice between them was close, and other rows could have led to the substitute.

    Parameters
    ----------
    correlation : array, shape (n, m)
        Correlations in [-1, 1]; NaN cells are left empty.
    names : sequence of str
        The names of the rows.
    {ax}
    columns : sequence of str, optional
        The names of the columns; by default those of the rows.

    {returns}

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.report import plot_correlations
    >>> ax = plot_correlations(np.array([[1.0, 0.9], [0.9, 1.0]]), ["age", "weight"])
    >>> [text.get_text() for text in ax.texts]
    ['+1.00', '+0.90', '+0.90', '+1.00']
    """
    values = np.asarray(correlation, dtype=np.float64)
    rows, across = list(map(str, names)), list(map(str, names if columns is None else columns))
    ax = styled_axes(ax, height=1.4 + 0.42 * len(rows))
    crowded = is_narrow(ax) and len(across) > 5  # then there is room for the signs alone
    for (i, j), value in np.ndenumerate(values):
        if not np.isnan(value):
            text = f"{value:+.2f}".replace("-", "−")
            shade(ax, j, i, abs(value), text[:1] if crowded else text, f"{rows[i]} and {across[j]}: {text}")
    return matrix_axes(ax, rows, across)


def coefficients_height(n_features: int) -> float:
    """Return the height, in inches, of a chart with a bar for each feature."""
    return 1.15 + 0.29 * max(1, min(n_features, SHOWN))  # with three lines below the axis


def _effect(facts: Facts) -> str:
    if facts.outputs:
        return "size of the coefficients"
    if len(facts.classes) == 2 and facts.multiplies:
        return f"change of log-odds of {shortened(facts.classes[-1], 20)}"
    return f"change of the logarithm of {facts.multiplies}" if facts.multiplies else "change of the prediction"


def _near_nonzero(effects: np.ndarray) -> np.ndarray:
    """Return where a path or its neighbour over k is not zero, so that its line is drawn."""
    near: np.ndarray = np.pad(effects != 0, ((1, 1), (0, 0)))
    near = near[:-2] | near[1:-1] | near[2:]
    return near
