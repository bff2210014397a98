"""Stochastic IHT with Polyak's step (Li et al. 2024): the distance of f on the batch to a target on the same batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hardthresh.core.constraint import Constraint
from hardthresh.core.objective import MeanObjective
from hardthresh.solvers.start import starting_point
from hardthresh.solvers.stochastic.batches import BatchRule
from hardthresh.solvers.stochastic.estimates import on_batch
from hardthresh.steps import Polyak, SparsePolyak


def polyak_stochastic_iht(
    objective: MeanObjective,
    constraint: Constraint,
    rule: Polyak | SparsePolyak,
    batch: BatchRule,
    n_iter: int,
    seed: int,
    *,
    reference: Any = None,
    every: int = 1,
) -> list[Any]:
    r"""Return the points of stochastic IHT with Polyak's step after each so many iterations, and where it starts.

    .. math:: w_{t+1} = P_C(w_t - \gamma_t \nabla f_{B_t}(w_t)), \qquad
              \gamma_t = \frac{\max(f_{B_t}(w_t) - \hat f_t, 0)}{c \|g_t\|^2}

    The target :math:`\hat f_t` is that of the rule, or f on the same batch at a `reference` point, which nobody has
    outside of simulations. The rule's norm of the gradient is the whole ("polyak", as Li et al. have it) or that of its
    part in the constraint ("sparse_polyak"). The start is that of `minimize`.
    """
    n = objective.traits.n_rows
    now = starting_point(objective, constraint, None)[1]
    points = [now.point]
    for iteration in range(n_iter):
        part = on_batch(objective, batch.gradient_rows(n, batch.first_size(n), seed, iteration))
        at = part.evaluate(now.point)
        target = rule.target if reference is None else part.value(reference)
        direction = -at.gradient
        step = replace(rule, target=target).length(part, constraint, at, direction, direction, 0)
        now = constraint.project(now.point + step * direction, now.support)
        if (iteration + 1) % every == 0:
            points.append(now.point)
    return points
