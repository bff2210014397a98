"""Branch and bound: the best k columns of a quadratic, with a lower bound that proves it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar, cast

import numpy as np

from hardthresh.arrays import as_double, move, to_numpy
from hardthresh.core.checking import checked_number
from hardthresh.core.constraint import Constraint, CoordinateBudget, Projection, coordinate_budget
from hardthresh.core.errors import CapabilityError
from hardthresh.core.gap import PROVED, relative_gap
from hardthresh.core.minimize import minimize
from hardthresh.core.numbers import percent
from hardthresh.core.objective import Evaluation, LinearObjective, Objective, value_rounding
from hardthresh.core.progress import format_duration
from hardthresh.core.registry import register
from hardthresh.core.result import Status
from hardthresh.core.schema import Fields, stored
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.stopping import Run, Settled, Stop, StopRule
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.solvers.refinement import FULL_SOLVE, refine
from hardthresh.solvers.start import starting_point
from hardthresh.solvers.working_set import WorkingSet

from .node import Node
from .quadratic import Quadratic
from .rows import Rows
from .search import Search

_LEAST, _SHARE = 2, 50
"""An iteration bounds one node for every 50 before it, at least 2: so a time limit is kept within 2 %, and what the
loop does between iterations costs little."""

_MOST = 5_000
"""Most coordinates: their matrix has 200 MB, and the search keeps two."""

_PROVED = "no support has a value below this one: proved to {to:.0e} relative, with {n_nodes} nodes"
_IN_DOUBT = "every support was looked at, but rounding hides whether some have a value below this one (gap {to:.0e})"


@stored("state/branch_and_bound")
@dataclass(frozen=True, slots=True, kw_only=True)
class BranchAndBoundState(State):
    """A `State` with the frontier of the search tree: all that is not known yet.

    Attributes
    ----------
    problem : Quadratic or None
        The problem; None before the first iteration.
    upper : float
        The value of the best support found, in double precision; f at the point up to rounding.
    lower_bound : float
        A number that f is not below, on any support that the constraint allows, up to the rounding of double precision.
    n_nodes : int
        The number of nodes bounded so far.
    chosen : array of int
        The columns of the problem in the best support.
    frontier : tuple of Node
        The nodes to be explored, those with the least bound first.
    floor : float
        The least bound of the nodes that were given up.
    """

    problem: Quadratic | None = None
    upper: float = inf
    lower_bound: float = -inf
    n_nodes: int = 0
    chosen: np.ndarray
    frontier: tuple[Node, ...] = ()
    floor: float = inf

    @property
    def gap(self) -> float:
        """What is left to prove (`hardthresh.certificates.relative_gap`): 0 at the minimum, 1 if nothing is known."""
        return relative_gap(self.value, self.lower_bound)

    def progress(self) -> str:
        """Return the value, the lower bound, the gap between them and the number of nodes."""
        return f"f = {self.value:.6g} >= {self.lower_bound:.6g}, gap {self.gap:.2g}, {self.n_nodes} nodes"

    def record(self) -> dict[str, float]:
        """Return what the history records about this state: f, the lower bound, and the number of nodes."""
        return {"value": self.value, "lower_bound": self.lower_bound, "n_nodes": self.n_nodes}


@stored("stop/time_of_search")
@dataclass(frozen=True, slots=True)
class TimeOfSearch(StopRule):
    """Stop a search by `BranchAndBound` after so many seconds, but not before it has an answer.

    Parameters
    ----------
    limit : float
        How many, > 0.
    """

    limit: float

    def check(self, run: Run) -> Stop | None:
        state = run.state
        if run.seconds < self.limit or state.iteration == 0:
            return None
        assert isinstance(state, BranchAndBoundState)
        left = f"{percent(state.gap)} of the objective" if state.gap < 1.0 else "everything"
        limit = format_duration(self.limit)
        return Stop(Status.BUDGET, f"the search ended at its time limit, {limit}, with {left} left to prove (the gap)")


def _without_limit(fields: Fields) -> Fields:
    """Return the fields of the solver in version 2, which may have a time limit."""
    return fields | {"time_limit": None}


@register("solver", "exact", lambda: [BranchAndBound()], upgrades=[_without_limit])
@dataclass(frozen=True, slots=True)
class BranchAndBound(Solver):
    r"""Branch and bound for least squares with at most k columns, with a proof of global optimality.

    After the elimination of the free coordinates and the standardisation of the columns, f is a quadratic q with
    Hessian Q and slope c. A node of the search tree is the set of all supports that have some columns I and others only
    from F; M and c are then the Schur complement on F and its slope. For any diagonal :math:`D > 0` with :math:`M - D`
    positive semidefinite, any x, and :math:`v = c - (M - D) x`, q is on all these supports at least

    .. math:: q_I - \tfrac{1}{2} x^\top (M - D) x - \tfrac{1}{2} \max_{|S| \le k - |I|} \sum_{j \in S} v_j^2 / D_j ,

    where :math:`q_I` is the minimum on I alone. Here x solves the perspective relaxation, so that the bound is high.
    With more columns than examples D is the ridge. Else it is the largest multiple of a diagonal :math:`\Sigma` that
    leaves M positive semidefinite, and steps along the gradient of the bound move :math:`\Sigma`.

    1. Find a support by `WorkingSet` with the effort "thorough".
    2. Take the node with the lowest bound, and decide the column with the largest entry in its relaxation: one child
       has it, the other does not.
    3. Bound each child. A column is out for good if its entry into the k columns of largest :math:`v_j^2 / 2D_j` would
       lift the bound above the best value, and in for good if its exit would. A child with one column left to choose,
       or no choice, is solved.
    4. Round the relaxations of the first nodes, and of every twentieth later on, to a support, improved by exchanges.
    5. Prune nodes whose bound is above the best value. When none is left, the best support is the global minimum.

    Parameters
    ----------
    tol : float
        Relative tolerance > 0: a node is pruned if its bound is above the best value minus tol times the size of this
        value. The result is therefore "proved to 1e-9 relative" at best, and never more accurately than the rounding of
        f.
    time_limit : float or None
        The seconds after which a run ends with the best support found, > 0; None for a run until optimality is proved.
        The limit is checked between iterations, and the first iteration, with the local search, is always completed. It
        is not used if `minimize` is called with `stop` or ``tol=0``.

    Raises
    ------
    CapabilityError
        By `check`, for an objective that is not quadratic, bounds on coefficients, a constraint that is not "at most k
        coordinates", or more than 5,000 coordinates.

    Notes
    -----
    Guarantee: `state.lower_bound` is at most the minimum over all supports, at every iteration, with a first-order
    margin for the rounding of double precision; the run ends when the bound reaches the best value. The margin grows
    with the size of the coefficients of a support. Supports of nearly dependent columns are refitted by a QR
    factorisation of their rows, and the message states the accuracy of the proof: about 1e-8 if the part of a column
    that is orthogonal to the others is 1e-6 of its length. If rounding leaves more than 1e-6 undecided, the message
    does not say "proved". A column is treated as a linear combination of others if its orthogonal part is less than
    1e-13 of its length, the size of rounding errors. A run can be stopped at any time and continued from its state;
    ``result.state.gap`` is the remaining gap. The history has the columns ``lower_bound`` and ``n_nodes`` in addition
    to ``value`` and ``seconds``.

    The number of nodes may grow exponentially with k, and so may the time: set `time_limit`. An iteration bounds as
    many nodes as a fiftieth of all previous ones, so `max_iter` is not reached in practice. The bound is tight if the
    columns are not too dependent or the ridge is large; with more columns than examples and a small ridge, the bound
    may hardly rise for a long time.

    Cost: the data passes of the local search and that of the Hessian, all in the first iteration; memory for two d by d
    matrices, and a few hundred bytes for each node of the frontier. A node costs some products with the columns that
    are not zero in its relaxation, and, with up to 400 undecided columns, :math:`O(|F|^3)` for D. If columns are nearly
    dependent and there is no ridge, a node may have no bound; its supports are then refitted one by one.

    References
    ----------
    The perspective relaxation: Günlük and Linderoth (2010), *Mathematical Programming* 124, 183-205; of regression with
    at most k features: Bertsimas and Van Parys (2020), *Annals of Statistics* 48, 300-323, and Xie and Deng (2020),
    *SIAM Journal on Optimization* 30, 3359-3386. Branch and bound on it: Hazimeh, Mazumder and Saab (2022),
    *Mathematical Programming* 196, 347-388. Fixing columns by the bound: Atamtürk and Gómez (2020), ICML. The
    best diagonal: Dong, Chen and Linderoth (2015), arXiv:1510.06083.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> from hardthresh.solvers import BranchAndBound, minimize
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 40))
    >>> y = X[:, [3, 5, 20]] @ [1.0, -2.0, 1.5] + rng.standard_normal(100)
    >>> run = minimize(LinearModel(X, y), Sparsity(3), BranchAndBound())
    >>> run.support, run.state.gap < 1e-8
    (Coordinates([3, 5, 20]), True)
    """

    tol: float = 1e-9
    time_limit: float | None = None

    state_type: ClassVar[type[State]] = BranchAndBoundState

    def __post_init__(self) -> None:
        checked_number("tol", self.tol, above=0.0)
        if self.time_limit is not None:
            checked_number("time_limit", self.time_limit, above=0.0, advice="None is for no limit")

    @property
    def requires(self) -> type:
        return LinearObjective

    def stopping(self, tol: float) -> StopRule:
        return Settled() if self.time_limit is None else Settled() | TimeOfSearch(self.time_limit)

    def check(self, objective: Objective, constraint: Constraint) -> None:
        if len(objective.shape) != 1:
            raise CapabilityError(
                "BranchAndBound takes one output, not several outputs or classes; use WorkingSet() for these, and the "
                "lower bound of the certificate"
            )
        super(BranchAndBound, self).check(objective, constraint)
        _selection(objective, constraint)

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> BranchAndBoundState:
        at, projection = starting_point(objective, constraint, w0)
        none = np.empty(0, dtype=np.int64)
        bound = float(objective.lower_bound)
        return BranchAndBoundState(
            at=at, support=projection.support, seed=seed, upper=float(at.value), lower_bound=bound, chosen=none
        )

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> BranchAndBoundState:
        """Bound the root in the first iteration, then a batch of nodes in each."""
        assert isinstance(state, BranchAndBoundState)
        if state.settled:
            return replace(state, iteration=state.iteration + 1, step=0.0)
        linear = cast(LinearObjective, objective)
        budget = min(_selection(objective, constraint).budget, objective.shape[0])
        rows = Rows.of(linear.double(), np.array(_selection(objective, constraint).free, dtype=np.int64))
        if state.problem is None:
            search, state = self._begun(linear, constraint, budget, state, rows)
        else:
            search = Search(
                state.problem, rows, budget, self.tol, state.upper, state.chosen, list(state.frontier),
                state.n_nodes, state.floor, float(objective.lower_bound),
            )  # fmt: skip
            search.run(max(_LEAST, state.n_nodes // _SHARE))
        return self._moved(linear, constraint, state, search)

    def _begun(
        self,
        objective: LinearObjective,
        constraint: Constraint,
        budget: int,
        state: BranchAndBoundState,
        rows: Rows | None,
    ) -> tuple[Search, BranchAndBoundState]:
        """Return a search that has bounded the root, and the state at the best point of a thorough local search."""
        null, exact = starting_point(objective, constraint, None)[0], objective.double()
        if exact is not objective:
            null = exact.evaluate(as_double(null.point))
        problem = Quadratic.of(exact, null, np.array(_selection(objective, constraint).free, dtype=np.int64), rows)
        found = minimize(objective, constraint, WorkingSet(effort="thorough"), seed=state.seed)
        if found.status is Status.INTERRUPTED:  # which ends this run, too
            raise KeyboardInterrupt
        if found.value < state.value:
            state = replace(state, at=found.state.at, support=found.state.support)
        search = Search(
            problem, rows, min(budget, problem.size), self.tol, problem.constant, np.empty(0, dtype=np.int64),
            floor=inf, lower_bound=float(objective.lower_bound),
        )  # fmt: skip
        search.improve(np.flatnonzero(np.isin(problem.columns, to_numpy(state.support.indices))))
        search.begin()
        return search, replace(state, upper=inf)

    def _moved(
        self, objective: LinearObjective, constraint: Constraint, state: BranchAndBoundState, search: Search
    ) -> BranchAndBoundState:
        """Return the state after a search."""
        at, support = state.at, state.support
        if search.upper < state.upper:
            at, support = _point(objective, constraint, state, search)
        lower, value = search.lower, float(at.value)
        doubt = max(search.slack, value_rounding(objective, at))
        if lower > value + doubt:  # a bound cannot be above a value: so nothing is proved
            lower = float(objective.lower_bound)
        settled = ""
        if search.is_done:
            left = value - lower
            to = self.tol if left <= doubt else relative_gap(value, lower)
            settled = (_PROVED if to <= PROVED else _IN_DOUBT).format(to=to, n_nodes=search.n_nodes)
        return replace(
            state,
            at=at,
            support=support,
            iteration=state.iteration + 1,
            step=0.0 if at is state.at else 1.0,
            settled=settled,
            problem=search.problem,
            upper=search.upper,
            lower_bound=lower,
            n_nodes=search.n_nodes,
            chosen=search.support,
            frontier=() if settled else tuple(search.frontier),
            floor=search.floor,
        )


def _point(
    objective: LinearObjective, constraint: Constraint, state: BranchAndBoundState, search: Search
) -> tuple[Evaluation, Support]:
    """Return f at its minimiser on the best support of a search, unless the point of the state is as low."""
    marks = np.zeros(objective.shape[0])
    marks[search.problem.columns[search.support]] = 1.0
    support = constraint.project(move(marks, state.w)).support
    start = Projection(support.restrict(state.w), support)
    fit = refine(objective, constraint, start, cg_iterations=0, rounds=FULL_SOLVE)
    if not fit.value < state.value:
        return state.at, state.support
    projection = constraint.project(fit.projection.point)
    return objective.evaluate(projection.point), projection.support


def _selection(objective: Objective, constraint: Constraint) -> CoordinateBudget:
    """Return the budget of coordinates of a problem that the solver takes; else raise `CapabilityError`."""
    selection = coordinate_budget(constraint, tuple(objective.shape))
    if selection is None:
        raise CapabilityError(
            f"BranchAndBound chooses single coordinates, which is not what {constraint} does; use WorkingSet() or "
            "HardThresholdingPursuit(), which prove nothing"
        )
    if not objective.traits.quadratic:
        raise CapabilityError(
            "BranchAndBound needs a quadratic objective, such as squared loss; use WorkingSet() for other losses, and "
            "the lower bound of the certificate"
        )
    if selection.bounds is not None:
        raise CapabilityError("BranchAndBound takes no bounds on coefficients; use WorkingSet(), or leave them out")
    if objective.shape[0] > _MOST:
        raise CapabilityError(
            f"BranchAndBound keeps a matrix of {objective.shape[0]} x {objective.shape[0]} numbers; it takes at most "
            f"{_MOST} coordinates: use WorkingSet(), or choose among fewer"
        )
    return selection
