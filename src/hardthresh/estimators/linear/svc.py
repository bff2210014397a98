"""Sparse linear support vector classification, for two classes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from hardthresh.arrays import namespace, where_true
from hardthresh.core.objective import Evaluation
from hardthresh.losses import Loss, SquaredHinge

from ..documentation import public_estimator
from ..parameters import own_parameters
from ..upgrades import CHOSEN_BY_EBIC, CHOSEN_BY_FOLDS
from .classifier import LinearClassifier, check_two_classes
from .cross_validation import SparseLinearModelCV
from .lazy import lazy
from .problem import Problem


@public_estimator("linear_svc", upgrades=[CHOSEN_BY_EBIC])
@own_parameters(class_weight=None)
class SparseLinearSVC(LinearClassifier):
    r"""Linear support vector classification of two classes with at most k features, with the squared hinge loss.

    .. math:: \min_{b, c} \; \frac{1}{2 \sum_i s_i} \sum_i s_i \max(0, 1 - y_i u_i)^2
              + \frac{\alpha}{2} \sum_j \sigma_j^2 b_j^2, \qquad u_i = x_i^\top b + c + o_i,
              \quad \text{with at most } k \text{ non-zero } b_j

    with y_i = 1 for the second of the two classes and -1 for the first, weights s, offsets o, and :math:`\sigma_j` the
    standard deviation of column j (1 if not standardised).

    Parameters
    ----------
    {class_weight}
    {parameters}

    Attributes
    ----------
    classes_ : array, shape (2,)
        The labels, sorted. The second class is predicted where `decision_function` is positive.
    coef_ : array, shape (1, n_features)
        Coefficients on the scale of the data; exactly 0 for features not chosen.
    intercept_ : array, shape (1,)
        The intercept.
    {attributes}

    See Also
    --------
    SparseLinearSVCCV : Chooses k by cross-validation.
    SparseLogisticRegression : Estimates the probabilities of classes.
    sklearn.linear_model.LogisticRegression, sklearn.svm.LinearSVC : Without a limit on the number of features. Their
        penalty corresponds to the ridge 1 / (2 n C), for n rows; and `LinearSVC` penalises its intercept.

    Notes
    -----
    {guarantee}

    Rows beyond the margin, with :math:`y_i u_i \ge 1`, do not contribute to the loss. The loss is not a negative
    log-likelihood, so ``n_nonzero_coefs="auto"`` uses n times the logarithm of the mean loss instead, as for least
    squares.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import SparseLinearSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 50))
    >>> y = np.where(2 * X[:, 4] - 2 * X[:, 30] + rng.logistic(size=200) > 0, "ill", "well")
    >>> model = SparseLinearSVC(n_nonzero_coefs=2).fit(X, y)
    >>> model.support_, model.classes_
    (array([ 4, 30]), array(['ill', 'well'], dtype='<U4'))
    """

    _loss_type: ClassVar[type[Loss]] = SquaredHinge

    def _encode_target(self, y: np.ndarray, *, reset: bool) -> np.ndarray:
        number = super()._encode_target(y, reset=reset)
        check_two_classes(self.classes_)
        return 2.0 * number - 1.0

    def _decode_target(self, y: Any) -> Any:
        return super()._decode_target(namespace(y).astype(y > 0, y.dtype))

    def _fitted(self, coef: Any, intercept: Any) -> dict[str, Any]:
        intercept = namespace(coef).reshape(intercept, (1,))
        return {"coef_": coef[None, :], "intercept_": intercept, "support_": where_true(coef != 0)}

    def _fit_scores(self, problem: Problem, at: Evaluation) -> dict[str, float]:
        accuracy = problem.share_right(at, lambda u: np.where(u > 0, 1.0, -1.0))
        return super()._fit_scores(problem, at) | {"accuracy": accuracy}

    @lazy
    def decision_function(self, X: Any, offset: Any = None) -> Any:
        """Return the linear predictor of each row, shape (n_samples,), which is positive for the second class.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data; only the chosen columns are read.
        offset : array, shape (n_samples,), optional
            A known part of the linear predictor.
        """
        return self._linear_predictor(X, offset, "decision_function")

    @lazy
    def predict(self, X: Any, offset: Any = None) -> Any:
        """Return the class of each row, shape (n_samples,).

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data; only the chosen columns are read.
        offset : array, shape (n_samples,), optional
            A known part of the linear predictor.
        """
        return self._decode_target(self._linear_predictor(X, offset, "predict"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@public_estimator("linear_svc_cv", upgrades=[CHOSEN_BY_FOLDS])
@own_parameters(class_weight=None)
class SparseLinearSVCCV(SparseLinearModelCV, SparseLinearSVC):
    """Linear support vector classification with the number of features chosen by cross-validation.

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
    >>> import numpy as np
    >>> from hardthresh import SparseLinearSVCCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 50))
    >>> y = np.where(2 * X[:, 4] - 2 * X[:, 30] + rng.logistic(size=200) > 0, "ill", "well")
    >>> SparseLinearSVCCV(n_nonzero_coefs=range(1, 6), rule="one_standard_error").fit(X, y).support_
    array([ 4, 30])
    """
