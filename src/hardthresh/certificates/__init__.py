"""Certificates: optimality conditions of a solution, lower bounds, and the effect of each of its features."""

from hardthresh.core.gap import relative_gap

from .alternatives import Alternative, Alternatives
from .effects import UnitEffect, robust_errors, standard_errors, unit_effects
from .lower_bounds import lower_bound
from .model import ModelCertificate, certify_model
from .near_ties import alternative_supports
from .proof import Proof
from .proving import prove
from .stationarity import certify
from .swap import SwapCertificate, swap_certificate

__all__ = [
    "Alternative",
    "Alternatives",
    "ModelCertificate",
    "Proof",
    "SwapCertificate",
    "UnitEffect",
    "alternative_supports",
    "certify",
    "certify_model",
    "lower_bound",
    "prove",
    "relative_gap",
    "robust_errors",
    "standard_errors",
    "swap_certificate",
    "unit_effects",
]
