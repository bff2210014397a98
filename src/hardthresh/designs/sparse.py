"""A SciPy sparse matrix, by columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from hardthresh.arrays import all_finite, as_floating
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import Array

from .base import Design
from .dense import finish_moments, shares


class SparseDesign(Design):
    """A scipy.sparse array or matrix in any format, stored by columns (CSC) and never dense as a whole.

    Parameters
    ----------
    X : scipy.sparse array or matrix, shape (n, d)
        Finite reals.

    Raises
    ------
    InvalidInputError
        If it holds NaN or infinity, or is not numeric.
    """

    stores_zeros = False

    def __init__(self, X: Any) -> None:
        if X.ndim != 2:
            raise InvalidInputError(f"X must be a matrix (examples x columns), got {X.ndim} dimensions")
        dtype = as_floating(np.empty(0, dtype=X.dtype), name="X").dtype
        X = _by_columns(X.astype(dtype, copy=False))
        if not all_finite(X.data):
            raise InvalidInputError("X contains NaN or infinity; remove or impute these entries first")
        self._X = X
        self._by_rows: Any = None

    @classmethod
    def of(cls, X: Any) -> SparseDesign:
        """Return the design of a finite matrix of floating-point numbers, unchecked."""
        return cls._of(_by_columns(X))

    @classmethod
    def _of(cls, X: Any) -> SparseDesign:
        design = cls.__new__(cls)
        design._X = X
        design._by_rows = None
        return design

    @property
    def shape(self) -> tuple[int, int]:
        return (self._X.shape[0], self._X.shape[1])

    def zeros(self, size: int) -> Array:
        return np.zeros(size, dtype=self._X.dtype)

    def predict(self, w: Array) -> Array:
        chosen = np.flatnonzero(w if w.ndim == 1 else w.any(axis=1))
        if 4 * chosen.size >= w.shape[0]:
            return self._X @ w
        return self._X[:, chosen] @ w[chosen]

    def pullback(self, r: Array) -> Array:
        return self._X.T @ r

    def gram(self, weights: Array, other: Design | None = None) -> Array:
        Z = self._X if other is None else other._X  # type: ignore[attr-defined]
        weighted = sp.csc_array((Z.data * weights[Z.indices], Z.indices, Z.indptr), shape=Z.shape)
        return (self._X.T @ weighted).toarray()

    def pullback_squares(self, r: Array, center: Array | None = None) -> Array:
        if center is None:
            return _with_entries(self._X, self._X.data * self._X.data).T @ r
        return _square_sums(self._X, r, center)

    def columns(self, indices: Array) -> Design:
        return self._of(self._X[:, indices])

    def rows(self, indices: Array | slice) -> Design:
        if self._by_rows is None:  # kept: mini-batches come one after another
            self._by_rows = self._X.tocsr()
        return self._of(self._by_rows[indices].tocsc())

    def dense(self) -> Array:
        return self._X.toarray()

    def double(self) -> Design:
        return self._of(self._X.astype(np.float64, copy=False))

    def in_units(self) -> tuple[SparseDesign, Array]:
        """Return the columns divided by their largest entries, and these; 1 for a column of zeros."""
        size = abs(self._X).max(axis=0).toarray().ravel()
        size[size == 0] = 1
        scaled = self._X.data / np.repeat(size, np.diff(self._X.indptr))
        return self._of(sp.csc_array((scaled, self._X.indices, self._X.indptr), shape=self.shape)), size

    def moments(self, weights: Array) -> tuple[Array, Array]:
        X, weights = self._X.astype(np.float64, copy=False), shares(weights)
        mean = X.T @ weights
        return finish_moments(self, mean, _square_sums(X, weights, mean), weights)


def _by_columns(X: Any) -> Any:
    """Return a matrix in CSC, with each entry once, as moments need it."""
    X = sp.csc_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _with_entries(X: Any, entries: np.ndarray) -> Any:
    """Return a matrix with other entries in the places of the stored ones."""
    return sp.csc_array((entries, X.indices, X.indptr), shape=X.shape)


def _square_sums(X: Any, r: Array, center: Array) -> Array:
    """Return the sum over rows of r_i (x_ij - c_j)^2: the stored entries one by one, the zeros of a column together."""
    gaps = X.data - np.repeat(center, np.diff(X.indptr))
    return _with_entries(X, gaps * gaps).T @ r + (_weights_of_zeros(X, r).T * center * center).T


def _weights_of_zeros(X: Any, r: Array) -> Array:
    """Return the sum of r over the rows where a column stores nothing; zero where the rest is rounding."""
    total = np.sum(r, axis=0)
    zeros = total - _with_entries(X, np.ones_like(X.data)).T @ r
    rounding = 64 * np.finfo(zeros.dtype).eps * np.abs(total)
    return np.where(np.abs(zeros) < rounding, 0.0, zeros)
