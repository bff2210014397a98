"""A dense matrix, in any array library and memory order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, cast

import numpy as np
from array_api_compat import device

from hardthresh.arrays import (
    all_finite,
    as_double,
    as_floating,
    column_squares,
    gather,
    gather_columns,
    gram_product,
    mask_of,
    namespace,
    product,
    scatter,
    where_true,
)
from hardthresh.arrays.pieces import number_of_pieces, ranges, steps, sum_in_order
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.threads import in_pieces
from hardthresh.core.typing import Array, is_numpy

from .base import Design

_BLOCK = 1 << 18  # entries worked on at a time: 2 MB of float64 stay in the cache
_GRAM_BLOCK = 1 << 22  # entries of a scaled copy
_PART_BLOCK, _FEWEST_ROWS = 1 << 18, 1024  # entries copied at a time of a part, and rows: with fewer BLAS is slow
_TEMPORARY = 1 << 15  # entries of a small copy, for which malloc asks the system for no new memory
_SINGLE = 1 << 20
"""Entries from which on products with 4 right-hand sides or more are faster in single precision, with the conversion:
0.7 of the time for 1000 x 5000 and 2000 x 20000 by columns, 0.9 by rows; 200 x 500 are in the cache anyway."""
_LEAST_SHARE = 0.01
"""Moments about zero serve for a column if its variance is at least this share of its mean square: their rounding is a
hundred units at most then."""
_NARROWEST = 64  # columns of a block where rows are contiguous: 512 bytes of each row
_LARGEST_COPY = 1 << 22  # entries of rows or columns that are copied at once
_LARGEST_SHARE = 8  # of more, 1/8 of a matrix is, and only if products with it are asked for


class DenseDesign(Design):
    """A dense data matrix. A float32 or float64 array in C or Fortran order is not copied.

    Parameters
    ----------
    X : array, shape (n, d)
        Finite real numbers; integers and booleans are converted to float64, and float32 is kept.

    Raises
    ------
    InvalidInputError
        If it is not a matrix, holds NaN or infinity, or is not numeric.
    """

    _is_part = False
    """Whether these are columns of a larger matrix on a device: then none are looked for among them."""

    def __init__(self, X: Array) -> None:
        X = as_floating(X, name="X")
        if X.ndim != 2:
            raise InvalidInputError(f"X must be a matrix (examples x columns), got {X.ndim} dimensions")
        # the squares, which most solvers need, are finite only if the entries are: so the data are read once for both
        self._squares = column_squares(X) if is_numpy(X) else None
        if not (self._squares is not None and np.isfinite(self._squares).all()) and not all_finite(X):
            raise InvalidInputError("X contains NaN or infinity; remove or impute these entries first")
        self._X = X

    @classmethod
    def of(cls, X: Array) -> DenseDesign:
        """Return the design of a finite matrix, unchecked."""
        design = cls.__new__(cls)
        design._X, design._squares = X, None
        return design

    @property
    def shape(self) -> tuple[int, int]:
        return (self._X.shape[0], self._X.shape[1])

    def zeros(self, size: int) -> Array:
        return namespace(self._X).zeros(size, dtype=self._X.dtype, device=device(self._X))

    def predict(self, w: Array) -> Array:
        if self.shape[1] < 64 or self._is_part:
            return product(self._X, w)
        chosen = where_true(w != 0 if w.ndim == 1 else namespace(w).any(w != 0, axis=1))
        if 4 * chosen.shape[0] >= self.shape[1]:
            return product(self._X, w)
        return gather_columns(self._X, chosen) @ gather(w, chosen)

    def pullback(self, r: Array) -> Array:
        return product(self._X.T, r)

    def screening_pullback(self, r: Array) -> Array:
        n, d = self.shape
        if not is_numpy(self._X) or self._X.dtype != np.float64 or r.shape[1] < 4 or n * d < _SINGLE:
            return self.pullback(r)
        size = np.max(np.abs(r), axis=0, initial=0.0)
        size[size == 0] = 1.0
        single = np.ascontiguousarray((r / size).T, dtype=np.float32)
        products = np.empty((r.shape[1], d))

        def of_columns(blocks: list[slice]) -> None:  # each converted while it is in the cache
            for columns in blocks:
                X = self._X[:, columns]
                parts = (single[:, rows] @ X[rows].astype(np.float32) for rows in _ranges(n, X.shape[1]))
                products[:, columns] = sum(parts)

        with np.errstate(over="ignore", invalid="ignore"):
            narrowest = 1 if self._by_columns() else _NARROWEST
            in_pieces(of_columns, _in_lists(self, self._blocks(axis=1, narrowest=narrowest)))
        if not all_finite(products):  # entries overflow single precision
            return self.pullback(r)
        products *= size[:, None]
        return products.T

    def gram(self, weights: Array, other: Design | None = None) -> Array:
        if other is not None and other.lazy:
            return other.gram(weights, self).T
        xp = namespace(weights)
        total: Array
        Z = self._X if other is None else other.dense()
        asked = is_numpy(weights) and weights.shape[0] > 0  # a device is not: the host would wait
        if asked and bool(np.all(weights == weights[0])):  # no scaled copy is needed
            total = gram_product(self._X) if other is None else product(self._X.T, Z)
            total *= weights[0]
            return total
        root = xp.sqrt(weights)
        size = max(1, _GRAM_BLOCK // max(self.shape[1], 1))
        total = 0
        for start in range(0, self.shape[0], size):
            rows = slice(start, min(start + size, self.shape[0]))
            scaled = self._X[rows, :] * root[rows, None]
            block = gram_product(scaled) if other is None else product(scaled.T, Z[rows, :] * root[rows, None])
            total = total + block
        return total

    def pullback_squares(self, r: Array, center: Array | None = None) -> Array:
        if center is None and is_numpy(r) and r.ndim == 1 and r.size and np.all(r == r[0]):
            return r[0] * (column_squares(self._X) if self._squares is None else self._squares)
        if self._by_columns():
            pairs = ((self._X[:, c], None if center is None else center[c]) for c in self._blocks(axis=1))
            return namespace(r).concat([product(_squares(X, c).T, r) for X, c in pairs])
        blocks = self._blocks(axis=0)
        return _sum_over_rows(self, blocks, lambda X, rows: product(_squares(X, center).T, r[rows, ...]))

    def columns(self, indices: Array) -> Design:
        if indices.shape[0] == self.shape[1]:
            return self
        if is_large_part(self, self.shape[0] * indices.shape[0]):
            return SomeColumns(self, indices)
        part = self.of(gather_columns(self._X, indices))
        part._is_part = not is_numpy(self._X)
        return part

    def rows(self, indices: Array | slice) -> Design:
        if not isinstance(indices, slice) and is_large_part(self, indices.shape[0] * self.shape[1]):
            indices = _as_slice(indices)
            if not isinstance(indices, slice):
                return SomeRows(self, indices)
        if isinstance(indices, slice):
            return self.of(self._X[indices, :])
        X = self._X  # which np.take would copy as a whole in Fortran order
        return self.of(X[indices, :] if is_numpy(X) else namespace(X).take(X, indices, axis=0))

    def block(self, rows: Array, columns: Array) -> Design:
        if not is_numpy(self._X) or is_large_part(self, rows.shape[0] * columns.shape[0]):
            return super().block(rows, columns)
        entries = np.empty((columns.shape[0], rows.shape[0]), dtype=self._X.dtype)
        size = max(1, _TEMPORARY // max(self.shape[0], 1))
        for start in range(0, columns.shape[0], size):
            some = slice(start, start + size)
            np.take(self._X.T[columns[some]], rows, axis=1, out=entries[some], mode="clip")  # else `out` is buffered
        return self.of(entries.T)

    def dense(self) -> Array:
        return self._X

    def double(self) -> Design:
        if self._X.dtype == namespace(self._X).float64:
            return self
        return InDouble(self) if is_large_part(self, self.shape[0] * self.shape[1]) else self.of(as_double(self._X))

    def moments(self, weights: Array) -> tuple[Array, Array]:
        xp = namespace(self._X)
        weights = shares(weights)
        if self._by_columns():  # both moments of a block while it is in the cache: X is read once

            def of_columns(blocks: list[slice]) -> list[tuple[Array, Array]]:
                return [_mean_and_variance(self._X[:, columns], weights) for columns in blocks]

            pairs = chain.from_iterable(in_pieces(of_columns, _in_lists(self, self._blocks(axis=1))))
            means, variances = zip(*pairs, strict=True)
            return finish_moments(self, xp.concat(means), xp.concat(variances), weights)
        return _moments_by_rows(self, self._blocks(axis=0), weights)

    def part_moments(
        self, weights: Array, y: Array, parts: Sequence[Array], *, centred: bool
    ) -> tuple[Array, Array, Array]:
        if not is_numpy(self._X):
            return super().part_moments(weights, y, parts, centred=centred)
        found = np.empty((3, len(parts), self.shape[1]))
        weights, y = as_double(weights), as_double(y)
        some = [(_as_slice(rows), weights[rows], y[rows]) for rows in parts]
        narrowest = 1 if self._by_columns() else _NARROWEST

        def of_columns(blocks: list[slice]) -> None:  # all moments of a block while it is in the cache: X is read once
            for columns in blocks:
                X = self._X[:, columns]
                for number, (rows, s, target) in enumerate(some):
                    found[:, number, columns] = _moments_of_part(X, rows, s, target, centred)

        in_pieces(of_columns, _in_lists(self, self._blocks(axis=1, narrowest=narrowest)))
        return found[0], found[1], found[2]

    def _by_columns(self) -> bool:
        """Return whether blocks of columns are contiguous, and blocks of rows are not."""
        return is_numpy(self._X) and bool(self._X.flags.f_contiguous) and self.shape[1] > 1

    def _blocks(self, axis: int, narrowest: int = 1) -> list[slice]:
        """Return ranges of rows (axis 0) or columns (1) small enough to make a temporary copy of."""
        length, width = self.shape[axis], self.shape[1 - axis]
        return _ranges(length, width, narrowest)


def _ranges(length: int, width: int, narrowest: int = 1) -> list[slice]:
    """Return ranges of a length of which blocks of some width are small enough to copy, or the narrowest allowed."""
    size = max(narrowest, _BLOCK // max(width, 1))
    return steps(length, size)


def _squares(X: Array, center: Array | None) -> Array:
    if center is None:
        return X * X
    gap = X - center
    gap *= gap
    return gap


def shares(weights: Array) -> Array:
    """Return weights in double precision, divided by their sum."""
    weights = as_double(weights)
    return weights / namespace(weights).sum(weights)


def _mean_and_variance(X: Array, weights: Array) -> tuple[Array, Array]:
    """Return the weighted moments of whole columns, in double precision."""
    X = as_double(X)
    mean = X.T @ weights
    return mean, _squares(X, mean).T @ weights


def _moments_of_part(
    X: np.ndarray, rows: np.ndarray | slice, weights: np.ndarray, y: np.ndarray, centred: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the moments of some columns over some of the rows, with their weights; see `Design.part_moments`.

    Sums are in double precision, and about zero. From those of a column that is far from zero its mean is subtracted
    first; it is corrected by the mean gap to it, and the squares by the square of that, as in `_accurate_moments`.
    """
    total = weights.sum()
    weighted = weights * (y - weights @ y / total if centred else y)
    blocks = _ranges(weights.size, X.shape[1])
    whole = X[rows] if isinstance(rows, slice) or len(blocks) == 1 else None

    def sums(columns: np.ndarray | slice, center: np.ndarray | None) -> np.ndarray:
        """Return the weighted sums of entries, of their squares and of their products with y."""
        found = np.zeros((3, X[:, columns].shape[1]))
        for block in blocks:
            some = as_double((X[cast(np.ndarray, rows)[block]] if whole is None else whole[block])[:, columns])
            some = some if center is None else some - center
            found[0] += some.T @ weights[block]
            found[1] += (some * some).T @ weights[block]
            found[2] += some.T @ weighted[block]
        return found

    mean, squares, products = sums(slice(None), None)
    if not centred:
        return np.zeros_like(mean), squares, products
    mean /= total
    variances = squares - total * mean * mean
    far = np.flatnonzero(~(variances >= _LEAST_SHARE * squares))
    if far.size:
        shift, squares[far], products[far] = sums(far, mean[far])
        shift /= total
        mean[far] += shift
        variances[far] = np.maximum(squares[far] - total * shift * shift, 0.0)
    return mean, variances, products


def _moments_by_rows(design: Design, blocks: list[slice], weights: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of each column, reading a design twice, block of rows by block of rows."""
    mean = _sum_over_rows(design, blocks, lambda X, rows: as_double(X).T @ weights[rows])
    variance = _sum_over_rows(design, blocks, lambda X, rows: _squares(as_double(X), mean).T @ weights[rows])
    return finish_moments(design, mean, variance, weights)


def _sum_over_rows(design: Design, blocks: list[slice], function: Callable[[Array, slice], Array]) -> Array:
    """Return the sum of a function of blocks of rows, and of where they are."""

    def of_some(blocks: list[slice]) -> Array:
        return sum(function(design.rows(rows).dense(), rows) for rows in blocks)

    return sum_in_order(in_pieces(of_some, _in_lists(design, blocks)))


def _in_lists(design: Design, blocks: list[slice]) -> list[list[slice]]:
    """Return blocks of a design in as many lists as there are pieces that different threads may work on."""
    pieces = number_of_pieces(design.zeros(0), design.shape)
    return [blocks[some] for some in ranges(len(blocks), max(1, min(pieces, len(blocks))))]


def _accurate_moments(X: Array, weights: Array) -> tuple[Array, Array]:
    """Return the weighted moments of whole columns without the rounding of their means.

    The mean is corrected by the mean gap to it, and the variance by the square of that: the two-pass algorithm of Chan,
    Golub and LeVeque (1983). So the variance of a constant column is zero up to rounding of second order, whatever n.
    """
    X = as_double(X)
    center = X.T @ weights
    gaps = X - center
    shift = gaps.T @ weights
    gaps *= gaps
    return center + shift, gaps.T @ weights - shift * shift


_DOUBTFUL = 1e-6
"""A deviation of less than this share of the mean may be rounding of the mean, which is a share of n eps at most."""


def finish_moments(design: Design, mean: Array, variance: Array, weights: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation in the dtype of a design; constant up to rounding counts as constant.

    The moments of columns whose variance may be rounding are computed once more. What is left is compared with the
    rounding of the mean in double precision (64 units are ample), and with that of the entries in their own: 2 units,
    because nothing is left of a column that varies in its last digit only once a model has multiplied it by a
    coefficient and subtracted its mean. What is not finite stays so.
    """
    xp, dtype = namespace(mean), design.zeros(1).dtype
    doubtful = where_true((variance != 0) & ~(variance > (_DOUBTFUL * mean) ** 2))
    size = max(1, min(64, _BLOCK // max(design.shape[0], 1)))
    for start in range(0, doubtful.shape[0], size):
        some = doubtful[start : start + size]
        accurate = _accurate_moments(design.columns(some).dense(), weights)
        inside = mask_of(some, mean.shape[0])
        mean, variance = (
            xp.where(inside, scatter(new, some, mean.shape[0]), old)
            for new, old in zip(accurate, (mean, variance), strict=True)
        )
    deviation = deviations(mean, variance, dtype)
    return xp.astype(mean, dtype), xp.astype(deviation, dtype)


def deviations(mean: Array, variance: Array, dtype: Any) -> Array:
    """Return standard deviations in double precision; 0 for columns, with entries in a dtype, that are constant."""
    xp = namespace(mean)
    deviation = xp.sqrt(xp.where(variance < 0, 0 * variance, variance))
    rounding = max(64 * float(xp.finfo(xp.float64).eps), 2 * float(xp.finfo(dtype).eps))
    return xp.where(deviation <= rounding * xp.abs(mean), xp.zeros_like(deviation), deviation)


def is_large_part(design: Design, entries: int) -> bool:
    """Return whether a part of a design has too many entries to be copied at once; False but for NumPy arrays."""
    return entries > _LARGEST_COPY and design.shape[0] > 1 and is_numpy(design.zeros(0))


def _as_slice(indices: np.ndarray) -> np.ndarray | slice:
    """Return consecutive indices as a slice, which copies nothing, and others as they are."""
    size = indices.shape[0]
    if size and indices[0] >= 0 and indices[-1] - indices[0] == size - 1 and np.all(indices[1:] > indices[:-1]):
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


class _Part(Design):
    """A part of a large NumPy matrix that is not copied, but for one block of rows after another."""

    lazy = True

    def gram(self, weights: Array, other: Design | None = None) -> Array:
        total: Array = 0
        for rows in self._blocks(0 if other is None else other.shape[1]):
            total = total + self.rows(rows).gram(weights[rows], None if other is None else other.rows(rows))
        return total

    def pullback_squares(self, r: Array, center: Array | None = None) -> Array:
        return sum(self.rows(rows).pullback_squares(r[rows], center) for rows in self._blocks())

    def dense(self) -> Array:
        full = np.empty(self.shape, dtype=self.zeros(0).dtype, order="F")
        for rows in self._blocks():
            full[rows] = self.rows(rows).dense()
        return full

    def double(self) -> Design:
        return self if self.zeros(0).dtype == np.float64 else InDouble(self)

    def moments(self, weights: Array) -> tuple[Array, Array]:
        return _moments_by_rows(self, self._blocks(), shares(weights))

    def _blocks(self, width: int = 0) -> list[slice]:
        """Return ranges of rows small enough to copy, together with a second matrix of some width."""
        n, d = self.shape
        size = max(_PART_BLOCK // (d + width), _FEWEST_ROWS)
        size = max(1, min(size, _LARGEST_COPY // (d + width)))
        return steps(n, size)


class SomeRows(_Part):
    """Some rows of a large matrix, which are not copied: for folds, and without the rows of weight zero.

    Products are those of all rows, with zeros for the others, unless the rows are few.

    Parameters
    ----------
    design : DenseDesign
        All rows, in NumPy's arrays.
    indices : array of int
        Which of them; a row may be there more than once.
    """

    def __init__(self, design: DenseDesign, indices: np.ndarray) -> None:
        self._design = design
        self._indices = indices
        self._distinct = bool(np.all(indices[1:] > indices[:-1]))
        self._few = 4 * indices.shape[0] < design.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        return (self._indices.shape[0], self._design.shape[1])

    def zeros(self, size: int) -> Array:
        return self._design.zeros(size)

    def predict(self, w: Array) -> Array:
        if self._few:
            return np.concatenate([self.rows(rows).predict(w) for rows in self._blocks()])
        return self._design.predict(w)[self._indices]

    def pullback(self, r: Array) -> Array:
        if self._few:
            return sum(self.rows(rows).pullback(r[rows]) for rows in self._blocks())
        spread = np.zeros((self._design.shape[0], *r.shape[1:]), dtype=r.dtype)
        if self._distinct:
            spread[self._indices] = r
        else:
            np.add.at(spread, self._indices, r)
        return self._design.pullback(spread)

    def columns(self, indices: Array) -> Design:
        if is_large_part(self, self.shape[0] * indices.shape[0]):
            return SomeColumns(self, indices)
        return DenseDesign.of(self._design.dense().T[np.ix_(indices, self._indices)].T)

    def rows(self, indices: Array | slice) -> Design:
        return self._design.rows(self._indices[indices])


class SomeColumns(_Part):
    """Some columns of a large matrix, which are not copied for a Gram matrix.

    For products they are, once, unless they are many: then products are those of all columns, with zeros for the rest.

    Parameters
    ----------
    design : Design
        All columns, in NumPy's arrays; it stores zeros.
    indices : array of int
        Which of them, increasing.
    """

    def __init__(self, design: Design, indices: np.ndarray) -> None:
        self._design = design
        self._indices = indices
        self._copy: DenseDesign | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return (self._design.shape[0], self._indices.shape[0])

    def zeros(self, size: int) -> Array:
        return self._design.zeros(size)

    def predict(self, w: Array) -> Array:
        if (copy := self._copied()) is not None:
            return copy.predict(w)
        spread = np.zeros((self._design.shape[1], *w.shape[1:]), dtype=w.dtype)
        spread[self._indices] = w
        return self._design.predict(spread)

    def pullback(self, r: Array) -> Array:
        if (copy := self._copied()) is not None:
            return copy.pullback(r)
        return self._design.pullback(r)[self._indices]

    def columns(self, indices: Array) -> Design:
        return self._design.columns(self._indices[indices])

    def rows(self, indices: Array | slice) -> Design:
        return self._design.rows(indices).columns(self._indices)

    def _copied(self) -> DenseDesign | None:
        """Return a copy, which is kept, if these columns are a small share of all."""
        if self._copy is None and _LARGEST_SHARE * self.shape[1] <= self._design.shape[1]:
            self._copy = DenseDesign.of(self.dense())
        return self._copy


class InDouble(_Part):
    """A large matrix in double precision, converted block by block as it is used.

    Parameters
    ----------
    design : Design
        The matrix in NumPy's arrays of lower precision; it stores zeros.
    """

    def __init__(self, design: Design) -> None:
        self._design = design

    @property
    def shape(self) -> tuple[int, int]:
        return self._design.shape

    def zeros(self, size: int) -> Array:
        return np.zeros(size)

    def predict(self, w: Array) -> Array:
        chosen = np.flatnonzero(w if w.ndim == 1 else w.any(axis=1))
        if 4 * chosen.size < w.shape[0]:
            return self.columns(chosen).predict(w[chosen])
        return np.concatenate([self.rows(rows).predict(w) for rows in self._blocks()])

    def pullback(self, r: Array) -> Array:
        return sum(self.rows(rows).pullback(r[rows]) for rows in self._blocks())

    def columns(self, indices: Array) -> Design:
        return self._design.columns(indices).double()

    def rows(self, indices: Array | slice) -> Design:
        return self._design.rows(indices).double()
