"""Is a sparse answer optimal against every single exchange of a chosen coordinate for another?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hardthresh.arrays import namespace
from hardthresh.constraints import Sparsity
from hardthresh.core.objective import Evaluation, require
from hardthresh.solvers.exchange import ABILITIES, rank_exchanges, try_exchanges


@dataclass(frozen=True, slots=True)
class SwapCertificate:
    """The best single exchange that was found.

    Attributes
    ----------
    optimal : bool
        Whether no exchange lowers the objective by more than the tolerance.
    removed, added : int or None
        The best exchange; None when there is nothing to exchange.
    decrease : float
        By how much it lowers the objective after a refit, negative if it raises it; -inf when there is nothing to
        exchange.
    tried : int
        How many exchanges were refitted; all others were ranked below them by the quadratic model.
    """

    optimal: bool
    removed: int | None
    added: int | None
    decrease: float
    tried: int


def swap_certificate(
    objective: Any, constraint: Sparsity, at: Evaluation, *, tries: int = 10, tol: float = 1e-8, null_value: float = 0.0
) -> SwapCertificate:
    r"""Look at every exchange of one chosen coordinate for one other, with a refit of all coefficients.

    The exchanges are ranked by the quadratic model of f (`hardthresh.solvers.exchange.rank_exchanges`), and the most
    promising are refitted on f itself.

    Parameters
    ----------
    objective : objective with ``curvature``, ``curvature_diagonal`` and ``columns``
        f, at least locally convex.
    constraint : Sparsity
        The set; its free coordinates stay.
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
    """
    require(objective, ABILITIES, by="swap_certificate")
    support = constraint.project(at.point).support
    ranked = rank_exchanges(objective, constraint, at, support, removals=None, count=tries)
    if not ranked:
        return SwapCertificate(True, None, None, float("-inf"), 0)
    refitted = try_exchanges(objective, constraint, at, support, ranked, cg_iterations=0, rounds=25)
    tried = [(at.value - fit.value, exchange) for exchange, fit in refitted]
    decrease, best = max(tried, key=lambda pair: pair[0])
    rounding = float(namespace(at.point).finfo(at.point.dtype).eps) * abs(null_value)
    return SwapCertificate(
        not decrease > tol * abs(at.value) + rounding, best.removed, best.added, decrease, len(tried)
    )
