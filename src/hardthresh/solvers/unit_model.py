"""The quadratic model of f over the chosen units and a few others, by differences of gradients."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from hardthresh.arrays import move, namespace, scatter, to_numpy
from hardthresh.core.errors import NotFiniteError
from hardthresh.core.objective import UNITS, Evaluation, Objective
from hardthresh.core.typing import Array

from .block_tableau import BlockChoice, BlockModel
from .local_search import descend
from .units import Units

_CONVEX = 1e-5
"""Share of its largest eigenvalue by which the least one of a Hessian is positive beyond doubt: the differences of
gradients that it is made of have errors of their step, 6e-6 in double precision."""


class UnitModel:
    """The quadratic model at a point.

    Parameters
    ----------
    objective, at, units :
        f, f at the point, and the units of the set.
    chosen, others : array of int
        The units that the point has, and those that may take their place.

    Attributes
    ----------
    definite, semidefinite : bool
        Whether the Hessian on the chosen units is positive definite, or semidefinite up to errors; it is neither where
        a gradient nearby is not finite. There are no proposals where it is not semidefinite.

    Notes
    -----
    The differences are one-sided: where f has a kink at zero, as for functions of :math:`|w_j|`, its gradient is that
    of the side of positive coordinates, and so is the model. Cost: one gradient for each coordinate.
    """

    def __init__(
        self, objective: Objective, at: Evaluation, units: Units, chosen: np.ndarray, others: np.ndarray
    ) -> None:
        point, slope = flat(at.point), flat(at.gradient)
        self._names = np.sort(np.concatenate([chosen, others]))
        self._columns, self._like, self._units = units.coordinates(self._names), at.point, units
        hessian = self._hessian(objective, at)
        owner = units.owner[self._columns]
        inside = np.isin(owner, chosen) | (owner < 0)
        finite = bool(np.isfinite(hessian).all())
        values = np.linalg.eigvalsh(hessian[np.ix_(inside, inside)]) if finite else np.array([-1.0])
        least, doubt = (float(values[0]), _CONVEX * float(values[-1])) if values.size else (1.0, 0.0)
        self.definite, self.semidefinite = least > doubt, least >= -doubt
        self._start = tuple(np.searchsorted(self._names, chosen).tolist())
        if self.semidefinite:
            self._model = BlockModel(
                hessian,
                hessian @ point[self._columns] - slope[self._columns],
                [np.flatnonzero(owner == g) for g in self._names],
                np.flatnonzero(owner < 0),
                float(namespace(at.point).finfo(at.point.dtype).eps),
            )

    def proposals(self, negligible: float) -> Iterator[tuple[np.ndarray, Array]]:
        """Yield sets of units that lower the model, each with its minimiser: that exchanges lead to, then single ones.

        Of the exchanges there is the best for each unit that may enter, by decreasing gain: one at whose coefficients
        the model is wrong does not keep the others from being tried.
        """
        choice = BlockChoice(self._model, self._start, np.inf)
        found = descend(choice, self._units.budget, negligible, negligible)
        if found is not choice:
            yield self._proposal(found)
        gains = np.array([gains for _, gains in choice.exchange_gains()])
        if gains.size == 0:
            return
        best = gains.max(axis=0)
        for added in np.argsort(-best, kind="stable")[: np.count_nonzero(best > negligible)]:
            exchanged = choice.copy()
            exchanged.drop(int(gains[:, added].argmax()))
            exchanged.add(int(added))
            yield self._proposal(exchanged)

    def _proposal(self, choice: BlockChoice) -> tuple[np.ndarray, Array]:
        like, xp = self._like, namespace(self._like)
        coef = xp.astype(move(choice.coef, like), like.dtype)
        whole = scatter(coef, move(self._columns, like), prod(like.shape))
        return self._names[list(choice.chosen)], xp.reshape(whole, tuple(like.shape))

    def _hessian(self, objective: Objective, at: Evaluation) -> np.ndarray:
        """Return the Hessian of the columns by differences of gradients; NaN where one is not finite."""
        like, xp, columns = self._like, namespace(self._like), self._columns
        step = float(xp.finfo(like.dtype).eps) ** (1 / 3) * max(1.0, float(xp.max(xp.abs(like))))
        images = np.full((columns.size, columns.size), np.nan)
        slope = flat(at.gradient)[columns]
        for row, column in enumerate(columns):
            ahead = flat(like)
            ahead[column] += step
            try:
                there = objective.evaluate(xp.astype(xp.reshape(move(ahead, like), tuple(like.shape)), like.dtype))
            except NotFiniteError:
                break
            images[row] = (flat(there.gradient)[columns] - slope) / step
        rounding = UNITS * float(xp.finfo(like.dtype).eps) * np.abs(slope) / step
        known = ~(np.abs(images.diagonal()) <= rounding)  # where it is NaN, too
        return np.where(known & known[:, None], 0.5 * (images + images.T), 0.0)


def flat(x: Array) -> np.ndarray:
    """Return an array as a new vector of NumPy in double precision."""
    vector: np.ndarray = to_numpy(x).astype(np.float64).ravel()
    return vector
