"""Robustness tests of classifiers by universal perturbations of a few pixels."""

from .problem import Attack
from .result import UniversalPerturbation
from .saturation import GreedySaturation
from .search import universal_perturbation

__all__ = ["Attack", "GreedySaturation", "UniversalPerturbation", "universal_perturbation"]
