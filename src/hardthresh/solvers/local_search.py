"""Searching the supports of a quadratic on its Gram tableau: greedy walks, exchanges, swings."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .tableau import Tableau


def grow(tableau: Tableau, size: int, least: float) -> None:
    """Add the column that helps most until there are `size`, or none helps by more than `least`."""
    while tableau.size < size:
        j, gain = tableau.best_addition()
        if not gain > least:
            return
        tableau.add(j)


def shrink(tableau: Tableau, size: int) -> None:
    """Drop the column that is missed least until there are `size`."""
    while tableau.size > max(size, tableau.free):
        tableau.drop(int(tableau.costs().argmin()))


def descend(tableau: Tableau, size: int, least: float, negligible: float) -> Tableau:
    """Return what the best exchanges of one column for another lead to, made as long as one helps noticeably."""
    while True:
        place, j, fall = tableau.best_exchange()
        if not fall > negligible:
            return tableau
        after = tableau.copy()
        after.drop(place)
        after.add(j)
        grow(after, size, least)  # where signs have pushed other columns out
        if not after.decrease > tableau.decrease:
            return tableau
        tableau = after


def out_and_back(
    tableau: Tableau, sizes: Collection[int], furthest: int, least: float, negligible: float
) -> dict[int, list[Tableau]]:
    """Return for each size what exchanges lead to from two greedy starts: on the way out, and on the way back.

    The way out adds the best column up to the `furthest` size, the way back drops the cheapest; both pass every size,
    so a size's answer does not depend on which others are asked for.
    """
    walker = tableau.copy()
    found: dict[int, list[Tableau]] = {size: [] for size in sizes}
    for size in range(min(walker.size, *sizes), furthest + 1):
        grow(walker, size, least)
        if size in sizes and size >= tableau.size:
            found[size].append(descend(walker.copy(), size, least, negligible))
    for size in range(furthest - 1, min(sizes) - 1, -1):
        if walker.size > size:
            shrink(walker, size)
            if size in sizes:
                found[size].append(descend(walker.copy(), size, least, negligible))
    return found


def swings(tableau: Tableau, size: int, reach: int, least: float, negligible: float) -> Iterator[Tableau]:
    """Yield where exchanges lead after growing by `reach` columns and shrinking back, and after the opposite."""
    outward, inward = tableau.copy(), tableau.copy()
    grow(outward, size + reach, least)
    shrink(outward, size)
    yield descend(outward, size, least, negligible)
    shrink(inward, size - reach)
    grow(inward, size, least)
    yield descend(inward, size, least, negligible)
