"""The base class of both estimators: learning from tables, sources and answers, and predicting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.errors import InvalidInputError, format_value, warn
from hardthresh.core.typing import Array
from hardthresh.estimators.base import seed_of
from hardthresh.estimators.soundness import check_linear_model
from hardthresh.estimators.validation import validated

from .algorithms import AdaptiveHybrid
from .attribute_learner import AttributeLearner
from .contract import Algorithm, checked_sparsity
from .cost_model import CostModel
from .learner import Learner, LearningResult
from .meter import Spending
from .sources import ArraySource, AttributeSource
from .sources.base import check_distinct

_LOSSES = {"number": "squared loss of numbers", "class": "logistic loss of two classes"}


class LimitedAttributeModel(SelectorMixin, BaseEstimator):
    """Base of the estimators. See the concrete classes."""

    _automatic: ClassVar[type[AdaptiveHybrid]]
    _numeric_target: ClassVar[bool]

    def __init__(
        self,
        n_nonzero_coefs: int | None = None,
        n_observed: int | None = None,
        strategy: str | Algorithm[Any] = "auto",
        *,
        costs: Any = None,
        panels: Any = None,
        budget: float | None = None,
        prediction_budget: float | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_nonzero_coefs = n_nonzero_coefs
        self.n_observed = n_observed
        self.strategy = strategy
        self.costs = costs
        self.panels = panels
        self.budget = budget
        self.prediction_budget = prediction_budget
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from a complete table, as if its attributes had to be bought. Each row is used once, in random order.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Finite numbers. For a table with missing values use `fit_source` with an `ArraySource`.
        y : array, shape (n_samples,)
            Targets: finite numbers, or the labels of two classes.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For settings out of range, or data that are not finite numbers or do not fit together.
        CapabilityError
            If `strategy` does not support different prices or panels.

        Warns
        -----
        ConvergenceWarning
            If the coefficients cannot be relied on, such as after too few rows to choose attributes; `stop_reason_` is
            the reason.

        Notes
        -----
        Cost: one pass that checks that X is finite, and one pass that learns from at most s' attributes of each row.

        Examples
        --------
        >>> import numpy as np
        >>> import hardthresh as ht
        >>> X = np.random.default_rng(0).standard_normal((3000, 20))
        >>> model = ht.LimitedAttributeRegression(n_nonzero_coefs=2, n_observed=8).fit(X, X[:, 4] - 2 * X[:, 13])
        >>> model.support_, model.budget_.attributes <= 8 * 3000
        (array([ 4, 13]), True)
        """
        X, y = self._validated(X, y, reset=True)
        source = self._source(X, self._encoded(y), shuffle=True)
        return self._learn(self._learner(source.cost_model, source.remaining), source)

    def fit_source(self, source: AttributeSource) -> Self:
        """Learn from a source until it is empty or the algorithm has finished.

        Parameters
        ----------
        source : AttributeSource
            The source, which has the budget and the prices. Leave out `n_observed`, `costs`, `panels` and `budget` of
            the estimator.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            For anything but a source, settings that contradict those of the source or are out of range, and values or
            targets that the source or the algorithm refuses.
        CapabilityError
            If `strategy` does not support different prices or panels.

        Warns
        -----
        ConvergenceWarning
            As in `fit`.

        Notes
        -----
        Cost: one pass over the examples of the source, within its budget for each.

        Examples
        --------
        >>> import numpy as np
        >>> import hardthresh as ht
        >>> from hardthresh.limited import ArraySource
        >>> X = np.random.default_rng(0).standard_normal((3000, 20))
        >>> source = ArraySource(X, X[:, 4] - 2 * X[:, 13], n_observed=8)
        >>> ht.LimitedAttributeRegression(n_nonzero_coefs=2).fit_source(source).support_
        array([ 4, 13])
        """
        if not isinstance(source, AttributeSource):
            raise InvalidInputError(
                f"a source is needed, such as ArraySource(X, y, n_observed=50); got {format_value(source)}"
            )
        cost_model = source.cost_model
        if self.n_observed not in (None, cost_model.allowance):
            raise InvalidInputError(
                f"n_observed is {self.n_observed}, but the source allows {cost_model.allowance:g} for an example; "
                "leave n_observed out, the source has the budget"
            )
        if self._has_prices:
            raise InvalidInputError("costs, panels and budget belong to the source; leave them out here")
        self._set_columns(source.n_features, source.feature_names)
        return self._learn(self._learner(cost_model, source.remaining), source)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from more rows, in their order. Several calls give the same model as one call with all rows.

        Parameters
        ----------
        X, y
            As in `fit`.
        classes : sequence of two labels, optional
            For a classifier, both labels, if the rows of the first call may have only one of them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `fit`; and if the settings have changed since the last call, or a label is not one of the classes.

        Warns
        -----
        ConvergenceWarning
            As in `fit`.

        Notes
        -----
        Cost: as `fit`, for the new rows only.

        Examples
        --------
        >>> import numpy as np
        >>> import hardthresh as ht
        >>> X = np.random.default_rng(0).standard_normal((3000, 20))
        >>> y = X[:, 4] - 2 * X[:, 13]
        >>> model = ht.LimitedAttributeRegression(n_nonzero_coefs=2, n_observed=8).partial_fit(X[:2000], y[:2000])
        >>> model.partial_fit(X[2000:], y[2000:]).support_, model.budget_.examples
        (array([ 4, 13]), 3000)
        """
        first = not hasattr(self, "learner_")
        X, y = self._validated(X, y, reset=first)
        y = self._encoded(y, classes if first else getattr(self, "classes_", None))
        if first:
            source = self._source(X, y, shuffle=False)
            return self._learn(self._learner(source.cost_model, None), source)
        self._check_unchanged(self.learner_)
        self.learner_.forget_length()
        return self._learn(self.learner_, ArraySource(X, y, cost_model=self.learner_.cost_model, shuffle=False))

    @property
    def _has_prices(self) -> bool:
        return not (self.costs is None and self.panels is None and self.budget is None)

    def _check_unchanged(self, learner: Learner) -> None:
        """Raise if the settings differ from those of a learner."""
        cost_model = learner.cost_model
        if (
            self._algorithm(cost_model.n_features) != learner.algorithm
            or self.n_observed not in (None, cost_model.allowance)
            or (self._has_prices and not self._cost_model(cost_model.n_features, self._names).same_as(cost_model))
        ):
            raise InvalidInputError(
                "settings cannot change between the pieces that a model learns from: it was begun with "
                f"{learner.algorithm} and a budget of {cost_model.budget:g} for an example; fit begins anew"
            )

    def start(self, n_features: int, feature_names: Sequence[str] | None = None) -> AttributeLearner:
        """Return a learner, whose questions say which attributes of the next example to observe.

        The estimator does not change; `AttributeLearner.model` returns a fitted copy.

        Parameters
        ----------
        n_features : int >= 1
            The number of attributes.
        feature_names : sequence of str, shape (n_features,), optional
            The names of the attributes, all different.

        Returns
        -------
        AttributeLearner
            The learner, without any answers.

        Raises
        ------
        InvalidInputError
            For settings or numbers out of range, and names that are not as many as attributes, or not distinct.
        CapabilityError
            If `strategy` does not support different prices or panels.

        Examples
        --------
        >>> import hardthresh as ht
        >>> learner = ht.LimitedAttributeRegression(n_nonzero_coefs=1, n_observed=2).start(3, ["age", "pulse", "BMI"])
        >>> example, indices = learner.ask()
        >>> example, learner.names(indices)
        (0, ['age', 'pulse'])
        """
        names = None if feature_names is None else [str(name) for name in feature_names]
        if names is not None and len(names) != n_features:
            raise InvalidInputError(f"feature_names has {len(names)} names; {n_features} are needed")
        check_distinct(names)
        cost_model = self._cost_model(n_features, names)
        return AttributeLearner(clone(self), self._learner(cost_model, None), names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    support_: Array
    learner_: Learner
    classes_: Array

    @property
    def required_features_(self) -> Array:
        """The names of the features that `predict` requires; their indices if the columns have no names."""
        check_is_fitted(self)
        return self.support_ if self._names is None else self._names[self.support_]

    @property
    def _names(self) -> Array | None:
        """The names of the columns; None if they have no names."""
        return getattr(self, "feature_names_in_", None)

    def _get_support_mask(self) -> Array:
        check_is_fitted(self)
        mask: Array = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.support_] = True
        return mask

    def _linear(self, X: Any) -> Array:
        """Return the linear predictor of each row of a table, or of each remaining example of a source."""
        check_is_fitted(self)
        x = self._bought(X) if isinstance(X, AttributeSource) else self._required(X)
        with np.errstate(over="ignore", invalid="ignore"):
            linear: Array = x @ np.ravel(self.coef_)[self.support_] + float(np.ravel(self.intercept_)[0])
        return linear

    def _bought(self, source: AttributeSource) -> Array:
        """Return the required attributes of the remaining examples of a source, NaN for incomplete or absent ones."""
        if source.n_features != self.n_features_in_:
            raise InvalidInputError(f"the source has {source.n_features} attributes, the model {self.n_features_in_}")
        self._check_names(source.feature_names)
        parts = [np.empty((0, self.support_.size))]
        while len(examples := source.draw(1024)):  # arbitrary: the number of rows in memory
            values = examples.observe(self.support_)
            parts.append(np.full((examples.reached, self.support_.size), np.nan))
            parts[-1][examples.places] = values
        return np.concatenate(parts)

    def _check_names(self, names: Array | None) -> None:
        """Raise if the names of the attributes of a source differ from those of the fitted columns."""
        known = self._names
        if known is None or names is None:
            return
        for j in np.flatnonzero(np.asarray(known != names))[:1]:
            raise InvalidInputError(
                f"attribute {j} of the source is {format_value(names[j])}, and was {format_value(known[j])} when "
                "the model was fitted; the order must be the same"
            )

    @without_overflow_warnings
    def _required(self, X: Any) -> Array:
        """Return the required columns of a table; a data frame may lack the other columns."""
        names = self._names
        if names is not None and hasattr(X, "columns") and len(X.columns) != len(names):
            missing = [str(name) for name in self.required_features_ if name not in list(X.columns)]
            if missing:
                raise InvalidInputError(f"a prediction needs the columns {', '.join(missing)}, which X does not have")
            x: Any = np.asarray(X[self.required_features_.tolist()], dtype=np.float64)
        else:
            x = validated(self, X, accept_sparse="csr", dtype=np.float64, reset=False)[:, self.support_]
            x = x.toarray() if issparse(x) else x
        for row, column in np.argwhere(~np.isfinite(x))[:1]:
            raise InvalidInputError(
                f"row {row} has {x[row, column]} for {format_value(self.required_features_[column])}, which a "
                "prediction needs"
            )
        return np.asarray(x)

    @without_overflow_warnings
    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Array]:
        numeric, kinds = self._numeric_target, (np.float64, np.float32)
        X, y = validated(self, X, y, accept_sparse="csr", dtype=kinds, y_numeric=numeric, reset=reset)
        return X, np.asarray(y)

    def _encoded(self, y: Array, classes: Any = None) -> Array:
        """Return the targets as the algorithm codes them; `classes` are the labels, if they are known in advance."""
        return y

    def _source(self, X: Any, y: Array, *, shuffle: bool) -> ArraySource:
        seed = seed_of(self.random_state)
        return ArraySource(X, y, seed=seed, shuffle=shuffle, cost_model=self._cost_model(X.shape[1], self._names))

    def _cost_model(self, n_features: int, names: Any) -> CostModel:
        n_observed = self.n_observed
        if n_observed is None and self.costs is None and self.budget is None:
            n_observed = min(n_features, max(2, 2 * self._sparsity(n_features)))
        prices = {"costs": self.costs, "panels": self.panels, "budget": self.budget}
        return CostModel.of(n_features, n_observed, feature_names=names, **prices)

    def _sparsity(self, n_features: int) -> int:
        """Return s, the largest number of non-zero coefficients."""
        if self.n_nonzero_coefs is None:
            return max(1, n_features // 10)
        return checked_sparsity(self.n_nonzero_coefs, n_features)

    def _learner(self, cost_model: CostModel, length: int | None) -> Learner:
        return Learner.of(self._algorithm(cost_model.n_features), cost_model, length=length)

    def _algorithm(self, n_features: int) -> Algorithm[Any]:
        if isinstance(self.strategy, Algorithm):
            if not (self.n_nonzero_coefs is None and self.prediction_budget is None):
                raise InvalidInputError("a strategy has its own n_nonzero_coefs and prediction_budget; leave them out")
            if self.strategy.target != self._automatic.target:
                raise InvalidInputError(
                    f"{type(self).__name__} learns with the {_LOSSES[self._automatic.target]}, the strategy "
                    f"{type(self.strategy).__name__} with the {_LOSSES[self.strategy.target]}: use another strategy"
                )
            return self.strategy
        if self.strategy != "auto":
            raise InvalidInputError(
                f'strategy must be "auto" or an algorithm, such as Hybrid(...); got {format_value(self.strategy)}'
            )
        return self._automatic(self._sparsity(n_features), self.prediction_budget)

    def _learn(self, learner: Learner, source: AttributeSource) -> Self:
        """Learn from a source, and set the fitted attributes."""
        return self._set_result(learner.run(source), source.remaining)

    def _set_result(self, result: LearningResult, unused: int | None) -> Self:
        """Set the fitted attributes, and warn if the coefficients cannot be relied on."""
        learner = result.learner
        self.coef_: Array = result.w
        self.intercept_: Any = result.intercept
        self.support_ = result.support
        self.n_nonzero_coefs_ = int(self.support_.size)
        self.learner_ = learner
        self.learning_curve_ = result.learning_curve
        self.budget_ = Spending.of(learner.meter, learner.cost_model, self.support_, learner.dropped, unused)
        self.converged_ = not result.failure_reason
        self.stop_reason_ = result.failure_reason or result.message
        if result.failure_reason:
            warn(f"{type(self).__name__}: {result.failure_reason}", ConvergenceWarning)
        return self

    def _check_attributes(self) -> None:
        """Raise InvalidInputError if the fitted attributes contradict one another."""
        check_linear_model(self)

    def _set_columns(self, n_features: int, names: Any) -> None:
        """Set the number of columns and their names."""
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
