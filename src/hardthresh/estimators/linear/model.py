"""The base class of sparse linear estimators: parameters, fitting, and what a fit sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import floor, log10
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from hardthresh.arrays import double, move, namespace, to_numpy, where_true
from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import InvalidInputError, NothingFoundWarning, warn
from hardthresh.core.result import History, Result, Status
from hardthresh.core.solver import Solver
from hardthresh.core.support import Support
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array
from hardthresh.objectives import LinearModel, MultiOutputModel
from hardthresh.selection import path
from hardthresh.solvers import WorkingSet

from ..base import per_row
from ..block_scores import predictors_of_blocks, score_of_blocks, score_of_classes, score_of_outputs
from ..blocked import BlockTable, as_blocks, is_blocks
from ..callbacks import FitTask, fit_method
from ..soundness import check_linear_model
from ..table import Table
from .choosing import is_auto, is_searched
from .criterion import CriterionPath, FitPath, criterion_path, path_of, searched_path
from .export import to_sklearn
from .inference import ModelWithInference
from .nuisance import Nuisance, first_fit, settle
from .problem import Problem, linear_predictor, point_of
from .rounding import without_rounding
from .selector import ColumnSelector, transforms
from .shrinkage import largest_ridge
from .targets import RowTargets

_OF_A_CHOICE = (
    "best_n_nonzero_coefs_",
    "best_n_nonzero_groups_",
    "candidates_",
    "criterion_path_",
    "coefs_path_",
    "intercepts_path_",
)
"""Attributes of fits that chose their number of features by a criterion."""


_OF_OTHER_FITS = (
    "n_nonzero_coefs_",
    "n_nonzero_groups_",
    "groups_",
    "inclusion_frequencies_",
    "stream_",
    "n_samples_seen_",
)
"""Attributes of fits with other settings, to other rows, or to batches of rows."""

_OF_TRAINING = ("_training", "_summary", "_held_out_rows")
"""Attributes that hold training data, or targets: copies of a model do not have them."""


class SparseLinearModel(ColumnSelector, ModelWithInference):
    """Base of the estimators that fit one linear predictor with at most k features. See the concrete classes."""

    _takes_blocks: ClassVar[bool] = True
    _ridge_name: ClassVar[str] = "alpha"

    coef_: Array
    intercept_: Any
    scale_: Array
    n_nonzero_coefs_: int
    n_nonzero_groups_: int
    groups_: tuple[Any, ...]
    best_n_nonzero_coefs_: int
    best_n_nonzero_groups_: int
    candidates_: Array
    criterion_path_: Array
    coefs_path_: Array
    intercepts_path_: Array
    n_iter_: int
    converged_: bool
    stop_reason_: str
    objective_: float
    history_: History
    offset_used_: bool

    def __init__(
        self,
        *,
        n_nonzero_coefs: Any = "auto",
        groups: Any = None,
        n_nonzero_groups: Any = "auto",
        criterion: str = "ebic",
        ebic_gamma: float = 1.0,
        n_features_original: int | None = None,
        max_nonzero_coefs: int | None = None,
        alpha: float | None = None,
        always_include: Any = None,
        positive: bool = False,
        bounds: Any = None,
        categorical_features: Any = "from_dtype",
        fit_intercept: bool = True,
        standardize: bool = True,
        solver: str | Solver = "auto",
        tol: float = 1e-8,
        max_iter: int = 1000,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_nonzero_coefs = n_nonzero_coefs
        self.groups = groups
        self.n_nonzero_groups = n_nonzero_groups
        self.criterion = criterion
        self.ebic_gamma = ebic_gamma
        self.n_features_original = n_features_original
        self.max_nonzero_coefs = max_nonzero_coefs
        self.alpha = alpha
        self.always_include = always_include
        self.positive = positive
        self.bounds = bounds
        self.categorical_features = categorical_features
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, scipy.sparse array, data frame, RowBlocks or table of Dask, shape (n_samples, n_features)
            Finite numbers; float32 data are fitted in float32. The columns of `categorical_features` may contain any
            values. A table in blocks (`hardthresh.designs.from_file`, ...), or an engine on one, is read about three
            times, block by block, and is never in memory as a whole. A Dask array or data frame
            (`hardthresh.designs.from_dask`) is also read about three times, on the workers of the current client if
            there is one; persist a graph that takes long to compute before the fit.
        y : array or data frame, shape (n_samples,)
            Targets. Leave it out if the blocks of X contain the targets. `SparseLinearRegression` also accepts the
            shape (n_samples, n_outputs).
        sample_weight : array, shape (n_samples,), optional
            Non-negative weights. A row with weight 2 is equivalent to two copies of the row; a row with weight 0 is
            ignored.
        offset : array, shape (n_samples,) or (n_samples, n_outputs), optional
            A known part of the linear predictor. With a log link, as in Poisson and gamma regression, it is on the log
            scale, for example ``offset=np.log(exposure)``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For NaN, infinity, wrong lengths, or settings out of range; the message says which and what to do.

        Warns
        -----
        NothingFoundWarning
            If an information criterion chooses no feature, or there are too few rows to choose any; also if `alpha` is
            so large that no feature lowers the objective by more than the relative tolerance `tol`.
        SearchRangeWarning
            If the criterion chooses the largest number compared, and larger numbers are possible.
        CriterionWarning
            If the criterion is not the extended BIC, and there are more columns than rows.
        UserWarning
            For constant columns, categorical columns with few rows for each level, and, with a log link, offsets whose
            range is too large for logarithms, as if the exposure itself had been passed.
        """
        return self._fit(X, y, sample_weight, offset)

    def _fit(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> Self:
        """Fit the model: what `fit` does, once subclasses have read what they take besides."""
        given = self._validate_fit(X, y, sample_weight, offset).weighted()
        table = self._encode(given)
        seed, choice, chooses = self._seed(), None, self._chooses_k()
        last = self._last_fit() if self.warm_start else None
        if last is not None and not chooses:
            table = table.going_on(*last)
        problem = self._problem(table, 0 if chooses else self._checked_k(getattr(self, self._k_name)))
        self._warn_useless_columns(problem, table.X)
        w0 = None
        if chooses:
            problem, choice = self._choose(problem, seed)
            w0 = problem.start_of(choice.points, choice.place)
        task = FitTask(self, given, self.max_iter)
        if last is not None:
            w0 = problem.going_on(point_of(problem, *last, "warm_start: the last fit"), w0)
        problem, result = self._settled(
            problem,
            w0,
            seed,
            progress=bool(self.verbose) and not table.shows_readings,
            callback=task.on_state(lambda state: self._coefficients(problem, state.w)),
        )
        self._keep(problem, result)
        self._warn_hidden(problem, result)
        self._keep_choice(choice, problem, table, result.w)
        problem.end_fit()
        task.end()
        return self

    def _last_fit(self) -> tuple[np.ndarray, Any] | None:
        """Return the coefficients and the intercept of the last fit, or None if there was none."""
        if not hasattr(self, "coef_"):
            return None
        coef, intercept = self._certified()
        if coef.shape[-1] != self._n_columns:
            raise InvalidInputError(f"warm_start: the last fit had {coef.shape[-1]} features, X has {self._n_columns}")
        return coef, intercept

    def _check_attributes(self) -> None:
        """Check that the fitted attributes fit together."""
        check_linear_model(self)

    def _warn_hidden(self, problem: Problem, result: Result) -> None:
        """Warn if the ridge alone keeps all features out of the model."""
        asked = self._chooses_k() or getattr(self, self._k_name) > 0
        if not asked:
            return
        if not set(to_numpy(self.support_).tolist()) <= set(self._always()):
            null = result.state.trace.null_value
            if self._ridge() > 0.0 and result.value >= null - self.tol * abs(null):
                warn(
                    f"{type(self).__name__}: with {self._ridge_name}={self._ridge():.3g}, all chosen features together "
                    f"lower the objective by less than {self.tol:.0e} of it: a model without them is as good, and the "
                    "default solver returns that one",
                    NothingFoundWarning,
                )
            return
        limit = largest_ridge(problem, result.w, result.support, self.tol)
        if limit is not None:
            warn(
                f"{type(self).__name__}: {self._ridge_name}={self._ridge():.3g} is so large that no feature lowers the "
                f"objective by more than {self.tol:.0e} of it, so that none is chosen; "
                f"{self._ridge_name} <= {10.0 ** floor(log10(limit)):.0e} lets some in",
                NothingFoundWarning,
            )

    def _chooses_k(self) -> bool:
        """Return whether a criterion chooses the number of features or groups."""
        k = getattr(self, self._k_name)
        return is_auto(k) or is_searched(k)

    def _choose(self, problem: Problem, seed: int) -> tuple[Problem, CriterionPath]:
        """Return a problem with the number of features, or of groups, that the criterion chooses, and how it did."""
        choice = self._choose_k(problem, seed)
        return problem.with_budget(choice.best), choice

    def _path_counts(self, X: Any, y: Any, least: int, params: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, int]:
        """Return what the fits of 1, 2, ..., K features to some data choose, with K twice the model's own number.

        Parameters
        ----------
        X, y :
            Columns of numbers, and targets.
        least : int
            The smallest K; it is not larger than the columns and the rows allow.
        params : mapping
            The other parameters of `fit`.

        Returns
        -------
        counts : array, shape (p,)
            How many of the fits have each column.
        coef : array, shape (p,) or (n_outputs, p)
            The standardised coefficients of the last one.
        unfinished : int
            How many of the fits did not converge.
        """
        given = self._validate_fit(X, y, params.get("sample_weight"), params.get("offset")).weighted()
        seed = self._seed()
        problem, k = self._with_own_k(self._started(self._problem(self._encode(given), 0)), seed)
        counts, unfinished = np.zeros(X.shape[1]), 0
        sizes = range(1, min(max(2 * k, least), problem.n_candidates, given.n_rows) + 1)
        for result in self._fits_of(problem, seed)(problem.objective, sizes):
            counts[to_numpy(problem.features(result.support))] += 1
            unfinished += not (result.converged or result.status is Status.NO_MINIMISER)
        return counts, double(problem.coefficients(result.w)[0]) * double(problem.scale()), unfinished

    def _with_own_k(self, problem: Problem, seed: int) -> tuple[Problem, int]:
        """Return a problem and the number of features to fit to it; what is not given is chosen, the ridge too."""
        if not self._chooses_k():
            return problem, self._checked_k(self.n_nonzero_coefs)
        problem, choice = self._choose(problem, seed)
        return problem, choice.best

    def _choose_k(self, problem: Problem, seed: int, sizes: np.ndarray | None = None) -> CriterionPath:
        """Return the criterion of some numbers of features, or of groups: by default of those that the rows allow."""
        criterion, problem = self._criterion(), self._started(problem)
        fit_path = self._fits_of(problem, seed)
        if self.n_features_original is not None:
            checked_integer("n_features_original", self.n_features_original, least=problem.n_candidates)
        if sizes is not None:
            return path_of(problem, fit_path, criterion, sizes)
        if not is_searched(getattr(self, self._k_name)):
            return criterion_path(problem, fit_path, criterion)
        return searched_path(problem, fit_path, criterion, self.max_nonzero_coefs)

    def _shares_halves(self) -> bool:
        """Return whether one search may find the choices of many parts of the rows: of a given number of features."""
        return self.solver == "auto" and self.groups is None and not self._chooses_k()

    def _choices_of_parts(self, parts: Sequence[np.ndarray]) -> list[np.ndarray | str] | None:
        """Return which columns of X a fit to each of some parts of the rows would choose, if one search finds them all.

        Parameters
        ----------
        parts : sequence of array of int, or BlockHalves
            Rows of the last fit, counted without those of weight 0; of a table in blocks its halves.

        Returns
        -------
        list of array of bool, each of shape (n_features_in_,), or str, or None
            A str where a part cannot be searched, with the reason. None where each part has to be fitted alone.
        """
        if not self._shares_halves():
            return None
        problem, result = self._untouched_training()
        ridge = self._ridge()
        supports = problem.supports_of_parts(parts, ridge, result.w, standardize=self.standardize, tol=self.tol)
        if supports is None:
            alone = problem.of_parts(parts, standardize=self.standardize)
            if alone is None:
                return None
            supports = [own if isinstance(own, str) else self._support_of(own) for own in alone]
        columns = np.arange(self._n_columns)
        return [own if isinstance(own, str) else np.isin(columns, own) for own in supports]

    def _support_of(self, problem: Problem) -> np.ndarray | str:
        """Return the columns of X that a fit chooses, or why it ended before."""
        problem, result = self._settled(problem, None, self._seed())
        return to_numpy(problem.features(result.support)) if result.converged else self._reason(problem, result)

    def _fits_of(self, problem: Problem, seed: int) -> FitPath:
        """Return a function that yields the fits of an objective with some numbers of features, or of groups.

        A solver that shares no work between budgets starts from the fit before: 1.2 to 3 times as fast on 100 x 30 to
        500 x 5,000 tables, with the same criterion or a better one.
        """
        solver = self._solver(problem)
        nuisance = self._nuisance()

        def fit_path(objective: LinearModel | MultiOutputModel, candidates: Sequence[int]) -> Iterator[Result]:
            found = path(
                objective,
                lambda k: problem.with_budget(k).constraint,
                candidates,
                None if self.solver == "auto" else solver,
                warm_start=not isinstance(solver, WorkingSet),
                tol=self.tol,
                max_iter=self.max_iter,
                seed=seed,
            )
            for k, result in zip(candidates, found, strict=True):
                if nuisance is None or not nuisance.has_likelihood:
                    yield result  # without a likelihood only fits with the same loss can be compared
                else:
                    yield nuisance.finish(replace(problem.with_budget(k), objective=objective), result).result

        return fit_path

    def _keep_choice(self, choice: CriterionPath | None, problem: Problem, table: Table, w: Any) -> None:
        """Set the attributes of a number that was chosen, and warn where it says little; None: it was given.

        `w` is the fit with the number that was chosen, which was searched harder than those that were compared.
        """
        for name in _OF_A_CHOICE:
            self.__dict__.pop(name, None)  # of a fit with other settings
        if choice is None:
            return
        setattr(self, f"best_{self._k_name}_", choice.best)
        self.candidates_ = table.to_backend(choice.candidates)
        self.criterion_path_ = table.to_backend(choice.values)
        if choice.points:
            points = [*choice.points[: choice.place], w, *choice.points[choice.place + 1 :]]
            fits = [problem.coefficients(point) for point in points]
            self.coefs_path_, self.intercepts_path_ = (namespace(w).stack(part) for part in zip(*fits, strict=True))
        choice.warn(problem, type(self).__name__, self._k_name, self._choices()[1])

    def _nuisance(self) -> Nuisance | None:
        """Return the parameter of the loss that a fit sets besides the coefficients, if there is one."""
        return None

    def _loss_of_rows(self) -> Callable[[np.ndarray, np.ndarray, int], Any] | None:
        nuisance = self._nuisance()
        if nuisance is None:
            return None
        return lambda r, weights, k: nuisance.of_targets(RowTargets(r, weights), k, self.fit_intercept) or self._loss

    def _started(self, problem: Problem) -> Problem:
        """Return a problem with the loss of its first search."""
        nuisance = self._nuisance()
        return problem if nuisance is None else problem.with_loss(nuisance.start(problem))

    def _settled(self, problem: Problem, w0: Any, seed: int, **options: Any) -> tuple[Problem, Result]:
        """Return the fit of a problem, and the problem with the parameter of its loss that was set with it."""
        nuisance = self._nuisance()
        if nuisance is None:
            result = self._solve(problem, w0, seed, **options)
        else:
            problem, solver = self._started(problem), self._solver(problem)
            first = first_fit(nuisance, problem, lambda one, w: one.answer_on_known_columns(solver, seed, w), w0)
            if first is not None:
                problem, w0 = first.problem, first.at.point
            problem, result = settle(
                nuisance, problem, lambda problem, w0: self._solve(problem, w0, seed, **options), w0, first
            )
        return problem, without_rounding(problem, result)

    def _solve(self, problem: Any, w0: Any, seed: int, **options: Any) -> Result:
        w0, state = problem.begin(w0, self._solver(problem), seed)
        return super()._solve(problem, w0, seed, state=state, **options)

    def _coefficients(self, problem: Problem, w: Any) -> dict[str, Any]:
        """Return the attributes that `predict` needs, for a point."""
        return self._fitted(*problem.coefficients(w))

    def _fitted(self, coef: Any, intercept: Any) -> dict[str, Any]:
        """Return the attributes that `predict` needs, for coefficients on the scale of the data."""
        if coef.ndim == 1:
            return {"coef_": coef, "intercept_": float(intercept), "support_": where_true(coef != 0)}
        used = namespace(coef).any(coef != 0, axis=0)
        return {"coef_": coef, "intercept_": intercept, "support_": where_true(used)}

    def _diagnostics(self, problem: Problem, result: Result) -> dict[str, Any]:
        """Return further fitted attributes."""
        return {}

    def _keep(self, problem: Problem, result: Result) -> None:
        """Set the fitted attributes, and warn if the fit did not converge."""
        for name, value in self._coefficients(problem, result.w).items():
            setattr(self, name, value)
        self.support_ = problem.features(result.support)
        self.scale_ = problem.scale()
        for name in _OF_OTHER_FITS:
            self.__dict__.pop(name, None)
        self._count_features(problem, result.support)
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.offset_used_ = problem.offset_given
        self.stop_reason_ = self._reason(problem, result)
        self.objective_ = result.value
        self.history_ = result.history
        for name, value in self._diagnostics(problem, result).items():
            setattr(self, name, value)
        self._training = (problem, result, problem.fingerprint())
        self._certificate = self._summary = None
        if not result.converged:
            warn(f"{type(self).__name__}: {self.stop_reason_}", ConvergenceWarning)

    def _count_features(self, problem: Problem, support: Support) -> None:
        """Set how many features were chosen, or which groups."""
        if self.groups is not None:
            self.groups_ = problem.groups(support)
            self.n_nonzero_groups_ = len(self.groups_)
        else:
            counted = sorted(set(to_numpy(self.support_).tolist()).difference(self._always()))
            self.n_nonzero_coefs_ = np.unique(self._features[counted]).size

    def _reason(self, problem: Problem, result: Result) -> str:
        """Return why the fit ended, with the names of the features whose coefficients grow without bound."""
        if result.status is not Status.NO_MINIMISER:
            return result.message
        direction = problem.objective.recession(result.state.at, result.support.indices)
        size = np.zeros(1) if direction is None else np.abs(to_numpy(direction))[: self._n_columns]
        size = size if size.ndim == 1 else size.max(axis=1)
        growing = np.flatnonzero(size > 1e-6 * np.max(size, initial=0.0))
        if not growing.size:
            return result.message
        names = ", ".join(self._feature_name(j) for j in growing[:5]) + (", ..." if growing.size > 5 else "")
        return f"{result.message}. Growing without bound: the coefficient{'s' * (growing.size > 1)} of {names}"

    @serial_blas()
    def _linear_predictor(self, X: Any, offset: Any, method: str) -> Any:
        """Return X coef + intercept + offset, reading only the chosen columns; of several outputs a column for each."""
        check_is_fitted(self)
        if is_blocks(X):
            engine = self._validate_blocks(as_blocks(X, offset=None), reset=False).engine
            coef, intercept = self._predictor()
            u, given = predictors_of_blocks(engine, to_numpy(self.support_), to_numpy(coef), intercept, offset)
            self._check_offset_given(given, method)
            return u
        self._check_library(X, method)
        X = self._numbers_of(X)
        coef, intercept = self._predictor()
        offset = per_row(offset, X, "offset", tuple(coef.shape[:-1]))
        u = linear_predictor(X, self.support_, coef, intercept)
        self._check_offset_given(offset is not None, method)
        return u if offset is None else u + move(offset, u)

    def _check_offset_given(self, given: bool, method: str) -> None:
        """Warn of predictions without an offset by a model that was fitted with one."""
        if not given and getattr(self, "offset_used_", False):
            warn(f"{type(self).__name__} was fitted with an offset; {method} without one leaves it out")

    @property
    def _scored_loss(self) -> Any:
        """The loss of which `score` is the share that predictions remove."""
        return self._loss

    def _score_blocks(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> Any:
        """Return how well the model fits a table in blocks: one reading of the chosen columns, or two."""
        check_is_fitted(self)
        table = self._as_scored(self._validate_blocks(as_blocks(X, y, sample_weight, offset), reset=False))
        several = self._takes_outputs and self.coef_.ndim == 2
        coef, intercept = (self.coef_, self.intercept_) if several else self._predictor()
        if coef.ndim == 2 and self._scored_loss.classifies:
            return score_of_classes(table.engine, to_numpy(self.support_), to_numpy(coef), to_numpy(intercept))
        read = score_of_outputs if several or coef.ndim == 2 else score_of_blocks
        return read(table.engine, self._scored_loss, to_numpy(self.support_), to_numpy(coef), intercept)

    def _as_scored(self, given: BlockTable) -> BlockTable:
        """Return a table in blocks with targets as the loss takes them, and the weights that were given."""
        return given

    def to_sklearn(self) -> Any:
        """Return a fitted scikit-learn estimator with the same predictions.

        The estimator has the coefficients, the intercept, the column names and the classes of the model, and does not
        need hardthresh. It can be passed to any tool for scikit-learn models, such as a converter to ONNX. It has no
        constraint on the number of features: if it is fitted again, it uses all features.

        Returns
        -------
        estimator of scikit-learn
            Depending on the loss, a LinearRegression, LogisticRegression, PoissonRegressor, GammaRegressor,
            TweedieRegressor, HuberRegressor, QuantileRegressor or LinearSVC. Its predictions agree up to rounding.

        Raises
        ------
        CapabilityError
            For losses that no scikit-learn model has, and for models with categorical columns.

        Warns
        -----
        UserWarning
            If the model was fitted with an offset, which scikit-learn models do not accept.
        """
        check_is_fitted(self)
        return to_sklearn(self)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in _OF_TRAINING}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = True
        loss = self._loss_type()  # whose domain depends on no setting, which may be out of range here
        tags.target_tags.multi_output = self._takes_outputs
        tags.target_tags.positive_only = not loss.classifies and not loss.in_domain(-np.ones(1))[0]
        if not transforms(self):
            tags.transformer_tags = None
        return tags
