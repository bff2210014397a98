"""Whether the chosen features separate the classes of the training rows."""

from __future__ import annotations

from typing import Any

from hardthresh.arrays import gather, namespace
from hardthresh.constraints import RowSparsity, Sparsity
from hardthresh.core.constraint import Projection
from hardthresh.core.result import Result
from hardthresh.core.typing import Array
from hardthresh.objectives import LinearModel, MultiOutputModel
from hardthresh.objectives.recession import has_no_recession
from hardthresh.solvers.refinement import refine

from .problem import Problem

_ROUNDS, _BLOCKS = 2, 60
"""Newton steps between two checks of the signs, and such checks: 4 to 8 steps find a minimiser, and where there is none
each lowers the loss by a constant factor, so that 120 reach any margin that double precision can tell from zero."""


def separates(problem: Problem, result: Result) -> bool:
    """Return whether coefficients of the chosen features put every training row on the side of its class.

    Without a ridge the loss of these columns has a minimiser exactly if they do not separate the classes, not even with
    some rows on the boundary (Albert and Anderson 1984, *Biometrika* 71, 1-10); else it falls along coefficients that
    do. Newton steps lead there, or to where it shows that there is a minimiser (`has_no_recession`). Cost: one pass
    over the chosen columns alone if the fit itself separates the classes, else about ten.
    """
    chosen = problem.coordinates(result.support)
    if chosen.shape[0] == 0:
        return False
    model, free, reached = _chosen(problem, result, chosen)
    minimal = False
    for _ in range(_BLOCKS):
        at = model.evaluate(reached.point)
        if bool(namespace(reached.point).all(_margins(model.y, at.prediction) > 0)):
            return True
        if minimal or _has_minimiser(model, at):
            return False
        fit = refine(model, free, reached, at.prediction, cg_iterations=0, rounds=_ROUNDS)
        reached, minimal = fit.projection, fit.minimal
    return False


def _chosen(
    problem: Problem, result: Result, chosen: Array
) -> tuple[LinearModel | MultiOutputModel, Sparsity | RowSparsity, Projection]:
    """Return the model of the chosen columns alone, without a ridge, the set of its points, and that of the fit.

    The set has any multiple of a point: coefficients that separate the classes do so at any length.
    """
    model, free = problem.objective.columns(chosen), problem.cone(chosen)
    kind: Any = type(model)
    plain = kind(model.design, model.y, model.loss, sample_weight=model.weights)
    return plain, free, free.project(gather(result.w, chosen))


def _margins(y: Any, u: Any) -> Any:
    """Return by how much the predictor of each row is on the side of its class, or above those of all others."""
    if u.ndim == 1:
        return (2 * y - 1) * u
    xp = namespace(u)
    own = xp.astype(y, xp.int64)[:, None] == xp.arange(u.shape[1])[None, :]
    least = -float(xp.finfo(u.dtype).max)
    return xp.sum(xp.where(own, u, 0 * u), axis=1) - xp.max(xp.where(own, least, u), axis=1)


def _has_minimiser(model: LinearModel | MultiOutputModel, at: Any) -> bool:
    """Return whether the slopes at a point show that the loss has a minimiser; False if nothing is known."""
    mean_loss = model.mean_loss
    return has_no_recession(mean_loss.contrasts(), model.design, mean_loss.slopes(at.prediction), at.gradient)
