"""The search for a universal perturbation: several runs of a solver, of which the strongest is returned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any

import numpy as np

from hardthresh.constraints import GroupSparsity, Sparsity
from hardthresh.core.checking import checked_integer, checked_word
from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import InvalidInputError, warn
from hardthresh.core.randomness import Purpose, generator
from hardthresh.core.result import Result, Status
from hardthresh.core.solver import Solver
from hardthresh.solvers import NormTest, ProbabilisticIHT, minimize

from .model import CHUNK, classes_of, evaluation_mode, images_for
from .problem import Attack, changes
from .result import UniversalPerturbation, count_changed, measures, share
from .saturation import GreedySaturation

_STARTS = 4  # the greedy search and three by steps; arbitrary: more can only be stronger, and take longer
_FIRST_BATCH = 500  # images of the first mini-batch of the first search by steps; arbitrary
_OTHER_BATCH = 50  # of the later searches: so few that the noise leads them to other pixels
_CLASSES = 10  # towards which greedy searches without a target go; arbitrary: those of MNIST
_COLOURS = (1, 3, 4)  # numbers of channels of common images: grey, RGB, RGBA


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

    where the perturbed images :math:`x_i'` stay within their range and :math:`h_i` is a hinge of the logits; see
    `hardthresh.attacks.Attack`. This is a robustness test of the predictions for images with a few broken pixels, and
    of defences against them. Use it on models that you are allowed to test.

    Parameters
    ----------
    model : torch module or callable
        Returns logits, shape (m, classes), for a tensor of m images. A module is evaluated in ``eval()`` mode and its
        mode restored; neither its parameters nor their gradients are changed.
    X : array, shape (n, channels, height, width), (n, height, width) or (n, d)
        Images, all entries in `clip`. A NumPy array or a tensor; computations use the dtype and the device of the
        model's parameters.
    y : array of int, shape (n,), optional
        The true classes. Default: the classes that the model predicts.
    k : int
        Largest number of changed units, from 0 to the number of pixels, entries or channels (see `unit`).
    target : int, optional
        The class that images should be assigned to. Default: any wrong class.
    space : {"pixel", "tanh", "tanh-paper"}
        How images are kept in their range: by clipping, or by a change of variables. The latter hardly changes black
        and white pixels, and needs many more pixels for the same effect. "tanh-paper" is the change of variables as
        published, which moves black and white pixels by half a grey level even where the perturbation is zero; "tanh"
        corrects that, and is as strong (see the guide).
    clip : pair of float
        Range of the images.
    unit : {"pixel", "entry", "channel"}
        The unit that k counts: pixels, with all their channels; single entries of the image; or whole channels.
    loss : {"label", "top2"}
        The hinge without a target. "top2" is that of the code of the paper, which gives weaker perturbations.
    c, kappa : float
        Weight of the hinge, and margin by which the logit of a wrong class should exceed the others.
    solver : Solver, optional
        Default: first `GreedySaturation`, without a target also towards each of the ten classes with the largest
        logits; then `ProbabilisticIHT`, by turns with its default settings and with those of the paper, whose
        mini-batches have 500 images at first, 50 in later searches, and grow by the norm test.
    starts : int, optional
        Number of searches, on different mini-batches; the perturbation that misleads most images is returned. The
        greedy searches count as one. Default: 4; 1 if a solver is given.
    max_iter : int
        Limit of iterations of each search.
    seed : int
        Seed of the mini-batches: the same seed gives the same perturbation.
    progress : bool
        Show a progress line.

    Returns
    -------
    UniversalPerturbation

    Raises
    ------
    InvalidInputError
        If images are outside `clip`, labels or target are not classes of the model, k is out of range, or the model
        returns NaN, probabilities, or logits without a gradient.
    MissingDependencyError
        If torch is not installed.

    Warns
    -----
    UserWarning
        If the gradient of the logits is zero at every image, as for a model that rounds its input, so that the search
        has no direction; or if the last axis of X looks like the axis of the channels.

    Notes
    -----
    Cost: at most three calls of the model on a mini-batch per iteration of each gradient search; nine calls on 500
    images for each pixel of a greedy search. Heuristic: the problem is not convex, and a stronger perturbation may
    exist; finding none does not prove that a model is robust. Gradient searches that differ only in their mini-batches
    end at perturbations of very different strength, and with few pixels and no target they often end at zero. Therefore
    several searches of two kinds are run. In pixel space a gradient search often ends early at a point with zero
    gradient: once the perturbation has made a pixel black or white in every image, a larger change has no effect.

    Some searches end at `max_iter` instead, as all searches of the paper do, which have a fixed number of iterations.
    There is no warning, because the strength of the perturbation is measured whether or not the search converged;
    `UniversalPerturbation.converged`, its `message` and its repr report it.

    References
    ----------
    Bergamaschi, Cristofari, Kungurtsev and Rinaldi (2025), *Probabilistic IHT*, Section 5.1; N. Carlini and D. Wagner
    (2017), Towards evaluating the robustness of neural networks, *IEEE Symposium on Security and Privacy*.

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
    images, convert_back = images_for(model, X)
    constraint = _constraint(k, unit, tuple(images.shape[1:]))
    with evaluation_mode(model):
        f = Attack(model, images, y, target=target, loss=loss, space=space, clip=clip, c=c, kappa=kappa, chunk=CHUNK)
        if f.has_zero_gradient():
            warn(
                "the gradient of the logits is zero at every image, as for a model that rounds its input, so the "
                "search cannot tell which pixels matter; finding little does not mean that the model is robust: search "
                "on a model without the rounding, and measure this one with evaluate()",
            )
        starts = checked_integer("starts", (1 if solver else _STARTS) if starts is None else starts, 1)
        max_iter = checked_integer("max_iter", max_iter, 0)
        result = _strongest(f, _searches(f, constraint, solver, starts, seed, max_iter, progress))
        perturbed = f.perturbed(images, result.w)
        before, _ = classes_of(model, images)
        after, _ = classes_of(model, perturbed)
    changed = changes(images, perturbed, space, f.clip)
    return UniversalPerturbation(
        delta=convert_back(_image_delta(f, changed, result.w)),
        images=convert_back(perturbed),
        n_changed=_checked_count(changed != 0, unit, k),
        target=f.target,
        unit=unit,
        k=int(k),
        originals=convert_back(images),
        result=result,
        _space=space,
        _clip=f.clip,
        **measures(before, after, before if f.labels is None else f.labels, f.target, f.n_classes),
    )


def _searches(
    f: Attack, constraint: Constraint, solver: Solver | None, starts: int, seed: int, max_iter: int, progress: bool
) -> Iterator[Result]:
    """Yield the results of several searches, up to one that is interrupted."""
    solvers = list(_default_solvers(f, starts, max_iter)) if solver is None else [solver] * starts
    for start, own_solver in enumerate(solvers):
        # the first search of each solver uses the seed itself, so that it equals a single search
        repeated = own_solver in solvers[:start]
        own_seed = int(generator(seed, start, Purpose.REPEATED_SEARCHES).integers(2**31)) if repeated else seed
        result = minimize(f, constraint, own_solver, max_iter=max_iter, progress=progress, seed=own_seed)
        yield result
        if result.status is Status.INTERRUPTED:
            return


def _default_solvers(f: Attack, starts: int, max_iter: int) -> Iterator[Solver]:
    """Yield `GreedySaturation`, without a target also towards each of the nearest classes, and `ProbabilisticIHT`.

    The latter has by turns its default settings and those of the paper, scaled by the range of images.
    """
    for target in [None, *(f.nearest_classes(_CLASSES) if f.target is None else [])]:
        yield GreedySaturation(target, rounds=max(1, max_iter))
    scale = f.clip[1] - f.clip[0] if f.space == "pixel" else 1.0
    for start in range(starts - 1):
        yield (
            ProbabilisticIHT(batch=NormTest(_OTHER_BATCH if start else _FIRST_BATCH))
            if start % 2 == 0
            else ProbabilisticIHT(
                variant="paper", alpha=scale**2, delta0=scale, delta_max=10.0 * scale, batch=NormTest(_OTHER_BATCH)
            )
        )


def _strongest(f: Attack, results: Iterable[Result]) -> Result:
    """Return the result that misleads most images; of equal ones, that of the smallest objective."""
    return min(results, key=lambda result: (-_misled(f, result), result.value))


def _misled(f: Attack, result: Result) -> float:
    """Return the share of images assigned to the target or, without a target, to a wrong class."""
    after, _ = classes_of(f.model, f.perturbed(f.images, result.w))
    if f.target is not None:
        return share(after == f.target)
    labels = f.labels if f.labels is not None else classes_of(f.model, f.images)[0]
    return share(after != labels)


def _image_delta(f: Attack, changed: Any, w: Any) -> Any:
    """Return the perturbation in the space of images; in tanh spaces, where it differs between images, its mean."""
    if f.space != "pixel":
        return changed.mean(0)
    width = f.clip[1] - f.clip[0]
    return w.reshape(changed.shape[1:]).clamp(-width, width)


def _checked_count(different: Any, unit: str, k: int) -> int:
    """Return how many pixels, entries or channels differ, after checking that they are at most k."""
    changed = count_changed(different, unit)
    if changed > k:
        raise InvalidInputError(
            f"the solver exceeded the budget: {changed} {unit}s differ, at most {k} may; use another solver"
        )
    return changed


def _constraint(k: Any, unit: str, shape: tuple[int, ...]) -> Constraint:
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
    budget = checked_integer("k", k, 0, count, f"the number of {unit}s of an image")
    if count == size:
        return Sparsity(budget)
    labels = np.arange(size) % count if unit == "pixel" else np.arange(size) // (size // channels)
    return GroupSparsity(labels.tolist(), budget)
