"""Which few of the attributes that were observed together: least squares, local search, and what may be spent."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, inf, log

import numpy as np

from hardthresh.core.typing import Array
from hardthresh.limited.cost_model import CostModel
from hardthresh.solvers.local_search import descend, grow, shrink
from hardthresh.solvers.tableau import Tableau

from .moments import Moments

PER_VARIABLE = 2  # examples per variable, before the fit of all of them is trusted
_ROUNDING = 1e-9  # of what may be spent
_NEGLIGIBLE = 1e-12  # of the variance of the target


@dataclass(frozen=True, slots=True, eq=False)
class Subset:
    """Least squares on some of the observed variables.

    Attributes
    ----------
    chosen : int array
        Which, increasing, counted among the observed ones.
    coef : array
        Their coefficients.
    unexplained : float
        The residual sum of squares, as a share of the target's.
    """

    chosen: Array
    coef: Array
    unexplained: float


def least_squares(moments: Moments, chosen: Array | None = None) -> Subset:
    """Return least squares on some variables, by default all, and an intercept; combinations of others are left out."""
    p = moments.mean.size - 1
    return _subset(_tableau(moments, np.arange(p) if chosen is None else chosen), moments)


def intercept(moments: Moments, subset: Subset) -> float:
    """Return the intercept that belongs to coefficients."""
    return float(moments.mean[-1] - moments.mean[subset.chosen] @ subset.coef)


def needed(n: int, p: int, size: int) -> float:
    """Return by how much another of p attributes beside `size` has to lower log RSS to be more than the best of noise.

    That is the extended BIC's (log n + 2 log p) for n examples, shared out over the degrees of freedom.
    """
    freedom = n - size - 2
    return (log(n) + 2 * log(p)) / freedom if freedom > 0 else inf


def choose(moments: Moments, observed: Array, cost_model: CostModel, count: int, limit: float) -> Subset:
    """Return least squares on at most `count` variables that cost at most `limit`, chosen among the `observed` ones.

    From all of them the cheapest to miss are dropped, or, while there are few examples, the best are added as long as
    each is `needed`; then exchanges of one for another are made as long as one helps. With different prices the best
    of three starts counts: sold for what they explain per price, bought for what they explain, and for that per price;
    and exchanges have to be affordable.
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
    shop = _Shop(observed, cost_model, count, limit, moments.count)
    starts = [shop.bought(_tableau(moments, nothing), per_price=per_price) for per_price in (False, True)]
    if enough:
        starts.append(shop.sold(_tableau(moments, everything)))
    return _subset(max(map(shop.exchanged, starts), key=lambda tableau: tableau.decrease), moments)


def _grow(tableau: Tableau, most: int, n: int) -> None:
    """Add what helps most, one for every 2 `PER_VARIABLE` examples, as long as it is needed."""
    size = min(most, n // (2 * PER_VARIABLE) - 1)
    while tableau.size < size:
        before = tableau.size
        noise = -expm1(-needed(n, tableau.slope.size, before))
        grow(tableau, before + 1, max(_NEGLIGIBLE, noise * (0.5 - tableau.decrease)))
        if tableau.size <= before:
            return


@dataclass(frozen=True, slots=True)
class _Shop:
    """Which of the observed variables a predictor can have for its money."""

    observed: Array
    cost_model: CostModel
    count: int
    limit: float
    n: int

    def extra(self, tableau: Tableau) -> Array:
        """Return what each variable would cost besides the chosen ones."""
        cost_model, panel = self.cost_model, self.cost_model.panel[self.observed]
        return np.where(np.isin(panel, panel[tableau.chosen]), 0.0, cost_model.price[panel])

    def best(self, tableau: Tableau, *, per_price: bool = False) -> int | None:
        """Return the affordable variable that explains most, or most for its price; None if there is none."""
        if not self.observed.size:
            return None
        extra = self.extra(tableau)
        cost = self.cost_model.cost(self.observed[tableau.chosen])
        gains = np.where(extra <= self.limit - cost + self.limit * _ROUNDING, tableau.gains(), 0.0)
        j = int(np.argmax(gains / np.maximum(extra, self.limit * _ROUNDING) if per_price else gains))
        return j if gains[j] > _NEGLIGIBLE else None

    def bought(self, tableau: Tableau, *, per_price: bool) -> Tableau:
        """Return a tableau with what is affordable, needed, and best, one after the other."""
        while tableau.size < min(self.count, max(1, self.n // (2 * PER_VARIABLE) - 1)):
            j = self.best(tableau, per_price=per_price)
            if j is None:
                break
            noise = -expm1(-needed(self.n, self.observed.size, tableau.size))
            if not tableau.gains()[j] > noise * (0.5 - tableau.decrease):
                break
            before = tableau.decrease
            tableau.add(j)
            if not tableau.decrease > before:  # a gain that was nothing but rounding
                break
        return tableau

    def sold(self, tableau: Tableau) -> Tableau:
        """Return a tableau without what explains least for its price, until the rest is affordable."""
        observed, cost_model = self.observed, self.cost_model
        while not cost_model.within_budget(cost_model.cost(observed[tableau.chosen]), self.limit):
            panels = np.unique(cost_model.panel[observed[tableau.chosen]])
            dear = [self._loss(tableau, panel) / cost_model.price[panel] for panel in panels]
            self._drop(tableau, int(panels[int(np.argmin(dear))]))
        shrink(tableau, self.count)
        return self.bought(tableau, per_price=False)

    def exchanged(self, tableau: Tableau) -> Tableau:
        """Return what the best affordable exchanges of one variable for another lead to."""
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
