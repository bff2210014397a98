"""Sums over a table in one reading (pass): pure functions of a block of rows, whose results are added.

Each task takes ``(X, y, weight, offset)`` of a block and returns a flat tuple of float64 arrays. It keeps nothing and
changes nothing, so it can run wherever the block is, and again where a worker was lost. Products are those of 1024 rows
in the precision of X; beyond, sums are float64 from the first row to the last. No block is copied as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.errors import InvalidInputError
from hardthresh.losses import Loss, Multinomial

from .block_rows import (
    NO_CLASS,
    ROWS,
    About,
    Part,
    Point,
    Scaled,
    check_offset,
    check_targets,
    per_row,
    rows_of,
    size_of,
)

Sums: TypeAlias = tuple[np.ndarray, ...]
Task: TypeAlias = Callable[..., Sums]


def together(X: Any, y: Any, weight: Any, offset: Any, *tasks: tuple[Task, tuple[Any, ...]]) -> Sums:
    """Return the results of several tasks, one after another: one reading for all of them."""
    return sum((task(X, y, weight, offset, *arguments) for task, arguments in tasks), ())


def of_output(X: Any, y: Any, weight: Any, offset: Any, output: int, count: int, task: Task, *arguments: Any) -> Sums:
    """Return the result of a task for one of several outputs, of which the rows must have so many."""
    check_targets(y)
    for part in (y, offset):
        if part is not None and part.shape[1:] != (count,):
            raise InvalidInputError(
                f"some blocks have y or offset of shape {per_row(part.shape[1:])}; {per_row((count,))} is needed"
            )
    return task(X, y[:, output], weight, None if offset is None else offset[:, output], *arguments)


@without_overflow_warnings
def moments(
    X: Any, y: Any, weight: Any, offset: Any, shift: np.ndarray, level: Any, loss: Any, factor: np.ndarray | None = None
) -> Sums:
    r"""Return the moments of the columns about a shift, and of the targets about a level.

    Parameters
    ----------
    X, y, weight, offset :
        A block.
    shift : array, shape (d,)
        A centre for each column, such as its mean in a few rows: then nothing cancels in the variance.
    level : float or array, shape (q,)
        The same for the targets.
    loss : Loss or VectorLoss
        Which targets are in the domain, and of which the loss falls indefinitely.
    factor : array, shape (d,), optional
        What dense columns are multiplied by before they are squared; see `powers_of_two`.

    Returns
    -------
    counts : array, shape (7,)
        The rows of positive weight, their weight, how many targets are outside the domain, the weight of those whose
        loss falls indefinitely as predictions grow, and as they fall, of the rows that have an offset, and how many
        rows have a negative weight.
    targets : array, shape (2,) or (2, q)
        :math:`\sum w (y - l)` and :math:`\sum w (y - l)^2`; for squared errors the offset is subtracted from y.
    sums, squares : array, shape (d,)
        :math:`\sum w (x - c)` and :math:`\sum w (x - c)^2`.
    crossed : array, shape (d,) or (d, q)
        :math:`\sum w (x - c) (y - l)`.
    """
    d, about = X.shape[1], About(X, shift, factor)
    outputs = () if np.ndim(y) == 1 else (y.shape[1],)
    width = 1 + (outputs[0] if outputs else 1)
    counts, targets = np.zeros(7), np.zeros((2, *outputs))
    linear, squares = np.zeros((d, width)), np.zeros((d, 1))
    for rows in rows_of(X, y, weight, offset):
        gap = _gaps(rows, level, loss)
        counts += _counts(rows, loss)
        targets += np.stack([rows.weight @ gap, rows.weight @ (gap * gap)])
        sides = np.column_stack([rows.weight, rows.weight[:, None] * gap.reshape(gap.shape[0], -1)])
        about.add(rows.X, sides, linear, squares)
    about.move(np.append(counts[1], targets[0]), linear, squares)
    return counts, targets, linear[:, 0], squares[:, 0], linear[:, 1:].reshape(d, *outputs)


def _gaps(rows: Part, level: Any, loss: Any) -> np.ndarray:
    """Return the targets less a level, and for squared errors less the offset."""
    if rows.y.shape[1:] != np.shape(level):
        raise InvalidInputError(
            f"some blocks have targets of shape {per_row(rows.y.shape[1:])}, and {per_row(np.shape(level))} is needed"
        )
    check_offset(rows.offset, (loss.n_classes,) if isinstance(loss, Multinomial) else rows.y.shape[1:])
    gap: np.ndarray = rows.y - level
    if loss.quadratic and rows.offset is not None:
        gap -= rows.offset
    return gap


def _counts(rows: Part, loss: Any) -> np.ndarray:
    """Return the counts of `moments` of some rows."""
    y = rows.y
    domain = np.reshape(loss.in_domain(y), (y.shape[0], -1)) if hasattr(loss, "in_domain") else np.ones((1, 1))
    falls = loss.recession(y) if isinstance(loss, Loss) else np.zeros(y.shape[0])
    falls = np.reshape(falls, (y.shape[0], -1))
    up, down = (float(rows.weight @ np.sum(side, axis=1)) for side in (falls > 0, falls < 0))
    total = float(rows.weight.sum())
    known = 0.0 if rows.offset is None else total if np.isfinite(rows.offset).all() else np.nan  # which is refused
    negative = np.count_nonzero(rows.weight < 0)
    return np.array([y.shape[0], total, np.count_nonzero(domain == 0), up, down, known, negative])


def rows_counted(X: Any, y: Any, weight: Any, offset: Any) -> Sums:
    """Return how many rows have a weight, and of how many it is no whole number."""
    if weight is None:
        return (np.array([X.shape[0], 0.0]),)
    return (np.array([np.count_nonzero(weight), np.count_nonzero(weight != np.round(weight))], dtype=np.float64),)


@without_overflow_warnings
def look(
    X: Any, y: Any, weight: Any, offset: Any, points: Sequence[Point], loss: Any, centre: np.ndarray | None = None
) -> Sums:
    r"""Return values, and what gradients are made of, at several points: they share one product with X.

    Parameters
    ----------
    X, y, weight, offset :
        A block.
    points : sequence of Point
        q points.
    loss : Loss or VectorLoss
        The loss.
    centre : array, shape (d,), optional
        What is subtracted from the columns before they are multiplied, where their means are large.

    Returns
    -------
    values, terms : array, shape (q,)
        The sums of the losses, and of the sizes of what these are rounded from; see `MeanLoss.terms`.
    slopes : array, shape (q,) or (q, m)
        The sums of the derivatives in the m predictions of an example.
    products : array, shape (d, q) or (d, q, m)
        :math:`(X - c)^\top r` for these derivatives r.
    """
    q, d = len(points), X.shape[1]
    outputs, about = np.shape(points[0].level), About(X, centre)
    values, terms, slopes, products = np.zeros(q), np.zeros(q), np.zeros((q, *outputs)), np.zeros((d, q, *outputs))
    for rows in rows_of(X, y, weight, offset):
        sides = np.empty((rows.y.shape[0], q, *outputs))
        spread = rows.weight.reshape(-1, *(1 for _ in outputs))
        for i, point in enumerate(points):
            u = point.predict(rows.X, rows.offset)
            losses, slope = loss.value_and_gradient(rows.y, u)
            change = np.abs(slope * u)
            change = change.reshape(change.shape[0], -1).sum(axis=1)
            values[i] += rows.weight @ losses
            terms[i] += rows.weight @ (np.abs(losses) + change)
            sides[:, i] = spread * slope
        slopes += sides.sum(axis=0)
        products += about.products(rows.X, sides.reshape(sides.shape[0], -1)).reshape(products.shape)
    about.move_products(slopes, products)
    return values, terms, slopes, products


def gram(X: Any, y: Any, weight: Any, offset: Any, new: Scaled, every: Scaled) -> Sums:
    r"""Return :math:`\sum w z (v, 1)^\top` of new columns z and all columns v of a working set.

    Returns
    -------
    products : array, shape (m_new, m + 1)
    """
    products = np.zeros((new.columns.size, every.columns.size + 1))
    for rows in rows_of(X, y, weight, offset):
        V = with_ones(every.of(rows.X))
        size = size_of(rows.weight)
        Z = new.of(rows.X) * (rows.weight / size)[:, None].astype(X.dtype)
        products += size * np.asarray(Z.T @ V, dtype=np.float64)
    return (products,)


def with_ones(Z: np.ndarray) -> np.ndarray:
    """Return columns with a column of ones after them."""
    return np.concatenate([Z, np.ones((Z.shape[0], 1), dtype=Z.dtype)], axis=1)


@without_overflow_warnings
def curve(
    X: Any,
    y: Any,
    weight: Any,
    offset: Any,
    point: Point,
    directions: Sequence[Point],
    loss: Any,
    centre: np.ndarray | None,
) -> Sums:
    r"""Return what the Hessian times q directions is made of.

    Returns
    -------
    slope : array, shape (q,)
        :math:`\sum h v`, for a direction's predictions v and the weighted second derivatives h at the point.
    products : array, shape (d, q)
        :math:`(X - c)^\top h v`.
    """
    q, about = len(directions), About(X, centre)
    slope, products = np.zeros(q), np.zeros((X.shape[1], q))
    for rows, _, bent in _bent(X, y, weight, offset, point, directions, loss):
        slope += bent.sum(axis=0)
        products += about.products(rows.X, bent)
    about.move_products(slope, products)
    return slope, products


@without_overflow_warnings
def curve_along(X: Any, y: Any, weight: Any, offset: Any, point: Point, directions: Sequence[Point], loss: Any) -> Sums:
    r"""Return the second derivatives along q directions, :math:`\sum h v^2`; see `curve`."""
    square = np.zeros(len(directions))
    for _, v, bent in _bent(X, y, weight, offset, point, directions, loss):
        square += np.einsum("ij,ij->j", bent, v)
    return (square,)


def _bent(
    X: Any, y: Any, weight: Any, offset: Any, point: Point, directions: Sequence[Point], loss: Any
) -> Iterator[tuple[Part, np.ndarray, np.ndarray]]:
    """Yield some rows of a block, the predictions v of directions, and h v."""
    for rows in rows_of(X, y, weight, offset):
        v = np.empty((rows.y.shape[0], len(directions)))
        for i, direction in enumerate(directions):
            v[:, i] = direction.predict(rows.X, None)
        yield rows, v, bends(rows, point, loss)[:, None] * v


def bends(rows: Part, point: Point, loss: Any) -> np.ndarray:
    """Return the weighted second derivatives of the losses of some rows at a point."""
    found: np.ndarray = rows.weight * loss.curvature(rows.y, point.predict(rows.X, rows.offset))
    return found


@without_overflow_warnings
def expansions(
    X: Any,
    y: Any,
    weight: Any,
    offset: Any,
    points: Sequence[Point],
    directions: Sequence[Sequence[Point]],
    loss: Any,
    centre: np.ndarray,
    factor: np.ndarray | None = None,
) -> Sums:
    r"""Return what the diagonal of the Hessian at q points, and its products with p directions, are made of.

    Parameters
    ----------
    X, y, weight, offset :
        A block.
    points : sequence of Point
        q points; h are the weighted second derivatives of the losses at one of them.
    directions : sequence of (sequence of Point)
        Those of each point, p in all.
    loss : Loss
        The loss.
    centre : array, shape (d,)
        c, which is subtracted from the columns.
    factor : array, shape (d,), optional
        As in `moments`.

    Returns
    -------
    squares : array, shape (d, q)
        :math:`\sum h (x - c)^2`.
    products : array, shape (d, q + p)
        :math:`\sum h (x - c)` of each point, then :math:`\sum h (x - c) v` of each direction's predictions v.
    slopes : array, shape (q + p,)
        The same sums with 1 instead of x - c.
    """
    d, q, p = X.shape[1], len(points), sum(len(own) for own in directions)
    about = About(X, centre, factor)
    slopes, products, square = np.zeros(q + p), np.zeros((d, q + p)), np.zeros((d, q))
    for rows in rows_of(X, y, weight, offset):
        sides, place = np.empty((rows.y.shape[0], q + p)), q
        for i, (point, own) in enumerate(zip(points, directions, strict=True)):
            sides[:, i] = bends(rows, point, loss)
            for direction in own:
                sides[:, place] = sides[:, i] * direction.predict(rows.X, None)
                place += 1
        slopes += sides.sum(axis=0)
        about.add(rows.X, sides, products, square)
    about.move(slopes, products, square)
    return square, products, slopes


def kept(X: Any, y: Any, weight: Any, offset: Any, columns: Scaled, fold: Any) -> tuple[Any, ...]:
    """Return some columns, centred and scaled, with targets, weights, offset and fold: a block of a narrower table."""
    Z = np.empty((X.shape[0], columns.columns.size), dtype=X.dtype)
    for start in range(0, X.shape[0], ROWS):
        Z[start : start + ROWS] = columns.of(X[start : start + ROWS])
    return (
        Z,
        *(None if part is None else np.require(part, requirements=["C", "A"]) for part in (y, weight, offset, fold)),
    )


def look_and_keep(
    X: Any, y: Any, weight: Any, offset: Any, columns: Scaled, fold: Any, *tasks: tuple[Task, tuple[Any, ...]]
) -> tuple[Sums, tuple[Any, ...]]:
    """Return the results of several tasks, and what stays where the block is: one reading for both."""
    return together(X, y, weight, offset, *tasks), kept(X, y, weight, offset, columns, fold)


@without_overflow_warnings
def newton(Z: Any, y: Any, weight: Any, offset: Any, index: np.ndarray, point: Point, loss: Any) -> Sums:
    r"""Return the weighted Gram matrix of kept columns and ones, :math:`\sum h (z, 1) (z, 1)^\top`, at a point.

    Parameters
    ----------
    Z, y, weight, offset :
        A block of kept columns.
    index : array of int, shape (m,)
        Which of them.
    point : Point
        The point, in terms of all kept columns.
    loss : Loss
        The loss, whose second derivatives h are.

    Returns
    -------
    hessian : array, shape (m + 1, m + 1)
    """
    hessian = np.zeros((index.size + 1, index.size + 1))
    for rows in rows_of(Z, y, weight, offset):
        columns = np.concatenate([rows.X.T[index], np.ones((1, rows.y.size), dtype=Z.dtype)])
        bend = bends(rows, point, loss)
        size = size_of(bend)
        hessian += size * np.asarray(weighted_gram(columns, *roots_of(bend / size, Z.dtype)), dtype=np.float64)
    return (hessian,)


def roots_of(bends: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the roots of second derivatives, not far above one, and again, with their signs: once if none is below 0.

    Those below 0 are of a loss that is not convex.
    """
    roots = np.sqrt(np.abs(bends)).astype(dtype)
    return roots, roots if bends.min(initial=0.0) >= 0.0 else np.copysign(roots, bends).astype(dtype)


def weighted_gram(columns: np.ndarray, root: np.ndarray, signed: np.ndarray) -> np.ndarray:
    r"""Return :math:`\sum h z z^\top` in the precision of the columns.

    Parameters
    ----------
    columns : array, shape (m, n)
        z of n rows, each column of the data in one row.
    root, signed : array, shape (n,)
        The roots of the weights h, and with their signs.
    """
    scaled = columns * root
    products: np.ndarray = scaled @ (scaled if signed is root else columns * signed).T
    return products


@without_overflow_warnings
def dispersion(X: Any, y: Any, weight: Any, offset: Any, point: Point, loss: Any) -> Sums:
    """Return the numerator and the denominator of the dispersion of the targets of a block."""
    total = np.zeros(2)
    for rows in rows_of(X, y, weight, offset):
        total += loss.dispersion_sums(rows.y, point.predict(rows.X, rows.offset), rows.weight)
    return (total,)


@without_overflow_warnings
def score(X: Any, y: Any, weight: Any, offset: Any, points: Sequence[Point], loss: Any, level: Any) -> Sums:
    r"""Return the losses of several models, and the moments of the targets about a level.

    Returns
    -------
    values : array, shape (q,)
        The sums of the losses.
    right : array, shape (q,)
        The weight of the rows whose target, positive or not, is on the side of their prediction; `NO_CLASS` is on none.
    targets : array, shape (4,)
        The weight of the rows, :math:`\sum w (y - l)`, :math:`\sum w (y - l)^2`, and the weight of rows with an offset;
        for squared errors the offset is subtracted from y.
    """
    check_targets(y)
    values, right = np.zeros(len(points)), np.zeros(len(points))
    targets = np.zeros(4)
    for rows in rows_of(X, y, weight, offset):
        gap, total = _gaps(rows, level, loss), rows.weight.sum()
        known = total * (rows.offset is not None)
        targets += [total, rows.weight @ gap, rows.weight @ (gap * gap), known]
        for i, point in enumerate(points):
            u = point.predict(rows.X, rows.offset)
            values[i] += rows.weight @ loss.value(rows.y, u)
            right[i] += rows.weight @ (((rows.y > 0) == (u > 0)) & (rows.y != NO_CLASS))
    return values, right, targets
