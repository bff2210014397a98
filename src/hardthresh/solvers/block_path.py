"""The best few blocks of columns for every number of blocks at once, where f is quadratic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf

import numpy as np

from hardthresh.arrays import double, move, namespace
from hardthresh.core.constraint import Constraint
from hardthresh.core.objective import Evaluation
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array
from hardthresh.objectives import LinearModel, MultiOutputModel

from .block_tableau import BlockChoice, BlockModel
from .local_search import forward_backward

MOST_COLUMNS = 512
"""Up to so many columns all of them are searched: the swept matrix of each number of blocks takes 2 MB then."""
_MOST_SCREENED = 1024
"""Of more columns, so many are searched at most: 8 MB for each number of blocks. They are one and a half times as many
as the largest support may have: cross-validation of gravier in groups of 20 genes, with supports of up to 600 columns,
takes 5 s, and more than 60 s by pursuit for each number of groups."""
_FIRST_COLUMNS = 192
"""Of more columns, the search begins with about so many, of the blocks that are best alone."""
_ROUNDS = 3
"""How often blocks are screened at the fits of a search."""
_TINY = float(np.finfo(np.float64).tiny)
_SCREENING_RATIO = 0.35
"""As for single columns; see `working_set.effort.EFFORTS`."""


@serial_blas()
def block_supports(
    objective: LinearModel | MultiOutputModel,
    constraint: Constraint,
    null: Evaluation,
    sizes: Sequence[int],
    tol: float,
) -> list[np.ndarray] | None:
    """Return the columns of the best 0, 1, 2, ... blocks that sweeps over these numbers find.

    Parameters
    ----------
    objective : LinearModel or MultiOutputModel
        f; `traits.quadratic`.
    constraint : Constraint
        A set whose structure has blocks, for matrices of whole rows.
    null : Evaluation
        f at its minimiser on the coordinates that are always allowed.
    sizes : sequence of int
        The numbers of blocks, increasing.
    tol : float
        The decrease of f that counts, relative to its value there.

    Returns
    -------
    list of array of int, or None
        Coordinates, or rows of a matrix, increasing, for each size. None if f is not quadratic, the set has no blocks,
        or so many as are asked for have more than 682 columns, of more than `MOST_COLUMNS`.

    Notes
    -----
    Numbers of blocks share the work: each is reached from the one before and the one after it, by additions, removals
    and exchanges, and by add-drop moves of half of the blocks. Of more than `MOST_COLUMNS` columns the search is on
    those of some blocks, of as many columns or of one and a half times as many as the largest support may have: at
    first those blocks that lower f most alone; at the fits of each search others are screened, and those join whose
    score is near that of the least useful chosen block. There are no add-drop moves then: with 1,000 and 3,000 columns
    in blocks of five f is 0.05 % and 0.4 % higher without them, in a quarter of the time.

    Cost: one data pass, the Hessian of the columns that are searched, and of p of them :math:`m p^2` multiplications
    each time a block of m is added or dropped. Heuristic: of 384 fits with correlated groups, without screening, 361
    have the value that a run of pursuit for each reaches, 9 a lower one and 14 a higher one, by 2.4 % at most, in a
    quarter of the time.
    """
    structure = constraint.structure(tuple(objective.shape))
    blocks = None if structure is None else structure.blocks()
    if blocks is None or not objective.traits.quadratic:
        return None
    outputs = 1 if len(objective.shape) == 1 else int(objective.shape[1])
    always, *members = (
        np.unique(some // outputs) for some in (blocks.always, *(blocks.members(g) for g in range(blocks.count)))
    )
    members = [np.setdiff1d(some, always) for some in members]
    columns = np.sort([some.size for some in members])
    widest = int(columns[max(columns.size - max(sizes), 0) :].sum())
    most = max(MOST_COLUMNS, widest + widest // 2)
    if columns.sum() > MOST_COLUMNS and most > _MOST_SCREENED:
        return None
    search = _Search(objective, always, members, null, sizes, max(tol, 1e-15) * abs(null.value))
    return search.supports(max(_FIRST_COLUMNS, widest), most)


@dataclass(frozen=True, slots=True)
class _Fit:
    """A fit of some blocks: its columns, their coefficients, and by how much f rises without its least useful block."""

    columns: np.ndarray
    coef: np.ndarray
    cost: float


class _Search:
    """Searches on more and more blocks of a quadratic.

    Parameters
    ----------
    objective, null, sizes :
        As for `block_supports`.
    always : array of int
        The columns that always stay.
    members : list of array of int
        The columns of each block.
    negligible : float
        The decrease of f that counts.
    """

    def __init__(
        self,
        objective: LinearModel | MultiOutputModel,
        always: np.ndarray,
        members: list[np.ndarray],
        null: Evaluation,
        sizes: Sequence[int],
        negligible: float,
    ) -> None:
        self._products: LinearModel
        self._objective, self._always, self._members, self._null = objective, always, members, null
        self._sizes, self._negligible = sizes, negligible
        self._columns = np.array([some.size for some in members], dtype=np.intp)
        self._owner = np.repeat(np.arange(len(members)), self._columns)
        if isinstance(objective, MultiOutputModel):
            self._products, self._ridge = objective.column_products(), double(objective.row_ridge())
        else:
            self._products, self._ridge = objective, np.zeros(objective.shape[0])
        curvature = double(self._products.hessian_diag(null)) + self._ridge
        self._half_inverse = np.divide(0.5, curvature, out=np.zeros_like(curvature), where=curvature > 0)

    def supports(self, first: int, most: int) -> list[np.ndarray]:
        """Return the columns of each size; a search with screening begins with about `first`, and ends with `most`."""
        if self._columns.sum() <= MOST_COLUMNS:
            return [fit.columns for fit in self._fits(np.arange(self._columns.size))]
        inside = self._first(self._scores(self._null.gradient), first)
        found = self._fits(inside)
        for _ in range(_ROUNDS):
            new = self._screened(inside, found, most)
            if not new.size:
                break
            inside = np.sort(np.concatenate([inside, new]))
            found = self._fits(inside)
        return [fit.columns for fit in found]

    def _fits(self, inside: np.ndarray) -> list[_Fit]:
        """Return the fit of each size, of some of the blocks."""
        columns = np.unique(np.concatenate([self._always, *(self._members[g] for g in inside)]))
        like = self._null.gradient
        hessian = double(self._products.columns(move(columns, like)).hessian(self._null))
        hessian = hessian + np.diag(self._ridge[columns])
        w, gradient = (double(whole)[columns] for whole in (self._null.point, like))
        model = BlockModel(
            hessian,
            hessian @ w - gradient,
            [columns.searchsorted(self._members[g]) for g in inside],
            columns.searchsorted(self._always),
            float(namespace(like).finfo(like.dtype).eps),
        )
        sizes = [min(size, inside.size) for size in self._sizes]
        every = inside.size == len(self._members)
        counts = {size: [ceil(size / 2)] for size in sizes if size and every}
        best = forward_backward(BlockChoice(model, [], inf), set(sizes), self._negligible, self._negligible, counts)
        of_size = {
            size: _Fit(columns[one.columns], one.coef[one.columns], float(np.min(one.costs(), initial=inf)))
            for size, one in best.items()
        }
        return [of_size[size] for size in sizes]

    def _screened(self, inside: np.ndarray, found: list[_Fit], most: int) -> np.ndarray:
        """Return the blocks outside with nearly the score of the least useful one of a fit, as far as there is room."""
        best, like = np.zeros(self._columns.size), self._null.point
        for fit in found:
            point = np.zeros(tuple(like.shape))
            point[fit.columns] = fit.coef
            at = self._objective.evaluate(namespace(like).astype(move(point, like), like.dtype))
            scores = self._scores(at.gradient) / max(fit.cost, self._negligible, _TINY)
            best = np.maximum(best, np.where(scores > _SCREENING_RATIO, scores, 0.0))
        best[inside] = 0.0
        return self._first(best, most - int(self._columns[inside].sum()))

    def _first(self, scores: np.ndarray, room: int) -> np.ndarray:
        """Return the blocks of the highest scores above 0 that together have no more columns, increasing."""
        order = np.argsort(-scores, kind="stable")[: int(np.count_nonzero(scores))]
        return np.sort(order[np.cumsum(self._columns[order]) <= room])

    def _scores(self, gradient: Array) -> np.ndarray:
        """Return about by how much each block alone lowers f, as if its columns were independent."""
        squares = double(gradient) ** 2
        each = (squares if squares.ndim == 1 else squares.sum(axis=1)) * self._half_inverse
        return np.bincount(self._owner, each[np.concatenate(self._members)], minlength=self._columns.size)
