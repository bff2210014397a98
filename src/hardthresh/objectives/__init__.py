"""Functions to minimise."""

from .function import Function
from .graphical_model import GraphicalModel
from .linear_model import LinearModel
from .matrix_completion import MatrixCompletion
from .matrix_regression import MatrixRegression
from .multi_output import MultiOutputModel
from .ordinal import OrdinalModel

__all__ = [
    "Function",
    "GraphicalModel",
    "LinearModel",
    "MatrixCompletion",
    "MatrixRegression",
    "MultiOutputModel",
    "OrdinalModel",
]
