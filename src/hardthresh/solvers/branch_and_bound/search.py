"""The search of branch and bound: bounding, fixing and splitting nodes, best bound first."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from math import inf, sqrt

import numpy as np

from hardthresh.solvers.working_set.search import descend, grow
from hardthresh.solvers.working_set.tableau import Tableau

from .diagonal import moved_shape
from .node import Node, packed
from .quadratic import NEARLY, Quadratic, Reduced
from .relaxation import Relaxed, relax
from .rows import EPS, MADE_UP, UNITS, Rows

_OWN, _OWN_AT_ROOT = 400, 1000
"""Up to so many undecided columns a node has a diagonal of its own, in O(m^3): with more it takes longer than the
relaxation. The root may have more, as its diagonal holds for all nodes that have none."""

_PAIRED = 1500
"""Up to so many undecided columns all pairs are tried, where two are to be chosen."""

_ROOT_STEPS, _STEPS, _LITTLE = 20, 2, 0.02
"""How often the diagonal of a node is moved at most, and which share of the gap a step must close for another. With 0,
1, 2 and 4 steps five problems of the benchmark take 24.0, 12.0, 10.1 and 11.2 s and 25,600, 7,300, 6,000 and 5,400
nodes, where the column that is chosen most nearly by half is decided first."""

_FIRST_ROUNDED, _ROUNDED = 64, 20
"""The solutions of the first nodes, and then of every twentieth, are rounded to a support and improved by exchanges."""


@dataclass(slots=True)
class Search:
    """The workspace of a search, from one state of it to another; it never changes a node.

    Attributes
    ----------
    problem : Quadratic
        What is minimised; the bound of the root replaces it by one with another `diagonal`.
    rows : Rows or None
        The rows of it, if there are any: they decide where rounding of the problem does not.
    k : int
        The budget.
    upper, support : float and array of int
        The best value found, and its columns of the problem.
    tol : float
        A node is given up once its bound is above `upper` but for this share of it; see `slack`.
    frontier : list of Node
        The nodes that are not explored yet, a heap.
    n_nodes : int
        How many nodes have been bounded.
    floor : float
        The least bound of the nodes that were given up.
    lower_bound : float
        What f cannot be below, whatever the search does not know.
    """

    problem: Quadratic
    rows: Rows | None
    k: int
    tol: float
    upper: float
    support: np.ndarray
    frontier: list[Node] = field(default_factory=list)
    n_nodes: int = 0
    floor: float = inf
    lower_bound: float = -inf

    @property
    def lower(self) -> float:
        """The lower bound that the search has proved so far."""
        return min(self.upper, self.floor, self.frontier[0].lower if self.frontier else inf)

    @property
    def slack(self) -> float:
        r"""What a support must bring to be looked for: a share of the value, and no less than rounding.

        Rounding moves a residual r by some eps of the target z, and so half its square by :math:`\epsilon \|r\|
        \|z\|`; a residual of `MADE_UP` of the target is nothing but rounding.
        """
        value, whole = abs(self.upper), abs(self.problem.constant)
        return max(self.tol * value, UNITS * EPS * 2.0 * sqrt(value * whole) + MADE_UP**2 * whole)

    @property
    def cut(self) -> float:
        """The value from which a support is not looked for: a node with such a bound is given up."""
        return self.upper - self.slack

    @property
    def is_done(self) -> bool:
        """Whether no support is left to examine that may bring more."""
        return not self.frontier or self.lower >= self.cut

    def begin(self) -> None:
        """Bound the root."""
        every, none = np.arange(self.problem.size), np.empty(0, dtype=np.int64)
        root = Node(-1, self.lower_bound, none, packed(every, every.size))
        self._bound(Work.below(root, none, every), _ROOT_STEPS)

    def run(self, count: int) -> None:
        """Explore nodes until `count` more have been bounded, or none is left."""
        heapify(self.frontier)
        end = self.n_nodes + count
        while self.frontier and self.n_nodes < end:
            node = heappop(self.frontier)
            if node.lower >= self.cut:
                self.floor = min(self.floor, node.lower)
                continue
            others = node.candidates(self.problem.size)
            others = others[others != node.branch]
            self._bound(Work.below(node, np.append(node.chosen, node.branch), others), _STEPS)
            self._bound(Work.below(node, node.chosen, others), _STEPS)
        self.frontier.sort()  # a sorted list is a heap, and does not depend on its history

    def _bound(self, work: Work, steps: int) -> None:
        """Bound a node, with so many steps of the diagonal; keep it unless it is solved or given up."""
        self.n_nodes += 1
        while True:
            k = self.k - work.chosen.size
            if k <= 0 or work.others.size <= k:
                self._solve(work.chosen if k <= 0 else np.concatenate([work.chosen, work.others]), work.lower)
                return
            reduced = self._reduced(work)
            if reduced is None:
                self._solve_each(work, k)
                return
            if k == 1 or work.others.size <= k:
                self._solve_small(work, reduced, k)
                return
            before = work.lower
            changed = self._tighten(work, reduced, k, steps > 0)
            if work.lower >= self.cut:
                self.floor = min(self.floor, work.lower)
                return
            moved = steps > 0 and work.lower - before >= _LITTLE * (self.upper - work.lower)
            steps -= 1
            if not changed and not moved and work.others.size > k:
                break
        reduced = self._reduced(work) if k == 2 and work.others.size <= _PAIRED else None
        if reduced is not None:
            self._solve_small(work, reduced, k)
        else:
            heappush(self.frontier, work.node(self.n_nodes, self.problem.size))

    def _reduced(self, work: Work) -> Reduced | None:
        """Return the quadratic of a node, and leave out the columns that the chosen ones make up."""
        reduced = Reduced.of(self.problem, work.chosen, work.others)
        if reduced is None:
            return None
        made_up = reduced.diagonal <= (NEARLY if self.rows is not None else reduced.rounding)
        if self.rows is not None and made_up.any():
            columns = self.problem.columns
            made_up[made_up] = self.rows.made_up(columns[work.chosen], columns[work.others[made_up]])
        if made_up.any():
            reduced = reduced.on(~made_up)
            work.others = reduced.columns
        return reduced

    def _solve_each(self, work: Work, k: int) -> None:
        """Go on with a node without a bound of its own: split it, or examine all its supports."""
        if k > 1:
            work.branch = int(work.others[0])
            heappush(self.frontier, work.node(self.n_nodes, self.problem.size))
            return
        for j in work.others:
            self._solve(np.append(work.chosen, j), work.lower)

    def _tighten(self, work: Work, reduced: Reduced, k: int, move: bool) -> bool:
        """Solve the relaxation of a node, fix columns and move the diagonal; return whether the node has changed."""
        others = work.others
        D, matrix = self.problem.diagonal[others], None
        clear = bool((reduced.diagonal > reduced.rounding).all())  # else a shape in its units says nothing
        if clear and self._has_own_diagonal(others, work.chosen.size):
            units = work.shape[others] * reduced.diagonal
            matrix = reduced.scaled(units)
            curvature = reduced.curvature(matrix, units)
            D = curvature * units if curvature > 0 else D
        if not (D > 0).all():
            work.branch = int(others[np.argmax(reduced.slope**2 / np.maximum(reduced.diagonal, reduced.rounding))])
            return False
        found = relax(reduced, D, k, *work.places(), self.cut)
        if found.lower >= self.cut:
            work.lower = found.lower
            return False
        is_root = others.size == self.problem.size
        if is_root and found.lower > work.lower:
            self.problem = replace(self.problem, diagonal=D)
        work.lower = max(work.lower, found.lower)
        work.active, work.start = others[found.active], found.x
        if self.n_nodes <= _FIRST_ROUNDED or self.n_nodes % _ROUNDED == 0:
            self._round(work, k)
        if move and matrix is not None and curvature > 0:
            work.shape[others] = moved_shape(matrix, units, curvature, found, self.upper) / reduced.diagonal
        more, fewer = self._fixed(found, k)
        decided = more | fewer
        work.chosen, work.others = np.concatenate([work.chosen, others[more]]), others[~decided]
        entries = np.where(decided[found.active], 0.0, np.abs(found.x))
        if entries.any():
            work.branch = int(work.active[np.argmax(entries)])
        elif work.others.size:
            work.branch = int(work.others[0])
        return bool(more.any() or fewer[found.active].any())

    def _has_own_diagonal(self, others: np.ndarray, n_chosen: int) -> bool:
        """Return whether to compute the diagonal of a node; else that of the root holds.

        With more columns than examples no diagonal is much better than a ridge.
        """
        most = _OWN_AT_ROOT if others.size == self.problem.size else _OWN
        ridged = bool((self.problem.ridge[others] > 0).all())
        return others.size <= most and (others.size <= self.problem.n_rows - n_chosen or not ridged)

    def _fixed(self, found: Relaxed, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which columns every better support of a node has, and which none has."""
        worth, room = found.worth, self.cut - found.lower
        order = np.argpartition(-worth, k)
        inside = np.zeros(worth.size, dtype=bool)
        inside[order[:k]] = True
        least, next_best = worth[order[:k]].min(), worth[order[k]]
        return inside & (worth - next_best >= room), ~inside & (least - worth >= room)

    def _solve(self, columns: np.ndarray, least: float) -> None:
        """Solve a node with a single support, which has a bound already."""
        value, error = self._value(columns)
        self._offer(value, columns)
        self.floor = min(self.floor, max(least, value - error) if error < inf else least)

    def _value(self, columns: np.ndarray) -> tuple[float, float]:
        """Return the minimum on a support, and how much of it may be rounding."""
        reduced = Reduced.of(self.problem, columns, columns[:0])
        if reduced is not None and reduced.error <= 0.1 * self.tol * abs(reduced.constant):
            return reduced.constant, reduced.error
        if self.rows is not None:
            return self.rows.value(self.problem.columns[columns])
        return (reduced.constant, reduced.error) if reduced is not None else (inf, inf)

    def _solve_small(self, work: Work, reduced: Reduced, k: int) -> None:
        """Solve a node that may choose all columns that are left, one more or two more."""
        columns = reduced.columns
        if columns.size <= k:
            self._solve(np.concatenate([work.chosen, columns]), work.lower)
            return
        bounds = reduced.bounds(k)
        promising = np.flatnonzero(bounds < self.cut)
        rest_bound = float(np.min(np.where(bounds < self.cut, inf, bounds)))
        for place in promising[np.argsort(bounds.flat[promising], kind="stable")].tolist():
            bound = float(bounds.flat[place])
            if bound >= self.cut:
                rest_bound = min(rest_bound, bound)
                break
            more = columns[list(np.unravel_index(place, bounds.shape))]
            self._solve(np.concatenate([work.chosen, more]), max(work.lower, bound))
        self.floor = min(self.floor, max(work.lower, rest_bound))

    def _round(self, work: Work, k: int) -> None:
        """Try the support of the k columns with the largest entries, improved by exchanges."""
        largest = np.argsort(-np.abs(work.start), kind="stable")[:k]
        self.improve(np.concatenate([work.chosen, work.active[largest]]))

    def improve(self, columns: np.ndarray) -> None:
        """Try a support, with the best columns added up to the budget, after exchanges."""
        tableau = Tableau(self.problem.hessian, self.problem.slope, columns.tolist())
        grow(tableau, self.k, self.problem.resolution)
        better = descend(tableau, self.k, self.problem.resolution, self.slack)
        found = np.array(better.chosen, dtype=np.int64)
        self._offer(self._value(found)[0], found)

    def _offer(self, value: float, columns: np.ndarray) -> None:
        if value < self.upper:
            self.upper, self.support = value, np.sort(columns)


@dataclass(slots=True)
class Work:
    """A node while it is bounded: the columns of the problem and what is known of its relaxation; see `Node`.

    Attributes
    ----------
    others : array of int
        The undecided columns, increasing.
    shape : array
        The shape of the diagonal, for all columns of the problem.
    """

    lower: float
    chosen: np.ndarray
    others: np.ndarray
    active: np.ndarray
    start: np.ndarray
    shape: np.ndarray
    branch: int = -1

    @classmethod
    def below(cls, parent: Node, chosen: np.ndarray, others: np.ndarray) -> Work:
        """Return a child of a node, with its columns."""
        size = 8 * parent.undecided.size
        shape = np.ones(size)
        if parent.shape.size:
            shape[parent.candidates(size)] = parent.shape
        return cls(parent.lower, chosen, others, parent.active, parent.start.astype(float), shape)

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of the active columns among the undecided ones, and their entries; of those there."""
        places = np.minimum(self.others.searchsorted(self.active), self.others.size - 1)
        there = (self.others[places] == self.active) & (self.start != 0)
        return places[there], self.start[there]

    def node(self, number: int, size: int) -> Node:
        """Return the node, of so many columns of the problem."""
        return Node(
            number, self.lower, self.chosen, packed(self.others, size), self.branch, self.active.astype(np.int32),
            self.start.astype(np.float32), self.shape[self.others if self.others.size <= _OWN else []],
        )  # fmt: skip
