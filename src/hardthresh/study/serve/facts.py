"""What the page and the API say about a study: its state, the model as it stands, and predictions by it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hardthresh.core.errors import InvalidInputError

from ..attributes import Attribute
from ..drift import Drift, drift
from ..predicting import needed, predictions
from ..progress import Progress, progress
from ..study import Study
from ..terms import Terms


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of the model, in the units of the study.

    Attributes
    ----------
    column : str
        The column, such as "ward=surgical"; for most attributes their name.
    attribute : Attribute
        What has to be measured for it.
    value : float
        The change of the prediction (of two classes, of its log odds) for one unit more.
    """

    column: str
    attribute: Attribute
    value: float

    def per(self, terms: Terms) -> str:
        """Return the unit of the coefficient."""
        unit = "log odds" if terms.is_class else terms.target.unit
        if self.attribute.kind == "category":
            return f"{unit}, against {self.attribute.levels[0]}".lstrip(", ")
        each = {"yes/no": "yes", "ordered": "level"}.get(self.attribute.kind, self.attribute.unit)
        return f"{unit or '1'} per {each}" if each else unit

    @property
    def odds_ratio(self) -> float:
        """Of two classes, the factor of the odds for one unit more."""
        return exp(min(self.value, 700.0))  # the largest finite power


@dataclass(frozen=True)
class Predictor:
    """The model as it stands.

    Attributes
    ----------
    estimator : fitted estimator
        What `Study.model` returned.
    attributes : tuple of Attribute
        What has to be measured for a prediction.
    coefficients : tuple of Coefficient
        Those that are not zero, in the order of the columns.
    intercept : float
        The prediction (of two classes its log odds) where all attributes of the model are 0.
    cost : float
        The price of the attributes of one prediction, panels bought as a whole.
    caution : str
        What there is to be said against the model, such as too few examples; empty if there is nothing.
    """

    estimator: Any
    attributes: tuple[Attribute, ...]
    coefficients: tuple[Coefficient, ...]
    intercept: float
    cost: float
    caution: str


def predictor(study: Study) -> Predictor | None:
    """Return the model as it stands; None before the first example was learned from."""
    terms = study.terms
    if not study.status().answered:
        return None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model = study.model()
    caution = "; ".join(str(warning.message).partition(": ")[2] for warning in caught)
    coef = np.ravel(model.coef_)
    support = np.flatnonzero(coef)
    found = tuple(
        Coefficient(terms.columns[j], terms.attributes[terms.attribute_of[j]], float(coef[j])) for j in support
    )
    return Predictor(
        estimator=model,
        attributes=needed(model, terms),
        coefficients=found,
        intercept=float(np.ravel(model.intercept_)[0]),
        cost=float(terms.cost_model.cost(support)),
        caution=caution,
    )


def latest_progress(study: Study) -> tuple[Progress, Drift]:
    """Return the error of the latest predictions with the learning curve, and the tests for drift."""
    return _progress_after(study, study.status().events)


@lru_cache(maxsize=1)
def _progress_after(study: Study, event: int) -> tuple[Progress, Drift]:
    """Return both after an event, for everybody who looks before the next one."""
    learned = study.learned()
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


@dataclass(frozen=True)
class Prediction:
    """A prediction for one example.

    Attributes
    ----------
    value : float
        The prediction; of two classes the probability of the second.
    cautions : tuple of str
        A sentence for each value outside of its range.
    """

    value: float
    cautions: tuple[str, ...]


def predict(terms: Terms, model: Predictor, typed: Mapping[str, Any]) -> Prediction:
    """Return the prediction from typed values.

    Raises
    ------
    InvalidInputError
        If there is no attribute of a name, a value cannot be used, or one that the model needs is not there.
    """
    for name in typed:
        terms.attribute(name)
    cautions: list[str] = []
    [value] = predictions(model.estimator, terms, [("", typed)], on_doubt=cautions.append)
    return Prediction(float(value), tuple(cautions))


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
