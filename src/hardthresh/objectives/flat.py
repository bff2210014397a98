"""A model of several outputs as a linear objective of vectors, for methods that examine single columns or groups."""

from __future__ import annotations

from typing import Any, Self

from array_api_compat import device

from hardthresh.arrays import move, namespace
from hardthresh.core.meter import Meter
from hardthresh.core.objective import Evaluation, Traits
from hardthresh.core.typing import Array
from hardthresh.losses.vector import coefficient_hessian

from .linear_model import LinearModel
from .multi_output import MultiOutputModel
from .shared import ScreenedExactly


class FlatModel(ScreenedExactly):
    r"""A `MultiOutputModel` as a function of vectors: a `LinearObjective`.

    .. math:: g(v) = f(V A^\top), \qquad V \in R^{p \times m} \text{ with the rows of } v

    for an orthonormal basis A of the directions in which predictions change the loss: all of them, or for classes those
    that add up to 0. So the Hessian of a row of coefficients is singular only where that of its column is.

    Parameters
    ----------
    model : MultiOutputModel
        f.

    Notes
    -----
    The rows of V are consecutive coordinates, and `columns` takes whole rows only. An evaluation has the predictions of
    the model, shape (n, q). A block of the Hessian of s rows costs m (m + 1) / 2 Gram matrices of s columns, and m
    (m - 1) / 2 more where the outputs mix.
    """

    def __init__(self, model: MultiOutputModel) -> None:
        self._model, q = model, model.shape[1]
        like = namespace(zeros := model.zeros()).reshape(zeros, (-1,))[:1]
        self._axes = namespace(like).astype(move(model.loss.axes(q), like), like.dtype)
        self.width = int(self._axes.shape[1])
        self.shape = (model.shape[0] * self.width,)
        self.lower_bound = model.lower_bound

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Those of the model."""
        return self._model.traits

    @property
    def convex(self) -> bool:
        """Whether the model is known to be convex."""
        return self._model.convex

    @property
    def ridge(self) -> Array:
        """The ridge of each coordinate."""
        return namespace(self._axes).repeat(self._model.row_ridge(), self.width)

    def of_one_output(self) -> LinearModel:
        """Return a linear model of one output with the Hessian of each of them, of a model of squared errors."""
        return self._model.column_products().with_ridge(self._model.row_ridge())

    def zeros(self) -> Array:
        """Return v = 0."""
        return self.to_vector(self._model.zeros())

    def to_vector(self, w: Array) -> Array:
        """Return the vector of a matrix of coefficients, or of a gradient."""
        return namespace(w).reshape(w @ self._axes, (-1,))

    def to_matrix(self, v: Array) -> Array:
        """Return the matrix of coefficients of a vector."""
        return namespace(v).reshape(v, (-1, self.width)) @ self._axes.T

    def attains_bound(self) -> bool:
        """Return whether the model does."""
        return self._model.attains_bound()

    def predict(self, w: Array) -> Array:
        """Return the predictions of the model, shape (n, q)."""
        return self._model.predict(self.to_matrix(w))

    def value(self, w: Array, prediction: Array | None = None) -> float:
        """Return g(v)."""
        return self._model.value(self.to_matrix(w), prediction)

    def evaluate(self, w: Array, prediction: Array | None = None) -> Evaluation:
        """Return value and gradient."""
        at = self._model.evaluate(self.to_matrix(w), prediction)
        return Evaluation(w, at.value, self.to_vector(at.gradient), at.prediction)

    def rounding(self, at: Evaluation) -> float:
        """Return how much of the value may be rounding."""
        return self._model.rounding(self._there(at))

    def curvature(self, at: Evaluation, direction: Array) -> Array:
        """Return the Hessian times a direction."""
        return self.to_vector(self._model.curvature(self._there(at), self.to_matrix(direction)))

    def curvature_along(self, at: Evaluation, direction: Array) -> float:
        """Return direction' H direction."""
        return self._model.curvature_along(self._there(at), self.to_matrix(direction))

    def hessian_diag(self, at: Evaluation) -> Array:
        """Return the diagonal of the Hessian."""
        blocks = self._blocks(at)
        squares = [self._model.design.pullback_squares(blocks[:, r, r]) for r in range(self.width)]
        return namespace(at.point).reshape(namespace(at.point).stack(squares, axis=1) + self._ridge(), (-1,))

    def hessian(self, at: Evaluation) -> Array:
        """Return the Hessian; for models of few columns."""
        xp, size = namespace(at.point), self.shape[0]
        ridge = xp.reshape(xp.broadcast_to(self._ridge(), (size // self.width, self.width)), (-1,))
        unit = xp.eye(size, dtype=at.point.dtype, device=device(at.point))
        return self.cross_hessian(at, self) + unit * ridge

    def cross_hessian(self, at: Evaluation, other: FlatModel) -> Array:
        """Return the block of the Hessian between the coordinates of two models of columns, without the ridge."""
        design, right = self._model.design, None if other is self else other._model.design
        return coefficient_hessian(self._blocks(at), lambda weights: _gram(design, weights, right))

    def columns(self, indices: Array) -> Self:
        """Return the model of some columns, given by the coordinates of whole rows."""
        return type(self)(self._model.columns(indices[:: self.width] // self.width))

    def recession(self, at: Evaluation, indices: Array) -> Array | None:
        """Return a direction in some coordinates along which f decreases indefinitely, or None."""
        xp, q = namespace(indices), self._model.shape[1]
        rows = indices[:: self.width] // self.width
        flat = xp.reshape(rows[:, None] * q + xp.arange(q, dtype=rows.dtype, device=device(rows)), (-1,))
        found = self._model.recession(self._there(at), flat)
        return None if found is None else self.to_vector(found)

    def double(self) -> Self:
        """Return the same model in double precision."""
        exact = self._model.double()
        return self if exact is self._model else type(self)(exact)

    def metered(self, meter: Meter) -> Self:
        """Return the same model, adding its data passes to a meter."""
        return type(self)(self._model.metered(meter))

    def _there(self, at: Evaluation) -> Evaluation:
        """Return an evaluation as one of the model."""
        return Evaluation(self.to_matrix(at.point), at.value, self.to_matrix(at.gradient), at.prediction)

    def _blocks(self, at: Evaluation) -> Array:
        """Return the weighted second derivatives of each example on the axes, shape (n, m, m)."""
        u = self.predict(at.point) if at.prediction is None else at.prediction
        blocks = self._model.loss.blocks(self._model.y, u)
        return self._model.weights[:, None, None] * (self._axes.T @ blocks @ self._axes)

    def _ridge(self) -> Any:
        """Return the ridge of each row, shape (p, 1), or a number."""
        return self._model.l2


def _gram(design: Any, weights: Array, other: Any) -> Array:
    """Return X' diag(weights) Z for weights of both signs."""
    xp = namespace(weights)
    zero = xp.zeros_like(weights)
    total = design.gram(xp.where(weights > 0, weights, zero), other)
    if bool(xp.any(weights < 0)):
        total = total - design.gram(xp.where(weights < 0, -weights, zero), other)
    return total
