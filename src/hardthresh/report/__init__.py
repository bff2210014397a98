"""What a fitted model looks like: charts, and one self-contained HTML file to show to a colleague."""

from __future__ import annotations

from .html import write_report
from .plots import plot_coefficients, plot_convergence, plot_cv, plot_learning_curve, plot_path

__all__ = [
    "plot_coefficients",
    "plot_convergence",
    "plot_cv",
    "plot_learning_curve",
    "plot_path",
    "write_report",
]
