"""Model selection: paths, information criteria, held-out scores of grids, and averages of models."""

from hardthresh.solvers.working_set.fold_path import FoldPath
from hardthresh.solvers.working_set.folds import least_squares_fold_paths
from hardthresh.solvers.working_set.generalized_folds import generalized_fold_paths

from .averaging import exponential_weights, stacking_weights
from .criteria import aic, bic, ebic, gic
from .effective_size import degrees_of_freedom
from .fits import Path
from .knockoff_plan import KnockoffPlan
from .knockoffs import knockoff_e_values, knockoff_threshold, select_by_e_values
from .null_test import null_p_value
from .path import path
from .permutations import PermutationTest, permutation_test
from .stability import LowProbabilityBound, complementary_pairs, low_probability_bound
from .valley import golden_section

__all__ = [
    "FoldPath",
    "KnockoffPlan",
    "LowProbabilityBound",
    "Path",
    "PermutationTest",
    "aic",
    "bic",
    "complementary_pairs",
    "degrees_of_freedom",
    "ebic",
    "exponential_weights",
    "generalized_fold_paths",
    "gic",
    "golden_section",
    "knockoff_e_values",
    "knockoff_threshold",
    "least_squares_fold_paths",
    "low_probability_bound",
    "null_p_value",
    "path",
    "permutation_test",
    "select_by_e_values",
    "stacking_weights",
]
