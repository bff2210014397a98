"""One-swap optimality: whether any single exchange of a chosen coordinate, or group, for another is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np

from hardthresh.arrays import as_double, double, namespace, to_numpy, top_k
from hardthresh.core.constraint import BlockBudget, Constraint, CoordinateBudget, Structure
from hardthresh.core.objective import Evaluation, LinearObjective, require
from hardthresh.core.schema import stored
from hardthresh.core.support import Support
from hardthresh.core.threads import serial_blas
from hardthresh.solvers.block_search import block_model
from hardthresh.solvers.block_tableau import BlockChoice
from hardthresh.solvers.exchange import Exchange, moving_and_held, try_exchanges
from hardthresh.solvers.exchange_model import ExchangeModel
from hardthresh.solvers.refinement import FULL_SOLVE, refine
from hardthresh.solvers.support_model import Removal

WIDEST = 2048
"""The largest number of columns of a group, or of all chosen groups, whose Hessian is computed: it takes 32 MB."""


@stored("certificate/swap")
@dataclass(frozen=True, slots=True)
class SwapCertificate:
    """The best single exchange of a chosen unit for another that was found.

    Attributes
    ----------
    optimal : bool
        Whether no examined exchange lowers the objective by more than `tolerance`. Also True if there is no
        exchange, or if none could be examined; `complete` distinguishes these cases.
    removed, added : int or None
        The best exchange: two coordinates, or the numbers of two groups; None if no exchange exists.
    decrease : float
        The decrease of the objective by this exchange after a refit, negative for an increase; -inf if no exchange
        exists.
    tried : int
        The number of exchanges that were refitted, those that the quadratic model ranked highest.
    complete : bool
        Whether all exchanges were examined; False only if groups have too many columns.
    undecided : tuple of int
        If `optimal`, the coordinates, or numbers of groups, that are so close to a linear combination of the chosen
        ones that rounding decides whether their exchange helps; -1 stands for free coordinates. Exact copies are not
        undecided.
    tolerance : float
        The largest decrease of the objective that is ignored.
    refit : float
        The decrease of the quadratic model when only the chosen coordinates are refitted; nan if it was not computed.
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

    def undecided_names(self, name: Callable[[int], str]) -> tuple[str, ...]:
        """Return the names of the `undecided` coordinates or groups."""
        return tuple("an always-included column" if number < 0 else name(number) for number in self.undecided)


@serial_blas()
def swap_certificate(
    objective: LinearObjective,
    constraint: Constraint,
    at: Evaluation,
    *,
    tries: int = 10,
    tol: float = 1e-8,
    null_value: float = 0.0,
    support: Support | None = None,
) -> SwapCertificate:
    r"""Examine every exchange of one chosen coordinate for another, with a refit of all coefficients.

    The exchanges are ranked by the quadratic model of f (`hardthresh.solvers.exchange_model`), and the most promising
    are refitted on f itself.

    Parameters
    ----------
    objective : LinearObjective
        f, at least locally convex.
    constraint : Constraint
        The set; its free coordinates are not exchanged. If it allows whole groups of coordinates, these are exchanged.
    at : Evaluation
        f at a point of the set.
    tries : int
        The number of exchanges to refit, >= 1.
    tol : float
        The relative decrease of f above which an exchange counts as better.
    null_value : float
        f at the null model. Decreases within its rounding are ignored too.
    support : Support, optional
        The support of the point. Required for overlapping groups, where several choices may cover the point.

    Returns
    -------
    SwapCertificate

    Raises
    ------
    CapabilityError
        If the objective is not a `LinearObjective`.

    Notes
    -----
    Cost: s + 1 data passes for a support of s coordinates, and little for each refit; for groups also the Hessian of
    each group. Groups of more than 2048 columns are not examined, and no exchange is examined if the chosen groups have
    more than 2048 columns in total; `complete` is then False.

    In the quadratic model, the bounds apply to the coordinate that enters; chosen coordinates at their bounds stay
    there or leave, and the others are refitted without bounds. The refits on f itself satisfy all bounds.

    Exchanges of an objective in float32 are examined in double precision; only `tolerance` is that of float32.

    Guarantee: for the squared loss without bounds the quadratic model is exact. `optimal` is then a proof, up to
    rounding, that no exchange lowers f by more than `tolerance`, if all exchanges were examined and none is
    `undecided`. This also holds if the chosen coordinates are linearly dependent: a coordinate that is a combination of
    the others can be removed without loss, and replaced by any other. For other losses, or with bounds, it is
    heuristic, because the model only ranks the exchanges.

    Examples
    --------
    If two columns are copies, one of them can be exchanged for the column that helps most:

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
    exact = objective.double()  # rounding in float32 would hide the difference of columns that are close to each other
    if exact is not objective:
        objective, at = exact, exact.evaluate(as_double(at.point))
    else:  # differences of its values are rounded; eight units in the last place: sums in other orders differ by few
        tolerance += 8 * float(namespace(at.point).finfo(at.point.dtype).eps) * abs(at.value)
    structure, nearest = constraint.structure(tuple(at.point.shape)), constraint.project(at.point).support
    if structure is not None and structure.blocks() is not None and not isinstance(structure, BlockBudget):
        known = nearest if support is None else support
        return _exchange_of_overlapping(objective, constraint, structure, at, known, tries, tolerance)
    support = nearest
    numbers, chosen = units(constraint, support, at.point.shape[0])
    widths = np.bincount(numbers[numbers >= 0], minlength=1)
    model, complete = exchange_model(objective, constraint, at, support), not np.any(widths > WIDEST)
    if model is None:
        return SwapCertificate(True, None, None, -inf, 0, complete=False, tolerance=tolerance)
    removals = [(int(number), model.removal(np.flatnonzero(numbers == number))) for number in chosen]
    promising, in_doubt = _most_promising(model, removals, joining(numbers, chosen), tries, tolerance)
    if not promising:
        return SwapCertificate(True, None, None, -inf, 0, complete, (), tolerance, model.refit)
    refitted = try_exchanges(
        objective, constraint, at, support, promising, cg_iterations=0, rounds=FULL_SOLVE,
        besides=_steepest_outside(objective, at, support),
    )  # fmt: skip
    decrease, best = max(((at.value - fit.value, exchange) for exchange, fit in refitted), key=lambda one: one[0])
    optimal = not decrease > tolerance
    undecided: tuple[int, ...] = ()
    if optimal and at.value - objective.lower_bound > tolerance:
        undecided = tuple(np.union1d(numbers[list(model.nearly_dependent)], in_doubt).tolist())
    return SwapCertificate(
        optimal, best.removed, best.added, decrease, len(promising), complete, undecided, tolerance, model.refit
    )


def _steepest_outside(objective: LinearObjective, at: Evaluation, support: Support) -> list[int]:
    """Return the coordinate with the steepest slope outside the support, if `certify_point` has to read columns."""
    if not objective.traits.reading_is_dear:
        return []
    outside = np.abs(double(at.gradient))
    outside[to_numpy(support.indices)] = 0.0
    return [int(np.argmax(outside))]


def _exchange_of_overlapping(
    objective: LinearObjective,
    constraint: Constraint,
    structure: Structure,
    at: Evaluation,
    support: Support,
    tries: int,
    tolerance: float,
) -> SwapCertificate:
    """Return the best exchange of one group for another of those that the search of groups ranks first, refitted."""
    known = block_model(objective, constraint, at, support)
    if known is None:
        return SwapCertificate(True, None, None, -inf, 0, complete=False, tolerance=tolerance)
    choice = BlockChoice(known.model, known.start, inf)
    best = SwapCertificate(True, None, None, -inf, 0, complete=known.complete, tolerance=tolerance)
    ranked = sorted(choice.exchanges(), key=lambda exchange: -exchange[2])[:tries]
    for place, added, _ in ranked:
        numbers = [known.names[g] for g in (*choice.chosen[:place], *choice.chosen[place + 1 :], added)]
        start = structure.placed(constraint, at.point, numbers)
        fall = at.value - refine(objective, constraint, start, cg_iterations=0, rounds=FULL_SOLVE).value
        if fall > best.decrease:
            pair = known.names[choice.chosen[place]], known.names[added]
            best = SwapCertificate(not fall > tolerance, *pair, fall, len(ranked), complete=False, tolerance=tolerance)
    return best


def listed(names: Sequence[str]) -> str:
    """Return the first three names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _most_promising(
    model: ExchangeModel, removals: list[tuple[int, Removal]], joins: np.ndarray, tries: int, tolerance: float
) -> tuple[list[Exchange], np.ndarray]:
    """Return the exchanges that decrease the model most, and the units that, within rounding, may also decrease f."""
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
                if bounds[place] < inf:  # if it is infinite, a refit cannot decide either
                    bounds[place] = -inf
            in_doubt[candidates.numbers[bounds > tolerance]] = True
    ranked.sort(key=lambda one: (-one[0].decrease, one[0].removed, one[0].added))
    for exchange, bound in ranked[tries:]:
        in_doubt[exchange.added] |= bound > tolerance
    return [exchange for exchange, _ in ranked[:tries]], np.flatnonzero(in_doubt)


def _rounding(objective: LinearObjective, at: Evaluation, null_value: float) -> float:
    """Return the rounding of a value of f near its lower bound.

    The value of the null model has a relative error of eps. Residuals have an error of eps times the targets, so that
    the error of the mean of their squares is eps^2 times f(0); the factor 64 allows for the errors of some hundred
    operations.
    """
    eps = float(namespace(at.point).finfo(at.point.dtype).eps)
    return eps * abs(null_value) + (64 * eps) ** 2 * abs(float(objective.value(objective.null_point())))


def exchange_model(
    objective: LinearObjective, constraint: Constraint, at: Evaluation, support: Support
) -> ExchangeModel | None:
    """Return the model of all exchanges, within the bounds of the set; None if the chosen groups are too wide."""
    structure = constraint.structure(tuple(at.point.shape))
    moving, held = moving_and_held(constraint, at, support)
    if isinstance(structure, BlockBudget) and moving.shape[0] > WIDEST:
        return None
    bounds = structure.bounds if isinstance(structure, CoordinateBudget) else None
    return ExchangeModel(objective, at, moving, held, bounds)


def joining(numbers: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the number of the unit of each coordinate that may join a support, -1 for the others."""
    widths = np.bincount(numbers[numbers >= 0], minlength=1)
    return np.where(np.isin(numbers, chosen) | (widths[numbers] > WIDEST), -1, numbers)


def units(constraint: Constraint, support: Support, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of the unit of each coordinate, -1 for free ones, and the numbers of the chosen units."""
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
