"""Sparse Gaussian graphical models with at most a given number of edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.covariance import EmpiricalCovariance
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from hardthresh.core.errors import InvalidInputError, MissingDependencyError, format_value, warn
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.threads import serial_blas

from ..base import ThresholdingEstimator
from ..callbacks import FitTask, fit_method
from ..documentation import public_estimator
from ..soundness import check_columns, check_numbers
from ..table import Table
from ..upgrades import without_comparison
from ..validation import validated
from .problem import GraphProblem, Precision


@public_estimator(
    "sparse_gaussian_graphical_model",
    upgrades=[without_comparison("n_edges", "sparse_gaussian_graphical_model_cv", left_out=("covariance",))],
)
class SparseGaussianGraphicalModel(ThresholdingEstimator, EmpiricalCovariance):
    r"""Gaussian graphical model with at most E edges: an inverse covariance matrix with exact zeros.

    .. math:: \hat W = \arg\min_{W = W^\top} \; \sum_{i=1}^p \Bigl( -\log w_{ii} + \frac{w_i^\top S w_i}{w_{ii}} \Bigr)
              + \frac{\alpha}{2} \|W\|_F^2 \quad \text{with at most } E \text{ pairs } i < j \text{ of } w_{ij} \ne 0

    with the correlation matrix S of the columns and the rows :math:`w_i` of W. The non-zeros of the minimiser define
    the edges of the graph. `precision_` then maximises the Gaussian likelihood on this graph, with the same ridge. A
    zero of the precision matrix means that two columns are independent given all others.

    Parameters
    ----------
    n_edges : int, optional
        E, the largest number of edges, 0 <= n_edges <= p (p - 1) / 2. Default: p, one edge for each column.
    alpha : float, optional
        Ridge penalty >= 0 on the entries of the precision matrix of the standardised columns. Default 0.01. With 0, the
        problem may have no finite minimiser, for example if a column is a linear combination of others.
    {graph_parameters}
    covariance : {"empirical", "precomputed"}
        Whether the input of `fit` is rows ("empirical") or a covariance matrix ("precomputed").
    {graph_run}

    Attributes
    ----------
    {graph_attributes}

    Raises
    ------
    ValueError
        By `fit`, for NaN, infinity, constant columns, duplicate column names, copies of a column with ``alpha=0``, a
        matrix that is not a covariance matrix, fewer than two rows, or settings out of range; the message says which
        and what to do. Its type is `hardthresh.core.InvalidInputError` where hardthresh found it.

    Warns
    -----
    UserWarning
        If with ``refit=False`` the minimiser is not positive definite.
    ConvergenceWarning
        If the fit did not converge.

    See Also
    --------
    SparseGaussianGraphicalModelCV : Chooses the number of edges and the ridge by cross-validation.
    hardthresh.objectives.GraphicalModel, hardthresh.constraints.EdgeSparsity : The problem, for `hardthresh.minimize`.
    sklearn.covariance.GraphicalLasso : Uses an l1 penalty instead of a number of edges, which also shrinks the entries.

    Notes
    -----
    The fit has two steps. The first minimises a pseudo-likelihood, which has no determinant and needs only products
    with the data; but its minimiser may not be positive definite, especially with few rows. The second step, the refit,
    always returns a positive definite matrix, and predicts better in the measurements of the user guide, which compares
    both with `sklearn.covariance.GraphicalLasso`.

    Cost: a data pass consists of two products with X, at most 4 n p^2 operations, and the default solver needs tens of
    passes. The refit computes several inverses of p x p matrices. A few dense p x p matrices are in memory; p = 2000
    takes minutes.

    Guarantee: the search for the graph is heuristic (see `hardthresh.solvers.HardThresholdingPursuit`). On a given
    graph the penalised negative log-likelihood is convex, and its minimum is found up to `tol`.

    References
    ----------
    Bergamaschi, Cristofari, Kungurtsev and Rinaldi (2025), *Probabilistic iterative hard thresholding for sparse
    learning*, Section 5.2, for the problem. A. P. Dempster (1972), Covariance selection, *Biometrics* 28, 157-175, for
    the refit.

    Examples
    --------
    >>> from hardthresh import SparseGaussianGraphicalModel
    >>> from hardthresh.datasets import make_graphical_model
    >>> X = make_graphical_model(300, 20, graph="chain").X
    >>> model = SparseGaussianGraphicalModel(n_edges=19).fit(X)
    >>> model.edges_[["i", "j"]][:3].tolist()
    [(12, 13), (10, 11), (15, 16)]
    >>> bool(all(abs(i - j) == 1 for i, j in model.edges_[["i", "j"]]))
    True
    """

    _default_alpha: ClassVar[float] = 0.01
    store_precision: ClassVar[bool] = True  # for what is inherited from EmpiricalCovariance

    location_: np.ndarray
    precision_: np.ndarray
    covariance_: np.ndarray
    n_edges_: int

    def __init__(
        self,
        n_edges: int | None = None,
        *,
        alpha: float | None = None,
        standardize: bool = True,
        refit: bool = True,
        covariance: str = "empirical",
        solver: str | Solver = "auto",
        tol: float = 1e-8,
        max_iter: int = 1000,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_edges = n_edges
        self.alpha = alpha
        self.standardize = standardize
        self.refit = refit
        self.covariance = covariance
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @fit_method
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the graph, and the precision matrix on this graph.

        Parameters
        ----------
        X : array or data frame, shape (n_samples, p)
            Finite numbers; float32 data are fitted in float32. With ``covariance="precomputed"`` a covariance matrix,
            shape (p, p).
        y : ignored
            There for pipelines.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For NaN, infinity, constant columns, a matrix that is not a covariance matrix, or settings out of range; the
            message says which and what to do.
        """
        return self._fit(X, lambda rows: (self._edges_wanted(), self._ridge()))

    @property
    def edges_(self) -> np.ndarray:
        """The edges with the names of their columns, by decreasing absolute partial correlation."""
        if not hasattr(self, "precision_"):
            raise AttributeError(f"{type(self).__name__} has no edges_ before it is fitted")
        i, j = np.nonzero(np.triu(self.precision_, 1))
        deviation = np.sqrt(np.diag(self.precision_))
        partial = -self.precision_[i, j] / deviation[i] / deviation[j]
        names = np.asarray(self._names(), dtype=object)
        order = np.argsort(-np.abs(partial), kind="stable")
        kinds = [("i", int), ("j", int), ("first", object), ("second", object), ("partial_correlation", partial.dtype)]
        table = np.empty(i.size, dtype=kinds)
        columns = (i, j, names[i], names[j], partial)
        for (name, _), column in zip(kinds, columns, strict=True):
            table[name] = column[order]
        return table

    def get_precision(self) -> np.ndarray:
        """Return `precision_`.

        Returns
        -------
        array, shape (p, p)

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        check_is_fitted(self)
        matrix: np.ndarray = super().get_precision()
        return matrix

    @serial_blas()
    def score(self, X_test: Any, y: Any = None) -> float:
        """Return the mean Gaussian log-likelihood of rows.

        Parameters
        ----------
        X_test : array or data frame, shape (n_samples, p)
            The rows.
        y : ignored
            There for pipelines.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        return float(super().score(X_test, y))

    @serial_blas()
    def mahalanobis(self, X: Any) -> np.ndarray:
        """Return the squared Mahalanobis distance of rows from the mean.

        Parameters
        ----------
        X : array or data frame, shape (n_samples, p)
            The rows.

        Returns
        -------
        array, shape (n_samples,)
        """
        check_is_fitted(self)
        distances: np.ndarray = super().mahalanobis(X)
        return distances

    def error_norm(self, comp_cov: Any, norm: str = "frobenius", scaling: bool = True, squared: bool = True) -> float:
        """Return the distance of `covariance_` from another covariance matrix.

        Parameters
        ----------
        comp_cov : array, shape (p, p)
            The other covariance matrix.
        norm : {"frobenius", "spectral"}
            The matrix norm of the difference.
        scaling, squared : bool
            Whether to divide the squared distance by p, and whether to return the squared distance.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        return float(super().error_norm(comp_cov, norm=norm, scaling=scaling, squared=squared))

    def to_networkx(self) -> Any:
        """Return the graph as a networkx graph whose nodes are the column names.

        Returns
        -------
        networkx.Graph
            Every column is a node. Edges have the attributes ``partial_correlation`` and ``weight``, its absolute
            value.

        Raises
        ------
        NotFittedError
            Before `fit`.
        MissingDependencyError
            If networkx is not installed.
        """
        check_is_fitted(self)
        try:
            from networkx import Graph
        except ImportError as error:
            raise MissingDependencyError(
                "to_networkx needs networkx, which is not installed; run 'pip install networkx', or use edges_"
            ) from error
        graph = Graph()
        graph.add_nodes_from(self._names())
        for edge in self.edges_:
            value = float(edge["partial_correlation"])
            graph.add_edge(edge["first"], edge["second"], partial_correlation=value, weight=abs(value))
        return graph

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.covariance not in ("empirical", "precomputed"):
            raise InvalidInputError(
                f'covariance must be "empirical" or "precomputed", got {format_value(self.covariance)}'
            )
        if not isinstance(self.refit, bool | np.bool_):
            raise InvalidInputError(f"refit must be True or False, got {format_value(self.refit)}")

    def _check_attributes(self) -> None:
        """Check that the fitted attributes fit together."""
        p = check_columns(self)
        check_numbers(self, precision_=(p, p), covariance_=(p, p), location_=(p,))

    def _names(self) -> list[Any]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.n_features_in_)] if names is None else names.tolist()

    def _pairs(self) -> int:
        return int(self.n_features_in_ * (self.n_features_in_ - 1) // 2)

    def _checked_edges(self, n_edges: Any) -> int:
        return self._checked_budget("n_edges", n_edges, self._pairs(), "the number of pairs of columns")

    def _edges_wanted(self) -> int:
        """Return the largest number of edges: one for each column by default."""
        if self.n_edges is None:
            return min(int(self.n_features_in_), self._pairs())
        return self._checked_edges(self.n_edges)

    def _problem(self, X: np.ndarray) -> GraphProblem:
        make = GraphProblem.of_covariance if self.covariance == "precomputed" else GraphProblem.of_rows
        return make(X, standardize=bool(self.standardize), alpha=self._ridge(), names=self._feature_name)

    def _fit(self, X: Any, choose: Callable[[np.ndarray], tuple[int, float]]) -> Self:
        """Fit the number of edges, with the ridge of the likelihood, that `choose` returns for the validated rows."""
        self._check_settings()
        precomputed = self.covariance == "precomputed"
        _check_names(X)
        X = validated(self, X, dtype=(np.float64, np.float32), ensure_min_samples=1 if precomputed else 2)
        task = FitTask(self, Table(X, None), self.max_iter)
        problem = self._problem(X)
        n_edges, self.alpha_ = choose(X)
        self._fit_and_keep(problem, n_edges, X.dtype, task)
        task.end()
        return self

    def _fit_and_keep(self, problem: GraphProblem, n_edges: int, dtype: Any, task: FitTask) -> None:
        """Set the fitted attributes, and warn if the precision matrix was adjusted or the fit did not converge."""

        def attributes(state: State) -> dict[str, Any]:
            return self._attributes(problem, problem.definite(state.w), dtype)

        result = self._solve(
            problem.with_budget(n_edges),
            self._warm(problem),
            self._seed(),
            progress=bool(self.verbose),
            callback=task.on_state(attributes),
        )
        precision = problem.definite(result.w)
        if self.refit:
            precision = problem.most_likely(precision, self.alpha_, self.tol)
        for name, value in self._attributes(problem, precision, dtype).items():
            setattr(self, name, value)
        self.positive_definite_adjustment_ = 1.0 - precision.kept
        self.n_iter_, self.converged_, self.stop_reason_ = result.n_iter, result.converged, result.message
        self.objective_, self.history_ = result.value, result.history
        if not precision.reached:
            self.converged_ = False
            self.stop_reason_ = (
                "the likelihood of the graph has no maximum, or none was reached: take fewer edges or alpha > 0"
            )
        if precision.kept < 1.0 and not self.refit:
            warn(
                f"the minimiser of the pseudo-likelihood is not positive definite, so its entries off the diagonal "
                f"were multiplied by {precision.kept:.3g}; take refit=True, fewer edges or a larger alpha",
            )
        if not self.converged_:
            warn(f"{type(self).__name__}: {self.stop_reason_}", ConvergenceWarning)

    def _attributes(self, problem: GraphProblem, precision: Precision, dtype: Any) -> dict[str, Any]:
        """Return the fitted matrices, in the units and the precision of the data."""
        scale = problem.scale
        with np.errstate(all="ignore"):
            units = np.outer(scale, scale)
            matrices = precision.matrix / units, precision.inverse * units
            precision_, covariance_ = (matrix.astype(dtype) for matrix in matrices)
        if not (np.all(np.isfinite(precision_)) and np.all(np.isfinite(covariance_)) and np.diag(precision_).all()):
            raise InvalidInputError(
                "the entries of X are so large or small that variances overflow; rescale its columns"
            )
        return {
            "precision_": precision_,
            "covariance_": covariance_,
            "location_": problem.location.astype(dtype),
            "n_edges_": precision.n_edges,
        }

    def _warm(self, problem: GraphProblem) -> np.ndarray | None:
        """Return the start: the last fit with `warm_start`, if it has as many columns; else None."""
        last = getattr(self, "precision_", None) if self.warm_start else None
        if last is None or last.shape != problem.covariance.shape:
            return None
        start: np.ndarray = (last * problem.scale[:, None] * problem.scale).astype(problem.objective.X.dtype)
        return start


def _check_names(X: Any) -> None:
    """Check that no two columns have the same name."""
    columns = getattr(X, "column_names", getattr(X, "columns", ()))
    names = () if callable(columns) else list(columns)  # a design has a method of this name
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InvalidInputError(f"more than one column of X is called {format_value(repeated[0])}; rename them")
