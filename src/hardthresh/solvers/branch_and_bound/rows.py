"""Least squares on a few columns from the rows: where a Gram matrix has lost the digits that decide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular

from hardthresh.arrays import double, move
from hardthresh.core.objective import LinearObjective
from hardthresh.designs import Design
from hardthresh.losses import Squared
from hardthresh.objectives import LinearModel

EPS = float(np.finfo(np.float64).eps)

MADE_UP = 1e-13
"""A column is a combination of others if they leave less than this share of its length: the entries have 16 digits, of
which centring and scaling cost some. That is far less than the root of `hardthresh.arrays.linalg.DEPENDENT`, because
rows are projected here, and a proof is about columns that a heuristic may leave out."""

_BLOCK = 2**24
"""How many entries of the data are made dense at a time: 128 MB."""

UNITS = 16.0
"""The rounding of a projection in units of eps: as that of a value (`hardthresh.objectives`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    r"""The least-squares problem :math:`\tfrac{1}{2} \|z - A v\|^2` of an objective, for coefficients v.

    A has the columns of the data, each row multiplied by the root of its weight, and a row for each ridge.

    Attributes
    ----------
    design : Design
        The data.
    free : array of int
        The free coordinates.
    root : array, shape (n,)
        The root of the weight of each row.
    target : array, shape (n,)
        z, without the rows of the ridge, where it is zero.
    ridge : array, shape (d,)
        The ridge.
    """

    design: Design
    free: np.ndarray
    root: np.ndarray
    target: np.ndarray
    ridge: np.ndarray

    @classmethod
    def of(cls, objective: LinearObjective, free: np.ndarray) -> Rows | None:
        """Return the problem of least squares, in double precision; None for other objectives."""
        if not (isinstance(objective, LinearModel) and isinstance(objective.loss, Squared)):
            return None
        root, target = np.sqrt(double(objective.weights)), double(objective.y)
        if objective.offset is not None:
            target = target - double(objective.offset)
        return cls(objective.design, free, root, root * target, double(objective.ridge))

    def squares(self) -> np.ndarray:
        """Return the squares of the lengths of all columns; of a design without its zeros, what it says they are."""
        n, d = self.design.shape
        if not self.design.stores_zeros:
            squares = double(self.design.pullback_squares(move(self.root**2, self.design.zeros(1))))
        else:
            width = max(1, _BLOCK // n)
            parts = (self._data(np.arange(start, min(d, start + width))) for start in range(0, d, width))
            squares = np.concatenate([np.einsum("ij,ij->j", part, part) for part in parts])
        every: np.ndarray = squares + self.ridge
        return every

    def value(self, columns: np.ndarray) -> tuple[float, float]:
        """Return the minimum over some coordinates and the free ones, and how much of it may be rounding.

        Cost: :math:`O(n s^2)` for s coordinates.
        """
        every = np.concatenate([self.free, columns])
        A, z = self._matrix(every), np.concatenate([self.target, np.zeros(every.size)])
        scale = _norms(A)
        basis, triangle, _ = qr(A / scale, mode="economic", pivoting=True)
        diagonal = np.abs(triangle.diagonal())
        rank = int(np.count_nonzero(diagonal > MADE_UP))
        basis, triangle = basis[:, :rank], triangle[:rank, :rank]
        along = basis.T @ z
        residual = z - basis @ along
        residual -= basis @ (basis.T @ residual)
        size = float(np.abs(solve_triangular(triangle, along)).sum()) if rank else 0.0
        left = float(residual @ residual)
        shift = UNITS * EPS * (size + float(np.linalg.norm(z)))  # of the residual, by rounding of the entries
        return 0.5 * left, shift * (np.sqrt(left) + shift)

    def made_up(self, chosen: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return which of some columns the chosen and the free ones make up, but for the rounding of their entries."""
        if others.size == 0:
            return np.zeros(0, dtype=bool)
        left, whole, size = self._remainders(np.concatenate([self.free, chosen]), others)
        own = np.hypot(np.linalg.norm(left, axis=0), np.sqrt(self.ridge[others]))
        made: np.ndarray = own <= MADE_UP * whole * (1.0 + size)
        return made

    def swept(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what the free columns leave of some: products with all columns and with the target, and made-up ones.

        The products with other columns are those of the remainders, to which the free columns are orthogonal.
        """
        left, whole, size = self._remainders(self.free, columns)
        n = self.root.size
        products = np.stack(
            [double(self.design.pullback(move(self.root * r[:n], self.design.zeros(1)))) for r in left.T]
        )
        of_each_other = left.T @ left
        products[:, columns] = of_each_other + np.diag(self.ridge[columns])
        slope = left[:n].T @ self.target
        return products, slope, np.linalg.norm(left, axis=0) <= MADE_UP * whole * (1.0 + size)

    def _remainders(self, on: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what some columns leave of others, the lengths of these, and the sizes of their coefficients."""
        A = self._matrix(on)
        if on.size == 0:
            B = self._data(others)
            return B, _norms(B), np.zeros(others.size)
        B = np.concatenate([self._data(others), np.zeros((on.size, others.size))])
        whole, scale = _norms(B), _norms(A)
        basis, triangle, _ = qr(A / scale, mode="economic", pivoting=True)
        rank = int(np.count_nonzero(np.abs(triangle.diagonal()) > MADE_UP))
        basis, triangle = basis[:, :rank], triangle[:rank, :rank]
        along = basis.T @ B
        left = B - basis @ along
        left -= basis @ (basis.T @ left)
        size = np.abs(solve_triangular(triangle, along)).sum(axis=0) / whole if rank else np.zeros(others.size)
        return left, whole, size

    def _matrix(self, columns: np.ndarray) -> np.ndarray:
        return np.concatenate([self._data(columns), np.diag(np.sqrt(self.ridge[columns]))])

    def _data(self, columns: np.ndarray) -> np.ndarray:
        """Return columns in any order, with weighted rows."""
        increasing = np.unique(columns)
        some = self.design.columns(move(increasing, self.design.zeros(1)))
        dense = double(some.dense())[:, increasing.searchsorted(columns)]
        weighted: np.ndarray = self.root[:, None] * dense
        return weighted


def _norms(A: np.ndarray) -> np.ndarray:
    """Return the lengths of columns, and 1 for a column of zeros."""
    norms: np.ndarray = np.linalg.norm(A, axis=0)
    return np.where(norms > 0, norms, 1.0)
