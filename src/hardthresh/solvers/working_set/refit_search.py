"""Search on f itself, by refits on few columns, where its quadratic model misleads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, isfinite

import numpy as np

from hardthresh.core.compiled import kernel
from hardthresh.objectives import LinearModel
from hardthresh.solvers.newton import DAMPING
from hardthresh.steps.line_search import ARMIJO

from .local_scores import NEARLY, ColumnsToSearch, LocalScores, Refit
from .refits import HALVINGS, PREDICTED, STEPS, contiguous

_ROUNDS = 50
"""Limit of the rounds of a search. No search on 236 simulated and real classifiers took more than 4."""
_MOST_WORK = 1e9
"""Limit of the work of a search. A refit of s columns counts as 2 n s^2, the scores of m columns as n m (s + 2). It is
about 50 ms if compiled, as for 25 of 600 columns of 300 rows. On 80 such classifiers f is the lowest of that of four
methods on 79, with 6e8 on 76 and with 4e8 on 75. Searches of 8 of 200 columns of 100 rows do 2 % of it."""
MOST_ENTRIES = 1 << 22
"""Most entries of the columns that are searched, 32 MB of them: some hundred gradients read them all. Arbitrary."""


@dataclass(frozen=True, slots=True, eq=False)
class BestMoves:
    """What the quadratic model of f at a `Refit` says is best.

    Attributes
    ----------
    additions : list of (int, float)
        The two columns that lower it most when added, and by how much.
    exchanges : list of (int, int)
        Exchanges; see `LocalScores.exchanges`.
    """

    additions: list[tuple[int, float]]
    exchanges: list[tuple[int, int]]


class RefitSearch:
    """Search for the k columns of a working set on which f is lowest, where every support is refitted.

    1. Start from the k columns with the largest gains at the null model, and from given ones. Exchange: of the best
       exchanges of one column by the quadratic model at the present minimiser, take the first that lowers f. Repeat
       until none does.
    2. Sweep over neighbouring sizes: from a forward path that begins with no column, and from the best of each size, go
       to the next larger and smaller ones by the best addition or removal, and exchange. Repeat as long as one becomes
       lower.
    3. Add-drop moves: add k/2 columns one by one, each the best by the model at the minimiser on those before, and drop
       as many in the same way; then first drop and then add; then both with k columns, which ends with a forward path
       from nothing. Exchange after each of them.
    4. Replace: leave out each column in turn, add the best other one by the model at the minimiser without it, and
       exchange.
    5. Repeat from 3 as long as f falls by more than a negligible amount, and not too much work has been done.

    Parameters
    ----------
    model : LinearModel
        f, of the columns of the working set only.
    fixed : array of int
        The columns that are always chosen, as places in the working set.
    negligible : float
        The decrease of f that does not count as progress.
    separated : float
        The search ends once f is below this value for no more columns than are wanted: they separate two classes, and
        each refit would take many steps towards infinity.
    bounds : array, shape (2, m), optional
        The bounds of the coefficients of the working set.

    Notes
    -----
    A workspace: minimisers are kept by support, and none is computed twice. Cost: about 60 refits and 40 scores of all
    columns for k = 8. Monotone. Heuristic. The kernel makes a search in one call.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.objectives import LinearModel
    >>> X = np.random.default_rng(0).standard_normal((50, 8))
    >>> y = (X[:, 2] - X[:, 5] > 0).astype(float)
    >>> search = RefitSearch(LinearModel(X, y, loss="logistic", l2=0.1), np.empty(0, dtype=int), 1e-8)
    >>> search.lowest(search.fit((0, 1)), 2, nearby=1.6, add_drop=(0.5, 1.0)).chosen
    (2, 5)
    """

    def __init__(
        self,
        model: LinearModel,
        fixed: np.ndarray,
        negligible: float,
        separated: float = -inf,
        bounds: np.ndarray | None = None,
    ) -> None:
        self._fixed, self._negligible = frozenset(fixed.tolist()), negligible
        self._columns = ColumnsToSearch(model, self._fixed, bounds)
        self._entries = self._columns.n_examples * self._columns.l2.size
        self._fits: dict[tuple[int, ...], Refit] = {}
        self._work, self._separated, self._target = 0.0, separated, 0
        self._exchanged: dict[tuple[int, ...], Refit] = {}
        self._known_moves: dict[tuple[int, ...], BestMoves] = {}
        self._known_costs: dict[tuple[int, ...], np.ndarray] = {}

    def fit(self, chosen: Sequence[int], near: Refit | None = None) -> Refit:
        """Return the minimiser on some columns, by Newton steps from the coefficients of another one."""
        key = tuple(sorted(chosen))
        if key not in self._fits:
            known = {} if near is None else dict(zip(near.chosen, near.coef, strict=True))
            start = np.array([known.get(j, 0.0) for j in key]) if near is not None else self._columns.null[list(key)]
            coef, value = self._columns.refitted(np.array(key, dtype=np.int64), start)
            self._fits[key] = Refit(key, coef, value if isfinite(value) else inf)
            self._work += 2.0 * self._columns.n_examples * len(key) ** 2
        if self._fits[key].value < self._separated and len(key) <= self._target:
            self._work = inf
        return self._fits[key]

    def started(self, places: np.ndarray, coef: np.ndarray) -> Refit:
        """Return the minimiser on some columns, by Newton steps from some coefficients."""
        chosen = tuple(places.tolist())
        return self.fit(chosen, Refit(chosen, coef, inf))

    def scores(self, fit: Refit) -> LocalScores:
        """Return what the quadratic model at a minimiser says of all columns."""
        return self._columns.scores(fit)

    def stay(self, fit: Refit) -> np.ndarray:
        """Return which of the columns of a refit may not be dropped."""
        return self._columns.stay(fit)

    def without_half(self, fit: Refit) -> tuple[Refit, float]:
        """Return the minimiser without the less useful half of the columns, and by how much f rises in its model."""
        scores = self._columns.own_scores(fit)
        costs = scores.costs()
        dropped = np.argsort(costs, kind="stable")[: (int(np.isfinite(costs).sum()) + 1) // 2]
        rest = self.fit([j for i, j in enumerate(fit.chosen) if i not in dropped], fit)
        return rest, scores.cost(dropped)

    def reached(self, fit: Refit, size: int, ratio: float) -> tuple[Refit, bool]:
        """Return the minimiser on `size` columns that additions and exchanges lead to, and whether it is doubtful.

        It is if an exchange, of which the model says that it may lower f, has been tried in vain, or if f rises by more
        than `ratio` times what the model says when the less useful half of the columns is dropped. Within bounds it
        always is, unless the ratio is infinite.
        """
        self._work, self._target = 0.0, size + len(self._fixed)
        answer = self._compiled(fit, size, ratio=ratio)
        if answer is not None:
            return answer
        fit = self._reached(fit, size)
        return fit, self._is_doubtful(fit, ratio)

    def lowest(self, fit: Refit, size: int, nearby: float, add_drop: Sequence[float]) -> Refit:
        """Return the lowest minimiser on `size` columns, besides the fixed ones, that the search leads to from one.

        Sizes up to `nearby` times smaller or larger are searched as well. `add_drop` says how many columns the add-drop
        moves add and drop, as shares of the size.
        """
        counts = [max(1, round(share * size)) for share in add_drop]
        self._work, self._target = 0.0, size + len(self._fixed)
        answer = self._compiled(fit, size, nearby, counts)
        if answer is not None:
            return answer[0]
        found = self._reached(self._best_alone(fit, size), size)
        fit = self._lower(found, self._reached(fit, size)) if len(fit.chosen) > len(self._fixed) else found
        if self._work >= _MOST_WORK:
            return fit
        fit = self._swept(fit, size, ceil(size / nearby), floor(size * nearby))
        for _ in range(_ROUNDS):
            before = fit
            for count in counts:
                if self._work >= _MOST_WORK:
                    break
                swung = (
                    self._shrunk(self._grown(fit, size + count), size),
                    self._grown(self._shrunk(fit, max(0, size - count)), size),
                )
                for other in swung:
                    fit = self._lower(self._exchange(other), fit)
            fit = next((other for other in self._replacements(fit) if self._is_lower(other, fit)), fit)
            if fit is before:
                break
        return fit

    def _reached(self, fit: Refit, size: int) -> Refit:
        return self._exchange(self._grown(self._shrunk(fit, size), size))

    def _best_alone(self, start: Refit, size: int) -> Refit:
        """Return the minimiser on the columns with the largest gains at the minimiser on the fixed ones."""
        fit = self._shrunk(start, 0)
        gains = self.scores(fit).gains()
        self._work += self._entries * (len(fit.chosen) + 2.0)
        best = np.argsort(-gains, kind="stable")[:size]
        return self.fit([*fit.chosen, *best[gains[best] > 0.0].tolist()], fit)

    def _compiled(
        self, fit: Refit, size: int, nearby: float = 1.0, counts: Sequence[int] = (), ratio: float | None = None
    ) -> tuple[Refit, bool] | None:
        """Return what `reached` does for a ratio, else `lowest`, by the kernel if it can.

        None if it cannot, or if a Hessian was singular in the answer's refit. Other refits end where their Hessian is
        singular, and those of NumPy continue: then f may differ from what it is without the kernel.
        """
        compiled, known = kernel(), self._columns.known
        if compiled is None or known is None:
            return None
        least, most, l2 = ceil(size / nearby), floor(size * nearby), self._columns.l2
        places, moved = np.array(fit.chosen, dtype=np.int64), np.array(counts, dtype=np.int64)
        fixed = np.zeros(l2.size, dtype=np.int64)
        fixed[list(self._fixed)] = 1
        width = max(places.size, min(l2.size, max(most, size) + len(self._fixed)))
        chosen, coef = np.empty(width, dtype=np.int64), np.empty(width)
        count, value, doubtful, regular = compiled.search(
            known.loss, np.ascontiguousarray(known.examples), known.columns, known.offset, l2, fixed,
            places, fit.coef, moved, chosen, coef, contiguous(self._columns.bounds), fit.value, size, least, most,
            _ROUNDS, STEPS, HALVINGS, ARMIJO, PREDICTED, DAMPING * known.bound, NEARLY, self._negligible,
            self._separated, inf if ratio is None else ratio, _MOST_WORK, ratio is None,
        )  # fmt: skip
        answer = Refit(tuple(chosen[:count].tolist()), coef[:count], value)
        return (answer, bool(doubtful)) if regular else None

    def _swept(self, start: Refit, size: int, least: int, most: int) -> Refit:
        """Return the minimiser of a size that sweeps over it and its neighbours lead to."""
        best: dict[int, Refit] = {}
        new: set[tuple[int, int]] = set()  # which neighbour of which size is yet to be searched from its best minimiser

        def keep(at: int, fit: Refit) -> None:
            if at not in best or self._is_lower(fit, best[at]):
                best[at] = fit
                new.update(((at, 1), (at, -1)))

        def reach(at: int, fit: Refit) -> None:
            keep(at, self._exchange(self._grown(self._shrunk(fit, at), at)))

        keep(size, start)
        reach(least, self._shrunk(start, 0))
        for _ in range(_ROUNDS):
            found = False
            for sizes, step in ((range(least, most), 1), (range(most, least, -1), -1)):
                for at in sizes:
                    if (at, step) in new and self._work < _MOST_WORK:
                        new.remove((at, step))
                        reach(at + step, best[at])
                        found = True
            if not found:
                break
        return best[size]

    def _is_doubtful(self, fit: Refit, ratio: float) -> bool:
        if ratio == inf or self._work >= _MOST_WORK:
            return False
        if ratio == 0.0 or self._moves(fit).exchanges or self._columns.bounds is not None:
            return True
        rest, modelled = self.without_half(fit)
        return rest.value - fit.value > ratio * modelled

    def _lower(self, other: Refit, fit: Refit) -> Refit:
        """Return another minimiser if f is lower there, and else the first."""
        return other if self._is_lower(other, fit) else fit

    def _is_lower(self, other: Refit, fit: Refit) -> bool:
        return other.value < fit.value - self._negligible

    def _exchange(self, fit: Refit) -> Refit:
        """Return the minimiser after exchanges, each the first of the best that lowers f."""
        start = fit
        if start.chosen not in self._exchanged:
            while self._work < _MOST_WORK:
                tried = (
                    self.fit([*fit.chosen[:i], *fit.chosen[i + 1 :], j], fit) for i, j in self._moves(fit).exchanges
                )
                lower = next((other for other in tried if self._is_lower(other, fit)), None)
                if lower is None:
                    break
                fit = lower
            self._exchanged[start.chosen] = fit
        return self._exchanged[start.chosen]

    def _replacements(self, fit: Refit) -> Iterator[Refit]:
        """Yield what exchanges lead to once a column has been replaced, for each one, the cheapest first."""
        costs = self._costs(fit)
        for i in np.argsort(costs, kind="stable")[: int(np.isfinite(costs).sum())]:
            if self._work >= _MOST_WORK:
                return
            rest = self.fit([*fit.chosen[:i], *fit.chosen[i + 1 :]], fit)
            others = (addition for addition in self._moves(rest).additions if addition[0] != fit.chosen[i])
            j, gain = next(others, (0, 0.0))
            if gain > 0.0:
                yield self._exchange(self.fit([*rest.chosen, j], rest))

    def _grown(self, fit: Refit, size: int) -> Refit:
        """Return the minimiser after the best columns were added one by one, to `size` besides the fixed ones."""
        while len(fit.chosen) < size + len(self._fixed):
            (j, gain), *_ = self._moves(fit).additions
            if not gain > 0.0:
                break
            fit = self.fit([*fit.chosen, j], fit)
        return fit

    def _shrunk(self, fit: Refit, size: int) -> Refit:
        """Return the minimiser after the cheapest columns were dropped one by one, to `size` besides the fixed ones."""
        while len(fit.chosen) > size + len(self._fixed):
            i = int(self._costs(fit).argmin())
            fit = self.fit([*fit.chosen[:i], *fit.chosen[i + 1 :]], fit)
        return fit

    def _moves(self, fit: Refit) -> BestMoves:
        """Return the moves that the quadratic model says are best."""
        if fit.chosen not in self._known_moves:
            scores = self.scores(fit)
            self._work += self._entries * (len(fit.chosen) + 2.0)
            gains = scores.gains()
            first = int(gains.argmax())
            additions = [(first, float(gains[first]))]
            gains[first] = -1.0
            second = int(gains.argmax())
            additions.append((second, float(gains[second])))
            self._known_moves[fit.chosen] = BestMoves(additions, scores.exchanges())
            self._known_costs[fit.chosen] = scores.costs()
        return self._known_moves[fit.chosen]

    def _costs(self, fit: Refit) -> np.ndarray:
        """Return by how much the quadratic model rises when each column is dropped."""
        if fit.chosen not in self._known_costs:
            self._known_costs[fit.chosen] = self._columns.own_scores(fit).costs()
        return self._known_costs[fit.chosen]
