"""Iterative hard thresholding: a gradient step, and the projection."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.objective import Objective, value_rounding
from hardthresh.core.registry import register
from hardthresh.core.schema import stored
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.step import StepRule
from hardthresh.core.support import upgrade_supports
from hardthresh.core.typing import Array
from hardthresh.steps import Backtracking, BarzilaiBorwein, SparsePolyak

from .start import starting_point
from .steepest import verdict


@stored("state/iht", upgrades=[upgrade_supports])
@dataclass(frozen=True, slots=True, kw_only=True)
class IHTState(State):
    """A `State` with what the step rule remembers."""

    memory: Any


@register("solver", "iht", lambda: [IHT(), IHT(step=SparsePolyak()), IHT(step=BarzilaiBorwein())])
@dataclass(frozen=True, slots=True)
class IHT(Solver):
    r"""Iterative hard thresholding, :math:`w_{t+1} = P_C(w_t - \gamma_t \nabla f(w_t))`.

    Parameters
    ----------
    step : StepRule
        The rule for :math:`\gamma_t`; the default, `Backtracking`, needs no setting and never increases f.

    Notes
    -----
    Cost: one data pass per iteration, and the cost of the step rule. Guarantee: with a fixed step 2/(3 L) and a budget
    well above the number of true non-zeros, linear convergence to statistical precision (Jain, Tewari and Kar 2014);
    with `SparsePolyak`, Theorem 1 of that paper.

    References
    ----------
    Blumensath and Davies (2009); Qiao and Maros (2025), *Sparse Polyak*, equation 2 and Algorithms 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> from hardthresh.solvers import IHT, minimize
    >>> f = LinearModel(np.eye(4), np.array([3.0, 0.1, -2.0, 0.2]))
    >>> minimize(f, Sparsity(2), IHT()).support
    Coordinates([0, 2])
    """

    step: StepRule = field(default_factory=Backtracking)

    state_type: ClassVar[type[State]] = IHTState

    def __post_init__(self) -> None:
        if not isinstance(self.step, StepRule):
            raise InvalidInputError(f"step must be a rule, such as SparsePolyak(); got {format_value(self.step)}")

    @property
    def requires(self) -> type:
        return self.step.requires

    def check(self, objective: Objective, constraint: Constraint) -> None:
        self.step.check(objective)

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> IHTState:
        at, projection = starting_point(objective, constraint, w0)
        return IHTState(at=at, support=projection.support, seed=seed, memory=self.step.start())

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> IHTState:
        """Project a step along the negative gradient; the step rule finds its length and makes the move."""
        assert isinstance(state, IHTState)
        move = self.step.move(objective, constraint, state.at, -state.at.gradient, state.memory, state.support)
        at = move.evaluation if move.evaluation is not None else objective.evaluate(move.projection.point)
        moved = replace(
            state,
            at=at,
            support=move.projection.support,
            iteration=state.iteration + 1,
            step=move.step,
            memory=move.memory,
            settled=move.settled,
        )
        if move.step > 0.0 or move.settled:
            return moved
        why = "no step along the gradient that was tried decreases the objective"
        return verdict(objective, constraint, moved, why, 0.0, 4.0 * value_rounding(objective, at))
