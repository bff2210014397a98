"""Algorithms, and the public entry points that choose one."""

from .auto import choose_solver, iterate, minimize
from .iht import IHT
from .pursuit import HardThresholdingPursuit

__all__ = ["IHT", "HardThresholdingPursuit", "choose_solver", "iterate", "minimize"]
