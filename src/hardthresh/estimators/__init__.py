"""scikit-learn estimators."""

from .classification import SparseLogisticRegression, SparseLogisticRegressionCV
from .regression import SparseLinearRegression, SparseLinearRegressionCV

__all__ = [
    "SparseLinearRegression",
    "SparseLinearRegressionCV",
    "SparseLogisticRegression",
    "SparseLogisticRegressionCV",
]
