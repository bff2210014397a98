"""Columns with standard deviation 1, as penalties need them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from hardthresh.core.errors import InvalidInputError

_SPARSE, _DENSE = 1e-7, 1e-12
"""Shares of its root mean square that the standard deviation of a constant column is below: rounding leaves 1e-8, the
root of that of a difference of squares, and 1e-16, that of numbers less their mean; the latter of many rows is more."""


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """Rows whose columns have standard deviation 1 and, unless sparse, mean 0; constant columns are left out.

    Attributes
    ----------
    X : array or sparse matrix, shape (n, n_columns)
        The scaled columns, in the order of Fortran or as a CSC matrix.
    columns : array of int, shape (n_columns,)
        Which columns these are.
    mean, scale : array, shape (n_columns,)
        What was subtracted, and then divided by.
    width : int
        The number of all columns.
    """

    X: Any
    columns: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    width: int

    @classmethod
    def of(cls, X: Any) -> Scaled:
        """Return rows scaled.

        Raises
        ------
        InvalidInputError
            If every column is constant.
        """
        mean = np.asarray(X.mean(axis=0)).ravel()
        squares = X.multiply(X) if sparse.issparse(X) else X**2
        moments = np.asarray(squares.mean(axis=0)).ravel()
        scale = np.sqrt(np.maximum(moments - mean**2, 0)) if sparse.issparse(X) else X.std(axis=0)
        columns = np.flatnonzero(scale > (_SPARSE if sparse.issparse(X) else _DENSE) * np.sqrt(moments))
        if not columns.size:
            raise InvalidInputError("every column is constant in the training rows")
        if sparse.issparse(X):
            scaled = (X[:, columns] @ sparse.diags(1.0 / scale[columns])).tocsc()
            mean = np.zeros_like(mean)
        else:
            scaled = np.asfortranarray((X[:, columns] - mean[columns]) / scale[columns])
        return cls(scaled, columns, mean[columns], scale[columns], X.shape[1])

    def apply(self, X: Any) -> Any:
        """Return the same columns of other rows, scaled alike."""
        if sparse.issparse(X):
            return (X[:, self.columns] @ sparse.diags(1.0 / self.scale)).tocsc()
        return np.asfortranarray((X[:, self.columns] - self.mean) / self.scale)

    def on_data(self, coef: np.ndarray, intercept: float) -> tuple[np.ndarray, float]:
        """Return coefficients of all columns on the scale of the data, and the intercept."""
        whole = np.zeros(self.width)
        whole[self.columns] = np.ravel(coef) / self.scale
        return whole, float(intercept) - float(self.mean @ whole[self.columns])
