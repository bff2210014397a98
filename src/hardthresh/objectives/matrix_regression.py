"""Linear measurements of a matrix."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from hardthresh.arrays import as_floating, namespace
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.meter import Meter
from hardthresh.core.registry import register
from hardthresh.core.typing import Array
from hardthresh.designs import Design, LinearMap
from hardthresh.losses import Loss

from .composite import Composite
from .inputs import Targets, checked_design, checked_ridge, matrix_shape


def _examples() -> list[MatrixRegression]:
    """Return small problems for the conformance tests: 30 measurements of a 6 x 6 matrix."""
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((30, 6, 6)), rng.standard_normal(30)
    return [
        MatrixRegression(A, y),
        MatrixRegression(A, (y > 0).astype(float), loss="logistic", l2=0.1),
    ]


@register("objective", "matrix_regression", _examples)
class MatrixRegression(Composite):
    r"""The mean loss of linear measurements of a matrix.

    .. math:: f(W) = \sum_i \omega_i \, \ell(y_i, \langle A_i, W \rangle + o_i) + \tfrac{\lambda}{2} \|W\|_F^2,
              \qquad \omega_i = \frac{s_i}{\sum_i s_i}

    so for ``loss="squared"`` :math:`f(W) = \tfrac{1}{2n} \sum_i (y_i - \langle A_i, W \rangle)^2`.

    Parameters
    ----------
    A : array, shape (n, p, q), or what a design is made of, shape (n, p q)
        The measurements :math:`A_i`. With `shape`: a matrix, a scipy.sparse array, or a
        `scipy.sparse.linalg.LinearOperator` whose i-th row is :math:`A_i` row by row; an operator needs `rmatvec`, and
        is multiplied with vectors only. float32 data are computed in float32.
    y : array, shape (n,)
        Targets in the domain of the loss.
    loss : str or Loss
        "squared", "logistic", "poisson", or an instance.
    shape : tuple of int, optional
        (p, q), both >= 1. Required if A is not three-dimensional.
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
    hardthresh.constraints.Rank : The constraint that this objective is used with.

    Notes
    -----
    This is a `LinearModel` of the entries of W, and convex if the loss is. Cost of `evaluate`: two data passes;
    `curvature` costs the same, `curvature_along` and `value` half. A mini-batch (`rows`) costs its share, or the whole
    pass if A is an operator.

    References
    ----------
    Qiao and Maros (2025), *Sparse Polyak*, Section 5.

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

    design: Measurements

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
        A, shape = _measurements(A, shape)
        try:
            design = checked_design(A)
            (n, d), like = design.shape, design.zeros(1)
            targets = Targets.of(y, sample_weight, offset, like, n)
            if d != shape[0] * shape[1]:
                raise InvalidInputError(f"A has {d} columns, which do not make matrices of shape {shape}")
            super().__init__(Measurements(design, shape), targets, loss, checked_ridge(l2, like))
        except InvalidInputError as error:
            raise InvalidInputError(re.sub(r"\bX\b", "A", str(error))) from None

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """The shape of W, (p, q)."""
        return self.design.shape

    def zeros(self) -> Array:
        """Return W = 0."""
        p, q = self.shape
        zeros = self.design.rows_of_entries.zeros(p * q)
        return namespace(zeros).reshape(zeros, (p, q))


@dataclass(frozen=True)
class Measurements(LinearMap):
    """The linear map from a matrix to its inner products with the rows of a design.

    Attributes
    ----------
    rows_of_entries : Design
        The measurements, row by row, shape (n, p q).
    shape : tuple of int
        The shape (p, q) of the matrix.
    """

    rows_of_entries: Design
    shape: tuple[int, int]

    def predict(self, W: Array) -> Array:
        return self.rows_of_entries.predict(namespace(W).reshape(W, (-1,)))

    def pullback(self, r: Array) -> Array:
        pulled = self.rows_of_entries.pullback(r)
        return namespace(pulled).reshape(pulled, self.shape)

    def rows(self, indices: Array) -> Measurements:
        return Measurements(self.rows_of_entries.rows(indices), self.shape)

    def metered(self, meter: Meter, share: float = 1.0) -> Measurements:
        return Measurements(self.rows_of_entries.metered(meter, share), self.shape)


def _measurements(A: Any, shape: tuple[int, int] | None) -> tuple[Any, tuple[int, int]]:
    """Return the measurements as the rows of a design, and the shape of the matrices."""
    sides = None if shape is None else matrix_shape(shape)
    if isinstance(A, Design) or issparse(A) or hasattr(A, "rmatvec"):
        if sides is None:
            raise InvalidInputError(f"shape=(p, q) is missing: the rows of a {type(A).__name__} do not say it")
        return A, sides
    A = as_floating(A, name="A")
    if A.ndim != 3:
        if sides is None:
            raise InvalidInputError(
                f"A has {A.ndim} dimensions; (n, p, q) is needed, or shape=(p, q) for measurements as rows"
            )
        return A, sides
    n, p, q = A.shape
    if sides not in (None, (p, q)):
        raise InvalidInputError(f"A holds matrices of shape ({p}, {q}), but shape = {sides}; leave shape out")
    return namespace(A).reshape(A, (n, p * q)), matrix_shape((p, q))
