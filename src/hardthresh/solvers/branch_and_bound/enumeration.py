"""Enumeration of all supports of a size whose value is below a bound, by branch and bound."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from itertools import islice, product
from math import inf, nextafter
from time import perf_counter

import numpy as np

from hardthresh.core.constraint import Constraint, coordinate_budget
from hardthresh.core.objective import LinearObjective
from hardthresh.solvers.start import starting_point

from .quadratic import Quadratic, Reduced
from .rows import Rows
from .search import Search, Work
from .solver import BranchAndBound

_HIDDEN = "rounding hides whether some sets of nearly dependent columns are as good"
_FEWER = "some columns depend on others, and sets of fewer are as good"

_TIED = 20
"""A search ends with so many supports as good as the last one asked for, for each of these: ties are without number."""

_LEAST, _SHARE = 2, 50
"""The clock is read after one node for every 50 before it, at least 2: a limit is kept within 2 %."""


@dataclass(frozen=True, slots=True, eq=False)
class NearSupports:
    """The supports below a value.

    Attributes
    ----------
    supports : tuple of tuple of int
        The coordinates of each that count, increasing; the best first.
    values : tuple of float
        The minimum on each.
    complete : bool
        Whether no other one is below the value; or, where as many as were asked for are listed, below these.
    reason : str
        Why they may not be complete; empty if they are. So many ties that the search was ended are a reason, too.
    n_nodes : int
        The number of nodes that were bounded.
    """

    supports: tuple[tuple[int, ...], ...]
    values: tuple[float, ...]
    complete: bool
    reason: str
    n_nodes: int


def near_supports(
    objective: LinearObjective,
    constraint: Constraint,
    size: int,
    level: float,
    *,
    most: int,
    time_limit: float | None = None,
    tol: float = BranchAndBound().tol,
) -> NearSupports:
    r"""Return all sets of so many coordinates on which the minimum of a quadratic is at most some value.

    The tree and its bounds are those of `BranchAndBound`. A node is given up where its bound is above the value, or,
    once `most` supports are known, above the last of these; so all others end in supports, each of which is solved.

    Parameters
    ----------
    objective : LinearObjective
        f, quadratic, in double precision.
    constraint : Constraint
        At most k coordinates, without bounds, of which the free ones belong to all supports.
    size : int
        How many other coordinates a support has, >= 0.
    level : float
        The largest value.
    most : int
        The most supports to return, those of the lowest values; >= 1.
    time_limit : float or None
        The seconds after which the search ends, with what it has found; None for no limit. The bound of the root is
        always computed.
    tol : float
        A support is looked for if its value is above `level` by no more than this share of it, or than rounding; > 0.

    Returns
    -------
    NearSupports
        The supports, as far as rounding tells: a value within `tol` of `level` may be on either side.

    Notes
    -----
    Columns that others make up are left out, and copies of a column take its place afterwards. No support of dependent
    columns is missed by that if all supports of `size` - 1 coordinates are above the value, because its value is that
    of one of these. A second search proves that, where columns were left out; elsewhere there is no need for it.

    Cost: as for `BranchAndBound`, of which the number of nodes grows with the level.
    """
    deadline = inf if time_limit is None else perf_counter() + time_limit
    budget = coordinate_budget(constraint, tuple(objective.shape))
    assert budget is not None
    free = np.array(budget.free, dtype=np.int64)
    rows = Rows.of(objective, free)
    whole = Quadratic.with_copies(objective, starting_point(objective, constraint, None)[0], free, rows)
    originals = whole.originals(rows)
    kept = originals == np.arange(whole.size)
    problem, none = whole.part(kept), np.empty(0, dtype=np.int64)
    least = float(objective.lower_bound)
    search = Enumeration(problem, rows, size, tol, level, none, lower_bound=least, most=most)
    reason = _explore(search, deadline)
    if not reason and size and (search.left_out or problem.size < int(objective.shape[0]) - free.size):
        top = search.cut
        above = top + 2.0 * search.slack  # so that no node is given up below the top
        fewer = Search(problem, rows, min(size - 1, problem.size), tol, above, none, lower_bound=least)
        reason = _explore(fewer, deadline, top)
        if fewer.lower < top:
            reason = reason or (_FEWER if fewer.upper < top else _HIDDEN)
    own = np.flatnonzero(kept)
    copies = [whole.columns[originals == j].tolist() for j in own.tolist()]
    found: list[tuple[float, tuple[int, ...]]] = []
    for value, columns in search.supports():
        every = product(*(copies[j] for j in columns))
        found += ((value, tuple(sorted(one))) for one in islice(every, most))
    listed = sorted(found)[:most]
    if not reason and search.is_in_doubt([value for value, _ in listed]):
        reason = _HIDDEN
    values, supports = tuple(value for value, _ in listed), tuple(columns for _, columns in listed)
    return NearSupports(supports, values, not reason, reason, search.n_nodes)


def _explore(search: Search, deadline: float, level: float = -inf) -> str:
    """Search until no node is left, or a value is below the level; return why that was not reached, or nothing."""
    try:
        search.begin()
        while not search.is_done and search.upper >= level:
            if isinstance(search, Enumeration) and search.has_many_ties:
                return "too many sets are equally good"
            if perf_counter() >= deadline:
                return "the time limit was reached"
            search.run(max(_LEAST, search.n_nodes // _SHARE))
    except KeyboardInterrupt:
        return "the search was interrupted"
    return ""


@dataclass(slots=True)
class Enumeration(Search):
    """A search for all supports of k columns whose value is at most `upper`.

    Attributes
    ----------
    most : int
        Of more supports those of the lowest values: then `upper` falls to the largest of these.
    found : list of tuple
        For each support its value, the least that this may be up to rounding, and its columns.
    highest : list of float
        The largest values that the best supports may have, increasing, at most so many.
    left_out : bool
        Whether columns of any node were left out, because the chosen ones make them up.
    """

    most: int = 1
    found: list[tuple[float, float, tuple[int, ...]]] = field(default_factory=list)
    highest: list[float] = field(default_factory=list)
    left_out: bool = False

    @property
    def cut(self) -> float:
        """The value from which a support is not looked for: above the level, and by what may be rounding."""
        return nextafter(self.upper + self.slack, inf)

    @property
    def is_done(self) -> bool:
        """Whether no node is left that may have a support below the level."""
        return not self.frontier or self.frontier[0].lower >= self.cut

    @property
    def has_many_ties(self) -> bool:
        """Whether far more supports than were asked for are as good as the last of these; others are forgotten."""
        if len(self.found) <= _TIED * self.most:
            return False
        cut = self.cut
        self.found = [one for one in self.found if one[1] <= cut]
        return len(self.found) > _TIED * self.most

    def supports(self) -> list[tuple[float, tuple[int, ...]]]:
        """Return the values of the supports below the level, and their columns, in the order of the search."""
        return [(value, columns) for value, _, columns in self.found if value <= self.cut]

    def is_in_doubt(self, values: list[float]) -> bool:
        """Return whether rounding hides if a support belongs below the largest of the values that are listed.

        If these are fewer than `most`, below the level.
        """
        last = max(values) if len(values) == self.most else self.upper
        return any(low < last - self.slack and value > last + self.slack for value, low, _ in self.found)

    def _reduced(self, work: Work) -> Reduced | None:
        before = work.others.size
        reduced = Search._reduced(self, work)
        self.left_out |= work.others.size < before
        return reduced

    def _solve(self, columns: np.ndarray, least: float) -> None:
        if columns.size < self.k:
            return
        value, error = self._value(columns)
        low = value - error if error < inf else least
        if low > self.cut:
            return
        self.found.append((value, low, tuple(np.sort(columns).tolist())))
        insort(self.highest, value + error)
        if len(self.highest) >= self.most:
            del self.highest[self.most :]
            self.upper = min(self.upper, self.highest[-1])

    def _round(self, work: Work, k: int) -> None:
        """Try no support: each is found at its own node."""
