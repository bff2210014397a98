"""Baseline methods for comparison: Frank-Wolfe, greedy and low-rank methods."""

from .balls import Ball, GroupBall, L1Ball, NuclearBall
from .bfgd import BFGD, bfgd
from .frank_wolfe import DualityGap, FrankWolfe, frank_wolfe
from .greedy import AdaptiveForwardBackward, ForwardGreedy, Oblivious
from .svp import svp

__all__ = [
    "BFGD",
    "AdaptiveForwardBackward",
    "Ball",
    "DualityGap",
    "ForwardGreedy",
    "FrankWolfe",
    "GroupBall",
    "L1Ball",
    "NuclearBall",
    "Oblivious",
    "bfgd",
    "frank_wolfe",
    "svp",
]
