"""The problem of a sparse linear model, and the way between its points and coefficients on the scale of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import issparse

from hardthresh.arrays import gather, move, namespace, to_numpy
from hardthresh.certificates.swap import units
from hardthresh.constraints import GroupSparsity, OverlappingGroupSparsity, RowSparsity, Sparsity
from hardthresh.constraints.labels import changed
from hardthresh.constraints.supports import Rows
from hardthresh.core.checking import checked_integer
from hardthresh.core.constraint import coordinate_budget
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.support import Support
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array
from hardthresh.losses import Loss, VectorLoss
from hardthresh.objectives import LinearModel, MultiOutputModel, OrdinalModel
from hardthresh.solvers.model_supports import model_supports, null_evaluation
from hardthresh.solvers.working_set.support_grid import refit_supports

from ..base import numpy_dtype
from ..table import take_columns
from .bounds import Bounds
from .fingerprint import Fingerprint

Objective: TypeAlias = LinearModel | MultiOutputModel
ColumnConstraint: TypeAlias = Sparsity | GroupSparsity | OverlappingGroupSparsity | RowSparsity
"""The constraints of these problems: k columns, lists of columns, groups of columns, or rows of a matrix."""

Tested: TypeAlias = tuple[Any, np.ndarray, tuple[int, ...], np.ndarray | None]
"""A linear model, the slopes of its predictions, its free coordinates, and the signs of its coefficients."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A sparse linear model of standardised columns, with the intercept as the last, free coordinate.

    The points of a model of several outputs, or of more than two classes, are matrices, with a row for each column of
    the data: a feature is chosen for all outputs. Their coefficients have a row for each output.

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
    codes : object
        What is known of the targets besides their numbers: that of the table.
    """

    objective: Objective
    constraint: ColumnConstraint
    mean: Array
    inverse_scale: Array
    intercept: bool
    level: float = 0.0
    offset_given: bool = False
    bounds: Bounds | None = None
    codes: Any = None

    def with_budget(self, k: int) -> Problem:
        """Return the problem with another number of non-zeros, or of groups."""
        if isinstance(self.constraint, Sparsity):
            return replace(self, constraint=replace(self.constraint, k=k))
        return replace(self, constraint=changed(self.constraint, k=checked_integer("k", k, 0)))  # groups are read once

    def with_ridge(self, alpha: float) -> Problem:
        """Return the problem with another ridge on the coordinates that are not free."""
        ridge = np.full(self.objective.shape[0], alpha)
        ridge[list(self.constraint.free)] = 0.0
        return replace(self, objective=self.objective.with_ridge(ridge))

    def with_loss(self, loss: Loss | VectorLoss) -> Problem:
        """Return the problem with another loss."""
        return replace(self, objective=self.objective.with_loss(loss))

    def coordinates(self, support: Support) -> np.ndarray:
        """Return the coordinates of a support; of matrices the rows."""
        return to_numpy(support.rows if isinstance(support, Rows) else support.indices)

    def supports_by_model(self, sizes: Sequence[int], ridge: float, tol: float) -> list[np.ndarray] | None:
        """Return the supports of some sizes that quadratic models choose with a ridge; see `model_supports`."""
        return model_supports(self.objective, lambda size: self.with_budget(size).constraint, sizes, ridge, tol)

    def minimisers(
        self, supports: Sequence[np.ndarray], sizes: Sequence[int], ridges: np.ndarray
    ) -> tuple[np.ndarray, list[str]]:
        """Return the minimisers on the supports of some sizes with some ridges, and which of them were not found.

        They have the shape (n_sizes, n_ridges, ...), coordinates along the last axis; see `refit_supports`.
        """
        model, constraint = self.objective, self.constraint
        plain = coordinate_budget(constraint, tuple(model.shape))
        null, bounds = null_evaluation(model, constraint).point, None if plain is None else plain.bounds
        points, unconverged = refit_supports(model, null, constraint.free, supports, sizes, ridges, bounds)
        return points if points.ndim == 3 else np.swapaxes(points, 2, 3), unconverged

    def by_output(self, w: Array) -> Array:
        """Return a point with its coordinates along the last axis, centred over classes that a constant may move."""
        return w if isinstance(self.objective, LinearModel) else self.objective.centre(w).T

    def coefficients(self, w: Array) -> tuple[Array, Array]:
        """Return coefficients and intercept on the scale of the data: of several outputs a row of them for each."""
        rows = self.by_output(w)
        d = self.mean.shape[0]
        coef = rows[..., :d] * self.inverse_scale
        if self.bounds is not None:
            coef = self.bounds.clip(coef)
        shift = namespace(w).sum(coef * self.mean, axis=-1)
        intercept = (rows[..., d] if self.intercept else 0 * rows[..., 0]) - shift
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
        scale = xp.where(self.inverse_scale > 0, self.inverse_scale, xp.ones_like(self.inverse_scale))
        rows = xp.where(self.inverse_scale > 0, coef / scale, 0 * coef)
        if self.intercept:
            last = intercept - self.level + xp.sum(coef * self.mean, axis=-1)
            rows = xp.concat([rows, xp.reshape(last, (*rows.shape[:-1], 1))], axis=-1)
        return rows if rows.ndim == 1 else rows.T

    def unit_numbers(self, support: Support) -> np.ndarray:
        """Return the number of the unit of each feature of a support: its own, or its group's; -1 if it is free."""
        model = self.objective
        if isinstance(self.constraint, RowSparsity):
            d = self.mean.shape[0]
            blocks = to_numpy(self.constraint.structure(model.shape).numbers)[:: model.shape[1]]
            return np.asarray(blocks[:d] if self.grouped else np.arange(d))
        return units(self.constraint, support, model.shape[0])[0]

    def features(self, support: Support) -> Array:
        """Return the features of a support: without the intercept, and of a group without its constant columns."""
        chosen = support.rows if isinstance(support, Rows) else support.indices
        chosen = chosen[chosen < self.mean.shape[0]]
        return chosen[gather(self.inverse_scale, chosen) > 0] if self.grouped else chosen

    @property
    def grouped(self) -> bool:
        """Whether whole groups of features are chosen."""
        rows = isinstance(self.constraint, RowSparsity) and self.constraint.groups is not None
        return rows or isinstance(self.constraint, GroupSparsity | OverlappingGroupSparsity)

    @property
    def n_candidates(self) -> int:
        """The number of features, or of groups, to choose from."""
        return self.constraint.structure(self.objective.shape).candidates

    @property
    def candidate_size(self) -> float:
        """The number of columns of a candidate: 1, or the mean size of the groups."""
        counted = self.objective.shape[0] - len(self.constraint.free)
        if isinstance(self.constraint, OverlappingGroupSparsity):
            counted = sum(map(len, self.constraint.groups))
        return counted / max(self.n_candidates, 1)

    def groups(self, support: Support) -> tuple[Any, ...]:
        """Return the labels of the groups of a support."""
        assert not isinstance(self.constraint, Sparsity)
        return self.constraint.groups_of(support)

    def support(self, w: Array, groups: Sequence[Any]) -> Support:
        """Return the support of a point of some groups; which groups these are, only overlapping ones need be told."""
        if not isinstance(self.constraint, OverlappingGroupSparsity):
            return self.constraint.project(w).support
        chosen = [number for number, name in enumerate(self.constraint.names) if name in groups]
        return self.constraint.cover(move(np.array(chosen, dtype=np.int64), w))

    def group_name(self, number: int) -> str:
        """Return the label of a group."""
        assert not isinstance(self.constraint, Sparsity)
        return str(self.constraint.names[number])

    @serial_blas()
    def fingerprint(self) -> Fingerprint:
        """Return a fingerprint of the data. Cost: one data pass, and two numbers per row."""
        model = self.objective
        return Fingerprint.of(model.design, model.y, self._prediction_weights(), self.mean * self.inverse_scale)

    def _prediction_weights(self) -> Array:
        """Return the weight of each prediction of the objective."""
        return self.objective.weights

    def tested(self, slope: np.ndarray, signs: np.ndarray | None) -> Tested:
        """Return what a permutation test of all columns takes, for the slopes of the predictions at the null model.

        That is a linear model of the rows, the slope of its prediction for each, its free coordinates, and the signs
        that its coefficients must have.
        """
        return self.objective, slope, tuple(self.constraint.free), signs

    def scale(self) -> Array:
        """Return the standard deviation of each column as used in the fit, 0 for a constant one."""
        xp = namespace(self.inverse_scale)
        varies = self.inverse_scale > 0
        scale = 1 / xp.where(varies, self.inverse_scale, xp.ones_like(self.inverse_scale))
        return xp.where(varies, scale, xp.zeros_like(scale))


class OrdinalProblem(Problem):
    """A sparse model of ordered classes, with the thresholds as the last, free coordinates.

    Its intercepts are those of the log-odds of a class above each threshold: the thresholds with the other sign.
    """

    __slots__ = ()

    def coefficients(self, w: Array) -> tuple[Array, Array]:
        """Return coefficients and intercepts on the scale of the data."""
        coef, shift = super().coefficients(w)
        return coef, shift - w[self.mean.shape[0] :]

    def parts(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of standardised columns and the intercepts of points, along the last axis."""
        d = self.mean.shape[0]
        return points[..., :d], -points[..., d:]

    def point(self, coef: Array, intercept: Array) -> Array:
        """Return the point of given coefficients and intercepts: the inverse of `coefficients`."""
        xp = namespace(coef)
        return xp.concat([super().point(coef, intercept), -intercept - xp.sum(coef * self.mean)])

    def tested(self, slope: np.ndarray, signs: np.ndarray | None) -> Tested:
        """Return the same for one linear predictor of each row; what thresholds explain is gone from its slope."""
        model, d = self.objective, self.mean.shape[0]
        assert isinstance(model, OrdinalModel)
        above, below = np.split(slope, 2)
        linear = LinearModel(model.data, 0.0 * model.y, sample_weight=model.weights)
        free = tuple(j for j in self.constraint.free if j < d)
        return linear, -above - below, free, None if signs is None else signs[:d]

    def _prediction_weights(self) -> Array:
        weights = self.objective.weights
        return namespace(weights).concat([weights, weights])


def point_of(problem: Problem, coef: np.ndarray, intercept: Any, whose: str) -> Any:
    """Return the point of a problem for coefficients, which a message calls `whose`, in the precision of its data."""
    has, needs = coef.shape[:-1], tuple(problem.objective.shape)[1:]
    if has != needs:
        raise InvalidInputError(
            f"{whose} has coefficients of shape {(*has, coef.shape[-1])}, these targets need {(*needs, coef.shape[-1])}"
        )
    like = problem.mean
    if isinstance(intercept, float):
        intercept = float(intercept)  # which goes with all arrays, as NumPy's scalars do not
    else:
        intercept = move(np.asarray(intercept, dtype=numpy_dtype(like)), like)
    return problem.point(move(coef.astype(numpy_dtype(like)), like), intercept)


def features_of(coef: np.ndarray) -> np.ndarray:
    """Return which features a model has, from coefficients of shape (n_features,) or (n_outputs, n_features)."""
    return np.asarray((coef != 0).any(axis=tuple(range(coef.ndim - 1))))


def linear_predictor(X: Any, support: Array, coef: Array, intercept: Any) -> Array:
    """Return X coef + intercept, reading only the columns of the support; of several outputs a column for each."""
    several = coef.ndim == 2
    chosen, coef = take_columns(X, support), coef.T if several else coef
    coef = namespace(coef).take(coef, support, axis=0) if several else gather(coef, support)
    xp = namespace(coef)
    common = xp.result_type(chosen.dtype, coef.dtype)
    chosen = chosen if issparse(chosen) else xp.astype(chosen, common, copy=False)
    return chosen @ xp.astype(coef, common, copy=False) + intercept
