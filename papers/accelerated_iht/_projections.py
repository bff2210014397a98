"""Approximate projections: sketches of matrices, groups that overlap, and the worst supports that constants allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from hardthresh.constraints import OverlappingGroupSparsity, Rank
from hardthresh.constraints.rank import Bases
from hardthresh.core.constraint import Projection
from hardthresh.core.support import Support


@dataclass(frozen=True)
class SketchedRank(Rank):
    """Rank r by a randomised decomposition (Halko, Martinsson and Tropp 2011, Algorithms 4.4 and 5.1).

    Parameters
    ----------
    power : int
        q, power steps after the first product.
    oversampling : int
        p, columns of the sketch more than the rank.
    rng : Generator
        Every projection draws a new sketch from it, as an iteration of a published method would.
    """

    power: int = 0
    oversampling: int = 5
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0), compare=False)

    def project(self, z: Any, start: Support | None = None) -> Projection:
        width = min(self.r + self.oversampling, *z.shape)
        basis = np.linalg.qr(z @ self.rng.standard_normal((z.shape[1], width)))[0]
        for _ in range(self.power):
            basis = np.linalg.qr(z @ np.linalg.qr(z.T @ basis)[0])[0]
        small = Rank(self.r, "lapack").project(basis.T @ z)
        bases = small.support
        assert isinstance(bases, Bases)
        return Projection(basis @ small.point, Bases(basis @ bases.left, bases.right, bases.values))


class ChainGroups(OverlappingGroupSparsity):
    """Groups of which each overlaps only the one before and the one after it, with the nearest point of the set.

    The energy of some groups is the sum of theirs less that of the coordinates that neighbours share, which dynamic
    programming maximises over the choices of at most k groups: O(k) for each group.
    """

    __slots__ = ()

    def project(self, z: Any, start: Support | None = None) -> Projection:
        energy = np.asarray(z) ** 2
        groups, shared = _members(self.groups)
        cover = self.cover(chosen_in_chain(_sums(energy, groups), _sums(energy, shared), self.k))
        return Projection(cover.restrict(z), cover)


@lru_cache(maxsize=1)
def _members(groups: tuple[tuple[int, ...], ...]) -> tuple[list[Any], list[Any]]:
    """Return the coordinates of each group, and those that it shares with the next."""
    members = [np.array(group) for group in groups]
    return members, [np.intersect1d(a, b) for a, b in pairwise(members)]


def _sums(energy: Any, parts: list[Any]) -> list[float]:
    return [float(energy[part].sum()) for part in parts]


def chosen_in_chain(energies: list[float], shared: list[float], k: int) -> Any:
    """Return the numbers of the at most k groups of a chain with the largest energy, increasing."""
    best = np.full((2, k + 1), -np.inf)  # by whether the last group is taken, and by how many are
    best[0, 0] = 0.0
    taken_before = np.zeros((len(energies), 2, k + 1), dtype=bool)
    for group, (energy, common) in enumerate(zip(energies, [0.0, *shared], strict=True)):
        left = np.maximum(best[0], best[1])
        alone, beside = best[0, :-1] + energy, best[1, :-1] + energy - common
        taken_before[group, 0] = best[1] > best[0]
        taken_before[group, 1, 1:] = beside > alone
        best = np.stack([left, np.concatenate([[-np.inf], np.maximum(alone, beside)])])
    taken, count = np.unravel_index(np.argmax(best), best.shape)
    chosen = []
    for group in reversed(range(len(energies))):
        before = taken_before[group, int(taken), count]
        if taken:
            chosen.append(group)
            count -= 1
        taken = before
    return np.array(chosen[::-1], dtype=np.int64)


class SeparateGroups(OverlappingGroupSparsity):
    """The k groups with the largest energy, each by itself: what neighbours share is counted twice."""

    __slots__ = ()

    def project(self, z: Any, start: Support | None = None) -> Projection:
        energy = np.array([np.sum(np.asarray(z)[list(group)] ** 2) for group in self.groups])
        largest = np.argsort(-energy, kind="stable")[: self.k]
        cover = self.cover(largest[energy[largest] > 0])
        return Projection(cover.restrict(z), cover)


def worst_head(z: Any, k: int, constant: float) -> Any:
    """Return z on k entries with at least a share of the norm of the k largest, without the largest it can miss."""
    return _window(z, k, lambda kept, total: kept >= (constant**2) * kept[0])


def worst_tail(z: Any, k: int, constant: float) -> Any:
    """Return z on k entries within a multiple of the least distance, without the largest it can miss."""
    return _window(z, k, lambda kept, total: total - kept <= (constant**2) * (total - kept[0]))


def _window(z: Any, k: int, allowed: Callable[[Any, Any], Any]) -> Any:
    """Return z on k entries that are neighbours in the order of size, the smallest that are allowed."""
    order = np.argsort(-np.abs(z), kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(z[order] ** 2)])
    first = int(np.flatnonzero(allowed(sums[k:] - sums[:-k], sums[-1]))[-1])
    point = np.zeros_like(z)
    point[order[first : first + k]] = z[order[first : first + k]]
    return point
