"""Comparison of models of this package with those of other packages by nested cross-validation."""

from .contest import compare
from .entrants import ENTRANTS
from .entries import Entry
from .result import MethodComparison
from .verdict import Difference, Verdict

__all__ = ["ENTRANTS", "Difference", "Entry", "MethodComparison", "Verdict", "compare"]
