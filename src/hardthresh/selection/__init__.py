"""Model selection: fits for a range of budgets, information criteria, and cross-validation."""

from hardthresh.solvers.working_set.folds import FoldPath, least_squares_fold_paths

from .criteria import aic, bic, ebic, gic
from .path import path

__all__ = ["FoldPath", "aic", "bic", "ebic", "gic", "least_squares_fold_paths", "path"]
