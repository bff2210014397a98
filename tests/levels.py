"""How much is tested: the one place that reads the level, before any test is generated.

``HARDTHRESH_TESTS`` is one of

- ``fast`` (the default, and what ``make test`` runs): every law, on cases that could break it;
- ``pairs``: laws that many things keep are tested on each pair of these things;
- ``all`` (``make test-all``, each night): whole products of what is cheap, and the slow statistics of
  the papers.

A higher level has all tests of the lower ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any
from zlib import crc32

import pytest
from hypothesis import settings

LEVELS = ("fast", "pairs", "all")
LEVEL = os.environ.get("HARDTHRESH_TESTS") or "fast"
if LEVEL not in LEVELS:
    raise pytest.UsageError(f"HARDTHRESH_TESTS must be one of {', '.join(LEVELS)}; got {LEVEL!r}")

FAST_EXAMPLES = 15
"""The most examples that hypothesis draws for one test at the level ``fast``."""

inherited = pytest.mark.inherited
"""Marks a test of an estimator that finds nothing new on the twin with cross-validation: that one inherits the code."""


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

    Below the level each value of the first list occurs, and each combination of the others.
    """
    rows: Sequence[Any] = list(product(*values))
    if not reaches(level):
        sizes = [len(some) for some in values]
        strides = [1, *(prod(sizes[1:place]) for place in range(1, len(sizes)))]
        rows = [
            tuple(some[i // stride % len(some)] for some, stride in zip(values, strides, strict=True))
            for i in range(max(sizes[0], prod(sizes[1:])))
        ]
    return pytest.mark.parametrize(names, [_joined(row) for row in rows])


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
