"""Local search over whole groups of coordinates, on the quadratic model of f."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from math import ceil

import numpy as np

from hardthresh.arrays import gather, move, namespace, scatter, to_numpy
from hardthresh.core.constraint import Constraint, Projection, Structure
from hardthresh.core.objective import Evaluation, LinearObjective, Objective
from hardthresh.core.support import Support
from hardthresh.core.typing import Array

from .block_tableau import BlockChoice, BlockModel, WorkIsDone
from .local_search import add_then_drop, descend, drop_then_add, grow

_LEAST_COLUMNS, _TIMES_CHOSEN = 256, 4
"""Number of columns of the search: at least so many, and so many times those that are chosen. Of 32 models of groups 3
end higher with at least 64 and 1 with 128; none differs with 512 or 1,024, nor with 1 to 16 times."""

MOST_COLUMNS = 2048
"""Most columns of a model: their Hessian takes 32 MB, and what is kept of its blocks at most 128."""

_MOST_WORK = 10**10
"""Most multiplications of one search: seconds, after which the best set so far is the answer."""


def search_blocks(
    objective: Objective, constraint: Constraint, at: Evaluation, support: Support, negligible: float
) -> Projection | None:
    """Return a better set of whole blocks than that of a minimiser, by the quadratic model of f; None if none is found.

    The blocks with the highest scores, :math:`\\sum_j g_j^2 / 2 H_{jj}`, join those that are chosen. On the Hessian of
    their columns the best exchange of one block for another is made as long as one helps, then add-drop moves.

    Parameters
    ----------
    objective, constraint, at, support :
        f, a set whose structure has blocks, f at a minimiser on its support, and this support.
    negligible : float
        The decrease of f that does not count.

    Notes
    -----
    Cost: one data pass, and that of the Hessian of a few hundred columns. The work of the search is bounded by a count
    of multiplications, which is the same on every machine; then the best set so far is returned. There is no search if
    there are more than `MOST_COLUMNS` chosen columns. Heuristic.
    """
    known = block_model(objective, constraint, at, support)
    if known is None:
        return None
    before = BlockChoice(known.model, known.start, np.inf).decrease
    found = search(known.model, known.start, known.budget, negligible)
    if not found.decrease > before + negligible:
        return None
    return known.structure.placed(constraint, known.point(found, at.point), [known.names[g] for g in found.chosen])


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
    structure : Structure
        That of the set.
    """

    model: BlockModel
    start: tuple[int, ...]
    names: list[int]
    columns: np.ndarray
    budget: int
    complete: bool
    structure: Structure

    def point(self, choice: BlockChoice, like: Array) -> Array:
        """Return a minimiser as a full point."""
        coef = namespace(like).asarray(move(choice.coef, like), dtype=like.dtype)
        return scatter(coef, move(self.columns, like), like.shape[0])


def block_model(objective: Objective, constraint: Constraint, at: Evaluation, support: Support) -> Known | None:
    """Return the model of the blocks with the highest scores: a few hundred columns, and at most `MOST_COLUMNS`.

    None where the set has no blocks, or the chosen ones have too many columns.

    Cost: one data pass, and that of the Hessian of the columns.
    """
    structure = constraint.structure(tuple(at.point.shape))
    blocks = None if structure is None else structure.blocks()
    if structure is None or blocks is None or not isinstance(objective, LinearObjective):
        return None
    point, slope = (to_numpy(x).astype(np.float64) for x in (at.point, at.gradient))
    diagonal = to_numpy(objective.hessian_diag(at)).astype(np.float64)
    score = np.where(diagonal > 0, slope * slope / np.where(diagonal > 0, 2.0 * diagonal, 1.0), 0.0)
    used = np.zeros(blocks.count, dtype=bool)
    used[to_numpy(structure.chosen(support))] = True
    free = np.asarray(blocks.always, dtype=np.intp)
    covered = np.zeros(point.size, dtype=bool)
    covered[free] = True
    covered[blocks.columns[used[blocks.owner]]] = True
    scores = np.bincount(blocks.owner, weights=np.where(covered, 0.0, score)[blocks.columns], minlength=blocks.count)
    scores[used] = np.inf
    size = np.bincount(blocks.owner, minlength=blocks.count)
    order = np.argsort(-scores, kind="stable")
    chosen = int(np.count_nonzero(covered)) - free.size
    if chosen + free.size > MOST_COLUMNS:
        return None
    room = min(max(_LEAST_COLUMNS, _TIMES_CHOSEN * chosen), MOST_COLUMNS - free.size)
    fitting = order[(size[order] <= room - chosen) | used[order]]
    taken = fitting[(np.cumsum(np.where(used, 0, size)[fitting]) <= room - chosen) | used[fitting]]
    names = sorted(taken.tolist())
    members = [blocks.members(g) for g in names]
    columns = np.unique(np.concatenate([free, *members]).astype(np.intp))
    indices = move(columns, at.point)
    small = objective.columns(indices)
    hessian = to_numpy(small.hessian(small.evaluate(gather(at.point, indices), at.prediction))).astype(np.float64)
    model = BlockModel(
        hessian,
        hessian @ point[columns] - slope[columns],
        [np.searchsorted(columns, np.setdiff1d(block, free)) for block in members],
        np.searchsorted(columns, free),
        float(namespace(at.point).finfo(at.point.dtype).eps),
    )
    start = tuple(g for g, block in enumerate(names) if used[block])
    return Known(model, start, names, columns, structure.budget, taken.size == order.size, structure)


def search(
    model: BlockModel, start: Iterable[int], budget: int, negligible: float, most_work: int = _MOST_WORK
) -> BlockChoice:
    """Return the best set that exchanges and add-drop moves lead to, of at most `budget` blocks, within some work."""
    choice = BlockChoice(model, start, model.work + most_work)
    grow(choice, budget, negligible)
    best = descend(choice, budget, negligible, negligible)
    counts = sorted({1, ceil(budget / 4), ceil(budget / 2), budget})
    with suppress(WorkIsDone):
        before = None
        while best is not before:
            before = best
            for count in counts:
                for move in (add_then_drop, drop_then_add):
                    moved = move(best, budget, count, negligible)
                    if moved.chosen != best.chosen:
                        moved = descend(moved, budget, negligible, negligible)
                        best = moved if moved.decrease > best.decrease + negligible else best
    return best
