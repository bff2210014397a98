"""Balls of sparsity-inducing norms: sets to project on, with the extreme points that Frank-Wolfe needs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Self

import numpy as np

from hardthresh.arrays import (
    FactoredMatrix,
    Grouping,
    all_finite,
    move,
    namespace,
    to_numpy,
    truncated_svd,
    where_true,
)
from hardthresh.constraints import Bases, Coordinates
from hardthresh.constraints.labels import dealt, read_labels
from hardthresh.core.checking import checked_number
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.errors import InvalidInputError, NotFiniteError
from hardthresh.core.schema import stored
from hardthresh.core.support import Support
from hardthresh.core.typing import Array

_UNITS = 64.0  # of rounding, by which the norm of a point of the ball may exceed the radius, as a sum of many numbers
_BOUNDARY = 1e-9  # of the radius; arbitrary: a point that is nearer to the boundary is on it


@stored("support/inner_bases")
@dataclass(frozen=True, slots=True, eq=False)
class InnerBases(Bases):
    r"""Bases U, V of a matrix in a ball; `restrict` is :math:`UU^\top G VV^\top`, without the tangent directions."""

    def restrict(self, v: Array) -> Array:
        U, V = self.left, self.right
        left = U @ (U.T @ (v @ V))
        return FactoredMatrix.product(left, V) if isinstance(v, FactoredMatrix) else left @ V.T

    @property
    def degrees_of_freedom(self) -> int:
        """The dimension of the matrices U M V'."""
        return int(self.left.shape[1] * self.right.shape[1])


@stored("support/atom")
@dataclass(frozen=True, slots=True)
class Atom:
    """An extreme point of a ball, in the compact form that its ball uses.

    Attributes
    ----------
    key : tuple of int or None
        Equal atoms have the same key; None for a ball whose atoms are infinitely many.
    parts : tuple of array
        The arrays that define an atom without a key.
    """

    key: tuple[int, ...] | None = None
    parts: tuple[Array, ...] = ()


class Ball(Constraint):
    r"""A ball of a norm, :math:`C = \{ w : \|w\| \le \lambda \}`, with sparse extreme points (atoms)."""

    radius: float

    @abstractmethod
    def gauge(self, w: Array) -> float:
        """Return the norm of a point."""

    @abstractmethod
    def vertex(self, gradient: Array) -> Atom:
        """Return an extreme point with the smallest inner product with a gradient (the linear minimisation oracle)."""

    @abstractmethod
    def opposite(self, atom: Atom) -> Atom:
        """Return minus an atom."""

    @abstractmethod
    def decompose(self, w: Array) -> list[tuple[Atom, float]]:
        """Return atoms and positive weights of sum ||w|| / radius whose combination is a point."""

    @abstractmethod
    def combine(self, atoms: Sequence[Atom], weights: Sequence[float], like: Array) -> Array:
        """Return a weighted sum of atoms, an array like another one."""

    @abstractmethod
    def slopes(self, gradient: Array, atoms: Sequence[Atom]) -> np.ndarray:
        """Return the inner product of a gradient with each atom."""

    @abstractmethod
    def _project(self, z: Array) -> Array:
        """Return the nearest point of the ball to a finite point outside."""

    @abstractmethod
    def _support(self, w: Array) -> Support: ...

    def project(self, z: Array, start: Support | None = None) -> Projection:
        if not all_finite(z):
            raise NotFiniteError("the point to project contains NaN or infinity; shorten the step or rescale the data")
        xp = namespace(z)
        inside = self.gauge(z) <= self.radius * (1.0 + _UNITS * float(xp.finfo(z.dtype).eps))
        point = xp.asarray(z, copy=True) if inside else self._project(z)
        return Projection(point, self._support(point))

    def relax(self, factor: float) -> Self:
        return replace(self, radius=factor * self.radius)  # type: ignore[type-var]

    def is_full(self, support: Support) -> bool:
        return False  # the norm of a point limits where it can go, not its support

    def hard_threshold(self, v: Array, start: Support | None = None) -> Array:
        return namespace(v).asarray(v, copy=True)  # every direction is allowed

    def free_part(self, w: Array, gradient: Array, support: Support) -> Support:
        xp = namespace(w)
        outwards = self.gauge(w) >= self.radius * (1.0 - _BOUNDARY) and float(xp.sum(w * gradient)) < 0.0
        return self._support(xp.zeros_like(w)) if outwards else support

    def unbounded(self) -> Self:
        """Return the ball of infinite radius, which has every point and the supports of this ball."""
        return replace(self, radius=inf)  # type: ignore[type-var]


def _check_radius(radius: float) -> None:
    checked_number("the radius", radius, above=0.0, finite=False)


def _shrunken(norms: np.ndarray, radius: float) -> np.ndarray:
    """Return the vector nearest to non-negative norms whose entries are non-negative and sum to at most `radius`."""
    shift = -int(np.frexp(float(norms.max()))[1])  # a power of two, so that no sum overflows and nothing is rounded
    scaled, bound = np.ldexp(norms, shift), float(np.ldexp(radius, shift))
    if float(scaled.sum()) <= bound:
        return norms
    descending = np.sort(scaled)[::-1]
    excess = (np.cumsum(descending) - bound) / np.arange(1, descending.size + 1)
    positive = np.flatnonzero(descending > excess)
    if positive.size == 0:  # the radius is rounding next to the largest norm
        return np.where(np.arange(norms.size) == np.argmax(norms), radius, 0.0)
    shrunken: np.ndarray = np.ldexp(np.maximum(scaled - excess[positive[-1]], 0.0), -shift)
    return shrunken


def _reference_shrunken(norms: np.ndarray, radius: float) -> np.ndarray:
    """Return the same as `_shrunken`, by bisection on what is subtracted: slow, for the tests."""
    low, high = 0.0, float(norms.max(initial=0.0))
    if norms.sum() <= radius:
        return norms
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.maximum(norms - middle, 0.0).sum() > radius else (low, middle)
    shrunken: np.ndarray = np.maximum(norms - high, 0.0)
    return shrunken


def _like(x: np.ndarray, like: Array) -> Array:
    return namespace(like).astype(move(x, like), like.dtype, copy=False)


@stored("constraint/l1_ball")
@dataclass(frozen=True, slots=True)
class L1Ball(Ball):
    r"""Vectors of bounded l1 norm, :math:`C = \{ w \in R^d : \sum_j |w_j| \le \lambda \}`.

    Parameters
    ----------
    radius : float
        :math:`\lambda > 0`.

    Raises
    ------
    InvalidInputError
        For a radius that is not positive; by `check`, for points that are not vectors.
    NotFiniteError
        By `project`, for NaN or infinity.

    Notes
    -----
    The projection shrinks all entries by the same amount, and is exact (Duchi et al. 2008); O(d log d), no data pass.
    The atoms are :math:`\pm\lambda e_j`; the lowest index wins a tie. The support holds the non-zeros.

    Examples
    --------
    >>> import numpy as np
    >>> L1Ball(3.0).project(np.array([3.0, -1.0, 0.5])).point
    array([ 2.5, -0.5,  0. ])
    """

    radius: float

    def __post_init__(self) -> None:
        _check_radius(self.radius)

    def check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 1:
            raise InvalidInputError(f"{self} is about vectors, but the points have shape {tuple(shape)}")

    def gauge(self, w: Array) -> float:
        xp = namespace(w)
        return float(xp.sum(xp.abs(w)))

    def vertex(self, gradient: Array) -> Atom:
        xp = namespace(gradient)
        j = int(xp.argmax(xp.abs(gradient)))
        return Atom((j, -1 if float(gradient[j]) > 0.0 else 1))

    def opposite(self, atom: Atom) -> Atom:
        j, sign = _coordinate_and_sign(atom)
        return Atom((j, -sign))

    def decompose(self, w: Array) -> list[tuple[Atom, float]]:
        values = to_numpy(w)
        chosen = np.flatnonzero(values)
        return [(Atom((int(j), 1 if values[j] > 0 else -1)), abs(float(values[j])) / self.radius) for j in chosen]

    def combine(self, atoms: Sequence[Atom], weights: Sequence[float], like: Array) -> Array:
        total = np.zeros(like.shape[0])
        for atom, weight in zip(atoms, weights, strict=True):
            j, sign = _coordinate_and_sign(atom)
            total[j] += sign * self.radius * weight
        return _like(total, like)

    def slopes(self, gradient: Array, atoms: Sequence[Atom]) -> np.ndarray:
        keys = np.array([_coordinate_and_sign(atom) for atom in atoms])
        slopes: np.ndarray = self.radius * keys[:, 1] * to_numpy(gradient)[keys[:, 0]]
        return slopes

    def reference_project(self, z: Array) -> Projection:
        """Return the projection by bisection, for tests only."""
        z = np.asarray(z)
        point = np.sign(z) * _reference_shrunken(np.abs(z), self.radius)
        return Projection(point, Coordinates(np.flatnonzero(point)))

    def _project(self, z: Array) -> Array:
        values = np.asarray(to_numpy(z), dtype=float)
        return _like(np.sign(values) * _shrunken(np.abs(values), self.radius), z)

    def _support(self, w: Array) -> Coordinates:
        return Coordinates(where_true(w != 0))


@stored("constraint/group_ball")
@dataclass(frozen=True, slots=True)
class GroupBall(Ball):
    r"""Vectors of bounded group norm, :math:`C = \{ w \in R^d : \sum_g \|w_g\|_2 \le \lambda \}`.

    Parameters
    ----------
    labels : sequence of hashable, length d
        The group of each coordinate, by any hashable label, in any order; as for `GroupSparsity`.
    radius : float
        :math:`\lambda > 0`.

    Raises
    ------
    InvalidInputError
        For a radius that is not positive, or labels that are missing (None, NaN) or cannot be hashed; by `check`, where
        there is not one label per coordinate.
    NotFiniteError
        By `project`, for NaN or infinity.

    Notes
    -----
    The projection shrinks the norms of all groups by the same amount, and is exact. The atoms are all the vectors of
    x
    Examples
    --------
    >>> import numpy as np
    >>> GroupBall(("a", "b", "a"), 4.0).project(np.array([3.0, 1.0, 4.0])).point
    array([2.4, 0. , 3.2])
    """

    labels: Sequence[Hashable]
    radius: float
    _grouping: Grouping = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_radius(self.radius)
        labels, _ = read_labels(self.labels, ())
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "_grouping", dealt(labels, ())[1])

    def check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 1 or shape[0] != len(self.labels):
            raise InvalidInputError(f"{len(self.labels)} labels do not fit points of shape {tuple(shape)}")

    def gauge(self, w: Array) -> float:
        return float(self._norms(w).sum())

    def vertex(self, gradient: Array) -> Atom:
        norms = self._norms(gradient)
        return self._atom(np.asarray(to_numpy(gradient), dtype=float), int(np.argmax(norms)), -1.0)

    def opposite(self, atom: Atom) -> Atom:
        indices, values = atom.parts
        return Atom(None, (indices, -values))

    def decompose(self, w: Array) -> list[tuple[Atom, float]]:
        values, norms = np.asarray(to_numpy(w), dtype=float), self._norms(w)
        return [(self._atom(values, int(g), 1.0), float(norms[g]) / self.radius) for g in np.flatnonzero(norms)]

    def combine(self, atoms: Sequence[Atom], weights: Sequence[float], like: Array) -> Array:
        total = np.zeros(like.shape[0])
        for atom, weight in zip(atoms, weights, strict=True):
            indices, values = atom.parts
            total[indices] += weight * values
        return _like(total, like)

    def slopes(self, gradient: Array, atoms: Sequence[Atom]) -> np.ndarray:
        values = np.asarray(to_numpy(gradient), dtype=float)
        return np.array([values[indices] @ entries for indices, entries in (atom.parts for atom in atoms)])

    def reference_project(self, z: Array) -> Projection:
        """Return the projection by bisection, for tests only."""
        z = np.asarray(z, dtype=float)
        point = np.zeros_like(z)
        groups = [self._grouping.numbers == g for g in range(self._grouping.count)]
        norms = np.array([np.linalg.norm(z[group]) for group in groups])
        for group, norm, kept in zip(groups, norms, _reference_shrunken(norms, self.radius), strict=True):
            point[group] = z[group] * (kept / norm) if norm > 0 else 0.0
        return Projection(point, self._support(point))

    def _project(self, z: Array) -> Array:
        norms = self._norms(z)
        share = _shrunken(norms, self.radius) / np.where(norms > 0, norms, 1.0)
        return z * _like(share[self._grouping.numbers], z)

    def _support(self, w: Array) -> Coordinates:
        chosen = np.flatnonzero((self._norms(w) > 0)[self._grouping.numbers])
        return Coordinates(move(chosen, w))

    def _norms(self, v: Array) -> np.ndarray:
        values = np.asarray(to_numpy(v), dtype=float)
        largest = float(np.abs(values).max(initial=0.0)) or 1.0  # no square overflows or vanishes
        norms: np.ndarray = largest * np.sqrt(self._grouping.sums((values / largest) ** 2))
        return norms

    def _atom(self, values: np.ndarray, group: int, sign: float) -> Atom:
        """Return the atom along the values of a group, or against them; along the first axis if these are zero."""
        indices = np.flatnonzero(self._grouping.numbers == group)
        length = float(np.linalg.norm(values[indices]))
        entries = values[indices] / length if length > 0.0 else np.eye(indices.size)[0]
        return Atom(None, (indices, sign * self.radius * entries))


@stored("constraint/nuclear_ball")
@dataclass(frozen=True, slots=True)
class NuclearBall(Ball):
    r"""Matrices of bounded nuclear norm, :math:`C = \{ W \in R^{p \times q} : \sum_i \sigma_i(W) \le \lambda \}`.

    Parameters
    ----------
    radius : float
        :math:`\lambda > 0`.

    Raises
    ------
    InvalidInputError
        For a radius that is not positive; by `check`, for points that are not matrices.
    NotFiniteError
        By `project`, for NaN or infinity.

    Notes
    -----
    The projection shrinks all singular values by the same amount, and is exact: one singular value decomposition.
    The atoms are :math:`\lambda u v^\top` with unit vectors; the oracle needs the leading singular vectors only.
    The support is a pair of `InnerBases`. No data pass.

    Examples
    --------
    >>> import numpy as np
    >>> NuclearBall(2.0).project(np.diag([3.0, 1.0])).point
    array([[2., 0.],
           [0., 0.]])
    """

    radius: float

    def __post_init__(self) -> None:
        _check_radius(self.radius)

    def check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 2:
            raise InvalidInputError(f"{self} is about matrices, but the points have shape {tuple(shape)}")

    def project(self, z: Array, start: Support | None = None) -> Projection:
        if not isinstance(z, FactoredMatrix):
            return super(NuclearBall, self).project(z)
        if not all_finite(z):
            raise NotFiniteError("the point to project contains NaN or infinity; shorten the step or rescale the data")
        U, s, Vt = truncated_svd(z, min(z.shape), "lapack")
        inside = float(s.sum()) <= self.radius * (1.0 + _UNITS * float(np.finfo(z.dtype).eps))
        kept = s if inside else _like(_shrunken(np.asarray(s, dtype=float), self.radius), s)
        chosen = kept > 0
        bases = InnerBases(U[:, chosen], Vt[chosen].T.copy(), kept[chosen])
        return Projection(FactoredMatrix.product(bases.left * kept[chosen], bases.right), bases)

    def gauge(self, w: Array) -> float:
        s = truncated_svd(w, min(w.shape), "lapack")[1]
        return float(namespace(s).sum(s))

    def vertex(self, gradient: Array) -> Atom:
        if not all_finite(gradient):
            raise NotFiniteError("the gradient contains NaN or infinity; rescale the data or take a smaller radius")
        U, _, Vt = truncated_svd(gradient, 1)
        if U.shape[1] == 0:  # every atom is an answer for a gradient of zero
            u, v = (_like(np.eye(1, side)[0], U) for side in gradient.shape)
            return Atom(None, (u, v))
        return Atom(None, (-U[:, 0], Vt[0, :]))

    def opposite(self, atom: Atom) -> Atom:
        u, v = atom.parts
        return Atom(None, (-u, v))

    def decompose(self, w: Array) -> list[tuple[Atom, float]]:
        U, s, Vt = truncated_svd(w, min(w.shape), "lapack")
        return [(Atom(None, (U[:, i], Vt[i, :])), float(s[i]) / self.radius) for i in range(s.shape[0])]

    def combine(self, atoms: Sequence[Atom], weights: Sequence[float], like: Array) -> Array:
        xp = namespace(atoms[0].parts[0])
        left = xp.stack([atom.parts[0] * (self.radius * w) for atom, w in zip(atoms, weights, strict=True)], axis=1)
        right = xp.stack([atom.parts[1] for atom in atoms], axis=1)
        return FactoredMatrix.product(left, right) if isinstance(like, FactoredMatrix) else left @ right.T

    def slopes(self, gradient: Array, atoms: Sequence[Atom]) -> np.ndarray:
        xp = namespace(atoms[0].parts[0])
        left, right = (xp.stack([atom.parts[side] for atom in atoms], axis=1) for side in (0, 1))
        slopes: np.ndarray = self.radius * np.asarray(to_numpy(xp.sum(left * (gradient @ right), axis=0)), dtype=float)
        return slopes

    def reference_project(self, z: Array) -> Projection:
        """Return the projection by bisection on the eigenvalues of z'z: slow and less precise, for tests only."""
        z = np.asarray(z, dtype=float)
        squares, vectors = np.linalg.eigh(z.T @ z)
        values = np.sqrt(np.maximum(squares, 0.0))
        share = _reference_shrunken(values, self.radius) / np.where(values > 0, values, 1.0)
        point = (z @ (vectors * share)) @ vectors.T
        return Projection(point, self._support(point))

    def _project(self, z: Array) -> Array:
        U, s, Vt = truncated_svd(z, min(z.shape), "lapack")
        kept = _like(_shrunken(np.asarray(to_numpy(s), dtype=float), self.radius), s)
        return (U * kept) @ Vt

    def _support(self, w: Array) -> InnerBases:
        U, _, Vt = truncated_svd(w, min(w.shape), "lapack")
        return InnerBases(U, Vt.T)


def _coordinate_and_sign(atom: Atom) -> tuple[int, int]:
    assert atom.key is not None
    j, sign = atom.key
    return j, sign
