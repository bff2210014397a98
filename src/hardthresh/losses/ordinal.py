"""The cumulative logit of ordered classes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np

from hardthresh.arrays import double, namespace, to_numpy
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.registry import register
from hardthresh.core.typing import Array
from hardthresh.designs import Design, ThresholdDesign

from .contrasts import Contrasts
from .joint import JointLoss
from .logistic import sigmoid
from .mean import JointHessian, ScalarMeanLoss, alike


@register("loss", "ordinal", examples=lambda: [Ordinal(), Ordinal(n_classes=3)])
@dataclass(frozen=True)
class Ordinal(JointLoss):
    r"""The negative log-probability of ordered classes with proportional odds.

    .. math:: \ell(a, b) = \log(1 + e^{-a}) + \log(1 + e^b) - \log(1 - e^{b - a}),
              \qquad P(y \le c) = \frac{1}{1 + e^{-(t_c - u)}}

    The two predictions of an example of class y are :math:`a = t_y - u` and :math:`b = t_{y-1} - u`, the distances of a
    linear predictor u from the thresholds :math:`t_0 < \ldots < t_{C-2}` above and below the class. The highest class
    has no a, the lowest has no b, and their terms are omitted.

    Parameters
    ----------
    n_classes : int, optional
        C; default: one more than the largest target.

    Notes
    -----
    Targets are the numbers 0, 1, ..., C - 1 of the classes. Predictions are all a followed by all b, shape (2n,). The
    loss is infinite if the thresholds are not increasing, and otherwise jointly convex in thresholds and coefficients,
    so both are coordinates of a point; see `hardthresh.objectives.OrdinalModel`.

    References
    ----------
    P. McCullagh (1980), *Regression models for ordinal data*; J. Burridge (1981), *A note on maximum likelihood
    estimation for regression models using grouped data*, on convexity.

    Examples
    --------
    >>> import numpy as np
    >>> mean = Ordinal().prepare(np.array([0.0, 1.0, 2.0]), np.full(3, 1 / 3))
    >>> round(mean.value(np.array([1.0, 1.0, 0.0, 0.0, -1.0, -1.0])), 6)  # thresholds 1 and -1, and u = 0
    0.466153
    """

    n_classes: int | None = None

    domain: ClassVar[str] = "the numbers 0, 1, 2, ... of ordered classes"
    classifies: ClassVar[bool] = True
    target_kind: ClassVar[str] = "classes"
    multiplies: ClassVar[str] = "the odds of a higher class"
    default_ridge: ClassVar[float] = 1e-2  # few columns often separate classes, and then have no finite coefficients
    n_predictions: ClassVar[int] = 2
    score_name: ClassVar[str] = "neg_log_loss"

    def count(self, y: Array) -> int:
        """Return the number of classes."""
        return int(namespace(y).max(y)) + 1 if self.n_classes is None else self.n_classes

    def check_targets(self, y: Array) -> None:
        plain = to_numpy(y)
        if plain.ndim != 1:
            raise InvalidInputError(f"the Ordinal loss needs targets that are {self.domain}; y has shape {plain.shape}")
        limit = inf if self.n_classes is None else self.n_classes
        bad = np.flatnonzero(~((plain >= 0) & (plain < limit) & (plain == np.floor(plain))))
        if bad.size:
            raise InvalidInputError(
                f"the Ordinal loss needs targets that are {self.domain}; y[{bad[0]}] is {float(plain[bad[0]])}"
            )

    def prepare(self, y: Array, weights: Array) -> OrdinalMean:
        label, omega, count = to_numpy(y).astype(np.int64), double(weights), self.count(y)
        empty = np.flatnonzero(np.bincount(label, weights=omega, minlength=count) == 0)
        if count < 2 or empty.size:
            what = f"class {empty[0]} has no examples of positive weight" if empty.size else "there is one class only"
            raise InvalidInputError(f"{what}; number the classes that there are 0, 1, 2, ...")
        return OrdinalMean(label, omega, count)

    def example_target(self, u: np.ndarray, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        """Draw three classes."""
        drawn: np.ndarray = np.searchsorted([-1.0, 1.0], u + noise * rng.logistic(size=u.shape)).astype(u.dtype)
        return drawn

    def minus_twice_log_likelihood(self, y: Array, u: Array, weights: Array, n: float) -> float:
        return 2.0 * n * self.prepare(y, weights / namespace(weights).sum(weights)).value(u)


def class_probabilities(log_odds: np.ndarray) -> np.ndarray:
    """Return the probability of each class, shape (n, C), without cancellation near 1.

    They are differences of those of the classes up to each threshold, whose log-odds, thresholds less linear
    predictors, have shape (n, C - 1). The difference of two that are both above 1/2 is that of their complements.
    """
    n = len(log_odds)
    none, all_ = np.zeros((n, 1)), np.ones((n, 1))
    below = np.diff(np.concatenate([none, sigmoid(log_odds), all_], axis=1), axis=1)
    above = -np.diff(np.concatenate([all_, sigmoid(-log_odds), none], axis=1), axis=1)
    in_upper_half = np.concatenate([np.zeros((n, 1), dtype=bool), log_odds > 0], axis=1)
    return np.where(in_upper_half, above, below)


@dataclass(frozen=True, slots=True, eq=False)
class OrdinalMean(ScalarMeanLoss):
    """The mean loss of given classes.

    Attributes
    ----------
    label : array of int, shape (n,)
        The class of each example.
    weights : array, shape (n,)
        Its weight in the mean.
    n_classes : int
        The number of classes, each of which has weight.
    """

    label: np.ndarray
    weights: np.ndarray
    n_classes: int

    @property
    def lower_bound(self) -> float:  # type: ignore[override]
        return 0.0

    def thresholds(self) -> np.ndarray:
        """Return those that predict the share of each class for all examples: cumulative log-odds, shape (C - 1,)."""
        shares = np.bincount(self.label, weights=self.weights, minlength=self.n_classes)
        below = np.cumsum(shares)[:-1]
        found: np.ndarray = np.log(below / np.cumsum(shares[::-1])[::-1][1:])
        return found

    def value(self, u: Array) -> float:
        return self._value(*self._parts(u))

    def value_and_slopes(self, u: Array) -> tuple[float, Array]:
        a, b = self._parts(u)
        return self._value(a, b), alike(self._slopes(a, b), u)

    def slopes(self, u: Array) -> Array:
        return alike(self._slopes(*self._parts(u)), u)

    def inner_hessian(self, u: Array) -> OrdinalHessian:
        a, b = self._parts(u)
        between, e = self._between(a, b)
        mixed = np.zeros(a.size)
        mixed[between] = e * (1.0 + e)
        diagonal = [
            self.weights * (np.where(there, sigmoid(x) * sigmoid(-x), 0.0) + 2.0 * mixed)
            for x, there in ((a, self._has_upper), (b, self._has_lower))
        ]
        root = np.sqrt((self.weights * mixed)[between])
        return OrdinalHessian(alike(np.concatenate(diagonal), u), between, root)

    def terms(self, u: Array) -> float:
        a, b = self._parts(u)
        return abs(self._value(a, b)) + float(np.abs(self._slopes(a, b)) @ np.abs(np.concatenate([a, b])))

    def contrasts(self) -> Contrasts:
        has_weight = self.weights > 0
        signs = np.concatenate([1.0 * self._has_upper, -1.0 * self._has_lower])
        return Contrasts(signs, np.concatenate([self._has_upper & has_weight, self._has_lower & has_weight]))

    @property
    def _has_upper(self) -> np.ndarray:
        return self.label < self.n_classes - 1

    @property
    def _has_lower(self) -> np.ndarray:
        return self.label > 0

    def _parts(self, u: Array) -> tuple[np.ndarray, np.ndarray]:
        plain = double(u)
        return plain[: self.label.size], plain[self.label.size :]

    def _between(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the examples between two thresholds, and 1 / (e^(a - b) - 1) of each; 0 where they are in disorder."""
        between = np.flatnonzero(self._has_upper & self._has_lower)
        gap = a[between] - b[between]
        ordered = gap > 0
        small = np.exp(-np.where(ordered, gap, 1.0))
        return between, np.where(ordered, small / -np.expm1(-np.where(ordered, gap, 1.0)), 0.0)

    def _value(self, a: np.ndarray, b: np.ndarray) -> float:
        between = self._has_upper & self._has_lower
        gap = a[between] - b[between]
        if not np.all(gap > 0):
            return inf
        losses = np.where(self._has_upper, np.logaddexp(0.0, -a), 0.0)
        losses += np.where(self._has_lower, np.logaddexp(0.0, b), 0.0)
        losses[between] -= np.log(-np.expm1(-gap))
        return float(self.weights @ losses)

    def _slopes(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        between, e = self._between(a, b)
        of_a = np.where(self._has_upper, -sigmoid(-a), 0.0)
        of_b = np.where(self._has_lower, sigmoid(b), 0.0)
        of_a[between] -= e
        of_b[between] += e
        return np.concatenate([self.weights * of_a, self.weights * of_b])


@dataclass(frozen=True, slots=True)
class OrdinalHessian(JointHessian):
    """The Hessian of the mean loss: M has a row for each example between two thresholds, with two equal entries.

    Attributes
    ----------
    between : array of int, shape (m,)
        These examples.
    root : array, shape (m,)
        The entry of each.
    """

    between: np.ndarray
    root: np.ndarray

    def image(self, columns: np.ndarray) -> np.ndarray:
        n = columns.shape[0] // 2
        rows: np.ndarray = self.root[:, None] * (columns[self.between] + columns[n + self.between])
        return rows

    def squares(self, design: Design) -> Array:
        if not isinstance(design, ThresholdDesign):
            return JointHessian.squares(self, design)
        mixed = np.zeros(self.diagonal.shape[0] // 2)
        mixed[self.between] = (
            self.root**2
        )  # the Hessian of two predictions is diag(a) - 2m and m times [[1, -1], [-1, 1]]
        rest = self.diagonal - alike(2.0 * np.concatenate([mixed, mixed]), self.diagonal)
        return design.pullback_squares(rest) + design.squares_of_differences(alike(mixed, rest))

    def square_times(self, v: np.ndarray) -> np.ndarray:
        n = v.shape[0] // 2
        moved = self.root**2 * (v[self.between] + v[n + self.between])
        found = np.zeros(v.shape[0])
        found[self.between] = found[n + self.between] = moved
        return found
