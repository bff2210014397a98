"""What hard thresholding is compared with, on the same contracts: Frank-Wolfe, greedy selection, low-rank descent."""

from .balls import Ball, GroupBall, L1Ball, NuclearBall
from .bfgd import BFGD, bfgd
from .frank_wolfe import DualityGap, FrankWolfe, frank_wolfe
from .greedy import AdaptiveForwardBackward, ForwardGreedy, Oblivious, foba, forward_greedy, oblivious, omp
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
    "foba",
    "forward_greedy",
    "frank_wolfe",
    "oblivious",
    "omp",
    "svp",
]
