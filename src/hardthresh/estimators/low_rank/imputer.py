"""The completion of a table by a matrix of low rank."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn import get_config
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hardthresh.core.errors import InvalidInputError, format_value, warn
from hardthresh.core.result import History
from hardthresh.core.solver import Solver
from hardthresh.core.threads import serial_blas

from ..base import ThresholdingEstimator
from ..callbacks import FitTask, fit_method
from ..documentation import public_estimator
from ..soundness import check_columns, check_numbers, check_present
from ..table import Table
from ..upgrades import without_comparison
from .completion import (
    Cells,
    Columns,
    CompletionProblem,
    Factors,
    check_observed,
    concentrated_directions,
    free_numbers,
    scores,
)
from .gaps import as_given, validated
from .rank_path import Completion, complete


def _marks_gaps(imputer: LowRankImputer) -> bool:
    if not imputer.add_indicator:
        raise AttributeError("a completed table does not tell what was missing; fit with add_indicator=True for that")
    return True


@public_estimator("low_rank_imputer", upgrades=[without_comparison("rank", "low_rank_imputer_cv")])
class LowRankImputer(OneToOneFeatureMixin, TransformerMixin, ThresholdingEstimator):
    r"""Imputation of missing entries by a matrix of rank at most r (matrix completion).

    .. math:: \min_{W} \; \frac{1}{2 N} \sum_{(i, j) \in \Omega} \Bigl(\frac{x_{ij} - m_j}{\sigma_j} - W_{ij}\Bigr)^2
              + \frac{\alpha}{2 n p} \|W\|_F^2 \quad \text{with } \mathrm{rank}(W) \le r

    over the N observed entries :math:`\Omega` of an n x p table, where :math:`m_j` and :math:`\sigma_j` are the mean
    and the standard deviation of the observed entries of column j. A missing entry is imputed as :math:`m_j + \sigma_j
    W_{ij}`. Constant columns and empty rows and columns are excluded from these sums.

    Parameters
    ----------
    rank : int, optional
        The rank, 0 <= rank < min(n_samples, n_features); 0 imputes the means of the columns. Default: a tenth of
        min(n_samples, n_features), rounded up.
    alpha : float, optional
        Ridge penalty >= 0 on the mean square of all entries of the standardised completed table. Default 0.001. With 0,
        the fit is exact if the entries allow it, and overfits if the rank is too large.
    {imputer_parameters}
    random_state : int, RandomState or None
        Seed of the starting points if the leading singular value is tied, and of solvers that draw random numbers.
    verbose : bool
        Whether to show a progress line.

    Attributes
    ----------
    {imputer_attributes}

    Raises
    ------
    ValueError
        By `fit`, for infinity, text, categories, complex numbers, a table without an observed entry, fewer than two
        rows, or settings out of range; the message says which and what to do. Its type is
        `hardthresh.core.InvalidInputError` where hardthresh found it.

    Warns
    -----
    UserWarning
        By `fit`: if fewer entries are observed than the r (n + p - r) free parameters of a matrix of this rank; for
        columns without an observed entry, which `transform` drops; if the solution is not unique, because the leading
        singular value is tied and its directions lead to different tables; if one row, or one column of which the
        others explain less than half of the variance, has more than 0.6 of the sum of squares of a direction.
    ConvergenceWarning
        If the fit did not converge.

    See Also
    --------
    LowRankImputerCV : Chooses the rank and the ridge by cross-validation.
    hardthresh.objectives.MatrixCompletion : The objective, for other losses, weights and solvers.
    LowRankRegression : Several outputs from complete features.

    Notes
    -----
    The fit of rank r is warm-started from the next smaller rank among 1, 2, ..., 8, 10, 12, 14, 16, 20, ..., and the
    fit of rank 1 from zero. If the singular values decay quickly, this finds far better completions than a start with
    the full rank, and seldom a direction that fits the noise of a single column. If the leading singular value is tied,
    as in small or symmetric tables, up to ten starting points are tried, and the fit with the lowest objective is
    returned.

    The coordinates of a new row in the directions `V_` are computed by least squares on its observed entries, with the
    ridge of the fit. The same holds for the training rows, so `fit_transform` equals `fit` followed by `transform`. A
    row without an observed entry is imputed with the means.

    `fit` never converts a sparse table to a dense one. `transform` returns dense rows, and `predict_entries` single
    entries.

    Cost: an iteration takes two products of the observed entries with r columns. The coordinates of rows cost O(r^2)
    operations for each observed entry and O(r^3) for each row.

    Guarantee: heuristic. If sufficiently many entries of a matrix of rank r are observed uniformly at random,
    fixed-rank methods recover it from a good starting point (see `hardthresh.solvers.ConjugateIHT`). Entries that are
    missing *because of* their values are imputed as if they were missing at random.

    References
    ----------
    J. Wei, Cai, Chan and Leung (2020), Guarantees of Riemannian optimization for low rank matrix completion, *Inverse
    Problems and Imaging* 14, 233-265. Increasing ranks: B. Vandereycken (2013), Low-rank matrix completion by
    Riemannian optimization, *SIAM Journal on Optimization* 23, 1214-1236.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import LowRankImputer
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 30)) + 5
    >>> X = truth + 0.3 * rng.standard_normal(truth.shape)
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> model = LowRankImputer(rank=2).fit(X)
    >>> model.V_.shape
    (30, 2)
    >>> error = model.transform(X)[np.isnan(X)] - truth[np.isnan(X)]
    >>> bool(error.std() < 0.2 < truth.std())
    True
    """

    def __init__(
        self,
        rank: int | None = None,
        *,
        alpha: float | None = None,
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
        self.rank = rank
        self.alpha = alpha
        self.center = center
        self.standardize = standardize
        self.keep_observed = keep_observed
        self.missing = missing
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    _default_alpha = 1e-3

    @fit_method
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the low-rank matrix to the observed entries.

        Parameters
        ----------
        X : array or data frame, or scipy.sparse array with ``missing="unstored"``, shape (n_samples, n_features)
            Numbers; missing entries are NaN, or not stored. float32 data are fitted in float32.
        y : ignored
            Present for compatibility with pipelines.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For infinity, text, categories, a table without an observed entry, or settings out of range; the message
            says which and what to do.
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
        self._fit_and_keep(cells, columns, *self._rank_and_ridge(cells, seed), seed)
        task.end()
        return self

    @serial_blas()
    def transform(self, X: Any) -> Any:
        """Return rows with their missing entries imputed.

        Parameters
        ----------
        X : array, data frame or scipy.sparse array, as for `fit`, shape (n_rows, n_features)
            Training rows or new rows.

        Returns
        -------
        array or data frame, shape (n_rows, n_features_out)
            The completed rows, in the precision of X. A pandas or polars data frame gives a data frame of the same
            kind, with the same index and columns; ``set_output`` changes this. Columns without an observed entry in
            `fit` are dropped, unless `keep_empty_features` is True. The indicators of `add_indicator` are the last
            columns.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For infinity, text, or columns other than in `fit`.

        Notes
        -----
        Cost: for each row with missing entries, O(r^2) operations for each observed entry plus O(r^3).
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
        if getattr(self, "_sklearn_output_config", None) or get_config()["transform_output"] != "default":
            return completed  # scikit-learn makes of it what the user has asked for
        if not hasattr(given, "columns"):
            return completed
        unnamed = not hasattr(self, "feature_names_in_") and not self.add_indicator
        return as_given(completed, given, self.get_feature_names_out(), kept if unnamed else None)

    @available_if(_marks_gaps)
    @serial_blas()
    def inverse_transform(self, X: Any) -> Any:
        """Return completed rows with NaN wherever an indicator marks an imputed entry.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_features_out)
            The table that `transform` returned, with ``add_indicator=True``.

        Returns
        -------
        array, shape (n_rows, n_features)
            The original rows. Columns that `transform` dropped are NaN. Columns without missing entries in `fit` have
            no indicator, so their imputed entries remain, as with scikit-learn's imputers.

        Raises
        ------
        NotFittedError
            Before `fit`.
        AttributeError
            Without ``add_indicator=True``, where the method does not exist.
        ValueError
            If the number of columns differs from that of `transform`.
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
        """Return single entries of the completed low-rank table of the training rows, without forming the others.

        Parameters
        ----------
        rows, columns : array of int, shape (m,)
            The row and the column of each entry, counted from 0.

        Returns
        -------
        array, shape (m,)
            The entries, on the scale of the data; NaN in columns without an observed entry.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For indices outside the table, or lengths that differ.

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
                found = f"{name} has dtype {places.dtype}"
                if places.dtype.kind in "iu":
                    place = int(np.argmax((places < 0) | (places >= size)))
                    found = f"{name}[{place}] is {places[place]}"
                raise InvalidInputError(f"{name} must be integers from 0 to {size - 1}; {found}")
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
            If the names, or their number, differ from those in `fit`.
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

    def _check_attributes(self) -> None:
        """Check that the fitted attributes fit together."""
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
        return validated(self, X, unstored=self.missing == "unstored", reset=reset)

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

    def _columns(self, cells: Cells) -> Columns:
        return Columns.of(cells, center=bool(self.center), standardize=bool(self.standardize))

    def _rank_and_ridge(self, cells: Cells, seed: int) -> tuple[int, float]:
        """Return the rank and the ridge to fit."""
        if self.rank is None:
            smaller = min(cells.shape)
            return min(smaller - 1, -(-smaller // 10)), self._ridge()
        return self._checked_rank(self.rank, cells.shape), self._ridge()

    def _checked_rank(self, rank: Any, shape: tuple[int, int]) -> int:
        return self._checked_budget("rank", rank, min(shape) - 1, "min(n_samples, n_features) - 1")

    def _fit_and_keep(self, cells: Cells, columns: Columns, rank: int, alpha: float, seed: int) -> None:
        """Set the fitted attributes, and warn of what is not determined or did not converge."""
        rank = min(rank, int(columns.varies.sum()))
        varying = cells.take(np.flatnonzero(columns.varies[cells.cols]))
        completion, self.row_ridge_ = Completion.of_means(cells, columns), 0.0
        if rank:
            wanted = free_numbers(rank, (np.unique(cells.rows).size, int(columns.varies.sum())))
            if varying.values.size < wanted:
                warn(
                    f"{varying.values.size} observed entries are fewer than the {wanted} free numbers of a matrix of "
                    f"rank {rank} ({varying.values.size / wanted:.2g} for each): many fit equally well, and the ridge "
                    "decides; take a smaller rank, or choose it with LowRankImputerCV",
                )
            problem = CompletionProblem.of(cells, columns, alpha)
            solve = partial(self._solve, seed=seed, progress=bool(self.verbose))
            completion, ties = complete(rank, problem, solve, seed)
            if ties > rank:
                warn(
                    f"what is filled in is not determined by X: {ties} directions are equally good ones to begin with "
                    "and lead to different tables, among which rounding and the order of rows and columns decide; "
                    "observe more entries, or fill in the means of the columns with rank=0",
                )
            self.row_ridge_ = problem.ridge
        factors = completion.factors
        self.U_, self.singular_values_, self.V_ = factors.U, factors.s, factors.V
        self.rank_, self.alpha_, self.objective_ = int(factors.s.size), alpha, completion.objective
        self.history_ = History({"value": completion.values, "rank": completion.ranks})
        self.n_iter_ = len(completion.values) - 1
        self.converged_, self.stop_reason_ = completion.converged, completion.reason
        told = concentrated_directions(
            varying, columns.standardized(varying), factors, self.row_ridge_, self._feature_name
        )
        if told:
            warn(
                f"{'; '.join(told[:3])}{'; ...' if len(told) > 3 else ''}: what is filled in there is not to be "
                f"trusted; take a rank smaller than {self.rank_} or an alpha larger than {self.alpha_:g}, and look for "
                "outliers",
            )
        if not self.converged_:
            warn(f"{type(self).__name__}: {self.stop_reason_}", ConvergenceWarning)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = self.missing == "unstored"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
