"""Batch schedules: the number of examples of the t-th update."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.schema import stored
from hardthresh.core.typing import is_integer, is_real


@stored("schedule/geometric")
@dataclass(frozen=True)
class Geometric:
    """A geometric schedule: ``floor(first * ratio**(t - 1))`` examples for t = 1, 2, ...

    Parameters
    ----------
    first : float >= 1
        The number of examples of the first batch.
    ratio : float > 0
        The ratio of each batch to the one before.

    Raises
    ------
    InvalidInputError
        For `first` < 1 or `ratio` <= 0. An algorithm raises it if a later batch has no examples, with `ratio` < 1.

    Examples
    --------
    >>> [Geometric(100, 1.2)(t) for t in (1, 2, 3)]
    [100, 120, 144]
    """

    first: float
    ratio: float

    def __post_init__(self) -> None:
        if not (is_real(self.first) and is_real(self.ratio) and self.first >= 1 and self.ratio > 0):
            raise InvalidInputError(f"a batch must have >= 1 example and grow by a ratio > 0, got {self}")

    def __call__(self, t: int) -> int:
        return int(self.first * self.ratio ** (t - 1))


Schedule: TypeAlias = int | Callable[[int], int]
"""A number, or a function of t = 1, 2, ... such as `Geometric`, which `hardthresh.save` can store."""


def scheduled(schedule: Schedule, t: int, what: str) -> int:
    """Return the t-th number, t >= 1, of a schedule.

    Raises
    ------
    InvalidInputError
        If it is not an integer >= 1.
    """
    number = schedule(t) if callable(schedule) else schedule
    if not (is_integer(number) and number >= 1):
        raise InvalidInputError(f"{what} must be an integer >= 1 for each t, got {number!r} for t = {t}")
    return int(number)
