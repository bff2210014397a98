"""Which few of the attributes that were observed together: least squares, local search, and what may be spent."""

from __future__ import annotations

from dataclasses import dataclass

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

    From all of them the cheapest to miss are dropped, or, while there are few examples, the best are added; then
    exchanges of one for another are made as long as one helps. With different prices what goes first is what explains
    least per price, and there are no exchanges.
    """
    p = observed.size
    enough = moments.count >= PER_VARIABLE * p
    tableau = _tableau(moments, np.arange(p) if enough else np.empty(0, dtype=np.intp))
    if not enough:
        grow(tableau, min(count, max(1, moments.count // (2 * PER_VARIABLE))), _NEGLIGIBLE)
    _sell(tableau, observed, market, limit)
    shrink(tableau, count)
    return _subset(descend(tableau, tableau.size, _NEGLIGIBLE, _NEGLIGIBLE) if market.plain else tableau, moments)


def _sell(tableau: Tableau, observed: Array, market: Market, limit: float) -> None:
    """Drop the panels that explain least for their price, until the rest is affordable."""
    while not market.affords(market.cost(observed[tableau.chosen]), limit):
        panels = np.unique(market.panel[observed[tableau.chosen]])
        dear = [_loss(tableau, observed, market, panel) / market.price[panel] for panel in panels]
        _drop(tableau, observed, market, int(panels[int(np.argmin(dear))]))


def _loss(tableau: Tableau, observed: Array, market: Market, panel: int) -> float:
    without = tableau.copy()
    _drop(without, observed, market, panel)
    return tableau.decrease - without.decrease


def _drop(tableau: Tableau, observed: Array, market: Market, panel: int) -> None:
    for j in [j for j in tableau.chosen if market.panel[observed[j]] == panel]:
        tableau.drop(tableau.chosen.index(j))


def _scales(moments: Moments) -> Array:
    """Return the deviations (up to a factor) of variables and target, 1 for constant ones."""
    scale = np.sqrt(moments.comoment.diagonal())
    return np.where(scale > 0, scale, 1.0)


def _tableau(moments: Moments, chosen: Array) -> Tableau:
    scale = _scales(moments)
    correlation = moments.comoment / scale / scale[:, None]
    return Tableau(correlation[:-1, :-1], correlation[:-1, -1], chosen.tolist())


def _subset(tableau: Tableau, moments: Moments) -> Subset:
    scale = _scales(moments)
    order = np.argsort(tableau.chosen)
    chosen = np.array(tableau.chosen, dtype=np.intp)[order]
    coef = tableau.coef[order] * scale[-1] / scale[chosen]
    return Subset(chosen, coef, max(0.0, 1.0 - 2.0 * tableau.decrease))
