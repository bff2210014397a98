"""The Barzilai-Borwein step, restricted to the supports of the two points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from hardthresh.arrays import namespace
from hardthresh.core.checking import checked_integer, checked_word
from hardthresh.core.constraint import Constraint
from hardthresh.core.objective import Evaluation, Objective, value_rounding
from hardthresh.core.registry import register
from hardthresh.core.schema import stored
from hardthresh.core.stationarity import norm
from hardthresh.core.step import Move, StepRule
from hardthresh.core.support import Support
from hardthresh.core.typing import Array

from .line_search import ARMIJO, TRIES, Backtracking, standstill


@stored("state/barzilai_borwein")
@dataclass(frozen=True, slots=True)
class Memory:
    """The last evaluated point, the values seen lately, and the step last made."""

    previous: Evaluation | None = None
    values: tuple[float, ...] = ()
    step: float | None = None


@register("step", "barzilai_borwein", lambda: [BarzilaiBorwein(), BarzilaiBorwein(kind="short")])
@dataclass(frozen=True, slots=True)
class BarzilaiBorwein(StepRule):
    r"""The Barzilai-Borwein step with a non-monotone safeguard.

    With :math:`\Delta = w_t - w_{t-1}` and :math:`y` the difference of the gradients on the union of the two supports,
    the long step is :math:`\|\Delta\|^2 / (\Delta, y)` and the short step is :math:`(\Delta, y) / \|y\|^2`.

    Parameters
    ----------
    kind : {"long", "short"}
        Which of the two steps to use.
    window : int
        A step is halved until the value of f is below the largest of the last `window` values minus a sufficient
        decrease; window >= 1, and 1 is monotone.

    Notes
    -----
    The restriction to the supports affects only the short step, whose full norm :math:`\|y\|` would grow with the
    dimension. The first step is that of `Backtracking`. Cost: s/d of a data pass for each step tried, for s non-zeros
    of d. Guarantee: heuristic.

    References
    ----------
    Barzilai and Borwein (1988); Wright, Nowak and Figueiredo (2009) for the safeguard.
    """

    kind: Literal["long", "short"] = "long"
    window: int = 10

    def __post_init__(self) -> None:
        checked_word("kind", self.kind, ("long", "short"))
        checked_integer("window", self.window, 1)

    def start(self) -> Memory:
        return Memory()

    def move(
        self,
        objective: Objective,
        constraint: Constraint,
        at: Evaluation,
        direction: Array,
        memory: Memory,
        support: Support,
    ) -> Move:
        values = (*memory.values, at.value)[-self.window :]
        if memory.previous is None:
            first = Backtracking().move(objective, constraint, at, direction, None, support)
            return replace(first, memory=Memory(at, values, first.step))
        step = self._length(constraint, at, memory, support)
        rounding = value_rounding(objective, at)
        for _ in range(TRIES):
            projection = constraint.project(at.point + step * direction, support)
            moved = projection.point - at.point
            decrease = ARMIJO * norm(moved) * (norm(moved) / step)
            prediction = objective.predict(projection.point)
            if decrease == 0.0 or objective.value(projection.point, prediction) <= max(values) - decrease + rounding:
                evaluation = objective.evaluate(projection.point, prediction)
                return Move(projection, step, evaluation, Memory(at, values, step))
            step *= 0.5
        return standstill(constraint, at, direction, memory, support)

    def _length(self, constraint: Constraint, at: Evaluation, memory: Memory, support: Support) -> float:
        """Return the unguarded step; the last one where the secant shows no curvature."""
        assert memory.previous is not None
        xp = namespace(at.point)
        before, now = (constraint.project(point, support) for point in (memory.previous.point, at.point))
        union = before.support | now.support
        moved = at.point - memory.previous.point
        change = union.restrict(at.gradient - memory.previous.gradient)
        length, size = norm(moved), norm(change)
        if not (0.0 < length < inf and 0.0 < size < inf):
            return memory.step or 1.0
        cosine = float(
            xp.sum((moved / length) * (change / size))
        )  # of unit vectors, so that no square leaves the range
        if not cosine > 0.0:
            return memory.step or 1.0
        step = length / size / cosine if self.kind == "long" else length / size * cosine
        return step if 0.0 < step < inf else memory.step or 1.0
