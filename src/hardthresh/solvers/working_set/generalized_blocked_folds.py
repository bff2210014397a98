"""Paths of the folds of a table in blocks for losses that are not squared.

They are searched as in memory (`generalized_folds`): supports come from least squares on quadratic approximations of
the loss, and then the loss is minimised on all of them at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from hardthresh.core.constraint import CoordinateBudget
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.threads import serial_blas
from hardthresh.losses import Loss
from hardthresh.losses.log_link import LogLink
from hardthresh.objectives.blocked_model import BlockedModel

from .blocked_folds import BlockedFolds
from .blocked_refits import BlockedRefits, two_classes
from .fold_path import FoldPath, checked_budgets
from .reweighted_folds import ReweightedFolds


@serial_blas()
def generalized_blocked_fold_paths(
    objective: BlockedModel,
    selection: CoordinateBudget,
    members: Sequence[np.ndarray],
    budgets: Sequence[int],
    ridges: Sequence[float],
    *,
    intercept: bool,
    standardize: bool,
    tol: float = 1e-8,
) -> list[FoldPath]:
    """Return the path of every fold of a table in blocks, and that of all rows, for a loss that is not squared.

    Parameters
    ----------
    objective : BlockedModel
        A model whose sums of each fold are kept apart.
    selection : CoordinateBudget
        Which columns are free, and their bounds; its budget is not used.
    members : sequence of array of int
        The columns with which each fold begins, and all rows.
    budgets, ridges, intercept, standardize, tol :
        As for `generalized_fold_paths`.

    Returns
    -------
    list of FoldPath
        One for each fold, and that of all rows.

    Raises
    ------
    InvalidInputError
        If the targets of a fold's training rows are all of one class, or zeros for a loss with a log link.

    Notes
    -----
    The steps are those of `generalized_fold_paths`, but for the screening, which is that of `blocked_fold_paths`.

    Cost: one reading to screen columns, and one to keep those that are new. Without a bound of the second derivatives,
    as with a log link, another reading for the moments at the largest fits and as many again as before; and one for the
    moments at the null models where working responses are no affine function of the targets, as of Huber's loss, with
    an offset or with free columns. Besides, some four to eight sweeps over kept columns for each round of refits, which
    compute the Hessian of a fit about twice. Fits start with the step to the minimum of the quadratic approximation,
    and those whose supports are found again are not made again: counts in 200,000 x 60 take 35 CPU s, and took 77.
    """
    budgets, alphas = checked_budgets(budgets), np.asarray(ridges, dtype=np.float64)
    settings: dict[str, Any] = {"intercept": intercept, "standardize": standardize, "tol": tol}
    folds = BlockedFolds(objective, selection, members, **settings)
    loss, every, totals = objective.loss, range(objective.folds.count + 1), folds.totals
    left_out = np.array([*every[:-1], -1])
    penalties = [folds.penalty(number) for number in every]
    _check_targets(objective, folds.target_means, intercept)
    refits = BlockedRefits(objective, totals, selection, intercept)
    nulls = refits.null_models(folds.target_means)
    if _are_affine(objective, selection, intercept):
        levels = nulls.points[:, -1] + objective.units.level
        bends = loss.curvature(loss.mean(levels), levels)
        found = folds.paths(budgets, alphas / bends[:, None])
        found = [_of_responses(loss, *own) for own in zip(found, levels, bends, folds.target_means, strict=True)]
        inside = [folds.working_set(number) for number in every]
    else:
        near = ReweightedFolds(objective, selection, nulls.points, left_out, expected=True, **settings)
        near.begin(members)
        found = near.paths(budgets, alphas / near.mean_curvatures(totals)[:, None])
        inside = [near.working_set(number) for number in every]
    fits = refits.on(every, nulls, found, alphas, penalties)
    if loss.curvature_bound == inf:
        place = int(np.argsort(alphas, kind="stable")[(alphas.size - 1) // 3])  # as `searched_ridge`
        largest = np.stack([refits.point(fit, place) for fit, _ in fits])
        near = ReweightedFolds(objective, selection, largest, left_out, expected=False, **settings)
        if near.numbers:
            near.begin([inside[number] for number in near.numbers])
            found = near.paths(budgets, alphas / near.mean_curvatures(totals)[:, None])
            others = refits.on(near.numbers, nulls, found, alphas, penalties)
            for number, (other, lower) in zip(near.numbers, others, strict=True):
                fit, value = fits[number]
                better = lower < value - tol * abs(nulls.values[number])
                fits[number] = fit.replaced(better, other), np.where(better, lower, value)
    paths = [fit.path(budgets, alphas) for fit, _ in fits]
    for path, converged in zip(paths, nulls.converged, strict=True):
        if not converged:
            path.unconverged.insert(0, "the null model has not converged; the free columns may separate the targets")
    return paths


def _check_targets(objective: BlockedModel, means: np.ndarray, intercept: bool) -> None:
    """Check that the targets of each fold have a null model, by their means."""
    loss = objective.loss
    if loss.classifies:
        failed, what = [not two_classes(loss, mean)[1].all() for mean in means], "rows of one class"
    else:
        failed, what = [isinstance(loss, LogLink) and intercept and not mean > 0 for mean in means], "targets of 0"
    if any(failed):
        raise InvalidInputError(
            f"fold {failed.index(True)} of cv trains on {what} only; give another fold column, or fewer folds"
        )


def _of_responses(loss: Loss, path: FoldPath, level: float, bend: float, mean: float) -> FoldPath:
    """Return the path of the working responses at a constant from that of the targets, of which these are affine.

    Parameters
    ----------
    loss : Loss
        The loss.
    path : FoldPath
        The path of least squares of the targets.
    level, bend : float
        The constant, and the second derivative there.
    mean : float
        The mean of the targets.
    """
    targets = two_classes(loss, mean)[0] if loss.classifies else np.array([1.0, 2.0])  # in the domain of any log link
    low, high = (level - loss.gradient(targets, np.full(2, level)) / bend).tolist()
    slope = (high - low) / (targets[1] - targets[0])
    return replace(path, coefs=slope * path.coefs, intercepts=low + slope * (path.intercepts - targets[0]))


def _are_affine(objective: BlockedModel, selection: CoordinateBudget, intercept: bool) -> bool:
    """Return whether least squares of the targets chooses what that of working responses at the null models does.

    See `TrainingFold.is_affine`; two classes have only two responses.
    """
    signs_only = selection.bounds is None or not np.any(np.isfinite(selection.bounds) & (selection.bounds != 0.0))
    alone = intercept and len(selection.free) == 1 and not objective.moments.with_offset
    return bool(alone and signs_only and (objective.loss.linear_in_target or objective.loss.classifies))
