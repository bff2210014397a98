"""The result of an attack: the perturbation, and how a classifier predicts images with and without it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.result import Result
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array

from .model import check_images, check_labels, check_target, classes_of, evaluation_mode, images_for
from .problem import changes, perturb


@stored("result/universal_perturbation")
@dataclass(frozen=True, slots=True, repr=False)
class UniversalPerturbation:
    r"""A universal perturbation, and the predictions of a model for images with and without it.

    Images are arrays of the library of the given images: NumPy arrays, or tensors on their device.

    Attributes
    ----------
    delta : array of the shape of one image
        The perturbation in the space of images: in pixel space, the numbers that are added before clipping; in the tanh
        spaces, where images change by different amounts, the mean change.
    images : array, shape (n, ...)
        The perturbed images, within the range of the images.
    accuracy_before, accuracy_after : float
        Share of images whose predicted class is the label. Without labels, the predictions of the model for the
        unperturbed images are used instead.
    target_rate : float
        Share of perturbed images assigned to the target; nan without a target.
    success_by_class : array, shape (classes,)
        For each class, the share of its images assigned to the target or, without a target, to another class; nan for a
        class without images.
    n_changed : int
        Number of pixels (or entries, or channels) that differ in at least one perturbed image: at most k. In space
        "tanh-paper" the images are compared with those at :math:`\delta = 0`, which differ from the given ones by half
        a grey level in every pixel at an end of the range.
    predicted_before, predicted_after : array of int, shape (n,)
        The predicted classes.
    labels : array of int, shape (n,)
        The true classes, or the predictions used instead.
    target : int or None
        The class that images should be assigned to.
    unit : {"pixel", "entry", "channel"}
        The unit that k counts.
    k : int
        Largest number of changed units.
    originals : array, shape (n, ...)
        The images without the perturbation.
    result : Result
        The run of the solver that found the perturbation; ``result.w`` is in the space of the search.
    """

    delta: Array
    images: Array
    accuracy_before: float
    accuracy_after: float
    target_rate: float
    success_by_class: np.ndarray
    n_changed: int
    predicted_before: np.ndarray
    predicted_after: np.ndarray
    labels: np.ndarray
    target: int | None
    unit: str
    k: int
    originals: Array
    result: Result
    _space: str
    _clip: tuple[float, float]

    @property
    def clip(self) -> tuple[float, float]:
        """Range of the images."""
        return self._clip

    @property
    def converged(self) -> bool:
        """Whether the search ended at a stationary point, and not at its limit of iterations.

        This is unrelated to the strength of the perturbation, which `accuracy_after` and `target_rate` measure.
        """
        return self.result.converged

    @property
    def message(self) -> str:
        """Why the search ended."""
        return self.result.message

    def __repr__(self) -> str:
        accuracy = f"accuracy {self.accuracy_before:.3g} -> {self.accuracy_after:.3g}"
        shifted = " and the shift of space tanh-paper" if self._space == "tanh-paper" else ""
        rate = "" if self.target is None else f", assigned to class {self.target}: {self.target_rate:.3g}"
        return (
            f"UniversalPerturbation({self.n_changed} of k={self.k} {self.unit}s{shifted}, {accuracy}{rate}, "
            f"converged={self.converged}: {self.message})"
        )

    def evaluate(self, model: Any, X: Any, y: Any = None) -> UniversalPerturbation:
        """Return the same perturbation with the predictions for other images or of another model, such as a defence.

        Parameters
        ----------
        model : torch module or callable
            As for `universal_perturbation`.
        X : array, shape (m, ...)
            Images of the same shape and range.
        y : array of int, shape (m,), optional
            Their classes.

        Returns
        -------
        UniversalPerturbation
            With the predictions of this model for these images; `delta` and `result` are unchanged.

        Raises
        ------
        InvalidInputError
            If the images have another shape or range, or labels or target are not classes of the model.
        """
        images, convert_back = images_for(model, X)
        if tuple(images.shape[1:]) != tuple(self.delta.shape):
            raise InvalidInputError(
                f"images have shape {tuple(images.shape[1:])}, the perturbation {tuple(self.delta.shape)}"
            )
        check_images(images, *self.clip)
        perturbed = perturb(images, self.result.w, self._space, self.clip)
        with evaluation_mode(model):
            before, n_classes = classes_of(model, images)
            after, _ = classes_of(model, perturbed)
        labels = before if y is None else check_labels(y, images, n_classes)
        check_target(self.target, n_classes)
        return replace(
            self,
            images=convert_back(perturbed),
            originals=convert_back(images),
            n_changed=count_changed(changes(images, perturbed, self._space, self.clip) != 0, self.unit),
            **measures(before, after, labels, self.target, n_classes),
        )


def measures(before: Any, after: Any, labels: Any, target: int | None, n_classes: int) -> dict[str, Any]:
    """Return the fields of `UniversalPerturbation` that compare predicted classes with labels and target."""
    success = (after != labels) if target is None else (after == target)
    members = [labels == j for j in range(n_classes)]
    return {
        "accuracy_before": share(before == labels),
        "accuracy_after": share(after == labels),
        "target_rate": nan if target is None else share(after == target),
        "success_by_class": np.array([share(success[of]) if bool(of.any()) else nan for of in members]),
        "predicted_before": to_numpy(before),
        "predicted_after": to_numpy(after),
        "labels": to_numpy(labels),
    }


def count_changed(different: Any, unit: str) -> int:
    """Return how many pixels, entries or channels differ in any image."""
    anywhere = different.any(0)
    if anywhere.ndim == 3 and unit != "entry":
        anywhere = anywhere.any(0) if unit == "pixel" else anywhere.flatten(1).any(1)
    return int(anywhere.sum())


def share(where: Any) -> float:
    """Return the share of true entries."""
    return float(where.double().mean())
