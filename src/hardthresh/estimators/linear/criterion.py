"""The number of features by the extended BIC, where none is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite, log
from typing import TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hardthresh.core.errors import NothingFoundWarning, SearchRangeWarning, warn
from hardthresh.core.result import Result, Status
from hardthresh.core.typing import Array
from hardthresh.objectives import LinearModel, MultiOutputModel
from hardthresh.selection.criteria import working_ebic

from .problem import Problem

_FIRST = 30
"""The largest number compared at first, also by cross-validation; where it is the best of them the range is doubled. A
path up to 30 costs 5 fits of 20 features."""

FitPath: TypeAlias = Callable[[LinearModel | MultiOutputModel, Sequence[int]], Iterable[Result]]
"""Returns the fits of a linear model for increasing numbers of features or groups."""


@dataclass(frozen=True, slots=True)
class CriterionPath:
    """The numbers of features, or of groups, that were compared, by a criterion.

    Attributes
    ----------
    candidates : array of int, shape (n_candidates,)
        0, 1, 2, ...
    values : array, shape (n_candidates,)
        The extended BIC of each; smaller is better. NaN where there are too few rows to compare anything.
    unconverged : list of str
        Why fits did not converge, those without a minimiser aside: their criterion is that of the limit.
    points : tuple of array
        The fit of each; empty where there are too few rows.
    """

    candidates: np.ndarray
    values: np.ndarray
    unconverged: list[str]
    points: tuple[Array, ...] = ()

    @property
    def best(self) -> int:
        """The smallest number with the least criterion; 0 if there was nothing to compare."""
        return int(self.candidates[np.argmin(np.where(np.isnan(self.values), np.inf, self.values))])

    def warn(self, problem: Problem, estimator: str, name: str, what: str) -> None:
        """Warn where the choice says little: of no features, of as many as were compared, and of unfinished fits.

        Parameters
        ----------
        problem : Problem
            The problem that the numbers are for.
        estimator, name, what : str
            The class of the estimator, the parameter that was chosen, and what it counts.
        """
        last = int(self.candidates[-1])
        rows, candidates, possible = _size_of(problem)
        what_counts = "events" if rows < problem.objective.y.shape[0] else "rows"
        if self.unconverged:
            warn(
                f"{len(self.unconverged)} of {self.candidates.size} fits for the choice of {name} did not converge: "
                f"{self.unconverged[0]}",
                ConvergenceWarning,
            )
        instead = f"the model has none; give {name} to choose so many all the same"
        if last == 0 and candidates:
            warn(f"too few {what_counts}, {rows}, to choose a number of {what}: {instead}", NothingFoundWarning)
        elif self.best == 0 and candidates:
            compared = f"1 to {last}" if last > 1 else "1"
            warn(f"no number of {what} ({compared}) has a better EBIC than none: {instead}", NothingFoundWarning)
        elif 0 < self.best == last < possible:
            warn(
                f"the best EBIC is that of the largest number of {what} that {rows} {what_counts} allow to be "
                f"compared, {last}: a larger one may predict better; give {name}, or use {estimator}CV",
                SearchRangeWarning,
            )


def criterion_path(problem: Problem, fit_path: FitPath) -> CriterionPath:
    r"""Return the extended BIC of 0, 1, ..., K features, or groups.

    K is :math:`n / (\log d \log \log n)` of d columns, at least 1 and at most 30, beyond which a criterion ranks noise
    (Fan and Tang 2013); where K = 30 is the best, it is doubled up to that bound. Of groups it is that bound over their
    mean size. n is the sum of the weights, a weight of 2 being a row given twice, but not less than the number of rows:
    weights that sum to less, as normalised ones do, are no repetitions and count as scaled to that number. Of censored
    times n is the share of it that has an event, as for the criteria.

    Parameters
    ----------
    problem : Problem
        The problem, with any budget, of rows of positive weight.
    fit_path : callable
        Returns the fits of an objective for some budgets.

    Returns
    -------
    CriterionPath
    """
    possible = _size_of(problem)[2]
    n = number_of_examples(problem.objective)
    most = _largest(problem, n * problem.objective.mean_loss.share, possible)
    if most < 1:
        return CriterionPath(np.arange(1), np.full(1, np.nan), [])
    objective = problem.objective.with_examples(n)
    last = min(_FIRST, most)
    while True:
        results = list(fit_path(objective, range(last + 1)))
        unconverged = [
            result.status.sentence
            for result in results
            if not result.converged and result.status is not Status.NO_MINIMISER
        ]
        values, points = np.array([working_ebic(result) for result in results]), tuple(result.w for result in results)
        found = CriterionPath(np.arange(last + 1), values, unconverged, points)
        if found.best < last or last == most:
            return found
        last = min(2 * last, most)


def number_of_examples(objective: LinearModel | MultiOutputModel) -> float:
    """Return the sum of the weights, but not less than the number of rows."""
    rows, total = float(objective.y.shape[0]), objective.targets.n_examples
    return max(total, rows) if isfinite(total) else rows


def _size_of(problem: Problem) -> tuple[int, int, int]:
    """Return the number of rows, of features or groups to choose from, and the largest that leaves rows over.

    Of censored times, rows are events.
    """
    rows = round(int(problem.objective.y.shape[0]) * problem.objective.mean_loss.share)
    candidates = problem.n_candidates
    left = rows - 2 - len(problem.constraint.free)  # a fit with n - 1 coefficients has no criterion
    return rows, candidates, min(candidates, int(left / problem.candidate_size)) if candidates else 0


def _largest(problem: Problem, n: float, possible: int) -> int:
    """Return the largest number of features, or of groups, that a criterion can compare."""
    if possible < 1:
        return 0
    columns = problem.n_candidates * problem.candidate_size
    bound = n / (log(max(columns, 2.0)) * log(log(n))) / problem.candidate_size
    return int(min(max(bound, 1.0), possible))
