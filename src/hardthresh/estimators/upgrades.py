"""Upgrades of stored estimators of earlier versions."""

from __future__ import annotations

from numbers import Integral

from hardthresh.core.schema import Fields, Successor, Upgrade

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
