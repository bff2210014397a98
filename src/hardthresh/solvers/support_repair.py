"""Which few of the attributes that were observed together: least squares, local search, and what may be spent."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, log

import numpy as np

from hardthresh.attributes import Market
from hardthresh.core.typing import Array

from .local_search import descend, grow, shrink
from .moments import Moments
from .tableau import Tableau

PER_VARIABLE = 2  # examples per variable, before the fit of all of them is trusted
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


def choose(moments: Moments, observed: Array, market: Market, count: int, limit: float) -> Subset:
    """Return least squares on at most `count` variables that cost at most `limit`, chosen among the `observed` ones.

    From all of them the cheapest to miss are dropped, or, while there are few examples, the best are added, as long as
    each lowers n log RSS, n the degrees of freedom, by more than the log n + 2 log p of the extended BIC; then
    exchanges of one for another are made as long as one helps. With different prices what goes first is what explains
    least per price, and there are no exchanges; but what is affordable in the end, and helps as much, comes back.
    """
    p = observed.size
    enough = moments.count >= PER_VARIABLE * p
    tableau = _tableau(moments, np.arange(p) if enough else np.empty(0, dtype=np.intp))
    if not enough:
        _grow(tableau, count, moments.count)
    _sell(tableau, observed, market, limit)
    shrink(tableau, count)
    if market.plain:
        return _subset(descend(tableau, tableau.size, _NEGLIGIBLE, _NEGLIGIBLE), moments)
    return _with_affordable(_subset(tableau, moments), moments, observed, market, count, limit)


def _grow(tableau: Tableau, most: int, n: int) -> None:
    """Add what helps most, one for every 2 `PER_VARIABLE` examples, if it is more than the best of noise would."""
    size = min(most, n // (2 * PER_VARIABLE) - 1)
    while tableau.size < size:
        before = tableau.size
        noise = -expm1(-(log(n) + 2 * log(tableau.slope.size)) / (n - before - 2))
        grow(tableau, before + 1, max(_NEGLIGIBLE, noise * (0.5 - tableau.decrease)))
        if tableau.size == before:
            return


def _sell(tableau: Tableau, observed: Array, market: Market, limit: float) -> None:
    """Drop the panels that explain least for their price, until the rest is affordable."""
    while not market.affords(market.cost(observed[tableau.chosen]), limit):
        panels = np.unique(market.panel[observed[tableau.chosen]])
        dear = [_loss(tableau, observed, market, panel) / market.price[panel] for panel in panels]
        _drop(tableau, observed, market, int(panels[int(np.argmin(dear))]))


def _with_affordable(
    subset: Subset, moments: Moments, observed: Array, market: Market, count: int, limit: float
) -> Subset:
    """Return least squares with what can still be afforded and helps by more than the best of noise would."""
    n, p = moments.count, observed.size
    while subset.chosen.size < count:
        larger = [np.append(subset.chosen, j) for j in np.setdiff1d(np.arange(p), subset.chosen)]
        offers = [
            least_squares(moments, chosen) for chosen in larger if market.affords(market.cost(observed[chosen]), limit)
        ]
        best = min(offers, key=lambda offer: offer.unexplained, default=subset)
        fall = log(max(subset.unexplained, _NEGLIGIBLE) / max(best.unexplained, _NEGLIGIBLE))
        if not (n - subset.chosen.size - 2) * fall > log(n) + 2 * log(p):
            return subset
        subset = best
    return subset


def _loss(tableau: Tableau, observed: Array, market: Market, panel: int) -> float:
    without = tableau.copy()
    _drop(without, observed, market, panel)
    return tableau.decrease - without.decrease


def _drop(tableau: Tableau, observed: Array, market: Market, panel: int) -> None:
    for j in [j for j in tableau.chosen if market.panel[observed[j]] == panel]:
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
