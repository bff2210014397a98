"""Batch rules: how many examples a stochastic solver draws, and which."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, isfinite
from typing import Any

import numpy as np

from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.randomness import Purpose, generator
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array

_LARGEST_SHRINK = 12.0  # of the authors' code, as are the 2 of `ExponentialBatch` and its rounding down


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """The progress of a run, from which a batch rule chooses the next size.

    Attributes
    ----------
    size, n : int
        The size of the last batch, and the number of examples.
    shrink : float
        :math:`\\delta_0 / \\delta`, the factor by which the clipping level of the solver has decreased.
    relative_noise : float
        The estimated variance of the batch gradient on the index set over its squared norm, without the correction for
        a finite population; nan if the rule does not ask for it.
    """

    size: int
    n: int
    shrink: float
    relative_noise: float


class BatchRule(ABC):
    """A rule for the size of the batches, which are drawn without replacement.

    A size of n or more means all examples in their order, without a random draw.
    """

    measures_noise: bool = False
    """Whether the rule needs the variance of the batch gradient, which is measured on the halves of the batch."""

    @abstractmethod
    def first_size(self, n: int) -> int:
        """Return the size of the first batch of n examples."""

    def next_size(self, progress: BatchProgress) -> int:
        """Return the size of the next batch; by default that of the last one."""
        return progress.size

    def gradient_rows(self, n: int, size: int, seed: int, iteration: int) -> Array | None:
        """Return the indices of the examples for a gradient; None for all."""
        return _draw(n, size, seed, iteration, Purpose.BATCH_OF_GRADIENT)

    def value_rows(self, n: int, size: int, seed: int, iteration: int) -> Array | None:
        """Return the indices of the examples for a pair of function values; None for all."""
        return _draw(n, size, seed, iteration, Purpose.BATCH_OF_VALUE)

    def second_value_rows(self, n: int, size: int, seed: int, iteration: int) -> Array | None:
        """Return the indices of the examples for the second value if each value has its own; None for all."""
        return _draw(n, size, seed, iteration, Purpose.BATCH_OF_SECOND_VALUE)


@stored("batch/full")
@dataclass(frozen=True, slots=True)
class FullBatch(BatchRule):
    """All examples in every iteration, without randomness."""

    def first_size(self, n: int) -> int:
        return n


@stored("batch/fixed")
@dataclass(frozen=True, slots=True)
class FixedBatch(BatchRule):
    """Batches of one size. No method converges beyond the noise of the gradients with such batches.

    Parameters
    ----------
    size : int
        >= 1. If it exceeds the number of examples, all are used.

    Examples
    --------
    >>> FixedBatch(3).gradient_rows(2000, 3, seed=0, iteration=0)
    array([ 911, 1311, 1632])
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checked_integer("size", self.size, 1))

    def first_size(self, n: int) -> int:
        return min(self.size, n)


@stored("batch/authors")
@dataclass(frozen=True, slots=True)
class ExponentialBatch(BatchRule):
    r"""Batches of :math:`\min(b_{\max}, \lfloor b_0 2^{\delta_0/\delta} \rfloor)`, the rule of the paper's code.

    Parameters
    ----------
    initial : int
        :math:`b_0`, >= 1.
    largest : int, optional
        :math:`b_{\max}`, the size where :math:`\delta_0 / \delta > 12`; default all examples.

    Examples
    --------
    >>> ExponentialBatch(50).first_size(2000)
    100
    """

    initial: int
    largest: int | None = None

    def __post_init__(self) -> None:
        _check_range(self)

    def first_size(self, n: int) -> int:
        return self.next_size(BatchProgress(self.initial, n, 1.0, 0.0))

    def next_size(self, progress: BatchProgress) -> int:
        largest = _at_most(self.largest, progress.n)
        if progress.shrink > _LARGEST_SHRINK:
            return largest
        return min(largest, int(self.initial * 2.0**progress.shrink))


@stored("batch/power")
@dataclass(frozen=True, slots=True)
class PowerBatch(BatchRule):
    r"""Batches of :math:`\min(b_{\max}, b_0 (\delta_0/\delta)^q)`, never less than :math:`b_0`.

    Parameters
    ----------
    initial : int
        :math:`b_0`, >= 1.
    exponent : float
        q > 0; the theory's accuracy of :math:`\delta^2` asks for 4.
    largest : int, optional
        :math:`b_{\max}`; default all examples.
    """

    initial: int
    exponent: float = 4.0
    largest: int | None = None

    def __post_init__(self) -> None:
        _check_range(self)
        checked_number("exponent", self.exponent, above=0.0)

    def first_size(self, n: int) -> int:
        return min(self.initial, _at_most(self.largest, n))

    def next_size(self, progress: BatchProgress) -> int:
        # 1e30 is arbitrary: beyond it the largest size is reached for any exponent in use, and powers may overflow
        grown = self.initial * max(1.0, progress.shrink) ** self.exponent if progress.shrink < 1e30 else inf
        return int(min(grown, _at_most(self.largest, progress.n)))


@stored("batch/norm_test")
@dataclass(frozen=True, slots=True)
class NormTest(BatchRule):
    r"""Batches that grow if the noise of the gradient exceeds a fraction of its norm; the default rule.

    The batch is large enough if
    :math:`\frac{1}{b} \widehat{\mathrm{Var}} \, \frac{N - b}{N - 1} \le \theta^2 \|g_I\|^2`; else the next size is the
    one for which it would be, but at most `growth` times as large. Batches never shrink.

    Parameters
    ----------
    initial : int
        The first size, >= 1.
    theta : float
        The relative noise that is accepted, in (0, 1]. Measured: 0.1 to 0.9 cost 157 to 185 epochs.
    growth : float
        > 1.

    References
    ----------
    Byrd, Chin, Nocedal and Wu (2012), *Sample size selection in optimization methods for machine learning*; the
    restriction to the index set and the finite population are ours.

    Examples
    --------
    >>> NormTest().next_size(BatchProgress(size=50, n=2000, shrink=1.0, relative_noise=0.5))
    96
    """

    initial: int = 50
    theta: float = 0.5
    growth: float = 2.0

    measures_noise = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "initial", checked_integer("initial", self.initial, 1))
        checked_number("theta", self.theta, above=0.0, most=1.0)
        checked_number("growth", self.growth, above=1.0, finite=False)

    def first_size(self, n: int) -> int:
        return min(self.initial, n)

    def next_size(self, progress: BatchProgress) -> int:
        b, n = progress.size, progress.n
        if b >= n:
            return n
        spread = progress.relative_noise * b / self.theta**2  # the size needed of an infinite population
        enough = spread * n / (n - 1 + spread) if isfinite(spread) else n
        return b if enough <= b else min(n, max(b + 1, min(ceil(enough), ceil(self.growth * b))))


@stored("batch/replay")
@dataclass(frozen=True, slots=True, eq=False)
class Replay(BatchRule):
    """The batches of an earlier run, to repeat it exactly; all examples in iterations beyond them.

    Parameters
    ----------
    gradient, value : sequence of index arrays or None
        For each iteration the examples of the gradient and of the function values; None stands for all.

    Examples
    --------
    >>> Replay(gradient=[[0, 3], None], value=[[1, 2], None]).gradient_rows(2000, 2, seed=0, iteration=0)
    array([0, 3])
    """

    gradient: Sequence[Any]
    value: Sequence[Any]

    def __post_init__(self) -> None:
        if len(self.gradient) != len(self.value):
            raise InvalidInputError(
                f"a replay needs as many gradient batches as value batches, got {len(self.gradient)} and "
                f"{len(self.value)}"
            )

    def first_size(self, n: int) -> int:
        return n

    def gradient_rows(self, n: int, size: int, seed: int, iteration: int) -> Array | None:
        return _stored_rows(self.gradient, iteration, n)

    def value_rows(self, n: int, size: int, seed: int, iteration: int) -> Array | None:
        return _stored_rows(self.value, iteration, n)


def check_batch_rule(rule: Any) -> None:
    """Raise `InvalidInputError` for anything but a batch rule."""
    if not isinstance(rule, BatchRule):
        raise InvalidInputError(f"batch must be a rule such as FixedBatch(50) or FullBatch(), got {format_value(rule)}")


def _draw(n: int, size: int, seed: int, iteration: int, purpose: Purpose) -> Array | None:
    if size >= n:
        return None
    return np.sort(generator(seed, iteration, purpose).choice(n, size, replace=False))


def _stored_rows(batches: Sequence[Any], iteration: int, n: int) -> Array | None:
    """Return the stored batch of an iteration; None, for all examples, beyond the last one."""
    if iteration >= len(batches) or batches[iteration] is None:
        return None
    rows = np.asarray(batches[iteration])
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n:
        raise InvalidInputError(
            f"the batch of iteration {iteration} must be a non-empty vector of integers from 0 to {n - 1}, got {rows!r}"
        )
    return rows


def random_halves(rows: Array, seed: int, iteration: int) -> tuple[Array, Array]:
    """Return the two halves of a batch of at least two examples, cut at random since neighbouring rows may be alike."""
    mixed = generator(seed, iteration, Purpose.HALVES_OF_BATCH).permutation(rows)
    first, second = np.array_split(mixed, 2)
    return np.sort(first), np.sort(second)


def _check_range(rule: Any) -> None:
    """Check the smallest and largest size of a rule, and store them as plain integers."""
    object.__setattr__(rule, "initial", checked_integer("initial", rule.initial, 1))
    if rule.largest is None:
        return
    object.__setattr__(rule, "largest", checked_integer("largest", rule.largest, 1))
    if rule.largest < rule.initial:
        raise InvalidInputError(f"largest must be >= initial, got {rule.largest} and {rule.initial}")


def _at_most(largest: int | None, n: int) -> int:
    return n if largest is None else min(largest, n)
