"""Estimators for examples whose attributes are paid for: they choose which attributes of which example to buy."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.typing import Array
from hardthresh.estimators.documentation import public_estimator
from hardthresh.estimators.linear.classifier import check_two_classes

from .algorithms import AdaptiveHybrid, LogisticHybrid
from .learner import LearningResult
from .model import LimitedAttributeModel

__all__ = ["LimitedAttributeLogisticRegression", "LimitedAttributeRegression"]

_PARAMETERS = """
    n_nonzero_coefs : int, optional
        s, at most so many coefficients are not zero, 0 <= s < s'; default 10 % of the attributes, at least 1.
    n_observed : int, optional
        s', how many attributes of one example may be observed; default twice `n_nonzero_coefs`, at least 2. Those
        beyond s explore, so a few more than s are needed, and many more are better.
    {strategy}
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

_ATTRIBUTES = """
    support_ : array of int
        The attributes with non-zero coefficients, increasing.
    n_nonzero_coefs_ : int
        How many there are.
    required_features_ : array
        The same by name, if the columns have names: what has to be known for a prediction.
    budget_ : Spending
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


@public_estimator(
    "limited_attribute_regression",
    parameters=_PARAMETERS,
    attributes=_ATTRIBUTES,
    strategy="""
    strategy : "auto" or Algorithm
        "auto" needs no tuning. `hardthresh.limited.Exploration` and `Hybrid` are the published algorithms: they have no
        intercept, so attributes and targets need mean 0, and with a step that is too long they diverge.""",
)
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


@public_estimator(
    "limited_attribute_logistic_regression",
    parameters=_PARAMETERS,
    attributes=_ATTRIBUTES,
    strategy="""
    strategy : "auto" or Algorithm
        "auto" needs no tuning. Else an algorithm for two classes: a `hardthresh.limited.LogisticHybrid`.""",
)
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
        """Return the log-odds of the second class, shape (n_samples,), from `required_features_` alone.

        Parameters
        ----------
        X : array, scipy.sparse array, data frame or AttributeSource
            As for `LimitedAttributeRegression.predict`.
        """
        return self._linear(X)

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the two classes, shape (n_samples, 2).

        Parameters
        ----------
        X : array, scipy.sparse array, data frame or AttributeSource
            As for `LimitedAttributeRegression.predict`.
        """
        p = expit(self._linear(X))
        return np.column_stack([1 - p, p])

    def predict(self, X: Any) -> Array:
        """Return the likelier class of each row, shape (n_samples,).

        Of a source None for an example of which something required cannot be had, and objects then.

        Parameters
        ----------
        X : array, scipy.sparse array, data frame or AttributeSource
            As for `LimitedAttributeRegression.predict`.
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

    def _encoded(self, y: Array, classes: Any = None) -> Array:
        check_classification_targets(y)
        labels = np.unique(y if classes is None else classes)
        check_two_classes(labels, ", or in partial_fit the list of them, classes=")
        for label in np.setdiff1d(y, labels).tolist()[:1]:
            raise InvalidInputError(f"y has the label {format_value(label)}; the classes are {labels.tolist()}")
        self.classes_ = labels
        return (y == labels[1]).astype(np.float64)

    def _set_columns(self, n_features: int, names: Any) -> None:
        super()._set_columns(n_features, names)
        self.classes_ = np.array([0, 1])

    def _set_result(self, result: LearningResult, unused: int | None) -> Self:
        super()._set_result(result, unused)
        self.coef_, self.intercept_ = self.coef_[np.newaxis], np.array([self.intercept_])
        return self
