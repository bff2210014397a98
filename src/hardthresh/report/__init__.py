"""Charts of fitted models, runs and perturbations, and a self-contained HTML report to share."""

from __future__ import annotations

from .comparison import write_comparison
from .html import write_report
from .perturbation import plot_perturbation
from .plots.alternatives import plot_alternatives
from .plots.choice import plot_criterion, plot_cv
from .plots.classes import plot_confusion, plot_precision_recall, plot_roc
from .plots.comparison import plot_comparison
from .plots.features import plot_coefficients, plot_correlations, plot_path
from .plots.fit import plot_calibration, plot_coverage, plot_observed, plot_quantiles, plot_residuals, plot_rootogram
from .plots.knockoffs import plot_knockoffs
from .plots.run import plot_convergence, plot_gap, plot_learning_curve
from .plots.stability import plot_stability
from .plots.study import plot_plan, plot_progress
from .plots.survival import kaplan_meier, plot_baseline_hazard, plot_survival

__all__ = [
    "kaplan_meier",
    "plot_alternatives",
    "plot_baseline_hazard",
    "plot_calibration",
    "plot_coefficients",
    "plot_comparison",
    "plot_confusion",
    "plot_convergence",
    "plot_correlations",
    "plot_coverage",
    "plot_criterion",
    "plot_cv",
    "plot_gap",
    "plot_knockoffs",
    "plot_learning_curve",
    "plot_observed",
    "plot_path",
    "plot_perturbation",
    "plot_plan",
    "plot_precision_recall",
    "plot_progress",
    "plot_quantiles",
    "plot_residuals",
    "plot_roc",
    "plot_rootogram",
    "plot_stability",
    "plot_survival",
    "write_comparison",
    "write_report",
]
