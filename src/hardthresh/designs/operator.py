"""A matrix that can only be multiplied with vectors."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from scipy.sparse.linalg import LinearOperator

from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.core.meter import Meter
from hardthresh.core.typing import Array

from .base import Design, Metered


class OperatorDesign(Design):
    r"""A `scipy.sparse.linalg.LinearOperator`, which supports only the products :math:`Aw` and :math:`A^\top r`.

    Parameters
    ----------
    A : LinearOperator, shape (n, d)
        Real, with `rmatvec`. float32 is computed in float32, all other types in float64. The entries have to be finite,
        which cannot be checked.

    Raises
    ------
    InvalidInputError
        If it is complex, or has no `rmatvec`, which every gradient needs.
    CapabilityError
        By the methods that need more than products: `gram`, `columns`, `dense`, `moments`, `pullback_squares`.

    Notes
    -----
    Cost: one product with zeros at construction, to check that there is an `rmatvec`; then one product for each vector.
    A mini-batch (`rows`), or a vector with few non-zeros, costs a whole product, that is, one data pass, so stochastic
    solvers have no advantage.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse.linalg import LinearOperator
    >>> A = LinearOperator((3, 3), matvec=np.cumsum, rmatvec=lambda r: np.cumsum(r[::-1])[::-1], dtype=float)
    >>> design = OperatorDesign(A)
    >>> design.predict(np.array([1.0, 2.0, 3.0])), design.pullback(np.array([0.0, 0.0, 1.0]))
    (array([1., 3., 6.]), array([1., 1., 1.]))
    """

    stores_zeros = False
    has_columns = False

    def __init__(self, A: LinearOperator) -> None:
        dtype = np.dtype(A.dtype or np.float64)
        if dtype.kind not in "fiub":
            raise InvalidInputError(f"the operator must be real, got dtype {dtype}")
        self._A = A
        self._rows: np.ndarray | None = None  # all of them, in order
        self._dtype = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)
        try:
            A.rmatvec(np.zeros(A.shape[0], dtype=self._dtype))
        except NotImplementedError as error:
            raise InvalidInputError(
                "the operator has no rmatvec, the product with its transpose, which every gradient needs; "
                "give LinearOperator an rmatvec=, or define _rmatvec or _adjoint in a class of your own"
            ) from error

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self._A.shape
        return (int(n) if self._rows is None else self._rows.size, int(d))

    def zeros(self, size: int) -> Array:
        return np.zeros(size, dtype=self._dtype)

    def predict(self, w: Array) -> Array:
        product = np.asarray(self._A.matvec(w) if w.ndim == 1 else self._A.matmat(w), dtype=self._dtype)
        return product if self._rows is None else product[self._rows]

    def pullback(self, r: Array) -> Array:
        if self._rows is not None:
            spread = np.zeros((self._A.shape[0], *r.shape[1:]), dtype=self._dtype)
            np.add.at(spread, self._rows, r)  # a row may be drawn twice
            r = spread
        return np.asarray(self._A.rmatvec(r) if r.ndim == 1 else self._A.rmatmat(r), dtype=self._dtype)

    def rows(self, indices: Array | slice) -> Design:
        every = np.arange(self._A.shape[0])
        chosen = (every if self._rows is None else self._rows)[indices]
        part = OperatorDesign.__new__(OperatorDesign)
        vars(part).update(vars(self), _rows=None if np.array_equal(chosen, every) else chosen)
        return part

    def metered(self, meter: Meter, share: float = 1.0) -> Design:
        return MeteredOperator(self, meter, share)

    def gram(self, weights: Array, other: Design | None = None) -> Array:
        self._refuse("the Gram matrix")

    def pullback_squares(self, r: Array, center: Array | None = None) -> Array:
        self._refuse("the squares of its entries")

    def columns(self, indices: Array) -> Design:
        self._refuse("single columns")

    def dense(self) -> Array:
        self._refuse("its entries")

    def double(self) -> Design:
        same = OperatorDesign.__new__(OperatorDesign)
        vars(same).update(vars(self), _dtype=np.dtype(np.float64))
        return same

    def moments(self, weights: Array) -> tuple[Array, Array]:
        self._refuse("the moments of its columns")

    def _refuse(self, what: str) -> NoReturn:
        raise CapabilityError(f"a LinearOperator does not give {what}; pass the matrix itself")


class MeteredOperator(Metered):
    """An operator that counts its data passes: every product counts as one with all of it."""

    def predict(self, w: Array) -> Array:
        self._meter.add(self._share * (1 if w.ndim == 1 else w.shape[1]))
        return self._design.predict(w)

    def double(self) -> Design:
        return MeteredOperator(self._design.double(), self._meter, self._share)

    def rows(self, indices: Array | slice) -> Design:
        return MeteredOperator(self._design.rows(indices), self._meter, self._share)


def is_operator(X: Any) -> bool:
    """Return whether an object is a SciPy linear operator."""
    return isinstance(X, LinearOperator)
