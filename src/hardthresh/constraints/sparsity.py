"""At most k non-zeros, with free coordinates and bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, inf
from typing import Any

import numpy as np
from array_api_compat import device

from hardthresh.arrays import gather, leading, mask_of, namespace, scatter, to_numpy, top_k, where_true
from hardthresh.core.checking import checked_integer
from hardthresh.core.constraint import Constraint, CoordinateBudget, Projection
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.lazy import scalar
from hardthresh.core.registry import register
from hardthresh.core.support import Support
from hardthresh.core.typing import Array, is_numpy

from .labels import free_coordinates
from .supports import Coordinates


def _examples() -> Iterable[Sparsity]:
    """Return constraints for vectors of 12 coordinates."""
    yield from (Sparsity(k) for k in (0, 1, 3, 12, 20))
    yield Sparsity(3, free=(0, 11))
    yield Sparsity(4, lower=0.0)
    yield Sparsity(3, free=(5,), lower=-0.5, upper=1.0)


@register("constraint", "sparsity", _examples)
@dataclass(frozen=True, slots=True, eq=False)
class Sparsity(Constraint):
    r"""Vectors with at most k non-zeros.

    .. math:: C = \{ w \in R^d : |\{ j \notin F : w_j \ne 0 \}| \le k, \; l \le w \le u \}

    Parameters
    ----------
    k : int
        Largest number of non-zeros, k >= 0; k >= d allows every coordinate.
    free : sequence of int
        Coordinates F that are always allowed and not counted: an intercept, covariates to adjust for.
    lower, upper : float or array of shape (d,), optional
        Bounds of the entries, lower <= 0 <= upper, which also hold for free coordinates. For example, ``lower=0.0``
        requires non-negative coefficients; use -inf or inf in an array for an unbounded coordinate.

    Raises
    ------
    InvalidInputError
        For a negative or non-integer k, bounds that exclude zero, or (by `check`) coordinates or bounds that do not
        match the shape of the vectors.

    Notes
    -----
    The projection is exact: without bounds it keeps the k entries of largest magnitude; with bounds it keeps the k
    coordinates with the largest decrease of the squared distance, z_j^2 - (z_j - clip(z_j))^2, and clips them. The
    lowest index wins a tie. The support is the `Coordinates` that are free or not zero, increasing. Cost: O(d), no data
    pass.

    References
    ----------
    HT_s of Qiao and Maros (2025), *Sparse Polyak* (equation 2, ties "lexicographic").

    Examples
    --------
    >>> import numpy as np
    >>> Sparsity(2).project(np.array([3.0, -1.0, 1.0, -3.0])).point
    array([ 3.,  0.,  0., -3.])
    >>> Sparsity(2, lower=0.0).project(np.array([3.0, -1.0, 1.0, -3.0])).support
    Coordinates([0, 2])
    """

    k: int
    free: tuple[int, ...] = ()
    lower: Any = None
    upper: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checked_integer("k", self.k, 0))
        object.__setattr__(self, "free", free_coordinates(self.free))
        for name, bound, sign in (("lower", self.lower, -1.0), ("upper", self.upper, 1.0)):
            if bound is not None and not bool(np.all(sign * _bound_to_numpy(bound) >= 0)):
                raise InvalidInputError(
                    f"{name} must be {'<=' if sign < 0 else '>='} 0 everywhere, got {format_value(bound)}"
                )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sparsity):
            return NotImplemented
        mine, others = (self.lower, self.upper), (other.lower, other.upper)
        same_bounds = all(
            (a is None) == (b is None) and (a is None or np.array_equal(_bound_to_numpy(a), _bound_to_numpy(b)))
            for a, b in zip(mine, others, strict=True)
        )
        return (self.k, self.free) == (other.k, other.free) and same_bounds

    def __hash__(self) -> int:
        return hash((self.k, self.free, self.lower is None, self.upper is None))

    def check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 1:
            raise InvalidInputError(f"Sparsity constrains vectors, the objective's points have shape {shape}")
        if self.free and self.free[-1] >= shape[0]:
            raise InvalidInputError(
                f"free coordinate {self.free[-1]} does not exist: vectors have {shape[0]} coordinates"
            )
        for name, bound in (("lower", self.lower), ("upper", self.upper)):
            bounds = () if bound is None else tuple(bound.shape) if hasattr(bound, "shape") else np.shape(bound)
            if bounds not in ((), tuple(shape)):
                raise InvalidInputError(f"{name} has shape {bounds}; a number or shape {tuple(shape)} is needed")

    def project(self, z: Array, start: Support | None = None) -> Projection:
        xp = namespace(z)
        inside = self._clip(z)
        counted = inside != 0
        if self.free:
            counted = counted & ~self._is_free(z)
        # half of z^2 - (z - inside)^2, without cancellation; inside is z where there are no bounds
        gain = xp.abs(z) if inside is z else inside * (z - 0.5 * inside)
        if not is_numpy(z):  # as below, but for how the coordinates are listed: by Coordinates, when they are needed
            plain = inside is z and not self.free  # then nothing is gained where z is zero, and nowhere else
            ranked = gain if plain else xp.where(counted, gain, xp.full_like(gain, -inf))
            chosen = counted & leading(ranked, min(self.k, z.shape[0]))
            chosen = chosen | self._is_free(z) if self.free else chosen
            support = Coordinates.of_mask(chosen, scalar(xp.any(xp.isnan(z))), start)
            return Projection(xp.where(chosen, inside, xp.zeros_like(inside)), support)
        chosen = where_true(counted)
        chosen = gather(chosen, top_k(gather(gain, chosen), self.k))
        if self.free:
            chosen = xp.sort(xp.concat([chosen, self._free(z)]))
        return Projection(scatter(gather(inside, chosen), chosen, z.shape[0]), Coordinates(chosen))

    def project_onto(self, z: Array, support: Support, start: Support | None = None) -> Projection:
        assert isinstance(support, Coordinates)
        indices = support.indices
        counted = indices.shape[0] - len(self.free)
        if counted > self.k or self.lower is not None or self.upper is not None:
            return self.project(z, start)
        xp = namespace(z)
        if not is_numpy(z):
            kept = support.mask(z.shape[0]) & (z != 0)
            kept = kept | self._is_free(z) if self.free else kept
            at_kept = Coordinates.of_mask(kept, scalar(xp.any(xp.isnan(z))), support)
            return Projection(xp.where(kept, z, xp.zeros_like(z)), at_kept)
        values = gather(z, indices)
        if bool(xp.any(xp.isnan(values))):
            return self.project(z, start)  # which says what is wrong
        kept = values != 0
        if self.free:
            kept = kept | gather(mask_of(self._free(z), z.shape[0]), indices)
        return Projection(scatter(values, indices, z.shape[0]), Coordinates(indices[kept]))

    def relax(self, factor: float) -> Sparsity:
        return replace(self, k=ceil(factor * self.k))

    def is_full(self, support: Support) -> bool:
        assert isinstance(support, Coordinates)
        return len(support) - len(self.free) >= self.k

    def at_most(self, shape: tuple[int, ...]) -> int | None:
        return min(self.k + len(self.free), shape[0])

    def structure(self, shape: tuple[int, ...]) -> CoordinateBudget:
        candidates = shape[0] - len(self.free)
        if self.lower is None and self.upper is None:
            return CoordinateBudget(candidates, self.k, self.free)
        bounds = np.empty((2, *shape))
        bounds[0] = -np.inf if self.lower is None else _bound_to_numpy(self.lower)
        bounds[1] = np.inf if self.upper is None else _bound_to_numpy(self.upper)
        return CoordinateBudget(candidates, self.k, self.free, bounds)

    def hard_threshold(self, v: Array, start: Support | None = None) -> Array:
        size = namespace(v).abs(v)
        if self.free:
            size = namespace(v).where(self._is_free(v), inf, size)
        if not is_numpy(v):
            kept = leading(size, min(self.k + len(self.free), v.shape[0]))
            return namespace(v).where(kept, v, namespace(v).zeros_like(v))
        chosen = top_k(size, self.k + len(self.free))
        return scatter(gather(v, chosen), chosen, v.shape[0])

    def free_part(self, w: Array, gradient: Array, support: Support) -> Support:
        if self.lower is None and self.upper is None:
            return support
        assert isinstance(support, Coordinates)
        xp = namespace(w)
        held = xp.zeros_like(w, dtype=xp.bool)
        if self.lower is not None:
            held = held | ((w <= self._bound(self.lower, w)) & (gradient > 0))
        if self.upper is not None:
            held = held | ((w >= self._bound(self.upper, w)) & (gradient < 0))
        return Coordinates(support.indices[gather(~held, support.indices)])

    def reference_project(self, z: Array) -> Projection:
        """Return the projection by brute force over all supports, for tests only."""
        z = np.asarray(z)
        low = -np.inf if self.lower is None else self.lower
        high = np.inf if self.upper is None else self.upper
        counted = [j for j in range(z.size) if j not in self.free]
        best, best_distance = np.zeros_like(z), np.inf
        for chosen in combinations(counted, min(self.k, len(counted))):
            point = np.zeros_like(z)
            allowed = [*self.free, *chosen]
            point[allowed] = np.clip(z, low, high)[allowed]
            distance = float(np.sum((z - point) ** 2))
            if distance < best_distance:
                best, best_distance = point, distance
        return Projection(best, Coordinates(np.union1d(np.flatnonzero(best), np.asarray(self.free, dtype=np.int64))))

    def _is_free(self, z: Array) -> Array:
        """Return which coordinates are free; not those that are NaN, so that `top_k` finds them."""
        return mask_of(self._free(z), z.shape[0]) & (z == z)

    def _free(self, like: Array) -> Array:
        xp = namespace(like)
        return xp.asarray(self.free, dtype=xp.int64, device=device(like))

    def _bound(self, bound: Any, like: Array) -> Array:
        return namespace(like).asarray(bound, dtype=like.dtype, device=device(like))

    def _clip(self, z: Array) -> Array:
        xp = namespace(z)
        if self.lower is not None:
            z = xp.maximum(z, self._bound(self.lower, z))
        if self.upper is not None:
            z = xp.minimum(z, self._bound(self.upper, z))
        return z


def _bound_to_numpy(bound: Any) -> np.ndarray:
    return to_numpy(bound) if hasattr(bound, "shape") and not np.isscalar(bound) else np.asarray(bound)
