"""Sparse Gaussian graphical models with the number of edges chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import log
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hardthresh.core.checking import checked_word
from hardthresh.core.errors import InvalidInputError, warn
from hardthresh.core.progress import progress_line
from hardthresh.core.solver import Solver
from hardthresh.selection.comparison import (
    Comparison,
    climb,
    compare,
    halve_gaps,
    search,
    warn_at_largest_ridge,
    warn_at_range_end,
)
from hardthresh.selection.criteria import PRICES

from ..callbacks import fit_method
from ..documentation import public_estimator
from ..folds import (
    CrossValidatedMixin,
    Metadata,
    candidates_of,
    check_own_settings,
    check_rule,
    check_without_folds,
    forget_comparison,
    keep_comparison,
    settings_for_folds,
)
from ..table import Table
from ..upgrades import with_defaults
from .model import SparseGaussianGraphicalModel
from .problem import GraphProblem, Precision

_ALPHAS = (0.3, 0.1, 0.03, 0.01, 0.003)
"""The ridges of the likelihood compared where none is given. Arbitrary: by factors of three around the default."""
_ENOUGH = 1e-6  # relative tolerance of fits that are only compared; arbitrary, far below the error of a score
_FINE = 0.05  # the search ends where the neighbours of the best number are so near, as a share of it; arbitrary


def _edge_price(criterion: str, n: int, p: int, gamma: float) -> float:
    """Return what a criterion adds to minus twice the log-likelihood of n rows of p columns, for each edge."""
    return PRICES["bic"](n) + 4.0 * gamma * log(p) if criterion == "ebic" else PRICES[criterion](n)


@public_estimator("sparse_gaussian_graphical_model_cv", upgrades=[with_defaults(criterion="cv", ebic_gamma=0.5)])
class SparseGaussianGraphicalModelCV(CrossValidatedMixin, SparseGaussianGraphicalModel):
    r"""Gaussian graphical model with the number of edges, and the ridge, chosen by cross-validation.

    .. math:: \hat E, \hat\alpha = \arg\max_{E, \alpha} \; \frac{1}{F} \sum_{f=1}^{F} \frac{1}{|f|} \sum_{i \in f}
              \log p\bigl(x_i; \hat W^{(f, E, \alpha)}\bigr)

    over numbers of edges E and ridges :math:`\alpha`, where p is the Gaussian density of the
    `SparseGaussianGraphicalModel` that is fitted without the rows of fold f.

    Parameters
    ----------
    n_edges : iterable of int, or int, optional
        The numbers of edges to compare, 0 <= n_edges <= p (p - 1) / 2; a single number E means 1, 2, ..., E. By
        default, 0, p/4, p/2, p, 2 p, ... are compared until two consecutive numbers are worse than the best; then the
        intervals next to the best number are bisected.
    criterion : {"cv", "ebic", "bic", "aic"}
        How to choose the number of edges: by cross-validation, or by an information criterion of fits to all rows,
        which requires ``refit=True`` and the defaults of `cv` and `rule`. The extended Bayesian information criterion
        (BIC) of Foygel and Drton is :math:`-2 \log L + |E| \log n + 4 \gamma |E| \log p`, for n rows and p columns.
    ebic_gamma : float
        :math:`\gamma` of the extended BIC, 0 <= gamma <= 1; 0 gives the BIC.
    alpha : float, optional
        Ridge penalty >= 0 on the entries of the precision matrix of the standardised columns. By default, the ridges
        0.3, 0.1, 0.03, 0.01 and 0.003 of the likelihood are compared, which differ mainly with few rows; the graph,
        which hardly depends on the ridge, is found with 0.01. With an information criterion the default is 0.01.
    {graph_parameters}
    cv : int, splitter or iterable of (train, test) indices
        The folds, as in scikit-learn.
    rule : {"best", "one_standard_error"}
        "best" takes the number of edges with the best mean score, "one_standard_error" the smallest number whose mean
        score is within one standard error of the best.
    n_jobs : int, optional
        The number of folds to fit at a time.
    {graph_run}

    Attributes
    ----------
    candidates_ : array of int, shape (n_candidates,)
        The numbers of edges that were compared, increasing.
    scores_ : array, shape (n_candidates, n_folds)
        The mean Gaussian log-likelihood of held-out rows, with the chosen ridge. `mean_scores_` and `standard_errors_`
        are their means and standard errors over the folds, and `scorer_name_` is the name of the score.
    best_n_edges_ : int
        The number of edges that was chosen.
    one_standard_error_ : int
        The smallest number of edges whose mean score is within one standard error of the best.
    criterion_path_ : array, shape (n_candidates,)
        Only with an information criterion, instead of scores: the criterion of each number of edges; smaller is better.
    {graph_attributes}

    Raises
    ------
    ValueError
        By `fit`, as for `SparseGaussianGraphicalModel`, also if only the training rows of a fold are invalid, and for
        invalid numbers of edges, folds or rules.

    Warns
    -----
    UserWarning, ConvergenceWarning
        As for `SparseGaussianGraphicalModel`. A single warning gives the number of fits within the folds that did not
        converge.
    SearchRangeWarning
        If the best of the given numbers of edges is the largest or the smallest, or the best default ridge is the
        largest, and values beyond it are possible.

    See Also
    --------
    SparseGaussianGraphicalModel : The model with a given number of edges.

    Notes
    -----
    Guarantee: heuristic. Cost: about 12 F fits with F folds, with a tolerance of at least 1e-6; about 12 fits with an
    information criterion.

    References
    ----------
    R. Foygel and M. Drton (2010), Extended Bayesian information criteria for Gaussian graphical models, *Advances in
    Neural Information Processing Systems* 23.

    Examples
    --------
    >>> from hardthresh import SparseGaussianGraphicalModelCV
    >>> from hardthresh.datasets import make_graphical_model
    >>> X = make_graphical_model(300, 12, graph="chain").X
    >>> SparseGaussianGraphicalModelCV(rule="one_standard_error").fit(X).best_n_edges_
    11
    """

    def __init__(
        self,
        n_edges: int | Iterable[int] | None = None,
        *,
        criterion: str = "cv",
        ebic_gamma: float = 0.5,
        alpha: float | None = None,
        standardize: bool = True,
        refit: bool = True,
        cv: Any = 5,
        rule: str = "best",
        n_jobs: int | None = None,
        solver: str | Solver = "auto",
        tol: float = 1e-8,
        max_iter: int = 1000,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_edges,  # type: ignore[arg-type]
            alpha=alpha,
            standardize=standardize,
            refit=refit,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )
        self.criterion = criterion
        self.ebic_gamma = ebic_gamma
        self.cv = cv
        self.rule = rule
        self.n_jobs = n_jobs

    @fit_method
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Choose the number of edges, then fit all rows with it.

        Parameters
        ----------
        X, y :
            As for `SparseGaussianGraphicalModel`; X has to contain rows, not a covariance matrix.
        **params : dict
            ``groups``, an array of shape (n_samples,): the group of each row, for a splitter that keeps groups
            together, such as ``cv=GroupKFold(5)``. With scikit-learn's metadata routing enabled, whatever the splitter
            requests.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As for `SparseGaussianGraphicalModel`, and for invalid candidates or folds.
        """
        return self._fit(X, lambda rows: self._compare(rows, params))

    def _check_settings(self) -> None:
        super()._check_settings()
        checked_word("criterion", self.criterion, ("cv", "ebic", *PRICES))
        check_own_settings(self)
        if self.criterion == "cv":
            check_rule(self.rule)
            return
        check_without_folds(self)
        if not self.refit:
            raise InvalidInputError(f'criterion="{self.criterion}" compares likelihoods; take refit=True')

    def _compare(self, X: np.ndarray, params: Metadata) -> tuple[int, float]:
        """Return the number of edges and the ridge that are best, and keep what was compared."""
        if self.criterion != "cv":
            return self._compare_by_criterion(X, params)
        table = Table(X, None)
        splits, _ = self._row_folds(table, table, params)
        folds = [self._fold(number, X[train], X[test]) for number, (train, test) in enumerate(splits)]
        alphas = _ALPHAS if self.alpha is None and self.refit else (self._ridge(),)
        found = self._compared(folds, alphas)
        self.__dict__.pop("criterion_path_", None)
        n_edges = keep_comparison(self, found, found.chosen(self.rule), "n_edges", "log_likelihood")
        self._warn_at_end(found, "mean score")
        alpha = alphas[found.argmax_ridge]
        if alpha == _ALPHAS[0] and len(alphas) > 1:
            warn_at_largest_ridge(alpha)
        return n_edges, alpha

    def _compare_by_criterion(self, X: np.ndarray, params: Metadata) -> tuple[int, float]:
        """Return the number of edges of the least criterion of all rows, and the ridge, and keep what was compared."""
        check_without_folds(self, params)
        price = _edge_price(self.criterion, X.shape[0], X.shape[1], float(self.ebic_gamma))
        found = self._compared([_AllRows(self._problem(X), X, price)], (self._ridge(),))
        forget_comparison(self)  # of a fit by folds
        self.candidates_, self.criterion_path_ = found.candidates, -found.mean
        self.best_n_edges_ = int(found.candidates[found.best])
        if found.unconverged:
            warn(
                f"{len(found.unconverged)} of {found.candidates.size} fits for the choice of n_edges did not converge: "
                f"{found.unconverged[0]}",
                ConvergenceWarning,
            )
        self._warn_at_end(found, self.criterion.upper())
        return self.best_n_edges_, self._ridge()

    def _warn_at_end(self, found: Comparison, measure: str) -> None:
        """Warn if the best number of edges given is the last, or the first."""
        largest = int(found.candidates[-1]) if self.n_edges is None else self._pairs()
        warn_at_range_end(found.candidates, found.best, largest, "number of edges", measure)

    def _compared(self, folds: Sequence[_Rows], alphas: tuple[float, ...]) -> Comparison:
        """Return the scores of numbers of edges, with each ridge."""
        searches = self.n_edges is None
        rough = settings_for_folds(self, "n_edges").set_params(tol=max(self.tol, _ENOUGH))
        fit_path = partial(rough._fit_path, alphas=alphas, seed=self._seed())
        compare_counts: Callable[..., Comparison]
        if searches:
            schedule = list(_schedule(self.n_features_in_, self._pairs()))
            compare_counts = partial(search, partial(climb, schedule=schedule))
        else:
            check = self._checked_edges
            counts = candidates_of(self.n_edges, self._pairs(), check, "n_edges", "numbers of edges")
            compare_counts = partial(compare, counts.tolist())
        with progress_line(bool(self.verbose), "numbers of edges", None) as report:
            found = compare_counts(folds, fit_path, _scores, n_jobs=self.n_jobs, report=report)
            if searches:
                halve = partial(halve_gaps, share=_FINE)
                found = search(halve, folds, fit_path, _scores, after=found, n_jobs=self.n_jobs, report=report)
        return found

    def _fold(self, number: int, train: np.ndarray, held_out: np.ndarray) -> _GraphFold:
        """Return the problem of a fold; errors about its rows name the fold."""
        if train.shape[0] < 2:
            raise InvalidInputError(f"fold {number} of cv has one row to train on; two or more are needed")
        try:
            return _GraphFold(self._problem(train), held_out)
        except InvalidInputError as error:
            raise InvalidInputError(f"in the rows that fold {number} of cv trains on, {error}") from error

    def _fit_path(
        self, fold: _Rows, counts: list[int], last: Any, alphas: tuple[float, ...], seed: int
    ) -> tuple[list[list[float]], list[str]]:
        """Return the scores of numbers of edges in a fold, for each ridge, and why fits did not converge."""
        scores, reasons = [], []
        for n_edges in counts:
            result = self._solve(fold.problem.with_budget(n_edges), None, seed)
            precision, by_alpha = fold.problem.definite(result.w), []
            for alpha in alphas:
                if self.refit:
                    precision = fold.problem.most_likely(precision, alpha, _ENOUGH)
                by_alpha.append(fold.score(precision))
            scores.append(by_alpha)
            reasons += [] if result.converged else [result.status.sentence]
        return scores, reasons


@dataclass(frozen=True, slots=True, eq=False)
class _GraphFold:
    """The training rows of a fold as a problem, and its held-out rows."""

    problem: GraphProblem
    held_out: np.ndarray

    def score(self, precision: Precision) -> float:
        """Return the mean log-likelihood of the held-out rows."""
        return self.problem.log_likelihood(precision, self.held_out)


@dataclass(frozen=True, slots=True, eq=False)
class _AllRows:
    """All rows as a problem, and what a criterion adds for each edge."""

    problem: GraphProblem
    rows: np.ndarray
    price: float

    def score(self, precision: Precision) -> float:
        """Return minus the criterion."""
        likelihood = len(self.rows) * self.problem.log_likelihood(precision, self.rows)
        return 2.0 * likelihood - self.price * precision.n_edges


_Rows: TypeAlias = _GraphFold | _AllRows


def _scores(fold: _Rows, fits: list[list[float]]) -> list[list[float]]:
    return fits


def _schedule(p: int, pairs: int) -> Iterator[int]:
    """Yield 0, p/4, p/2, p, 2 p, ... rounded up, until all pairs."""
    yield 0
    last, following = 0, p / 4
    while last < pairs:
        last = max(last + 1, min(int(np.ceil(following)), pairs))
        yield last
        following *= 2
