"""Linear measurements of a matrix."""

from __future__ import annotations

import re
from typing import Any

from scipy.sparse import issparse

from hardthresh.arrays import as_floating, namespace
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.meter import Meter
from hardthresh.core.objective import BaseObjective, Evaluation, Traits
from hardthresh.core.registry import register
from hardthresh.core.typing import Array
from hardthresh.designs import Design
from hardthresh.losses import Loss

from .base import matrix_shape
from .linear_model import LinearModel


def _examples() -> list[MatrixRegression]:
    """Return small problems for the conformance tests: 30 measurements of a 6 x 6 matrix."""
    import numpy as np

    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((30, 6, 6)), rng.standard_normal(30)
    return [
        MatrixRegression(A, y),
        MatrixRegression(A, (y > 0).astype(float), loss="logistic", l2=0.1),
    ]


@register("objective", "matrix_regression", _examples)
class MatrixRegression(BaseObjective):
    r"""The mean loss of linear measurements of a matrix.

    .. math:: f(W) = \sum_i \omega_i \, \ell(y_i, \langle A_i, W \rangle + o_i) + \tfrac{\lambda}{2} \|W\|_F^2,
              \qquad \omega_i = \frac{s_i}{\sum_i s_i}

    so for ``loss="squared"`` :math:`f(W) = \tfrac{1}{2n} \sum_i (y_i - \langle A_i, W \rangle)^2`.

    Parameters
    ----------
    A : array, shape (n, p, q), or what a design is made of, shape (n, p q)
        The measurements :math:`A_i`. With `shape`: a matrix, a scipy.sparse array, or a
        `scipy.sparse.linalg.LinearOperator` whose i-th row is :math:`A_i` row by row; an operator needs `rmatvec` and
        is only ever multiplied with vectors. float32 is computed in float32.
    y : array, shape (n,)
        Targets in the domain of the loss.
    loss : str or Loss
        "squared", "logistic", "poisson", or an instance.
    shape : tuple of int, optional
        (p, q), both >= 1, where A does not say.
    sample_weight, offset : array, shape (n,), optional
        As in `LinearModel`.
    l2 : float
        Ridge :math:`\lambda \ge 0` on the mean loss.

    Raises
    ------
    InvalidInputError
        For NaN or infinity, shapes that do not fit, negative weights or ridge, targets outside the loss's domain, an
        operator without `rmatvec`.

    See Also
    --------
    hardthresh.constraints.Rank : The constraint that it is made for.

    Notes
    -----
    It is a `LinearModel` of the entries of W, and as convex. Cost of `evaluate`: two data passes; `curvature` costs the
    same, `curvature_along` and `value` half of it. Some `rows` cost their share, but all of it where A is an operator.

    References
    ----------
    *Sparse Polyak*, Section 5.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
    >>> f = MatrixRegression(A, np.array([2.0, 4.0]))
    >>> f.evaluate(np.eye(2)).gradient
    array([[-0.5,  0. ],
           [ 0. , -1.5]])

    The same as an operator, here the two products with a matrix of rows that is never shown:

    >>> from scipy.sparse.linalg import aslinearoperator
    >>> f = MatrixRegression(aslinearoperator(A.reshape(2, 4)), np.array([2.0, 4.0]), shape=(2, 2))
    >>> f.value(np.eye(2))
    2.5
    """

    def __init__(
        self,
        A: Any,
        y: Any,
        loss: str | Loss = "squared",
        *,
        shape: tuple[int, int] | None = None,
        sample_weight: Any = None,
        offset: Any = None,
        l2: float = 0.0,
    ) -> None:
        A, self.shape = _measurements(A, shape)
        try:
            self.model = LinearModel(A, y, loss, sample_weight=sample_weight, offset=offset, l2=l2)
        except InvalidInputError as error:
            raise InvalidInputError(re.sub(r"\bX\b", "A", str(error))) from None
        if self.model.shape != (self.shape[0] * self.shape[1],):
            raise InvalidInputError(
                f"A has {self.model.shape[0]} columns, which do not make matrices of shape {self.shape}"
            )
        self.lower_bound = self.model.lower_bound

    def _of(self, model: LinearModel) -> MatrixRegression:
        """Return the problem of the same shape on another model of the entries."""
        other = MatrixRegression.__new__(MatrixRegression)
        other.shape, other.model, other.lower_bound = self.shape, model, self.lower_bound
        return other

    def _matrix(self, at: Evaluation, W: Array) -> Evaluation:
        return Evaluation(W, at.value, namespace(W).reshape(at.gradient, self.shape), at.prediction)

    def _vector(self, at: Evaluation) -> Evaluation:
        return Evaluation(_flat(at.point), at.value, _flat(at.gradient), at.prediction)

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Those of the model of the entries."""
        return self.model.traits

    def attains_bound(self) -> bool:
        """Return whether a perfect fit is finite."""
        return self.model.attains_bound()

    def zeros(self) -> Array:
        """Return W = 0."""
        zeros = self.model.zeros()
        return namespace(zeros).reshape(zeros, self.shape)

    def predict(self, W: Array) -> Array:
        """Return the predictions :math:`\\langle A_i, W \\rangle + o_i`, shape (n,)."""
        return self.model.predict(_flat(W))

    def value(self, W: Array, prediction: Array | None = None) -> float:
        """Return f(W); `prediction`, if the caller has it, saves computing it again."""
        return self.model.value(_flat(W), prediction)

    def evaluate(self, W: Array, prediction: Array | None = None) -> Evaluation:
        """Return value and gradient at W; `prediction`, if the caller has it, saves computing it again."""
        return self._matrix(self.model.evaluate(_flat(W), prediction), W)

    def rounding(self, at: Evaluation) -> float:
        """Return how much of the value at an evaluated point may be rounding; see `loss_rounding`."""
        return self.model.rounding(self._vector(at))

    def curvature(self, at: Evaluation, direction: Array) -> Array:
        """Return the Hessian at an evaluated point times a direction."""
        image = self.model.curvature(self._vector(at), _flat(direction))
        return namespace(image).reshape(image, self.shape)

    def curvature_along(self, at: Evaluation, direction: Array) -> float:
        """Return direction' H direction: one data pass instead of two."""
        return self.model.curvature_along(self._vector(at), _flat(direction))

    def rows(self, indices: Array) -> MatrixRegression:
        """Return the problem of some measurements; see `LinearModel.rows`."""
        return self._of(self.model.rows(indices))

    def metered(self, meter: Meter) -> MatrixRegression:
        """Return the same problem, adding its data passes to a meter."""
        return self._of(self.model.metered(meter))


def _flat(W: Array) -> Array:
    return namespace(W).reshape(W, (-1,))


def _measurements(A: Any, shape: tuple[int, int] | None) -> tuple[Any, tuple[int, int]]:
    """Return the measurements as the rows of a design, and the shape of the matrices."""
    given = None if shape is None else matrix_shape(shape)
    if isinstance(A, Design) or issparse(A) or hasattr(A, "rmatvec"):
        if given is None:
            raise InvalidInputError(f"shape=(p, q) is missing: the rows of a {type(A).__name__} do not say it")
        return A, given
    A = as_floating(A, name="A")
    if A.ndim != 3:
        if given is None:
            raise InvalidInputError(
                f"A has {A.ndim} dimensions; (n, p, q) is needed, or shape=(p, q) for measurements as rows"
            )
        return A, given
    n, p, q = A.shape
    if given not in (None, (p, q)):
        raise InvalidInputError(f"A holds matrices of shape ({p}, {q}), but shape = {given}; leave shape out")
    return namespace(A).reshape(A, (n, p * q)), matrix_shape((p, q))
