"""What cross-validation shares, whatever it chooses: candidates, folds as rows of a table, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import get_routing_for_object

from hardthresh.core.checking import with_warnings_of_caller
from hardthresh.core.errors import InvalidInputError, SearchRangeWarning, format_value, warn

from .routing import Metadata, rows_of
from .table import Table

Splits = list[tuple[np.ndarray, np.ndarray]]


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


_ROUNDING = 1e-10
"""Mean scores that differ by this share of themselves are the same."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the folds say about the candidates.

    Attributes
    ----------
    scores : array, shape (n_candidates, n_folds)
        The scores; higher is better.
    mean, error : array, shape (n_candidates,)
        Mean score and its standard error.
    best, modest : int
        Which candidate has the best mean, the smallest of those that differ by rounding, and which is the smallest
        within a standard error of it.
    """

    scores: np.ndarray
    mean: np.ndarray
    error: np.ndarray
    best: int
    modest: int

    @classmethod
    def of(cls, scores: np.ndarray) -> Verdict:
        """Return the verdict of scores, shape (n_candidates, n_folds)."""
        if not np.all(np.isfinite(scores)):
            raise InvalidInputError("a held-out score is NaN or infinite; check the scoring and the folds")
        n_folds = scores.shape[1]
        size = float(np.max(np.abs(scores))) or 1.0  # no overflow in the square of a large score
        spread = size * (scores / size).std(axis=1, ddof=1) if n_folds > 1 else np.zeros(scores.shape[0])
        mean, error = scores.mean(axis=1), spread / np.sqrt(n_folds)
        best = int(np.argmax(mean >= np.max(mean) - _ROUNDING * abs(np.max(mean))))
        return cls(scores, mean, error, best, int(np.argmax(mean >= mean[best] - error[best])))

    def chosen(self, rule: str) -> int:
        """Return which candidate a rule chooses."""
        return self.best if rule == "best" else self.modest


def warn_at_range_end(best: int, candidates: np.ndarray, largest: int, what: str) -> None:
    """Warn if the best of several numbers is the largest or the smallest compared, and others are possible beyond it.

    Parameters
    ----------
    best : int
        The position of the best number among the candidates.
    candidates : array of int
        The numbers compared, increasing.
    largest : int
        The largest number that can make a difference.
    what : str
        What the numbers are.
    """
    number = int(candidates[best])
    if candidates.size == 1:
        return
    if best == candidates.size - 1 and number < largest:
        end, beyond = "largest", f"a larger one may predict better; compare up to {min(2 * number, largest)}"
    elif best == 0 and number > 1:
        end, beyond = "smallest", "a smaller one may predict better; compare from 1"
    else:
        return
    warn(
        f"the best mean score is that of the {end} {what} compared, {number}: {beyond}, for example",
        SearchRangeWarning,
    )


def warn_at_largest_ridge(alpha: float) -> None:
    """Warn if the best ridge is the largest of those compared by default."""
    warn(
        f"the best mean score is that of the largest ridge compared, {alpha:g}: a larger one may predict better; "
        f"set it, for example alpha={2 * alpha:g}, and compare mean_scores_",
        SearchRangeWarning,
    )


def tell_unconverged(whys: list[str], total: int, where: str) -> None:
    """Warn of fits that did not converge, with the reason of the first."""
    if whys:
        warn(f"{len(whys)} of {total} fits {where} did not converge: {whys[0]}", ConvergenceWarning)
