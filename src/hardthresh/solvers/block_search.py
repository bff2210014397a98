"""Local search over whole groups of coordinates, on the quadratic model of f."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import ceil

import numpy as np

from hardthresh.arrays import gather, inverse_factor, move, namespace, scatter, to_numpy
from hardthresh.core.constraint import BlockBudget, Constraint, Projection
from hardthresh.core.objective import Evaluation, LinearObjective, Objective
from hardthresh.core.typing import Array

from .local_search import add_then_drop, descend, drop_then_add, grow

_LEAST_COLUMNS, _TIMES_CHOSEN = 256, 4
"""Number of columns of the search: at least so many, and so many times those that are chosen. Of 32 models of groups 3
end higher with at least 64 and 1 with 128; none differs with 512 or 1,024, nor with 1 to 16 times."""

MOST_COLUMNS = 2048
"""Most columns of a model: their Hessian takes 32 MB, and what is kept of its blocks at most 128."""

_MOST_WORK = 10**10
"""Most multiplications of one search: seconds, after which the best set so far is the answer."""

_OVERHEAD = 10**5
"""Cost of a call of the array library, in multiplications."""


def search_blocks(objective: Objective, constraint: Constraint, at: Evaluation, negligible: float) -> Projection | None:
    """Return a better set of whole blocks than that of a minimiser, by the quadratic model of f; None if none is found.

    The blocks with the highest scores, :math:`\\sum_j g_j^2 / 2 H_{jj}`, join those that are chosen. On the Hessian of
    their columns the best exchange of one block for another is made as long as one helps, then add-drop moves.

    Parameters
    ----------
    objective, constraint, at :
        f, a set with a `BlockBudget`, and f at a minimiser on its support.
    negligible : float
        The decrease of f that does not count.

    Notes
    -----
    Cost: one data pass, and that of the Hessian of a few hundred columns. The work of the search is bounded by a count
    of multiplications, which is the same on every machine; then the best set so far is returned. There is no search if
    there are more than `MOST_COLUMNS` chosen columns. Heuristic.
    """
    known = block_model(objective, constraint, at)
    if known is None:
        return None
    start = known.model.fit(known.start)
    found = search(known.model, known.start, known.budget, negligible)
    if not found.decrease > start.decrease + negligible:
        return None
    return constraint.project(known.point(found, at.point))


@dataclass(frozen=True, slots=True)
class Known:
    """The quadratic model at a point, of the blocks with the highest scores.

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


def block_model(objective: Objective, constraint: Constraint, at: Evaluation) -> Known | None:
    """Return the model of the blocks with the highest scores: a few hundred columns, and at most `MOST_COLUMNS`.

    None where the set has no blocks, or the chosen ones have too many columns.

    Cost: one data pass, and that of the Hessian of the columns.
    """
    blocks = constraint.structure(tuple(at.point.shape))
    if not isinstance(blocks, BlockBudget) or not isinstance(objective, LinearObjective):
        return None
    point, slope = (to_numpy(x).astype(np.float64) for x in (at.point, at.gradient))
    diagonal = to_numpy(objective.hessian_diag(at)).astype(np.float64)
    numbers = to_numpy(blocks.numbers)
    score = np.where(diagonal > 0, slope * slope / np.where(diagonal > 0, 2.0 * diagonal, 1.0), 0.0)
    size = np.bincount(numbers, minlength=blocks.candidates + 1)
    scores = np.bincount(numbers, weights=score, minlength=blocks.candidates + 1)
    used = np.bincount(numbers[point != 0], minlength=blocks.candidates + 1) > 0
    scores[used] = np.inf
    scores[-1] = -1.0  # the free coordinates are there in any case
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] >= 0]
    there_anyway = int(size[:-1][used[:-1]].sum()) + int(size[-1])
    if there_anyway > MOST_COLUMNS:
        return None
    room = min(max(_LEAST_COLUMNS, _TIMES_CHOSEN * int(size[used].sum())), MOST_COLUMNS - int(size[-1]))
    fitting = order[(size[order] <= room - (there_anyway - int(size[-1]))) | used[order]]
    taken = fitting[(np.cumsum(size[fitting]) <= room) | used[fitting]]
    columns = np.flatnonzero(np.isin(numbers, taken) | (numbers == blocks.candidates))
    indices = move(columns, at.point)
    small = objective.columns(indices)
    hessian = to_numpy(small.hessian(small.evaluate(gather(at.point, indices), at.prediction))).astype(np.float64)
    members = [np.flatnonzero(numbers[columns] == block) for block in sorted(taken.tolist())]
    model = BlockModel(
        hessian,
        hessian @ point[columns] - slope[columns],
        members,
        np.flatnonzero(numbers[columns] == blocks.candidates),
        float(namespace(at.point).finfo(at.point.dtype).eps),
    )
    names = sorted(taken.tolist())
    start = tuple(g for g, block in enumerate(names) if used[block])
    return Known(model, start, names, columns, blocks.budget, taken.size == order.size)


@dataclass(frozen=True, eq=False)
class Fit:
    """The minimiser of the quadratic over some blocks, with what determines the gain of every other block.

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
    left: list[np.ndarray]  # of the Hessian's diagonal blocks, when the chosen columns are refitted; by table


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """Blocks of similar sizes, side by side: at most half of every row is padding.

    Attributes
    ----------
    blocks : array of int, shape (b,)
        Which blocks.
    columns : array of int, shape (b, w)
        Their columns, and anything for padding.
    there : array of bool, shape (b, w)
        Where there are columns.
    both : array of bool, shape (b, w, w)
        Where there are pairs of them.
    """

    blocks: np.ndarray
    columns: np.ndarray
    there: np.ndarray
    both: np.ndarray

    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return some rows, by block: shape (b, rows, w), zero for padding."""
        shaped: np.ndarray = np.where(self.there[:, None, :], rows[:, self.columns].transpose(1, 0, 2), 0.0)
        return shaped


def tables(blocks: list[np.ndarray]) -> Iterator[Table]:
    """Yield tables of blocks whose sizes have the same power of two above them."""
    size = np.array([block.size for block in blocks], dtype=int)
    exponents = np.ceil(np.log2(np.maximum(size, 1))).astype(int)
    for exponent in np.unique(exponents):
        some = np.flatnonzero(exponents == exponent)
        there = np.arange(size[some].max()) < size[some, None]
        columns = np.zeros(there.shape, dtype=np.intp)
        columns[there] = np.concatenate([blocks[g] for g in some])
        yield Table(some, columns, there, there[:, :, None] & there[:, None, :])


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

    Attributes
    ----------
    work : int
        About how many multiplications were made so far.
    """

    def __init__(
        self, hessian: np.ndarray, linear: np.ndarray, blocks: list[np.ndarray], free: np.ndarray, eps: float
    ) -> None:
        diagonal = hessian.diagonal()
        self._scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
        self._hessian = hessian * self._scale[:, None] * self._scale
        self._linear = linear * self._scale
        self._free, self._blocks = free, blocks
        self._tables = list(tables(blocks))
        self._eps, self._ridge = eps, max(1e-9, 10.0 * eps)
        self._squares = sum(table.both.size for table in self._tables)
        self._cubes = sum(table.both.size * table.there.shape[1] for table in self._tables)
        self.work = 0

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
        factor = inverse_factor(rows[:, columns], self._eps)  # of columns that depend on others nothing is lost
        inverse = factor @ factor.T
        regressions = inverse @ rows
        coef = inverse @ self._linear[columns]
        left = []
        for table in self._tables:
            whole = np.where(table.both, self._hessian[table.columns[:, :, None], table.columns[:, None, :]], 0.0)
            left.append(whole - table.of_rows(regressions).transpose(0, 2, 1) @ table.of_rows(rows))
        self.work += _OVERHEAD + columns.size * (columns.size * (columns.size + rows.shape[1]) + self._squares)
        return Fit(
            some,
            0.5 * float(coef @ self._linear[columns]),
            columns,
            coef,
            self._linear - coef @ rows,
            inverse,
            regressions,
            left,
        )

    def gains(self, slope: np.ndarray, left: list[np.ndarray]) -> np.ndarray:
        """Return by how much each block would lower the quadratic, with a refit of all coefficients."""
        found = np.zeros(len(self._blocks))
        for table, hessian in zip(self._tables, left, strict=True):
            pull = np.where(table.there, slope[table.columns], 0.0)
            ridge = np.eye(table.there.shape[1]) * np.where(table.there, self._ridge, 1.0 + self._ridge)[:, :, None]
            answer = np.linalg.solve(hessian + ridge, pull[:, :, None])[:, :, 0]
            found[table.blocks] = 0.5 * np.sum(answer * pull, axis=1)
        self.work += self._cubes
        return found

    def drops(self, fit: Fit) -> Iterator[tuple[int, float, np.ndarray, list[np.ndarray]]]:
        """Yield each chosen block with what it costs to drop it, and the slope and the Hessian's blocks without it."""
        for g, cost, own, inverted, back in self.costs(fit):
            images = fit.regressions[own]
            left = []
            for table, before in zip(self._tables, fit.left, strict=True):
                shaped = table.of_rows(images)
                left.append(before + shaped.transpose(0, 2, 1) @ (inverted @ shaped))
            self.work += _OVERHEAD + images.shape[0] * (images.shape[0] * images.shape[1] + self._squares)
            yield g, cost, fit.slope + back @ images, left

    def costs(self, fit: Fit) -> Iterator[tuple[int, float, slice, np.ndarray, np.ndarray]]:
        """Yield each chosen block, its cost, its rows, and its part of the inverse, inverted, alone and applied."""
        start = self._free.size
        for g in fit.chosen:
            own = slice(start, start + self._blocks[g].size)
            start = own.stop
            inverted = np.linalg.pinv(fit.inverse[own, own], hermitian=True)
            back = inverted @ fit.coef[own]
            self.work += _OVERHEAD + 10 * self._blocks[g].size ** 3
            yield g, 0.5 * float(fit.coef[own] @ back), own, inverted, back


class BlockChoice:
    """Some chosen blocks with the minimiser of the quadratic over them, for `local_search`.

    Once a certain amount of work is done nothing more is gained by additions or exchanges.

    Parameters
    ----------
    model : BlockModel
        The quadratic.
    chosen : iterable of int
        The blocks.
    end : float
        The `work` of the model after which the search ends.
    """

    n_free = 0

    def __init__(self, model: BlockModel, chosen: Iterable[int], end: float) -> None:
        self._model, self._end, self.chosen = model, end, tuple(sorted(chosen))
        self._fit: Fit | None = None

    @property
    def fit(self) -> Fit:
        """The minimiser, computed when it is first needed."""
        if self._fit is None:
            self._fit = self._model.fit(self.chosen)
        return self._fit

    @property
    def size(self) -> int:
        return len(self.chosen)

    @property
    def decrease(self) -> float:
        return self.fit.decrease

    def copy(self) -> BlockChoice:
        other = BlockChoice(self._model, self.chosen, self._end)
        other._fit = self._fit
        return other

    def add(self, unit: int) -> bool:
        self.chosen, self._fit = tuple(sorted((*self.chosen, unit))), None
        return True

    def drop(self, place: int) -> None:
        self.chosen, self._fit = self.chosen[:place] + self.chosen[place + 1 :], None

    def costs(self) -> np.ndarray:
        if self._model.work > self._end:
            raise _WorkIsDone
        return np.array([cost for _, cost, *_ in self._model.costs(self.fit)])

    def best_addition(self) -> tuple[int, float]:
        if self._model.work > self._end:
            return 0, 0.0
        gains = self._model.gains(self.fit.slope, self.fit.left)
        gains[list(self.chosen)] = -np.inf
        best = int(np.argmax(gains)) if gains.size else 0
        return best, float(gains[best]) if gains.size else 0.0

    def best_exchange(self) -> tuple[int, int, float]:
        return max(self.exchanges(), default=(0, 0, 0.0), key=lambda exchange: exchange[2])

    def exchanges(self) -> Iterator[tuple[int, int, float]]:
        """Yield the place of each chosen block, the best block to take that place, and the decrease."""
        if self._model.work > self._end:
            return
        for place, (_, cost, slope, left) in enumerate(self._model.drops(self.fit)):
            gains = self._model.gains(slope, left) - cost
            gains[list(self.chosen)] = -np.inf
            added = int(np.argmax(gains))
            if gains[added] > -np.inf:
                yield place, added, float(gains[added])


class _WorkIsDone(Exception):
    """Raised by a search when no more work may be done."""


def search(model: BlockModel, start: Iterable[int], budget: int, negligible: float, most_work: int = _MOST_WORK) -> Fit:
    """Return the best set that exchanges and add-drop moves lead to, of at most `budget` blocks, within some work."""
    choice = BlockChoice(model, start, model.work + most_work)
    grow(choice, budget, negligible)
    best = descend(choice, budget, negligible, negligible)
    counts = sorted({1, ceil(budget / 4), ceil(budget / 2), budget})
    with suppress(_WorkIsDone):
        before = None
        while best is not before:
            before = best
            for count in counts:
                for move in (add_then_drop, drop_then_add):
                    moved = move(best, budget, count, negligible)
                    if moved.chosen != best.chosen:
                        moved = descend(moved, budget, negligible, negligible)
                        best = moved if moved.decrease > best.decrease + negligible else best
    return best.fit
