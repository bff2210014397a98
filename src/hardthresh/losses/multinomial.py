"""Multinomial logistic loss, for classes numbered from 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from array_api_compat import device

from hardthresh.arrays import move, namespace, to_numpy
from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.registry import register
from hardthresh.core.typing import Array, is_numpy

from .base import Loss
from .logistic import Logistic
from .vector import VectorLoss


@register("loss", "multinomial")
@dataclass(frozen=True, slots=True)
class Multinomial(VectorLoss):
    r"""The multinomial logistic loss, :math:`\ell(y, u) = \log \sum_c e^{u_c} - u_y`.

    The probability of class c is :math:`P_c = e^{u_c} / \sum_b e^{u_b}`, the gradient P less the unit vector of y, and
    the block of second derivatives :math:`\mathrm{diag}(P) - P P^\top`, with eigenvalues from 0 to 1/2.

    Parameters
    ----------
    n_classes : int, optional
        C >= 2. Default: the larger of 2 and the largest target plus 1. Set it if a part of the data may lack the last
        classes.

    Notes
    -----
    Targets are class numbers 0, 1, ..., C - 1, given as floats of shape (n,). Each example has C predictions. There is
    no reference class, because a choice of rows by their norm would depend on it. Adding a number to all C predictions
    does not change the loss; of the coefficients with the same probabilities, those of least norm sum to 0 over the
    classes (`centre`). The computation is stable for all finite u. For two classes it is the logistic loss of
    :math:`u_1 - u_0`.

    References
    ----------
    P. McCullagh and J. A. Nelder (1989), *Generalized Linear Models*, Chapter 5.

    Examples
    --------
    >>> import numpy as np
    >>> Multinomial().value(np.array([2.0, 0.0]), np.array([[0.0, 0.0, 1e4], [0.0, 0.0, 1e4]]))
    array([    0., 10000.])
    """

    n_classes: int | None = None

    domain: ClassVar[str] = "class numbers 0, 1, ..."
    recoding: ClassVar[str] = "; number the classes first"
    curvature_bound: ClassVar[float] = 0.5
    one_target: ClassVar[bool] = True
    classifies: ClassVar[bool] = True
    unit_dispersion: ClassVar[bool] = True
    target_kind: ClassVar[str] = "classes"
    multiplies: ClassVar[str] = "the odds"
    default_ridge: ClassVar[float] = 1e-2  # as of the logistic loss, where a few columns separate the classes
    score_name: ClassVar[str] = "neg_log_loss"
    score_scale: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if self.n_classes is not None:
            object.__setattr__(self, "n_classes", checked_integer("n_classes", self.n_classes, 2))

    def n_outputs(self, y: Array) -> int:
        return max(2, int(namespace(y).max(y)) + 1) if self.n_classes is None else self.n_classes

    def check_targets(self, y: Array) -> None:
        found = to_numpy(y)
        for (place,) in np.argwhere(~to_numpy(self.in_domain(y)))[:1].tolist():
            limit = "" if self.n_classes is None else f" below {self.n_classes}"
            raise InvalidInputError(
                f"the Multinomial loss needs targets that are {self.domain}{limit}; y[{place}] is "
                f"{float(found[place])}{self.recoding}"
            )

    def in_domain(self, y: Array) -> Array:
        """Return, for each target, whether it is the number of a class."""
        xp, most = namespace(y), np.inf if self.n_classes is None else self.n_classes
        return (y >= 0) & (y < most) & (y == xp.floor(y)) & xp.isfinite(y)

    def value(self, y: Array, u: Array) -> Array:
        return self.value_and_gradient(y, u)[0]

    def gradient(self, y: Array, u: Array) -> Array:
        return self.value_and_gradient(y, u)[1]

    def value_and_gradient(self, y: Array, u: Array) -> tuple[Array, Array]:
        xp, v = namespace(u), _by_class(u)
        own = xp.arange(v.shape[0], dtype=u.dtype, device=device(u))[:, None] == y[None, :]
        largest, parts, rest = _parts(v)
        at_own = xp.sum(xp.where(own, v, 0.0), axis=0)
        p = parts / (1 + rest)
        others = xp.where(own, 0.0, p)
        gradient = xp.where(own, -xp.sum(others, axis=0), others)  # no cancellation where P is nearly 1
        return (largest - at_own) + xp.log1p(rest), gradient.T

    def curvature(self, y: Array, u: Array, v: Array) -> Array:
        p, direction = _probabilities(u), _by_class(v)
        return (p * (direction - namespace(u).sum(p * direction, axis=0))).T

    def blocks(self, y: Array, u: Array) -> Array:
        xp, p = namespace(u), self.mean(u)
        unit = xp.eye(u.shape[1], dtype=u.dtype, device=device(u))
        return p[:, :, None] * (unit - p[:, None, :])

    def mean_block(self, y: Array, u: Array, weights: Array) -> Array:
        xp, p = namespace(u), self.mean(u)
        unit = xp.eye(u.shape[1], dtype=u.dtype, device=device(u))
        return unit * (weights @ p) - p.T @ (weights[:, None] * p)

    def mean(self, u: Array) -> Array:
        return _probabilities(u).T

    def each_output(self, y: Array, u: Array) -> list[tuple[Loss, Array, Array]]:
        xp = namespace(u)
        classes = range(u.shape[1])
        return [(Logistic(), xp.astype(y == c, u.dtype), _log_odds(u, c)) for c in classes]

    def example_target(self, u: np.ndarray, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        classes: np.ndarray = np.argmax(u / noise + rng.gumbel(size=u.shape), axis=1).astype(u.dtype)
        return classes

    def centre(self, w: Array) -> Array:
        return w - namespace(w).mean(w, axis=-1, keepdims=True)

    def attains(self, y: Array, weights: Array) -> bool:
        return False

    def recession(self, y: Array) -> tuple[Array, Array] | None:
        """Return how far the prediction of the class of each example is above that of each other class."""
        xp, q = namespace(y), self.n_outputs(y)
        unit = xp.eye(q, dtype=y.dtype, device=device(y))
        numbers = np.arange(q)
        others = xp.stack([xp.take(unit, move(numbers[numbers != c], y), axis=0) for c in range(q)])  # (q, q - 1, q)
        own = xp.astype(y, xp.int64)
        functionals = xp.take(unit, own, axis=0)[:, None, :] - xp.take(others, own, axis=0)
        return functionals, xp.ones(functionals.shape[:2], dtype=y.dtype, device=device(y))

    def minus_twice_log_likelihood(self, y: Array, u: Array, weights: Array, n: float) -> float:
        xp = namespace(u)
        return 2.0 * n * float(xp.sum(weights * self.value(y, u))) / float(xp.sum(weights))


def _by_class(u: Array) -> Array:
    """Return predictions by class, shape (C, n), contiguous: sums over the classes are then several times faster."""
    return np.ascontiguousarray(u.T) if is_numpy(u) else u.T


def _probabilities(u: Array) -> Array:
    """Return the probabilities of the classes, shape (C, n)."""
    _, parts, rest = _parts(_by_class(u))
    return parts / (1 + rest)


def log_probabilities(u: Array) -> Array:
    """Return the log-probabilities of the classes, shape (n, C), accurate even if the probabilities underflow."""
    v = _by_class(u)
    largest, _, rest = _parts(v)
    return ((v - largest) - namespace(u).log1p(rest)).T


def _log_odds(u: Array, c: int) -> Array:
    """Return the log-odds of a class against all others, shape (n,)."""
    v = _by_class(u)
    xp, numbers = namespace(v), np.arange(v.shape[0])
    largest, _, rest = _parts(xp.take(v, move(numbers[numbers != c], v), axis=0))
    return v[c, ...] - largest - xp.log1p(rest)


def _parts(v: Array) -> tuple[Array, Array, Array]:
    """Return the largest prediction of each example, e^(v - largest), and the sum of these without that of 1."""
    xp = namespace(v)
    largest = xp.max(v, axis=0)
    parts = xp.exp(v - largest)
    is_first = xp.argmax(v, axis=0) == xp.arange(v.shape[0], device=device(v))[:, None]
    return largest, parts, xp.sum(xp.where(is_first, 0.0, parts), axis=0)
