"""`AdaptiveHybrid` on answers that were corrected: the choices are those that were made, the moments are computed anew.

A correction must not change which questions were asked: the answers to other questions do not exist. So a learner goes
over its corrected answers with the supports, candidates and moments of repair that were chosen at the time, and chooses
by the corrected numbers from then on.
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
    """What `AdaptiveHybrid` chose when it absorbed some answers.

    Attributes
    ----------
    chosen, observed : int array
        The support afterwards, and what is observed while exploiting.
    repaired : bool
        Whether the support was compared with others.
    """

    chosen: Array
    observed: Array
    repaired: bool

    @classmethod
    def between(cls, before: AdaptiveState, after: AdaptiveState) -> Self:
        """Return what was chosen from one state to the next."""
        return cls(after.chosen, after.observed, after.next_repair != before.next_repair)


@dataclass(frozen=True)
class _Retraced(AdaptiveHybrid):
    """Absorbs answers, and makes a given choice instead of its own.

    Attributes
    ----------
    choice : Choice
        What to choose.
    withdrawn : int
        How many examples were among the answers then, and are not any more.
    """

    choice: Any = None
    withdrawn: int = 0

    def absorb(self, cost_model: CostModel, state: Any, indices: Array, x: Array, y: Array) -> AdaptiveState:
        """Absorb as the algorithm does; blocks, rounds and repairs end where they ended with the withdrawn examples."""
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
    """Return an algorithm that makes a given choice, on answers of which some examples were withdrawn.

    Raises
    ------
    CapabilityError
        If it is not `AdaptiveHybrid` or `LogisticHybrid`.
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
    """Return whether two states, which may have learned from other numbers, ask the same from now on."""
    counted = ("phase", "round", "block", "taken", "quota", "fitted", "length", "seen")
    arrays = ("chosen", "parts", "observed")
    return all(getattr(mine, name) == getattr(yours, name) for name in counted) and all(
        np.array_equal(getattr(mine, name), getattr(yours, name)) for name in arrays
    )
