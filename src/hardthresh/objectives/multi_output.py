"""Several outputs predicted from the same columns: a design, a loss and a matrix of targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import device

from hardthresh.arrays import as_double, double, gather, inverse_semidefinite, move, namespace, to_numpy
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.objective import Evaluation
from hardthresh.core.registry import register
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.designs import Design
from hardthresh.losses import Loss, Multinomial, MultiTask, VectorLoss, pointwise_losses
from hardthresh.losses.vector import coefficient_hessian

from .composite import Composite, as_loss
from .inputs import Targets, check_squares, checked_design, checked_ridge, checked_target_matrix
from .linear_model import LinearModel
from .recession import falling_direction


def _examples() -> list[MultiOutputModel]:
    """Return small models for the conformance tests: 30 examples, three outputs of four columns, six of six."""
    rng = np.random.default_rng(0)
    X, Y, weights = rng.standard_normal((30, 6)), rng.standard_normal((30, 6)), rng.integers(0, 3, 30).astype(float)
    models = [MultiOutputModel(X, Y), MultiOutputModel(X[:, :4], Y[:, :3], sample_weight=weights, l2=0.1)]
    others: list[Loss | VectorLoss] = [cls() for name, cls in pointwise_losses().items() if name != "squared"]
    others.append(Multinomial(n_classes=3))
    U = 0.3 * np.outer(X[:, 2] - X[:, 5], [1.0, -1.0, 0.5])
    offset = 0.1 * rng.standard_normal((30, 3))
    return models + [
        MultiOutputModel(X[:, :4], loss.example_target(U, rng), loss, offset=offset, l2=0.1) for loss in others
    ]


@register("objective", "multi_output", _examples)
class MultiOutputModel(Composite):
    r"""The mean loss of several linear predictors of the same columns.

    .. math:: f(W) = \sum_i \omega_i \, \ell(y_i, W^\top x_i + o_i) + \tfrac{1}{2} \sum_j \lambda_j \|w_j\|^2,
              \qquad \omega_i = \frac{s_i}{\sum_i s_i}

    for the rows :math:`w_j` of W, one for each column of X. A pointwise loss is summed over the outputs, so for
    ``loss="squared"`` :math:`f(W) = \|XW - Y\|_F^2 / (2n)`. For ``loss="multinomial"`` f is the mean log-loss of
    classes, with one output for each class.

    Parameters
    ----------
    X : array or scipy.sparse array, shape (n, p), or Design
        Data, one example per row. float32 data are computed in float32.
    Y : array, shape (n, q), or (n,) for "multinomial"
        Targets in the domain of the loss, which are converted to the precision of X. One output per column, q >= 1; for
        the multinomial loss, the number 0, 1, ..., q - 1 of the class of each example.
    loss : str, Loss or VectorLoss
        "squared", "logistic", "poisson", "gamma", ..., the same for every output; "multinomial"; or an instance, as
        ``Multinomial(n_classes=3)`` where Y may lack the last classes.
    sample_weight : array, shape (n,), optional
        s, non-negative, not all zero. A row with weight 2 is equivalent to two copies of the row; a row with weight 0
        is ignored.
    offset : array, shape (n, q), optional
        o, a known part of the predictions; finite.
    l2 : float or array, shape (p,)
        Ridge :math:`\lambda \ge 0` on the mean loss; an array sets it row by row (0 for intercepts).

    Raises
    ------
    InvalidInputError
        For NaN or infinity, shapes that do not match, negative weights or ridge, targets outside the domain of the
        loss.

    See Also
    --------
    hardthresh.estimators.LowRankRegression : Computes its global minimum over matrices of low rank in closed form.

    Notes
    -----
    Points and gradients have the shape (p, q) of W. With a pointwise loss, f is the sum of the `LinearModel` objectives
    of the outputs, and convex if the loss is; for squared errors the Hessian of every output is :math:`X^\top
    \mathrm{diag}(\omega) X + \mathrm{diag}(\lambda)`. The likelihood treats the targets of one example as independent.
    The attribute `loss` is a `VectorLoss`: for a pointwise loss, `MultiTask` of it.

    Cost of `evaluate`: q data passes for the gradient and up to q for the prediction, each a product of two matrices;
    `curvature` costs the same, `curvature_along` and `value` half of it.

    References
    ----------
    A. J. Izenman (1975), Reduced-rank regression for the multivariate linear model, *Journal of Multivariate Analysis*
    5, 248-264.

    Examples
    --------
    >>> import numpy as np
    >>> f = MultiOutputModel(np.eye(2), np.array([[1.0, 0.0], [0.0, 2.0]]))
    >>> f.evaluate(np.zeros((2, 2))).gradient
    array([[-0.5,  0. ],
           [ 0. , -1. ]])
    """

    design: Design
    loss: VectorLoss

    def __init__(
        self,
        X: Any,
        Y: Any,
        loss: str | Loss | VectorLoss = "squared",
        *,
        sample_weight: Any = None,
        offset: Any = None,
        l2: Any = 0.0,
    ) -> None:
        design = checked_design(X)
        (n, p), like = design.shape, design.zeros(1)
        vector = self._read_loss(loss)
        targets = _targets(Y, vector, sample_weight, offset, like, n)
        ridge = checked_ridge(l2, like, p)
        super().__init__(design, targets, vector, ridge[:, None] if ridge.ndim else float(ridge))
        self._n_predictions = vector.n_outputs(self.y)
        if not design.has_columns:
            self.columns = None  # type: ignore[assignment, method-assign]
        if "rows" in design.lacks:
            self.rows = None  # type: ignore[assignment, method-assign]
        if targets.offset is not None and tuple(targets.offset.shape) != (n, self._n_predictions):
            raise InvalidInputError(
                f"offset has shape {tuple(targets.offset.shape)}, but there are {self._n_predictions} outputs"
            )

    @property
    def Y(self) -> Array:
        """The targets, shape (n, q), or (n,) where an example has one."""
        return self.y

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of W, (p, q)."""
        return (self.design.shape[1], self._n_predictions)

    def zeros(self) -> Array:
        """Return W = 0."""
        p, q = self.shape
        return namespace(self.y).reshape(self.design.zeros(p * q), (p, q))

    def column_products(self) -> LinearModel:
        r"""Return the linear model of one output whose Hessian is :math:`G = X^\top \mathrm{diag}(\omega) X`."""
        like = self.design.zeros(self.weights.shape[0])
        targets = Targets(like, self.weights, self.targets.n_examples, None)
        return LinearModel(self.design, like)._with(targets=targets)

    def row_ridge(self) -> Array:
        """Return the ridge of each row, shape (p,)."""
        ridge = self.l2 if not isinstance(self.l2, float) else self.design.zeros(1)[:, None] + self.l2
        return namespace(ridge).broadcast_to(ridge[:, 0], (self.shape[0],))

    @property
    def coefficients_per_row(self) -> int:
        """The number of free coefficients in a row of W: q, or C - 1 for C classes, whose sum is fixed."""
        return int(self.loss.axes(self.shape[1]).shape[1])

    def rows_of(self, support: Support) -> Array:
        """Return the rows of W of a support of whole rows."""
        return support.indices[:: self.shape[1]] // self.shape[1]

    def shrinkage(self, at: Evaluation, rows: Array) -> float:
        """Return how many coefficients of some rows the ridge takes away: as for `LinearModel`.

        Predictions that change no loss, as equal ones for all classes, have no coefficients that could be taken away.
        """
        q, few = self.shape[1], self.columns(rows)
        ridge = double(few.row_ridge())
        if self.loss.quadratic:  # each output has the same Hessian
            gram = double(few.design.gram(self.weights)) + np.diag(ridge)
            return q * float(ridge @ np.diagonal(inverse_semidefinite(gram)))
        axes = self.loss.axes(q)
        turn = np.kron(np.eye(ridge.size), axes)
        inverse = inverse_semidefinite(turn.T @ double(few.hessian(at)) @ turn)
        return float(np.repeat(ridge, axes.shape[1]) @ np.diagonal(inverse))

    def output_block(self, at: Evaluation) -> Array:
        """Return the weighted sum of the second derivatives of the examples at an evaluated point, shape (q, q)."""
        return self.loss.mean_block(self.y, at.prediction, self.weights)

    def output_bound(self) -> float:
        """Return the largest second derivative of an example in any direction of its predictions."""
        return self.loss.curvature_bound

    def columns(self, indices: Array) -> MultiOutputModel:
        """Return the model of some columns, by increasing index: of fewer rows of W."""
        l2 = self.l2 if isinstance(self.l2, float) else gather(self.l2, indices)
        return self._with(design=self.design.columns(indices), l2=l2)

    def hessian(self, at: Evaluation) -> Array:
        """Return the Hessian at an evaluated point, shape (pq, pq) over the flat W; for models of few columns.

        Cost: a Gram matrix of the columns for each pair of outputs.
        """
        xp, (p, q) = namespace(self.y), self.shape
        blocks = self.loss.blocks(self.y, at.prediction) * self.weights[:, None, None]
        X = self.design.dense()
        ridge = xp.eye(p * q, dtype=X.dtype, device=device(X)) * xp.repeat(self.row_ridge(), q)
        return coefficient_hessian(blocks, lambda weights: X.T @ (weights[:, None] * X)) + ridge

    def screening_gradients(self, points: Sequence[Array]) -> list[Array]:
        """Return the gradients at several points, accurate enough to decide which columns to examine.

        They are computed by one product, counted as q passes for each point, in single precision if that is faster; see
        `Design.screening_pullback`.
        """
        if not points:
            return []
        slopes = [self.mean_loss.slopes(self.predict(w)) for w in points]
        pulled, q = self.design.screening_pullback(namespace(self.y).concat(slopes, axis=1)), self.shape[1]
        parts = [pulled[:, i * q : (i + 1) * q] for i in range(len(points))]
        return [part + self.l2 * w if self._ridged else part for part, w in zip(parts, points, strict=True)]

    def centre(self, w: Array) -> Array:
        """Return the coefficients of least norm with the same loss: multinomial ones sum to 0 in each row."""
        return self.loss.centre(w)

    def with_ridge(self, l2: Any) -> MultiOutputModel:
        """Return the same model with another ridge: a number, or an array of shape (p,).

        Raises
        ------
        InvalidInputError
            For a ridge that is negative or not finite, or of another shape.
        """
        ridge = checked_ridge(l2, self.design.zeros(1), self.shape[0])
        return self._with(
            l2=ridge[:, None] if ridge.ndim else float(ridge), _ridged=bool(namespace(ridge).any(ridge != 0))
        )

    def double(self) -> MultiOutputModel:
        """Return the same model in double precision: its numbers count as exact; see `Design.double`."""
        if self.y.dtype == namespace(self.y).float64:
            return self
        l2 = self.l2 if isinstance(self.l2, float) else as_double(self.l2)
        return self._with(design=self.design.double(), targets=self.targets.double(), l2=l2)

    def recession(self, at: Evaluation, indices: Array) -> Array | None:
        """Return a direction in some rows along which f decreases indefinitely, or None; see `LinearModel.recession`.

        Parameters
        ----------
        at : Evaluation
            A point that is to be a minimiser on these rows.
        indices : array of int
            The coordinates of whole rows in the flat point, increasing; rows with a ridge stay where they are.

        Returns
        -------
        array, shape (p, q), or None

        Notes
        -----
        Cost: that of `LinearModel.recession` with as many rows as all examples have linear functions that say where
        their losses fall, C - 1 each for C classes.
        """
        contrasts = self.mean_loss.contrasts()
        if not contrasts.signs.any():
            return None
        q = self.shape[1]
        rows = indices[::q] // q
        if not isinstance(self.l2, float):
            rows = rows[namespace(self.l2).take(self.l2[:, 0], rows, axis=0) == 0]
        elif self.l2 > 0:
            return None
        if rows.shape[0] == 0:
            return None
        u = self.predict(at.point) if at.prediction is None else at.prediction
        xp, design = namespace(at.point), self.design.columns(rows)
        gradient = xp.take(at.gradient, rows, axis=0)
        v = falling_direction(contrasts, design, self.mean_loss.slopes(u), gradient)
        if v is None:
            return None
        place = np.zeros((self.shape[0], q))
        place[to_numpy(rows)] = v
        direction: Array = xp.astype(move(place, at.point), at.point.dtype)
        return direction

    def _read_loss(self, loss: Any) -> VectorLoss:
        of = as_loss(loss, VectorLoss)
        return of if isinstance(of, VectorLoss) else MultiTask(of)


def _targets(Y: Any, loss: VectorLoss, sample_weight: Any, offset: Any, like: Array, n: int) -> Targets:
    """Return the checked targets: a row for each example, or one number with an offset that is a row."""
    if not loss.one_target:
        return Targets.of_matrix(Y, sample_weight, offset, like, n)
    targets = Targets.of(Y, sample_weight, None, like, n, "Y")
    if offset is None:
        return targets
    offset = checked_target_matrix(offset, like, n, "offset")
    check_squares(offset, "offset")
    return replace(targets, offset=offset)
