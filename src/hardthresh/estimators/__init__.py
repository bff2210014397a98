"""Estimators with the interface of scikit-learn."""

from .graph.model import SparseGaussianGraphicalModel
from .graph.model_cv import SparseGaussianGraphicalModelCV
from .linear.classification import SparseLogisticRegression, SparseLogisticRegressionCV
from .linear.cox import SparseCoxRegression
from .linear.cox_cv import SparseCoxRegressionCV
from .linear.gamma import SparseGammaRegression, SparseGammaRegressionCV
from .linear.huber import SparseHuberRegression, SparseHuberRegressionCV
from .linear.negative_binomial import SparseNegativeBinomialRegression, SparseNegativeBinomialRegressionCV
from .linear.ordinal import SparseOrdinalRegression
from .linear.ordinal_cv import SparseOrdinalRegressionCV
from .linear.poisson import SparsePoissonRegression, SparsePoissonRegressionCV
from .linear.quantile import SparseQuantileRegression, SparseQuantileRegressionCV
from .linear.regression import SparseLinearRegression, SparseLinearRegressionCV
from .linear.svc import SparseLinearSVC, SparseLinearSVCCV
from .linear.tweedie import SparseTweedieRegression, SparseTweedieRegressionCV
from .low_rank.imputer import LowRankImputer
from .low_rank.imputer_cv import LowRankImputerCV
from .low_rank.regression import LowRankRegression
from .low_rank.regression_cv import LowRankRegressionCV
from .selectors.knockoffs import Knockoffs
from .selectors.stability import StabilitySelection

__all__ = [
    "Knockoffs",
    "LowRankImputer",
    "LowRankImputerCV",
    "LowRankRegression",
    "LowRankRegressionCV",
    "SparseCoxRegression",
    "SparseCoxRegressionCV",
    "SparseGammaRegression",
    "SparseGammaRegressionCV",
    "SparseGaussianGraphicalModel",
    "SparseGaussianGraphicalModelCV",
    "SparseHuberRegression",
    "SparseHuberRegressionCV",
    "SparseLinearRegression",
    "SparseLinearRegressionCV",
    "SparseLinearSVC",
    "SparseLinearSVCCV",
    "SparseLogisticRegression",
    "SparseLogisticRegressionCV",
    "SparseNegativeBinomialRegression",
    "SparseNegativeBinomialRegressionCV",
    "SparseOrdinalRegression",
    "SparseOrdinalRegressionCV",
    "SparsePoissonRegression",
    "SparsePoissonRegressionCV",
    "SparseQuantileRegression",
    "SparseQuantileRegressionCV",
    "SparseTweedieRegression",
    "SparseTweedieRegressionCV",
    "StabilitySelection",
]
