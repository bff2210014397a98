"""Columns centred and scaled on the fly, and a column of ones: the data are neither copied nor made dense."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from array_api_compat import device

from hardthresh.arrays import all_finite, as_double, gather, namespace, where_true
from hardthresh.core.errors import InvalidInputError, numbered
from hardthresh.core.typing import Array, is_numpy

from .base import Design
from .dense import DenseDesign, SomeColumns, is_large_part
from .sparse import SparseDesign

_FAR, _RANGE = 8.0, 1e15
"""Columns whose mean is more than so many of their scales from zero, or whose scale is outside this range, are not
multiplied in single precision: its rounding of 6e-8 would exceed a millionth of the standardised column, or squares of
entries, of which products are sums, would leave its range. So squares of columns of such scales are not taken there."""


class Standardized(Design):
    r"""The matrix :math:`[(X - 1 m^\top) \, \mathrm{diag}(q), \; 1]`, stored as X, m and q.

    Parameters
    ----------
    design : Design
        X, shape (n, d).
    mean, inverse_scale : array, shape (d,)
        m and q. A column with q_j = 0 is treated as zero: its gradient is exactly 0, and it is never chosen.
    intercept : bool
        Whether a last column of ones is appended.
    known : tuple of arrays, shapes (n,) and (d,), optional
        Weights, and the weighted squares of the standardised columns, if these are already known.
    begun : float
        The number of readings of X before those that are counted for this matrix.

    Notes
    -----
    Products cost as much as those of X, because they are X w - (m, w) and X^T r - m (1, r).
    """

    def __init__(
        self,
        design: Design,
        mean: Array,
        inverse_scale: Array,
        intercept: bool,
        known: tuple[Array, Array] | None = None,
        begun: float = 0.0,
    ) -> None:
        self._design = design
        self.stores_zeros = design.stores_zeros
        self.lazy = design.lazy
        self.has_columns = design.has_columns
        self.lacks = design.lacks
        self.mean = mean
        self.inverse_scale = inverse_scale
        self._intercept = intercept
        self._known = known
        self._begun = begun

    @property
    def readings(self) -> float:
        return self._design.readings - self._begun

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self._design.shape
        return (n, d + self._intercept)

    def zeros(self, size: int) -> Array:
        return self._design.zeros(size)

    def predict(self, w: Array) -> Array:
        xp = namespace(w)
        d = self._design.shape[1]
        mean, scale = (
            (self.mean, self.inverse_scale) if w.ndim == 1 else (self.mean[:, None], self.inverse_scale[:, None])
        )
        scaled = w[:d, ...] * scale
        shift = xp.sum(scaled * mean, axis=0)
        return self._design.predict(scaled) + ((w[d, ...] - shift) if self._intercept else -shift)

    def pullback(self, r: Array) -> Array:
        return self._from_products(self._design.pullback(r), r)

    def screening_pullback(self, r: Array) -> Array:
        xp, scale = namespace(r), self.inverse_scale
        moderate = (xp.abs(self.mean) * scale <= _FAR) & ((scale == 0) | squares_fit_single(scale))
        if not bool(xp.all(moderate)):
            return self.pullback(r)
        return self._from_products(self._design.screening_pullback(r), r)

    def _from_products(self, products: Array, r: Array, of: Design | None = None) -> Array:
        """Return the transposed map of r, or of r times the columns of a design, from that of the raw columns."""
        xp = namespace(r)
        total = xp.sum(r, axis=0) if of is None else of.pullback(r)
        several = products.ndim == 2
        mean, scale = (self.mean[:, None], self.inverse_scale[:, None]) if several else (self.mean, self.inverse_scale)
        inner = (products - mean * total) * scale
        return xp.concat([inner, total[None, ...]]) if self._intercept else inner

    def gram(self, weights: Array, other: Design | None = None) -> Array:
        right = self if other is None else other
        if not isinstance(right, Standardized):  # columns that were few enough to be standardised themselves
            return self._from_products(self._design.gram(weights, right), weights, right)
        if not is_numpy(weights):  # a device is not asked: the host would wait
            return self._gram(weights, right)
        sparse = isinstance(self._design, SparseDesign)
        if self._squares_in_range() and right._squares_in_range():
            inner = self._gram(weights, right)
            if not sparse or all_finite(inner):
                return inner
        if not sparse:
            return DenseDesign.of(self.dense()).gram(weights, None if right is self else DenseDesign.of(right.dense()))
        left = self._in_units()
        return left._gram(weights, left if right is self else right._in_units())

    def _squares_in_range(self) -> bool:
        """Return whether squares of entries, and sums of these, are in the range of the dtype."""
        xp, scale = namespace(self.inverse_scale), self.inverse_scale
        return bool(scale.dtype == xp.float64 or xp.all((scale == 0) | squares_fit_single(scale)))

    def _in_units(self) -> Standardized:
        """Return the same matrix from sparse columns whose largest entry is 1: no product of two of them overflows."""
        assert isinstance(self._design, SparseDesign)
        design, size = self._design.in_units()
        return Standardized(design, self.mean / size, self.inverse_scale * size, self._intercept)

    def _gram(self, weights: Array, right: Standardized) -> Array:
        """Return the Gram matrix from that of columns that are neither centred nor scaled."""
        xp = namespace(weights)
        total = xp.sum(weights)
        sums, right_sums = self._design.pullback(weights), right._design.pullback(weights)
        crossed = self._design.gram(weights, None if right is self else right._design)
        centred = crossed - self.mean[:, None] * right_sums[None, :] - (sums - total * self.mean)[:, None] * right.mean
        inner = centred * self.inverse_scale[:, None] * right.inverse_scale
        if right._intercept:
            inner = xp.concat([inner, ((sums - total * self.mean) * self.inverse_scale)[:, None]], axis=1)
        if self._intercept:
            last = (right_sums - total * right.mean) * right.inverse_scale
            last = xp.concat([last, xp.reshape(total, (1,))]) if right._intercept else last
            inner = xp.concat([inner, last[None, :]], axis=0)
        return inner

    def pullback_squares(self, r: Array, center: Array | None = None) -> Array:
        xp = namespace(r)
        d = self._design.shape[1]
        if center is None and r.ndim == 1 and self._known is not None:
            weights, squares = self._known
            times = xp.sum(r) / xp.sum(weights)
            if bool(xp.all(xp.abs(r - times * weights) <= 8 * float(xp.finfo(r.dtype).eps) * xp.abs(r))):
                inner = times * squares  # no pass
                return xp.concat([inner, xp.sum(r)[None]]) if self._intercept else inner
        if is_numpy(r) and not self._squares_in_range():  # a device is not asked: the host would wait
            center = None if center is None else as_double(center)
            squares = self.double().pullback_squares(as_double(r), center)
            return namespace(r).astype(squares, r.dtype)
        center = self.zeros(self.shape[1]) if center is None else center
        used = self.inverse_scale > 0
        shift = center[:d] / xp.where(used, self.inverse_scale, xp.ones_like(self.inverse_scale))
        scale, total = self.inverse_scale**2, xp.sum(r, axis=0)
        used, squares, last = used, center[:d] ** 2, (1 - center[d:]) ** 2
        if r.ndim == 2:
            scale, used, squares, last = scale[:, None], used[:, None], squares[:, None], last[:, None]
        inner = self._design.pullback_squares(r, self.mean + shift) * scale
        inner = xp.where(used, inner, squares * total)
        return xp.concat([inner, last * total]) if self._intercept else inner

    def part_moments(
        self, weights: Array, y: Array, parts: Sequence[Array], *, centred: bool
    ) -> tuple[Array, Array, Array]:
        if not centred and bool(namespace(self.mean).any(self.mean != 0)):  # about zero, which is m for the design
            return super().part_moments(weights, y, parts, centred=centred)
        if not self._squares_in_range():
            return self.double().part_moments(as_double(weights), as_double(y), parts, centred=centred)
        xp, scale = namespace(y), self.inverse_scale
        mean, squares, products = self._design.part_moments(weights, y, parts, centred=centred)
        mean, squares, products = (mean - self.mean) * scale, squares * scale**2, products * scale
        if not self._intercept:
            return mean, squares, products
        zero = xp.zeros_like(mean[:, :1])
        last = (zero + 1, zero, zero)  # mean, squares and products of the column of ones
        if not centred:
            sums = (xp.stack([xp.sum(gather(x, rows)) for rows in parts]) for x in (weights, weights * y))
            last = (zero, *(total[:, None] for total in sums))
        mean, squares, products = (
            xp.concat([each, one], axis=1) for each, one in zip((mean, squares, products), last, strict=True)
        )
        return mean, squares, products

    def columns(self, indices: Array) -> Design:
        if self.stores_zeros and is_large_part(self, self.shape[0] * indices.shape[0]):
            return SomeColumns(self, indices)
        d = self._design.shape[1]
        last = indices.shape[0] > 0 and int(indices[-1]) == d
        inner = indices[:-1] if last else indices
        chosen = Standardized(
            self._design.columns(inner), gather(self.mean, inner), gather(self.inverse_scale, inner), last
        )
        return DenseDesign.of(chosen.dense()) if chosen.stores_zeros else chosen  # which may be a small part

    def block(self, rows: Array, columns: Array) -> Design:
        d = self._design.shape[1]
        large = is_large_part(self, rows.shape[0] * columns.shape[0])
        if not self.stores_zeros or large or (columns.shape[0] and int(columns[-1]) == d):
            return super().block(rows, columns)
        entries = self._design.block(rows, columns).dense()
        entries -= gather(self.mean, columns)
        entries *= gather(self.inverse_scale, columns)
        return DenseDesign.of(entries)

    def rows(self, indices: Array | slice) -> Design:
        part = self._design.rows(indices)
        return Standardized(part, self.mean, self.inverse_scale, self._intercept, begun=self._begun)

    def dense(self) -> Array:
        xp, X = namespace(self.mean), self._design.dense()
        if is_numpy(X):  # one array, without another one for the column of ones
            full = np.empty(self.shape, dtype=X.dtype, order="F" if X.flags.f_contiguous else "C")
            full[:, X.shape[1] :] = 1.0
            inner = full[:, : X.shape[1]]
            np.subtract(X, self.mean, out=inner)
            inner *= self.inverse_scale
            return full
        inner = (X - self.mean) * self.inverse_scale
        if not self._intercept:
            return inner
        ones = xp.ones((inner.shape[0], 1), dtype=inner.dtype, device=device(inner))
        return xp.concat([inner, ones], axis=1)

    def double(self) -> Design:
        mean, scale = as_double(self.mean), as_double(self.inverse_scale)
        return Standardized(self._design.double(), mean, scale, self._intercept, begun=self._begun)

    def moments(self, weights: Array) -> tuple[Array, Array]:
        xp = namespace(weights)
        mean, deviation = self._design.moments(weights)
        mean, deviation = (mean - self.mean) * self.inverse_scale, deviation * xp.abs(self.inverse_scale)
        if not self._intercept:
            return mean, deviation
        one = xp.ones((1,), dtype=mean.dtype, device=device(mean))
        return xp.concat([mean, one]), xp.concat([deviation, 0 * one])


def squares_fit_single(scale: Array) -> Array:
    """Return for each column, by its scale or the inverse, if sums of squares are in the range of single precision."""
    return (scale > 1 / _RANGE) & (scale < _RANGE)


def centred_block(design: Design, rows: Array, columns: Array, center: Array) -> Design:
    """Return some rows and columns of a design, with a number subtracted from each column.

    Parameters
    ----------
    design : Design
        The whole matrix.
    rows, columns : array of int
        The rows, in any order, and the columns, increasing.
    center : array, shape (n_columns,)
        The number to subtract from each column.

    Returns
    -------
    Design
        Dense columns, unless they are large or `design` stores no zeros.
    """
    block = design.block(rows, columns)
    lazy = Standardized(block, center, namespace(center).ones_like(center), False)
    if not block.stores_zeros:
        return lazy
    if is_large_part(block, block.shape[0] * block.shape[1]):
        return SomeColumns(lazy, np.arange(block.shape[1]))
    entries = block.dense()
    entries -= center
    return DenseDesign.of(entries)


def standardize(
    design: Design, weights: Array, *, scale: bool, intercept: bool, centre: bool | None = None
) -> Standardized:
    """Return a design centred (by default if there is an intercept) and scaled to unit weighted variance (if asked).

    Constant columns are indistinguishable from an intercept, and become zero. Without an intercept, columns are not
    centred, and the scale is the root mean square about zero. Cost: two data passes.

    Parameters
    ----------
    design : Design
        The columns.
    weights : array, shape (n,)
        Weights of the rows, which sum to one.
    scale : bool
        Whether to scale the columns.
    intercept : bool
        Whether to append a column of ones.
    centre : bool, optional
        Whether to centre the columns. Default: the value of `intercept`. Set it if other coordinates of the model
        absorb a constant, or if adding a constant to the predictions does not matter.

    Returns
    -------
    Standardized

    Raises
    ------
    InvalidInputError
        If the variance of a column overflows, or, as they are not scaled, the squares of its entries.
    """
    begun = design.readings
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
        mean, deviation = design.moments(weights)
    if not (all_finite(mean) and all_finite(deviation)):
        raise InvalidInputError(
            "X has entries so large that the scale of a column overflows; rescale its columns first"
        )
    mean, inverse, squares = scales(mean, deviation, scale=scale, centre=intercept if centre is None else centre)
    return Standardized(design, mean, inverse, intercept, (weights, squares), begun)


def scales(mean: Array, deviation: Array, *, scale: bool, centre: bool) -> tuple[Array, Array, Array]:
    """Return what is subtracted from columns, the factors afterwards, and the mean squares that the columns then have.

    Parameters
    ----------
    mean, deviation : array, shape (d,)
        The moments of each column; the deviation of a constant one is 0.
    scale, centre : bool
        Whether columns are scaled, and whether they are centred.

    Raises
    ------
    InvalidInputError
        If these squares leave the range of the dtype.
    """
    xp = namespace(mean)
    if not centre:
        deviation = xp.hypot(mean, deviation)
        mean = xp.zeros_like(mean)
    used = deviation > 0
    ones = xp.ones_like(mean)
    inverse = 1 / xp.where(used, deviation, ones) if scale else ones
    inverse = xp.where(used, inverse, xp.zeros_like(mean))
    with np.errstate(over="ignore"):
        squares = (deviation * inverse) ** 2
    outside = used & ~((squares >= float(xp.finfo(squares.dtype).smallest_normal)) & (squares < inf))
    if bool(xp.any(outside)):
        j = int(where_true(outside)[0])
        how = "underflow" if float(deviation[j]) < 1.0 else "overflow"
        raise InvalidInputError(
            f"the squares of {numbered('column', j)} of X {how} {squares.dtype}; rescale it, or standardize"
        )
    return mean, inverse, squares
