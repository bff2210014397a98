"""What estimators with cross-validation share: candidates, folds as rows of a table, and what is kept of the scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import get_routing_for_object

from hardthresh.core.checking import with_warnings_of_caller
from hardthresh.core.errors import InvalidInputError, format_value, warn
from hardthresh.selection.comparison import Comparison

from .routing import Metadata, rows_of
from .table import Table

Split = tuple[np.ndarray, np.ndarray]
Splits = list[Split]


def candidates_of(given: Any, most: int, check: Callable[[Any], int], name: str, what: str) -> np.ndarray:
    """Return the budgets to compare, increasing: 1 .. `most` by default, and 1 .. K for a single number K."""
    if given is None:
        given = range(1, most + 1)
    elif isinstance(given, Integral):
        given = range(1, check(given) + 1)
    elif isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInputError(f"{name} must be a number or {what} to compare, got {format_value(given)}")
    candidates = sorted({check(budget) for budget in given})
    if not candidates:
        raise InvalidInputError(f"{name} is empty; give the {what} to compare, such as range(1, 11)")
    return np.array(candidates)


@with_warnings_of_caller()
def splits_of(cv: Any, table: Table, kept: np.ndarray, n_given: int, params: Metadata, *, classifier: bool) -> Splits:
    """Return the folds as row indices of the table, which holds the `kept` ones of the rows that were given.

    `params` are passed on to the splitter; what has one entry for each given row follows the rows.
    """
    splitter = check_cv(cv, table.y, classifier=classifier)
    if "groups" not in params and _needs_groups(cv):
        raise InvalidInputError(
            f"cv={type(cv).__name__} needs the group of each row; pass it to fit, as in fit(X, y, groups=...)"
        )
    if hasattr(cv, "split") or cv is None or isinstance(cv, Integral):
        return list(splitter.split(_matrix_for(splitter, table), table.y, **rows_of(params, kept, n_given)))
    place = np.full(n_given, -1)
    place[kept] = np.arange(kept.size)

    def among_kept(rows: Any) -> np.ndarray:
        rows = np.asarray(rows)
        places = place[rows if rows.size else rows.astype(np.intp)]
        return np.asarray(places[places >= 0])

    try:
        return [(among_kept(train), among_kept(test)) for train, test in splitter.split()]
    except IndexError as error:
        raise InvalidInputError(f"cv must name rows of X, which has {n_given}: {error}") from error


def _matrix_for(splitter: Any, table: Table) -> Any:
    """Return X for a splitter; scikit-learn's own only count its rows, which need not be copied for that."""
    if type(splitter).__module__.startswith("sklearn."):
        return np.broadcast_to(0.0, (table.n_rows, 1))
    return table.matrix()


def _needs_groups(cv: Any) -> bool:
    """Return whether a splitter asks for the groups of the rows, as scikit-learn's group splitters do."""
    split = getattr(get_routing_for_object(cv), "split", None)
    return split is not None and split.requests.get("groups") is True


def check_splits(splits: Splits) -> None:
    """Refuse folds that nothing can be learned from."""
    if not splits:
        raise InvalidInputError("cv gives no folds; give a number of folds >= 2, a splitter or a list of folds")
    for fold, (train, test) in enumerate(splits):
        for part, rows in (("train on", train), ("hold out", test)):
            if rows.size == 0:
                raise InvalidInputError(f"fold {fold} of cv has no rows to {part}")


def check_rule(rule: Any) -> None:
    """Refuse an unknown rule of choice."""
    if rule not in ("best", "one_standard_error"):
        raise InvalidInputError(f'rule must be "best" or "one_standard_error", got {format_value(rule)}')


@with_warnings_of_caller()
def score_by(scoring: Any, fitted: Any, test: Table, y: Any, params: Metadata) -> float:
    """Return the score of a fitted model on held-out rows, whose targets are y as they were given.

    `params` are passed on to the scorer; its weights are those of the table.
    """
    if "sample_weight" in params:
        params = {**params, "sample_weight": test.sample_weight}
    return float(check_scoring(fitted, scoring=scoring)(fitted, test.matrix(), y, **params))


def scorer_name(scoring: Any, default: str) -> str:
    """Return what a scorer is called: by scikit-learn's name, or the name of a function."""
    if scoring is None:
        return default
    return str(getattr(scoring, "__name__", scoring))


def tell_unconverged(comparison: Comparison) -> None:
    """Warn of fits in the folds that did not converge, with the reason of the first."""
    reasons, (n_candidates, _, n_folds) = comparison.unconverged, comparison.by_ridge.shape
    if reasons:
        warn(
            f"{len(reasons)} of {n_candidates * n_folds} fits inside the folds did not converge: {reasons[0]}",
            ConvergenceWarning,
        )


def keep_comparison(
    model: Any,
    comparison: Comparison,
    chosen: int,
    name: str,
    scorer: str,
    bring: Callable[[np.ndarray], Any] = np.asarray,
) -> int:
    """Set the fitted attributes that say what was compared, and return the chosen candidate.

    Parameters
    ----------
    model : estimator
        Where to set them.
    comparison : Comparison
        The scores.
    chosen : int
        The position of the chosen candidate.
    name : str
        The parameter that was chosen: it is kept as ``best_{name}_``.
    scorer : str
        What the scores are.
    bring : callable
        Brings an array to the library of the data.
    """
    best = int(comparison.candidates[chosen])
    model.candidates_, model.scores_ = bring(comparison.candidates), bring(comparison.scores)
    model.mean_scores_, model.standard_errors_ = bring(comparison.mean), bring(comparison.standard_error)
    model.one_standard_error_ = int(comparison.candidates[comparison.one_standard_error])
    model.scorer_name_ = scorer
    setattr(model, f"best_{name}_", best)
    return best
