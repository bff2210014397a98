"""The quadratic model of a mean loss around given predictions, which replaces the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hardthresh.arrays import namespace
from hardthresh.core.lazy import inner, scalar
from hardthresh.core.typing import Array

from .mean import InnerHessian, MeanLoss


@dataclass(frozen=True, slots=True, eq=False)
class QuadraticMean(MeanLoss):
    r"""The quadratic model :math:`\ell + s^\top (u - v) + \tfrac{1}{2} (u - v)^\top B (u - v)` of a mean loss around v.

    Attributes
    ----------
    at : array, shape (n,)
        v, the predictions.
    mean : float
        The mean loss there.
    slopes_there : array, shape (n,)
        s, its derivative in each prediction.
    inner : InnerHessian
        B, its second derivatives.
    """

    at: Array
    mean: float
    slopes_there: Array
    inner: InnerHessian

    lower_bound: ClassVar[float] = -float("inf")  # type: ignore[misc]

    @classmethod
    def of(cls, mean_loss: MeanLoss, at: Array) -> QuadraticMean:
        """Return the model of a mean loss around some predictions."""
        return cls(at, *mean_loss.value_and_slopes(at), mean_loss.inner_hessian(at))

    def value(self, u: Array) -> float:
        gap = u - self.at
        linear: float = inner(self.slopes_there, gap)
        return self.mean + linear + 0.5 * self.inner.along(gap)

    def value_and_slopes(self, u: Array) -> tuple[float, Array]:
        return self.value(u), self.slopes(u)

    def slopes(self, u: Array) -> Array:
        return self.slopes_there + self.inner.times(u - self.at)

    def inner_hessian(self, u: Array) -> InnerHessian:
        return self.inner

    def terms(self, u: Array) -> float:
        xp, gap = namespace(u), u - self.at
        linear: float = scalar(xp.sum(xp.abs(self.slopes_there * gap) + xp.abs(self.slopes(u) * u)))
        return abs(self.mean) + linear + 0.5 * abs(self.inner.along(gap))


@dataclass(frozen=True, slots=True, eq=False)
class LocalQuadratic:
    """What an objective asks of a loss, for a model of a mean loss: targets and weights are read no more.

    Attributes
    ----------
    mean_loss : QuadraticMean
        The model.
    """

    mean_loss: QuadraticMean

    quadratic: ClassVar[bool] = True

    def prepare(self, y: Array, weights: Array) -> QuadraticMean:
        """Return the model."""
        return self.mean_loss

    def attains(self, y: Array, weights: Array) -> bool:
        """Return True: the model of a convex loss is semidefinite, and its slopes are those of where it is."""
        return True
