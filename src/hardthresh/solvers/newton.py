"""The direction of a Newton step on the subspace of one support."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod
from typing import Any

import numpy as np
from array_api_compat import device

from hardthresh.arrays import (
    all_finite,
    conjugate_gradients,
    double,
    gather,
    is_regular,
    move,
    namespace,
    scatter,
    solve_semidefinite,
    to_numpy,
)
from hardthresh.core.lazy import inner, to_host_together
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


def is_direct(space: Subspace, slope: Array, cg_iterations: int) -> bool:
    """Return whether the Newton system of a subspace is factorised on the host, from the objective's own Hessian."""
    return cg_iterations == 0 and prod(slope.shape) <= DIRECT and space.has_hessian


def newton_system(space: Subspace, at: Evaluation, slope: Array, free: Support) -> tuple[np.ndarray, ...]:
    """Return the Hessian on a subspace, the gradient g = `slope`, and 1 for each free entry or 0, on the host.

    The numbers that wait on the device come over with them.
    """
    active = space.keep(namespace(slope).ones_like(slope), free)
    return to_host_together(space.objective.hessian(at), slope, active)


def newton_direction(
    space: Subspace,
    at: Evaluation,
    slope: Array,
    free: Support,
    cg_iterations: int,
    system: tuple[np.ndarray, ...] | None = None,
) -> tuple[Array, Array, float]:
    """Return an approximate Newton direction p on the free part, for the gradient g = `slope`, H p + g, and -(g, p)/2.

    That is the rest, which is not small where H is singular, and the predicted decrease of f. The rest is known, and
    both are on the host, if the objective has a Hessian; else the rest is given as zero. `system` is the
    `newton_system` there, if it is known.
    """
    small = space.objective
    if is_direct(space, slope, cg_iterations):
        hessian, *of_rows = newton_system(space, at, slope, free) if system is None else system
        at_rest, kept = (part.ravel() for part in of_rows)
        hessian = _regular(small, at, hessian) * kept[:, None] * kept[None, :]
        direction = -kept * solve_semidefinite(hessian, at_rest)
        rest = kept * at_rest + hessian @ direction
        predicted = -0.5 * inner(at_rest, direction)
        return move(direction.reshape(slope.shape), slope), rest.reshape(slope.shape), predicted

    products = 0

    def apply(v: Array) -> Array:
        nonlocal products
        products += 1
        return space.keep(small.curvature(at, v), free)

    if cg_iterations:
        return _with_decrease(-conjugate_gradients(apply, slope, cg_iterations), slope)
    coordinates = space.coordinates(free)
    if coordinates is None or coordinates.shape[0] >= 2 * DIRECT:
        limit = _most_products(free)
        return _with_decrease(-conjugate_gradients(apply, slope, limit, 1e-10), slope)
    solution = conjugate_gradients(apply, slope, coordinates.shape[0] + 1, 1e-10)
    if products <= coordinates.shape[0]:  # enough in exact arithmetic
        return _with_decrease(-solution, slope)
    return _with_decrease(-_solve(apply, lambda v: space.keep(v, free), slope, coordinates, solution), slope)


def _with_decrease(direction: Array, slope: Array) -> tuple[Array, Array, float]:
    """Return what `newton_direction` does where the rest is not known."""
    return direction, namespace(slope).zeros_like(slope), -0.5 * inner(slope, direction)


def _regular(objective: Any, at: Evaluation, hessian: np.ndarray) -> np.ndarray:
    """Return the Hessian of few columns on the host, plus a share of its bound if it is singular and there is one."""
    bounded = isinstance(objective, LinearModel) and not objective.traits.quadratic and objective.curvature_bound < inf
    if not bounded or is_regular(double(hessian)):
        return hessian
    return hessian + DAMPING * to_numpy(objective.bounding_quadratic().hessian(at))


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
