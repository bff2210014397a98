"""The picture grid of a perturbation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import InvalidInputError, MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .universal import UniversalPerturbation


def draw(perturbation: UniversalPerturbation, n: int) -> Figure:
    """Draw images, the same perturbed, and the change, in three rows."""
    checked_integer("n", n, 1)
    if len(perturbation.delta.shape) not in (2, 3):
        raise InvalidInputError(
            f"images of shape {tuple(perturbation.delta.shape)} have no height and width to draw; give X as "
            "(n, height, width) or (n, channels, height, width)"
        )
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            "pictures need matplotlib, which is not installed; run 'pip install hardthresh[plot]'."
        ) from error
    shown = _worth_showing(perturbation)[:n]
    low, high = perturbation._clip
    figure = Figure(figsize=(1.1 * len(shown) + 0.9, 4.0), layout="constrained")
    axes = figure.subplots(3, len(shown), squeeze=False)
    originals, perturbed = (_pick(images, shown) for images in (perturbation.originals, perturbation.images))
    for column, i in enumerate(shown):
        change = perturbed[column] - originals[column]
        rows = (
            (originals[column], f"{perturbation.predicted_before[i]}", {"cmap": "gray", "vmin": low, "vmax": high}),
            (perturbed[column], f"→ {perturbation.predicted_after[i]}", {"cmap": "gray", "vmin": low, "vmax": high}),
            (change, "", {"cmap": "RdBu_r", "vmin": low - high, "vmax": high - low}),
        )
        for ax, (image, title, colours) in zip(axes[:, column], rows, strict=True):
            _show(ax, image, title, colours, low, high)
    for ax, name in zip(axes[:, 0], ("image", "perturbed", "change"), strict=True):
        ax.set_ylabel(name)
    return figure


def _worth_showing(perturbation: UniversalPerturbation) -> np.ndarray:
    """Return the order of images: those that the perturbation misleads first, one of each class in turn."""
    labels, after, before = perturbation.labels, perturbation.predicted_after, perturbation.predicted_before
    misled = (after != before) if perturbation.target is None else (after == perturbation.target) & (before != after)
    turn = np.empty(labels.size, dtype=np.int64)
    for label in np.unique(labels):
        of_class = np.flatnonzero(labels == label)
        of_class = of_class[np.argsort(~misled[of_class], kind="stable")]
        turn[of_class] = np.arange(of_class.size)
    return np.lexsort((labels, turn, ~misled))


def _pick(images: Any, shown: np.ndarray) -> np.ndarray:
    return np.stack([to_numpy(images[int(i)]) for i in shown])


def _show(ax: Any, image: np.ndarray, title: str, colours: dict[str, Any], low: float, high: float) -> None:
    """Draw one image, or the mean of its channels where they are no colours."""
    image = image.astype(float)
    if image.ndim == 3 and image.shape[0] == 3 and colours["cmap"] == "gray":
        ax.imshow((np.moveaxis(image, 0, -1) - low) / (high - low))
    else:
        ax.imshow(image.mean(0) if image.ndim == 3 else image, **colours)
    ax.set_title(title, fontsize="medium")
    ax.set_xticks([])
    ax.set_yticks([])
