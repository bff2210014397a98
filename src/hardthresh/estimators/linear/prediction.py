"""Losses, scores and calibration of linear predictors on held-out rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hardthresh.arrays import double
from hardthresh.core.objective import Evaluation
from hardthresh.losses import Loss
from hardthresh.objectives.blocked import Blocked
from hardthresh.selection import stacking_weights

from .held_out import calibration, held_out_scores


class PredictionModel(ABC):
    """How the linear predictors of rows are scored against their targets.

    The linear predictors of several fits have the shape (n, n_fits), or with several components for each row, such as
    outputs or classes, (n, n_fits, n_components); those of one fit (n,) or (n, n_components). Subclasses are frozen
    dataclasses.
    """

    by_row: ClassVar[bool] = True
    """Whether the score of some rows is the weighted mean of one number for each. If not, estimators have
    `_fold_scores` of their own, models are compared with the one without features over folds, and no weights of an
    average minimise the held-out loss."""

    loss: Any
    """The loss, as it is in the fold that the predictions come from."""

    @property
    def score_name(self) -> str:
        """The name of the default score: that of scikit-learn's scorer, if there is one."""
        return str(self.loss.score_name)

    @property
    def score_scale(self) -> float:
        """The default score is minus this number times the mean loss."""
        return float(self.loss.score_scale)

    @abstractmethod
    def losses(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the loss of each row for linear predictors of some fits, shape (n, n_fits)."""

    @abstractmethod
    def mean_curvature(self, objective: Any, at: Evaluation) -> float:
        """Return the mean curvature of the losses at a point: the unit of the ridges that are compared by default."""

    @abstractmethod
    def noise(self, deviance: float) -> float:
        """Return the variance of the error of the linear predictors of a model with some mean deviance.

        The deviance is twice the loss. Infinite where errors are not on the scale of linear predictors.
        """

    @abstractmethod
    def dispersion(self, deviance: float) -> float:
        """Return the unit in which a mean deviance counts as evidence, for a model with some mean deviance."""

    @abstractmethod
    def stacking_weights(
        self, y: np.ndarray, null: np.ndarray, predictions: np.ndarray, sample_weight: np.ndarray
    ) -> np.ndarray:
        """Return the weights of models of the least held-out loss; see `hardthresh.selection.stacking_weights`."""

    @abstractmethod
    def held_out_scores(
        self,
        y: np.ndarray,
        u: np.ndarray,
        sample_weight: np.ndarray,
        fold: np.ndarray,
        offset: np.ndarray | None = None,
    ) -> dict[str, float]:
        """Return how well the linear predictors of held-out rows predict their targets.

        `fold` numbers the folds. The offset is part of the predictors; the constant that they are compared with has it
        too.
        """

    @abstractmethod
    def calibration(self, y: np.ndarray, u: np.ndarray, sample_weight: np.ndarray) -> np.ndarray | None:
        """Return mean predictions and mean targets of bins of held-out rows; None where nothing is to be compared."""


@dataclass(frozen=True)
class PointwisePrediction(PredictionModel):
    """Predictions scored by a loss of one target and one linear predictor.

    Attributes
    ----------
    loss : Loss
        The loss, as it is in the fold that the predictions come from.
    """

    loss: Loss

    def losses(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the loss of each row, shape (n, n_fits)."""
        return np.asarray(self.loss.value(y[:, None], u))

    def mean_curvature(self, objective: Any, at: Evaluation) -> float:
        """Return the weighted mean of the second derivatives; their bound where the losses of all rows are linear.

        They are where all targets are far from the prediction, as that of the median of two values.
        """
        if isinstance(objective, Blocked):
            return float(objective.mean_curvature(at))
        weights = double(objective.weights)
        curvature = double(self.loss.curvature(objective.y, at.prediction))
        return float(weights @ np.broadcast_to(curvature, (weights.size,))) or self.loss.curvature_bound

    def noise(self, deviance: float) -> float:
        """Return the deviance of least squares, which is the variance of its error; else infinity."""
        return deviance if self.loss.quadratic else np.inf

    def dispersion(self, deviance: float) -> float:
        """Return 1 for classes, else the deviance itself, for noise that is known to have no other scale."""
        return 1.0 if self.loss.classifies else deviance

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
        """Return the mean loss, the share of deviance, and calibration; for classes also how they are told apart."""
        return held_out_scores(self.loss, y, u, sample_weight, offset)

    def calibration(self, y: np.ndarray, u: np.ndarray, sample_weight: np.ndarray) -> np.ndarray | None:
        """Return the mean prediction, the mean target and the weight of ten bins, shape (10, 3)."""
        return calibration(self.loss, y, u, sample_weight)
