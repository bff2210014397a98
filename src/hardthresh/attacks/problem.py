"""The objective of a universal perturbation: its size, and how far the logits still are from a wrong class."""

from __future__ import annotations

from functools import partial
from math import atanh, inf, prod
from typing import Any

import numpy as np

from hardthresh.core.checking import checked_number, checked_word
from hardthresh.core.errors import InvalidInputError, MissingDependencyError, format_value
from hardthresh.core.registry import register
from hardthresh.core.typing import Array
from hardthresh.objectives.computed import Computed
from hardthresh.objectives.derivatives import Torch, imported
from hardthresh.objectives.sources import counted, itself

from .model import CHUNK, check_images, check_labels, check_model, check_target, classes_of, input_gradient, logits_of

_CHECKED = 10  # images on which the model is checked; arbitrary, as a wrong model fails on any image
_MARGIN = 0.5 / 255  # distance, as a share of the range, that the tanh map keeps from its ends: half a grey level
SPACES = ("pixel", "tanh", "tanh-paper")


class _Network:
    """Two smooth layers between 12 entries and 3 classes, for the conformance tests."""

    def __init__(self) -> None:
        rng, torch = np.random.default_rng(0), imported("torch")
        self._layers = [torch.from_numpy(rng.standard_normal(sides)) for sides in ((12, 8), (8, 3))]

    def __call__(self, images: Any) -> Any:
        first, second = self._layers
        return (images.flatten(1) @ first).tanh() @ second


def _examples() -> list[Attack]:
    """Return a small attack for the conformance tests, whose points are NumPy arrays; none without torch."""
    images = np.random.default_rng(1).uniform(0.2, 0.8, (20, 3, 4))
    try:
        return [Attack(_Network(), images, target=1, c=10.0, kappa=0.5, chunk=7)]
    except MissingDependencyError:
        return []


@register("objective", "attack", _examples)
class Attack(Computed):
    r"""The objective of a universal perturbation: its mean size in the images plus a weighted hinge loss of the logits.

    .. math:: f(\delta) &= \frac1n \sum_i \Bigl( \|x_i' - x_i\|_2
                 + c \max\bigl(h(Z(x_i'), y_i), -\kappa\bigr) \Bigr), \qquad x_i' = x_i'(\delta) \in [a, b] \\
              h(Z, y) &= \max_{j \ne t} Z_j - Z_t \;\text{(a target t)}, \qquad
                 h(Z, y) = Z_y - \max_{j \ne y} Z_j \;\text{(any other class)}

    with the logits Z of a classifier. In pixel space :math:`x_i' = \min(\max(x_i + \delta, a), b)`; in tanh space
    :math:`x_i' = x_i + T(u_i + \delta) - T(u_i)`, clipped as well, with :math:`T(u) = a + (b - a)(1 + \tanh u)/2` and
    :math:`u_i = T^{-1}(x_i)` evaluated at least half a grey level inside [a, b]. With space "tanh-paper"
    :math:`x_i' = T(u_i + \delta)`, as published, so that :math:`\delta = 0` already moves every entry that is nearer
    than half a grey level to an end of the range, by up to :math:`(b - a)/510`.

    Parameters
    ----------
    model : callable
        A torch module, or any callable, that returns logits, shape (m, classes), for m images. Its mode is not changed:
        put a module into ``eval()`` mode first.
    images : tensor or array of floats, shape (n, ...)
        The images, all entries in [a, b]; they are copied. Points are flat vectors with one entry per entry of an
        image, of the array library, dtype and device of `images`. The model always receives tensors.
    labels : tensor or array of int, shape (n,), optional
        The true classes. Default: the predicted classes, where the loss is "label" and there is no target.
    target : int, optional
        The class t that the images should be assigned to.
    loss : {"label", "top2"}
        The hinge without a target. "label": the logit of the label minus the largest other logit. "top2", as in the
        code of the paper: the largest logit minus the second largest, which pushes images back once they have left
        their class.
    space : {"pixel", "tanh", "tanh-paper"}
        How a perturbation is applied; see the formulas above.
    clip : pair of float
        The range [a, b] of the images, a < b.
    c : float
        Weight of the hinge, > 0.
    kappa : float
        Margin by which the logit of a wrong class should exceed the others, >= 0.
    chunk : int, optional
        The number of images that are passed to the model at once. Default: all.

    Raises
    ------
    InvalidInputError
        If an entry of the images is outside [a, b] or not finite; if labels or target are not classes of the model; if
        the model returns logits of a wrong shape, logits without a gradient, or probabilities; if a setting is out of
        range.
    NotFiniteError
        If the model returns NaN or infinity; `evaluate` and `value` raise it, too.
    MissingDependencyError
        If torch is not installed.

    Notes
    -----
    Equations 45 to 47 of the paper with three corrections: h is computed from logits, as by Carlini and Wagner and in
    the code of the paper, instead of probabilities; the distance is computed for each image; and clipping or tanh keep
    the images in their range, which hardly any perturbation does by itself. f is neither convex nor smooth. Cost: as
    for `Function`; one pass is one call of the model on all images.

    References
    ----------
    Bergamaschi, Cristofari, Kungurtsev and Rinaldi (2025), *Probabilistic IHT*, Section 5.1; N. Carlini and D. Wagner
    (2017), Towards evaluating the robustness of neural networks, *IEEE Symposium on Security and Privacy*.

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
        self.clip = _checked_range(clip)
        self.loss = checked_word("loss", loss, ("label", "top2"))
        self.space = checked_word("space", space, SPACES)
        self.c, self.kappa = checked_number("c", c, above=0.0), checked_number("kappa", kappa, least=0.0)
        self.model, self.images = model, _copied(images)
        check_images(self.images, *self.clip)
        zeros = self.images[0].new_zeros(prod(self.images.shape[1:]))
        zeros = zeros.numpy() if isinstance(images, np.ndarray) else zeros
        examples = counted(self.images.shape[0], itself, chunk)
        super().__init__(Torch(self._mean, zeros, False), zeros, examples, 0.0 - self.c * self.kappa)
        self.curvature = self.columns = None  # type: ignore[assignment, method-assign]  # of the kinks of the hinge
        self.n_classes = check_model(model, self.images[:_CHECKED])
        self.target = check_target(target, self.n_classes)
        self.labels = None if labels is None else check_labels(labels, self.images, self.n_classes)
        if self.labels is None and self.target is None and loss == "label":
            self.labels, _ = classes_of(model, self.images, examples.chunk)

    def perturbed(self, images: Any, delta: Array) -> Any:
        """Return a tensor of images, perturbed by a point."""
        return perturb(images, delta, self.space, self.clip)

    def full_moves(self, w: Array, target: int | None = None) -> tuple[Array, Array]:
        """Return the gain of moving each entry to an end of the range in every image, and the better of the two moves.

        The gain is the decrease of the mean hinge (towards another class, if `target` is given) to first order, at
        least 0; a move is the entry of a point that takes all images to an end of the range. Cost: two passes.
        """
        torch, (low, high) = imported("torch"), self.clip
        target = self.target if target is None else target
        to_low, to_high = (self.images.new_zeros(self.shape) for _ in range(2))
        for share, (rows,) in self._batches():
            self._count(2.0, share)
            moved = self.perturbed(self.images[rows], w)
            labels = None if self.labels is None else self.labels[rows]
            slope = input_gradient(partial(self._clipped_hinge_at, labels=labels, target=target), moved)
            if slope is not None:
                to_low = to_low + share * (slope * (moved - low)).mean(0).flatten()
                to_high = to_high + share * (slope * (moved - high)).mean(0).flatten()
        gains = torch.maximum(to_low, to_high).clamp(min=0.0)
        moves = torch.where(to_high > to_low, self._reach, -self._reach).to(gains.dtype)
        return (gains.cpu().numpy(), moves.cpu().numpy()) if isinstance(w, np.ndarray) else (gains, moves)

    def mean_hinge(self, w: Array, target: int | None = None) -> float:
        """Return the mean of max(h, -kappa), towards another class if `target` is given. Cost: one pass."""
        target, total = self.target if target is None else target, 0.0
        with imported("torch").no_grad():
            for share, (rows,) in self._batches():
                self._count(1.0, share)
                labels = None if self.labels is None else self.labels[rows]
                hinge = self._clipped_hinge_at(self.perturbed(self.images[rows], w), labels, target)
                total += share * float(hinge.mean())
        return total

    def nearest_classes(self, count: int) -> list[int]:
        """Return the classes whose logits are nearest to the largest one, in the mean over some images."""
        with imported("torch").no_grad():
            Z = logits_of(self.model, self.images[:CHUNK])
        gaps = (Z.amax(1, keepdim=True) - Z).mean(0)
        return [int(j) for j in gaps.argsort(stable=True)[:count]]

    @property
    def _reach(self) -> float:
        """The least entry of a point that takes every image to the upper end of the range, or as near as it can."""
        return self.clip[1] - self.clip[0] if self.space == "pixel" else 2.0 * atanh(1.0 - 2.0 * _MARGIN)

    def has_zero_gradient(self) -> bool:
        """Return whether the gradient of h vanishes at every image, as for a model that rounds its input."""
        assert self._examples is not None
        for rows in imported("torch").arange(self.images.shape[0]).split(self._examples.chunk):
            labels = None if self.labels is None else self.labels[rows]
            gradient = input_gradient(partial(self._hinge_at, labels=labels, target=self.target), self.images[rows])
            if gradient is not None and bool(gradient.any()):
                return False
        return True

    def _mean(self, delta: Any, rows: Any) -> Any:
        """Return the mean over the images with the given indices."""
        images = self.images[rows]
        moved = self.perturbed(images, delta)
        hinge = self._clipped_hinge_at(moved, None if self.labels is None else self.labels[rows], self.target)
        distance = imported("torch").linalg.vector_norm((moved - images).flatten(1), dim=1)
        return (distance + self.c * hinge).mean()

    def _clipped_hinge_at(self, images: Any, labels: Any, target: int | None) -> Any:
        """Return max(h, -kappa) at every image."""
        return _clamp(self._hinge_at(images, labels, target), -self.kappa)

    def _hinge_at(self, images: Any, labels: Any, target: int | None) -> Any:
        """Return h at every image, which is negative where a wrong class (or the target) has the largest logit."""
        Z = logits_of(self.model, images)
        if target is None and self.loss == "top2":
            first, second = Z.topk(2, dim=1).values.T
            return first - second
        if target is None:
            own = Z.gather(1, labels[:, None])[:, 0]
            return own - Z.scatter(1, labels[:, None], -inf).amax(1)
        others = imported("torch").cat([Z[:, :target], Z[:, target + 1 :]], dim=1)
        return others.amax(1) - Z[:, target]


def perturb(images: Any, delta: Any, space: str, clip: tuple[float, float]) -> Any:
    """Return images perturbed by a point of one of the spaces, within the range `clip`."""
    torch, (low, high) = imported("torch"), clip
    delta = torch.as_tensor(delta, dtype=images.dtype, device=images.device).reshape(images.shape[1:])
    if space == "pixel":
        return _clamp(images + delta, low, high)
    start = torch.clamp((images - low) / (high - low), _MARGIN, 1.0 - _MARGIN)
    moved = 0.5 * (1.0 + torch.tanh(torch.atanh(2.0 * start - 1.0) + delta))
    if space == "tanh-paper":
        return _clamp(low + (high - low) * moved, low, high)
    shift = (high - low) * (moved - start)
    zero = shift - shift.detach()  # exactly zero where delta is, without rounding errors; its gradient is that of shift
    return _clamp(images + torch.where(delta == 0, zero, shift), low, high)


def changes(images: Any, perturbed: Any, space: str, clip: tuple[float, float]) -> Any:
    """Return what a perturbation changes in each image: zero outside of its support.

    It is compared with the images at delta = 0, which in space "tanh-paper" are not quite the images themselves.
    """
    return perturbed - perturb(images, images.new_zeros(images.shape[1:]), space, clip)


def _clamp(x: Any, low: float, high: float = inf) -> Any:
    """Return x clipped, with gradient 1 at the bounds, so that a black pixel can be brightened (torch 2.15: 0)."""
    torch = imported("torch")
    return torch.where(x < low, low, torch.where(x > high, high, x))


def _checked_range(clip: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in clip)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"clip must be a pair of numbers, got {format_value(clip)}") from error
    if not -inf < low < high < inf:
        raise InvalidInputError(f"clip must be finite and increasing, got {format_value(clip)}")
    return low, high


def _copied(images: Any) -> Any:
    """Return a copy of the images as a tensor."""
    torch = imported("torch")
    copy = torch.from_numpy(images.copy()) if isinstance(images, np.ndarray) and images.dtype.kind == "f" else images
    if not (isinstance(copy, torch.Tensor) and copy.is_floating_point() and copy.ndim >= 2 and copy.numel()):
        raise InvalidInputError(
            "images must be a floating tensor or array of at least two axes, the first for the images, and not empty"
        )
    return copy.detach().clone() if copy is images else copy
