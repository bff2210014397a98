"""Is a sparse answer optimal against every single exchange of a chosen coordinate for another?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hardthresh.arrays import gather, mask_of, namespace, scatter, solve_semidefinite, to_numpy, union
from hardthresh.constraints import Sparsity
from hardthresh.core.constraint import Projection
from hardthresh.core.objective import Evaluation, require
from hardthresh.core.typing import Array
from hardthresh.solvers.subspace import refine


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
        By how much it lowers the objective after a refit, negative if it raises it; -inf when there is nothing to exchange.
    tried : int
        How many exchanges were refitted; all others were ranked below them by the quadratic model.
    """

    optimal: bool
    removed: int | None
    added: int | None
    decrease: float
    tried: int


def swap_certificate(
    objective: Any, constraint: Sparsity, at: Evaluation, *, tries: int = 10, tol: float = 1e-8
) -> SwapCertificate:
    r"""Look at every exchange of one chosen coordinate i for one other coordinate j, with a refit of all coefficients.

    With H the Hessian at w, A the inverse of its block on the support and B = H A, the quadratic model of f changes by

    .. math:: \frac{w_i^2}{2 A_{ii}} - \frac{(g_j - w_i B_{ji} / A_{ii})^2}{2 (q_j + B_{ji}^2 / A_{ii})}, \qquad
              q_j = H_{jj} - B_j^\top H_{S j}

    and the most promising exchanges are refitted on the objective itself.

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

    Returns
    -------
    SwapCertificate

    Raises
    ------
    CapabilityError
        If the objective lacks an ability.

    Notes
    -----
    Cost: s + 1 data passes for a support of s coordinates, and little for each refit. For the squared loss without bounds the model
    is exact, so "optimal" is a proof that no exchange of one for one helps (up to rounding). For other losses, or with bounds, it is a
    heuristic: the exchanges are ranked by the model.
    """
    require(objective, ("curvature", "curvature_diagonal", "columns"), by="swap_certificate")
    xp = namespace(at.point)
    d = at.point.shape[0]
    support = constraint.project(at.point).support
    model = _exchange_decreases(objective, constraint, at, support)
    if model is None:
        return SwapCertificate(True, None, None, float("-inf"), 0)
    decreases, removable = model
    removed = added = None
    best, tried = float("-inf"), 0
    flat = np.argsort(-decreases, axis=None, kind="stable")[:tries]
    for j, position in zip(*np.unravel_index(flat, decreases.shape), strict=True):
        if not np.isfinite(decreases[j, position]):
            break
        i = int(removable[position])
        tried += 1
        swapped = _with(support, i, int(j), at.point)
        start = xp.where(mask_of(swapped, d), at.point, xp.zeros_like(at.point))
        fit = refine(objective, constraint, Projection(start, swapped), cg_iterations=0, rounds=25)
        if at.value - fit.value > best:
            best, removed, added = at.value - fit.value, i, int(j)
    return SwapCertificate(not best > tol * abs(at.value), removed, added, best, tried)


def _exchange_decreases(
    objective: Any, constraint: Sparsity, at: Evaluation, support: Array
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the decrease of the quadratic model for each (coordinate that joins, coordinate that leaves), and the latter."""
    d, s = at.point.shape[0], support.shape[0]
    chosen = to_numpy(support)
    leaving = np.flatnonzero(~np.isin(chosen, constraint.free))
    if leaving.size == 0 or s == d:
        return None
    one = namespace(at.point).ones_like(gather(at.point, support[:1]))
    H = np.stack(
        [to_numpy(objective.curvature(at, scatter(one, support[i : i + 1], d))) for i in range(s)], axis=1
    ).astype(np.float64)
    block = H[chosen]
    A = np.stack([solve_semidefinite(block, column) for column in np.eye(s)], axis=1)
    B = H @ A
    w, g = to_numpy(at.point)[chosen].astype(np.float64), to_numpy(at.gradient).astype(np.float64)
    diagonal = to_numpy(objective.curvature_diagonal(at)).astype(np.float64)
    left = np.maximum(diagonal - np.sum(B * H, axis=1), 0.0)
    spread = np.maximum(np.diag(A)[leaving], np.finfo(float).tiny)
    slope = g[:, None] - (w[leaving] / spread) * B[:, leaving]
    bend = left[:, None] + B[:, leaving] ** 2 / spread
    usable = bend > 1e-10 * diagonal[:, None]
    gain = np.where(usable, slope**2 / (2.0 * np.where(usable, bend, 1.0)), 0.0)
    decreases = gain - w[leaving] ** 2 / (2.0 * spread)
    decreases[chosen] = -np.inf
    decreases[diagonal == 0.0] = -np.inf
    return decreases, chosen[leaving]


def _with(support: Array, removed: int, added: int, like: Array) -> Array:
    """Return a support after an exchange, in the array library of the support."""
    kept = support[support != removed]
    xp = namespace(support)
    return union(kept, xp.asarray([added], dtype=support.dtype, device=getattr(support, "device", None)))
