"""The contract of an algorithm: which attributes of the next examples to observe, and what to learn from the answers.

`Learner` passes queries and answers between an algorithm and a source or a person. An algorithm depends neither on the
source nor on what has been spent. The user guide shows how to write one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from hardthresh.arrays import top_k
from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array

from .cost_model import CostModel

SMALLEST_BATCH = 32
"""The smallest number of examples whose answers are absorbed together, unless fewer are left. Arbitrary: the results
are equally good from 1 to 512, and smaller batches need more calls."""


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """Which attributes to observe, and of how many of the next examples.

    Attributes
    ----------
    indices : int array
        The attributes, increasing.
    count : int
        The number of examples, >= 1.
    """

    indices: Array
    count: int


@stored("state/observation")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlgorithmState:
    """The state of an algorithm: everything that it needs to continue. Its plain values and arrays can be stored.

    Attributes
    ----------
    w : array, shape (d,)
        The coefficients; exact zeros outside the support.
    intercept : float
        The intercept.
    updates : int
        How often the coefficients were updated.
    seen : int
        The number of examples that were learned from.
    length : int or None
        The number of examples in the whole stream, where that is known.
    """

    w: Array
    intercept: float = 0.0
    updates: int = 0
    seen: int = 0
    length: int | None = None

    @property
    def left(self) -> float:
        """The number of examples left; infinity where the length is not known."""
        return inf if self.length is None else self.length - self.seen

    @property
    def support(self) -> Array:
        """The increasing indices of the non-zero coefficients."""
        return np.flatnonzero(self.w)

    def accumulated(self) -> tuple[Array, ...]:
        """Return the sums of squares and products in the state, which overflow before the coefficients do."""
        return ()

    @property
    def finite(self) -> bool:
        """Whether neither the coefficients nor what they are computed from have overflowed."""
        return all(bool(np.all(np.isfinite(part))) for part in (self.w, self.intercept, *self.accumulated()))


State = TypeVar("State", bound=AlgorithmState)


class Algorithm(ABC, Generic[State]):
    """Chooses what to observe, and learns from the answers; a frozen dataclass of settings.

    A subclass needs `start`, `query` and `absorb`. The other methods have defaults that suit an algorithm that predicts
    numbers and has no limit of its own to the number of examples. All answers to one query are absorbed together, so
    the order in which they arrive makes no difference.
    """

    takes_steps: ClassVar[bool] = False
    """Whether it takes gradient steps of a given size; if that is too large, the coefficients diverge."""
    target: ClassVar[Literal["number", "class"]] = "number"
    """What it predicts: a number, or one of two classes, coded 0 and 1."""

    @abstractmethod
    def start(self, cost_model: CostModel, w0: Array | None = None, length: int | None = None) -> State:
        """Return the state before the first example.

        Parameters
        ----------
        cost_model : CostModel
            The attributes, their prices, and the budget for one example.
        w0 : array, shape (d,), optional
            The starting point.
        length : int, optional
            The number of examples in the stream, where that is known.

        Raises
        ------
        InvalidInputError, CapabilityError
            If the settings do not fit the cost model; nothing has been bought then.
        """

    @abstractmethod
    def query(self, cost_model: CostModel, state: State) -> Query | None:
        """Return what to observe next, within the budget; None when the algorithm has finished.

        The indices increase, and include the support of ``state.w``, because the learner predicts each example before
        it learns from it.
        """

    @abstractmethod
    def absorb(self, cost_model: CostModel, state: State, indices: Array, x: Array, y: Array) -> State:
        """Return the state that has learned from answers: x of shape (count, len(indices)), y of shape (count,)."""

    def check_targets(self, y: Array) -> None:
        """Raise InvalidInputError for finite numbers that are not valid targets; by default all are valid."""
        return

    def without_length(self, cost_model: CostModel, state: State) -> State:
        """Return the state without the length of the stream, when more examples arrive than were announced."""
        return replace(state, length=None)

    def response(self, linear: Array) -> Array:
        """Return predictions of the target from the linear predictor; by default the linear predictor itself."""
        return linear

    def failure_reason(self, state: State) -> str:
        """Return why the coefficients cannot be relied on; an empty string if there is no such reason."""
        return "" if state.updates else "there were too few examples for a single update"

    def finished(self, state: State) -> bool:
        """Return whether all updates that the settings ask for are made; False by default."""
        return False

    def finalize(self, cost_model: CostModel, state: State) -> State:
        """Return the state with the best coefficients that can be computed so far; by default the same state."""
        return state


def batch_size(cost_model: CostModel, left: int) -> int:
    """Return the number of examples of one query, of `left`: at least `SMALLEST_BATCH`, unless fewer are left.

    With equal prices it is s' if that is larger; the values of one query are then s'^2 numbers.
    """
    return min(left, max(SMALLEST_BATCH, cost_model.n_observed if cost_model.uniform else SMALLEST_BATCH))


def checked_sparsity(value: Any, most: int | None = None) -> int:
    """Return a setting `n_nonzero_coefs` as an integer >= 0; 0 is the null model.

    Parameters
    ----------
    value : int
        The setting.
    most : int, optional
        The largest number that the budget allows, if it is known.

    Raises
    ------
    InvalidInputError
        If the value is not an integer, is negative, or exceeds `most`.
    """
    s = checked_integer("n_nonzero_coefs", value, least=0)
    if most is not None and s > most:
        raise InvalidInputError(
            f"n_nonzero_coefs must be at most {most} for these attributes and this budget, got {s}; choose fewer, or "
            "allow more attributes of each example"
        )
    return s


def require_uniform_prices(cost_model: CostModel, algorithm: Algorithm[Any]) -> None:
    """Raise CapabilityError if attributes have different prices or are sold in panels."""
    if not cost_model.uniform:
        raise CapabilityError(
            f"{type(algorithm).__name__} is for attributes of one price, each bought alone; use AdaptiveHybrid"
        )


def starting_point(cost_model: CostModel, w0: Array | None) -> Array:
    """Return the starting point in float64, 0 by default; raise InvalidInputError unless it is d finite numbers."""
    if w0 is None:
        return np.zeros(cost_model.n_features)
    w = np.array(w0, dtype=np.float64)
    if w.shape != (cost_model.n_features,) or not np.all(np.isfinite(w)):
        raise InvalidInputError(f"w0 must be {cost_model.n_features} finite numbers, got shape {w.shape}")
    return w


def hard_threshold(z: Array, count: int) -> Array:
    """Return a vector with its `count` entries of largest modulus, lowest index first among equals, and 0 elsewhere.

    A vector with infinities or NaN is returned unchanged, so that the learner detects the divergence.
    """
    if not np.all(np.isfinite(z)):
        return z
    w = np.zeros_like(z)
    largest = top_k(np.abs(z), count)
    w[largest] = z[largest]
    return w


def positions(indices: Array, chosen: Array) -> Array:
    """Return the positions of `chosen` in the increasing `indices` that contain them."""
    return np.searchsorted(indices, chosen)
