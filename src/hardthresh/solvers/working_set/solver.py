"""The working set: search the Gram matrix of the most promising columns, read the data only to find more of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import ceil, inf
from numbers import Real
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from hardthresh.arrays import gather, namespace, to_numpy
from hardthresh.core.checking import checked_integer, without_overflow_warnings
from hardthresh.core.constraint import Constraint, CoordinateBudget, coordinate_budget
from hardthresh.core.errors import CapabilityError, InvalidInputError, NotFiniteError
from hardthresh.core.meter import Meter
from hardthresh.core.objective import Evaluation, LinearObjective, Objective
from hardthresh.core.progress import progress_line
from hardthresh.core.record import Record, stopping_rule
from hardthresh.core.registry import register
from hardthresh.core.result import Result, Status
from hardthresh.core.runner import Runner
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.stopping import Settled, StopRule
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array
from hardthresh.solvers.exchange import rank_exchanges
from hardthresh.solvers.start import starting_point

from .effort import EFFORTS, most_at_mark
from .model import Pool, promising, thresholds, union
from .search import grow
from .state import Block, Found, WorkingState, first_better, with_fewer_columns, without_curvature

TRIES = 10
"""How many exchanges are tried on a loss that is not quadratic, where the model says that none helps."""


@register("solver", "working_set", lambda: [WorkingSet(effort=effort) for effort in EFFORTS])
@dataclass(frozen=True, slots=True)
class WorkingSet(Solver):
    r"""Local search on the Gram matrix of promising columns: the default for linear models with at most k features.

    Adding, dropping and exchanging columns costs a rank-one update on a tableau of the working set, against a data pass
    in other methods. The data are read to find the columns that belong into the working set:

    1. walk: from the null model add, greedily, the column that lowers the quadratic model of f most; at 4, 10, 25, ...
       columns compute the gradient, and let the columns in that promise most,
       :math:`g_j^2 / 2H_{jj} \ge \text{share} \times` what the best column inside still promises;
    2. look ahead: for a quadratic, compute the gradient at budgets that all k between two of these numbers share,
       and let in what promises a share of what the least useful chosen column would promise from outside;
    3. arrive at k: on the way out, or on the way back from up to three times as many columns, whichever is better;
       exchange one column for another as long as that helps; of a quadratic, then swing: add k/4 columns and drop as
       many, and the other way round;
    4. compute the gradient; if a column outside promises nearly (0.8 of) what the least useful chosen one would, or the
       loss is not quadratic, let in whatever promises a share of it, exchange, and swing. Repeat until nothing helps.

    For a loss that is not quadratic the Gram matrix is the Hessian at the present point, and an answer of the search is
    refitted by Newton steps and accepted only if f itself falls.

    Parameters
    ----------
    effort : {"fast", "balanced", "thorough"}
        "fast" looks ahead once, makes no swings, and for a quadratic leaves out step 4; "thorough" lets more columns
        in, looks ahead three times, swings further, repeats step 4 until nothing helps even where no column outside
        promises much, and ends by looking at the exchange of the 16 least useful features for any other.
    tol : float
        Relative decrease of f, > 0, that counts as progress.

    Raises
    ------
    CapabilityError
        By `check`, for a constraint that is not "at most k coordinates, each unbounded or of one sign": then
        `HardThresholdingPursuit` is the solver.

    Notes
    -----
    Needs no step size and no smoothness constant. Cost: two passes, one for each of 4, 10, 25, ... below k, two to
    look ahead, and one for each round: 7 to 12; memory for the Gram matrix of about 4k + 300 columns. Before it
    arrives at k nothing that it does depends on k, but for the last of these numbers below it: runs with other budgets
    can share it (`path`). Guarantee: monotone; when it has settled, the point is minimal on its support,
    and for a quadratic no exchange within the working set improves it. Global optimality is not claimed (heuristic).

    References
    ----------
    The moves are those of forward selection, backward elimination and exchange (Efroymson 1960; Miller, *Subset
    Selection in Regression*, 2002), the tableau the sweep operator's (Goodnight 1979). Their combination is ours.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> from hardthresh.solvers import WorkingSet, minimize
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 500))
    >>> y = X[:, [3, 50, 400]] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(100)
    >>> minimize(LinearModel(X, y), Sparsity(3), WorkingSet()).support
    Coordinates([3, 50, 400])
    """

    effort: str = "balanced"
    tol: float = 1e-8

    state_type: ClassVar[type[State]] = WorkingState

    def __post_init__(self) -> None:
        if not isinstance(self.effort, str) or self.effort not in EFFORTS:
            raise InvalidInputError(f"effort must be one of {', '.join(EFFORTS)}; got {self.effort!r}")
        tol: Any = self.tol
        if not (isinstance(tol, Real) and float(tol) > 0):
            raise InvalidInputError(f"tol must be > 0, got {self.tol!r}")

    @property
    def requires(self) -> type:
        return LinearObjective

    def stopping(self, tol: float) -> StopRule:
        return Settled()

    def check(self, objective: Objective, constraint: Constraint) -> None:
        Solver.check(self, objective, constraint)
        _selection(objective, constraint)

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> WorkingState:
        assert isinstance(objective, LinearObjective)
        at, projection = starting_point(objective, constraint, w0)
        return WorkingState(
            at=at,
            support=projection.support,
            seed=seed,
            bend=objective.hessian_diag(at),
            walked=0 if w0 is None else None,
        )

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> WorkingState:
        assert isinstance(objective, LinearObjective)
        assert isinstance(state, WorkingState)
        return self.advance_all(objective, [constraint], [state])[0]

    @serial_blas()
    def path(
        self,
        objective: Objective,
        constraints: Sequence[Constraint],
        *,
        stop: StopRule | None = None,
        max_iter: int = 1000,
        tol: float = 1e-8,
        progress: bool = False,
        seed: int = 0,
    ) -> list[Result]:
        """Minimise an objective over each of several sets, sharing what the runs have in common.

        Parameters
        ----------
        objective :
            As in `minimize`.
        constraints : sequence of Constraint
            The sets; the answer for each is the one that `minimize` gives for it alone, up to rounding.
        stop, max_iter, tol, progress, seed :
            As in `minimize`.

        Returns
        -------
        list of Result
            In the order of the constraints. Passes and seconds count from the common start until the run ended, the
            other runs' share included.

        Raises
        ------
        CapabilityError, InvalidInputError
            As in `minimize`.
        """
        rule = stopping_rule(self, stop, max_iter, tol)
        if not constraints:
            return []
        began, meter = perf_counter(), Meter()
        with progress_line(progress, type(self).__name__, max_iter) as report:
            runners = [Runner(objective, constraint, self, meter) for constraint in constraints]
            states = self._first_states(runners, seed)
            records = [Record(runner, state, began) for runner, state in zip(runners, states, strict=True)]
            going = list(range(len(runners)))
            try:
                while True:
                    for run in going:
                        records[run].add(states[run])
                    for run in going:
                        records[run].judge(rule)
                    going = [run for run in going if records[run].ended is None]
                    if not going:
                        break
                    after = self._advance_runs([runners[run] for run in going], [states[run] for run in going])
                    for run, state in zip(going, after, strict=True):
                        states[run] = state
                    report(f"{len(going)} runs")
            except NotFiniteError as error:
                for run in going:
                    records[run].end(Status.DIVERGED, f"{error}, after iteration")
            except KeyboardInterrupt:
                for run in going:
                    records[run].end(Status.INTERRUPTED, "interrupted at iteration")
        return [record.result() for record in records]

    @without_overflow_warnings
    def _first_states(self, runners: Sequence[Runner], seed: int) -> list[WorkingState]:
        """Return the start state of each run; those whose sets differ in their budgets only share the null model."""
        checked_integer("seed", seed, 0)
        nulls: list[tuple[CoordinateBudget, WorkingState]] = []
        states = []
        for runner in runners:
            selection = _selection(runner.objective, runner.constraint)
            null = next((state for other, state in nulls if _alike(selection, other)), None)
            if null is None:
                null = self.start(runner.metered, runner.constraint, None, seed)
                nulls.append((selection, null))
            states.append(null)
        return [runner.begun(null, null) for runner, null in zip(runners, states, strict=True)]

    @without_overflow_warnings
    def _advance_runs(self, runners: Sequence[Runner], states: Sequence[WorkingState]) -> list[WorkingState]:
        """Return the next state of each run."""
        metered = runners[0].metered
        assert isinstance(metered, LinearObjective)
        after = self.advance_all(metered, [runner.constraint for runner in runners], states)
        return [runner.moved(old, new) for runner, old, new in zip(runners, states, after, strict=True)]

    def advance_all(
        self, objective: LinearObjective, constraints: Sequence[Constraint], states: Sequence[WorkingState]
    ) -> list[WorkingState]:
        """Advance several runs on one objective at the price of little more than one.

        Runs with different budgets share the Gram matrix, one product with the data for all their gradients, and, while
        they are at the same state of the walk, the walk.
        """
        selections = [_selection(objective, constraint) for constraint in constraints]
        if any(not _alike(selections[0], other) for other in selections[1:]):
            return [self.advance(objective, c, state) for c, state in zip(constraints, states, strict=True)]
        runs_at: dict[tuple[int, int | None], list[int]] = {}  # runs that walk together; each of the others is alone
        for run, state in enumerate(states):
            if state.walked is not None or self._insists(objective, selections[0], state):
                runs_at.setdefault((id(state.at), run if state.walked is None else None), []).append(run)
        blocks = []
        for runs in runs_at.values():
            state = states[runs[0]]
            budgets = {run: selections[run].budget for run in runs}
            blocks.append(Block(state, budgets, self._working_set(objective, selections[0], state)))
        found: dict[int, Found] = {}
        if blocks:
            pool = max((state.pool for state in states), key=lambda pool: pool.columns.size)
            pool = _shared_pool(objective, blocks, pool)
            for block in blocks:
                found |= self._walk_on(objective, constraints, selections[0], block, pool)
            pool = self._look_ahead(objective, selections[0], blocks, pool)
            for block in blocks:
                found |= self._arrive(objective, constraints, selections[0], block, pool)
                better, pool = self._improve(objective, constraints, selections[0], block, pool)
                found |= better
                block.forget()
        evaluations = _evaluate(objective, found.values())
        reached: dict[int, tuple[Found, Evaluation]] = {}  # runs that have found the same share it
        for run, one in found.items():
            if id(one) not in reached:
                at = evaluations[id(one)]
                reached[id(one)] = with_fewer_columns(objective, constraints[run], states[run], one, at)
        return [
            state.move(*reached[id(found[run])]) if run in found else state.settle() for run, state in enumerate(states)
        ]

    def _working_set(self, objective: LinearObjective, selection: CoordinateBudget, state: WorkingState) -> np.ndarray:
        """Return the working set of a state, with the columns outside that promise enough."""
        inside = union(state.members, to_numpy(state.support.indices))
        size = state.support.indices.shape[0]
        most = max(32, size) if state.walked is None else most_at_mark(size)
        bend = state.bend * _bend_since_start(objective, state)
        bar = max(EFFORTS[self.effort].share * state.bar, thresholds(state, self.tol)[0])
        return union(inside, promising(state.at.gradient, bend, inside, selection.signs, bar, most))

    def _insists(self, objective: LinearObjective, selection: CoordinateBudget, state: WorkingState) -> bool:
        """Return whether the gradient at the point of a run that has arrived promises enough for it to go on."""
        insist = EFFORTS[self.effort].insist
        if insist == 0.0 or not objective.traits.quadratic or state.members.size == 0:
            return True
        least, negligible = thresholds(state, self.tol)
        if negligible < 0.5 * state.precision:  # it came from so far away that the search was coarse
            return True
        xp, support = namespace(state.bend), state.support.indices
        slope, bend = gather(state.at.gradient, support), gather(state.bend, support)
        if bool(xp.any(0.5 * slope * slope > negligible * bend)):  # rounding has kept it from the minimum
            return True
        if insist == inf:
            return False
        inside = union(state.members, to_numpy(state.support.indices))
        bar = max(insist * state.bar, least)
        return promising(state.at.gradient, state.bend, inside, selection.signs, bar, 1).size > 0

    def _walk_on(
        self,
        objective: LinearObjective,
        constraints: Sequence[Constraint],
        selection: CoordinateBudget,
        block: Block,
        pool: Pool,
    ) -> dict[int, Found]:
        """Return where the greedy walk leads the runs that have not come to their budgets."""
        runs = block.walking_on
        if not runs:
            return {}
        mark = block.mark
        assert mark is not None
        model = block.model(objective, selection, pool, self.tol)
        walker = model.tableau.copy()
        grow(walker, walker.free + mark, model.least)
        widest = max(runs, key=lambda run: block.budgets[run])
        better = first_better(objective, constraints[widest], mark, block.state, model, [walker])
        if better is None:
            return {}
        return dict.fromkeys(runs, replace(better, walked=mark, bar=walker.most_promising()))

    def _look_ahead(
        self, objective: LinearObjective, selection: CoordinateBudget, blocks: Sequence[Block], pool: Pool
    ) -> Pool:
        """Let in the columns that promise enough at the anchor, the same for all budgets that leave the walk together.

        All gradients of a look, those of runs that left the walk elsewhere included, are one product with the data.
        """
        if not objective.traits.quadratic:
            return pool
        for share in EFFORTS[self.effort].looks:
            looking = [block for block in blocks if block.arriving and block.is_new_at(share)]
            if not looking:
                continue
            models = [block.model(objective, selection, pool, self.tol) for block in looking]
            bests = [model.best(b.anchor(share), b.anchor(share)) for b, model in zip(looking, models, strict=True)]
            points = [model.point(best, blocks[0].state.w) for model, best in zip(models, bests, strict=True)]
            for block, model, best, at in zip(looking, models, bests, objective.evaluate_many(points), strict=True):
                bar = max(EFFORTS[self.effort].share * model.bar(best, block.anchor(share)), model.least)
                most = max(32, ceil(1.5 * block.anchor(share)))
                new = promising(at.gradient, block.state.bend, block.members, selection.signs, bar, most)
                block.looked[share] = block.members
                block.members = union(block.members, new)
            pool = _shared_pool(objective, blocks, pool)
        return pool

    def _arrive(
        self,
        objective: LinearObjective,
        constraints: Sequence[Constraint],
        selection: CoordinateBudget,
        block: Block,
        pool: Pool,
    ) -> dict[int, Found]:
        """Return what each run that leaves the walk here finds at its budget, on the way out and on the way back."""
        if not block.arriving:
            return {}
        effort, runs_at = EFFORTS[self.effort], block.arriving
        model = block.model(objective, selection, pool, self.tol)
        found: dict[int, Found] = {}
        for budget, way in model.ways(runs_at, block.furthest):
            if objective.traits.quadratic:
                tries = [model.swings(way, budget, effort.swings)]
            else:  # the model may prefer what f does not: what only adds columns always helps
                filled = model.tableau.copy()
                grow(filled, filled.free + budget, model.least)
                tries = [way, filled]
            runs = runs_at[budget]
            better = first_better(objective, constraints[runs[0]], budget, block.state, model, tries)
            if better is not None:
                found |= dict.fromkeys(runs, replace(better, done=objective.traits.quadratic and effort.insist == inf))
        return found

    def _improve(
        self,
        objective: LinearObjective,
        constraints: Sequence[Constraint],
        selection: CoordinateBudget,
        block: Block,
        pool: Pool,
    ) -> tuple[dict[int, Found], Pool]:
        """Return a better point for a run that has arrived at its budget, if there is one, and the pool after that."""
        if block.mark is not None:
            return {}, pool
        effort, state = EFFORTS[self.effort], block.state
        ((run, budget),) = block.budgets.items()
        constraint = constraints[run]
        model = block.model(objective, selection, pool, self.tol)
        filled = model.tableau.copy()
        grow(filled, filled.free + budget, model.least)
        descended = model.descend(filled, budget)
        tries = [model.swings(descended, budget, effort.swings)]
        if not objective.traits.quadratic:  # f may fall where the model says it does not, quite
            tries += [descended, filled, model.tableau, *model.close_exchanges(filled)]
        better = first_better(objective, constraint, budget, state, model, tries)
        better = better or without_curvature(objective, constraint, state, model)
        if better is None and effort.exchanges > 0 and constraint.is_full(state.support):
            ranked = rank_exchanges(
                objective, constraint, state.at, state.support, removals=effort.exchanges, count=4 * effort.exchanges
            )
            block.members = union(block.members, np.unique([exchange.added for exchange in ranked]).astype(np.int64))
            pool = _shared_pool(objective, [block], pool)
            model = block.model(objective, selection, pool, self.tol)
            tries = [model.descend(model.tableau, budget)]
            if not objective.traits.quadratic:
                exchanged = (model.exchanged(one.removed, one.added) for one in ranked[:TRIES])
                tries += [tableau for tableau in exchanged if tableau is not None]
            better = first_better(objective, constraint, budget, state, model, tries)
        return ({} if better is None else {run: better}), pool


def _shared_pool(objective: LinearObjective, blocks: Sequence[Block], pool: Pool) -> Pool:
    """Return a pool that has the columns of several working sets; empty unless the objective is quadratic."""
    if not objective.traits.quadratic:
        return Pool()
    return pool.including(objective, blocks[0].state.at, reduce(union, (block.members for block in blocks)))


def _evaluate(objective: LinearObjective, found: Iterable[Found]) -> dict[int, Evaluation]:
    """Return the objective at each distinct point: by one product for all where nothing is known of them."""
    distinct = {id(one): one for one in found}
    if len(distinct) == 1 or any(one.prediction is not None for one in distinct.values()):
        return {key: objective.evaluate(one.projection.point, one.prediction) for key, one in distinct.items()}
    points = [one.projection.point for one in distinct.values()]
    return dict(zip(distinct, objective.evaluate_many(points), strict=True))


def _alike(a: CoordinateBudget, b: CoordinateBudget) -> bool:
    """Return whether two selections differ in their budgets only."""
    if a.signs is None or b.signs is None:
        return a.free == b.free and a.signs is b.signs
    return a.free == b.free and bool(np.array_equal(a.signs, b.signs))


def _bend_since_start(objective: LinearObjective, state: WorkingState) -> float:
    """Return how the curvature has changed since the start, on average over the support."""
    support = state.support.indices
    if objective.traits.quadratic or support.shape[0] == 0:
        return 1.0
    xp = namespace(state.bend)
    now = objective.columns(support).hessian_diag(state.at)
    before = float(xp.mean(gather(state.bend, support)))
    return float(xp.mean(now)) / before if before > 0.0 else 1.0


def _selection(objective: Objective, constraint: Constraint) -> CoordinateBudget:
    """Return which single coordinates may be chosen."""
    selection = coordinate_budget(constraint, tuple(objective.shape))
    if selection is None:
        raise CapabilityError(
            f"WorkingSet chooses single coordinates, unbounded or of one sign, which is not what {constraint} does; "
            "use HardThresholdingPursuit()"
        )
    return selection
