"""The minimum of a unimodal function of integers, from few values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from hardthresh.core.checking import checked_integer

_BESIDE = 2
"""How far from the best number all others are tried, because curves are not exactly unimodal. Arbitrary."""


def golden_section(values: Callable[[Sequence[int]], Iterable[float]], largest: int) -> dict[int, float]:
    r"""Return the values of a function at the numbers that a golden-section search for its minimum on 1, ..., K tries.

    First the powers of two and K are tried together. Between the neighbours of the best of these, a golden-section
    search on integers (by Fibonacci numbers) follows: of two numbers inside the interval, the one with the larger value
    becomes its new end. Then all numbers within 2 of the best one are tried, repeatedly as long as one of them is
    better.

    Parameters
    ----------
    values : callable
        Returns the values at given increasing numbers, each of which is requested only once. NaN counts as infinity.
    largest : int
        K >= 1.

    Returns
    -------
    dict from int to float
        The value at each number that was tried, by increasing number.

    Raises
    ------
    InvalidInputError
        If K is not a positive integer.

    Notes
    -----
    Guarantee: if the function is strictly decreasing before its minimum and strictly increasing after it, where it is
    finite, the minimum is among the numbers tried, of which there are at most :math:`\log_2 K + \log_\varphi K + 5`,
    with the golden ratio :math:`\varphi`. For other functions the result contains a local minimum (heuristic).
    Golden-section search without the powers of two would try fewer numbers, but its first ones are far beyond the best
    number, where held-out scores are irregular. Of two numbers with equal values, the smaller one counts as better.

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
