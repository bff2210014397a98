"""The problem of several outputs, or of more than two classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.certificates.effects import row_standard_errors
from hardthresh.constraints import GroupSparsity, RowSparsity
from hardthresh.constraints.supports import Rows
from hardthresh.core.objective import Evaluation
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.objectives import MultiOutputModel
from hardthresh.objectives.flat import FlatModel

from .examined import Examined
from .problem import Problem


class RowsProblem(Problem):
    """A sparse model of several outputs, whose points are matrices with a row for each column of the data.

    A feature is chosen for all outputs, or classes. Coefficients have a row for each of them, and so do the results of
    `minimisers`.
    """

    __slots__ = ()
    objective: MultiOutputModel
    constraint: RowSparsity

    def coordinates(self, support: Support) -> Array:
        """Return the rows of a support, increasing."""
        assert isinstance(support, Rows)
        return support.rows

    def minimisers(
        self, supports: Sequence[np.ndarray], sizes: Sequence[int], ridges: np.ndarray
    ) -> tuple[np.ndarray, list[str]]:
        """Return the minimisers, shape (n_sizes, n_ridges, n_outputs, d), and which of them were not found."""
        points, unconverged = super().minimisers(supports, sizes, ridges)
        return np.swapaxes(points, 2, 3), unconverged

    def coefficients(self, w: Array) -> tuple[Array, Array]:
        """Return a row of coefficients and an intercept for each output; those of all classes add up to 0."""
        return super().coefficients(self.objective.centre(w).T)

    def point(self, coef: Array, intercept: Array) -> Array:
        """Return the point with a given row of coefficients, and an intercept, for each output."""
        return super().point(coef, intercept).T

    def unit_numbers(self, support: Support) -> np.ndarray:
        """Return the number of the unit of each feature: its own, or its group's."""
        return self._units()[: self.mean.shape[0]]

    def _units(self) -> np.ndarray:
        """Return the number of each row, or of its group."""
        p, q = self.objective.shape
        return to_numpy(self.constraint.structure((p, q)).numbers)[::q] if self.grouped else np.arange(p)

    @property
    def grouped(self) -> bool:
        """Whether whole groups of features are chosen."""
        return self.constraint.groups is not None

    def examined(self, w: Array, support: Support) -> Examined:
        """Return the problem and a point as those of a vector, in which features are groups of coordinates."""
        return self._as_vector(FlatModel(self.objective), w)

    def _as_vector(self, flat: FlatModel, w: Array) -> Examined:
        """Return the problem and a point as those of a function of vectors."""
        free = set(self.constraint.free)
        labels: list[Any] = [None if j in free else unit for j, unit in enumerate(self._units().tolist())]
        groups = GroupSparsity(
            np.repeat(np.array(labels, dtype=object), flat.width).tolist(),
            self.constraint.k,
            free=tuple(j * flat.width + r for j in self.constraint.free for r in range(flat.width)),
        )
        v = flat.to_vector(w)
        return Examined(flat, groups, v, groups.project(v).support, groups.names)

    def standard_errors(self, at: Evaluation, support: Support, n: float) -> np.ndarray:
        """Return the standard errors for the rows of a support, shape (s, n_outputs); see `row_standard_errors`."""
        return row_standard_errors(self.objective, at, self.coordinates(support), n)

    def dispersion(self, at: Evaluation, support: Support, n: float) -> None:
        """Return None: outputs have a dispersion each, and classes have none."""

    def cone(self, chosen: Array) -> RowSparsity:
        """Return the set of all matrices of some rows: there are no bounds."""
        return RowSparsity(0, free=tuple(range(chosen.shape[0])))
