"""The completion of a table by a matrix of low rank."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn import get_config
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from hardthresh.core.errors import InvalidInputError, format_value, numbered, warn
from hardthresh.core.progress import progress_line
from hardthresh.core.registry import register
from hardthresh.core.result import History, Result
from hardthresh.core.solver import Solver
from hardthresh.core.stationarity import norm
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array

from ..base import ThresholdingEstimator, is_integer
from ..callbacks import FitTask, fit_method
from ..folds import (
    Splits,
    Verdict,
    check_rule,
    check_splits,
    tell_unconverged,
    warn_at_largest_ridge,
    warn_at_range_end,
)
from ..soundness import check_columns, check_numbers, check_present
from ..table import Table
from .completion import (
    Cells,
    Columns,
    CompletionProblem,
    Factors,
    check_observed,
    error_without,
    free_numbers,
    rungs,
    scores,
)

_ALPHAS = (0.1, 0.01, 0.0001)
"""The ridges compared where none is given."""
_PATIENCE = 2  # larger ranks in a row that predict worse end the search,
_HOPELESS = 2.0  # and so does one with so many times the squared error of the best
_LONELY = 0.6  # of the squares of a direction: one row or column carries it,
_UNTOLD = 0.5  # of the variance of that column, as the error of what the others tell of it: it is not explained
_EQUAL = 1e-5
"""Difference of objectives, as a share of that at the start, up to which fits are equally good: the order of rows and
columns changed it by up to 8e-7 in 4,745 small tables."""
_APART = 0.01  # of the norm of a table: fits that differ by more are different; arbitrary, minima lie 0.1 to 2 apart
_FEW = 10  # among more than so many

_Fit = tuple[float, Array | None, str]  # the score in a fold, the point, and why it did not converge


def _tells_what_was_missing(imputer: LowRankImputer) -> bool:
    if not imputer.add_indicator:
        raise AttributeError("a completed table does not tell what was missing; fit with add_indicator=True for that")
    return True


@register("estimator", "low_rank_imputer", lambda: [LowRankImputer(cv=3), LowRankImputer(rank=None)])
class LowRankImputer(OneToOneFeatureMixin, TransformerMixin, ThresholdingEstimator):
    r"""Missing entries of a table filled by a matrix of rank at most r (matrix completion).

    .. math:: \min_{W} \; \frac{1}{2 N} \sum_{(i, j) \in \Omega} \Bigl(\frac{x_{ij} - m_j}{\sigma_j} - W_{ij}\Bigr)^2
              + \frac{\alpha}{2 n p} \|W\|_F^2 \quad \text{with } \mathrm{rank}(W) \le r

    over the N observed entries :math:`\Omega` of an n x p table, whose observed entries give column j its mean
    :math:`m_j` and its standard deviation :math:`\sigma_j`. A missing entry becomes :math:`m_j + \sigma_j W_{ij}`.
    Constant columns and empty rows and columns are left out of these sums.

    Parameters
    ----------
    rank : "cv", int, iterable of int, or None
        The rank, 0 <= rank < min(n_samples, n_features); 0 fills in the means of the columns. "cv" compares 0, 1,
        ..., 8, 10, 12, 14, 16, 20, ... on held-out entries, until two in a row are worse than the best or one is far
        worse, and then the ranks between the best one and its neighbours; an iterable compares the given ones.
        None is a tenth of min(n_samples, n_features), rounded up.
    alpha : float, optional
        Ridge >= 0 on the mean square of all entries of the completed table, in standard units. By default, 0.1, 0.01
        and 0.0001 are compared along with the ranks, until one is worse than the last; and 0.001 is taken where the
        rank is given. 0 fits exactly what has an exact fit, and is reckless with a rank that is too large.
    center : bool
        Whether to subtract the mean of each column's observed entries; without it, what is filled in for rows and
        columns of which little is known tends to zero.
    standardize : bool
        Whether to divide each column by the standard deviation of its observed entries, so that units do not matter.
    keep_observed : bool
        Whether `transform` leaves observed entries as they are. If not, all entries are those of the low-rank table.
    missing : {"nan", "unstored"}
        What is missing: NaN in a dense table, or what a scipy.sparse table does not store; stored zeros are observed.
    add_indicator : bool
        Whether `transform` appends a column of zeros and ones for each column with missing entries in `fit`.
    keep_empty_features : bool
        Whether `transform` keeps columns without an observed entry in `fit`, filled with zeros where nothing is known.
    cv : int or iterable of (train, test) indices
        The folds of the observed entries, drawn at random by `random_state` if only their number is given. Indices
        count the observed entries, row by row.
    rule : {"best", "one_standard_error"}
        Take the rank with the best mean score, or the smallest one within a standard error of it. Of ranks whose scores
        differ from the best, fold by fold, by less than the standard error of that difference, the smallest is taken.
    n_jobs : int, optional
        How many folds to fit at a time.
    solver : str or Solver
        "auto", conjugate iterative hard thresholding; or the name of a registered solver, or a solver object.
    tol : float
        Relative tolerance > 0.
    max_iter : int
        Limit of iterations, >= 1, for each rank on the way.
    random_state : int, RandomState or None
        Seed of the folds; None is the same as 0.
    verbose : bool
        Whether to show a progress line.

    Attributes
    ----------
    U_ : array, shape (n_samples, r)
        Orthonormal directions of the rows. The fitted W is ``U_ @ diag(singular_values_) @ V_.T``, never formed.
    singular_values_ : array, shape (r,)
        Decreasing, > 0.
    V_ : array, shape (n_features, r)
        Orthonormal directions of the columns, in standard units; the entry of largest size in each is positive.
        Constant and empty columns have zeros.
    mean_, scale_ : array, shape (n_features,)
        What is subtracted from each column, and what it is then divided by; the mean of an empty column is NaN.
    rank_ : int
        The rank attained: at most the one asked for or chosen.
    alpha_, row_ridge_ : float
        The ridge, and what that is beside the sum of squared errors of one row: ``alpha_`` times the observed share.
    indicator_features_ : array of int
        The columns that `add_indicator` marks: those with missing entries in `fit`.
    n_iter_, converged_, stop_reason_ :
        Iterations, all ranks on the way together; whether and why the last of them stopped.
    objective_ : float
        The minimised objective.
    history_ : History
        ``history_["value"][t]`` is the objective after t iterations, ``history_["rank"][t]`` the rank allowed in them.
    candidates_ : array of int, shape (n_candidates,)
        The ranks compared, increasing. This and the next four only if ranks were compared.
    scores_ : array, shape (n_candidates, n_folds)
        Minus the mean squared error of the held-out entries in standard units, with the ridge chosen.
        `mean_scores_` and `standard_errors_` summarise them, and `scorer_name_` names them.
    best_rank_ : int
        The rank that the rule chose.
    one_standard_error_ : int
        The smallest rank within one standard error of the best.
    alphas_, alpha_scores_ : array, shape (n_alphas,)
        The ridges compared, and the best mean score of each.
    n_features_in_, feature_names_in_ :
        The columns seen in `fit`.

    Raises
    ------
    ValueError
        By `fit`, for infinity, text, categories, complex numbers, a table without an observed entry, fewer than two
        rows, or settings out of range; the message says which and what to do. Its type is
        `hardthresh.core.InvalidInputError` where hardthresh found it.

    Warns
    -----
    UserWarning
        If fewer entries are observed than a matrix of this rank has free numbers, r (n + p - r), and by `fit` for
        columns without an observed entry, which `transform` leaves out. If X does not determine the answer: the first
        direction is one of several that are equally good, and these lead to different tables. If one column or one row
        carries a direction (more than 0.6 of its squares); a column only if the others tell less than half of its
        variance.
    SearchRangeWarning
        If the best rank given, or the best default ridge, is the largest compared (the smallest, of ranks), and others
        are possible beyond it.
    ConvergenceWarning
        If a fit did not converge.

    See Also
    --------
    hardthresh.objectives.MatrixCompletion : The objective, for other losses, weights and solvers.
    LowRankRegression : Several outputs from complete features.

    Notes
    -----
    Ranks are climbed: the fit of rank r starts from that of the next smaller number among 1, 2, ..., 8, 10, 12, 14, 16,
    20, ..., and the first from zero. On tables whose singular values fall quickly that finds far better completions
    than starting with the full rank, and few directions at a time seldom end in one that fits the noise of a single
    column. Where the first direction is one of several with the same singular value, as in small or symmetric tables,
    fits start from up to ten of them, and the one with the lowest objective is taken. Ranks compared by cross-
    validation are climbed in the same way, so each score is that of the model which this rank alone would give. Each
    fold centres and scales its own entries.

    New rows are placed among the directions `V_` by least squares on their observed entries, with the ridge of the
    fit; and so are the rows of the fit, so `transform` of them and `fit_transform` are the same. A row without an
    observed entry is filled with the means.

    A sparse table is never made dense by `fit`; `transform` returns dense rows, and `predict_entries` single numbers.

    Cost: an iteration takes two products of the observed entries with r columns. Cross-validation with F folds climbs
    F times for each of the ridges. Placing n rows costs O(r^2) operations for each observed entry and O(r^3) for each
    row.

    Guarantee: heuristic. For entries drawn uniformly at random from a matrix of rank r, and enough of them, completion
    by fixed-rank methods finds it from a good start (see `hardthresh.solvers.ConjugateIHT`). No method can fill in
    what the other entries do not tell: entries that are missing *because of* their values are filled in as if
    they were missing at random.

    References
    ----------
    J. Wei, Cai, Chan and Leung (2020), Guarantees of Riemannian optimization for low rank matrix completion, *Inverse
    Problems and Imaging* 14, 233-265. Climbing: B. Vandereycken (2013), Low-rank matrix completion by Riemannian
    optimization, *SIAM Journal on Optimization* 23, 1214-1236. Held-out entries: A. B. Owen and P. O. Perry (2009),
    Bi-cross-validation of the SVD and the nonnegative matrix factorization, *Annals of Applied Statistics* 3, 564-594.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import LowRankImputer
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 30)) + 5
    >>> X = truth + 0.3 * rng.standard_normal(truth.shape)
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> model = LowRankImputer(rank="cv").fit(X)
    >>> model.rank_, model.V_.shape
    (2, (30, 2))
    >>> error = model.transform(X)[np.isnan(X)] - truth[np.isnan(X)]
    >>> bool(error.std() < 0.2 < truth.std())
    True
    """

    def __init__(
        self,
        rank: Any = "cv",
        *,
        alpha: float | None = None,
        center: bool = True,
        standardize: bool = True,
        keep_observed: bool = True,
        missing: str = "nan",
        add_indicator: bool = False,
        keep_empty_features: bool = False,
        cv: Any = 5,
        rule: str = "best",
        n_jobs: int | None = None,
        solver: str | Solver = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.rank = rank
        self.alpha = alpha
        self.center = center
        self.standardize = standardize
        self.keep_observed = keep_observed
        self.missing = missing
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.cv = cv
        self.rule = rule
        self.n_jobs = n_jobs
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    _default_alpha = 1e-3

    @fit_method
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the directions of the columns, and choose the rank if it is not given.

        Parameters
        ----------
        X : array or data frame, or scipy.sparse array with ``missing="unstored"``, shape (n_samples, n_features)
            Numbers; NaN is missing. float32 is computed in float32.
        y : ignored
            There for pipelines.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For infinity, text, categories, nothing observed, or settings out of range; the message says which and
            what to do.
        """
        self._check_settings()
        X = self._validate(X, reset=True)
        cells = Cells.of(X)
        check_observed(cells)
        seed = self._seed()
        columns = self._columns(cells)
        task = FitTask(self, Table(X, None), 1)
        self.mean_, self.scale_ = columns.mean.astype(X.dtype), columns.scale.astype(X.dtype)
        counts = np.bincount(cells.cols, minlength=X.shape[1])
        self.indicator_features_ = np.flatnonzero(counts < X.shape[0])
        empty = np.flatnonzero(counts == 0)
        if empty.size and not self.keep_empty_features:
            warn(
                f"{self._listed(empty, 'empty')} {'has' if empty.size == 1 else 'have'} no observed entry and "
                f"{'is' if empty.size == 1 else 'are'} left out by transform; "
                "keep_empty_features=True keeps them, filled with zeros",
            )
        if self.rank is None or isinstance(self.rank, Integral):
            rank, alpha = self._checked_rank(self.rank, X.shape), self._ridge()
            self._forget_comparison()
        else:
            rank, alpha = self._compare(cells, seed)
        self._fit_and_keep(cells, columns, rank, alpha, seed)
        task.end()
        return self

    @serial_blas()
    def transform(self, X: Any) -> Any:
        """Return rows with their missing entries filled in.

        Parameters
        ----------
        X : array, data frame or scipy.sparse array, as for `fit`, shape (n_rows, n_features)
            Old or new rows.

        Returns
        -------
        array or data frame, shape (n_rows, n_features_out)
            In the precision of X. For a pandas or polars data frame another one, with the same index and columns; after
            ``set_output``, what that says. Columns without an observed entry in `fit` are left out, unless
            `keep_empty_features`, and the indicators of `add_indicator` are the last.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For infinity, text, or other columns than in `fit`.

        Notes
        -----
        Cost: O(r^2) operations for each observed entry of a row with missing ones, and O(r^3) for the row.
        """
        check_is_fitted(self)
        given = X
        X = self._validate(X, reset=False)
        cells = Cells.of(X)
        seen = np.ones(X.shape, dtype=bool)
        if cells.values.size < seen.size:
            seen[:] = False
            seen[cells.rows, cells.cols] = True
        filled: np.ndarray = np.empty(X.shape, dtype=X.dtype)
        wanted = np.flatnonzero(~seen.all(axis=1)) if self.keep_observed else np.arange(X.shape[0])
        filled[wanted] = self._low_rank(cells, wanted)
        if self.keep_observed:
            filled[cells.rows, cells.cols] = cells.values
        kept = self._kept_features()
        parts = [filled if kept.size == X.shape[1] else filled[:, kept]]
        if self.add_indicator:
            parts.append((~seen[:, self.indicator_features_]).astype(X.dtype))
        completed = parts[0] if len(parts) == 1 else np.hstack(parts)
        return completed if self._output_is_set() else self._as_given(completed, given)

    @available_if(_tells_what_was_missing)
    @serial_blas()
    def inverse_transform(self, X: Any) -> Any:
        """Return completed rows with their gaps: NaN again wherever an indicator says that something was filled in.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_features_out)
            What `transform` returned, with ``add_indicator=True``.

        Returns
        -------
        array, shape (n_rows, n_features)
            Columns that `transform` left out are NaN. Gaps in columns that had none in `fit` have no indicator and stay
            filled, as with scikit-learn's imputers.

        Raises
        ------
        NotFittedError
            Before `fit`.
        AttributeError
            Without ``add_indicator=True``: there is no such method then.
        ValueError
            For another number of columns.
        """
        check_is_fitted(self)
        X = np.asarray(X)
        kept, marked = self._kept_features(), self.indicator_features_
        if X.ndim != 2 or X.shape[1] != kept.size + marked.size:
            raise InvalidInputError(
                f"X has shape {X.shape}; {kept.size + marked.size} columns are needed, those that transform returns"
            )
        table: np.ndarray = np.full((X.shape[0], self.n_features_in_), np.nan, dtype=X.dtype)
        table[:, kept] = X[:, : kept.size]
        gaps: np.ndarray = np.zeros(table.shape, dtype=bool)
        gaps[:, marked] = X[:, kept.size :] != 0
        table[gaps] = np.nan
        return table

    @serial_blas()
    def predict_entries(self, rows: Any, columns: Any) -> np.ndarray:
        """Return single entries of the low-rank table of the rows seen in `fit`, without forming the others.

        Parameters
        ----------
        rows, columns : array of int, shape (m,)
            Their places, counted from 0.

        Returns
        -------
        array, shape (m,)
            NaN in columns without an observed entry.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For places outside the table, or lengths that differ.

        Notes
        -----
        Cost: O(m r).
        """
        check_is_fitted(self)
        rows, columns = np.asarray(rows), np.asarray(columns)
        if rows.shape != columns.shape or rows.ndim != 1:
            raise InvalidInputError(f"rows and columns must have one shape (m,), got {rows.shape} and {columns.shape}")
        for name, places, size in (("rows", rows, self.U_.shape[0]), ("columns", columns, self.V_.shape[0])):
            if places.size and (places.dtype.kind not in "iu" or places.min() < 0 or places.max() >= size):
                raise InvalidInputError(f"{name} must be integers from 0 to {size - 1}")
        if rows.size == 0:
            return np.empty(0, dtype=self.V_.dtype)
        standard = Factors(self.U_, self.singular_values_, self.V_).at(rows, columns)
        return np.asarray(self.mean_[columns] + self.scale_[columns] * standard)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns of X; by default those seen in `fit`, or x0, x1, ...

        Returns
        -------
        array of str

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For other names, or another number of them, than in `fit`.
        """
        check_is_fitted(self)
        names = super().get_feature_names_out(input_features)
        kept = names[self._kept_features()]
        if not self.add_indicator:
            return np.asarray(kept, dtype=object)
        marks = [f"missingindicator_{name}" for name in names[self.indicator_features_]]
        return np.asarray([*kept, *marks], dtype=object)

    # --- input and output

    def _check_settings(self) -> None:
        super()._check_settings()
        for name in ("center", "keep_observed", "add_indicator", "keep_empty_features"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise InvalidInputError(f"{name} must be True or False, got {format_value(getattr(self, name))}")
        if self.missing not in ("nan", "unstored"):
            raise InvalidInputError(f'missing must be "nan" or "unstored", got {format_value(self.missing)}')
        check_rule(self.rule)

    def _check_attributes(self) -> None:
        """Refuse fitted attributes that do not fit together."""
        d = check_columns(self)
        check_present(self, "rank_", "mean_", "indicator_features_")
        check_numbers(
            self,
            U_=(None, self.rank_),
            singular_values_=(self.rank_,),
            V_=(d, self.rank_),
            scale_=(d,),
            row_ridge_=(),
        )
        if np.shape(self.mean_) != (d,):
            raise InvalidInputError(f"mean_ has shape {np.shape(self.mean_)}; ({d},) is needed")
        if np.isinf(self.mean_).any():  # NaN is the mean of an empty column
            raise InvalidInputError("mean_ holds infinity; fit it again")
        if not np.isin(self.indicator_features_, np.arange(d)).all():
            raise InvalidInputError(f"indicator_features_ names columns beyond the {d} of the table")

    def _validate(self, X: Any, *, reset: bool) -> Any:
        unstored = self.missing == "unstored"
        if issparse(X) and not unstored:
            raise InvalidInputError(
                "X is sparse: are the entries that it does not store zero, or missing? If zero, pass X.toarray(); "
                'if missing, set missing="unstored"'
            )
        if unstored and not issparse(X):
            raise InvalidInputError(f'missing="unstored" needs a scipy.sparse X, got {type(X).__name__}')
        _refuse_categories(X)
        try:
            return validate_data(
                self,
                X,
                accept_sparse="csr" if unstored else False,
                dtype=(np.float64, np.float32),
                ensure_all_finite="allow-nan",
                ensure_min_samples=2 if reset else 1,
                reset=reset,
            )
        except ValueError as error:
            column = _culprit(X)
            if column is None:
                raise
            raise InvalidInputError(f"{column}: {error}") from error

    def _output_is_set(self) -> bool:
        """Return whether somebody said what `transform` returns, and scikit-learn sees to it."""
        return bool(getattr(self, "_sklearn_output_config", None)) or get_config()["transform_output"] != "default"

    def _as_given(self, completed: np.ndarray, given: Any) -> Any:
        """Return a table as a data frame of the kind that was given, if it was one."""
        pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
        if pandas is not None and isinstance(given, pandas.DataFrame):
            names: Any = self.get_feature_names_out()
            if not hasattr(self, "feature_names_in_") and not self.add_indicator:
                names = given.columns[self._kept_features()]  # which are no texts
            return pandas.DataFrame(completed, index=given.index, columns=names, copy=False)
        if polars is not None and isinstance(given, polars.DataFrame):
            return polars.DataFrame(completed, schema=self.get_feature_names_out().tolist(), orient="row")
        return completed

    def _kept_features(self) -> np.ndarray:
        if self.keep_empty_features:
            return np.arange(self.mean_.size)
        return np.flatnonzero(~np.isnan(self.mean_))

    def _low_rank(self, cells: Cells, wanted: np.ndarray) -> np.ndarray:
        """Return the low-rank entries of some rows of a table."""
        mean, scale = np.nan_to_num(self.mean_), self.scale_
        known = ~np.isnan(self.mean_[cells.cols])
        cells = cells.take(np.flatnonzero(known & np.isin(cells.rows, wanted)))
        standard = (cells.values - mean[cells.cols]) / scale[cells.cols]
        Z = csr_array((standard, (cells.rows, cells.cols)), shape=cells.shape)[wanted]
        return np.asarray(mean + scale * (scores(Z, self.V_, self.row_ridge_) @ self.V_.T))

    # --- fitting

    def _columns(self, cells: Cells) -> Columns:
        return Columns.of(cells, center=bool(self.center), standardize=bool(self.standardize))

    def _checked_rank(self, rank: Any, shape: tuple[int, int]) -> int:
        most = min(shape) - 1
        if rank is None:
            return min(most, -(-min(shape) // 10))
        if not is_integer(rank):
            raise InvalidInputError(f'rank must be an integer, several, None or "cv", got {format_value(rank)}')
        if not 0 <= rank <= most:
            raise InvalidInputError(
                f"rank must be between 0 and min(n_samples, n_features) - 1 = {most}, got {rank}; "
                "a table of full rank tells nothing about what is missing"
            )
        return int(rank)

    def _climb(self, problem: CompletionProblem, rank: int, seed: int) -> tuple[list[Result], int]:
        """Return the fits of the ranks on the way to one, and of that one; and the ties of `_fit_first`."""
        first, ties = self._fit_first(problem, seed)
        results = [first]
        for r in _way_to(rank)[1:]:
            results.append(self._solve(problem.with_rank(r), results[-1].w, seed))
        return results, ties

    def _fit_first(self, problem: CompletionProblem, seed: int) -> tuple[Result, int]:
        """Return the best fit of rank 1 from tied directions, and their number if equally good fits differ, else 1."""
        problem = problem.with_rank(1)
        fits = [self._solve(problem, start, seed) for start in problem.first_points(seed)]
        best = min(fits, key=lambda fit: fit.value)
        equal = [fit for fit in fits if fit.value - best.value <= _EQUAL * best.history["value"][0]]
        apart = any(norm(fit.w - best.w) > _APART * norm(best.w) for fit in equal)
        return best, len(fits) if apart else 1

    def _fit_and_keep(self, cells: Cells, columns: Columns, rank: int, alpha: float, seed: int) -> None:
        """Set the fitted attributes, and say so if the fit did not converge."""
        dtype = cells.values.dtype
        rank = min(rank, int(columns.varies.sum()))
        left, right = (np.zeros((side, 0), dtype=dtype) for side in cells.shape)
        factors = Factors(left, np.zeros(0, dtype=dtype), right)
        varying = cells.take(np.flatnonzero(columns.varies[cells.cols]))
        history, ranks = [0.5 * float(np.sum(columns.standardized(varying) ** 2)) / max(1, varying.values.size)], [0]
        self.n_iter_, self.converged_, self.row_ridge_ = 0, True, 0.0
        self.stop_reason_ = "rank 0: nothing to fit but the means of the columns"
        self.objective_ = history[0]
        if rank:
            wanted = free_numbers(rank, (np.unique(cells.rows).size, int(columns.varies.sum())))
            if varying.values.size < wanted:
                warn(
                    f"{varying.values.size} observed entries are fewer than the {wanted} free numbers of a matrix of "
                    f"rank {rank} ({varying.values.size / wanted:.2g} for each): many fit equally well, and the ridge "
                    'decides; take a smaller rank, or rank="cv"',
                )
            problem = CompletionProblem.of(cells, columns, alpha)
            results, ties = self._climb(problem, rank, seed)
            if ties > rank:
                warn(
                    f"what is filled in is not determined by X: {ties} directions are equally good ones to begin with "
                    "and lead to different tables, among which rounding and the order of rows and columns decide; "
                    "observe more entries, or fill in the means of the columns with rank=0",
                )
            factors = problem.with_rank(rank).factors(results[-1].w)
            self.objective_, self.row_ridge_ = problem.value(factors), problem.ridge
            for result, rung in zip(results, _way_to(rank), strict=True):
                values = result.history["value"][1:].tolist()
                history += values
                ranks += [rung] * len(values)
            history, ranks = [*history, self.objective_], [*ranks, rank]
            self.n_iter_ = len(history) - 1
            self.converged_, self.stop_reason_ = results[-1].converged, results[-1].message
        self.U_, self.singular_values_, self.V_ = factors.U, factors.s, factors.V
        self.rank_, self.alpha_ = int(factors.s.size), alpha
        self.history_ = History({"value": history, "rank": ranks})
        self._tell_lonely(varying, columns.standardized(varying))
        if not self.converged_:
            warn(f"{type(self).__name__}: {self.stop_reason_}", ConvergenceWarning)

    def _tell_lonely(self, cells: Cells, standard: np.ndarray) -> None:
        """Warn of a direction of one column, if that one is filled in badly, and of one of a single row."""
        told = []
        if cells.shape[1] > _FEW:
            for j in np.unique(np.nonzero(self.V_**2 > _LONELY)[0]):
                error, variance = error_without(cells, standard, self.V_, self.row_ridge_, int(j))
                if error > _UNTOLD * variance:
                    told.append(
                        f"one direction lies almost only in {self._feature_name(int(j))}, which the others "
                        f"do not tell (squared error {error / variance:.2g} of its variance)"
                    )
        if cells.shape[0] > _FEW:
            told += [
                f"one direction lies almost only in {numbered('row', i)}"
                for i in np.unique(np.nonzero(self.U_**2 > _LONELY)[0])
            ]
        if told:
            warn(
                f"{'; '.join(told[:3])}{'; ...' if len(told) > 3 else ''}: what is filled in there is not to be "
                f"trusted; take a rank smaller than {self.rank_} or an alpha larger than {self.alpha_:g}, and look for "
                "outliers",
            )

    # --- comparing ranks

    def _splits(self, n: int, seed: int) -> Splits:
        if not isinstance(self.cv, Integral):
            if isinstance(self.cv, str) or not isinstance(self.cv, Iterable):
                raise InvalidInputError(
                    f"cv must be a number of folds or pairs of indices, got {format_value(self.cv)}"
                )
            splits = [(np.asarray(train), np.asarray(test)) for train, test in self.cv]
            for part in (part for split in splits for part in split):
                if part.size and (part.dtype.kind not in "iu" or part.min() < 0 or part.max() >= n):
                    raise InvalidInputError(f"cv must name observed entries, from 0 to {n - 1}")
            check_splits(splits)
            return splits
        count = int(self.cv)
        if not is_integer(self.cv) or count < 2:
            raise InvalidInputError(f"cv must be at least 2 folds, got {format_value(self.cv)}")
        if n < count:
            raise InvalidInputError(f"{count} folds need as many observed entries, but there are {n}")
        folds = KFold(count, shuffle=True, random_state=seed)
        return list(folds.split(np.empty((n, 1), dtype=bool)))

    def _candidates(self, shape: tuple[int, int]) -> tuple[list[int], bool]:
        """Return the ranks to compare, and whether the search may end early."""
        if isinstance(self.rank, str):
            if self.rank != "cv":
                raise InvalidInputError(
                    f'rank must be "cv", an integer, several, or None, got {format_value(self.rank)}'
                )
            return [0, *rungs(min(shape) - 1)], True
        if not isinstance(self.rank, Iterable):
            raise InvalidInputError(f'rank must be "cv", an integer, several, or None, got {format_value(self.rank)}')
        ranks = sorted({self._checked_rank(rank, shape) for rank in self.rank})
        if not ranks:
            raise InvalidInputError("rank is empty; give the ranks to compare, such as range(10)")
        return ranks, False

    def _forget_comparison(self) -> None:
        for name in (
            "candidates_",
            "scores_",
            "mean_scores_",
            "standard_errors_",
            "scorer_name_",
            "best_rank_",
            "one_standard_error_",
            "alphas_",
            "alpha_scores_",
        ):
            if hasattr(self, name):
                delattr(self, name)

    def _compare(self, cells: Cells, seed: int) -> tuple[int, float]:
        """Return the rank and the ridge that predict held-out entries best, and keep what was compared."""
        candidates, may_end = self._candidates(cells.shape)
        folds = self._folds(cells, self._splits(cells.values.size, seed))
        alphas = _ALPHAS if self.alpha is None else (self._ridge(),)
        with progress_line(bool(self.verbose), "ranks") as report:
            walks: list[_Walk] = []
            for alpha in alphas:
                walks.append(self._walk(folds, candidates, alpha, may_end, seed, report))
                if walks[-1].peak < max(walk.peak for walk in walks):
                    break  # still smaller ridges fit still more noise, slowly
            best = max(walks, key=lambda walk: walk.peak)
            if may_end:
                self._refine(best, folds, seed, report)
        verdict = best.verdict
        tied = int(np.argmax([_tied(row, np.array(best.best_scores)) for row in np.array(best.scores)]))
        self.candidates_, self.scores_ = np.array(best.ranks), np.array(best.scores)
        self.mean_scores_, self.standard_errors_ = verdict.mean, verdict.error
        self.best_rank_ = best.ranks[min(tied, verdict.chosen(self.rule))]
        self.one_standard_error_ = best.ranks[verdict.modest]
        self.scorer_name_ = "neg_mean_squared_error"
        self.alphas_ = np.array([walk.alpha for walk in walks])
        self.alpha_scores_ = np.array([walk.peak for walk in walks])
        tell_unconverged(best.unconverged, len(folds) * len(best.ranks), "inside the folds")
        place = min(tied, verdict.best)
        largest = best.ranks[-1] if may_end else min(cells.shape) - 1
        warn_at_range_end(place, self.candidates_, largest, "rank")
        if best.alpha == _ALPHAS[0] and len(alphas) > 1 and best.ranks[place] > 0:
            warn_at_largest_ridge(best.alpha)
        return self.best_rank_, best.alpha

    def _folds(self, cells: Cells, splits: Splits) -> list[_Fold]:
        """Return the folds, with what each learns of the scale of the columns from its own entries."""
        unit = self._columns(cells).scale  # so that errors have no units
        folds = []
        for number, (train, test) in enumerate(splits):
            learnt, held = cells.take(np.sort(train)), cells.take(np.sort(test))
            columns = self._columns(learnt)
            held = held.take(np.flatnonzero(~np.isnan(columns.mean[held.cols])))  # nothing is said of the others
            if held.values.size == 0:
                raise InvalidInputError(
                    f"fold {number} of cv holds out no entry of a column that it knows; take other folds, or more "
                    "entries for each column"
                )
            folds.append(_Fold(learnt, held, columns, unit))
        return folds

    def _walk(
        self, folds: list[_Fold], candidates: list[int], alpha: float, may_end: bool, seed: int, report: Any
    ) -> _Walk:
        """Return the scores of increasing ranks, each fit starting from the last rung."""
        walk = _Walk(alpha, [fold.problem(alpha) for fold in folds], {0: [None] * len(folds)})
        on_the_way = set(rungs(candidates[-1]))
        worse = 0
        for rank in sorted(on_the_way | set(candidates)):
            fits = self._in_folds(walk, folds, rank, seed)
            if rank in on_the_way:
                below = max(walk.starts)
                walk.starts[rank] = [fit[1] for fit in fits]
                walk.forget(below if not may_end else min(below, walk.before_best))
            if rank in candidates:
                best = walk.peak if walk.scores else -np.inf
                score = walk.keep(rank, fits)
                worse = 0 if score > best else worse + 1
                report(f"rank {rank}, alpha {alpha:g}: {score:.4g}")
                if may_end and (worse == _PATIENCE or score < _HOPELESS * best):
                    break
        return walk

    def _refine(self, walk: _Walk, folds: list[_Fold], seed: int, report: Any) -> None:
        """Score the ranks halfway from the best one to its neighbours, until it has none nearer."""
        while between := walk.beside_best():
            for rank in between:
                score = walk.keep(rank, self._in_folds(walk, folds, rank, seed))
                report(f"rank {rank}, alpha {walk.alpha:g}: {score:.4g}")

    def _in_folds(self, walk: _Walk, folds: list[_Fold], rank: int, seed: int) -> list[_Fit]:
        """Return the fits of a rank, each from the last rung before it."""
        starts = walk.starts[max(rung for rung in walk.starts if rung < max(rank, 1))]
        fits: list[_Fit] = Parallel(n_jobs=self.n_jobs)(
            delayed(self._in_fold)(fold, problem, rank, start, seed)
            for fold, problem, start in zip(folds, walk.problems, starts, strict=True)
        )
        return fits

    def _in_fold(
        self, fold: _Fold, problem: CompletionProblem | None, rank: int, start: Array | None, seed: int
    ) -> _Fit:
        """Return the score of a rank in a fold, the fitted point and why it did not converge."""
        if problem is None or rank == 0:
            return fold.score(None), None, ""
        problem = problem.with_rank(rank)
        result = self._fit_first(problem, seed)[0] if rank == 1 else self._solve(problem, start, seed)
        why = "" if result.converged else result.status.sentence
        return fold.score(problem.factors(result.w)), result.w, why

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = self.missing == "unstored"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@dataclass(frozen=True, slots=True)
class _Fold:
    """Entries to learn from, and entries held out."""

    learnt: Cells
    held: Cells
    columns: Columns
    unit: np.ndarray

    def problem(self, alpha: float) -> CompletionProblem | None:
        """Return the problem of what is learnt from; None if no column varies."""
        return CompletionProblem.of(self.learnt, self.columns, alpha) if self.columns.varies.any() else None

    def score(self, factors: Factors | None) -> float:
        """Return minus the mean squared error of what factors say of the held-out entries; of the means without."""
        held, columns = self.held, self.columns
        said = columns.mean[held.cols]
        if factors is not None:
            said = said + columns.scale[held.cols] * factors.at(held.rows, held.cols)
        return -float(np.mean(((said - held.values) / self.unit[held.cols]) ** 2))


@dataclass(slots=True)
class _Walk:
    """The ranks compared with one ridge, and the fits on the last rungs."""

    alpha: float
    problems: list[CompletionProblem | None]
    starts: dict[int, list[Array | None]]
    ranks: list[int] = field(default_factory=list)
    scores: list[list[float]] = field(default_factory=list)
    unconverged: list[str] = field(default_factory=list)

    @property
    def peak(self) -> float:
        """The best mean score."""
        return float(np.max(np.mean(self.scores, axis=1)))

    @property
    def best_scores(self) -> list[float]:
        """The scores of the best rank."""
        return self.scores[int(np.argmax(np.mean(self.scores, axis=1)))]

    @property
    def before_best(self) -> int:
        """The rank compared before the best one."""
        return self.ranks[max(0, int(np.argmax(np.mean(self.scores, axis=1))) - 1)] if self.scores else 0

    def keep(self, rank: int, fits: list[_Fit]) -> float:
        """Keep the scores of a rank, in order, and return their mean."""
        place = int(np.searchsorted(self.ranks, rank))
        self.ranks.insert(place, rank)
        self.scores.insert(place, [fit[0] for fit in fits])
        self.unconverged += [fit[2] for fit in fits if fit[2]]
        return float(np.mean(self.scores[place]))

    def forget(self, below: int) -> None:
        """Forget the fits that no further rank starts from."""
        self.starts = {rung: fits for rung, fits in self.starts.items() if rung >= below}

    def beside_best(self) -> list[int]:
        """Return the ranks halfway between the best one and its neighbours."""
        place = int(np.argmax(np.mean(self.scores, axis=1)))
        near = self.ranks[max(0, place - 1) : place + 2]
        return [(a + b) // 2 for a, b in pairwise(near) if b - a > 1]

    @property
    def verdict(self) -> Verdict:
        """What the folds say."""
        return Verdict.of(np.array(self.scores))


def _tied(scores: Any, best: Any) -> bool:
    """Return whether scores are worse than the best by no more than the standard error of the difference."""
    worse = np.asarray(best) - np.asarray(scores)
    error = float(worse.std(ddof=1)) / np.sqrt(worse.size) if worse.size > 1 else 0.0
    return bool(worse.mean() <= error)


def _culprit(X: Any) -> str | None:
    """Return the first column with text or infinity, in words; None if there is none, or it cannot be told."""
    if issparse(X):
        coo = X.tocoo()
        where = coo.col[np.isinf(coo.data)] if coo.data.dtype.kind == "f" else np.zeros(0, dtype=int)
        return numbered("column", int(where.min())) if where.size else None
    framed = hasattr(X, "columns")
    table = X if framed else np.asarray(X)
    if not framed and (table.ndim != 2 or table.dtype.kind not in "fOU"):
        return None
    for j, name in enumerate(X.columns if framed else range(table.shape[1])):
        column = np.asarray(X[name] if framed else table[:, j])
        if column.ndim != 1 or column.dtype.kind not in "fOU":
            continue  # numbers without infinity, or two columns of one name
        try:
            numbers = column.astype(float)
        except (ValueError, TypeError):
            return f"column {format_value(name)}" if framed else numbered("column", j)
        if np.isinf(numbers).any():
            return f"column {format_value(name)}" if framed else numbered("column", j)
    return None


def _way_to(rank: int) -> list[int]:
    """Return the ranks that are climbed to reach one, and that one."""
    return [*takewhile(lambda rung: rung < rank, rungs(rank)), rank]


def _refuse_categories(X: Any) -> None:
    """Refuse a data frame with columns that are no numbers, by name, before they are taken for some."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(X, "columns"):
        return
    for name, dtype in zip(X.columns, dtypes, strict=True):
        kind = str(dtype)
        if kind.lower().startswith(("category", "categorical", "enum", "datetime", "date", "timedelta", "duration")):
            raise InvalidInputError(
                f"column {format_value(name)} is of type {kind}, and only numbers can be completed by a matrix of low "
                "rank; encode it as numbers, for example one column for each category, or leave it out"
            )
