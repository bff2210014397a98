"""scikit-learn estimators."""

from .classification import SparseLogisticRegression, SparseLogisticRegressionCV
from .low_rank import LowRankRegression
from .low_rank_cross_validation import LowRankRegressionCV
from .low_rank_imputer import LowRankImputer
from .regression import SparseLinearRegression, SparseLinearRegressionCV

__all__ = [
    "LowRankImputer",
    "LowRankRegression",
    "LowRankRegressionCV",
    "SparseLinearRegression",
    "SparseLinearRegressionCV",
    "SparseLogisticRegression",
    "SparseLogisticRegressionCV",
]
