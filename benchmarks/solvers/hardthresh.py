"""`hardthresh.minimize`: the default solver, two of its efforts, and plain pursuit."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from benchmark_utils.competitor import Competitor, everything
from benchmark_utils.problem import Problem

import hardthresh as ht
from hardthresh import selection, solvers
from hardthresh.constraints import Sparsity
from hardthresh.objectives import LinearModel


class Solver(Competitor):
    """One call of `minimize` for a fixed k; one path and EBIC where k is to be chosen."""

    name = "hardthresh"
    distribution = "hardthresh"
    requirements = ["pip::hardthresh"]  # noqa: RUF012
    parameters = {"solver": ["default", "fast", "thorough", "pursuit"]}  # noqa: RUF012
    answers = everything("fixed", "path")
    takes_sparse = True

    def refusal(self, problem: Problem) -> str | None:
        """Return why this solver cannot be asked, or None."""
        if self.solver in ("fast", "thorough") and not hasattr(solvers, "WorkingSet"):
            return "this version has no WorkingSet"
        if problem.question == "path" and not hasattr(selection, "ebic"):
            return "this version has no ebic"
        return super().refusal(problem)

    def solve(self, problem: Problem) -> Any:
        """Return the chosen columns and the passes counted."""
        ht.minimize  # noqa: B018 - the first use loads the package, which is no part of a fit
        model, free = _model(problem)
        solver = self._solver()
        if problem.question == "fixed":
            result = ht.minimize(model, Sparsity(problem.k, free=free), solver)
            return _columns(problem, result), result.passes
        results = list(selection.path(model, lambda k: Sparsity(k, free=free), problem.budgets, solver))
        return _columns(problem, min(results, key=selection.ebic)), sum(result.passes for result in results)

    def _solver(self) -> Any:
        if self.solver == "default":
            return None
        return solvers.HardThresholdingPursuit() if self.solver == "pursuit" else solvers.WorkingSet(effort=self.solver)


def _model(problem: Problem) -> tuple[LinearModel, tuple[int, ...]]:
    X, d = problem.X, problem.X.shape[1]
    l2: Any = problem.ridge if problem.loss == "logistic" else 0.0
    if not problem.intercept:
        return LinearModel(X, problem.y, loss=problem.loss, l2=l2), ()
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    X = scipy.sparse.hstack([X, ones], format="csc") if problem.is_sparse else np.asfortranarray(np.hstack([X, ones]))
    ridge = np.append(np.full(d, l2), 0.0).astype(X.dtype)
    return LinearModel(X, problem.y, loss=problem.loss, l2=ridge), (d,)


def _columns(problem: Problem, result: Any) -> Any:
    chosen = result.support.indices
    return chosen[chosen < problem.X.shape[1]]
