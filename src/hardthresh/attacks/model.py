"""The classifier under test: what it returns for images, and the checks of images, labels and target against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, NotFiniteError, format_value
from hardthresh.core.typing import is_integer
from hardthresh.objectives.derivatives import imported, refuse_inference

CHUNK = 1000  # images passed to the model at once; bounds the memory, and affects results by rounding only

_SUM_TOLERANCE = 1e-3  # how far from 1 a row of probabilities may sum to: the rounding of half precision


def logits_of(model: Any, images: Any) -> Any:
    """Return the logits of images, shape (m, classes), after checking them.

    Raises
    ------
    InvalidInputError
        If the model is not callable, or does not return a tensor of shape (m, classes) with at least two classes.
    NotFiniteError
        If a logit is NaN or infinite.
    """
    if not callable(model):
        raise InvalidInputError(
            f"model must be a torch module or a callable that returns logits, got {format_value(model)}"
        )
    torch = imported("torch")
    Z, m = model(images), images.shape[0]
    shape = tuple(getattr(Z, "shape", ()))
    if not isinstance(Z, torch.Tensor) or len(shape) != 2 or shape[0] != m or shape[1] < 2:
        raise InvalidInputError(
            f"for {m} images the model must return a tensor of logits, shape ({m}, classes) with two classes or more; "
            f"got {f'shape {shape}' if shape else type(Z).__name__}"
        )
    if not bool(torch.isfinite(Z).all()):
        raise NotFiniteError("the model returned logits that are NaN or infinite; every logit must be finite")
    return Z


def classes_of(model: Any, images: Any, chunk: int = CHUNK) -> tuple[Any, int]:
    """Return the predicted class of every image, and the number of classes; `chunk` images at a time."""
    torch, predicted, n_classes = imported("torch"), [], 0
    with torch.no_grad():
        for some in images.split(chunk):
            Z = logits_of(model, some)
            predicted.append(Z.argmax(1))
            n_classes = int(Z.shape[1])
    return torch.cat(predicted), n_classes


def input_gradient(fn: Callable[[Any], Any], images: Any) -> Any:
    """Return the gradient of the sum of ``fn(images)`` with respect to images; None if autograd finds no path."""
    torch = imported("torch")
    refuse_inference()
    with torch.enable_grad():
        images = images.detach().clone().requires_grad_(True)
        total = fn(images).sum()
        return torch.autograd.grad(total, images, allow_unused=True)[0] if total.requires_grad else None


def check_model(model: Any, images: Any) -> int:
    """Return the number of classes of a model, after checking that it returns logits with a gradient.

    Raises
    ------
    InvalidInputError
        If it returns probabilities, or logits without a gradient. A search would find nothing in either case, which
        would be mistaken for robustness.
    """
    with imported("torch").no_grad():
        Z = logits_of(model, images)
    if bool((Z >= 0).all()) and bool(((Z.sum(1) - 1.0).abs() <= _SUM_TOLERANCE).all()):
        raise InvalidInputError(
            "the model returns probabilities (rows that are non-negative and sum to 1), whose gradients vanish where "
            "the model is confident; give a model that returns the logits, without the final softmax"
        )
    if input_gradient(lambda x: logits_of(model, x), images) is None:
        raise InvalidInputError(
            "no gradient reaches the logits from the images, so a search would find nothing, whether or not the model "
            "is robust: use only torch operations in the model, and neither torch.no_grad(), detach(), numpy() nor "
            "integers"
        )
    return int(Z.shape[1])


@contextmanager
def evaluation_mode(model: Any) -> Iterator[None]:
    """Put a torch module into evaluation mode, and restore the mode of each of its parts afterwards."""
    parts = [(part, part.training) for part in model.modules()] if _is_module(model) else []
    for part, _ in parts:
        part.training = False
    try:
        yield
    finally:
        for part, mode in parts:
            part.training = mode


def images_for(model: Any, X: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return images as a tensor of the model's dtype and device, and a function that converts tensors back."""
    torch = imported("torch")
    given = X.detach().clone() if isinstance(X, torch.Tensor) else torch.as_tensor(_numeric("X", X))
    if given.ndim < 2 or 0 in given.shape:
        raise InvalidInputError(f"X has shape {tuple(given.shape)}; at least one image, on the first axis, is needed")
    like = next((p for p in model.parameters() if p.is_floating_point()), None) if _is_module(model) else None
    if like is not None:
        images = given.to(device=like.device, dtype=like.dtype)
    else:
        images = given if given.is_floating_point() else given.to(torch.get_default_dtype())
    if isinstance(X, torch.Tensor):
        return images, lambda t: t.detach().to(
            device=given.device, dtype=given.dtype if given.is_floating_point() else t.dtype
        )
    dtype = given.dtype if given.is_floating_point() else None

    def as_array(t: Any) -> np.ndarray:
        exact = torch.float32 if t.dtype == torch.bfloat16 else t.dtype  # NumPy has no bfloat16
        array: np.ndarray = t.detach().to(device="cpu", dtype=dtype or exact, copy=True).numpy()
        return array

    return images, as_array


def check_images(images: Any, low: float, high: float) -> None:
    """Check that all entries of images are in [low, high]."""
    inside = (images >= low) & (images <= high)
    if not bool(inside.all()):
        worst = images[~inside][0].item()
        raise InvalidInputError(
            f"images must be finite and in clip = [{low:g}, {high:g}]; got {worst:g}: rescale them, or give clip="
        )


def check_labels(labels: Any, images: Any, n_classes: int) -> Any:
    """Return labels as an integer tensor on the device of the images, one label for each."""
    torch = imported("torch")
    given = labels.detach().clone() if isinstance(labels, torch.Tensor) else torch.as_tensor(_numeric("labels", labels))
    if tuple(given.shape) != (images.shape[0],):
        raise InvalidInputError(f"labels have shape {tuple(given.shape)}; ({images.shape[0]},) is needed")
    if given.dtype == torch.bool and n_classes != 2:
        raise InvalidInputError(f"labels are booleans, but the model has {n_classes} classes; give class numbers")
    whole = given.to(torch.int64)
    if not bool((whole == given).all()) or bool((whole < 0).any()) or bool((whole >= n_classes).any()):
        raise InvalidInputError(
            f"labels must be classes 0 .. {n_classes - 1} of the model, got values from {given.min().item()} to "
            f"{given.max().item()}"
        )
    return whole.to(images.device)


def check_target(target: Any, n_classes: int) -> int | None:
    """Return the target class as an int; None stays None."""
    if target is None:
        return None
    if not is_integer(target) or not 0 <= target < n_classes:
        raise InvalidInputError(
            f"target must be one of the model's classes 0 .. {n_classes - 1}, got {format_value(target)}"
        )
    return int(target)


def _is_module(model: Any) -> bool:
    return isinstance(model, imported("torch").nn.Module)


def _numeric(name: str, x: Any) -> np.ndarray:
    """Return a copy of numbers as an array."""
    try:
        array = np.array(x)
    except ValueError as error:
        raise InvalidInputError(f"{name} must be a numeric array: {error}") from error
    if array.dtype.kind not in "fiub":
        raise InvalidInputError(f"{name} must be numeric, got dtype {array.dtype}")
    return array
