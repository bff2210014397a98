"""The phase transition of l1 minimisation: how many non-zeros it recovers."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from scipy.special import erfcx

from hardthresh.core.errors import InvalidInputError, format_value


@overload
def l1_phase_transition(delta: float) -> float: ...


@overload
def l1_phase_transition(delta: Any) -> Any: ...


def l1_phase_transition(delta: Any) -> Any:
    r"""Return the weak Donoho-Tanner threshold: the number of non-zeros per measurement that l1 minimisation recovers.

    .. math:: \rho(\delta) = 1 - z \frac{\Phi(-z)}{\phi(z)}, \qquad
              \delta = \frac{2\phi(z)}{z + 2(\phi(z) - z\Phi(-z))}

    With m Gaussian measurements of a vector of n entries and :math:`\delta = m/n`, the basis pursuit finds nearly every
    vector with fewer than :math:`\rho(\delta) m` non-zeros, and hardly any with more, as n grows.

    Parameters
    ----------
    delta : float or array-like
        m/n, each in (0, 1).

    Returns
    -------
    float or ndarray of the same shape
        :math:`\rho`, in (0, 1) and increasing in :math:`\delta`.

    Raises
    ------
    InvalidInputError
        For anything but numbers, and for a ratio outside (0, 1).

    Notes
    -----
    Derivation: the cone of descent directions of the l1 norm at a vector with a fraction :math:`\epsilon` of non-zeros
    has a dimension (its squared Gaussian width, per entry) of

    .. math:: \min_z \; \epsilon (1 + z^2) + (1 - \epsilon) m(z), \qquad
              m(z) = E(|g| - z)_+^2 = 2\left((1 + z^2)\Phi(-z) - z\phi(z)\right),

    for a standard normal g: each non-zero contributes :math:`1 + z^2`, each zero the part of g that exceeds z. Recovery
    fails once that dimension reaches :math:`\delta`. Solving for :math:`\epsilon = \rho\delta` at a
    given z and taking the best z,

    .. math:: \rho(\delta) = \max_z \frac{1 - m(z)/\delta}{1 + z^2 - m(z)},

    and the derivative in z vanishes on the curve above, :math:`\phi` and :math:`\Phi` being the density and the
    distribution function of the standard normal law. :math:`\delta` falls along it from 1 at z = 0, so z is found by
    bisection, to rounding. Cost: none.

    References
    ----------
    Donoho and Tanner (2009), *Counting faces of randomly projected polytopes when the projection radically lowers
    dimension*; the parametric form: Donoho, Maleki and Montanari (2009), *Message passing algorithms for compressed
    sensing*. Khanna and Kyrillidis (2018) take the budget of an overshoot from it: 7500 measurements of 20000 entries
    give 2442.

    Examples
    --------
    >>> round(l1_phase_transition(0.5), 5)
    0.38569
    >>> round(7500 * l1_phase_transition(0.375))
    2442
    """
    ratio = np.asarray(delta)
    if ratio.dtype.kind not in "fiu":
        raise InvalidInputError(f"delta = measurements / entries must be numbers in (0, 1), got {format_value(delta)}")
    ratio = ratio.astype(float)
    if not np.all((ratio > 0.0) & (ratio < 1.0)):
        raise InvalidInputError(f"delta = measurements / entries must lie in (0, 1), got {format_value(delta)}")
    low, high = np.zeros_like(ratio), np.full_like(ratio, 40.0)  # at 40 the curve is below every positive float
    for _ in range(80):  # 40 / 2^80 is below the rounding of z
        z = 0.5 * (low + high)
        right = _ratio(z) > ratio
        low, high = np.where(right, z, low), np.where(right, high, z)
    z = 0.5 * (low + high)
    rho = 1.0 - z * _mills(z)
    return float(rho) if rho.ndim == 0 else rho


def _mills(z: np.ndarray) -> np.ndarray:
    """Return the tail of the normal law over its density, without underflow."""
    ratio: np.ndarray = np.sqrt(np.pi / 2.0) * erfcx(z / np.sqrt(2.0))
    return ratio


def _ratio(z: np.ndarray) -> np.ndarray:
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    ratio: np.ndarray = 2.0 * density / (z + 2.0 * density * (1.0 - z * _mills(z)))
    return ratio
