"""Sparse linear and logistic regression for examples whose attributes have to be paid for."""

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
        s, the largest number of non-zero coefficients, 0 <= s < s' (also s = s' if s' = n_features); default 10 % of
        the attributes, at least 1.
    n_observed : int, optional
        s', the number of attributes that may be observed of one example, 1 <= s' <= n_features; default twice
        `n_nonzero_coefs`, at least 2. s' - s of them explore attributes that are not in the model; s' >= 4 s is
        recommended.
    {strategy}
    costs : array, shape (n_features,), or mapping, optional
        Prices > 0 of the attributes, by position or by name, or with `panels` by panel; `budget` is then required.
    panels : sequence of labels, shape (n_features,), optional
        Attributes with the same label are bought together. A panel costs the sum of the prices of its attributes, or
        its own price if `costs` is a mapping.
    budget : float > 0, optional
        The largest cost of one example, in the unit of `costs`; it replaces `n_observed`.
    prediction_budget : float > 0, optional
        The largest cost of a prediction, in the unit of `costs`. The default, which is also the largest possible
        value, is the budget minus the highest price of a panel that costs at most half of the budget, or the whole
        budget if this buys all attributes.
    random_state : int, optional
        Seed of the order in which `fit` uses the rows. With None, the order is the same at every call."""

_ATTRIBUTES = """
    support_ : array of int
        The attributes with non-zero coefficients, increasing.
    n_nonzero_coefs_ : int
        The number of non-zero coefficients.
    required_features_ : array
        The attributes that a prediction needs: the names of `support_`, or the indices if the columns have no names.
    budget_ : Spending
        What was bought: numbers of ``attributes``, ``examples``, ``dropped`` examples (paid for, but a value was
        missing) and ``unused`` examples; ``max_per_example``, the most attributes of one example; and ``money``, the
        total cost. ``per_example`` is the budget for one example, and ``per_prediction`` the cost of a prediction.
    learning_curve_ : dict of arrays
        For each window of examples: "examples" and "attributes", the numbers bought until its end, and "squared_error",
        the mean squared error of predictions that were made before the examples were learned from. It is an unbiased
        estimate of the error at that time, without a test set.
    converged_ : bool
        False if the coefficients cannot be relied on, such as after too few examples to choose attributes.
    stop_reason_ : str
        The reason, or if there is none, why learning ended.
    learner_ : Learner
        The state of learning, from which `partial_fit` continues.
    n_features_in_, feature_names_in_ :
        The number of columns, and their names if they have any."""


@public_estimator(
    "limited_attribute_regression",
    parameters=_PARAMETERS,
    attributes=_ATTRIBUTES,
    strategy="""
    strategy : "auto" or Algorithm
        The algorithm. "auto" is `hardthresh.limited.AdaptiveHybrid`, which needs no tuning. The published algorithms
        `Exploration` and `Hybrid` have no intercept, so attributes and targets need mean 0, and they diverge if the
        step is too long. An algorithm has its own `n_nonzero_coefs`.""",
)
class LimitedAttributeRegression(RegressorMixin, LimitedAttributeModel):
    r"""Sparse linear regression that observes at most s' attributes of each example, or as many as a budget buys.

    .. math:: \min_{b, c} \; \mathbb{E} \, (x^\top b + c - y)^2 \quad \text{with at most } s \text{ non-zero } b_j

    where at most s' attributes of each example may be observed. The attributes to observe are chosen during learning.

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
        By the methods that learn: for settings out of range, or prices and budgets that contradict one another.

    Notes
    -----
    Cost: one pass over the examples, at most s' attributes of each; memory O(d + s'^2). Guarantee: no example costs
    more than the budget, with any strategy. The coefficients of ``strategy=Hybrid(...)`` have the error bound of
    Theorem 4.4 for equal prices, independent noise and suitable steps and batches. "auto" is a heuristic; in the
    experiments of ``papers/limited_attributes`` its error reaches that of complete rows after sufficiently many
    examples. Its coefficients are least squares on the chosen attributes, over the examples on which all of these are
    known to have been observed together. With prices or panels it chooses attributes greedily.

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

    With questions that a person or a device answers:

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
        """Return predictions, shape (n_samples,), in float64. Only `required_features_` are used.

        Parameters
        ----------
        X : array, scipy.sparse array, data frame or AttributeSource
            A complete table, or a data frame that has at least the required columns. From a source the required
            attributes of all remaining examples are bought and predicted, in its order; the prediction is NaN for an
            example that is absent or lacks one of them.

        Raises
        ------
        ValueError
            For a missing column, a required value that is not finite, or another number or other names of attributes.
        BudgetError
            If a prediction costs more than the budget of the source.
        """
        return self._linear(X)


@public_estimator(
    "limited_attribute_logistic_regression",
    parameters=_PARAMETERS,
    attributes=_ATTRIBUTES,
    strategy="""
    strategy : "auto" or Algorithm
        The algorithm, one for two classes. "auto" is `hardthresh.limited.LogisticHybrid`, which needs no tuning.""",
)
class LimitedAttributeLogisticRegression(ClassifierMixin, LimitedAttributeModel):
    r"""Sparse logistic regression for two classes that observes at most s' attributes of each example: a heuristic.

    .. math:: \min_{b, c} \; \mathbb{E} \log(1 + e^{u}) - y u, \quad u = x^\top b + c,
              \quad \text{with at most } s \text{ non-zero } b_j

    where at most s' attributes of each example may be observed. The support is chosen by least squares on the classes,
    coded 0 and 1.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : array, shape (2,)
        The labels, sorted; 0 and 1 for a source or for answers. Coefficients are log-odds of the second label.
    coef_ : array, shape (1, n_features)
        Coefficients; exactly 0 outside `support_`.
    intercept_ : array, shape (1,)
        The intercept.
    {attributes}

    Raises
    ------
    ValueError
        By the methods that learn: for settings out of range, or targets that are not of two classes.

    See Also
    --------
    hardthresh.limited.LogisticHybrid : The algorithm that learns the coefficients.

    Notes
    -----
    Cost: as `LimitedAttributeRegression`. Guarantee: no example costs more than the budget. The coefficients have none,
    because the theory of the paper is about the squared loss (heuristic). "squared_error" in `learning_curve_` is the
    Brier score.

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
        """Return the log-odds of the second class, shape (n_samples,). Only `required_features_` are used.

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
        """Return the more probable class of each row, shape (n_samples,).

        For a source, the prediction is None for an example that is absent or lacks a required attribute; the array then
        has dtype object.

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
