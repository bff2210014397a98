"""Guarantees of accelerated iterative hard thresholding: Theorem 1 of Khanna and Kyrillidis (2018)."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, inf, log, sqrt
from typing import ClassVar

import numpy as np

from hardthresh.core.checking import checked_integer, checked_number

from .guarantee import Guarantee, checked_constants, meaning, refuses_overflow, with_attributes_section
from .momentum import momentum_range

_MOST = 1 << 62  # iterations; more are reported as infinitely many


@with_attributes_section
@dataclass(frozen=True, slots=True)
class AcceleratedGuarantee(Guarantee):
    """Lemmas 1 and 2 and Theorem 1 of *IHT dies hard* for given constants; ``print`` it to read it."""

    step: float = field(metadata=meaning("step of the theorem"))
    contraction: float = field(metadata=meaning("factor of the distance per iteration without momentum"))
    matrix: tuple[tuple[float, float], tuple[float, float]] = field(metadata=meaning("A of Lemma 1"))
    eigenvalues: tuple[float, float] = field(metadata=meaning("of A: the first is the factor with momentum"))
    in_published_range: bool = field(metadata=meaning("whether Algorithm 1 allows the momentum"))
    noise_per_step: float = field(metadata=meaning("increase of the distance by noise, per iteration"))
    noise_floor: float = field(metadata=meaning("limit of the bound of the distance"))
    iterations: float = field(metadata=meaning("of Theorem 1, without noise"))
    recursion_iterations: float = field(metadata=meaning("of Lemma 1 itself, without noise"))
    distance: float
    failures: tuple[str, ...]

    title: ClassVar[str] = "Accelerated iterative hard thresholding, Lemmas 1 and 2 and Theorem 1"
    assumptions: ClassVar[str] = "the constants hold for all differences of 4k non-zeros, and the truth has k"

    def distances(self, iterations: int) -> np.ndarray:
        """Return the bound of the distance along a run: the recursion of Lemma 1, noise included.

        Parameters
        ----------
        iterations : int
            T >= 0.

        Returns
        -------
        array, shape (T + 1,)
            The first is the distance at the start.

        Raises
        ------
        InvalidInputError
            For a negative number of iterations.
        """
        (now, before), _ = self.matrix
        found = [self.distance, self.distance]  # Algorithm 1 begins as if it had stood at its start before
        for _ in range(checked_integer("iterations", iterations, 0)):
            found.append(now * found[-1] + before * found[-2] + self.noise_per_step)
        return np.array(found[1:])


@refuses_overflow
def accelerated_guarantee(
    alpha: float,
    beta: float,
    momentum: float,
    *,
    distance: float = 1.0,
    precision: float = 1e-6,
    noise: float = 0.0,
    beta_noise: float | None = None,
) -> AcceleratedGuarantee:
    r"""Return the guarantee of accelerated iterative hard thresholding for least squares.

    .. math:: \begin{pmatrix} d_{i+1} \\ d_i \end{pmatrix} \le A \begin{pmatrix} d_i \\ d_{i-1} \end{pmatrix}
              + \begin{pmatrix} b \\ 0 \end{pmatrix}, \quad
              A = \begin{pmatrix} \xi |1 + \tau| & \xi |\tau| \\ 1 & 0 \end{pmatrix}, \quad
              \xi = \frac{2 (\kappa - 1)}{\kappa + 1}, \quad
              b = \frac{4 \sqrt{\beta_2}}{\alpha + \beta} \frac{\|\varepsilon\|}{\sqrt n}

    for :math:`d_i = \|x_i - x^*\|` (Lemma 1). The eigenvalues of A (Lemma 2) are
    :math:`\lambda_{1,2} = \frac{1}{2} (\xi |1 + \tau| \pm \sqrt{\xi^2 (1 + \tau)^2 + 4 \xi |\tau|})`, and without
    noise :math:`d_T \le \zeta` for

    .. math:: T = \Bigl\lceil \frac{1}{\log(1 / \lambda_1)}
              \log \frac{2 (1 + \xi (|1 + \tau| + |\tau|)) \|x^*\|}{\zeta (|\lambda_1| - |\lambda_2|)} \Bigr\rceil
              \qquad \text{(Theorem 1).}

    Parameters
    ----------
    alpha, beta : float
        The restricted constants of the mean loss, :math:`0 < \alpha \le \beta`: extreme eigenvalues of :math:`X^\top X
        / n` on 3k columns in the paper, on 4k with the corrected proof; see `restricted_bounds`.
    momentum : float
        :math:`\tau`, constant.
    distance : float
        :math:`\|x_0 - x^*\| > 0`, in units of w; :math:`\|x^*\|` for a start at 0.
    precision : float
        :math:`\zeta > 0`, the desired distance.
    noise : float
        :math:`\|\varepsilon\| / \sqrt n \ge 0`, the root mean square of the noise, which a user does not know.
    beta_noise : float, optional
        :math:`\beta_2 > 0`, the restricted smoothness on 2k columns. Default: `beta`, which is no smaller.

    Returns
    -------
    AcceleratedGuarantee
        The constants of the theorem. The bound is vacuous, and its number of iterations infinite, if :math:`\lambda_1
        \ge 1`, which holds for every momentum if :math:`\kappa \ge 3`.

    Raises
    ------
    InvalidInputError
        For numbers out of these ranges, or so large or small that a result overflows.

    See Also
    --------
    momentum_range : The range of the momentum that Algorithm 1 requires.
    local_rate : The exact rate once the support no longer changes.

    Notes
    -----
    Needs least squares, a set with an exact projection that holds the truth, and ``AcceleratedIHT(variant="paper",
    momentum=tau, step=Fixed(2 / (alpha + beta)))``. The factor 4 of b follows from the proof; the paper prints 2. The
    bound never shows a benefit of momentum, because :math:`\lambda_1 \ge \xi` whenever it decreases. It decreases if
    and only if :math:`\xi (|1 + \tau| + |\tau|) < 1`, a wider range than the published one. Theorem 1 divides by
    :math:`|\lambda_1| - |\lambda_2| = \xi |1 + \tau|`, so it does not apply at :math:`\tau = -1`, but the recursion
    does. Cost: none.

    References
    ----------
    Khanna and Kyrillidis (2018), *IHT dies hard: provable accelerated iterative hard thresholding*, Section 4; errata
    in the documentation.

    Examples
    --------
    >>> found = accelerated_guarantee(0.9, 1.1, 0.25)
    >>> round(found.contraction, 3), [round(value, 4) for value in found.eigenvalues]
    (0.2, [0.3812, -0.1312])
    >>> found.iterations, found.recursion_iterations
    (17, 15)
    >>> accelerated_guarantee(0.2, 1.0, 0.0).failures
    ('each iteration multiplies the bound by 1.333, so it is vacuous',)
    """
    alpha, beta = checked_constants(beta, alpha, names=("beta", "alpha"))[::-1]
    tau, zeta = checked_number("momentum", momentum), checked_number("precision", precision, above=0.0)
    start, noise = checked_number("distance", distance, above=0.0), checked_number("noise", noise, least=0.0)
    widest = beta if beta_noise is None else checked_number("beta_noise", beta_noise, above=0.0)
    xi = 2.0 * (beta - alpha) / (beta + alpha)
    now, before = xi * abs(1.0 + tau), xi * abs(tau)
    root = sqrt(now * now + 4.0 * before)
    first, second = 0.5 * (now + root), 0.5 * (now - root)
    shrinks = now + before < 1.0  # the same as first < 1, without its rounding
    b = 4.0 * sqrt(widest) / (alpha + beta) * noise
    matrix = ((now, before), (1.0, 0.0))
    published = xi == 0.0 or (xi < 1.0 and abs(tau) < momentum_range(1.0 - xi, 1.0).published)
    why = f"each iteration multiplies the bound by {first:.4g}, so it is vacuous"
    return AcceleratedGuarantee(
        step=2.0 / (alpha + beta),
        contraction=xi,
        matrix=matrix,
        eigenvalues=(first, second),
        in_published_range=published,
        noise_per_step=b,
        noise_floor=b / (1.0 - now - before) if shrinks else inf,
        iterations=_iterations_of_theorem(now, before, first, zeta / start) if shrinks else inf,
        recursion_iterations=_iterations_of_recursion(np.array(matrix), zeta / start) if shrinks else inf,
        distance=start,
        failures=() if shrinks else (why,),
    )


def _iterations_of_theorem(now: float, before: float, first: float, wanted: float) -> float:
    """Return T of Theorem 1; inf where the gap of the eigenvalues is 0, but 1 where the first row of A is."""
    if first == 0.0:
        return 1
    if now == 0.0:
        return inf
    return max(0, ceil(log(2.0 * (1.0 + now + before) / (wanted * now)) / -log(first)))


def _iterations_of_recursion(A: np.ndarray, wanted: float) -> float:
    """Return the least T whose distance is small enough, by bisection: the bound of Lemma 1 always falls."""

    def reached(iterations: int) -> bool:
        return bool(np.linalg.matrix_power(A, iterations).sum(axis=1)[0] <= wanted)

    if wanted >= 1.0:
        return 0
    high = 1
    while not reached(high):
        high *= 2
        if high > _MOST:
            return inf
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
