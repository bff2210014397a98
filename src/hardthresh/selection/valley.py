"""The least value of a function of whole numbers with one valley, at few of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from hardthresh.core.checking import checked_integer

_BESIDE = 2
"""How far from the best number all others are tried, because curves are not exactly unimodal. Arbitrary."""


def golden_section(values: Callable[[Sequence[int]], Iterable[float]], largest: int) -> dict[int, float]:
    r"""Return a function at the numbers of 1 .. K that a search for its least value tries.

    First the powers of two and K are tried together. Between the neighbours of the best of them golden-section search
    on whole numbers goes on, which Fibonacci numbers divide: of two numbers inside an interval the one of the larger
    value becomes its new end. Then all numbers within 2 of the best one are tried too, again if one of them is better.

    Parameters
    ----------
    values : callable
        Returns the values at some numbers, increasing and not asked for before. NaN counts as infinity.
    largest : int
        K >= 1.

    Returns
    -------
    dict from int to float
        The value at each number that was tried, by increasing number.

    Raises
    ------
    InvalidInputError
        If K is no positive integer.

    Notes
    -----
    Of a function that falls strictly before its minimum and rises strictly after it, as far as it is finite, the
    minimum is among them, and they are at most :math:`\log_2 K + \log_\varphi K + 5` numbers, with the golden ratio
    :math:`\varphi`. Of other functions a local minimum is: heuristic. Golden-section search from the start would take
    fewer numbers, but held-out scores are uneven far beyond the best number, where its first steps look. Where two
    values are equal the smaller number counts as the better one.

    References
    ----------
    J. Kiefer (1953), *Sequential minimax search for a maximum*, Proceedings of the American Mathematical Society 4.

    Examples
    --------
    >>> tried = golden_section(lambda ks: [(k - 70) ** 2 for k in ks], 100)
    >>> min(tried, key=tried.get), len(tried)
    (70, 18)
    """
    last = checked_integer("largest", largest, least=1)
    known: dict[int, float] = {}

    def try_all(numbers: Iterable[int]) -> None:
        untried = [number for number in numbers if number not in known]
        if untried:
            found = zip(untried, values(untried), strict=True)
            known.update((number, np.inf if np.isnan(value) else float(value)) for number, value in found)

    def best() -> int:
        return min(known, key=lambda number: (known[number], number))

    try_all(sorted({last, *(2**power for power in range(last.bit_length()))}))
    coarse = [0, *sorted(known), last + 1]
    place = coarse.index(best())
    _narrow(try_all, known, coarse[place - 1], coarse[place + 1])
    before = 0
    while before < len(known):
        before, middle = len(known), best()
        try_all(range(max(1, middle - _BESIDE), min(last, middle + _BESIDE) + 1))
    return dict(sorted(known.items()))


def _narrow(try_all: Callable[[Iterable[int]], None], known: dict[int, float], low: int, high: int) -> None:
    """Try numbers inside an interval until none is left between two that are worse, or equal."""
    before, width = 1, 1  # Fibonacci numbers; numbers beyond the interval count as infinitely bad
    while width < high - low:
        before, width = width, before + width
    while width > 2:
        left, right = low + width - before, low + before
        try_all(number for number in (left, right) if number < high)
        if right < high and known[right] < known[left]:
            low = left
        width, before = before, width - before
    try_all([low + 1])
