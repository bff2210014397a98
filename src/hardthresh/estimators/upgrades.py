"""Upgrades of stored estimators of earlier versions."""

from __future__ import annotations

from numbers import Integral

from hardthresh.core.schema import Fields, Successor, Upgrade


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


_OF_FOLDS = ("cv", "rule", "n_jobs")


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
