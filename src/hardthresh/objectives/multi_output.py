"""Several outputs explained by the same columns: a design and a matrix of targets."""

from __future__ import annotations

from typing import Any

from hardthresh.arrays import namespace
from hardthresh.core.objective import Evaluation, Traits
from hardthresh.core.registry import register
from hardthresh.core.typing import Array
from hardthresh.losses import Squared

from .base import MeanOverRows, checked_design, checked_ridge, checked_targets, loss_rounding, mean_weights


def _examples() -> list[MultiOutputModel]:
    """Return small models for the conformance tests: 30 examples, three outputs of four columns, six of six."""
    import numpy as np

    rng = np.random.default_rng(0)
    X, Y, weights = rng.standard_normal((30, 6)), rng.standard_normal((30, 6)), rng.integers(0, 3, 30).astype(float)
    return [MultiOutputModel(X, Y), MultiOutputModel(X[:, :4], Y[:, :3], sample_weight=weights, l2=0.1)]


@register("objective", "multi_output", _examples)
class MultiOutputModel(MeanOverRows):
    r"""The mean squared error of several linear predictors of the same columns.

    .. math:: f(W) = \tfrac{1}{2} \sum_i \omega_i \, \|W^\top x_i - y_i\|^2 + \tfrac{\lambda}{2} \|W\|_F^2,
              \qquad \omega_i = \frac{s_i}{\sum_i s_i}

    Parameters
    ----------
    X : array or scipy.sparse array, shape (n, p), or Design
        Data, one example per row. float32 is computed in float32.
    Y : array, shape (n, q)
        Targets, one output per column, q >= 1; computed in the precision of X.
    sample_weight : array, shape (n,), optional
        s, non-negative, not all zero; weight 2 is the same as a row given twice, weight 0 as a row left out.
    l2 : float
        Ridge :math:`\lambda \ge 0` on the mean.

    Raises
    ------
    InvalidInputError
        For NaN or infinity, shapes that do not match, negative weights or ridge, targets whose squares leave the range
        of their dtype.

    See Also
    --------
    hardthresh.estimators.LowRankRegression : Its global minimum over matrices of low rank, in closed form.

    Notes
    -----
    Points and gradients have the shape (p, q) of W. f is convex and quadratic with the same Hessian
    :math:`X^\top \mathrm{diag}(\omega) X + \lambda I` for every output, and is >= 0.

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

    lower_bound = 0.0
    _by_row = ("Y",)

    def __init__(self, X: Any, Y: Any, *, sample_weight: Any = None, l2: float = 0.0) -> None:
        self.design = checked_design(X)
        n, like = self.design.shape[0], self.design.zeros(1)
        self.Y = checked_targets(Y, like, n, "Y", matrix=True)
        Squared().check_targets(self.Y)
        self.weights = mean_weights(sample_weight, like, n)
        self.l2 = float(checked_ridge(l2, like))

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of W, (p, q)."""
        return (self.design.shape[1], self.Y.shape[1])

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Quadratic."""
        return Traits(quadratic=True, n_rows=self.design.shape[0])

    def zeros(self) -> Array:
        """Return W = 0."""
        p, q = self.shape
        return namespace(self.Y).reshape(self.design.zeros(p * q), (p, q))

    def predict(self, W: Array) -> Array:
        """Return XW, shape (n, q)."""
        return self.design.predict(W)

    def value(self, W: Array, prediction: Array | None = None) -> float:
        """Return f(W); `prediction`, if the caller has it, saves computing it again."""
        residual = (self.predict(W) if prediction is None else prediction) - self.Y
        return 0.5 * self._mean_square(residual) + 0.5 * self.l2 * float(namespace(W).sum(W * W))

    def evaluate(self, W: Array, prediction: Array | None = None) -> Evaluation:
        """Return value and gradient at W; `prediction`, if the caller has it, saves computing it again."""
        u = self.predict(W) if prediction is None else prediction
        gradient = self.design.pullback(self.weights[:, None] * (u - self.Y)) + self.l2 * W
        return Evaluation(W, self.value(W, u), gradient, u)

    def rounding(self, at: Evaluation) -> float:
        """Return how much of the value at an evaluated point may be rounding; see `loss_rounding`."""
        ridge = 0.5 * self.l2 * float(namespace(at.point).sum(at.point * at.point))
        return loss_rounding(self.weights, Squared(), self.Y, at.prediction, ridge)

    def curvature(self, at: Evaluation, direction: Array) -> Array:
        """Return the Hessian times a direction, shape (p, q)."""
        return self.design.pullback(self.weights[:, None] * self.predict(direction)) + self.l2 * direction

    def curvature_along(self, at: Evaluation, direction: Array) -> float:
        """Return direction' H direction: half the cost of the product."""
        square = float(namespace(direction).sum(direction * direction))
        return self._mean_square(self.predict(direction)) + self.l2 * square

    def _mean_square(self, residual: Array) -> float:
        """Return the weighted mean over the examples of the squares of their outputs, added up."""
        xp = namespace(residual)
        return float(xp.sum(self.weights * xp.sum(residual * residual, axis=1)))
