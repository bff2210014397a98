"""The default solver of linear models with at most k features: local search on the Gram matrix of a few columns."""

from .solver import WorkingSet

__all__ = ["WorkingSet"]
