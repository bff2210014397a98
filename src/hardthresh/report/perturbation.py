"""A chart of a universal perturbation: images, the same images perturbed, and the change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import InvalidInputError

from .optional import import_optional

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hardthresh.attacks import UniversalPerturbation


def plot_perturbation(perturbation: UniversalPerturbation, n: int = 8) -> Figure:
    """Draw images, the same images perturbed, and the change; titles give the predicted classes.

    Parameters
    ----------
    perturbation : UniversalPerturbation
        The result of `hardthresh.attacks.universal_perturbation`, or of its method `evaluate`.
    n : int
        Number of images, >= 1. Images whose predicted class changes (or becomes the target) are drawn first.

    Returns
    -------
    matplotlib Figure
        A new figure of `matplotlib.pyplot`, which ``pyplot.show()`` shows.

    Raises
    ------
    InvalidInputError
        If n < 1, or the images are flat, so that their height and width are unknown.
    MissingDependencyError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.attacks import universal_perturbation
    >>> from hardthresh.report import plot_perturbation
    >>> X = np.random.default_rng(0).uniform(0.2, 0.8, (20, 4, 4))
    >>> perturbation = universal_perturbation(lambda x: x.flatten(1)[:, :2], X, k=1, target=1, max_iter=5)
    >>> figure = plot_perturbation(perturbation, n=3)
    >>> len(figure.axes)
    9
    """
    checked_integer("n", n, 1)
    if len(perturbation.delta.shape) not in (2, 3):
        raise InvalidInputError(
            f"images of shape {tuple(perturbation.delta.shape)} have no height and width to draw; give X as "
            "(n, height, width) or (n, channels, height, width)"
        )
    pyplot = import_optional("matplotlib.pyplot", "charts need", extra="plot")
    shown = _order(perturbation)[:n]
    low, high = perturbation.clip
    figure: Figure = pyplot.figure(figsize=(1.1 * len(shown) + 0.9, 4.0), layout="constrained")
    axes = figure.subplots(3, len(shown), squeeze=False)
    originals, perturbed = (_selected(images, shown) for images in (perturbation.originals, perturbation.images))
    for column, i in enumerate(shown):
        change = perturbed[column] - originals[column]
        rows = (
            (originals[column], f"{perturbation.predicted_before[i]}", {"cmap": "gray", "vmin": low, "vmax": high}),
            (perturbed[column], f"→ {perturbation.predicted_after[i]}", {"cmap": "gray", "vmin": low, "vmax": high}),
            (change, "", {"cmap": "RdBu_r", "vmin": low - high, "vmax": high - low}),
        )
        for ax, (image, title, colours) in zip(axes[:, column], rows, strict=True):
            _draw_image(ax, image, title, colours, low, high)
    for ax, name in zip(axes[:, 0], ("image", "perturbed", "change"), strict=True):
        ax.set_ylabel(name)
    return figure


def _order(perturbation: UniversalPerturbation) -> np.ndarray:
    """Return the order of images: misled ones first, and among these one of each class in turn."""
    labels, after, before = perturbation.labels, perturbation.predicted_after, perturbation.predicted_before
    misled = (after != before) if perturbation.target is None else (after == perturbation.target) & (before != after)
    turn = np.empty(labels.size, dtype=np.int64)
    for label in np.unique(labels):
        of_class = np.flatnonzero(labels == label)
        of_class = of_class[np.argsort(~misled[of_class], kind="stable")]
        turn[of_class] = np.arange(of_class.size)
    return np.lexsort((labels, turn, ~misled))


def _selected(images: Any, indices: np.ndarray) -> np.ndarray:
    return np.stack([to_numpy(images[int(i)]) for i in indices])


def _draw_image(ax: Any, image: np.ndarray, title: str, colours: dict[str, Any], low: float, high: float) -> None:
    """Draw one image: three channels as RGB, other numbers of channels, and changes, by their mean."""
    image = image.astype(float)
    if image.ndim == 3 and image.shape[0] == 3 and colours["cmap"] == "gray":
        ax.imshow((np.moveaxis(image, 0, -1) - low) / (high - low))
    else:
        ax.imshow(image.mean(0) if image.ndim == 3 else image, **colours)
    ax.set_title(title, fontsize="medium")
    ax.set_xticks([])
    ax.set_yticks([])
