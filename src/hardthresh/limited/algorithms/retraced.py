"""`AdaptiveHybrid` on corrected answers: its past choices are kept, and the moments are computed again.

A correction must not change the questions of the past, because there are no answers to other questions. So a learner
absorbs the corrected answers with the supports and candidates that were chosen at the time, and repairs the support
after the same answers as then. Later choices depend on the corrected values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from hardthresh.core.errors import CapabilityError
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array
from hardthresh.limited.contract import Algorithm
from hardthresh.limited.cost_model import CostModel

from .adaptive import AdaptiveHybrid, AdaptiveState
from .logistic import LogisticHybrid

_NEVER = 2**62  # examples, more than any stream has


@stored("state/choice")
@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The choice of `AdaptiveHybrid` when it absorbed a batch of answers.

    Attributes
    ----------
    chosen, observed : int array
        The support afterwards, and the attributes that an exploitation observes.
    repaired : bool
        Whether the support was compared with others (a repair).
    """

    chosen: Array
    observed: Array
    repaired: bool

    @classmethod
    def between(cls, before: AdaptiveState, after: AdaptiveState) -> Self:
        """Return the choice that led from one state to the next."""
        return cls(after.chosen, after.observed, after.next_repair != before.next_repair)


@dataclass(frozen=True)
class _Retraced(AdaptiveHybrid):
    """`AdaptiveHybrid` with a given choice instead of its own.

    Attributes
    ----------
    choice : Choice
        The choice.
    withdrawn : int
        The number of examples that were among the answers then and have been withdrawn.
    """

    choice: Any = None
    withdrawn: int = 0

    def absorb(self, cost_model: CostModel, state: Any, indices: Array, x: Array, y: Array) -> AdaptiveState:
        """Absorb as the algorithm does, but count withdrawn examples: blocks, rounds and repairs end where they did."""
        before = replace(
            state,
            taken=state.taken + self.withdrawn,
            seen=state.seen + (self.withdrawn if state.seen else 0),
            next_repair=0 if self.choice.repaired else _NEVER,
        )
        after = super().absorb(cost_model, before, indices, x, y)
        if not self.choice.repaired and after.next_repair == _NEVER:
            after = replace(after, next_repair=state.next_repair)
        return after if state.seen else replace(after, seen=after.seen + self.withdrawn)

    def _first_support(self, cost_model: CostModel, score: Array) -> Array:
        return np.array(self.choice.chosen)

    def _candidates(self, cost_model: CostModel, state: AdaptiveState, score: Array) -> Array:
        return np.array(self.choice.observed)

    def _best_support(self, cost_model: CostModel, state: AdaptiveState) -> Array:
        return np.array(self.choice.chosen)


@dataclass(frozen=True)
class _RetracedLogistic(_Retraced, LogisticHybrid):
    """`LogisticHybrid` with a given choice."""


_RETRACED: dict[type[Algorithm[Any]], type[_Retraced]] = {
    AdaptiveHybrid: _Retraced,
    LogisticHybrid: _RetracedLogistic,
}


def retraced(algorithm: Algorithm[Any], choice: Choice, withdrawn: int) -> Algorithm[Any]:
    """Return an algorithm that makes a given choice, on answers without the withdrawn examples.

    Raises
    ------
    CapabilityError
        If the algorithm is not `AdaptiveHybrid` or `LogisticHybrid`.
    """
    try:
        kind = _RETRACED[type(algorithm)]
    except KeyError:
        raise CapabilityError(
            f"answers to {type(algorithm).__name__} cannot be corrected; use AdaptiveHybrid or LogisticHybrid"
        ) from None
    assert isinstance(algorithm, AdaptiveHybrid)
    return kind(algorithm.n_nonzero_coefs, algorithm.prediction_budget, choice=choice, withdrawn=withdrawn)


def same_questions(mine: AdaptiveState, yours: AdaptiveState) -> bool:
    """Return whether two states, which may have learned from different values, lead to the same next query."""
    counted = ("phase", "round", "block", "taken", "quota", "fitted", "length", "seen")
    arrays = ("chosen", "parts", "observed")
    return all(getattr(mine, name) == getattr(yours, name) for name in counted) and all(
        np.array_equal(getattr(mine, name), getattr(yours, name)) for name in arrays
    )
