"""Sparse Gaussian graphical models with a budget of edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.covariance import EmpiricalCovariance
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from hardthresh.constraints import EdgeSparsity
from hardthresh.core.errors import InvalidInputError, MissingDependencyError, format_value, warn
from hardthresh.core.progress import progress_line
from hardthresh.core.registry import register
from hardthresh.core.result import Result
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.threads import serial_blas
from hardthresh.objectives import GraphicalModel

from ..base import ThresholdingEstimator, is_integer
from ..callbacks import FitTask, fit_method
from ..folds import (
    Verdict,
    candidates_of,
    check_rule,
    check_splits,
    splits_of,
    tell_unconverged,
    warn_at_largest_ridge,
    warn_at_range_end,
)
from ..routing import CrossValidatedMixin, Metadata
from ..soundness import check_columns, check_numbers
from ..table import Table
from .problem import GraphProblem, Precision

_PATIENCE = 2  # candidates in a row that predict worse than the best end the climb
_ALPHAS = (0.3, 0.1, 0.03, 0.01, 0.003)
"""The ridges of the likelihood that are compared where none is given."""
_ENOUGH = 1e-6  # relative tolerance of fits that are only compared
_OF_FOLDS = (
    *("candidates_", "scores_", "mean_scores_", "standard_errors_"),
    *("scorer_name_", "best_n_edges_", "one_standard_error_"),
)
_FINE = 0.05  # the search around the best count ends where its neighbours are so near, as a share of it


@register(
    "estimator",
    "sparse_gaussian_graphical_model",
    lambda: [SparseGaussianGraphicalModel(cv=3), SparseGaussianGraphicalModel(None, refit=False)],
)
class SparseGaussianGraphicalModel(CrossValidatedMixin, ThresholdingEstimator, EmpiricalCovariance):
    r"""Gaussian graphical model with at most a given number of edges: an inverse covariance matrix with exact zeros.

    .. math:: \hat W = \arg\min_{W = W^\top} \; \sum_{i=1}^p \Bigl( -\log w_{ii} + \frac{w_i^\top S w_i}{w_{ii}} \Bigr)
              + \frac{\alpha}{2} \|W\|_F^2 \quad \text{with at most } E \text{ pairs } i < j \text{ of } w_{ij} \ne 0

    with the correlation matrix S of the columns and the rows :math:`w_i` of W. The minimiser says which pairs are
    joined; on this graph the Gaussian likelihood, with the same ridge, is then maximised for `precision_`. A zero there
    says that two columns are independent given all others.

    Parameters
    ----------
    n_edges : "cv", int, iterable of int, or None
        How many pairs of columns may be joined, 0 <= n_edges <= p (p - 1) / 2. "cv" looks for the number with the best
        held-out likelihood: it climbs 0, p/4, p/2, p, 2 p, ... until two in a row are worse than the best, then halves
        the gaps around that. An iterable compares the given numbers. None is one edge for each column.
    alpha : float, optional
        Ridge >= 0 on the entries of the precision matrix in standard units; default 0.01. Where numbers of edges are
        compared, 0.3, 0.1, 0.03, 0.01 and 0.003 are compared by default as the ridge of the likelihood, which matters
        where rows are few; the graph hardly depends on it. With 0 the precision may be infinite, as for a column that
        others determine.
    standardize : bool
        Whether to scale columns to unit variance for the fit, so that units do not matter; `precision_` and
        `covariance_` are in the units of the data. Columns are centred in any case.
    refit : bool
        Whether `precision_` is the maximum of the likelihood on the graph, or else the minimiser above itself, made
        positive definite where it is not.
    covariance : {"empirical", "precomputed"}
        Whether `fit` is given rows, or a covariance matrix.
    cv : int, splitter or iterable of (train, test) indices
        The folds, as everywhere in scikit-learn.
    rule : {"best", "one_standard_error"}
        Take the number of edges with the best mean score, or the smallest one within a standard error of it.
    n_jobs : int, optional
        How many folds to fit at a time.
    solver : str or Solver
        "auto", the name of a registered solver, or a solver object.
    tol : float
        Relative tolerance > 0.
    max_iter : int
        Limit of iterations, >= 1.
    warm_start : bool
        Whether to start from the last fit's `precision_`.
    random_state : int, RandomState or None
        Seed of solvers that draw random numbers; the default solver draws none.
    verbose : bool
        Whether to show a progress line.

    Attributes
    ----------
    precision_, covariance_ : array, shape (p, p)
        Symmetric, positive definite, and inverse to each other. Pairs that are not joined are exactly zero in
        `precision_`.
    location_ : array, shape (p,)
        The means of the columns; zeros for a precomputed covariance.
    alpha_ : float
        The ridge of the likelihood; without `refit` that of the objective above.
    n_edges_ : int
        How many pairs are joined: at most as many as asked for or chosen.
    edges_ : structured array, one row for each edge
        The edges, the strongest partial correlation first: ``i``, ``j`` (columns), ``first``, ``second`` (their names)
        and ``partial_correlation``. ``pandas.DataFrame(model.edges_)`` makes a table of it.
    positive_definite_adjustment_ : float
        By what share the entries off the diagonal of the minimiser had to shrink before it was positive definite; 0
        where it was. With `refit` this only concerns the start of the second step, but more than a few hundredths say
        that there are too many edges for the data.
    n_iter_, converged_, stop_reason_, objective_ :
        Iterations; whether and why the solver stopped; the minimised objective, in standard units.
    history_ : History
        ``history_["value"][t]`` is the objective after t iterations.
    candidates_ : array of int, shape (n_candidates,)
        The numbers of edges compared, increasing. This and the next three only if numbers were compared.
    scores_ : array, shape (n_candidates, n_folds)
        The mean Gaussian log-likelihood of held-out rows, with the ridge chosen. `mean_scores_` and `standard_errors_`
        summarise them, and `scorer_name_` names them.
    best_n_edges_ : int
        The number that was chosen.
    one_standard_error_ : int
        The smallest number of edges within one standard error of the best.
    n_features_in_, feature_names_in_ :
        The columns seen in `fit`.

    Raises
    ------
    ValueError
        By `fit`, for NaN, infinity, constant columns (in the rows that a fold trains on, too), columns of one name,
        copies of a column with ``alpha=0``, a matrix that is no covariance, fewer than two rows, or settings out of
        range; the message says which and what to do. Its type is
        `hardthresh.core.InvalidInputError` where hardthresh found it.

    Warns
    -----
    UserWarning
        If with ``refit=False`` the minimiser is not positive definite.
    SearchRangeWarning
        If the best number of edges given, or the best default ridge, is the largest compared (the smallest, of edges),
        and others are possible beyond it.
    ConvergenceWarning
        If a fit did not converge.

    See Also
    --------
    hardthresh.objectives.GraphicalModel, hardthresh.constraints.EdgeSparsity : The problem, for `hardthresh.minimize`.
    sklearn.covariance.GraphicalLasso : An l1 penalty instead of a budget, which also shrinks the entries it keeps.

    Notes
    -----
    Why two steps: the pseudo-likelihood has no determinant, so a graph is found by products with the data; but it
    ignores that W must be positive definite, and where rows are few it is not. The refit always is, and predicts
    better (measured: the user guide compares them with `sklearn.covariance.GraphicalLasso`).

    Cost: a data pass is X times W and back, at most 4 n p^2 operations, and the default solver needs tens of them; the
    refit some inverses of p x p matrices. A handful of dense p x p matrices is kept: p = 2000 is a matter of minutes.
    Cross-validation with F folds costs about 12 F fits.

    Guarantee: that of the solver for the graph (heuristic, see `hardthresh.solvers.HardThresholdingPursuit`); on the
    graph, the likelihood with its ridge is convex and its maximum is found up to `tol`.

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

    def __init__(
        self,
        n_edges: Any = "cv",
        *,
        alpha: float | None = None,
        standardize: bool = True,
        refit: bool = True,
        covariance: str = "empirical",
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
        self.n_edges = n_edges
        self.alpha = alpha
        self.standardize = standardize
        self.refit = refit
        self.covariance = covariance
        self.cv = cv
        self.rule = rule
        self.n_jobs = n_jobs
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @fit_method
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Find the graph, after the number of its edges if that is not given, and the precision matrix on it.

        Parameters
        ----------
        X : array or data frame, shape (n_samples, p)
            Finite numbers; float32 is computed in float32. With ``covariance="precomputed"`` a covariance matrix,
            shape (p, p).
        y : ignored
            There for pipelines.
        **params : dict
            ``groups``, an array of shape (n_samples,): the group of each row, for a splitter that keeps groups
            together, such as ``cv=GroupKFold(5)``, where numbers of edges are compared. With scikit-learn's metadata
            routing enabled, whatever the splitter requests.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For NaN, infinity, constant columns, a matrix that is no covariance, or settings out of range; the message
            says which and what to do.
        """
        self._check_settings()
        precomputed = self.covariance == "precomputed"
        _refuse_repeated_names(X)
        X = validate_data(self, X, dtype=(np.float64, np.float32), ensure_min_samples=1 if precomputed else 2)
        task = FitTask(self, Table(X, None), self.max_iter)
        problem = self._problem(X)
        for name in _OF_FOLDS:
            self.__dict__.pop(name, None)
        if self._compares():
            n_edges, self.alpha_ = self._compare(X, params)
        elif given := [name for name, value in params.items() if value is not None]:
            raise InvalidInputError(
                f"fit got {', '.join(given)}, which is for the splitter, but n_edges={self.n_edges} needs no folds; "
                "leave it out"
            )
        else:
            n_edges, self.alpha_ = self._budget(self.n_edges), self._ridge()
        self._fit_and_keep(problem, n_edges, X.dtype, task)
        task.end()
        return self

    @property
    def edges_(self) -> np.ndarray:
        """The edges with the names of their columns, the strongest partial correlation first."""
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
            Before `fit`, as the next three.
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
            The other one.
        norm : {"frobenius", "spectral"}
            Which distance.
        scaling, squared : bool
            Whether to divide the squared distance by p, and whether to return it squared.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        return float(super().error_norm(comp_cov, norm=norm, scaling=scaling, squared=squared))

    def to_networkx(self) -> Any:
        """Return the graph for networkx, with the names of the columns as nodes.

        Returns
        -------
        networkx.Graph
            Every column is a node, joined or not; edges have a ``partial_correlation``, and its size as ``weight``.

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
        check_rule(self.rule)
        if self.covariance not in ("empirical", "precomputed"):
            raise InvalidInputError(
                f'covariance must be "empirical" or "precomputed", got {format_value(self.covariance)}'
            )
        if not isinstance(self.refit, bool | np.bool_):
            raise InvalidInputError(f"refit must be True or False, got {format_value(self.refit)}")
        if isinstance(self.n_edges, str) and self.n_edges != "cv":
            raise InvalidInputError(
                f'n_edges must be "cv", an integer, several, or None, got {format_value(self.n_edges)}'
            )

    def _check_attributes(self) -> None:
        """Refuse fitted attributes that do not fit together."""
        p = check_columns(self)
        check_numbers(self, precision_=(p, p), covariance_=(p, p), location_=(p,))

    def _compares(self) -> bool:
        """Return whether there are numbers of edges to compare."""
        return isinstance(self.n_edges, str | Iterable) and getattr(self.n_edges, "ndim", 1) > 0

    def _names(self) -> list[Any]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.n_features_in_)] if names is None else names.tolist()

    def _pairs(self) -> int:
        return int(self.n_features_in_ * (self.n_features_in_ - 1) // 2)

    def _budget(self, n_edges: Any) -> int:
        """Return a validated number of edges."""
        if n_edges is None:
            return min(int(self.n_features_in_), self._pairs())
        if not is_integer(n_edges):
            raise InvalidInputError(f'n_edges must be "cv", an integer, several, or None, got {format_value(n_edges)}')
        if not 0 <= n_edges <= self._pairs():
            raise InvalidInputError(
                f"n_edges must be between 0 and the number of pairs of columns, {self._pairs()} for n_features = "
                f"{self.n_features_in_}; got {n_edges}"
            )
        return int(n_edges)

    def _problem(self, X: np.ndarray) -> GraphProblem:
        make = GraphProblem.of_covariance if self.covariance == "precomputed" else GraphProblem.of_rows
        return make(X, standardize=bool(self.standardize), alpha=self._ridge(), names=self._feature_name)

    def _run(self, problem: GraphProblem, n_edges: int, start: Any, seed: int, **options: Any) -> Result:
        return self._solve(_Task(problem.objective, problem.constraint(n_edges)), start, seed, **options)

    def _fit_and_keep(self, problem: GraphProblem, n_edges: int, dtype: Any, task: FitTask) -> None:
        """Set the fitted attributes, and say so if something is wrong with them."""

        def attributes(state: State) -> dict[str, Any]:
            return self._attributes(problem, problem.definite(state.w), dtype)

        result = self._run(
            problem,
            n_edges,
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
        """Return where to start: the last fit, if it is wanted and has as many columns."""
        last = getattr(self, "precision_", None) if self.warm_start else None
        if last is None or last.shape != problem.covariance.shape:
            return None
        start: np.ndarray = (last * problem.scale[:, None] * problem.scale).astype(problem.objective.X.dtype)
        return start

    # --- how many edges --------------------------------------------------------------------------------------------

    def _compare(self, X: np.ndarray, params: Metadata) -> tuple[int, float]:
        """Return the number of edges and the ridge that predict best, and set what the folds say."""
        if self.covariance == "precomputed":
            raise InvalidInputError(
                'the number of edges is chosen on held-out rows, which covariance="precomputed" does not give; set '
                "n_edges to an integer"
            )
        table = Table(X, None)
        n_samples = X.shape[0]
        split_params, _ = self._route(params, n_samples)
        splits = splits_of(self.cv, table, np.arange(n_samples), n_samples, split_params, classifier=False)
        check_splits(splits)
        folds = [self._fold(number, X[train], X[test]) for number, (train, test) in enumerate(splits)]
        alphas = _ALPHAS if self.alpha is None and self.refit else (self._ridge(),)
        seed = self._seed()
        scores: dict[int, np.ndarray] = {}
        whys: list[str] = []
        parallel = Parallel(n_jobs=self.n_jobs)
        with progress_line(bool(self.verbose), "numbers of edges", None) as report:
            for n_edges in self._candidates(scores):
                found = parallel(delayed(self._in_fold)(fold, n_edges, alphas, seed) for fold in folds)
                scores[n_edges] = np.array([by_alpha for by_alpha, _ in found]).T
                whys += [why for _, why in found if why is not None]
                report(f"{n_edges}: {_best(scores[n_edges]):.6g}")
        tell_unconverged(whys, len(scores) * len(folds), "inside the folds")
        return self._verdict(scores, alphas)

    def _fold(self, number: int, train: np.ndarray, held_out: np.ndarray) -> _Fold:
        """Return the problem of a fold; an error in its rows says that it is in these."""
        if train.shape[0] < 2:
            raise InvalidInputError(f"fold {number} of cv has one row to train on; two or more are needed")
        try:
            return _Fold(self._problem(train), held_out)
        except InvalidInputError as error:
            raise InvalidInputError(f"in the rows that fold {number} of cv trains on, {error}") from error

    def _verdict(self, scores: dict[int, np.ndarray], alphas: tuple[float, ...]) -> tuple[int, float]:
        """Return the number of edges and the ridge that the rule chooses."""
        self.candidates_ = np.array(sorted(scores))
        by_alpha = np.array([scores[n_edges] for n_edges in self.candidates_])
        chosen = int(np.argmax(np.max(by_alpha.mean(axis=2), axis=0)))
        self.scores_ = by_alpha[:, chosen]
        verdict = Verdict.of(self.scores_)
        self.mean_scores_, self.standard_errors_ = verdict.mean, verdict.error
        self.one_standard_error_ = int(self.candidates_[verdict.modest])
        self.scorer_name_ = "log_likelihood"
        self.best_n_edges_ = int(self.candidates_[verdict.chosen(self.rule)])
        largest = int(self.candidates_[-1]) if isinstance(self.n_edges, str) else self._pairs()
        warn_at_range_end(verdict.best, self.candidates_, largest, "number of edges")
        if alphas[chosen] == _ALPHAS[0] and len(alphas) > 1:
            warn_at_largest_ridge(alphas[chosen])
        return self.best_n_edges_, alphas[chosen]

    def _candidates(self, scores: dict[int, np.ndarray]) -> Iterable[int]:
        """Yield the numbers to compare, each after the scores of those before."""
        if not isinstance(self.n_edges, str):
            yield from candidates_of(self.n_edges, self._pairs(), self._budget, "n_edges", "numbers of edges").tolist()
            return
        worse, best = 0, -np.inf
        for n_edges in _ladder(self.n_features_in_, self._pairs()):
            yield n_edges
            mean = _best(scores[n_edges])
            worse, best = (0, mean) if mean > best else (worse + 1, best)
            if worse == _PATIENCE:
                break
        while (between := _between(scores)) != []:
            yield from between

    def _in_fold(
        self, fold: _Fold, n_edges: int, alphas: tuple[float, ...], seed: int
    ) -> tuple[list[float], str | None]:
        """Return the score of a fold's model with so many edges for each ridge, and why it did not converge."""
        rough = clone(self).set_params(tol=max(self.tol, _ENOUGH))
        result = rough._run(fold.problem, n_edges, None, seed)
        precision, scores = fold.problem.definite(result.w), []
        for alpha in alphas:
            if self.refit:
                precision = fold.problem.most_likely(precision, alpha, _ENOUGH)
            scores.append(fold.problem.log_likelihood(precision, fold.held_out))
        return scores, None if result.converged else result.status.sentence


@dataclass(frozen=True, slots=True)
class _Task:
    """What to minimise, and over what."""

    objective: GraphicalModel
    constraint: EdgeSparsity


@dataclass(frozen=True, slots=True, eq=False)
class _Fold:
    """The training rows of a fold as a problem, and its held-out rows."""

    problem: GraphProblem
    held_out: np.ndarray


def _refuse_repeated_names(X: Any) -> None:
    """Refuse a table in which two columns have the same name."""
    names = list(getattr(X, "column_names", getattr(X, "columns", ())))
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InvalidInputError(f"more than one column of X is called {format_value(repeated[0])}; rename them")


def _ladder(p: int, pairs: int) -> Iterable[int]:
    """Yield 0, p/4, p/2, p, 2 p, ... rounded up, until all pairs."""
    yield 0
    last, rung = 0, p / 4
    while last < pairs:
        last = max(last + 1, min(int(np.ceil(rung)), pairs))
        yield last
        rung *= 2


def _best(scores: np.ndarray) -> float:
    """Return the largest of the mean scores of some ridges."""
    return float(np.max(scores.mean(axis=1)))


def _between(scores: dict[int, np.ndarray]) -> list[int]:
    """Return the middles of the gaps around the best number of edges; none where they are small."""
    counts = sorted(scores)
    at = int(np.argmax([_best(scores[count]) for count in counts]))
    best, near = counts[at], max(1.0, _FINE * counts[at])
    gaps = [(counts[place], best) for place in (at - 1, at + 1) if 0 <= place < len(counts)]
    return sorted((a + b) // 2 for a, b in gaps if abs(a - b) > near)
