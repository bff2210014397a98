"""Choosing how many."""

from .path import path

__all__ = ["path"]
