"""What hard thresholding is compared with: Frank-Wolfe, greedy and low-rank methods, other buyers of attributes."""

from .balls import Ball, GroupBall, L1Ball, NuclearBall
from .bfgd import BFGD, bfgd
from .dantzig import DantzigSelector
from .frank_wolfe import DualityGap, FrankWolfe, frank_wolfe
from .greedy import AdaptiveForwardBackward, ForwardGreedy, Oblivious, foba, forward_greedy, oblivious, omp
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
    "foba",
    "forward_greedy",
    "frank_wolfe",
    "oblivious",
    "omp",
    "svp",
]
