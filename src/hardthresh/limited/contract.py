"""The contract of solvers that buy what they see: which attributes of the next examples, and what to make of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar, Literal

import numpy as np

from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array

from .cost_model import Market

LEAST = 32  # examples whose answers are worked in together, for speed


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What to observe of the next examples.

    Attributes
    ----------
    indices : int array
        The attributes, increasing.
    count : int
        Of how many examples.
    """

    indices: Array
    count: int


@stored("state/observation")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservationState:
    """Everything such a solver needs to go on: frozen, and of plain values and arrays, so that it can be stored.

    Attributes
    ----------
    w : array, shape (d,)
        The coefficients; exact zeros outside the support.
    intercept : float
        The intercept.
    updates : int
        How often the coefficients were updated.
    seen : int
        The examples that were learned from.
    length : int or None
        How many examples there are altogether, where that is known.
    """

    w: Array
    intercept: float = 0.0
    updates: int = 0
    seen: int = 0
    length: int | None = None

    @property
    def left(self) -> float:
        """How many examples are left; infinity where that is not known."""
        return inf if self.length is None else self.length - self.seen

    @property
    def support(self) -> Array:
        """The increasing indices of the coefficients that are not zero."""
        return np.flatnonzero(self.w)


class ObservationSolver(ABC):
    """An algorithm that chooses what to observe, as a frozen dataclass of settings.

    `Learner` keeps up the conversation between it and whoever has the answers. Answers to one request are worked in
    together, so that it makes no difference in which pieces, or in which order, they arrive.
    """

    state_type: ClassVar[type[ObservationState]] = ObservationState
    takes_steps: ClassVar[bool] = False
    """Whether it takes steps of a length that is given, which may be too long."""
    target: ClassVar[Literal["number", "class"]] = "number"
    """What it learns to predict: numbers, or which of two classes, coded 0 and 1."""

    @abstractmethod
    def start(self, market: Market, w0: Array | None = None, length: int | None = None) -> ObservationState:
        """Return the state before the first example, of a stream of `length` examples if that is known."""

    @abstractmethod
    def request(self, market: Market, state: ObservationState) -> Request | None:
        """Return what to observe next, which always contains the support of `state.w`; None when all is done."""

    @abstractmethod
    def absorb(self, market: Market, state: ObservationState, indices: Array, x: Array, y: Array) -> ObservationState:
        """Return the state after some answers: x of shape (count, len(indices)), y of shape (count,)."""

    def check_targets(self, y: Array) -> None:
        """Raise InvalidInputError for targets that it cannot learn from: by default, those that are not finite."""
        if not np.all(np.isfinite(y)):
            raise InvalidInputError("targets must be finite numbers")

    def endless(self, market: Market, state: ObservationState) -> ObservationState:
        """Return a state of a stream of known length as one of a stream that goes on, nobody knows how long."""
        return replace(state, length=None)

    def response(self, linear: Array) -> Array:
        """Return predictions of the target from values of the linear predictor; by default, these."""
        return linear

    def trouble(self, state: ObservationState) -> str:
        """Return why the coefficients cannot be relied on; empty if nothing is known against them."""
        return "" if state.updates else "there were too few examples for a single update"

    def through(self, state: ObservationState) -> bool:
        """Return whether all updates that were asked for are made; by default, there is no end to them."""
        return False

    def conclude(self, market: Market, state: ObservationState) -> ObservationState:
        """Return the state with the best coefficients that can be made of what was seen; by default, that one."""
        return state


def portion(market: Market, left: int) -> int:
    """Return how many of the `left` examples with one request to ask about together: memory stays within O(s'^2)."""
    return min(left, max(LEAST, market.n_observed if market.plain else LEAST))


def require_plain(market: Market, solver: ObservationSolver) -> None:
    """Raise if attributes have different prices or are sold in panels."""
    if not market.plain:
        raise CapabilityError(
            f"{type(solver).__name__} is for attributes of one price, each bought alone; use AdaptiveHybrid"
        )


def starting_point(market: Market, w0: Array | None) -> Array:
    """Return a starting point as checked float64 coefficients, by default 0."""
    if w0 is None:
        return np.zeros(market.n_features)
    w = np.array(w0, dtype=np.float64)
    if w.shape != (market.n_features,) or not np.all(np.isfinite(w)):
        raise InvalidInputError(f"w0 must be {market.n_features} finite numbers, got shape {w.shape}")
    return w


def places(indices: Array, chosen: Array) -> Array:
    """Return where `chosen` stand among the increasing `indices` that contain them."""
    return np.searchsorted(indices, chosen)
