"""The supports of all budgets at once, by the quadratic model at the null model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardthresh.arrays import double, move, namespace, to_numpy
from hardthresh.core.constraint import Constraint
from hardthresh.core.objective import Evaluation
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array
from hardthresh.losses import MultiTask
from hardthresh.objectives import LinearModel, MultiOutputModel

from .auto import choose_solver
from .block_path import block_supports
from .start import starting_point
from .working_set import WorkingSet
from .working_set.rows import OutputBlock, null_model


@serial_blas()
def model_supports(
    objective: LinearModel | MultiOutputModel, null: Evaluation, constraints: Sequence[Constraint], tol: float
) -> list[np.ndarray] | None:
    r"""Return the supports that the quadratic model of f at the null model chooses, for several budgets.

    Parameters
    ----------
    objective : LinearModel or MultiOutputModel
        f.
    null : Evaluation
        f at the null model; see `null_evaluation`.
    constraints : sequence of Constraint
        Sets that differ in their budgets only, which increase.
    tol : float
        The decrease of f that counts, relative to the progress since the null model.

    Returns
    -------
    list of array of int, or None
        The coordinates of each set, increasing; of matrices the rows. None for sets of anything but coordinates, rows,
        or blocks of them.

    Notes
    -----
    These are what one step of Newton's method from the null model would choose; f is then to be minimised on each of
    them, see `refit_supports`. For several outputs the model is least squares of their rotations, with the mean of the
    second derivatives of the examples: see `WorkingSet`, which searches single coordinates and rows, for all budgets
    together and with effort "fast". Blocks are searched by `block_supports`. Heuristic.
    """
    shape, budgets = tuple(objective.shape), []
    for constraint in constraints:
        structure = constraint.structure(shape)
        if structure is None:
            return None
        budgets.append(structure.budget)
    model, at = _quadratic_model(objective, null)
    if model is None:
        return None
    solver = choose_solver(model, constraints[-1], tol=tol)
    if isinstance(solver, WorkingSet):
        found = WorkingSet(effort="fast", tol=solver.tol).path(model, constraints)
        rows = len(shape) > 1
        return [to_numpy(each.support.rows if rows else each.support.indices) for each in found]  # type: ignore[attr-defined]
    return block_supports(model, constraints[-1], at, budgets, tol)


def null_evaluation(objective: LinearModel | MultiOutputModel, constraint: Any) -> Evaluation:
    """Return f at its minimiser on what a set always allows, such as intercepts."""
    if isinstance(objective, MultiOutputModel):
        return null_model(objective, np.asarray(constraint.free, dtype=np.int64))
    return starting_point(objective, constraint, None)[0]


def _quadratic_model(
    objective: LinearModel | MultiOutputModel, at: Evaluation
) -> tuple[LinearModel | MultiOutputModel | None, Evaluation]:
    """Return the quadratic model of f around a point, and its value and gradient there; None if it is flat."""
    if objective.traits.quadratic:
        return objective, at
    if isinstance(objective, LinearModel):
        model = objective.quadratic_model(at)
        return model, model.evaluate(at.point, at.prediction)
    block = OutputBlock.of(double(objective.output_block(at)))
    if block is None:
        return None, at
    u = at.prediction if objective.offset is None else at.prediction - objective.offset
    into, back = (_like(part, u) for part in (block.into, block.back))
    rotated = u @ into - objective.loss.gradient(objective.y, at.prediction) @ back
    least_squares = MultiOutputModel(
        objective.design, rotated, MultiTask(), sample_weight=objective.weights, l2=objective.row_ridge() / block.size
    )
    return least_squares, least_squares.evaluate(at.point @ into)


def _like(part: np.ndarray, like: Array) -> Array:
    return namespace(like).astype(move(part, like), like.dtype)
