"""Local search over the supports of a quadratic, on its Gram tableau: greedy paths, exchanges and add-drop moves.

Two thresholds mean the same throughout: a column is added if q falls by more than `rounding`, and a move to another
support counts if q falls by more than `negligible`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .tableau import Tableau


def grow(tableau: Tableau, size: int, rounding: float) -> None:
    """Add the column that lowers q most until `size` columns are chosen, or none lowers it by more than rounding."""
    while tableau.size < size:
        j, gain = tableau.best_addition()
        if not gain > rounding:
            return
        before = tableau.decrease
        tableau.add(j)
        if not tableau.decrease > before:  # among nearly collinear columns a gain may be nothing but rounding
            return


def shrink(tableau: Tableau, size: int) -> None:
    """Drop the column that raises q least until `size` columns are chosen."""
    while tableau.size > max(size, tableau.free):
        tableau.drop(int(tableau.costs().argmin()))


def descend(tableau: Tableau, size: int, rounding: float, negligible: float) -> Tableau:
    """Return the tableau after the best exchanges of one column for another, made as long as one is not negligible."""
    while True:
        place, j, fall = tableau.best_exchange()
        if not fall > negligible:
            return tableau
        after = tableau.copy()
        after.drop(place)
        after.add(j)
        grow(after, size, rounding)  # where bounds on signs have made other columns leave
        if not after.decrease > tableau.decrease + negligible:
            return tableau
        tableau = after


def forward_backward(
    tableau: Tableau, sizes: Collection[int], largest: int, rounding: float, negligible: float
) -> Iterator[tuple[int, Tableau]]:
    """Yield each size with the better of the forward and the backward path at this size, improved by exchanges.

    The forward path adds the best column until there are `largest`, the backward path then drops the cheapest; both
    pass every size, so that the answer for one size does not depend on the others.
    """
    path = tableau.copy()
    forward = {}
    for size in range(tableau.size, largest + 1):
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
    path = tableau.copy()  # the forward path once more: which of its tableaus to keep was not known
    for size in reversed(better_forward):
        grow(path, size, rounding)
        yield size, descend(path.copy(), size, rounding, negligible)


def add_drop(tableau: Tableau, size: int, count: int, rounding: float, negligible: float) -> Iterator[Tableau]:
    """Yield the results of adding `count` columns and dropping as many, and of the opposite, improved by exchanges.

    A move that ends where it began is left out.
    """
    added_first, dropped_first = tableau.copy(), tableau.copy()
    grow(added_first, size + count, rounding)
    shrink(added_first, size)
    shrink(dropped_first, size - count)
    grow(dropped_first, size, rounding)
    for moved in (added_first, dropped_first):
        if set(moved.chosen) != set(tableau.chosen):
            yield descend(moved, size, rounding, negligible)
