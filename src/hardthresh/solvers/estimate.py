"""An objective as its examples show it: values, gradients and their noise on a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import device

from hardthresh.arrays import namespace
from hardthresh.core.objective import Evaluation
from hardthresh.core.typing import Array

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
