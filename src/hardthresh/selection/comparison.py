"""Cross-validation: candidates, such as numbers of features or ranks, compared by scores on held-out data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from hardthresh.core.errors import InvalidInputError, SearchRangeWarning, warn
from hardthresh.core.progress import Report

from .grid import EQUAL, standard_error

Fold = TypeVar("Fold")
Fits = TypeVar("Fits")
Result = TypeVar("Result")

_PATIENCE = 2
"""So many candidates in a row that score worse than the best end a search; arbitrary: a single one may be noise."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The scores of candidates in each fold.

    Attributes
    ----------
    candidates : array of int, shape (n_candidates,)
        The candidates, increasing.
    by_ridge : array, shape (n_candidates, n_ridges, n_folds)
        Scores on held-out data; higher is better. Each candidate may be fitted with several ridges.
    fits : list
        The last fits of each fold, from which those of further candidates may start.
    unconverged : list of str
        The reasons why fits did not converge.
    """

    candidates: np.ndarray
    by_ridge: np.ndarray
    fits: list[Any]
    unconverged: list[str]

    @property
    def best_by_ridge(self) -> np.ndarray:
        """The best mean score of each ridge, shape (n_ridges,)."""
        return np.asarray(np.max(self.by_ridge.mean(axis=2), axis=0))

    @property
    def argmax_ridge(self) -> int:
        """The position of the ridge with the best mean score."""
        return int(np.argmax(self.best_by_ridge))

    @property
    def scores(self) -> np.ndarray:
        """The scores with that ridge, shape (n_candidates, n_folds)."""
        return np.asarray(self.by_ridge[:, self.argmax_ridge])

    @property
    def mean(self) -> np.ndarray:
        """Their mean over the folds, shape (n_candidates,)."""
        return np.asarray(self.scores.mean(axis=1))

    @property
    def standard_error(self) -> np.ndarray:
        """The standard error of that mean, shape (n_candidates,); 0 with one fold."""
        return standard_error(self.scores)

    @property
    def best_by_candidate(self) -> np.ndarray:
        """The best mean score of each candidate with any ridge, shape (n_candidates,)."""
        return np.asarray(np.max(self.by_ridge.mean(axis=2), axis=1))

    @property
    def argmax(self) -> int:
        """The position of the candidate with the highest mean score with any ridge, by however little."""
        return int(np.argmax(self.best_by_candidate))

    @property
    def best(self) -> int:
        """The position of the smallest candidate whose mean score equals the best up to rounding."""
        mean = self.mean
        if not np.all(np.isfinite(self.scores)):
            raise InvalidInputError("a held-out score is NaN or infinite; check the scoring and the folds")
        return int(np.argmax(mean >= np.max(mean) - EQUAL * abs(np.max(mean))))

    @property
    def one_standard_error(self) -> int:
        """The position of the smallest candidate within one standard error of the best."""
        mean, best = self.mean, self.best
        return int(np.argmax(mean >= mean[best] - self.standard_error[best] - EQUAL * abs(mean[best])))

    @property
    def smallest_tied(self) -> int:
        """The position of the smallest candidate whose scores the folds cannot tell from those of the best mean.

        They are worse, fold by fold, by no more on average than the standard error of that difference.
        """
        scores = self.scores
        worse = scores[int(np.argmax(self.mean))] - scores
        n_folds = scores.shape[1]
        error = worse.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else 0.0
        return int(np.argmax(worse.mean(axis=1) <= error))

    def chosen(self, rule: str) -> int:
        """Return the position of the candidate that a rule, "best" or "one_standard_error", chooses."""
        return self.best if rule == "best" else self.one_standard_error


def compare(
    candidates: Sequence[int],
    folds: Sequence[Fold],
    fit_path: Callable[[Fold, list[int], Fits | None], tuple[Fits, list[str]]],
    score: Callable[[Fold, Fits], Any],
    *,
    n_jobs: int | None = None,
    report: Report = lambda text: None,
) -> Comparison:
    """Compare candidates by the scores of their fits on held-out data.

    Parameters
    ----------
    candidates : sequence of int
        The candidates, increasing.
    folds : sequence
        One object per fold, passed on to `fit_path` and `score`.
    fit_path : callable
        Returns the fits of some candidates to the training data of a fold, and why some of them did not converge. Its
        last argument is the fits that it last returned for this fold, None at first. With `n_jobs` it runs in other
        processes.
    score : callable
        Returns the held-out scores of these fits, one for each candidate, or shape (n_candidates, n_ridges); higher is
        better. It runs in this process, one fold after the other.
    n_jobs : int, optional
        The number of folds to fit at a time.
    report : callable
        Called with an empty line after each fold.

    Returns
    -------
    Comparison
    """
    tasks = ((fold, list(candidates), None) for fold in folds)
    return score_fits(candidates, folds, in_parallel(fit_path, tasks, n_jobs), score, report)


def search(
    propose: Callable[[Comparison], Sequence[int]],
    folds: Sequence[Fold],
    fit_path: Callable[[Fold, list[int], Fits | None], tuple[Fits, list[str]]],
    score: Callable[[Fold, Fits], Any],
    *,
    after: Comparison | None = None,
    n_jobs: int | None = None,
    report: Report = lambda text: None,
) -> Comparison:
    """Compare candidates as `compare` does, where the scores so far decide which ones come next.

    Parameters
    ----------
    propose : callable
        Returns the candidates to compare next, given the comparison so far, and none at the end of the search: `climb`
        or `halve_gaps`.
    folds, fit_path, score, n_jobs :
        As for `compare`.
    after : Comparison, optional
        A comparison of the same folds that this one continues.
    report : callable
        Called with the mean scores of the new candidates.

    Returns
    -------
    Comparison
        Of all candidates, those of `after` among them.
    """
    found = after or Comparison(np.empty(0, dtype=int), np.empty((0, 1, len(folds))), [None] * len(folds), [])
    while candidates := list(propose(found)):
        tasks = ((fold, candidates, last) for fold, last in zip(folds, found.fits, strict=True))
        new = score_fits(candidates, folds, in_parallel(fit_path, tasks, n_jobs), score)
        means = zip(candidates, new.best_by_candidate, strict=True)
        report(", ".join(f"{candidate}: {mean:.6g}" for candidate, mean in means))
        found = _joined(found, new) if found.candidates.size else new
    return found


def score_fits(
    candidates: Sequence[int],
    folds: Sequence[Fold],
    fits: Iterable[tuple[Fits, list[str]]],
    score: Callable[[Fold, Fits], Any],
    report: Report = lambda text: None,
) -> Comparison:
    """Return the scores of the fits of candidates, where `fits` holds what `fit_path` of `compare` returns by fold."""
    scores, kept, unconverged = [], [], []
    for fold, (fit, reasons) in zip(folds, fits, strict=True):
        scores.append(np.asarray(score(fold, fit)).reshape(len(candidates), -1))
        kept.append(fit)
        unconverged += reasons
        report("")
    return Comparison(np.array(candidates), np.stack(scores, axis=2), kept, unconverged)


def in_parallel(
    function: Callable[..., Result], arguments: Iterable[tuple[Any, ...]], n_jobs: int | None
) -> Iterable[Result]:
    """Return the results of a function for several arguments, in order, and one by one where joblib's backend can."""
    # not everyone who imports this room needs scikit-learn, whose Parallel passes its configuration on to the workers
    from joblib.parallel import get_active_backend
    from sklearn.utils.parallel import Parallel, delayed

    backend, _ = get_active_backend()
    return_as = "generator" if backend.supports_return_generator else "list"
    results: Iterable[Result] = Parallel(n_jobs=n_jobs, return_as=return_as)(delayed(function)(*a) for a in arguments)
    return results


def _joined(old: Comparison, new: Comparison) -> Comparison:
    """Return a comparison of the candidates of two, in increasing order, with the fits of the second."""
    candidates = np.concatenate([old.candidates, new.candidates])
    order = np.argsort(candidates, kind="stable")
    by_ridge = np.concatenate([old.by_ridge, new.by_ridge])[order]
    return Comparison(candidates[order], by_ridge, new.fits, [*old.unconverged, *new.unconverged])


def climb(comparison: Comparison, schedule: Sequence[int], cannot_improve: float | None = None) -> list[int]:
    """Return the next larger candidate, or nothing once two in a row scored worse than the best.

    Parameters
    ----------
    comparison : Comparison
        Of the first candidates of the schedule.
    schedule : sequence of int
        The candidates to try, increasing.
    cannot_improve : float, optional
        The search also ends at a score, minus a squared error, that is less than so many times the best one.
    """
    n = comparison.candidates.size
    if n == 0:
        return [schedule[0]]
    means, best = comparison.best_by_candidate, comparison.argmax
    ends = n == len(schedule) or n - 1 - best >= _PATIENCE
    if ends or (cannot_improve is not None and means[-1] < cannot_improve * means[best]):
        return []
    return [schedule[n]]


def halve_gaps(comparison: Comparison, share: float = 0.0) -> list[int]:
    """Return the middles of the gaps between the best candidate and its neighbours.

    Gaps of one, or of no more than a share of the best candidate, are not halved.
    """
    at = comparison.argmax
    beside = comparison.candidates[max(0, at - 1) : at + 2].tolist()
    narrow = max(1.0, share * float(comparison.candidates[at]))
    return [(low + high) // 2 for low, high in pairwise(beside) if high - low > narrow]


def warn_at_range_end(candidates: np.ndarray, best: int, largest: int, what: str, measure: str = "mean score") -> None:
    """Warn if the best candidate is the first or the last of those compared, and others are possible beyond it.

    Parameters
    ----------
    candidates : array of int
        The numbers compared, increasing.
    best : int
        The position of the best one.
    largest : int
        The largest number that can make a difference.
    what : str
        The noun for these numbers in the warning.
    measure : str
        What they were compared by.
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
        f"the best {measure} is that of the {end} {what} compared, {number}: {beyond}, for example",
        SearchRangeWarning,
    )


def warn_at_largest_ridge(alpha: float) -> None:
    """Warn that the best ridge is the largest of those compared by default."""
    warn(
        f"the best mean score is that of the largest ridge compared, {alpha:g}: a larger one may predict better; "
        f"set it, for example alpha={2 * alpha:g}, and compare mean_scores_",
        SearchRangeWarning,
    )
