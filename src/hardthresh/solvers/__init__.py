"""Algorithms, and the public entry points that choose one."""

from .accelerated import AcceleratedIHT
from .adaptive_hybrid import AdaptiveHybrid
from .auto import choose_solver, iterate, minimize
from .conjugate import ConjugateIHT
from .iht import IHT
from .limited import Exploitation, Exploration, Hybrid
from .logistic_hybrid import LogisticHybrid
from .momentum import ConstantMomentum, ExactMomentum, Momentum, NesterovMomentum
from .probabilistic import ProbabilisticIHT
from .pursuit import HardThresholdingPursuit
from .stochastic import StochasticIHT
from .working_set import WorkingSet

__all__ = [
    "IHT",
    "AcceleratedIHT",
    "AdaptiveHybrid",
    "ConjugateIHT",
    "ConstantMomentum",
    "ExactMomentum",
    "Exploitation",
    "Exploration",
    "HardThresholdingPursuit",
    "Hybrid",
    "LogisticHybrid",
    "Momentum",
    "NesterovMomentum",
    "ProbabilisticIHT",
    "StochasticIHT",
    "WorkingSet",
    "choose_solver",
    "iterate",
    "minimize",
]
