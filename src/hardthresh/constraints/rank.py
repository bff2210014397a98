"""Matrices of bounded rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import ceil, sqrt

from hardthresh.arrays import METHODS, FactoredMatrix, all_finite, namespace, truncated_svd
from hardthresh.core.checking import checked_integer, checked_word
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.errors import InvalidInputError, NotFiniteError
from hardthresh.core.registry import register
from hardthresh.core.schema import Fields, stored
from hardthresh.core.support import Support
from hardthresh.core.typing import Array


@stored("support/bases")
@dataclass(frozen=True, slots=True, eq=False)
class Bases(Support):
    """The support of a matrix of low rank: bases of its columns and rows; ``U, s, Vt = bases`` unpacks it.

    Attributes
    ----------
    left : array, shape (p, r)
        Orthonormal basis U of the columns.
    right : array, shape (q, r)
        Orthonormal basis V of the rows.
    values : array, shape (r,), or None
        The singular values of the matrix, decreasing; None for bases that do not belong to a matrix.
    """

    left: Array
    right: Array
    values: Array | None = None

    indices = None

    def restrict(self, v: Array) -> Array:
        """Return the projection on the tangent space."""
        U, V = self.left, self.right
        if isinstance(v, FactoredMatrix):
            across, along = v.transposed_times(U), v @ V
            return FactoredMatrix.product(U, across) + FactoredMatrix.product(along - U @ (U.T @ along), V)
        inside = U @ (U.T @ v)
        return inside + ((v - inside) @ V) @ V.T

    def __or__(self, other: Support) -> Bases:
        assert isinstance(other, Bases)
        return type(self)(_span(self.left, other.left), _span(self.right, other.right))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bases):
            return False
        return _same_span(self.left, other.left) and _same_span(self.right, other.right)

    @property
    def degrees_of_freedom(self) -> int:
        """The dimension of the matrices of this rank."""
        (p, r), (q, _) = self.left.shape, self.right.shape
        return int(r * (p + q - r))

    def __iter__(self) -> Iterator[Array | None]:
        return iter((self.left, self.values, self.right.T))


def _without_start(fields: Fields) -> Fields:
    """Return the fields in version 2: in version 1 a set knew where its projections start."""
    return {name: value for name, value in fields.items() if name != "_start"}


def _examples() -> Iterable[Rank]:
    """Return constraints for small matrices."""
    yield from (Rank(r) for r in (0, 1, 2, 20))
    yield Rank(1, method="lanczos")
    yield Rank(2, method="subspace")


@register("constraint", "rank", _examples, upgrades=[_without_start])
@dataclass(frozen=True, slots=True)
class Rank(Constraint):
    r"""Matrices of rank at most r.

    .. math:: C = \{ W \in R^{p \times q} : \mathrm{rank}(W) \le r \}

    Parameters
    ----------
    r : int
        Largest rank, >= 0; r >= min(p, q) allows every matrix.
    method : {"auto", "lapack", "lanczos", "randomized", "subspace"}
        The algorithm of the truncated singular value decomposition; see `hardthresh.arrays.truncated_svd`. "randomized"
        and "subspace" are approximate: they start from the bases of the last iterate and take two block power steps and
        one, respectively. The others are exact.

    Raises
    ------
    InvalidInputError
        For a negative or fractional r or an unknown method; by `check`, for points that are not matrices.
    NotFiniteError
        By `project`, for NaN or infinity.

    Notes
    -----
    The projection keeps the r largest singular values (Eckart and Young 1936). If the r-th and the next singular value
    are equal, the nearest point is not unique, and the order of the decomposition decides. The support is the pair of
    `Bases` U, V with the singular values, without those of the size of rounding errors. `Bases.restrict` is the
    projection onto the tangent space of the matrices with these bases,

    .. math:: P_T(G) = UU^\top G + G VV^\top - UU^\top G VV^\top,

    the directions along which the rank does not increase to first order. It contains the matrices of the form
    :math:`UAV^\top`, on which the *Sparse Polyak* step measures gradients by `hard_threshold`, :math:`PM_r`. For a
    `FactoredMatrix`, the projection has r columns and the restriction 2r. Cost of a projection: one truncated
    decomposition, O(p q min(p, q)) operations or a few dozen times O(p q r); no data pass.

    References
    ----------
    PM_s of Qiao and Maros (2025), *Sparse Polyak*, Section 5; tangent spaces: Vandereycken (2013).

    Examples
    --------
    >>> import numpy as np
    >>> Rank(1).project(np.array([[3.0, 0.0], [0.0, 2.0]])).point
    array([[3., 0.],
           [0., 0.]])
    """

    r: int
    method: str = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", checked_integer("the rank", self.r, 0))
        checked_word("method", self.method, METHODS)

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether `project` returns the nearest point, and not an approximation."""
        return self.method not in ("randomized", "subspace")

    def check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 2:
            raise InvalidInputError(f"{self} is about matrices, but the points have shape {tuple(shape)}")

    def project(self, z: Array, start: Support | None = None) -> Projection:
        if not all_finite(z):
            raise NotFiniteError("the point to project contains NaN or infinity; shorten the step or rescale the data")
        U, s, Vt = truncated_svd(z, self.r, self.method, start.right if isinstance(start, Bases) else None)
        if isinstance(z, FactoredMatrix):
            V = Vt.T.copy()
            return Projection(FactoredMatrix.product(U * s, V), Bases(U, V, s))
        return Projection((U * s) @ Vt, Bases(U, Vt.T, s))

    def relax(self, factor: float) -> Rank:
        return replace(self, r=ceil(factor * self.r))

    def hard_threshold(self, v: Array, start: Support | None = None) -> Array:
        if self.exact:
            return self.project(v, start).point
        return replace(self, method="auto").project(v).point  # exact: steps are measured by it

    def is_full(self, support: Support) -> bool:
        assert isinstance(support, Bases)
        return bool(support.left.shape[1] >= min(self.r, support.left.shape[0], support.right.shape[0]))

    def reference_project(self, z: Array) -> Projection:
        """Return the projection from the eigenvectors of z'z, slower and less precise, for tests only."""
        xp = namespace(z)
        _, vectors = xp.linalg.eigh(z.T @ z)
        leading = xp.flip(vectors, axis=1)[:, : self.r]
        point = z @ leading @ leading.T
        return Projection(point, replace(self, method="lapack").project(point).support)


def _span(a: Array, b: Array) -> Array:
    """Return an orthonormal basis of the sum of two spaces, given by orthonormal bases."""
    xp = namespace(a, b)
    both = xp.concat([a, b], axis=1)
    if both.shape[1] == 0:
        return both
    U, s, _ = xp.linalg.svd(both, full_matrices=False)
    return xp.asarray(U[:, : int(xp.count_nonzero(s > _angle(a)))], copy=True)


def _same_span(a: Array, b: Array) -> bool:
    xp = namespace(a, b)
    if a.shape != b.shape:
        return False
    gap = a @ (a.T @ b) - b
    return bool(xp.sqrt(xp.sum(gap * gap)) <= _angle(a))


def _angle(a: Array) -> float:
    """Return the angle below which two directions count as one: 100 times that of rounded unit vectors. Arbitrary."""
    return 100.0 * sqrt(float(namespace(a).finfo(a.dtype).eps))
