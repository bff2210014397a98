"""How much is tested: the one place that reads the level, before any test is generated.

``HARDTHRESH_TESTS`` is one of

- ``fast`` (the default, and that of ``make test`` and ``make test-slow``): every law, on cases that could break it; of
  a test with several parameters each value of each parameter, and not each combination;
- ``pairs``: laws that many things keep are tested on each pair of these things;
- ``all`` (``make test-all``, each night): whole products of what is cheap, and the slow statistics of
  the papers.

A higher level has all tests of the lower ones.

A test function is marked ``slow`` if its calls at the level ``fast`` together take more than 0.25 s of CPU time.
``make check`` and ``make test`` leave the slow tests out, ``make test-slow`` runs only them, and every other command
runs both kinds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import settings

LEVELS = ("fast", "pairs", "all")
LEVEL = os.environ.get("HARDTHRESH_TESTS") or "fast"
if LEVEL not in LEVELS:
    raise pytest.UsageError(f"HARDTHRESH_TESTS must be one of {', '.join(LEVELS)}; got {LEVEL!r}")

FAST_EXAMPLES = 10
"""The most examples that hypothesis draws for one test at the level ``fast``."""

inherited = pytest.mark.inherited
"""Marks a test of an estimator that finds nothing new on the twin with cross-validation: that one inherits the code."""


def at_most(count: int) -> pytest.MarkDecorator:
    """Mark a test of which so many calls are made below the level ``pairs``, spread evenly over its parameters."""
    return pytest.mark.at_most(count)


def slow_beyond(count: int) -> pytest.MarkDecorator:
    """Mark a test as slow except for so many of its calls, spread evenly over its parameters."""
    return pytest.mark.slow_beyond(count)


def reaches(level: str) -> bool:
    """Return whether the tests of a level are generated."""
    return LEVELS.index(LEVEL) >= LEVELS.index(level)


def only_at(level: str) -> Callable[[Any], Any]:
    """Decorate a test that is generated from a level on; below it, there is no such test."""
    return lambda test: test if reaches(level) else None


def at(level: str, values: Sequence[Any]) -> Sequence[Any]:
    """Return values that are tested from a level on; below it, none."""
    return values if reaches(level) else ()


def turn(values: Sequence[Any], test: str) -> Sequence[Any]:
    """Return all values; below the level ``pairs``, one of them, whose turn it is by the name of the test."""
    if reaches("pairs") or not values:
        return values
    return [values[crc32(test.encode()) % len(values)]]


def draws(count: int, **arguments: Any) -> settings:
    """Return the settings of a hypothesis test with so many examples, or `FAST_EXAMPLES` at the level ``fast``."""
    return settings(max_examples=count if reaches("pairs") else min(count, FAST_EXAMPLES), **arguments)


def in_turn(names: str, *values: Sequence[Any], level: str = "pairs") -> pytest.MarkDecorator:
    """Parametrise a test by the product of some lists; below a level, by rows in which the values take turns.

    Below the level each value of each list occurs.
    """
    rows: Sequence[Any] = list(product(*values))
    if not reaches(level):
        rows = [tuple(some[i % len(some)] for some in values) for i in range(max(map(len, values)))]
    return pytest.mark.parametrize(names, [_joined(row) for row in rows])


def covering(rows: Sequence[Any], meetings: Callable[[Any], set[Hashable]], seed: int = 0) -> list[Any]:
    """Return enough of the rows, in their order, for each meeting in any of them to be in one that is kept.

    In the order of a shuffle, first those are kept that bring most new meetings, then one less, and so on.
    """
    order = np.random.default_rng(seed).permutation(len(rows))
    met: set[Hashable] = set()
    kept = []
    for least in range(max((len(meetings(row)) for row in rows), default=0), 0, -1):
        for i in order:
            new = meetings(rows[i]) - met
            if len(new) >= least:
                met |= new
                kept.append(i)
    return [rows[i] for i in sorted(kept)]


def thinned(tests: Sequence[pytest.Function]) -> Sequence[pytest.Function]:
    """Return all calls of a test; below the level ``pairs``, enough for each value of each parameter to be in one.

    Parameters of one decorator belong together: each of its rows is kept. Of a test that is marked by `at_most` there
    are no more calls than that.
    """
    if reaches("pairs") or len(tests) < 2:
        return tests
    turn_of_test = crc32(tests[0].originalname.encode())
    kept = covering(tests, _values, turn_of_test)
    marker = tests[0].get_closest_marker("at_most")
    return kept if marker is None else spread(kept, marker.args[0], turn_of_test)


def spread(values: Sequence[Any], count: int, shift: int) -> Sequence[Any]:
    """Return at most so many of the values, evenly spaced, in their order."""
    if count >= len(values):
        return values
    return [values[i] for i in sorted((i * len(values) // count + shift) % len(values) for i in range(count))]


def mark_slow(tests: Sequence[pytest.Function]) -> None:
    """Mark the slow calls of a test that is marked by `slow_beyond`."""
    marker = tests[0].get_closest_marker("slow_beyond") if tests else None
    if marker is not None:
        quick = {id(test) for test in spread(tests, marker.args[0], crc32(tests[0].originalname.encode()))}
        for test in tests:
            if id(test) not in quick:
                test.add_marker(pytest.mark.slow)


def _values(test: pytest.Function) -> set[Hashable]:
    """Return what tells apart the values of each decorator, and of each parameter that no decorator has."""
    parameters = test.callspec.params
    together = [_names(mark.args[0]) for mark in test.iter_markers("parametrize")]
    alone = [(name,) for name in parameters if not any(name in names for names in together)]
    return {(names, *(id(parameters[name]) for name in names)) for names in [*together, *alone]}


def _names(argument: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for name in argument.split(",")) if isinstance(argument, str) else tuple(argument)


def _joined(row: Sequence[Any]) -> Any:
    """Return one parameter made of several, some of which may have names."""
    if not any(hasattr(value, "values") and hasattr(value, "id") for value in row):
        return row
    plain = [value.values[0] if hasattr(value, "id") else value for value in row]
    ids = [str(value.id) if hasattr(value, "id") else _word(value) for value in row]
    marks = [mark for value in row if hasattr(value, "id") for mark in value.marks]
    return pytest.param(*plain, id="-".join(ids), marks=marks)


def _word(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else str(value)
