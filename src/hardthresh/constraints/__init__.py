"""Sets that we can project onto, one per file."""

from .double_sparsity import DoubleSparsity
from .edges import EdgeSparsity
from .groups import GroupSparsity
from .overlapping_groups import OverlappingGroupSparsity
from .rank import Bases, Rank
from .sparsity import Sparsity

__all__ = ["Bases", "DoubleSparsity", "EdgeSparsity", "GroupSparsity", "OverlappingGroupSparsity", "Rank", "Sparsity"]
