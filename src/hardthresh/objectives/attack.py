"""What one perturbation, added to every image, costs and does to a classifier: a robustness test."""

from __future__ import annotations

from math import inf, prod
from typing import Any

import numpy as np

from hardthresh.core.checking import checked_word
from hardthresh.core.errors import InvalidInputError, MissingDependencyError, NotFiniteError, format_value
from hardthresh.core.registry import register
from hardthresh.core.typing import Array, is_integer, is_real

from .computed import Computed
from .sources import Torch, counted, imported, itself, refuse_inference

_LOOK = 10  # images on which a model is looked at before it is attacked
_NORMALISED = 1e-3  # how far from 1 the sum of probabilities may be
_MARGIN = 0.5 / 255  # how far inside their range the tanh map keeps the entries of images, as a share of the range


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
    images : tensor or array of floats, shape (n, ...)
        The images, all entries in [a, b]; they are copied. Points are flat vectors of the size of an image, of its
        library and dtype, on its device. The model is given tensors in any case.
    labels : tensor or array of int, shape (n,), optional
        The true classes. The loss "label" takes the classes that the model says, if there are none.
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
        of the right shape, or probabilities instead, or logits that no gradient reaches, numbers out of range.
    NotFiniteError
        If the model returns NaN or infinity; also by `evaluate` and `value`.
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
        self.clip = _range(clip)
        self.loss = checked_word("loss", loss, ("label", "top2"))
        self.space = checked_word("space", space, ("pixel", "tanh"))
        if not (is_real(c) and 0 < c < inf and is_real(kappa) and 0 <= kappa < inf):
            raise InvalidInputError(
                f"need c > 0 and kappa >= 0, both finite, got {format_value(c)} and {format_value(kappa)}"
            )
        self.c, self.kappa = float(c), float(kappa)
        self.model, self.images = check_model(model), _copied(images)
        check_images(self.images, *self.clip)
        zeros = self.images[0].new_zeros(prod(self.images.shape[1:]))
        zeros = zeros.numpy() if isinstance(images, np.ndarray) else zeros
        examples = counted(self.images.shape[0], itself, chunk)
        super().__init__(Torch(self._mean, zeros, False), zeros, examples, 0.0 - self.c * self.kappa)
        self.n_classes = check_logits(model, self.images[:_LOOK])
        self.target = check_target(target, self.n_classes)
        self.labels = None if labels is None else check_labels(labels, self.images, self.n_classes)
        if self.labels is None and self.target is None and loss == "label":
            self.labels, _ = classes_of(model, self.images, examples.chunk)

    def perturbed(self, images: Any, delta: Array) -> Any:
        """Return some images, a tensor, perturbed by a point."""
        return perturb(images, delta, self.space, self.clip)

    def is_blind(self) -> bool:
        """Return whether h has the gradient zero at every image, as that of a model that rounds."""
        assert self._examples is not None
        for rows in imported("torch").arange(self.images.shape[0]).split(self._examples.chunk):
            labels = None if self.labels is None else self.labels[rows]
            slope = slope_of(
                lambda images, own=labels: self._lead(logits_of(self.model, images), own), self.images[rows]
            )
            if slope is not None and bool(slope.any()):
                return False
        return True

    def _mean(self, delta: Any, rows: Any) -> Any:
        """Return the mean over some images."""
        images = self.images[rows]
        moved = self.perturbed(images, delta)
        lead = self._lead(logits_of(self.model, moved), None if self.labels is None else self.labels[rows])
        distance = imported("torch").linalg.vector_norm((moved - images).flatten(1), dim=1)
        return (distance + self.c * _clamp(lead, -self.kappa)).mean()

    def _lead(self, Z: Any, labels: Any) -> Any:
        """Return h, by how much the wanted classes are behind."""
        if self.target is None and self.loss == "top2":
            first, second = Z.topk(2, dim=1).values.T
            return first - second
        if self.target is None:
            own = Z.gather(1, labels[:, None])[:, 0]
            return own - Z.scatter(1, labels[:, None], -inf).amax(1)
        others = imported("torch").cat([Z[:, : self.target], Z[:, self.target + 1 :]], dim=1)
        return others.amax(1) - Z[:, self.target]


def logits_of(model: Any, images: Any) -> Any:
    """Return what a model says about some images, after a look at it.

    Raises
    ------
    InvalidInputError
        If it is no tensor of shape (m, classes), with two classes or more.
    NotFiniteError
        If it is NaN or infinite somewhere.
    """
    torch = imported("torch")
    Z, m = model(images), images.shape[0]
    shape = tuple(getattr(Z, "shape", ()))
    if not isinstance(Z, torch.Tensor) or len(shape) != 2 or shape[0] != m or shape[1] < 2:
        raise InvalidInputError(
            f"for {m} images the model must return a tensor of logits, shape ({m}, classes) with two classes or more; "
            f"got {f'shape {shape}' if shape else type(Z).__name__}"
        )
    if not bool(torch.isfinite(Z).all()):
        raise NotFiniteError("the model returned logits that are NaN or infinite; one of finite logits is needed")
    return Z


def slope_of(fn: Any, images: Any) -> Any:
    """Return the gradient of the sum of what a callable makes of images; None where there is none to be seen."""
    torch = imported("torch")
    refuse_inference()
    with torch.enable_grad():
        images = images.detach().clone().requires_grad_(True)
        total = fn(images).sum()
        return torch.autograd.grad(total, images, allow_unused=True)[0] if total.requires_grad else None


def check_logits(model: Any, images: Any) -> int:
    """Return how many classes a model knows, if it is one that can be attacked.

    Raises
    ------
    InvalidInputError
        If it returns no logits, or probabilities in their place, whose gradients vanish where it is sure; or if no
        gradient reaches what it returns: nothing would be found, and that would say nothing.
    """
    with imported("torch").no_grad():
        Z = logits_of(model, images)
    if bool((Z >= 0).all()) and bool(((Z.sum(1) - 1.0).abs() <= _NORMALISED).all()):
        raise InvalidInputError(
            "the model returns probabilities, rows that are not negative and sum to 1, whose gradients vanish where it "
            "is sure; give a model that returns the logits, without the softmax at its end"
        )
    if slope_of(lambda x: logits_of(model, x), images) is None:
        raise InvalidInputError(
            "no gradient reaches the logits from the images, so nothing could be found, which would say nothing about "
            "the model: use torch operations only, and neither torch.no_grad(), detach(), numpy() nor integers in it"
        )
    return int(Z.shape[1])


def classes_of(model: Any, images: Any, chunk: int = 1) -> tuple[Any, int]:
    """Return the classes that a model says, `chunk` images at a time, and how many it knows."""
    torch, found, count = imported("torch"), [], 0
    with torch.no_grad():
        for start in range(0, images.shape[0], chunk):
            Z = logits_of(model, images[start : start + chunk])
            found.append(Z.argmax(1))
            count = int(Z.shape[1])
    return torch.cat(found), count


def perturb(images: Any, delta: Any, space: str, clip: tuple[float, float]) -> Any:
    """Return images, perturbed by a point of a space, inside of their range."""
    torch, (low, high) = imported("torch"), clip
    delta = torch.as_tensor(delta, dtype=images.dtype, device=images.device).reshape(images.shape[1:])
    if space == "pixel":
        return _clamp(images + delta, low, high)
    start = torch.clamp((images - low) / (high - low), _MARGIN, 1.0 - _MARGIN)
    moved = 0.5 * (1.0 + torch.tanh(torch.atanh(2.0 * start - 1.0) + delta))
    shift = (high - low) * (moved - start)
    still = shift - shift.detach()  # nothing is moved there, not even by rounding; the slope is that of the formula
    return _clamp(images + torch.where(delta == 0, still, shift), low, high)


def _clamp(x: Any, low: float, high: float = inf) -> Any:
    """Return x within bounds, with slope 1 at the bounds: a black pixel can be brightened. That of torch 2.15 has 0."""
    torch = imported("torch")
    return torch.where(x < low, low, torch.where(x > high, high, x))


def numeric(name: str, x: Any) -> np.ndarray:
    """Return numbers as an array of their own."""
    try:
        array = np.array(x)
    except ValueError as error:
        raise InvalidInputError(f"{name} must be a numeric array: {error}") from error
    if array.dtype.kind not in "fiub":
        raise InvalidInputError(f"{name} must be numeric, got dtype {array.dtype}")
    return array


def check_model(model: Any) -> Any:
    """Return a model, if it can be called."""
    if not callable(model):
        raise InvalidInputError(
            f"model must be a torch module or a callable that returns logits, got {format_value(model)}"
        )
    return model


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
    labels = labels.detach().clone() if isinstance(labels, torch.Tensor) else torch.as_tensor(numeric("labels", labels))
    if tuple(labels.shape) != (images.shape[0],):
        raise InvalidInputError(f"labels have shape {tuple(labels.shape)}; ({images.shape[0]},) is needed")
    if labels.dtype == torch.bool and n_classes != 2:
        raise InvalidInputError(f"labels are truth values, but the model knows {n_classes} classes; give their numbers")
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
    if not is_integer(target) or not 0 <= target < n_classes:
        raise InvalidInputError(
            f"target must be one of the model's classes 0 .. {n_classes - 1}, got {format_value(target)}"
        )
    return int(target)


def _range(clip: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in clip)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"clip must be a pair of numbers, got {format_value(clip)}") from error
    if not -inf < low < high < inf:
        raise InvalidInputError(f"clip must be finite and increasing, got {format_value(clip)}")
    return low, high


def _copied(images: Any) -> Any:
    """Return images as a tensor of their own."""
    torch = imported("torch")
    copy = torch.from_numpy(images.copy()) if isinstance(images, np.ndarray) and images.dtype.kind == "f" else images
    if not (isinstance(copy, torch.Tensor) and copy.is_floating_point() and copy.ndim >= 2 and copy.numel()):
        raise InvalidInputError(
            "images must be a floating tensor or array of at least two axes, the first for the images, and not empty"
        )
    return copy.detach().clone() if copy is images else copy
