"""Construction of the problem of a table and settings: standardised columns, the objective, and the constraint."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from hardthresh.constraints import RowSparsity, Sparsity
from hardthresh.core.errors import InvalidInputError
from hardthresh.designs import as_design
from hardthresh.losses import BaseLoss, Ordinal
from hardthresh.objectives import (
    BlockedClasses,
    BlockedLeastSquares,
    BlockedModel,
    BlockedOutputs,
    LinearModel,
    MultiOutputModel,
    OrdinalModel,
)
from hardthresh.objectives.kept_classes import KeptClasses
from hardthresh.solvers.start import starting_point

from ..posed import Asked, objective_of
from ..table import Scaling, Table
from .blocked_problem import BlockedProblem
from .blocked_rows_problem import BlockedClassesProblem, BlockedRowsProblem, KeptClassesProblem
from .bounds import Bounds
from .columns import ColumnGroups, ColumnLists
from .ordinal_problem import OrdinalProblem
from .problem import ColumnConstraint, Problem
from .rows_problem import RowsProblem

_KINDS: dict[type, type[Problem]] = {
    BlockedClasses: BlockedClassesProblem,
    BlockedLeastSquares: BlockedProblem,
    BlockedModel: BlockedProblem,
    BlockedOutputs: BlockedRowsProblem,
    KeptClasses: KeptClassesProblem,
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
    scaling: Scaling | None = None,
    loss_of_rows: Callable[[np.ndarray, np.ndarray, int], Any] | None = None,
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
    scaling : Scaling, optional
        How the columns are standardised, where the table is not all of the rows; default: by their own moments.
    loss_of_rows : callable, optional
        Returns the loss with which some rows of a table in blocks are searched; see `Asked`.

    Returns
    -------
    Problem

    Raises
    ------
    InvalidInputError
        If an always-included column is constant, entries are so large that the scale of a column overflows, or there
        are bounds and several predictions.
    """
    d = int(table.X.shape[1])
    ridge = np.full(d + fit_intercept, alpha)
    ridge[[*always_include, *range(d, ridge.size)]] = 0.0

    def constraint(k: int, inverse_scale: Any, shape: tuple[int, ...]) -> ColumnConstraint:
        free = (*always_include, *range(d, shape[0]))
        return _constraint(shape, k, free, groups, bounds, inverse_scale)

    asked = Asked(
        loss=loss,
        k=k,
        ridge=ridge,
        fit_intercept=fit_intercept,
        scale=scale,
        constraint=lambda k, inverse_scale, *outputs: constraint(k, inverse_scale, (*ridge.shape, *outputs)),
        grouped=groups is not None,
        scaling=scaling,
        loss_of_rows=loss_of_rows,
    )
    posed = table.pose(asked)
    for j in always_include:
        if scaling is None and fit_intercept and float(posed.inverse_scale[j]) == 0.0 and j not in levels:
            raise InvalidInputError(
                f"always_include names {name(j)}, which is constant and cannot be told from the intercept; leave it out"
            )
    return _KINDS[type(posed.objective)](
        posed.objective,
        constraint(k, posed.inverse_scale, tuple(posed.objective.shape)),
        posed.mean,
        posed.inverse_scale,
        fit_intercept,
        posed.level,
        posed.offset_given,
        None if groups is not None else bounds,
        table.codes,
    )


def _constraint(
    shape: tuple[int, ...],
    k: int,
    free: tuple[int, ...],
    groups: ColumnGroups | ColumnLists | None,
    bounds: Bounds | None,
    inverse_scale: Any,
) -> ColumnConstraint:
    """Return the set of points with k columns, or groups of them, besides the free coordinates."""
    size, *several = shape
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
    model = objective_of(as_design(column), label.astype(float), loss, sample_weight=sample_weight, offset=known)
    free = tuple(range(1, present.size)) if ordered else (0,)
    kind = Sparsity if ordered else RowSparsity
    return float(starting_point(model, kind(0, free=free), None)[0].value)
