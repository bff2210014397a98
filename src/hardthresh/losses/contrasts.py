"""Contrasts: linear functions of the predictions along which the mean of a loss decreases indefinitely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardthresh.arrays import double
from hardthresh.core.typing import Array
from hardthresh.designs import Design

_SOME = 4096
"""Contrasts that `some` examines: hardly any work, and many more than a sparse model has coefficients."""


@dataclass(frozen=True, slots=True, eq=False)
class Contrasts:
    """Linear functions of the predictions, here the predictions themselves.

    The mean decreases indefinitely along a direction exactly if no contrast moves against its sign, those of sign 0 do
    not move, and some contrast moves.

    Attributes
    ----------
    signs : array, shape (m,)
        +1 or -1 where the mean decreases with the contrast indefinitely, else 0.
    counted : array of bool, shape (m,)
        Which contrasts the mean depends on: those with weight.
    """

    signs: np.ndarray
    counted: np.ndarray

    def matrix(self, design: Design) -> np.ndarray:
        """Return the contrasts as functions of the coefficients, shape (m, s), for a design of few columns."""
        return double(design.dense())

    def some(self, design: Design, slopes: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return the same for some contrasts, and the derivative of the mean in each, from those in predictions."""
        every = evenly(design.shape[0])
        return double(design.rows(every).dense()), double(slopes[every])

    def gradient(self, gradient: Array) -> np.ndarray:
        """Return the derivatives in the coefficients that `matrix` has a column for."""
        return double(gradient)

    def direction(self, v: np.ndarray) -> np.ndarray:
        """Return a direction of the coefficients, in their shape, from its entries for the columns of `matrix`."""
        return v


@dataclass(frozen=True, slots=True, eq=False)
class BlockContrasts(Contrasts):
    """Linear functions of the q predictions of each example, r of each.

    Attributes
    ----------
    functionals : array, shape (n, r, q)
        The functions.
    axes : array, shape (q, a)
        An orthonormal basis of the directions of the predictions that can change a loss. A coefficient is a row of
        numbers along these.
    """

    functionals: np.ndarray
    axes: np.ndarray

    def matrix(self, design: Design) -> np.ndarray:
        return _products(design, self.functionals @ self.axes)

    def some(self, design: Design, slopes: Array) -> tuple[np.ndarray, np.ndarray]:
        every = evenly(design.shape[0])
        along = self.functionals[every] @ self.axes
        own = np.linalg.pinv(np.swapaxes(along, 1, 2)) @ (double(slopes)[every] @ self.axes)[:, :, None]
        return _products(design.rows(every), along), own.reshape(-1)

    def gradient(self, gradient: Array) -> np.ndarray:
        return np.asarray((double(gradient) @ self.axes).reshape(-1))

    def direction(self, v: np.ndarray) -> np.ndarray:
        return np.asarray(v.reshape(-1, self.axes.shape[1]) @ self.axes.T)


def evenly(n: int) -> slice:
    """Return some of n places, evenly spread."""
    return slice(None, None, max(1, n // _SOME))


def _products(design: Design, functionals: np.ndarray) -> np.ndarray:
    """Return linear functions of predictions X V as functions of the entries of V, shape (n r, s a)."""
    X, (n, r, a) = double(design.dense()), functionals.shape
    return np.asarray(np.einsum("ns,nra->nrsa", X, functionals).reshape(n * r, X.shape[1] * a))
