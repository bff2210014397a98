"""Regression problems with planted sparse coefficients; the same seed always gives the same arrays.

Random numbers come from ``numpy.random.default_rng(seed)`` in the order that a docstring states. A change of this
order changes the data, and every result that was measured on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from hardthresh.core.checking import checked_integer, checked_number, checked_word
from hardthresh.core.errors import InvalidInputError, format_value

_SNR = 10.0  # default of the linear model; arbitrary, an easy problem
_SCALES = {"linear": None, "logistic": 3.0, "poisson": 1.0}  # defaults, arbitrary: counts are at most about 20


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Simulated:
    """A simulated problem and its true coefficients.

    Attributes
    ----------
    X : ndarray, shape (n_samples, n_features)
        The design matrix.
    y : ndarray of shape (n_samples,)
        The response.
    coef : ndarray of shape (n_features,)
        The true coefficients; the mean response is ``X @ coef`` through the inverse link of the model.
    support : ndarray of int64
        The indices of the non-zero coefficients, increasing.
    noise_variance : float or None
        Variance of the noise that was added to ``X @ coef``, 0 for none; None if the response is not normal.
    """

    X: NDArray[Any]
    y: NDArray[Any]
    coef: NDArray[Any]
    support: NDArray[np.int64]
    noise_variance: float | None

    def __repr__(self) -> str:
        return f"Simulated(X={self.X.shape} {self.X.dtype}, non-zeros={len(self.support)})"


def make_sparse_regression(
    n_samples: int,
    n_features: int,
    n_nonzero: int,
    *,
    model: Literal["linear", "logistic", "poisson"] = "linear",
    correlation: float = 0.0,
    snr: float | None = None,
    scale: float | None = None,
    seed: int = 0,
) -> Simulated:
    r"""Make a regression problem with sparse coefficients: linear, logistic or Poisson.

    .. math:: u = X \beta, \qquad y = u + e - \text{mean}, \qquad P(y = 1) = 1 / (1 + e^{-u})
              \qquad\text{or}\qquad y \sim \text{Poisson}(e^u) .

    The features form an autoregressive process of order one over the columns (they are independent for
    ``correlation=0``), centred and scaled to mean square 1. The non-zeros of beta have random signs and magnitudes
    uniform on [1, 2], times a factor that gives u the standard deviation `scale`.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X, at least two samples.
    n_nonzero : int
        Number of non-zero coefficients, from 1 to `n_features`.
    model : {"linear", "logistic", "poisson"}
        Distribution of the response.
    correlation : float
        Correlation of neighbouring features, between -1 and 1, exclusive.
    snr : float, optional
        Signal-to-noise ratio var(u) / var(e) of the linear model, positive. Default: 10.
    scale : float, optional
        Standard deviation of u over the samples, positive. Default: that of the drawn coefficients for the linear
        model, 3 for the logistic and 1 for the Poisson model.
    seed : int
        Seed of `numpy.random.default_rng`.

    Returns
    -------
    Simulated
        X float64, Fortran-ordered, columns with mean 0 and mean square 1; y float64, centred in the linear model.

    Raises
    ------
    InvalidInputError
        If an argument is out of its range, or if `snr` is given for a model other than the linear one.

    Notes
    -----
    Draw order: the innovations, feature by feature; the support, without replacement, then sorted; the signs; the
    magnitudes; the normal noise, the uniform numbers (logistic) or the Poisson counts.

    Examples
    --------
    >>> from hardthresh.datasets import make_sparse_regression
    >>> problem = make_sparse_regression(100, 50, 3, seed=0)
    >>> problem.X.shape, problem.support.tolist()
    ((100, 50), [4, 12, 14])
    >>> classes = make_sparse_regression(100, 50, 3, model="logistic", seed=0)
    >>> sorted(set(classes.y.tolist())), round(float((classes.X @ classes.coef).std()), 6)
    ([0.0, 1.0], 3.0)
    """
    n, d = checked_integer("n_samples", n_samples, 2), checked_integer("n_features", n_features, 1)
    if checked_integer("n_nonzero", n_nonzero, 1) > d:
        raise InvalidInputError(f"n_nonzero must be at most n_features = {d}, got {n_nonzero}")
    checked_word("model", model, _SCALES)
    checked_number("correlation", correlation, above=-1.0, below=1.0)
    if snr is not None and model != "linear":
        raise InvalidInputError(f"snr={format_value(snr)} is a setting of the linear model; give scale= instead")
    snr = checked_number("snr", _SNR if snr is None else snr, above=0.0)
    scale = _SCALES[model] if scale is None else checked_number("scale", scale, above=0.0)

    rng = np.random.default_rng(seed)
    X = _standardised_design(rng, n, d, correlation)
    support = np.sort(rng.choice(d, n_nonzero, replace=False))
    values = rng.choice([-1.0, 1.0], n_nonzero) * rng.uniform(1, 2, n_nonzero)
    u = X[:, support] @ values
    if scale is not None:
        factor = scale / u.std()
        u, values = u * factor, values * factor
    coef = np.zeros(d)
    coef[support] = values
    if model == "logistic":
        return Simulated(X, (rng.random(n) < expit(u)).astype(np.float64), coef, support, None)
    if model == "poisson":
        return Simulated(X, rng.poisson(np.exp(u)).astype(np.float64), coef, support, None)
    noise_variance = u.var() / snr
    y = u + rng.standard_normal(n) * math.sqrt(noise_variance)
    return Simulated(X, y - y.mean(), coef, support, float(noise_variance))


def _standardised_design(rng: np.random.Generator, n: int, d: int, correlation: float) -> NDArray[np.float64]:
    """Draw AR(1) features one after the other, centred and scaled to mean square 1; Fortran-ordered."""
    features = rng.standard_normal((d, n))
    if correlation != 0:
        features[1:] *= math.sqrt(1 - correlation**2)
        for j in range(1, d):
            features[j] += correlation * features[j - 1]
    X = features.T
    X -= X.mean(axis=0)
    X /= np.sqrt((X * X).mean(axis=0))
    return X
