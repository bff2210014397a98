"""Adaptive step rules of other authors, each in the full norm of its source and with the norm restricted.

The paper conjectures (end of Section 1.2) that such rules, which were made for unconstrained problems, suffer from high
dimensions too. The restriction is the one thing that differs between the two versions of a rule.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import ClassVar, Literal

import numpy as np

from hardthresh.core.constraint import Constraint
from hardthresh.core.objective import Evaluation, Objective
from hardthresh.core.stationarity import norm
from hardthresh.core.step import Move, StepRule
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.steps import Backtracking


@dataclass(frozen=True, slots=True)
class Secant:
    """The last move s and the change of the gradient y: ||s||, (s, y), and ||y|| in the norm of the rule."""

    moved: float
    product: float
    changed: float


@dataclass(frozen=True, slots=True)
class SecantMemory:
    """The last evaluated point, the last step, and its ratio to the step before."""

    previous: Evaluation
    step: float
    ratio: float


@dataclass(frozen=True, slots=True)
class SecantRule(StepRule):
    """A step from the last move and the change of the gradient, without a line search.

    The first step is by `Backtracking`; where the secant shows no curvature, the last step is made again.

    Parameters
    ----------
    measured : {"full", "union", "leading"}
        What of the change of the gradient is measured: all of it, as in the source; its entries on the supports of the
        two points; or its hard thresholding, the largest entries.
    """

    measured: Literal["full", "union", "leading"] = "full"

    first_ratio: ClassVar[float] = inf
    """What stands for the ratio of the first step to the one before, which there is not."""

    @abstractmethod
    def secant_step(self, secant: Secant, memory: SecantMemory) -> float:
        """Return the step; `secant` has positive entries."""

    def move(
        self,
        objective: Objective,
        constraint: Constraint,
        at: Evaluation,
        direction: Array,
        memory: SecantMemory | None,
        support: Support,
    ) -> Move:
        if memory is None:
            first = Backtracking().move(objective, constraint, at, direction, None, support)
            return replace(first, memory=SecantMemory(at, first.step, self.first_ratio))
        secant = self._secant(constraint, at, memory.previous, support)
        usable = secant.product > 0.0 and secant.changed > 0.0
        step = self.secant_step(secant, memory) if usable else memory.step
        ratio = step / memory.step if memory.step > 0.0 else self.first_ratio
        projection = constraint.project(at.point + step * direction, support)
        return Move(projection, step, None, SecantMemory(at, step, ratio))

    def _secant(self, constraint: Constraint, at: Evaluation, previous: Evaluation, support: Support) -> Secant:
        moved, change = at.point - previous.point, at.gradient - previous.gradient
        product = float(np.sum(moved * change))
        if self.measured == "union":
            change = (constraint.project(previous.point).support | support).restrict(change)
        elif self.measured == "leading":
            change = constraint.hard_threshold(change)
        return Secant(norm(moved), product, norm(change))


@dataclass(frozen=True, slots=True)
class ShortBarzilaiBorwein(SecantRule):
    """The short step (s, y) / ||y||^2 of Barzilai and Borwein (1988), without a safeguard."""

    def secant_step(self, secant: Secant, memory: SecantMemory) -> float:
        return secant.product / secant.changed**2


@dataclass(frozen=True, slots=True)
class AdaptiveGradientDescent(SecantRule):
    r"""The step of Malitsky and Mishchenko (2020), Algorithm 1.

    .. math:: \gamma_t = \min\bigl(\sqrt{1 + \gamma_{t-1} / \gamma_{t-2}} \; \gamma_{t-1}, \; \|s\| / (2 \|y\|)\bigr)
    """

    def secant_step(self, secant: Secant, memory: SecantMemory) -> float:
        return min(sqrt(1.0 + memory.ratio) * memory.step, secant.moved / (2.0 * secant.changed))


@dataclass(frozen=True, slots=True)
class AdaptiveProximalGradient(SecantRule):
    r"""The step of adaPGM, Latafat, Themelis, Stella and Patrinos (2024), from both quotients of Barzilai and Borwein.

    With the inverse long step :math:`\ell = (s, y) / \|s\|^2` and the inverse short step :math:`c = \|y\|^2 / (s, y)`,

    .. math:: \gamma_t = \gamma_{t-1} \min\Bigl(\sqrt{1 + \gamma_{t-1} / \gamma_{t-2}}, \;
                         1 / \bigl(2 \sqrt{[\gamma_{t-1} \ell (\gamma_{t-1} c - 1)]_+}\bigr)\Bigr) .
    """

    first_ratio: ClassVar[float] = 1.0

    def secant_step(self, secant: Secant, memory: SecantMemory) -> float:
        inverse_long = secant.product / secant.moved**2
        inverse_short = secant.changed**2 / secant.product
        excess = memory.step * inverse_long * (memory.step * inverse_short - 1.0)
        allowed = 0.5 / sqrt(excess) if excess > 0.0 else inf
        return memory.step * min(sqrt(1.0 + memory.ratio), allowed)


@dataclass(frozen=True, slots=True)
class LevelMemory:
    """Where the level rule is.

    Attributes
    ----------
    best : Evaluation
        The best point so far.
    record : float
        The best value when the present level was set.
    depth : float
        How far the level is below that record.
    path : float
        The length of the path since the level was set.
    longest : float
        The length of path after which the level counts as too low: that of the first move; inf before it.
    """

    best: Evaluation
    record: float
    depth: float
    path: float = 0.0
    longest: float = inf

    @property
    def level(self) -> float:
        """The target of the step."""
        return self.record - self.depth


@dataclass(frozen=True, slots=True)
class Level(StepRule):
    r"""Polyak's step to a level that adapts, by Brannlund's path rule (Goffin and Kiwiel 1999, Algorithm 1).

    :math:`\gamma_t = (f(w_t) - \ell) / (c \|g\|^2)`. The level is `depth` below the best value. It is set anew when f
    has come half of the way; when the path since then is longer than the first move, the depth is halved and the run
    goes on from the best point. The first level is the lower bound of f, below which no level is set.

    Parameters
    ----------
    measured : {"full", "leading"}
        What of the gradient is measured: all of it, or its hard thresholding, as in Sparse Polyak.
    scale : float
        c.
    """

    measured: Literal["full", "leading"] = "full"
    scale: float = 1.0

    def move(
        self,
        objective: Objective,
        constraint: Constraint,
        at: Evaluation,
        direction: Array,
        memory: LevelMemory | None,
        support: Support,
    ) -> Move:
        if memory is None:
            memory = LevelMemory(at, at.value, at.value - objective.lower_bound)
        best = at if at.value < memory.best.value else memory.best
        memory = replace(memory, best=best)
        if best.value <= memory.record - 0.5 * memory.depth:
            memory = self._set_level(objective, memory, memory.depth)
        elif memory.path > memory.longest:
            memory, at, direction = self._set_level(objective, memory, 0.5 * memory.depth), best, -best.gradient
        length = norm(direction if self.measured == "full" else constraint.hard_threshold(direction))
        step = (at.value - memory.level) / (self.scale * length**2) if length > 0.0 else 0.0
        projection = constraint.project(at.point + step * direction, support)
        moved = norm(projection.point - at.point)
        longest = moved if memory.longest == inf else memory.longest
        return Move(projection, step, None, replace(memory, path=memory.path + moved, longest=longest))

    def _set_level(self, objective: Objective, memory: LevelMemory, depth: float) -> LevelMemory:
        best = memory.best.value
        return replace(memory, record=best, depth=min(depth, best - objective.lower_bound), path=0.0)
