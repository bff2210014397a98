"""Cox's partial likelihood, for times to an event of which some are censored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hardthresh.arrays import double, namespace, to_numpy
from hardthresh.core.checking import checked_word
from hardthresh.core.errors import InvalidInputError, numbered
from hardthresh.core.registry import register
from hardthresh.core.typing import Array
from hardthresh.designs import Design

from .contrasts import Contrasts, evenly
from .joint import JointLoss
from .mean import JointHessian, ScalarMeanLoss, alike
from .risk_sets import AtPredictions, RiskSets


@register("loss", "cox", examples=lambda: [Cox(), Cox(ties="efron")])
@dataclass(frozen=True)
class Cox(JointLoss):
    r"""The negative mean log partial likelihood of proportional hazards.

    .. math:: \ell(u) = \sum_{i : e_i = 1} \omega_i \Bigl(\log S(t_i) - u_i\Bigr), \qquad
              S(t) = \sum_{j : t_j \ge t} \omega_j e^{u_j}

    for times t, events e (0 if the time is censored) and weights :math:`\omega` that sum to 1. This is Breslow's
    approximation for ties. Efron's approximation replaces the terms :math:`\omega_i \log S` of the m events D at a tied
    time by

    .. math:: \bar\omega_D \sum_{l < m} \log\Bigl(S - \tfrac{l}{m} \sum_{i \in D} \omega_i e^{u_i}\Bigr)

    where :math:`\bar\omega_D` is the mean of their weights. Strata have separate risk sets, and their losses are added.

    Parameters
    ----------
    ties : {"breslow", "efron"}
        With "breslow", a row of weight 2 is equivalent to two copies of the row; with "efron", two copies are a tie. If
        many times are tied, for example because they are rounded, "efron" has a smaller bias of the coefficients
        towards zero.

    Notes
    -----
    Targets have the shape (n, 2) or (n, 3), with columns of times (finite numbers, of which only the order matters),
    events (0 or 1) and optionally strata (any numbers). The loss is convex and does not change when a constant is added
    to the predictions of a stratum, so models have no intercept.

    Cost of each evaluation: O(n), after one sort; the Hessian of s columns also costs their prefix sums. Sums over risk
    sets are computed on the log scale, so that they do not underflow, and always in double precision on the CPU.

    References
    ----------
    D. R. Cox (1972), *Regression models and life-tables*; N. Breslow (1974), *Covariance analysis of censored survival
    data*; B. Efron (1977), *The efficiency of Cox's likelihood function for censored data*.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([[1.0, 1.0], [2.0, 0.0], [3.0, 1.0]])
    >>> mean = Cox().prepare(y, np.full(3, 1 / 3))
    >>> round(3 * mean.value(np.zeros(3)), 6)  # log 1 + log 1/3
    -1.098612
    """

    ties: str = "breslow"

    domain: ClassVar[str] = "rows of a finite time, an event (0 or 1), and perhaps a stratum"
    target_kind: ClassVar[str] = "times"
    multiplies: ClassVar[str] = "the hazard"
    default_ridge: ClassVar[float] = 1e-3  # few columns often order all events, and then have no finite coefficients

    score_name: ClassVar[str] = "partial_log_likelihood"

    def __post_init__(self) -> None:
        checked_word("ties", self.ties, ("breslow", "efron"))

    def check_domain(self, y: Array, counted: np.ndarray | None = None) -> None:
        """Raise InvalidInputError if a time is not finite."""
        times = to_numpy(y)
        wrong = np.flatnonzero(~np.isfinite(times) & (True if counted is None else counted))
        if wrong.size:
            i = int(wrong[0])
            raise InvalidInputError(f"times must be finite; that of {numbered('row', i)} is {float(times[i])}")

    def check_targets(self, y: Array) -> None:
        rows = to_numpy(y)
        if rows.ndim != 2 or rows.shape[1] not in (2, 3):
            raise InvalidInputError(f"the Cox loss needs targets that are {self.domain}; y has shape {rows.shape}")
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1) | ~np.isin(rows[:, 1], (0, 1)))
        if bad.size:
            i = int(bad[0])
            raise InvalidInputError(f"the Cox loss needs targets that are {self.domain}; y[{i}] is {rows[i].tolist()}")

    def prepare(self, y: Array, weights: Array) -> CoxMean:
        rows, omega = double(y), double(weights)
        if not np.any((rows[:, 1] > 0) & (omega > 0)):
            raise InvalidInputError(
                "there is no event among the rows of positive weight; the times of events are what a model is fitted to"
            )
        return CoxMean(RiskSets.of(rows, omega, efron=self.ties == "efron"))

    def example_target(self, u: np.ndarray, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        """Draw times that are tied, a third of them censored."""
        times = rng.exponential(np.exp(-u / noise))
        censored = rng.exponential(2.0 * float(np.median(times)), u.shape)
        observed = np.ceil(8 * np.minimum(times, censored) / float(np.median(times)))
        return np.column_stack([observed, times <= censored])

    def minus_twice_log_likelihood(self, y: Array, u: Array, weights: Array, n: float) -> float:
        mean = self.prepare(y, weights / namespace(weights).sum(weights))
        return 2.0 * n / mean.share * mean.value(u)


@dataclass(frozen=True, slots=True)
class CoxHessian(JointHessian):
    """The Hessian of the partial likelihood: a diagonal less the means over the risk sets of the terms.

    Attributes
    ----------
    at : AtPredictions
        The sums over the risk sets.
    square, mixed, dead : array, shape (n_slots,)
        The quadratic form of the means of a slot that its terms subtract: coefficients of the square of the mean over
        the risk set, of twice its product with the sum over the tied deaths, and of the square of that.
    """

    at: AtPredictions
    square: np.ndarray
    mixed: np.ndarray
    dead: np.ndarray

    def image(self, columns: np.ndarray) -> np.ndarray:
        """Return M times some columns: a row for each slot, and one more for each with tied deaths."""
        whole, of_deaths = self._means(columns)
        root = np.sqrt(self.square)
        rows: np.ndarray = root[:, None] * whole
        tied = np.flatnonzero(self.dead > 0.0)
        if not tied.size:
            return rows
        slope = (self.mixed / root)[tied, None]
        rows[tied] += slope * of_deaths[tied]
        rest = np.sqrt(np.maximum(self.dead[tied, None] - slope * slope, 0.0))
        return np.concatenate([rows, rest * of_deaths[tied]])

    def square_times(self, v: np.ndarray) -> np.ndarray:
        whole, of_deaths = self._means(v)
        sets, found = self.at.sets, np.zeros(v.shape[0])
        found[sets.order] = self.at.spread(
            self.square * whole + self.mixed * of_deaths, self.mixed * whole + self.dead * of_deaths
        )
        return found

    def _means(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean over each risk set, and the sum over its tied deaths as a share of S."""
        sets = self.at.sets
        of_deaths = np.zeros_like(values[:1])
        if sets.dies.any():
            share = np.where(sets.dies, self.at.share, 0.0)
            of_deaths = sets.sums(values[sets.order] * (share[:, None] if values.ndim > 1 else share))
        of_deaths = np.broadcast_to(of_deaths, (sets.n_slots, *values.shape[1:]))
        return self.at.risk_means(self.at.shared_sums(values)), of_deaths


@dataclass(frozen=True, slots=True, eq=False)
class CoxMean(ScalarMeanLoss):
    """The partial likelihood of given targets.

    Attributes
    ----------
    sets : RiskSets
        What it is made of.
    """

    sets: RiskSets

    @property
    def lower_bound(self) -> float:  # type: ignore[override]
        """That of tied deaths of each time alone in their risk set, in the proportions that are best for them."""
        deaths = self.sets.deaths
        return float(deaths @ np.log(deaths) + self.sets.term_weight @ np.log1p(-self.sets.term_share))

    @property
    def share(self) -> float:  # type: ignore[override]
        """The share of the weight that has an event."""
        return float(np.sum(self.sets.deaths))

    def value(self, u: Array) -> float:
        plain = double(u)
        return self._value(self.sets.at(plain), plain)

    def value_and_slopes(self, u: Array) -> tuple[float, Array]:
        plain = double(u)
        at = self.sets.at(plain)
        return self._value(at, plain), self._slopes(at, u)

    def slopes(self, u: Array) -> Array:
        return self._slopes(self.sets.at(double(u)), u)

    def inner_hessian(self, u: Array) -> CoxHessian:
        at, sets = self.sets.at(double(u)), self.sets
        relative = sets.term_weight / at.term_rest**2
        square, mixed, dead = (at.per_slot(relative * (-sets.term_share) ** power) for power in range(3))
        diagonal = np.zeros(sets.n_rows)
        diagonal[sets.order] = self._risks(at)
        return CoxHessian(alike(diagonal, u), at, square, mixed, dead)

    def hazards(self, u: Array) -> np.ndarray:
        """Return the jump of the cumulative hazard at each event time, of a row whose prediction is 0."""
        at = self.sets.at(double(u))
        jumps: np.ndarray = at.per_slot(self.sets.term_weight / at.term_rest) * np.exp(-at.log_sums)
        return jumps

    def terms(self, u: Array) -> float:
        plain = double(u)
        at, sets = self.sets.at(plain), self.sets
        slopes = self._slopes(at, plain)
        return float(sets.deaths @ np.abs(at.log_sums) + sets.event_weights @ np.abs(plain[sets.order])) + float(
            np.abs(slopes) @ np.abs(plain)
        )

    def contrasts(self) -> RiskContrasts:
        """Return differences of predictions, of sign +1; 0 for tied deaths, and for the first event of a stratum."""
        sets = self.sets
        heads = np.zeros(sets.slot.size, dtype=bool)
        heads[sets.starts] = True
        signs = np.where(sets.event_weights > 0, 0.0, 1.0)
        signs[heads] = 1.0
        signs[sets.starts[[part.stop - 1 for part in sets.strata()]]] = 0.0  # the largest risk sets
        return RiskContrasts(signs, np.ones(sets.slot.size, dtype=bool), sets)

    def _value(self, at: AtPredictions, u: np.ndarray) -> float:
        sets = self.sets
        gaps = at.log_sums[sets.slot] - u[sets.order]
        return float(sets.event_weights @ gaps) + float(sets.term_weight @ np.log(at.term_rest))

    def _risks(self, at: AtPredictions) -> np.ndarray:
        """Return the weight of each row's share in all risk sets: the diagonal of the Hessian."""
        relative = self.sets.term_weight / at.term_rest
        return at.spread(at.per_slot(relative), -at.per_slot(relative * self.sets.term_share))

    def _slopes(self, at: AtPredictions, u: Array) -> Array:
        slopes = np.zeros(self.sets.n_rows)
        slopes[self.sets.order] = self._risks(at) - self.sets.event_weights
        return alike(slopes, u)


@dataclass(frozen=True, slots=True, eq=False)
class RiskContrasts(Contrasts):
    """For each row the event of its slot less the row, and for this event that of the next slot less it.

    Sums of them are the differences between an event and each row of its risk set, none of which may fall.

    Attributes
    ----------
    sets : RiskSets
        The risk sets.
    """

    sets: RiskSets

    def matrix(self, design: Design) -> np.ndarray:
        rows: np.ndarray = double(design.dense())[self.sets.order]
        return np.asarray(rows[self._above()] - rows)

    def some(self, design: Design, slopes: Array) -> tuple[np.ndarray, np.ndarray]:
        every = evenly(self.signs.size)
        return self.matrix(design)[every], self._slopes(slopes)[every]

    def _slopes(self, slopes: Array) -> np.ndarray:
        """Return the derivative in each contrast, from that in each prediction."""
        sets = self.sets
        of_rows: np.ndarray = double(slopes)[sets.order]
        found = -of_rows
        totals = sets.sums(of_rows)
        for part in sets.strata():
            found[sets.starts[part]] = -np.cumsum(totals[part])
        found[self._above() == np.arange(found.size)] = 0.0
        return found

    def _above(self) -> np.ndarray:
        """Return for each row the event that it is compared with: that of its slot, or for this the next one's."""
        sets = self.sets
        above: np.ndarray = sets.starts[sets.slot]
        following = np.minimum(np.arange(sets.n_slots) + 1, sets.n_slots - 1)
        ends = sets.bounds[1:] - 1
        following[ends[ends >= 0]] = ends[ends >= 0]
        above[sets.starts] = sets.starts[following]
        return above
