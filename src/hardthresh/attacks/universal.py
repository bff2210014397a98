"""One sparse perturbation for all images: whether a classifier stands it, and what it does to which class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import nan, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.constraints import GroupSparsity, Sparsity
from hardthresh.core.checking import checked_integer, checked_word
from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import InvalidInputError, warn
from hardthresh.core.result import Result, Status
from hardthresh.core.schema import stored
from hardthresh.core.solver import Solver
from hardthresh.core.typing import Array
from hardthresh.objectives.attack import (
    Attack,
    check_images,
    check_labels,
    check_model,
    check_target,
    classes_of,
    numeric,
    perturb,
)
from hardthresh.objectives.sources import imported
from hardthresh.solvers import ProbabilisticIHT, minimize
from hardthresh.solvers.batches import NormTest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CHUNK = 1000  # images that go through the model at once
_FIRST = 500  # images of the first mini-batch of the first search
_FEW = 50  # and of those after it, which is what makes them find other pixels
_STARTS = 4
_COLOURS = (1, 3, 4)  # as many channels as pictures have


@stored("result/universal_perturbation")
@dataclass(frozen=True, slots=True, repr=False)
class UniversalPerturbation:
    """A perturbation, and what a model makes of some images with and without it.

    Images are arrays of the library of those that were given: NumPy arrays, or tensors on their device.

    Attributes
    ----------
    delta : array of the shape of one image
        In the space of images. For the space "pixel", what is added before clipping; for "tanh", where images change by
        different amounts, the mean change.
    images : array, shape (n, ...)
        The perturbed images, in the range of the images.
    accuracy_before, accuracy_after : float
        The share of images that the model says the label of. Without labels, its own classes of the unperturbed images
        stand for them.
    target_rate : float
        The share of perturbed images taken for the target; nan without a target.
    success_by_class : array, shape (classes,)
        For each class the share of its images taken for the target, or, without a target, for another class; nan for a
        class without images.
    n_changed : int
        How many pixels (or entries, or channels) differ in any of the perturbed images: at most k.
    predicted_before, predicted_after : array of int, shape (n,)
        The classes that the model says.
    labels : array of int, shape (n,)
        The true classes, or what stands for them.
    target : int or None
        The class that images are to be taken for.
    unit : {"pixel", "entry", "channel"}
        What k counts.
    k : int
        The budget of the search.
    originals : array, shape (n, ...)
        The images without the perturbation.
    result : Result
        The search that found it; ``result.w`` is the point in the space of the search.
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
    def converged(self) -> bool:
        """Whether the search ended because nothing was left to improve, and not at its limit of iterations.

        Neither says how strong the perturbation is: that is measured, in `accuracy_after` and `target_rate`.
        """
        return self.result.converged

    @property
    def message(self) -> str:
        """Why the search ended."""
        return self.result.message

    def __repr__(self) -> str:
        accuracy = f"accuracy {self.accuracy_before:.3g} -> {self.accuracy_after:.3g}"
        taken = "" if self.target is None else f", taken for {self.target}: {self.target_rate:.3g}"
        return (
            f"UniversalPerturbation({self.n_changed} of k={self.k} {self.unit}s, {accuracy}{taken}, "
            f"converged={self.converged}: {self.message})"
        )

    def evaluate(self, model: Any, X: Any, y: Any = None) -> UniversalPerturbation:
        """Return the same perturbation, measured on other images, another model, or both: a defence, say.

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
            With the numbers of this model and these images; `delta` and `result` stay.

        Raises
        ------
        InvalidInputError
            For images of another shape or range, labels or a target that are no classes of the model.
        """
        torch = imported("torch")
        images, give_back = _tensor(torch, model, X)
        if tuple(images.shape[1:]) != tuple(self.delta.shape):
            raise InvalidInputError(
                f"images have shape {tuple(images.shape[1:])}, the perturbation {tuple(self.delta.shape)}"
            )
        check_images(images, *self._clip)
        moved = perturb(images, self.result.w, self._space, self._clip)
        with _as_tested(torch, model):
            measured = _measured(model, images, moved, y, self.target)
        changed = _changed(moved != images, self.unit)
        return replace(self, images=give_back(moved), originals=give_back(images), n_changed=changed, **measured)

    def plot(self, n: int = 8) -> Figure:
        """Draw images, the same images perturbed, and the change; titles say the class that the model sees.

        Parameters
        ----------
        n : int
            How many images: those that leave their class (or reach the target) come first.

        Returns
        -------
        matplotlib Figure

        Raises
        ------
        InvalidInputError
            For flat images, whose height and width are not known, or n < 1.
        MissingDependencyError
            If matplotlib is not installed.
        """
        from .pictures import draw

        return draw(self, n)


def universal_perturbation(
    model: Any,
    X: Any,
    y: Any = None,
    k: int = 25,
    *,
    target: int | None = None,
    space: str = "pixel",
    clip: tuple[float, float] = (0.0, 1.0),
    unit: str = "pixel",
    loss: str = "label",
    c: float = 2.0,
    kappa: float = 0.0,
    solver: Solver | None = None,
    starts: int | None = None,
    max_iter: int = 100,
    seed: int = 0,
    progress: bool = False,
) -> UniversalPerturbation:
    r"""Find one perturbation of at most k pixels that, added to every image, misleads a classifier.

    .. math:: \min_{\delta} \frac1n \sum_i \bigl( \|x_i' - x_i\|_2 + c \, h_i(x_i') \bigr)
              \quad\text{subject to}\quad \delta \text{ non-zero in at most k pixels}

    with the perturbed images :math:`x_i'` inside of their range and the hinge :math:`h_i` of the logits; see
    `hardthresh.objectives.Attack`. This is a robustness test: what a model says about images of which an unlucky few
    pixels are broken, and whether a defence helps. Test models that are yours to test.

    Parameters
    ----------
    model : torch module or callable
        Returns logits, shape (m, classes), for a tensor of m images. A module is looked at in ``eval()`` mode and left
        as it was; neither its parameters nor their gradients are touched.
    X : array, shape (n, channels, height, width), (n, height, width) or (n, d)
        Images, all entries in `clip`. A NumPy array or a tensor; it is computed in the dtype and on the device of the
        model's parameters.
    y : array of int, shape (n,), optional
        The true classes. Default: the classes that the model says.
    k : int
        Budget, from 0 to the number of what `unit` counts.
    target : int, optional
        The class that images are to be taken for; default any wrong one.
    space : {"pixel", "tanh"}
        How images are kept in their range: by clipping, or by a change of variables, as in the paper, which hardly
        reaches black and white pixels and needs many more of them.
    clip : pair of float
        The range of the images.
    unit : {"pixel", "entry", "channel"}
        What k counts: pixels, all channels of one counting once; single entries of the image; or whole channels.
    loss : {"label", "top2"}
        Without a target; "top2" is that of the paper's code, and weaker.
    c, kappa : float
        The weight of the logits, and by how much a wrong class should lead.
    solver : Solver, optional
        Default `ProbabilisticIHT`, in every second search with the settings of the paper, on mini-batches of 50 images
        at first (500 in the first search), and more where the norm test asks for them.
    starts : int, optional
        How many searches, on mini-batches of their own; the perturbation that misleads most of the images is returned.
        Default 4; with a solver of your own 1.
    max_iter : int
        Limit of iterations of a search.
    seed : int
        Of the mini-batches: the same seed gives the same perturbation.
    progress : bool
        Show a progress line.

    Returns
    -------
    UniversalPerturbation

    Raises
    ------
    InvalidInputError
        For images outside `clip`, labels or a target that are no classes, a k out of range, a model that returns no
        logits but NaN or probabilities, or logits that no gradient reaches.
    MissingDependencyError
        If torch is not installed.

    Warns
    -----
    UserWarning
        If the gradient of the logits is zero at every image, as that of a model that rounds, so that the search sees
        nothing; or if the last axis of X looks like that of the channels.

    Notes
    -----
    Cost: at most three batches through the model per iteration of each search. Heuristic: the problem is not convex,
    and a better perturbation may exist; that none was found does not prove that a model is robust. Searches that differ
    in their mini-batches alone end at perturbations of very different strength, which is why there are several: by
    default in turns with the settings of `ProbabilisticIHT` and with those of the paper. In the space of pixels a
    search often ends early and rightly says that the gradient vanishes: where the perturbation has made a pixel black
    or white in every image, a little more of it changes nothing.

    Some searches end at `max_iter` instead (22 of 80 on two networks, k from 1 to 25), as the paper's all do, which
    have a fixed number of iterations. The answer's strength is measured, converged or not, so there is no warning:
    `UniversalPerturbation.converged`, its `message` and its repr say it.

    References
    ----------
    *Probabilistic IHT*, Section 5.1; N. Carlini and D. Wagner (2017), Towards evaluating the robustness of neural
    networks, *IEEE Symposium on Security and Privacy*.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> X = np.random.default_rng(0).uniform(0.2, 0.8, (200, 4, 4))
    >>> y = (X[:, 0, 0] > X[:, 3, 3]).astype(int)
    >>> def logits(x):
    ...     difference = 9.0 * (x[:, 0, 0] - x[:, 3, 3])
    ...     return torch.stack([-difference, difference], dim=1)
    >>> p = universal_perturbation(logits, X, y, k=1, target=1)
    >>> p.accuracy_before, p.target_rate > 0.9
    (1.0, True)
    >>> np.argwhere(p.delta).tolist() in ([[0, 0]], [[3, 3]])
    True
    """
    torch = imported("torch")
    images, give_back = _tensor(torch, model, X)
    constraint = _budget(k, unit, tuple(images.shape[1:]))
    with _as_tested(torch, model):
        f = Attack(model, images, y, target=target, loss=loss, space=space, clip=clip, c=c, kappa=kappa, chunk=_CHUNK)
        if f.is_blind():
            warn(
                "the gradient of the logits is zero at every image, as that of a model that rounds, so the search does "
                "not see what pixels do; that it finds little says nothing about the model: search on one without the "
                "rounding, and measure with evaluate()",
            )
        starts = checked_integer("starts", (1 if solver else _STARTS) if starts is None else starts, 1)
        result = _best(f, _searches(f, constraint, solver, starts, seed, max_iter=max_iter, progress=progress))
        moved = f.perturbed(images, result.w)
        measured = _measured(model, images, moved, y, f.target)
    return UniversalPerturbation(
        delta=give_back(_delta(f, images, moved, result.w)),
        images=give_back(moved),
        n_changed=_within(moved != images, unit, k),
        target=f.target,
        unit=unit,
        k=int(k),
        originals=give_back(images),
        result=result,
        _space=space,
        _clip=f.clip,
        **measured,
    )


def _searches(
    f: Attack, constraint: Constraint, solver: Solver | None, starts: int, seed: int, **options: Any
) -> Iterator[Result]:
    """Yield the runs of several searches, until one is interrupted."""
    for start in range(starts):
        own = seed if start < 2 else int(np.random.default_rng((seed, start)).integers(2**31))
        result = minimize(f, constraint, solver or _default(f, start), seed=own, **options)
        yield result
        if result.status is Status.INTERRUPTED:
            return


def _default(f: Attack, start: int) -> Solver:
    """Return the solver of a search: by turns with the settings of ours and of the paper, in units of the range."""
    if start % 2 == 0:
        return ProbabilisticIHT(batch=NormTest(_FEW if start else _FIRST))
    reach = f.clip[1] - f.clip[0] if f.space == "pixel" else 1.0
    return ProbabilisticIHT(variant="paper", alpha=reach**2, delta0=reach, delta_max=10.0 * reach, batch=NormTest(_FEW))


def _best(f: Attack, results: Iterable[Result]) -> Result:
    """Return the run whose perturbation misleads most images, and of several the one with the smallest objective."""
    return min(results, key=lambda result: (-_misled(f, result), result.value))


def _misled(f: Attack, result: Result) -> float:
    """Return the share of images that are taken for the target, or for a class that is not their own."""
    after, _ = classes_of(f.model, f.perturbed(f.images, result.w), _CHUNK)
    if f.target is not None:
        return _share(after == f.target)
    own = f.labels if f.labels is not None else classes_of(f.model, f.images, _CHUNK)[0]
    return _share(after != own)


def _delta(f: Attack, images: Any, moved: Any, w: Any) -> Any:
    """Return what is added to images; where that differs from image to image, the mean of it."""
    if f.space == "tanh":
        return (moved - images).mean(0)
    reach = f.clip[1] - f.clip[0]
    return w.reshape(images.shape[1:]).clamp(-reach, reach)


def _within(different: Any, unit: str, k: int) -> int:
    """Return how many pixels, entries or channels differ, if the solver kept to the budget."""
    changed = _changed(different, unit)
    if changed > k:
        raise InvalidInputError(
            f"the solver left the budget: {changed} of at most {k} {unit}s differ; use another solver"
        )
    return changed


def _tensor(torch: Any, model: Any, X: Any) -> tuple[Any, Any]:
    """Return images as a tensor in the dtype and on the device of a model, and how to bring results back."""
    given = X.detach().clone() if isinstance(X, torch.Tensor) else torch.as_tensor(numeric("X", X))
    if given.ndim < 2 or 0 in given.shape:
        raise InvalidInputError(f"X has shape {tuple(given.shape)}; at least one image, on the first axis, is needed")
    like = next((p for p in model.parameters() if p.is_floating_point()), None) if _is_module(torch, model) else None
    if like is not None:
        images = given.to(device=like.device, dtype=like.dtype)
    else:
        images = given if given.is_floating_point() else given.to(torch.get_default_dtype())
    if isinstance(X, torch.Tensor):
        return images, lambda t: t.detach().to(
            device=given.device, dtype=given.dtype if given.is_floating_point() else t.dtype
        )
    kind = given.numpy().dtype if given.is_floating_point() else None
    return images, lambda t: t.detach().cpu().numpy().astype(kind or t.detach().cpu().numpy().dtype)


def _is_module(torch: Any, model: Any) -> bool:
    return isinstance(check_model(model), torch.nn.Module)


@contextmanager
def _as_tested(torch: Any, model: Any) -> Iterator[None]:
    """Look at a model in eval mode, and leave every part of it in the mode that it was in."""
    parts = [(part, part.training) for part in model.modules()] if _is_module(torch, model) else []
    for part, _ in parts:
        part.training = False
    try:
        yield
    finally:
        for part, mode in parts:
            part.training = mode


def _budget(k: Any, unit: str, shape: tuple[int, ...]) -> Constraint:
    """Return the set of perturbations with at most k pixels, entries or channels."""
    checked_word("unit", unit, ("pixel", "entry", "channel"))
    if unit == "channel" and len(shape) != 3:
        raise InvalidInputError(f"images of shape {shape} have no axis of channels; use (n, channels, height, width)")
    channels, size = (shape[0] if len(shape) == 3 else 1), prod(shape)
    if len(shape) == 3 and unit != "entry" and shape[2] in _COLOURS and min(shape[:2]) > max(_COLOURS):
        warn(
            f"an image has the shape {shape}, whose first axis is taken for that of {channels} channels; give X as "
            "(n, channels, height, width)",
        )
    count = {"pixel": size // channels, "entry": size, "channel": channels}[unit]
    budget = checked_integer("k", k)
    if not 0 <= budget <= count:
        raise InvalidInputError(f"k must be from 0 to the {count} {unit}s of an image, got {budget}")
    if count == size:
        return Sparsity(budget)
    labels = np.arange(size) % count if unit == "pixel" else np.arange(size) // (size // channels)
    return GroupSparsity(labels.tolist(), budget)


def _changed(different: Any, unit: str) -> int:
    """Return how many pixels, entries or channels differ in any image."""
    anywhere = different.any(0)
    if anywhere.ndim == 3 and unit != "entry":
        anywhere = anywhere.any(0) if unit == "pixel" else anywhere.flatten(1).any(1)
    return int(anywhere.sum())


def _measured(model: Any, images: Any, moved: Any, y: Any, target: int | None) -> dict[str, Any]:
    """Return what a model makes of images with and without a perturbation, by the names of the fields."""
    before, n_classes = classes_of(model, images, _CHUNK)
    after, _ = classes_of(model, moved, _CHUNK)
    labels = before if y is None else check_labels(y, images, n_classes)
    check_target(target, n_classes)
    success = (after != labels) if target is None else (after == target)
    of_class = [labels == j for j in range(n_classes)]
    return {
        "accuracy_before": _share(before == labels),
        "accuracy_after": _share(after == labels),
        "target_rate": nan if target is None else _share(after == target),
        "success_by_class": np.array([_share(success[own]) if bool(own.any()) else nan for own in of_class]),
        "predicted_before": to_numpy(before),
        "predicted_after": to_numpy(after),
        "labels": to_numpy(labels),
    }


def _share(where: Any) -> float:
    return float(where.double().mean())
