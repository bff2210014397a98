"""Functions to minimise."""

from .linear_model import LinearModel

__all__ = ["LinearModel"]
