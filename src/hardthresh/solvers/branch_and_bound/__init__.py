"""Least squares with at most k features solved to proven optimality, by branch and bound."""

from .solver import BranchAndBound

__all__ = ["BranchAndBound"]
