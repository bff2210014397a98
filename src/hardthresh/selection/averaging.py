"""Weights of the models of a grid in their average, and the features that an average keeps."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from hardthresh.losses import Loss, VectorLoss
from hardthresh.losses.expansion import Expansion

TEMPERATURE = 4.0
"""Exponential weights with this temperature, in units of the noise variance, are those for which Leung and Barron
(2006) bound the risk of the average. On the choosing half of the benchmark of prediction, without a comparison with the
empty model, 2, 3, 4, 5 and 6 give mean relative risks of .522, .521, .513, .510 and .509: beyond 4 little is gained."""
PRIOR = 0.03
"""By how much the logarithm of the prior weight falls with each feature. On that half, with the comparison, 0, .03, .05
and .1 give .499, .499, .498 and .498, with 6.4, 6.0, 5.8 and 5.3 features; but .1 keeps averages from models of a
hundred features, which genotypes and spectra want."""
_LEAST_WEIGHT = 1e-3
"""Models with less than this share of the largest weight are left out. Arbitrary: fifty of them weigh less than 5 %."""
_KEPT = 0.99
"""The share of the variance of the prediction that thinning keeps. Shares of the squares of the standardised
coefficients, which are the same for uncorrelated columns, of .95, .98, .99 and .999 give risks of .513, .503, .501 and
.499 on that half, with the prior .1 and eight ridges, and 4.0, 4.7, 5.2 and 7.1 features; without thinning there are
16. But coefficients of nearly collinear columns cancel, and to drop the smaller one would ruin the prediction."""
_FLAT = 1e-12
"""An axis of a block of second derivatives counts as one along which the loss is constant below this share of the
largest eigenvalue: rounding is some 1e-16 of it."""
_STACKING_ROUNDS, _HALVINGS = 50, 30
"""Limits of the quadratic approximations of a loss for stacking, and of the halvings of a step to the minimiser of one.
Arbitrary: 3 to 8 approximations suffice where the loss is nearly quadratic, more for exponential losses."""
_LEAST_CURVATURE = 1e-3
"""The curvature of a loss counts as at least this share of the largest one, also where there is none. Arbitrary: with
1e-8 to 0.1 the minimum is found for every loss of the package within the limit of rounds, with 1 it is not."""


def exponential_weights(deviance: np.ndarray, sizes: np.ndarray, n: float, dispersion: float) -> np.ndarray:
    r"""Return the exponential weights of the models of a grid, which sum to 1.

    .. math:: \theta_{kl} \propto \exp\Bigl(-\frac{n (D_{kl} - \min D)}{4 \phi} - 0.03 k\Bigr)

    Parameters
    ----------
    deviance : array, shape (n_sizes, n_ridges)
        D, the mean held-out deviance of each model: twice the mean loss.
    sizes : array of int, shape (n_sizes,)
        k, the numbers of features. The model without features counts once, for any number of ridges.
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
           [0.63],
           [0.37]])
    """
    with np.errstate(over="ignore"):  # a loss that is tiny for the best model is far off for the others
        exponent = -n * ((deviance - deviance.min()) / (TEMPERATURE * dispersion)) - PRIOR * sizes[:, None]
    exponent = exponent.copy()
    exponent[sizes == 0, 1:] = -np.inf
    weights = np.exp(exponent - exponent.max())
    weights[weights < _LEAST_WEIGHT] = 0.0
    return np.asarray(weights / weights.sum())


def stacking_weights(
    loss: Loss | VectorLoss, y: np.ndarray, null: np.ndarray, predictions: np.ndarray, sample_weight: np.ndarray
) -> np.ndarray:
    r"""Return the non-negative weights of models whose combined held-out predictions have the smallest loss.

    .. math:: \min_{\theta \ge 0} \; \sum_i s_i \, \ell\Bigl(y_i, \; u_{i0} + \sum_m \theta_m (u_{im} - u_{i0})\Bigr)

    Parameters
    ----------
    loss : Loss or VectorLoss
        :math:`\ell`. A loss that is not quadratic is minimised by quadratic approximations, with steps that are halved
        until the loss decreases.
    y : array, shape (n,) or (n, q)
        Targets.
    null : array, shape (n,) or (n, q)
        :math:`u_0`, the linear predictor of the model without features.
    predictions : array, shape (n, n_models) or (n, n_models, q)
        The linear predictors of the models, for rows to which they were not fitted.
    sample_weight : array, shape (n,)
        The weights s.

    Returns
    -------
    array, shape (n_models,)
        The weights. That of the model without features is 1 minus their sum, which may be negative.

    References
    ----------
    Breiman (1996), *Stacked regressions*, Machine Learning 24.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.losses import Squared
    >>> from hardthresh.selection import stacking_weights
    >>> y = np.array([1.0, -1.0, 2.0, -2.0])
    >>> predictions = np.column_stack([0.5 * y, [1.0, 1.0, -1.0, -1.0]])
    >>> stacking_weights(Squared(), y, np.zeros(4), predictions, np.ones(4)).round(6)
    array([2., 0.])
    """
    moves = predictions - null[:, None]

    def predict(weights: np.ndarray) -> np.ndarray:
        return np.asarray(null + (moves @ weights if null.ndim == 1 else np.tensordot(moves, weights, (1, 0))))

    def loss_of(weights: np.ndarray) -> float:
        return float(sample_weight @ loss.value(y, predict(weights)))

    weights = np.zeros(moves.shape[1])
    value = loss_of(weights)
    for _ in range(_STACKING_ROUNDS):
        along, near = _expanded(loss, y, predict(weights), moves)
        near = near.at_least(_LEAST_CURVATURE * near.curvature.max(initial=np.finfo(float).tiny))
        root = np.sqrt(np.repeat(sample_weight, near.curvature.size // len(y)) * near.curvature)
        aim = nnls(root[:, None] * along, root * near.responses(along @ weights))[0]
        steps = (weights + 0.5**halvings * (aim - weights) for halvings in range(_HALVINGS))
        lower = next(((step, lowest) for step in steps if (lowest := loss_of(step)) < value), None)
        if lower is None:
            break
        weights, value = lower
        if loss.quadratic:
            break
    return np.asarray(weights)


def _expanded(loss: Loss | VectorLoss, y: np.ndarray, u: np.ndarray, moves: np.ndarray) -> tuple[np.ndarray, Expansion]:
    """Return moves of predictions, and the expansion of a loss, where these do not mix: on the axes of its blocks.

    Of q predictions for each row there are q axes, along some of which the loss may be constant.
    """
    if isinstance(loss, Loss):
        return moves, Expansion(loss.gradient(y, u), loss.curvature(y, u))
    curvature, axes = np.linalg.eigh(loss.blocks(y, u))
    moved, slope = np.einsum("nmq,nqr->nrm", moves, axes), np.einsum("nq,nqr->nr", loss.gradient(y, u), axes)
    constant = curvature <= _FLAT * curvature.max(axis=1, keepdims=True)
    moved[constant], slope[constant], curvature[constant] = 0.0, 0.0, 0.0
    return moved.reshape(-1, moves.shape[1]), Expansion(slope.reshape(-1), curvature.reshape(-1))


class Expendable(NamedTuple):
    """What a prediction may lose by thinning.

    Attributes
    ----------
    noise : float
        The variance of the error of the prediction; infinite where it is not known.
    n_rows : float
        How many rows there are.
    """

    noise: float
    n_rows: float

    def limit(self, signal: float) -> float:
        r"""Return the variance that predictions of some variance may lose.

        That is 1 % of the smaller of it and the noise, or the share :math:`\sqrt{2/n}` if that is less, from 20,000
        rows on: the standard error of the mean of n squared errors of a normal distribution, over their mean.
        """
        share = min(1.0 - _KEPT, sqrt(2.0 / self.n_rows))
        return share * min(self.noise, signal)


def kept_by_variance(covariance: np.ndarray, expendable: Expendable) -> np.ndarray:
    """Return the places of the contributions to keep, in the order of their variance, largest first.

    They are the fewest of that order without which the prediction would lose no more of its variance than is
    expendable. Contributions that cancel each other are both kept, because to drop one of them would
    change the prediction.

    Parameters
    ----------
    covariance : array, shape (n, n)
        Covariances of the contributions of features, or of groups, to a prediction: coefficient times feature.
    expendable : Expendable
        How much it may lose.
    """
    order = np.argsort(-covariance.diagonal(), kind="stable")
    ordered = covariance[np.ix_(order, order)]
    # the variance of the sum of the last contributions, for each number of them
    lost = np.cumsum(np.cumsum(ordered[::-1, ::-1], axis=0), axis=1).diagonal()[::-1]
    needed = np.flatnonzero(lost > expendable.limit(float(covariance.sum())))
    return np.asarray(order[: needed[-1] + 1 if needed.size else 0])
