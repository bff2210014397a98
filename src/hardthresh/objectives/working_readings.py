"""Sums for quadratic approximations of a loss at given points, over the training rows of folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hardthresh.core.checking import without_overflow_warnings
from hardthresh.losses.expansion import Expansion

from .block_folds import BlockFolds
from .block_rows import About, Part, Point, rows_of
from .readings import Sums, with_ones
from .refit_readings import rows_and_folds


class Approximations(NamedTuple):
    """Quadratic approximations of a loss: an `Expansion` at each of several points.

    Attributes
    ----------
    points : tuple of Point
        Where each of them is, offset excluded.
    left_out : array of int, shape (q,)
        The fold whose rows do not count; -1 where all do.
    floors : array, shape (q,)
        The least second derivative, of rows that have less.
    loss : Loss
        The loss.
    expected : bool
        Whether second derivatives are those of the expected targets, or of the targets.
    """

    points: tuple[Point, ...]
    left_out: np.ndarray
    floors: np.ndarray
    loss: Any
    expected: bool

    def some(self, which: Sequence[int]) -> Approximations:
        """Return some of them."""
        points, rows = tuple(self.points[i] for i in which), list(which)
        return self._replace(points=points, left_out=self.left_out[rows], floors=self.floors[rows])

    def curvatures(self, i: int, rows: Part) -> tuple[np.ndarray, np.ndarray]:
        """Return the predictions of some rows, offset included, and the second derivatives there."""
        u = self.points[i].predict(rows.X, rows.offset)
        return u, self.loss.curvature(self.loss.mean(u) if self.expected else rows.y, u)

    def of(self, i: int, rows: Part, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of some rows, 0 for those that are left out, and their working responses.

        Parameters
        ----------
        i : int
            The approximation.
        rows : Part
            The rows.
        own : array of int
            Their folds.
        """
        u, curvature = self.curvatures(i, rows)
        near = Expansion(self.loss.gradient(rows.y, u), curvature).at_least(self.floors[i])
        response = near.responses(u if rows.offset is None else u - rows.offset)
        inside = own != self.left_out[i]
        return np.where(inside, rows.weight * near.curvature, 0.0), np.where(inside, response, 0.0)


@without_overflow_warnings
def largest_curvatures(
    Z: Any,
    y: Any,
    weight: Any,
    offset: Any,
    folds: BlockFolds,
    number: int,
    column: Any,
    near: Approximations,
    n_blocks: int,
) -> Sums:
    """Return the largest second derivative of each approximation in each block, shape (n_blocks, q)."""
    largest = np.zeros((n_blocks, len(near.points)))
    for rows, own in rows_and_folds(Z, y, weight, offset, folds, number, column):
        for i in range(len(near.points)):
            inside = own != near.left_out[i]
            found = near.curvatures(i, rows)[1][inside].max(initial=0.0)
            largest[number, i] = np.maximum(largest[number, i], found)  # NaN if either is
    return (largest,)


@without_overflow_warnings
def working_moments(
    X: Any,
    y: Any,
    weight: Any,
    offset: Any,
    folds: BlockFolds,
    number: int,
    column: Any,
    near: Approximations,
    centre: np.ndarray,
    factor: np.ndarray | None,
) -> Sums:
    r"""Return the moments of columns and working responses z, with the weights h of each of q approximations.

    Parameters
    ----------
    centre : array, shape (d,)
        c, about which columns are summed. Responses are summed about the level l of their point.
    factor : array, shape (d,), or None
        What dense columns are multiplied by before they are squared; see `powers_of_two`.

    Returns
    -------
    totals : array, shape (3, q)
        :math:`\sum h, \sum h (z - l), \sum h (z - l)^2`.
    sums, squares, crossed : array, shape (d, q)
        :math:`\sum h (x - c)`, :math:`\sum h (x - c)^2` and :math:`\sum h (x - c) (z - l)`.
    """
    q, d, about = len(near.points), X.shape[1], About(X, centre, factor)
    totals, linear, squares = np.zeros((3, q)), np.zeros((d, 2 * q)), np.zeros((d, q))
    for rows, own in rows_and_folds(X, y, weight, offset, folds, number, column):
        weights, gaps = np.empty((rows.y.size, q)), np.empty((rows.y.size, q))
        for i, point in enumerate(near.points):
            weights[:, i], gaps[:, i] = near.of(i, rows, own)
            gaps[:, i] -= point.level
        moved = weights * gaps
        totals += np.stack([weights.sum(axis=0), moved.sum(axis=0), np.sum(moved * gaps, axis=0)])
        about.add(rows.X, np.concatenate([weights, moved], axis=1), linear, squares)
    about.move(np.concatenate([totals[0], totals[1]]), linear, squares)
    return totals, linear[:, :q], squares, linear[:, q:]


@without_overflow_warnings
def working_products(
    Z: Any,
    y: Any,
    weight: Any,
    offset: Any,
    folds: BlockFolds,
    number: int,
    column: Any,
    near: Approximations,
    columns: Sequence[np.ndarray],
) -> Sums:
    r"""Return the products of some columns and ones, :math:`\sum h (x, 1) (x, 1)^\top`, of each approximation.

    Parameters
    ----------
    columns : sequence of array of int
        Which columns, of each approximation.

    Returns
    -------
    products : tuple of array, each of shape (m + 1, m + 1)
    """
    found = [np.zeros((some.size + 1, some.size + 1)) for some in columns]
    for rows, own in rows_and_folds(Z, y, weight, offset, folds, number, column):
        every = with_ones(np.asarray(rows.X, dtype=np.float64))
        for i, some in enumerate(columns):
            own_columns = every[:, np.append(some, every.shape[1] - 1)]
            found[i] += (own_columns * near.of(i, rows, own)[0][:, None]).T @ own_columns
    return tuple(found)


@without_overflow_warnings
def working_residuals(
    X: Any,
    y: Any,
    weight: Any,
    offset: Any,
    folds: BlockFolds,
    number: int,
    column: Any,
    near: Approximations,
    fits: Sequence[tuple[int, Point]],
    centre: np.ndarray | None,
) -> Sums:
    r"""Return what the gradients of approximations are made of, at several points.

    Parameters
    ----------
    fits : sequence of (int, Point)
        m points, each with the number of its approximation; of offsets they know nothing.
    centre : array, shape (d,), optional
        What is subtracted from the columns before they are multiplied, where their means are large.

    Returns
    -------
    slopes : array, shape (m,)
        The sums of the residuals :math:`r = h (z - u)`.
    products : array, shape (d, m)
        :math:`(X - c)^\top r`.
    """
    about = About(X, centre)
    slopes, products = np.zeros(len(fits)), np.zeros((X.shape[1], len(fits)))
    for rows, own in rows_and_folds(X, y, weight, offset, folds, number, column):
        responses = {i: near.of(i, rows, own) for i in {i for i, _ in fits}}
        residuals = np.empty((rows.y.size, len(fits)))
        for place, (i, point) in enumerate(fits):
            weights, response = responses[i]
            residuals[:, place] = weights * (response - point.predict(rows.X, None))
        slopes += residuals.sum(axis=0)
        products += about.products(rows.X, residuals)
    about.move_products(slopes, products)
    return slopes, products


def offset_sums(X: Any, y: Any, weight: Any, offset: Any) -> Sums:
    """Return the sum of the offsets of a block, by the weights of its rows."""
    parts = (rows.weight @ rows.offset for rows in rows_of(X, y, weight, offset) if rows.offset is not None)
    return (np.asarray(sum(parts, 0.0)),)
