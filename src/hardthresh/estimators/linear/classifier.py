"""The base class of classifiers: labels, their weights, and their encoding as targets."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets

from hardthresh.arrays import move, to_numpy
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.objectives.block_rows import OffsetOfAnotherShape
from hardthresh.objectives.first_reading import TargetsOutside

from ..block_labels import class_totals, labels_of_all, labels_of_some
from ..blocked import BlockTable, is_blocks
from ..table import Scaling, Table
from ..validation import check_labels
from .class_weights import class_weights, with_class_weights
from .problem import Problem
from .streaming import StreamedModel, streamed


class ScoredByAccuracy(ClassifierMixin):
    """A classifier whose score is the accuracy of predictions, which may have an offset."""

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Return the accuracy: the share of rows, by weight, whose class is predicted correctly.

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


class LinearClassifier(ScoredByAccuracy, StreamedModel):
    """Base of the estimators of classes. See the concrete classes."""

    class_weight: Any
    _takes_more_classes: ClassVar[bool] = False
    """Whether there may be more than two classes."""
    _classes_of_stream: np.ndarray | None = None
    """The labels that a batch may have, while the model learns from it; None in `fit`."""

    @streamed
    def partial_fit(  # type: ignore[override]  # classes come third, as in scikit-learn
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> Self:
        """Update the model with a batch of rows, without storing the rows.

        See `SparseLinearRegression.partial_fit` for the algorithm and the models that have this method.

        Parameters
        ----------
        X, y :
            As in `fit`. A batch need not contain all classes.
        classes : array, shape (n_classes,)
            All labels. Required in the first call, because a batch need not contain all classes; later calls may repeat
            it.
        sample_weight, offset :
            As in `fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As for regressions; also for labels that are not among the classes, and with ``class_weight="balanced"``,
            because the class frequencies of later rows are unknown.
        """
        if isinstance(self.class_weight, str):
            raise InvalidInputError(
                f"class_weight={format_value(self.class_weight)} needs all rows, and partial_fit has a batch of them; "
                "give a dict from class to weight, or sample_weight"
            )
        known = getattr(self, "classes_", None)
        if classes is None and known is None:
            raise InvalidInputError(
                "classes must be given in the first call of partial_fit: all labels, of all batches"
            )
        labels = np.asarray(known) if classes is None else np.unique(classes)
        if known is not None and labels.tolist() != known.tolist():
            raise InvalidInputError(f"classes are {labels.tolist()}, and were {known.tolist()} before; fit begins anew")
        check_two_classes(labels[: min(labels.size, 2)])
        self._classes_of_stream = labels
        try:
            return self._learn(X, y, sample_weight, offset)
        finally:
            del self._classes_of_stream

    def _all_labels(self, engine: Any) -> dict[str, Any]:
        return {"classes": labels_of_all(engine)}

    def _check_first(self, y: Any) -> None:
        assert self._classes_of_stream is not None
        lacking = np.setdiff1d(self._classes_of_stream, y).tolist()
        if lacking:
            raise InvalidInputError(
                f"the first batch has no row of the class {format_value(lacking[0])}, so that it cannot choose the "
                f"number of features; set {self._k_name}, or begin with a batch of all classes"
            )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> float:
        if is_blocks(X):
            return float(self._score_blocks(X, y, sample_weight, offset).right)
        return super().score(X, y, sample_weight, offset)

    score.__doc__ = ScoredByAccuracy.score.__doc__

    def _encode(self, given: Table, *, reset: bool = True) -> Table:
        if isinstance(given, BlockTable):
            return self._label_blocks(given, reset=reset)
        table = super()._encode(given, reset=reset)
        return with_class_weights(table, given.y, self.class_weight, self._classes_of_stream)

    def _label_blocks(self, given: BlockTable, *, reset: bool) -> BlockTable:
        """Return a table in blocks with the numbers of two classes as targets, its rows weighted by class.

        Without `class_weight` the classes of some rows count as all of them, until the first reading finds another.
        """
        if not reset:
            return self._labelled(given, self._weights_of_known_classes(given))
        classes = labels_of_some(given.engine)
        if classes.size < 2:
            classes = labels_of_all(given.engine)
        self._set_block_classes(classes)
        totals = None if self.class_weight is None else class_totals(given.engine, self.classes_)
        if totals is not None and totals[-1] > 0:
            self._set_block_classes(labels_of_all(given.engine))
            totals = class_totals(given.engine, self.classes_)
        weights = None if totals is None else class_weights(self.class_weight, self.classes_, totals[:-1])
        return self._labelled(given, weights)

    def _weights_of_known_classes(self, given: BlockTable) -> np.ndarray | None:
        """Return the weights of the classes of the fit by the rows of other blocks; None without `class_weight`."""
        if self.class_weight is None:
            return None
        totals = class_totals(given.engine, self.classes_)
        if totals[-1] > 0 or not totals[:-1].all():
            self._refuse_other_classes(labels_of_all(given.engine))
        return class_weights(self.class_weight, self.classes_, totals[:-1])

    def _as_scored(self, given: BlockTable) -> BlockTable:
        return self._labelled(given, None)

    def _refuse_other_classes(self, classes: np.ndarray) -> None:
        raise InvalidInputError(
            f"y has the classes {classes.tolist()}, the model's are {np.asarray(self.classes_).tolist()}"
        )

    def _labelled(self, given: BlockTable, weights: np.ndarray | None) -> BlockTable:
        """Return a table in blocks with the numbers of classes as targets, and rows weighted by class."""
        numbers = np.asarray(self._encode_target(self.classes_, reset=False), dtype=np.float64)
        return given.labelled(self.classes_, numbers, weights)

    def _set_block_classes(self, classes: np.ndarray) -> None:
        """Set the classes of a table in blocks."""
        check_labels(classes)
        if classes.size > 1:  # else there is one class, whatever its label is
            check_classification_targets(classes)
        check_two_classes(classes[: min(classes.size, 2)] if self._takes_more_classes else classes)
        self.classes_ = classes

    def _problem(self, table: Table, k: int, scaling: Scaling | None = None) -> Problem:
        try:
            return super()._problem(table, k, scaling)
        except (TargetsOutside, OffsetOfAnotherShape):
            given, before = table.unlabelled(), self.classes_
            if given is None:
                raise
            self._set_block_classes(labels_of_all(given.engine))  # some rows did not have all of them
            if self.classes_.size == before.size:
                raise
            return super()._problem(self._labelled(given, None), k)

    def _encode_target(self, y: np.ndarray, *, reset: bool) -> np.ndarray:
        check_classification_targets(y)
        if self._classes_of_stream is not None:
            self.classes_ = self._classes_of_stream
            return number_of_class(y, self.classes_)
        classes, encoded = np.unique(y, return_inverse=True)
        if classes.size < 2:
            check_two_classes(classes)
        if reset:
            self.classes_ = classes
        elif classes.tolist() != self.classes_.tolist():
            self._refuse_other_classes(classes)
        return encoded

    def _decode_target(self, y: Any) -> Any:
        labels = self.classes_[to_numpy(y).astype(np.intp)]
        return move(labels, y) if labels.dtype.kind in "fiub" else labels

    def _labels(self) -> dict[str, Any]:
        return {"classes_": self.classes_}


def number_of_class(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the place of each label among the classes, which are sorted.

    Raises
    ------
    InvalidInputError
        For a label that is not one of them.
    """
    unknown = np.flatnonzero(~np.isin(y, classes))
    if unknown.size:
        row, known = int(unknown[0]), ", ".join(map(format_value, classes.tolist()))
        raise InvalidInputError(f"y[{row}] is {format_value(y[row : row + 1].tolist()[0])}; the classes are {known}")
    return np.searchsorted(classes, y)


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
