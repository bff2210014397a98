"""Quantities of the theory, computed for given data."""

from .accelerated import AcceleratedGuarantee, accelerated_guarantee
from .bounds import RestrictedBounds, restricted_bounds
from .enumeration import RestrictedConstants, restricted_constants
from .guarantee import Guarantee
from .limited import LimitedGuarantee, LimitedPlan, limited_guarantee, limited_plan
from .momentum import MomentumRange, best_momentum, local_rate, momentum_range
from .phase_transition import l1_phase_transition
from .probabilistic import ModelAccuracy, ProbabilisticGuarantee, model_accuracy, probabilistic_guarantee
from .restricted import RestrictedCondition, restricted_condition
from .sparse_polyak import (
    SparsePolyakGuarantee,
    StatisticalConstants,
    sparse_polyak_guarantee,
    statistical_constants,
)

__all__ = [
    "AcceleratedGuarantee",
    "Guarantee",
    "LimitedGuarantee",
    "LimitedPlan",
    "ModelAccuracy",
    "MomentumRange",
    "ProbabilisticGuarantee",
    "RestrictedBounds",
    "RestrictedCondition",
    "RestrictedConstants",
    "SparsePolyakGuarantee",
    "StatisticalConstants",
    "accelerated_guarantee",
    "best_momentum",
    "l1_phase_transition",
    "limited_guarantee",
    "limited_plan",
    "local_rate",
    "model_accuracy",
    "momentum_range",
    "probabilistic_guarantee",
    "restricted_bounds",
    "restricted_condition",
    "restricted_constants",
    "sparse_polyak_guarantee",
    "statistical_constants",
]
