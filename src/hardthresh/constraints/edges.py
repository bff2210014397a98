"""Symmetric matrices with few non-zeros off the diagonal: graphs with a budget of edges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, isqrt
from typing import ClassVar

import numpy as np
from array_api_compat import device

from hardthresh.arrays import FactoredMatrix, gather, namespace, scatter, symmetric_part, top_k, union, where_true
from hardthresh.core.checking import checked_integer
from hardthresh.core.constraint import Constraint, Projection, Structure
from hardthresh.core.errors import InvalidInputError, NotFiniteError
from hardthresh.core.registry import register
from hardthresh.core.schema import stored
from hardthresh.core.support import Support, stored_as_array
from hardthresh.core.typing import Array

from .supports import Coordinates


def _examples() -> Iterable[EdgeSparsity]:
    """Return constraints for 4 x 4 matrices."""
    yield from (EdgeSparsity(K) for K in (4, 5, 8, 16, 30))


@register("constraint", "edges", _examples)
@dataclass(frozen=True, slots=True)
class EdgeSparsity(Constraint):
    r"""Symmetric matrices with at most K non-zeros, which include the whole diagonal.

    .. math:: C = \{ W = W^\top \in R^{p \times p} : p + 2 |\{ i < j : w_{ij} \ne 0 \}| \le K \}

    Parameters
    ----------
    K : int
        Largest number of non-zeros, counted as in the paper: the diagonal counts p and each edge 2, so :math:`\lfloor
        (K - p)/2 \rfloor` edges are allowed. `of_edges` takes the number of edges instead. `check` raises an error for
        K < p; K >= p^2 allows every graph.

    Raises
    ------
    InvalidInputError
        For a negative or non-integer K; by `check`, for points that are not square matrices or have p > K.

    Notes
    -----
    The projection takes the symmetric part and keeps the pairs of largest magnitude; of equal ones, the smaller (row,
    column). The support is `Edges`, the increasing flat coordinates of the diagonal and of both triangles. Matrices of
    the set need not be positive definite. Cost O(p^2), no data pass.

    References
    ----------
    Bergamaschi, Cristofari, Kungurtsev and Rinaldi (2025), *Probabilistic IHT*, Section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> EdgeSparsity(5).project(np.array([[1.0, 2.0, -3.0], [2.0, 1.0, 0.5], [-3.0, 0.5, 1.0]])).point
    array([[ 1.,  0., -3.],
           [ 0.,  1.,  0.],
           [-3.,  0.,  1.]])
    """

    K: int

    symmetric: ClassVar[bool] = True

    @classmethod
    def of_edges(cls, n_edges: int, p: int) -> EdgeSparsity:
        """Return the set of p x p matrices with at most `n_edges` edges, K = p + 2 n_edges."""
        return cls(checked_integer("p", p, 1) + 2 * checked_integer("n_edges", n_edges, 0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "K", checked_integer("K", self.K, 0))

    def check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 2 or shape[0] != shape[1]:
            raise InvalidInputError(f"{self} is about square matrices, but the points have shape {tuple(shape)}")
        if shape[0] > self.K:
            raise InvalidInputError(
                f"K = {self.K} does not even hold the diagonal of a {shape[0]} x {shape[0]} matrix; the diagonal costs "
                f"{shape[0]} and every edge 2"
            )

    def project(self, z: Array, start: Support | None = None) -> Projection:
        if isinstance(z, FactoredMatrix):
            raise InvalidInputError(f"{self} needs points whose entries are at hand, not factors; store them densely")
        xp, p = namespace(z), z.shape[0]
        even = symmetric_part(z)
        upper = xp.reshape(xp.triu(xp.abs(even), k=1), (-1,))
        edges = top_k(upper, min((self.K - p) // 2, p * (p - 1) // 2))
        edges = edges[gather(upper, edges) > 0]
        diagonal = xp.arange(p, dtype=edges.dtype, device=device(edges)) * (p + 1)
        if bool(xp.any(xp.isnan(xp.linalg.diagonal(z)))):
            raise NotFiniteError("the point to threshold contains NaN; check the data, or take a smaller step")
        support = xp.sort(xp.concat([edges, _mirrored(edges, p), diagonal]))
        return Projection(_at(support, gather(xp.reshape(even, (-1,)), support), p), Edges(support))

    def project_onto(self, z: Array, support: Support, start: Support | None = None) -> Projection:
        """Return the symmetric part on the support, without edges that are zero."""
        xp, p, indices = namespace(z), z.shape[0], support.indices
        entries = _even_entries(z, indices)
        kept = (entries != 0) | (indices % (p + 1) == 0)
        if not bool(xp.all(kept)):
            indices, entries = indices[kept], entries[kept]
        return Projection(_at(indices, entries, p), Edges(indices))

    def relax(self, factor: float) -> EdgeSparsity:
        return replace(self, K=ceil(factor * self.K))

    def is_full(self, support: Support) -> bool:
        return bool(self.K - support.indices.shape[0] < 2)

    def structure(self, shape: tuple[int, ...]) -> Structure:
        return _EdgeBudget(shape[0] * (shape[0] - 1) // 2)

    def reference_project(self, z: Array) -> Projection:
        """Return the projection by brute force over all graphs, for tests only."""
        p = z.shape[0]
        pairs = [(i, j) for i in range(p) for j in range(i + 1, p)]
        even = (np.asarray(z) + np.asarray(z).T) / 2
        best, best_kept = np.diag(np.diag(even)), -np.inf
        for chosen in combinations(pairs, min((self.K - p) // 2, len(pairs))):
            point = np.diag(np.diag(even))
            for i, j in chosen:
                point[i, j] = point[j, i] = even[i, j]
            kept = float(np.sum(np.triu(point, 1) ** 2))
            if kept > best_kept:
                best, best_kept = point, kept
        return Projection(best, Edges(where_true(((best != 0) | np.eye(p, dtype=bool)).ravel())))


def _mirrored(flat: Array, p: int) -> Array:
    """Return the flat coordinates of the transposed entries of a p x p matrix."""
    return flat % p * p + flat // p


def _even_entries(v: Array, support: Array) -> Array:
    """Return the entries of the symmetric part of a matrix at the places of a support."""
    flat = namespace(v).reshape(v, (-1,))
    return 0.5 * (gather(flat, support) + gather(flat, _mirrored(support, v.shape[0])))


def _at(support: Array, entries: Array, p: int) -> Array:
    """Return the p x p matrix with some entries at the places of a support, and zeros elsewhere."""
    return namespace(entries).reshape(scatter(entries, support, p * p), (p, p))


def _counts(indices: Array) -> tuple[int, int]:
    """Return the size of the matrices of a support, whose last entry is on the diagonal, and how many edges it has."""
    p = isqrt(int(indices[-1]) + 1)
    return p, (int(indices.shape[0]) - p) // 2


@stored_as_array(2)
@stored("support/edges")
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Edges(Coordinates):
    """Entries of a symmetric matrix: the diagonal and both triangles of edges; `restrict` takes the symmetric part.

    Attributes
    ----------
    indices : array of int
        The flat coordinates, increasing.
    """

    def restrict(self, v: Array) -> Array:
        return _at(self.indices, _even_entries(v, self.indices), v.shape[0])

    def __or__(self, other: Support) -> Edges:
        assert isinstance(other, Edges)
        return Edges(union(self.indices, other.indices))

    @property
    def degrees_of_freedom(self) -> int:
        """The number of diagonal entries and of edges."""
        return sum(_counts(self.indices))


@dataclass(frozen=True, slots=True)
class _EdgeBudget(Structure):
    """The structure of `EdgeSparsity`: edges of a graph."""

    candidates: int

    def selected(self, support: Support) -> int:
        return _counts(support.indices)[1]
