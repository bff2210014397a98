"""Several outputs predicted from the same columns: a design, a loss and a matrix of targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardthresh.arrays import namespace
from hardthresh.core.registry import register, registered
from hardthresh.core.typing import Array
from hardthresh.designs import Design
from hardthresh.losses import Loss

from .composite import Composite
from .inputs import Targets, checked_design, checked_ridge


def _examples() -> list[MultiOutputModel]:
    """Return small models for the conformance tests: 30 examples, three outputs of four columns, six of six."""
    rng = np.random.default_rng(0)
    X, Y, weights = rng.standard_normal((30, 6)), rng.standard_normal((30, 6)), rng.integers(0, 3, 30).astype(float)
    models = [MultiOutputModel(X, Y), MultiOutputModel(X[:, :4], Y[:, :3], sample_weight=weights, l2=0.1)]
    others = [entry.cls() for name, entry in registered("loss").items() if name != "squared"]
    U = 0.3 * np.outer(X[:, 2] - X[:, 5], [1.0, -1.0, 0.5])
    offset = 0.1 * rng.standard_normal((30, 3))
    return models + [
        MultiOutputModel(X[:, :4], loss.example_target(U, rng), loss, offset=offset, l2=0.1) for loss in others
    ]


@register("objective", "multi_output", _examples)
class MultiOutputModel(Composite):
    r"""The mean loss of several linear predictors of the same columns, that of the outputs added up.

    .. math:: f(W) = \sum_i \omega_i \sum_j \ell(y_{ij}, w_j^\top x_i + o_{ij}) + \tfrac{\lambda}{2} \|W\|_F^2,
              \qquad \omega_i = \frac{s_i}{\sum_i s_i}

    so for ``loss="squared"`` :math:`f(W) = \|XW - Y\|_F^2 / (2n)`.

    Parameters
    ----------
    X : array or scipy.sparse array, shape (n, p), or Design
        Data, one example per row. float32 is computed in float32.
    Y : array, shape (n, q)
        Targets, one output per column, q >= 1, in the domain of the loss; computed in the precision of X.
    loss : str or Loss
        "squared", "logistic", "poisson", "gamma", or an instance; the same for every output.
    sample_weight : array, shape (n,), optional
        s, non-negative, not all zero; weight 2 is the same as a row given twice, weight 0 as a row left out.
    offset : array, shape (n, q), optional
        o, a known part of the predictions; finite.
    l2 : float
        Ridge :math:`\lambda \ge 0` on the mean.

    Raises
    ------
    InvalidInputError
        For NaN or infinity, shapes that do not match, negative weights or ridge, targets outside the domain of the
        loss.

    See Also
    --------
    hardthresh.estimators.LowRankRegression : Its global minimum over matrices of low rank, in closed form.

    Notes
    -----
    Points and gradients have the shape (p, q) of W. f is the sum of the `LinearModel` of each output, and as convex; of
    squared errors the Hessian of every output is :math:`X^\top \mathrm{diag}(\omega) X + \lambda I`. The likelihood
    takes the targets of one example for independent.

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
    l2: float

    def __init__(
        self,
        X: Any,
        Y: Any,
        loss: str | Loss = "squared",
        *,
        sample_weight: Any = None,
        offset: Any = None,
        l2: float = 0.0,
    ) -> None:
        design = checked_design(X)
        n, like = design.shape[0], design.zeros(1)
        targets = Targets.of_matrix(Y, sample_weight, offset, like, n)
        super().__init__(design, targets, loss, float(checked_ridge(l2, like)))

    @property
    def Y(self) -> Array:
        """The targets, shape (n, q)."""
        return self.y

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of W, (p, q)."""
        return (self.design.shape[1], self.y.shape[1])

    def zeros(self) -> Array:
        """Return W = 0."""
        p, q = self.shape
        return namespace(self.y).reshape(self.design.zeros(p * q), (p, q))
