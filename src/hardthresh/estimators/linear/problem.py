"""The problem of a sparse linear model, and the conversion of its points to coefficients on the scale of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import issparse

from hardthresh.arrays import double, gather, move, namespace, to_numpy
from hardthresh.certificates.effects import dispersion, robust_errors, standard_errors
from hardthresh.certificates.swap import units
from hardthresh.constraints import GroupSparsity, OverlappingGroupSparsity, RowSparsity, Sparsity
from hardthresh.constraints.labels import changed
from hardthresh.core.checking import checked_integer
from hardthresh.core.constraint import coordinate_budget
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.objective import Evaluation
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.support import Support
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array
from hardthresh.losses import Loss, VectorLoss
from hardthresh.objectives import LinearModel, MultiOutputModel
from hardthresh.solvers.model_supports import model_supports, null_evaluation
from hardthresh.solvers.start import starting_point
from hardthresh.solvers.working_set.half_samples import least_squares_half_samples
from hardthresh.solvers.working_set.support_grid import refit_supports

from ..base import numpy_dtype
from ..table import take_columns
from .bounds import Bounds
from .examined import Examined
from .fingerprint import Fingerprint
from .weighting import Weighting, counts_of

Objective: TypeAlias = LinearModel | MultiOutputModel
ColumnConstraint: TypeAlias = Sparsity | GroupSparsity | OverlappingGroupSparsity | RowSparsity
"""The constraints of these problems: k columns, lists of columns, groups of columns, or rows of a matrix."""

Tested: TypeAlias = tuple[Any, np.ndarray, tuple[int, ...], np.ndarray | None]
"""A linear model, the slopes of its predictions, its free coordinates, and the signs of its coefficients."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A sparse linear model of standardised columns, with the intercept as the last, free coordinate.

    Its points are vectors. Those of several outputs, or of more than two classes, are matrices (`RowsProblem`), and
    ordered classes have thresholds instead of the intercept (`OrdinalProblem`).

    Attributes
    ----------
    objective, constraint :
        The objective to minimise, and the constraint.
    mean, inverse_scale : array, shape (n_features,)
        The mean of each column and the factor after subtracting it; 0 marks a constant column.
    intercept : bool
        Whether there is one.
    level : float, or array of shape (n_outputs,)
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
    level: Any = 0.0
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

    def begin(self, w0: Array | None, solver: Solver, seed: int) -> tuple[Array | None, State | None]:
        """Return the point or the state in which a run from a point begins; None for a start of the solver's own."""
        return w0, None

    def answer_on_known_columns(self, solver: Solver, seed: int, w0: Array | None) -> Array | None:
        """Return the answer among the columns that are known where all others would have to be read; else None."""
        return None

    def start_of(self, points: Sequence[Array], place: int) -> Array | None:
        """Return where the fit with a chosen number of features begins, of which a first fit is known; None as any."""
        return None

    def going_on(self, last: Array, chosen: Array | None) -> Array | None:
        """Return where a run begins that continues from a last fit; `chosen` is where it would begin without."""
        return last

    def end_fit(self) -> None:
        """Release what only the fit needs: nothing."""

    def separated(self, w: Array) -> bool | None:
        """Return whether a point puts each row on the side of its class, where that alone can be told; else None."""
        return None

    @property
    def in_memory(self) -> bool:
        """Whether there is a prediction of each row here."""
        return True

    def to_prove(self) -> Problem:
        """Return the problem in the form in which a search for a proof reads it again and again."""
        return self

    def share_right(self, at: Evaluation, decide: Callable[[np.ndarray], np.ndarray]) -> float:
        """Return the share of the weight of rows whose target is what `decide` makes of their predictions."""
        return float(double(self.objective.weights) @ (double(self.objective.y) == decide(double(at.prediction))))

    def evaluated_on(self, support: Support, w: Array, prediction: Array | None = None) -> Evaluation:
        """Return the evaluation of a point of a support; of its gradient there may be the part on the support alone."""
        return self.objective.evaluate(w, prediction)

    def weighting(self) -> Weighting:
        """Return what is known of the weights of the rows."""
        weights = self.objective.weights
        return Weighting.of(counts_of(self.objective), float(namespace(weights).finfo(weights.dtype).eps))

    def correlations(self, columns: np.ndarray) -> np.ndarray:
        """Return the correlations of some columns, increasing, with the weights of the rows; NaN for constant ones."""
        X = double(self.objective.design.columns(move(columns, self.mean)).dense())
        weights = double(self.objective.weights)
        X = X[: weights.size]  # a model of ordered classes has its rows twice
        X = X - weights @ X
        return as_correlations(X.T @ (X * weights[:, None]))

    def coordinates(self, support: Support) -> Array:
        """Return the places of a support along the first axis of a point, increasing."""
        return support.indices

    def null_evaluation(self) -> Evaluation:
        """Return the null model, evaluated."""
        return starting_point(self.objective, self.constraint, None)[0]

    def supports_by_model(self, sizes: Sequence[int], ridge: float, tol: float) -> list[np.ndarray] | None:
        """Return the supports of some sizes that quadratic models choose with a ridge; see `model_supports`."""
        return model_supports(self.objective, lambda size: self.with_budget(size).constraint, sizes, ridge, tol)

    def supports_of_parts(
        self, parts: Sequence[np.ndarray], ridge: float, at: Array, *, standardize: bool, tol: float
    ) -> list[np.ndarray | str] | None:
        """Return the columns that are chosen on each of several parts of the rows; see `least_squares_half_samples`.

        None for other losses, and for sets of anything but single coordinates. `at` is the fit to all rows.
        """
        selection = coordinate_budget(self.constraint, tuple(self.objective.shape))
        if selection is None or not isinstance(self.objective, LinearModel) or not self.objective.traits.quadratic:
            return None
        found = least_squares_half_samples(
            self.objective, selection, parts, ridge, intercept=self.intercept, standardize=standardize, tol=tol
        )
        return [*found]

    def of_parts(self, parts: Any, *, standardize: bool) -> Iterator[Problem | str] | None:
        """Return the problem of each of several parts of the rows, or why there is none; None for rows in memory."""
        return None

    def minimisers(
        self, supports: Sequence[np.ndarray], sizes: Sequence[int], ridges: np.ndarray
    ) -> tuple[np.ndarray, list[str]]:
        """Return the minimisers on the supports of some sizes with some ridges, and which of them were not found.

        They have the shape (n_sizes, n_ridges, d); see `refit_supports`.
        """
        model, constraint = self.objective, self.constraint
        plain = coordinate_budget(constraint, tuple(model.shape))
        null, bounds = null_evaluation(model, constraint).point, None if plain is None else plain.bounds
        return refit_supports(model, null, constraint.free, supports, sizes, ridges, bounds)

    def coefficients(self, w: Array) -> tuple[Array, Array]:
        """Return coefficients and intercept on the scale of the data, for coordinates along the last axis."""
        d = self.mean.shape[0]
        coef = w[..., :d] * self.inverse_scale
        if self.bounds is not None:
            coef = self.bounds.clip(coef)
        shift = namespace(w).sum(coef * self.mean, axis=-1)
        intercept = (w[..., d] if self.intercept else 0 * w[..., 0]) - shift
        return coef, intercept + self.level if np.any(self.level) else intercept

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
            The intercepts.
        """
        features = move(columns, self.mean)
        scale, mean = (to_numpy(gather(x, features)) for x in (self.inverse_scale, self.mean))
        coefs = coefs * scale
        if self.bounds is not None:
            coefs = self.bounds.clip(coefs, columns)
        intercepts = intercepts - coefs @ mean
        return coefs, intercepts + self.level if np.any(self.level) else intercepts

    def point(self, coef: Array, intercept: Array) -> Array:
        """Return the point of given coefficients: the inverse of `coefficients`."""
        xp = namespace(coef)
        scale = xp.where(self.inverse_scale > 0, self.inverse_scale, xp.ones_like(self.inverse_scale))
        w = xp.where(self.inverse_scale > 0, coef / scale, 0 * coef)
        if self.intercept:
            last = intercept - self.level + xp.sum(coef * self.mean, axis=-1)
            w = xp.concat([w, xp.reshape(last, (*w.shape[:-1], 1))], axis=-1)
        return w

    def unit_numbers(self, support: Support) -> np.ndarray:
        """Return the number of the unit of each feature of a support: its own, or its group's; -1 if it is free."""
        return units(self.constraint, support, self.objective.shape[0])[0]

    def features(self, support: Support) -> Array:
        """Return the features of a support: without the intercept, and of a group without its constant columns."""
        chosen = self.coordinates(support)
        chosen = chosen[chosen < self.mean.shape[0]]
        return chosen[gather(self.inverse_scale, chosen) > 0] if self.grouped else chosen

    @property
    def grouped(self) -> bool:
        """Whether whole groups of features are chosen."""
        return not isinstance(self.constraint, Sparsity)

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

    def examined(self, w: Array, support: Support) -> Examined:
        """Return the problem and a point in the form in which features, or groups, are examined one by one."""
        return Examined(self.objective, self.constraint, w, support)

    def standard_errors(self, at: Evaluation, support: Support, n: float) -> np.ndarray:
        """Return the standard errors for the `coordinates` of a support, of n examples; see `standard_errors`."""
        return standard_errors(self.objective, at, support, n)

    def robust_errors(self, at: Evaluation, support: Support, frequency: bool, groups: np.ndarray | None) -> np.ndarray:
        """Return the robust ones, with weights that say how often rows are repeated or not; see `robust_errors`."""
        assert isinstance(self.objective, LinearModel)
        return robust_errors(self.objective, at, support, counts_of(self.objective) if frequency else None, groups)

    def dispersion(self, at: Evaluation, support: Support, n: float) -> float | None:
        """Return the dispersion of n targets about the model; None for losses that have none."""
        if self.objective.loss.unit_dispersion:
            return None
        return dispersion(self.objective, at, support.degrees_of_freedom, n)

    def cone(self, chosen: Array) -> Sparsity | RowSparsity:
        """Return the multiples of points of some coordinates: all are free, and of bounds only the signs matter."""
        lower, upper = (_cone(getattr(self.constraint, side, None), chosen) for side in ("lower", "upper"))
        return Sparsity(0, free=tuple(range(chosen.shape[0])), lower=lower, upper=upper)

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


def point_of(problem: Problem, coef: np.ndarray, intercept: Any, whose: str) -> Any:
    """Return the point of a problem for coefficients, which a message calls `whose`, in the precision of its data."""
    needs = tuple(problem.objective.shape)[1:]
    if needs == (1,) and coef.ndim == 1:  # of a column of targets, whose predictor is one
        coef, intercept = coef[None], np.atleast_1d(intercept)
    has = coef.shape[:-1]
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


def _cone(bound: np.ndarray | None, chosen: Array) -> np.ndarray | None:
    """Return the bounds of the multiples of some coordinates: 0 stays, and any other becomes infinite."""
    if bound is None:
        return None
    own = bound[to_numpy(chosen)]
    return np.where(own == 0, 0.0, np.copysign(np.inf, own))


def as_correlations(covariance: np.ndarray) -> np.ndarray:
    """Return the correlations of covariances; NaN for a variance of zero."""
    length = np.sqrt(covariance.diagonal())
    with np.errstate(invalid="ignore", divide="ignore"):
        values: np.ndarray = covariance / length / length[:, None]
    return values
