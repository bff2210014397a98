"""A matrix that can only be multiplied with vectors."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from scipy.sparse.linalg import LinearOperator

from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.core.typing import Array

from .base import Design


class OperatorDesign(Design):
    """A `scipy.sparse.linalg.LinearOperator`: products with vectors, and nothing else.

    Parameters
    ----------
    A : LinearOperator, shape (n, d)
        Real, with `rmatvec`. That its entries are finite cannot be checked.

    Raises
    ------
    InvalidInputError
        If it is complex.
    """

    stores_zeros = False
    lacks = frozenset({"columns", "hessian", "cross_hessian", "curvature_diagonal"})

    def __init__(self, A: LinearOperator, rows: np.ndarray | slice = slice(None)) -> None:
        dtype = np.dtype(A.dtype or np.float64)
        if dtype.kind not in "fiub":
            raise InvalidInputError(f"the operator must be real, got dtype {dtype}")
        self._A, self._rows = A, np.arange(A.shape[0])[rows]
        self._dtype = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        return (self._rows.size, int(self._A.shape[1]))

    def zeros(self, size: int) -> Array:
        return np.zeros(size, dtype=self._dtype)

    def predict(self, w: Array) -> Array:
        product = self._A.matvec(w) if w.ndim == 1 else self._A.matmat(w)
        return np.asarray(product, dtype=self._dtype)[self._rows]

    def pullback(self, r: Array) -> Array:
        spread = np.zeros((self._A.shape[0], *r.shape[1:]), dtype=self._dtype)
        np.add.at(spread, self._rows, r)  # a row may be drawn twice
        product = self._A.rmatvec(spread) if r.ndim == 1 else self._A.rmatmat(spread)
        return np.asarray(product, dtype=self._dtype)

    def rows(self, indices: Array | slice) -> Design:
        return OperatorDesign(self._A, self._rows[indices])

    def gram(self, weights: Array, other: Design | None = None) -> Array:
        self._refuse("the Gram matrix")

    def pullback_squares(self, r: Array, center: Array | None = None) -> Array:
        self._refuse("the squares of its entries")

    def columns(self, indices: Array) -> Design:
        self._refuse("single columns")

    def dense(self) -> Array:
        self._refuse("its entries")

    def moments(self, weights: Array) -> tuple[Array, Array]:
        self._refuse("the moments of its columns")

    def _refuse(self, what: str) -> NoReturn:
        raise CapabilityError(f"a LinearOperator does not give {what}; pass the matrix itself")


def is_operator(X: Any) -> bool:
    """Return whether something is a linear operator and no array."""
    return isinstance(X, LinearOperator)
