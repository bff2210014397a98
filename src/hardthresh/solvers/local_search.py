"""Local search over the supports of a quadratic: greedy paths, exchanges and add-drop moves.

The units that are chosen are the columns of a `Tableau`, or whole blocks of columns. Two thresholds mean the same
throughout: a unit is added if the quadratic q falls by more than `rounding`, and a move to another support counts if q
falls by more than `negligible`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol, Self, TypeVar

import numpy as np

ROUNDS = 50
"""Limit of rounds of add-drop moves and of sweeps; 2,000 searches of correlated and nearly collinear columns took 7 at
most."""


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


class Replaceable(Choice, Protocol):
    """A choice from which a unit can be kept out for a while."""

    def keep_out(self, unit: int | None, /) -> None: ...


C = TypeVar("C", bound=Choice)
R = TypeVar("R", bound=Replaceable)


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
        grow(after, size, rounding)  # where other columns have met a bound of zero and left
        if not after.decrease > choice.decrease + negligible:
            return choice
        choice = after


def forward_backward(
    choice: R,
    sizes: Collection[int],
    rounding: float,
    negligible: float,
    counts: Mapping[int, Sequence[int]] | None = None,
    replaced: int = 0,
) -> dict[int, R]:
    """Return a choice of each size, for which all sizes are searched together.

    1. Forward sweep: go from each size to the next larger one by the best additions, and exchange.
    2. Backward sweep: go from each size to the next smaller one by the cheapest removals, and exchange. Keep what is
       better.
    3. At the sizes in `counts`, make add-drop moves by as many units as it says, and then leave out each of so many
       units as `replaced` says.
    4. Repeat both sweeps from the sizes that have a better choice than when they were last left.

    The first argument is not changed. If its size is one of the sizes, it is where the search begins for this size.
    """
    increasing = sorted(sizes)
    best: dict[int, R] = {}
    new: set[tuple[int, int]] = set()  # which neighbour of which size is yet to be searched from its best choice

    def keep(found: R, place: int) -> None:
        size = increasing[place]
        if size not in best or found.decrease > best[size].decrease + negligible:
            best[size] = found
            new.update(((place, 1), (place, -1)))

    def reach(start: R, place: int) -> None:
        size, found = increasing[place], start.copy()
        shrink(found, size)
        grow(found, size, rounding)  # when units are dropped, too: others may have met a bound of zero and left
        keep(descend(found, size, rounding, negligible), place)

    def sweep(step: int) -> None:
        for place in range(len(increasing))[::step][:-1]:
            if (place, step) in new:
                new.remove((place, step))
                reach(best[increasing[place]], place + step)

    if not increasing:
        return best
    if choice.size in increasing:
        keep(choice, increasing.index(choice.size))
    reach(choice, 0)
    sweep(1)
    sweep(-1)
    for place, size in enumerate(increasing):
        if counts and counts.get(size):
            moved = add_drop(best[size], size, counts[size], rounding, negligible)
            keep(replace(moved, size, replaced, rounding, negligible), place)
    for _ in range(ROUNDS):
        before = set(best.values())
        sweep(1)
        sweep(-1)
        if set(best.values()) == before:
            break
    return best


def add_drop(choice: C, size: int, counts: Sequence[int], rounding: float, negligible: float) -> C:
    """Return the choice after add-drop moves, improved by exchanges, made as long as one is not negligible.

    A move adds one of the `counts` of units and drops as many, or the other way round. The argument is not changed; it
    is returned itself if no move helps.
    """

    def moved_by(move: Callable[[C, int, int, float], C], count: int) -> Callable[[C], C]:
        def make(choice: C) -> C:
            moved = move(choice, size, count, rounding)
            return choice if set(moved.chosen) == set(choice.chosen) else descend(moved, size, rounding, negligible)

        return make

    moves = [moved_by(move, count) for count in dict.fromkeys(counts) for move in (add_then_drop, drop_then_add)]
    return _while_one_helps(choice, lambda _: moves, negligible)


def replace(choice: R, size: int, count: int, rounding: float, negligible: float) -> R:
    """Return the choice after each of the `count` cheapest units has been left out, in turn, as long as that helps.

    Without it, the best additions and exchanges are made; then it may come back, and they are made again. The argument
    is not changed; it is returned itself if that does not help.
    """

    def without(unit: int) -> Callable[[R], R]:
        def make(choice: R) -> R:
            if unit not in choice.chosen:  # it has been replaced
                return choice
            moved = choice.copy()
            moved.drop(moved.chosen.index(unit))
            moved.keep_out(unit)
            grow(moved, size, rounding)
            moved = descend(moved, size, rounding, negligible).copy()
            moved.keep_out(None)
            grow(moved, size, rounding)
            return descend(moved, size, rounding, negligible)

        return make

    def moves(choice: R) -> list[Callable[[R], R]]:
        costs = choice.costs()
        cheapest = [slot for slot in costs.argsort(kind="stable")[:count] if costs[slot] < np.inf]
        return [without(choice.chosen[slot]) for slot in cheapest]

    return _while_one_helps(choice, moves, negligible)


def _while_one_helps(choice: C, moves: Callable[[C], Iterable[Callable[[C], C]]], negligible: float) -> C:
    """Return the choice after rounds of moves, each made if it is not negligible, until a round has none of these."""
    for _ in range(ROUNDS):
        before = choice
        for move in moves(before):
            moved = move(choice)
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
