"""The dispersion of targets about their expected values."""

from __future__ import annotations

from typing import Any

from hardthresh.certificates.effects import dispersion
from hardthresh.core.result import Result

from .criterion import number_of_examples


def fitted_dispersion(result: Result) -> float:
    """Return the dispersion of the targets about a fitted model, for all its coefficients; see `Loss.dispersion`.

    NaN where there are no more examples than coefficients.
    """
    objective: Any = result.objective
    at = result.state.at if result.w is result.state.w else objective.evaluate(result.w)
    return dispersion(objective, at, result.support.degrees_of_freedom, number_of_examples(objective))
