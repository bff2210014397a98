"""The number of features by an information criterion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import inf, isfinite, log
from typing import TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hardthresh.core.errors import CriterionWarning, NothingFoundWarning, SearchRangeWarning, warn
from hardthresh.core.result import Result, Status
from hardthresh.core.typing import Array
from hardthresh.objectives import LinearModel, MultiOutputModel
from hardthresh.selection.comparison import warn_at_range_end
from hardthresh.selection.criteria import CRITERIA, gic, working_ebic
from hardthresh.selection.valley import golden_section

from .problem import Problem

_FIRST = 30
"""The largest number compared at first, also by cross-validation; where it is the best of them the range is doubled. A
path up to 30 costs 5 fits of 20 features."""

FitPath: TypeAlias = Callable[[LinearModel | MultiOutputModel, Sequence[int]], Iterable[Result]]
"""Returns the fits of a linear model for increasing numbers of features or groups."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """An information criterion with its settings.

    Attributes
    ----------
    name : {"ebic", "bic", "aic", "gic"}
        Which one.
    gamma : float
        That of the extended BIC.
    n_features_original : int or None
        How many features, or groups, there were before a screening; None if there was none.
    """

    name: str
    gamma: float = 1.0
    n_features_original: int | None = None

    def __call__(self, result: Result) -> float:
        """Return the criterion of a fit; for a loss without a likelihood the working one of the extended BIC."""
        if self.name == "ebic":
            return working_ebic(result, self.gamma, self.n_features_original)
        if self.name == "gic":
            return gic(result, self.n_features_original)
        return CRITERIA[self.name](result)

    @property
    def label(self) -> str:
        """Its name in messages."""
        return self.name.upper()


@dataclass(frozen=True, slots=True)
class CriterionPath:
    """The numbers of features, or of groups, that were compared, by a criterion.

    Attributes
    ----------
    criterion : Criterion
        The criterion.
    candidates : array of int, shape (n_candidates,)
        The numbers, increasing.
    values : array, shape (n_candidates,)
        The criterion of each; smaller is better. NaN where there are too few rows to compare anything.
    unconverged : list of str
        Why fits did not converge, those without a minimiser aside: their criterion is that of the limit.
    points : tuple of array
        The fit of each; empty where there are too few rows.
    null : float
        The criterion of no features.
    given : bool
        Whether the user gave the numbers, or the largest of them.
    """

    criterion: Criterion
    candidates: np.ndarray
    values: np.ndarray
    unconverged: list[str]
    points: tuple[Array, ...] = ()
    null: float = inf
    given: bool = False

    @property
    def place(self) -> int:
        """The place of the smallest number with the least criterion; 0 if there was nothing to compare."""
        return int(np.argmin(np.where(np.isnan(self.values), inf, self.values)))

    @property
    def best(self) -> int:
        """That number."""
        return int(self.candidates[self.place])

    @property
    def least(self) -> float:
        """Its criterion."""
        return float(self.values[self.place])

    @property
    def found(self) -> bool:
        """Whether some number of features is better than none."""
        return self.best > 0 and self.least < self.null

    def joined(self, other: CriterionPath) -> CriterionPath:
        """Return the path of the numbers of two."""
        candidates = np.concatenate([self.candidates, other.candidates])
        order, points = np.argsort(candidates), (*self.points, *other.points)
        return replace(
            self,
            candidates=candidates[order],
            values=np.concatenate([self.values, other.values])[order],
            unconverged=[*self.unconverged, *other.unconverged],
            points=tuple(points[place] for place in order),
        )

    def without_null(self) -> CriterionPath:
        """Return the path without the first number, which is 0."""
        return replace(self, candidates=self.candidates[1:], values=self.values[1:], points=self.points[1:])

    def warn(self, problem: Problem, estimator: str, name: str, what: str) -> None:
        """Warn where the choice says little: of no features, of as many as were compared, and of unfinished fits.

        Parameters
        ----------
        problem : Problem
            The problem that the numbers are for.
        estimator, name, what : str
            The class of the estimator, the parameter that was chosen, and what it counts.
        """
        last, label = int(self.candidates[-1]), self.criterion.label
        rows, candidates, possible = _size_of(problem)
        what_counts = "events" if rows < problem.objective.traits.n_rows else "rows"
        validated = 'criterion="cv"' if estimator.endswith("CV") else f"{estimator}CV"
        if self.unconverged:
            warn(
                f"{len(self.unconverged)} of {self.candidates.size} fits for the choice of {name} did not converge: "
                f"{self.unconverged[0]}",
                ConvergenceWarning,
            )
        columns = round(candidates * problem.candidate_size)
        if self.criterion.name != "ebic" and columns > rows:
            warn(
                f"{label} chooses {what} out of {columns:,} columns by {rows:,} {what_counts}: the search itself "
                f'overfits, which this criterion accounts for too little or not at all; use criterion="ebic", '
                f"or {validated}",
                CriterionWarning,
            )
        instead = "the model has none"
        if not self.given:
            instead += f"; give {name} to choose so many all the same"
        if last == 0 and candidates and not self.given:
            warn(f"too few {what_counts}, {rows}, to choose a number of {what}: {instead}", NothingFoundWarning)
        elif not self.found and candidates and (last or not self.given):
            compared = f"{max(1, self.candidates[0])} to {last}" if last > 1 else "1"
            outcome = instead if self.candidates[0] == 0 else f"add 0 to {name} for a model without any"
            warn(f"no number of {what} ({compared}) has a better {label} than none: {outcome}", NothingFoundWarning)
        elif self.given:
            warn_at_range_end(self.candidates, self.place, possible, f"number of {what}", label)
        elif 0 < self.best == last < possible:
            warn(
                f"the best {label} is that of the largest number of {what} that {rows} {what_counts} allow to be "
                f"compared, {last}: a larger one may predict better; give {name}, or use {validated}",
                SearchRangeWarning,
            )


def criterion_path(problem: Problem, fit_path: FitPath, criterion: Criterion) -> CriterionPath:
    r"""Return the criterion of 0, 1, ..., K features, or groups.

    K is :math:`n / (\log d \log \log n)` of d columns, at least 1 and at most 30, beyond which a criterion ranks noise
    (Fan and Tang 2013); where K = 30 is the best, it is doubled up to that bound. Where readings are expensive, the
    numbers up to 30 are not fitted again then. Of groups it is that bound over their mean size. n is the sum of the
    weights, a weight of 2 being a row given twice, but not less than the number of rows: weights that sum to less, as
    normalised ones do, are no repetitions and count as scaled to that number. Of censored times n is the share of it
    that has an event, as for the criteria.

    Parameters
    ----------
    problem : Problem
        The problem, with any budget, of rows of positive weight.
    fit_path : callable
        Returns the fits of an objective for some budgets.
    criterion : Criterion
        The criterion.

    Returns
    -------
    CriterionPath
    """
    most = _largest(problem)
    if most < 1:
        return CriterionPath(criterion, np.arange(1), np.full(1, np.nan), [])
    last = min(_FIRST, most)
    found = _compared(problem, fit_path, criterion, range(last + 1))
    while found.best == last < most:
        first, last = last + 1, min(2 * last, most)
        if problem.objective.traits.reading_is_dear:
            found = found.joined(_compared(problem, fit_path, criterion, range(first, last + 1)))
        else:
            found = _compared(problem, fit_path, criterion, range(last + 1))
    return found


def path_of(problem: Problem, fit_path: FitPath, criterion: Criterion, sizes: np.ndarray) -> CriterionPath:
    """Return the criterion of some numbers of features, or groups, as `criterion_path` does of those that it compares.

    The model without features is fitted too.
    """
    found = _compared(problem, fit_path, criterion, np.union1d([0], sizes).tolist())
    return replace(found if sizes[0] == 0 else found.without_null(), given=True)


def searched_path(problem: Problem, fit_path: FitPath, criterion: Criterion, largest: int | None) -> CriterionPath:
    """Return the criterion of 0 and of the numbers up to a largest one that a golden-section search tries.

    The search ends at the bound of `criterion_path` at the latest: beyond it criteria have a second valley, of noise.
    """
    bound = _largest(problem)
    most = bound if largest is None else min(bound, largest)
    if most < 1:
        return criterion_path(problem, fit_path, criterion)
    parts = [_compared(problem, fit_path, criterion, [0])]

    def values(sizes: Sequence[int]) -> Iterable[float]:
        parts.append(_compared(problem, fit_path, criterion, sizes))
        return list(parts[-1].values)

    golden_section(values, most)
    return replace(reduce(CriterionPath.joined, parts), given=most < bound)


def _compared(problem: Problem, fit_path: FitPath, criterion: Criterion, sizes: Sequence[int]) -> CriterionPath:
    """Return the criterion of some numbers, increasing."""
    results = list(fit_path(problem.objective.with_examples(number_of_examples(problem.objective)), sizes))
    unconverged = [
        result.status.sentence
        for result in results
        if not result.converged and result.status is not Status.NO_MINIMISER
    ]
    values = np.array([criterion(result) for result in results])
    null = float(values[0]) if sizes[0] == 0 else inf
    return CriterionPath(criterion, np.array(sizes), values, unconverged, tuple(result.w for result in results), null)


def number_of_examples(objective: LinearModel | MultiOutputModel) -> float:
    """Return the sum of the weights, but not less than the number of rows."""
    rows, total = float(objective.traits.n_rows), objective.total_weight
    return max(total, rows) if isfinite(total) else rows


def _size_of(problem: Problem) -> tuple[int, int, int]:
    """Return the number of rows, of features or groups to choose from, and the largest that leaves rows over.

    Of censored times, rows are events.
    """
    rows = round(problem.objective.traits.n_rows * problem.objective.share)
    candidates = problem.n_candidates
    left = rows - 2 - len(problem.constraint.free)  # a fit with n - 1 coefficients has no criterion
    return rows, candidates, min(candidates, int(left / problem.candidate_size)) if candidates else 0


def _largest(problem: Problem) -> int:
    """Return the largest number of features, or of groups, that a criterion can compare."""
    possible = _size_of(problem)[2]
    if possible < 1:
        return 0
    n = number_of_examples(problem.objective) * problem.objective.share
    columns = problem.n_candidates * problem.candidate_size
    bound = n / (log(max(columns, 2.0)) * log(log(n))) / problem.candidate_size
    return int(min(max(bound, 1.0), possible))
