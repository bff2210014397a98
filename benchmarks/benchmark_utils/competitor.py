"""The base class of the solvers: who answers what, and how an answer is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import spec
from .bases import BaseSolver
from .problem import Problem


class Competitor(BaseSolver):
    """A solver of this benchmark.

    A subclass names the distribution whose version counts, says in `answers` which (question, loss) it can be asked,
    and implements `solve`, which returns the chosen columns, or these and the data passes that it has counted.
    """

    sampling_strategy = "run_once"
    distribution: str
    answers: frozenset[tuple[str, str]]
    takes_sparse = False
    takes_intercept = True

    def solve(self, problem: Problem) -> Any:
        """Return the chosen columns, or a pair of these and the passes counted."""
        raise NotImplementedError

    def refusal(self, problem: Problem) -> str | None:
        """Return why this solver cannot be asked, or None."""
        if (problem.question, problem.loss) not in self.answers:
            return f"has no {problem.question} for the {problem.loss} loss"
        if problem.is_sparse and not self.takes_sparse:
            return "takes no sparse X"
        if problem.intercept and not self.takes_intercept:
            return "takes no intercept"
        return None

    def skip(self, problem: Problem) -> tuple[bool, str | None]:
        """Tell benchopt whether to leave this solver out."""
        reason = self.refusal(problem)
        return reason is not None, reason

    def set_objective(self, problem: Problem) -> None:
        """Take the problem. Nothing is prepared: what a user has to do is timed."""
        self.problem = problem

    def warm_up(self) -> None:
        """Solve a tiny problem of the same kind, so that no compilation is timed."""
        tiny = _tiny(self.problem)
        if self.refusal(tiny) is None:
            self.solve(tiny)

    def run(self, _: Any) -> None:
        """Solve. This is what is timed."""
        self.answer = self.solve(self.problem)

    def get_result(self) -> dict[str, Any]:
        """Return the columns and, where they are counted, the passes."""
        support, passes = self.answer if isinstance(self.answer, tuple) else (self.answer, None)
        return {"support": np.asarray(support, dtype=np.intp), "passes": passes}


def everything(*questions: str, losses: tuple[str, ...] = ("squared", "logistic")) -> frozenset[tuple[str, str]]:
    """Return all pairs of these questions and losses."""
    return frozenset((question, loss) for question in questions for loss in losses)


OUTPUTS = ("multi_task", "multinomial")
"""The losses of several outputs."""


def largest(coefficients: Any, k: int) -> Any:
    """Return where the k largest of some coefficients are, zeros excluded."""
    size = np.abs(np.asarray(coefficients).ravel())
    chosen = np.argsort(-size, kind="stable")[:k]
    return np.sort(chosen[size[chosen] > 0])


def _tiny(like: Problem) -> Problem:
    settings = {"question": like.question, "intercept": like.intercept, "largest": 8}
    if like.is_sparse:
        signal = 10.0 if like.loss == "squared" else 3.0
        X, y, _ = spec.sparse_text(2000, 300, 0.05, 4, like.loss, signal, seed=1)
    elif like.loss in OUTPUTS:
        X, y, _ = spec.several_outputs(200, 200, 4, 0.0, like.loss, seed=1)
    else:
        draw, signal = (spec.least_squares, 10.0) if like.loss == "squared" else (spec.logistic, 3.0)
        X, y, _ = draw(200, 200, 4, 0.0, signal, seed=1)
    return Problem(X.astype(like.X.dtype), y.astype(like.y.dtype), like.loss, 4, **settings)
