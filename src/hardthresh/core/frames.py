"""Data frames of results, which need pandas."""

from __future__ import annotations

from typing import Any

from .errors import MissingDependencyError


def pandas_for_frames() -> Any:
    """Return pandas, which only `to_frame` needs.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise MissingDependencyError("to_frame needs pandas, which is not installed; or use to_dict()") from error
    return pandas
