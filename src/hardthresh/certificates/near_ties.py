"""The other supports that fit nearly as well as that of a model, found by exchanges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import nsmallest
from math import inf
from time import perf_counter
from typing import Any

import numpy as np

from hardthresh.arrays import as_double, move, to_numpy
from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.constraint import Constraint, CoordinateBudget, Projection
from hardthresh.core.errors import CapabilityError, plural
from hardthresh.core.objective import Evaluation, LinearObjective, require, value_rounding
from hardthresh.core.support import Support
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array
from hardthresh.objectives.blocked import Blocked
from hardthresh.solvers.branch_and_bound.enumeration import near_supports
from hardthresh.solvers.exchange_model import ExchangeModel
from hardthresh.solvers.refinement import FULL_SOLVE, refine

from .alternatives import Alternative, Alternatives
from .kinks import model_with_kink
from .proving import why_no_search
from .swap import exchange_model, joining, units

_SLACK = 2.0
"""The search passes through supports up to so many times the tolerance. With 1 it finds 294 of the 297 supports within
2 % of 36 data sets of 18 columns, with 2 all of them (tests/certificates/test_alternatives.py)."""
_KEPT = 400
"""The search continues from at most so many supports of each level, the best ones."""
_EXAMINED = 5
"""The search continues from at most so many supports for each one that may be returned, and from 400 if that is more.
Without ties it ends by itself: check 23 takes 4.2 for each of 100. Sets that tie are without number, as where n <= k.
"""
_REMEMBERED = 1 << 25
"""Most entries of the Hessian that are kept: 256 MB."""

Label = Callable[[int], tuple[int, str]]
"""Returns the number and the name of a unit of a constraint."""


@serial_blas()
def alternative_supports(
    objective: LinearObjective,
    constraint: Constraint,
    w: Array,
    *,
    tolerance: float = 0.02,
    most: int = 100,
    time_limit: float | None = 0.0,
    label: Label = lambda unit: (unit, str(unit)),
    unit: str = "feature",
    subject: str = "",
) -> Alternatives:
    r"""Return other supports of the same size whose refitted objective is at most slightly higher than that of a model.

    .. math:: \min_{\mathrm{supp}(v) \subseteq S} f(v) \le f(w) + \tau |f(w)|

    Starting from the support of w, single coordinates or groups are exchanged in a breadth-first search, as long as the
    refitted value is within twice the tolerance. With a time limit, branch and bound then searches for the supports
    that this misses.

    Parameters
    ----------
    objective : LinearObjective
        f.
    constraint : Constraint
        The set. Its free coordinates belong to all supports and are not exchanged.
    w : array, shape (d,)
        A minimiser of f on its support.
    tolerance : float
        :math:`\tau`, in (0, 1].
    most : int
        The largest number of supports to return, >= 1. Those with the lowest values are returned.
    time_limit : float or None
        The seconds that exchanges and branch and bound may take together, >= 0; None for no limit, and 0 for exchanges
        alone, without a limit. Branch and bound is for least squares and single coordinates without bounds; for other
        problems ``reason`` of the result says why there is no proof.
    label : callable
        Returns the number and the name of a coordinate, or of a group, from its number.
    unit : {"feature", "group"}
        Whether the names are those of features or of groups.
    subject : str
        A description of w, if it is not a fitted model.

    Returns
    -------
    Alternatives
        The supports that were found, including that of w, by increasing value.

    Raises
    ------
    CapabilityError
        If the objective is not a `LinearObjective` or has a loss with a kink, or for groups that overlap or are too
        wide for their second derivatives.
    InvalidInputError
        For a tolerance, a number or a time limit out of range.

    Notes
    -----
    Cost: one data pass for each expanded support, of which there are at most 400 for each number of exchanges, and one
    for each column in any of them; the refits cost little. For losses other than the squared one, a pass for each
    column of each support, and at most `most` supports for each number of exchanges. Once `most` supports are within
    the tolerance, only supports as good as these are expanded. In all at most 5 times `most` supports, or 400 if that
    is more, are expanded, so many ties end the search; ``reason`` of the result then says so. After Ctrl-C, the
    supports found so far are returned. With n = 500, d = 5000 and k = 10, 100 supports take one second, and three for
    the logistic loss. A table in blocks is read twice for each number of exchanges, if the sums of these supports fit
    into 32 MB.

    Guarantee: heuristic. A support is missed if every path to it by single exchanges passes through supports beyond
    twice the tolerance. For the squared loss without bounds, all exchanges of one support are compared exactly
    (`hardthresh.solvers.exchange_model`); for others the quadratic model ranks them, and the best are refitted.

    If ``complete`` of the result is True, it is a proof up to rounding: branch and bound has pruned only nodes whose
    lower bound is beyond the tolerance, or above the last of `most` supports, and has solved all others. This takes
    longer than `prove`, especially with a large tolerance.

    References
    ----------
    L. Breiman (2001), Statistical modeling: the two cultures, *Statistical Science* 16, 199-231.

    Examples
    --------
    The first two columns are almost the same, so that either serves:

    >>> import numpy as np
    >>> from hardthresh.certificates import alternative_supports
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> X = np.array([[1.0, 1.01, 0.0], [1.0, 0.99, 0.0], [0.0, 0.0, 1.0]])
    >>> found = alternative_supports(LinearModel(X, np.array([1.0, 1.0, 0.5])), Sparsity(1), np.array([1.0, 0.0, 0.0]))
    >>> [support.numbers for support in found.supports], found.complete
    ([(0,), (1,)], False)
    >>> f = LinearModel(X, np.array([1.0, 1.0, 0.5]))
    >>> alternative_supports(f, Sparsity(1), np.array([1.0, 0.0, 0.0]), time_limit=None).complete
    True
    """
    require(objective, LinearObjective, by="alternative_supports")
    tolerance, most = checked_number("tolerance", tolerance, above=0.0, most=1.0), checked_integer("most", most, 1)
    if model_with_kink(objective) is not None:
        raise CapabilityError("a loss with a kink has no second derivatives by which exchanges could be ranked")
    if time_limit is not None:
        time_limit = checked_number("time_limit", time_limit, least=0.0, advice="None is for no limit")
    deadline = perf_counter() + time_limit if time_limit else inf
    search = _Search(objective.double(), constraint, as_double(w), tolerance, most)
    try:
        search.run(deadline)
        if time_limit != 0.0:
            search.prove(None if deadline == inf else max(0.0, deadline - perf_counter()))
    except KeyboardInterrupt:
        search.interrupt()
    return search.result(label, unit, subject)


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """A support, as units and as coordinates, with the minimiser on it."""

    chosen: tuple[int, ...]
    support: Support
    point: Array
    value: float
    prediction: Array | None


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """An exchange that leads to a new support, with the value of f there by the quadratic model."""

    value: float
    chosen: tuple[int, ...]
    start: _Fit
    removed: int
    added: int


class _Search:
    """A search for supports within the tolerance, breadth first."""

    def __init__(self, objective: Any, constraint: Constraint, w: Array, tolerance: float, most: int) -> None:
        at = objective.evaluate(w)
        support = constraint.project(w).support
        structure = constraint.structure(tuple(w.shape))
        self._objective, self._constraint, self._most, self._tolerance = objective, constraint, most, tolerance
        self._numbers, chosen = units(constraint, support, w.shape[0])
        if structure is None or (structure.candidates and not np.any(self._numbers >= 0)):
            raise CapabilityError("alternatives exchange features, or groups that do not overlap; these overlap")
        self._bounded = isinstance(structure, CoordinateBudget) and structure.bounds is not None
        self._model: Any = _Remembering(objective, at) if objective.traits.quadratic else objective
        self._exact = objective.traits.quadratic and not self._bounded
        self._rounding = value_rounding(objective, at)
        first = _Fit(tuple(chosen.tolist()), support, w, at.value, at.prediction)
        self._values: dict[tuple[int, ...], float] = {first.chosen: first.value}
        self._first, self._continued = first, 0
        self._complete, self._reason = not first.chosen, ""  # there is one empty support

    def run(self, deadline: float = inf) -> None:
        """Go from level to level, each of one exchange more, until no support is new and within reach."""
        level, allowed = [self._first], max(_KEPT, _EXAMINED * self._most)
        while level:
            steps: dict[tuple[int, ...], _Step] = {}
            for place, fit in enumerate(level):
                if self._continued >= allowed:
                    self._reason = f"exchanges of {plural(allowed, 'set')} were compared, and there are more near them"
                    break
                if self._is_late(deadline):
                    break
                if isinstance(self._objective, Blocked):  # readings serve as many of the level as they have room for
                    self._objective.expand([other.point for other in level[place:]])
                for step in self._steps(fit):
                    known = steps.get(step.chosen)
                    if step.chosen not in self._values and (known is None or step.value < known.value):
                        steps[step.chosen] = step
            kept = _KEPT if self._exact else min(_KEPT, self._most)
            best = nsmallest(kept, steps.values(), key=lambda step: (step.value, step.chosen))
            level = []
            if isinstance(self._objective, Blocked) and best:  # one reading of the columns of all
                union = np.concatenate([to_numpy(self._start(step).support.indices) for step in best])
                self._objective.columns(np.unique(union))
            for step in best:
                if self._is_late(deadline):
                    return
                level.append(self._refit(step))
                self._values[step.chosen] = level[-1].value
            if self._reason:
                return
            reach = self._reach()
            level = [fit for fit in level if fit.value <= reach]

    def _is_late(self, deadline: float) -> bool:
        """Return whether the time is over, and note it."""
        late = perf_counter() >= deadline
        if late:
            self._reason = "the time limit was reached"
        return late

    def interrupt(self) -> None:
        """Keep what was found until Ctrl-C."""
        self._complete, self._reason = False, "the search was interrupted"

    def prove(self, time_limit: float | None) -> None:
        """Look for the supports that exchanges have missed, by branch and bound."""
        if self._complete:
            return
        why = why_no_search(self._objective, self._constraint)
        if why:
            self._reason = "; ".join(filter(None, (self._reason, why)))
            return
        within, most = self._within(), self._most + 1  # one more, to know whether there are more
        level = self._values[within[self._most]] + self._rounding if len(within) >= most else self._limit()
        size = len(self._first.chosen)
        near = near_supports(self._objective, self._constraint, size, level, most=most, time_limit=time_limit)
        proved = dict(zip(near.supports, near.values, strict=True))  # of the rows where a refit would lose digits
        self._values |= {**proved, self._first.chosen: self._first.value}
        self._complete, self._reason = near.complete, near.reason

    def _limit(self) -> float:
        """Return the largest value that is within the tolerance."""
        return self._first.value + self._tolerance * abs(self._first.value) + self._rounding

    def _within(self) -> list[tuple[int, ...]]:
        """Return the supports within the tolerance, by increasing value."""
        limit, own = self._limit(), self._first.chosen
        within = [chosen for chosen, value in self._values.items() if value <= limit]
        return sorted(within, key=lambda chosen: (self._rise(chosen), chosen != own, chosen))

    def _rise(self, chosen: tuple[int, ...]) -> float:
        """Return by how much the value on a support exceeds that of the first one; 0 if the difference is rounding."""
        rise = self._values[chosen] - self._first.value
        return rise if abs(rise) > self._rounding else 0.0

    def _reach(self) -> float:
        """Return the value up to which the search goes on from a support."""
        within = self._within()
        if len(within) >= self._most:
            return self._values[within[self._most - 1]] + self._rounding
        return self._first.value + _SLACK * (self._limit() - self._first.value)

    def _steps(self, fit: _Fit) -> list[_Step]:
        """Return the exchanges from a support that may be within reach by the quadratic model, at most `_KEPT`."""
        at = self._objective.evaluate(fit.point, fit.prediction)
        model = exchange_model(self._model, self._constraint, at, fit.support)
        if model is None:
            raise CapabilityError("the chosen groups have too many columns to compute their second derivatives")
        self._continued += 1
        values, removed, added = self._exchanges(model, fit)
        near = np.flatnonzero(values <= self._reach())
        near = near[np.argsort(values[near], kind="stable")[:_KEPT]]
        steps = []
        for value, i, j in zip(values[near].tolist(), removed[near].tolist(), added[near].tolist(), strict=True):
            chosen = tuple(sorted([*(number for number in fit.chosen if number != i), j]))
            steps.append(_Step(value, chosen, fit, i, j))
        return steps

    def _exchanges(self, model: ExchangeModel, fit: _Fit) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the values of the model after all exchanges, with the units that leave and those that come."""
        candidates = list(model.candidates(joining(self._numbers, np.array(fit.chosen, dtype=np.int64))))
        parts = []
        for number in fit.chosen:
            removal = model.removal(np.flatnonzero(self._numbers == number))
            for some in candidates:
                values = fit.value - model.decreases(some, removal)
                parts.append((values, np.full(values.size, number), some.numbers))
        if not parts:
            return np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        values, removed, added = (np.concatenate(part) for part in zip(*parts, strict=True))
        return values, removed, added

    def _refit(self, step: _Step) -> _Fit:
        """Return the minimiser on the support that an exchange leads to."""
        return self._refitted(step.chosen, self._start(step))

    def _start(self, step: _Step) -> Projection:
        """Return where the refit after an exchange starts."""
        support = step.start.support.exchange(step.removed, step.added)
        return Projection(support.restrict(step.start.point), support)

    def _refitted(self, chosen: tuple[int, ...], start: Projection) -> _Fit:
        found = refine(self._objective, self._constraint, start, cg_iterations=0, rounds=FULL_SOLVE)
        return _Fit(chosen, start.support, found.projection.point, found.value, found.prediction)

    def result(self, label: Label, unit: str, subject: str) -> Alternatives:
        """Return what was found."""
        own, within = set(self._first.chosen), self._within()
        listed = within[: self._most]
        if self._first.chosen not in listed:  # so many are better
            listed[-1] = self._first.chosen
        scale = abs(self._first.value) or 1.0  # without a residual only supports without one are within the tolerance

        def names(chosen: set[int]) -> tuple[str, ...]:
            return tuple(label(number)[1] for number in sorted(chosen))

        supports = tuple(
            Alternative(
                numbers=tuple(label(number)[0] for number in chosen),
                names=names(set(chosen)),
                value=self._values[chosen],
                excess=self._rise(chosen) / scale,
                removed=names(own.difference(chosen)),
                added=names(set(chosen).difference(own)),
            )
            for chosen in listed
        )
        return Alternatives(
            supports=supports,
            value=self._first.value,
            tolerance=self._tolerance,
            unit=unit,
            more=len(within) > self._most,
            exact=self._exact,
            examined=self._continued,
            complete=self._complete,
            reason=self._reason,
            subject=subject,
        )


class _Remembering:
    """A quadratic objective that keeps the columns of its Hessian, for the models of many supports."""

    def __init__(self, objective: Any, at: Evaluation) -> None:
        self._objective, self._diagonal = objective, objective.hessian_diag(at)
        self._images: dict[int, np.ndarray] = {}
        self.lower_bound = objective.lower_bound
        self.columns = objective.columns

    def hessian_diag(self, at: Evaluation) -> Array:
        return self._diagonal

    def curvature(self, at: Evaluation, direction: Array) -> np.ndarray:
        """Return the Hessian times a direction of few entries."""
        v = to_numpy(direction)
        columns = np.flatnonzero(v).tolist()
        for j in columns:
            if j not in self._images:
                one = np.zeros(v.size)
                one[j] = 1.0
                self._images[j] = to_numpy(self._objective.curvature(at, move(one, direction)))
        total: np.ndarray = np.stack([self._images[j] for j in columns], axis=1) @ v[columns] if columns else 0.0 * v
        while len(self._images) * v.size > _REMEMBERED:
            del self._images[next(iter(self._images))]
        return total
