"""The best few blocks of columns for every number of blocks at once, where f is quadratic and has few columns."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np

from hardthresh.arrays import inverse_factor, move, namespace, to_numpy
from hardthresh.core.constraint import Constraint
from hardthresh.core.objective import LinearObjective
from hardthresh.core.threads import serial_blas

from .block_tableau import BlockChoice, BlockModel
from .local_search import forward_backward

MOST_COLUMNS = 512
"""Up to so many columns all of them are searched: the swept matrix of each number of blocks takes 2 MB then. With 1,000
columns in 200 groups a path takes longer than runs of pursuit, which screen them."""


@serial_blas()
def quadratic_block_path(
    objective: LinearObjective,
    constraint: Constraint,
    sizes: Sequence[int],
    ridges: Sequence[float],
    searched: int,
    tol: float,
) -> np.ndarray | None:
    """Return the minimisers over 0, 1, 2, ... blocks that sweeps over these numbers find, with several ridges.

    Parameters
    ----------
    objective : LinearObjective
        f, without a ridge; `traits.quadratic`.
    constraint : Constraint
        A set whose structure has blocks; its free coordinates have no ridge.
    sizes : sequence of int
        The numbers of blocks, increasing.
    ridges : sequence of float
        The ridges.
    searched : int
        The place of the ridge with which the blocks are found; with the others the same blocks are refitted.
    tol : float
        The decrease of f that counts, relative to that from the null model to f = 0.

    Returns
    -------
    array, shape (n_sizes, n_ridges, d), or None
        In double precision. None if f is not quadratic, or has more than `MOST_COLUMNS` columns, or the set no blocks.

    Notes
    -----
    Cost: one data pass, the Hessian, and of p columns :math:`m p^2` multiplications each time a block of m columns is
    added or dropped. Numbers of blocks share the work: each is reached from the one before and the one after it, by
    additions, removals and exchanges, and by add-drop moves of half of the blocks. Heuristic: of 384 fits with
    correlated groups 361 have the value that a run of pursuit for each reaches, 9 a lower one and 14 a higher one, by
    2.4 % at most, in a quarter of the time.
    """
    structure = constraint.structure(tuple(objective.shape))
    blocks = None if structure is None else structure.blocks()
    d = objective.shape[0]
    if blocks is None or not objective.traits.quadratic or len(objective.shape) != 1 or d > MOST_COLUMNS:
        return None
    zeros = objective.zeros()
    at = objective.evaluate(zeros)
    every = move(np.arange(d), zeros)
    hessian = to_numpy(objective.columns(every).hessian(at)).astype(np.float64)
    linear = -to_numpy(at.gradient).astype(np.float64)
    penalised = np.ones(d)
    penalised[blocks.always] = 0.0
    model = BlockModel(
        hessian + np.diag(ridges[searched] * penalised),
        linear,
        [np.setdiff1d(blocks.members(g), blocks.always) for g in range(blocks.count)],
        np.asarray(blocks.always, dtype=np.intp),
        float(namespace(zeros).finfo(zeros.dtype).eps),
    )
    negligible = max(tol * abs(at.value), 1e-15 * abs(at.value))
    start = BlockChoice(model, [], np.inf)
    best = forward_backward(start, sizes, negligible, negligible, {size: [ceil(size / 2)] for size in sizes if size})
    points = np.zeros((len(sizes), len(ridges), d))
    for row, size in enumerate(sizes):
        columns = best[size].columns
        for column, ridge in enumerate(ridges):
            part = hessian[np.ix_(columns, columns)] + np.diag(ridge * penalised[columns])
            points[row, column, columns] = _minimiser(part, linear[columns], model.eps)
    return points


def _minimiser(hessian: np.ndarray, linear: np.ndarray, eps: float) -> np.ndarray:
    """Return a minimiser of a quadratic, with zeros for columns that depend on others."""
    diagonal = hessian.diagonal()
    scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    factor = inverse_factor(hessian * scale[:, None] * scale, eps)
    found: np.ndarray = scale * (factor @ (factor.T @ (scale * linear)))
    return found
