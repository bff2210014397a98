"""Sums over stored columns for many fits to the training rows of folds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hardthresh.arrays.pieces import steps
from hardthresh.core.checking import without_overflow_warnings

from .block_folds import BlockFolds
from .block_rows import Part, rows_of, sizes_of
from .readings import Sums, roots_of, weighted_gram

_TOGETHER = 8
"""Fits whose losses of some rows are computed together: arrays of 64 KiB, which stay in the cache of a core."""


class Fits(NamedTuple):
    """Linear predictors of kept columns.

    Attributes
    ----------
    columns : tuple of array of int
        Which kept columns each of them has.
    coefs : array, shape (q, m)
        The coefficients of all kept columns.
    levels : array, shape (q,)
        The intercepts.
    folds : array of int, shape (q,)
        The fold of each; -1 for a fit to all rows.
    """

    columns: tuple[np.ndarray, ...]
    coefs: np.ndarray
    levels: np.ndarray
    folds: np.ndarray

    def predict(self, rows: Part) -> np.ndarray:
        """Return the predictions of some rows, offset included, shape (n, q)."""
        u: np.ndarray = np.asarray(rows.X, dtype=np.float64) @ self.coefs.T + self.levels
        return u if rows.offset is None else u + rows.offset[:, None]

    def of(self, places: np.ndarray) -> Fits:
        """Return some of the fits."""
        columns = tuple(self.columns[i] for i in places)
        return Fits(columns, self.coefs[places], self.levels[places], self.folds[places])


def rows_and_folds(
    Z: Any, y: Any, weight: Any, offset: Any, folds: BlockFolds, number: int, column: Any
) -> Iterator[tuple[Part, np.ndarray]]:
    """Yield the rows of a block, some at a time, with the fold that holds each of them out."""
    own = folds.of(number, column, Z.shape[0])
    for rows in rows_of(Z, np.column_stack([y, own]), weight, offset):
        yield rows._replace(y=rows.y[:, 0]), rows.y[:, 1]


@without_overflow_warnings
def training_models(
    Z: Any,
    y: Any,
    weight: Any,
    offset: Any,
    folds: BlockFolds,
    number: int,
    column: Any,
    fits: Fits,
    loss: Any,
    curved: np.ndarray,
) -> Sums:
    r"""Return the quadratic models of the loss of several fits on the rows that their folds train on.

    Parameters
    ----------
    curved : array of bool, shape (q,)
        Of which fits the Hessian is asked for. Its products of some rows are in the precision of Z.

    Returns
    -------
    values : array, shape (q,)
        The sums of the losses.
    derivatives : array
        Of each fit in turn the gradient in its coefficients and its intercept, and the Hessian, row by row.
    """
    last, used = Z.shape[1], [np.append(own, Z.shape[1]) for own in fits.columns]
    values, gradients = np.zeros(len(used)), np.zeros((len(used), last + 1))
    hessians = [np.zeros((own.size, own.size)) if bent else np.zeros(0) for own, bent in zip(used, curved, strict=True)]
    for rows, own in rows_and_folds(Z, y, weight, offset, folds, number, column):
        columns = np.concatenate([rows.X.T, np.ones((1, rows.y.size), dtype=Z.dtype)])  # a row is a column of the data
        every, y_rows = columns.astype(np.float64), rows.y[None, :]
        for some in steps(len(used), _TOGETHER):
            u = fits.coefs[some] @ every[:-1] + fits.levels[some, None]
            if rows.offset is not None:
                u += rows.offset
            weights = np.where(own != fits.folds[some, None], rows.weight, 0.0)
            losses, slopes = loss.value_and_gradient(y_rows, u)
            values[some] += np.sum(weights * losses, axis=1)
            gradients[some] += (weights * slopes) @ every.T
            asked = np.flatnonzero(curved[some])
            if not asked.size:
                continue
            bends = weights[asked] * loss.curvature(y_rows, u[asked])
            sizes = sizes_of(bends)
            pairs = (roots_of(bend, Z.dtype) for bend in bends / sizes[:, None])
            for i, size, pair in zip(some.start + asked, sizes, pairs, strict=True):
                hessians[i] += size * weighted_gram(columns[used[i]], *pair).astype(np.float64)
    flat = [part for i, own in enumerate(used) for part in (gradients[i, own], hessians[i].ravel())]
    return values, np.concatenate(flat)


@without_overflow_warnings
def held_out_losses(
    Z: Any, y: Any, weight: Any, offset: Any, folds: BlockFolds, number: int, column: Any, fits: Fits, loss: Any
) -> Sums:
    """Return the sums of the losses of several fits on the rows that their folds hold out, and of right classes.

    Returns
    -------
    values, right : array, shape (q,)
        The sums of the losses, and the weight of the rows whose target, positive or not, is on the side of its
        prediction.
    gains : array, shape (q, 6)
        The sums of weights, of gains over the first fit of the fold and of their squares, and with squared weights.
    """
    count = fits.levels.size
    values, right, gains = np.zeros(count), np.zeros(count), np.zeros((count, 6))
    for rows, own in rows_and_folds(Z, y, weight, offset, folds, number, column):
        for fold in range(folds.count):
            here, out = np.flatnonzero(fits.folds == fold), np.flatnonzero(own == fold)
            if not (here.size and out.size):
                continue
            some = Part(rows.X[out], rows.y[out], rows.weight[out], None if rows.offset is None else rows.offset[out])
            u, w = fits.of(here).predict(some), some.weight
            losses = loss.value(some.y[:, None], u)
            values[here] += w @ losses
            right[here] += w @ ((some.y > 0)[:, None] == (u > 0))
            gain = losses[:, :1] - losses
            for start, size in ((0, w), (3, w * w)):
                total = np.full(here.size, size.sum())
                gains[here, start : start + 3] += np.stack([total, size @ gain, size @ gain**2], axis=1)
    return values, right, gains
