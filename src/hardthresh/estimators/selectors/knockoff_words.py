"""Sentences about a selection by knockoffs and its guarantee."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from hardthresh.core.errors import plural
from hardthresh.selection.knockoffs import smallest_proportions

_ROUNDING = 1e-9
"""1 / 0.1 may be computed as a little more than 10. Arbitrary: thousands of units of rounding, and no share of 1."""


def outcome(selector: Any) -> str:
    """Return what was selected."""
    chosen = selector.support_.size
    if not chosen:
        return f"N{why_empty(selector)[1:]}."
    rate = "false discovery rate" if _bounds_rate(selector) else "modified false discovery rate"
    return (
        f"{chosen} of {selector.n_features_in_} features {'is' if chosen == 1 else 'are'} selected at the {rate} "
        f"{selector.fdr:g}; the estimated share of null ones is {selector.estimated_fdp_:.3g}."
    )


def conditions(selector: Any) -> list[str]:
    """Return what the level means, and what it assumes."""
    several = selector.n_draws > 1
    return [
        _of_level(selector.fdr, _bounds_rate(selector)),
        _of_kind(selector.kind, callable(selector.statistic)),
        *(
            ["The covariance was estimated, so that there is no guarantee for a finite number of rows."]
            if selector.kind == "gaussian" and is_estimated(selector.covariance)
            else []
        ),
        f"Features are selected by their mean e-values over {selector.n_draws} draws of the knockoffs; with few draws "
        "all of them may be lost at once."
        if several
        else "Another random_state draws other knockoffs, and may select other features.",
    ]


def is_estimated(covariance: Any) -> bool:
    """Return whether a covariance is estimated, and not given."""
    return isinstance(covariance, str) or callable(covariance) or hasattr(covariance, "fit")


def _bounds_rate(selector: Any) -> bool:
    """Return whether the level bounds the false discovery rate, and not only the modified one.

    The e-values of several draws have their own 1 in the denominator, whatever the offset.
    """
    return bool(selector.offset) or selector.n_draws > 1


def _of_level(fdr: float, rate: bool) -> str:
    """Return what a level bounds: the false discovery rate, or the modified one."""
    share = "share of null features" if rate else f"of V / (R + {1 / fdr:g}), V of R selected features being null,"
    return (
        f"The level {fdr:g} bounds the mean {share} over repetitions of the study; a single selection may have a "
        "larger one."
    )


def _of_kind(kind: str, by_function: bool) -> str:
    """Return under which assumption it does, those on a function for the importances among them."""
    if kind == "fixed":
        return (
            "It holds if the target is linear in the columns with independent normal errors of equal variance"
            + (", and the given statistic depends on the rows through their products alone" if by_function else "")
            + "; a feature is null if its coefficient is zero."
        )
    return (
        "It holds if the rows are draws of a normal distribution with the covariance that was used, whatever the "
        "model of the target"
        + (", and the given statistic treats all columns alike" if by_function else "")
        + "; a feature is null if it is independent of the target given the others."
    )


def why_empty(selector: Any) -> str:
    """Return why nothing is selected, with the numbers."""
    nothing, statistics = f"nothing is selected at fdr={selector.fdr:g}", selector.statistics_[0]
    if selector.n_draws > 1:
        passed, largest = np.count_nonzero(np.isfinite(selector.threshold_)), selector.e_values_.max()
        return (
            f"{nothing}: in {passed} of {selector.n_draws} draws features pass the level fdr / 2, which takes "
            f"{least_selected(selector.fdr / 2)} or more of them, and the largest mean e-value is {largest:.3g}; k "
            f"features have to have {selector.tested_.size / selector.fdr:.4g} / k each"
        )
    if not np.any(statistics > 0):
        return f"{nothing}: no feature is more important than its knockoff"
    sizes, proportions = smallest_proportions(statistics, selector.offset)
    best = sizes[np.argmin(proportions)]
    ahead, behind = (int(np.count_nonzero(beyond)) for beyond in (statistics >= best, statistics <= -best))
    plus, least = ("1 + ", least_selected(selector.fdr)) if selector.offset else ("", 1)
    too_few = f"; with offset=1 this level takes {least} or more" if ahead < least else ""
    return (
        f"{nothing}: the best threshold has {plural(ahead, 'feature')} ahead of their knockoffs and {behind} behind, "
        f"an estimated share of ({plus}{behind}) / {ahead} = {proportions.min():.3g}{too_few}. A level has to be "
        "chosen before looking at the data"
    )


def least_selected(level: float) -> int:
    """Return the smallest number of features that can be selected at a level."""
    return ceil(1 / level - _ROUNDING)
