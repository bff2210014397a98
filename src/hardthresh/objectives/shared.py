"""Functions that several kinds of objectives share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardthresh.arrays import double, inverse_semidefinite, to_numpy
from hardthresh.core.objective import BaseObjective, Evaluation
from hardthresh.core.support import Support
from hardthresh.core.typing import Array


class ScreenedExactly(BaseObjective):
    """Base of objectives whose columns are screened by the same gradients as they are fitted by."""

    def evaluate_many(self, points: Sequence[Array]) -> list[Evaluation]:
        """Return value and gradient at several points: one after another, unless a subclass has a faster way."""
        return [self.evaluate(w) for w in points]

    def screening_gradients(self, points: Sequence[Array]) -> list[Array]:
        """Return the gradients at several points."""
        return [at.gradient for at in self.evaluate_many(points)]


class OneNumberPerRow(BaseObjective):
    """Base of linear models of one output: each row of the coefficients is a number, and a coordinate."""

    n_examples: float
    columns: Any

    coefficients_per_row = 1
    """A coordinate is a number."""

    @property
    def n_targets(self) -> float:
        """The number of targets that criteria count."""
        return self.n_examples

    def rows_of(self, support: Support) -> Array:
        """Return the coordinates of a support."""
        return support.indices

    def row_ridge(self) -> Array:
        """Return the ridge of each coordinate, shape (d,)."""
        raise NotImplementedError

    def shrinkage(self, at: Evaluation, rows: Array) -> float:
        r"""Return how many coefficients of some coordinates the ridge takes away.

        It is the trace of :math:`(H + \Lambda)^{-1} \Lambda`, with the Hessian H of the mean loss in these coordinates.
        """
        ridge = double(self.row_ridge())[to_numpy(rows)]
        return float(ridge @ np.diagonal(inverse_semidefinite(self._hessian_among(at, rows))))

    def _hessian_among(self, at: Evaluation, indices: Array) -> np.ndarray:
        """Return the Hessian in some coordinates, with the ridge, in double precision."""
        return double(self.columns(indices).hessian(at))
