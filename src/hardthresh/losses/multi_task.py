"""The same pointwise loss for each of several outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from array_api_compat import device

from hardthresh.arrays import namespace
from hardthresh.core.registry import register
from hardthresh.core.typing import Array

from .base import Loss
from .squared import Squared
from .vector import VectorLoss


def _of_each_output(name: str) -> Any:
    """Return a property that is that of the pointwise loss."""
    return property(lambda self: getattr(self.loss, name), doc=f"That of the pointwise loss; see `VectorLoss.{name}`.")


@register("loss", "multi_task")
@dataclass(frozen=True, slots=True)
class MultiTask(VectorLoss):
    r"""The sum of a pointwise loss over the outputs, :math:`\ell(y, u) = \sum_j \ell_1(y_j, u_j)`.

    Parameters
    ----------
    loss : Loss
        :math:`\ell_1`; by default the squared error, so that the loss is :math:`\|u - y\|^2 / 2`.

    Notes
    -----
    Targets have shape (n, q). Outputs are not weighted, so an output with larger losses, for example because it is
    measured in smaller units, dominates the choice of the columns. Divide each output by its standard deviation to give
    all the same influence.

    Examples
    --------
    >>> import numpy as np
    >>> MultiTask().value(np.array([[1.0, 0.0]]), np.array([[3.0, 1.0]]))
    array([2.5])
    """

    loss: Loss = field(default_factory=Squared)

    convex = _of_each_output("convex")
    quadratic = _of_each_output("quadratic")
    curvature_bound = _of_each_output("curvature_bound")
    lower_bound = _of_each_output("lower_bound")
    classifies = _of_each_output("classifies")
    unit_dispersion = _of_each_output("unit_dispersion")
    has_likelihood = _of_each_output("has_likelihood")
    target_kind = _of_each_output("target_kind")
    multiplies = _of_each_output("multiplies")
    default_ridge = _of_each_output("default_ridge")
    score_name = _of_each_output("score_name")
    score_scale = _of_each_output("score_scale")

    def n_outputs(self, y: Array) -> int:
        return int(y.shape[1])

    def check_targets(self, y: Array) -> None:
        self.loss.check_targets(y)

    def value(self, y: Array, u: Array) -> Array:
        return _sum(self.loss.value(y, u))

    def gradient(self, y: Array, u: Array) -> Array:
        return self.loss.gradient(y, u)

    def value_and_gradient(self, y: Array, u: Array) -> tuple[Array, Array]:
        values, gradient = self.loss.value_and_gradient(y, u)
        return _sum(values), gradient

    def curvature(self, y: Array, u: Array, v: Array) -> Array:
        return self.loss.curvature(y, u) * v

    def blocks(self, y: Array, u: Array) -> Array:
        return self.loss.curvature(y, u)[:, :, None] * _unit(u)

    def mean_block(self, y: Array, u: Array, weights: Array) -> Array:
        return _unit(u) * (weights @ self.loss.curvature(y, u))

    def mean(self, u: Array) -> Array:
        return self.loss.mean(u)

    def each_output(self, y: Array, u: Array) -> list[tuple[Loss, Array, Array]]:
        return [(self.loss, y[:, j], u[:, j]) for j in range(u.shape[1])]

    def example_target(self, u: np.ndarray, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        return self.loss.example_target(u, rng, noise)

    def attains(self, y: Array, weights: Array) -> bool:
        return self.loss.attains(y, weights[:, None])

    def recession(self, y: Array) -> tuple[Array, Array] | None:
        signs = self.loss.recession(y)
        xp = namespace(y)
        if not bool(xp.any(signs != 0)):
            return None
        return xp.broadcast_to(_unit(y), (y.shape[0], y.shape[1], y.shape[1])), signs

    def minus_twice_log_likelihood(self, y: Array, u: Array, weights: Array, n: float) -> float:
        """Return minus twice the log-likelihood of independent outputs with a common dispersion."""
        return self.loss.minus_twice_log_likelihood(y, u, weights, n)


def _sum(losses: Array) -> Array:
    """Return the sum over the outputs of each example, shape (n,)."""
    summed: Array = namespace(losses).sum(losses, axis=1)
    return summed


def _unit(u: Array) -> Array:
    """Return the unit matrix of the outputs."""
    return namespace(u).eye(u.shape[1], dtype=u.dtype, device=device(u))
