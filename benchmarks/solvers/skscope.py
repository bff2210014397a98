"""skscope: splicing on a loss written in JAX."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from benchmark_utils.competitor import Competitor, everything
from benchmark_utils.problem import Problem
from skscope import ScopeSolver


class Solver(Competitor):
    """`ScopeSolver` with its defaults and a compiled loss; every fit compiles anew."""

    name = "skscope"
    distribution = "skscope"
    requirements = ["pip::skscope"]  # noqa: RUF012
    answers = everything("fixed")
    takes_intercept = False

    def solve(self, problem: Problem) -> Any:
        """Return the chosen columns."""
        X, y = jnp.asarray(problem.X), jnp.asarray(problem.y)

        def squared(w: Any) -> Any:
            return jnp.mean((y - X @ w) ** 2)

        def logistic(w: Any) -> Any:
            return jnp.mean(jnp.logaddexp(0.0, X @ w) - y * (X @ w))

        n, d = problem.X.shape
        loss = squared if problem.loss == "squared" else logistic
        return np.flatnonzero(ScopeSolver(d, problem.k, sample_size=n).solve(loss, jit=True))
