"""Weights of classes, as factors of the weights of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hardthresh.arrays import double
from hardthresh.core.errors import InvalidInputError, format_value

from ..base import is_real, numpy_dtype, row_weights
from ..table import Table


def with_class_weights(table: Table, y: np.ndarray, class_weight: Any, known: np.ndarray | None = None) -> Table:
    """Return a table whose rows have their weights times those of their classes.

    Parameters
    ----------
    table : Table
        Rows of positive weight, with targets as the loss takes them.
    y : array, shape (n_rows,)
        The labels of the rows.
    class_weight :
        As in `class_weights`.
    known : array, shape (n_classes,), optional
        The sorted labels, if the rows may lack some.
    """
    if class_weight is None:
        return table
    classes, number = np.unique(y, return_inverse=True) if known is None else (known, np.searchsorted(known, y))
    own = np.ones(table.n_rows) if table.sample_weight is None else double(table.sample_weight)
    weights = own * class_weights(class_weight, classes, np.bincount(number, own, classes.size))[number]
    in_precision = row_weights(weights, np.empty((table.n_rows, 0), dtype=numpy_dtype(table.X)))
    assert in_precision is not None
    return replace(table, sample_weight=table.to_backend(in_precision))


def class_weights(class_weight: Any, classes: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return the weight of each class, as scikit-learn's classifiers define it.

    Parameters
    ----------
    class_weight : "balanced", or mapping from class to number
        "balanced" gives all classes the same total weight; classes that a mapping leaves out have the weight 1.
    classes : array, shape (n_classes,)
        The labels.
    totals : array, shape (n_classes,)
        The total weight of the rows of each class, > 0.

    Returns
    -------
    array, shape (n_classes,)

    Raises
    ------
    InvalidInputError
        For anything else, weights that are not finite numbers > 0, and a mapping that leaves out a class but names one
        that is not there.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray(totals.sum() / (classes.size * totals))
    if not isinstance(class_weight, Mapping):
        raise InvalidInputError(
            f'class_weight must be None, "balanced" or a dict from class to weight, got {format_value(class_weight)}'
        )
    for label, weight in class_weight.items():
        if not (is_real(weight) and 0 < weight < np.inf):
            raise InvalidInputError(
                f"the class_weight of {format_value(label)} must be a finite number > 0, got {format_value(weight)}; "
                "to fit without a class, leave its rows out"
            )
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown and any(label not in class_weight for label in labels):
        raise InvalidInputError(
            f"class_weight names the class {format_value(unknown[0])}, which y does not have; it has "
            f"{', '.join(map(format_value, labels[:10]))}"
        )
    return np.array([float(class_weight.get(label, 1.0)) for label in labels])
