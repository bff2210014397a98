"""The search of branch and bound: bounding, fixing and splitting nodes, best bound first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from math import inf

import numpy as np

from hardthresh.solvers.working_set.search import descend, grow
from hardthresh.solvers.working_set.tableau import Tableau

from .diagonal import moved_shape
from .node import Node, packed
from .quadratic import DEPENDENT, Quadratic, Reduced
from .relaxation import Relaxed, relax

_OWN, _OWN_AT_ROOT = 400, 1000
"""Up to so many undecided columns a node has a diagonal of its own, in O(m^3): with more it takes longer than the
relaxation. The root may have more, as its diagonal holds for all nodes that have none."""

_PAIRED = 1500
"""Up to so many undecided columns all pairs are tried, where two are to be chosen."""

_ROOT_STEPS, _STEPS, _LITTLE = 20, 2, 0.02
"""How often the diagonal of a node is moved at most, and which share of the gap a step must close for another. With 0,
1, 2 and 4 steps five problems of the benchmark take 25.6, 11.7, 9.7 and 10.7 s and 25,000, 7,300, 6,000 and 5,400
nodes."""

_FIRST_ROUNDED, _ROUNDED = 64, 20
"""The solutions of the first nodes, and then of every twentieth, are rounded to a support and improved by exchanges."""


@dataclass(slots=True)
class Search:
    """The workspace of a search, from one state of it to another; it never changes the problem or a node.

    Attributes
    ----------
    problem : Quadratic
        What is minimised.
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
        """What a support must bring to be looked for: a share of the value, and no less than rounding."""
        return max(self.tol * abs(self.upper), self.problem.resolution)

    @property
    def is_done(self) -> bool:
        """Whether no support is left that may bring more."""
        return self.lower >= self.upper - self.slack

    def begin(self) -> None:
        """Bound the root."""
        every, none = np.arange(self.problem.size), np.empty(0, dtype=np.int64)
        shape = np.ones(every.size)
        root = Node(-1, self.lower_bound, none, packed(every, every.size), shape=shape)
        self._bound(none, every, root, _ROOT_STEPS)

    def run(self, count: int) -> None:
        """Explore nodes until `count` more have been bounded, or none is left."""
        heapify(self.frontier)
        end = self.n_nodes + count
        while self.frontier and self.n_nodes < end:
            node = heappop(self.frontier)
            if node.lower >= self.upper - self.slack:
                self.floor = min(self.floor, node.lower)
                continue
            others = node.candidates(self.problem.size)
            others = others[others != node.branch]
            self._bound(np.append(node.chosen, node.branch), others, node)
            self._bound(node.chosen, others, node)
        self.frontier.sort()  # a sorted list is a heap, and does not depend on its history

    def _bound(self, chosen: np.ndarray, others: np.ndarray, parent: Node, steps: int = _STEPS) -> None:
        """Bound a node, with so many steps of the diagonal; keep it unless it is solved or given up."""
        self.n_nodes += 1
        number, lower, size = self.n_nodes, parent.lower, self.problem.size
        active, start, shape = parent.active, parent.start.astype(float), np.ones(size)
        if parent.shape.size:
            shape[parent.candidates(size)] = parent.shape
        while True:
            k = self.k - chosen.size
            if k <= 0 or others.size <= k:
                self._solve(np.concatenate([chosen, others]) if k > 0 else chosen)
                return
            reduced = Reduced.of(self.problem, chosen, others)
            others = reduced.columns
            if k == 1 or others.size <= k:
                self._solve_small(chosen, reduced, k)
                return
            D, own = self.problem.diagonal[others], self._has_own_diagonal(others, chosen.size)
            if own:
                units = shape[others] * reduced.diagonal
                matrix = reduced.scaled(units)
                curvature = reduced.curvature(matrix, units)
                D = curvature * units if curvature > 0 else D
                own = curvature > 0
            if not (D > 0).all():
                branch = int(others[np.argmax(reduced.slope**2 / reduced.diagonal)])
                self._keep(Node(number, lower, chosen, packed(others, size), branch, shape=shape[others]))
                return
            places, start = _places(active, start, others)
            found = relax(reduced, D, k, places, start, self.upper - self.slack)
            gain, lower = found.lower - lower, max(lower, found.lower)
            if own and gain > 0 and chosen.size == 0 and others.size == size:
                self.problem = replace(self.problem, diagonal=D)
            if lower >= self.upper - self.slack:
                self.floor = min(self.floor, lower)
                return
            active, start = others[found.active], found.x
            if number <= _FIRST_ROUNDED or number % _ROUNDED == 0:
                self._round(chosen, others, found, k)
            more, fewer = self._fixed(found, k)
            again = bool(more.any()) or bool(fewer[found.active].any())
            if own and steps > 0:
                moved = moved_shape(matrix, units, curvature, found, self.upper)
                shape[others] = moved / reduced.diagonal
                again = again or gain >= _LITTLE * (self.upper - lower)
                steps -= 1
            chosen, others = np.concatenate([chosen, others[more]]), others[~(more | fewer)]
            if not again and others.size > k:
                break
        if k == 2 and others.size <= _PAIRED:
            self._solve_small(chosen, Reduced.of(self.problem, chosen, others), k)
            return
        there = np.isin(active, others)
        branch = int(active[np.argmax(np.abs(start) * there)] if there.any() else others[0])
        self._keep(Node(
            number, lower, chosen, packed(others, size), branch, active.astype(np.int32), start.astype(np.float32),
            shape[others if others.size <= _OWN else []],
        ))  # fmt: skip

    def _has_own_diagonal(self, others: np.ndarray, n_chosen: int) -> bool:
        """Return whether to compute the diagonal of a node; else that of the root holds.

        With more columns than examples no diagonal is much better than a ridge.
        """
        most = _OWN_AT_ROOT if others.size == self.problem.size else _OWN
        ridged = bool((self.problem.ridge[others] > 0).all())
        return others.size <= most and (others.size <= self.problem.n_rows - n_chosen or not ridged)

    def _keep(self, node: Node) -> None:
        heappush(self.frontier, node)

    def _fixed(self, found: Relaxed, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which columns every better support of a node has, and which none has."""
        worth, room = found.worth, self.upper - self.slack - found.lower
        order = np.argpartition(-worth, k)
        inside = np.zeros(worth.size, dtype=bool)
        inside[order[:k]] = True
        least, next_best = worth[order[:k]].min(), worth[order[k]]
        return inside & (worth - next_best >= room), ~inside & (least - worth >= room)

    def _solve(self, columns: np.ndarray) -> None:
        """Solve a node with a single support that needs looking at."""
        columns = independent(self.problem, columns)
        Q, c = self.problem.hessian[np.ix_(columns, columns)], self.problem.slope[columns]
        self._offer(self.problem.constant - 0.5 * float(c @ np.linalg.solve(Q, c)), columns)

    def _solve_small(self, chosen: np.ndarray, reduced: Reduced, k: int) -> None:
        """Solve a node that may choose all columns that are left, one more or two more."""
        columns, c, diagonal = reduced.columns, reduced.slope, reduced.diagonal
        if columns.size <= k:
            self._solve(np.concatenate([chosen, columns]))
            return
        single = c**2 / diagonal
        self._solve(np.append(chosen, columns[np.argmax(single)]))
        if k == 1:
            return
        M = reduced.rows(np.arange(columns.size))
        rest = np.outer(diagonal, diagonal) - M**2
        gain = np.outer(c**2, diagonal)
        gain += gain.T - 2.0 * np.outer(c, c) * M
        usable = rest > DEPENDENT * diagonal
        gain = np.where(usable, gain, 0.0) / np.where(usable, rest, 1.0)
        pair = divmod(int(np.argmax(gain)), columns.size)
        self._solve(np.concatenate([chosen, columns[list(pair)]]))

    def _round(self, chosen: np.ndarray, others: np.ndarray, found: Relaxed, k: int) -> None:
        """Try the support of the k columns with the largest entries, improved by exchanges."""
        largest = found.active[np.argsort(-np.abs(found.x), kind="stable")[:k]]
        columns = np.concatenate([chosen, others[largest]])
        self.improve(columns)

    def improve(self, columns: np.ndarray) -> None:
        """Try a support, with the best columns added up to the budget, after exchanges."""
        tableau = Tableau(self.problem.hessian, self.problem.slope, columns.tolist())
        grow(tableau, self.k, self.problem.resolution)
        better = descend(tableau, self.k, self.problem.resolution, self.slack)
        self._offer(self.problem.constant - better.decrease, np.array(better.chosen, dtype=np.int64))

    def _offer(self, value: float, columns: np.ndarray) -> None:
        if value < self.upper:
            self.upper, self.support = value, np.sort(columns)


def _places(active: np.ndarray, start: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of active columns among some columns, increasing ones, and their entries; of those there."""
    places = np.minimum(columns.searchsorted(active), columns.size - 1)
    there = (columns[places] == active) & (start != 0)
    return places[there], start[there]


def independent(problem: Quadratic, columns: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return columns without those that earlier ones make up."""
    kept = np.empty(0, dtype=np.int64)
    for j in columns:
        if Reduced.of(problem, kept, np.array([j])).columns.size:
            kept = np.append(kept, j)
    return kept
