"""The quadratic model of f over the chosen units and a few others, by differences of gradients."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from hardthresh.arrays import move, namespace, scatter
from hardthresh.core.objective import UNITS, Evaluation, Objective
from hardthresh.core.typing import Array

from .block_tableau import BlockChoice, BlockModel
from .local_search import descend
from .natural_scale import Curvatures, flat, gradient_ahead
from .units import Units

_CONVEX = 1e-5
"""Share of its largest eigenvalue by which the least one of a Hessian is positive beyond doubt: the differences of
gradients that it is made of have errors of their step, 6e-6 in double precision."""
_LONG = 1000.0
"""A difference is taken again if its step was so many times as long as suits the curvature. Arbitrary: its relative
error is then about 6e-3."""


class UnitModel:
    """The quadratic model at a point.

    Parameters
    ----------
    objective, at, units :
        f, f at the point, and the units of the set.
    chosen, others : array of int
        The units that the point has, and those that may take their place.
    curvatures : Curvatures
        What is known of the coordinates, for the steps of the differences.
    scale : float
        What values of f are compared with.

    Attributes
    ----------
    definite, semidefinite : bool
        Whether the Hessian on the chosen units, scaled to a diagonal of ones, is positive definite, or semidefinite up
        to errors; it is neither where a gradient nearby is not finite. There are no proposals where it is not
        semidefinite.
    curvatures : Curvatures
        What is known of the coordinates with the model.

    Notes
    -----
    The differences are one-sided: where f has a kink at zero, as for functions of :math:`|w_j|`, its gradient is that
    of the side of positive coordinates, and so is the model. Cost: one gradient for each coordinate.
    """

    def __init__(
        self,
        objective: Objective,
        at: Evaluation,
        units: Units,
        chosen: np.ndarray,
        others: np.ndarray,
        curvatures: Curvatures,
        scale: float,
    ) -> None:
        point, slope = flat(at.point), flat(at.gradient)
        self._names = np.sort(np.concatenate([chosen, others]))
        self._columns, self._like, self._units = units.coordinates(self._names), at.point, units
        hessian = self._hessian(objective, at, curvatures, scale)
        owner = units.owner[self._columns]
        inside = np.isin(owner, chosen) | (owner < 0)
        finite = bool(np.isfinite(hessian).all())
        values = np.linalg.eigvalsh(_scaled(hessian[np.ix_(inside, inside)])) if finite else np.array([-1.0])
        self._curved, self._owner, self._at = hessian, owner, at
        least, doubt = (float(values[0]), _CONVEX * float(values[-1])) if values.size else (1.0, 0.0)
        self.definite, self.semidefinite = least > doubt, least >= -doubt
        self.curvatures = curvatures.with_diagonal(self._columns, hessian.diagonal()) if finite else curvatures
        self._start = tuple(np.searchsorted(self._names, chosen).tolist())
        if self.semidefinite:
            self._model = BlockModel(
                hessian,
                hessian @ point[self._columns] - slope[self._columns],
                [np.flatnonzero(owner == g) for g in self._names],
                np.flatnonzero(owner < 0),
                float(namespace(at.point).finfo(at.point.dtype).eps),
            )

    def tells(self, values: dict[int, float], share: float) -> bool:
        """Return whether the model tells the rise of f without each of some units, at most a share of it apart.

        Parameters
        ----------
        values : dict of int to float
            f without the unit.
        share : float
            0 would be a quadratic.
        """
        point, slope = flat(self._at.point)[self._columns], flat(self._at.gradient)[self._columns]
        for g, value in values.items():
            own = self._owner == g
            part = point[own]
            told = 0.5 * part @ self._curved[np.ix_(own, own)] @ part - slope[own] @ part
            rise = value - self._at.value
            if not abs(told - rise) <= share * max(abs(rise), abs(told)):
                return False
        return True

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

    def _hessian(self, objective: Objective, at: Evaluation, curvatures: Curvatures, scale: float) -> np.ndarray:
        """Return the Hessian of the columns by differences of gradients; NaN where one is not finite."""
        point, slope, columns = flat(at.point), flat(at.gradient)[self._columns], self._columns
        eps = float(namespace(at.point).finfo(at.point.dtype).eps)
        share, known = eps ** (1 / 3), curvatures.known[columns]
        steps = np.maximum(1.0, np.abs(point[columns]))
        steps[known > 0.0] = np.sqrt(scale / known[known > 0.0])
        steps *= share
        images = np.full((columns.size, columns.size), np.nan)
        for row, column in enumerate(columns):
            for _ in range(2):
                after = gradient_ahead(objective, at, int(column), float(steps[row]))
                if after is None:
                    return images
                images[row] = (after[columns] - slope) / steps[row]
                suits = share * np.sqrt(scale / max(abs(images[row, row]), 1e-300))
                if steps[row] <= _LONG * suits:
                    break
                steps[row] = suits
        resolved = ~(np.abs(images.diagonal()) <= UNITS * eps * np.abs(slope) / steps)  # where it is NaN, too
        return np.where(resolved & resolved[:, None], 0.5 * (images + images.T), 0.0)


def _scaled(hessian: np.ndarray) -> np.ndarray:
    """Return a matrix with a diagonal of 1, -1 or 0."""
    diagonal = np.abs(hessian.diagonal())
    root = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scaled: np.ndarray = hessian / root / root[:, None]
    return scaled
