"""The histories of runs and of fitted estimators, for charts and reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError

from .choice_facts import Vector

_SAME = 1e-6
"""Up to what share two values of an objective differ by rounding alone, also in single precision."""


def progress(run: Any) -> Mapping[str, Vector]:
    """Return the history of a fitted estimator or of a `Result`."""
    history: Mapping[str, Vector] | None = getattr(run, "history_", getattr(run, "history", None))
    if history is None:
        raise InvalidInputError(
            f"{type(run).__name__} has no history of iterations; plot_learning_curve draws models that buy their "
            "attributes, once they are fitted"
        )
    return history


def has_loss_of_run(estimator: Any) -> bool:
    """Return whether the objective of a fitted estimator is that of its history.

    It is not where a parameter of the loss was estimated after the run, or its smoothing removed.
    """
    return bool(np.isclose(progress(estimator)["value"][-1], estimator.objective_, rtol=_SAME, atol=0.0))


def learning_curve(run: Any) -> Mapping[str, Vector]:
    """Return the learning curve of a fitted estimator, or of a result, that bought its attributes."""
    curve: Mapping[str, Vector] | None = getattr(run, "learning_curve_", getattr(run, "learning_curve", None))
    if curve is None:
        raise InvalidInputError(
            f"{type(run).__name__} has no learning curve; that is for models that buy their attributes and are fitted, "
            "such as LimitedAttributeRegression"
        )
    if not len(curve["examples"]):
        raise InvalidInputError("the learning curve is empty: nothing was learned yet")
    return curve
