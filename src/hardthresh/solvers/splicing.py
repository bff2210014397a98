"""Exchanges of several units at once by gradients and values of f, where no quadratic model is to be relied on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from hardthresh.arrays import move, namespace, to_numpy
from hardthresh.core.constraint import Constraint, CoordinateBudget, Projection
from hardthresh.core.errors import NotFiniteError
from hardthresh.core.objective import Evaluation, LinearObjective, Objective
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.steps.line_search import Candidate

from .quasi_newton import descend_by_gradients
from .subspace import refine

_NEWTON_STEPS = 4
"""Number of Newton steps before those of quasi-Newton: a smooth convex f needs no more from a nearby support."""
_ENTERING = 5
"""How many units are tried in the place of a single one. Arbitrary."""


@dataclass(frozen=True, eq=False)
class _Units:
    """The units of a set: single coordinates or blocks of them.

    Attributes
    ----------
    owner : array of int, shape (size,)
        The unit of each coordinate of a flat point, -1 for those that are always allowed.
    signs : array of int, shape (size,)
        The only sign that each coordinate may have; 0 where it may have both.
    count, budget : int
        How many units there are, and may be chosen.
    """

    owner: np.ndarray
    signs: np.ndarray
    count: int
    budget: int

    @classmethod
    def of(cls, constraint: Constraint, shape: tuple[int, ...]) -> _Units | None:
        """Return the units of a set; None for sets without any, or where they overlap."""
        structure, size = constraint.structure(shape), prod(shape)
        owner, signs = np.full(size, -1), np.zeros(size, dtype=int)
        if isinstance(structure, CoordinateBudget):
            counted = np.setdiff1d(np.arange(size), np.asarray(structure.free, dtype=int))
            owner[counted] = np.arange(counted.size)
            signs = signs if structure.signs is None else to_numpy(structure.signs)
            return cls(owner, signs, counted.size, structure.budget)
        blocks = None if structure is None else structure.blocks()
        if structure is None or blocks is None or np.unique(blocks.columns).size < blocks.columns.size:
            return None
        owner[blocks.columns] = blocks.owner
        return cls(owner, signs, blocks.count, structure.budget)

    def chosen(self, point: np.ndarray) -> np.ndarray:
        """Return the units that are not zero at a flat point."""
        used = np.unique(self.owner[point != 0])
        return used[used >= 0]

    def scores(self, slope: np.ndarray, curvature: np.ndarray | float) -> np.ndarray:
        """Return for each unit the sum of squared gradients, divided by a curvature, that its signs allow."""
        score = np.where((self.signs == 0) | (slope * self.signs < 0), slope * slope / curvature, 0.0)
        inside = self.owner >= 0
        return np.bincount(self.owner[inside], weights=score[inside], minlength=self.count)

    def support(self, constraint: Constraint, units: np.ndarray, like: Array) -> Support:
        """Return the support of some units."""
        there = np.isin(self.owner, units) | (self.owner < 0)
        values = np.where(there, np.where(self.signs < 0, -1.0, 1.0), 0.0)
        xp = namespace(like)
        return constraint.project(xp.astype(xp.reshape(move(values, like), like.shape), like.dtype)).support


def splice(
    objective: Objective, constraint: Constraint, at: Evaluation, negligible: float, singles: int = 3
) -> Candidate | None:
    r"""Return a lower point where several units have been exchanged for others; None if none is found.

    The m units that raise f least when they are set to zero leave, and the m others with the largest scores
    :math:`\sum_j g_j^2`, or :math:`\sum_j g_j^2 / H_{jj}`, enter; where fewer are chosen than may be, some enter and
    none leaves. Every support is refitted by Newton steps, and then by the method of quasi-Newton, until m = k/2, k/4,
    ..., 1 leads to a lower value. Last, each of a few units is exchanged for the five with the best scores without it.

    Parameters
    ----------
    objective, constraint, at :
        f, a set whose structure is of coordinates or blocks, and f at a minimiser on its support.
    negligible : float
        The decrease of f that counts as none.
    singles : int
        How many units are exchanged one by one, those that cost least. Arbitrary.

    Notes
    -----
    Cost: a value for each chosen unit, up to 2 log2(k) refits, and six for each single one. Heuristic; monotone.

    References
    ----------
    Zhu, Wen, Zhu, Zhang and Wang (2020), A polynomial algorithm for best-subset selection problem, *PNAS* 117,
    33117-33123, where supports are spliced in this way.
    """
    units = _Units.of(constraint, tuple(at.point.shape))
    if units is None or units.budget == 0:
        return None
    tried: set[tuple[int, ...]] = {tuple(units.chosen(to_numpy(at.point).ravel()).tolist())}
    for chosen in _exchanged(objective, constraint, at, units, singles):
        key = tuple(sorted(chosen.tolist()))
        if key in tried:
            continue
        tried.add(key)
        support, below = units.support(constraint, chosen, at.point), at.value - negligible
        fitted = fit_on_support(objective, constraint, at.point, support, negligible, below)
        if fitted is not None and fitted.value < below:
            return fitted
    return None


def _exchanged(
    objective: Objective, constraint: Constraint, at: Evaluation, units: _Units, singles: int
) -> Iterator[np.ndarray]:
    """Yield the units of the supports to try."""
    point, slope = (to_numpy(x).astype(np.float64).ravel() for x in (at.point, at.gradient))
    chosen = units.chosen(point)
    leaving = chosen[np.argsort([_value_without(objective, at, units, g) for g in chosen], kind="stable")]
    room = min(units.budget, units.count) - chosen.size
    for curvature in _curvatures(objective, at):
        scores = units.scores(slope, curvature)
        scores[chosen] = -1.0
        entering = np.argsort(-scores, kind="stable")[: np.count_nonzero(scores > 0)]
        many = min(room if room else (units.budget + 1) // 2, entering.size)
        while many:
            gone = leaving[: max(0, many - room)]
            yield np.concatenate([np.setdiff1d(chosen, gone), entering[:many]])
            many //= 2
    for g in leaving[:singles] if room == 0 else ():
        rest = units.support(constraint, np.setdiff1d(chosen, [g]), at.point)
        fitted = fit_on_support(objective, constraint, at.point, rest, 0.0)
        if fitted is not None:
            there = objective.evaluate(fitted.projection.point)
            scores = units.scores(to_numpy(there.gradient).astype(np.float64).ravel(), 1.0)
            scores[chosen] = -1.0
            for entered in np.argsort(-scores, kind="stable")[:_ENTERING]:
                yield np.append(np.setdiff1d(chosen, [g]), entered)


def _curvatures(objective: Objective, at: Evaluation) -> Iterator[np.ndarray | float]:
    """Yield what scores are divided by: nothing, and the positive entries of the diagonal of the Hessian."""
    yield 1.0
    if isinstance(objective, LinearObjective):
        diagonal = to_numpy(objective.hessian_diag(at)).astype(np.float64)
        if np.isfinite(diagonal).all():
            yield np.where(diagonal > 0, diagonal, np.inf)


def _value_without(objective: Objective, at: Evaluation, units: _Units, unit: int) -> float:
    """Return f where a unit is set to zero; infinity if it is NaN there."""
    xp = namespace(at.point)
    kept = xp.reshape(move((units.owner != unit).astype(float), at.point), at.point.shape)
    try:
        return objective.value(at.point * xp.astype(kept, at.point.dtype))
    except NotFiniteError:
        return np.inf


def fit_on_support(
    objective: Objective, constraint: Constraint, point: Array, support: Support, tol: float, below: float = np.inf
) -> Candidate | None:
    """Return a minimiser on a support, by Newton steps as long as these are few, and else by gradients alone.

    Parameters
    ----------
    point : array
        Where to start, restricted to the support.
    tol : float
        The decrease of f that counts as none.
    below : float
        A value that has to be expected for the search to go on.

    Returns
    -------
    Candidate or None
        None if f is infinite at the start.
    """
    try:
        start = Projection(constraint.project_onto(support.restrict(point), support, support).point, support)
        if not objective.value(start.point) < np.inf:
            return None
        found = refine(objective, constraint, start, cg_iterations=0, rounds=_NEWTON_STEPS, tol=0.1 * tol)
        if found.abandoned:
            return found
        at = objective.evaluate(found.projection.point)
        lower = descend_by_gradients(objective, constraint, at, support, tol, below)
    except NotFiniteError:
        return None
    if lower is None:
        return found
    return Candidate(lower[1], np.nan, lower[0].value, lower[0].prediction)
