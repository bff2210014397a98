"""Checks of the settings of a selection by knockoffs and of its estimator."""

from __future__ import annotations

from typing import Any

from hardthresh.core.checking import checked_integer, checked_number, checked_word
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.typing import is_integer, is_real

from ..linear.model import SparseLinearModel


def check_settings(selector: Any) -> None:
    """Check the settings of a selection, and those of its estimator that knockoffs do not allow.

    Raises
    ------
    InvalidInputError
        With the first that is wrong.
    """
    checked_number("fdr", selector.fdr, above=0.0, below=1.0)
    checked_word("kind", selector.kind, ("gaussian", "fixed"))
    checked_integer("n_draws", selector.n_draws, 1)
    if not is_integer(selector.offset) or selector.offset not in (0, 1):
        raise InvalidInputError(f"offset must be 0 or 1, got {format_value(selector.offset)}")
    if not callable(selector.statistic):
        checked_word("statistic", selector.statistic, ("path", "coef"))
    if isinstance(selector.covariance, str):
        checked_word("covariance", selector.covariance, ("ledoit_wolf", "empirical"))
    _check_estimator(selector.estimator, selector.statistic)


def _check_estimator(model: Any, statistic: Any) -> None:
    """Check the estimator that the importances come from."""
    if isinstance(model, type) or not hasattr(model, "fit"):
        raise InvalidInputError(
            f"estimator must be an estimator, such as SparseLinearRegression(), got {format_value(model)}"
        )
    if statistic == "path" and not isinstance(model, SparseLinearModel):
        raise InvalidInputError(
            f'statistic="path" needs a sparse linear model, got {format_value(model)}; use statistic="coef"'
        )
    if getattr(model, "groups", None) is not None:
        raise InvalidInputError("knockoffs of groups are not available; give an estimator without groups")
    if not isinstance(getattr(model, "categorical_features", None), str | None):
        raise InvalidInputError(
            "knockoffs of categorical columns are not available; leave these columns out, or replace them by "
            "numbers, and set categorical_features=None"
        )
    bounds = getattr(model, "bounds", None)
    if bounds is not None and not (
        isinstance(bounds, tuple | list) and all(one is None or is_real(one) for one in bounds)
    ):
        raise InvalidInputError(
            "a column and its knockoff need the same bounds; give one pair of numbers for all columns, such as "
            f"bounds=(0, None), got {format_value(bounds)}"
        )
