"""What the page and the API answer when they do not do what they were asked to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from sqlite3 import OperationalError
from typing import Any

from hardthresh.core.errors import HardThreshError, InvalidInputError
from hardthresh.limited.sources.database import BusyError

from ..errors import LateAnswer, NothingToAsk, QuestionBack, RepeatedKey, StudyClosed

UNPROCESSABLE, CONFLICT, UNAVAILABLE = 422, 409, 503
RETRY_AFTER = "2"  # seconds; arbitrary: other programs use the file for milliseconds


@dataclass(frozen=True)
class Refusal:
    """An answer that says no.

    Attributes
    ----------
    status : int
        The status of HTTP.
    error : str
        The name of the error, which programs read.
    message : str
        What is wrong, with the value, and what to do.
    details : mapping
        More that programs may want to know.
    headers : mapping
        More headers of the answer.
    """

    status: int
    error: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return what the API sends."""
        return {"error": self.error, "message": self.message, **self.details}


def is_api(path: str) -> bool:
    """Return whether a path belongs to the API, which answers in JSON."""
    return path.startswith("/api/") or path == "/openapi.json"


class Refused(Exception):
    """Raised where a request is refused before the study has seen it."""

    def __init__(self, status: int, error: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.refusal = Refusal(status, error, message, headers=headers or {})


def refusal_of(error: Exception) -> Refusal | None:
    """Return what to answer after an error; None if it is not one that a request can cause."""
    if isinstance(error, Refused):
        return error.refusal
    if isinstance(error, QuestionBack):
        keys = ("attribute", "value", "low", "high", "unit")
        doubts = [dict(zip(keys, doubt, strict=True)) for doubt in error.doubts]
        return Refusal(CONFLICT, type(error).__name__, str(error), {"doubts": doubts})
    if isinstance(error, InvalidInputError):
        return Refusal(UNPROCESSABLE, type(error).__name__, str(error))
    if isinstance(error, (LateAnswer, NothingToAsk, RepeatedKey, StudyClosed)):
        return Refusal(CONFLICT, type(error).__name__, str(error))
    if isinstance(error, (BusyError, OperationalError)):
        message = f"the file of the study cannot be used at this moment ({error}); repeat the request with the same key"
        return Refusal(UNAVAILABLE, "Busy", message, headers={"Retry-After": RETRY_AFTER})
    if isinstance(error, HardThreshError):  # the file cannot be written, as on a full disk
        return Refusal(UNAVAILABLE, type(error).__name__, str(error))
    return None
