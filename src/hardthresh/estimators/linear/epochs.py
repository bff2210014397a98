"""Fits of `StochasticIHT` to tables in blocks: epochs over the blocks, and a fit of the chosen columns to all rows."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np
from sklearn.base import clone

from hardthresh.arrays import to_numpy
from hardthresh.constraints import RowSparsity, Sparsity
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.randomness import Purpose, generator
from hardthresh.core.result import Result
from hardthresh.designs import Engine, Rows
from hardthresh.designs.engine import NoRows
from hardthresh.designs.reading_log import counted_reading
from hardthresh.objectives.block_rows import NO_WEIGHT
from hardthresh.solvers import StochasticIHT, WorkingSet, minimize

from .problem import Problem

_MEMORIES = 2
"""The features stay the same for so many times the batches that count in the average of the gradients, and for an epoch
at least: arbitrary, 10 batches for an average of .8."""


def learned_by_epochs(model: Any, engine: Engine, solver: StochasticIHT, seed: int, **options: Any) -> tuple[Any, bool]:
    """Return a copy of a model that has learned from the blocks of a table, and whether its features settled.

    Each epoch takes the blocks in the order of ``default_rng((seed, epoch, purpose))``, as `partial_fit` would.

    Parameters
    ----------
    model : StreamedModel
        The settings; `max_iter` is the largest number of batches.
    engine : Engine
        The table.
    solver : StochasticIHT
        The solver of the model.
    seed : int
        That of the orders.
    **options : object
        What `partial_fit` takes besides, such as `classes`.
    """
    learner = clone(model).set_params(verbose=False)
    n_blocks = len(engine.blocks)
    least = max(n_blocks, round(_MEMORIES / (1.0 - solver.average)))
    last: list[int] | None = None
    same = batches = 0
    for epoch in count():
        order = generator(seed, epoch, Purpose.ORDER_OF_BLOCKS).permutation(n_blocks)
        with counted_reading(n_blocks) as counted:
            for number in order.tolist():
                rows = _batch(engine, number)
                if rows is None:
                    continue
                learner.partial_fit(rows.X, rows.y, sample_weight=rows.weight, offset=rows.offset, **options)
                counted(rows.nbytes)
                support = to_numpy(learner.support_).tolist()
                same, last, batches = same + 1 if support == last else 0, support, batches + 1
                if same >= least or batches >= model.max_iter:
                    return learner, same >= least
        if not batches:
            raise InvalidInputError(NO_WEIGHT)
    raise AssertionError("epochs have no end")


def _batch(engine: Engine, number: int) -> Rows | None:
    """Return the rows of a block, None if none of them counts."""
    with suppress(NoRows):
        rows = engine.rows([number])
        if rows.weight is None or np.any(rows.weight):
            return rows
    return None


def refitted(problem: Problem, support: np.ndarray, tol: float, max_iter: int) -> Result:
    """Return the fit of chosen columns to all rows of a table, whose products or entries the first reading has kept."""
    constraint: Any = problem.constraint
    free = {
        *support.tolist(),
        *getattr(constraint, "free", ()),
        *range(problem.mean.shape[0], problem.objective.shape[0]),
    }
    if isinstance(constraint, RowSparsity):
        fixed: Any = RowSparsity(0, free=tuple(sorted(free)))
    else:
        bounds = {name: getattr(constraint, name, None) for name in ("lower", "upper")}
        fixed = Sparsity(0, free=tuple(sorted(free)), **bounds)
    return minimize(
        problem.objective,
        fixed,
        WorkingSet(tol=tol),
        tol=tol,
        max_iter=max_iter,
    )
