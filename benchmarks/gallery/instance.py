"""What an instance of the gallery is, and the list of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Fn = Callable[[Any], Any]


@dataclass(frozen=True)
class Instance:
    """A function of a vector to minimise with at most k coordinates, or groups of them.

    Attributes
    ----------
    fn : callable
        The function, written with ``jax.numpy``; infinite outside of its domain.
    dimension, k : int
        How long its vectors are, and how many coordinates (groups, where there are groups) may be used, those of
        `free` not counted.
    group : int
        The size of the groups, which are consecutive; 1 for single coordinates.
    free : tuple of int
        Coordinates that are always used.
    positive : bool
        Whether no coordinate may be negative.
    start : array, optional
        Where both libraries start; default zero.
    """

    fn: Fn
    dimension: int
    k: int
    group: int = 1
    free: tuple[int, ...] = ()
    positive: bool = False
    start: np.ndarray | None = None


@dataclass(frozen=True)
class Entry:
    """An instance by name: the half that it belongs to, the topic, and how it is made from a seed."""

    name: str
    half: str
    topic: str
    make: Callable[[np.random.Generator], Instance]


GALLERY: list[Entry] = []
"""All instances, in the order of the gallery."""


def instance(name: str, half: str) -> Callable[[Callable[[np.random.Generator], Instance]], Any]:
    """Return a decorator that adds an instance to the gallery; `half` is "development" or "reporting"."""

    def add(make: Callable[[np.random.Generator], Instance]) -> Callable[[np.random.Generator], Instance]:
        GALLERY.append(Entry(name, half, make.__module__.rsplit(".", 1)[-1], make))
        return make

    return add


def correlated(rng: np.random.Generator, n: int, d: int, rho: float = 0.5) -> np.ndarray:
    """Return n rows of d columns of variance 1, with the correlation rho^|i - j|."""
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X


def planted(rng: np.random.Generator, d: int, k: int, size: float = 1.0, outputs: int | None = None) -> np.ndarray:
    """Return coefficients, k of d of which (rows, where there are several outputs) are between size and twice that."""
    shape = (d,) if outputs is None else (d, outputs)
    w = np.zeros(shape)
    rows = rng.choice(d, k, replace=False)
    w[rows] = rng.uniform(size, 2 * size, w[rows].shape) * rng.choice([-1.0, 1.0], w[rows].shape)
    return w
