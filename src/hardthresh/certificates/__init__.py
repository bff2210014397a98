"""Certificates: which optimality conditions the answer of a run or a fitted model satisfies."""

from .model import ModelCertificate, certify_model
from .stationarity import certify
from .swap import SwapCertificate, swap_certificate

__all__ = ["ModelCertificate", "SwapCertificate", "certify", "certify_model", "swap_certificate"]
