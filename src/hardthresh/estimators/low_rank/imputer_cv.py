"""The completion of a table with the rank and the ridge chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.progress import progress_line
from hardthresh.core.solver import Solver
from hardthresh.core.typing import Array
from hardthresh.selection.comparison import (
    Comparison,
    climb,
    compare,
    halve_gaps,
    search,
    warn_at_largest_ridge,
    warn_at_range_end,
)

from ..documentation import public_estimator
from ..folds import Splits, candidates_of, check_rule, check_splits, keep_comparison, settings_for_folds
from .completion import Cells, Columns, CompletionProblem, Factors
from .imputer import LowRankImputer
from .rank_path import fit_first, rank_schedule

_ALPHAS = (0.1, 0.01, 0.0001)
"""The ridges compared where none is given. Arbitrary: from one that outweighs the noise to next to none."""
_CANNOT_IMPROVE = 2.0  # times the squared error of the best rank ends the search at once; arbitrary
_KEPT = 4  # fits to start from: the last two may be worse than the best, and a search returns to that before the best


@public_estimator("low_rank_imputer_cv")
class LowRankImputerCV(LowRankImputer):
    r"""Imputation of missing entries by a low-rank matrix, with the rank and the ridge chosen by cross-validation.

    .. math:: \hat r, \hat\alpha = \arg\min_{r, \alpha} \; \frac{1}{F} \sum_{f=1}^{F} \frac{1}{N_f} \sum_{(i, j) \in f}
              \Bigl(\frac{\hat x_{ij}^{(f, r, \alpha)} - x_{ij}}{\sigma_j}\Bigr)^2

    over ranks r and ridges :math:`\alpha`, where the F folds partition the observed entries, and :math:`\hat x^{(f, r,
    \alpha)}` are the predictions of a `LowRankImputer` fitted without the entries of fold f.

    Parameters
    ----------
    rank : iterable of int, or int, optional
        The ranks to compare, 0 <= rank < min(n_samples, n_features); a single number R means 1, 2, ..., R. By default,
        0, 1, ..., 8, 10, 12, 14, 16, 20, ... are compared until two consecutive ranks are worse than the best, or one
        is far worse; then the ranks between the best one and its neighbours are compared.
    alpha : float, optional
        Ridge penalty >= 0 on the mean square of all entries of the standardised completed table. By default, 0.1, 0.01
        and 0.0001 are compared in this order, each with all ranks, until one is worse than the one before.
    cv : int or iterable of (train, test) indices
        The folds of the observed entries. A number of folds is drawn at random with `random_state`. Indices refer to
        the observed entries in row-major order.
    rule : {"best", "one_standard_error"}
        "best" takes the smallest rank whose mean score differs from the best by less than the standard error of the
        difference over folds. "one_standard_error" takes the smallest rank whose mean score is within one standard
        error of the best.
    n_jobs : int, optional
        The number of folds to fit at a time.
    {imputer_parameters}
    random_state : int, RandomState or None
        Seed of the folds, and of the random numbers of `LowRankImputer`; None is the same as 0.
    verbose : bool
        Whether to show a progress line.

    Attributes
    ----------
    candidates_ : array of int, shape (n_candidates,)
        The ranks that were compared, increasing.
    scores_ : array, shape (n_candidates, n_folds)
        The negative mean squared error of the standardised held-out entries, with the chosen ridge. `mean_scores_` and
        `standard_errors_` are their means and standard errors over the folds, and `scorer_name_` is the name of the
        score.
    best_rank_ : int
        The rank that `rule` chose.
    one_standard_error_ : int
        The smallest rank whose mean score is within one standard error of the best.
    alphas_, alpha_scores_ : array, shape (n_alphas,)
        The ridges that were compared, and the best mean score of each.
    {imputer_attributes}

    Raises
    ------
    ValueError
        By `fit`, as for `LowRankImputer`, and for invalid ranks, folds or rules.

    Warns
    -----
    UserWarning, ConvergenceWarning
        As for `LowRankImputer`. A single warning gives the number of fits within the folds that did not converge.
    SearchRangeWarning
        If the best of the given ranks is the largest or the smallest, or the best default ridge is the largest, and
        values beyond it are possible.

    See Also
    --------
    LowRankImputer : The imputer with a given rank.

    Notes
    -----
    Guarantee: heuristic. The score of a rank does not depend on the other ranks that are compared, and each fold is
    centred and scaled by its own training entries.

    Cost: for each ridge and fold, one fit for each rank, warm-started from the previous rank.

    References
    ----------
    A. B. Owen and P. O. Perry (2009), Bi-cross-validation of the SVD and the nonnegative matrix factorization, *Annals
    of Applied Statistics* 3, 564-594.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import LowRankImputerCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 30)) + 5 + 0.3 * rng.standard_normal((200, 30))
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> model = LowRankImputerCV().fit(X)
    >>> model.best_rank_, bool(np.isnan(model.transform(X)).any())
    (2, False)
    """

    candidates_: Array
    scores_: Array
    mean_scores_: Array
    standard_errors_: Array
    one_standard_error_: int
    scorer_name_: str
    best_rank_: int

    def __init__(
        self,
        rank: int | Iterable[int] | None = None,
        *,
        alpha: float | None = None,
        cv: Any = 5,
        rule: str = "best",
        n_jobs: int | None = None,
        center: bool = True,
        standardize: bool = True,
        keep_observed: bool = True,
        missing: str = "nan",
        add_indicator: bool = False,
        keep_empty_features: bool = False,
        solver: str | Solver = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            rank,  # type: ignore[arg-type]
            alpha=alpha,
            center=center,
            standardize=standardize,
            keep_observed=keep_observed,
            missing=missing,
            add_indicator=add_indicator,
            keep_empty_features=keep_empty_features,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
            verbose=verbose,
        )
        self.cv = cv
        self.rule = rule
        self.n_jobs = n_jobs

    def _check_settings(self) -> None:
        super()._check_settings()
        check_rule(self.rule)

    def _rank_and_ridge(self, cells: Cells, seed: int) -> tuple[int, float]:
        """Return the rank and the ridge that predict held-out entries best, and keep what was compared."""
        largest = min(cells.shape) - 1
        compare_ranks: Callable[..., Comparison]
        if self.rank is None:
            propose = partial(climb, schedule=[0, *rank_schedule(largest)], cannot_improve=_CANNOT_IMPROVE)
            compare_ranks = partial(search, propose)
        else:
            check = partial(self._checked_rank, shape=cells.shape)
            compare_ranks = partial(compare, candidates_of(self.rank, largest, check, "rank", "ranks").tolist())
        folds = self._folds(cells, self._splits(cells.values.size, seed))
        alphas = _ALPHAS if self.alpha is None else (self._ridge(),)
        fit_path = partial(settings_for_folds(self, "rank")._fit_path, seed=seed)
        compared = []
        with progress_line(bool(self.verbose), "ranks") as report:
            for alpha in alphas:
                ridged = [fold.with_ridge(alpha) for fold in folds]
                compared.append(compare_ranks(ridged, fit_path, _scores_of_ranks, n_jobs=self.n_jobs, report=report))
                if compared[-1].best_by_ridge[0] < max(other.best_by_ridge[0] for other in compared):
                    break  # still smaller ridges fit still more noise, slowly
            chosen = int(np.argmax([comparison.best_by_ridge[0] for comparison in compared]))
            if self.rank is None:
                ridged, found = [fold.with_ridge(alphas[chosen]) for fold in folds], compared[chosen]
                compared[chosen] = search(
                    halve_gaps, ridged, fit_path, _scores_of_ranks, after=found, n_jobs=self.n_jobs, report=report
                )
        best, alpha = compared[chosen], alphas[chosen]
        tied = best.smallest_tied
        rank = keep_comparison(self, best, min(tied, best.chosen(self.rule)), "rank", "neg_mean_squared_error")
        self.alphas_ = np.array(alphas[: len(compared)])
        self.alpha_scores_ = np.array([comparison.best_by_ridge[0] for comparison in compared])
        place = min(tied, best.best)
        warn_at_range_end(best.candidates, place, best.candidates[-1] if self.rank is None else largest, "rank")
        if alpha == _ALPHAS[0] and len(alphas) > 1 and best.candidates[place] > 0:
            warn_at_largest_ridge(alpha)
        return rank, alpha

    def _splits(self, n: int, seed: int) -> Splits:
        """Return the folds of n observed entries."""
        if not isinstance(self.cv, Integral):
            if isinstance(self.cv, str) or not isinstance(self.cv, Iterable):
                raise InvalidInputError(
                    f"cv must be a number of folds or pairs of indices, got {format_value(self.cv)}"
                )
            try:
                splits = [(np.asarray(train), np.asarray(test)) for train, test in self.cv]
            except TypeError as error:
                raise InvalidInputError(
                    f"cv must be a number of folds or pairs (train, test) of indices, got {format_value(self.cv)}"
                ) from error
            for part in (part for split in splits for part in split):
                if part.size and (part.dtype.kind not in "iu" or part.min() < 0 or part.max() >= n):
                    raise InvalidInputError(f"cv must name observed entries, from 0 to {n - 1}")
            check_splits(splits)
            return splits
        count = checked_integer("cv", self.cv, 2)
        if n < count:
            raise InvalidInputError(f"{count} folds need as many observed entries, but there are {n}")
        folds = KFold(count, shuffle=True, random_state=seed)
        return list(folds.split(np.empty((n, 1), dtype=bool)))

    def _folds(self, cells: Cells, splits: Splits) -> list[_CellFold]:
        """Return the folds, with the scale of the columns that each learns from its own entries."""
        unit = self._columns(cells).scale  # so that errors have no units
        folds = []
        for number, (train, test) in enumerate(splits):
            known, held_out = cells.take(np.sort(train)), cells.take(np.sort(test))
            columns = self._columns(known)
            held_out = held_out.take(np.flatnonzero(~np.isnan(columns.mean[held_out.cols])))  # others are unknown
            if held_out.values.size == 0:
                raise InvalidInputError(
                    f"fold {number} of cv holds out no entry of a column that it knows; take other folds, or more "
                    "entries for each column"
                )
            folds.append(_CellFold(known, held_out, columns, unit))
        return folds

    def _fit_path(
        self, fold: _CellFold, ranks: list[int], last: _RankFits | None, seed: int
    ) -> tuple[_RankFits, list[str]]:
        """Return the fits of increasing ranks to a fold, each from a smaller one, and why some did not converge."""
        starts: dict[int, Array | None] = {0: None} if last is None else dict(last.starts)
        on_the_way = {rank for rank in rank_schedule(ranks[-1]) if rank > max(starts)}
        scores, reasons = [], []
        for rank in sorted(on_the_way | {*ranks}):
            start, factors, point = starts[max(smaller for smaller in starts if smaller < max(rank, 1))], None, None
            if fold.problem is not None and rank > 0:
                problem = fold.problem.with_budget(rank)
                solve = partial(self._solve, seed=seed)
                result = fit_first(problem, solve, seed)[0] if rank == 1 else solve(problem, start)
                point = result.w
                if rank in ranks:
                    factors = problem.factors(point)
                    reasons += [] if result.converged else [result.status.sentence]
            if rank in on_the_way:
                starts[rank] = point
            if rank in ranks:
                scores.append(fold.score(factors))
        return _RankFits(scores, {rank: starts[rank] for rank in sorted(starts)[-_KEPT:]}), reasons


@dataclass(frozen=True, slots=True)
class _RankFits:
    """The scores of some ranks in a fold, and the points from which larger ranks start."""

    scores: list[float]
    starts: dict[int, Array | None]


@dataclass(frozen=True, slots=True)
class _CellFold:
    """Known and held-out entries, how the columns are scaled, and the problem of the known entries with a ridge.

    There is no problem if no column varies.
    """

    known: Cells
    held_out: Cells
    columns: Columns
    unit: np.ndarray
    problem: CompletionProblem | None = None

    def with_ridge(self, alpha: float) -> _CellFold:
        """Return the fold with the problem for a ridge."""
        if not self.columns.varies.any():
            return self
        return replace(self, problem=CompletionProblem.of(self.known, self.columns, alpha))

    def score(self, factors: Factors | None) -> float:
        """Return minus the mean squared error of the held-out entries, predicted by factors or else by the means."""
        held_out, columns = self.held_out, self.columns
        predicted = columns.mean[held_out.cols]
        if factors is not None:
            predicted = predicted + columns.scale[held_out.cols] * factors.at(held_out.rows, held_out.cols)
        return -float(np.mean(((predicted - held_out.values) / self.unit[held_out.cols]) ** 2))


def _scores_of_ranks(fold: _CellFold, fits: _RankFits) -> list[float]:
    return fits.scores
