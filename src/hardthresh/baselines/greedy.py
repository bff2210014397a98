"""Greedy selection of coordinates: all at once, one by one, or forward and backward."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from hardthresh.arrays import move, scatter, solve_semidefinite, to_numpy
from hardthresh.arrays.linalg import DEPENDENT
from hardthresh.core.checking import checked_integer, checked_number, checked_word
from hardthresh.core.constraint import Constraint, CoordinateBudget, Projection, coordinate_budget
from hardthresh.core.errors import CapabilityError, format_value
from hardthresh.core.objective import LinearObjective, Objective
from hardthresh.core.schema import renames, stored
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.stopping import Settled, StopRule
from hardthresh.core.support import upgrade_supports
from hardthresh.core.typing import Array
from hardthresh.solvers.refinement import FULL_SOLVE, refine
from hardthresh.solvers.start import starting_point
from hardthresh.steps.line_search import Candidate

Rule = Literal["correlation", "normalized", "decrease"]
_NONE_LEFT = (-1,)  # a ranking without coordinates; () is one that has not been computed yet
_FULL = "the budget is used up"
_NOTHING = "no coordinate that may be added lowers the objective"


@stored("state/greedy_hessian")
@dataclass(frozen=True, slots=True)
class HessianRows:
    """The diagonal of the Hessian and its rows of the coordinates `members`; computed once for quadratic objectives."""

    members: tuple[int, ...] = ()
    rows: Any = None
    diagonal: Any = None


@stored("state/greedy", upgrades=[upgrade_supports, renames(falls="decreases", cross="hessian")])
@dataclass(frozen=True, slots=True, kw_only=True)
class GreedyState(State):
    """A `State` with the number of chosen coordinates, and what is needed to choose more.

    Attributes
    ----------
    size : int
        Number of chosen coordinates without free ones; the history calls it ``"k"``.
    minimal : bool
        Whether the point minimises f on its support.
    order : tuple of int
        `Oblivious`: the ranking of the coordinates.
    decreases : tuple of float
        `AdaptiveForwardBackward`: the decrease of f when each size was last reached.
    hessian : HessianRows
        The known part of the Hessian.
    """

    size: int
    minimal: bool = False
    order: tuple[int, ...] = ()
    decreases: tuple[float, ...] = ()
    hessian: HessianRows = field(default_factory=HessianRows)

    def record(self) -> dict[str, float]:
        return {"value": self.value, "k": self.size}


class _Greedy(Solver):
    """Base class of the greedy solvers, which start at the null model and refit on the chosen coordinates."""

    state_type: ClassVar[type[State]] = GreedyState

    @property
    def requires(self) -> type:
        return LinearObjective

    def check(self, objective: Objective, constraint: Constraint) -> None:
        super().check(objective, constraint)
        if coordinate_budget(constraint, tuple(objective.shape)) is None:
            raise CapabilityError(
                f"{type(self).__name__} chooses single coordinates, as for Sparsity(k); got {format_value(constraint)}"
            )

    def stopping(self, tol: float) -> StopRule:
        return Settled()

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> GreedyState:
        at, projection = starting_point(objective, constraint, w0)
        size = _budget(objective, constraint).selected(projection.support)
        return GreedyState(at=at, support=projection.support, seed=seed, size=size, minimal=w0 is None)

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> GreedyState:
        assert isinstance(state, GreedyState)
        assert isinstance(objective, LinearObjective)
        budget = _budget(objective, constraint)
        if state.settled:
            return replace(state, iteration=state.iteration + 1, step=0.0)
        if not state.minimal:
            here = Projection(state.w, state.support)
            found = refine(objective, constraint, here, state.at.prediction, cg_iterations=0, rounds=FULL_SOLVE)
            return self._refitted(objective, budget, state, found)
        if state.size >= budget.budget:
            return replace(state, iteration=state.iteration + 1, step=0.0, settled=_FULL)
        return self._choose(objective, constraint, budget, state)

    @abstractmethod
    def _choose(
        self, objective: LinearObjective, constraint: Constraint, budget: CoordinateBudget, state: GreedyState
    ) -> GreedyState:
        """Return the state with one more coordinate, or with the reason why there is none."""

    def _refitted(
        self,
        objective: Objective,
        budget: CoordinateBudget,
        state: GreedyState,
        found: Candidate | None,
        **changes: Any,
    ) -> GreedyState:
        """Return the state at a refitted point, or at the same point if there is none. Cost: one data pass."""
        if found is None:
            return replace(state, iteration=state.iteration + 1, step=0.0, settled=_NOTHING, **changes)
        size = budget.selected(found.projection.support)
        return replace(
            state,
            at=objective.evaluate(found.projection.point, found.prediction),
            support=found.projection.support,
            iteration=state.iteration + 1,
            step=1.0,
            size=size,
            minimal=True,
            settled=_FULL if size >= budget.budget else "",
            **changes,
        )


@stored("solver/oblivious")
@dataclass(frozen=True, slots=True)
class Oblivious(_Greedy):
    r"""Choose the k coordinates with the largest gradient at the null model, and refit on them.

    .. math:: S = \text{the } k \text{ largest of } |\nabla_j f(w_0)|, \qquad
              w = \arg\min \{ f(w) : w_j = 0 \text{ for } j \notin S \}

    with the null model :math:`w_0` or, if a run starts at another point, the minimiser on the support of that point,
    which stays chosen. Each iteration adds one coordinate and refits, so row t of the history is for k = t. A
    coordinate that does not lower f in addition to the chosen ones, such as a duplicate, is skipped.

    Parameters
    ----------
    normalize : bool
        Whether to rank coordinates by :math:`\nabla_j f^2 / 2 H_{jj}`, the second-order decrease of f by one coordinate
        alone, which does not depend on the scale of the columns.

    Raises
    ------
    CapabilityError
        By `check`, if the set does not choose single coordinates, or the objective has no `columns`, `curvature`,
        `hessian_diag` or `hessian`.

    Notes
    -----
    Cost: one data pass per iteration and the refits. Guarantee: none for correlated columns (heuristic).

    References
    ----------
    Khanna and Kyrillidis (2018), Fig. 3.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import minimize
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> f = LinearModel(np.eye(4), np.array([3.0, 0.1, -2.0, 0.2]))
    >>> minimize(f, Sparsity(2), Oblivious()).support
    Coordinates([0, 2])
    """

    normalize: bool = False

    def _choose(
        self, objective: LinearObjective, constraint: Constraint, budget: CoordinateBudget, state: GreedyState
    ) -> GreedyState:
        order = state.order
        if not order:
            rule: Rule = "normalized" if self.normalize else "correlation"
            scores, hessian = _scores(objective, budget, state, rule)
            order = tuple(int(j) for j in np.argsort(-scores, kind="stable") if scores[j] > 0.0)
            state = replace(state, hessian=hessian)
        chosen = set(to_numpy(state.support.indices).tolist())
        for place, j in enumerate(order):
            found = None if j < 0 or j in chosen else _added(objective, constraint, state, j)
            if found is not None:
                left = order[place + 1 :] or _NONE_LEFT
                return self._refitted(objective, budget, state, found, order=left)
        return self._refitted(objective, budget, state, None, order=_NONE_LEFT)


@stored("solver/forward_greedy")
@dataclass(frozen=True, slots=True)
class ForwardGreedy(_Greedy):
    r"""Forward selection: add the coordinate with the largest score at the current point, and refit.

    .. math:: j = \arg\max_{j \notin S} |\nabla_j f(w)| \;\text{("correlation")}, \quad
              \frac{\nabla_j f(w)^2}{2 H_{jj}} \;\text{("normalized")}, \quad
              f(w) - \min_{S \cup j} f \;\text{("decrease")}

    Parameters
    ----------
    rule : {"correlation", "normalized", "decrease"}
        "correlation" is orthogonal matching pursuit; "decrease" is forward stepwise selection, also known as
        orthogonal least squares.
    candidates : int
        Number of coordinates, >= 1, that "decrease" tries with a refit if f is not quadratic, since the best one by
        the quadratic model is not always the best one.

    Raises
    ------
    InvalidInputError
        If the rule is unknown or candidates < 1.
    CapabilityError
        As for `Oblivious`.

    Notes
    -----
    Cost: one data pass per iteration and the refit; "decrease" also one for the new column's products with all others
    (for other losses, whose Hessian changes, one for each chosen column), and O(k d) numbers of memory. Guarantee:
    exact recovery of k non-zeros in k iterations under incoherence (Tropp 2004); for the decrease within 1 - 1/e of the
    best under weak submodularity (Das and Kempe 2011).

    References
    ----------
    Pati, Rezaiifar and Krishnaprasad (1993), *Orthogonal matching pursuit*; Chen, Billings and Luo (1989), *Orthogonal
    least squares methods*.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import minimize
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> f = LinearModel(np.eye(4), np.array([3.0, 0.1, -2.0, 0.2]))
    >>> minimize(f, Sparsity(2), ForwardGreedy("decrease")).w
    array([ 3.,  0., -2.,  0.])
    """

    rule: Rule = "correlation"
    candidates: int = 5

    def __post_init__(self) -> None:
        checked_word("rule", self.rule, get_args(Rule))
        checked_integer("candidates", self.candidates, 1)

    def _choose(
        self, objective: LinearObjective, constraint: Constraint, budget: CoordinateBudget, state: GreedyState
    ) -> GreedyState:
        found, hessian = _forward(objective, constraint, budget, state, self.rule, self.candidates)
        return self._refitted(objective, budget, state, found, hessian=hessian)


@stored("solver/adaptive_forward_backward")
@dataclass(frozen=True, slots=True)
class AdaptiveForwardBackward(_Greedy):
    r"""Adaptive forward-backward selection (FoBa).

    One iteration:

    1. forward: add the coordinate that lowers f most, by :math:`\delta_s`, where s is the new size;
    2. backward: while dropping some coordinate and refitting raises f by at most :math:`\nu \delta_s`, drop the one
       that raises f least, and continue with s - 1.

    The run ends when k coordinates are left after the backward steps.

    Parameters
    ----------
    nu : float
        :math:`\nu`, 0 <= nu < 1.
    candidates : int
        As for `ForwardGreedy`.

    Raises
    ------
    InvalidInputError
        If nu or candidates are out of range.
    CapabilityError
        As for `Oblivious`.

    Notes
    -----
    Cost: as `ForwardGreedy` with rule "decrease", and two refits per backward step. Guarantee: Zhang (2011), Theorem 1,
    for least squares stopped by its threshold; with a budget, a heuristic. f may rise if several backward steps follow
    one forward step, as in the original.

    References
    ----------
    Zhang (2011), *Adaptive forward-backward greedy algorithm for learning sparse representations*, Algorithm 3.

    Examples
    --------
    The sum of two columns is the best single column until both are chosen:

    >>> import numpy as np
    >>> from hardthresh import minimize
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 3))
    >>> X[:, 2] = X[:, 0] + X[:, 1] + 0.3 * X[:, 2]
    >>> f = LinearModel(X, X[:, 0] + X[:, 1])
    >>> minimize(f, Sparsity(2), ForwardGreedy("decrease")).support
    Coordinates([1, 2])
    >>> minimize(f, Sparsity(3), AdaptiveForwardBackward()).support
    Coordinates([0, 1])
    """

    nu: float = 0.5
    candidates: int = 5

    def __post_init__(self) -> None:
        checked_number("nu", self.nu, least=0.0, below=1.0)
        checked_integer("candidates", self.candidates, 1)

    def _choose(
        self, objective: LinearObjective, constraint: Constraint, budget: CoordinateBudget, state: GreedyState
    ) -> GreedyState:
        found, hessian = _forward(objective, constraint, budget, state, "decrease", self.candidates)
        if found is None:
            return self._refitted(objective, budget, state, None, hessian=hessian)
        size = budget.selected(found.projection.support)
        known = (*state.decreases, *[0.0] * size)[: size - 1]  # a run may start at several coordinates: 0 for these
        decreases = (*known, state.value - found.value)
        while size > 1:
            smaller = _dropped(objective, constraint, found)
            if smaller is None or smaller.value - found.value > self.nu * decreases[-1]:
                break
            found, size, decreases = smaller, size - 1, decreases[:-1]
        return self._refitted(objective, budget, state, found, hessian=hessian, decreases=decreases)


def _budget(objective: Objective, constraint: Constraint) -> CoordinateBudget:
    budget = coordinate_budget(constraint, tuple(objective.shape))
    assert budget is not None
    return budget


def _double(x: Array) -> np.ndarray:
    return np.asarray(to_numpy(x), dtype=np.float64)


def _scores(
    objective: LinearObjective, budget: CoordinateBudget, state: GreedyState, rule: Rule
) -> tuple[np.ndarray, HessianRows]:
    """Return the score of each coordinate, 0 if it may not be added."""
    gradient = _double(state.at.gradient)
    hessian = state.hessian
    if rule == "correlation":
        scores = np.abs(gradient)
    else:
        members = [int(j) for j in to_numpy(state.support.indices)] if rule == "decrease" else []
        hessian = _hessian_rows(objective, state, members)
        left = hessian.diagonal
        if members:
            block = hessian.rows[:, members]
            spanned = np.sum(hessian.rows * np.asarray(solve_semidefinite(block, hessian.rows)), axis=0)
            left = hessian.diagonal - spanned
        usable = left > DEPENDENT * hessian.diagonal
        scores = np.where(usable, 0.5 * gradient * (gradient / np.where(usable, left, 1.0)), 0.0)
    if budget.signs is not None:
        scores = np.where((budget.signs != 0) & ((gradient < 0) != (budget.signs > 0)), 0.0, scores)
    chosen = sorted({*(int(j) for j in to_numpy(state.support.indices)), *budget.free})
    scores[chosen] = 0.0
    return scores, hessian


def _hessian_rows(objective: LinearObjective, state: GreedyState, members: list[int]) -> HessianRows:
    """Return the diagonal and some rows of the Hessian; those of a quadratic objective are computed once."""
    at, old = state.at, state.hessian
    constant = objective.traits.quadratic
    diagonal = old.diagonal if constant and old.diagonal is not None else _double(objective.hessian_diag(at))
    known = dict(zip(old.members, old.rows, strict=True)) if constant and old.members else {}
    for j in members:
        if j not in known:
            unit = scatter(at.gradient[:1] * 0 + 1, move(np.array([j]), at.gradient), at.gradient.shape[0])
            known[j] = _double(objective.curvature(at, unit))
    rows = np.stack([known[j] for j in members]) if members else None
    return HessianRows(tuple(members), rows, diagonal)


def _forward(
    objective: LinearObjective,
    constraint: Constraint,
    budget: CoordinateBudget,
    state: GreedyState,
    rule: Rule,
    candidates: int,
) -> tuple[Candidate | None, HessianRows]:
    """Return the refitted point with one more coordinate, or None if no coordinate lowers f."""
    scores, hessian = _scores(objective, budget, state, rule)
    count = 1 if rule != "decrease" or objective.traits.quadratic else candidates
    best: Candidate | None = None
    for j in np.argsort(-scores, kind="stable")[:count]:
        if scores[j] > 0.0:
            tried = _added(objective, constraint, state, int(j))
            if tried is not None and (best is None or tried.value < best.value):
                best = tried
    return best, hessian


def _added(objective: LinearObjective, constraint: Constraint, state: GreedyState, j: int) -> Candidate | None:
    """Return the refitted point with coordinate j, or None if it does not lower f."""
    gradient = state.at.gradient
    place = move(np.array([j]), gradient)
    along = constraint.project(scatter(-gradient[j : j + 1], place, gradient.shape[0]))
    support = state.support | along.support
    start = Projection(state.w, support)
    found = refine(objective, constraint, start, state.at.prediction, cg_iterations=0, rounds=FULL_SOLVE)
    return found if found.value < state.value else None


def _dropped(objective: LinearObjective, constraint: Constraint, found: Candidate) -> Candidate | None:
    """Return the refitted point without the coordinate that is cheapest to drop by the quadratic model.

    Free coordinates stay. None if no coordinate can be dropped.
    """
    support = found.projection.support
    indices, leaving = support.indices, _budget(objective, constraint).counted(support)
    if leaving.shape[0] == 0:
        return None
    restricted = objective.columns(indices)
    members, values = to_numpy(indices), _double(found.projection.point)[to_numpy(indices)]
    at = restricted.evaluate(move(to_numpy(found.projection.point)[members], found.projection.point), found.prediction)
    inverse = _double(solve_semidefinite(restricted.hessian(at), _identity(at.gradient)))
    diagonal = np.diagonal(inverse)
    costs = np.where(diagonal > 0, 0.5 * values * (values / np.where(diagonal > 0, diagonal, 1.0)), np.inf)
    costs = np.where(np.isin(members, to_numpy(leaving)), costs, np.inf)
    if not np.isfinite(costs.min()):
        return None
    point = to_numpy(found.projection.point).copy()
    point[members[int(np.argmin(costs))]] = 0.0
    start = constraint.project(move(point, found.projection.point))
    return refine(objective, constraint, start, cg_iterations=0, rounds=FULL_SOLVE)


def _identity(like: Array) -> Array:
    return move(np.eye(like.shape[0], dtype=to_numpy(like).dtype), like)
