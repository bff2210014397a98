"""Fitted models of scikit-learn with the predictions of a sparse linear model."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import linear_model, svm

from hardthresh.arrays import to_numpy
from hardthresh.core.errors import CapabilityError, warn
from hardthresh.core.registry import registered

_MODELS = {
    "squared": "LinearRegression",
    "multi_task": "LinearRegression",
    "logistic": "LogisticRegression",
    "multinomial": "LogisticRegression",
    "poisson": "PoissonRegressor",
    "gamma": "GammaRegressor",
    "tweedie": "TweedieRegressor",
    "huber": "HuberRegressor",
    "quantile": "QuantileRegressor",
    "squared_hinge": "LinearSVC",
}
"""The models of scikit-learn that predict from coefficients in the same way, by the name of the loss."""


def _settings(loss: str, model: Any) -> dict[str, Any]:
    """Return the settings of scikit-learn's model that belong to the loss."""
    if loss == "tweedie":
        return {"power": model.power, "link": "log"}
    if loss == "huber":
        return {"epsilon": model.epsilon}
    return {"quantile": model.quantile, "alpha": 0.0} if loss == "quantile" else {}


def to_sklearn(model: Any) -> Any:
    """Return the fitted estimator of scikit-learn with the coefficients of a fitted sparse linear model.

    Raises
    ------
    CapabilityError
        If there is none.
    """
    names = {entry.cls: name for name, entry in registered("loss").items()}
    loss = names.get(type(model._loss), "")
    own = type(model).__name__
    if loss not in _MODELS:
        raise CapabilityError(
            f"scikit-learn has no model for the loss of {own}; there is one for the losses "
            f"{', '.join(_MODELS)}. Use hardthresh.save to keep the model"
        )
    if hasattr(model, "encoding_"):
        raise CapabilityError(
            f"the models of scikit-learn take numbers alone, and this {own} has categorical columns; encode them with "
            "OneHotEncoder, and fit the model to that, with the levels of a column as one of its groups"
        )
    if getattr(model, "offset_used_", False):
        warn(f"{own} was fitted with an offset, which the predictions of scikit-learn's model leave out")
    module = svm if loss == "squared_hinge" else linear_model
    exported = getattr(module, _MODELS[loss])(fit_intercept=model.fit_intercept, **_settings(loss, model))
    coef, intercept = np.array(to_numpy(model.coef_)), model.intercept_
    # a fit to rows of zeros sets whatever else its methods need, in any version of scikit-learn
    targets = model.classes_ if hasattr(model, "classes_") else np.ones((2, *coef.shape[:-1]))
    exported.fit(np.zeros((len(targets), coef.shape[-1])), targets)
    exported.coef_ = coef
    exported.intercept_ = float(intercept) if np.ndim(intercept) == 0 else np.array(to_numpy(intercept))
    if loss == "huber":
        exported.scale_, exported.outliers_ = float(model.noise_scale_), np.array(to_numpy(model.outliers_))
    if hasattr(model, "feature_names_in_"):
        exported.feature_names_in_ = model.feature_names_in_
    return exported
