"""Polyak's step, classical and sparse, from the gap to a target value and the norm of the gradient."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from math import inf, isnan, nan
from typing import Any

from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import StallWarning, warn
from hardthresh.core.objective import Evaluation, Objective, require_lower_bound
from hardthresh.core.registry import register
from hardthresh.core.schema import stored
from hardthresh.core.stationarity import norm
from hardthresh.core.step import Move, StepRule
from hardthresh.core.support import Support
from hardthresh.core.typing import Array

_LITTLE = 0.01
"""The share of the progress so far below which the gap to the bound counts as closed. Arbitrary."""
_WORTH = 0.05
"""The share of the progress so far that a stall must cost for a warning. Arbitrary; well above `_LITTLE`."""
_TRIES = 40
"""The most doublings of a step in the search for a lower value: 2^40 = 1e12. Arbitrary: about ten are enough."""
_FADING = 0.4
"""The ratio of the final steps of two epochs below which f runs into the bound. Under valid bounds the gap, and with it
the step, halves from epoch to epoch; 0.4 leaves a margin below 0.5 for the gradient, which changes too. Arbitrary."""


def _polyak_length(at: Evaluation, length: float, target: float, scale: float) -> float:
    """Return max(f - target, 0) / (scale length^2); 0 where that is not finite."""
    squared = scale * length * length
    step = max(at.value - target, 0.0) / squared if squared > 0.0 else inf
    return step if step < inf else 0.0


def _polyak_move(
    constraint: Constraint,
    at: Evaluation,
    direction: Array,
    length: float,
    target: float,
    scale: float,
    support: Support,
) -> Move:
    """Return the move by max(f - target, 0) / (scale length^2); where that is zero it is the last one."""
    gap = at.value - target
    if gap <= 0.0:
        why = f"f = {at.value:.6g} is at or below the target {target:.6g}, so the step is zero; lower the target"
        return Move(constraint.project(at.point, support), 0.0, at, None, f"{why} if this is not good enough")
    if length == 0.0:
        return Move(
            constraint.project(at.point, support), 0.0, at, None, "the gradient is zero where a step could follow it"
        )
    step = _polyak_length(at, length, target, scale)
    if step == 0.0:
        return Move(constraint.project(at.point, support), 0.0, at, None)
    return Move(constraint.project(at.point + step * direction, support), step, None, None)


def _check(scale: float, target: float | None, name: str = "target") -> None:
    checked_number("scale", scale, above=0.0)
    if target is not None:
        checked_number(name, target)


class _StepToTarget(StepRule):
    """A step by the distance of f to a target, divided by a squared norm of the gradient: which norm is the rule."""

    target: float | None
    scale: float

    @abstractmethod
    def _measured(self, constraint: Constraint, direction: Array, start: Support | None = None) -> float:
        """Return the norm of the direction that the rule divides by."""

    def check(self, objective: Objective) -> None:
        StepRule.check(self, objective)
        if self.target is None:
            require_lower_bound(objective, by=type(self).__name__)

    def length(
        self,
        objective: Objective,
        constraint: Constraint,
        at: Evaluation,
        direction: Array,
        inside: Array,
        supports: int,
    ) -> float:
        target = objective.lower_bound if self.target is None else self.target
        return _polyak_length(at, self._measured(constraint, direction), target, self.scale)

    def move(
        self,
        objective: Objective,
        constraint: Constraint,
        at: Evaluation,
        direction: Array,
        memory: Any,
        support: Support,
    ) -> Move:
        target = objective.lower_bound if self.target is None else self.target
        length = self._measured(constraint, direction, support)
        return _polyak_move(constraint, at, direction, length, target, self.scale, support)


@register("step", "polyak")
@dataclass(frozen=True, slots=True)
class Polyak(_StepToTarget):
    r"""The classical Polyak step :math:`\gamma_t = \max(f(w_t) - \hat f, 0) / (c \|\nabla f(w_t)\|^2)`.

    Parameters
    ----------
    target : float, optional
        :math:`\hat f`, the value to reach. Default: the lower bound of the objective.
    scale : float
        c > 0.

    Notes
    -----
    The norm of the full gradient grows with the dimension, and so does the number of iterations; `SparsePolyak` avoids
    this. Cost: no extra data pass. Heuristic under a sparsity constraint.
    """

    target: float | None = None
    scale: float = 5.0

    def __post_init__(self) -> None:
        _check(self.scale, self.target)

    def _measured(self, constraint: Constraint, direction: Array, start: Support | None = None) -> float:
        return norm(direction)


@register("step", "sparse_polyak", lambda: [SparsePolyak(), SparsePolyak(relax=2)])
@dataclass(frozen=True, slots=True)
class SparsePolyak(_StepToTarget):
    r"""The Sparse Polyak step :math:`\gamma_t = \max(f(w_t) - \hat f, 0) / (c \|\mathrm{HT}_{rs}(\nabla f(w_t))\|^2)`.

    Parameters
    ----------
    target : float, optional
        :math:`\hat f`, the value to reach. Default: the lower bound of the objective. A target above the attainable
        minimum limits the accuracy. With a target below it nothing is guaranteed, because the step grows as the
        minimiser is approached. If the constraint excludes a large part of the gradient, f still converged in all our
        experiments with c = 5, to a lower value; if f can be minimised on the support (k >= d, full rank), it never
        converges. In this case store the best iterate by a callback, because `minimize` returns the last.
    scale : float
        c > 0. The paper uses 5. Values of 1 to 2 are much faster, but only if the target is attainable.
    relax : float
        r >= 1: the norm is that of the r s largest entries of the gradient (2 for generalised linear models, Corollary
        5).

    Notes
    -----
    For other constraints the norm is that of the projection of the gradient onto the constraint relaxed by r, so the
    rule works for any constraint. Cost: no extra data pass, one projection. Guarantee: with c = 5 and restricted strong
    convexity and smoothness, linear convergence to the target at a rate that does not depend on the dimension (Theorem
    1).

    References
    ----------
    Qiao and Maros (2025), *Sparse Polyak*, Algorithm 1.

    Examples
    --------
    >>> SparsePolyak(target=0.12).scale
    5.0
    """

    target: float | None = None
    scale: float = 5.0
    relax: float = 1

    def __post_init__(self) -> None:
        _check(self.scale, self.target)
        checked_number("relax", self.relax, least=1.0)

    def _measured(self, constraint: Constraint, direction: Array, start: Support | None = None) -> float:
        measured = constraint if self.relax == 1 else constraint.relax(self.relax)
        return norm(measured.hard_threshold(direction, start))


@stored("state/adaptive_sparse_polyak")
@dataclass(frozen=True, slots=True)
class Epoch:
    """Progress of Algorithm 2 within its epochs.

    Attributes
    ----------
    bound : float
        The current lower bound.
    steps : int
        How many were made under it.
    best : Evaluation or None
        The best point seen.
    last : float
        The length of the last step; nan before the first.
    final : float
        The length of the last step of the epoch before; nan in the first.
    fading : int
        For how many epochs in a row the final step has shrunk by more than the bound explains.
    first : float
        f where the run began.
    judged : bool
        Whether the bound was compared with what a longer step would reach; see `AdaptiveSparsePolyak`.
    """

    bound: float
    steps: int
    best: Evaluation | None
    last: float = nan
    final: float = nan
    fading: int = 0
    first: float = nan
    judged: bool = False

    def next(self, best: Evaluation) -> Epoch:
        """Return the start of the next epoch, from the best point."""
        fading = self.fading + 1 if self.last < _FADING * self.final else 0
        bound = 0.5 * (best.value + self.bound)
        return replace(self, bound=bound, steps=0, best=best, final=self.last, fading=fading)

    @property
    def progress(self) -> float:
        """The decrease of f so far."""
        assert self.best is not None
        return self.first - self.best.value

    @property
    def is_over(self) -> bool:
        """Whether there is next to nothing between f and the bound, below which it never comes."""
        assert self.best is not None
        return self.best.value - self.bound <= _LITTLE * self.progress


@register("step", "adaptive_sparse_polyak", lambda: [AdaptiveSparsePolyak(epoch_length=3)])
@dataclass(frozen=True, slots=True)
class AdaptiveSparsePolyak(StepRule):
    r"""Sparse Polyak without a known target: a lower bound that is raised after every epoch of T steps.

    .. math:: \gamma_t = \frac{\max(f(w_t) - \tilde f_k, 0)}{c \|\mathrm{HT}_s(\nabla f(w_t))\|^2}, \qquad
              \tilde f_{k+1} = \tfrac{1}{2} \bigl(\min_{t \le T} f(w_t) + \tilde f_k\bigr)

    Every epoch starts from the best point of the previous one.

    Parameters
    ----------
    lower_bound : float, optional
        :math:`\tilde f_1`. Default: the lower bound of the objective.
    epoch_length : int
        T >= 1. If the epochs are too short, the bound rises above the minimum and the method stalls permanently. Use at
        least 100 unless the problem is known to be easy.
    scale : float
        c > 0; 10 is the paper's.

    Notes
    -----
    Cost: no extra data pass, except about ten values of f once in a run. Guarantee: with sufficiently long epochs,
    statistical precision after a number of gradients that grows with the logarithm of the gap of the first bound
    (Theorem 2). Two parts are not in the paper: the maximum with 0, without which the algorithm could ascend, and the
    `StallWarning`, which is issued once, for one of two reasons.

    * The last step of an epoch is less than 0.4 of that of the previous epoch, twice in a row. With valid bounds the
      gap, and so the step, halves with each epoch; a faster decrease indicates a bound above the minimum (heuristic).
    * f has approached the bound to within 1 % of its total decrease, and yet a longer step from the best point leads
      below the bound by more than 5 % of this decrease.

    The absence of a warning proves nothing: smaller stalls, and stalls that no single gradient step can leave, are not
    detected. Compare the result with that of a run with longer epochs.

    References
    ----------
    Qiao and Maros (2025), *Sparse Polyak*, Algorithm 2.
    """

    lower_bound: float | None = None
    epoch_length: int = 100
    scale: float = 10.0

    def __post_init__(self) -> None:
        _check(self.scale, self.lower_bound, "lower_bound")
        checked_integer("epoch_length", self.epoch_length, 1)

    def check(self, objective: Objective) -> None:
        StepRule.check(self, objective)
        if self.lower_bound is None:
            require_lower_bound(objective, by=type(self).__name__)

    def move(
        self,
        objective: Objective,
        constraint: Constraint,
        at: Evaluation,
        direction: Array,
        memory: Any,
        support: Support,
    ) -> Move:
        if memory is None:
            bound = objective.lower_bound if self.lower_bound is None else self.lower_bound
            memory = Epoch(bound, 0, None, first=at.value)
        best = at if memory.best is None or at.value < memory.best.value else memory.best
        epoch = replace(memory, best=best)
        if epoch.steps == self.epoch_length:
            epoch = epoch.next(best)
            if epoch.fading == 2 and not epoch.judged:
                warn(self._stalled(epoch), StallWarning)
                epoch = replace(epoch, judged=True)
            elif epoch.is_over and not epoch.judged:
                epoch = replace(epoch, judged=True)
                if _lowest(objective, constraint, epoch, support) < epoch.bound - _WORTH * epoch.progress:
                    warn(self._stalled(epoch), StallWarning)
            at, direction = best, -best.gradient
        length = norm(constraint.hard_threshold(direction, support))
        move = _polyak_move(constraint, at, direction, length, epoch.bound, self.scale, support)
        if (
            move.settled and length > 0.0
        ):  # at a bound that the epochs have raised it is stuck, which is not convergence
            move = replace(move, settled=self._reached(at, epoch) if isnan(epoch.final) else "")
        return replace(move, memory=replace(epoch, steps=epoch.steps + 1, last=move.step))

    def _reached(self, at: Evaluation, epoch: Epoch) -> str:
        return (
            f"f = {at.value:.6g} is at or below the lower bound {epoch.bound:.6g}, so the step is zero; give a smaller "
            "lower_bound if this is not good enough"
        )

    def _stalled(self, epoch: Epoch) -> str:
        assert epoch.best is not None
        return (
            f"Adaptive Sparse Polyak stalls at f = {epoch.best.value:.6g}: after epochs of {self.epoch_length} steps "
            f"its lower bound has come to {epoch.bound:.6g}, probably above the minimum; make epoch_length larger"
        )


def _lowest(objective: Objective, constraint: Constraint, epoch: Epoch, support: Support) -> float:
    """Return the lowest f on the way along the gradient from the best point, by steps that double until it rises."""
    assert epoch.best is not None
    at, step, lowest = epoch.best, epoch.last, inf
    for _ in range(_TRIES):
        value = objective.value(constraint.project(at.point - step * at.gradient, support).point)
        if not value < lowest:
            break
        lowest, step = value, 2.0 * step
    return lowest
