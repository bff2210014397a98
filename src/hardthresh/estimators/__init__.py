"""scikit-learn estimators."""

from .classification import SparseLogisticRegression, SparseLogisticRegressionCV
from .low_rank import LowRankRegression
from .low_rank_cross_validation import LowRankRegressionCV
from .regression import SparseLinearRegression, SparseLinearRegressionCV

__all__ = [
    "LowRankRegression",
    "LowRankRegressionCV",
    "SparseLinearRegression",
    "SparseLinearRegressionCV",
    "SparseLogisticRegression",
    "SparseLogisticRegressionCV",
]
