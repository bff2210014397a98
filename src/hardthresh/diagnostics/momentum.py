"""The momentum of accelerated iterative hard thresholding: the published range, the local rate, the best constant."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

import numpy as np

from hardthresh.arrays import as_floating, to_numpy
from hardthresh.core.errors import InvalidInputError, format_value

_GOLDEN = (1.0 + sqrt(5.0)) / 2.0


@dataclass(frozen=True, slots=True)
class MomentumRange:
    """The published range of the momentum, with the golden ratio and without; ``print`` it to read it.

    Attributes
    ----------
    xi : float
        1 - alpha / beta, the contraction of plain iterative hard thresholding.
    published : float
        The largest absolute momentum of the theorem, with the golden ratio; negative where the range is empty.
    without_golden_ratio : float
        The same without the golden ratio, as in the caption of the paper's first figure; never negative, infinite
        where alpha = beta.
    """

    xi: float
    published: float
    without_golden_ratio: float

    @property
    def is_empty(self) -> bool:
        """Whether the published range contains no momentum, as where alpha / beta is below 0.618."""
        return self.published < 0.0

    def __str__(self) -> str:
        published = "empty" if self.is_empty else f"|tau| <= {self.published:.4g}"
        return f"published: {published}; without the golden ratio: |tau| <= {self.without_golden_ratio:.4g}"


def momentum_range(alpha: float, beta: float) -> MomentumRange:
    r"""Return the published range of the momentum of accelerated iterative hard thresholding.

    .. math:: |\tau| \le \frac{1 - \varphi \xi^{1/2}}{\varphi \xi^{1/2}}, \qquad
              \xi = 1 - \frac{\alpha}{\beta}, \qquad \varphi = \frac{1 + \sqrt 5}{2}

    Parameters
    ----------
    alpha, beta : float
        Restricted strong convexity and smoothness, 0 < alpha <= beta, in any unit; `restricted_constants` computes them
        for small problems.

    Returns
    -------
    MomentumRange
        With :math:`\varphi`, as in the theorem, and without, as in the caption of the paper's Fig. 1.

    Raises
    ------
    InvalidInputError
        If 0 < alpha <= beta < inf does not hold.

    Notes
    -----
    **This condition is only sufficient, and no solver imposes it.** The published range is empty unless :math:`\xi <
    1/\varphi^2`, that is :math:`\alpha/\beta > 0.618`; for the example of the paper it is empty. Without
    :math:`\varphi` it allows 0.03 in this example, whereas the method converges for -0.9 to 1 and is fastest at 0.5.
    Once the support no longer changes, `local_rate` is exact. Cost: none.

    References
    ----------
    Khanna and Kyrillidis (2018), *IHT dies hard: provable accelerated iterative hard thresholding*, Section 4.

    Examples
    --------
    >>> found = momentum_range(0.6274, 10.811)
    >>> found.is_empty
    True
    >>> print(found)
    published: empty; without the golden ratio: |tau| <= 0.0303
    """
    alpha, beta = _number(alpha, "alpha"), _number(beta, "beta")
    if not (0.0 < alpha <= beta and isfinite(beta)):
        raise InvalidInputError(
            f"need 0 < alpha <= beta < inf, got alpha = {format_value(alpha)} and beta = {format_value(beta)}"
        )
    xi = 1.0 - alpha / beta
    root = sqrt(xi)
    return MomentumRange(xi, _largest(_GOLDEN * root), _largest(root))


def _largest(contraction: float) -> float:
    return (1.0 - contraction) / contraction if contraction > 0.0 else float("inf")


def local_rate(eigenvalues: Any, step: float, momentum: float) -> float:
    r"""Return the linear rate of accelerated iterative hard thresholding on a support that no longer changes.

    .. math:: \max_\lambda \max \{ |r| : r^2 - (1 - \mu\lambda)(1 + \tau) r + (1 - \mu\lambda) \tau = 0 \}

    over the eigenvalues :math:`\lambda` of the Hessian on the support.

    Parameters
    ----------
    eigenvalues : array-like
        :math:`\lambda \ge 0`, at least one, finite.
    step : float
        :math:`\mu > 0`, such that :math:`\mu\lambda` has no unit: for the Hessian of the mean loss, the step that
        multiplies the gradient of the mean loss.
    momentum : float
        :math:`\tau`, any number; 0 is plain iterative hard thresholding.

    Returns
    -------
    float
        The asymptotic factor of the error per iteration; the iteration does not converge if it is 1 or more.

    Raises
    ------
    InvalidInputError
        For no eigenvalue, a negative or infinite one, a step that is not positive, or a momentum that is not finite.

    Notes
    -----
    Guarantee: exact for quadratic objectives, while the support is the same, by the recursion of the error in each
    eigenvector; to first order for others. Cost: none.

    References
    ----------
    The recursion of Algorithm 1 of Khanna and Kyrillidis (2018) on a fixed support.

    Examples
    --------
    >>> [round(local_rate([0.1, 1.0], step=1.0, momentum=tau), 3) for tau in (0.0, 0.25, 0.5)]
    [0.9, 0.865, 0.75]
    """
    kept = 1.0 - _eigenvalues(eigenvalues) * _positive(step)
    momentum = _number(momentum, "the momentum")
    if not isfinite(momentum):
        raise InvalidInputError(f"the momentum must be finite, got {format_value(momentum)}")
    middle = 0.5 * kept * (1.0 + momentum)
    inside = middle * middle - kept * momentum
    # two real roots, or a pair of complex ones whose product is kept * momentum
    real = np.abs(middle) + np.sqrt(np.maximum(inside, 0.0))
    moduli = np.where(inside >= 0.0, real, np.sqrt(np.maximum(kept * momentum, 0.0)))
    return float(moduli.max())


def best_momentum(eigenvalues: Any, step: float) -> float:
    r"""Return the constant momentum with the best `local_rate`.

    .. math:: \tau = \frac{1 - q}{1 + q}, \qquad q = \sqrt{\mu \lambda_{\min}}

    Parameters
    ----------
    eigenvalues : array-like
        As in `local_rate`.
    step : float
        :math:`\mu > 0`, at most :math:`1/\lambda_{\max}`.

    Returns
    -------
    float
        Between 0 and 1; with it the local rate is 1 - q.

    Raises
    ------
    InvalidInputError
        As in `local_rate`; and for a longer step, for which the formula does not hold.

    Notes
    -----
    Guarantee: the best constant for quadratic objectives while the support is the same (Polyak; Nesterov). The support
    is known only after a run, so this value explains a run but cannot be used to tune it. Cost: none.

    Examples
    --------
    >>> tau = best_momentum([0.1, 1.0], step=1.0)
    >>> round(tau, 3), round(local_rate([0.1, 1.0], 1.0, tau), 3)
    (0.519, 0.684)
    """
    values = _eigenvalues(eigenvalues) * _positive(step)
    if values.max() > 1.0 + 1e-9:  # the rounding of eigenvalues and of a step 1 / lambda_max
        raise InvalidInputError(f"the step must be at most 1 / the largest eigenvalue, but is {values.max():.4g} of it")
    q = sqrt(float(values.min()))
    return (1.0 - q) / (1.0 + q)


def _eigenvalues(eigenvalues: Any) -> np.ndarray:
    values = np.asarray(to_numpy(as_floating(eigenvalues, name="eigenvalues")), dtype=float).ravel()
    rounding = 1e-12 * values.max(initial=0.0)  # of eigenvalues that are zero
    if values.size == 0 or not np.isfinite(values).all() or values.min() < -rounding:
        raise InvalidInputError("at least one eigenvalue is needed, and all must be finite and >= 0")
    clipped: np.ndarray = np.maximum(values, 0.0)
    return clipped


def _number(x: Any, name: str) -> float:
    try:
        if isinstance(x, str | bytes):
            raise TypeError
        return float(x)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must be a number, got {format_value(x)}") from error


def _positive(step: float) -> float:
    step = _number(step, "the step")
    if not (step > 0.0 and isfinite(step)):
        raise InvalidInputError(f"the step must be positive and finite, got {format_value(step)}")
    return step
