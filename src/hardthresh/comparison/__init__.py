"""Our models beside those of other packages on the same data: nested cross-validation, and what follows from it."""

from .contest import compare
from .entrants import ENTRANTS
from .entries import Entry
from .result import MethodComparison
from .verdict import Difference, Verdict

__all__ = ["ENTRANTS", "Difference", "Entry", "MethodComparison", "Verdict", "compare"]
