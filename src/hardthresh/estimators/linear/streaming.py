"""Models that learn from one batch of rows after another: `partial_fit`."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hardthresh.arrays import double, move, namespace, to_numpy
from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.errors import InvalidInputError, plural, warn
from hardthresh.core.objective import Evaluation
from hardthresh.core.threads import serial_blas
from hardthresh.designs import RunningMoments, Standardized
from hardthresh.losses import Loss, VectorLoss
from hardthresh.objectives.inputs import mean_weights
from hardthresh.solvers import StochasticIHT
from hardthresh.solvers.start import starting_point
from hardthresh.solvers.stochastic import Averaged, StreamState

from ..blocked import BlockTable, is_blocks
from ..parameters import exists_unless
from ..table import Scaling, Table
from .epochs import learned_by_epochs, refitted
from .model import SparseLinearModel
from .nuisance import ScalarNuisance
from .prediction import PointwisePrediction
from .problem import Problem, point_of
from .rounding import without_rounding
from .several_outputs import VectorPrediction

STEP, AVERAGE = 0.3, 0.8
"""The step of streams, over the mean curvature of the losses, and the average of their gradients.

Measured with 500 columns whose neighbours correlate (``benchmarks/streams.py``)."""

_KEPT = ("n_features_in_", "feature_names_in_", "output_names_", "classes_", "encoding_")
"""Fitted attributes that say what the columns and the targets are."""


def _not_streamed(model: StreamedModel) -> str:
    """Return why a model does not learn from batches, and what to do; nothing if it does."""
    if model._needs_all_rows:
        return model._needs_all_rows
    if not (isinstance(model.solver, StochasticIHT) or model.solver == "auto"):
        return (
            f'the solver {model.solver!r} needs all rows at once; set solver="auto" or StochasticIHT(step={STEP}, '
            f"average={AVERAGE})"
        )
    return ""


streamed = exists_unless(_not_streamed)
"""Decorator of `partial_fit`, which models have that can learn from batches with their settings."""


class StreamedModel(SparseLinearModel):
    """Base of the models of which some learn from batches. See the concrete classes."""

    _needs_all_rows: ClassVar[str] = ""
    """Why a model has no `partial_fit`; empty if it has."""

    stream_: StreamState
    n_samples_seen_: int

    @streamed
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        r"""Update the model with a batch of rows, without storing the rows.

        The method exists for smooth losses, with the solver "auto" or a `StochasticIHT`. The first call starts from the
        model of the last `fit`, if there is one, and `fit` discards all batches. If the number of features is not set,
        the first batch chooses it, as `fit` does, and it is then fixed.

        Parameters
        ----------
        X, y, sample_weight, offset :
            As in `fit`. All batches must have the columns of the first. The rows should be in random order, because
            each batch is treated as a random sample of all rows.

        Returns
        -------
        self
            `stream_` contains the state of the stream, `n_samples_seen_` the number of rows, and `n_iter_` the number
            of batches.

        Raises
        ------
        ValueError
            For data that `fit` would not accept, and for columns other than those of the first batch. The model is then
            unchanged.

        See Also
        --------
        hardthresh.solvers.StochasticIHT : The solver that computes the step.

        Notes
        -----
        Each call takes one step of iterative hard thresholding. Columns are centred and scaled by the means and
        standard deviations of all rows so far. The gradient is an exponential average over the batches, in which the
        weight of earlier batches is multiplied by :math:`\beta` = 0.8 with each new one. The step size is 0.3 divided
        by the mean second derivative of the losses, and the k largest coefficients are kept. Pass a `StochasticIHT` as
        `solver` for another step size and average; its setting for batches is ignored.

        Cost: four passes over the batch. Memory: 4 d numbers for d columns, and the batch. Guarantee: heuristic; a
        batch should have many times as many rows as the model has features. ``benchmarks/streams.py`` measures how many
        rows are needed to find the features.
        """
        return self._learn(X, y, sample_weight, offset)

    def _fit(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> Self:
        solver = self.solver
        streams = isinstance(solver, StochasticIHT) and self._nuisance() is None and not self._needs_all_rows
        if not (streams and is_blocks(X)):
            return super()._fit(X, y, sample_weight, offset)
        assert isinstance(solver, StochasticIHT)
        given = self._validate_fit(X, y, sample_weight, offset)
        assert isinstance(given, BlockTable)
        table: Any = self._encode(given)
        learner, settled = learned_by_epochs(self, given.engine, solver, self._seed(), **self._all_labels(given.engine))
        support = to_numpy(learner.support_)
        k = learner.__dict__.get(f"best_{self._k_name}_", getattr(self, self._k_name))
        problem = self._problem(replace(table, chosen=support), self._checked_k(k))
        result = without_rounding(problem, refitted(problem, support, self.tol, self.max_iter))
        self._keep(problem, result)
        self._keep_choice(None, problem, table, result.w)
        problem.end_fit()
        self.n_iter_ = learner.n_iter_
        self.stop_reason_ = f"the features {'stayed' if settled else 'did not stay'} the same for an epoch, after " + (
            f"{plural(learner.n_iter_, 'block')}; they were then fitted to all rows ({result.message})"
        )
        if not settled:
            self.converged_ = False
            warn(f"{type(self).__name__}: {self.stop_reason_}; raise max_iter", ConvergenceWarning)
        return self

    def _all_labels(self, engine: Any) -> dict[str, Any]:
        """Return what `partial_fit` has to know of a whole table."""
        return {}

    @without_overflow_warnings
    @serial_blas()
    def _learn(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> Self:
        """Take one step with a batch of rows."""
        if is_blocks(X):
            raise InvalidInputError(
                "partial_fit learns from the rows of one batch, and X is a table in blocks: use fit, or give one block "
                "after another, as rows = blocks.read(0) and partial_fit(rows.X, rows.y)"
            )
        best = f"best_{self._k_name}_"
        if self._chooses_k() and not hasattr(self, best):
            self._check_first(y)
            self._fit(X, y, sample_weight, offset)
        before: StreamState | None = getattr(self, "stream_", None)
        fitted = hasattr(self, "coef_")
        given = self._validate(X, y, sample_weight, offset, reset=not fitted).weighted()
        table = self._encode(given)
        moments, level, weight = self._moments(table, before)
        k = self._checked_k(getattr(self, best if self._chooses_k() else self._k_name))
        problem = self._problem(table, k, Scaling(self._standardized(table, moments), level))
        nuisance, parameter = self._nuisance(), None if before is None else before.parameter
        if nuisance is not None:
            assert isinstance(nuisance, ScalarNuisance)
            problem = problem.with_loss(
                nuisance.start(problem) if parameter is None else nuisance.loss(exp(parameter.mean))
            )
        at, gradients = self._begin(problem, before, fitted)
        solver = self._stream_solver(problem)
        if nuisance is not None:
            estimate = log(nuisance.update(problem.objective, at))
            parameter = (
                Averaged(estimate, weight)
                if parameter is None
                else parameter.and_then(estimate, solver.average, weight)
            )
        projection, gradients = solver.absorb(problem.objective, problem.constraint, at, gradients, weight)
        coef, intercept = problem.coefficients(projection.point)
        state = StreamState(
            coef=double(coef),
            intercept=np.asarray(double(intercept)),
            gradients=replace(gradients, mean=_scaled(double(gradients.mean), double(problem.scale()))),
            moments=moments,
            level=level,
            parameter=parameter,
            batches=1 if before is None else before.batches + 1,
            rows=given.n_rows + (0 if before is None else before.rows),
        )
        self._keep_stream(state, problem, projection.support, self._coefficients(problem, projection.point))
        return self

    def _check_first(self, y: Any) -> None:
        """Refuse a first batch that cannot choose the number of features."""

    def _moments(self, table: Table, before: StreamState | None) -> tuple[RunningMoments, float, float]:
        """Return the moments of all batches and this one, the level of intercepts, and the weight of this batch."""
        design = table.design()
        weights = mean_weights(table.sample_weight, design.zeros(1), table.n_rows)
        weight = float(table.n_rows if table.sample_weight is None else double(table.sample_weight).sum())
        if before is not None:
            return before.moments.absorb(design, weights, weight), before.level, weight
        level = self._loss_for(table.y).initial_prediction(table.y, weights) if self.fit_intercept else 0.0
        return RunningMoments.none(self._n_columns).absorb(design, weights, weight), level, weight

    def _standardized(self, table: Table, moments: RunningMoments) -> Standardized:
        return moments.standardize(table.design(), scale=self.standardize, intercept=self.fit_intercept)

    def _begin(self, problem: Problem, before: StreamState | None, fitted: bool) -> tuple[Evaluation, Averaged | None]:
        """Return where a step begins, evaluated on the batch, and the average of the gradients so far.

        That is where the last step ended; or where `fit` did; or the null model of the first batch, and zero where that
        grows without bound, as with one class.
        """
        objective, like = problem.objective, problem.mean
        if before is not None:
            intercept = float(before.intercept) if before.intercept.ndim == 0 else before.intercept
            w = point_of(problem, before.coef, intercept, "the stream")
            mean = _standardized_gradient(before, double(like), double(problem.inverse_scale), problem.intercept)
            gradients = replace(before.gradients, mean=namespace(w).astype(move(mean, w), w.dtype))
            return objective.evaluate(w), gradients
        if fitted:
            return objective.evaluate(point_of(problem, *self._certified(), "the last fit")), None
        if not _falls_for_ever(problem):
            return starting_point(objective, problem.constraint, None)[0], None
        return objective.evaluate(objective.null_point()), None

    def _stream_solver(self, problem: Problem) -> StochasticIHT:
        """Return the solver: by default with a step that is relative to the mean curvature of the losses."""
        if isinstance(self.solver, StochasticIHT):
            return self.solver
        objective, loss = problem.objective, problem.objective.loss
        if loss.quadratic:
            return StochasticIHT(STEP, average=AVERAGE)
        zero = objective.zeros()
        at = Evaluation(zero, 0.0, zero, objective.predict(zero))
        of_rows = VectorPrediction(loss, zero.shape[1]) if isinstance(loss, VectorLoss) else PointwisePrediction(loss)
        return StochasticIHT(STEP / of_rows.mean_curvature(objective, at), average=AVERAGE)

    def _keep_stream(self, state: StreamState, problem: Problem, support: Any, fitted: dict[str, Any]) -> None:
        """Set the attributes of a model of a stream, and remove all others that a fit sets."""
        names = [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]
        kept = {*_KEPT, *((f"best_{self._k_name}_",) if self._chooses_k() else ())}
        for name in names:
            if name not in kept:
                delattr(self, name)
        for name, value in (fitted | self._parameter_of(problem.objective.loss)).items():
            setattr(self, name, value)
        self.support_ = problem.features(support)
        self.scale_ = problem.scale()
        self._count_features(problem, support)
        self.n_iter_ = state.batches
        self.n_samples_seen_ = state.rows
        self.converged_ = False
        self.stop_reason_ = f"learned from {state.rows:,} rows in {state.batches:,} batches, and may go on"
        self.offset_used_ = problem.offset_given
        self.stream_ = state
        self._training = self._certificate = self._summary = None

    def _parameter_of(self, loss: Any) -> dict[str, Any]:
        """Return the attribute of a parameter of the loss that is estimated with the coefficients."""
        return {}


def _scaled(gradient: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return a gradient in standardised coefficients, and maybe an intercept, as one on the scale of the data."""
    factor = np.append(scale, np.ones(gradient.shape[0] - scale.size))
    return np.asarray((gradient.T * factor).T)


def _standardized_gradient(
    state: StreamState, mean: np.ndarray, inverse_scale: np.ndarray, intercept: bool
) -> np.ndarray:
    """Return the average gradient of a stream in coefficients of columns that are standardised anew."""
    gradient, d = state.gradients.mean, mean.size
    inner = gradient[:d]
    if intercept:  # whose gradient moves with the means
        inner = inner + np.multiply.outer(state.moments.mean - mean, gradient[d])
    return np.concatenate([(inner.T * inverse_scale).T, gradient[d:]])


def _falls_for_ever(problem: Problem) -> bool:
    """Return whether the losses of all rows fall as one prediction grows, or as it falls: one class, or no counts."""
    loss = problem.objective.loss
    if not isinstance(loss, Loss):
        return loss.recession(problem.objective.y) is not None
    recession = to_numpy(loss.recession(problem.objective.y))
    return bool((recession > 0).all() or (recession < 0).all())
