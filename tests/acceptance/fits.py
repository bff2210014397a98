"""The estimator of each model of `golden`, with the settings that the stored numbers were made with."""

from __future__ import annotations

from typing import Any

import numpy as np

import golden
import hardthresh as ht
from hardthresh.constraints import RowSparsity, Sparsity
from hardthresh.losses import Cox, Multinomial
from hardthresh.objectives import LinearModel, MultiOutputModel, OrdinalModel

ROWS, COLUMNS = golden.GOLDEN["n"], golden.GOLDEN["d"]
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "squared": (ht.SparseLinearRegression, {}),
    "logistic": (ht.SparseLogisticRegression, {}),
    "poisson": (ht.SparsePoissonRegression, {}),
    "gamma": (ht.SparseGammaRegression, {}),
    "tweedie": (ht.SparseTweedieRegression, {"power": 1.5}),
    "negative_binomial": (ht.SparseNegativeBinomialRegression, {"dispersion": 0.5}),
    "huber": (ht.SparseHuberRegression, {"delta": 1.35}),
    "quantile": (ht.SparseQuantileRegression, {"quantile": 0.7, "smoothing": 0.1}),
    "squared_hinge": (ht.SparseLinearSVC, {}),
    "multitask": (ht.SparseLinearRegression, {}),
    "multinomial": (ht.SparseLogisticRegression, {}),
    "ordinal": (ht.SparseOrdinalRegression, {}),
    "cox_breslow": (ht.SparseCoxRegression, {"ties": "breslow"}),
    "cox_efron": (ht.SparseCoxRegression, {"ties": "efron"}),
}
CLASSES = ("logistic", "squared_hinge", "multinomial", "ordinal")
LOG = ("poisson", "gamma", "tweedie", "negative_binomial")


def drawn(name: str, **changes: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """X, the target as the estimator takes it, and the offset if there is one."""
    made = golden.data(name, **changes)
    y = np.column_stack([made["y"], made["event"]]) if "event" in made else made["y"]
    return made["X"], y, made.get("offset")


def estimator(name: str, k: Any = COLUMNS, alpha: float = 0.0, **settings: Any) -> Any:
    """The estimator of a model, unfitted, on the columns as they are."""
    cls, own = MODELS[name]
    return cls(**{"n_nonzero_coefs": k, "alpha": alpha, "standardize": False, **own, **settings})


def fitted(name: str, k: int = COLUMNS, alpha: float = 0.0, weights: Any = None, **settings: Any) -> Any:
    """The fit of a model to its golden data."""
    X, y, offset = drawn(name)
    return estimator(name, k, alpha, **settings).fit(X, y, sample_weight=weights, offset=offset)


def theta(model: Any) -> np.ndarray:
    """Free parameters first, then coefficients, those of several outputs by rows: as they are stored."""
    if isinstance(model, ht.SparseCoxRegression):
        return model.coef_
    if isinstance(model, ht.SparseOrdinalRegression):
        return np.concatenate([model.thresholds_, model.coef_])
    coef = np.atleast_2d(model.coef_)
    return np.concatenate([np.reshape(model.intercept_, (1, -1)), coef.T]).ravel()


def objective(name: str, offset: Any = None, **settings: Any) -> Any:
    """The objective of a model; its last coordinates are free: the intercept, or the thresholds."""
    X, y, known = drawn(name)
    offset = known if offset is None else offset
    if name.startswith("cox"):
        return LinearModel(X, y, Cox(name.removeprefix("cox_")), offset=offset, **settings)
    if name == "ordinal":
        return OrdinalModel(X, y, offset=offset, **settings)
    Z = np.column_stack([X, np.ones(ROWS)])
    if name in ("multitask", "multinomial"):
        offset = offset if offset is None else np.outer(offset, [1.0, -0.5, 0.3])
        return MultiOutputModel(Z, y, "squared" if name == "multitask" else Multinomial(), offset=offset, **settings)
    return LinearModel(Z, y, estimator(name)._loss, offset=offset, **settings)


def budget(f: Any, k: int) -> Any:
    """The set of points of k columns and the free coordinates."""
    return (RowSparsity if len(f.shape) == 2 else Sparsity)(k, free=tuple(range(COLUMNS, f.shape[0])))
