"""Quantities of the theory, computed for the data at hand."""

from .enumeration import RestrictedConstants, restricted_constants
from .momentum import MomentumRange, best_momentum, local_rate, momentum_range
from .phase_transition import l1_phase_transition
from .restricted import RestrictedCondition, restricted_condition

__all__ = [
    "MomentumRange",
    "RestrictedCondition",
    "RestrictedConstants",
    "best_momentum",
    "l1_phase_transition",
    "local_rate",
    "momentum_range",
    "restricted_condition",
    "restricted_constants",
]
