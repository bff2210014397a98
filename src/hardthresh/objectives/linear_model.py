"""A design, a loss and targets: the objective of every generalised linear model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any, Self

import numpy as np
from array_api_compat import device

from hardthresh.arrays import (
    as_double,
    double,
    gather,
    move,
    namespace,
    scatter,
    where_true,
)
from hardthresh.core.errors import InvalidInputError, numbered
from hardthresh.core.few import predict_together
from hardthresh.core.lazy import to_host_together
from hardthresh.core.objective import Evaluation
from hardthresh.core.registry import register, registered
from hardthresh.core.typing import Array, is_numpy
from hardthresh.designs import DenseDesign, Design
from hardthresh.losses import JointLoss, Loss, pointwise_losses
from hardthresh.losses.local_quadratic import LocalQuadratic, QuadraticMean
from hardthresh.losses.mean import InnerHessian, ScalarMeanLoss

from .composite import Composite, as_loss
from .inputs import Targets, checked_design, checked_ridge
from .recession import falling_direction
from .shared import OneNumberPerRow

_MANY = 1 << 23  # entries of all gradients of one product: 64 MB of float64. Arbitrary


def _examples() -> list[LinearModel]:
    """Return small models for the conformance tests: 30 examples, 12 columns, and every registered loss."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 12)), rng.standard_normal(30)
    weights = rng.integers(0, 3, 30).astype(float)
    models = [
        LinearModel(X, y),
        LinearModel(X, y, sample_weight=weights, offset=rng.standard_normal(30), l2=0.1),
        LinearModel(X, (y > 0).astype(float), loss="logistic", l2=rng.uniform(0, 1, 12)),
    ]
    u = 0.3 * (X[:, 3] - X[:, 8])
    others: list[Any] = [cls() for name, cls in pointwise_losses().items() if name not in ("squared", "logistic")]
    every = [loss for entry in registered("loss").values() for loss in entry.examples()]
    joint: list[Any] = [loss for loss in every if isinstance(loss, JointLoss) and loss.n_predictions == 1]
    return models + [LinearModel(X, loss.example_target(u, rng), loss=loss, l2=0.1) for loss in [*others, *joint]]


@register("objective", "linear_model", _examples)
class LinearModel(OneNumberPerRow, Composite):
    r"""The mean loss of a linear predictor.

    .. math:: f(w) = \sum_i \omega_i \, \ell(y_i, x_i^\top w + o_i) + \tfrac{1}{2} \sum_j \lambda_j w_j^2,
              \qquad \omega_i = \frac{s_i}{\sum_i s_i}

    so for ``loss="squared"`` :math:`f(w) = \|Xw - y\|^2 / (2n)`, and for ``loss="logistic"`` the mean log-loss.

    Parameters
    ----------
    X : array or scipy.sparse array, shape (n, d), or Design
        Data, one example per row. float32 data are computed in float32.
    y : array, shape (n,)
        Targets in the domain of the loss. Like all arrays here they are converted to the precision of X. A joint loss
        has a row for each example, shape (n, m); see the loss.
    loss : str, Loss or JointLoss
        "squared", "logistic", "poisson", "cox", ..., or an instance.
    sample_weight : array, shape (n,), optional
        s, non-negative, not all zero. A row with weight 2 is equivalent to two copies of the row; a row with weight 0
        is ignored.
    offset : array, shape (n,), optional
        o, a known part of the prediction; finite.
    l2 : float or array, shape (d,)
        Ridge :math:`\lambda \ge 0` on the mean loss; an array sets it coordinate by coordinate (0 for an intercept).

    Raises
    ------
    InvalidInputError
        For NaN or infinity, lengths that do not match, negative weights or ridge, targets outside the loss's domain.

    Notes
    -----
    f is convex where the loss is, and bounded below by `lower_bound`.

    Cost of `evaluate`: one data pass, plus s/d of a pass for the prediction at a w with s of d entries non-zero.
    `curvature` costs the same; a model of some `columns` or `rows` costs their share. On an operator every product is a
    whole pass; see `hardthresh.designs.OperatorDesign`.

    References
    ----------
    P. McCullagh and J. A. Nelder (1989), *Generalized Linear Models*, Chapter 2.

    Examples
    --------
    >>> import numpy as np
    >>> f = LinearModel(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, 2.0]))
    >>> f.evaluate(np.zeros(2)).gradient
    array([-0.5, -2. ])
    """

    design: Design
    loss: Any  # Loss or JointLoss
    mean_loss: ScalarMeanLoss

    def __init__(
        self,
        X: Any,
        y: Any,
        loss: str | Loss | JointLoss = "squared",
        *,
        sample_weight: Any = None,
        offset: Any = None,
        l2: Any = 0.0,
    ) -> None:
        design = checked_design(X)
        (n, d), like, loss = design.shape, design.zeros(1), self._read_loss(loss)
        targets = Targets.of_examples if isinstance(loss, JointLoss) else Targets.of
        super().__init__(design, targets(y, sample_weight, offset, like, n), loss, checked_ridge(l2, like, d))
        if not design.has_columns:
            self.columns = None  # type: ignore[assignment, method-assign]
        if isinstance(loss, JointLoss) or "rows" in design.lacks:
            self.rows = None  # type: ignore[assignment, method-assign]

    @property
    def _n_outputs(self) -> int:
        return 1

    def _read_loss(self, loss: Any) -> Loss | JointLoss:
        read: Loss | JointLoss = as_loss(loss, JointLoss)
        if isinstance(read, JointLoss) and read.n_predictions > 1:
            raise InvalidInputError(
                f"the {type(read).__name__} loss has {read.n_predictions} predictions for an example; use OrdinalModel"
            )
        return read

    def _inner_hessian(self, at: Evaluation) -> InnerHessian:
        return self.mean_loss.inner_hessian(at.prediction)

    @property
    def readings(self) -> float:
        """How often X was read from its file for this model (some columns count as a share); NaN in memory."""
        return self.design.readings

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of w, (d,)."""
        return (self.design.shape[1],)

    @property
    def ridge(self) -> Array:
        """The ridge of each coordinate, shape (d,)."""
        return self.design.zeros(self.shape[0]) + self.l2

    def zeros(self) -> Array:
        """Return w = 0."""
        return self.design.zeros(self.design.shape[1])

    def evaluate_many(self, points: Sequence[Array]) -> list[Evaluation]:
        """Return value and gradient at several points, by one product, counted as one pass for each point."""
        if len(points) < 2:
            return [self.evaluate(w) for w in points]
        xp = namespace(*points)
        evaluations = []
        for some, predictions in self._predictions(points):
            means, slopes = zip(*map(self.mean_loss.value_and_slopes, predictions), strict=True)
            pulled = self.design.pullback(xp.stack(slopes).T)
            for i, (w, prediction) in enumerate(zip(some, predictions, strict=True)):
                slope = pulled[:, i]
                gradient = slope + self.l2 * w if self._ridged else xp.asarray(slope, copy=True)
                evaluations.append(Evaluation(w, means[i] + 0.5 * self._ridge(w), gradient, prediction))
        return evaluations

    def screening_gradients(self, points: Sequence[Array]) -> list[Array]:
        """Return the gradients at several points, accurate enough to decide which columns to examine.

        They are computed by one product, counted as one pass for each point, in single precision if that is faster; see
        `Design.screening_pullback`.
        """
        if len(points) < 2:
            return [self.evaluate(w).gradient for w in points]
        gradients = []
        for some, predictions in self._predictions(points):
            slopes = [self.mean_loss.slopes(u) for u in predictions]
            pulled = self.design.screening_pullback(namespace(*points).stack(slopes).T)
            gradients += [pulled[:, i] + self.l2 * w if self._ridged else pulled[:, i] for i, w in enumerate(some)]
        return gradients

    def _predictions(self, points: Sequence[Array]) -> Iterator[tuple[Sequence[Array], list[Array]]]:
        """Yield points with their predictions, as many at a time as are worked on at once."""
        size = max(1, _MANY // self.design.shape[1])
        for start in range(0, len(points), size):
            some = points[start : start + size]
            yield some, predict_together(self, some)

    def hessian_diag(self, at: Evaluation) -> Array:
        """Return the diagonal of the Hessian at an evaluated point, shape (d,): counted as one data pass.

        If all examples have the same curvature, as for equal weights and ``loss="squared"``, a dense NumPy array was
        read for it when it was checked, and is not read again.

        Raises
        ------
        InvalidInputError
            If the squares of a column leave the range of its dtype.
        """
        inner = self._inner_hessian(at)
        squares = inner.squares(self.design)
        self._check_squares(squares, inner.diagonal)
        return squares + self.l2

    def _check_squares(self, squares: Array, curvature: Array) -> None:
        """Refuse columns whose squares overflow, or vanish where the column does not."""
        xp = namespace(squares)
        if bool(xp.all((squares > 0) & (squares < inf))):
            return
        outside = ~xp.isfinite(squares)
        if not bool(xp.any(outside)):
            zero = where_true(squares == 0)
            tilt = curvature * xp.linspace(
                1.0, 2.0, curvature.shape[0], dtype=curvature.dtype, device=device(curvature)
            )
            few = self.design.columns(zero)
            seen = xp.abs(few.pullback(tilt))
            lost = few.pullback_squares(curvature) == 0  # else a joint Hessian has subtracted as much: no curvature
            outside = scatter(xp.where(lost, seen, xp.zeros_like(seen)), zero, squares.shape[0]) > 0
        if bool(xp.any(outside)):
            j = int(xp.argmax(xp.astype(outside, xp.int8)))
            how = "overflow" if bool(xp.isinf(squares[j])) or bool(xp.isnan(squares[j])) else "underflow"
            raise InvalidInputError(f"the squares of {numbered('column', j)} of X {how} {squares.dtype}; rescale it")

    def hessian(self, at: Evaluation) -> Array:
        """Return the Hessian at an evaluated point as a (d, d) matrix; for models of few columns."""
        gram = self._inner_hessian(at).gram(self.design)
        if not self._ridged:
            return gram
        ridge = namespace(gram).eye(gram.shape[0], dtype=gram.dtype, device=device(gram)) * self.l2
        return gram + ridge

    def row_ridge(self) -> Array:
        """Return the ridge of each coordinate, shape (d,)."""
        return self.design.zeros(self.shape[0]) + self.l2

    def _hessian_among(self, at: Evaluation, indices: Array) -> np.ndarray:
        """Return the Hessian in some coordinates, with the ridge, in double precision."""
        if self.design.has_columns:
            return super()._hessian_among(at, indices)
        one, d = namespace(at.point).ones_like(at.point[:1]), at.point.shape[0]
        units = (scatter(one, indices[i : i + 1], d) for i in range(indices.shape[0]))
        return np.stack([double(gather(self.curvature(at, unit), indices)) for unit in units])

    def recession(self, at: Evaluation, indices: Array) -> Array | None:
        r"""Return a direction in some coordinates along which f decreases indefinitely, or None.

        If there is one, f has no minimiser on these coordinates. The direction is so long that a longer one would
        change f only by rounding.

        Parameters
        ----------
        at : Evaluation
            A point that is to be a minimiser on the coordinates.
        indices : array of int
            The coordinates, increasing. Coordinates with a ridge do not move.

        Returns
        -------
        array, shape (d,), or None

        Notes
        -----
        If the gradient is small, the slopes of the losses show that there is none (`has_no_recession`); otherwise a
        linear program decides.
        """
        if self.loss.quadratic or (self._ridged and self.l2.ndim == 0):
            return None
        unbound = indices if self.l2.ndim == 0 else indices[gather(self.l2, indices) == 0]
        contrasts = self.mean_loss.contrasts()
        if unbound.shape[0] == 0 or not contrasts.signs.any():
            return None
        u = self.predict(at.point) if at.prediction is None else at.prediction
        design, gradient = self.design.columns(unbound), gather(at.gradient, unbound)
        v = falling_direction(contrasts, design, self.mean_loss.slopes(u), gradient)
        if v is None:
            return None
        like = at.point
        return scatter(namespace(like).astype(move(v, like), like.dtype), unbound, like.shape[0])

    def cross_hessian(self, at: Evaluation, other: LinearModel) -> Array:
        """Return the block of the Hessian between this model's columns and those of another, which are none of them."""
        return self._inner_hessian(at).gram(self.design, other.design)

    @property
    def curvature_bound(self) -> float:
        """The bound on the second derivative of the loss of an example; infinite if there is none."""
        return float(self.loss.curvature_bound)

    def bounding_quadratic(self) -> LinearModel:
        """Return the quadratic whose Hessian is that of this model with the bound of all second derivatives."""
        like = self.design.zeros(self.weights.shape[0])
        targets = Targets(like, self.curvature_bound * self.weights, self.targets.n_examples, None)
        return LinearModel(self.design, like)._with(targets=targets, l2=self.l2, _ridged=self._ridged)

    def quadratic_model(self, at: Evaluation) -> LinearModel:
        """Return the quadratic model of f around an evaluated point: f itself, if that is quadratic.

        It has no likelihood, and its mini-batches are not defined.
        """
        if self.traits.quadratic:
            return self
        u = self.predict(at.point) if at.prediction is None else at.prediction
        model = self._with(loss=LocalQuadratic(QuadraticMean.of(self.mean_loss, u)))
        model.rows = None  # type: ignore[assignment, method-assign]
        return model

    def double(self) -> Self:
        """Return the same model in double precision: its numbers count as exact; see `Design.double`."""
        if self.y.dtype == namespace(self.y).float64:
            return self
        return self._with(
            design=self.design.double(),
            targets=self.targets.double(),
            l2=as_double(self.l2),
        )

    def on_host(self) -> LinearModel:
        """Return the same model with arrays of NumPy, brought over in one transfer; a model of NumPy itself.

        So are models of ordered classes, whose designs know which columns are thresholds.
        """
        if is_numpy(self.y) or type(self) is not LinearModel:
            return self
        offset = () if self.offset is None else (self.offset,)
        X, y, weights, l2, *rest = to_host_together(self.design.dense(), self.y, self.weights, self.l2, *offset)
        targets = replace(self.targets, y=y, weights=weights, offset=rest[0] if rest else None)
        return self._with(design=DenseDesign.of(X), targets=targets, l2=l2)

    def with_ridge(self, l2: Any) -> LinearModel:
        """Return the same model with another ridge: a number, or an array of shape (d,).

        Raises
        ------
        InvalidInputError
            For a ridge that is negative or not finite, or of another shape.
        """
        ridge = checked_ridge(l2, self.design.zeros(1), self.shape[0])
        return self._with(l2=ridge, _ridged=bool(namespace(ridge).any(ridge != 0)))

    def columns(self, indices: Array) -> Self:
        """Return the model of some columns, by increasing index."""
        l2 = gather(self.l2, indices) if self.l2.ndim else self.l2
        return self._with(design=self.design.columns(indices), l2=l2)
