"""Local search over the supports of a quadratic: greedy paths, exchanges and add-drop moves.

The units that are chosen are the columns of a `Tableau`, or whole blocks of columns. Two thresholds mean the same
throughout: a unit is added if the quadratic q falls by more than `rounding`, and a move to another support counts if q
falls by more than `negligible`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol, Self, TypeVar

import numpy as np

ADD_DROP_ROUNDS = 50
"""Limit of rounds of add-drop moves; 2,000 searches of correlated and nearly collinear columns took 7 at most."""


class Choice(Protocol):
    """Some chosen units with the minimiser of q over them, a workspace: `Tableau` says what its members mean.

    `add` may return False only if q is known not to have fallen.
    """

    n_free: int

    @property
    def chosen(self) -> Sequence[int]: ...
    @property
    def size(self) -> int: ...
    @property
    def decrease(self) -> float: ...
    def copy(self) -> Self: ...
    def costs(self) -> np.ndarray: ...
    def best_addition(self) -> tuple[int, float]: ...
    def best_exchange(self) -> tuple[int, int, float]: ...
    def add(self, unit: int, /) -> bool: ...
    def drop(self, slot: int, /) -> None: ...


C = TypeVar("C", bound=Choice)


def grow(choice: Choice, size: int, rounding: float) -> None:
    """Add the unit that lowers q most until `size` units are chosen, or none lowers q by more than rounding."""
    while choice.size < size:
        j, gain = choice.best_addition()
        if not gain > rounding:
            return
        if not choice.add(j):  # among nearly collinear columns a gain may be nothing but rounding
            return


def shrink(choice: Choice, size: int) -> None:
    """Drop the unit that raises q least until `size` units are chosen."""
    while choice.size > max(size, choice.n_free):
        choice.drop(int(choice.costs().argmin()))


def descend(choice: C, size: int, rounding: float, negligible: float) -> C:
    """Return the choice after the best exchanges of one unit for another, made as long as one is not negligible.

    The argument is not changed; it is returned itself if there is no such exchange.
    """
    while True:
        slot, j, fall = choice.best_exchange()
        if not fall > negligible:
            return choice
        after = choice.copy()
        after.drop(slot)
        after.add(j)
        grow(after, size, rounding)  # where bounds on signs have made other columns leave
        if not after.decrease > choice.decrease + negligible:
            return choice
        choice = after


def forward_backward(
    choice: C, sizes: Collection[int], backward_start: int, rounding: float, negligible: float
) -> Iterator[tuple[int, C]]:
    """Yield each size with the better of the forward and the backward path at this size, improved by exchanges.

    The forward path adds the best unit until there are `backward_start`, the backward path then drops the cheapest;
    both pass every size, so that the answer for one size does not depend on the others.
    """
    path = choice.copy()
    forward = {}
    for size in range(choice.size, backward_start + 1):
        grow(path, size, rounding)
        forward[size] = path.decrease
    better_forward = []
    for size in sorted(sizes, reverse=True):
        shrink(path, size)
        if size in forward and forward[size] > path.decrease + negligible:
            better_forward.append(size)
        else:
            start = path.copy()
            grow(start, size, rounding)  # where bounds on signs have made other columns leave
            yield size, descend(start, size, rounding, negligible)
    path = choice.copy()  # the forward path once more: what to keep of it was not known
    for size in reversed(better_forward):
        grow(path, size, rounding)
        yield size, descend(path.copy(), size, rounding, negligible)


def add_drop(choice: C, size: int, counts: Sequence[int], rounding: float, negligible: float) -> C:
    """Return the choice after add-drop moves, improved by exchanges, made as long as one is not negligible.

    A move adds one of the `counts` of units and drops as many, or the other way round. The argument is not changed; it
    is returned itself if no move helps.
    """
    for _ in range(ADD_DROP_ROUNDS):
        before = choice
        for count in dict.fromkeys(counts):
            for move in (add_then_drop, drop_then_add):
                moved = move(choice, size, count, rounding)
                if set(moved.chosen) == set(choice.chosen):
                    continue
                moved = descend(moved, size, rounding, negligible)
                if moved.decrease > choice.decrease + negligible:
                    choice = moved
        if choice is before:
            break
    return choice


def add_then_drop(choice: C, size: int, count: int, rounding: float) -> C:
    """Return the choice after `count` units more than `size` were chosen and the cheapest were dropped."""
    moved = choice.copy()
    grow(moved, size + count, rounding)
    shrink(moved, size)
    return moved


def drop_then_add(choice: C, size: int, count: int, rounding: float) -> C:
    """Return the choice after the cheapest units were dropped, to `count` less than `size`, and the best were added."""
    moved = choice.copy()
    shrink(moved, size - count)
    grow(moved, size, rounding)
    return moved
