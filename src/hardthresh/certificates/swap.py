"""Is a sparse answer optimal against every single exchange of a chosen coordinate for another?"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan

import numpy as np

from hardthresh.arrays import as_double, namespace, to_numpy, top_k
from hardthresh.core.constraint import BlockBudget, Constraint, CoordinateBudget
from hardthresh.core.objective import Evaluation, LinearObjective, require
from hardthresh.core.schema import stored
from hardthresh.core.support import Support
from hardthresh.core.threads import serial_blas
from hardthresh.solvers.exchange import Exchange, try_exchanges
from hardthresh.solvers.exchange_model import ExchangeModel, Removal

WIDEST = 2048
"""The most columns that a group, or the support of a model of groups, may have: their Hessian takes 32 MB."""


@stored("certificate/swap")
@dataclass(frozen=True, slots=True)
class SwapCertificate:
    """The best single exchange that was found.

    Attributes
    ----------
    optimal : bool
        Whether no exchange that was looked at lowers the objective by more than `tolerance`; so also where there is
        none, or where none could be looked at: `complete` tells these apart.
    removed, added : int or None
        The best exchange of coordinates, or of the numbers of groups where whole groups are chosen; None when there is
        nothing to exchange.
    decrease : float
        By how much it lowers the objective after a refit, negative if it raises it; -inf when there is nothing to
        exchange.
    tried : int
        How many exchanges were refitted; all others were ranked below them by the quadratic model.
    complete : bool
        Whether all exchanges were looked at; only groups can be too wide for that.
    undecided : tuple of int
        Where `optimal`: coordinates, or numbers of groups, that are so nearly a combination of what is chosen that
        rounding decides whether an exchange of them helps; -1 stands for free coordinates. Copies are no such case.
    tolerance : float
        The decrease of the objective that does not count.
    refit : float
        By how much the quadratic model falls when the chosen coordinates themselves are refitted; nan if that was not
        looked at.
    """

    optimal: bool
    removed: int | None
    added: int | None
    decrease: float
    tried: int
    complete: bool = True
    undecided: tuple[int, ...] = ()
    tolerance: float = 0.0
    refit: float = nan


@serial_blas()
def swap_certificate(
    objective: LinearObjective,
    constraint: Constraint,
    at: Evaluation,
    *,
    tries: int = 10,
    tol: float = 1e-8,
    null_value: float = 0.0,
) -> SwapCertificate:
    r"""Look at every exchange of one chosen coordinate for one other, with a refit of all coefficients.

    The exchanges are ranked by the quadratic model of f (`hardthresh.solvers.exchange_model`), and the most promising
    are refitted on f itself.

    Parameters
    ----------
    objective : LinearObjective
        f, at least locally convex.
    constraint : Constraint
        The set; its free coordinates stay. Where it allows whole groups of coordinates, these are exchanged.
    at : Evaluation
        f at a point of the set.
    tries : int
        How many exchanges are refitted, >= 1.
    tol : float
        The relative decrease of f that counts.
    null_value : float
        f at the null model: what is lost in its rounding does not count either.

    Returns
    -------
    SwapCertificate

    Raises
    ------
    CapabilityError
        If the objective lacks an ability.

    Notes
    -----
    Cost: s + 1 data passes for a support of s coordinates, and little for each refit; for groups also the Hessian of
    each group. Groups of more than 2048 columns are not looked at, and neither is anything where the chosen groups have
    more together: `complete` is then False.

    An objective in float32 is looked at in double precision: its data count as exact, and only `tolerance` is that of
    float32.

    For the squared loss without bounds the model is exact, and "optimal" is a proof where all exchanges were looked at
    and none is `undecided`: no exchange of one for one lowers f by more than `tolerance`. The rounding of the model is
    part of that statement. It also holds where chosen coordinates depend on each other: one that the others make up for
    leaves at no cost, and all that are not chosen compete for its place. For other losses, or with bounds, it is a
    heuristic: the exchanges are ranked by the model.

    Examples
    --------
    Of two copies one can be exchanged for whatever helps most:

    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> f = LinearModel(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]), np.array([1.0, 2.0]))
    >>> found = swap_certificate(f, Sparsity(2), f.evaluate(np.array([0.75, 0.75, 0.0])))
    >>> found.optimal, found.added, round(found.decrease, 9)
    (False, 2, 0.125)
    """
    require(objective, LinearObjective, by="swap_certificate")
    tolerance = tol * abs(at.value) + _rounding(objective, at, null_value)
    exact = objective.double()  # rounding in less would hide what columns bring that are close to each other
    if exact is not objective:
        objective, at = exact, exact.evaluate(as_double(at.point))
    support = constraint.project(at.point).support
    numbers, chosen = _units(constraint, support, at.point.shape[0])
    widths = np.bincount(numbers[numbers >= 0], minlength=1)
    indices = constraint.free_part(at.point, at.gradient, support).indices  # what a bound holds does not move
    in_blocks = isinstance(constraint.structure(tuple(at.point.shape)), BlockBudget)
    if indices is None or (in_blocks and indices.shape[0] > WIDEST):
        return SwapCertificate(True, None, None, -inf, 0, complete=False, tolerance=tolerance)
    model, complete = ExchangeModel(objective, at, indices), not np.any(widths > WIDEST)
    removals = [
        (int(number), model.removal(columns))
        for number in chosen
        if np.isin(columns := np.flatnonzero(numbers == number), to_numpy(indices)).all()
    ]
    joins = np.where(np.isin(numbers, chosen) | (widths[numbers] > WIDEST), -1, numbers)
    promising, in_doubt = _most_promising(model, removals, joins, tries, tolerance)
    if not promising:
        return SwapCertificate(True, None, None, -inf, 0, complete, (), tolerance, model.refit)
    refitted = try_exchanges(objective, constraint, at, support, promising, cg_iterations=0, rounds=25)
    decrease, best = max(((at.value - fit.value, exchange) for exchange, fit in refitted), key=lambda one: one[0])
    optimal = not decrease > tolerance
    undecided: tuple[int, ...] = ()
    if optimal and at.value - objective.lower_bound > tolerance:
        undecided = tuple(np.union1d(numbers[list(model.nearly_dependent)], in_doubt).tolist())
    return SwapCertificate(
        optimal, best.removed, best.added, decrease, len(promising), complete, undecided, tolerance, model.refit
    )


def _most_promising(
    model: ExchangeModel, removals: list[tuple[int, Removal]], joins: np.ndarray, tries: int, tolerance: float
) -> tuple[list[Exchange], np.ndarray]:
    """Return the exchanges that decrease the model most, and what else might, within its rounding, decrease f."""
    ranked: list[tuple[Exchange, float]] = []
    in_doubt = np.zeros(joins.size, dtype=bool)
    for candidates in model.candidates(joins, find_copies=True):
        most = model.most(candidates)  # no exchange lowers f by more than the addition without the removal
        for removed, removal in removals:
            decreases, bounds, easy = model.bounded_decreases(candidates, removal)
            bounds = np.minimum(bounds, most)
            bounds[~easy & (bounds > tolerance)] = inf
            for place in top_k(decreases, min(tries, decreases.size)):
                exchange = Exchange(removed, int(candidates.numbers[place]), float(decreases[place]))
                ranked.append((exchange, float(bounds[place])))
                if bounds[place] < inf:  # otherwise a refit does not decide either
                    bounds[place] = -inf
            in_doubt[candidates.numbers[bounds > tolerance]] = True
    ranked.sort(key=lambda one: (-one[0].decrease, one[0].removed, one[0].added))
    for exchange, bound in ranked[tries:]:
        in_doubt[exchange.added] |= bound > tolerance
    return [exchange for exchange, _ in ranked[:tries]], np.flatnonzero(in_doubt)


def _rounding(objective: LinearObjective, at: Evaluation, null_value: float) -> float:
    """Return the rounding of a value of f near its lower bound.

    That of the null model is rounded to eps. Residuals are rounded to eps times the targets, so that the mean of their
    squares is rounded to eps^2 times f(0), and some hundred roundings add up.
    """
    eps = float(namespace(at.point).finfo(at.point.dtype).eps)
    return eps * abs(null_value) + (64 * eps) ** 2 * abs(float(objective.value(objective.zeros())))


def _units(constraint: Constraint, support: Support, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of what each coordinate is exchanged with, -1 for free ones, and the numbers of the chosen."""
    structure = constraint.structure((size,))
    if isinstance(structure, BlockBudget):
        numbers = to_numpy(structure.numbers)
        return np.where(numbers == structure.candidates, -1, numbers), to_numpy(structure.chosen(support))
    numbers = np.arange(size)
    if not isinstance(structure, CoordinateBudget):
        return np.full(size, -1), numbers[:0]
    leaving = to_numpy(structure.counted(support))
    numbers[np.setdiff1d(to_numpy(support.indices), leaving)] = -1
    return numbers, leaving
