"""Blocks of columns that are chosen whole, with the minimiser of a quadratic over them, kept by sweeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_lapack_funcs
from scipy.linalg.blas import dgemm

from hardthresh.arrays.linalg import DEPENDENT

OVERHEAD = 10**5
"""Cost of a call of the array library, in multiplications."""

_SAFE = 1000
"""Units of rounding, for each column that is swept, below which a pivot is that of a column that depends on others; at
least `DEPENDENT`."""
_SWEEPS = 100
"""Number of sweeps after which all is computed anew. Arbitrary: after 300 random ones of four pairs of columns that are
copies but for 1e-6 of their squares, the decrease differs by 2e-8 from that of a new start."""


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
    """

    blocks: np.ndarray
    columns: np.ndarray
    there: np.ndarray

    @property
    def pairs(self) -> int:
        """The number of pairs of columns, padding included."""
        return int(self.there.size) * int(self.there.shape[1])

    def diagonal_blocks(self, matrix: np.ndarray, there: np.ndarray) -> np.ndarray:
        """Return the blocks of a matrix, shape (b, w, w): zero except where `there` are columns."""
        whole = matrix[self.columns[:, :, None], self.columns[:, None, :]]
        shaped: np.ndarray = np.where(there[:, :, None] & there[:, None, :], whole, 0.0)
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
        yield Table(some, columns, there)


class BlockModel:
    r"""The quadratic :math:`\tfrac{1}{2} b^\top H b - c^\top b` over blocks of coordinates.

    With several right-hand sides c it is the sum of their quadratics, each with its own b.

    Parameters
    ----------
    hessian : array, shape (p, p)
        H, positive semidefinite.
    linear : array, shape (p,) or (p, q)
        c.
    blocks : list of arrays of int
        The coordinates of each block; blocks may overlap.
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
        self.scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
        p = self.scale.size
        sides = linear.reshape(p, -1) * self.scale[:, None]
        self.augmented = np.zeros((p + sides.shape[1], p + sides.shape[1]))
        self.augmented[:p, :p] = hessian * self.scale[:, None] * self.scale
        self.augmented[:p, p:], self.augmented[p:, :p] = sides, sides.T
        self.sides = linear.shape[1:]
        self.blocks, self.free, self.eps = blocks, free, eps
        self.tables = list(tables(blocks))
        self.ridge = max(1e-9, 10.0 * eps)
        self.squares = sum(table.pairs for table in self.tables)
        self.cubes = sum(table.pairs * table.there.shape[1] for table in self.tables)
        self.work = 0


class BlockChoice:
    """Some chosen blocks with the minimiser of the quadratic over them: a workspace for `local_search`.

    The symmetric matrix of H and c, of which the columns that are chosen are swept, has the negative inverse of their
    part of H, the regressions of all other columns on them, what these leave of H, the coefficients and the slopes. To
    add or drop a block of m of p columns takes :math:`m p^2` multiplications. Columns that depend on those swept stay
    as they are, until a block leaves on which they depend. Once a certain amount of work is done nothing more is gained
    by additions or exchanges.

    Parameters
    ----------
    model : BlockModel
        The quadratic.
    chosen : iterable of int
        The blocks.
    end : float
        The `work` of the model after which the search ends.

    References
    ----------
    J. H. Goodnight (1979), *A tutorial on the SWEEP operator*, The American Statistician 33, for the sweeps.
    """

    n_free = 0

    def __init__(self, model: BlockModel, chosen: Iterable[int], end: float) -> None:
        self._model, self._end, self.chosen = model, end, tuple(sorted(chosen))
        self._kept_out: int | None = None
        self._begin()

    @property
    def size(self) -> int:
        return len(self.chosen)

    @property
    def decrease(self) -> float:
        """By how much the quadratic is lower than at zero."""
        p = self._swept.size
        return -0.5 * float(np.trace(self._swept_matrix[p:, p:]))

    @property
    def columns(self) -> np.ndarray:
        """The columns of the chosen blocks, and the free ones, increasing."""
        return np.flatnonzero(self._covers > 0)

    @property
    def coef(self) -> np.ndarray:
        """The coefficients of all columns, shape (p,) or (p, q)."""
        coef = np.where(self._swept[:, None], self._sides[: self._swept.size], 0.0) * self._model.scale[:, None]
        return coef.reshape(-1, *self._model.sides)

    def copy(self) -> BlockChoice:
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        for name in ("_swept_matrix", "_covers", "_swept"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def add(self, unit: int) -> bool:
        self.chosen = tuple(sorted((*self.chosen, unit)))
        self._covers[self._model.blocks[unit]] += 1
        self._enter(self._model.blocks[unit])
        return True

    def drop(self, place: int) -> None:
        gone = self.chosen[place]
        self.chosen = self.chosen[:place] + self.chosen[place + 1 :]
        if self._sweeps >= _SWEEPS:
            self._begin()
            return
        block = self._model.blocks[gone]
        self._covers[block] -= 1
        self._sweep(block[self._swept[block] & (self._covers[block] == 0)], -1.0)
        self._enter(np.flatnonzero(self._covers > 0))

    def costs(self) -> np.ndarray:
        """Return by how much the quadratic rises when each chosen block is dropped and the others are refitted."""
        if self._model.work > self._end:
            raise WorkIsDone
        cost = np.zeros(len(self._model.blocks))
        private = self._swept & (self._covers == 1)
        some = np.zeros(cost.size, dtype=bool)
        some[list(self.chosen)] = True
        for table in self._model.tables:
            rows = some[table.blocks]
            if rows.any():
                part = Table(table.blocks[rows], table.columns[rows], table.there[rows])
                own = part.there & private[part.columns]
                inverse = -part.diagonal_blocks(self._swept_matrix, own) + np.eye(own.shape[1]) * ~own[:, :, None]
                coef = np.where(own[:, :, None], self._sides[part.columns], 0.0)
                cost[part.blocks] = 0.5 * np.sum(coef * np.linalg.solve(inverse, coef), axis=(1, 2))
                self._model.work += part.pairs * own.shape[1]
        self._model.work += OVERHEAD
        return cost[list(self.chosen)]

    def gains(self) -> np.ndarray:
        """Return by how much the quadratic falls when each block is added; -inf for those that are chosen."""
        return self._gains([*self._others()])

    def keep_out(self, unit: int | None) -> None:
        """Keep a block that is not chosen out until this is called again; None for no block."""
        self._kept_out = unit

    def best_addition(self) -> tuple[int, float]:
        if self._model.work > self._end:
            return 0, 0.0
        gains = self.gains()
        best = int(np.argmax(gains)) if gains.size else 0
        return best, float(gains[best]) if gains.size else 0.0

    def best_exchange(self) -> tuple[int, int, float]:
        return max(self.exchanges(), default=(0, 0, 0.0), key=lambda exchange: exchange[2])

    def exchanges(self) -> Iterator[tuple[int, int, float]]:
        """Yield the place of each chosen block, the best block to take that place, and the decrease."""
        for place, gains in self.exchange_gains():
            added = int(np.argmax(gains))
            if gains[added] > -np.inf:
                yield place, added, float(gains[added])

    def exchange_gains(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the place of each chosen block, and by how much the quadratic falls when each block takes that place.

        Of blocks that overlap the one that leaves, only the rest is counted: then the decrease is a lower bound.
        """
        if self._model.work > self._end:
            return
        others, p = [*self._others()], self._swept.size
        for place, gone in enumerate(self.chosen):
            block = self._model.blocks[gone]
            own = block[self._swept[block] & (self._covers[block] == 1)]
            rows = self._swept_matrix[own]
            lost = np.linalg.solve(-rows[:, own], rows) if own.size else rows
            after = []
            for table, there, pull, left in others:
                images, back = (
                    np.where(there[:, None, :], part[:, table.columns].transpose(1, 0, 2), 0.0) for part in (rows, lost)
                )
                more = images.transpose(0, 2, 1) @ back
                after.append((table, there, pull + images.transpose(0, 2, 1) @ lost[:, p:], left + more))
            self._model.work += OVERHEAD + own.size * (own.size * rows.shape[1] + self._model.squares)
            yield place, self._gains(after) - 0.5 * float(np.sum(rows[:, p:] * lost[:, p:]))

    def _others(self) -> Iterator[tuple[Table, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the tables, where they have columns that are not chosen, their slopes, and what is left of H there."""
        for table in self._model.tables:
            there = table.there & (self._covers[table.columns] == 0)
            pull = np.where(there[:, :, None], self._sides[table.columns], 0.0)
            yield table, there, pull, table.diagonal_blocks(self._swept_matrix, there)

    def _gains(self, others: Iterable[tuple[Table, np.ndarray, np.ndarray, np.ndarray]]) -> np.ndarray:
        found = np.zeros(len(self._model.blocks))
        for table, there, pull, left in others:
            ridge = np.eye(there.shape[1]) * np.where(there, self._model.ridge, 1.0 + self._model.ridge)[:, :, None]
            found[table.blocks] = 0.5 * np.sum(pull * np.linalg.solve(left + ridge, pull), axis=(1, 2))
        self._model.work += self._model.cubes
        found[[*self.chosen, *([] if self._kept_out is None else [self._kept_out])]] = -np.inf
        return found

    @property
    def _sides(self) -> np.ndarray:
        """The right-hand sides after the sweeps, a row for each column."""
        return self._swept_matrix[:, self._swept.size :]

    def _begin(self) -> None:
        """Sweep all columns of the chosen blocks."""
        self._swept_matrix = self._model.augmented.copy()
        self._swept = np.zeros(self._model.scale.size, dtype=bool)
        self._covers = np.zeros(self._swept.size, dtype=np.intp)  # how many chosen blocks have each column
        self._covers[self._model.free] = 1 + len(self._model.blocks)  # they never leave
        for g in self.chosen:
            self._covers[self._model.blocks[g]] += 1
        self._sweeps = 0
        self._enter(np.flatnonzero(self._covers > 0))

    def _enter(self, columns: np.ndarray) -> None:
        """Sweep columns in, those that are swept already and those that depend on others left out."""
        new = columns[~self._swept[columns]]
        if new.size == 0:
            return
        pivot = self._swept_matrix[np.ix_(new, new)]
        pstrf = get_lapack_funcs("pstrf", (pivot,))
        tolerance = max(DEPENDENT, _SAFE * (int(np.count_nonzero(self._swept)) + new.size) * self._model.eps)
        upper, order, rank, _ = pstrf(pivot, tol=tolerance)
        rank = int(np.count_nonzero(upper.diagonal()[:rank] ** 2 > tolerance))
        if rank:
            self._sweep(np.sort(new[order[:rank] - 1]), 1.0)

    def _sweep(self, columns: np.ndarray, sign: float) -> None:
        """Sweep some columns in, or out with the sign -1."""
        if columns.size == 0:
            return
        matrix, place = self._swept_matrix, np.ix_(columns, columns)
        side = matrix[columns].T  # the matrix is symmetric, and its rows contiguous
        try:
            factor = np.linalg.inv(np.linalg.cholesky(sign * side[columns])).T  # more exact than an inverse
        except np.linalg.LinAlgError:  # of columns that leave, as what enters is definite
            self._begin()
            return
        half = side @ factor
        # in place, as the matrix is large: its transpose is contiguous for Fortran
        dgemm(-sign, half.T, half.T, beta=1.0, c=matrix.T, trans_a=True, overwrite_c=True)
        regressions = half @ factor.T
        matrix[:, columns], matrix[columns] = regressions, regressions.T
        matrix[place] = -sign * (factor @ factor.T)
        self._swept[columns] = sign > 0
        self._sweeps += 1
        self._model.work += OVERHEAD + columns.size * (columns.size + matrix.shape[0]) * matrix.shape[0]


class WorkIsDone(Exception):
    """Raised by a search when no more work may be done."""
