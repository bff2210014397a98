"""The rows of a block as readings take them, and the linear predictors and columns that they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from hardthresh.arrays.pieces import steps
from hardthresh.core.errors import InvalidInputError

ROWS = 1024
"""Rows whose products BLAS sums in the precision of X. In single precision a sum of so many terms of either sign has an
error of about 2e-6 of their size, which falls with the root of the number of such sums."""
_CENTRED = 2048
"""Columns of so many rows that are centred together: 8 MiB in single precision, where all of 20,000 would take as much
memory as the block. Arbitrary."""


class Point(NamedTuple):
    r"""A linear predictor :math:`u = (X_S - c) b + a`, named by what fits on a page.

    Attributes
    ----------
    columns : array of int, shape (s,)
        S.
    centre : array, shape (s,)
        c, which is subtracted in double precision: where a mean is large, nothing cancels.
    coef : array, shape (s,) or (s, q)
        b, for columns as they are.
    level : float or array, shape (q,)
        a.
    """

    columns: np.ndarray
    centre: np.ndarray
    coef: np.ndarray
    level: Any

    @classmethod
    def constant(cls, level: float) -> Point:
        """Return the same prediction for all rows, which has no columns."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0), level)

    def predict(self, X: Any, offset: np.ndarray | None) -> np.ndarray:
        """Return the predictions of some rows in double precision, offset included."""
        u: np.ndarray = (some_columns(X, self.columns) - self.centre) @ self.coef + self.level
        check_offset(offset, u.shape[1:])
        return u if offset is None else u + offset


class Scaled(NamedTuple):
    """Some columns, centred and scaled.

    Attributes
    ----------
    columns : array of int, shape (m,)
        Which.
    centre, scale : array, shape (m,)
        What is subtracted, and the factor afterwards.
    """

    columns: np.ndarray
    centre: np.ndarray
    scale: np.ndarray

    def of(self, X: Any) -> np.ndarray:
        """Return these columns of some rows, in the precision of X."""
        Z = some_columns(X, self.columns)  # centred in double precision: a large mean leaves single precision no digits
        Z -= self.centre
        Z *= self.scale
        return Z.astype(X.dtype, copy=False)


def places_of(labels: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the place of each label among those that are known, sorted; their number for a label that is none."""
    if labels.dtype.kind == "O":  # missing labels among them cannot be sorted
        place = {label: at for at, label in enumerate(known.tolist())}
        return np.array([place.get(label, known.size) for label in labels.tolist()], dtype=np.intp)
    places = np.minimum(np.searchsorted(known, labels), known.size - 1)
    return np.where(known[places] == labels, places, known.size)


def some_columns(X: Any, index: np.ndarray) -> np.ndarray:
    """Return some columns as a dense array in double precision."""
    chosen = X[:, index]
    return np.asarray(chosen.toarray() if issparse(X) else chosen, dtype=np.float64)


NO_WEIGHT = "all rows have weight 0; give some rows a positive weight"
NO_TARGETS = "the blocks have no targets; give y with them, or beside them"
NO_CLASS = -2.0
"""The target of a row whose label is none of the classes of a model; classes have -1, 0 or 1."""


class Part(NamedTuple):
    """Some rows of a block, all of positive weight: X as it is, and the others in double precision.

    `places` says which rows of the block they are.
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray
    offset: np.ndarray | None
    places: Any = slice(None)


def check_targets(y: Any) -> None:
    """Raise an error if rows have no targets."""
    if y is None:
        raise InvalidInputError(NO_TARGETS)


class OffsetOfAnotherShape(InvalidInputError):
    """Raised for an offset of another shape than predictions."""


def check_offset(offset: np.ndarray | None, outputs: tuple[int, ...]) -> None:
    """Raise an error if rows have an offset of another shape than their predictions."""
    if offset is not None and offset.shape[1:] != outputs:
        raise OffsetOfAnotherShape(
            f"some blocks have an offset of shape {per_row(offset.shape[1:])}, and {per_row(outputs)} is needed"
        )


def per_row(outputs: tuple[int, ...]) -> str:
    """Return the shape of what has an entry, or several, for each row."""
    return f"(n, {', '.join(map(str, outputs))})" if outputs else "(n,)"


def rows_of(X: Any, y: Any, weight: Any, offset: Any, size: int = ROWS) -> Iterator[Part]:
    """Yield the rows of a block, so many at a time, without those of weight zero."""
    rows: Any
    for rows in steps(X.shape[0], size):
        own = np.ones(rows.stop - rows.start) if weight is None else np.asarray(weight[rows], dtype=np.float64)
        if not own.all():
            counted = np.flatnonzero(own)
            if not counted.size:
                continue
            rows, own = rows.start + counted, own[counted]
        known = None if offset is None else np.asarray(offset[rows], dtype=np.float64)
        yield Part(X[rows], np.asarray(y[rows], dtype=np.float64), own, known, rows)


def pulled(X: Any, R: np.ndarray) -> np.ndarray:
    """Return X'R of some rows in double precision; products are in the precision of X."""
    if issparse(X):
        return np.asarray(X.T @ R, dtype=np.float64)
    size = size_of(R)
    return size * np.asarray(np.ascontiguousarray(R.T / size, dtype=X.dtype) @ X, dtype=np.float64).T


def size_of(R: np.ndarray) -> float:
    """Return a power of four near the largest entry: to divide by it is exact, and single precision holds the rest."""
    return float(sizes_of(R.reshape(1, -1))[0])


def sizes_of(R: np.ndarray) -> np.ndarray:
    """Return for each row of a matrix its `size_of`."""
    largest = np.maximum(R.max(axis=1, initial=0.0), -R.min(axis=1, initial=0.0))
    known = (largest > 0.0) & (largest < inf)
    return np.where(known, 4.0 ** np.clip(np.frexp(np.where(known, largest, 1.0))[1] // 2, -500, 500), 1.0)


def powers_of_two(scale: np.ndarray, dtype: Any) -> np.ndarray | None:
    """Return factors for columns whose squares leave the range of a dtype, by what scales them to a variance of one.

    To multiply by a power of two is exact. None where all squares are far within the range, 1 for such columns.
    """
    exponent, limit = np.frexp(scale)[1], int(np.finfo(dtype).maxexp)
    far = np.abs(exponent) > limit // 4
    most = limit // 2 - 1  # so that the factor and its square are in the range
    return np.ldexp(1.0, np.where(far, np.clip(exponent, -most, most), 0)) if far.any() else None


class About:
    """Sums of columns less a centre, over the rows of a block.

    Of dense rows the centre is subtracted in the precision of X, so that differences are exact; what rounds it to that
    is added once, at the end.

    Parameters
    ----------
    X : array or sparse array, shape (n, d)
        The block.
    centre : array, shape (d,), or None
        What is subtracted; None for nothing.
    factor : array, shape (d,), optional
        Powers of two by which columns of a dense block are multiplied before their squares are taken, which `move`
        takes back; see `powers_of_two`.
    """

    def __init__(self, X: Any, centre: np.ndarray | None, factor: np.ndarray | None = None) -> None:
        self._centre: Any = centre
        self._factor = factor
        self._near: Any = None if centre is None or issparse(X) else np.asarray(centre, dtype=X.dtype)

    def products(self, X: Any, R: np.ndarray) -> np.ndarray:
        """Return (X - c)'R of some rows."""
        if self._near is not None:
            some = steps(X.shape[1], _CENTRED)
            return np.concatenate([pulled(X[:, part] - self._near[part], R) for part in some])
        return pulled(X, R) if self._centre is None else pulled_about(X, R, self._centre)

    def add(self, X: Any, R: np.ndarray, products: np.ndarray, squares: np.ndarray) -> None:
        """Add (X - c)'R of some rows, and the sums of (X - c)^2 weighted by each of the first columns of R.

        Parameters
        ----------
        X : array or sparse array, shape (n, d)
            The rows.
        R : array, shape (n, q)
            The right-hand sides.
        products : array, shape (d, q)
            Added to in place.
        squares : array, shape (d, s)
            Added to in place, for the first s of them.
        """
        weights = R[:, : squares.shape[1]]
        if self._near is None:
            for column, weight in zip(squares.T, weights.T, strict=True):
                column += squares_about(X, np.ascontiguousarray(weight), self._centre)
            products += pulled_about(X, R, self._centre)
            return
        for some in steps(X.shape[1], _CENTRED):
            centred = X[:, some] - self._near[some]
            if self._factor is not None:
                centred *= self._factor[some].astype(X.dtype)
            products[some] += pulled(centred, R)
            np.multiply(centred, centred, out=centred)
            squares[some] += pulled(centred, weights)
            del centred  # before the next ones are made

    def move_products(self, sums: np.ndarray, products: np.ndarray) -> None:
        """Move products from the centre in the precision of X to the centre itself, given the sums of R."""
        if self._near is not None:
            products += np.multiply.outer(self._rounded(), sums)

    def move(self, sums: np.ndarray, products: np.ndarray, squares: np.ndarray) -> None:
        """Move products and squares."""
        if self._near is not None:
            if self._factor is not None:
                products /= self._factor[:, None]
                squares /= self._factor[:, None] ** 2
            left, some = self._rounded()[:, None], slice(squares.shape[1])
            squares += left * (2.0 * products[:, some] + left * sums[some])
            products += left * sums

    def _rounded(self) -> np.ndarray:
        left: np.ndarray = self._near.astype(np.float64) - self._centre
        return left


def pulled_about(X: Any, R: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Return (X - c)'R of some sparse rows in double precision; columns that have a value in most rows are centred."""
    products: np.ndarray = pulled(X, R) - np.multiply.outer(centre, R.sum(axis=0))
    full, centred = _full(X, centre)
    products[full] = centred.T @ R
    return products


def squares_about(X: Any, weight: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Return the weighted sums of (X - c)^2 of some sparse rows, as `pulled_about`."""
    double = X.astype(np.float64)
    sums: np.ndarray = double.power(2).T @ weight - centre * (2.0 * (double.T @ weight) - centre * weight.sum())
    full, centred = _full(X, centre)
    sums[full] = weight @ (centred * centred)
    return sums


def _full(X: Any, centre: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns with entries in more than half of some sparse rows, and these centred, as a dense array.

    Nothing cancels in the others: with zeros in half of the rows the variance is at least the squared mean. All that is
    dense has at most twice as many numbers as the rows have entries.
    """
    full = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) > 0.5 * X.shape[0])
    return full, some_columns(X, full) - centre[full]
