"""Algorithms, and the public entry points that choose one."""

from .accelerated import AcceleratedIHT
from .auto import choose_solver, iterate, minimize
from .conjugate import ConjugateIHT
from .iht import IHT
from .momentum import ConstantMomentum, ExactMomentum, Momentum, NesterovMomentum
from .probabilistic import ProbabilisticIHT
from .pursuit import HardThresholdingPursuit
from .stochastic import StochasticIHT
from .working_set import WorkingSet

__all__ = [
    "IHT",
    "AcceleratedIHT",
    "ConjugateIHT",
    "ConstantMomentum",
    "ExactMomentum",
    "HardThresholdingPursuit",
    "Momentum",
    "NesterovMomentum",
    "ProbabilisticIHT",
    "StochasticIHT",
    "WorkingSet",
    "choose_solver",
    "iterate",
    "minimize",
]
