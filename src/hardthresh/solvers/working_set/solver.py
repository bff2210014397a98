"""The working-set solver: local search on the Gram matrix of a few columns, among which all others are screened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar, cast

import numpy as np

from hardthresh.core.checking import checked_integer, checked_number, checked_word, without_overflow_warnings
from hardthresh.core.constraint import Constraint, CoordinateBudget, RowBudget, coordinate_budget
from hardthresh.core.errors import CapabilityError, NotFiniteError
from hardthresh.core.meter import Meter
from hardthresh.core.objective import LinearObjective, Objective, RowObjective, SmoothObjective, require
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
from hardthresh.solvers.start import starting_point

from .effort import EFFORTS
from .iteration import Iteration
from .rows import next_row_states, rows_state
from .state import WorkingState


@register("solver", "working_set", lambda: [WorkingSet(effort=effort) for effort in EFFORTS])
@dataclass(frozen=True, slots=True)
class WorkingSet(Solver):
    r"""Local search on the Gram matrix of a few columns: the default for linear models with at most k features.

    The solver keeps a working set of columns. On its Gram matrix, adding, dropping and exchanging columns are rank-one
    updates of a tableau, for which other methods need a data pass. Data passes are only needed to screen the other
    columns: column j joins the working set if its score :math:`g_j^2 / 2H_{jj}`, the decrease of the quadratic model of
    f when column j alone is added, is above a share of a reference score.

    1. Forward path: screen at the null model, where the reference score is 0. Add the column of the working set that
       lowers the quadratic model of f most, and at checkpoints of 4, 10, 25, ... columns compute the gradient and
       screen; the reference score is that of the best column inside that is not chosen.
    2. Prefetch, for a quadratic only, at the last checkpoint below k: fit a model as large as the next checkpoint,
       whatever k is, and screen at its gradient. From here on the reference score is that of the least useful chosen
       column, as if it were not chosen. Then divide the chosen columns into four parts, and screen at the fits without
       each part: a column that could replace one of the part has a high score there, and a low one while that column is
       chosen.
    3. Reach the budget, by sweeps over numbers of columns from k/1.6 to 1.6k: go from each number to the next larger
       one by the best addition, exchange one column for another as long as that lowers the model, and so on; then back
       from each number by the cheapest removals and exchanges. For a quadratic, then make add-drop moves at k: add k/10
       columns and drop as many, and the other way round, then k/4, k/2, k and 2k. Leave out each of the 16 cheapest
       columns in turn, search without it by additions and exchanges, and then with it. Sweep up and down again from
       each number of columns at which a better model was found.
    4. Recheck: compute the gradient. If a column outside has more than 0.4 of the reference score, or if f is not
       quadratic, screen as in step 2 at the present support, and repeat the search. Stop when it does not lower f.

    A quadratic of no more than 250 + 10k columns, in double precision, has all of them in its working set from the
    beginning, which takes less time than to screen them: steps 1 and 2 are left out, and so is step 4 if the run has no
    starting point and "thorough" does not ask for it.

    If a pass over the data is expensive (see `Traits`), the forward path of a quadratic goes to k without checkpoints,
    with the columns that were screened at the null model. All checkpoints are then screened in one pass, and so are all
    fits of step 2, so that a run takes 4 to 7 passes instead of 6 to 12.

    With a starting point w0 only step 4 is done.

    If f is a `LinearModel` that is not quadratic, and its refits are cheap, :math:`n k^2 \le 2 \cdot 10^5`, the run is
    a search by refits: the forward path adds the column that the quadratic model at the minimiser on those before it
    says is best, and every support is refitted by Newton steps on f itself. Once the budget is used, columns are
    exchanged and the others screened. Then columns are let in at the minimisers without each of four parts, or all of
    them if there are at most 750, and the search is a deep one: it begins again from nothing and from the columns that
    are best alone, sweeps from k/1.6 to 1.6k columns, adds and drops k/2 and then k columns, and replaces each chosen
    column in turn. Up to :math:`n d k = 4 \cdot 10^5` all columns are searched deeply from the beginning.

    For several outputs and at most k rows of a matrix (a `RowObjective` and `RowSparsity`) the moves are the same on a
    Gram matrix with several right-hand sides; a row is chosen for all outputs at once. Around a point W the model is

    .. math:: f(W + D) \approx f(W) + \langle \nabla f(W), D \rangle
              + \tfrac{1}{2} \mathrm{tr} \bigl( A D^\top G D \bigr)

    for the Gram matrix G of the columns and the weighted mean A of the second derivatives of the examples in their
    outputs. With :math:`A = E \, \mathrm{diag}(s) E^\top` it is least squares in
    :math:`D E \, \mathrm{diag}(s)^{1/2}`, so that a search costs little more than for one output. For squared errors
    the model is f itself; for other losses each answer of a search is refitted by Newton steps with the exact second
    derivatives, and accepted only if f falls. There are no searches by refits and no final exchanges. Answers of the
    multinomial loss add up to 0 over the classes.

    For any other f that is not quadratic, and in the first step from a w0, the Gram matrix is the Hessian at the
    present point. The result of each search is refitted, and accepted only if f itself falls. Far away the Hessian may
    be another one, as where columns nearly separate two classes. If refits are cheap or the effort is "thorough", and
    f rises by far more than the model says when the less useful half of the columns is dropped, step 4 ends with a deep
    search.

    Where coefficients have bounds, those that meet one are held there, and move again once the others allow it: every
    fit is the minimum within the bounds on its columns. Signs are the bounds 0 and infinity.

    Where most losses of a `LinearModel` have no curvature, as for residuals beyond the delta of the Huber loss, the
    Hessian is that of a few examples. A run that would end there with fewer than k columns searches once more with the
    bound of the second derivatives instead of all of them: f is nowhere above that model.

    Parameters
    ----------
    effort : {"fast", "balanced", "thorough"}
        "fast" admits fewer columns to the working set, screens at a fit of 0.64 times the next checkpoint instead of at
        fits without a part, rechecks for a score above 0.8 of the reference score only, sweeps from k/1.4 to 1.4k
        columns, makes no add-drop moves and leaves out no column, and never searches by refits;
        `hardthresh.selection.path` uses it. "thorough" admits more columns, prefetches three times, leaves out each of
        eight parts, sweeps from k/2 to 2k columns, adds and drops ten numbers of columns, leaves out each of 64
        columns, repeats step 4 until nothing lowers f, always searches deeply if f is not quadratic, and finally
        considers exchanges of the 16 least useful features for all others.
    tol : float
        Decrease of f, > 0, that counts as progress, relative to the larger of :math:`|f|` and the decrease of f since
        the null model. A stage of the forward path, from one checkpoint to the next, that lowers f by no more also ends
        the run: then the point has fewer than k columns, and the message of the result says so.

    Raises
    ------
    CapabilityError
        By `check`, for a constraint other than "at most k coordinates", with or without bounds, and "at most k rows";
        use `HardThresholdingPursuit` for these.

    Notes
    -----
    The solver needs no step size and no smoothness constant. Cost: two data passes, one for each checkpoint below k,
    five to prefetch (four of them in one product with the data), and five for each recheck that searches; in all 9 to
    20, plus up to five for each deep search. The Gram matrix has up to about 10k + 1000 columns. If all columns are in
    the working set, the cost is one pass each for the null model, the curvature, the Gram matrix and the point found.
    Runs with different k share the forward path, except for the last checkpoint, and the sweeps (see the method
    `path`). Guarantee: monotone; when the run has converged, the point is minimal on its support, and for a quadratic
    no exchange within the working set improves it, unless the run ended on the forward path (see `tol`). The result
    need not be a global minimum (heuristic).

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
        checked_word("effort", self.effort, EFFORTS)
        checked_number("tol", self.tol, above=0.0)

    @property
    def requires(self) -> type:
        return SmoothObjective

    def stopping(self, tol: float) -> StopRule:
        return Settled()

    def check(self, objective: Objective, constraint: Constraint) -> None:
        of_rows = isinstance(constraint.structure(tuple(objective.shape)), RowBudget)
        require(objective, RowObjective if of_rows else LinearObjective, by=type(self).__name__)
        selection_of(objective, constraint)

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> WorkingState:
        selection = selection_of(objective, constraint)
        if isinstance(selection, RowBudget):
            return rows_state(cast(RowObjective, objective), constraint, selection, w0, seed)
        at, projection = starting_point(objective, constraint, w0)
        return WorkingState(
            at=at,
            support=projection.support,
            seed=seed,
            curvature=cast(LinearObjective, objective).hessian_diag(at),
            checkpoint=0 if w0 is None else None,  # None: not on the forward path
        )

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> WorkingState:
        (after,) = self.advance_all(objective, [constraint], [cast(WorkingState, state)])
        return after

    def advance_all(
        self, objective: Objective, constraints: Sequence[Constraint], states: Sequence[WorkingState]
    ) -> list[WorkingState]:
        """Return the next states of several runs on one objective, for little more than the cost of one.

        Runs with different budgets share the Gram matrix, one product with the data for all their gradients, and, while
        they are at the same state of the forward path, the path. A run that leaves the path before others keeps its
        state until the last of them leaves it.
        """
        selections = [selection_of(objective, constraint) for constraint in constraints]
        if not all(_same_but_for_budget(selections[0], other) for other in selections[1:]):
            # `advance` calls this method for one run, which has nothing to differ from
            return [self.advance(objective, c, state) for c, state in zip(constraints, states, strict=True)]
        budgets = [selection.budget for selection in selections]
        gram = max((state.gram for state in states), key=lambda gram: gram.columns.size)  # all are of one Hessian
        effort, first = EFFORTS[self.effort], selections[0]
        if isinstance(first, RowBudget):
            return next_row_states(effort, self.tol, cast(RowObjective, objective), constraints, states, gram)
        linear = cast(LinearObjective, objective)
        return Iteration(effort, self.tol, linear, constraints, first, budgets, states, gram).next_states()

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
        states: Sequence[WorkingState] | None = None,
    ) -> list[Result]:
        """Minimise an objective over each of several sets, with shared data passes.

        Parameters
        ----------
        objective :
            As in `minimize`.
        constraints : sequence of Constraint
            The sets. If f is quadratic, the answers may differ from those that `minimize` gives for each alone, because
            the runs share their working set and their sweeps over the budgets.
        stop, max_iter, tol, progress, seed :
            As in `minimize`.
        states : sequence of WorkingState, optional
            The state in which each run begins; default: at the null model.

        Returns
        -------
        list of Result
            In the order of the constraints. Passes and seconds of each run are counted from the common start to its
            end, including the share of the other runs.

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
            begun = self._first_states(runners, seed) if states is None else states
            states = [*begun]
            records = [Record(runner, state, began) for runner, state in zip(runners, states, strict=True)]
            active = moved = list(range(len(runners)))
            try:
                while True:
                    for run in moved:
                        records[run].add(states[run])
                    for run in moved:
                        try:
                            records[run].judge(rule)
                        except NotFiniteError as error:
                            records[run].end(Status.DIVERGED, f"{error}, after iteration")
                    active = [run for run in active if records[run].ended is None]
                    if not active:
                        break
                    before = list(states)
                    active = self._advance_runs(active, runners, states, records)
                    moved = [run for run in active if states[run] is not before[run]]  # the others wait for these
                    report(f"{len(active)} runs")
            except KeyboardInterrupt:
                for run in active:
                    records[run].end(Status.INTERRUPTED, "interrupted at iteration")
        return [record.result() for record in records]

    @without_overflow_warnings
    def _first_states(self, runners: Sequence[Runner], seed: int) -> list[WorkingState]:
        """Return the start state of each run; those whose sets differ in their budgets only share the null model."""
        checked_integer("seed", seed, 0)
        nulls: list[tuple[CoordinateBudget | RowBudget, WorkingState]] = []
        states = []
        for runner in runners:
            selection = selection_of(runner.objective, runner.constraint)
            null = next((state for other, state in nulls if _same_but_for_budget(selection, other)), None)
            if null is None:
                null = self.start(runner.metered, runner.constraint, None, seed)
                nulls.append((selection, null))
            states.append(null)
        return [runner.begun(null, null) for runner, null in zip(runners, states, strict=True)]

    @without_overflow_warnings
    def _advance_runs(
        self,
        active: list[int],
        runners: Sequence[Runner],
        states: list[WorkingState],
        records: Sequence[Record],
    ) -> list[int]:
        """Move the active runs to their next states, and end those that cannot be moved; return the others.

        If advancing them together raises `NotFiniteError`, each is advanced alone to find those that raise it.
        """
        metered = runners[active[0]].metered
        try:
            constraints = [runners[run].constraint for run in active]
            after = self.advance_all(metered, constraints, [states[run] for run in active])
        except NotFiniteError as error:
            if len(active) > 1:
                return [run for one in active for run in self._advance_runs([one], runners, states, records)]
            records[active[0]].end(Status.DIVERGED, f"{error}, after iteration")
            return []
        for run, state in zip(active, after, strict=True):
            if state is not states[run]:
                states[run] = runners[run].moved(states[run], state)
        return active


def _same_but_for_budget(a: CoordinateBudget | RowBudget, b: CoordinateBudget | RowBudget) -> bool:
    """Return whether two selections are equal, or differ in their budgets only."""
    if isinstance(a, RowBudget) or isinstance(b, RowBudget):
        return type(a) is type(b) and a.free == b.free
    if a.bounds is None or b.bounds is None:
        return a.free == b.free and a.bounds is None and b.bounds is None
    return a.free == b.free and bool(np.array_equal(a.bounds, b.bounds))


def selection_of(objective: Objective, constraint: Constraint) -> CoordinateBudget | RowBudget:
    """Return the selection of single coordinates, or rows, that a constraint is."""
    structure = constraint.structure(tuple(objective.shape))
    if isinstance(structure, RowBudget):
        return structure
    selection = coordinate_budget(constraint, tuple(objective.shape))
    if selection is None:
        raise CapabilityError(
            f"WorkingSet chooses single coordinates, which is not what {constraint} does; use HardThresholdingPursuit()"
        )
    return selection
