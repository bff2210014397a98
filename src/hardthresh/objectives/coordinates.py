"""A function of some coordinates of a vector, the others being zero: what solvers call columns."""

from __future__ import annotations

from typing import Any, Protocol, Self

from hardthresh.arrays import gather, namespace, scatter
from hardthresh.core.meter import Meter
from hardthresh.core.objective import Evaluation, Traits
from hardthresh.core.typing import Array

from .shared import ScreenedExactly


class Whole(Protocol):
    """What is needed of the function of the whole vector."""

    shape: tuple[int, ...]
    lower_bound: float

    @property
    def traits(self) -> Traits:
        """Its traits."""

    def zeros(self) -> Array:
        """Return the zero point."""

    def value(self, w: Array, prediction: Array | None = None) -> float:
        """Return the function."""

    def evaluate(self, w: Array, prediction: Array | None = None) -> Evaluation:
        """Return value and gradient."""

    def product_at(self, w: Array, direction: Array) -> Array:
        """Return the Hessian at a point times a direction."""

    def hessian_rows(self, w: Array, indices: Array) -> Array:
        """Return some rows of the Hessian at a point."""

    def metered(self, meter: Meter) -> Self:
        """Return the same function, adding its data passes to a meter."""


class OfCoordinates(ScreenedExactly):
    """A computed function of some coordinates of its vector.

    Its predictions are whole vectors. An evaluation at a prediction is one there, whatever its other coordinates are.

    Parameters
    ----------
    whole : Whole
        The function of the vector.
    indices : array of int, shape (m,)
        The coordinates, increasing.
    """

    def __init__(self, whole: Whole, indices: Array) -> None:
        self.whole, self.indices = whole, indices
        self.shape, self.lower_bound = (int(indices.shape[0]),), whole.lower_bound

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Those of the function."""
        return self.whole.traits

    def metered(self, meter: Meter) -> Self:
        """Return the same function, adding its data passes to a meter."""
        return type(self)(self.whole.metered(meter), self.indices)

    def zeros(self) -> Array:
        """Return the zero point."""
        return gather(self.whole.zeros(), self.indices)

    def predict(self, w: Array) -> Array:
        """Return the whole vector."""
        return scatter(w, self.indices, self.whole.shape[0])

    def value(self, w: Array, prediction: Array | None = None) -> float:
        """Return the function."""
        return self.whole.value(self.predict(w) if prediction is None else prediction)

    def evaluate(self, w: Array, prediction: Array | None = None) -> Evaluation:
        """Return value and gradient."""
        at = self.whole.evaluate(self.predict(w) if prediction is None else prediction)
        return Evaluation(w, at.value, gather(at.gradient, self.indices), at.point)

    def columns(self, indices: Array) -> OfCoordinates:
        """Return the function of some of the coordinates."""
        return type(self)(self.whole, gather(self.indices, indices))

    def curvature(self, at: Evaluation, direction: Array) -> Array:
        """Return the Hessian times a direction."""
        image = self.whole.product_at(self._point(at), scatter(direction, self.indices, self.whole.shape[0]))
        return gather(image, self.indices)

    def hessian(self, at: Evaluation) -> Array:
        """Return the Hessian as a matrix."""
        block = self.cross_hessian(at, self)
        return 0.5 * (block + block.T)  # differences of gradients are not quite symmetric

    def hessian_diag(self, at: Evaluation) -> Array:
        """Return the diagonal of the Hessian."""
        return namespace(at.point).linalg.diagonal(self.hessian(at))

    def cross_hessian(self, at: Evaluation, other: OfCoordinates) -> Array:
        """Return the block of the Hessian between these coordinates and others."""
        images = self.whole.hessian_rows(self._point(at), other.indices)
        return namespace(images).take(images, self.indices, axis=1).T

    def recession(self, at: Evaluation, indices: Array) -> None:
        """Return None: nothing is known of a function at infinity."""

    def double(self) -> Self:
        """Return itself: its precision is that of the user's function."""
        return self

    def _point(self, at: Evaluation) -> Array:
        """Return the whole vector of an evaluation, of this function or of the whole one."""
        known: Any = at.prediction
        return self.predict(at.point) if known is None else known
