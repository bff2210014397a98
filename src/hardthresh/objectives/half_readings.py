"""Halves of the rows of a table in blocks, and passes with separate sums for many halves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2
from typing import Any, NamedTuple

import numpy as np

from hardthresh.arrays.pieces import steps
from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.randomness import Purpose, generator, random_halves, rows_by_label
from hardthresh.losses.expansion import Expansion

from .block_rows import ROWS, About, Part, Point, Scaled, rows_of, size_of
from .readings import Sums

_HELD = 1 << 22
"""Limit of the numbers that are centred and scaled at a time, and of the products of all patterns: 32 MB. Arbitrary."""
_OF_A_PATTERN = 128
"""Rows that are in the same halves are to be at least about so many: products of fewer are slower. Measured."""


@dataclass(frozen=True, slots=True)
class BlockHalves:
    """Pairs of halves of the rows of a table in blocks, each of which has half of the rows of every block.

    Attributes
    ----------
    n_pairs : int
        The number of pairs. More of them begin with the same ones.
    seed : int
        The halves of a block are drawn from ``generator(seed, number of the block, ...)``: they depend on that and on
        its rows alone, never on the engine.
    by_label : bool
        Whether the halves of a block have as many rows of each value of y, such as a class, or one more.
    """

    n_pairs: int
    seed: int
    by_label: bool = False

    def __len__(self) -> int:
        """Return the number of halves: those of pair b are the numbers 2 b and 2 b + 1."""
        return 2 * self.n_pairs

    def of(self, number: int, y: Any, weight: Any) -> np.ndarray:
        """Return in which half of each pair the rows of a block are: 0 or 1, and 2 for neither, shape (n, n_pairs).

        Rows of weight 0 are in neither, and one of an odd number of others.
        """
        counted = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
        sides = np.full((len(y), self.n_pairs), 2, dtype=np.int8)
        if not counted.size:
            return sides
        groups = [counted[rows] for rows in rows_by_label(np.asarray(y)[counted])] if self.by_label else [counted]
        rng = generator(self.seed, number, Purpose.HALVES_OF_BLOCKS)
        for pair in range(self.n_pairs):
            for side, rows in enumerate(random_halves(rng, groups)):
                sides[rows, pair] = side
        return sides


class Quadratic(NamedTuple):
    """Least squares of the targets, or the `Expansion` of another loss, for each half or for all.

    Attributes
    ----------
    level : float
        What is subtracted from targets and predictors.
    loss : Loss, or None
        The loss; None for squared errors.
    at : Point, or None
        Where it is expanded: one linear predictor for each half, or one for all.
    floor : float
        The second derivative with which the expansion is filled where the loss has a slope but none.
    """

    level: float
    loss: Any = None
    at: Point | None = None
    floor: float = 0.0

    @property
    def shared(self) -> bool:
        """Whether the weights h of a row are the same in all halves."""
        return self.at is None or self.at.level.size == 1

    def of(self, rows: Part, which: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the weights h of some rows, their targets less the level, times these, and h without the floor.

        The shape of each is (n, n_halves), or broadcasts to it.

        Parameters
        ----------
        rows : Part
            The rows.
        which : array of int
            The numbers of the halves.
        """
        if self.at is None:
            gap = rows.y - self.level if rows.offset is None else rows.y - self.level - rows.offset
            return np.ones((1, 1)), gap[:, None], np.ones((1, 1))
        at = self.at
        if not self.shared:
            at = at._replace(coef=at.coef[:, which], level=at.level[which])
        u = at.predict(rows.X, None)
        full = u if rows.offset is None else u + rows.offset[:, None]
        near = Expansion(self.loss.gradient(rows.y[:, None], full), self.loss.curvature(rows.y[:, None], full))
        bend = near.filled(self.floor).curvature
        return bend, bend * (u - self.level) - near.slope, near.curvature


def _parts(
    X: Any, y: Any, weight: Any, offset: Any, halves: BlockHalves, number: int, which: np.ndarray, size: int = ROWS
) -> Iterator[tuple[Part, np.ndarray]]:
    """Yield the rows of a block, some at a time, with their weights in some of the halves."""
    sides = halves.of(number, y, weight)
    for rows in rows_of(X, y, weight, offset, size):
        there = sides[rows.places][:, which // 2] == which % 2
        yield rows, np.where(there, rows.weight[:, None], 0.0)


@without_overflow_warnings
def half_moments(
    X: Any,
    y: Any,
    weight: Any,
    offset: Any,
    halves: BlockHalves,
    number: int,
    which: np.ndarray,
    model: Quadratic,
    shift: np.ndarray,
    factor: np.ndarray | None = None,
) -> Sums:
    r"""Return the moments of all columns about a shift, and of the targets, over each of some halves.

    Parameters
    ----------
    which : array of int, shape (q,)
        The numbers of the halves.
    model : Quadratic
        The weights :math:`\omega` of the rows, with those that they have, and the targets t.
    shift : array, shape (d,)
        A centre for each column.
    factor : array, shape (d,), optional
        What dense columns are multiplied by before they are squared; see `powers_of_two`.

    Returns
    -------
    targets : array, shape (4, q)
        :math:`\sum w, \sum \omega, \sum \omega t, \sum \omega t^2`.
    curved : array, shape (3, q)
        The number of rows, and of their second derivatives h' without the floor :math:`\sum w h', \sum w h'^2`.
    linear, crossed, squares : array, shape (q, d)
        :math:`\sum \omega (x - c), \sum \omega t (x - c), \sum \omega (x - c)^2`.
    """
    q, d, about = which.size, X.shape[1], About(X, shift, factor)
    targets, curved, products, square = np.zeros((4, q)), np.zeros((3, q)), np.zeros((d, 2 * q)), np.zeros((d, q))
    for rows, weights in _parts(X, y, weight, offset, halves, number, which):
        bend, response, own = model.of(rows, which)
        omega, product = weights * bend, weights * response
        mean = np.divide(response, bend, out=np.zeros(np.broadcast_shapes(bend.shape, response.shape)), where=bend > 0)
        targets += np.stack([part.sum(axis=0) for part in (weights, omega, product, product * mean)])
        curved += np.stack([part.sum(axis=0) for part in (weights > 0, weights * own, weights * own * own)])
        about.add(rows.X, np.concatenate([omega, product], axis=1), products, square)
    about.move(targets[1:3].ravel(), products, square)
    return targets, curved, products[:, :q].T.copy(), products[:, q:].T.copy(), square.T.copy()


@without_overflow_warnings
def half_products(
    X: Any,
    y: Any,
    weight: Any,
    offset: Any,
    halves: BlockHalves,
    number: int,
    which: np.ndarray,
    model: Quadratic,
    union: Scaled,
    new: list[np.ndarray],
    every: list[np.ndarray],
) -> Sums:
    r"""Return :math:`\sum \omega z v^\top` of new columns z and all columns v of the working sets of some halves.

    Parameters
    ----------
    which, model :
        As for `half_moments`.
    union : Scaled
        The columns of all of them.
    new, every : list of array of int
        For each half, places among these.

    Returns
    -------
    products : array, shape (m_new, m)
        For each half.

    Notes
    -----
    Of t pairs that have the same columns and weights, the rows that are in the same halves are summed first: there are
    hardly more than :math:`2^t` such sets of rows, so that the products of t pairs cost those of one.
    """
    products = tuple(np.zeros((one.size, other.size)) for one, other in zip(new, every, strict=True))
    at_once = max(ROWS, _HELD // max(1, union.columns.size))
    sets = _alike(new, every) if model.shared else [np.array([i]) for i in range(which.size)]
    for rows, weights in _parts(X, y, weight, offset, halves, number, which, at_once):
        omega, V = rows.weight[:, None] * model.of(rows, which)[0], union.of(rows.X)
        most = 2 * max(1, int(log2(min(len(V) / _OF_A_PATTERN + 1.0, _HELD / max(1, union.columns.size) ** 2 + 1.0))))
        for alike in sets:
            if not new[alike[0]].size:
                continue
            for some in steps(alike.size, most):
                group = alike[some]
                patterns, sums = _sums_of_patterns(
                    V,
                    omega[:, 0 if model.shared else group[0]],
                    weights[:, group] > 0.0,
                    new[group[0]],
                    every[group[0]],
                )
                for i, chosen in zip(group, patterns.T, strict=True):
                    products[i][:] += sums[chosen].sum(axis=0)
    return products


def _alike(new: list[np.ndarray], every: list[np.ndarray]) -> list[np.ndarray]:
    """Return the numbers of halves that have the same columns together."""
    found: dict[tuple[bytes, bytes], list[int]] = {}
    for i, pair in enumerate(zip(new, every, strict=True)):
        found.setdefault((pair[0].tobytes(), pair[1].tobytes()), []).append(i)
    return [np.array(alike) for alike in found.values()]


def _sums_of_patterns(
    V: np.ndarray, omega: np.ndarray, inside: np.ndarray, one: np.ndarray, other: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return products of columns over the rows that are in the same of some halves, for each such set of halves.

    Parameters
    ----------
    V : array, shape (n, m)
        The columns of some rows.
    omega : array, shape (n,)
        Weights >= 0.
    inside : array of bool, shape (n, g)
        In which halves a row is.
    one, other : array of int
        Places among the columns.

    Returns
    -------
    patterns : array of bool, shape (n_patterns, g)
        The sets.
    sums : array, shape (n_patterns, m_one, m_other)
        Sums of no more than 1024 rows are in the precision of V, others in double precision.
    """
    size, square = size_of(omega), np.array_equal(one, other)
    scaled = (omega / size)[:, None]
    factors = (np.sqrt(scaled) if square else scaled).astype(V.dtype)
    code = inside @ (1 << np.arange(inside.shape[1]))
    order = np.argsort(code, kind="stable")
    codes, starts = np.unique(code[order], return_index=True)
    sums = np.zeros((codes.size, one.size, other.size))
    for place, here in enumerate(np.split(order, starts[1:])):
        if not codes[place]:  # in none
            continue
        for part in steps(here.size, ROWS):
            own = V[here[part]]
            Z = own[:, one] * factors[here[part]]
            sums[place] += (Z.T @ Z) if square else Z.T @ own[:, other]  # BLAS computes a triangle of the first
    return (codes[:, None] >> np.arange(inside.shape[1])) & 1 > 0, np.multiply(size, sums, out=sums)


@without_overflow_warnings
def half_slopes(
    X: Any,
    y: Any,
    weight: Any,
    offset: Any,
    halves: BlockHalves,
    number: int,
    which: np.ndarray,
    model: Quadratic,
    fits: Point,
    shift: np.ndarray,
) -> Sums:
    r"""Return the products of all columns with the residuals of some fits, each over the rows of a half.

    Parameters
    ----------
    which : array of int, shape (q,)
        The number of the half of each fit.
    model :
        As for `half_moments`.
    fits : Point
        q fits of the targets t, with coefficients of shape (s, q).
    shift : array, shape (d,)
        What is subtracted from the columns.

    Returns
    -------
    products : array, shape (q, d)
        :math:`\sum \omega (t - \hat t) (x - c)`.
    """
    about, products, total = About(X, shift), np.zeros((X.shape[1], which.size)), np.zeros(which.size)
    distinct, place = np.unique(which, return_inverse=True)
    for rows, weights in _parts(X, y, weight, offset, halves, number, distinct):
        bend, response, _ = model.of(rows, distinct)
        omega, product = weights * bend, weights * response
        residual = product[:, place] - omega[:, place] * fits.predict(rows.X, None)
        total += residual.sum(axis=0)
        products += about.products(rows.X, residual)
    about.move_products(total, products)
    return (products.T.copy(),)
