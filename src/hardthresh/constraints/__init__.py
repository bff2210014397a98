"""Sets that we can project onto, one per file."""

from .rank import Bases, Rank
from .sparsity import Sparsity

__all__ = ["Bases", "Rank", "Sparsity"]
