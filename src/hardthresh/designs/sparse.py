"""A SciPy sparse matrix, by columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from hardthresh.arrays import all_finite, as_floating
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import Array

from .base import Design
from .dense import finish_moments


class SparseDesign(Design):
    """A scipy.sparse array or matrix in any format, held in CSC; it is never made dense as a whole.

    Parameters
    ----------
    X : scipy.sparse array or matrix, shape (n, d)
        Finite reals.

    Raises
    ------
    InvalidInputError
        If it holds NaN or infinity, or is not numeric.
    """

    def __init__(self, X: Any) -> None:
        if X.ndim != 2:
            raise InvalidInputError(f"X must be a matrix (examples x columns), got {X.ndim} dimensions")
        dtype = as_floating(np.empty(0, dtype=X.dtype), name="X").dtype
        X = sp.csc_array(X.astype(dtype, copy=False))
        if not X.has_canonical_format:  # moments need each entry once
            X = X.copy()
            X.sum_duplicates()
        if not all_finite(X.data):
            raise InvalidInputError("X contains NaN or infinity; remove or impute these entries first")
        self._X = X

    @classmethod
    def _of(cls, X: Any) -> SparseDesign:
        design = cls.__new__(cls)
        design._X = X
        return design

    @property
    def shape(self) -> tuple[int, int]:
        return (self._X.shape[0], self._X.shape[1])

    def zeros(self, size: int) -> Array:
        return np.zeros(size, dtype=self._X.dtype)

    def predict(self, w: Array) -> Array:
        chosen = np.flatnonzero(w)
        if 4 * chosen.size >= w.size:
            return self._X @ w
        return self._X[:, chosen] @ w[chosen]

    def pullback(self, r: Array) -> Array:
        return self._X.T @ r

    def pullback_squares(self, r: Array) -> Array:
        return sp.csc_array((self._X.data**2, self._X.indices, self._X.indptr), shape=self.shape).T @ r

    def columns(self, indices: Array) -> Design:
        return self._of(self._X[:, indices])

    def rows(self, indices: Array | slice) -> Design:
        return self._of(self._X.tocsr()[indices].tocsc())

    def dense(self) -> Array:
        return self._X.toarray()

    def moments(self, weights: Array) -> tuple[Array, Array]:
        X, weights = self._X.astype(np.float64), weights.astype(np.float64)
        mean = X.T @ weights
        column = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
        gaps = sp.csc_array(((X.data - mean[column]) ** 2, X.indices, X.indptr), shape=X.shape)
        filled = sp.csc_array((np.ones_like(X.data), X.indices, X.indptr), shape=X.shape)
        empty = np.maximum(1.0 - filled.T @ weights, 0.0)
        empty[empty < 64 * np.finfo(np.float64).eps] = 0.0
        return finish_moments(mean, gaps.T @ weights + empty * mean * mean, self._X.dtype)
