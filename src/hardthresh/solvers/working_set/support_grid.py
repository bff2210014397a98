"""The minimisers on a grid of supports and ridges, each refitted once, from the coefficients of a neighbour."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from hardthresh.arrays import double, gather, move
from hardthresh.constraints import Sparsity
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array
from hardthresh.objectives import LinearModel, MultiOutputModel
from hardthresh.solvers.refinement import FULL_SOLVE, refine
from hardthresh.steps.line_search import Candidate

from .model import union
from .refits import ColumnsToRefit, numpy_parts
from .row_refits import RowsToRefit

ENTRIES = 1 << 23
"""Most entries of the columns that are copied at a time: 64 MB. Arbitrary: refits in parts start farther away, and
take a few more steps."""


def different_refits(chosen: np.ndarray, ridges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the refits of a grid of supports, from the largest ridge to the smallest, each of them once.

    Parameters
    ----------
    chosen : array of bool, shape (n_budgets, n_ridges, n_columns)
        The supports.
    ridges : array, shape (n_ridges,)
        The ridges.

    Returns
    -------
    refit_of : array of int, shape (n_budgets, n_ridges)
        The refit of each place of the grid.
    refits : array of int, shape (n_refits,)
        For each refit one of these places, as a flat index.
    starts : array of int, shape (n_refits,)
        The refit from which it starts: of the same support with a larger ridge, or else of the last budget; or -1.
    """
    n_budgets, n_ridges = chosen.shape[:2]
    refit_of = np.empty((n_budgets, n_ridges), dtype=np.int64)
    refits: list[int] = []
    starts: list[int] = []
    known: dict[tuple[bytes, float], int] = {}
    latest: dict[bytes, int] = {}
    packed = np.packbits(chosen, axis=2)
    for place in np.argsort(-ridges, kind="stable").tolist():
        before, ridge = -1, float(ridges[place])
        for budget in range(n_budgets):
            support = packed[budget, place].tobytes()
            refit = known.get((support, ridge))
            if refit is None:
                refit = known[support, ridge] = len(refits)
                refits.append(budget * n_ridges + place)
                starts.append(latest.get(support, before))
            refit_of[budget, place] = before = latest[support] = refit
    return refit_of, np.array(refits), np.array(starts)


def unconverged_refit(budget: int, ridge: float) -> str:
    """Return what is said of a refit that did not converge."""
    return f"the fit of budget {budget} with ridge {ridge:g} has not converged"


@serial_blas()
def refit_supports(
    objective: LinearModel | MultiOutputModel,
    null: Array,
    free: Sequence[int],
    supports: Sequence[np.ndarray],
    budgets: Sequence[int],
    ridges: np.ndarray,
    bounds: np.ndarray | None = None,
) -> tuple[np.ndarray, list[str]]:
    """Return the minimisers of a model on some supports with each of some ridges.

    Parameters
    ----------
    objective : LinearModel or MultiOutputModel
        f; its own ridge is not used.
    null : array
        A point to start from, such as the null model.
    free : sequence of int
        The coordinates, or rows of a matrix, without a ridge.
    supports : sequence of array of int
        The coordinates, or rows of a matrix, of each support, increasing.
    budgets : sequence of int
        What messages call each of them.
    ridges : array, shape (n_ridges,)
        The ridges, >= 0.
    bounds : array, shape (2, d), optional
        Lower and upper bounds of the coordinates of a `LinearModel`.

    Returns
    -------
    points : array, shape (n_supports, n_ridges, d) or (n_supports, n_ridges, d, q)
        In double precision.
    unconverged : list of str
        Which refits did not converge, in words.

    Notes
    -----
    f is within about 1e-10 of the minimum. Each refit starts from that with the next larger ridge on the same support,
    or from that of the support before. Cost: for each, two to four products of its columns with each other.
    """
    columns, rows = reduce(union, supports), int(objective.weights.shape[0])
    if columns.size * rows > ENTRIES and len(supports) > 1:
        middle = len(supports) // 2
        halves = (slice(middle), slice(middle, None))
        parts = [refit_supports(objective, null, free, supports[i], budgets[i], ridges, bounds) for i in halves]
        return np.concatenate([points for points, _ in parts]), [why for _, whys in parts for why in whys]
    penalised = np.ones(objective.shape[0])
    penalised[list(free)] = 0.0
    indices = move(columns, null)
    few = objective.with_ridge(move(penalised, null)).columns(indices)
    one = np.stack([np.isin(columns, support) for support in supports])
    chosen = np.repeat(one[:, None], ridges.size, axis=1)
    refit_of, refits, starts = different_refits(chosen, ridges)
    budget_of, ridge_of = np.divmod(refits, ridges.size)
    grid = double(gather(null, indices)), one[budget_of], ridges[ridge_of], starts
    if isinstance(few, MultiOutputModel):
        coefs, converged = _refit_rows(few, *grid)
    else:
        box = None if bounds is None else bounds[:, columns]
        model = ColumnsToRefit(*numpy_parts(few), grid[0])
        coefs, converged = model.refits(*grid[1:], box)
        for i in np.flatnonzero(~converged):
            places = np.flatnonzero(one[budget_of[i]])
            found = _refined(few, places, float(ridges[ridge_of[i]]), coefs[i, places], box)
            coefs[i, places], converged[i] = double(found.projection.point), found.minimal
    points = np.zeros((*refit_of.shape, objective.shape[0], *coefs.shape[2:]))
    points[:, :, columns] = coefs[refit_of]
    failed = np.flatnonzero(~converged)
    return points, [unconverged_refit(budgets[budget_of[i]], float(ridges[ridge_of[i]])) for i in failed]


def _refined(
    few: LinearModel, places: np.ndarray, ridge: float, coef: np.ndarray, bounds: np.ndarray | None
) -> Candidate:
    """Return where `refine` leads from some coefficients: along gradients, too, where few losses have curvature."""
    like = few.y
    own = few.double().columns(move(places, like))
    own = own.with_ridge(ridge * own.l2)
    lower, upper = (None, None) if bounds is None else bounds[:, places]
    every = Sparsity(0, free=tuple(range(places.size)), lower=lower, upper=upper)
    return refine(own, every, every.project(move(coef, like)), cg_iterations=0, rounds=FULL_SOLVE)


def _refit_rows(
    few: MultiOutputModel, null: np.ndarray, chosen: np.ndarray, ridges: np.ndarray, starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimisers on several supports of a model of few rows, and which of them have converged."""
    model = RowsToRefit.of(few)
    coefs, converged = np.zeros((ridges.size, *null.shape)), np.zeros(ridges.size, dtype=bool)
    for i, start in enumerate(starts.tolist()):
        rows = np.flatnonzero(chosen[i])
        near = null if start < 0 else coefs[start]
        coefs[i, rows], converged[i] = model.minimiser(rows, float(ridges[i]), near[rows])
    return coefs, converged
