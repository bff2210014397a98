"""A pilot fit to a sample of rows of a table in blocks, which the first pass over all rows checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hardthresh.arrays import double
from hardthresh.constraints import Sparsity
from hardthresh.core import minimize
from hardthresh.core.constraint import Constraint, CoordinateBudget, RowBudget
from hardthresh.core.errors import HardThreshError
from hardthresh.designs import Rows, as_design, standardize
from hardthresh.losses import Loss, Multinomial
from hardthresh.objectives import LinearModel, MultiOutputModel
from hardthresh.objectives.block_rows import Point
from hardthresh.objectives.guess import Guess, simple_guess
from hardthresh.objectives.inputs import mean_weights
from hardthresh.objectives.table_moments import Units

from .pursuit import HardThresholdingPursuit
from .start import starting_point
from .working_set.effort import LEAST_CAP
from .working_set.rows import null_model
from .working_set.solver import WorkingSet

LEAST_ROWS = 20
"""Rows of a pilot for each column that it may choose, if the table has them; below, it chooses noise. Arbitrary."""
_WIDTH, _EXTRA = 3, 64
"""A working set has 3k + 64 columns of the highest scores at the pilot's fit, and the 64 of the highest at the null
model. With these, 120 of 120 fits over blocks have the support of those in memory (``benchmarks/scale.py --task
readings``)."""
_PARTS = 4
"""At the fits without each of four parts of the columns those that may replace them have high scores, as for "balanced"
in `working_set.effort`. Without them the fits to one of these tables, whose neighbours have a correlation of .9, are
0.17 % (squared) and 0.06 % (logistic) above those in memory."""
_OF_GROUPS = HardThresholdingPursuit(exchanges=10)
"""The solver where groups are chosen, as `choose_solver` has it."""
_LARGER = 1.5
"""The columns of a fit of 1.5 k features are in it, too."""


def pilot(
    rows: Rows,
    loss: Loss,
    constraint: Callable[[int, np.ndarray], Constraint],
    k: int,
    *,
    ridge: np.ndarray,
    intercept: bool,
    scale: bool,
    centre: bool,
    last: Point | None = None,
) -> Guess:
    """Return what a fit to some rows promises about a table.

    Parameters
    ----------
    rows : Rows
        Some rows of positive weight.
    loss : Loss
        The loss.
    constraint : callable
        The set of points of k columns, for k and the factors of the columns that are standardised.
    k : int
        The number of columns, or of groups.
    ridge : array, shape (d + 1,) or (d,)
        That of each coordinate.
    intercept, scale, centre : bool
        Whether there is an intercept, and whether columns are scaled and centred.
    last : Point, optional
        A model to begin with, which takes the place of fits to these rows unless the null model is better there.

    Returns
    -------
    Guess
        Without points if the rows do not tell, as where they are of one class: then with the columns whose products
        with the targets are largest.

    Notes
    -----
    Cost: two fits in memory with effort "fast" to some rows, or none with a model to begin with; the rows are not
    copied. What it says is checked by the first reading, so that it changes the route of a fit and its number
    of readings, not what the answer is worth.
    """
    plain = simple_guess(rows, loss)
    y, weight, offset = (
        None if part is None else np.asarray(part, dtype=rows.X.dtype) for part in (rows.y, rows.weight, rows.offset)
    )
    try:
        design = as_design(rows.X)
        weights = mean_weights(weight, design.zeros(1), design.shape[0])
        columns = standardize(design, weights, scale=scale, intercept=intercept, centre=centre)
        inverse = double(columns.inverse_scale)
        level = plain.level if intercept else 0.0
        known = level + (np.zeros_like(y) if offset is None else offset) if level else offset
        model = LinearModel(columns, y, loss, sample_weight=weight, offset=known, l2=ridge)
        null, _ = starting_point(model, constraint(0, inverse), None)
        units = Units(double(columns.mean), inverse, np.ones_like(inverse), intercept, level, 1.0, rows.X.dtype)
        best, at = last, null if last is None else model.evaluate(units.coordinates(last))
        found = [at.point]
        if best is None or not at.value <= null.value:
            sets = [constraint(size, inverse) for size in (k, min(round(_LARGER * k), design.shape[1]))]
            found = _fits(model, sets)
            at, best = model.evaluate(found[0]), units.point(found[0])
    except (HardThreshError, np.linalg.LinAlgError):
        return replace(plain, members=_marginals(rows, plain))
    d = inverse.size
    scores = [np.abs(double(one.gradient))[:d] for one in (at, null)]
    free = np.arange(d, model.shape[0])
    chosen = [np.union1d(np.flatnonzero(w), free) for w in found]
    members = [best.columns, *(each[each < d] for each in chosen), _largest(scores[0], _WIDTH * k + _EXTRA)]
    members.append(_largest(scores[1], _EXTRA))
    members += [_largest(each, max(LEAST_CAP, k // 2)) for each in _scores_of_parts(model, chosen[0], d)]
    return replace(plain, members=np.unique(np.concatenate(members)), points=(units.point(null.point), best))


def pilot_of_classes(
    rows: Rows,
    loss: Multinomial,
    constraint: Callable[[int, np.ndarray], Constraint],
    k: int,
    *,
    ridge: np.ndarray,
    intercept: bool,
    scale: bool,
) -> Guess:
    """Return what a fit of classes to some rows promises about a table; see `pilot`.

    Parameters
    ----------
    rows : Rows
        Some rows of positive weight, whose targets are class numbers.
    loss : Multinomial
        The loss.
    constraint : callable
        The set of matrices of k rows, or groups of them, for k and the factors of the columns.
    k : int
        That number.
    ridge : array, shape (d + 1,) or (d,)
        That of each row.
    intercept, scale : bool
        Whether there are intercepts, and whether columns are scaled.

    Returns
    -------
    Guess
        Without points if the rows do not tell: then with the columns whose products with the classes are largest.
    """
    plain = simple_guess(rows, loss)
    weight = None if rows.weight is None else np.asarray(rows.weight, dtype=rows.X.dtype)
    try:
        design = as_design(rows.X)
        weights = mean_weights(weight, design.zeros(1), design.shape[0])
        columns = standardize(design, weights, scale=scale, intercept=intercept, centre=intercept)
        inverse = double(columns.inverse_scale)
        y = np.asarray(rows.y, dtype=rows.X.dtype)
        model = MultiOutputModel(columns, y, loss, sample_weight=weight, offset=rows.offset, l2=ridge)
        null = null_model(model, np.arange(inverse.size, model.shape[0]))
        chosen = constraint(k, inverse)
        structure = chosen.structure(tuple(model.shape))
        solver = (
            WorkingSet(effort="fast") if isinstance(structure, RowBudget) else HardThresholdingPursuit(exchanges=10)
        )
        at = model.evaluate(minimize(model, chosen, solver).w)
    except (HardThreshError, np.linalg.LinAlgError):
        return replace(plain, members=_marginals(rows, plain, np.arange(loss.n_outputs(rows.y))))
    level = plain.level if intercept else 0.0
    units = Units(double(columns.mean), inverse, np.ones_like(inverse), intercept, level, 1.0, rows.X.dtype)
    best, scores = (
        units.point(at.point),
        [np.linalg.norm(double(one.gradient)[: inverse.size], axis=1) for one in (at, null)],
    )
    members = [best.columns, _largest(scores[0], _WIDTH * k + _EXTRA), _largest(scores[1], _EXTRA)]
    return replace(plain, members=np.unique(np.concatenate(members)), points=(units.point(null.point), best))


def _fits(model: LinearModel, sets: Sequence[Constraint]) -> list[Any]:
    """Return the points that a fast run finds in some sets; of groups that in the first."""
    if all(isinstance(each.structure(tuple(model.shape)), CoordinateBudget) for each in sets):
        return [result.w for result in WorkingSet(effort="fast").path(model, sets)]
    return [minimize(model, sets[0], _OF_GROUPS).w]


def _scores_of_parts(model: LinearModel, chosen: np.ndarray, d: int) -> list[np.ndarray]:
    """Return the sizes of the gradients at the fits without each of four parts of the chosen columns."""
    inner, free = chosen[chosen < d], tuple(chosen[chosen >= d].tolist())
    found = []
    for part in range(min(_PARTS, inner.size)):
        kept = inner[np.arange(inner.size) % _PARTS != part]
        at, _ = starting_point(model, Sparsity(0, free=(*kept.tolist(), *free)), None)
        found.append(np.abs(double(at.gradient))[:d])
    return found


def _largest(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the largest scores."""
    return np.argsort(-scores, kind="stable")[:count]


def _marginals(rows: Rows, guess: Guess, classes: np.ndarray | None = None) -> np.ndarray:
    """Return the columns whose products with the targets, or with those of each class, are largest, increasing."""
    y = np.nan_to_num(np.asarray(rows.y, dtype=np.float64))
    y = y[:, None] if y.ndim == 1 else y[:, :1]  # targets of another shape are refused by the first reading
    y = y if classes is None else (y == classes).astype(np.float64)
    gap = y - y.mean(axis=0) if y.size else y
    products = np.asarray(rows.X.T @ gap.astype(rows.X.dtype), dtype=np.float64)
    products -= np.outer(guess.shift, gap.sum(axis=0))
    sizes = np.linalg.norm(np.nan_to_num(products * guess.scale[:, None]), axis=1)
    return np.sort(_largest(sizes, _EXTRA))
