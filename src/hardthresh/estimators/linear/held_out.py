"""Scores and calibration of predictions on held-out rows, from linear predictors and the loss of the model."""

from __future__ import annotations

from math import inf, nan

import numpy as np
from sklearn.metrics import accuracy_score, roc_auc_score

from hardthresh.core.errors import InvalidInputError
from hardthresh.losses import Loss

_STEPS = 100
"""Largest number of Newton steps of a calibration line. Two coefficients take 4 to 10; more are halved steps far from
the minimum, where the exponential of a count model was extrapolated."""


def held_out_scores(
    loss: Loss,
    y: np.ndarray,
    prediction: np.ndarray,
    sample_weight: np.ndarray | None = None,
    offset: np.ndarray | None = None,
) -> dict[str, float]:
    r"""Return how well linear predictors of held-out rows predict their targets.

    The share of deviance :math:`D^2`, which is :math:`R^2` for least squares, compares with the best constant for
    all these rows, which is the weighted mean of their targets for most losses; with an offset it is added to that. A
    model without features that is fitted to the training rows of each fold is slightly worse than that constant, so
    that 0 is the score of a model a little better than no model.

    Parameters
    ----------
    loss : Loss
        The loss of the model.
    y : array, shape (n,)
        Targets as the loss takes them; 0 and 1 for classes.
    prediction : array, shape (n,)
        The linear predictor of each row, offset included, by a model that was fitted without the row; NaN where there
        is none. These rows are left out.
    sample_weight : array, shape (n,), optional
        Non-negative weights.
    offset : array, shape (n,), optional
        The known part of the linear predictor.

    Returns
    -------
    dict from str to float
        The mean loss by the name that scikit-learn gives it, such as ``"log_loss"`` or ``"mean_squared_error"``;
        ``"r2"`` or ``"d2"``; for classes ``"roc_auc"`` and ``"accuracy"``; ``"calibration_slope"`` and
        ``"calibration_intercept"`` of `calibration_line`. NaN where a score is not defined.

    Raises
    ------
    InvalidInputError
        If no row has a prediction and a positive weight.

    Notes
    -----
    Cost: O(n log n).

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.losses import Squared
    >>> scores = held_out_scores(Squared(), np.array([1.0, 2.0, 3.0, 9.0]), np.array([2.0, 2.0, 2.0, np.nan]))
    >>> round(scores["mean_squared_error"], 3), scores["r2"]
    (0.667, 0.0)
    """
    known = None if offset is None else _predicted(offset, prediction, sample_weight)[0]
    y, u, weight = _predicted(y, prediction, sample_weight)
    scores = {
        loss.score_name.removeprefix("neg_"): loss.score_scale * float(np.average(loss.value(y, u), weights=weight)),
        "r2" if loss.quadratic else "d2": loss.d2_score(y, u, weight, known),
    }
    if loss.classifies:
        both = np.ptp(y) > 0
        scores["roc_auc"] = float(roc_auc_score(y, u, sample_weight=weight)) if both else nan
        scores["accuracy"] = float(accuracy_score(y > 0.5, u > 0, sample_weight=weight))
    scores["calibration_intercept"], scores["calibration_slope"] = calibration_line(loss, y, u, weight)
    return scores


def class_scores(
    y: np.ndarray, losses: np.ndarray, found: np.ndarray, sample_weight: np.ndarray, null_loss: float
) -> dict[str, float]:
    """Return the mean log-loss of predicted classes, the share of deviance, and how often the class found is right.

    Parameters
    ----------
    y : array, shape (n,)
        The numbers of the classes.
    losses : array, shape (n,)
        The log-loss of each row.
    found : array of int, shape (n,)
        The most probable class.
    sample_weight : array, shape (n,)
        Positive weights.
    null_loss : float
        The mean log-loss of the constant that is best for these rows; the share is NaN if it is 0.
    """
    loss = float(np.average(losses, weights=sample_weight))
    return {
        "log_loss": loss,
        "d2": 1.0 - loss / null_loss if null_loss > 0 else nan,
        "accuracy": float(accuracy_score(y, found, sample_weight=sample_weight)),
    }


def calibration_line(
    loss: Loss, y: np.ndarray, prediction: np.ndarray, sample_weight: np.ndarray | None = None
) -> tuple[float, float]:
    r"""Return the intercept and the slope of a refit of the targets on the linear predictor.

    .. math:: \min_{a, b} \; \sum_i s_i \, \ell(y_i, a + b u_i)

    A calibrated prediction has a = 0 and b = 1. With b < 1 predictions are too far from their mean, as those of a model
    that fitted noise are; with b > 1 they are too close to it.

    Parameters
    ----------
    loss, y, prediction, sample_weight :
        As for `held_out_scores`.

    Returns
    -------
    intercept, slope : float
        NaN and NaN if all predictions are equal, or if no finite intercept fits; NaN and infinity, with a sign, if no
        finite slope does because the prediction separates the targets, such as the classes.

    References
    ----------
    D. R. Cox (1958), Two further applications of a model for binary regression, Biometrika 45.
    """
    y, u, weight = _predicted(y, prediction, sample_weight)
    spread = float(np.ptp(u))
    if not spread > 0.0:
        return nan, nan
    slope = _slope_without_minimum(loss.recession(y), u)
    if slope is not None:
        return nan, slope
    centre = float(np.average(u, weights=weight))
    columns = np.stack([np.ones_like(u), (u - centre) / spread], axis=1)
    point = np.array([loss.initial_prediction(y, weight), 0.0])
    value = float(weight @ loss.value(y, columns @ point))
    for _ in range(_STEPS):
        line = columns @ point
        gradient = columns.T @ (weight * loss.gradient(y, line))
        hessian = columns.T @ (columns * (weight * loss.curvature(y, line))[:, None])
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        decrease = float(gradient @ step)
        length = 1.0
        while length > 1e-9:  # arbitrary: some thirty halvings; a step that gains nothing after them ends the search
            moved = float(weight @ loss.value(y, columns @ (point - length * step)))
            if moved <= value - 0.25 * length * decrease:
                break
            length *= 0.5
        else:
            break
        point, value = point - length * step, moved
        if decrease <= 1e-15 * abs(value):  # Newton steps square the error, so that the next one is below rounding
            break
    slope = float(point[1]) / spread
    return float(point[0]) - slope * centre, slope


def calibration(
    loss: Loss,
    y: np.ndarray,
    prediction: np.ndarray,
    sample_weight: np.ndarray | None = None,
    n_bins: int = 10,
) -> np.ndarray:
    """Return the mean prediction and the mean target of bins of held-out rows, by quantiles of the prediction.

    Parameters
    ----------
    loss, y, prediction, sample_weight :
        As for `held_out_scores`.
    n_bins : int
        Number of bins of about equal weight. Rows of equal predictions are in one bin, so that some may be empty.

    Returns
    -------
    array, shape (n_bins, 3)
        For each bin, by increasing prediction: the mean prediction, on the scale of the target; the mean target; the
        weight of its rows. NaN, NaN and 0 for an empty bin.

    Raises
    ------
    InvalidInputError
        If no row has a prediction and a positive weight.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.losses import Squared
    >>> calibration(Squared(), np.array([1.0, 2.0, 5.0, 6.0]), np.array([1.0, 1.0, 4.0, 8.0]), n_bins=2)
    array([[1. , 1.5, 2. ],
           [6. , 5.5, 2. ]])
    """
    y, u, weight = _predicted(y, prediction, sample_weight)
    bins = quantile_bins(u, weight, n_bins)
    weights = np.bincount(bins, weight, n_bins)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        predicted = np.bincount(bins, weight * loss.mean(u), n_bins) / weights
        observed = np.bincount(bins, weight * y, n_bins) / weights
    return np.stack([predicted, observed, weights], axis=1)


def quantile_bins(prediction: np.ndarray, sample_weight: np.ndarray, n_bins: int = 10) -> np.ndarray:
    """Return the number of the bin of each row, of about equal weight, by its prediction; equal ones are in one bin."""
    place = np.unique(prediction, return_inverse=True)[1]
    of_value = np.bincount(place, sample_weight)
    middle = np.cumsum(of_value) - 0.5 * of_value
    return np.asarray(np.minimum((n_bins * middle / of_value.sum()).astype(np.intp), n_bins - 1)[place])


def _predicted(
    y: np.ndarray, prediction: np.ndarray, sample_weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return targets, predictions and weights of the rows that have a prediction and a positive weight, as float64."""
    y, u = np.asarray(y, dtype=np.float64), np.asarray(prediction, dtype=np.float64)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    rows = ~np.isnan(u) & (weight > 0)
    if not rows.any():
        raise InvalidInputError("no row has a held-out prediction and a positive weight; there is nothing to score")
    return y[rows], u[rows], weight[rows]


def _slope_without_minimum(recession: np.ndarray, u: np.ndarray) -> float | None:
    """Return the slope of a line along which the loss falls for ever: infinite, or NaN for a constant; else None.

    Such a line a + b u is nowhere against the direction of `recession`, and 0 where that is 0.
    """
    if (recession > 0).all() or (recession < 0).all():
        return nan
    for sign in (1.0, -1.0):
        above = np.max(-sign * u[recession >= 0], initial=-inf)
        below = np.min(-sign * u[recession <= 0], initial=inf)
        if above <= below:
            return sign * inf
    return None
