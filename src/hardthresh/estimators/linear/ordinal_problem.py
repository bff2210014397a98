"""The problem of ordered classes."""

from __future__ import annotations

import numpy as np

from hardthresh.arrays import namespace
from hardthresh.core.typing import Array
from hardthresh.objectives import LinearModel, OrdinalModel

from .problem import Problem, Tested


class OrdinalProblem(Problem):
    """A sparse model of ordered classes, with the thresholds as the last, free coordinates.

    Its intercepts are those of the log-odds of a class above each threshold: the thresholds with the other sign.
    """

    __slots__ = ()
    objective: OrdinalModel

    def coefficients(self, w: Array) -> tuple[Array, Array]:
        """Return coefficients and intercepts on the scale of the data."""
        coef, shift = super().coefficients(w)
        return coef, shift - w[self.mean.shape[0] :]

    def parts(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of standardised columns and the intercepts of points, along the last axis."""
        d = self.mean.shape[0]
        return points[..., :d], -points[..., d:]

    def on_scale_of_data(
        self, columns: np.ndarray, coefs: np.ndarray, intercepts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients and intercepts on the scale of the data, the intercepts of a fit along the last axis."""
        coefs, shift = super().on_scale_of_data(columns, coefs, np.zeros(coefs.shape[:-1]))
        return coefs, intercepts + shift[..., None]

    def point(self, coef: Array, intercept: Array) -> Array:
        """Return the point of given coefficients and intercepts: the inverse of `coefficients`."""
        xp = namespace(coef)
        return xp.concat([super().point(coef, intercept), -intercept - xp.sum(coef * self.mean)])

    def tested(self, slope: np.ndarray, signs: np.ndarray | None) -> Tested:
        """Return the same for one linear predictor of each row; what thresholds explain is gone from its slope."""
        model, d = self.objective, self.mean.shape[0]
        above, below = np.split(slope, 2)
        linear = LinearModel(model.data, 0.0 * model.y, sample_weight=model.weights)
        free = tuple(j for j in self.constraint.free if j < d)
        return linear, -above - below, free, None if signs is None else signs[:d]

    def _prediction_weights(self) -> Array:
        weights = self.objective.weights
        return namespace(weights).concat([weights, weights])
