"""Studies in which attributes are bought example by example: how far they are, drift, and planning."""

from __future__ import annotations

from .drift import Drift, DriftTest, drift
from .progress import Error, ErrorCurve, Progress, progress

__all__ = ["Drift", "DriftTest", "Error", "ErrorCurve", "Progress", "drift", "progress"]
