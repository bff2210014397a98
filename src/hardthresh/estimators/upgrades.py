"""Upgrades of stored estimators of earlier versions."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from hardthresh.core.schema import Fields, Successor, Upgrade

from .linear.grid_models import AveragedModel

_OF_FOLDS = ("cv", "rule", "n_jobs")


def tenth_of_features(fields: Fields) -> Fields:
    """Return fields with the numbers that None stood for: a tenth of the features or groups, at least 1.

    A model that was not fitted gets "auto", as does the number that its `groups` leave without a meaning.
    """
    numbers = {name: fields.get(name) for name in ("n_nonzero_coefs", "n_nonzero_groups")}
    counted = "n_nonzero_coefs" if fields.get("groups") is None else "n_nonzero_groups"
    if numbers[counted] is None and "n_features_in_" in fields:
        tenth = max(1, fields["n_features_in_"] // 10)
        numbers[counted] = tenth if counted == "n_nonzero_coefs" else fields.get("n_nonzero_groups_")
    return fields | {name: "auto" if number is None else number for name, number in numbers.items()}


def with_defaults(**defaults: Any) -> Upgrade:
    """Return the upgrade of an estimator to which parameters were added, with the values that leave it as it was."""

    def upgrade(fields: Fields) -> Fields:
        return defaults | fields

    return upgrade


CHOSEN_BY_EBIC = with_defaults(criterion="ebic", ebic_gamma=1.0, n_features_original=None, max_nonzero_coefs=None)
"""The upgrade of linear models that chose k by the extended BIC alone."""
CHOSEN_BY_FOLDS = with_defaults(criterion="cv", ebic_gamma=1.0, n_features_original=None, max_nonzero_coefs=None)
"""The upgrade of those that chose it by cross-validation alone."""


def without_comparison(name: str, successor: str, left_out: tuple[str, ...] = ()) -> Upgrade:
    """Return the upgrade of an estimator that chose a parameter by cross-validation if it was "cv" or several numbers.

    Parameters
    ----------
    name : str
        The parameter.
    successor : str
        The registered name of its `CV` version, which chooses the parameter today.
    left_out : tuple of str
        Parameters that the `CV` version does not have.
    """

    def upgrade(fields: Fields) -> Fields | Successor:
        number = fields.get(name, "cv")  # the default
        if number is None or isinstance(number, Integral):
            return {key: value for key, value in fields.items() if key not in _OF_FOLDS}
        kept = {key: value for key, value in fields.items() if key not in left_out}
        return Successor(f"estimator/{successor}", kept | {name: None if isinstance(number, str) else number})

    return upgrade


def one_ridge(default: float) -> Upgrade:
    """Return the upgrade of a linear estimator that cross-validated the number of features alone, with one ridge.

    The model is that of before. What earlier versions did not compute is NaN, such as the scores of the model without
    features unless it was compared, or empty; and `found_` says whether features were chosen.

    Parameters
    ----------
    default : float
        The ridge if none was given.
    """

    def upgrade(fields: Fields) -> Fields:
        ridge = default if fields.get("alpha") is None else float(fields["alpha"])
        kept = {key: value for key, value in fields.items() if key != "alpha" and not _says_default(key, value)}
        kept |= {"alphas": ridge, "averaging": "none"}
        if "coef_" not in fields:
            return kept
        name = "n_nonzero_coefs" if fields.get("groups") is None else "n_nonzero_groups"
        coef, intercept = np.ravel(fields["coef_"]), float(np.ravel(fields["intercept_"])[0])
        support = np.flatnonzero(coef)
        best = int(fields.get(f"best_{name}_") or fields.get(f"{name}_") or support.size)
        model = AveragedModel(best, ridge, 1.0, support, coef[support], intercept)
        kept |= {
            f"best_{name}_": best,
            "alpha_": ridge,
            "alphas_": np.array([ridge]),
            "averaging_": "none",
            "models_": (model,),
            "best_model_": model,
            "found_": best > 0,
            "null_p_value_": np.nan,
            "range_extended_": False,
            "held_out_scores_": {},
            "calibration_": np.empty((0, 3)),
        }
        if "scores_" in fields:
            scores, none = np.asarray(fields["scores_"]), np.asarray(fields["candidates_"])[0] == 0
            kept["grid_scores_"] = scores[:, None, :]
            kept["null_scores_"] = scores[0].copy() if none else np.full(scores.shape[1], np.nan)
        return kept

    return upgrade


def _says_default(name: str, value: Any) -> bool:
    """Return whether a parameter is the number of features or groups, not given."""
    return name in ("n_nonzero_coefs", "n_nonzero_groups") and value is None
