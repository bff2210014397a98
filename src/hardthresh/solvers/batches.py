"""How many examples a stochastic solver looks at, and which: batch rules as values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, isfinite
from typing import Any

import numpy as np

from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array

_GRADIENT, _VALUE, _SECOND_VALUE, _HALVES = range(4)  # purposes of randomness


@dataclass(frozen=True, slots=True)
class Progress:
    """What a rule may know when it chooses the next size.

    Attributes
    ----------
    size, n : int
        The size of the last batch, and how many examples there are.
    shrink : float
        :math:`\\delta_0 / \\delta`: how far the trust of the solver has fallen.
    relative_noise : float
        The estimated variance of the batch gradient on the index set, over its squared norm, before the correction for
        a finite population; nan where the rule does not ask for it.
    """

    size: int
    n: int
    shrink: float
    relative_noise: float


class BatchRule(ABC):
    """A rule for the size of the batches; drawing is without replacement, and all examples are never drawn."""

    measures_noise: bool = False
    """Whether the rule needs the variance of the batch gradient, measured on the halves of the batch."""

    @abstractmethod
    def first(self, n: int) -> int:
        """Return the first size, of n examples."""

    def following(self, progress: Progress) -> int:
        """Return the next size."""
        return progress.size

    def gradient_rows(self, n: int, size: int, seed: int, iteration: int) -> Array | None:
        """Return the examples for a gradient; None for all."""
        return _draw(n, size, seed, iteration, _GRADIENT)

    def value_rows(self, n: int, size: int, seed: int, iteration: int) -> Array | None:
        """Return the examples for a pair of function values; None for all."""
        return _draw(n, size, seed, iteration, _VALUE)

    def second_value_rows(self, n: int, size: int, seed: int, iteration: int) -> Array | None:
        """Return the examples for the second value of a pair, where each has its own; None for all."""
        return _draw(n, size, seed, iteration, _SECOND_VALUE)


@stored("batch/full")
@dataclass(frozen=True, slots=True)
class Full(BatchRule):
    """All examples, always: no randomness at all."""

    def first(self, n: int) -> int:
        return n


@stored("batch/fixed")
@dataclass(frozen=True, slots=True)
class Fixed(BatchRule):
    """Always the same size; no method converges to the end on it.

    Parameters
    ----------
    size : int
        >= 1; more than there are examples stands for all.
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checked_integer("size", self.size, 1))

    def first(self, n: int) -> int:
        return min(self.size, n)


@stored("batch/authors")
@dataclass(frozen=True, slots=True)
class Authors(BatchRule):
    r"""The rule of the paper's code, :math:`\min(b_{\max}, \lfloor b_0 2^{\delta_0/\delta} \rfloor)`.

    Parameters
    ----------
    initial, largest : int, int or None
        :math:`b_0` and :math:`b_{\max}`; None for all examples. Beyond :math:`\delta_0 / \delta = 12` it is the
        largest.
    """

    initial: int
    largest: int | None = None

    def __post_init__(self) -> None:
        _check_range(self)

    def first(self, n: int) -> int:
        return self.following(Progress(self.initial, n, 1.0, 0.0))

    def following(self, progress: Progress) -> int:
        largest = _at_most(self.largest, progress.n)
        return largest if progress.shrink > 12.0 else min(largest, int(self.initial * 2.0**progress.shrink))


@stored("batch/power")
@dataclass(frozen=True, slots=True)
class Power(BatchRule):
    r"""A power of the trust, :math:`\min(b_{\max}, b_0 (\delta_0/\delta)^q)`, never less than :math:`b_0`.

    Parameters
    ----------
    initial, largest : int, int or None
        :math:`b_0` and :math:`b_{\max}`; None for all examples.
    exponent : float
        q > 0; the theory's accuracy of :math:`\delta^2` asks for 4.
    """

    initial: int
    exponent: float = 4.0
    largest: int | None = None

    def __post_init__(self) -> None:
        _check_range(self)
        if not (self.exponent > 0 and isfinite(self.exponent)):
            raise InvalidInputError(f"the exponent must be positive and finite, got {self.exponent!r}")

    def first(self, n: int) -> int:
        return min(self.initial, _at_most(self.largest, n))

    def following(self, progress: Progress) -> int:
        grown = self.initial * max(1.0, progress.shrink) ** self.exponent if progress.shrink < 1e30 else inf
        return int(min(grown, _at_most(self.largest, progress.n)))


@stored("batch/norm_test")
@dataclass(frozen=True, slots=True)
class NormTest(BatchRule):
    r"""Grow where the noise of the gradient on the index set exceeds a share of its norm; the default.

    The batch is large enough if
    :math:`\frac{1}{b} \widehat{\mathrm{Var}} \, \frac{N - b}{N - 1} \le \theta^2 \|g_I\|^2`; else the next size is the
    one for which it would be, but at most `growth` times as large. It never shrinks.

    Parameters
    ----------
    initial : int
        The first size.
    theta : float
        In (0, 1]: what relative noise is accepted.
    growth : float
        > 1.

    References
    ----------
    Byrd, Chin, Nocedal and Wu (2012), *Sample size selection in optimization methods for machine learning*; the
    restriction to the index set and the finite population are ours.
    """

    initial: int = 50
    theta: float = 0.5
    growth: float = 2.0

    measures_noise = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "initial", checked_integer("initial", self.initial, 1))
        if not (0 < self.theta <= 1 and self.growth > 1):
            raise InvalidInputError(f"need 0 < theta <= 1 and growth > 1, got {self.theta!r} and {self.growth!r}")

    def first(self, n: int) -> int:
        return min(self.initial, n)

    def following(self, progress: Progress) -> int:
        b, n = progress.size, progress.n
        if b >= n:
            return n
        spread = progress.relative_noise * b / self.theta**2  # the size needed, were the population infinite
        enough = spread * n / (n - 1 + spread) if isfinite(spread) else n
        return b if enough <= b else min(n, max(b + 1, min(ceil(enough), ceil(self.growth * b))))


@stored("batch/replay")
@dataclass(frozen=True, slots=True, eq=False)
class Replay(BatchRule):
    """The batches of an earlier run, to repeat it exactly.

    Parameters
    ----------
    gradient, value : sequence of index arrays or None
        For each iteration the examples of the gradient and of the function values; None stands for all.
    """

    gradient: Sequence[Any]
    value: Sequence[Any]

    def __post_init__(self) -> None:
        if len(self.gradient) != len(self.value):
            raise InvalidInputError(
                f"a replay needs as many gradient batches as value batches, got {len(self.gradient)} and "
                f"{len(self.value)}"
            )

    def first(self, n: int) -> int:
        return n

    def gradient_rows(self, n: int, size: int, seed: int, iteration: int) -> Array | None:
        return _stored(self.gradient, iteration, n)

    def value_rows(self, n: int, size: int, seed: int, iteration: int) -> Array | None:
        return _stored(self.value, iteration, n)


def check_rule(rule: Any) -> None:
    """Refuse what is no batch rule."""
    if not isinstance(rule, BatchRule):
        raise InvalidInputError(f"batch must be a rule such as Fixed(50) or Full(), got {rule!r}")


def _draw(n: int, size: int, seed: int, iteration: int, purpose: int) -> Array | None:
    if size >= n:
        return None
    return np.sort(np.random.default_rng((seed, iteration, purpose)).choice(n, size, replace=False))


def _stored(batches: Sequence[Any], iteration: int, n: int) -> Array | None:
    """Return the batch of an iteration; all examples once the stored ones have ended."""
    if iteration >= len(batches) or batches[iteration] is None:
        return None
    rows = np.asarray(batches[iteration])
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n:
        raise InvalidInputError(
            f"the batch of iteration {iteration} must be a non-empty vector of integers from 0 to {n - 1}, got {rows!r}"
        )
    return rows


def halves(rows: Array, seed: int, iteration: int) -> tuple[Array, Array]:
    """Return a batch of at least two examples as two, cut at random: rows are sorted, and neighbours may be alike."""
    mixed = np.random.default_rng((seed, iteration, _HALVES)).permutation(rows)
    first, second = np.array_split(mixed, 2)
    return np.sort(first), np.sort(second)


def _check_range(rule: Any) -> None:
    """Check the sizes between which a rule moves, and store them as plain integers."""
    object.__setattr__(rule, "initial", checked_integer("initial", rule.initial, 1))
    if rule.largest is None:
        return
    object.__setattr__(rule, "largest", checked_integer("largest", rule.largest, 1))
    if rule.largest < rule.initial:
        raise InvalidInputError(f"largest must be >= initial, got {rule.largest} and {rule.initial}")


def _at_most(largest: int | None, n: int) -> int:
    return n if largest is None else min(largest, n)
