"""Solvers that use batches of examples, with their batch rules and votes."""

from .batches import BatchProgress, BatchRule, ExponentialBatch, FixedBatch, FullBatch, NormTest, PowerBatch, Replay
from .probabilistic import ProbabilisticIHT
from .stochastic import StochasticIHT
from .stream import Averaged, StreamState
from .voting import CoordinateVote, SetVote, Vote

__all__ = [
    "Averaged",
    "BatchProgress",
    "BatchRule",
    "CoordinateVote",
    "ExponentialBatch",
    "FixedBatch",
    "FullBatch",
    "NormTest",
    "PowerBatch",
    "ProbabilisticIHT",
    "Replay",
    "SetVote",
    "StochasticIHT",
    "StreamState",
    "Vote",
]
