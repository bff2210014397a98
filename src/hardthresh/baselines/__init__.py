"""Methods to compare with: Frank-Wolfe, greedy and low-rank methods, and learners from few attributes."""

from .balls import Ball, GroupBall, L1Ball, NuclearBall
from .bfgd import BFGD, bfgd
from .dantzig import DantzigSelector
from .frank_wolfe import DualityGap, FrankWolfe, frank_wolfe
from .greedy import AdaptiveForwardBackward, ForwardGreedy, Oblivious
from .rda import RegularizedDualAveraging
from .svp import svp

__all__ = [
    "BFGD",
    "AdaptiveForwardBackward",
    "Ball",
    "DantzigSelector",
    "DualityGap",
    "ForwardGreedy",
    "FrankWolfe",
    "GroupBall",
    "L1Ball",
    "NuclearBall",
    "Oblivious",
    "RegularizedDualAveraging",
    "bfgd",
    "frank_wolfe",
    "svp",
]
