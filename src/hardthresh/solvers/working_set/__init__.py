"""The default solver of models with at most k features: local search on the Gram matrix of a few columns."""

from .solver import WorkingSet

__all__ = ["WorkingSet"]
