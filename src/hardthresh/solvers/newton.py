"""The direction of a Newton step on the subspace of one support."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod
from typing import Any

from array_api_compat import device

from hardthresh.arrays import (
    all_finite,
    conjugate_gradients,
    double,
    gather,
    is_regular,
    namespace,
    scatter,
    solve_semidefinite,
)
from hardthresh.core.objective import Evaluation
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.objectives import LinearModel

from .subspace import Subspace

DIRECT = 256
"""Largest subspace whose Newton system is factorised instead of iterated on."""
_DELAYED = 2
"""In exact arithmetic conjugate gradients end after as many products as there are free variables, and after up to twice
as many with rounding; more made answers worse where the Hessian was ill-conditioned (60 small matrix completions)."""
LEFT_OUT = 1e-6
"""Share of the gradient that a Newton step may leave out: a direct solve leaves 1e-16 times the condition number."""
DAMPING = 1e-3
"""Share of the bound of the second derivatives that is added to a singular Hessian, as where few residuals are within
the delta of Huber's loss. Of 300 fits of Huber's and the pinball loss with few curved rows, 27 end more than 0.1 % of
the null value above the minimum; with 1e-2 it is 34, with 1e-4 38, and with the bound alone 244."""


def newton_direction(
    space: Subspace, at: Evaluation, slope: Array, free: Support, cg_iterations: int
) -> tuple[Array, Array]:
    """Return an approximate Newton direction p on the free part, for the gradient g = `slope`, and the rest H p + g.

    The rest is not small where H is singular. It is known if the objective has a Hessian, and else given as zero.
    """
    small = space.objective
    if cg_iterations == 0 and slope.ndim == 1 and slope.shape[0] <= DIRECT and space.has_hessian:
        hessian = _hessian(small, at)
        active = space.keep(namespace(slope).ones_like(slope), free)
        hessian = hessian * active[:, None] * active[None, :]
        direction = -active * solve_semidefinite(hessian, slope)
        return direction, active * slope + hessian @ direction

    products, unknown = 0, namespace(slope).zeros_like(slope)

    def apply(v: Array) -> Array:
        nonlocal products
        products += 1
        return space.keep(small.curvature(at, v), free)

    if cg_iterations:
        return -conjugate_gradients(apply, slope, cg_iterations), unknown
    coordinates = space.coordinates(free)
    if coordinates is None or coordinates.shape[0] >= 2 * DIRECT:
        limit = _most_products(free)
        return -conjugate_gradients(apply, slope, limit, 1e-10), unknown
    solution = conjugate_gradients(apply, slope, coordinates.shape[0] + 1, 1e-10)
    if products <= coordinates.shape[0]:  # enough in exact arithmetic
        return -solution, unknown
    return -_solve(apply, lambda v: space.keep(v, free), slope, coordinates, solution), unknown


def _hessian(objective: Any, at: Evaluation) -> Array:
    """Return the Hessian of few columns, with a share of its bound if it is singular and there is one."""
    hessian = objective.hessian(at)
    bounded = isinstance(objective, LinearModel) and not objective.traits.quadratic and objective.curvature_bound < inf
    if not bounded or is_regular(double(hessian)):
        return hessian
    return hessian + DAMPING * objective.bounding_quadratic().hessian(at)


def _most_products(free: Support) -> int:
    """Return a limit of the iterations of conjugate gradients, by the dimension of the free part if that is known."""
    try:
        return min(4 * DIRECT, _DELAYED * free.degrees_of_freedom)
    except NotImplementedError:
        return 4 * DIRECT


def _solve(
    apply: Callable[[Array], Array], keep: Callable[[Array], Array], slope: Array, coordinates: Array, known: Array
) -> Array:
    """Return the solution of H x = slope, from one product with H for each coordinate; the known one if one overflows.

    Conjugate gradients would have ended by then in exact arithmetic: H is ill-conditioned.
    """
    xp, count = namespace(slope), coordinates.shape[0]

    def lift(v: Array) -> Array:
        return keep(xp.reshape(scatter(v, coordinates, prod(slope.shape)), slope.shape))

    def entries(v: Array) -> Array:
        return gather(xp.reshape(v, (-1,)), coordinates)

    unit = xp.eye(count, dtype=slope.dtype, device=device(slope))
    H = xp.stack([entries(apply(lift(unit[i, :]))) for i in range(count)])
    if not all_finite(H):
        return known
    return lift(solve_semidefinite(0.5 * (H + H.T), entries(slope)))
