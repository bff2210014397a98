"""Constraint sets with a projection, one per file."""

from .double_sparsity import DoubleSparsity
from .edges import Edges, EdgeSparsity
from .groups import GroupSparsity
from .overlapping_groups import Cover, OverlappingGroupSparsity
from .rank import Bases, Rank
from .rows import RowSparsity
from .sparsity import Sparsity
from .supports import Coordinates, Groups, Rows

__all__ = [
    "Bases",
    "Coordinates",
    "Cover",
    "DoubleSparsity",
    "EdgeSparsity",
    "Edges",
    "GroupSparsity",
    "Groups",
    "OverlappingGroupSparsity",
    "Rank",
    "RowSparsity",
    "Rows",
    "Sparsity",
]
