r"""Lower bounds of a convex objective over all supports of k coordinates or groups."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np
from scipy.linalg import lstsq

from hardthresh.arrays import as_double, double, move, namespace, to_numpy
from hardthresh.core.constraint import BlockBudget, Constraint, CoordinateBudget
from hardthresh.core.objective import UNITS, Evaluation, value_rounding
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array
from hardthresh.objectives.flat import FlatModel
from hardthresh.solvers.perspective import removable

from .kinks import model_with_kink
from .perspective import Perspective, minimise_quadratic

ROUNDS = 12
"""Limit of data passes. Of 40 fits of all losses the relaxation took at most 9."""
WIDEST = 512
"""The most coordinates of which a Hessian is computed: it takes 2 MB, and a search on it about a second."""
_PRODUCTS = 1 << 30
"""The most products of a Gram matrix of all columns for each round that is allowed: less than a second for 12."""
_BALANCED = 1e-9
"""The share of f up to which free coordinates may be off their best values, by Newton's decrement, which is taken off
the bound."""
_NEAR = 0.02
"""The share of the gap at which a bound that is below the relaxation is near enough: half a percent of half a gap."""


@serial_blas()
def lower_bound(objective: Any, constraint: Constraint, at: Evaluation, *, rounds: int = ROUNDS) -> float | None:
    r"""Return a lower bound of the objective on the constraint set, by a convex relaxation.

    For f convex, and D >= 0 such that :math:`f_0(w) = f(w) - \tfrac{1}{2} w^\top D w` is convex too, every point v with
    the gradient :math:`g = \nabla f_0(v)`, zero on free coordinates, has

    .. math:: f(w) \ge f_0(v) - g^\top v - \sum_{\text{k largest}} \frac{g_j^2}{2 D_j}
              \qquad \text{for all } w \text{ with at most k non-zeros}

    because :math:`f_0` is above its tangent at v, and the sum is the largest decrease of the tangent plus the ridge by
    k coordinates. The bound is highest if v minimises :math:`f_0 + \Omega`, with the perspective :math:`\Omega` of the
    ridge. D is the ridge of f; for least squares with more rows than columns it is larger, see `convexity`. With D = 0
    the bound is the minimum of f over all columns.

    Parameters
    ----------
    objective : LinearModel or FlatModel
        f, with a convex loss.
    constraint : Constraint
        The set: coordinates, with or without bounds, or groups of them. For overlapping groups the bound is the minimum
        of f over all columns.
    at : Evaluation
        f at a point of the set, such as the solution, where the search for v starts.
    rounds : int
        Largest number of data passes, >= 1. For a Gram matrix of all columns, which bounds without a ridge need, each
        pass allows 2^30 multiplications.

    Returns
    -------
    float or None
        The bound. None if no bound is known: without a ridge, if there are no more examples than columns, or more than
        512 columns with a loss other than the squared one; for a loss that is not convex or has a kink; and for a table
        in blocks, whose predictions are not stored.

    Notes
    -----
    Guarantee: a proof up to rounding, for any v at which the search ends. By Fenchel's inequality the bound is that of
    the dual problem at :math:`a_i = \omega_i \ell'(u_i)`, since :math:`\ell^*(\ell'(u)) = u \, \ell'(u) - \ell(u)`, so
    no formula for the conjugate of the loss is needed. Bounds of coordinates limit their decrease of the tangent. The
    rounding error of each term is subtracted.

    The search is Newton's method on a working set of columns: each round takes one data pass, which gives a bound and
    the columns to add, and the Hessian of the working set; the quadratic model with :math:`\Omega` is minimised there
    by accelerated proximal gradient steps. It ends after `rounds`, with 512 columns, or when the bound is within 2 % of
    the gap from the value of the relaxation. Data in float32 are treated as exact.

    References
    ----------
    M. Pilanci, M. J. Wainwright and L. El Ghaoui (2015), *Sparse learning via Boolean relaxations*, Mathematical
    Programming 151. R. Rockafellar (1970), *Convex Analysis*, Theorem 25.1 and Section 31.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import minimize
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 10))
    >>> f = LinearModel(X, (X[:, 0] + rng.standard_normal(200) > 0).astype(float), loss="logistic", l2=0.1)
    >>> found = minimize(f, Sparsity(1))
    >>> bound = lower_bound(f, Sparsity(1), f.evaluate(found.w))
    >>> bool(bound <= found.value), round(1 - bound / found.value, 3)
    (True, 0.0)
    """
    if objective.double() is not objective:
        objective = objective.double()
        at = objective.evaluate(as_double(at.point))
    if not objective.convex or model_with_kink(objective) is not None:
        return None
    if at.prediction is None and objective.predict(at.point) is None:
        return None
    terms = perspective(objective, constraint, at, rounds * _PRODUCTS)
    if terms is None:
        return None
    return _Search(objective, terms).run(at, rounds)


def perspective(objective: Any, constraint: Constraint, at: Evaluation, products: float) -> Perspective | None:
    """Return the perspective of what may be taken off an objective that is convex after it; None where nothing is.

    Where nothing may be taken off for some unit, or units overlap, all coordinates count as always allowed: the bound
    is then the minimum of all columns, which says something if there are more examples than columns.
    """
    structure, d = constraint.structure(tuple(objective.shape)), int(objective.shape[0])
    bounds = None
    if isinstance(structure, CoordinateBudget):
        bounds = structure.bounds
        owner = np.full(d, -1)
        counted = np.setdiff1d(np.arange(d), structure.free)
        owner[counted] = np.arange(counted.size)
    elif isinstance(structure, BlockBudget):
        numbers = to_numpy(structure.numbers)
        owner = np.where(numbers == structure.candidates, -1, numbers)
        counted = np.flatnonzero(owner >= 0)
    if isinstance(structure, CoordinateBudget | BlockBudget):
        diagonal = convexity(objective, np.flatnonzero(owner < 0), at, products)
        least = np.full(structure.candidates, inf if structure.budget else 1.0)  # of none any will do: they are 0
        np.minimum.at(least, owner[counted], diagonal[counted])
        if (least > 0).all():
            return Perspective(owner, least, min(structure.budget, structure.candidates), bounds)
    few = d < objective.traits.n_rows and d <= WIDEST and 4 * objective.traits.n_rows * d * d <= products
    return Perspective(np.full(d, -1), np.zeros(0), 0) if few else None  # for about four Hessians


def convexity(objective: Any, free: np.ndarray, at: Evaluation, products: float) -> np.ndarray:
    r"""Return D >= 0, shape (d,), such that f less :math:`w^\top D w / 2` is convex at the best free coordinates.

    It is the ridge of f. Of least squares with more rows than columns it is the ridge and :math:`\mu` times the squares
    of the columns, where free columns are projected out of them: :math:`\mu` is the smallest eigenvalue of their
    correlations. Not for more than 512 columns, or more than so many products in their Gram matrix. Branch and bound
    has its own (`Quadratic.of`): it keeps the Gram matrix, sweeps nearly dependent columns in the rows, and moves the
    diagonal at each node; here the smallest eigenvalue is all that is needed of it.
    """
    if isinstance(objective, FlatModel) and objective.traits.quadratic:  # the outputs have the same Hessian
        one = objective.of_one_output()
        rows = np.unique(free // objective.width)
        return np.repeat(convexity(one, rows, one.evaluate(one.zeros()), products), objective.width)
    ridge = np.array(np.broadcast_to(double(objective.ridge), tuple(objective.shape)))
    n, d = objective.traits.n_rows, ridge.size
    if not objective.traits.quadratic or n <= d or d > WIDEST or n * d * d > products:
        return ridge
    rest = np.setdiff1d(np.arange(d), free)
    Q = double(objective.hessian(at))
    gram = Q[np.ix_(rest, rest)] - np.diag(ridge[rest])
    kept = (np.diag(gram) > 0) | (ridge[rest] > 0)
    gram -= Q[np.ix_(rest, free)] @ np.linalg.pinv(Q[np.ix_(free, free)], hermitian=True) @ Q[np.ix_(free, rest)]
    squares = np.maximum(np.diag(gram), 0.0)
    scale = np.sqrt(squares[kept])
    if kept.any() and (scale > 0).all():
        matrix = gram[np.ix_(kept, kept)] / scale / scale[:, None]
        rounding = UNITS * d * np.finfo(float).eps * float(np.abs(matrix).sum(axis=0).max())  # of the largest one
        ridge[rest[kept]] += removable(matrix, rounding) * squares[kept]
    ridge[rest[~kept]] = 1.0  # f does not depend on these, and their slope is 0: any number will do
    return ridge


@dataclass(frozen=True, slots=True)
class _Search:
    """The search for the point of the best bound."""

    objective: Any
    terms: Perspective

    def run(self, at: Evaluation, rounds: int) -> float | None:
        """Return the best bound of some rounds, the first of which is at the given point."""
        answer, best, relaxed = at.value, -inf, inf
        for done in range(1, rounds + 1):
            at, slack = self._balanced(at)
            w, gradient = double(at.point), double(at.gradient)
            diagonal = self.terms.of_coordinates
            inner, ridge = gradient - diagonal * w, 0.5 * float(w @ (diagonal * w))
            gains = self.terms.gains(inner)
            fall, change = self.terms.largest(gains), float(inner @ np.where(diagonal > 0, w, 0.0))
            rounding = UNITS * np.finfo(float).eps * (ridge + fall + float(np.abs(inner) @ np.abs(w)))
            rounding += value_rounding(self.objective, at) + slack
            if isfinite(rounding):
                best = max(best, at.value - ridge - change - fall - rounding)
            relaxed = min(relaxed, at.value - ridge + self.terms.value(w))
            near = relaxed - best <= max(_NEAR * (answer - relaxed), 1e-9 * abs(answer))
            if near or done == rounds or not gains.size:
                break
            units = self._chosen(gains, self.terms.sizes(w) > 0)
            moved = None if units is None else self._moved(at, units, answer - best)
            if moved is None:
                break
            at = moved
        return max(float(best), float(self.objective.lower_bound)) if best > -inf else None

    def _chosen(self, gains: np.ndarray, used: np.ndarray) -> np.ndarray | None:
        """Return the units to work on: those that are not zero, and the most promising others; None of too many."""
        owner = self.terms.owner
        widths = np.bincount(owner[owner >= 0], minlength=used.size)
        order = np.lexsort((-gains, ~used))
        count = max(5 * self.terms.budget + 32, 2 * int(used.sum()))  # arbitrary: a few rounds reach the final size
        order = order[: min(count, int(np.searchsorted(np.cumsum(widths[order]), WIDEST, side="right")))]
        chosen = np.zeros(used.size, dtype=bool)
        chosen[order] = True
        return None if (used & ~chosen).any() else chosen

    def _balanced(self, at: Evaluation) -> tuple[Evaluation, float]:
        """Return f where the coordinates that are always allowed are refitted, and what is left to be gained there."""
        free = np.flatnonzero(self.terms.owner < 0)
        if not free.size:
            return at, 0.0
        places = move(free, at.point)
        part = self.objective.columns(places)
        w = double(at.point).copy()
        u = at.prediction if at.prediction is not None else self.objective.predict(at.point)
        here = part.evaluate(self._like(w[free], at.point), u)
        left = inf
        for _ in range(25):  # as many as a fit on a support may take
            slope, hessian = double(here.gradient), double(part.hessian(here))
            step = lstsq(hessian, -slope, lapack_driver="gelsy")[0]
            left = -float(slope @ step)
            if np.abs(hessian @ step + slope).max() > 1e-6 * np.abs(slope).max():
                return at, inf  # no curvature along the slope
            if not left > (np.finfo(float).eps * UNITS) * abs(here.value):
                break
            start, there = here, here
            for t in 0.5 ** np.arange(20):
                point = self._like(double(start.point) + t * step, at.point)
                moved = start.prediction + (part.predict(point) - part.predict(start.point))
                there = part.evaluate(point, moved)
                if there.value < start.value:
                    break
            else:
                break
            here = there
        if left > _BALANCED * abs(here.value):
            return at, inf
        w[free] = double(here.point)
        point = self._like(w, at.point)
        return self.objective.evaluate(point, here.prediction), max(left, 0.0)

    def _moved(self, at: Evaluation, units: np.ndarray, gap: float) -> Evaluation | None:
        """Return f nearer to the minimiser of the relaxation, by one step of Newton's method on some units."""
        owner = self.terms.owner
        coordinates = np.flatnonzero(np.append(units, True)[owner])
        places = move(coordinates, at.point)
        part = self.objective.columns(places)
        terms = self.terms.part(coordinates)
        w = double(at.point)[coordinates]
        here = part.evaluate(self._like(w, at.point), at.prediction)
        hessian = double(part.hessian(here))
        hessian[np.diag_indices(w.size)] -= terms.of_coordinates
        linear = hessian @ w - (double(here.gradient) - terms.of_coordinates * w)
        target = minimise_quadratic(hessian, linear, terms, w, 0.1 * _NEAR * gap)
        change = target - w
        along = part.predict(self._like(w + change, at.point)) - part.predict(here.point)
        before = self._relaxed(terms, w, here.value)
        for t in 0.5 ** np.arange(20):
            point = self._like(w + t * change, at.point)
            u = here.prediction + float(t) * along
            if self._relaxed(terms, w + t * change, part.value(point, u)) < before:
                whole = double(at.point).copy()
                whole[coordinates] = double(point)
                point = self._like(whole, at.point)
                moved: Evaluation = self.objective.evaluate(point, u)
                return moved
        return None

    @staticmethod
    def _relaxed(terms: Perspective, w: np.ndarray, value: float) -> float:
        """Return the objective of the relaxation, given f."""
        return value - 0.5 * float(w @ (terms.of_coordinates * w)) + terms.value(w)

    @staticmethod
    def _like(values: np.ndarray, like: Array) -> Array:
        return namespace(like).astype(move(values, like), like.dtype)
