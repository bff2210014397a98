"""The search for a proof that a set of features is the best of its size, and its continuation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from time import perf_counter
from typing import Any

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.core.checking import checked_number
from hardthresh.core.constraint import Constraint, CoordinateBudget
from hardthresh.core.errors import CapabilityError, InvalidInputError, format_value
from hardthresh.core.gap import PROVED, relative_gap
from hardthresh.core.minimize import minimize
from hardthresh.core.objective import Evaluation, value_rounding
from hardthresh.core.progress import progress_line
from hardthresh.core.result import Result, Status
from hardthresh.core.state import State
from hardthresh.core.stopping import Seconds
from hardthresh.core.typing import Array
from hardthresh.solvers.branch_and_bound import BranchAndBound
from hardthresh.solvers.branch_and_bound.solver import BranchAndBoundState

from .fingerprint import ProblemFingerprint
from .lower_bounds import lower_bound
from .proof import Proof
from .swap import listed, swap_certificate

_ROOT_ROUNDS = 50
"""Limit of the data passes of a bound that no search follows."""
_WITHOUT_BOUND = (
    "a bound needs a convex loss without a kink, and a ridge (alpha > 0) or more rows than columns (at most 512)"
)
_OF_A_RUN = ("seconds", "n_nodes", "lower_bound", "upper_bound")


def prove(
    objective: Any,
    constraint: Constraint,
    w: Array,
    *,
    time_limit: float | None = 60.0,
    resume: Proof | None = None,
    progress: bool = False,
    name: Callable[[int], str] = str,
    subject: str = "",
) -> Proof:
    """Try to prove that a point is the minimum of f over all supports of the same size.

    Parameters
    ----------
    objective : LinearObjective
        f.
    constraint : Constraint
        The set.
    w : array, shape (d,)
        The point.
    time_limit : float or None
        The seconds that the search may take, > 0; None for no limit.
    resume : Proof, optional
        An earlier proof of the same point, to be continued.
    progress : bool
        Whether to show a progress line.
    name : callable
        Returns the name of a coordinate, or of a group, from its number.
    subject : str
        A description of the point, if it is not a fitted model.

    Returns
    -------
    Proof
        The bounds; after Ctrl-C, those proved so far. If a better support was found, its point is that of the state of
        the proof.

    Raises
    ------
    InvalidInputError
        For a time limit that is not positive, or a proof of a problem with other data, weights, offsets, ridge, k or
        free coordinates.

    Notes
    -----
    Least squares with at most k coordinates is solved by `BranchAndBound`. For other losses, groups and bounds, only
    the bound of the root is computed (`lower_bound`), with at most 50 data passes.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import minimize
    >>> from hardthresh.certificates import prove
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> X = np.random.default_rng(0).standard_normal((50, 20))
    >>> f = LinearModel(X, X[:, 3] - X[:, 7])
    >>> prove(f, Sparsity(1), minimize(f, Sparsity(1)).w).status
    'proved to 1e-9 relative'
    """
    if time_limit is not None:
        checked_number("time_limit", time_limit, above=0.0, advice="None is for no limit")
    if resume is not None and not isinstance(resume, Proof):
        raise InvalidInputError(f"resume must be the Proof of an earlier call, got {format_value(resume)}")
    at = objective.evaluate(w)
    why = why_no_search(objective, constraint)
    reason = f"Only the bound of all sets together was computed: {why}" if why else ""
    if resume is not None and (reason or resume.state is None):
        raise InvalidInputError(f"there is no search to go on with: {reason or resume.reason}")
    if reason:
        return _root(objective, constraint, at, reason, subject)
    return _searched(objective, constraint, at, time_limit, resume, progress, name, subject)


def why_no_search(objective: Any, constraint: Constraint) -> str:
    """Return why branch and bound cannot search for a better support; empty if it can."""
    structure = constraint.structure(tuple(objective.shape))
    if not objective.traits.quadratic:
        why = "searches are for least squares"
    elif not isinstance(structure, CoordinateBudget):
        why = "searches choose single columns for one output: no groups, categorical features or several outputs"
    elif structure.bounds is not None:
        why = "searches take no bounds on coefficients"
    else:
        try:
            BranchAndBound().check(objective, constraint)
        except CapabilityError as error:
            why = str(error)
        else:
            return ""
    return why


def _root(objective: Any, constraint: Constraint, at: Evaluation, reason: str, subject: str) -> Proof:
    """Return what the bound of all supports together proves."""
    began = perf_counter()
    bound = lower_bound(objective, constraint, at, rounds=_ROOT_ROUNDS)
    seconds, known = perf_counter() - began, bound is not None
    gap = None if bound is None else relative_gap(at.value, bound, objective.lower_bound)
    columns = (seconds, 1, bound, at.value)
    return Proof(
        value=at.value,
        upper_bound=at.value,
        lower_bound=bound,
        gap=gap,
        proved=gap is not None and gap <= BranchAndBound().tol,
        n_nodes=int(known),
        seconds=seconds,
        history={key: np.array([x] if known else []) for key, x in zip(_OF_A_RUN, columns, strict=True)},
        reason=reason if known else f"There is no search and no bound: {_WITHOUT_BOUND}",
        subject=subject,
    )


def _searched(
    objective: Any,
    constraint: Constraint,
    at: Evaluation,
    time_limit: float | None,
    resume: Proof | None,
    progress: bool,
    name: Callable[[int], str],
    subject: str,
) -> Proof:
    """Return what branch and bound proves."""
    solver = BranchAndBound()
    budget = constraint.structure(tuple(objective.shape))
    assert isinstance(budget, CoordinateBudget)
    asked = _asked(objective, budget, resume)
    known = -np.inf if resume is None or resume.lower_bound is None else resume.lower_bound
    with _line(progress, time_limit) as seen:
        result = minimize(
            objective,
            constraint,
            solver,
            None if resume else at.point,
            stop=None if time_limit is None else Seconds(float(time_limit)),
            max_iter=sys.maxsize,
            callback=seen,
            state=None if resume is None else resume.state,
        )
    state = result.state
    assert isinstance(state, BranchAndBoundState)
    complete = result.status.converged
    waits = result.status is not Status.INTERRUPTED or state.n_nodes == 0  # the user, who does not want to
    root = lower_bound(objective, constraint, at) if waits and not (resume or complete) else None
    lower = max(known, state.lower_bound, -np.inf if root is None else root)
    upper = min(at.value, state.value)
    rounding = max(solver.tol * abs(upper), value_rounding(objective, state.at))
    reason = _ending(result)
    if lower > upper + rounding:  # never of exact numbers
        lower, reason = float(objective.lower_bound), f"{reason}, but the bounds are wrong by rounding"
    gap = relative_gap(upper, lower, objective.lower_bound)
    proved = complete and (gap <= PROVED or upper - lower <= rounding)
    if complete and not proved:
        names = swap_certificate(objective, constraint, state.at).undecided_names(name)
        which = f" ({listed(names)})" if names else ""
        reason += f", but rounding hides what some sets of nearly dependent features{which} reach"
    better = state.value < at.value - max(solver.tol * abs(at.value), objective.rounding(at))
    own = constraint.project(at.point).support
    same = better and set(to_numpy(budget.counted(state.support)).tolist()) == set(
        to_numpy(budget.counted(own)).tolist()
    )
    features = [name(j) for j in to_numpy(budget.counted(state.support)).tolist()] if better else []
    seconds = result.seconds + (resume.seconds if resume else 0.0)
    return Proof(
        value=at.value,
        upper_bound=upper,
        lower_bound=float(min(lower, upper)),  # above it by rounding at most
        gap=gap,
        proved=proved,
        n_nodes=state.n_nodes,
        seconds=seconds,
        history=_history(result, resume, at.value),
        reason=reason,
        features=tuple(features),
        same_features=same,
        subject=subject,
        state=state,
        problem=asked,
    )


def _asked(objective: Any, budget: CoordinateBudget, resume: Proof | None) -> ProblemFingerprint:
    """Return the fingerprint of a problem; raise `InvalidInputError` if the search to go on with is of another one."""
    asked = ProblemFingerprint.of(objective, budget)
    if resume is None:
        return asked
    if resume.problem is None:
        raise InvalidInputError("resume: this proof does not tell which problem it is about; leave resume out")
    other = resume.problem.difference(asked)
    if other:
        raise InvalidInputError(f"resume: this proof is {other}; leave resume out to begin anew")
    return asked


def _ending(result: Result) -> str:
    """Return why a search ended."""
    if result.status.converged:
        return "the search is complete"
    if result.status is Status.BUDGET:
        return "the time limit was reached"
    return result.message.partition(":")[0]


def _history(result: Result, resume: Proof | None, value: float) -> dict[str, np.ndarray]:
    """Return the columns of the history of a search, after those of the search that it goes on with."""
    of_run = {
        "seconds": result.history["seconds"],
        "n_nodes": result.history["n_nodes"],
        "lower_bound": result.history["lower_bound"],
        "upper_bound": np.minimum(result.history["value"], value),
    }
    if resume is None:
        return {name: np.array(column) for name, column in of_run.items()}
    of_run["seconds"] = of_run["seconds"] + resume.seconds
    return {name: np.concatenate([resume.history[name], column]) for name, column in of_run.items()}


@contextmanager
def _line(enabled: bool, time_limit: float | None) -> Iterator[Callable[[State], None]]:
    """Show a line that moves on every second; yields what takes the states of a search."""
    total = None if time_limit is None else ceil(time_limit)
    began, shown = perf_counter(), 0
    with progress_line(enabled, "seconds", total) as report:

        def seen(state: State) -> None:
            nonlocal shown
            while shown < perf_counter() - began and (total is None or shown < total):
                report(state.progress())
                shown += 1

        yield seen
