"""Whether data are of the array library of the fit, as scikit-learn 1.8 and later checks it."""

from __future__ import annotations

from typing import Any

try:
    from sklearn.utils._array_api import check_same_namespace
except ImportError:  # scikit-learn < 1.8 lets the arrays themselves refuse to mix

    def check_same_namespace(X: Any, estimator: Any, *, attribute: str, method: str) -> None:
        """Do nothing."""


__all__ = ["check_same_namespace"]
