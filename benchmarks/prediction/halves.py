"""Which instances serve for choosing defaults, and which are only reported. Written before any result.

**Simulated cells.** The four axes of a cell are its setting (low, medium, high-5, high-10), its signal-to-noise ratio,
its correlation and its type of coefficients, each numbered from 0 in the order of `simulation`. A cell is for choosing
if the sum of its four numbers is even, and for reporting if it is odd.

**Real sets.** Sets of one family share rows or a source; a family is in one half with all its sets and targets.
`EARLIER` names the families that work before this benchmark looked at: a first look at shrinkage used bloodbrain,
communities_crime and riboflavin; the guides and the other benchmarks use colon, golub and wheat. They are for choosing.
The other families of each loss take turns in alphabetical order: the first is for reporting, the second for choosing.
"""

from __future__ import annotations

from collections.abc import Iterable

CHOOSING, REPORTING = "choosing", "reporting"
HALVES = (CHOOSING, REPORTING)

EARLIER = frozenset({"bloodbrain", "colon", "communities_crime", "golub", "riboflavin", "wheat"})
"""Families of real sets on which earlier work looked."""


def of_cell(numbers: Iterable[int]) -> str:
    """Return the half of a simulated cell, given its place on each axis, counted from 0."""
    return REPORTING if sum(numbers) % 2 else CHOOSING


def of_families(families: Iterable[str]) -> dict[str, str]:
    """Return the half of each family of real sets with one kind of target."""
    names = sorted(set(families))
    new = [name for name in names if name not in EARLIER]
    turns = {name: (REPORTING, CHOOSING)[place % 2] for place, name in enumerate(new)}
    return {name: turns.get(name, CHOOSING) for name in names}
