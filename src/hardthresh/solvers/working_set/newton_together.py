"""Newton steps of many small problems together, whose derivatives come from one sweep for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, TypeAlias

import numpy as np

_STEPS = 60
"""Limit of the sweeps of the refits, each of which is a Newton step of all fits, or half of one. They take 5 to 10, and
more only where targets are nearly separated. Arbitrary."""
_PREDICTED = 1e-11
"""A refit ends with the step whose predicted decrease is at most this share of f; the next would be its square."""
_CLOSE, _FASTER = 1e-4, 1e-2
"""Once a step promises at most this share of f, the next one has the same Hessian, and so on while the promise falls
to this share or less of the last one: the fits then lack a few digits, which gradients alone give. Arbitrary."""
_SUFFICIENT = 1e-4
"""A step is taken if f decreases by this share of what its slope promises."""

Model: TypeAlias = tuple[float, np.ndarray, np.ndarray | None]
"""The value, the gradient and the Hessian of a problem at a point; None for a Hessian that was not asked for."""


def minimise_together(
    starts: Sequence[np.ndarray],
    models: Callable[[np.ndarray, list[np.ndarray], np.ndarray], list[Model]],
    step: Callable[[int, np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    first: Sequence[np.ndarray | None] | None = None,
    values: np.ndarray | float = inf,
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Minimise all problems together, by Newton steps that are halved until f decreases.

    Parameters
    ----------
    starts : sequence of array
        Where each starts.
    models : callable
        Returns the quadratic models of some problems, by their numbers, at points, and whether Hessians are needed.
    step : callable
        Returns the Newton step of a problem, for its number, its point, the gradient and a Hessian.
    first : sequence of (array or None), optional
        First steps; None for problems that are examined where they start.
    values : array, shape (q,), optional
        What f has to be at most after the first steps; infinity without.

    Returns
    -------
    coefs : list of array, like `starts`
    values : array, shape (q,)
    converged : array of bool, shape (q,)
    """
    count, coefs = len(starts), list(starts)
    done, promised = np.array([coef.size == 0 for coef in coefs]), np.zeros(count)
    value = np.full(count, values)
    steps: list[np.ndarray | None] = [None] * count if first is None else list(first)
    length, fresh = np.ones(count), np.ones(count, dtype=bool)
    hessians: list[Any] = [None] * count
    for _ in range(_STEPS):
        active = np.flatnonzero(~done | np.isinf(value))
        if not active.size:
            break
        trial = [coefs[i] if (way := steps[i]) is None else coefs[i] + length[i] * way for i in active]
        found = models(active, trial, fresh[active])
        for i, new, (f, gradient, hessian) in zip(active.tolist(), trial, found, strict=True):
            rounding = 1e-14 * abs(value[i]) if np.isfinite(value[i]) else 0.0
            if not f <= value[i] - _SUFFICIENT * length[i] * promised[i] + rounding:
                length[i] *= 0.5
                fresh[i] = True
                continue
            coefs[i], value[i], length[i] = new, f, 1.0
            if new.size == 0:
                continue
            hessians[i] = hessians[i] if hessian is None else hessian
            way = steps[i] = step(i, new, gradient, hessians[i])
            before, promised[i] = promised[i], -float(gradient @ way)
            fresh[i] = not promised[i] <= min(_CLOSE * abs(f), inf if fresh[i] else _FASTER * before)
            if promised[i] <= _PREDICTED * max(abs(f), np.finfo(float).tiny):
                coefs[i] = new + way
                done[i] = True
    return coefs, value, done
