"""Classes over blocks as a linear objective of vectors, for methods that examine single columns or groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardthresh.core.errors import CapabilityError
from hardthresh.core.objective import Evaluation

from .blocked_classes import BlockedClasses
from .flat import FlatModel


class FlatClasses(FlatModel):
    """A model of classes over blocks, or of some of its columns, as a function of vectors."""

    _model: Any

    def hessian_diag(self, at: Evaluation) -> np.ndarray:
        """Return the diagonal of the Hessian: of all columns a reading."""
        if isinstance(self._model, BlockedClasses):
            blocks = self._on_axes(self._model.row_blocks(self._there(at)))
            return np.asarray(np.einsum("jaa->ja", blocks).ravel() + self.ridge)
        return np.diagonal(self.hessian(at)).copy()

    def hessian_blocks(self, at: Evaluation, columns: np.ndarray) -> np.ndarray | None:
        """Return the Hessian of each of some rows, or None for units that are no rows.

        Parameters
        ----------
        at : Evaluation
            A point.
        columns : array of int, shape (b, m)
            The coordinates of each unit.
        """
        if columns.shape[1] != self.width or not isinstance(self._model, BlockedClasses):
            return None
        rows = columns[:, 0] // self.width
        blocks = self._on_axes(self._model.row_blocks(self._there(at))[rows])
        return blocks + self._model.row_ridge()[rows, None, None] * np.eye(self.width)

    def hessian(self, at: Evaluation) -> np.ndarray:
        """Return the Hessian; for models of few columns."""
        (p, q), axes = self._model.shape, self._axes
        whole = self._model.hessian(self._there(at)).reshape(p, q, p, q)
        turned = np.einsum("ca,icjd,db->iajb", axes, whole, axes)
        return np.asarray(turned.reshape(2 * (p * self.width,)))

    def cross_hessian(self, at: Evaluation, other: FlatModel) -> np.ndarray:
        """Return the block of the Hessian between two models of columns: not over blocks."""
        raise CapabilityError("blocks of the Hessian of classes are not computed over blocks")

    def _on_axes(self, blocks: np.ndarray) -> np.ndarray:
        on: np.ndarray = self._axes.T @ blocks @ self._axes
        return on
