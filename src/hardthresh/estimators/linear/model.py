"""The base classes of sparse linear estimators: parameters, fitting, feature selection, the certificate."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from array_api_compat import device, is_array_api_obj
from scipy.sparse import issparse
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._array_api import get_namespace
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hardthresh.arrays import all_finite, double, gather_columns, move, namespace, to_numpy, where_true
from hardthresh.certificates import ModelCertificate
from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.errors import HardThreshError, InvalidInputError, format_value, numbered, warn
from hardthresh.core.objective import Evaluation
from hardthresh.core.result import Result, Status
from hardthresh.core.solver import Solver
from hardthresh.core.state import Trace
from hardthresh.core.stationarity import leading_norm
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import is_numpy
from hardthresh.losses import Loss, VectorLoss
from hardthresh.losses.log_link import LogLink
from hardthresh.objectives import LinearModel, MultiOutputModel
from hardthresh.selection import path
from hardthresh.solvers import WorkingSet
from hardthresh.solvers.start import starting_point

from ..base import (
    SAVES_MEMORY,
    Scaled,
    ThresholdingEstimator,
    as_numbers,
    in_precision,
    known_finite,
    numpy_dtype,
    per_row,
    row_weights,
)
from ..callbacks import FitTask, fit_method
from ..frames import frame_of
from ..soundness import check_linear_model
from ..table import Table
from ..validation import check_labels, validated
from .bounds import Bounds, bounds_of
from .certificate import certify_problem
from .columns import ColumnGroups, ColumnLists, are_lists, column_indices, column_labels, column_lists
from .criterion import CriterionPath, criterion_path
from .encoding import Encoding, encoding_of, factor_columns, read_codes, without
from .export import to_sklearn
from .nuisance import Nuisance, settle
from .problem import Fingerprint, Problem, build_problem, features_of, linear_predictor
from .rows import Rows
from .summary import Summary, share_removed, summarize

try:
    from sklearn.utils._array_api import check_same_namespace
except ImportError:  # scikit-learn < 1.8 lets the arrays themselves refuse to mix

    def check_same_namespace(X: Any, estimator: Any, *, attribute: str, method: str) -> None:
        """Do nothing."""


_OF_A_CHOICE = (
    "best_n_nonzero_coefs_",
    "best_n_nonzero_groups_",
    "candidates_",
    "criterion_path_",
    "coefs_path_",
    "intercepts_path_",
)
"""Attributes of fits that chose their number of features by a criterion."""


_OF_TRAINING = ("_training", "_summary", "_held_out_rows", "_distinct_times")
"""Attributes that hold training data, or targets: copies of a model do not have them."""


def _transforms(model: SparseLinearModel) -> bool:
    """Return whether a model is also one of scikit-learn's transformers, which take targets of zero."""
    return bool(model._loss_type().in_domain(np.zeros(1))[0])


class SparseLinearModel(SelectorMixin, ThresholdingEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Base of the estimators that fit one linear predictor with at most k features. See the concrete classes.

    `SelectorMixin` wraps the output of `transform`, so that this class need not (`auto_wrap_output_keys`).
    """

    _loss_type: ClassVar[type[Loss]]
    _takes_outputs: ClassVar[bool] = False
    """Whether targets may have several columns."""
    _saves_memory: ClassVar[str] = SAVES_MEMORY
    _takes_other_arrays: ClassVar[bool] = True
    """Whether data may be arrays of another library than NumPy; scikit-learn is told by a tag."""
    _training: tuple[Problem, Result, Fingerprint] | None = None
    _certificate: ModelCertificate | None = None
    _summary: Summary | None = None
    _held_out_rows: Rows | None = None

    def __init__(
        self,
        *,
        n_nonzero_coefs: Any = "auto",
        groups: Any = None,
        n_nonzero_groups: Any = "auto",
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

    @property
    def _loss(self) -> Loss:
        """The loss that predictions are judged by: of a type that is the class's, with this model's parameters."""
        return self._loss_type()

    def _loss_for(self, y: Any) -> Loss | VectorLoss:
        """Return the loss of encoded targets: of several predictions for each row, if these have them."""
        return self._loss

    def _outputs_of(self, y: np.ndarray) -> tuple[int, ...]:
        """Return the shape of the linear predictor of a row, for targets as they were given: () for one number."""
        return ()

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Finite numbers; float32 is computed in float32. The columns of `categorical_features` may hold anything.
        y : array, shape (n_samples,)
            Targets.
        sample_weight : array, shape (n_samples,), optional
            Non-negative weights; weight 2 is a row given twice, weight 0 a row left out.
        offset : array, shape (n_samples,), optional
            A known part of the linear predictor; for Poisson and gamma regression on the log scale, as
            ``offset=np.log(exposure)``.

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
            If "auto" chooses no feature, or there are too few rows to choose any.
        SearchRangeWarning
            If "auto" chooses as many as it compares, and others are possible beyond it.
        """
        return self._fit(X, y, sample_weight, offset)

    def _fit(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> Self:
        """Fit the model: what `fit` does, once subclasses have read what they take besides."""
        given = self._validate_fit(X, y, sample_weight, offset).weighted()
        table = self._encode(given)
        given_k, seed, choice = getattr(self, self._k_name), self._seed(), None
        problem = self._problem(table, 0 if is_auto(given_k) else self._checked_k(given_k))
        self._warn_useless_columns(problem, table.X)
        if is_auto(given_k):
            choice = self._choose_k(problem, seed)
            problem = problem.with_budget(choice.best)
        task = FitTask(self, given, self.max_iter)
        w0 = None
        if self.warm_start and hasattr(self, "coef_"):
            coef, intercept = self._certified()
            if coef.shape[-1] != self._n_columns:
                raise InvalidInputError(
                    f"warm_start: the last fit had {coef.shape[-1]} features, X has {self._n_columns}"
                )
            w0 = point_of(problem, coef, intercept, "warm_start: the last fit")
        problem, result = self._settled(
            problem,
            w0,
            seed,
            progress=bool(self.verbose),
            callback=task.on_state(lambda state: self._coefficients(problem, state.w)),
        )
        self._keep(problem, result)
        self._keep_choice(choice, problem, table, result.w)
        task.end()
        return self

    def certificate(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> ModelCertificate:
        """Return what is known about the quality of the fit: first-order conditions, and exchanges of features.

        Parameters
        ----------
        X, y, sample_weight, offset : optional
            Data, as in `fit`. Without them the certificate is about the training data, and computed once. With them it
            is about these data: whether the fitted coefficients, which stay as they are, are a good answer to the
            problem that these data and the model's parameters pose. So a loaded model can be given its training data
            again. The model itself is not changed.

        Returns
        -------
        ModelCertificate
            ``print`` it to read it.

        Raises
        ------
        HardThreshError
            Without data: if the model was loaded, unpickled or copied without ever having been certified, because it
            does not carry the training data, or if these were changed in place since the fit.
        ValueError
            For data that `fit` would refuse, with other columns than the training data, or with unknown classes.

        Notes
        -----
        Cost: about k + 25 data passes. The training data are kept in memory until the certificate and the summary have
        both been asked for. For the squared loss without `positive` or `bounds` the statement about exchanges is a
        proof; otherwise the exchanges are ranked by a quadratic model and the most promising are refitted. With
        `groups` it costs the Hessian of each group besides.
        """
        if self._is_about(X, y, sample_weight, offset):
            return self._certify(*self._problem_of(X, y, sample_weight, offset))
        if self._certificate is None:
            problem, result = self._untouched_training()
            self._certificate = self._certify(problem, result.w, result.support, result.state.trace)
            self._let_go()
        return self._certificate

    def summary(self, X: Any = None, y: Any = None, sample_weight: Any = None, offset: Any = None) -> Summary:
        """Return how well the model fits, and what each chosen feature is worth to it.

        For each feature: its coefficient, also per standard deviation; the rise of the objective when it leaves the
        model and the others are refitted; the feature that replaces it best, and what that costs; the share of the
        folds that choose it, after cross-validation; and a standard error. The standard errors take the features as
        given. The same rows chose them, so that **they are too small, and not valid for confidence intervals**.

        Parameters
        ----------
        X, y, sample_weight, offset : optional
            Data, as for `certificate`: without them the summary is about the training data, and computed once.

        Returns
        -------
        Summary
            ``print`` it to read it; `to_frame` and `to_dict` return its numbers.

        Raises
        ------
        HardThreshError, ValueError
            As for `certificate`.

        Notes
        -----
        Cost: about k + 1 data passes, and two refits for each feature of O(n k^2) per Newton step.

        Of an average of models, coefficients are those of the average; costs, substitutes and standard errors are those
        of the best single model, because an average minimises nothing.
        """
        if self._is_about(X, y, sample_weight, offset):
            return self._summarize(*self._problem_of(X, y, sample_weight, offset)[:2])
        if self._summary is None:
            problem, result = self._untouched_training()
            self._summary = self._summarize(problem, result.w)
            self._let_go()
        return self._summary

    def _let_go(self) -> None:
        """Let go of the training data, which may be large, when nothing needs them any more."""
        if self._certificate is not None and self._summary is not None:
            self._training = None

    def _is_about(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> bool:
        """Return whether something is asked about given data, not about those of the fit."""
        check_is_fitted(self)
        if X is not None or y is not None:
            return True
        if sample_weight is not None or offset is not None:
            raise InvalidInputError("sample_weight and offset belong to data; give X and y, too")
        return False

    @without_overflow_warnings
    def _summarize(self, problem: Problem, w: Any) -> Summary:
        return summarize(self, problem, w, self._subject())

    def _subject(self) -> str:
        """Return what certificates and summaries are about, if not the model itself."""
        return ""

    def _expected(self, u: np.ndarray, loss: Any) -> np.ndarray:
        """Return what linear predictors say about targets, for people: expected ones, or the decision of a classifier.

        Where a loss knows no expected target, these are the linear predictors.
        """
        if not hasattr(loss, "mean") or (loss.classifies and not loss.multiplies):
            return u
        with np.errstate(over="ignore"):
            return np.asarray(loss.mean(u))

    def _expected_rows(self, problem: Problem, coef: Any = None, intercept: Any = None) -> np.ndarray:
        """Return that of the rows of a problem, by the model or by other coefficients on the scale of the data."""
        if coef is None:
            coef, intercept = self._predictor()
            coef = to_numpy(coef)
            intercept = intercept if isinstance(intercept, float) else to_numpy(intercept)
        model = problem.objective
        return self._expected(double(model.predict(point_of(problem, coef, intercept, "the model"))), model.loss)

    def _shown(self, rows: Rows) -> Rows:
        """Return rows with targets as people know them, where the loss takes other numbers."""
        return rows

    def _fit_scores(self, problem: Problem, at: Evaluation) -> dict[str, float]:
        """Return how well an evaluated point of a problem fits its rows."""
        return {"r2" if problem.objective.traits.quadratic else "d2": share_removed(problem, at)}

    @without_overflow_warnings
    def _certify(self, problem: Problem, w: Any, support: Any, trace: Trace) -> ModelCertificate:
        name = problem.group_name if problem.grouped else self._feature_name
        return certify_problem(problem, w, support, name, trace)

    @without_overflow_warnings
    def _problem_of(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> tuple[Problem, Any, Any, Trace]:
        """Return the problem of other data, the coefficients as its point, their support, and the scales of the run."""
        if X is None or y is None:
            raise InvalidInputError(
                f"certificates and summaries of given data need both X and y, got no {'X' if X is None else 'y'}"
            )
        if not hasattr(self, f"{self._k_name}_"):
            raise InvalidInputError("groups was set, or taken back, since the fit; fit the model again")
        best = getattr(self, f"best_{self._k_name}_", None)
        k = self._checked_k(getattr(self, self._k_name)) if best is None else best
        check_same_namespace(X, self, attribute="coef_", method="certificate")
        table = self._encode(self._validate(X, y, sample_weight, offset, reset=False).weighted(), reset=False)
        problem = self._problem(table, k)
        objective, constraint = problem.objective, problem.constraint
        coef, intercept = self._certified()
        lost = np.flatnonzero(features_of(coef) & (to_numpy(problem.inverse_scale) == 0))
        if lost.size:
            warn(f"{self._listed(lost, 'constant')} of these data: what they add is constant")
        w = point_of(problem, coef, intercept, "the model")
        null = starting_point(objective, constraint, None)[0]
        trace = Trace(null_value=null.value, null_gradient=leading_norm(constraint, null.gradient))
        return problem, w, problem.support(w, getattr(self, "groups_", ())), trace

    def _certified(self) -> tuple[np.ndarray, Any]:
        """Return the coefficients and the intercept that a certificate is about."""
        coef, intercept = self._predictor()
        return to_numpy(coef), intercept if isinstance(intercept, float) else to_numpy(intercept)

    @without_overflow_warnings
    def _untouched_training(self) -> tuple[Problem, Result]:
        """Return the problem that was fitted and its result; raise an error if the data are gone or changed."""
        if self._training is None:
            raise HardThreshError(
                "this model does not carry its training data; call certificate(X, y) with them, or call certificate() "
                "before you save or copy a model; the same holds for summary"
            )
        problem, result, before = self._training
        if not before.agrees(problem.fingerprint()):
            raise HardThreshError("the training data were changed in place since the fit; fit the model again")
        return problem, result

    def _validate_fit(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> Table:
        """Return training data as validated arrays, with targets as they were given, and remember their columns."""
        return self._validate(X, y, sample_weight, offset, reset=True)

    def _validate(self, X: Any, y: Any, sample_weight: Any, offset: Any, *, reset: bool) -> Table:
        """Return data as validated arrays, with targets as they were given; `reset` makes their columns the model's."""
        self._check_settings()
        factors = factor_columns(X, self.categorical_features) if reset else self._factors()
        numeric, several = not self._loss.classifies, self._takes_outputs
        numbers, y = self._numbers(X, factors, reset=reset, y=y, y_numeric=numeric, multi_output=several)
        if issparse(y):
            raise InvalidInputError("y is a sparse matrix; give its dense array, y.toarray()")
        y = to_numpy(y)
        weights = row_weights(sample_weight, numbers)
        if self._loss.classifies:
            check_labels(y)
        else:
            self._loss.check_domain(as_numbers(y, "y"), None if weights is None else weights > 0)
        counted = y if weights is None else y[weights > 0]
        outputs = self._outputs_of(counted)
        needs_more_than_0 = reset and isinstance(self._loss, LogLink) and self.fit_intercept
        if needs_more_than_0 and not np.any(as_numbers(counted, "y") > 0):
            raise InvalidInputError(
                "all targets are 0, which no finite intercept predicts, even with a ridge; give rows with others"
            )
        offset = per_row(offset, numbers, "offset", outputs)
        if reset:
            self.__dict__.pop("encoding_", None)  # of a fit to other columns
        if not factors:
            return Table(numbers, y, weights, offset)
        codes = read_codes(X, factors)
        if reset:
            self._check_factors(factors)
            names, size = getattr(self, "feature_names_in_", None), int(self.n_features_in_)
            penalised = set(factors).difference(self._always_given()) if self._has_ridge() else ()
            self.encoding_ = encoding_of(size, codes, weights, names, every_level=penalised)
        else:
            self.encoding_.check_known(codes, getattr(self, "feature_names_in_", None))
        return Table(self.encoding_.encode(numbers, codes), y, weights, offset, given=X)

    def _numbers(self, X: Any, factors: Collection[int], **options: Any) -> Any:
        """Return the columns of X that are not categorical as an array of finite numbers, and y if it is given."""
        xp, _ = get_namespace(X)
        numbers = without(X, factors) if factors else None
        return validated(
            self,
            X,
            accept_sparse=("csc", "csr"),
            dtype=(xp.float64, xp.float32),
            ensure_all_finite=not known_finite(X),
            numbers=numbers,
            **options,
        )

    def _factors(self) -> tuple[int, ...]:
        """Return the categorical columns of the fit."""
        return tuple(factor.column for factor in self.encoding_.factors) if hasattr(self, "encoding_") else ()

    def _has_ridge(self) -> bool:
        """Return whether coefficients are penalised, so that each level of a categorical column can have one."""
        return self._ridge() > 0

    def _check_factors(self, factors: Sequence[int]) -> None:
        """Check that the settings go together with categorical columns."""
        if self.positive or self.bounds is not None:
            names, setting = getattr(self, "feature_names_in_", None), "positive=True" if self.positive else "bounds"
            column = numbered("column", factors[0]) if names is None else f"column {format_value(names[factors[0]])}"
            raise InvalidInputError(
                f"{setting} does not go together with categorical columns such as {column}, whose coefficients compare "
                "levels; encode them yourself, or leave one of them out"
            )

    def _encode(self, given: Table, *, reset: bool = True) -> Table:
        """Return the table with targets as the loss takes them, all of it in the library of X."""
        return given.with_targets(in_precision(self._encode_target(given.y, reset=reset), given.X, "y"))

    def _encode_target(self, y: np.ndarray, *, reset: bool) -> np.ndarray:
        """Return the targets as the loss takes them; with `reset` the model keeps which values there are."""
        return y

    def _decode_target(self, y: Any) -> Any:
        """Return encoded targets as they were given."""
        return y

    def _labels(self) -> dict[str, Any]:
        """Return the fitted attributes that `predict` needs besides the coefficients."""
        return {}

    @property
    def encoded_feature_names_(self) -> np.ndarray:
        """The names of the columns that `coef_` refers to: one for each level of a categorical column."""
        check_is_fitted(self)
        encoding = getattr(self, "encoding_", Encoding(int(self.n_features_in_), ()))
        return encoding.names(getattr(self, "feature_names_in_", None))

    @property
    def _n_columns(self) -> int:
        """The number of columns with a coefficient."""
        return self.encoding_.n_columns if hasattr(self, "encoding_") else int(self.n_features_in_)

    @property
    def _features(self) -> np.ndarray:
        """For each column with a coefficient, the column of X that it is, or is a level of."""
        return self.encoding_.features if hasattr(self, "encoding_") else np.arange(self.n_features_in_)

    def _column_names(self) -> Sequence[str] | None:
        return self.encoded_feature_names_.tolist() if hasattr(self, "encoding_") else super()._column_names()

    def _always(self) -> tuple[int, ...]:
        """Return the always-included columns, of those with a coefficient, as increasing indices."""
        given = self._always_given()
        return tuple(np.flatnonzero(np.isin(self._features, given)).tolist()) if hasattr(self, "encoding_") else given

    def _always_given(self) -> tuple[int, ...]:
        """Return the always-included columns of X as increasing indices."""
        names = getattr(self, "feature_names_in_", None)
        return column_indices(self.always_include, int(self.n_features_in_), None if names is None else list(names))

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.groups is None and is_given(self.n_nonzero_groups):
            raise InvalidInputError("n_nonzero_groups needs groups, a label for each column; or use n_nonzero_coefs")
        if self.groups is not None and is_given(self.n_nonzero_coefs):
            raise InvalidInputError(
                "n_nonzero_coefs does not go together with groups, which are chosen whole; use n_nonzero_groups"
            )
        if self.positive and self.bounds is not None:
            raise InvalidInputError("positive=True is short for bounds=(0, None); leave one of them out")
        if self.groups is not None and (self.positive or self.bounds is not None):
            given = "positive=True" if self.positive else "bounds"
            raise InvalidInputError(f"{given} does not go together with groups; leave one of them out")

    def _check_attributes(self) -> None:
        """Check that the fitted attributes fit together."""
        check_linear_model(self)

    @property
    def _k_name(self) -> str:
        """The parameter that says how much may be chosen."""
        return "n_nonzero_coefs" if self.groups is None else "n_nonzero_groups"

    def _choices(self) -> tuple[int, str]:
        """Return the number of features or groups to choose from, and which of the two it is."""
        if self.groups is None:
            return int(self.n_features_in_), "features"
        return self._groups().count(self._always()), "groups"

    def _warn_useless_columns(self, columns: Scaled, X: Any) -> None:
        super()._warn_useless_columns(columns, X)
        left_out = np.zeros(0) if self.groups is None else self._groups().left_out(self._always())
        if left_out.size:
            are = "is" if left_out.size == 1 else "are"
            warn(f"{self._listed(left_out, 'ungrouped')} {are} in no group and cannot be chosen")

    @property
    def _overlapping(self) -> bool:
        """Whether groups are lists of columns, which may overlap."""
        return self.groups is not None and are_lists(self.groups)

    def _groups(self) -> ColumnGroups | ColumnLists:
        """Return the groups of the columns with a coefficient."""
        if not self._overlapping:
            return ColumnGroups(self._group_labels())
        names = [*getattr(self, "feature_names_in_", ())] or None
        return column_lists(self.groups, int(self.n_features_in_), names, self._features)

    def _group_labels(self) -> tuple[Any, ...]:
        """Return the label of each column with a coefficient, None where it is always included.

        Without `groups`, the levels of a categorical column are a group, and so is each other column.
        """
        always, names = self._always_given(), getattr(self, "feature_names_in_", None)
        size = int(self.n_features_in_)
        if self.groups is None:
            given = [f"x{j}" for j in range(size)] if names is None else names
            labels = tuple(None if j in always else label for j, label in enumerate(given))
        else:
            labels = column_labels(self.groups, size, None if names is None else list(names), always)
        return tuple(labels[feature] for feature in self._features)

    def _checked_k(self, k: Any) -> int:
        """Return a validated number of non-zeros, or of groups."""
        most, what = self._choices()
        if k is None:
            raise InvalidInputError(
                f'{self._k_name} must be an integer or "auto", got None; "auto" chooses it by an information criterion'
            )
        return self._checked_budget(self._k_name, k, most, f"the number of {what}", otherwise='"auto"')

    def _choose_k(self, problem: Problem, seed: int) -> CriterionPath:
        """Return the criterion of each number of features, or of groups, that the rows allow.

        A solver that shares no work between budgets starts from the fit before: 1.2 to 3 times as fast on 100 x 30 to
        500 x 5,000 tables, with the same criterion or a better one.
        """
        problem = self._started(problem)
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

        return criterion_path(problem, fit_path)

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
            points = [*choice.points[: choice.best], w, *choice.points[choice.best + 1 :]]
            fits = [problem.coefficients(point) for point in points]
            self.coefs_path_, self.intercepts_path_ = (namespace(w).stack(part) for part in zip(*fits, strict=True))
        choice.warn(problem, type(self).__name__, self._k_name, self._choices()[1])

    def _bounds(self, table: Table) -> Bounds | None:
        """Return the bounds of the coefficients, in the precision of a table."""
        bounds = (0, None) if self.positive else self.bounds
        names = [*getattr(self, "feature_names_in_", ())] or None
        return bounds_of(bounds, int(self.n_features_in_), names, numpy_dtype(table.X), self._feature_name)

    @serial_blas()
    def _problem(self, table: Table, k: int) -> Problem:
        problem = build_problem(
            table,
            loss=self._loss_for(table.y),
            k=k,
            alpha=self._ridge(),
            always_include=self._always(),
            bounds=self._bounds(table),
            fit_intercept=self.fit_intercept,
            scale=self.standardize,
            name=self._feature_name,
            groups=self._groups() if self.groups is not None or hasattr(self, "encoding_") else None,
            levels=self.encoding_.indicators if hasattr(self, "encoding_") else (),
            **self._levels(),
        )
        self._check_tiny_columns(problem, table)
        return problem

    def _levels(self) -> dict[str, Any]:
        """Return settings of `build_problem` that say what predictions have in the place of an intercept."""
        return {}

    def _nuisance(self) -> Nuisance | None:
        """Return the parameter of the loss that is estimated with the coefficients, if there is one."""
        return None

    def _started(self, problem: Problem) -> Problem:
        """Return a problem with the loss of its first search."""
        nuisance = self._nuisance()
        return problem if nuisance is None else problem.with_loss(nuisance.start(problem))

    def _settled(self, problem: Problem, w0: Any, seed: int, **options: Any) -> tuple[Problem, Result]:
        """Return the fit of a problem, and the problem with the parameter of its loss that was estimated with it."""
        nuisance = self._nuisance()
        if nuisance is None:
            return problem, self._solve(problem, w0, seed, **options)
        return settle(
            nuisance, self._started(problem), lambda problem, w0: self._solve(problem, w0, seed, **options), w0
        )

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

    def _ridge(self) -> float:
        return self._loss.default_ridge if self.alpha is None else super()._ridge()

    def _predictor(self) -> tuple[Any, Any]:
        """Return the coefficients and the intercept of linear predictors: of several, a row and a number for each."""
        if self.coef_.ndim == 1:
            return self.coef_, float(self.intercept_)
        if self.coef_.shape[0] == 1:
            return self.coef_[0, :], float(self.intercept_[0])
        return self.coef_, self.intercept_

    def _keep(self, problem: Problem, result: Result) -> None:
        """Set the fitted attributes, and warn if the fit did not converge."""
        for name, value in self._coefficients(problem, result.w).items():
            setattr(self, name, value)
        self.support_ = problem.features(result.support)
        self.scale_ = problem.scale()
        for name in ("n_nonzero_coefs_", "n_nonzero_groups_", "groups_"):
            if hasattr(self, name):  # of a fit with other settings
                delattr(self, name)
        if self.groups is not None:
            self.groups_ = problem.groups(result.support)
            self.n_nonzero_groups_ = len(self.groups_)
        else:
            counted = sorted(set(to_numpy(self.support_).tolist()).difference(self._always()))
            self.n_nonzero_coefs_ = np.unique(self._features[counted]).size
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

    def _reason(self, problem: Problem, result: Result) -> str:
        """Return why the fit ended, with the names of the features whose coefficients grow without bound."""
        if result.status is not Status.NO_MINIMISER:
            return result.message
        move = problem.objective.recession(result.state.at, result.support.indices)
        size = np.zeros(1) if move is None else np.abs(to_numpy(move))[: self._n_columns]
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
        check_same_namespace(X, self, attribute="coef_", method=method)
        X = self._numbers_of(X)
        coef, intercept = self._predictor()
        offset = per_row(offset, X, "offset", tuple(coef.shape[:-1]))
        u = linear_predictor(X, self.support_, coef, intercept)
        if offset is None and getattr(self, "offset_used_", False):
            warn(f"{type(self).__name__} was fitted with an offset; {method} without one leaves it out")
        return u if offset is None else u + move(offset, u)

    def _numbers_of(self, X: Any) -> Any:
        """Return the columns with a coefficient; those of categorical columns that are not chosen may be anything."""
        factors = self._factors()
        numbers = self._numbers(X, factors, reset=False)
        if not factors:
            return numbers
        codes = read_codes(X, sorted(set(factors).intersection(np.flatnonzero(self._get_support_mask()).tolist())))
        self.encoding_.check_known(codes, getattr(self, "feature_names_in_", None))
        return self.encoding_.encode(numbers, codes)

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        support = to_numpy(self.support_)
        mask[self._features[support] if hasattr(self, "encoding_") else support] = True
        return mask

    @available_if(_transforms)
    def transform(self, X: Any) -> Any:
        """Return the chosen columns.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data.

        Returns
        -------
        array, shape (n_samples, n_selected)
            Of objects where a data frame had categorical columns; ``set_output(transform="pandas")`` keeps their types.
        """
        frame = frame_of(X) if hasattr(self, "encoding_") else None
        plain = _get_output_config("transform", self)["dense"] == "default"
        if plain and frame is not None and frame.implementation.is_pandas():
            X = X.astype(object)  # scikit-learn would cast the categories to float
        return super().transform(X)

    @available_if(_transforms)
    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit the model, and return the chosen columns.

        Parameters
        ----------
        X, y, **fit_params :
            As for `fit`.

        Returns
        -------
        array, shape (n_samples, n_selected)
        """
        return super().fit_transform(X, y, **fit_params)

    def _transform(self, X: Any) -> Any:
        check_same_namespace(X, self, attribute="coef_", method="transform")
        return gather_columns(X, self.support_) if _is_foreign(X) else super()._transform(X)

    def to_sklearn(self) -> Any:
        """Return the fitted estimator of scikit-learn that predicts the same.

        It keeps the coefficients, the intercept, the names of the columns and the classes, and needs no hardthresh:
        what takes models of scikit-learn takes it, such as a converter to ONNX. It does not keep how the model was
        found; fitted again, it would use all features.

        Returns
        -------
        estimator of scikit-learn
            By the loss a LinearRegression, LogisticRegression, PoissonRegressor, GammaRegressor, TweedieRegressor,
            HuberRegressor, QuantileRegressor or LinearSVC. Its predictions agree but for rounding.

        Raises
        ------
        CapabilityError
            For other losses, which no model of scikit-learn has, and for models with categorical columns.

        Warns
        -----
        UserWarning
            If the model was fitted with an offset, which models of scikit-learn do not take.
        """
        check_is_fitted(self)
        return to_sklearn(self)

    def inverse_transform(self, X: Any) -> Any:
        """Return rows of all features, with zeros for the features that were not chosen.

        Parameters
        ----------
        X : array, shape (n_samples, n_selected)
            Rows of the chosen features.

        Returns
        -------
        array, shape (n_samples, n_features)
        """
        check_is_fitted(self)
        features = np.flatnonzero(self._get_support_mask())
        chosen, foreign = features.size, bool(get_namespace(X)[1]) and _is_foreign(X)
        if issparse(X) or (chosen and not foreign):  # scikit-learn refuses dense data without a column
            return super().inverse_transform(X)
        X = X if foreign else np.asarray(X)
        xp = namespace(X)
        if X.ndim != 2 or X.shape[1] != chosen:
            raise InvalidInputError(f"X has shape {tuple(X.shape)}; (n_samples, {chosen}) is needed")
        place = np.full(self.n_features_in_, chosen)
        place[features] = np.arange(chosen)
        padded = xp.concat([X, xp.zeros((X.shape[0], 1), dtype=X.dtype, device=device(X))], axis=1)
        return gather_columns(padded, move(place, X))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in _OF_TRAINING}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = self._takes_other_arrays
        loss = self._loss_type()  # whose domain depends on no setting, which may be out of range here
        tags.target_tags.multi_output = self._takes_outputs
        tags.target_tags.positive_only = not loss.classifies and not loss.in_domain(-np.ones(1))[0]
        if not _transforms(self):
            tags.transformer_tags = None
        return tags


class SparseRegressor(RegressorMixin, SparseLinearModel):
    """Base of the estimators that predict a number: the mean of a loss at the linear predictor."""

    def predict(self, X: Any, offset: Any = None) -> Any:
        """Return predictions, in the shape of the targets of `fit`. Only the chosen columns are read.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data.
        offset : array, shape (n_samples,) or (n_samples, n_outputs), optional
            A known part of the linear predictor.
        """
        u = self._linear_predictor(X, offset, "predict")
        with np.errstate(over="ignore"):
            predictions = self._loss.mean(u)
        if all_finite(predictions):
            return predictions
        infinite = int(np.count_nonzero(np.isinf(to_numpy(predictions)) & np.isfinite(to_numpy(u))))
        if infinite:
            exceed = "exceeds" if infinite == 1 else "exceed"
            warn(
                f"{infinite} of {u.shape[0]} predictions {exceed} the largest {np.dtype(numpy_dtype(u))} and "
                f"{'is' if infinite == 1 else 'are'} infinite"
            )
        return predictions

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        r"""Return :math:`D^2`, the share of deviance that predictions remove; :math:`R^2` for least squares.

        It is 1 less the mean loss of the predictions over that of the best constant, to which the offset is added too;
        the best is 1. Without an offset it is what the regressors of scikit-learn with the same loss return, and
        `sklearn.metrics.d2_tweedie_score`.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data.
        y : array, shape (n_samples,)
            Targets, in the domain of the loss.
        sample_weight : array, shape (n_samples,), optional
            Non-negative weights.
        offset : array, shape (n_samples,), optional
            A known part of the linear predictor.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            For targets that `fit` would refuse.
        """
        if self._loss.quadratic and offset is None:
            return float(super().score(X, y, sample_weight))
        check_is_fitted(self)
        given = self._validate(X, y, sample_weight, offset, reset=False)
        rows = given.weighted_rows()
        u = double(self._linear_predictor(X, offset, "score"))[rows]
        weights, known = (None if part is None else double(part)[rows] for part in (given.sample_weight, given.offset))
        return self._loss.d2_score(double(given.y)[rows], u, weights, known)


def point_of(problem: Problem, coef: np.ndarray, intercept: Any, whose: str) -> Any:
    """Return the point of a problem for coefficients, which a message calls `whose`, in the precision of its data."""
    has, needs = coef.shape[:-1], tuple(problem.objective.shape)[1:]
    if has != needs:
        raise InvalidInputError(
            f"{whose} has coefficients of shape {(*has, coef.shape[-1])}, these targets need {(*needs, coef.shape[-1])}"
        )
    like = problem.mean
    if not isinstance(intercept, float):
        intercept = move(np.asarray(intercept, dtype=numpy_dtype(like)), like)
    return problem.point(move(coef.astype(numpy_dtype(like)), like), intercept)


def is_auto(k: Any) -> bool:
    """Return whether a number of features or groups is to be chosen by a criterion."""
    return isinstance(k, str) and k == "auto"


def is_given(k: Any) -> bool:
    """Return whether a number of features or groups is set to anything but its default, here or with `cv`."""
    return not (k is None or is_auto(k))


def _is_foreign(X: Any) -> bool:
    """Return whether X is an array of another library than NumPy."""
    return bool(is_array_api_obj(X)) and not is_numpy(X)
