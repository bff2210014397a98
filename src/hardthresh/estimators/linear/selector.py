"""Feature selection with a fitted linear model."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any

import numpy as np

from hardthresh.arrays import to_numpy

from ..feature_selector import FeatureSelector
from .tabular import TabularModel


def transforms(model: TabularModel) -> bool:
    """Return whether a model is also one of scikit-learn's transformers, which take targets of zero."""
    return bool(model._loss_type().in_domain(np.zeros(1))[0])


class _OfTransformers:
    """A method of the models that are transformers; for others, reading it raises an error that says what to do."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, model: TabularModel | None, owner: type | None = None) -> Any:
        if model is None:
            return self.method
        if not transforms(model):
            name = type(model).__name__
            raise AttributeError(
                f"{name} has no {self.method.__name__}: its targets must be positive, and scikit-learn's transformers "
                "take any target; X[:, model.get_support()] are the chosen columns, and "
                f"SelectFromModel({name}(...), threshold=1e-12) chooses them in a pipeline"
            )
        return MethodType(self.method, model)


class ColumnSelector(FeatureSelector, TabularModel, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Base of the models that are selectors of the columns with a coefficient. See the concrete classes."""

    transform = _OfTransformers(FeatureSelector.transform)

    @_OfTransformers
    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit the model, and return the chosen columns.

        Parameters
        ----------
        X, y, **fit_params :
            As for `fit`.

        Returns
        -------
        array, shape (n_samples, n_selected)
        """
        return super().fit_transform(X, y, **fit_params)

    def _chosen_features(self) -> np.ndarray:
        support = to_numpy(self.support_)
        return self._features[support] if hasattr(self, "encoding_") else support

    def _transform(self, X: Any) -> Any:
        self._check_library(X, "transform")
        return super()._transform(X)
