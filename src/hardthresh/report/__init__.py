"""Charts of fitted models, runs and perturbations, and a self-contained HTML report to share."""

from __future__ import annotations

from .html import write_report
from .perturbation import plot_perturbation
from .plots import plot_calibration, plot_coefficients, plot_convergence, plot_cv, plot_learning_curve, plot_path

__all__ = [
    "plot_calibration",
    "plot_coefficients",
    "plot_convergence",
    "plot_cv",
    "plot_learning_curve",
    "plot_path",
    "plot_perturbation",
    "write_report",
]
