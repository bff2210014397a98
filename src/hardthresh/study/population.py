"""Where the examples of a simulated study come from: a guess of the signal, or an old table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri

from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.errors import InvalidInputError, format_value, plural
from hardthresh.core.numbers import number, percent
from hardthresh.core.typing import Array
from hardthresh.limited.algorithms.moments import Moments
from hardthresh.limited.algorithms.support_choice import choose

from .models import fitted
from .reading import suggestion
from .terms import Terms

NEW = 1000
"""Most examples on which the error of a simulated study is measured; with so many it varies by 5 % at most."""
FEWEST_ROWS = 50  # complete rows of a table: a third of fewer says next to nothing about errors; arbitrary
_HELD_OUT = 1 / 3  # of the rows of a table, as is usual
_QUANTILES = ndtri((np.arange(2001) + 0.5) / 2001)  # of the normal distribution, for a sum over it


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Examples of a simulated study, and new ones to measure its error on.

    Attributes
    ----------
    X, y : array
        The examples, all columns and targets.
    X_new, y_new : array
        New examples.
    best : array
        Predictions of the new targets by the best model.
    right : int array
        The columns that should be found.
    """

    X: Array
    y: Array
    X_new: Array
    y_new: Array
    best: Array
    right: Array


class Population(Protocol):
    """What examples are drawn from."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed, in words."""

    @property
    def constant(self) -> tuple[str, ...]:
        """The columns that do not vary."""

    def draw(self, n: int, rng: np.random.Generator) -> Draw:
        """Return n examples of a study, and new ones."""


def prediction_limit(terms: Terms) -> float:
    """Return what the attributes of a prediction may cost."""
    return terms.cost_model.prediction_limit if terms.prediction_budget is None else terms.prediction_budget


def usable_columns(terms: Terms) -> Array:
    """Return the columns whose panels may be in a prediction, and be explored beside any."""
    cost_model = terms.cost_model
    dearest = cost_model.panel_limit(prediction_limit(terms))
    return np.flatnonzero(cost_model.within_budget(cost_model.price[cost_model.panel], dearest))


def most_columns(terms: Terms, chosen: Sequence[int] = ()) -> int:
    """Return how many columns, at most `n_nonzero_coefs`, a prediction may buy together, with all that were chosen."""
    cost_model = terms.cost_model
    panels, sizes = np.unique(cost_model.panel[usable_columns(terms)], return_counts=True)
    bought = np.isin(panels, cost_model.panel[np.array(chosen, dtype=np.intp)])
    counts = np.arange(terms.n_nonzero_coefs + 1)
    cheapest = np.where(counts <= np.sum(sizes[bought]), cost_model.cost(chosen), np.inf)  # of so many columns or more
    for panel, size in zip(panels[~bought], sizes[~bought], strict=True):
        cheapest = np.minimum(cheapest, cheapest[np.maximum(0, counts - size)] + cost_model.price[panel])
    return int(np.max(counts[cost_model.within_budget(cheapest, prediction_limit(terms))], initial=0))


@dataclass(frozen=True, eq=False)
class Guess:
    """Examples by a guess of how well a few columns predict the target.

    Attributes
    ----------
    terms : Terms
        The terms of the study.
    needed : int or sequence of str
        How many columns have an effect, or the names of the attributes.
    r2 : float
        The share of the variance of the target that they explain.
    auc : float
        Of two classes, the probability that the best model ranks a pair of both correctly.
    share : float
        The share of the second class.
    correlation : float
        Between any two attributes, 0 or more.
    """

    terms: Terms
    needed: int | Sequence[str]
    r2: float = 0.5
    auc: float = 0.8
    share: float = 0.5
    correlation: float = 0.1

    def __post_init__(self) -> None:
        checked_number("r2", self.r2, above=0.0, most=1.0)
        checked_number("auc", self.auc, above=0.5, below=1.0)
        checked_number("share", self.share, above=0.0, below=1.0)
        checked_number("correlation", self.correlation, least=0.0, below=1.0)
        if isinstance(self.needed, str) or not isinstance(self.needed, Iterable):
            most = most_columns(self.terms)
            checked_integer("needed", self.needed, 1, most, "the number of columns that a prediction may need and buy")
        else:
            self._check_names(self.needed)

    def _check_names(self, names: Iterable[str]) -> None:
        terms = self.terms
        for name in names:
            if terms.attribute(name) is terms.target:
                raise InvalidInputError(f"needed must name attributes, and {format_value(name)} is the target")
        if not self._named.size:
            raise InvalidInputError("needed must name attributes, or be the number of columns with an effect")
        if self._named.size > terms.n_nonzero_coefs:
            raise InvalidInputError(
                f"needed names attributes with {plural(self._named.size, 'column')}, but n_nonzero_coefs = "
                f"{terms.n_nonzero_coefs} in the terms: no study can find them all; name fewer, or raise it"
            )
        cost, limit = terms.cost_model.cost(self._named), prediction_limit(terms)
        if not terms.cost_model.within_budget(cost, limit) or not np.isin(self._named, usable_columns(terms)).all():
            raise InvalidInputError(
                f"the attributes that needed names cost {terms.money(cost)}, and a prediction may cost "
                f"{terms.money(limit)}, beside the exploration of the others: no study can find them all; name cheaper "
                "ones, or raise prediction_budget or budget_per_example"
            )

    @cached_property
    def _named(self) -> Array:
        assert not isinstance(self.needed, int)
        return np.array(self.terms.columns_at(self.needed), dtype=np.intp)

    @property
    def constant(self) -> tuple[str, ...]:
        """The columns that do not vary: none."""
        return ()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed, in words."""
        if isinstance(self.needed, int):
            have = "has an effect; it is" if self.needed == 1 else "have equal effects; they are"
            which = f"{plural(self.needed, 'column')} {have} drawn anew for each study, among those that a "
            which += f"prediction may buy together, at a cost of {self.terms.money(prediction_limit(self.terms))}"
        else:
            have = "has an effect" if self._named.size == 1 else "have equal effects"
            which = f"{', '.join(self.needed)} {have} of random sign"
        if self.terms.is_class:
            signal = f"the best model has an AUC of {number(self.auc)}, and the second class a share of "
            signal += percent(self.share)
        else:
            signal = f"R² = {number(self.r2)} of the best model"
        return (which, f"{signal}; attributes are normal, with correlation {number(self.correlation)}")

    def draw(self, n: int, rng: np.random.Generator) -> Draw:
        """Return n examples of a study, and new ones."""
        total = n + NEW
        X = self._columns(total, rng)
        right = self._right(rng) if isinstance(self.needed, int) else self._named
        deviation = np.std(X[:, right], axis=0)
        signal = X[:, right] @ (rng.choice([-1.0, 1.0], right.size) / np.where(deviation > 0, deviation, 1.0))
        signal = (signal - np.mean(signal)) / max(float(np.std(signal)), 1e-12)  # two that cancel have no effect
        if self.terms.is_class:
            slope, level = self._logit
            best = expit(slope * signal + level)
            y = (rng.random(total) < best).astype(np.float64)
        else:
            best = sqrt(self.r2) * signal
            y = best + sqrt(1.0 - self.r2) * rng.standard_normal(total)
        return Draw(X[:n], y[:n], X[n:], y[n:], best[n:], right)

    def _columns(self, total: int, rng: np.random.Generator) -> Array:
        """Return correlated normal numbers, cut into levels where an attribute has them."""
        common = rng.standard_normal(total)
        columns: list[Array] = []
        for attribute in self.terms.attributes:
            own = rng.standard_normal(total)
            z = sqrt(self.correlation) * common + sqrt(1.0 - self.correlation) * own
            levels = len(attribute.levels) or (2 if attribute.kind == "yes/no" else 0)
            if levels:
                z = np.minimum(np.floor(levels * ndtr(z)), levels - 1)
            columns += np.transpose([attribute.encode(value) for value in z]).tolist() if levels else [z]
        return np.column_stack(columns)

    def _right(self, rng: np.random.Generator) -> Array:
        """Return as many columns as are needed, which a prediction may buy together."""
        chosen: list[int] = []
        for column in rng.permutation(usable_columns(self.terms)):
            if len(chosen) == self.needed:
                break
            if most_columns(self.terms, [*chosen, column]) >= self.needed:  # type: ignore[operator]
                chosen.append(int(column))
        return np.sort(np.array(chosen, dtype=np.intp))

    @cached_property
    def _logit(self) -> tuple[float, float]:
        """The slope and intercept of the log-odds that give the AUC and the share, for a normal signal."""

        def level(slope: float) -> float:
            return float(brentq(lambda b: np.mean(expit(slope * _QUANTILES + b)) - self.share, -1000.0, 1000.0))

        def excess(slope: float) -> float:
            p = expit(slope * _QUANTILES + level(slope))
            below = np.cumsum(1 - p) - 0.5 * (1 - p)  # of the other class, and half of those with the same signal
            return float(np.sum(p * below) / (np.sum(p) * np.sum(1 - p))) - self.auc

        slope = float(brentq(excess, 1e-6, 100.0)) if excess(100.0) > 0 else 100.0  # an AUC of 0.99 has 13
        return slope, level(slope)


@dataclass(frozen=True, eq=False)
class OldTable:
    """Examples from the rows of an old table, without those that are incomplete.

    Attributes
    ----------
    terms : Terms
        The terms of the study.
    X, y : array
        The columns, and the targets.
    incomplete : int
        Rows that were left out.
    """

    terms: Terms
    X: Array
    y: Array
    incomplete: int = 0

    @classmethod
    def of(cls, terms: Terms, table: Any) -> OldTable:
        """Return the rows of a data frame, read as answers are.

        Parameters
        ----------
        terms : Terms
            The terms.
        table : data frame
            It has a column for each attribute and the target, by name.

        Raises
        ------
        InvalidInputError
            If a column is not there, a value cannot be read, or too few rows are complete.
        """
        try:
            frame = nw.from_native(table, eager_only=True)
        except TypeError:
            raise InvalidInputError(f"table must be a data frame, got {type(table).__name__}") from None
        parts: list[list[Any]] = []
        known = np.ones(len(frame), dtype=bool)
        for attribute in (*terms.attributes, terms.target):
            if attribute.name not in frame.columns:
                similar = suggestion(attribute.name, frame.columns)
                raise InvalidInputError(f"the table has no column {attribute.name!r}{similar}")
            values = [None if value != value else value for value in frame.get_column(attribute.name).to_list()]
            parts.append([_parsed(attribute, value, row) for row, value in enumerate(values)])
            known &= np.array([value is not None for value in parts[-1]], dtype=bool)
        if np.count_nonzero(known) < FEWEST_ROWS:
            raise InvalidInputError(
                f"{np.count_nonzero(known)} of {len(frame)} rows of the table have a value for every attribute and the "
                f"target; only such rows can be used, and {FEWEST_ROWS} or more are needed. The rows of an adaptive "
                "study are hardly ever complete: take the table of a study that measured everything, or plan with a "
                "guess of the signal"
            )
        rows = np.flatnonzero(known).tolist()
        columns = [
            np.array([attribute.encode(values[row]) for row in rows])
            for attribute, values in zip(terms.attributes, parts[:-1], strict=True)
        ]
        target = np.array([parts[-1][row] for row in rows])
        if np.ptp(target) == 0:
            raise InvalidInputError(f"{terms.target.name} is {format_value(target[0])} in every row")
        return cls(terms, np.hstack(columns), target, len(frame) - len(rows))

    @property
    def constant(self) -> tuple[str, ...]:
        """The columns that do not vary."""
        return tuple(self.terms.columns[j] for j in np.flatnonzero(np.ptp(self.X, axis=0) == 0))

    @cached_property
    def right(self) -> Array:
        """The columns that the learner would choose if it saw the whole table, within what a prediction may cost."""
        terms, columns = self.terms, usable_columns(self.terms)
        moments = Moments.none(columns.size + 1).absorb(np.column_stack([self.X[:, columns], self.y]))
        found = choose(moments, columns, terms.cost_model, terms.n_nonzero_coefs, prediction_limit(terms))
        return columns[found.chosen]

    @property
    def kept_back(self) -> int:
        """The rows on which errors are measured."""
        return min(NEW, int(_HELD_OUT * len(self.y)))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed, in words."""
        names = ", ".join(self.terms.columns[j] for j in self.right)
        said = [
            f"new examples are like the {len(self.y)} complete rows of the table"
            + (f" (incomplete and left out: {self.incomplete})" if self.incomplete else ""),
            f"right is what the whole table chooses: {names}",
            f"each study learns from up to {len(self.y) - self.kept_back} rows, and its error is measured on "
            f"{self.kept_back} others; a study of more examples repeats rows, and looks too good",
        ]
        return tuple(said)

    def draw(self, n: int, rng: np.random.Generator) -> Draw:
        """Return n examples of a study, and new ones."""
        order = rng.permutation(len(self.y))
        new, old = order[: self.kept_back], order[self.kept_back :]
        rows = old[:n] if n <= old.size else rng.choice(old, n)
        predict = fitted(self.X[old], self.y[old], self.right, is_class=self.terms.is_class)
        return Draw(self.X[rows], self.y[rows], self.X[new], self.y[new], predict(self.X[new]), self.right)


def _parsed(attribute: Any, value: Any, row: int) -> float | None:
    try:
        parsed: float | None = attribute.parse(value)
    except InvalidInputError as error:
        raise InvalidInputError(f"row {row} of the table: {error}") from error
    return parsed
