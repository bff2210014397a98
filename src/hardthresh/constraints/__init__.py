"""Sets that we can project onto, one per file."""

from .sparsity import Sparsity

__all__ = ["Sparsity"]
