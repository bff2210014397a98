"""How far a study is: the honest error of its predictions, and whether the choice of attributes has settled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hardthresh.core.checking import checked_number
from hardthresh.core.numbers import percent
from hardthresh.core.typing import Array

from .chosen import ChosenColumn, chosen_columns, unchanged_since
from .intervals import LEVEL, Interval, mean_interval, share_interval
from .models import losses
from .records import Learned

RECENT = 0.2
"""The share of the examples in the window. In ``benchmarks/study.py`` the error varies by an eighth more with 0.1, as
much with 0.3, and with 0.5 the band covers the error of the present model in 83 % of the studies instead of 94 %."""
FEWEST = 128
"""Or so many examples; with 64 the error of short studies varies by 10 to 50 % more, and the band covers as often."""
SETTLED = 0.5
"""The share of the examples since when a settled choice has been the same: what the guide tells readers to look at."""
_POINTS = 256  # of a curve, more than a plot can show


@dataclass(frozen=True, slots=True)
class MeasuredError:
    """The error of the latest predictions, beside that of a prediction that uses no attributes.

    Attributes
    ----------
    name : str
        What is measured, such as "mean squared error".
    model : Interval
        Of the predictions.
    null : Interval
        Of the mean of the targets before, or the share of each class.
    gain : Interval
        The mean difference, null less model, on the same examples.
    """

    name: str
    model: Interval
    null: Interval
    gain: Interval

    def __str__(self) -> str:
        return f"{self.name}: {self.model}; without attributes {self.null.estimate}"

    def to_dict(self) -> dict[str, Any]:
        """Return names and numbers, for JSON."""
        return {"name": self.name, **{part: getattr(self, part).to_dict() for part in ("model", "null", "gain")}}


@dataclass(frozen=True, slots=True, eq=False)
class ErrorCurve:
    """The error over time: at each point that of the window of examples before it.

    Attributes
    ----------
    examples : int array
        How many examples were learned from.
    money : array
        What they cost.
    error, low, high : array
        The mean error of the window, and its band.
    null : array
        The mean error without attributes.
    """

    examples: Array
    money: Array
    error: Array
    low: Array
    high: Array
    null: Array

    def to_dict(self) -> dict[str, list[float | None]]:
        """Return a list for each column, with None for what is not finite."""
        return {name: _finite(getattr(self, name)) for name in ("examples", "money", "error", "low", "high", "null")}


@dataclass(frozen=True, slots=True, eq=False)
class Progress:
    """What a study has reached; ``print`` it to read it.

    Attributes
    ----------
    examples : int
        How many examples were learned from.
    window : int
        The number of the latest of them that the errors are means over.
    errors : tuple of MeasuredError
        The mean squared error; for two classes the log loss, the Brier score and the share of errors.
    curve : ErrorCurve
        The first of them over time.
    chosen : tuple of ChosenColumn
        The columns that are chosen now, and those that were in the latest batches.
    same_for : int
        How many of the latest examples were learned from without a change in the choice.
    settled : bool
        Whether that is half of all examples or more, and every chosen column looks needed.
    level : float
        The confidence of the bands, each at one look.
    """

    examples: int
    window: int
    errors: tuple[MeasuredError, ...]
    curve: ErrorCurve
    chosen: tuple[ChosenColumn, ...]
    same_for: int
    settled: bool
    level: float = LEVEL

    def __str__(self) -> str:
        if not self.examples:
            return "The error of predictions is not known: it needs a complete round that was learned from."
        lines = [
            f"Errors on the latest {self.window} of {self.examples} examples, predicted before they were learned from "
            f"({percent(self.level)} intervals at one look):",
            *(f"  {error}" for error in self.errors),
            f"  {self._verdict()}",
            self.choice,
            *(f"  {column}" for column in self.chosen),
        ]
        return "\n".join(lines)

    @property
    def support(self) -> tuple[str, ...]:
        """The names of the columns that are chosen now."""
        return tuple(column.name for column in self.chosen if column.now)

    def _verdict(self) -> str:
        gain = self.errors[0].gain
        if gain.low > 0:
            return "At this look, the predictions are better than those without attributes."
        if gain.high < 0:
            return "At this look, the predictions are worse than those without attributes."
        return "The predictions cannot be told from those without attributes yet."

    @property
    def choice(self) -> str:
        """Whether the choice of attributes looks settled, in a sentence."""
        if not self.support:
            return "No attribute is chosen yet."
        latest = f"the latest {self.same_for:,} of {self.examples:,} examples"
        if self.settled:
            return f"The choice of attributes is the same for {latest}, and each looks needed: it looks settled."
        if self.same_for >= SETTLED * self.examples:
            return f"The choice of attributes is the same for {latest}, but not all look needed: it is not settled."
        return f"The choice of attributes is the same for only {latest}: it is not settled."

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, for JSON."""
        return {
            "examples": self.examples,
            "window": self.window,
            "level": self.level,
            "errors": [error.to_dict() for error in self.errors],
            "curve": self.curve.to_dict(),
            "support": list(self.support),
            "chosen": [column.to_dict() for column in self.chosen],
            "same_for": self.same_for,
            "settled": self.settled,
        }


def progress(learned: Learned, *, level: float = LEVEL) -> Progress:
    r"""Return the error of the latest predictions with its band, and how steady the choice of attributes is.

    .. math:: \bar\ell = \frac1m \sum_{i = n - m + 1}^n \ell(y_i, \hat y_i), \qquad
              \bar\ell \pm t_{m - 1} \, \frac{\mathrm{sd}(\ell)}{\sqrt m}

    where :math:`\hat y_i` was made before example i was learned from, so that it needs no test set, and m is a fifth of
    the examples, or 128 where that is more.

    Parameters
    ----------
    learned : Learned
        What the study has learned from.
    level : float
        The confidence of the bands, above 0 and below 1.

    Returns
    -------
    Progress

    Raises
    ------
    InvalidInputError
        For a `level` out of range.

    See Also
    --------
    drift : Whether early and late examples differ.

    Notes
    -----
    The band holds at one look: if a study is closed because a band looks good, it is too good. It assumes that the
    examples are independent and come in no order, and that the model hardly changes within the window; it is about the
    mean of the models of the window, and the present model is rarely worse. A share of errors has Wilson's interval.
    Without attributes, numbers are predicted by the mean of the targets before (0 at first), and classes by their
    shares, (n_1 + 1/2)/(n + 1). Probabilities are kept 1e-15 away from 0 and 1, as the log loss would be infinite.
    Whether a chosen column is needed is tested on the examples since the choice last changed, which were not there when
    it was made; that it survived depends on them. The test is linear regression with the standard errors HC3. A column
    that stands in for another one looks needed, too; that a choice is settled is a heuristic. Cost: O(n s^2) operations
    for s chosen columns. ``benchmarks/study.py`` measures how often bands cover, and how often settled choices are
    right.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.limited import AdaptiveHybrid, CostModel
    >>> from hardthresh.study import progress
    >>> from hardthresh.study.simulation import simulate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((600, 12))
    >>> y = X[:, 1] - X[:, 7] + 0.5 * rng.standard_normal(600)
    >>> learned, _ = simulate(AdaptiveHybrid(2), CostModel.of(12, 6), X, y, length=600)
    >>> now = progress(learned)
    >>> now.support, now.settled, round(now.errors[0].model.value, 2)
    (('1', '7'), True, 0.27)
    """
    level = checked_number("level", level, above=0.0, below=1.0)
    n = len(learned.target)
    window = _window(n)
    measures = _measures(learned)
    since = unchanged_since(learned)
    chosen = chosen_columns(learned, n - window, since)
    needed = [column.looks_needed for column in chosen if column.now]
    return Progress(
        examples=n,
        window=window,
        errors=tuple(_error(name, model[n - window :], null[n - window :], level) for name, model, null in measures),
        curve=_curve(learned, measures[0][1], measures[0][2], level),
        chosen=chosen,
        same_for=n - since,
        settled=bool(needed) and all(needed) and n - since >= SETTLED * n,
        level=level,
    )


def first_losses(learned: Learned) -> tuple[str, Array, Array]:
    """Return the name of the squared error or log loss, and for every example that of both predictions."""
    return _measures(learned)[0]


def _window(n: int) -> int:
    return min(n, max(FEWEST, round(RECENT * n)))


def _measures(learned: Learned) -> list[tuple[str, Array, Array]]:
    """Return each measure with its value for every example, by the predictions and without attributes."""
    y, predicted = learned.target, learned.prediction
    seen = np.searchsorted(learned.batch, learned.batch)  # examples in the batches before
    before = np.concatenate([[0.0], np.cumsum(y)])[seen]
    if not learned.is_class:
        null = before / np.maximum(1, seen)
        return [("mean squared error", losses(y, predicted, is_class=False), losses(y, null, is_class=False))]
    share = (before + 0.5) / (seen + 1.0)
    return [
        ("log loss", losses(y, predicted, is_class=True), losses(y, share, is_class=True)),
        ("Brier score", (y - predicted) ** 2, (y - share) ** 2),
        ("share of errors", _wrong(y, predicted), _wrong(y, share)),
    ]


def _wrong(y: Array, probability: Array) -> Array:
    return ((probability > 0.5) != (y == 1)).astype(np.float64)


def _error(name: str, model: Array, null: Array, level: float) -> MeasuredError:
    def interval(losses: Array) -> Interval:
        if name == "share of errors":
            return share_interval(int(np.sum(losses)), len(losses), level)
        return mean_interval(losses, level, least=0.0)

    return MeasuredError(name, interval(model), interval(null), mean_interval(null - model, level))


def _curve(learned: Learned, model: Array, null: Array, level: float) -> ErrorCurve:
    """Return the error at the end of each batch, or of some of them where there are more than a plot can show."""
    ends = np.flatnonzero(np.diff(learned.batch, append=len(learned.chosen))) + 1
    if len(ends) > _POINTS:
        ends = ends[np.linspace(0, len(ends) - 1, _POINTS).round().astype(int)]
    windows = [slice(end - _window(end), end) for end in ends.tolist()]
    bands = [mean_interval(model[window], level, least=0.0) for window in windows]
    return ErrorCurve(
        examples=ends,
        money=np.cumsum(learned.money)[ends - 1],
        error=np.array([band.value for band in bands]),
        low=np.array([band.low for band in bands]),
        high=np.array([band.high for band in bands]),
        null=np.array([float(np.mean(null[window])) for window in windows]),
    )


def _finite(numbers: Array) -> list[float | None]:
    return [x if np.isfinite(x) else None for x in numbers.tolist()]
