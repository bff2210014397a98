"""Predictions of the model of a study, from values as people type them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import Array

from .attributes import Attribute
from .terms import Terms


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
                raise InvalidInputError(f"{where}{attribute.name} is missing, which a prediction needs")
            if attribute.outside(value):
                low, high = attribute.range or (value, value)
                on_doubt(f"{where}{attribute.name} is {attribute.format(value)}, outside of {low:g} to {high:g}")
            row[terms.columns_at([attribute.name])] = attribute.encode(value)
        rows.append(row)
    X = np.reshape(rows, (len(rows), len(terms.columns)))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return np.asarray(model.predict_proba(X)[:, 1] if terms.is_class else model.predict(X))
