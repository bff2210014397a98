"""Exchanges of one chosen coordinate for another, ranked by the quadratic model of the objective."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hardthresh.arrays import gather, mask_of, namespace, to_numpy, top_k
from hardthresh.core.constraint import Constraint, CoordinateBudget, Projection
from hardthresh.core.objective import Evaluation, LinearObjective, Objective
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.steps.line_search import Candidate

from .exchange_model import ExchangeModel
from .refinement import refine
from .support_model import SupportModel

_MOST_UNITS = 64
"""Most units left out in turn: of 30 models 6 end higher with 8, 1 with 16, and none differs from 32 to 128."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """An exchange of one coordinate, or block of them, for another, with the decrease of the quadratic model of f."""

    removed: int
    added: int
    decrease: float


def rank_exchanges(
    objective: Objective, constraint: Constraint, at: Evaluation, support: Support, *, removals: int, count: int
) -> list[Exchange]:
    r"""Return the exchanges of single coordinates with the largest decrease of the quadratic model, largest first.

    With H the Hessian at w, A the inverse of its block on the support S and B = H A, the quadratic model of f falls by

    .. math:: \frac{(g_j - w_i B_{ji} / A_{ii})^2}{2 (q_j + B_{ji}^2 / A_{ii})} - \frac{w_i^2}{2 A_{ii}}, \qquad
              q_j = H_{jj} - \sum_{l, m \in S} B_{jl} H_{lm} B_{jm}

    when j takes the place of i and all of S is refitted. With bounds, j goes no farther than to its own, and what a
    bound holds stays there or leaves. Where the block is singular, a coordinate that others make up for leaves at no
    cost, and the rest of the formula is that of adding j; see `exchange_model`.

    Parameters
    ----------
    objective, constraint, at, support :
        f, which must be a `LinearObjective` for any exchange to be found, the set, f at the point, and its support.
    removals : int
        How many coordinates may leave: the least useful ones. If that is not all of them, the refit of the others
        is left out of the denominator, which becomes :math:`2 H_{jj}`: a lower bound of the decrease.
    count : int
        How many exchanges to return at most.

    Notes
    -----
    Cost: one data pass for each coordinate considered. An empty list where nothing can be exchanged.
    """
    structure = constraint.structure(tuple(at.point.shape))
    if not isinstance(structure, CoordinateBudget) or not isinstance(objective, LinearObjective):
        return []
    leaving, indices = structure.counted(support), support.indices
    if leaving.shape[0] == 0:
        return []
    numbers = np.arange(at.point.shape[0])
    numbers[to_numpy(indices)] = -1
    kind = ExchangeModel if removals >= leaving.shape[0] else SupportModel
    model = kind(objective, at, *moving_and_held(constraint, at, support), structure.bounds)
    cost = {j: model.cost(np.array([j])) for j in to_numpy(leaving).tolist()}
    candidates = list(model.candidates(numbers))
    found = []
    for removed in sorted(cost, key=lambda j: (cost[j], j))[:removals]:
        removal = model.removal(np.array([removed]))
        for some in candidates:
            decreases = model.decreases(some, removal)
            for place in top_k(decreases, min(count, decreases.size)):
                found.append(Exchange(removed, int(some.numbers[place]), float(decreases[place])))
    return sorted(found, key=lambda exchange: (-exchange.decrease, exchange.removed, exchange.added))[:count]


def moving_and_held(constraint: Constraint, at: Evaluation, support: Support) -> tuple[Array, np.ndarray]:
    """Return the coordinates of a support that can move, and those that a bound holds."""
    moving = constraint.free_part(at.point, at.gradient, support).indices
    return moving, np.setdiff1d(to_numpy(support.indices), to_numpy(moving))


def swap_units(
    objective: Objective, constraint: Constraint, at: Evaluation, support: Support, count: int
) -> Iterator[Candidate]:
    """Yield refined points where one unit of the support has been exchanged for the coordinates with the best scores.

    The units are the `Structure.swap_units` of the set. Those with the smallest cost for a diagonal Hessian are left
    out one after the other (single coordinates and larger units are ranked separately), and the others are refitted.
    The `count` units whose refit has the lowest f are replaced by the coordinates with the largest scores
    :math:`g_j^2 / 2 H_{jj}` that the set allows besides, for the gradient g without the unit.

    Notes
    -----
    Cost: two data passes, one more for each unit replaced, and little for each refit.
    """
    structure = constraint.structure(tuple(at.point.shape))
    units = [] if structure is None else structure.swap_units(support)
    if not units or not isinstance(objective, LinearObjective):
        return
    xp = namespace(at.point)
    diagonal = objective.hessian_diag(at)
    scale = xp.sqrt(xp.where(diagonal > 0, diagonal, xp.ones_like(diagonal)))
    shorter = []
    for unit in _cheapest(units, diagonal * at.point * at.point):
        rest = constraint.project(xp.where(mask_of(unit, at.point.shape[0]), xp.zeros_like(at.point), at.point))
        shorter.append(refine(objective, constraint, rest, cg_iterations=0, rounds=2))
    for fit in sorted(shorter, key=lambda fit: fit.value)[:count]:
        there = objective.evaluate(fit.projection.point, fit.prediction)
        root = xp.where(diagonal > 0, xp.abs(there.gradient) / scale, xp.zeros_like(scale))  # of twice the score
        largest = 2.0 * float(root.shape[0]) ** 0.5 * xp.max(root)  # more than the norm of any group of them
        joined = constraint.project(xp.where(there.point != 0, largest * xp.ones_like(root), root)).support
        start = Projection(joined.restrict(there.point), joined)
        yield refine(objective, constraint, start, cg_iterations=0, rounds=3)


def _cheapest(units: list[Array], cost: Array) -> list[Array]:
    """Return the units whose coordinates cost least in total, half of them single coordinates if there are both."""
    xp = namespace(cost)
    ranked = sorted(units, key=lambda unit: float(xp.sum(gather(cost, unit))))
    single = [unit for unit in ranked if unit.shape[0] == 1]
    larger = [unit for unit in ranked if unit.shape[0] > 1]
    half = _MOST_UNITS // 2
    return larger[: max(half, _MOST_UNITS - len(single))] + single[: max(half, _MOST_UNITS - len(larger))]


def try_exchanges(
    objective: Objective,
    constraint: Constraint,
    at: Evaluation,
    support: Support,
    exchanges: list[Exchange],
    *,
    cg_iterations: int,
    rounds: int,
    besides: Sequence[int] = (),
) -> Iterator[tuple[Exchange, Candidate]]:
    """Yield each exchange with the refined point on the support it leads to; see `refine` for the effort.

    Where a reading is expensive, that of the columns that join serves for those `besides` them, which are asked about
    next.
    """
    if objective.traits.reading_is_dear and isinstance(objective, LinearObjective) and support.indices is not None:
        added = np.array([*(exchange.added for exchange in exchanges), *besides], dtype=np.int64)
        objective.columns(np.union1d(support.indices, added))  # one reading for all of them
    for exchange in exchanges:
        swapped = support.exchange(exchange.removed, exchange.added)
        start = Projection(swapped.restrict(at.point), swapped)
        yield exchange, refine(objective, constraint, start, cg_iterations=cg_iterations, rounds=rounds)
