"""Sparse logistic regression, for two classes or more."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from hardthresh.arrays import namespace, where_true
from hardthresh.core.objective import Evaluation
from hardthresh.core.result import Result
from hardthresh.losses import Logistic, Loss, Multinomial, VectorLoss
from hardthresh.losses.logistic import sigmoid
from hardthresh.losses.multinomial import log_probabilities

from ..documentation import public_estimator
from ..parameters import own_parameters
from ..upgrades import CHOSEN_BY_EBIC, CHOSEN_BY_FOLDS, one_ridge, tenth_of_features, with_defaults
from .classifier import LinearClassifier
from .cross_validation import SparseLinearModelCV
from .lazy import lazy
from .problem import Problem
from .separation import separates


@public_estimator(
    "logistic_regression",
    upgrades=[
        tenth_of_features,
        with_defaults(bounds=None, categorical_features=None, class_weight=None),
        CHOSEN_BY_EBIC,
    ],
)
@own_parameters(class_weight=None)
class SparseLogisticRegression(LinearClassifier):
    r"""Logistic regression of two classes, or more, with at most k features.

    .. math:: \min_{b, c} \; \frac{1}{\sum_i s_i} \sum_i s_i \bigl(\log(1 + e^{u_i}) - y_i u_i\bigr)
              + \frac{\alpha}{2} \sum_j \sigma_j^2 b_j^2, \qquad u_i = x_i^\top b + c + o_i,
              \quad \text{with at most } k \text{ non-zero } b_j

    with y_i = 1 for the second of the two classes and 0 for the first, weights s, offsets o, and :math:`\sigma_j` the
    standard deviation of column j (1 if not standardised). With more than two classes c = 1, ..., C, each class has its
    own linear predictor:

    .. math:: \min_{B, c} \; \frac{1}{\sum_i s_i} \sum_i s_i \Bigl(\log \sum_c e^{u_{ic}} - u_{i y_i}\Bigr)
              + \frac{\alpha}{2} \sum_j \sigma_j^2 \|b_j\|^2, \qquad u_i = B^\top x_i + c + o_i,
              \quad \text{with at most } k \text{ non-zero rows } b_j

    so that a feature is chosen for all classes or for none. There is no reference class. Adding a constant to all
    linear predictors of a row does not change the loss, so the solution of least norm is returned: the coefficients of
    each feature, and the intercepts, sum to 0 over the classes.

    Parameters
    ----------
    {class_weight}
    {parameters}

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
        The labels, sorted. With two classes, the coefficients are changes of the log-odds of the second; with more,
        `coef_` has one row for each class.
    coef_ : array, shape (1, n_features) or (n_classes, n_features)
        Coefficients on the scale of the data; exactly 0 for features not chosen.
    intercept_ : array, shape (1,) or (n_classes,)
        The intercepts.
    separated_ : bool
        Whether the chosen features separate the classes of the training rows perfectly, that is, whether some
        coefficients of these features (not necessarily the fitted ones) classify every row correctly. The loss then
        decreases without end as the coefficients grow, and only the ridge, or the end of the run, determines their
        size.
    {attributes}

    Notes
    -----
    {guarantee}

    The default ridge is small but not zero: a few features out of many often separate the classes perfectly, and then
    the loss has no finite minimiser without a ridge. `separated_` is computed for any ridge.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import SparseLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 50))
    >>> y = np.where(2 * X[:, 4] - 2 * X[:, 30] + rng.logistic(size=200) > 0, "ill", "well")
    >>> model = SparseLogisticRegression(n_nonzero_coefs=2).fit(X, y)
    >>> model.support_, model.classes_
    (array([ 4, 30]), array(['ill', 'well'], dtype='<U4'))

    >>> from sklearn.datasets import load_iris
    >>> iris = load_iris()
    >>> model = SparseLogisticRegression(n_nonzero_coefs=2).fit(iris.data, iris.target_names[iris.target])
    >>> model.support_, model.coef_.shape, model.score(iris.data, iris.target_names[iris.target]).__round__(2)
    (array([2, 3]), (3, 4), 0.95)
    """

    _loss_type: ClassVar[type[Loss]] = Logistic
    _takes_more_classes: ClassVar[bool] = True

    separated_: bool

    def _loss_for(self, y: Any) -> Loss | VectorLoss:
        return self._loss if self.classes_.size == 2 else Multinomial(int(self.classes_.size))

    def _outputs_of(self, y: np.ndarray) -> tuple[int, ...]:
        classes = self._classes_of_stream
        count = int((np.unique(y) if classes is None else classes).size)
        return (count,) if count > 2 else ()

    def _fitted(self, coef: Any, intercept: Any) -> dict[str, Any]:
        if coef.ndim == 2:
            return super()._fitted(coef, intercept)
        intercept = namespace(coef).reshape(intercept, (1,))
        return {"coef_": coef[None, :], "intercept_": intercept, "support_": where_true(coef != 0)}

    def _diagnostics(self, problem: Problem, result: Result) -> dict[str, Any]:
        separated = problem.separated(result.w)
        return {"separated_": separates(problem, result) if separated is None else separated}

    def _fit_scores(self, problem: Problem, at: Evaluation) -> dict[str, float]:
        return super()._fit_scores(problem, at) | {"accuracy": problem.share_right(at, _most_probable)}

    @lazy
    def decision_function(self, X: Any, offset: Any = None) -> Any:
        """Return the log-odds of the second class, or the linear predictors of all classes.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data.
        offset : array, shape (n_samples,) or (n_samples, n_classes), optional
            A known part of the linear predictor.

        Returns
        -------
        array, shape (n_samples,) or (n_samples, n_classes)
            The log-odds of the second of two classes. With more classes, the linear predictor of each class; the
            largest belongs to the most probable class.
        """
        return self._linear_predictor(X, offset, "decision_function")

    @lazy
    def predict_proba(self, X: Any, offset: Any = None) -> Any:
        """Return the probabilities of the classes, shape (n_samples, n_classes).

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data; only the chosen columns are read.
        offset : array, shape (n_samples,) or (n_samples, n_classes), optional
            A known part of the linear predictor.
        """
        u = self._linear_predictor(X, offset, "predict_proba")
        if u.ndim == 2:
            return Multinomial(int(u.shape[1])).mean(u)
        return namespace(u).stack([sigmoid(-u), sigmoid(u)], axis=1)

    @lazy
    def predict_log_proba(self, X: Any, offset: Any = None) -> Any:
        """Return the logarithms of the probabilities, which are accurate even where the probabilities underflow.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data; only the chosen columns are read.
        offset : array, shape (n_samples,) or (n_samples, n_classes), optional
            A known part of the linear predictor.
        """
        u = self._linear_predictor(X, offset, "predict_log_proba")
        if u.ndim == 2:
            return log_probabilities(u)
        return namespace(u).stack([-self._loss.value(0 * u + c, u) for c in range(2)], axis=1)

    @lazy
    def predict(self, X: Any, offset: Any = None) -> Any:
        """Return the most probable class of each row, shape (n_samples,).

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data; only the chosen columns are read.
        offset : array, shape (n_samples,) or (n_samples, n_classes), optional
            A known part of the linear predictor.
        """
        return self._decode_target(_most_probable(self._linear_predictor(X, offset, "predict")))


@public_estimator(
    "logistic_regression_cv",
    upgrades=[
        one_ridge(Logistic.default_ridge),
        with_defaults(bounds=None, categorical_features=None, class_weight=None),
        CHOSEN_BY_FOLDS,
    ],
)
@own_parameters(class_weight=None)
class SparseLogisticRegressionCV(SparseLinearModelCV, SparseLogisticRegression):
    """Logistic regression of two classes, or more, with the number of features chosen by cross-validation.

    Parameters
    ----------
    {class_weight}
    {cv_parameters}

    Attributes
    ----------
    {cv_attributes}

    Notes
    -----
    {cv_guarantee}

    Examples
    --------
    >>> from hardthresh import SparseLogisticRegressionCV
    >>> from hardthresh.datasets import load_colon
    >>> colon = load_colon()
    >>> model = SparseLogisticRegressionCV(n_nonzero_coefs=range(1, 6)).fit(colon.data, colon.target)
    >>> model.scores_.shape
    (5, 5)
    """


def _most_probable(u: Any) -> Any:
    """Return the number of the most probable class of each row, in the precision of its linear predictors."""
    xp = namespace(u)
    return xp.astype(u > 0 if u.ndim == 1 else xp.argmax(u, axis=1), u.dtype)
