"""The search of branch and bound: bounding, fixing and splitting nodes, best bound first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import inf

import numpy as np

from hardthresh.solvers.working_set.search import descend, grow
from hardthresh.solvers.working_set.tableau import Tableau

from .node import Node, packed
from .quadratic import Quadratic, Reduced
from .relaxation import Relaxed, relax

_SHRINKAGE = 0.95
"""The smallest eigenvalue is computed anew once a node has at most this share of the undecided columns that it had when
it was last computed, or one column has been chosen since."""

_EIGENVALUES = 400
"""Above so many undecided columns the smallest eigenvalue, in O(m^3), is computed only at the root and where half of
them are left: then it takes longer than the relaxation."""

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
        every = np.arange(self.problem.size)
        none = np.empty(0, dtype=np.int64)
        self._bound(none, every, Node(-1, self.lower_bound, none, packed(every, every.size), counted=0))

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

    def _bound(self, chosen: np.ndarray, others: np.ndarray, parent: Node) -> None:
        """Bound a node; keep it in the frontier unless it is solved or given up."""
        self.n_nodes += 1
        number, lower = self.n_nodes, parent.lower
        curvature, counted, n_chosen = parent.curvature, parent.counted, parent.chosen.size
        active, start = parent.active, parent.start.astype(float)
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
            if self._is_worth(others.size, counted, chosen.size > n_chosen):
                curvature, counted, n_chosen = max(curvature, reduced.smallest_eigenvalue()), others.size, chosen.size
            ridge = self.problem.ridge[others]
            D = ridge + curvature * (reduced.diagonal - ridge)
            if not (D > 0).all():
                branch = int(np.argmax(reduced.slope**2 / reduced.diagonal))
                self._keep(Node(number, lower, chosen, packed(others, self.problem.size), curvature, counted,
                                int(others[branch])))  # fmt: skip
                return
            places, start = _places(active, start, others)
            found = relax(reduced, D, k, places, start, self.upper - self.slack)
            lower = max(lower, found.lower)
            if lower >= self.upper - self.slack:
                self.floor = min(self.floor, lower)
                return
            active, start = others[found.active], found.x
            if number <= _FIRST_ROUNDED or number % _ROUNDED == 0:
                self._round(chosen, others, found, k)
            more, fewer = self._fixed(found, k)
            if not more.any() and not fewer.any():
                break
            repeat = bool(more.any()) or bool(fewer[found.active].any())
            chosen, others = np.concatenate([chosen, others[more]]), others[~(more | fewer)]
            if not repeat and others.size > k:
                break
        undecided = np.abs(found.shares - 0.5)
        kept = np.isin(active, others)
        branch = int(active[kept][np.argmin(undecided[kept])]) if kept.any() else int(others[0])
        self._keep(Node(
            number, lower, chosen, packed(others, self.problem.size), curvature, counted, branch,
            active.astype(np.int32), start.astype(np.float32),
        ))  # fmt: skip

    def _is_worth(self, size: int, counted: int, has_chosen: bool) -> bool:
        """Return whether to compute the smallest eigenvalue of a node."""
        if counted == 0:
            return True
        if size > _EIGENVALUES:
            return size <= counted // 2
        return has_chosen or size <= _SHRINKAGE * counted

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
        """Solve a node that may choose one more column, or all that are left."""
        if reduced.columns.size <= k:
            self._solve(np.concatenate([chosen, reduced.columns]))
            return
        gain = reduced.slope**2 / reduced.diagonal
        best = int(np.argmax(gain))
        self._offer(reduced.constant - 0.5 * float(gain[best]), np.append(chosen, reduced.columns[best]))

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
