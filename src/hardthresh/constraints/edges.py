"""Symmetric matrices with few non-zeros off the diagonal: graphs with a budget of edges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil
from operator import index

import numpy as np
from array_api_compat import device

from hardthresh.arrays import mask_of, namespace, top_k, union, where_true
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.registry import register
from hardthresh.core.typing import Array, Support


def _examples() -> Iterable[EdgeSparsity]:
    """Return constraints for 4 x 4 matrices."""
    yield from (EdgeSparsity(K) for K in (4, 5, 8, 16, 30))


@register("constraint", "edges", _examples)
@dataclass(frozen=True, slots=True)
class EdgeSparsity(Constraint):
    r"""Symmetric matrices with at most K non-zeros, the diagonal always kept.

    .. math:: C = \{ W = W^\top \in R^{p \times p} : p + 2 |\{ i < j : w_{ij} \ne 0 \}| \le K \}

    Parameters
    ----------
    K : int
        Budget of entries, as the paper counts them: the diagonal costs p and an edge 2, so that
        :math:`\lfloor (K - p)/2 \rfloor` edges are allowed. K < p is refused by `check`; K >= p^2 allows every graph.

    Raises
    ------
    InvalidInputError
        For a fractional or negative K; by `check`, for points that are no square matrices or have p > K.

    Notes
    -----
    The projection takes the symmetric part and keeps the pairs of largest magnitude, the smaller (row, column) first
    among equals. The support is the increasing array of flat coordinates, both triangles and the diagonal. `restrict`
    takes the symmetric part too. Positive definiteness is not this set's business. Cost O(p^2), no data pass.

    References
    ----------
    *Probabilistic IHT*, Section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> EdgeSparsity(5).project(np.array([[1.0, 2.0, -3.0], [2.0, 1.0, 0.5], [-3.0, 0.5, 1.0]])).point
    array([[ 1.,  0., -3.],
           [ 0.,  1.,  0.],
           [-3.,  0.,  1.]])
    """

    K: int

    def __post_init__(self) -> None:
        try:
            K = index(self.K)
        except TypeError as error:
            raise InvalidInputError(f"K must be an integer, got {self.K!r}") from error
        if K < 0:
            raise InvalidInputError(f"K must be >= 0, got {K}")
        object.__setattr__(self, "K", K)

    def check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 2 or shape[0] != shape[1]:
            raise InvalidInputError(f"{self} is about square matrices, but the points have shape {tuple(shape)}")
        if self.K < shape[0]:
            raise InvalidInputError(
                f"K = {self.K} does not even hold the diagonal of a {shape[0]} x {shape[0]} matrix; the diagonal costs "
                f"{shape[0]} and every edge 2"
            )

    def project(self, z: Array) -> Projection:
        xp, p = namespace(z), z.shape[0]
        even = _symmetric(z)
        upper = xp.reshape(xp.triu(xp.abs(even), k=1), (-1,))
        edges = top_k(upper, min((self.K - p) // 2, p * (p - 1) // 2))
        edges = edges[xp.take(upper, edges, axis=0) > 0]
        diagonal = xp.arange(p, dtype=edges.dtype, device=device(edges)) * (p + 1)
        mirrored = edges % p * p + edges // p
        support = xp.sort(xp.concat([edges, mirrored, diagonal]))
        return Projection(_keep(even, support), support)

    def restrict(self, v: Array, support: Support) -> Array:
        return _keep(_symmetric(v), support)

    def join(self, a: Support, b: Support) -> Support:
        return union(a, b)

    def relax(self, factor: float) -> EdgeSparsity:
        return replace(self, K=ceil(factor * self.K))

    def same(self, a: Support, b: Support) -> bool:
        return bool(a.shape == b.shape and namespace(a, b).all(a == b))

    def is_full(self, support: Support) -> bool:
        return bool(self.K - support.shape[0] < 2)

    def indices(self, support: Support) -> Array:
        return support

    def reference_project(self, z: Array) -> Projection:
        """Return the projection by trying every graph: the slow, obviously right twin, for tests only."""
        p = z.shape[0]
        pairs = [(i, j) for i in range(p) for j in range(i + 1, p)]
        even = (np.asarray(z) + np.asarray(z).T) / 2
        best, best_distance = np.diag(np.diag(even)), np.inf
        for chosen in combinations(pairs, min((self.K - p) // 2, len(pairs))):
            point = np.diag(np.diag(even))
            for i, j in chosen:
                point[i, j] = point[j, i] = even[i, j]
            distance = float(np.sum((even - point) ** 2))
            if distance < best_distance:
                best, best_distance = point, distance
        return Projection(best, where_true(((best != 0) | np.eye(p, dtype=bool)).ravel()))


def _symmetric(v: Array) -> Array:
    return v + 0.5 * (v.T - v)


def _keep(v: Array, support: Support) -> Array:
    xp = namespace(v)
    kept = xp.reshape(mask_of(support, v.shape[0] * v.shape[1]), v.shape)
    return xp.where(kept, v, xp.zeros_like(v))
