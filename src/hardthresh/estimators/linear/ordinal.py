"""Sparse proportional odds, for ordered classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from hardthresh.arrays import double, move, namespace, to_numpy, where_true
from hardthresh.core.errors import InvalidInputError, warn
from hardthresh.core.objective import Evaluation
from hardthresh.core.typing import Array
from hardthresh.losses import Ordinal
from hardthresh.losses.ordinal import class_probabilities

from ..documentation import public_estimator
from ..frames import ordered_labels
from ..parameters import own_parameters
from ..soundness import check_coefficients, check_numbers, check_present
from ..table import Table
from ..upgrades import CHOSEN_BY_EBIC
from .classifier import ScoredByAccuracy
from .lazy import lazy
from .problem import Problem, point_of
from .streaming import StreamedModel


@public_estimator("ordinal_regression", intercept_and_scale="standardize : bool", upgrades=[CHOSEN_BY_EBIC])
@own_parameters(without=["fit_intercept"])
class SparseOrdinalRegression(ScoredByAccuracy, StreamedModel):
    r"""Proportional odds regression (cumulative logit) of ordered classes with at most k features.

    .. math:: P(y_i \le c) = \frac{1}{1 + e^{-(t_c - u_i)}}, \qquad u_i = x_i^\top b + o_i,
              \quad \text{with at most } k \text{ non-zero } b_j

    The coefficients b and the thresholds :math:`t_0 < \ldots < t_{C-2}` minimise the weighted mean log-loss plus
    :math:`\frac{\alpha}{2} \sum_j \sigma_j^2 b_j^2`, with :math:`\sigma_j` the standard deviation of column j (1 if not
    standardised). The thresholds are neither counted nor penalised, and take the place of the intercept.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
        The labels in order. For a pandas Series of ordered categories, or a polars Series of an Enum, this is the order
        of the categories, without those that have no row of positive weight. Other labels are sorted; `fit` warns if
        there are more than two and they are not numbers.
    coef_ : array, shape (n_features,)
        Coefficients on the scale of the data; exactly 0 for features not chosen. An increase of feature j by 1
        multiplies the odds of a higher class by ``exp(coef_[j])``.
    thresholds_ : array, shape (n_classes - 1,)
        The thresholds t, increasing.
    {attributes}

    Notes
    -----
    {guarantee}

    With two classes the model is logistic regression, and the threshold is minus the intercept.

    The default ridge is small but not zero: a few features out of many often separate the classes perfectly, and then
    the loss has no finite minimiser without a ridge.

    References
    ----------
    P. McCullagh (1980), Regression models for ordinal data, *Journal of the Royal Statistical Society B* 42, 109-142.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import SparseOrdinalRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 50))
    >>> y = np.searchsorted([-1.0, 1.0], 2 * X[:, 4] - 2 * X[:, 30] + rng.logistic(size=300))
    >>> model = SparseOrdinalRegression(n_nonzero_coefs=2).fit(X, y)
    >>> model.support_, model.classes_
    (array([ 4, 30]), array([0, 1, 2]))
    >>> model.predict_proba(X[:1]).shape
    (1, 3)
    """

    _takes_blocks: ClassVar[bool] = False
    _loss_type: ClassVar[Any] = Ordinal

    thresholds_: Array
    _needs_all_rows: ClassVar[str] = "the thresholds between ordered classes are fitted to all rows; use fit"
    fit_intercept = False

    @lazy
    def predict_proba(self, X: Any, offset: Any = None) -> Any:
        """Return the probabilities of the classes, shape (n_samples, n_classes). Only the chosen columns are read.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data.
        offset : array, shape (n_samples,), optional
            A known part of the linear predictor.
        """
        return self._class_probabilities(X, offset, "predict_proba")

    @lazy
    def predict(self, X: Any, offset: Any = None) -> Any:
        """Return the most probable class of each row, shape (n_samples,); of equally probable classes, the lowest.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data.
        offset : array, shape (n_samples,), optional
            A known part of the linear predictor.
        """
        probabilities = self._class_probabilities(X, offset, "predict")
        labels = self.classes_[np.argmax(to_numpy(probabilities), axis=1)]
        return move(labels, probabilities) if labels.dtype.kind in "fiub" else labels

    def _class_probabilities(self, X: Any, offset: Any, method: str) -> Any:
        """Return the probabilities of the classes, for a method that messages name."""
        u = self._linear_predictor(X, offset, method)
        probabilities = class_probabilities(double(self.thresholds_) - double(u)[:, None])
        return namespace(u).astype(move(probabilities, u), u.dtype)

    def _validate(self, X: Any, y: Any, sample_weight: Any, offset: Any, *, reset: bool) -> Table:
        return replace(super()._validate(X, y, sample_weight, offset, reset=reset), codes=ordered_labels(y))

    def _encode(self, given: Table, *, reset: bool = True) -> Table:
        check_classification_targets(given.y)
        if reset:
            self.classes_ = _ordered_classes(given.y, given.codes)
        return super()._encode(given, reset=reset)

    def _encode_target(self, y: np.ndarray, *, reset: bool) -> np.ndarray:
        """Return the index of the class of each label."""
        place = {label: number for number, label in enumerate(self.classes_.tolist())}
        unknown = sorted(set(y.tolist()).difference(place))
        if unknown:
            raise InvalidInputError(f"y has the classes {unknown}, the model's are {self.classes_.tolist()}")
        return np.array([place[label] for label in y.tolist()], dtype=float)

    def _decode_target(self, y: Any) -> Any:
        return self.classes_[to_numpy(y).astype(np.intp)]

    def _labels(self) -> dict[str, Any]:
        return {"classes_": self.classes_}

    def _fitted(self, coef: Any, intercept: Any) -> dict[str, Any]:
        return {"coef_": coef, "thresholds_": -intercept, "support_": where_true(coef != 0)}

    def _predictor(self) -> tuple[Any, Any]:
        return self.coef_, 0.0

    def _certified(self) -> tuple[np.ndarray, Any]:
        return to_numpy(self.coef_), -to_numpy(self.thresholds_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on the checks' classes, which have no order
        return tags

    def _check_attributes(self) -> None:
        check_coefficients(self)
        check_present(self, "classes_")
        check_numbers(self, thresholds_=(len(self.classes_) - 1,))

    def _fit_scores(self, problem: Problem, at: Evaluation) -> dict[str, float]:
        right = np.argmax(_probabilities(problem, at.point), axis=1) == double(problem.objective.y)
        accuracy = float(double(problem.objective.weights) @ right)
        return super()._fit_scores(problem, at) | {"accuracy": accuracy}

    def _expected(self, u: np.ndarray, loss: Any) -> np.ndarray:
        return class_probabilities(-u)  # which are x'b less each threshold

    def _expected_rows(self, problem: Problem, coef: Any = None, intercept: Any = None) -> np.ndarray:
        if coef is None:
            coef, intercept = self._certified()
        return _probabilities(problem, point_of(problem, coef, intercept, "the model"))


def _ordered_classes(y: np.ndarray, order: list[Any] | None) -> np.ndarray:
    """Return the classes that occur in y, in the order of its categorical type, or else sorted."""
    found = np.unique(y)
    if order is not None:
        present = set(found.tolist())
        found = np.array([label for label in order if label in present], dtype=found.dtype)
    elif found.dtype.kind not in "fiub" and found.size > 2:
        warn(
            f"y has the labels {', '.join(map(str, found))}, which are taken in this order; if it is another one, "
            "give numbers, or a Series of ordered categories of pandas, or an Enum of polars"
        )
    if found.size < 2:
        raise InvalidInputError(f"y has one class only, {found.tolist()}; examples of two classes are needed")
    return found


def _probabilities(problem: Problem, w: Any) -> np.ndarray:
    """Return the probabilities of the classes of the rows of a problem at a point."""
    model, d = problem.objective, problem.mean.shape[0]
    n, point = model.y.shape[0], double(w)
    u = -double(model.predict(w))[:n]  # less the threshold above the class, where there is one
    u += np.append(point[d:], 0.0)[double(model.y).astype(np.int64)]
    return class_probabilities(point[d:] - u[:, None])
