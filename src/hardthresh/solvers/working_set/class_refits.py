"""The refits of classes on kept columns: all of a grid together, by Newton steps whose sums are one sweep for all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from hardthresh.arrays import solve_semidefinite
from hardthresh.arrays.pieces import steps
from hardthresh.core.threads import serial_blas
from hardthresh.objectives.class_fits import ClassFits
from hardthresh.objectives.kept_classes import KeptClasses

from .model import union
from .newton_together import Model, minimise_together
from .support_grid import different_refits, unconverged_refit

_ENTRIES = 1 << 22
"""Most second derivatives that are summed together: 32 MB. Arbitrary."""


@serial_blas()
def refit_classes(
    objective: KeptClasses,
    null: np.ndarray,
    free: Sequence[int],
    supports: Sequence[np.ndarray],
    budgets: Sequence[int],
    ridges: np.ndarray,
    bounds: None = None,
) -> tuple[np.ndarray, list[str]]:
    """Return the minimisers of the loss of classes on some supports with each of some ridges; see `refit_supports`.

    Parameters
    ----------
    objective : KeptClasses
        f, of all columns.
    null, free, supports, budgets, ridges :
        As for `refit_supports`. There are no bounds.

    Returns
    -------
    points : array, shape (n_supports, n_ridges, d, q)
    unconverged : list of str

    Notes
    -----
    Cost: some ten sweeps over kept columns, each of which sums the second derivatives of all fits.
    """
    (p, q), axes = objective.shape, objective.loss.axes(objective.shape[1])
    penalised = np.ones(p)
    penalised[list(free)] = 0.0
    columns = reduce(union, supports)
    own = np.stack([np.isin(columns, support) for support in supports])
    refit_of, refits, _ = different_refits(np.repeat(own[:, None], ridges.size, axis=1), ridges)
    budget_of, ridge_of = np.divmod(refits, ridges.size)
    rows = [columns[own[place]] for place in budget_of]
    shares = [float(ridges[place]) * penalised[some] for place, some in zip(ridge_of, rows, strict=True)]
    start = np.asarray(null, dtype=np.float64) @ axes

    def models(active: np.ndarray, trial: list[np.ndarray], curved: np.ndarray) -> list[Model]:
        found: list[Model] = []
        largest = max((new.size for new in trial), default=0)
        for some in steps(active.size, max(1, _ENTRIES // (largest + 1) ** 2)):
            found += _models(objective, [rows[i] for i in active[some]], [shares[i] for i in active[some]], trial[some])
        return found

    def step(i: int, point: np.ndarray, gradient: np.ndarray, hessian: np.ndarray) -> np.ndarray:
        found: np.ndarray = -solve_semidefinite(hessian, gradient)
        return found

    coefs, _, converged = minimise_together([start[some].ravel() for some in rows], models, step)
    points = np.zeros((refits.size, p, q))
    for point, some, coef in zip(points, rows, coefs, strict=True):
        point[some] = coef.reshape(some.size, axes.shape[1]) @ axes.T
    failed = np.flatnonzero(~converged)
    unconverged = [unconverged_refit(budgets[budget_of[i]], float(ridges[ridge_of[i]])) for i in failed]
    return points[refit_of], unconverged


def _models(
    objective: KeptClasses, rows: list[np.ndarray], shares: list[np.ndarray], trial: list[np.ndarray]
) -> list[Model]:
    """Return f, its gradient and its Hessian at points of some fits, flat over rows and axes: a sweep."""
    kept, units, axes = objective.kept, objective.units, objective.loss.axes(objective.shape[1])
    d, r = units.mean.size, axes.shape[1]
    inner = [some[some < d] for some in rows]
    changes = [kept.change(some) for some in inner]
    coefs, levels = [], []
    for some, (factor, shift), point in zip(inner, changes, trial, strict=True):
        w = point.reshape(point.size // r, r) @ axes.T
        coefs.append(factor[:, None] * w[: some.size])
        levels.append(units.level + shift @ w[: some.size] + w[some.size :].sum(axis=0))
    fits = ClassFits(tuple(kept.places(some) for some in inner), tuple(coefs), np.stack(levels))
    values, flat = objective.models(fits, axes)
    found: list[Model] = []
    start = 0
    for value, (factor, shift), share, point in zip(values, changes, shares, trial, strict=True):
        size = factor.size + 1
        change = np.diag(np.append(factor, 1.0))
        change[:-1, -1] = shift
        change = change[: share.size]  # without its last row there is no intercept
        gradient = change @ flat[start : start + size * r].reshape(size, r) / units.total
        start += size * r
        blocks = flat[start : start + (size * r) ** 2].reshape(r, r, size, size) / units.total
        start += (size * r) ** 2
        hessian = (change @ blocks @ change.T).transpose(2, 0, 3, 1).reshape(2 * (share.size * r,))
        ridge = np.repeat(share, r)
        f = float(value) / units.total + 0.5 * float(ridge @ point**2)
        found.append((f if np.isfinite(f) else np.inf, gradient.ravel() + ridge * point, hessian + np.diag(ridge)))
    return found
