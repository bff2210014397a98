"""scikit-learn estimators."""

from .classification import SparseLogisticRegression, SparseLogisticRegressionCV
from .graphical_model import SparseGaussianGraphicalModel
from .low_rank import LowRankRegression
from .low_rank_cross_validation import LowRankRegressionCV
from .low_rank_imputer import LowRankImputer
from .regression import SparseLinearRegression, SparseLinearRegressionCV

__all__ = [
    "LowRankImputer",
    "LowRankRegression",
    "LowRankRegressionCV",
    "SparseGaussianGraphicalModel",
    "SparseLinearRegression",
    "SparseLinearRegressionCV",
    "SparseLogisticRegression",
    "SparseLogisticRegressionCV",
]
