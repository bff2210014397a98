"""Is a sparse answer optimal against every single exchange of a chosen coordinate for another?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hardthresh.arrays import namespace
from hardthresh.core.constraint import Constraint
from hardthresh.core.objective import Evaluation, require
from hardthresh.solvers.block_search import MOST_COLUMNS, block_model, exchanges
from hardthresh.solvers.exchange import ABILITIES, rank_exchanges, try_exchanges
from hardthresh.solvers.subspace import refine


@dataclass(frozen=True, slots=True)
class SwapCertificate:
    """The best single exchange that was found.

    Attributes
    ----------
    optimal : bool
        Whether no exchange that was looked at lowers the objective by more than the tolerance; so also where there is
        none, or where none could be looked at: `complete` tells these apart.
    removed, added : int or None
        The best exchange of coordinates, or of the numbers of groups where whole groups are chosen; None when there is
        nothing to exchange.
    decrease : float
        By how much it lowers the objective after a refit, negative if it raises it; -inf when there is nothing to
        exchange.
    tried : int
        How many exchanges were refitted; all others were ranked below them by the quadratic model.
    complete : bool
        Whether all exchanges were looked at; only groups can be too wide for that.
    """

    optimal: bool
    removed: int | None
    added: int | None
    decrease: float
    tried: int
    complete: bool = True


def swap_certificate(
    objective: Any,
    constraint: Constraint,
    at: Evaluation,
    *,
    tries: int = 10,
    tol: float = 1e-8,
    null_value: float = 0.0,
) -> SwapCertificate:
    r"""Look at every exchange of one chosen coordinate for one other, with a refit of all coefficients.

    The exchanges are ranked by the quadratic model of f (`hardthresh.solvers.exchange.rank_exchanges`), and the most
    promising are refitted on f itself.

    Parameters
    ----------
    objective : objective with ``curvature``, ``curvature_diagonal`` and ``columns``
        f, at least locally convex.
    constraint : Constraint
        The set; its free coordinates stay. Where it allows whole groups of coordinates, these are exchanged.
    at : Evaluation
        f at a minimiser on its support.
    tries : int
        How many exchanges are refitted, >= 1.
    tol : float
        The relative decrease of f that counts.
    null_value : float
        f at the null model: what is lost in its rounding does not count either.

    Returns
    -------
    SwapCertificate

    Raises
    ------
    CapabilityError
        If the objective lacks an ability.

    Notes
    -----
    Cost: s + 1 data passes for a support of s coordinates, and little for each refit. For the squared loss without
    bounds the model is exact, so "optimal" is a proof that no exchange of one for one helps (up to rounding). For
    other losses, or with bounds, it is a heuristic: the exchanges are ranked by the model.

    Exchanges of groups are ranked on the Hessian of their columns, of which there are at most 2048: those of the chosen
    groups and the free ones, then groups in the order of their promised gain, sum of g_j^2 / 2 H_jj, as long as they
    fit in. Groups that do not are not looked at, and `complete` is False; where the chosen ones alone have more
    columns, nothing is looked at. Cost then: one data pass, and that of the Hessian.
    """
    require(objective, ABILITIES, by="swap_certificate")
    rounding = float(namespace(at.point).finfo(at.point.dtype).eps) * abs(null_value)
    if constraint.blocks() is not None:
        return _of_blocks(objective, constraint, at, tries, tol * abs(at.value) + rounding)
    support = constraint.project(at.point).support
    ranked = rank_exchanges(objective, constraint, at, support, removals=None, count=tries)
    if not ranked:
        return SwapCertificate(True, None, None, float("-inf"), 0)
    refitted = try_exchanges(objective, constraint, at, support, ranked, cg_iterations=0, rounds=25)
    tried = [(at.value - fit.value, exchange) for exchange, fit in refitted]
    decrease, best = max(tried, key=lambda pair: pair[0])
    return SwapCertificate(
        not decrease > tol * abs(at.value) + rounding, best.removed, best.added, decrease, len(tried)
    )


def _of_blocks(
    objective: Any, constraint: Constraint, at: Evaluation, tries: int, negligible: float
) -> SwapCertificate:
    """Look at the exchanges of one group for another: of all groups, or of those that promise most if they are many."""
    known = block_model(objective, constraint, at, MOST_COLUMNS)
    if known is None:
        return SwapCertificate(True, None, None, float("-inf"), 0, complete=False)
    model, start = known.model, known.model.fit(known.start)
    ranked = sorted(exchanges(model, start), reverse=True)[:tries]
    if not ranked:
        return SwapCertificate(True, None, None, float("-inf"), 0, complete=known.complete)
    tried = []
    for _, removed, added in ranked:
        swapped = model.fit((*(g for g in start.chosen if g != removed), added))
        there = constraint.project(known.point(swapped, at.point))
        fit = refine(objective, constraint, there, cg_iterations=0, rounds=25)
        tried.append((at.value - fit.value, known.names[removed], known.names[added]))
    decrease, removed, added = max(tried, key=lambda one: one[0])
    return SwapCertificate(not decrease > negligible, removed, added, decrease, len(tried), complete=known.complete)
