"""A fixed step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hardthresh.core.checking import checked_integer, checked_number, checked_word
from hardthresh.core.constraint import Constraint
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
        :math:`\gamma > 0`, which multiplies the gradient of the mean loss.

    Raises
    ------
    InvalidInputError
        If it is not a finite number > 0.

    Notes
    -----
    With :math:`\gamma = 2/(3\bar L)`, where :math:`\bar L` is the restricted smoothness constant, iterative hard
    thresholding converges linearly to statistical precision (Jain, Tewari and Kar 2014); `Fixed.from_smoothness`
    returns this step. Cost: no extra data pass.

    Examples
    --------
    >>> Fixed.from_smoothness(restricted_smoothness_ar1(700, 300, alpha=5.0, omega=0.5)).step
    0.0314...
    """

    step: float

    def __post_init__(self) -> None:
        checked_number("the step", self.step, above=0.0)

    @classmethod
    def from_smoothness(cls, smoothness: float) -> Fixed:
        r"""Return the step :math:`2/(3\bar L)` for a restricted smoothness constant :math:`\bar L`."""
        return cls(2.0 / (3.0 * smoothness))

    def length(
        self,
        objective: Objective,
        constraint: Constraint,
        at: Evaluation,
        direction: Array,
        inside: Array,
        supports: int,
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
        The sparsity of the solver and the number of non-zeros of the true coefficients, both >= 1.
    alpha : float
        Sample size factor, n = ceil(alpha s log d); > 0.
    omega : float
        Correlation of neighbouring columns, in (-1, 1).
    loss : {"squared", "logistic"}
        The loss.

    Returns
    -------
    float
        The bound on the second derivatives of the mean loss.

    Raises
    ------
    InvalidInputError
        For arguments outside these ranges.

    References
    ----------
    Qiao and Maros (2025), *Sparse Polyak*, Section 6 (i); Loh and Wainwright (2015), Appendix D.1. The formula for the
    largest eigenvalue is the paper's; the supremum for omega > 0 is the smaller 1/(1 - omega)^2.

    Examples
    --------
    >>> restricted_smoothness_ar1(700, 300, alpha=5.0, omega=0.5)
    21.18...
    """
    checked_word("loss", loss, ("squared", "logistic"))
    checked_integer("s", s, 1), checked_integer("s_star", s_star, 1)
    checked_number("alpha", alpha, above=0.0), checked_number("omega", omega, above=-1.0, below=1.0)
    largest = 2.0 / ((1.0 - omega) ** 2 * (1.0 + omega))
    smoothness = largest * (3.0 + 2.0 * (2 * s + s_star) / (s * alpha))
    return smoothness / 4.0 if loss == "logistic" else smoothness
