"""The base of classifiers: labels, their weights, and the targets that stand for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets

from hardthresh.arrays import move, to_numpy
from hardthresh.core.errors import InvalidInputError

from ..table import Table
from .class_weights import with_class_weights
from .model import SparseLinearModel


class ScoredByAccuracy(ClassifierMixin):
    """A classifier whose score is the accuracy of predictions, which may have an offset."""

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Return the accuracy: the share of rows, or of their weight, whose class is predicted.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data.
        y : array, shape (n_samples,)
            Labels.
        sample_weight : array, shape (n_samples,), optional
            Non-negative weights.
        offset : array, shape (n_samples,) or (n_samples, n_classes), optional
            A known part of the linear predictor, as `predict` takes it.

        Returns
        -------
        float
        """
        return float(accuracy_score(y, self.predict(X, offset), sample_weight=sample_weight))


class LinearClassifier(ScoredByAccuracy, SparseLinearModel):
    """Base of the estimators of classes. See the concrete classes."""

    class_weight: Any

    def _encode(self, given: Table, *, reset: bool = True) -> Table:
        return with_class_weights(super()._encode(given, reset=reset), given.y, self.class_weight)

    def _encode_target(self, y: np.ndarray, *, reset: bool) -> np.ndarray:
        check_classification_targets(y)
        classes, encoded = np.unique(y, return_inverse=True)
        if classes.size < 2:
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
