"""Weights of the models of a grid in their average, and the features that an average keeps."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from hardthresh.losses import Loss

TEMPERATURE = 4.0
"""Exponential weights with this temperature, in units of the noise variance, are those for which Leung and Barron
(2006) bound the risk of the average. On the choosing half of the benchmark of prediction 3, 4, 5 and 6 give mean
relative risks of .521, .513, .510 and .509."""
PRIOR = 0.03
"""By how much the logarithm of the prior weight falls with each feature. On that half, where something is found, 0,
.03, .05 and .1 give .499, .499, .498 and .498, with 6.4, 6.0, 5.8 and 5.3 features; but .1 keeps averages from models
of a hundred features, which genotypes and spectra want."""
_LEAST_WEIGHT = 1e-3
"""Models with less than this share of the largest weight are left out. Arbitrary: fifty of them weigh less than 5 %."""
_KEPT = 0.99
"""The share of the sum of squares of the standardised coefficients that trimming keeps. On that half .95, .98, .99 and
.999, where something is found, give risks of .513, .503, .501 and .499 with 4.0, 4.7, 5.2 and 7.1 features; without
trimming there are 16."""
_STACKING_ROUNDS = 10
"""Limit of the quadratic approximations of a loss for stacking. Arbitrary: 3 to 5 suffice where they converge."""


def exponential_weights(deviance: np.ndarray, sizes: np.ndarray, n: float, dispersion: float) -> np.ndarray:
    r"""Return exponential weights of the models of a grid, which sum to 1.

    .. math:: \theta_{kl} \propto \exp\Bigl(-\frac{n (D_{kl} - \min D)}{4 \phi} - 0.03 k\Bigr)

    Parameters
    ----------
    deviance : array, shape (n_sizes, n_ridges)
        D, the mean held-out deviance of each model: twice the mean loss.
    sizes : array of int, shape (n_sizes,)
        k, the numbers of features. The model without features counts once, whatever the number of ridges.
    n : float
        The number of rows.
    dispersion : float
        :math:`\phi > 0`, the noise variance of least squares, 1 for classes.

    Returns
    -------
    array, shape (n_sizes, n_ridges)
        Zero for models with less than a thousandth of the largest weight.

    References
    ----------
    Leung and Barron (2006), *Information theory and mixing least-squares regressions*, IEEE Transactions on Information
    Theory 52; with a prior that decreases with the number of features, as in Rigollet and Tsybakov (2011), *Exponential
    screening and optimal rates of sparse estimation*, Annals of Statistics 39.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.selection import exponential_weights
    >>> exponential_weights(np.array([[2.0], [1.0], [1.02]]), np.array([0, 1, 2]), 100, 1.0).round(2)
    array([[0.  ],
           [0.65],
           [0.35]])
    """
    with np.errstate(over="ignore"):  # a loss that is tiny for the best model is far off for the others
        exponent = -n * ((deviance - deviance.min()) / (TEMPERATURE * dispersion)) - PRIOR * sizes[:, None]
    exponent = exponent.copy()
    exponent[sizes == 0, 1:] = -np.inf
    weights = np.exp(exponent - exponent.max())
    weights[weights < _LEAST_WEIGHT] = 0.0
    return np.asarray(weights / weights.sum())


def stacking_weights(
    loss: Loss, y: np.ndarray, null: np.ndarray, predictions: np.ndarray, sample_weight: np.ndarray
) -> np.ndarray:
    r"""Return the non-negative weights whose combination of the models' held-out predictions has the least loss.

    .. math:: \min_{\theta \ge 0} \; \sum_i s_i \, \ell\Bigl(y_i, \; u_{i0} + \sum_m \theta_m (u_{im} - u_{i0})\Bigr)

    Parameters
    ----------
    loss : Loss
        :math:`\ell`. What is not quadratic is minimised by quadratic approximations, at most ten; of their combinations
        the one with the least loss is returned.
    y : array, shape (n,)
        Targets.
    null : array, shape (n,)
        :math:`u_0`, the linear predictor of the model without features.
    predictions : array, shape (n, n_models)
        The linear predictors of the models, for rows that these were not fitted to.
    sample_weight : array, shape (n,)
        The weights s.

    Returns
    -------
    array, shape (n_models,)
        What lacks in their sum to 1 is the weight of the model without features; they may sum to more.

    References
    ----------
    Breiman (1996), *Stacked regressions*, Machine Learning 24.
    """
    moves = predictions - null[:, None]
    weights, best, lowest = np.zeros(moves.shape[1]), np.zeros(moves.shape[1]), np.inf
    for _ in range(_STACKING_ROUNDS):
        u = null + moves @ weights
        value = float(sample_weight @ loss.value(y, u))
        if not value < lowest:
            break
        best, lowest = weights, value
        curvature = np.maximum(loss.curvature(y, u), np.finfo(float).tiny)
        root = np.sqrt(sample_weight * curvature)
        target = moves @ weights - loss.gradient(y, u) / curvature
        weights = nnls(root[:, None] * moves, root * target)[0]
        if loss.quadratic:
            return np.asarray(weights)
    return best


def kept_by_size(energy: np.ndarray, most: int) -> np.ndarray:
    """Return the places of the largest entries that hold 99 % of the sum, at most `most` of them, increasing.

    Parameters
    ----------
    energy : array, shape (n,)
        Numbers >= 0: the squares of standardised coefficients, or their sums over groups.
    most : int
        The largest number of places.
    """
    order = np.argsort(-energy, kind="stable")[: np.count_nonzero(energy)]
    held = np.cumsum(energy[order])
    count = int(np.searchsorted(held, _KEPT * held[-1])) + 1 if held.size else 0
    return np.sort(order[: min(count, most)])
