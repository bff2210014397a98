"""Sums over stored columns for many fits of classes: pure functions of a block."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hardthresh.core.checking import without_overflow_warnings
from hardthresh.losses import Multinomial

from .block_folds import BlockFolds
from .block_rows import Part
from .readings import Sums, with_ones
from .refit_readings import rows_and_folds


class ClassFits(NamedTuple):
    """Linear predictors of classes, in terms of kept columns.

    Attributes
    ----------
    columns : tuple of array of int
        Which kept columns each of them has.
    coefs : tuple of array, shape (s, q)
        The coefficients of these.
    levels : array, shape (n_fits, q)
        The intercepts.
    """

    columns: tuple[np.ndarray, ...]
    coefs: tuple[np.ndarray, ...]
    levels: np.ndarray

    def predict(self, fit: int, rows: Part) -> np.ndarray:
        """Return the predictions of a fit for some rows, offset included, shape (n, q)."""
        some = np.asarray(rows.X[:, self.columns[fit]], dtype=np.float64)
        u: np.ndarray = some @ self.coefs[fit] + self.levels[fit]
        return u if rows.offset is None else u + rows.offset


@without_overflow_warnings
def class_models(
    Z: Any,
    y: Any,
    weight: Any,
    offset: Any,
    folds: BlockFolds,
    number: int,
    column: Any,
    left_out: int,
    fits: ClassFits,
    loss: Multinomial,
    axes: np.ndarray,
) -> Sums:
    r"""Return the quadratic models of the loss of several fits on the rows that a fold trains on.

    Parameters
    ----------
    left_out : int
        The fold whose rows do not count; -1 for none.
    axes : array, shape (q, r)
        The directions of predictions in which derivatives are taken.

    Returns
    -------
    values : array, shape (n_fits,)
        The sums of the losses.
    derivatives : array
        Of each fit in turn the gradient, of shape (s + 1, r), for its columns and ones, and the Hessian, of shape
        (r, r, s + 1, s + 1).
    """
    r, sizes, turned = axes.shape[1], [own.size + 1 for own in fits.columns], np.kron(axes, axes)
    ends = np.cumsum([0, *(r * size + (r * size) ** 2 for size in sizes)])
    values, flat = np.zeros(len(sizes)), np.zeros(int(ends[-1]))
    for rows, own in rows_and_folds(Z, y, weight, offset, folds, number, column):
        there = np.flatnonzero(own != left_out)
        if not there.size:
            continue
        some = _taken(rows, there)
        for i, size in enumerate(sizes):
            u = fits.predict(i, some)
            losses, slopes = loss.value_and_gradient(some.y, u)
            values[i] += some.weight @ losses
            bends = loss.blocks(some.y, u).reshape(-1, len(axes) ** 2) @ turned
            blocks = (some.weight[:, None] * bends).reshape(-1, r, r)
            columns = with_ones(np.asarray(some.X[:, fits.columns[i]], dtype=np.float64))
            part = flat[ends[i] : ends[i + 1]]
            part[: r * size] += (columns.T @ (some.weight[:, None] * (slopes @ axes))).ravel()
            hessian = part[r * size :].reshape(r, r, size, size)
            for a in range(r):
                for b in range(a, r):
                    product = (columns * blocks[:, a, b, None]).T @ columns
                    hessian[a, b] += product
                    if b > a:
                        hessian[b, a] += product
    return values, flat


@without_overflow_warnings
def held_out_classes(
    Z: Any,
    y: Any,
    weight: Any,
    offset: Any,
    folds: BlockFolds,
    number: int,
    column: Any,
    fits: ClassFits,
    owners: np.ndarray,
    loss: Multinomial,
) -> Sums:
    """Return what several fits of folds say of the rows that these hold out.

    Parameters
    ----------
    owners : array of int, shape (n_fits,)
        The fold of each fit.

    Returns
    -------
    values : array, shape (n_fits,)
        The sums of the losses.
    right : array, shape (n_fits, q)
        The weight of the rows of each class whose class has the largest prediction.
    gains : array, shape (n_fits, 6)
        The sums of weights, of gains over the first fit of the fold and of their squares, and with squared weights.
    totals : array, shape (n_folds, q)
        The weight of the rows of each class that a fold holds out.
    """
    count, q = fits.levels.shape
    values, right, gains = np.zeros(count), np.zeros((count, q)), np.zeros((count, 6))
    totals = np.zeros((folds.count, q))
    for rows, own in rows_and_folds(Z, y, weight, offset, folds, number, column):
        for fold in range(folds.count):
            out = np.flatnonzero(own == fold)
            if not out.size:
                continue
            some = _taken(rows, out)
            w, classes, first = some.weight, some.y.astype(np.intp), None
            totals[fold] += np.bincount(classes, w, minlength=q)
            for i in np.flatnonzero(owners == fold).tolist():
                u = fits.predict(i, some)
                losses = loss.value(some.y, u)
                first = losses if first is None else first
                gain = first - losses
                values[i] += w @ losses
                right[i] += np.bincount(classes, w * (np.argmax(u, axis=1) == classes), minlength=q)
                gains[i] += [part for size in (w, w * w) for part in (size.sum(), size @ gain, size @ gain**2)]
    return values, right, gains, totals


def _taken(rows: Part, some: np.ndarray) -> Part:
    """Return some of the rows."""
    offset = None if rows.offset is None else rows.offset[some]
    return Part(rows.X[some], rows.y[some], rows.weight[some], offset)
