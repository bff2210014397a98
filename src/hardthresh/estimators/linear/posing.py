"""The problem that a table and settings pose: standardised columns, the objective of a loss, and the constraint."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from hardthresh.constraints import RowSparsity, Sparsity
from hardthresh.core.errors import InvalidInputError
from hardthresh.designs import Design, as_design
from hardthresh.losses import BaseLoss, Ordinal, VectorLoss
from hardthresh.objectives import LinearModel, MultiOutputModel, OrdinalModel
from hardthresh.solvers.start import starting_point

from ..table import Table, standardize_table
from .bounds import Bounds
from .columns import ColumnGroups, ColumnLists
from .ordinal_problem import OrdinalProblem
from .problem import ColumnConstraint, Objective, Problem
from .rows_problem import RowsProblem

_KINDS: dict[type[Objective], type[Problem]] = {
    LinearModel: Problem,
    MultiOutputModel: RowsProblem,
    OrdinalModel: OrdinalProblem,
}
"""The problem of each kind of objective."""


def build_problem(
    table: Table,
    *,
    loss: BaseLoss,
    k: int,
    alpha: float,
    always_include: tuple[int, ...],
    bounds: Bounds | None,
    fit_intercept: bool,
    scale: bool,
    name: Callable[[int], str],
    groups: ColumnGroups | ColumnLists | None = None,
    levels: Collection[int] = (),
) -> Problem:
    """Return the problem of fitting a table.

    Parameters
    ----------
    table : Table
        The data, with targets as the loss takes them: of ordered classes their numbers.
    loss : BaseLoss
        The loss. One of several predictions makes a problem of matrices.
    k : int
        The number of columns, or of groups.
    alpha : float
        The ridge on standardised coefficients that are neither the intercept nor always included.
    always_include : tuple of int
        The columns that are.
    bounds : Bounds, optional
        Those of the coefficients, on the scale of the data.
    fit_intercept, scale : bool
        Whether there is an intercept, and whether columns are scaled. They are centred if there is an intercept, or if
        the loss has no use for one.
    name : callable
        How a message calls a column.
    groups : ColumnGroups or ColumnLists, optional
        Groups of columns, of which k are chosen. They have no bounds, and those of matrices do not overlap.
    levels : collection of int
        The columns that are levels of categorical ones, which some rows may lack.

    Returns
    -------
    Problem

    Raises
    ------
    InvalidInputError
        If an always-included column is constant, entries are so large that the scale of a column overflows, or there
        are bounds and several predictions.
    """
    standardized, weights = standardize_table(
        table, fit_intercept=fit_intercept, scale=scale, centre=fit_intercept or not loss.takes_intercept
    )
    inverse_scale = standardized.inverse_scale
    d = inverse_scale.shape[0]
    for j in always_include:
        if fit_intercept and float(inverse_scale[j]) == 0.0 and j not in levels:
            raise InvalidInputError(
                f"always_include names {name(j)}, which is constant and cannot be told from the intercept; leave it out"
            )
    level, offset = loss.initial_prediction(table.y, weights) if fit_intercept else 0.0, table.offset
    if level:
        loss.check_targets(table.y)  # before they are blamed on the offset
        offset = level + (0 * table.y if offset is None else offset)
    ridge = np.full(standardized.shape[1], alpha)
    ridge[[*always_include, *range(d, ridge.size)]] = 0.0
    objective = _objective(standardized, table.y, loss, sample_weight=table.sample_weight, offset=offset, l2=ridge)
    free = (*always_include, *range(d, objective.shape[0]))
    return _KINDS[type(objective)](
        objective,
        _constraint(objective, k, free, groups, bounds, inverse_scale),
        standardized.mean,
        inverse_scale,
        fit_intercept,
        level,
        table.offset is not None,
        None if groups is not None else bounds,
        table.codes,
    )


def _objective(design: Design, y: Any, loss: BaseLoss, **settings: Any) -> Objective:
    """Return the objective of a loss: its kind says what a prediction is, and an ordinal one has thresholds besides."""
    if isinstance(loss, Ordinal):
        return OrdinalModel(design, y, **settings)
    if isinstance(loss, VectorLoss):
        return MultiOutputModel(design, y, loss, **settings)
    return LinearModel(design, y, loss, **settings)  # type: ignore[arg-type]


def _constraint(
    objective: Objective,
    k: int,
    free: tuple[int, ...],
    groups: ColumnGroups | ColumnLists | None,
    bounds: Bounds | None,
    inverse_scale: Any,
) -> ColumnConstraint:
    """Return the set of points with k columns, or groups of them, besides the free coordinates."""
    size, *several = objective.shape
    if several:
        if bounds is not None:
            raise InvalidInputError("bounds, and positive=True, are for models of one output or of two classes")
        return RowSparsity(k, groups=None if groups is None else groups.labels_of(size), free=free)
    if groups is not None:
        return groups.constraint(k, free, size)
    n_levels = size - inverse_scale.shape[0]
    lower, upper = (None, None) if bounds is None else bounds.standardized(inverse_scale, n_levels)
    return Sparsity(k, free=free, lower=lower, upper=upper)


def null_loss(loss: BaseLoss, y: np.ndarray, sample_weight: np.ndarray, offset: np.ndarray | None) -> float:
    """Return the least mean log-loss of classes without features: of intercepts or thresholds, and the offset.

    Classes without rows are left out: they have no finite intercept, and a probability of 0.

    Parameters
    ----------
    loss : BaseLoss
        `Ordinal` or `Multinomial`.
    y : array, shape (n,)
        The numbers of the classes.
    sample_weight : array, shape (n,)
        Positive weights.
    offset : array, shape (n,) or (n, n_classes), optional
        The known part of the linear predictors.
    """
    present, label = np.unique(y.astype(np.intp), return_inverse=True)
    sums = np.bincount(label, sample_weight)
    shares = sums / sums.sum()  # 1 of a single class, to the last bit
    if offset is None or present.size < 2:
        return -float(shares @ np.log(shares))
    ordered = isinstance(loss, Ordinal)
    column = np.zeros((len(y), 1)) if ordered else np.ones((len(y), 1))
    known = offset if ordered else offset[:, present]
    model = _objective(as_design(column), label.astype(float), loss, sample_weight=sample_weight, offset=known)
    free = tuple(range(1, present.size)) if ordered else (0,)
    kind = Sparsity if ordered else RowSparsity
    return float(starting_point(model, kind(0, free=free), None)[0].value)
