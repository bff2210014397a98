"""Confidence intervals of the coefficients of a sparse linear model, printed with their conditions."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.core.errors import plural
from hardthresh.core.frames import pandas_for_frames
from hardthresh.core.numbers import number, signed, total
from hardthresh.core.printed import PrintedTable

from .summary import CAUTION
from .weighting import ROLES, Weights

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True)
class Interval:
    """The interval of one coefficient.

    Attributes
    ----------
    index : int
        The column of the feature.
    feature : str
        Its name.
    output : str
        The output, or class, of the coefficient; empty if there is one vector of them.
    coefficient : float
        The estimate, on the scale of the data.
    standard_error : float
        Its standard error; NaN if the column depends on others, or if too few rows are left for it, as where one row
        alone determines a robust one.
    lower, upper : float
        The ends of the interval.
    p_value : float
        That of the hypothesis that the coefficient is 0; NaN where the same rows chose the feature.
    """

    index: int
    feature: str
    output: str
    coefficient: float
    standard_error: float
    lower: float
    upper: float
    p_value: float


@dataclass(frozen=True, slots=True, repr=False)
class Inference:
    """Intervals of the coefficients of the chosen features; ``print`` shows them with what they are valid for.

    Attributes
    ----------
    kind : {"refit", "split"}
        Whether the same rows chose the features, or others.
    intervals : tuple of Interval
        One for each chosen feature, by increasing column, and for each output.
    level : float
        The nominal coverage.
    robust : bool
        Whether the standard errors are those of a sandwich, which hold asymptotically whether the model of the chosen
        features is right or not.
    n_estimated : int
        The number of rows that the estimates are from.
    n_chosen : int
        The number of other rows that chose the features; 0 for "refit".
    degrees_of_freedom : float or None
        Those of Student's distribution; None for the normal one.
    shrunk : bool
        Whether there are no finite estimates without a ridge, so that these have that of the model.
    weights : {"", "frequency", "precision", "sampling"}
        What the standard errors take the weights of the rows for; empty where there are none.
    weights_assumed : bool
        Whether that was not said, and the standard errors take them for what they look like.
    left_out : tuple of str
        The features of the model that the rows for the choice did not choose.
    unseen_levels : tuple of str
        The levels of chosen categorical columns that only the rows for the estimates have; they count as none of the
        others.
    subject : str
        What it is about, if not the model that it was asked from.
    """

    kind: str
    intervals: tuple[Interval, ...]
    level: float
    robust: bool
    n_estimated: int
    n_chosen: int
    degrees_of_freedom: float | None
    shrunk: bool
    weights: Weights = ""
    weights_assumed: bool = False
    left_out: tuple[str, ...] = ()
    unseen_levels: tuple[str, ...] = ()
    subject: str = ""

    @property
    def heading(self) -> str:
        """The heading of the intervals."""
        return CAUTION if self.kind == "refit" else f"{100 * self.level:.4g} % interval"

    def to_dict(self) -> dict[str, Any]:
        """Return it as numbers, words and lists, which `json` can write; None stands for NaN."""
        return {
            "kind": self.kind,
            "level": self.level,
            "robust": self.robust,
            "n_estimated": self.n_estimated,
            "n_chosen": self.n_chosen,
            "degrees_of_freedom": self.degrees_of_freedom,
            "shrunk": self.shrunk,
            "weights": self.weights or None,
            "weights_assumed": self.weights_assumed,
            "left_out": list(self.left_out),
            "unseen_levels": list(self.unseen_levels),
            "about": self.subject or "the model",
            "features": [self._record(interval) for interval in self.intervals],
        }

    def to_frame(self) -> pandas.DataFrame:
        """Return one row for each coefficient as a pandas data frame, whose columns have two levels.

        The ends of the intervals are below `heading`.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.
        """
        pandas = pandas_for_frames()
        several = any(interval.output for interval in self.intervals)
        names = [*([("", "output")] if several else []), ("estimate", "coefficient"), ("estimate", "standard error")]
        names += [(self.heading, "lower"), (self.heading, "upper"), *([("test", "p-value")] if self._tested else [])]
        rows = [
            [
                *([one.output] if several else []),
                *(one.coefficient, one.standard_error, one.lower, one.upper),
                *([one.p_value] if self._tested else []),
            ]
            for one in self.intervals
        ]
        index = pandas.Index([one.feature for one in self.intervals], name="feature")
        return pandas.DataFrame(rows, index=index, columns=pandas.MultiIndex.from_tuples(names))

    def __str__(self) -> str:
        return self._printed().to_text()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self._printed().to_html()

    @property
    def _lacks_errors(self) -> bool:
        return all(isnan(one.standard_error) for one in self.intervals)

    @property
    def _tested(self) -> bool:
        return self.kind == "split"

    def _record(self, one: Interval) -> dict[str, Any]:
        known: dict[str, Any] = {
            "feature": one.feature,
            "index": one.index,
            "output": one.output,
            "coefficient": one.coefficient,
            "standard_error": _plain(one.standard_error),
            self.heading: [_plain(one.lower), _plain(one.upper)],
        }
        return known | ({"p_value": _plain(one.p_value)} if self._tested else {})

    def _printed(self) -> PrintedTable:
        several = any(interval.output for interval in self.intervals)
        header = ["feature", *(["output"] if several else []), "coefficient", "SE", self.heading]
        header += ["p-value"] if self._tested else []
        rows = [
            [
                one.feature,
                *([one.output] if several else []),
                signed(one.coefficient),
                *("–" if isnan(one.standard_error) else text for text in _cells(one, self._tested)),
            ]
            for one in self.intervals
        ]
        return PrintedTable(self._head(), header, rows, self._notes(), left=("feature", "output"))

    def _head(self) -> list[str]:
        share = f"{100 * self.level:.4g} %"
        lines = [f"About {self.subject}."] if self.subject else []
        if self.kind == "refit":
            if not self.intervals:
                return [*lines, "The model has no feature, so that there is no interval."]
            lines.append(
                f"Intervals of {share} as if the features had been given, from {plural(self.n_estimated, 'row')}. "
                "The same rows chose them:"
            )
            lines.append(f"{CAUTION}. Those of features without an effect seldom cover 0.")
            return lines
        lines.append(f"Chosen on {plural(self.n_chosen, 'row')}, estimated on {self.n_estimated:,} others.")
        if not self.intervals:
            return [
                *lines,
                "The rows for the choice chose no feature, so that there is no interval.",
                *self._differences(),
            ]
        if self._lacks_errors:
            lines.append("These are too few rows for intervals.")
            return [*lines, *self._differences()]
        lines[-1] = lines[-1][:-1] + ": the intervals are asymptotically valid"
        of = (
            "for the best linear predictor of these features"
            if self.robust
            else "if the model of these features is right"
        )
        lines.append(f"{of}. With half of the rows they are about 1.6 times as wide.")
        return [*lines, *self._differences()]

    def _differences(self) -> list[str]:
        """Return what the rows for the choice have not, as sentences."""
        lines = []
        if self.unseen_levels:
            levels = ", ".join(self.unseen_levels)
            lines.append(f"Levels that the rows for the choice do not have count as none of the others: {levels}.")
        if self.left_out:
            lines.append(f"Of the model, these rows did not choose {', '.join(self.left_out)}.")
        return lines

    def _notes(self) -> list[str]:
        if not self.intervals:
            return []
        of = "the normal distribution" if self.degrees_of_freedom is None else "Student's distribution with "
        of += "" if self.degrees_of_freedom is None else f"{total(self.degrees_of_freedom)} degrees of freedom"
        notes = [f"Quantiles of {of}; {'robust' if self.robust else 'model-based'} standard errors."]
        if self.weights:
            taken = f"Weights are {'taken for ' * self.weights_assumed}{ROLES[self.weights]}"
            others = " and ".join(f'weights="{role}"' for role in ROLES if role != self.weights)
            notes.append(f"{taken}; {others} say otherwise." if self.weights_assumed else f"{taken}.")
        if self._lacks_errors:
            rows = plural(self.n_estimated, "row")
            notes.append(f"No standard errors: {rows} are too few, or the columns depend linearly on each other.")
        if self.shrunk:
            notes.append(
                "The rows have no finite estimates without a ridge, as where features separate the classes: the "
                "estimates are shrunk by that of the model, and the intervals leave their bias out."
            )
        if self.kind == "refit" and self.n_estimated // 2 > len(self.intervals) + 1:  # a half can estimate as many
            notes.append('inference(X, y, kind="split") has valid intervals, about 1.6 times as wide.')
        return notes


def _cells(one: Interval, tested: bool) -> list[str]:
    ends = f"{signed(one.lower)} to {signed(one.upper)}"
    p_value = "< 0.001" if one.p_value < 1e-3 else f"{one.p_value:.3f}"
    return [number(one.standard_error), ends, *([p_value] if tested else [])]


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
