"""Linear regression of several outputs with a coefficient matrix of low rank."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, MultiOutputMixin, RegressorMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from hardthresh.arrays import as_floating
from hardthresh.core.errors import InvalidInputError, warn
from hardthresh.core.result import History
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.threads import serial_blas

from ..base import SAVES_MEMORY, ThresholdingEstimator, in_precision, known_finite, row_weights
from ..callbacks import FitTask, fit_method
from ..documentation import public_estimator
from ..soundness import check_columns, check_numbers, check_present
from ..table import Table
from ..validation import validated
from .reduced_rank import Coefficients, LowRankProblem, ReducedRankFactors, build_low_rank_problem, with_matrix

_CLOSED_FORM = "closed form: the global minimum of the least-squares problem"


@public_estimator("low_rank_regression")
class LowRankRegression(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, MultiOutputMixin, RegressorMixin, ThresholdingEstimator
):
    r"""Reduced-rank regression: least squares for several outputs with a coefficient matrix of rank at most r.

    .. math:: \min_{W, b} \; \frac{1}{2 \sum_i s_i} \sum_i s_i \|W^\top x_i + b - y_i\|^2
              + \frac{\alpha}{2} \sum_j \sigma_j^2 \|W_j\|^2 \quad \text{with } \mathrm{rank}(W) \le r

    with weights s, rows :math:`W_j` of W, and :math:`\sigma_j` the standard deviation of column j (its root mean square
    without an intercept; 1 if not standardised). All outputs depend on X through the same r directions.

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
        which and what to do. Its type is `hardthresh.core.InvalidInputError` where hardthresh found it.

    Warns
    -----
    UserWarning
        For constant columns, whose coefficients are 0, and for sparse columns whose mean is more than a million times
        their standard deviation.
    ConvergenceWarning
        If a given solver did not converge.

    See Also
    --------
    LowRankRegressionCV : Chooses the rank by cross-validation.
    hardthresh.objectives.MultiOutputModel : The objective, for `hardthresh.minimize` with
        `hardthresh.constraints.Rank`.

    Notes
    -----
    Guarantee: with ``solver="auto"``, the global minimum in closed form, by a singular value decomposition of X and one
    of the fitted values (Eckart and Young 1936; Izenman 1975). If the minimiser is not unique (more columns than rows,
    no ridge), the one whose standardised coefficients have the least norm. With another solver, the guarantee is that
    of the solver.

    Cost, for n rows, p features and q outputs: two data passes for the standardisation, r for the objective, and O((p +
    q) n min(n, p)) operations. Dense X is copied once if it has fewer than 4 (p + q) rows or more outputs than columns,
    and is otherwise read in blocks of rows. Sparse X stays sparse; the only dense arrays are a square matrix of order
    min(n, p) and its eigenvectors, 1.6 GB for the order 10,000, and singular values of X smaller than about 1e-7 of the
    largest are treated as zero. The p x q matrix W is formed only for `coef_` or a given solver; a solver copies dense
    X once, and an iteration costs a few times q passes.

    Singular values of X of the size of rounding errors are treated as zero. For dense standardised X this threshold is
    about 1e-16 times the ratio of the mean to the standard deviation of a column.

    NumPy is the only supported array library.

    References
    ----------
    A. J. Izenman (1975), Reduced-rank regression for the multivariate linear model, *Journal of Multivariate Analysis*
    5, 248-264. With a ridge: A. Mukherjee and J. Zhu (2011), Reduced rank ridge regression and its kernel extensions,
    *Statistical Analysis and Data Mining* 4, 612-622.

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

    _useless: ClassVar[str] = "cannot be used: coefficient 0"

    _saves_memory: ClassVar[str] = SAVES_MEMORY

    U_: np.ndarray
    singular_values_: np.ndarray
    V_: np.ndarray
    intercept_: Any
    rank_: int

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

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Finite numbers; float32 data are fitted in float32.
        y : array, shape (n_samples, n_outputs) or (n_samples,)
            Targets.
        sample_weight : array, shape (n_samples,), optional
            Non-negative weights, at least two of them positive. A row with weight 2 is equivalent to two copies of the
            row; a row with weight 0 is ignored.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For NaN, infinity, wrong lengths, or settings out of range; the message says which and what to do.
        """
        given = self._validate_fit(X, y, sample_weight)[1]
        table = with_matrix(given)
        problem = self._problem(table, self._checked_rank(self.rank, table))
        self._warn_useless_columns(problem, table.X)
        task = FitTask(self, given, self.max_iter)
        self._fit_and_keep(problem, given, task)
        task.end()
        return self

    @serial_blas()
    def predict(self, X: Any) -> Any:
        """Return predictions, shape (n_samples, n_outputs), or (n_samples,) after a fit to one-dimensional targets.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        array
            In the precision of X.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For NaN, infinity, or columns other than in `fit`.

        Notes
        -----
        Cost: r data passes.
        """
        X = self._validate_rows(X)
        prediction = Coefficients(self.U_, self.singular_values_, self.V_, np.atleast_1d(self.intercept_)).predict(X)
        return prediction if np.ndim(self.intercept_) else prediction[:, 0]

    @serial_blas()
    def transform(self, X: Any) -> Any:
        """Return the latent factors ``X @ U_``, shape (n_samples, r), which determine the predictions.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        array
            In the precision of X.

        Raises
        ------
        NotFittedError, ValueError
            As `predict`.

        Notes
        -----
        Cost: r data passes.
        """
        return self._validate_rows(X) @ self.U_

    @property
    def coef_(self) -> np.ndarray:
        """The coefficients, shape (n_outputs, n_features), or (n_features,) for one-dimensional targets.

        They are computed at each access; `predict` uses the factors instead.
        """
        if not hasattr(self, "U_"):
            raise AttributeError(f"{type(self).__name__} has no coef_ before it is fitted")
        coef: np.ndarray = (self.V_ * self.singular_values_) @ self.U_.T
        return coef if np.ndim(self.intercept_) else coef[0]

    @property
    def _n_features_out(self) -> int:
        """The number of names that `get_feature_names_out` returns; a property, which need not be stored."""
        return int(self.rank_)

    def _validate_fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[Table, Table]:
        """Return the data as validated arrays, and those of positive weight, with targets as they were given."""
        self._check_settings()
        if issparse(y):
            raise InvalidInputError("y must be dense, got a sparse matrix; convert it with y.toarray()")
        X, y = validated(
            self,
            X,
            y,
            accept_sparse=("csc", "csr"),
            dtype=(np.float64, np.float32),
            multi_output=True,
            y_numeric=True,
            ensure_all_finite=not known_finite(X),
            ensure_min_samples=2,
        )
        y = in_precision(as_floating(y, name="y"), X, "y")
        table = Table(X, y, row_weights(sample_weight, X))
        given = table.weighted()
        if given.n_rows < 2:
            raise InvalidInputError("sample_weight leaves one row of positive weight; at least two are needed")
        return table, given

    def _validate_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return validated(self, X, accept_sparse=("csc", "csr"), dtype=(np.float64, np.float32), reset=False)

    def _check_attributes(self) -> None:
        """Check that the fitted attributes fit together."""
        check_present(self, "rank_")
        check_numbers(self, U_=(check_columns(self), self.rank_), singular_values_=(self.rank_,), V_=(None, self.rank_))
        check_present(self, "intercept_")
        check_numbers(self, intercept_=self.V_.shape[:1] if np.ndim(self.intercept_) else ())

    def _checked_rank(self, rank: Any, table: Table) -> int:
        """Return a validated rank."""
        largest: int = min(table.X.shape[1], table.y.shape[1])
        if rank is None:
            return -(-largest // 10)  # rounded up: at least 1
        return self._checked_budget("rank", rank, largest, "min(n_features, n_outputs)")

    def _problem(self, table: Table, rank: int) -> LowRankProblem:
        problem = build_low_rank_problem(
            table, rank=rank, alpha=self._ridge(), fit_intercept=self.fit_intercept, scale=self.standardize
        )
        self._check_tiny_columns(problem, table)
        return problem

    def _takes_closed_form(self) -> bool:
        return isinstance(self.solver, str) and self.solver == "auto"

    def _fit_and_keep(self, problem: LowRankProblem, given: Table, task: FitTask) -> None:
        """Set the fitted attributes, and warn if the fit did not converge."""
        fit = self._closed_form if self._takes_closed_form() else self._search
        factors = fit(problem, given, task)
        for name, value in problem.coefficients(factors).attributes(given).items():
            setattr(self, name, value)
        if not self.converged_:
            warn(f"{type(self).__name__}: {self.stop_reason_}", ConvergenceWarning)

    def _closed_form(self, problem: LowRankProblem, given: Table, task: FitTask) -> ReducedRankFactors:
        """Return the factors of the global minimum, and set the attributes of the fit."""
        factors = problem.least_squares()
        task.done("iteration", lambda: problem.coefficients(factors).attributes(given))
        self.n_iter_, self.converged_, self.stop_reason_ = 1, True, _CLOSED_FORM
        self.objective_ = problem.value(factors)
        self.history_ = History({"value": [problem.value(factors.first(0)), self.objective_]})
        return factors

    def _search(self, problem: LowRankProblem, given: Table, task: FitTask) -> ReducedRankFactors:
        """Return the factors that a solver finds, and set the attributes of the run."""
        rank, problem = problem.constraint.r, problem.explicit()

        def attributes(state: State) -> dict[str, Any]:
            return problem.coefficients(ReducedRankFactors.of(state.w, rank)).attributes(given)

        result = self._solve(
            problem, None, self._seed(), progress=bool(self.verbose), callback=task.on_state(attributes)
        )
        self.n_iter_, self.converged_, self.stop_reason_ = result.n_iter, result.converged, result.message
        self.objective_, self.history_ = result.value, result.history
        return ReducedRankFactors.of(result.w, rank)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.single_output = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
