"""Selection of features with control of the false discovery rate, by knockoffs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, _routing_enabled, process_routing
from sklearn.utils.validation import check_is_fitted

from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.errors import InvalidInputError, NothingFoundWarning, numbered, warn
from hardthresh.core.randomness import Purpose, generator
from hardthresh.core.registry import register
from hardthresh.core.threads import serial_blas
from hardthresh.selection import knockoff_e_values, knockoff_threshold, select_by_e_values
from hardthresh.selection.knockoffs import difference, knockoff_statistics, signed_maximum, smallest_proportions

from ..base import known_finite, row_weights, seed_of
from ..feature_selector import FeatureSelector
from ..linear.columns import column_indices
from ..linear.model import SparseLinearModel
from ..linear.regression import SparseLinearRegression
from ..soundness import check_numbers, check_present, check_selected
from ..validation import validated
from .importances import Importances, by_coefficients, by_path, check_sees_products, checked_importances
from .knockoff_columns import KnockoffColumns
from .knockoff_settings import check_settings
from .knockoff_words import conditions, is_estimated, least_selected, outcome, why_empty


@register("selector", "knockoffs", lambda: [Knockoffs(SparseLinearRegression(n_nonzero_coefs=1))])
class Knockoffs(FeatureSelector, MetaEstimatorMixin, BaseEstimator):
    r"""Features selected with control of the false discovery rate, by knockoffs.

    Each column gets a knockoff: a copy that has the same second moments, and the same correlations with the other
    columns, but is made without a look at the target. An estimator is fitted to the columns and their knockoffs
    together. A feature is selected if it is preferred to its own knockoff by so much that few knockoffs are preferred
    as much to theirs:

    .. math:: W_j = \pm \max(Z_j, \tilde Z_j) \text{ or } Z_j - \tilde Z_j, \qquad
              T = \min\Bigl\{t : \frac{1 + \#\{j : W_j \le -t\}}{\max(1, \#\{j : W_j \ge t\})} \le q\Bigr\}, \qquad
              \hat S = \{j : W_j \ge T\}

    for the importances Z of a column and :math:`\tilde Z` of its knockoff. W is positive if the column is more
    important.

    Parameters
    ----------
    estimator : estimator
        A sparse linear model, which chooses features of one output, of several, of classes or of survival times; with
        ``statistic="coef"`` any estimator with ``coef_``, such as scikit-learn's LassoCV. It is cloned. Columns of its
        `always_include` have no knockoff and are in every fit; they are never selected. It takes no `groups`, no
        categories, and the same `bounds` for all columns.
    fdr : float
        q in (0, 1), the level of the false discovery rate: the expected share of null features among the selected
        ones. A feature is null if it is independent of the target, given the others.
    kind : {"gaussian", "fixed"}
        "gaussian" draws knockoffs from the normal distribution of the rows, for any loss and any number of rows
        (model-X). "fixed" takes the columns as they are, for least squares with at least two rows for each column, and
        for importances that depend on X and y through X'X, X'y and y'y alone: not for cross-validation, nor for other
        losses. Of scikit-learn it takes LinearRegression, Ridge, ElasticNet, Lasso, Lars, LassoLars and
        OrthogonalMatchingPursuit; of a function for `statistic` it cannot be checked, and is for you to see to.
    statistic : {"path", "coef"} or callable
        The importance Z of a column. "path": at how many of the numbers of features 1, 2, ..., K the model has it, with
        ties broken by the size of the coefficient at K; W is then the larger of Z and :math:`\tilde Z` with its sign.
        K is twice the number of features of `estimator`, but at least 1 / fdr, or with several draws 2 / fdr. An
        estimator that chooses its number of features chooses it among columns and knockoffs. "coef": the size of its
        standardised coefficient in one fit; W is then the difference, and so it is for a function. A function is
        called with a clone of the estimator, X with the columns of the knockoffs, y and the other parameters of `fit`,
        and returns an array of shape (n_columns,); it must treat all columns alike.
    n_draws : int
        How often knockoffs are drawn. With more than one draw, features are selected by the mean of their e-values
        over the draws, which depends less on the random numbers.
    offset : {1, 0}
        The 1 in the numerator of the formula. With 0 the selection is larger, and only the modified false discovery
        rate is controlled, the expectation of V / (R + 1 / q) for V null ones of R features; with several draws still
        the false discovery rate, as e-values have their own 1.
    covariance : {"ledoit_wolf", "empirical"}, array, callable or estimator
        The covariance of the columns, for ``kind="gaussian"``: estimated with or without shrinkage; given, as an array
        of shape (n_features, n_features); or that of an estimator of scikit-learn, such as ``OAS()``, which is fitted
        to the standardised columns, or of a function of these. "empirical" needs more rows than columns.
    random_state : int, RandomState or None
        Seed of the knockoffs.

    Attributes
    ----------
    support_ : array of int
        The selected features, increasing.
    tested_ : array of int
        The features with a knockoff, increasing.
    statistics_ : array, shape (n_draws, n_features)
        W; 0 for constant columns and those of `always_include`.
    threshold_ : array, shape (n_draws,)
        T, infinite where nothing is selected; with several draws at the level fdr / 2.
    e_values_ : array, shape (n_features,)
        The mean over the draws of :math:`m \, 1[W_j \ge T] / (1 + \#\{i : W_i \le -T\})`, m the number of columns with
        a knockoff.
    estimated_fdp_ : float
        The estimated share of null features among the selected ones: the smallest level at which they would be
        selected by these thresholds. 0 if there are none.
    n_features_in_, feature_names_in_ :
        The columns seen in `fit`.

    See Also
    --------
    hardthresh.selection.KnockoffPlan : The knockoffs.
    hardthresh.report.plot_knockoffs : Draws the statistics and the threshold.

    Notes
    -----
    Guarantee: with "fixed", and a target that is linear in the columns with independent normal errors of equal
    variance, the false discovery rate is at most q, whatever the number of rows (Barber and Candes 2015, Theorem 2).
    With "gaussian", and rows that are draws of a normal distribution with the covariance that is given, it is, whatever
    the distribution of the target given the columns (Candes et al. 2018, Theorem 3.4). A covariance that is estimated
    has no such guarantee; in simulations of normal rows the rate stayed at the level (the guide to trust has a table).
    Several draws keep the level by the theorem of Ren and Barber (2024). It is the mean over repetitions of the study:
    one selection may have a larger share.

    A share of at most q takes 1 / q selected features with ``offset=1``, and about 2 / q with several draws. If fewer
    features have an effect, nothing is selected: choose a larger level before you look at the data.

    Columns and knockoffs change places at random before a fit, so that ties favour neither. The diagonal of the
    knockoffs is that of maximum entropy. Constant columns are left out. Sparse matrices are refused, because knockoffs
    are dense. The rows of normal knockoffs should look normal: transform skewed columns first.

    Cost: for each draw a path of K numbers of features on 2 n_features columns; and once some ten inverses of
    matrices of this size.

    References
    ----------
    Barber and Candes (2015), *Controlling the false discovery rate via knockoffs*, Annals of Statistics 43.
    Candes, Fan, Janson and Lv (2018), *Panning for gold: model-X knockoffs for high dimensional controlled variable
    selection*, Journal of the Royal Statistical Society B 80.
    Ren and Barber (2024), *Derandomised knockoffs: leveraging e-values for false discovery rate control*, Journal of
    the Royal Statistical Society B 86.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import Knockoffs, SparseLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 40))
    >>> y = X[:, :8].sum(axis=1) + rng.standard_normal(300)
    >>> selector = Knockoffs(SparseLinearRegression(), fdr=0.2, random_state=1).fit(X, y)
    >>> selector.support_
    array([0, 1, 2, 3, 4, 5, 6, 7])
    >>> selector.transform(X).shape, round(selector.estimated_fdp_, 3)
    ((300, 8), 0.125)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        fdr: float = 0.1,
        kind: str = "gaussian",
        statistic: str | Importances = "path",
        n_draws: int = 1,
        offset: int = 1,
        covariance: Any = "ledoit_wolf",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.fdr = fdr
        self.kind = kind
        self.statistic = statistic
        self.n_draws = n_draws
        self.offset = offset
        self.covariance = covariance
        self.random_state = random_state

    @without_overflow_warnings
    @serial_blas()
    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Draw knockoffs, fit the estimator to them and the columns, and select features.

        Parameters
        ----------
        X : array or data frame, shape (n_samples, n_features)
            Finite numbers.
        y : array or data frame
            Targets, as the estimator takes them.
        **params : dict
            What else its `fit` takes, such as ``sample_weight``, ``offset`` or ``strata``. Weights count in the
            covariance too. With scikit-learn's metadata routing enabled, what the estimator requests.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For NaN, settings out of range, columns that are combinations of others where the covariance is not shrunk,
            too few rows for ``kind="fixed"``, and as by the estimator.

        Warns
        -----
        NothingFoundWarning
            If nothing is selected; it says how many features this level takes.
        """
        check_settings(self)
        if _routing_enabled():
            params = process_routing(self, "fit", **params).estimator.fit
        numbers = validated(
            self, X, dtype=(np.float64, np.float32), ensure_all_finite=not known_finite(X), ensure_min_samples=2
        )
        always = self._always()
        columns = KnockoffColumns.of(numbers, row_weights(params.get("sample_weight"), numbers), always, self._name)
        if not columns.tested.size:
            raise InvalidInputError("X has no column to test: all are constant or in always_include of the estimator")
        draw = columns.gaussian(self._covariance()) if self.kind == "gaussian" else self._fixed(columns)
        importances = self._importances(numbers.dtype, columns.tested, always, y, params)
        contrast = signed_maximum if self.statistic == "path" else difference
        tested, seed = columns.tested, seed_of(self.random_state)
        statistics = np.zeros((self.n_draws, numbers.shape[1]))
        for number, row in enumerate(statistics):
            rng = generator(seed, number, Purpose.KNOCKOFFS)
            copies, swapped = draw(rng), rng.random(tested.size) < 0.5
            row[tested] = knockoff_statistics(
                importances, contrast, columns.X[:, tested], copies, columns.X[:, list(always)], swapped
            )
        self._keep(statistics, tested)
        return self

    def _level(self) -> float:
        """Return the level of each draw; of several, half of it, as Ren and Barber (2024) recommend."""
        return self.fdr if self.n_draws == 1 else self.fdr / 2

    def _keep(self, statistics: np.ndarray, tested: np.ndarray) -> None:
        """Set the fitted attributes, and warn if nothing is selected."""
        self.statistics_, self.tested_ = statistics, tested
        self.threshold_ = np.array([knockoff_threshold(row[tested], self._level(), self.offset) for row in statistics])
        e_values = [
            knockoff_e_values(row[tested], threshold)
            for row, threshold in zip(statistics, self.threshold_, strict=True)
        ]
        self.e_values_ = np.zeros(statistics.shape[1])
        self.e_values_[tested] = np.mean(e_values, axis=0)
        if self.n_draws == 1:
            self.support_ = np.flatnonzero(statistics[0] >= self.threshold_[0])
            sizes, proportions = smallest_proportions(statistics[0], self.offset)
            self.estimated_fdp_ = float(proportions[sizes == self.threshold_[0]].sum())
        else:
            self.support_ = tested[select_by_e_values(self.e_values_[tested], self.fdr)]
            least = self.e_values_[self.support_].min(initial=np.inf)
            self.estimated_fdp_ = float(tested.size / (max(self.support_.size, 1) * least))
        if not self.support_.size:
            warn(f"{type(self).__name__}: {why_empty(self)}", NothingFoundWarning)

    def statement(self) -> str:
        """Return what was selected, and what may be said about it, in sentences.

        Returns
        -------
        str
            ``print`` it to read it.

        Examples
        --------
        >>> import numpy as np
        >>> from hardthresh import Knockoffs, SparseLinearRegression
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((300, 40))
        >>> y = X[:, :8].sum(axis=1) + rng.standard_normal(300)
        >>> selector = Knockoffs(SparseLinearRegression(), fdr=0.2, random_state=1).fit(X, y)
        >>> print(selector.statement())  # doctest: +ELLIPSIS
        8 of 40 features are selected at the false discovery rate 0.2; the estimated share of null ones is 0.125.
        ...
        """
        check_is_fitted(self)
        return "\n".join([outcome(self), *conditions(self)])

    def _importances(
        self, dtype: Any, tested: np.ndarray, always: tuple[int, ...], y: Any, params: dict[str, Any]
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that fits a table of columns and knockoffs, and returns the importances."""
        least = least_selected(self._level())
        if self.statistic == "path":
            importances: Importances = partial(by_path, least=least)
        else:
            importances = by_coefficients if self.statistic == "coef" else self.statistic  # type: ignore[assignment]
        names = [self._name(int(j)) for j in tested]
        names = [*names, *(f"the knockoff of {name}" for name in names), *map(self._name, always)]

        def of(table: np.ndarray) -> np.ndarray:
            model = clone(self.estimator)
            if always:
                model.set_params(always_include=list(range(2 * tested.size, len(names))))
            if isinstance(model, SparseLinearModel):
                model._names_in_messages = names
                if model.n_features_original is not None:
                    model.set_params(n_features_original=2 * model.n_features_original)  # with their knockoffs
            return checked_importances(importances(model, table.astype(dtype, copy=False), y, **params), len(names))

        return of

    def _fixed(self, columns: KnockoffColumns) -> Callable[[np.random.Generator], np.ndarray]:
        """Return the function that draws fixed knockoffs; those of a function of the user are at its own risk."""
        if not callable(self.statistic):
            check_sees_products(self.estimator)
        return columns.fixed(intercept=bool(getattr(self.estimator, "fit_intercept", True)))

    def _covariance(self) -> Any:
        """Return the covariance as an array, or the way to estimate it."""
        given = self.covariance
        return given if is_estimated(given) else np.asarray(given, dtype=np.float64)

    def _always(self) -> tuple[int, ...]:
        """Return the columns that the estimator always includes."""
        names = getattr(self, "feature_names_in_", None)
        given = getattr(self.estimator, "always_include", None)
        return column_indices(given, int(self.n_features_in_), None if names is None else list(names))

    def _name(self, j: int) -> str:
        """Return how a message calls a column."""
        names = getattr(self, "feature_names_in_", None)
        return numbered("feature", j) if names is None else str(names[j])

    def _check_attributes(self) -> None:
        """Check that the fitted attributes fit together."""
        d = check_selected(self)
        check_numbers(self, statistics_=(None, d), e_values_=(d,), estimated_fdp_=())
        check_present(self, "tested_", "threshold_")

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which metadata `fit` passes on: those that the estimator requests.

        Returns
        -------
        MetadataRouter
        """
        router = MetadataRouter(owner=type(self).__name__)
        return router.add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags = get_tags(self.estimator).target_tags
        tags.target_tags.required = True
        tags.input_tags.sparse = False
        return tags
