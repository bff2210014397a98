"""Complementary pairs of half-samples, and bounds on how many features of low probability stability selection takes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, Literal

import numpy as np

from hardthresh.core.checking import checked_integer, checked_number, checked_word
from hardthresh.core.errors import InvalidInputError, plural
from hardthresh.core.numbers import number
from hardthresh.core.randomness import Purpose, generator, random_halves, rows_by_label

Kind = Literal["unimodal", "worst_case"]
_ROUNDING = 1e-9
"""A threshold this close to a possible frequency is it: .7 times 100 is 70 up to rounding."""


@dataclass(frozen=True, slots=True)
class LowProbabilityBound:
    r"""A bound on the expected number of features of low selection probability that stability selection selects.

    ``print`` shows it as text, with its assumptions. Let q be the mean number of features chosen on a half of the rows,
    d the number of candidates and :math:`\theta = q / d`. The bound concerns the features that a half chooses with a
    probability of at most :math:`\theta`, that is, no more often than at random. It does not concern features without
    effect, which may often be chosen if they are correlated with a feature that has an effect.

    Attributes
    ----------
    value : float
        The bound.
    kind : {"unimodal", "worst_case"}
        The kind of the bound; see `low_probability_bound`.
    reason : str
        Why the bound is not of the requested kind; empty if it is.
    n_chosen : float
        q.
    n_candidates : int
        d.
    n_pairs : int
        The number of complementary pairs.
    threshold : float
        The smallest frequency of a selected feature, a multiple of ``1 / (2 n_pairs)``.
    n_left_out : int
        The number of other pairs that were excluded because a half could not be fitted. The theorems assume that there
        are none.
    """

    value: float
    kind: Kind
    reason: str
    n_chosen: float
    n_candidates: int
    n_pairs: int
    threshold: float
    n_left_out: int = 0

    def __str__(self) -> str:
        q, d = number(self.n_chosen), f"{self.n_candidates:,}"
        share = number(self.n_chosen / self.n_candidates)
        assumption = (
            "assuming that the share of pairs of which both halves choose such a feature has a unimodal distribution"
            if self.kind == "unimodal"
            else "without further assumptions"
        )
        return (
            f"A half-sample chooses {q} of {d} features on average. Of the features that a half-sample chooses with a "
            f"probability of at most {share} = {q}/{d}, the expected number among those with a frequency of at least "
            f"{number(self.threshold)} in {2 * self.n_pairs:,} half-samples is at most {number(self.value)}, "
            f"{assumption} (Shah and Samworth 2013, Theorem {2 if self.kind == 'unimodal' else 1})."
            + (f" {self.reason}" if self.reason else "")
            + (
                f" {plural(self.n_left_out, 'pair')} of which a half could not be fitted "
                f"{'is' if self.n_left_out == 1 else 'are'} left out, which the theorem does not allow for: the bound "
                "is approximate, and about the halves that can be fitted."
                if self.n_left_out
                else ""
            )
            + " This is not a bound on features without effect: one that is correlated with an effect may be chosen "
            "often. The threshold is conservative, and most features with an effect may stay below it; read the "
            "frequencies themselves."
        )


def low_probability_bound(
    n_chosen: float, n_candidates: int, n_pairs: int, threshold: float, kind: Kind = "unimodal"
) -> LowProbabilityBound:
    r"""Return a bound on the expected number of features of low selection probability above a threshold.

    .. math:: E \, |\hat S_\tau \cap L_\theta| \le C \, \frac{q^2}{d}, \qquad \theta = \frac{q}{d}, \quad
              L_\theta = \{j : P(j \text{ is chosen on a half}) \le \theta\}

    where :math:`C = 1 / (2 \tau - 1)` in the worst case (Theorem 1 of Shah and Samworth). If the distributions of the
    shares of pairs that choose a feature of :math:`L_\theta` in both halves are unimodal,
    :math:`\theta \le 1/\sqrt 3` and :math:`\tau > \min(1/2 + \theta^2, 1/2 + 1/2B + 3 \theta^2/4)`, then (Theorem 2)

    .. math:: C = \frac{1}{2 (2 \tau - 1 - 1/2B)} \text{ for } \tau \le \tfrac34, \qquad
              C = \frac{4 (1 - \tau + 1/2B)}{1 + 1/B} \text{ for } \tau > \tfrac34.

    Parameters
    ----------
    n_chosen : float
        q, the number of features chosen on a half, or its mean, 0 <= q <= d.
    n_candidates : int
        d >= 1, the number of features to choose from.
    n_pairs : int
        B >= 1, the number of complementary pairs of halves.
    threshold : float
        :math:`\tau`, 1/2 < threshold <= 1. It is rounded up to a multiple of 1/2B, as frequencies are.
    kind : {"unimodal", "worst_case"}
        The kind of the bound. If Theorem 2 does not apply, the worst-case bound is returned, and `reason` says why.

    Returns
    -------
    LowProbabilityBound

    Raises
    ------
    InvalidInputError
        For a number outside its range.

    Notes
    -----
    Guarantee: Theorems 1 and 2. If the number of chosen features varies between halves, q is its mean, whereas the
    theorems hold for its expectation.

    References
    ----------
    R. D. Shah and R. J. Samworth (2013), Variable selection with error control: another look at stability selection,
    *Journal of the Royal Statistical Society B* 75, 55-80.

    Examples
    --------
    >>> from hardthresh.selection import low_probability_bound
    >>> [round(low_probability_bound(10, 1000, 50, tau).value, 3) for tau in (0.75, 0.9)]
    [0.102, 0.043]
    >>> [round(low_probability_bound(10, 1000, 50, tau, "worst_case").value, 3) for tau in (0.75, 0.9)]
    [0.2, 0.125]
    """
    d = checked_integer("n_candidates", n_candidates, 1)
    q = checked_number("n_chosen", n_chosen, least=0.0, most=d)
    B = checked_integer("n_pairs", n_pairs, 1)
    checked_word("bound", kind, ("unimodal", "worst_case"))
    tau = ceil(2 * B * checked_threshold(threshold) - _ROUNDING) / (2 * B)
    theta, reason = q / d, ""
    least = min(0.5 + theta**2, 0.5 + 0.5 / B + 0.75 * theta**2)
    if kind == "unimodal" and theta > 1 / sqrt(3):
        reason = (
            f"The unimodal bound needs halves that choose at most 1/sqrt(3) = .577 of the features, and they choose "
            f"{number(theta)} of them; this is the bound of the worst case. Choose fewer features."
        )
    elif kind == "unimodal" and not tau > least:
        reason = (
            f"The unimodal bound needs a threshold above {number(least)}; this is the bound of the worst case. Choose "
            "a higher threshold, more pairs or fewer features."
        )
    if kind == "worst_case" or reason:
        return LowProbabilityBound(q * theta / (2 * tau - 1), "worst_case", reason, q, d, B, tau)
    constant = 0.5 / (2 * tau - 1 - 0.5 / B) if tau <= 0.75 else 4 * (1 - tau + 0.5 / B) / (1 + 1 / B)
    return LowProbabilityBound(constant * q * theta, "unimodal", "", q, d, B, tau)


def checked_threshold(threshold: Any) -> float:
    """Return a validated threshold of frequencies, above 1/2 and at most 1."""
    return checked_number("threshold", threshold, above=0.5, most=1.0)


def complementary_pairs(
    n: int, n_pairs: int, seed: int, labels: np.ndarray | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return complementary pairs: pairs of disjoint halves of the rows.

    Parameters
    ----------
    n : int
        The number of rows, at least 2.
    n_pairs : int
        The number of pairs.
    seed : int
        The seed. With the same seed, a larger number of pairs starts with the same pairs.
    labels : array, shape (n,), optional
        Labels of the rows, such as classes. The numbers of rows of each label in the two halves of a pair differ by at
        most one.

    Returns
    -------
    list of pairs of arrays of int, each of shape (n // 2,)
        The rows of both halves, increasing. If n is odd, one random row of each pair is in neither half.

    Raises
    ------
    InvalidInputError
        If there are fewer than 2 rows.
    """
    if n < 2:
        raise InvalidInputError(f"a half-sample needs a row, and so X at least 2; it has {n} row (n_samples = {n})")
    groups = [np.arange(n)] if labels is None else rows_by_label(labels)
    return [random_halves(generator(seed, b, Purpose.HALF_SAMPLES), groups) for b in range(n_pairs)]
