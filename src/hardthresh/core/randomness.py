"""Random numbers: one stream for each seed, number and purpose."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """What random numbers are drawn for; the last part of a seed.

    What is drawn has to be independent of the data, so each is a number that no one seeds a simulation with: four
    letters in ASCII, except `FINGERPRINT`, whose number stored files have from before there was this list. Small ones
    would not do: zeros at the end of a seed change nothing, so that ``default_rng((0, 0, 0))`` is ``default_rng(0)``,
    with which users simulate data.
    """

    BATCH_OF_GRADIENT = int.from_bytes(b"grad", "big")
    BATCH_OF_VALUE = int.from_bytes(b"valu", "big")
    BATCH_OF_SECOND_VALUE = int.from_bytes(b"val2", "big")
    HALVES_OF_BATCH = int.from_bytes(b"part", "big")
    HALF_SAMPLES = int.from_bytes(b"half", "big")
    HALVES_OF_BLOCKS = int.from_bytes(b"hblk", "big")
    KNOCKOFFS = int.from_bytes(b"copy", "big")
    PERMUTATIONS = int.from_bytes(b"ordr", "big")
    NULL_PERMUTATIONS = int.from_bytes(b"null", "big")
    ORDER_OF_BLOCKS = int.from_bytes(b"shrd", "big")
    FOLDS_OF_BLOCKS = int.from_bytes(b"fold", "big")
    ORDER_OF_ROWS = int.from_bytes(b"rows", "big")
    REPEATED_SEARCHES = int.from_bytes(b"rept", "big")
    EXPLORED_ATTRIBUTES = int.from_bytes(b"attr", "big")
    TIED_DIRECTIONS = int.from_bytes(b"ties", "big")
    SIMULATED_STUDY = int.from_bytes(b"plan", "big")
    DIRECTIONS = int.from_bytes(b"dirs", "big")
    FINGERPRINT = 20231


def generator(seed: int, number: int, purpose: Purpose) -> np.random.Generator:
    """Return the generator of random numbers for the iteration, repetition or draw of some number."""
    return np.random.default_rng((seed, number, int(purpose)))


def random_halves(rng: np.random.Generator, groups: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return two halves of some rows, increasing, that have as many rows of each group, or one more than the other.

    If the number of rows is odd, one of them is in neither half.

    Parameters
    ----------
    rng : numpy.random.Generator
        What draws them.
    groups : sequence of array of int
        The rows of each group, such as a class.
    """
    shuffled = [rng.permutation(rows) for rows in groups]
    middles = [rows.size // 2 for rows in shuffled]
    left_over = rng.permutation(np.concatenate([rows[2 * m :] for rows, m in zip(shuffled, middles, strict=True)]))
    left_over = left_over[: left_over.size - left_over.size % 2]
    first = [rows[:m] for rows, m in zip(shuffled, middles, strict=True)]
    second = [rows[m : 2 * m] for rows, m in zip(shuffled, middles, strict=True)]
    one, other = (np.sort(np.concatenate([*parts, left_over[side::2]])) for side, parts in enumerate((first, second)))
    return one, other


def rows_by_label(labels: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each label."""
    numbers = np.unique(labels, return_inverse=True)[1]
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)
