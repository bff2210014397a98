"""What can go wrong, as types: every error says what, which value, and what to do."""

from __future__ import annotations


def given(x: object) -> str:
    """Return how a message calls an argument of the wrong kind; of a class, what was probably meant."""
    return f"the class {x.__name__}; write {x.__name__}(...)" if isinstance(x, type) else repr(x)


class HardThreshError(Exception):
    """Base class of every error that hardthresh raises on purpose."""


class InvalidInputError(HardThreshError, ValueError):
    """An argument or the data cannot be used as given."""


class NotFiniteError(InvalidInputError):
    """A point became infinite or NaN."""


class CapabilityError(HardThreshError, TypeError):
    """A solver or step rule needs something that the objective or the constraint does not provide."""


class StallWarning(UserWarning):
    """A method has come to a halt where nothing says that it should."""


class MissingDependencyError(HardThreshError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""
