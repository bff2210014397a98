"""Rules for the step length, one idea per file."""

from .barzilai_borwein import BarzilaiBorwein
from .fixed import Fixed, restricted_smoothness_ar1
from .line_search import Backtracking, ExactLineSearch
from .polyak import AdaptiveSparsePolyak, Polyak, SparsePolyak

__all__ = [
    "AdaptiveSparsePolyak",
    "Backtracking",
    "BarzilaiBorwein",
    "ExactLineSearch",
    "Fixed",
    "Polyak",
    "SparsePolyak",
    "restricted_smoothness_ar1",
]
