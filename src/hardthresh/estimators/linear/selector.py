"""Feature selection with a fitted linear model."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardthresh.arrays import to_numpy

from ..feature_selector import FeatureSelector
from ..parameters import exists_unless
from .tabular import TabularModel


def transforms(model: TabularModel) -> bool:
    """Return whether a model is also one of scikit-learn's transformers, which take targets of zero."""
    return bool(model._loss_type().in_domain(np.zeros(1))[0])


def _no_transformer(model: TabularModel) -> str:
    if transforms(model):
        return ""
    name = type(model).__name__
    return (
        "its targets must be positive, and scikit-learn's transformers take any target; X[:, model.get_support()] are "
        f"the chosen columns, and SelectFromModel({name}(...), threshold=1e-12) chooses them in a pipeline"
    )


class ColumnSelector(FeatureSelector, TabularModel, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Base of the models that are selectors of the columns with a coefficient. See the concrete classes."""

    transform = exists_unless(_no_transformer)(FeatureSelector.transform)

    @exists_unless(_no_transformer)
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
