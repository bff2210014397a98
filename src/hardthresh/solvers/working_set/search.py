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
        before = tableau.decrease
        tableau.add(j)
        if not tableau.decrease > before:  # among nearly collinear columns a gain may be nothing but rounding
            return


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
        if not after.decrease > tableau.decrease + negligible:
            return tableau
        tableau = after


def out_and_back(
    tableau: Tableau, sizes: Collection[int], furthest: int, least: float, negligible: float
) -> Iterator[tuple[int, Tableau]]:
    """Yield each size with what exchanges lead to from the better of two greedy starts: on the way out, or back.

    The way out adds the best column up to the `furthest` size, the way back drops the cheapest; both pass every size,
    so a size's answer does not depend on which others are asked for.
    """
    walker = tableau.copy()
    on_the_way_out = {}
    for size in range(tableau.size, furthest + 1):
        grow(walker, size, least)
        on_the_way_out[size] = walker.decrease
    left = []
    for size in sorted(sizes, reverse=True):
        shrink(walker, size)
        if size in on_the_way_out and on_the_way_out[size] > walker.decrease + negligible:
            left.append(size)
        else:
            start = walker.copy()
            grow(start, size, least)  # where signs have pushed other columns out
            yield size, descend(start, size, least, negligible)
    walker = tableau.copy()
    for size in reversed(left):  # once more: what to keep of the way out was not known
        grow(walker, size, least)
        yield size, descend(walker.copy(), size, least, negligible)


def swings(tableau: Tableau, size: int, reach: int, least: float, negligible: float) -> Iterator[Tableau]:
    """Yield where exchanges lead after growing by `reach` columns and shrinking back, and after the opposite.

    A swing that comes back to where it started is not worth looking at again.
    """
    outward, inward = tableau.copy(), tableau.copy()
    grow(outward, size + reach, least)
    shrink(outward, size)
    shrink(inward, size - reach)
    grow(inward, size, least)
    for swung in (outward, inward):
        if set(swung.chosen) != set(tableau.chosen):
            yield descend(swung, size, least, negligible)
