"""Polyak's step, classical and sparse: from the gap to a target value and the size of the gradient."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from math import inf, nan
from typing import Any

from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import InvalidInputError, StallWarning
from hardthresh.core.objective import Evaluation, Objective
from hardthresh.core.registry import register
from hardthresh.core.stationarity import norm
from hardthresh.core.step import Move, StepRule
from hardthresh.core.typing import Array

_FADING = 0.4  # from epoch to epoch the gap to a valid bound halves, and so does the step


def _polyak_step(gap: float, scale: float, length: float) -> float:
    """Return max(gap, 0) / (scale length^2), and 0 where the gradient vanishes."""
    return max(gap, 0.0) / (scale * length * length) if length > 0.0 else 0.0


def _check(scale: float, target: float | None) -> None:
    if not 0 < scale < inf:
        raise InvalidInputError(f"scale must be positive and finite, got {scale!r}")
    if target is not None and not -inf < target < inf:
        raise InvalidInputError(f"the target must be finite, got {target!r}; use None for the objective's lower bound")


@register("step", "polyak")
@dataclass(frozen=True, slots=True)
class Polyak(StepRule):
    r"""The classical Polyak step :math:`\gamma_t = \max(f(w_t) - \hat f, 0) / (c \|\nabla f(w_t)\|^2)`.

    Parameters
    ----------
    target : float, optional
        :math:`\hat f`, the value to reach; default the objective's lower bound.
    scale : float
        c > 0.

    Notes
    -----
    What *Sparse Polyak* improves on: the full gradient norm grows with the dimension, so the iterations do too.
    Cost: no extra data pass. Heuristic under a sparsity constraint.
    """

    target: float | None = None
    scale: float = 5.0

    def __post_init__(self) -> None:
        _check(self.scale, self.target)

    @property
    def requires(self) -> tuple[str, ...]:
        return ("lower_bound",) if self.target is None else ()

    def move(self, objective: Objective, constraint: Constraint, at: Evaluation, direction: Array, memory: Any) -> Move:
        target = objective.lower_bound if self.target is None else self.target
        step = _polyak_step(at.value - target, self.scale, norm(direction))
        return Move(constraint.project(at.point + step * direction), step, None, memory)


@register("step", "sparse_polyak", lambda: [SparsePolyak(), SparsePolyak(relax=2)])
@dataclass(frozen=True, slots=True)
class SparsePolyak(StepRule):
    r"""The Sparse Polyak step :math:`\gamma_t = \max(f(w_t) - \hat f, 0) / (c \|\mathrm{HT}_{rs}(\nabla f(w_t))\|^2)`.

    Parameters
    ----------
    target : float, optional
        :math:`\hat f`, the value to reach; default the objective's lower bound. A target above the attainable minimum
        caps the accuracy. Below it nothing is guaranteed: the nearer the minimiser, the longer the step. Under a
        budget that leaves much of the gradient outside f still settled in all our experiments with c = 5, and ended
        lower; where the support can be solved (k >= d, full rank) it never does. Keep the best iterate then.
    scale : float
        c > 0. 5 is the paper's; 1 to 2 is much faster, but only with a target that can be reached.
    relax : float
        r >= 1: the gradient is measured on the budget r s (2 for generalised linear models, Corollary 5).

    Notes
    -----
    The norm is that of the gradient's projection on the constraint's own budget, so it works for any constraint.
    Cost: no extra data pass, one projection. Guarantee: with c = 5 and restricted strong convexity and smoothness,
    linear convergence to the target at a rate that does not depend on the dimension (Theorem 1).

    References
    ----------
    *Sparse Polyak*, Algorithm 1.

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
        if not self.relax >= 1:
            raise InvalidInputError(f"relax must be >= 1, got {self.relax!r}")

    @property
    def requires(self) -> tuple[str, ...]:
        return ("lower_bound",) if self.target is None else ()

    def move(self, objective: Objective, constraint: Constraint, at: Evaluation, direction: Array, memory: Any) -> Move:
        target = objective.lower_bound if self.target is None else self.target
        measured = constraint if self.relax == 1 else constraint.relax(self.relax)
        step = _polyak_step(at.value - target, self.scale, norm(measured.leading(direction)))
        return Move(constraint.project(at.point + step * direction), step, None, memory)


@dataclass(frozen=True, slots=True)
class Epoch:
    """Where Algorithm 2 stands.

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
    """

    bound: float
    steps: int
    best: Evaluation | None
    last: float = nan
    final: float = nan
    fading: int = 0

    def next(self, best: Evaluation) -> Epoch:
        """Return the start of the next epoch, from the best point."""
        fading = self.fading + 1 if self.last < _FADING * self.final else 0
        return Epoch(0.5 * (best.value + self.bound), 0, best, self.last, self.last, fading)


@register("step", "adaptive_sparse_polyak", lambda: [AdaptiveSparsePolyak(epoch_length=3)])
@dataclass(frozen=True, slots=True)
class AdaptiveSparsePolyak(StepRule):
    r"""Sparse Polyak without a known target: a lower bound that is raised after every epoch of T steps.

    .. math:: \gamma_t = \frac{\max(f(w_t) - \tilde f_k, 0)}{c \|\mathrm{HT}_s(\nabla f(w_t))\|^2}, \qquad
              \tilde f_{k+1} = \tfrac12 \bigl(\min_{t \le T} f(w_t) + \tilde f_k\bigr)

    and every epoch starts again from the best point of the last.

    Parameters
    ----------
    lower_bound : float, optional
        :math:`\tilde f_1`; default the objective's lower bound.
    epoch_length : int
        T >= 1. Too short an epoch raises the bound above the minimum, and the method then stalls there for good, with
        a `StallWarning`: keep it at 100 or more unless the problem is known to be easy.
    scale : float
        c > 0; 10 is the paper's.

    Notes
    -----
    Cost: no extra data pass. Guarantee: statistical precision with a number of gradients that grows with the
    logarithm of the gap of the first bound, for epochs long enough (Theorem 2). The clip at 0 is ours: the printed
    algorithm would ascend. So is the warning: under valid bounds the gap, and with it the step, halves from epoch to
    epoch; the warning comes where the final step falls to less than 0.4 of that of the epoch before, twice in a row,
    because f then runs into a bound that it cannot pass (heuristic).

    References
    ----------
    *Sparse Polyak*, Algorithm 2.
    """

    lower_bound: float | None = None
    epoch_length: int = 100
    scale: float = 10.0

    def __post_init__(self) -> None:
        _check(self.scale, self.lower_bound)
        if not self.epoch_length >= 1:
            raise InvalidInputError(f"epoch_length must be >= 1, got {self.epoch_length!r}")

    @property
    def requires(self) -> tuple[str, ...]:
        return ("lower_bound",) if self.lower_bound is None else ()

    def move(self, objective: Objective, constraint: Constraint, at: Evaluation, direction: Array, memory: Any) -> Move:
        if memory is None:
            bound = objective.lower_bound if self.lower_bound is None else self.lower_bound
            memory = Epoch(bound, 0, None)
        best = at if memory.best is None or at.value < memory.best.value else memory.best
        epoch = replace(memory, best=best)
        if epoch.steps == self.epoch_length:
            epoch = epoch.next(best)
            if epoch.fading == 2:
                warnings.warn(self._stalled(epoch), StallWarning, stacklevel=2)
            at, direction = best, -best.gradient
        step = _polyak_step(at.value - epoch.bound, self.scale, norm(constraint.leading(direction)))
        moved = constraint.project(at.point + step * direction)
        return Move(moved, step, None, replace(epoch, steps=epoch.steps + 1, last=step))

    def _stalled(self, epoch: Epoch) -> str:
        assert epoch.best is not None
        return (
            f"Adaptive Sparse Polyak stalls at f = {epoch.best.value:.6g}: after epochs of {self.epoch_length} steps "
            f"its lower bound has come to {epoch.bound:.6g}, probably above the minimum; make epoch_length larger"
        )
