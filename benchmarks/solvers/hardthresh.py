"""`hardthresh.minimize`: the default solver, two of its efforts, and pursuit, from one or from many points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from benchmark_utils.competitor import OUTPUTS, Competitor, everything
from benchmark_utils.problem import Problem

import hardthresh as ht
from hardthresh import constraints, objectives, selection, solvers
from hardthresh.constraints import Sparsity
from hardthresh.objectives import LinearModel

RESTARTS = 10  # arbitrary: enough for a point of comparison that is not greedy, at about ten times the time of ours


class Solver(Competitor):
    """One call of `minimize` for a fixed k; one path and EBIC where k is to be chosen."""

    name = "hardthresh"
    distribution = "hardthresh"
    requirements = ["pip::hardthresh"]  # noqa: RUF012
    parameters = {"solver": ["default", "fast", "thorough", "pursuit", "restarts"]}  # noqa: RUF012
    answers = everything("fixed", "path") | everything("fixed", losses=OUTPUTS)
    takes_sparse = True

    def refusal(self, problem: Problem) -> str | None:
        """Return why this solver cannot be asked, or None."""
        if self.solver in ("fast", "thorough") and not hasattr(solvers, "WorkingSet"):
            return "this version has no WorkingSet"
        if self.solver == "restarts" and problem.question == "path":
            return "restarts are for a fixed k"
        if problem.question == "path" and not hasattr(selection, "ebic"):
            return "this version has no ebic"
        if problem.loss in OUTPUTS and not hasattr(constraints, "RowSparsity"):
            return "this version has no RowSparsity"
        return super().refusal(problem)

    def solve(self, problem: Problem) -> Any:
        """Return the chosen columns and the passes counted."""
        ht.minimize  # noqa: B018 - the first use loads the package, which is no part of a fit
        model, free = _model(problem)
        solver = self._solver()
        if problem.question == "fixed":
            budget = (constraints.RowSparsity if problem.loss in OUTPUTS else Sparsity)(problem.k, free=free)
            results = [ht.minimize(model, budget, solver, w0=w0) for w0 in self._starts(model)]
            best = min(results, key=lambda result: result.value)
            return _columns(problem, best), sum(result.passes for result in results)
        results = list(selection.path(model, lambda k: Sparsity(k, free=free), problem.budgets, solver))
        return _columns(problem, min(results, key=selection.ebic)), sum(result.passes for result in results)

    def _starts(self, model: LinearModel) -> Iterator[Any]:
        """Yield the null model, and for restarts random points near what a gradient step from it reaches."""
        yield None
        if self.solver == "restarts":
            gradient = model.evaluate(model.null_point()).gradient
            for seed in range(RESTARTS):
                yield -gradient * np.random.default_rng(seed).exponential(size=gradient.shape)

    def _solver(self) -> Any:
        if self.solver == "default":
            return None
        pursuit = self.solver in ("pursuit", "restarts")
        return solvers.HardThresholdingPursuit() if pursuit else solvers.WorkingSet(effort=self.solver)


def _model(problem: Problem) -> tuple[Any, tuple[int, ...]]:
    X, d = problem.X, problem.X.shape[1]
    l2: Any = problem.ridge if problem.loss in ("logistic", "multinomial") else 0.0
    if problem.loss in OUTPUTS:
        X, ridge = np.hstack([X, np.ones((X.shape[0], 1))]), np.append(np.full(d, l2), 0.0)
        return objectives.MultiOutputModel(X, problem.y, problem.loss, l2=ridge), (d,)
    if not problem.intercept:
        return LinearModel(X, problem.y, loss=problem.loss, l2=l2), ()
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    X = scipy.sparse.hstack([X, ones], format="csc") if problem.is_sparse else np.asfortranarray(np.hstack([X, ones]))
    ridge = np.append(np.full(d, l2), 0.0).astype(X.dtype)
    return LinearModel(X, problem.y, loss=problem.loss, l2=ridge), (d,)


def _columns(problem: Problem, result: Any) -> Any:
    chosen = result.support.rows if problem.loss in OUTPUTS else result.support.indices
    return chosen[chosen < problem.X.shape[1]]
