"""The scale of each coordinate of a general function, by differences of gradients."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from hardthresh.arrays import move, namespace, to_numpy
from hardthresh.core.errors import NotFiniteError
from hardthresh.core.objective import UNITS, Evaluation, Objective
from hardthresh.core.typing import Array

_TRIES = 8
"""Most gradients for one coordinate. Arbitrary: one is enough where lengths are within 100 of 1, two where f is about
quadratic."""
_LOW, _HIGH = 1e-4, 10.0
"""Changes of f, as shares of its scale, over a length that suits. Arbitrary: it is then right to a factor of 100."""
_FARTHEST = 1e12
"""A length above which a coordinate is taken to have no curvature: f is linear along it. Arbitrary."""
_SHORTER, _LONGER = 30.0, 1000.0
"""Factors by which a length changes where f is infinite at its end, and where no curvature is seen along it; no length
is divided by more than the latter. Arbitrary."""


@dataclass(frozen=True, eq=False)
class Curvatures:
    r"""Second derivatives of f along single coordinates, where they are known.

    They are secants, :math:`(g_j(w + h e_j) - g_j(w)) / h`, over a length h along which f changes by about its own
    scale, so that neither the units of a coordinate nor kinks play a part.

    Attributes
    ----------
    known : array, shape (size,)
        For each coordinate of a flat point; NaN where none was looked for, and 0 where none was found.
    """

    known: np.ndarray

    def with_coordinates(self, objective: Objective, at: Evaluation, columns: np.ndarray, scale: float) -> Curvatures:
        """Return these with what gradients say of some coordinates: mostly one for each of which nothing is known.

        Parameters
        ----------
        objective, at :
            f, and f at a point.
        columns : array of int
            The coordinates.
        scale : float
            Of f: what its values are compared with, > 0.
        """
        missing = columns[np.isnan(self.known[columns])]
        if missing.size == 0:
            return self
        known, slope = self.known.copy(), flat(at.gradient)
        for column in missing:
            known[column] = _secant(objective, at, int(column), float(slope[column]), scale)
        return Curvatures(known)

    def with_diagonal(self, columns: np.ndarray, diagonal: np.ndarray) -> Curvatures:
        """Return these with the diagonal of a Hessian, where nothing is known and it is positive."""
        known = self.known.copy()
        some = np.isnan(known[columns]) & (diagonal > 0.0)
        known[columns[some]] = diagonal[some]
        return Curvatures(known)

    def units(self, columns: np.ndarray) -> np.ndarray:
        """Return for each coordinate the length in which its second derivative is 1.

        That is the median of the others where it is not known, and 1 where none is.
        """
        known = self.known[columns]
        there = (known > 0.0) & (known < np.inf)
        units = np.ones(columns.size)
        units[there] = 1.0 / np.sqrt(known[there])
        units[~there] = np.median(units[there]) if there.any() else 1.0
        return units


def _secant(objective: Objective, at: Evaluation, column: int, slope: float, scale: float) -> float:
    """Return the second derivative along a coordinate over a length that suits it; 0 if none does."""
    here = abs(float(flat(at.point)[column]))
    length, shortest, longest, found = here or 1.0, 0.0, np.inf, 0.0
    for _ in range(_TRIES):
        after = gradient_ahead(objective, at, column, -length if slope > 0.0 else length)
        change = np.inf if after is None else float(abs(after[column] - slope))
        rising = after is None or (after[column] - slope) * (-1.0 if slope > 0.0 else 1.0) > 0.0
        resolved = change > UNITS * float(namespace(at.point).finfo(at.point.dtype).eps) * abs(slope)
        if after is not None and rising and resolved:
            found = change / length
            factor = max(sqrt(scale / (length * change)), 1.0 / _LONGER)  # exponentials grow faster than quadratics
            if _LOW * scale <= length * change <= _HIGH * scale:
                break
        else:
            factor = 1.0 / _SHORTER if after is None else _LONGER
        if factor < 1.0:
            longest = length
        else:
            shortest = length
        length *= factor
        if not shortest < length < longest:
            length = sqrt(shortest * longest)
        if not 0.0 < length < _FARTHEST:
            break
    return found


def gradient_ahead(objective: Objective, at: Evaluation, column: int, step: float) -> np.ndarray | None:
    """Return the gradient a step along one coordinate away, as a flat vector; None where it is not finite."""
    ahead = flat(at.point)
    ahead[column] += step
    try:
        there = objective.evaluate(unflat(ahead, at.point))
    except NotFiniteError:
        return None
    gradient = flat(there.gradient)
    return gradient if np.isfinite(gradient).all() else None


def flat(x: Array) -> np.ndarray:
    """Return an array as a new vector of NumPy in double precision."""
    vector: np.ndarray = to_numpy(x).astype(np.float64).ravel()
    return vector


def unflat(vector: np.ndarray, like: Array) -> Array:
    """Return a flat vector as an array of the shape and kind of another."""
    xp = namespace(like)
    return xp.astype(xp.reshape(move(vector, like), tuple(like.shape)), like.dtype)
