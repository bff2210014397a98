"""Algorithms, and the public entry points that choose one."""

from .auto import choose_solver, iterate, minimize
from .conjugate import ConjugateIHT
from .iht import IHT
from .probabilistic import ProbabilisticIHT
from .pursuit import HardThresholdingPursuit
from .stochastic import StochasticIHT
from .working_set import WorkingSet

__all__ = [
    "IHT",
    "ConjugateIHT",
    "HardThresholdingPursuit",
    "ProbabilisticIHT",
    "StochasticIHT",
    "WorkingSet",
    "choose_solver",
    "iterate",
    "minimize",
]
