r"""The perspective of a ridge: the convex function that replaces "at most k non-zeros, with this ridge"."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, eigvalsh

from hardthresh.solvers.perspective import largest, penalty

_STEPS = 1000
"""Limit of the steps on one quadratic model. Their number grows as the root of the condition number."""


@dataclass(frozen=True, slots=True, eq=False)
class Perspective:
    r"""The convex envelope of a ridge on vectors with at most k units that are not zero.

    .. math:: \Omega(w) = \min_z \Bigl\{ \sum_u \frac{D_u \|w_u\|^2}{2 z_u} : 0 \le z \le 1, \; \sum_u z_u \le k
              \Bigr\}

    Attributes
    ----------
    owner : array of int, shape (d,)
        The unit of each coordinate, a feature or a group of them; -1 for one that is always allowed, and has no ridge
        here.
    diagonal : array, shape (m,)
        D, > 0, for each unit.
    budget : int
        k >= 0.
    bounds : array, shape (2, d), or None
        The bounds of the coordinates, infinite where there is none.

    Notes
    -----
    :math:`\Omega(w)` is :math:`\sum_u D_u \|w_u\|^2 / 2` at vectors with k units or fewer, and smaller at others. For
    D = 1 it is half the square of the k-support norm (A. Argyriou, R. Foygel and N. Srebro 2012, *Sparse prediction
    with the k-support norm*). Cost of each method: a sort of the units.
    """

    owner: np.ndarray
    diagonal: np.ndarray
    budget: int
    bounds: np.ndarray | None = None

    @property
    def of_coordinates(self) -> np.ndarray:
        """The entry of D of each coordinate, 0 for one that is always allowed."""
        values: np.ndarray = np.append(self.diagonal, 0.0)[self.owner]
        return values

    def gains(self, slope: np.ndarray) -> np.ndarray:
        r"""Return what each unit can lower a linear function with its ridge by, shape (m,).

        .. math:: h_u = \max_{w_u} \; -s_u^\top w_u - \tfrac{1}{2} D_u \|w_u\|^2

        within the bounds, which without any is :math:`\|s_u\|^2 / (2 D_u)`. The sum of the k largest is the convex
        conjugate of the perspective at -s.
        """
        chosen = self.owner >= 0
        s, d = slope[chosen], self.diagonal[self.owner[chosen]]
        w = -s / d
        if self.bounds is not None:
            w = np.clip(w, *self.bounds[:, chosen])
        return np.bincount(self.owner[chosen], -s * w - 0.5 * d * w * w, self.diagonal.size)

    def largest(self, gains: np.ndarray) -> float:
        """Return the sum of the k largest gains."""
        return float(gains[largest(gains, self.budget)].sum())

    def value(self, w: np.ndarray) -> float:
        """Return the perspective at a point."""
        size = self.sizes(w) * np.sqrt(self.diagonal)
        return penalty(size[size > 0], self.budget)[0]

    def prox(self, x: np.ndarray, L: float) -> np.ndarray:
        r"""Return the minimiser of :math:`\tfrac{L}{2} \|w - x\|^2 + \Omega(w)`.

        It is :math:`w_u = L z_u x_u / (L z_u + D_u)` with
        :math:`z_u = \mathrm{clip}(\tau \|x_u\| \sqrt{D_u} - D_u / L, 0, 1)`. Bounds that are signs are kept exactly,
        others by clipping, so that it is then only near the minimiser.
        """
        if self.bounds is not None:
            x = np.clip(x, *self.bounds)
        z = shares(self.sizes(x) * np.sqrt(self.diagonal), self.diagonal / L, self.budget)
        factor = L * z / (L * z + self.diagonal)
        w: np.ndarray = np.append(factor, 1.0)[self.owner] * x
        return w

    def sizes(self, w: np.ndarray) -> np.ndarray:
        """Return the norm of each unit of a point."""
        chosen = self.owner >= 0
        return np.sqrt(np.bincount(self.owner[chosen], w[chosen] ** 2, self.diagonal.size))

    def part(self, coordinates: np.ndarray) -> Perspective:
        """Return that of points of some coordinates: of whole units."""
        owner = self.owner[coordinates]
        units, owner = np.unique(owner, return_inverse=True)
        owner = owner - np.count_nonzero(units < 0)
        bounds = None if self.bounds is None else self.bounds[:, coordinates]
        return replace(self, owner=owner, diagonal=self.diagonal[units[units >= 0]], bounds=bounds)


def shares(slope: np.ndarray, offset: np.ndarray, total: float) -> np.ndarray:
    r"""Return :math:`z_u = \mathrm{clip}(\tau s_u - o_u, 0, 1)` with the sum `total`, or 1 for all that have a slope.

    Parameters
    ----------
    slope, offset : array, shape (m,)
        s and o, >= 0.
    total : float
        The sum of z; if no more units have a positive slope, z is 1 for these.
    """
    rising = np.flatnonzero(slope > 0)
    z = np.zeros(slope.size)
    z[rising] = 1.0
    if rising.size <= total:
        return z
    s, o = slope[rising], offset[rising]
    ends = np.concatenate([o / s, (1.0 + o) / s])
    order = np.argsort(ends, kind="stable")
    at, change = ends[order], np.concatenate([s, -s])[order]
    sums = np.concatenate([[0.0], np.cumsum(np.cumsum(change)[:-1] * np.diff(at))])
    after = min(max(int(np.searchsorted(sums, total)), 1), at.size - 1)
    rate = (sums[after] - sums[after - 1]) / max(at[after] - at[after - 1], np.finfo(float).tiny)
    tau = at[after - 1] + ((total - sums[after - 1]) / rate if rate > 0 else 0.0)
    z[rising] = np.clip(tau * s - o, 0.0, 1.0)
    return z


def minimise_quadratic(
    hessian: np.ndarray, linear: np.ndarray, terms: Perspective, w: np.ndarray, tol: float
) -> np.ndarray:
    r"""Return a point at which :math:`\tfrac{1}{2} w^\top H w - b^\top w + \Omega(w)` is within `tol` of its minimum.

    Accelerated proximal gradient steps with restarts (A. Beck and M. Teboulle 2009; B. O'Donoghue and E. Candes 2015);
    coordinates that are always allowed are eliminated. They take units of several coordinates and bounds, which the
    Newton steps of branch and bound on single columns do not (`hardthresh.solvers.branch_and_bound.relaxation`).

    Parameters
    ----------
    hessian, linear : array, shape (d, d) and (d,)
        H, positive semidefinite, and b.
    terms : Perspective
        The terms of Omega.
    w : array, shape (d,)
        Where to start.
    tol : float
        The duality gap to reach; after 1000 steps the last point is returned.
    """
    free, rest = np.flatnonzero(terms.owner < 0), np.flatnonzero(terms.owner >= 0)
    inverse = np.linalg.pinv(hessian[np.ix_(free, free)], hermitian=True)
    cross = hessian[np.ix_(rest, free)]
    H = hessian[np.ix_(rest, rest)] - cross @ inverse @ cross.T
    b = linear[rest] - cross @ (inverse @ linear[free])
    inner = terms.part(rest)
    try:
        L = max(float(eigvalsh(H, subset_by_index=[rest.size - 1, rest.size - 1])[0]), np.finfo(float).tiny)
    except LinAlgError:
        L = float(np.linalg.norm(H))
    x = y = w[rest]
    Hx = Hy = H @ x
    t = 1.0
    for step in range(_STEPS):
        if step % 10 == 0:
            quadratic = 0.5 * float(x @ Hx)
            primal = quadratic - float(b @ x) + inner.value(x)
            dual = -quadratic - inner.largest(inner.gains(Hx - b))
            if primal - dual <= tol:
                break
        new = inner.prox(y - (Hy - b) / L, L)
        Hnew = H @ new
        if float((y - new) @ (new - x)) > 0:  # the momentum points uphill
            t = 1.0
        after = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        momentum = (t - 1.0) / after
        y, Hy = new + momentum * (new - x), Hnew + momentum * (Hnew - Hx)
        x, Hx, t = new, Hnew, after
    found = w.copy()
    found[rest] = x
    found[free] = inverse @ (linear[free] - cross.T @ x)
    return found
