"""Searching the sets of blocks of a quadratic: adding, dropping and exchanging whole groups of coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from hardthresh.arrays import gather, inverse_semidefinite, move, namespace, scatter, to_numpy
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.objective import Evaluation, provides
from hardthresh.core.typing import Array

ABILITIES = ("curvature", "curvature_diagonal", "columns")
"""What an objective must provide for its blocks to be searched; its `columns` must provide ``hessian``."""

_LEAST_COLUMNS, _TIMES_CHOSEN = 256, 4
"""How many columns the search takes in: at least so many, and at least so many times those that are chosen."""


def search_blocks(objective: Any, constraint: Constraint, at: Evaluation, negligible: float) -> Projection | None:
    """Return where a local search over whole blocks leads from a minimiser, on the quadratic model of f; None: nowhere.

    The blocks that promise most, :math:`\\sum_j g_j^2 / 2 H_{jj}`, join those that are chosen; on the Hessian of their
    columns every exchange of one block for another is looked at, exactly, and made as long as one helps; then the
    search swings: it adds blocks and drops as many, and the other way round.

    Parameters
    ----------
    objective, constraint, at :
        f with the `ABILITIES`, a set that knows its `blocks`, and f at a minimiser on its support.
    negligible : float
        The decrease of f that does not count.

    Notes
    -----
    Cost: one data pass, and that of the Hessian of a few hundred columns. Heuristic.
    """
    known = block_model(objective, constraint, at)
    if known is None:
        return None
    start = known.model.fit(known.start)
    found = search(known.model, start, known.budget, negligible)
    if not found.decrease > start.decrease + negligible:
        return None
    return constraint.project(known.point(found, at.point))


@dataclass(frozen=True, slots=True)
class Known:
    """The quadratic model at a point, of the blocks that promise most.

    Attributes
    ----------
    model : BlockModel
        The quadratic.
    start : tuple of int
        Which of its blocks the point uses.
    names : list of int
        The numbers that its blocks have in the constraint.
    columns : array of int
        The coordinates of its columns.
    budget : int
        How many blocks may be chosen.
    complete : bool
        Whether it has all blocks.
    """

    model: BlockModel
    start: tuple[int, ...]
    names: list[int]
    columns: np.ndarray
    budget: int
    complete: bool

    def point(self, fit: Fit, like: Array) -> Array:
        """Return a minimiser as a full point."""
        coef = namespace(like).asarray(move(self.model.coef(fit), like), dtype=like.dtype)
        return scatter(coef, move(self.columns, like), like.shape[0])


def block_model(objective: Any, constraint: Constraint, at: Evaluation, least: int = _LEAST_COLUMNS) -> Known | None:
    """Return the model of at least so many columns, if there are; None where the set has no blocks.

    Cost: one data pass, and that of the Hessian of the columns.
    """
    blocks = constraint.blocks()
    if blocks is None or not all(provides(objective, ability) for ability in ABILITIES):
        return None
    point, slope = (to_numpy(x).astype(np.float64) for x in (at.point, at.gradient))
    diagonal = to_numpy(objective.curvature_diagonal(at)).astype(np.float64)
    numbers = to_numpy(blocks.numbers)
    promise = np.where(diagonal > 0, slope * slope / np.where(diagonal > 0, 2.0 * diagonal, 1.0), 0.0)
    size = np.bincount(numbers, minlength=blocks.count + 1)
    promised = np.bincount(numbers, weights=promise, minlength=blocks.count + 1)
    used = np.bincount(numbers[point != 0], minlength=blocks.count + 1) > 0
    promised[used] = np.inf
    promised[-1] = -1.0  # the free coordinates are there in any case
    order = np.argsort(-promised, kind="stable")
    order = order[promised[order] >= 0]
    enough = max(least, _TIMES_CHOSEN * int(size[used].sum()))
    taken = order[(np.cumsum(size[order]) <= enough) | used[order]]
    columns = np.flatnonzero(np.isin(numbers, taken) | (numbers == blocks.count))
    indices = move(columns, at.point)
    small = objective.columns(indices)
    hessian = to_numpy(small.hessian(small.evaluate(gather(at.point, indices), at.prediction))).astype(np.float64)
    members = [np.flatnonzero(numbers[columns] == block) for block in sorted(taken.tolist())]
    model = BlockModel(
        hessian,
        hessian @ point[columns] - slope[columns],
        members,
        np.flatnonzero(numbers[columns] == blocks.count),
        float(np.finfo(str(at.point.dtype).rpartition(".")[2]).eps),
    )
    names = sorted(taken.tolist())
    start = tuple(g for g, block in enumerate(names) if used[block])
    return Known(model, start, names, columns, blocks.budget, taken.size == order.size)


@dataclass(frozen=True, eq=False)
class Fit:
    """The minimiser of the quadratic over some blocks, with what every other block would bring.

    Attributes
    ----------
    chosen : tuple of int
        The blocks, increasing.
    decrease : float
        By how much the quadratic is lower than at zero.
    """

    chosen: tuple[int, ...]
    decrease: float
    columns: np.ndarray
    coef: np.ndarray
    slope: np.ndarray
    inverse: np.ndarray
    regressions: np.ndarray  # of all columns on the chosen ones
    left: np.ndarray  # of the Hessian's diagonal blocks, when the chosen columns are refitted


class BlockModel:
    r"""The quadratic :math:`\tfrac{1}{2} b^\top H b - c^\top b` over blocks of coordinates.

    Parameters
    ----------
    hessian : array, shape (p, p)
        H, positive semidefinite.
    linear : array, shape (p,)
        c.
    blocks : list of arrays of int
        The coordinates of each block.
    free : array of int
        Coordinates that are always chosen.
    eps : float
        Rounding of the numbers given.
    """

    def __init__(
        self, hessian: np.ndarray, linear: np.ndarray, blocks: list[np.ndarray], free: np.ndarray, eps: float
    ) -> None:
        diagonal = hessian.diagonal()
        self._scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
        self._hessian = hessian * self._scale[:, None] * self._scale
        self._linear = linear * self._scale
        self._free, self._blocks = free, blocks
        width = max((block.size for block in blocks), default=0)
        self._padded = np.zeros((len(blocks), width), dtype=np.intp)
        self._there = np.zeros((len(blocks), width), dtype=bool)
        for row, block in enumerate(blocks):
            self._padded[row, : block.size] = block
            self._there[row, : block.size] = True
        self._both = self._there[:, :, None] & self._there[:, None, :]
        self._ridge = max(1e-9, 10.0 * eps) * np.eye(width) + np.eye(width) * ~self._there[:, :, None]

    def coef(self, fit: Fit) -> np.ndarray:
        """Return the coefficients of all columns."""
        coef = np.zeros(self._linear.size)
        coef[fit.columns] = fit.coef * self._scale[fit.columns]
        return coef

    def fit(self, chosen: Iterable[int]) -> Fit:
        """Return the minimiser over some blocks and the free coordinates."""
        some = tuple(sorted(chosen))
        columns = np.concatenate([self._free, *(self._blocks[g] for g in some)]).astype(np.intp)
        rows = self._hessian[columns]
        inverse = inverse_semidefinite(rows[:, columns])
        regressions = inverse @ rows
        coef = inverse @ self._linear[columns]
        here = np.where(self._there[:, None, :], regressions[:, self._padded].transpose(1, 0, 2), 0.0)
        there = np.where(self._there[:, None, :], rows[:, self._padded].transpose(1, 0, 2), 0.0)
        whole = np.where(self._both, self._hessian[self._padded[:, :, None], self._padded[:, None, :]], 0.0)
        return Fit(
            some,
            0.5 * float(coef @ self._linear[columns]),
            columns,
            coef,
            self._linear - coef @ rows,
            inverse,
            regressions,
            whole - here.transpose(0, 2, 1) @ there,
        )

    def gains(self, slope: np.ndarray, left: np.ndarray) -> np.ndarray:
        """Return by how much each block would lower the quadratic, with a refit of all coefficients."""
        pull = np.where(self._there, slope[self._padded], 0.0)
        answer = np.linalg.solve(left + self._ridge, pull[:, :, None])[:, :, 0]
        return np.asarray(0.5 * np.sum(answer * pull, axis=1))

    def additions(self, fit: Fit) -> np.ndarray:
        """Return the gain of each block that is not chosen, -inf for those that are."""
        gains = self.gains(fit.slope, fit.left)
        gains[list(fit.chosen)] = -np.inf
        return gains

    def drops(self, fit: Fit) -> Iterator[tuple[int, float, np.ndarray, np.ndarray]]:
        """Yield each chosen block with what it costs to drop it, and the slope and the Hessian's blocks without it."""
        start = self._free.size
        for g in fit.chosen:
            own = slice(start, start + self._blocks[g].size)
            start = own.stop
            bend = np.linalg.pinv(fit.inverse[own, own], hermitian=True)
            back = bend @ fit.coef[own]
            images = fit.regressions[own]
            shaped = np.where(self._there[:, None, :], images[:, self._padded].transpose(1, 0, 2), 0.0)
            yield (
                g,
                0.5 * float(fit.coef[own] @ back),
                fit.slope + back @ images,
                fit.left + shaped.transpose(0, 2, 1) @ (bend @ shaped),
            )


def exchanges(model: BlockModel, fit: Fit) -> Iterator[tuple[float, int, int]]:
    """Yield, for each chosen block, the decrease by its best exchange, and the two blocks."""
    for g, cost, slope, left in model.drops(fit):
        gains = model.gains(slope, left) - cost
        gains[list(fit.chosen)] = -np.inf
        added = int(np.argmax(gains))
        if gains[added] > -np.inf:
            yield float(gains[added]), g, added


def search(model: BlockModel, start: Fit, budget: int, negligible: float) -> Fit:
    """Return the best set that exchanges and swings lead to, of at most so many blocks."""
    best = descend(model, grow(model, start, budget, negligible), negligible)
    improved = True
    while improved:
        improved = False
        for reach in sorted({1, ceil(budget / 4), ceil(budget / 2), budget}):
            for swung in (
                shrink(model, grow(model, best, budget + reach, negligible), budget),
                grow(model, shrink(model, best, budget - reach), budget, negligible),
            ):
                if swung.chosen != best.chosen:
                    tried = descend(model, swung, negligible)
                    if tried.decrease > best.decrease + negligible:
                        best, improved = tried, True
    return best


def grow(model: BlockModel, fit: Fit, size: int, negligible: float) -> Fit:
    """Add the block that helps most until there are so many, or none helps noticeably."""
    while len(fit.chosen) < size:
        gains = model.additions(fit)
        if gains.size == 0 or not np.max(gains) > negligible:
            break
        fit = model.fit((*fit.chosen, int(np.argmax(gains))))
    return fit


def shrink(model: BlockModel, fit: Fit, size: int) -> Fit:
    """Drop the block that is missed least until there are so many."""
    while len(fit.chosen) > max(size, 0):
        cheapest = min(model.drops(fit), key=lambda drop: drop[1])[0]
        fit = model.fit(g for g in fit.chosen if g != cheapest)
    return fit


def descend(model: BlockModel, fit: Fit, negligible: float) -> Fit:
    """Make the best exchange of one block for another as long as one helps noticeably."""
    while True:
        fall, removed, added = max(exchanges(model, fit), default=(0.0, 0, 0), key=lambda exchange: exchange[0])
        if not fall > negligible:
            return fit
        after = model.fit((*(g for g in fit.chosen if g != removed), added))
        if not after.decrease > fit.decrease + 0.5 * negligible:
            return fit
        fit = after
