"""Robustness tests of classifiers: a few pixels, changed in every image, that alter the predicted classes."""

from .problem import Attack
from .result import UniversalPerturbation
from .saturation import GreedySaturation
from .search import universal_perturbation

__all__ = ["Attack", "GreedySaturation", "UniversalPerturbation", "universal_perturbation"]
