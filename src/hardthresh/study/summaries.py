"""A study in plain types, as its API and its commands say it: its state, and the model as it stands."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .drift import Drift, drift
from .predicting import predictor
from .progress import Progress, progress
from .records import Learned
from .study import Study


def latest_progress(study: Study) -> tuple[Progress, Drift]:
    """Return the error of the latest predictions with the learning curve, and the tests for drift."""
    return _progress_of(study.learned())


@lru_cache(maxsize=1)
def _progress_of(learned: Learned) -> tuple[Progress, Drift]:
    """Return both, for everybody who looks before anything else is learned."""
    return progress(learned), drift(learned)


def status_summary(study: Study) -> dict[str, Any]:
    """Return the state of a study in plain types."""
    with study.snapshot() as now:
        reached, changes = latest_progress(now)
        status = now.status()
    return {
        "title": study.terms.title,
        **status.to_dict(),
        "currency": study.terms.currency,
        "progress": reached.to_dict(),
        "drift": changes.to_dict(),
    }


def model_summary(study: Study) -> dict[str, Any]:
    """Return the model in plain types."""
    found = predictor(study)
    target = study.terms.target
    about: dict[str, Any] = {"target": target.name, "unit": target.unit, "levels": list(target.levels)}
    if found is None:
        return {**about, "intercept": None, "coefficients": [], "price": 0.0, "caution": ""}
    coefficients = [
        {"column": one.column, "attribute": one.attribute.name, "unit": one.attribute.unit, "value": one.value}
        for one in found.coefficients
    ]
    return {
        **about,
        "intercept": found.intercept,
        "coefficients": coefficients,
        "price": found.cost,
        "caution": found.caution,
    }
