"""Sparse logistic regression, for two classes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from hardthresh.arrays import double, gather, move, namespace, to_numpy, where_true
from hardthresh.constraints import Sparsity
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.objective import Evaluation
from hardthresh.core.result import Result
from hardthresh.losses import Logistic, Loss
from hardthresh.losses.logistic import sigmoid
from hardthresh.objectives import LinearModel
from hardthresh.objectives.recession import has_no_recession
from hardthresh.solvers.subspace import refine

from ..documentation import public_estimator
from ..parameters import own_parameters
from ..table import Table
from ..upgrades import one_ridge, tenth_of_features, with_defaults
from .class_weights import with_class_weights
from .cross_validation import SparseLinearModelCV
from .model import SparseLinearModel
from .problem import Problem

_ROUNDS, _BLOCKS = 2, 60
"""Newton steps between two looks at the signs, and such looks: 4 to 8 steps find a minimiser, and where there is none
each lowers the loss by a constant factor, so that 120 reach any margin that double precision can tell from zero."""


@public_estimator(
    "logistic_regression",
    upgrades=[tenth_of_features, with_defaults(bounds=None, categorical_features=None, class_weight=None)],
)
@own_parameters(class_weight=None)
class SparseLogisticRegression(ClassifierMixin, SparseLinearModel):
    r"""Logistic regression of two classes with at most k features.

    .. math:: \min_{b, c} \; \frac{1}{\sum_i s_i} \sum_i s_i \bigl(\log(1 + e^{u_i}) - y_i u_i\bigr)
              + \frac{\alpha}{2} \sum_j \sigma_j^2 b_j^2, \qquad u_i = x_i^\top b + c + o_i,
              \quad \text{with at most } k \text{ non-zero } b_j

    with y_i = 1 for the second of the two classes, weights s, offsets o, and :math:`\sigma_j` the standard deviation
    of column j (1 if not standardised).

    Parameters
    ----------
    {class_weight}
    {parameters}

    Attributes
    ----------
    classes_ : array, shape (2,)
        The labels; coefficients are log-odds of the second.
    coef_ : array, shape (1, n_features)
        Coefficients on the scale of the data; exactly 0 for features not chosen.
    intercept_ : array, shape (1,)
        The intercept.
    separated_ : bool
        Whether the chosen features separate the classes of the training rows perfectly: some coefficients of theirs put
        every row on the side of its class, whether those of the fit do or not. The loss then falls as coefficients
        grow, and only the ridge, or the end of the run, determines their size.
    {attributes}

    Notes
    -----
    The default ridge is small but not zero, because few features out of many often separate the classes perfectly,
    and then no finite coefficients are best without it. `separated_` says so whatever the ridge is.

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
    """

    _loss_type: ClassVar[type[Loss]] = Logistic

    class_weight: Any

    def _encode(self, given: Table, *, reset: bool = True) -> Table:
        return with_class_weights(super()._encode(given, reset=reset), given.y, self.class_weight)

    def _encode_target(self, y: np.ndarray, *, reset: bool) -> np.ndarray:
        check_classification_targets(y)
        classes, encoded = np.unique(y, return_inverse=True)
        if reset or classes.size < 2:
            check_two_classes(classes)
        if reset:
            self.classes_ = classes
        elif classes.tolist() != self.classes_.tolist():
            raise InvalidInputError(f"y has the classes {classes.tolist()}, the model's are {self.classes_.tolist()}")
        return encoded

    def _decode_target(self, y: Any) -> Any:
        labels = self.classes_[to_numpy(y).astype(np.intp)]
        return move(labels, y) if labels.dtype.kind in "fiub" else labels

    def _labels(self) -> dict[str, Any]:
        return {"classes_": self.classes_}

    def _fitted(self, coef: Any, intercept: Any) -> dict[str, Any]:
        intercept = namespace(coef).reshape(intercept, (1,))
        return {"coef_": coef[None, :], "intercept_": intercept, "support_": where_true(coef != 0)}

    def _diagnostics(self, problem: Problem, result: Result) -> dict[str, Any]:
        return {"separated_": _separates(problem, result)}

    def _fit_scores(self, problem: Problem, at: Evaluation) -> dict[str, float]:
        model = problem.objective
        right = (double(model.y) > 0.5) == (double(at.prediction) > 0)
        return super()._fit_scores(problem, at) | {"accuracy": float(double(model.weights) @ right)}

    def _intercept(self) -> float:
        return float(self.intercept_[0])

    def decision_function(self, X: Any, offset: Any = None) -> Any:
        """Return the log-odds of the second class, shape (n_samples,). Only the chosen columns are read."""
        return self._linear_predictor(X, offset, "decision_function")

    def predict_proba(self, X: Any, offset: Any = None) -> Any:
        """Return the probabilities of the two classes, shape (n_samples, 2)."""
        u = self._linear_predictor(X, offset, "predict_proba")
        return namespace(u).stack([sigmoid(-u), sigmoid(u)], axis=1)

    def predict_log_proba(self, X: Any, offset: Any = None) -> Any:
        """Return the logarithms of the probabilities, exact also where these underflow."""
        u = self._linear_predictor(X, offset, "predict_log_proba")
        xp = namespace(u)
        return xp.stack([-self._loss.value(xp.zeros_like(u), u), -self._loss.value(xp.ones_like(u), u)], axis=1)

    def predict(self, X: Any, offset: Any = None) -> Any:
        """Return the more probable class of each row, shape (n_samples,)."""
        u = self._linear_predictor(X, offset, "predict")
        return self._decode_target(namespace(u).astype(u > 0, u.dtype))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@public_estimator(
    "logistic_regression_cv",
    upgrades=[
        one_ridge(Logistic.default_ridge),
        with_defaults(bounds=None, categorical_features=None, class_weight=None),
    ],
)
@own_parameters(class_weight=None)
class SparseLogisticRegressionCV(SparseLinearModelCV, SparseLogisticRegression):
    """Logistic regression of two classes with the number of features chosen by cross-validation.

    Parameters
    ----------
    {class_weight}
    {cv_parameters}

    Attributes
    ----------
    {cv_attributes}

    Examples
    --------
    >>> from hardthresh import SparseLogisticRegressionCV
    >>> from hardthresh.datasets import load_colon
    >>> colon = load_colon()
    >>> model = SparseLogisticRegressionCV(n_nonzero_coefs=range(1, 6)).fit(colon.data, colon.target)
    >>> model.scores_.shape
    (5, 5)
    """


def check_two_classes(classes: np.ndarray, otherwise: str = "") -> None:
    """Raise InvalidInputError unless there are two classes.

    Parameters
    ----------
    classes : array
        The labels in y, each once.
    otherwise : str
        The end of the message where there is only one: what else to do.
    """
    if classes.size < 2:
        raise InvalidInputError(
            f"y has one class only, {classes.tolist()}; examples of two classes are needed{otherwise}"
        )
    if classes.size > 2:
        raise InvalidInputError(
            "Only binary classification is supported. The type of the target is multiclass: y has "
            f"{classes.size} classes; fit one class against the rest"
        )


def _separates(problem: Problem, result: Result) -> bool:
    """Return whether coefficients of the chosen features put every training row on the side of its class.

    Without a ridge the loss of these columns has a minimiser exactly if they do not separate the classes, not even with
    some rows on the boundary (Albert and Anderson 1984, *Biometrika* 71, 1-10); else it falls along coefficients that
    do. Newton steps lead there, or to where it shows that there is a minimiser (`has_no_recession`). Cost: one pass
    over the chosen columns alone if the fit itself separates the classes, else about ten.
    """
    chosen = result.support.indices
    if chosen.shape[0] == 0:
        return False
    model = problem.objective.columns(chosen)
    loss = LinearModel(model.design, model.y, model.loss, sample_weight=model.weights)
    cone = [_cone(getattr(problem.constraint, side, None), chosen) for side in ("lower", "upper")]
    free = Sparsity(0, free=tuple(range(chosen.shape[0])), lower=cone[0], upper=cone[1])
    reached, minimal = free.project(gather(result.w, chosen)), False
    for _ in range(_BLOCKS):
        at = loss.evaluate(reached.point)
        if bool(namespace(reached.point).all((2 * loss.y - 1) * at.prediction > 0)):
            return True
        slopes = loss.mean_loss.slopes(at.prediction)
        if minimal or has_no_recession(loss.design, slopes, at.gradient):
            return False
        fit = refine(loss, free, reached, at.prediction, cg_iterations=0, rounds=_ROUNDS)
        reached, minimal = fit.projection, fit.minimal
    return False


def _cone(bound: np.ndarray | None, chosen: Any) -> np.ndarray | None:
    """Return a bound of the multiples of coefficients: those that separate the classes do so at any length."""
    if bound is None:
        return None
    own = bound[to_numpy(chosen)]
    return np.where(own == 0, 0.0, np.copysign(np.inf, own))
