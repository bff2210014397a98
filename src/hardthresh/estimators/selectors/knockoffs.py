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
    r"""Selection of features with control of the false discovery rate, by knockoffs.

    A knockoff of a column is a random or constructed copy with the same variance and the same correlations with the
    other columns, which is computed without the target. An estimator is fitted to the columns and their knockoffs
    together. A feature is selected if its importance exceeds that of its knockoff by at least a threshold T, which is
    chosen such that few knockoffs exceed their columns by as much:

    .. math:: W_j = \pm \max(Z_j, \tilde Z_j) \text{ or } Z_j - \tilde Z_j, \qquad
              T = \min\Bigl\{t : \frac{1 + \#\{j : W_j \le -t\}}{\max(1, \#\{j : W_j \ge t\})} \le q\Bigr\}, \qquad
              \hat S = \{j : W_j \ge T\}

    for the importances Z of a column and :math:`\tilde Z` of its knockoff. W is positive if the column is more
    important.

    Parameters
    ----------
    estimator : estimator
        A sparse linear model for one or several outputs, classes or survival times; with ``statistic="coef"`` any
        estimator with ``coef_``, such as scikit-learn's LassoCV. It is cloned. Columns of its `always_include` have no
        knockoff, are in every fit, and are never selected. It may not have `groups` or categorical columns, and its
        `bounds` must be the same for all columns.
    fdr : float
        q in (0, 1), the level of the false discovery rate: the expected share of null features among the selected
        features. A feature is null if it is independent of the target given the others.
    kind : {"gaussian", "fixed"}
        "gaussian" (model-X knockoffs) assumes normally distributed rows, and allows any loss and any number of rows.
        "fixed" (fixed-X knockoffs) makes no assumption about the rows, but needs least squares, at least two rows for
        each column, and importances that depend on X and y only through X'X, X'y and y'y. So cross-validation and other
        losses are not allowed. Of scikit-learn's estimators it accepts LinearRegression, Ridge, ElasticNet, Lasso,
        Lars, LassoLars and OrthogonalMatchingPursuit. It cannot check a function given as `statistic`, which has to
        satisfy this condition.
    statistic : {"path", "coef"} or callable
        The importance Z of a column. With "path", Z counts how many of the models with 1, 2, ..., K features contain
        the column, with ties broken by the absolute coefficient at K, and W is the signed maximum of Z and
        :math:`\tilde Z`. K is twice the number of features of `estimator`, but at least 1 / fdr, or 2 / fdr with
        several draws. An estimator that chooses its number of features chooses it among columns and knockoffs. With
        "coef", Z is the absolute standardised coefficient in one fit, and W is the difference of Z and :math:`\tilde
        Z`, as it is for a function. A function is called with a clone of the estimator, X with the knockoffs appended
        as columns, y and the other parameters of `fit`. It returns an array of shape (n_columns,), and must treat all
        columns alike.
    n_draws : int
        The number of draws of the knockoffs, >= 1. With several draws, features are selected by the mean of their
        e-values over the draws, which depends less on the random numbers.
    offset : {1, 0}
        The number added to the numerator of the formula of T. With 0 the selection is larger, and one draw controls
        only the modified false discovery rate, the expectation of V / (R + 1 / q) for V null features among R selected
        ones. Several draws control the false discovery rate with both offsets, because the e-values add 1 themselves.
    covariance : {"ledoit_wolf", "empirical"}, array, callable or estimator
        The covariance of the columns for ``kind="gaussian"``: estimated with ("ledoit_wolf") or without ("empirical")
        shrinkage; a given array of shape (n_features, n_features); or estimated by a scikit-learn estimator, such as
        ``OAS()``, or a function, which receive the standardised columns. "empirical" needs more rows than columns.
    random_state : int, RandomState or None
        Seed of the knockoffs.

    Attributes
    ----------
    support_ : array of int
        The selected features, increasing.
    tested_ : array of int
        The features that have a knockoff, increasing.
    statistics_ : array, shape (n_draws, n_features)
        W; 0 for constant columns and columns of `always_include`.
    threshold_ : array, shape (n_draws,)
        T, infinite if nothing is selected. With several draws, T is computed at the level fdr / 2.
    e_values_ : array, shape (n_features,)
        The mean over the draws of :math:`m \, 1[W_j \ge T] / (1 + \#\{i : W_i \le -T\})`, where m is the number of
        columns with a knockoff.
    estimated_fdp_ : float
        The estimated share of null features among the selected ones: the smallest level at which these thresholds would
        select them. 0 if nothing is selected.
    n_features_in_, feature_names_in_ :
        The columns seen in `fit`.

    See Also
    --------
    hardthresh.selection.KnockoffPlan : Computes the knockoffs.
    hardthresh.report.plot_knockoffs : Draws the statistics and the threshold.

    Notes
    -----
    Guarantee: the false discovery rate is at most q, for any number of rows, in two cases: with "fixed", if the target
    is linear in the columns with independent normal errors of equal variance (Barber and Candes 2015, Theorem 2); with
    "gaussian", if the rows are normally distributed with the given covariance, for any distribution of the target given
    the columns (Candes et al. 2018, Theorem 3.4). There is no such guarantee with an estimated covariance; in
    simulations of normal rows the rate stayed at the level (the guide to trust has a table). Several draws keep the
    level by the theorem of Ren and Barber (2024). The false discovery rate is an average over repetitions of the study:
    a single selection may have a larger share of null features.

    With ``offset=1``, at least 1 / q features have to be selected, and about 2 / q with several draws; otherwise
    nothing is selected. If you expect fewer features with an effect, choose a larger level before you look at the data.

    Each column and its knockoff are swapped at random before a fit, so that ties favour neither. The knockoffs maximise
    the entropy. Constant columns are ignored. Sparse matrices raise an error, because knockoffs are dense. With
    "gaussian", transform skewed columns first, so that the rows are approximately normal.

    Cost: for each draw, a path of K numbers of features on 2 n_features columns; and once, about ten inverses of
    matrices of this order.

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
            Targets, as the estimator accepts them.
        **params : dict
            Other parameters of the `fit` of the estimator, such as ``sample_weight``, ``offset`` or ``strata``. The
            covariance uses the weights too. With scikit-learn's metadata routing enabled, the parameters that the
            estimator requests.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For NaN, settings out of range, linearly dependent columns if the covariance is not shrunk, too few rows for
            ``kind="fixed"``, and whatever the estimator raises.

        Warns
        -----
        NothingFoundWarning
            If nothing is selected; the message gives the smallest number of features that can be selected at this
            level.
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
        """Return sentences that say what was selected, and what the level guarantees.

        Returns
        -------
        str
            The sentences.

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
        """Return the metadata that `fit` passes on to the estimator.

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
