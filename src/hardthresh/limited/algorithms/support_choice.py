"""Choose a few of the attributes that were observed together, by least squares, local search and a cost limit."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, inf, log

import numpy as np

from hardthresh.core.typing import Array
from hardthresh.limited.cost_model import ROUNDING, CostModel
from hardthresh.solvers.working_set.search import descend, grow, shrink
from hardthresh.solvers.working_set.tableau import Tableau

from .moments import Moments

PER_VARIABLE = 2  # examples per variable required to fit all variables; 1.2 to 8 are equal, as defined in `adaptive`
_NEGLIGIBLE = 1e-12  # share of the target's variance, larger than its rounding error; 1e-15 to 1e-6 are equal


@dataclass(frozen=True, slots=True, eq=False)
class Subset:
    """Least squares on some of the observed variables.

    Attributes
    ----------
    chosen : int array
        The positions of the chosen variables among the observed ones, increasing.
    coef : array
        Their coefficients.
    residual : float
        The residual sum of squares, as a share of the target's.
    """

    chosen: Array
    coef: Array
    residual: float


def least_squares(moments: Moments, chosen: Array | None = None) -> Subset:
    """Return least squares with an intercept on variables, by default all; collinear variables are left out."""
    p = moments.mean.size - 1
    return _subset(_tableau(moments, np.arange(p) if chosen is None else chosen), moments)


def intercept(moments: Moments, subset: Subset) -> float:
    """Return the intercept of a least-squares fit."""
    return float(moments.mean[-1] - moments.mean[subset.chosen] @ subset.coef)


def required_decrease(n: int, p: int, size: int) -> float:
    """Return the decrease of log RSS that one more of p attributes needs, in addition to `size` others.

    It is the penalty log n + 2 log p of the extended BIC for n examples (Chen and Chen 2008, with gamma = 1), divided
    by the degrees of freedom. The best of p attributes that are noise decreases log RSS by less.
    """
    freedom = n - size - 2
    return (log(n) + 2 * log(p)) / freedom if freedom > 0 else inf


def choose(moments: Moments, observed: Array, cost_model: CostModel, count: int, limit: float) -> Subset:
    """Return least squares on at most `count` of the `observed` variables, which cost at most `limit`.

    Backward elimination starts from all observed variables. If there are too few examples for this, forward selection
    adds the best variable as long as it lowers log RSS by `required_decrease`. Then one variable at a time is exchanged
    for another as long as this lowers the RSS. With different prices the same exchanges, within `limit`, start from
    three supports, and the best result is returned: elimination by gain per price, forward selection by gain, and
    forward selection by gain per price.
    """
    p = observed.size
    enough = moments.count >= PER_VARIABLE * p
    everything, nothing = np.arange(p), np.empty(0, dtype=np.intp)
    if cost_model.uniform:
        tableau = _tableau(moments, everything if enough else nothing)
        if not enough:
            _grow(tableau, count, moments.count)
        shrink(tableau, count)
        return _subset(descend(tableau, tableau.size, _NEGLIGIBLE, _NEGLIGIBLE), moments)
    search = _PricedSearch(observed, cost_model, count, limit, moments.count)
    starts = [search.grown(_tableau(moments, nothing), per_price=per_price) for per_price in (False, True)]
    if enough:
        starts.append(search.shrunk(_tableau(moments, everything)))
    return _subset(max(map(search.exchanged, starts), key=lambda tableau: tableau.decrease), moments)


def _grow(tableau: Tableau, most: int, n: int) -> None:
    """Add the best variables, at most one for 2 `PER_VARIABLE` examples, while each gains more than noise does."""
    size = min(most, n // (2 * PER_VARIABLE) - 1)
    while tableau.size < size:
        before = tableau.size
        noise = -expm1(-required_decrease(n, tableau.slope.size, before))
        grow(tableau, before + 1, max(_NEGLIGIBLE, noise * (0.5 - tableau.decrease)))
        if tableau.size <= before:
            return


@dataclass(frozen=True, slots=True)
class _PricedSearch:
    """Search for variables of different prices that cost at most `limit` together."""

    observed: Array
    cost_model: CostModel
    count: int
    limit: float
    n: int

    def added_cost(self, tableau: Tableau) -> Array:
        """Return the cost that each variable would add to that of the chosen ones."""
        cost_model, panel = self.cost_model, self.cost_model.panel[self.observed]
        return np.where(np.isin(panel, panel[tableau.chosen]), 0.0, cost_model.price[panel])

    def best(self, tableau: Tableau, *, per_price: bool = False) -> int | None:
        """Return the variable within the limit with the largest gain, or gain per price; None if there is no gain."""
        if not self.observed.size:
            return None
        added = self.added_cost(tableau)
        cost = self.cost_model.cost(self.observed[tableau.chosen])
        gains = np.where(added <= self.limit - cost + self.limit * ROUNDING, tableau.gains(), 0.0)
        j = int(np.argmax(gains / np.maximum(added, self.limit * ROUNDING) if per_price else gains))
        return j if gains[j] > _NEGLIGIBLE else None

    def grown(self, tableau: Tableau, *, per_price: bool) -> Tableau:
        """Return a tableau after adding the best variables within the limit, while each gains more than noise does."""
        while tableau.size < min(self.count, max(1, self.n // (2 * PER_VARIABLE) - 1)):
            j = self.best(tableau, per_price=per_price)
            if j is None:
                break
            noise = -expm1(-required_decrease(self.n, self.observed.size, tableau.size))
            if not tableau.gains()[j] > noise * (0.5 - tableau.decrease):
                break
            before = tableau.decrease
            tableau.add(j)
            if not tableau.decrease > before:  # the gain was a rounding error
                break
        return tableau

    def shrunk(self, tableau: Tableau) -> Tableau:
        """Return a tableau after removing the panels with the smallest gain per price, until it is within the limit."""
        observed, cost_model = self.observed, self.cost_model
        while not cost_model.within_budget(cost_model.cost(observed[tableau.chosen]), self.limit):
            panels = np.unique(cost_model.panel[observed[tableau.chosen]])
            losses = [self._loss(tableau, panel) / cost_model.price[panel] for panel in panels]
            self._drop(tableau, int(panels[int(np.argmin(losses))]))
        shrink(tableau, self.count)
        return self.grown(tableau, per_price=False)

    def exchanged(self, tableau: Tableau) -> Tableau:
        """Return a tableau that no exchange of two variables within the limit improves."""
        while True:
            best = tableau
            for place in range(tableau.size):
                other = tableau.copy()
                other.drop(place)
                j = self.best(other)
                if j is not None:
                    other.add(j)
                if other.decrease > best.decrease + _NEGLIGIBLE:
                    best = other
            if best is tableau:
                return tableau
            tableau = best

    def _loss(self, tableau: Tableau, panel: int) -> float:
        without = tableau.copy()
        self._drop(without, panel)
        return tableau.decrease - without.decrease

    def _drop(self, tableau: Tableau, panel: int) -> None:
        for j in [j for j in tableau.chosen if self.cost_model.panel[self.observed[j]] == panel]:
            tableau.drop(tableau.chosen.index(j))


def _deviations(moments: Moments) -> tuple[Array, Array]:
    """Return the standard deviations of variables and target, up to a factor, and their inverses, 0 for constants."""
    deviation = np.sqrt(moments.spread())
    return deviation, np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)


def _tableau(moments: Moments, chosen: Array) -> Tableau:
    _, inverse = _deviations(moments)
    correlation = moments.comoment * inverse * inverse[:, None]
    return Tableau(correlation[:-1, :-1], correlation[:-1, -1], chosen.tolist())


def _subset(tableau: Tableau, moments: Moments) -> Subset:
    deviation, inverse = _deviations(moments)
    order = np.argsort(tableau.chosen)
    chosen = np.array(tableau.chosen, dtype=np.intp)[order]
    coef = tableau.coef[order] * deviation[-1] * inverse[chosen]
    return Subset(chosen, coef, max(0.0, 1.0 - 2.0 * tableau.decrease))
