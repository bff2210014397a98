"""What the page and the API say about a study: its state, the model as it stands, and predictions by it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from hardthresh.core.errors import InvalidInputError

from ..drift import Drift, drift
from ..predicting import predict, predictor
from ..progress import Progress, progress
from ..records import Learned
from ..study import Study


def latest_progress(study: Study) -> tuple[Progress, Drift]:
    """Return the error of the latest predictions with the learning curve, and the tests for drift."""
    return _progress_of(study.learned())


@lru_cache(maxsize=1)
def _progress_of(learned: Learned) -> tuple[Progress, Drift]:
    """Return both, for everybody who looks before anything else is learned."""
    return progress(learned), drift(learned)


def status_facts(study: Study) -> dict[str, Any]:
    """Return the state of a study as the API sends it."""
    status = study.status()
    now, changes = latest_progress(study)
    return {
        "title": study.terms.title,
        "closed": status.closed,
        "answered": status.answered,
        "dropped": status.dropped,
        "asked": status.asked,
        "open": [question.number for question in status.open],
        "spent": status.spent,
        "reserved": status.reserved,
        "left": status.left,
        "currency": study.terms.currency,
        "chosen": list(status.chosen),
        "events": status.events,
        "progress": now.to_dict(),
        "drift": changes.to_dict(),
    }


def model_facts(study: Study) -> dict[str, Any]:
    """Return the model as the API sends it."""
    found = predictor(study)
    target = study.terms.target
    facts: dict[str, Any] = {"target": target.name, "unit": target.unit, "levels": list(target.levels)}
    if found is None:
        return {**facts, "intercept": None, "coefficients": [], "price": 0.0, "caution": ""}
    coefficients = [
        {"column": one.column, "attribute": one.attribute.name, "unit": one.attribute.unit, "value": one.value}
        for one in found.coefficients
    ]
    return {
        **facts,
        "intercept": found.intercept,
        "coefficients": coefficients,
        "price": found.cost,
        "caution": found.caution,
    }


def predicted(study: Study, typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return a prediction as the API sends it."""
    model = predictor(study)
    if model is None:
        raise InvalidInputError("the study has not learned from any example yet; answer questions first")
    found = predict(study.terms, model, typed)
    target = study.terms.target
    facts: dict[str, Any] = {"target": target.name, "unit": target.unit, "cautions": list(found.cautions)}
    if study.terms.is_class:
        chances = dict(zip(target.levels, (1 - found.value, found.value), strict=True))
        return {**facts, "prediction": target.levels[int(found.value > 0.5)], "probability": chances}
    return {**facts, "prediction": found.value}
