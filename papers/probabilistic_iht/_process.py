"""The process of the proof of Theorem 3, along a run and in expectation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hardthresh.core.constraint import Constraint
from hardthresh.diagnostics import ProbabilisticGuarantee
from hardthresh.objectives import LinearModel
from hardthresh.solvers import ProbabilisticIHT

POINTS, DRAWS = 12, 100
"""States of a run from which its next iteration is drawn anew, and how often."""

ERRORS = 3.0
"""The standard errors of a mean by which a fall in expectation has to be too small to be refuted."""


@dataclass(frozen=True, slots=True)
class Process:
    """Phi = nu f + (1 - nu) delta^2 of (25), over 1 - nu, as nu is very near to 1; and how far it has to fall."""

    odds: float  # nu / (1 - nu), the least of (30)
    zeta: float
    c: float
    gamma: float

    @classmethod
    def of(cls, promised: ProbabilisticGuarantee, gamma: float) -> Process:
        """Return the process with the constants of the proof."""
        return cls(promised.nu_odds, promised.zeta, promised.c, gamma)

    def fall(self, decrease: float, delta: float, after: float) -> float:
        """Return the fall of the process where f falls by `decrease`, and the level changes."""
        return self.odds * decrease + (delta - after) * (delta + after)

    def is_first_case(self, part: float, delta: float) -> bool:
        """Return whether an iteration is of Case 1, by the norm of the gradient on the index set."""
        return part >= self.zeta * delta

    def by_gradient(self, norm: float, delta: float) -> float:
        """Return the expected fall of (35), for Case 1."""
        return 0.25 * self.c * self.odds * norm * delta

    def by_increase(self, delta: float) -> float:
        """Return the expected fall of (36), for Case 1."""
        return 0.5 * (self.gamma**2 - 1.0) * delta**2

    def by_reduction(self, delta: float) -> float:
        """Return the expected fall of (38), for Case 2; that of Case 1 is larger."""
        return 0.5 * (1.0 - self.gamma**-2) * delta**2


def falls_in_expectation(
    process: Process, f: LinearModel, constraint: Constraint, method: ProbabilisticIHT, states: Sequence[Any], seed: int
) -> list[bool]:
    """Return whether the process may fall by (38) in expectation, from states at equal distances in a run.

    The expectation is estimated by a mean over new batches; no: it is refuted, as the mean is `ERRORS` too small.
    """
    falls = []
    for place in np.linspace(0, len(states) - 2, POINTS).astype(int):
        state = states[place]
        here, bound = f.value(state.w), process.by_reduction(state.delta)
        drawn = []
        for draw in range(DRAWS):
            other = DRAWS * (seed + 1) + draw  # not the seed of the run
            after = iterate_anew(f, constraint, method, state, other)
            drawn.append(process.fall(here - f.value(after.w), state.delta, after.delta))
        falls.append(bool(np.mean(drawn) + ERRORS * np.std(drawn) / np.sqrt(DRAWS) >= bound))
    return falls


def iterate_anew(f: LinearModel, constraint: Constraint, method: ProbabilisticIHT, state: Any, seed: int) -> Any:
    """Return the next state on batches of another seed, that of the gradient included."""
    assert method.batch is not None
    rows = method.batch.gradient_rows(f.traits.n_rows, state.next_size, seed, state.iteration)
    at = f.evaluate(state.w) if rows is None else f.rows(rows).evaluate(state.w)
    return method.advance(f, constraint, replace(state, at=at, exact=rows is None, seed=seed))
