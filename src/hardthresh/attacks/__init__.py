"""Robustness tests: how few pixels of every image change what a classifier sees."""

from .universal import UniversalPerturbation, universal_perturbation

__all__ = ["UniversalPerturbation", "universal_perturbation"]
