"""Algorithms, and the functions `minimize` and `iterate`, which choose one."""

from .accelerated import AcceleratedIHT
from .auto import choose_solver, iterate, minimize
from .branch_and_bound import BranchAndBound
from .conjugate import ConjugateIHT
from .iht import IHT
from .momentum import ConstantMomentum, ExactMomentum, Momentum, NesterovMomentum
from .pursuit import HardThresholdingPursuit
from .splicing import Splicing
from .stochastic import (
    BatchProgress,
    BatchRule,
    CoordinateVote,
    ExponentialBatch,
    FixedBatch,
    FullBatch,
    NormTest,
    PowerBatch,
    ProbabilisticIHT,
    Replay,
    SetVote,
    StochasticIHT,
    Vote,
)
from .working_set import WorkingSet

__all__ = [
    "IHT",
    "AcceleratedIHT",
    "BatchProgress",
    "BatchRule",
    "BranchAndBound",
    "ConjugateIHT",
    "ConstantMomentum",
    "CoordinateVote",
    "ExactMomentum",
    "ExponentialBatch",
    "FixedBatch",
    "FullBatch",
    "HardThresholdingPursuit",
    "Momentum",
    "NesterovMomentum",
    "NormTest",
    "PowerBatch",
    "ProbabilisticIHT",
    "Replay",
    "SetVote",
    "Splicing",
    "StochasticIHT",
    "Vote",
    "WorkingSet",
    "choose_solver",
    "iterate",
    "minimize",
]
