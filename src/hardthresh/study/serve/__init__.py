"""A study as a page for people and an API for instruments."""

from __future__ import annotations

from .server import run

__all__ = ["run"]
