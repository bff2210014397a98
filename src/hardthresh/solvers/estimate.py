"""An objective as its examples show it: values, gradients and their noise on a batch, and now and then the whole."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from operator import index
from typing import Any, TypeVar

import numpy as np
from array_api_compat import device

from hardthresh.arrays import namespace
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.objective import Evaluation
from hardthresh.core.solver import State
from hardthresh.core.typing import Array

S = TypeVar("S", bound=State)

_PARTS = 8  # into how many parts a batch is cut where its noise is measured


def examples(objective: Any) -> int:
    """Return how many examples an objective has; 1 if it does not say."""
    return int(getattr(objective, "n_rows", 1))


def batch(objective: Any, rows: Array | None) -> Any:
    """Return the objective on some examples, given by NumPy indices; all of it for None."""
    if rows is None:
        return objective
    zeros = objective.zeros()
    return objective.rows(namespace(zeros).asarray(rows, device=device(zeros)))


def estimate(objective: Any, rows: Array | None, point: Array) -> Evaluation:
    """Return f and its gradient on a batch, without the prediction, which is that of other examples."""
    at: Evaluation = batch(objective, rows).evaluate(point)
    return at if rows is None else Evaluation(at.point, at.value, at.gradient)


def noisy_estimate(objective: Any, rows: Array, point: Array) -> tuple[Evaluation, Array | None]:
    """Return f and its gradient on a batch, and the estimated variance of its entries; None from one example.

    The batch is cut into parts, whose means it is the mean of: that costs nothing more.
    """
    b = rows.shape[0]
    if b < 2:
        return estimate(objective, rows, point), None
    mixed = np.random.default_rng(b).permutation(rows)  # rows are sorted, and neighbours may be alike
    parts = np.array_split(mixed, min(_PARTS, b))
    seen = [(part.shape[0] / b, estimate(objective, part, point)) for part in parts]
    value = sum(share * at.value for share, at in seen)
    gradient = sum(share * at.gradient for share, at in seen)
    squares = sum(share * (at.gradient - gradient) ** 2 for share, at in seen)
    return Evaluation(point, value, gradient), squares / (len(parts) - 1)


def full_value(objective: Any, at: Evaluation, exact: bool, iteration: int, every: int | None) -> float:
    """Return f at an evaluated point where it is known or asked for, nan elsewhere."""
    if exact:
        return at.value
    return float(objective.value(at.point)) if every is not None and iteration % every == 0 else nan


def finished(objective: Any, state: S) -> S:
    """Return a state of the same point that is evaluated on all examples."""
    if state.exact:
        return state
    at = objective.evaluate(state.w)
    return replace(state, at=at, exact=True, full_value=at.value)  # type: ignore[call-arg]


def check_every(every: Any) -> None:
    """Refuse what is no number of iterations."""
    if every is None:
        return
    try:
        given = index(every)
    except TypeError as error:
        raise InvalidInputError(f"full_value_every must be an integer, got {every!r}") from error
    if given < 1:
        raise InvalidInputError(f"full_value_every must be >= 1, got {given}")
