"""The same step at every iteration."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.objective import Evaluation, Objective
from hardthresh.core.registry import register
from hardthresh.core.step import Move, StepRule
from hardthresh.core.support import Support
from hardthresh.core.typing import Array


@register("step", "fixed", lambda: [Fixed(0.1)])
@dataclass(frozen=True, slots=True)
class Fixed(StepRule):
    r"""A fixed step :math:`\gamma`.

    Parameters
    ----------
    step : float
        :math:`\gamma > 0`; it multiplies the gradient of the mean loss.

    Raises
    ------
    InvalidInputError
        If it is not positive and finite.

    Notes
    -----
    With :math:`\gamma = 2/(3\bar L)`, where :math:`\bar L` is the restricted smoothness constant, IHT converges
    linearly to statistical precision (Jain, Tewari and Kar 2014); `Fixed.from_smoothness` makes it. Cost: no extra
    data pass.

    Examples
    --------
    >>> Fixed.from_smoothness(restricted_smoothness_ar1(700, 300, alpha=5.0, omega=0.5)).step
    0.0314...
    """

    step: float

    def __post_init__(self) -> None:
        if not (self.step > 0 and isfinite(self.step)):
            raise InvalidInputError(f"the step must be positive and finite, got {format_value(self.step)}")

    @classmethod
    def from_smoothness(cls, smoothness: float) -> Fixed:
        r"""Return the step :math:`2/(3\bar L)` for a restricted smoothness constant :math:`\bar L`."""
        return cls(2.0 / (3.0 * smoothness))

    def length(
        self, objective: Objective, constraint: Constraint, at: Evaluation, direction: Array, inside: Array
    ) -> float:
        return self.step

    def move(
        self,
        objective: Objective,
        constraint: Constraint,
        at: Evaluation,
        direction: Array,
        memory: Any,
        support: Support,
    ) -> Move:
        return Move(constraint.project(at.point + self.step * direction, support), self.step, None, memory)


def restricted_smoothness_ar1(s: int, s_star: int, *, alpha: float, omega: float, loss: str = "squared") -> float:
    r"""Return the bound on the restricted smoothness of a linear or logistic model with AR(1) columns.

    .. math:: \bar L = \lambda_{\max}\Bigl(3 + \frac{2(2s + s^*)}{s\alpha}\Bigr), \qquad
              \lambda_{\max} \le \frac{2}{(1-\omega)^2(1+\omega)}

    and a quarter of that for the logistic loss.

    Parameters
    ----------
    s, s_star : int
        Budget of the solver and non-zeros of the truth, both >= 1.
    alpha : float
        Sample size factor, n = ceil(alpha s log d); > 0.
    omega : float
        Correlation of neighbouring columns, in (-1, 1).
    loss : {"squared", "logistic"}
        The loss.

    Returns
    -------
    float
        In units of the curvature of the mean loss.

    Raises
    ------
    InvalidInputError
        For arguments outside these ranges.

    References
    ----------
    *Sparse Polyak*, Section 6 (i); Loh and Wainwright (2015), Appendix D.1. The formula for the largest eigenvalue
    is the paper's; the supremum for omega > 0 is the smaller 1/(1 - omega)^2.

    Examples
    --------
    >>> restricted_smoothness_ar1(700, 300, alpha=5.0, omega=0.5)
    21.18...
    """
    if loss not in ("squared", "logistic"):
        raise InvalidInputError(f"the formula covers the squared and the logistic loss, got {format_value(loss)}")
    if not (s >= 1 and s_star >= 1 and alpha > 0 and -1 < omega < 1):
        raise InvalidInputError(f"need s, s_star >= 1, alpha > 0, |omega| < 1; got {s}, {s_star}, {alpha}, {omega}")
    largest = 2.0 / ((1.0 - omega) ** 2 * (1.0 + omega))
    smoothness = largest * (3.0 + 2.0 * (2 * s + s_star) / (s * alpha))
    return smoothness / 4.0 if loss == "logistic" else smoothness
