"""Scores of predictions of censored times, and of ordered classes, on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hardthresh.arrays import double
from hardthresh.core.errors import CapabilityError
from hardthresh.core.objective import Evaluation
from hardthresh.losses import Cox, Logistic, Ordinal
from hardthresh.losses.ordinal import class_probabilities

from .concordance import concordance
from .held_out import calibration, class_scores
from .posing import null_loss
from .prediction import PredictionModel


@dataclass(frozen=True)
class CoxPrediction(PredictionModel):
    """Log relative hazards, scored by the partial likelihood.

    Attributes
    ----------
    loss : Cox
        The loss.
    """

    loss: Cox

    by_row = False

    def losses(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Raise CapabilityError: the loss is no sum over rows."""
        raise CapabilityError("the partial likelihood is no sum over rows; a row has no loss of its own")

    def mean_curvature(self, objective: Any, at: Evaluation) -> float:
        """Return the sum of the variances of a standard normal column over the risk sets: the share of events."""
        return float(objective.mean_loss.share)

    def noise(self, deviance: float) -> float:
        """Return infinity: errors are not on the scale of predictions."""
        return np.inf

    def dispersion(self, deviance: float) -> float:
        """Return 1: a partial likelihood has no dispersion."""
        return 1.0

    def stacking_weights(
        self, y: np.ndarray, null: np.ndarray, predictions: np.ndarray, sample_weight: np.ndarray
    ) -> np.ndarray:
        """Raise CapabilityError: there is no held-out loss of a row to be minimised."""
        raise CapabilityError("stacking needs a loss for each row, which a partial likelihood has not")

    def held_out_scores(
        self,
        y: np.ndarray,
        u: np.ndarray,
        sample_weight: np.ndarray,
        fold: np.ndarray,
        offset: np.ndarray | None = None,
    ) -> dict[str, float]:
        """Return Harrell's C, of pairs held out by the same fold: others have predictions of different models."""
        stratum = np.zeros(len(y)) if y.shape[1] == 2 else np.unique(y[:, 2], return_inverse=True)[1]
        pairs = np.column_stack([y[:, :2], fold * (stratum.max(initial=0) + 1) + stratum])
        return {"concordance": concordance(pairs, u, sample_weight)}

    def calibration(self, y: np.ndarray, u: np.ndarray, sample_weight: np.ndarray) -> np.ndarray | None:
        """Return None: a relative hazard is not compared with a target."""
        return None


@dataclass(frozen=True)
class OrdinalPrediction(PredictionModel):
    """Log-odds of the classes above each threshold, scored by the log-loss.

    Attributes
    ----------
    loss : Ordinal
        The loss.
    n_classes : int
        The number of classes.
    """

    loss: Ordinal
    n_classes: int

    def losses(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the log-loss of each row, shape (n, n_fits)."""
        probabilities = np.stack([class_probabilities(-u[:, fit]) for fit in range(u.shape[1])], axis=1)
        chosen = np.take_along_axis(probabilities, y.astype(np.intp)[:, None, None], axis=2)[:, :, 0]
        losses: np.ndarray = -np.log(np.maximum(chosen, np.finfo(float).tiny))
        return losses

    def mean_curvature(self, objective: Any, at: Evaluation) -> float:
        """Return the mean curvature of the losses in the linear predictor."""
        one = np.ones(2 * objective.y.shape[0])
        return float(objective.mean_loss.inner_hessian(double(objective.predict(at.point))).along(one))

    def noise(self, deviance: float) -> float:
        """Return infinity: errors are not on the scale of predictions."""
        return np.inf

    def dispersion(self, deviance: float) -> float:
        """Return 1, as for all classes."""
        return 1.0

    def stacking_weights(
        self, y: np.ndarray, null: np.ndarray, predictions: np.ndarray, sample_weight: np.ndarray
    ) -> np.ndarray:
        """Raise CapabilityError: averages of ordered classes have exponential weights."""
        raise CapabilityError('averaging="stacking" is not for ordered classes; use averaging="exponential"')

    def held_out_scores(
        self,
        y: np.ndarray,
        u: np.ndarray,
        sample_weight: np.ndarray,
        fold: np.ndarray,
        offset: np.ndarray | None = None,
    ) -> dict[str, float]:
        """Return the mean log-loss, the share of deviance, and how often the most probable class is right."""
        losses, found = self.losses(y, u[:, None])[:, 0], np.argmax(class_probabilities(-u), axis=1)
        return class_scores(y, losses, found, sample_weight, null_loss(Ordinal(), y, sample_weight, offset))

    def calibration(self, y: np.ndarray, u: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        """Return mean predictions, mean targets and weights of ten bins for each threshold, shape (C - 1, 10, 3)."""
        parts = [
            calibration(Logistic(), (y > c).astype(float), u[:, c], sample_weight) for c in range(self.n_classes - 1)
        ]
        return np.stack(parts)
