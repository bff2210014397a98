"""The second-order expansion of the losses of rows, by which any loss is searched as least squares."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Expansion(NamedTuple):
    r"""The second-order expansion of the losses :math:`\ell(y, u)` of rows at predictions v.

    Up to a constant it is :math:`\tfrac12 h (u - v)^2 + g (u - v)`: least squares, with weights h, of the working
    responses :math:`v - g / h`. Where h is small, a row has little weight and a response far away. There are two
    remedies: `at_least` bounds the responses of all rows, for moments that no row may dominate; `filled` changes rows
    without a second derivative alone, for a minimum that has to stay where that of the loss is.

    Attributes
    ----------
    slope, curvature : array
        g and h: the derivatives of the loss at v, or instead of h those of the expected targets.
    """

    slope: np.ndarray
    curvature: np.ndarray

    def at_least(self, least: float) -> Expansion:
        """Return the expansion with second derivatives of at least so much in all rows."""
        return self._replace(curvature=np.maximum(self.curvature, least))

    def filled(self, curvature: float) -> Expansion:
        """Return the expansion with this second derivative in rows that have a slope and none.

        Such are those of Huber's loss far from the prediction: without it, the few others would decide about all.
        """
        flat = (self.curvature == 0) & (self.slope != 0)
        return self._replace(curvature=np.where(flat, curvature, self.curvature))

    def responses(self, v: np.ndarray) -> np.ndarray:
        """Return the working responses around predictions, from which known offsets may have been subtracted."""
        responses: np.ndarray = v - self.slope / self.curvature
        return responses
