"""The supports of all budgets at once, by quadratic models at few points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hardthresh.arrays import double, move, namespace, to_numpy
from hardthresh.core.constraint import Constraint, coordinate_budget
from hardthresh.core.objective import Evaluation
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array
from hardthresh.losses import MultiTask
from hardthresh.objectives import LinearModel, MultiOutputModel
from hardthresh.objectives.kept_classes import KeptClasses

from .auto import choose_solver
from .block_path import block_supports
from .start import starting_point
from .working_set import WorkingSet
from .working_set.class_refits import refit_classes
from .working_set.rows import OutputBlock, null_model
from .working_set.state import next_checkpoint
from .working_set.support_grid import refit_supports


@serial_blas()
def model_supports(
    objective: LinearModel | MultiOutputModel | KeptClasses,
    constraint: Callable[[int], Constraint],
    budgets: Sequence[int],
    ridge: float,
    tol: float,
) -> list[np.ndarray] | None:
    r"""Return the supports that quadratic models of f choose, for several budgets.

    Parameters
    ----------
    objective : LinearModel, MultiOutputModel or KeptClasses
        f; its own ridge is not used.
    constraint : callable
        The set of a budget.
    budgets : sequence of int
        The budgets, increasing.
    ridge : float
        The ridge of what is not always allowed.
    tol : float
        The decrease of f that counts, relative to the progress since the null model.

    Returns
    -------
    list of array of int, or None
        The coordinates of each set, increasing; of matrices the rows. None for sets of anything but coordinates, rows,
        or blocks of them.

    Notes
    -----
    Up to the first checkpoint, 4, these are what one step of Newton's method from the null model would choose. From
    there to the next checkpoints, 10, 25, ..., the quadratic model is that at the minimiser on what was chosen for the
    checkpoint before, within the bounds of the set. f is then to be minimised on each support, see `refit_supports`.
    For several outputs the model is least squares of their rotations, with the mean of the second derivatives of the
    examples: see `WorkingSet`, which
    searches single coordinates and rows, for all budgets together and with effort "fast". Blocks are searched by
    `block_supports`. Heuristic: by the model at the null model alone the held-out log-losses of two tables of four
    classes, khan_srbct and letters of isolet, are .040 and .098; by these models .026 and .086, and by a search with f
    itself for each budget, which takes three to seven times as long, .025 and .063.
    """
    free, last = constraint(0).free, max(budgets)  # type: ignore[attr-defined]
    penalised = np.ones(objective.shape[0])
    penalised[list(free)] = 0.0
    ridged: Any = objective.with_ridge(move(ridge * penalised, objective.zeros()))
    refits: Any = refit_classes if isinstance(objective, KeptClasses) else refit_supports
    null = at = null_evaluation(ridged, constraint(0))
    plain = coordinate_budget(constraint(0), tuple(objective.shape))
    bounds = None if plain is None else plain.bounds
    found: dict[int, np.ndarray] = {}
    reached = -1
    while reached < last:
        checkpoint = last if objective.traits.quadratic else min(last, next_checkpoint(max(reached, 0)))
        some = sorted({*(budget for budget in budgets if reached < budget <= checkpoint), checkpoint})
        supports = _supports(ridged, null, at, [constraint(budget) for budget in some], some, tol)
        if supports is None:
            return None
        found.update(zip(some, supports, strict=True))
        if checkpoint < last:
            on = refits(objective, at.point, free, supports[-1:], [checkpoint], np.array([ridge]), bounds)[0]
            at = ridged.evaluate(_like(on[0, 0], null.point))
        reached = checkpoint
    return [found[budget] for budget in budgets]


def _supports(
    objective: LinearModel | MultiOutputModel | KeptClasses,
    null: Evaluation,
    at: Evaluation,
    constraints: Sequence[Constraint],
    budgets: Sequence[int],
    tol: float,
) -> list[np.ndarray] | None:
    """Return the supports that the quadratic model at a point chooses; None as `model_supports` does."""
    if constraints[-1].structure(tuple(objective.shape)) is None:
        return None
    model, start = _quadratic_model(objective, null, at)
    if model is None:
        return None
    solver = choose_solver(model, constraints[-1], tol=tol)
    if isinstance(solver, WorkingSet):
        found = WorkingSet(effort="fast", tol=solver.tol).path(model, constraints)
        rows = len(tuple(objective.shape)) > 1
        return [to_numpy(each.support.rows if rows else each.support.indices) for each in found]  # type: ignore[attr-defined]
    return block_supports(model, constraints[-1], start, budgets, tol)


def null_evaluation(objective: LinearModel | MultiOutputModel | KeptClasses, constraint: Any) -> Evaluation:
    """Return f at its minimiser on what a set always allows, such as intercepts."""
    if isinstance(objective, MultiOutputModel | KeptClasses):
        return null_model(objective, np.asarray(constraint.free, dtype=np.int64))
    return starting_point(objective, constraint, None)[0]


def _quadratic_model(
    objective: LinearModel | MultiOutputModel | KeptClasses, null: Evaluation, at: Evaluation
) -> tuple[LinearModel | MultiOutputModel | None, Evaluation]:
    """Return the quadratic model of f around a point, and its value and gradient at the null model; None if flat."""
    if objective.traits.quadratic and not isinstance(objective, KeptClasses):
        return objective, null
    if isinstance(objective, LinearModel):
        model = objective.quadratic_model(at)
        return model, model.evaluate(null.point)
    block = OutputBlock.of(double(objective.output_block(at)))
    if block is None:
        return None, null
    if isinstance(objective, KeptClasses):
        near: MultiOutputModel = objective.least_squares(at, block.into, block.back, objective.row_ridge() / block.size)
        return near, near.evaluate(_like(double(null.point) @ block.into, near.zeros()))
    u = at.prediction if objective.offset is None else at.prediction - objective.offset
    into, back = (_like(part, u) for part in (block.into, block.back))
    rotated = u @ into - objective.loss.gradient(objective.y, at.prediction) @ back
    least_squares = MultiOutputModel(
        objective.design, rotated, MultiTask(), sample_weight=objective.weights, l2=objective.row_ridge() / block.size
    )
    return least_squares, least_squares.evaluate(null.point @ into)


def _like(part: np.ndarray, like: Array) -> Array:
    return namespace(like).astype(move(part, like), like.dtype)
