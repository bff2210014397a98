"""Objectives: functions to minimise, made of a design, a loss and targets."""

from .blocked_classes import BlockedClasses, blocked_classes
from .blocked_least_squares import BlockedLeastSquares
from .blocked_model import BlockedModel, blocked_model
from .blocked_outputs import BlockedOutputs, blocked_outputs
from .function import Function
from .gram_model import GramModel
from .graphical_model import GraphicalModel
from .linear_model import LinearModel
from .matrix_completion import MatrixCompletion
from .matrix_regression import MatrixRegression
from .multi_output import MultiOutputModel
from .ordinal import OrdinalModel

__all__ = [
    "BlockedClasses",
    "BlockedLeastSquares",
    "BlockedModel",
    "BlockedOutputs",
    "Function",
    "GramModel",
    "GraphicalModel",
    "LinearModel",
    "MatrixCompletion",
    "MatrixRegression",
    "MultiOutputModel",
    "OrdinalModel",
    "blocked_classes",
    "blocked_model",
    "blocked_outputs",
]
