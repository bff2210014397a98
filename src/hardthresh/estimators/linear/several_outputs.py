"""Scores of predictions of several outputs, or of more than two classes, on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score, r2_score

from hardthresh.arrays import double
from hardthresh.core.objective import Evaluation
from hardthresh.losses import Multinomial, VectorLoss
from hardthresh.objectives import BlockedClasses
from hardthresh.selection import stacking_weights

from .held_out import calibration, class_scores
from .posing import null_loss
from .prediction import PredictionModel


@dataclass(frozen=True)
class VectorPrediction(PredictionModel):
    """Predictions scored by a loss of all linear predictors of a row.

    Attributes
    ----------
    loss : VectorLoss
        The loss.
    n_outputs : int
        The number of linear predictors of a row.
    """

    loss: VectorLoss
    n_outputs: int

    @property
    def score_scale(self) -> float:
        """The score per loss: scorers take the mean over outputs of which losses are sums."""
        return self.loss.score_scale if self.loss.one_target else self.loss.score_scale / self.n_outputs

    def losses(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the loss of each row, shape (n, n_fits)."""
        return np.stack([np.asarray(self.loss.value(y, u[:, fit])) for fit in range(u.shape[1])], axis=1)

    def mean_curvature(self, objective: Any, at: Evaluation) -> float:
        """Return the mean of the eigenvalues of the mean block, those aside that are 0 whatever the predictions."""
        if isinstance(objective, BlockedClasses):
            block = double(objective.output_block(at))
        else:
            block = double(self.loss.mean_block(objective.y, at.prediction, objective.weights))
        return float(np.trace(block) / self.loss.axes(self.n_outputs).shape[1])

    def noise(self, deviance: float) -> float:
        """Return the deviance of least squares, the variances of the errors of all outputs added up; else infinity."""
        return deviance if self.loss.quadratic else np.inf

    def dispersion(self, deviance: float) -> float:
        """Return 1 for classes, else the deviance of an output."""
        return 1.0 if self.loss.classifies else deviance / self.n_outputs

    def stacking_weights(
        self, y: np.ndarray, null: np.ndarray, predictions: np.ndarray, sample_weight: np.ndarray
    ) -> np.ndarray:
        """Return the weights of models of the least held-out loss."""
        return stacking_weights(self.loss, y, null, predictions, sample_weight)

    def held_out_scores(
        self,
        y: np.ndarray,
        u: np.ndarray,
        sample_weight: np.ndarray,
        fold: np.ndarray,
        offset: np.ndarray | None = None,
    ) -> dict[str, float]:
        """Return the mean loss and the share of the deviance; for classes how often the most probable one is right.

        Of several outputs these are means over the outputs.
        """
        losses = np.asarray(self.loss.value(y, u))
        if self.loss.classifies:
            found = np.argmax(u, axis=1)
            balanced = float(balanced_accuracy_score(y, found, sample_weight=sample_weight))
            without = null_loss(Multinomial(), y, sample_weight, offset)
            return class_scores(y, losses, found, sample_weight, without) | {"balanced_accuracy": balanced}
        known = 0.0 if offset is None else offset
        return {
            self.score_name.removeprefix("neg_"): self.score_scale * float(np.average(losses, weights=sample_weight)),
            "r2": float(r2_score(y - known, u - known, sample_weight=sample_weight)),
        }

    def calibration(self, y: np.ndarray, u: np.ndarray, sample_weight: np.ndarray) -> np.ndarray | None:
        """Return mean predictions, mean targets and weights of ten bins for each output or class, shape (q, 10, 3).

        A class is compared with all others by its probability.
        """
        parts = self.loss.each_output(y, u)
        return np.stack([calibration(loss, target, part, sample_weight) for loss, target, part in parts])
