"""Whether an estimator is whole: its settings make sense, and its fitted attributes fit together."""

from __future__ import annotations

from typing import Any

from hardthresh.core.errors import InvalidInputError

from .errors import StorageError


def check_estimator(model: Any) -> None:
    """Refuse an estimator that would fail, or predict NaN, when it is used.

    Estimators check themselves: ``_check_settings()``, and ``_check_attributes()`` once they are fitted, raise
    `InvalidInputError`. An estimator without these methods is not checked.

    Raises
    ------
    StorageError
        With the class and what is wrong with it.
    """
    fitted = any(name.endswith("_") and not name.startswith("_") for name in vars(model))
    for method in ("_check_settings", "_check_attributes")[: 1 + fitted]:
        try:
            getattr(model, method, _nothing)()
        except InvalidInputError as error:
            raise StorageError(f"not a sound {type(model).__name__}: {error}") from error


def _nothing() -> None:
    """Check nothing."""
