"""Charts of the predictions of classes: confusion matrix, ROC and precision-recall curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.numbers import number, percent

from .style import BAND, DARK, LEGEND, MUTED, TITLE, matrix_axes, shade, shortened, styled_axes, takes_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@takes_axes
def plot_roc(y: Any, score: Any, ax: Axes | None = None, *, sample_weight: Any = None) -> Axes:
    """Draw the ROC curve (receiver operating characteristic): the true positive rate against the false positive rate.

    Parameters
    ----------
    y : array of bool or of 0 and 1, shape (n,)
        Whether each row is of the class.
    score : array, shape (n,)
        A score that is larger for rows that are more likely to be of the class: probabilities or log-odds.
    {ax}
    sample_weight : array, shape (n,), optional
        Weights.

    {returns}
    InvalidInputError
        If all rows are of one class.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.report import plot_roc
    >>> plot_roc(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8])).get_title("left")
    'area under the curve 0.75'
    """
    from sklearn.metrics import auc, roc_curve

    y = _two_classes(y)
    wrong, found, _ = roc_curve(y, score, sample_weight=sample_weight)
    ax = _unit_square(styled_axes(ax, height=4.2))
    ax.plot([0, 1], [0, 1], color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1, label="chance")
    ax.fill_between(wrong, found, color=BAND, linewidth=0, zorder=0.5)
    ax.plot(wrong, found, color=DARK, linewidth=1.9, zorder=2)
    ax.set_xlabel("share of the other class taken for it")
    ax.set_ylabel("share of the class found")
    ax.set_title(f"area under the curve {number(float(auc(wrong, found)))}", **TITLE)
    ax.legend(**LEGEND, loc="lower right")
    return ax


@takes_axes
def plot_precision_recall(y: Any, score: Any, ax: Axes | None = None, *, sample_weight: Any = None) -> Axes:
    """Draw the precision against the recall of a class for all thresholds of a score.

    Precision is the share of rows above the threshold that are of the class, recall the share of the class that is
    above the threshold. This curve is more informative than the ROC curve if the class is rare.

    Parameters
    ----------
    y : array of bool or of 0 and 1, shape (n,)
        Whether each row is of the class.
    score : array, shape (n,)
        A score that is larger for rows that are more likely to be of the class.
    {ax}
    sample_weight : array, shape (n,), optional
        Weights.

    {returns}
    InvalidInputError
        If all rows are of one class.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.report import plot_precision_recall
    >>> plot_precision_recall(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8])).get_title("left")
    'average precision 0.833'
    """
    from sklearn.metrics import average_precision_score, precision_recall_curve

    y = _two_classes(y)
    precision, recall, _ = precision_recall_curve(y, score, sample_weight=sample_weight)
    share = float(np.average(y, weights=sample_weight))
    ax = _unit_square(styled_axes(ax, height=4.2))
    ax.axhline(share, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1, label=f"chance: {number(share)}")
    ax.plot(recall, precision, color=DARK, linewidth=1.9, drawstyle="steps-post", zorder=2)
    ax.set_xlabel("share of the class found (recall)")
    ax.set_ylabel("share of these that are\nof the class (precision)")
    average = average_precision_score(y, score, sample_weight=sample_weight)
    ax.set_title(f"average precision {number(float(average))}", **TITLE)
    ax.legend(**LEGEND, loc="lower left")
    return ax


@takes_axes
def plot_confusion(
    y: Any, predicted: Any, ax: Axes | None = None, *, classes: Any = None, sample_weight: Any = None
) -> Axes:
    r"""Draw the confusion matrix: the number of rows of each true and predicted class.

    Each cell shows the number of rows, or their weight, and its share of the true class; darker cells have a larger
    share.

    Parameters
    ----------
    y, predicted : array, shape (n,)
        Classes, and predicted classes.
    {ax}
    classes : array, shape (n_classes,), optional
        The classes in order. Default: the sorted classes that occur.
    sample_weight : array, shape (n,), optional
        Weights.

    {returns}
    InvalidInputError
        If a label is not among the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.report import plot_confusion
    >>> ax = plot_confusion(np.array(["a", "a", "b"]), np.array(["a", "b", "b"]))
    >>> [text.get_text() for text in ax.texts]
    ['1\n50 %', '1\n50 %', '0\n0 %', '1\n100 %']
    """
    y, predicted = np.asarray(y), np.asarray(predicted)
    known = np.unique(np.concatenate([y, predicted])) if classes is None else np.asarray(classes)
    names = [str(name) for name in known]
    places = {name: place for place, name in enumerate(known.tolist())}
    try:
        rows, columns = ([places[label] for label in labels.tolist()] for labels in (y, predicted))
    except KeyError as error:
        raise InvalidInputError(f"the label {error.args[0]!r} is none of the classes {names}") from error
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    counts = np.zeros((len(names), len(names)))
    np.add.at(counts, (rows, columns), weight)
    totals, unit = counts.sum(axis=1), "rows" if np.allclose(weight, 1.0) else "weighted rows"
    ax = styled_axes(ax, height=1.6 + 0.7 * len(names))
    for (i, j), count in np.ndenumerate(counts):
        share = count / totals[i] if totals[i] else 0.0
        tip = f"{names[i]}: {number(count)} {unit} ({percent(share)}) predicted to be {names[j]}"
        shade(ax, j, i, share, f"{number(count)}\n{percent(share)}", tip)
    ax.set_xlabel("predicted")
    ax.set_ylabel("observed")
    return matrix_axes(ax, [shortened(name, 16) for name in names], names)


def _two_classes(y: Any) -> np.ndarray:
    """Return labels as 0 and 1."""
    y = np.asarray(y)
    if not np.isin(y, (0, 1)).all() or len(np.unique(y)) != 2:
        raise InvalidInputError(f"rows of two classes, 0 and 1, are needed; y has {np.unique(y).tolist()[:5]}")
    return np.asarray(y, dtype=np.int64)


def _unit_square(ax: Axes) -> Axes:
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.04)
    return ax
