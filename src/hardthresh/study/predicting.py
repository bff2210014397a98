"""The model of a study as it stands, in the units of its terms, and predictions from values as people type them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import Array
from hardthresh.limited.algorithms.adaptive import TOO_FEW_ADVICE

from .attributes import Attribute
from .reading import similar_name
from .study import Study
from .terms import Terms


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
        Why to distrust the model, such as too few examples; empty if there is no reason.
    """

    estimator: Any
    attributes: tuple[Attribute, ...]
    coefficients: tuple[Coefficient, ...]
    intercept: float
    cost: float
    caution: str


NO_MODEL = "no example is learned from, so there is no model"


def predictor(study: Study) -> Predictor | None:
    """Return the model as it stands; None if no example is learned from."""
    terms = study.terms
    if not study.status().answered:
        return None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model = study.model()
    caution = "; ".join(str(warning.message).partition(": ")[2] for warning in caught)
    coef = np.ravel(model.coef_)
    support = np.flatnonzero(coef)
    effect = "chance may have chosen the attributes of the model" if support.size else "the model has no attributes"
    caution = caution.replace(TOO_FEW_ADVICE, effect)
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


def needed(model: Any, terms: Terms) -> tuple[Attribute, ...]:
    """Return the attributes that a prediction needs."""
    return terms.attributes_at(model.support_)


def predictions(
    model: Any,
    terms: Terms,
    records: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    on_doubt: Callable[[str], object] = lambda message: None,
) -> Array:
    """Return the predicted numbers, or of two classes the probabilities of the second one.

    Parameters
    ----------
    model : fitted estimator
        What `Study.model` returned.
    terms : Terms
        The terms of the study.
    records : iterable of (str, mapping)
        Typed values by the names of attributes, each with its place for messages. Only those that the model needs are
        read.
    on_doubt : callable
        Is given a sentence for each value outside of its range: the model says little there.

    Returns
    -------
    array, shape (number of records,)

    Raises
    ------
    InvalidInputError
        If a value that is needed is not there, or could not be measured, or makes no sense.
    """
    attributes, rows = needed(model, terms), []
    for place, record in records:
        where = f"{place}: " if place else ""
        row = np.zeros(len(terms.columns))
        for attribute in attributes:
            try:
                value = attribute.parse(record.get(attribute.name))
            except InvalidInputError as error:
                raise InvalidInputError(f"{where}{error}") from error
            if value is None:
                similar = None if attribute.name in record else similar_name(attribute.name, record)
                hint = "" if similar is None else f"; write {attribute.name!r} in place of {similar!r}"
                raise InvalidInputError(f"{where}{attribute.name} is missing, which a prediction needs{hint}")
            if attribute.outside(value):
                low, high = attribute.range or (value, value)
                on_doubt(f"{where}{attribute.name} is {attribute.format(value)}, outside of {low:g} to {high:g}")
            row[terms.columns_at([attribute.name])] = attribute.encode(value)
        rows.append(row)
    X = np.reshape(rows, (len(rows), len(terms.columns)))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return np.asarray(model.predict_proba(X)[:, 1] if terms.is_class else model.predict(X))


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

    def to_dict(self, terms: Terms) -> dict[str, Any]:
        """Return it in plain types, for JSON; of two classes the more likely one, and the probabilities of both."""
        target = terms.target
        about: dict[str, Any] = {"target": target.name, "unit": target.unit, "cautions": list(self.cautions)}
        if terms.is_class:
            probability = dict(zip(target.levels, (1 - self.value, self.value), strict=True))
            return {**about, "prediction": target.levels[int(self.value > 0.5)], "probability": probability}
        return {**about, "prediction": self.value}


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
