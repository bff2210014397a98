"""What one perturbation, added to every image, costs and does to a classifier: a robustness test."""

from __future__ import annotations

from math import inf, isfinite, prod
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, NotFiniteError
from hardthresh.core.registry import register
from hardthresh.core.typing import Array

from .function import Function
from .sources import Torch, counted, imported

_MARGIN = 0.5 / 255  # how far inside their range the tanh map keeps the entries of images, as a share of the range


@register("objective", "attack", lambda: [])  # its points are torch tensors, and the suites' NumPy arrays
class Attack(Function):
    r"""How far perturbed images are from the images, and how far their logits from a wrong class.

    .. math:: f(\delta) &= \frac1n \sum_i \Bigl( \|x_i' - x_i\|_2
                 + c \max\bigl(h(Z(x_i'), y_i), -\kappa\bigr) \Bigr), \qquad x_i' = x_i'(\delta) \in [a, b] \\
              h(Z, y) &= \max_{j \ne t} Z_j - Z_t \;\text{(a target t)}, \qquad
                 h(Z, y) = Z_y - \max_{j \ne y} Z_j \;\text{(any other class)}

    with the logits Z of a classifier. In the space of pixels :math:`x_i' = \min(\max(x_i + \delta, a), b)`; in that of
    tanh :math:`x_i' = x_i + T(T^{-1}(x_i) + \delta) - T(T^{-1}(x_i))`, clipped too, with
    :math:`T(u) = a + (b - a)(1 + \tanh u)/2` and :math:`T^{-1}` taken half a grey level inside of [a, b].

    Parameters
    ----------
    model : callable
        A torch module, or any callable, that returns logits, shape (m, classes), for m images. It is called as it is:
        put a module in ``eval()`` mode.
    images : tensor, shape (n, ...)
        The images, all entries in [a, b]. Points are flat vectors of the size of an image, of its dtype, on its device.
    labels : tensor of int, shape (n,), optional
        The true classes; needed for the loss "label".
    target : int, optional
        The class t that images are to be taken for.
    loss : {"label", "top2"}
        Without a target: how far the logit of the label is above the others; or, as in the code of the paper, that of
        the largest above the second, which pushes images back as soon as they have left their class.
    space : {"pixel", "tanh"}
        See above.
    clip : pair of float
        a < b.
    c : float
        > 0, weight of the logits.
    kappa : float
        >= 0, by how much the logit of a wrong class should lead.
    chunk : int, optional
        How many images go through the model at once; default all.

    Raises
    ------
    InvalidInputError
        For images outside [a, b] or not finite, labels or a target that are no classes, a model that returns no logits
        of the right shape, numbers out of range.
    NotFiniteError
        By `evaluate` and `value`, if the model returns NaN or infinity.
    MissingDependencyError
        If torch is not installed.

    Notes
    -----
    Equations 45 to 47 of the paper, corrected: logits, as Carlini and Wagner and its code have it, where it says
    probabilities; the distance image by image; and the range kept by clipping or tanh, as hardly any perturbation keeps
    all images in it. f is not convex, and has kinks. Cost: as for `Function`; a pass is all images through the model.

    References
    ----------
    *Probabilistic IHT*, Section 5.1; N. Carlini and D. Wagner (2017), Towards evaluating the robustness of neural
    networks, *IEEE Symposium on Security and Privacy*.

    Examples
    --------
    >>> import torch
    >>> images, labels = torch.tensor([[0.25, 0.5], [0.5, 0.25]]), torch.tensor([1, 0])
    >>> f = Attack(lambda x: 4.0 * x, images, labels, c=1.0)
    >>> f.value(torch.zeros(2))
    1.0
    >>> f.value(torch.tensor([1.0, 0.0]))
    2.125
    """

    def __init__(
        self,
        model: Any,
        images: Any,
        labels: Any = None,
        *,
        target: int | None = None,
        loss: str = "label",
        space: str = "pixel",
        clip: tuple[float, float] = (0.0, 1.0),
        c: float = 2.0,
        kappa: float = 0.0,
        chunk: int | None = None,
    ) -> None:
        torch = imported("torch")
        low, high = _range(clip)
        if not (
            isinstance(images, torch.Tensor) and images.is_floating_point() and images.ndim >= 2 and images.numel()
        ):
            raise InvalidInputError("images must be a floating tensor of at least two axes, the first for the images")
        check_images(images, low, high)
        if not (c > 0 and isfinite(c) and kappa >= 0 and isfinite(kappa)):
            raise InvalidInputError(f"need c > 0 and kappa >= 0, got {c!r} and {kappa!r}")
        for name, word, known in (("loss", loss, ("label", "top2")), ("space", space, ("pixel", "tanh"))):
            if word not in known:
                raise InvalidInputError(f"{name} must be one of {' and '.join(map(repr, known))}, got {word!r}")
        self._torch, self.model, self.images, self.clip = torch, model, images.detach(), (low, high)
        self.space, self.loss, self.c, self.kappa = space, loss, float(c), float(kappa)
        with torch.no_grad():
            self.n_classes = int(self.logits(self.images[:1]).shape[1])
        self.labels = None if labels is None else check_labels(labels, images, self.n_classes)
        self.target = check_target(target, self.n_classes)
        if self.target is None and loss == "label" and self.labels is None:
            raise InvalidInputError('without a target the loss "label" needs labels; give them, or loss="top2"')
        zeros = torch.zeros(prod(images.shape[1:]), dtype=images.dtype, device=images.device)
        examples = counted(images.shape[0], _same, chunk)
        super()._set(Torch(torch, self._mean, zeros, False), zeros, examples, 0.0 if kappa == 0.0 else -c * kappa)

    def perturbed(self, images: Any, delta: Array) -> Any:
        """Return some images, perturbed by a point."""
        return perturb(self._torch, images, delta, self.space, self.clip)

    def logits(self, images: Any) -> Any:
        """Return what the model says about images, after a look at it.

        Raises
        ------
        InvalidInputError
            If it is no tensor of shape (m, classes), with two classes or more.
        """
        Z = self.model(images)
        shape = tuple(getattr(Z, "shape", ()))
        if not isinstance(Z, self._torch.Tensor) or len(shape) != 2 or shape[0] != images.shape[0] or shape[1] < 2:
            raise InvalidInputError(
                f"for {images.shape[0]} images the model must return a tensor of logits, shape ({images.shape[0]}, "
                f"classes) with two classes or more; got {f'shape {shape}' if shape else type(Z).__name__}"
            )
        return Z

    def _mean(self, delta: Any, rows: Any) -> Any:
        """Return the mean over some images."""
        images = self.images[rows]
        moved = self.perturbed(images, delta)
        Z = self.logits(moved)
        if not bool(self._torch.isfinite(Z).all()):
            raise NotFiniteError("the model returned logits that are NaN or infinite")
        distance = self._torch.linalg.vector_norm((moved - images).flatten(1), dim=1)
        lead = self._lead(Z, None if self.labels is None else self.labels[rows])
        return self._torch.mean(distance + self.c * self._torch.clamp(lead, min=-self.kappa))

    def _lead(self, Z: Any, labels: Any) -> Any:
        """Return h, by how much the wanted classes are behind."""
        if self.target is None and self.loss == "top2":
            first, second = self._torch.topk(Z, 2, dim=1).values.T
            return first - second
        if self.target is None:
            own = Z.gather(1, labels[:, None])[:, 0]
            return own - Z.scatter(1, labels[:, None], -inf).amax(1)
        others = self._torch.cat([Z[:, : self.target], Z[:, self.target + 1 :]], dim=1)
        return others.amax(1) - Z[:, self.target]


def perturb(torch: Any, images: Any, delta: Any, space: str, clip: tuple[float, float]) -> Any:
    """Return images, perturbed by a point of a space, inside of their range."""
    low, high = clip
    delta = delta.reshape(images.shape[1:])
    if space == "pixel":
        return torch.clamp(images + delta, low, high)
    start = torch.clamp((images - low) / (high - low), _MARGIN, 1.0 - _MARGIN)
    moved = 0.5 * (1.0 + torch.tanh(torch.atanh(2.0 * start - 1.0) + delta))
    shift = (high - low) * (moved - start)
    still = (
        shift - shift.detach()
    )  # where nothing is moved, not even by rounding; the derivative is that of the formula
    return torch.clamp(images + torch.where(delta == 0, still, shift), low, high)


def check_images(images: Any, low: float, high: float) -> None:
    """Refuse images outside of their range."""
    inside = (images >= low) & (images <= high)
    if not bool(inside.all()):
        worst = images[~inside][0].item()
        raise InvalidInputError(
            f"images must be finite and in clip = [{low:g}, {high:g}]; got {worst:g}: rescale them, or give clip="
        )


def check_labels(labels: Any, images: Any, n_classes: int) -> Any:
    """Return labels as integers, one for each image, on its device."""
    torch = imported("torch")
    labels = torch.as_tensor(np.asarray(labels) if not isinstance(labels, torch.Tensor) else labels)
    if tuple(labels.shape) != (images.shape[0],):
        raise InvalidInputError(f"labels have shape {tuple(labels.shape)}; ({images.shape[0]},) is needed")
    whole = labels.to(torch.int64)
    if not bool((whole == labels).all()) or bool((whole < 0).any()) or bool((whole >= n_classes).any()):
        raise InvalidInputError(
            f"labels must be classes 0 .. {n_classes - 1} of the model, got values from {labels.min().item()} to "
            f"{labels.max().item()}"
        )
    return whole.to(images.device)


def check_target(target: Any, n_classes: int) -> int | None:
    """Return a target as a plain integer."""
    if target is None:
        return None
    if isinstance(target, bool) or not isinstance(target, int | np.integer) or not 0 <= target < n_classes:
        raise InvalidInputError(f"target must be one of the model's classes 0 .. {n_classes - 1}, got {target!r}")
    return int(target)


def _range(clip: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in clip)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"clip must be a pair of numbers, got {clip!r}") from error
    if not -inf < low < high < inf:
        raise InvalidInputError(f"clip must be finite and increasing, got {clip!r}")
    return low, high


def _same(rows: Any) -> Any:
    return rows
