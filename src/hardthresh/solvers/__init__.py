"""Algorithms, and the public entry points that choose one."""

from hardthresh.core.minimize import iterate, minimize

from .iht import IHT

__all__ = ["IHT", "iterate", "minimize"]
