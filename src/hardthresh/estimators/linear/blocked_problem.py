"""The problem of a table in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hardthresh.arrays import scatter
from hardthresh.certificates.effects import robust_errors_of_blocks
from hardthresh.certificates.proving import why_no_search
from hardthresh.constraints import Sparsity
from hardthresh.core.constraint import coordinate_budget
from hardthresh.core.errors import CapabilityError
from hardthresh.core.objective import Evaluation
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.solvers import WorkingSet
from hardthresh.solvers.guessed import answer_on_known_columns, guessed_state
from hardthresh.solvers.refinement import FULL_SOLVE, refine
from hardthresh.solvers.working_set.blocked_half_samples import blocked_half_samples
from hardthresh.solvers.working_set.support_grid import unconverged_refit

from .problem import Problem, as_correlations
from .weighting import Weighting

_MOST_PRODUCTS = 4096
"""The most coordinates whose products are all computed: they take 134 MB, and so does each part of their sum."""


@dataclass(frozen=True, slots=True)
class BlocksFingerprint:
    """A digest of the files, or of the first and last block, of a table."""

    digest: str

    def agrees(self, other: BlocksFingerprint) -> bool:
        """Return whether two digests are those of the same data."""
        return self.digest == other.digest


class BlockedProblem(Problem):
    """A sparse linear model of a table in blocks. What needs a number for each row is refused."""

    __slots__ = ()
    objective: Any

    def begin(self, w0: Array | None, solver: Solver, seed: int) -> tuple[Array | None, State | None]:
        """Return the state in which a run begins, where a pilot has ended; of other solvers the point."""
        state = guessed_state(self.objective, self.constraint, solver, seed, w0)
        if state is not None:
            return None, state
        if w0 is None and self.objective.guessed and not isinstance(solver, WorkingSet):
            return self.objective.guessed[-1].point, None
        return w0, None

    def answer_on_known_columns(self, solver: Solver, seed: int, w0: Array | None) -> Array | None:
        """Return the answer among the columns that a pilot has named: no reading."""
        return answer_on_known_columns(self.objective, self.constraint, solver, seed, w0)

    def start_of(self, points: Sequence[Array], place: int) -> Array | None:
        """Return the first fit with a chosen number of features, at which the table was read."""
        return points[place] if points else None

    def going_on(self, last: Array, chosen: Array | None) -> Array | None:
        """Return the last fit, unless the first reading has examined points: it is one of these, or `begin` knows."""
        return chosen if self.objective.guessed else last

    def end_fit(self) -> None:
        """Release large columns that are kept at the blocks."""
        self.objective.end_fit()

    def separated(self, w: Array) -> bool:
        """Return whether a point puts each row on the side of its class; others of the same columns are not tried."""
        return bool(self.objective.share_right(w) == 1.0)

    @property
    def in_memory(self) -> bool:
        """Whether there is a prediction of each row here: there is none."""
        return False

    def share_right(self, at: Evaluation, decide: Any) -> float:
        """Return the share of the weight of rows whose target, of two classes, is on the side of its prediction."""
        return float(self.objective.share_right(at.point))

    def evaluated_on(self, support: Support, w: Array, prediction: Array | None = None) -> Evaluation:
        """Return value and gradient on the support, from the model of its columns."""
        few = self.objective.columns(support.indices).evaluate(w[support.indices])
        return Evaluation(w, few.value, scatter(few.gradient, support.indices, self.objective.shape[0]))

    def weighting(self) -> Weighting:
        """Return what is known of the weights of the rows: that they are equal, if all of them are 1."""
        rows, total = self.objective.traits.n_rows, float(self.objective.total_weight)
        whole = bool(self.objective.whole_weights)
        return Weighting(rows, total, whole, whole and total == rows)

    def robust_errors(self, at: Evaluation, support: Support, frequency: bool, groups: np.ndarray | None) -> np.ndarray:
        """Return the robust ones: one reading of the columns of the support. There are no groups."""
        return robust_errors_of_blocks(self.objective, at, support, frequency)

    def minimisers(
        self, supports: Sequence[np.ndarray], sizes: Sequence[int], ridges: np.ndarray
    ) -> tuple[np.ndarray, list[str]]:
        """Return the minimisers, one after another, from products or kept columns: no reading where these are known."""
        points, unconverged = np.zeros((len(supports), ridges.size, *self.objective.shape)), []
        for j, ridge in enumerate(ridges.tolist()):
            model = self.with_ridge(ridge).objective
            for i, (support, size) in enumerate(zip(supports, sizes, strict=True)):
                few, every = model.columns(support), Sparsity(0, free=tuple(range(support.size)))
                found = refine(few, every, every.project(few.zeros()), cg_iterations=0, rounds=FULL_SOLVE)
                points[i, j, support] = found.projection.point
                if not found.minimal:
                    unconverged.append(unconverged_refit(size, ridge))
        return points, unconverged

    def correlations(self, columns: np.ndarray) -> np.ndarray:
        """Return the correlations of some columns, increasing: a reading, if some of their products are not known."""
        return as_correlations(self.objective.column_moments(columns)[1])

    def to_prove(self) -> Problem:
        """Return the problem of the products of all columns: one reading, unless these are known."""
        why = why_no_search(self.objective, self.constraint)
        if not why and self.objective.shape[0] > _MOST_PRODUCTS:
            why = f"there are more than {_MOST_PRODUCTS:,} coordinates"
        if why:
            raise CapabilityError(
                f"prove is not for this model of a table in blocks, since {why}; give rows that fit into memory, as in "
                "prove(X, y)"
            )
        return replace(self, objective=self.objective.columns(np.arange(self.objective.shape[0])))

    def fingerprint(self) -> Any:
        """Return a digest of the size and time of change of the files, and of the first and the last block."""
        return BlocksFingerprint(self.objective.engine.blocks.fingerprint())

    def supports_of_parts(
        self, parts: Any, ridge: float, at: Array, *, standardize: bool, tol: float
    ) -> list[np.ndarray | str] | None:
        """Return the columns that are chosen on each of the halves that `BlockHalves` names, or why there are none."""
        selection = coordinate_budget(self.constraint, tuple(self.objective.shape))
        if selection is None:
            return None
        return blocked_half_samples(
            self.objective, selection, parts, ridge, at, intercept=self.intercept, standardize=standardize, tol=tol
        )
