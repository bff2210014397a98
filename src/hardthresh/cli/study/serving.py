"""``hardthresh study plan`` and ``serve``: before a study, and its page."""

from __future__ import annotations


def plan() -> None:
    """Plan."""


def serve() -> None:
    """Serve."""
