"""The problem of a sparse linear model: from a table to an objective, and from a point back to coefficients."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse import issparse

from hardthresh.arrays import gather, move, namespace, to_numpy
from hardthresh.constraints import GroupSparsity, Sparsity
from hardthresh.constraints.labels import changed
from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.objective import UNITS
from hardthresh.core.support import Support
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array
from hardthresh.losses import Loss
from hardthresh.objectives import LinearModel

from ..table import Table, standardize_table, take_columns
from .bounds import Bounds


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A fingerprint of training data, to tell whether they were changed.

    Attributes
    ----------
    rows : array, shape (n_samples,)
        For each row one random combination of its standardised entries.
    targets : array, shape (n_samples,)
        A copy of the targets.
    rounding : float
        Largest difference of two computations of `rows`, for example with other numbers of threads.
    """

    rows: Array
    targets: Array
    rounding: float

    def agrees(self, other: Fingerprint) -> bool:
        """Return whether two fingerprints are those of the same data."""
        xp = namespace(self.rows)
        return bool(xp.all(self.targets == other.targets)) and bool(
            xp.all(xp.abs(self.rows - other.rows) <= self.rounding)
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """A sparse linear model of standardised columns, with the intercept as the last, free coordinate.

    Attributes
    ----------
    objective, constraint :
        The objective to minimise, and the constraint.
    mean, inverse_scale : array, shape (n_features,)
        The mean of each column and the factor after subtracting it; 0 marks a constant column.
    intercept : bool
        Whether there is one.
    level : float
        The part of the objective's offset that belongs to the intercept: it makes the intercept small.
    offset_given : bool
        Whether the table has an offset.
    bounds : Bounds or None
        The bounds of the coefficients on the scale of the data.
    """

    objective: LinearModel
    constraint: Sparsity | GroupSparsity
    mean: Array
    inverse_scale: Array
    intercept: bool
    level: float = 0.0
    offset_given: bool = False
    bounds: Bounds | None = None

    def with_budget(self, k: int) -> Problem:
        """Return the problem with another number of non-zeros, or of groups."""
        if isinstance(self.constraint, GroupSparsity):  # whose labels need not be read again
            return replace(self, constraint=changed(self.constraint, k=checked_integer("k", k, 0)))
        return replace(self, constraint=replace(self.constraint, k=k))

    def with_ridge(self, alpha: float) -> Problem:
        """Return the problem with another ridge on the coordinates that are not free."""
        ridge = np.full(self.objective.shape[0], alpha)
        ridge[list(self.constraint.free)] = 0.0
        return replace(self, objective=self.objective.with_ridge(ridge))

    def with_loss(self, loss: Loss) -> Problem:
        """Return the problem with another loss."""
        return replace(self, objective=self.objective.with_loss(loss))

    def coefficients(self, w: Array) -> tuple[Array, Array]:
        """Return coefficients and intercept on the scale of the data."""
        xp = namespace(w)
        d = self.mean.shape[0]
        coef = w[:d] * self.inverse_scale
        if self.bounds is not None:
            coef = self.bounds.clip(coef)
        intercept = (w[d] if self.intercept else 0 * w[0]) - xp.sum(coef * self.mean)
        return coef, intercept + self.level if self.level else intercept

    def parts(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of standardised columns and the intercepts of points, along the last axis."""
        d = self.mean.shape[0]
        return points[..., :d], points[..., d] if self.intercept else np.zeros(points.shape[:-1])

    def on_scale_of_data(
        self, columns: np.ndarray, coefs: np.ndarray, intercepts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients and intercepts on the scale of the data, from those of some standardised columns.

        Parameters
        ----------
        columns : array of int
            The columns, increasing.
        coefs : array, shape (..., n_columns)
            Their coefficients.
        intercepts : array, shape (...)
            The intercepts; or several for each row of coefficients, along a further axis.
        """
        features = move(columns, self.mean)
        scale, mean = (to_numpy(gather(x, features)) for x in (self.inverse_scale, self.mean))
        coefs = coefs * scale
        if self.bounds is not None:
            coefs = self.bounds.clip(coefs, columns)
        shift = coefs @ mean
        intercepts = intercepts - (shift[..., None] if intercepts.ndim == coefs.ndim else shift)
        return coefs, intercepts + self.level if self.level else intercepts

    def point(self, coef: Array, intercept: Array) -> Array:
        """Return the point of given coefficients: the inverse of `coefficients`."""
        xp = namespace(coef)
        scale = xp.where(self.inverse_scale > 0, self.inverse_scale, xp.ones_like(coef))
        w = xp.where(self.inverse_scale > 0, coef / scale, 0 * coef)
        if not self.intercept:
            return w
        return xp.concat([w, xp.reshape(intercept - self.level + xp.sum(coef * self.mean), (1,))])

    def features(self, support: Support) -> Array:
        """Return the features of a support: without the intercept, and of a group without its constant columns."""
        chosen = support.indices
        chosen = chosen[chosen < self.mean.shape[0]]
        return chosen[gather(self.inverse_scale, chosen) > 0] if self.grouped else chosen

    @property
    def grouped(self) -> bool:
        """Whether whole groups of features are chosen."""
        return isinstance(self.constraint, GroupSparsity)

    @property
    def n_candidates(self) -> int:
        """The number of features, or of groups, to choose from."""
        return self.constraint.structure(self.objective.shape).candidates

    @property
    def candidate_size(self) -> float:
        """The number of columns of a candidate: 1, or the mean size of the groups."""
        counted = self.objective.shape[0] - len(self.constraint.free)
        return counted / max(self.n_candidates, 1)

    def groups(self, support: Support) -> tuple[Any, ...]:
        """Return the labels of the groups of a support."""
        assert isinstance(self.constraint, GroupSparsity)
        return self.constraint.groups_of(support)

    def group_name(self, number: int) -> str:
        """Return the label of a group."""
        assert isinstance(self.constraint, GroupSparsity)
        return str(self.constraint.names[number])

    @serial_blas()
    def fingerprint(self) -> Fingerprint:
        """Return a fingerprint of the data. Cost: one data pass, and two numbers per row."""
        model, d = self.objective, self.mean.shape[0]
        xp = namespace(self.mean)
        squares = model.design.pullback_squares(model.weights)  # which the design knows
        unit = xp.sqrt(xp.where(squares > 0, squares, xp.ones_like(squares)))
        drawn = xp.astype(move(_drawn(unit.shape[0]), unit), unit.dtype)
        far = xp.abs(self.mean * self.inverse_scale) / unit[:d]  # from zero, in standard deviations
        terms = float(xp.sum(xp.abs(drawn[:d]) * (far + 1.0)))
        rounding = UNITS * float(xp.finfo(unit.dtype).eps) * terms
        return Fingerprint(model.design.predict(drawn / unit), xp.asarray(model.y, copy=True), rounding)

    def scale(self) -> Array:
        """Return the standard deviation of each column as used in the fit, 0 for a constant one."""
        xp = namespace(self.inverse_scale)
        varies = self.inverse_scale > 0
        scale = 1 / xp.where(varies, self.inverse_scale, xp.ones_like(self.inverse_scale))
        return xp.where(varies, scale, xp.zeros_like(scale))


@lru_cache(maxsize=1)
def _drawn(size: int) -> np.ndarray:
    """Return random numbers, the same for every fit; to draw them takes as long as to read a small table."""
    return np.random.default_rng(0).standard_normal(size)


def build_problem(
    table: Table,
    *,
    loss: Loss,
    k: int,
    alpha: float,
    always_include: tuple[int, ...],
    bounds: Bounds | None,
    fit_intercept: bool,
    scale: bool,
    name: Callable[[int], str],
    groups: tuple[Any, ...] | None = None,
    levels: Collection[int] = (),
) -> Problem:
    """Return the problem of fitting a table.

    The ridge `alpha` acts on the standardised coefficients that are neither the intercept nor always included; `name`
    says how a message calls a column; `groups` are the labels of the columns, of which k are chosen then, and which do
    not go together with `bounds`; `levels` are the columns that are levels of categorical ones, which some rows may
    lack.

    Raises
    ------
    InvalidInputError
        If an always-included column is constant, or entries are so large that the scale of a column overflows.
    """
    standardized, weights = standardize_table(table, fit_intercept=fit_intercept, scale=scale)
    inverse_scale = standardized.inverse_scale
    d = inverse_scale.shape[0]
    for j in always_include:
        if fit_intercept and float(inverse_scale[j]) == 0.0 and j not in levels:
            raise InvalidInputError(
                f"always_include names {name(j)}, which is constant and cannot be told from the intercept; leave it out"
            )
    size = d + fit_intercept
    free = (*always_include, d) if fit_intercept else always_include
    ridge = np.full(size, alpha)
    ridge[list(free)] = 0.0
    level = loss.initial_prediction(table.y, weights) if fit_intercept else 0.0
    offset = table.offset
    if level:
        offset = level + (0 * table.y if offset is None else offset)
    objective = LinearModel(standardized, table.y, loss, sample_weight=table.sample_weight, offset=offset, l2=ridge)
    constraint: Sparsity | GroupSparsity
    if groups is None:
        lower, upper = (None, None) if bounds is None else bounds.standardized(inverse_scale, fit_intercept)
        constraint = Sparsity(k, free=free, lower=lower, upper=upper)
    else:
        constraint = GroupSparsity((*groups, None) if fit_intercept else groups, k, free=free)
    return Problem(
        objective,
        constraint,
        standardized.mean,
        inverse_scale,
        fit_intercept,
        level,
        table.offset is not None,
        None if groups is not None else bounds,
    )


def linear_predictor(X: Any, support: Array, coef: Array, intercept: float) -> Array:
    """Return X coef + intercept, reading only the columns of the support."""
    chosen, coef = take_columns(X, support), gather(coef, support)
    xp = namespace(coef)
    common = xp.result_type(chosen.dtype, coef.dtype)
    chosen = chosen if issparse(chosen) else xp.astype(chosen, common, copy=False)
    return chosen @ xp.astype(coef, common, copy=False) + intercept
