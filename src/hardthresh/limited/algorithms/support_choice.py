"""Choose few of the attributes that were observed together: least squares, local search, and what may be spent."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, inf, log

import numpy as np

from hardthresh.core.typing import Array
from hardthresh.limited.cost_model import ROUNDING, CostModel
from hardthresh.solvers.working_set.search import descend, grow, shrink
from hardthresh.solvers.working_set.tableau import Tableau

from .moments import Moments

PER_VARIABLE = 2  # examples per variable before the fit of all of them is trusted; 1.2 to 8 are equal, as in `adaptive`
_NEGLIGIBLE = 1e-12  # share of the target's variance; above its rounding, and 1e-15 to 1e-6 are equal


@dataclass(frozen=True, slots=True, eq=False)
class Subset:
    """Least squares on some of the observed variables.

    Attributes
    ----------
    chosen : int array
        Which, increasing, counted among the observed ones.
    coef : array
        Their coefficients.
    residual : float
        The residual sum of squares, as a share of the target's.
    """

    chosen: Array
    coef: Array
    residual: float


def least_squares(moments: Moments, chosen: Array | None = None) -> Subset:
    """Return least squares with an intercept on some variables, by default all; collinear ones are left out."""
    p = moments.mean.size - 1
    return _subset(_tableau(moments, np.arange(p) if chosen is None else chosen), moments)


def intercept(moments: Moments, subset: Subset) -> float:
    """Return the intercept that belongs to coefficients."""
    return float(moments.mean[-1] - moments.mean[subset.chosen] @ subset.coef)


def required_decrease(n: int, p: int, size: int) -> float:
    """Return by how much one more of p attributes, beside `size` others, has to lower log RSS.

    The best of p attributes that are noise lowers it by less: this is the penalty (log n + 2 log p) of the extended BIC
    for n examples (Chen and Chen 2008, with gamma = 1), divided by the degrees of freedom.
    """
    freedom = n - size - 2
    return (log(n) + 2 * log(p)) / freedom if freedom > 0 else inf


def choose(moments: Moments, observed: Array, cost_model: CostModel, count: int, limit: float) -> Subset:
    """Return least squares on at most `count` of the `observed` variables, which cost at most `limit`.

    Backward elimination starts from all of them; while there are few examples for that, forward selection adds the best
    as long as each lowers log RSS by `required_decrease`. Then one variable is exchanged for another as long as that
    helps. With different prices the best of three starts is taken: elimination by the gain of variables per price,
    selection by their gain, and selection by that per price; and exchanges keep to the limit.
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
    """Add the best variables, one for every 2 `PER_VARIABLE` examples, as long as each gains more than noise."""
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
        """Return what each variable would add to the cost of the chosen ones."""
        cost_model, panel = self.cost_model, self.cost_model.panel[self.observed]
        return np.where(np.isin(panel, panel[tableau.chosen]), 0.0, cost_model.price[panel])

    def best(self, tableau: Tableau, *, per_price: bool = False) -> int | None:
        """Return the variable within the limit with the largest gain, or the largest per price; None if none gains."""
        if not self.observed.size:
            return None
        added = self.added_cost(tableau)
        cost = self.cost_model.cost(self.observed[tableau.chosen])
        gains = np.where(added <= self.limit - cost + self.limit * ROUNDING, tableau.gains(), 0.0)
        j = int(np.argmax(gains / np.maximum(added, self.limit * ROUNDING) if per_price else gains))
        return j if gains[j] > _NEGLIGIBLE else None

    def grown(self, tableau: Tableau, *, per_price: bool) -> Tableau:
        """Return a tableau with the best variables within the limit, as long as each gains more than noise."""
        while tableau.size < min(self.count, max(1, self.n // (2 * PER_VARIABLE) - 1)):
            j = self.best(tableau, per_price=per_price)
            if j is None:
                break
            noise = -expm1(-required_decrease(self.n, self.observed.size, tableau.size))
            if not tableau.gains()[j] > noise * (0.5 - tableau.decrease):
                break
            before = tableau.decrease
            tableau.add(j)
            if not tableau.decrease > before:  # a gain that was nothing but rounding
                break
        return tableau

    def shrunk(self, tableau: Tableau) -> Tableau:
        """Return a tableau without the panels of the least gain per price, so that the rest is within the limit."""
        observed, cost_model = self.observed, self.cost_model
        while not cost_model.within_budget(cost_model.cost(observed[tableau.chosen]), self.limit):
            panels = np.unique(cost_model.panel[observed[tableau.chosen]])
            losses = [self._loss(tableau, panel) / cost_model.price[panel] for panel in panels]
            self._drop(tableau, int(panels[int(np.argmin(losses))]))
        shrink(tableau, self.count)
        return self.grown(tableau, per_price=False)

    def exchanged(self, tableau: Tableau) -> Tableau:
        """Return a tableau that no exchange of one variable for another within the limit improves."""
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
    """Return the deviations (up to a factor) of variables and target, and their inverses; 0 for constant ones."""
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
