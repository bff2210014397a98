"""The exchanges at one point: which sets of units are tried instead of the chosen ones, and their refits."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

import numpy as np

from hardthresh.arrays import move, namespace, to_numpy
from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import NotFiniteError
from hardthresh.core.objective import Evaluation, Objective, value_rounding
from hardthresh.core.support import Support
from hardthresh.core.typing import Array

from .natural_scale import Curvatures, flat, gradient_ahead, unflat
from .quasi_newton import End, descend_by_gradients
from .unit_model import UnitModel
from .units import Units

_CANDIDATES = 64
"""How many units may take the place of a chosen one in the quadratic model."""
_REFITTED = 3
"""How many of the sets that the model proposes are refitted: those where f is lowest at the minimisers of the model."""
_ENTERING = 3
"""How many units with the largest gradients are examined instead of a single one."""
_ROUGHLY = 1e-2
"""Share of the rise of f without a unit up to which the others are refitted before another takes its place."""
_FEW_EXCHANGES = 64
"""So many single exchanges, or fewer, are all tried. Arbitrary."""
_PROBED = 1024
"""Number of coordinates along which it is looked whether f is concave. Arbitrary."""
_FOLLOWING = 10.0
"""A unit is taken to lead to at most so many times the decrease of the one with the larger gradient before it."""
_RIGHT = 0.25
"""The quadratic model is right if it tells the rise of f without each of its units to this share. Of 900 small convex
problems beside all supports, 27 end above the best without this test, 23 with a share of 0.5 and 10 with 0.25, and 5 if
single exchanges always follow; a problem takes 63, 70, 80 and 90 gradients."""
NEARLY = 0.1
"""Share of a negligible decrease of f up to which a refit is the minimum while the search continues. Arbitrary."""


class _Trial(NamedTuple):
    """Units to try, and where their refit starts."""

    units: np.ndarray
    start: Array


class Fit(NamedTuple):
    """A refit, and why it ended."""

    at: Evaluation
    end: End

    @property
    def minimal(self) -> bool:
        """Whether it ended at a minimum."""
        return self.end is End.MINIMUM


class Refits:
    """Refits of supports, which remember the second derivatives along coordinates.

    Parameters
    ----------
    objective, constraint :
        f and the set.
    known : array
        The second derivatives that are known: see `Curvatures`.
    scale : float
        What values of f are compared with.
    """

    def __init__(self, objective: Objective, constraint: Constraint, known: np.ndarray, scale: float) -> None:
        self._objective, self._constraint = objective, constraint
        self.curvatures, self.scale = Curvatures(known), scale if 0.0 < scale < np.inf else 1.0

    def minimise(self, at: Evaluation, support: Support, tol: float, below: float = np.inf) -> Fit:
        """Return the minimiser on a support, from a point on it; hopeless refits are abandoned."""
        tol, columns = max(tol, value_rounding(self._objective, at)), to_numpy(support.indices)
        self.curvatures = self.curvatures.with_coordinates(self._objective, at, columns, self.scale)
        xp, like = namespace(at.point), at.point
        units = xp.astype(move(self.curvatures.units(columns), like), like.dtype)
        found = descend_by_gradients(self._objective, self._constraint, at, support, tol, below, units=units)
        return Fit(found.at, found.end)

    def model(self, units: Units, at: Evaluation, chosen: np.ndarray, others: np.ndarray) -> UnitModel:
        """Return the quadratic model at a point."""
        model = UnitModel(self._objective, at, units, chosen, others, self.curvatures, self.scale)
        self.curvatures = model.curvatures
        return model


class Splices:
    """The exchanges at one point.

    Parameters
    ----------
    objective, constraint, units, at :
        f, the set with its units, and f at a point that is about minimal on its support.
    negligible : float
        The decrease of f that counts as none.
    refits : Refits
        What refits supports.
    """

    def __init__(
        self,
        objective: Objective,
        constraint: Constraint,
        units: Units,
        at: Evaluation,
        negligible: float,
        refits: Refits,
    ) -> None:
        self._objective, self._constraint, self._units = objective, constraint, units
        self._at, self._below, self._tol = at, at.value - negligible, NEARLY * negligible
        self._negligible, self._refits = negligible, refits
        self._chosen = units.chosen(flat(at.point))
        self._room = units.budget - self._chosen.size
        self._others = units.best_others(flat(at.gradient), self._chosen)
        self._reached = {tuple(self._chosen.tolist()): -np.inf}
        self._few = self._chosen.size * (units.count - self._chosen.size) <= _FEW_EXCHANGES
        self._without: dict[int, float] = {}

    def lower(self) -> Iterator[Fit]:
        """Yield lower points."""
        yield from self._by_gradients()
        yield from self._by_model()
        yield from self._by_curvature()

    def _by_gradients(self) -> Iterator[Fit]:
        """Yield lower points where units with large gradients take the place of those that f needs least."""
        leaving = self._leaving()
        many = min(self._room if self._room else (self._units.budget + 1) // 2, self._others.size)
        while many:
            kept = leaving[max(0, many - self._room) :]
            yield from self.lower_of(np.concatenate([kept, self._others[:many]]), self._at.point)
            many //= 2

    def _by_model(self) -> Iterator[Fit]:
        """Yield lower points of sets that the quadratic model proposes, or by single exchanges where it misleads."""
        if self._room or self._others.size == 0:
            return
        for count in (max(1, _CANDIDATES * self._units.count // self._units.owner.size), _CANDIDATES):
            model = self._refits.model(self._units, self._at, self._chosen, self._others[:count])
            proposed = self._proposed(model) if model.semidefinite else []
            for units, start in proposed:
                yield from self.lower_of(units, start)
            if not proposed or count >= min(_CANDIDATES, self._others.size):
                break
        values = {g: self._value_without(g) for g in self._chosen}
        if self._few or not (model.definite and model.tells(values, _RIGHT)):
            for g in self._leaving():
                yield from self._replacing(g)

    def _by_curvature(self) -> Iterator[Fit]:
        """Yield lower points where f is concave along a coordinate, if no gradient leads away, as from a maximum.

        One unit enters. Cost: a gradient for each coordinate whose own is zero, at most 1024.
        """
        if self._others.size or not self._room:
            return
        point, slope, owner = flat(self._at.point), flat(self._at.gradient), self._units.owner
        columns = np.flatnonzero((slope == 0.0) & (owner >= 0) & ~np.isin(owner, self._chosen))[:_PROBED]
        eps = float(namespace(self._at.point).finfo(self._at.point.dtype).eps)
        steps = np.where(self._units.signs[columns] < 0, -1.0, 1.0) * eps ** (1 / 3)
        curvature = np.zeros(columns.size)
        for i, (column, step) in enumerate(zip(columns, steps, strict=True)):
            after = gradient_ahead(self._objective, self._at, int(column), float(step))
            curvature[i] = 0.0 if after is None else after[column] / step
        for i in np.argsort(curvature, kind="stable")[:_ENTERING]:
            if curvature[i] < 0.0:
                there = point.copy()
                there[columns[i]] = np.sign(steps[i]) * np.sqrt(self._refits.scale / -curvature[i])
                start = unflat(there, self._at.point)
                yield from self.lower_of(np.append(self._chosen, owner[columns[i]]), start)

    def _proposed(self, model: UnitModel) -> list[_Trial]:
        """Return the sets that the model proposes, where f is lowest at its minimisers."""
        trials = []
        for units, point in model.proposals(self._negligible):
            start = self._constraint.project_onto(point, support := self._support(units), support).point
            trials.append((self._value(start), _Trial(units, start)))
        return [trial for value, trial in sorted(trials, key=lambda trial: trial[0])[:_REFITTED] if value < np.inf]

    def _replacing(self, unit: int) -> Iterator[Fit]:
        """Yield lower points with another unit instead of one, in the order of their gradients without that one.

        Once another unit leads to less than a tenth of the decrease that it takes, the next ones are not tried.
        """
        rest, rise = np.setdiff1d(self._chosen, [unit]), self._value_without(unit) - self._at.value
        at = self._at_start(self._at.point, support := self._support(rest))
        if at is None:
            return
        there = self._refits.minimise(at, support, max(self._tol, _ROUGHLY * rise if rise < np.inf else 0.0))
        slope = flat(there.at.gradient)
        slope *= self._refits.curvatures.units(np.arange(slope.size))
        for entered in self._units.best_others(slope, self._chosen)[: None if self._few else _ENTERING]:
            before = there.at.value
            found = yield from self.lower_of(np.append(rest, entered), there.at.point)
            if not self._few and found is not None and before - found.at.value < (before - self._below) / _FOLLOWING:
                break

    def lower_of(self, units: np.ndarray, start: Array) -> Generator[Fit, None, Fit | None]:
        """Yield the refit of some units if it is lower, and return it; None if f is infinite.

        None, too, where these units had a refit that came to its end, or to a point below this start.
        """
        key, support = tuple(np.sort(units).tolist()), self._support(units)
        at = self._at_start(start, support)
        if at is None or at.value >= self._reached.get(key, np.inf):
            return None
        found = self._refits.minimise(at, support, self._tol, self._below)
        self._reached[key] = found.at.value if found.end is End.ABANDONED else -np.inf
        if found.at.value < self._below:
            yield found
        return found

    def _at_start(self, start: Array, support: Support) -> Evaluation | None:
        """Return f at the part of a point that is on a support; None if it is infinite there."""
        try:
            at = self._objective.evaluate(
                self._constraint.project_onto(support.restrict(start), support, support).point
            )
        except NotFiniteError:
            return None
        return at if at.value < np.inf else None

    def _leaving(self) -> np.ndarray:
        """Return the chosen units, first the one without which f rises least."""
        leaving: np.ndarray = self._chosen[np.argsort([self._value_without(g) for g in self._chosen], kind="stable")]
        return leaving

    def _support(self, units: np.ndarray) -> Support:
        return self._units.support(self._constraint, units, self._at.point)

    def _value_without(self, unit: int) -> float:
        """Return f where a unit is set to zero."""
        if unit in self._without:
            return self._without[unit]
        like, xp = self._at.point, namespace(self._at.point)
        kept = xp.reshape(move((self._units.owner != unit).astype(float), like), tuple(like.shape))
        self._without[unit] = self._value(like * xp.astype(kept, like.dtype))
        return self._without[unit]

    def _value(self, point: Array) -> float:
        """Return f; infinity if it is NaN."""
        try:
            return self._objective.value(point)
        except NotFiniteError:
            return np.inf
