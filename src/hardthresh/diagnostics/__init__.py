"""Numbers of the theory that a user can compute."""

from .restricted import RestrictedCondition, restricted_condition

__all__ = ["RestrictedCondition", "restricted_condition"]
