"""Sums of second derivatives of the log-loss of classes in one pass: pure functions of a block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardthresh.core.checking import without_overflow_warnings
from hardthresh.losses import Multinomial, Squared

from .block_rows import About, Point, check_targets, rows_of
from .readings import Sums, newton, with_ones


@without_overflow_warnings
def class_newton(Z: Any, y: Any, weight: Any, offset: Any, index: np.ndarray, point: Point, loss: Multinomial) -> Sums:
    r"""Return the products of kept columns and ones weighted by each second derivative, :math:`\sum h_{ab} z z^\top`.

    Parameters
    ----------
    Z, y, weight, offset :
        A block of kept columns.
    index : array of int, shape (m,)
        Which of them.
    point : Point
        The point, in terms of all kept columns.
    loss : Multinomial
        The loss of q predictions.

    Returns
    -------
    hessian : array, shape (q, q, m + 1, m + 1)
    """
    q = np.size(point.level)
    hessian = np.zeros((q, q, index.size + 1, index.size + 1))
    for rows in rows_of(Z, y, weight, offset):
        bend = _bends(rows, point, loss)
        columns = with_ones(np.asarray(rows.X[:, index], dtype=np.float64))
        for a in range(q):
            for b in range(a, q):
                hessian[a, b] += (columns * bend[:, a, b, None]).T @ columns
    for a in range(q):
        for b in range(a):
            hessian[a, b] = hessian[b, a]
    return (hessian,)


def column_gram(Z: Any, y: Any, weight: Any, offset: Any, index: np.ndarray) -> Sums:
    """Return the weighted Gram matrix of kept columns and ones, whatever the targets are; see `newton`."""
    return newton(Z, y, weight, None, index, Point.constant(0.0), Squared())


@without_overflow_warnings
def class_block(Z: Any, y: Any, weight: Any, offset: Any, point: Point, loss: Multinomial) -> Sums:
    """Return the weighted sum of the second derivatives of the rows of a block, shape (q, q)."""
    total = np.zeros((np.size(point.level),) * 2)
    for rows in rows_of(Z, y, weight, offset):
        total += loss.mean_block(rows.y, point.predict(rows.X, rows.offset), rows.weight)
    return (total,)


@without_overflow_warnings
def class_curve(
    X: Any,
    y: Any,
    weight: Any,
    offset: Any,
    point: Point,
    directions: Sequence[Point],
    loss: Multinomial,
    centre: np.ndarray | None,
) -> Sums:
    r"""Return what the Hessian times p directions is made of.

    Returns
    -------
    slopes : array, shape (p, q)
        :math:`\sum B v`, for a direction's predictions v and the weighted second derivatives B at the point.
    products : array, shape (d, p, q)
        :math:`(X - c)^\top B v`.
    """
    p, q, about = len(directions), np.size(point.level), About(X, centre)
    slopes, products = np.zeros((p, q)), np.zeros((X.shape[1], p, q))
    for rows in rows_of(X, y, weight, offset):
        u, sides = point.predict(rows.X, rows.offset), np.empty((rows.y.shape[0], p, q))
        for i, direction in enumerate(directions):
            sides[:, i] = rows.weight[:, None] * loss.curvature(rows.y, u, direction.predict(rows.X, None))
        slopes += sides.sum(axis=0)
        products += about.products(rows.X, sides.reshape(sides.shape[0], -1)).reshape(products.shape)
    about.move_products(slopes, products)
    return slopes, products


@without_overflow_warnings
def class_curve_along(X: Any, y: Any, weight: Any, offset: Any, point: Point, line: Point, loss: Multinomial) -> Sums:
    r"""Return the second derivative along a direction, :math:`\sum v^\top B v`; see `class_curve`."""
    square = np.zeros(1)
    for rows in rows_of(X, y, weight, offset):
        v = line.predict(rows.X, None)
        square += rows.weight @ np.sum(v * loss.curvature(rows.y, point.predict(rows.X, rows.offset), v), axis=1)
    return (square,)


@without_overflow_warnings
def class_squares(
    X: Any,
    y: Any,
    weight: Any,
    offset: Any,
    point: Point,
    loss: Multinomial,
    centre: np.ndarray,
    factor: np.ndarray | None,
) -> Sums:
    r"""Return the sums of squares of each column weighted by each second derivative of a row, flat over these.

    Parameters
    ----------
    X, y, weight, offset :
        A block.
    point : Point
        Where the q x q second derivatives h are taken.
    loss : Multinomial
        The loss.
    centre : array, shape (d,)
        c, which is subtracted from the columns.
    factor : array, shape (d,), or None
        As in `moments`.

    Returns
    -------
    squares : array, shape (d, q * q)
        :math:`\sum h_{ab} (x - c)^2`.
    sums : array, shape (q * q,)
        :math:`\sum h_{ab}`.
    """
    size, about = np.size(point.level) ** 2, About(X, centre, factor)
    squares, products, sums = np.zeros((X.shape[1], size)), np.zeros((X.shape[1], size)), np.zeros(size)
    for rows in rows_of(X, y, weight, offset):
        bend = _bends(rows, point, loss).reshape(-1, size)
        sums += bend.sum(axis=0)
        about.add(rows.X, bend, products, squares)
    about.move(sums, products, squares)
    return squares, sums


@without_overflow_warnings
def class_score(X: Any, y: Any, weight: Any, offset: Any, point: Point, loss: Multinomial) -> Sums:
    """Return how well a model predicts the classes of a block.

    Returns
    -------
    sums : array, shape (3,)
        Of the losses, of the weights of the rows whose class has the largest prediction, and of those with an offset.
    totals : array, shape (q + 1,)
        The weight of the rows of each class, and, last, of those of none.
    margin : array, shape (1,)
        The weight of the rows whose own prediction is above all others.
    """
    check_targets(y)
    q = np.size(point.level)
    sums, totals, above = np.zeros(3), np.zeros(q + 1), np.zeros(1)
    for rows in rows_of(X, y, weight, offset):
        u, known = point.predict(rows.X, rows.offset), loss.in_domain(rows.y)
        number = np.where(known, rows.y, q).astype(np.intp)
        right = number == np.argmax(u, axis=1)
        others = np.where(np.arange(q) == number[:, None], -np.inf, u).max(axis=1)
        own = np.append(u, np.full((u.shape[0], 1), -np.inf), axis=1)[np.arange(number.size), number]
        sums += [
            rows.weight @ loss.value(np.where(known, rows.y, 0.0), u),
            rows.weight @ right,
            rows.weight.sum() * (rows.offset is not None),
        ]
        totals += np.bincount(number, rows.weight, minlength=q + 1)
        above += rows.weight @ (own > others)
    return sums, totals, above


def _bends(rows: Any, point: Point, loss: Multinomial) -> np.ndarray:
    """Return the weighted second derivatives of some rows at a point, shape (n, q, q)."""
    blocks: np.ndarray = loss.blocks(rows.y, point.predict(rows.X, rows.offset))
    return np.asarray(rows.weight[:, None, None] * blocks)
