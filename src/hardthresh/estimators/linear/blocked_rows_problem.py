"""The problems of several outputs, and of more than two classes, of a table in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hardthresh.arrays import scatter
from hardthresh.certificates.effects import class_standard_errors
from hardthresh.core.errors import CapabilityError
from hardthresh.core.objective import Evaluation
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.objectives import BlockedOutputs
from hardthresh.objectives.flat_classes import FlatClasses
from hardthresh.objectives.half_outputs import half_models
from hardthresh.solvers.guessed import guessed_state
from hardthresh.solvers.model_supports import null_evaluation
from hardthresh.solvers.working_set.class_refits import refit_classes
from hardthresh.solvers.working_set.row_refits import refit_rows
from hardthresh.solvers.working_set.rows import null_model

from .blocked_problem import BlocksFingerprint
from .examined import Examined
from .problem import Problem, as_correlations
from .rows_problem import RowsProblem
from .weighting import Weighting


class BlockedRowsProblem(RowsProblem):
    """A sparse model of several outputs of a table in blocks. There is no prediction of each row."""

    __slots__ = ()
    objective: BlockedOutputs

    @property
    def in_memory(self) -> bool:
        """Whether there is a prediction of each row here: there is none."""
        return False

    def weighting(self) -> Weighting:
        """Return what is known of the weights of the rows: that they are equal, if all of them are 1."""
        rows, total, whole = self.objective.traits.n_rows, self.objective.total_weight, self.objective.whole_weights
        return Weighting(rows, total, whole, whole and total == rows)

    def correlations(self, columns: np.ndarray) -> np.ndarray:
        """Return the correlations of some columns, increasing, from their products."""
        found, units = self.objective.moments, self.objective.units
        Z = np.asarray(self.objective.design.columns(columns).dense(), dtype=np.float64)
        shift = (found.mean[columns] - units.mean[columns]) * units.inverse_scale[columns]
        return as_correlations(Z.T @ Z / len(Z) - np.outer(shift, shift))

    def with_loss(self, loss: Any) -> Problem:
        """Return the problem, whose loss has no parameters."""
        return self

    def of_parts(self, parts: Any, *, standardize: bool) -> Iterator[Problem | str] | None:
        """Return the problem of each of the halves that `BlockHalves` names, or why there is none."""
        return map(self._of_half, half_models(self.objective, parts, scale=standardize))

    def _of_half(self, model: BlockedOutputs | str) -> Problem | str:
        """Return the problem of some rows, from their model."""
        if isinstance(model, str):
            return model
        units, dtype = model.units, model.units.dtype
        mean, inverse_scale, level = (
            np.asarray(part, dtype=dtype) for part in (units.mean, units.inverse_scale, units.level)
        )
        return replace(self, objective=model, mean=mean, inverse_scale=inverse_scale, level=level)

    def fingerprint(self) -> Any:
        """Return a digest of the size and time of change of the files, and of the first and the last block."""
        return BlocksFingerprint(self.objective.engine.blocks.fingerprint())


class BlockedClassesProblem(BlockedRowsProblem):
    """A sparse model of more than two classes of a table in blocks. What needs a number for each row is refused."""

    __slots__ = ()
    objective: Any

    def of_parts(self, parts: Any, *, standardize: bool) -> None:
        """Return None: what halves choose of classes is not read from a table in blocks."""

    def begin(self, w0: Array | None, solver: Solver, seed: int) -> tuple[Array | None, State | None]:
        """Return the state in which a run begins, where a pilot has ended; of other solvers the point."""
        state = guessed_state(self.objective, self.constraint, solver, seed, w0)
        if state is not None:
            return None, state
        if w0 is None and self.objective.guessed:
            return self.constraint.project(self.objective.guessed[-1].point).point, None
        return w0, None

    def start_of(self, points: Sequence[Array], place: int) -> Array | None:
        """Return the first fit with a chosen number of features, at which the table was read."""
        return points[place] if points else None

    def end_fit(self) -> None:
        """Release large columns that are kept at the blocks."""
        self.objective.end_fit()

    def separated(self, w: Array) -> bool:
        """Return whether a point puts each row on the side of its class; others of the same columns are not tried."""
        _, totals, above = self.objective.scores(w)
        return bool(above[0] == totals.sum())

    def share_right(self, at: Evaluation, decide: Any) -> float:
        """Return the share of the weight of rows whose class is the most probable one."""
        sums, totals, _ = self.objective.scores(at.point)
        return float(sums[1] / totals.sum())

    def null_evaluation(self) -> Evaluation:
        """Return the null model, evaluated: a reading, unless all columns are kept."""
        return null_model(self.objective, np.asarray(self.constraint.free, dtype=np.int64))

    def evaluated_on(self, support: Support, w: Array, prediction: Array | None = None) -> Evaluation:
        """Return value and gradient on the support, from the model of its columns."""
        rows = self.objective.rows_of(support)
        few = self.objective.columns(rows).evaluate(w[rows])
        return Evaluation(w, few.value, scatter(few.gradient, rows, self.objective.shape[0]))

    def minimisers(
        self, supports: Sequence[np.ndarray], sizes: Sequence[int], ridges: np.ndarray
    ) -> tuple[np.ndarray, list[str]]:
        """Return the minimisers, one after another, shape (n_sizes, n_ridges, n_classes, d): no reading."""
        p, q = self.objective.shape
        points = np.zeros((len(supports), ridges.size, q, p))
        for j, ridge in enumerate(ridges.tolist()):
            model: Any = self.with_ridge(ridge).objective
            for i, support in enumerate(supports):
                few = model.columns(support)
                points[i, j][:, support] = refit_rows(few, few.zeros(), 0.0).point.T
        return points, []

    def to_prove(self) -> Problem:
        """Refuse to: there is no bound of the loss of classes over blocks."""
        raise CapabilityError(
            "prove is not for this model of a table in blocks, since it has more than two classes; give rows that fit "
            "into memory, as in prove(X, y)"
        )

    def correlations(self, columns: np.ndarray) -> np.ndarray:
        """Return the correlations of some columns, increasing, from their products."""
        every = np.append(columns, self.objective.units.size - 1) if self.intercept else columns
        products = self.objective.column_products().columns(every).hessian(None)
        mean = self._mean_coordinates(columns)
        return as_correlations(products[: columns.size, : columns.size] - np.outer(mean, mean))

    def _mean_coordinates(self, columns: np.ndarray) -> np.ndarray:
        found, units = self.objective.moments, self.objective.units
        mean: np.ndarray = (found.mean[columns] - units.mean[columns]) * units.inverse_scale[columns]
        return mean

    def examined(self, w: Array, support: Support) -> Examined:
        """Return the problem and a point as those of a vector, in which features are groups of coordinates."""
        return self._as_vector(FlatClasses(self.objective), w)

    def standard_errors(self, at: Evaluation, support: Support, n: float) -> np.ndarray:
        """Return the standard errors for the rows of a support, shape (s, n_classes), from their Hessian."""
        rows = self.coordinates(support)
        few = self.objective.columns(rows)
        flat, plain = FlatClasses(few), FlatClasses(few.with_ridge(0.0))
        there = flat.evaluate(flat.to_vector(at.point[rows]))
        return class_standard_errors(flat, plain, there, few.loss.axes(few.shape[1]), n)


class KeptClassesProblem(BlockedClassesProblem):
    """A sparse model of more than two classes on the rows that a fold of a table in blocks trains on."""

    __slots__ = ()

    def minimisers(
        self, supports: Sequence[np.ndarray], sizes: Sequence[int], ridges: np.ndarray
    ) -> tuple[np.ndarray, list[str]]:
        """Return the minimisers, all together, shape (n_sizes, n_ridges, n_classes, d): sweeps over kept columns."""
        null = null_evaluation(self.objective, self.with_budget(0).constraint)
        points, unconverged = refit_classes(self.objective, null.point, self.constraint.free, supports, sizes, ridges)
        return np.swapaxes(points, 2, 3), unconverged
