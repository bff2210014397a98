"""scikit-learn estimators."""

from .classification import SparseLogisticRegression, SparseLogisticRegressionCV
from .gamma import SparseGammaRegression, SparseGammaRegressionCV
from .graphical_model import SparseGaussianGraphicalModel
from .low_rank import LowRankRegression
from .low_rank_cross_validation import LowRankRegressionCV
from .low_rank_imputer import LowRankImputer
from .poisson import SparsePoissonRegression, SparsePoissonRegressionCV
from .regression import SparseLinearRegression, SparseLinearRegressionCV

__all__ = [
    "LowRankImputer",
    "LowRankRegression",
    "LowRankRegressionCV",
    "SparseGammaRegression",
    "SparseGammaRegressionCV",
    "SparseGaussianGraphicalModel",
    "SparseLinearRegression",
    "SparseLinearRegressionCV",
    "SparseLogisticRegression",
    "SparseLogisticRegressionCV",
    "SparsePoissonRegression",
    "SparsePoissonRegressionCV",
]
