"""Sets that we can project onto, one per file."""

from .double_sparsity import DoubleSparsity
from .groups import GroupSparsity
from .overlapping_groups import OverlappingGroupSparsity
from .rank import Bases, Rank
from .sparsity import Sparsity

__all__ = ["Bases", "DoubleSparsity", "GroupSparsity", "OverlappingGroupSparsity", "Rank", "Sparsity"]
