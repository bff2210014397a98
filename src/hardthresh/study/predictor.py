"""The model of a study as it stands, in the units of its terms, and predictions from typed values."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from hardthresh.core.errors import InvalidInputError

from .attributes import Attribute
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
    coefficients : tuple of Coefficient
        Those that are not zero, in the order of the columns.
    intercept : float
        The prediction (of two classes its log odds) where all attributes of the model are 0.
    cost : float
        The price of the attributes of one prediction, panels bought as a whole.
    caution : str
        What there is to be said against the model, such as too few examples; empty if there is nothing.
    """

    coefficients: tuple[Coefficient, ...]
    intercept: float
    cost: float
    caution: str

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """What has to be measured for a prediction."""
        return tuple({coefficient.attribute.name: coefficient.attribute for coefficient in self.coefficients}.values())

    def linear(self, values: Mapping[str, float]) -> float:
        """Return the intercept and the sum of coefficients times columns of one example."""
        columns = {
            column: value
            for attribute in self.attributes
            for column, value in zip(attribute.columns, attribute.encode(values[attribute.name]), strict=True)
        }
        return self.intercept + sum(one.value * columns[one.column] for one in self.coefficients)


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
    return Predictor(found, float(np.ravel(model.intercept_)[0]), float(terms.cost_model.cost(support)), caution)


@dataclass(frozen=True)
class Prediction:
    """A prediction for one example.

    Attributes
    ----------
    value : float
        The prediction; of two classes the probability of the second.
    outside : tuple of str
        The attributes whose values are outside of their ranges.
    """

    value: float
    outside: tuple[str, ...]


def predict(terms: Terms, model: Predictor, typed: Mapping[str, Any]) -> Prediction:
    """Return the prediction from typed values.

    Raises
    ------
    InvalidInputError
        If a value cannot be used, or one that the model needs is not there.
    """
    values = {name: terms.attribute(name).parse(value) for name, value in typed.items()}
    lacking = [attribute.name for attribute in model.attributes if values.get(attribute.name) is None]
    if lacking:
        raise InvalidInputError(f"a prediction needs a value of {', '.join(lacking)}; measure it, and give it too")
    needed = {attribute.name: values[attribute.name] for attribute in model.attributes}
    linear = model.linear({name: float(value) for name, value in needed.items() if value is not None})
    outside = tuple(attribute.name for attribute in model.attributes if attribute.outside(needed[attribute.name]))
    return Prediction(float(expit(linear)) if terms.is_class else linear, outside)
