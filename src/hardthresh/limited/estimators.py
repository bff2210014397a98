"""Estimators for examples whose attributes are paid for: they choose which attributes of which example to buy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.errors import InvalidInputError, format_value, warn
from hardthresh.core.registry import register
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array
from hardthresh.estimators.documentation import names_methods
from hardthresh.estimators.soundness import check_linear_model

from .algorithms import AdaptiveHybrid, LogisticHybrid
from .attribute_learner import AttributeLearner
from .contract import Algorithm, checked_sparsity
from .cost_model import CostModel
from .learner import Learner
from .sources import ArraySource, AttributeSource
from .sources.base import check_distinct

__all__ = ["LimitedAttributeLogisticRegression", "LimitedAttributeRegression"]


@stored("purchase/budget")
@dataclass(frozen=True)
class Budget:
    """The cost of a model.

    Attributes
    ----------
    attributes : int
        Attributes bought.
    examples : int
        Examples drawn.
    dropped : int
        Those of which something that was asked for could not be had: paid, but not learned from.
    unused : int or None
        Examples left in the source; None where that is not known.
    max_per_example : int
        The most attributes bought of one example.
    money : float
        What all of it cost; with equal prices the number of attributes.
    per_example : float
        What one example was allowed to cost.
    per_prediction : float
        What a prediction costs.
    """

    attributes: int
    examples: int
    dropped: int
    unused: int | None
    max_per_example: int
    money: float
    per_example: float
    per_prediction: float


def _allowance(cost_model: CostModel) -> float:
    """Return what may be observed of an example: a number of attributes where they have one price, else money."""
    return cost_model.n_observed if cost_model.uniform else cost_model.budget


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
        """Learn from a complete table as if its attributes had to be bought: each row is used once, in random order.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Finite numbers; an `ArraySource` with gaps can be given to `fit_source`.
        y : array, shape (n_samples,)
            Targets.

        Returns
        -------
        self

        Warns
        -----
        ConvergenceWarning
            If there are too few rows to choose attributes by more than chance.
        """
        X, y = self._validated(X, y, reset=True)
        source = self._source(X, self._encoded(y, None), shuffle=True)
        return self._fit_learner(self._new_learner(source.cost_model, source.remaining), source)

    def fit_source(self, source: AttributeSource) -> Self:
        """Learn from a source until it is empty.

        Parameters
        ----------
        source : AttributeSource
            Its budget and prices count; settings of the estimator must not contradict them.

        Returns
        -------
        self
        """
        if not isinstance(source, AttributeSource):
            raise InvalidInputError(
                f"a source is needed, such as ArraySource(X, y, n_observed=50); got {format_value(source)}"
            )
        if self.n_observed not in (None, _allowance(source.cost_model)):
            raise InvalidInputError(
                f"n_observed is {self.n_observed}, but the source allows {_allowance(source.cost_model):g} for an "
                "example; leave n_observed out, the source has the budget"
            )
        if not (self.costs is None and self.panels is None and self.budget is None):
            raise InvalidInputError("costs, panels and budget belong to the source; leave them out here")
        self._set_columns(source.n_features, source.feature_names)
        self._set_classes()
        return self._fit_learner(self._new_learner(source.cost_model, source.remaining), source)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from more rows, in the order given; pieces give the same model as all rows at once.

        Parameters
        ----------
        X, y
            As in `fit`.
        classes : sequence of two labels, optional
            Of a classifier: both labels, if the first piece may lack one.

        Returns
        -------
        self
        """
        first = not hasattr(self, "learner_")
        X, y = self._validated(X, y, reset=first)
        y = self._encoded(y, classes, keep=not first)
        if first:
            source = self._source(X, y, shuffle=False)
            return self._fit_learner(self._new_learner(source.cost_model, None), source)
        self._check_unchanged(self.learner_)
        self.learner_.forget_length()
        return self._fit_learner(self.learner_, ArraySource(X, y, cost_model=self.learner_.cost_model, shuffle=False))

    def _check_unchanged(self, learner: Learner) -> None:
        """Raise if the settings are no longer those that a learner was made with."""
        cost_model, changed = learner.cost_model, self._algorithm(learner.cost_model.n_features) != learner.algorithm
        if self.n_observed not in (None, _allowance(cost_model)):
            changed = True
        if not (self.costs is None and self.panels is None and self.budget is None):
            names = getattr(self, "feature_names_in_", None)
            terms = self._cost_model(cost_model.n_features, names)
            changed = changed or not (
                np.array_equal(terms.panel, cost_model.panel)
                and np.array_equal(terms.price, cost_model.price)
                and terms.budget == cost_model.budget
            )
        if changed:
            raise InvalidInputError(
                "settings cannot change between the pieces that a model learns from: it was begun with "
                f"{learner.algorithm} and a budget of {cost_model.budget:g} for an example; fit begins anew"
            )

    def start(self, n_features: int, feature_names: Sequence[str] | None = None) -> AttributeLearner:
        """Return a learner that asks which attributes to observe, one example after the other.

        Parameters
        ----------
        n_features : int >= 1
            How many attributes there are.
        feature_names : sequence of str, optional
            Their names; questions then come with names.

        Returns
        -------
        AttributeLearner
        """
        names = None if feature_names is None else [str(name) for name in feature_names]
        if names is not None and len(names) != n_features:
            raise InvalidInputError(f"feature_names has {len(names)} names; {n_features} are needed")
        check_distinct(names)
        cost_model = self._cost_model(n_features, names)
        return AttributeLearner(clone(self), self._new_learner(cost_model, None), names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    support_: Array
    learner_: Learner
    classes_: Array

    @property
    def required_features_(self) -> Array:
        """Names (or indices, without names) of the features that `predict` requires."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return self.support_ if names is None else names[self.support_]

    def _get_support_mask(self) -> Array:
        check_is_fitted(self)
        mask: Array = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.support_] = True
        return mask

    def _linear(self, X: Any) -> Array:
        """Return the linear predictor of each row of a table, or of each example that is left in a source."""
        check_is_fitted(self)
        x = self._bought(X) if isinstance(X, AttributeSource) else self._required(X)
        with np.errstate(over="ignore", invalid="ignore"):
            linear: Array = x @ np.ravel(self.coef_)[self.support_] + float(np.ravel(self.intercept_)[0])
        return linear

    def _bought(self, source: AttributeSource) -> Array:
        """Return the required attributes of all examples left in a source, NaN for one that cannot be had whole."""
        if source.n_features != self.n_features_in_:
            raise InvalidInputError(f"the source has {source.n_features} attributes, the model {self.n_features_in_}")
        self._check_names(source.feature_names)
        parts = [np.empty((0, self.support_.size))]
        while len(examples := source.draw(1024)):
            values = examples.observe(self.support_)
            rows = np.full((examples.reached, self.support_.size), np.nan)
            rows[examples.places] = values
            parts.append(rows)
        return np.concatenate(parts)

    def _check_names(self, names: Array | None) -> None:
        """Raise if the attributes of a source have names, but not those of the columns that the model knows."""
        known = getattr(self, "feature_names_in_", None)
        if known is None or names is None:
            return
        for j in np.flatnonzero(np.asarray(known != names))[:1]:
            raise InvalidInputError(
                f"attribute {j} of the source is {format_value(names[j])}, and was {format_value(known[j])} when "
                "the model was fitted; the order must be the same"
            )

    @without_overflow_warnings
    def _required(self, X: Any) -> Array:
        """Return the required columns of a table, which may have no others if they have names."""
        names = getattr(self, "feature_names_in_", None)
        if names is not None and hasattr(X, "columns") and len(X.columns) != len(names):
            missing = [str(name) for name in self.required_features_ if name not in list(X.columns)]
            if missing:
                raise InvalidInputError(f"a prediction needs the columns {', '.join(missing)}, which X does not have")
            x: Any = np.asarray(X[self.required_features_.tolist()], dtype=np.float64)
        else:
            x = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)[:, self.support_]
            x = x.toarray() if issparse(x) else x
        for row, column in np.argwhere(~np.isfinite(x))[:1]:
            raise InvalidInputError(
                f"row {row} has {x[row, column]} for {format_value(self.required_features_[column])}, which a "
                "prediction needs"
            )
        return np.asarray(x)

    @without_overflow_warnings
    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Array]:
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=(np.float64, np.float32),
            y_numeric=self._numeric_target,
            reset=reset,
        )
        return X, np.asarray(y)

    def _encoded(self, y: Array, classes: Any, *, keep: bool = False) -> Array:
        """Return the targets in the coding of the algorithm."""
        return y

    def _set_classes(self) -> None:
        """Set `classes_` for targets that are numbers."""

    def _source(self, X: Any, y: Array, *, shuffle: bool) -> ArraySource:
        names = getattr(self, "feature_names_in_", None)
        seed = 0 if self.random_state is None else int(np.random.RandomState(self.random_state).randint(2**31 - 1))
        return ArraySource(X, y, seed=seed, shuffle=shuffle, cost_model=self._cost_model(X.shape[1], names))

    def _cost_model(self, n_features: int, names: Any) -> CostModel:
        n_observed = self.n_observed
        if n_observed is None and self.costs is None and self.budget is None:
            n_observed = min(n_features, max(2, 2 * self._sparsity(n_features)))
        return CostModel.of(
            n_features,
            n_observed,
            costs=self.costs,
            panels=self.panels,
            budget=self.budget,
            feature_names=None if names is None else list(names),
        )

    def _sparsity(self, n_features: int) -> int:
        """Return s, the largest number of non-zero coefficients."""
        if self.n_nonzero_coefs is None:
            return max(1, n_features // 10)
        return checked_sparsity(self.n_nonzero_coefs, n_features)

    def _new_learner(self, cost_model: CostModel, length: int | None) -> Learner:
        return Learner.of(self._algorithm(cost_model.n_features), cost_model, length=length)

    def _algorithm(self, n_features: int) -> Algorithm[Any]:
        if isinstance(self.strategy, Algorithm):
            if not (self.n_nonzero_coefs is None and self.prediction_budget is None):
                raise InvalidInputError(
                    "a strategy has its own n_nonzero_coefs and prediction_budget; leave them out here"
                )
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

    def _fit_learner(self, learner: Learner, source: AttributeSource) -> Self:
        """Run the learner on the source and set the fitted attributes."""
        result = learner.run(source)
        self._keep(learner, result.w, result.intercept, source.remaining, result.message)
        return self._warn(result.message if learner.diverged else result.failure_reason)

    def _keep(self, learner: Learner, w: Array, intercept: Any, unused: int | None, reason: str) -> None:
        cost_model, meter = learner.cost_model, learner.meter
        self.coef_: Array = w
        self.intercept_: Any = intercept
        self.support_ = np.flatnonzero(w)
        self.n_nonzero_coefs_ = int(self.support_.size)
        self.learner_ = learner
        self.learning_curve_ = learner.curve.columns()
        self.stop_reason_ = reason
        self.budget_ = Budget(
            meter.attributes,
            meter.examples,
            learner.dropped,
            unused,
            meter.max_per_example,
            meter.money,
            cost_model.budget,
            cost_model.cost(self.support_),
        )

    def _warn(self, failure_reason: str) -> Self:
        self.converged_ = not failure_reason
        if failure_reason:
            self.stop_reason_ = failure_reason
            warn(f"{type(self).__name__}: {failure_reason}", ConvergenceWarning)
        return self

    def _check_attributes(self) -> None:
        """Raise InvalidInputError if the fitted attributes do not fit together."""
        check_linear_model(self)

    def _set_columns(self, n_features: int, names: Any) -> None:
        """Set the number of columns and their names."""
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


_LOSSES = {"number": "squared loss of numbers", "class": "logistic loss of two classes"}

_PARAMETERS = """n_nonzero_coefs : int, optional
        s, at most so many coefficients are not zero, 0 <= s < s'; default 10 % of the attributes, at least 1.
    n_observed : int, optional
        s', how many attributes of one example may be observed; default twice `n_nonzero_coefs`, at least 2. Those
        beyond s explore, so a few more than s are needed, and many more are better.
    strategy : "auto" or Algorithm
        "auto" needs no tuning. {strategies}
    costs : array, shape (n_features,), or mapping, optional
        Prices > 0 of the attributes, by position or by name, or with `panels` by panel; `budget` is then needed.
    panels : sequence of labels, shape (n_features,), optional
        Attributes with the same label are bought together; a panel costs what its attributes cost, or its own price.
    budget : float, optional
        What may be spent on one example, in the unit of `costs`, in the place of `n_observed`.
    prediction_budget : float, optional
        What the attributes of a prediction may cost; by default so much that the dearest panel can still be explored
        beside them.
    random_state : int, optional
        Seed of the order in which `fit` takes the rows; None is the same order at every call."""

_PUBLISHED = """`hardthresh.limited.Exploration` and `Hybrid` are the published algorithms: they have
        no intercept, so attributes and targets need mean 0, and with a step that is too long they diverge."""
_OTHERS = "Else an algorithm for two classes: a `hardthresh.limited.LogisticHybrid`."

_ATTRIBUTES = """support_ : array of int
        The attributes with non-zero coefficients, increasing.
    n_nonzero_coefs_ : int
        How many there are.
    required_features_ : array
        The same by name, if the columns have names: what has to be known for a prediction.
    budget_ : Budget
        What was bought: ``attributes``, ``examples``, ``dropped``, ``unused``, ``max_per_example``, ``money``,
        ``per_example``, ``per_prediction``.
    learning_curve_ : dict of arrays
        "examples" and "attributes" used, and "squared_error", the mean error of predictions that were made before their
        examples were learned from: an honest estimate of the error at that time, without a test set.
    converged_, stop_reason_ :
        Whether there is nothing to be said against the fit, and what.
    learner_ : Learner
        The state of learning, which `partial_fit` goes on from.
    n_features_in_, feature_names_in_ :
        The columns."""


def _documented(cls: type) -> type:
    """Put the shared descriptions where a docstring says so."""
    assert cls.__doc__ is not None
    strategies = _PUBLISHED if issubclass(cls, RegressorMixin) else _OTHERS
    parameters = _PARAMETERS.replace("{strategies}", strategies)
    cls.__doc__ = cls.__doc__.replace("{parameters}", parameters).replace("{attributes}", _ATTRIBUTES)
    return cls


@_documented
@names_methods(LimitedAttributeModel)
@register("estimator", "limited_attribute_regression", lambda: [LimitedAttributeRegression()])
class LimitedAttributeRegression(RegressorMixin, LimitedAttributeModel):
    r"""Sparse linear regression when every observed attribute costs: at most s' attributes of each example are seen.

    .. math:: \min_{b, c} \; \mathbb{E} \, (x^\top b + c - y)^2 \quad \text{with at most } s \text{ non-zero } b_j

    where of each example at most s' attributes may be observed, chosen one example at a time.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    coef_ : array, shape (n_features,)
        Coefficients; exactly 0 outside `support_`.
    intercept_ : float
        The intercept.
    {attributes}

    Raises
    ------
    ValueError
        For settings out of range, or prices and budgets that contradict one another.

    Notes
    -----
    Cost: one pass over the examples, at most s' attributes of each; memory O(d + s'^2). Guarantee: with
    ``strategy=Hybrid(...)`` and equal prices that of Theorem 4.4, for independent noise and suitable steps and batches.
    "auto" is a heuristic that is measured to be as good as full information once it has seen enough
    (``papers/limited_attributes``). With prices or panels the choice of what to explore and what to keep is greedy: a
    heuristic; what remains is that no example ever costs more than the budget, and that the coefficients are the least
    squares on the chosen attributes over all examples on which they were observed.

    References
    ----------
    Murata and Suzuki (2018), *Sample efficient stochastic gradient iterative hard thresholding method for stochastic
    sparse linear regression with limited attribute observation*.

    Examples
    --------
    >>> import numpy as np
    >>> import hardthresh as ht
    >>> X = np.random.default_rng(0).standard_normal((6000, 40))
    >>> y = X[:, 4] - 2 * X[:, 30] + 1
    >>> model = ht.LimitedAttributeRegression(n_nonzero_coefs=2, n_observed=8).fit(X, y)
    >>> model.support_, model.coef_[model.support_].round(6), round(model.intercept_, 6)
    (array([ 4, 30]), array([ 1., -2.]), 1.0)
    >>> model.budget_.max_per_example, model.budget_.per_prediction
    (8, 2.0)

    Bought one by one, for a person or a device to answer:

    >>> learner = ht.LimitedAttributeRegression(n_nonzero_coefs=2, n_observed=8).start(n_features=40)
    >>> for row in range(1000):
    ...     example, indices = learner.ask()
    ...     learner.tell(example, X[row, indices], y[row])
    >>> learner.model().support_
    array([ 4, 30])
    """

    _automatic = AdaptiveHybrid
    _numeric_target = True

    def predict(self, X: Any) -> Array:
        """Return predictions, shape (n_samples,). Only `required_features_` are read, or bought.

        Parameters
        ----------
        X : array, scipy.sparse array, data frame or AttributeSource
            A complete table, or a data frame with fewer columns, the required ones among them. Of a source all examples
            that are left are predicted, in its order: NaN for one of which something required cannot be had.
        """
        return self._linear(X)


@_documented
@names_methods(LimitedAttributeModel)
@register("estimator", "limited_attribute_logistic_regression", lambda: [LimitedAttributeLogisticRegression()])
class LimitedAttributeLogisticRegression(ClassifierMixin, LimitedAttributeModel):
    r"""Sparse logistic regression of two classes when every observed attribute costs: a heuristic.

    .. math:: \min_{b, c} \; \mathbb{E} \log(1 + e^{u}) - y u, \quad u = x^\top b + c,
              \quad \text{with at most } s \text{ non-zero } b_j

    where of each example at most s' attributes may be observed. The support is chosen by least squares on the classes.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : array, shape (2,)
        The labels; coefficients are log-odds of the second. Of a source, or of answers, they are 0 and 1.
    coef_ : array, shape (1, n_features)
        Coefficients; exactly 0 outside `support_`.
    intercept_ : array, shape (1,)
        The intercept.
    {attributes}

    See Also
    --------
    hardthresh.limited.LogisticHybrid : How the coefficients are learned.

    Notes
    -----
    Cost: as `LimitedAttributeRegression`. Guarantee: none, the paper's theory is about the squared loss (heuristic).
    "squared_error" in `learning_curve_` is the Brier score.

    Examples
    --------
    >>> import numpy as np
    >>> import hardthresh as ht
    >>> X = np.random.default_rng(0).standard_normal((6000, 40))
    >>> y = np.where(X[:, 4] - 2 * X[:, 30] > 0, "ill", "well")
    >>> model = ht.LimitedAttributeLogisticRegression(n_nonzero_coefs=2, n_observed=8).fit(X, y)
    >>> model.support_, model.classes_, round(model.score(X, y), 1)
    (array([ 4, 30]), array(['ill', 'well'], dtype='<U4'), 1.0)
    """

    _automatic = LogisticHybrid
    _numeric_target = False

    def decision_function(self, X: Any) -> Array:
        """Return the log-odds of the second class, shape (n_samples,), from `required_features_` alone."""
        return self._linear(X)

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the two classes, shape (n_samples, 2)."""
        p = expit(self._linear(X))
        return np.column_stack([1 - p, p])

    def predict(self, X: Any) -> Array:
        """Return the likelier class of each row, shape (n_samples,).

        Of a source None for an example of which something required cannot be had, and objects then.
        """
        linear = self._linear(X)
        labels: Array = self.classes_[(linear > 0).astype(np.intp)]
        unknown = np.isnan(linear)
        if np.any(unknown):
            labels = labels.astype(object)
            labels[unknown] = None
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _encoded(self, y: Array, classes: Any, *, keep: bool = False) -> Array:
        check_classification_targets(y)
        labels = self.classes_ if keep else np.unique(y if classes is None else classes)
        if labels.size < 2:
            raise InvalidInputError(
                f"y has one class only, {labels.tolist()}; two are needed, or in partial_fit the list of them, classes="
            )
        if labels.size > 2:
            raise InvalidInputError(
                "Only binary classification is supported. The type of the target is multiclass: y has "
                f"{labels.size} classes; fit one class against the rest"
            )
        for label in np.setdiff1d(y, labels).tolist()[:1]:
            raise InvalidInputError(f"y has the label {format_value(label)}; the classes are {labels.tolist()}")
        self.classes_ = labels
        return (y == labels[1]).astype(np.float64)

    def _set_classes(self) -> None:
        self.classes_ = np.array([0, 1])

    def _keep(self, learner: Learner, w: Array, intercept: Any, unused: int | None, reason: str) -> None:
        super()._keep(learner, w, intercept, unused, reason)
        self.coef_, self.intercept_ = w[np.newaxis], np.array([intercept])
