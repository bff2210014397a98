"""Linear regression of several outputs with a coefficient matrix of low rank."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, MultiOutputMixin, RegressorMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from hardthresh.arrays import as_floating
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.progress import progress_line
from hardthresh.core.registry import register
from hardthresh.core.solver import Solver
from hardthresh.selection import path

from .base import ThresholdingEstimator, is_integer, numpy_dtype, row_weights
from .callbacks import FitTask, with_callbacks
from .documentation import documented
from .folds import Verdict, candidates_of, check_rule, check_splits, score_by, splits_of, tell_unconverged
from .problem import Table
from .reduced_rank import Coefficients, Factors, LowRankProblem, build_low_rank_problem

_CLOSED_FORM = "closed form: the global minimum of the least-squares problem"


@documented
@register("estimator", "low_rank_regression")
class LowRankRegression(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, MultiOutputMixin, RegressorMixin, ThresholdingEstimator
):
    r"""Least squares for several outputs with a coefficient matrix of rank at most r (reduced-rank regression).

    .. math:: \min_{W, b} \; \frac{1}{2 \sum_i s_i} \sum_i s_i \|W^\top x_i + b - y_i\|^2
              + \frac{\alpha}{2} \sum_j \sigma_j^2 \|W_j\|^2 \quad \text{with } \mathrm{rank}(W) \le r

    with weights s, rows :math:`W_j`, and :math:`\sigma_j` the standard deviation of column j (about zero without an
    intercept; 1 if not standardised).
    All outputs then depend on X through the same r directions.

    Parameters
    ----------
    {largest_rank}
    {low_rank_parameters}

    Attributes
    ----------
    {low_rank_attributes}

    Raises
    ------
    ValueError
        By `fit`, for NaN, infinity, wrong lengths, fewer than two rows, or settings out of range; the message says
        which and what to do.

    Notes
    -----
    Guarantee: with ``solver="auto"``, the global minimum, in closed form: a singular value decomposition of the
    columns, and one of the fitted values that it leads to. Where several matrices fit equally well (more columns than
    rows, no ridge), the one of least norm among the standardised coefficients. With a solver of its own, the guarantee
    is that solver's.

    Cost: O(n p min(n, p)) for dense X, which is copied once if it has fewer than 4 (p + q) rows or more outputs than
    columns, and read in blocks of rows otherwise. Sparse X stays sparse; dense is one square matrix of side min(n, p)
    with its eigenvectors, 1.6 GB for a side of 10,000, and directions of X smaller than about 1e-7 of the largest count
    as none. The matrix W, p x q, is never formed unless `coef_` is asked for or a solver is given. Constant columns get
    coefficient 0.

    Other array libraries than NumPy are not supported.

    See Also
    --------
    LowRankRegressionCV : chooses the rank by cross-validation.
    hardthresh.objectives.MultiOutputModel : the objective, for `hardthresh.minimize` with
        `hardthresh.constraints.Rank`.

    References
    ----------
    A. J. Izenman (1975), Reduced-rank regression for the multivariate linear model, *Journal of Multivariate Analysis*
    5, 248-264. With a ridge: A. Mukherjee and J. Zhu (2011), *Statistical Analysis and Data Mining* 4, 612-622.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import LowRankRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 30))
    >>> W = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 8))
    >>> Y = X @ W + 5
    >>> model = LowRankRegression(rank=2).fit(X, Y)
    >>> model.U_.shape, model.V_.shape
    ((30, 2), (8, 2))
    >>> bool(np.allclose(model.coef_, W.T)), model.intercept_.round(6)
    (True, array([5., 5., 5., 5., 5., 5., 5., 5.]))
    """

    def __init__(
        self,
        *,
        rank: Any = None,
        alpha: float | None = 0.0,
        fit_intercept: bool = True,
        standardize: bool = True,
        solver: str | Solver = "auto",
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.rank = rank
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Finite numbers; float32 is computed in float32.
        y : array, shape (n_samples, n_outputs) or (n_samples,)
            Targets.
        sample_weight : array, shape (n_samples,), optional
            Non-negative weights; weight 2 is a row given twice, weight 0 a row left out.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For NaN, infinity, wrong lengths, or settings out of range; the message says which and what to do.
        """
        given = self._validate_fit(X, y, sample_weight)[1]
        table = _with_matrix(given)
        problem = self._problem(table, self._budget(self.rank, table))
        self._tell_useless_columns(problem, table.X)
        task = FitTask(self, given, self.max_iter)
        self._fit_and_keep(problem, given, task)
        task.end()
        return self

    def predict(self, X: Any) -> Any:
        """Return predictions, shape (n_samples, n_outputs), or (n_samples,) after a fit to one-dimensional targets.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data.
        """
        X = self._validate_rows(X)
        prediction = Coefficients(self.U_, self.singular_values_, self.V_, np.atleast_1d(self.intercept_)).predict(X)
        return prediction if np.ndim(self.intercept_) else prediction[:, 0]

    def transform(self, X: Any) -> Any:
        """Return the latent factors ``X @ U_``, shape (n_samples, r): all that predictions depend on.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data.
        """
        return self._validate_rows(X) @ self.U_

    @property
    def coef_(self) -> np.ndarray:
        """The coefficients, shape (n_outputs, n_features), or (n_features,) for one-dimensional targets.

        They are computed each time they are asked for: `predict` uses the factors.
        """
        if not hasattr(self, "U_"):
            raise AttributeError(f"{type(self).__name__} has no coef_ before it is fitted")
        coef: np.ndarray = (self.V_ * self.singular_values_) @ self.U_.T
        return coef if np.ndim(self.intercept_) else coef[0]

    @property
    def _n_features_out(self) -> int:
        """How many names `get_feature_names_out` gives: a property, so that a stored model has it, too."""
        return int(self.rank_)

    def _validate_fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[Table, Table]:
        """Return the data as validated arrays, and those of positive weight, with targets as they were given."""
        self._check_settings()
        if issparse(y):
            raise InvalidInputError("y must be dense, got a sparse matrix; convert it with y.toarray()")
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=("csc", "csr"),
            dtype=(np.float64, np.float32),
            multi_output=True,
            y_numeric=True,
            ensure_min_samples=2,
        )
        y = as_floating(y, name="y").astype(numpy_dtype(X), copy=False)
        table = Table(X, y, row_weights(sample_weight, X))
        given = table.weighted()
        if given.X.shape[0] < 2:
            raise InvalidInputError("sample_weight leaves one row of positive weight; at least two are needed")
        return table, given

    def _validate_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse=("csc", "csr"), dtype=(np.float64, np.float32), reset=False)

    def _budget(self, rank: Any, table: Table) -> int:
        """Return a validated rank."""
        largest: int = min(table.X.shape[1], table.y.shape[1])
        if rank is None:
            return -(-largest // 10)  # rounded up: at least 1
        if not is_integer(rank):
            raise InvalidInputError(f"rank must be an integer or None, got {rank!r}")
        if not 0 <= rank <= largest:
            raise InvalidInputError(f"rank must be between 0 and min(n_features, n_outputs) = {largest}, got {rank}")
        return int(rank)

    def _problem(self, table: Table, rank: int) -> LowRankProblem:
        return build_low_rank_problem(
            table, rank=rank, alpha=self._ridge(), fit_intercept=self.fit_intercept, scale=self.standardize
        )

    def _closed(self) -> bool:
        """Return whether the closed form is asked for."""
        return isinstance(self.solver, str) and self.solver == "auto"

    def _fit_and_keep(self, problem: LowRankProblem, given: Table, task: FitTask) -> None:
        """Set the fitted attributes, and say so if the fit did not converge."""

        def attributes(factors: Factors) -> dict[str, Any]:
            return _fitted(problem.coefficients(factors), given)

        if self._closed():
            factors = problem.least_squares()
            task.done("iteration", partial(attributes, factors))
            self.n_iter_, self.converged_, self.stop_reason_ = 1, True, _CLOSED_FORM
            self.objective_ = problem.value(factors)
        else:
            rank = problem.constraint.r
            result = self._solve(
                problem,
                None,
                self._seed(),
                progress=bool(self.verbose),
                callback=task.on_state(lambda state: attributes(Factors.of(state.w, rank))),
            )
            factors = Factors.of(result.w, rank)
            self.n_iter_, self.converged_, self.stop_reason_ = result.n_iter, result.converged, result.message
            self.objective_ = result.value
        for name, value in attributes(factors).items():
            setattr(self, name, value)
        if not self.converged_:
            warnings.warn(f"{type(self).__name__}: {self.stop_reason_}", ConvergenceWarning, stacklevel=4)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.single_output = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@documented
@register("estimator", "low_rank_regression_cv", lambda: [LowRankRegressionCV(cv=3)])
class LowRankRegressionCV(LowRankRegression):
    """Reduced-rank regression with the rank chosen by cross-validation.

    Parameters
    ----------
    rank : iterable of int, or int, optional
        The ranks to compare; a single number R means 1 .. R. Default 1 .. min(30, n_features, n_outputs).
    {low_rank_cv_parameters}
    {low_rank_parameters}

    Attributes
    ----------
    candidates_ : array of int, shape (n_candidates,)
        The ranks compared, increasing.
    scores_ : array, shape (n_candidates, n_folds)
        Held-out scores; higher is better. `mean_scores_` and `standard_errors_` summarise them, and `scorer_name_`
        names them.
    best_rank_ : int
        The rank that the rule chose; `rank_` is less where the data attain less.
    one_standard_error_ : int
        The smallest rank within one standard error of the best.
    {low_rank_attributes}

    Notes
    -----
    One decomposition of its training rows serves all ranks of a fold, so with ``solver="auto"`` the cost is that of one
    fit per fold, one for the final fit, and the scores. Each fold centres and scales its own training rows.

    See Also
    --------
    LowRankRegression : with a given rank.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import LowRankRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 30))
    >>> W = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 8))
    >>> Y = X @ W + rng.standard_normal((100, 8))
    >>> LowRankRegressionCV(rule="one_standard_error").fit(X, Y).best_rank_
    2
    """

    _default_scorer: ClassVar[str] = "neg_mean_squared_error"

    def __init__(
        self,
        *,
        rank: int | Iterable[int] | None = None,
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "best",
        n_jobs: int | None = None,
        alpha: float | None = 0.0,
        fit_intercept: bool = True,
        standardize: bool = True,
        solver: str | Solver = "auto",
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            rank=rank,
            alpha=alpha,
            fit_intercept=fit_intercept,
            standardize=standardize,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
            verbose=verbose,
        )
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the rank, then fit on all data with it.

        Parameters
        ----------
        X, y, sample_weight :
            As for `LowRankRegression`; weights are used in the scores too.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As there, and for candidates or folds that cannot be used.
        """
        everything, given = self._validate_fit(X, y, sample_weight)
        table = _with_matrix(given)
        most = min(30, table.X.shape[1], table.y.shape[1])
        check: Callable[[Any], int] = partial(self._budget, table=table)
        candidates = candidates_of(self.rank, most, check, "rank", "ranks")
        check_rule(self.rule)
        seed = self._seed()
        splits = splits_of(self.cv, given, everything.weighted_rows(), everything.X.shape[0], classifier=False)
        check_splits(splits)
        task = FitTask(self, given, len(splits) + 1)
        scores, whys = np.empty((candidates.size, len(splits))), []
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        fits = parallel(delayed(self._fold)(table.take(train), candidates, seed) for train, _ in splits)
        with progress_line(bool(self.verbose), "folds", len(splits)) as report:
            for fold, ((_, test), (coefficients, unconverged)) in enumerate(zip(splits, fits, strict=True)):
                scores[:, fold] = [self._score(fit, given.take(test)) for fit in coefficients]
                whys += unconverged
                task.done("fold", partial(_fitted, coefficients[-1], given))
                report("")
        verdict = Verdict.of(scores)
        self.candidates_, self.scores_ = candidates, scores
        self.mean_scores_, self.standard_errors_ = verdict.mean, verdict.error
        self.best_rank_ = int(candidates[verdict.chosen(self.rule)])
        self.one_standard_error_ = int(candidates[verdict.modest])
        self.scorer_name_ = self._default_scorer if self.scoring is None else str(self.scoring)
        tell_unconverged(whys, scores.size, "inside the folds")
        problem = self._problem(table, self.best_rank_)
        self._tell_useless_columns(problem, table.X)
        self._fit_and_keep(problem, given, task)
        task.end()
        return self

    def _fold(self, train: Table, candidates: np.ndarray, seed: int) -> tuple[list[Coefficients], list[str]]:
        """Return the fits of one fold's training rows, one for each candidate, and why some did not converge."""
        problem = self._problem(train, int(candidates[-1]))
        ranks: list[int] = candidates.tolist()
        if self._closed():
            factors = problem.least_squares()
            return [problem.coefficients(factors.first(rank)) for rank in ranks], []
        results = list(
            path(
                problem.objective,
                lambda rank: problem.with_rank(rank).constraint,
                ranks,
                self._solver(problem),
                warm_start=True,
                tol=self.tol,
                max_iter=self.max_iter,
                seed=seed,
            )
        )
        unconverged = [result.status.sentence for result in results if not result.converged]
        found = [Factors.of(result.w, rank) for result, rank in zip(results, ranks, strict=True)]
        return [problem.coefficients(factors) for factors in found], unconverged

    def _score(self, fit: Coefficients, test: Table) -> float:
        """Return the score of one fit on held-out rows: by the scorer, or minus the mean squared error."""
        if self.scoring is None:
            errors = np.mean((fit.predict(test.X) - _with_matrix(test).y) ** 2, axis=1)
            return -float(np.average(errors, weights=test.sample_weight))
        fitted = type(self)(**self.get_params(deep=False))
        for name, value in {**_fitted(fit, test), "n_features_in_": self.n_features_in_}.items():
            setattr(fitted, name, value)
        return score_by(self.scoring, fitted, test, test.y)


def _with_matrix(table: Table) -> Table:
    """Return the table with its targets as a matrix."""
    return Table(table.X, table.y.reshape((table.y.shape[0], -1)), table.sample_weight)


def _fitted(fit: Coefficients, given: Table) -> dict[str, Any]:
    """Return the attributes that `predict` needs; the intercept tells whether the targets had one dimension."""
    return {
        "U_": fit.U,
        "V_": fit.V,
        "singular_values_": fit.s,
        "intercept_": fit.intercept if given.y.ndim == 2 else float(fit.intercept[0]),
        "rank_": int(fit.s.size),
    }
