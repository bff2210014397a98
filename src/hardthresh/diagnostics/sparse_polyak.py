"""Guarantees of Sparse Polyak: Theorems 1 and 2 and the corollaries of Qiao and Maros (2025)."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, exp, inf, log, log2, sqrt
from typing import ClassVar

from hardthresh.core.checking import checked_integer, checked_number, checked_word
from hardthresh.core.errors import InvalidInputError, format_value

from .guarantee import (
    Guarantee,
    checked_constants,
    meaning,
    refuses_overflow,
    steps_until,
    with_attributes_section,
)

# theorem: the constant in 1 - 1 / (constant kappa), a third of that in the budget; see A.1, B.1 and C.2 of the paper
_DECAYS = {"known target": 80, "learned target": 160, "generalised linear model": 160}
_MODELS = ("least squares", "logistic", "low rank", "generalised linear model")


@with_attributes_section
@dataclass(frozen=True, slots=True)
class SparsePolyakGuarantee(Guarantee):
    """Theorem 1, Theorem 2 or Corollary 5 of *Sparse Polyak* for given constants; ``print`` it to read it."""

    theorem: str = field(metadata=meaning("the target or model that it is about"))
    condition: float = field(metadata=meaning("restricted smoothness over strong convexity"))
    needed_k: float = field(metadata=meaning("least budget of the theorem"))
    rate: float = field(metadata=meaning("factor of the squared distance per iteration, outside of the radius"))
    least_step: float | None = field(metadata=meaning("least step outside of the radius"))
    radius: float = field(metadata=meaning("distance down to which it converges"))
    final_radius: float = field(metadata=meaning("distance that it never leaves again"))
    needed_smallest: float = field(metadata=meaning("least non-zero of the target for which the support is found"))
    support_found: bool | None = field(metadata=meaning("whether the target has no smaller one"))
    iterations: float | None = field(metadata=meaning("until the radius; of each epoch for a learned target"))
    value_gap: float | None = field(metadata=meaning("bound of the distance of f to its minimum at the end"))
    epochs: float | None = field(metadata=meaning("epochs that are enough"))
    gradients: float | None = field(metadata=meaning("iterations of all epochs"))
    failures: tuple[str, ...]

    title: ClassVar[str] = "Sparse Polyak, Theorems 1 and 2 and Corollaries 1 and 5"
    assumptions: ClassVar[str] = (
        "the constants hold for every sparse difference, and the target and its gradient are those of a vector that "
        "nobody knows"
    )


@refuses_overflow
def sparse_polyak_guarantee(
    smoothness: float,
    strong_convexity: float,
    gradient_norm: float,
    *,
    k: int,
    k_star: int,
    tolerance: float = 0.0,
    theorem: str = "known target",
    distance: float | None = None,
    smallest: float | None = None,
    gap: float | None = None,
) -> SparsePolyakGuarantee:
    r"""Return the guarantee of Sparse Polyak by Theorem 1, Theorem 2 or Corollary 5.

    .. math:: \bar L = L + 3 \tau k, \quad \bar\mu = \mu - 3 \tau k, \quad \bar\kappa = \bar L / \bar\mu, \quad
              \rho = \frac{6 \|P_k(\nabla f(\hat w))\|}{\bar\mu}, \quad
              k \ge (3 c \bar\kappa)^2 k^*

    Theorem 1 (a known target, c = 80): as long as :math:`\|w_t - \hat w\| \ge \rho`, every step shrinks the squared
    distance by :math:`1 - 1/(c \bar\kappa)`; from then on it is at most :math:`(1 + 1/(c \bar\kappa)) \rho^2`.
    Theorem 2 (a learned target, c = 160): the same within each epoch of T iterations, and the best point ends with
    :math:`f(w) - f(w^*) \le \varepsilon = (1 + 1/(c\bar\kappa)) (\bar L + \bar\mu) \rho^2` after
    :math:`1 + \log_2(2 \cdot \text{gap} / \varepsilon)` epochs. Corollary 1: if no non-zero of :math:`\hat w` is below
    :math:`7 \|P_k(\nabla f(\hat w))\| / \bar\mu`, the support is found.

    Parameters
    ----------
    smoothness, strong_convexity : float
        L and :math:`\mu` of Assumptions 1 and 2, :math:`0 < \mu \le L`, of the mean loss. For a quadratic f these may
        be the restricted constants on 3k columns, with ``tolerance=0``: the proof compares no vectors that differ in
        more coordinates. `restricted_bounds` bounds them from both sides.
    gradient_norm : float
        :math:`\|P_k(\nabla f(\hat w))\| \ge 0`, in units of f over units of w. :math:`\hat w` is unknown:
        `statistical_constants` bounds this number by the noise.
    k, k_star : int
        The budget, and the number of non-zeros of :math:`\hat w`, 1 <= k_star <= k.
    tolerance : float
        :math:`\tau \ge 0` of the assumptions.
    theorem : {"known target", "learned target", "generalised linear model"}
        Theorem 1 (`SparsePolyak` with a target), Theorem 2 (`AdaptiveSparsePolyak`) or Corollary 5 (``relax=2``).
    distance : float, optional
        :math:`\|w_0 - \hat w\| \ge 0`. For Corollary 5, which starts at 0, :math:`\|\hat w\|`: required.
    smallest : float, optional
        The smallest modulus of a non-zero of :math:`\hat w`.
    gap : float, optional
        For Theorem 2, :math:`f(w^*)` minus the first lower bound; the paper prints :math:`f(w_0) - f(w^*)`.

    Returns
    -------
    SparsePolyakGuarantee
        The constants of the theorem. If :math:`\bar\mu \le 0`, the theorem is vacuous and the radii are infinite.

    Raises
    ------
    InvalidInputError
        For numbers out of these ranges, or so large or small that a result overflows, or a
        generalised linear model without a distance.

    See Also
    --------
    hardthresh.steps.SparsePolyak : The step rule.

    Notes
    -----
    Needs Assumptions 1 and 2 with :math:`\bar\mu > 0`, the scale 5 of `SparsePolyak` (10 of `AdaptiveSparsePolyak`),
    and a target :math:`\hat f = f(\hat w)`, or a first bound of at most :math:`f(w^*)`, where :math:`w^*` minimises f
    over the vectors with `k_star` non-zeros. If k is below the required one, which is at least 57,600 times `k_star`,
    the theorem does not apply; its numbers are returned nevertheless, for comparison with runs. In Corollary 5, with
    :math:`R_0 = 4 \|w^*\|^2 + 1`, the budget is :math:`(480 R_0 \bar\kappa^2)^2 k^*`, the rate :math:`1 - 1/(160 R_0
    \bar\kappa^2)` at distances of at least 1 and :math:`1 - 1/(160 \bar\kappa)` below, and :math:`\bar\mu` has to be
    above :math:`5 \sqrt 2 \|P_k(\nabla f(w^*))\|`. The number of iterations above 1 is :math:`O(R_0 \bar\kappa^2 \log
    R)`, by the proof; the paper's statement leaves out :math:`R_0`. Cost: none.

    References
    ----------
    Qiao and Maros (2025), *Sparse Polyak*, Theorems 1 and 2, Corollaries 1 and 5; errata in the documentation.

    Examples
    --------
    >>> print(sparse_polyak_guarantee(1.0, 1.0, 0.01, k=60_000, k_star=1, distance=1.0, smallest=1.0))
    Sparse Polyak, Theorems 1 and 2 and Corollaries 1 and 5
      theorem          known target  the target or model that it is about
      condition        1       restricted smoothness over strong convexity
      needed k         57,600  least budget of the theorem
      rate             0.9875  factor of the squared distance per iteration, outside of the radius
      least step       0.025   least step outside of the radius
      radius           0.06    distance down to which it converges
      final radius     0.06037 distance that it never leaves again
      needed smallest  0.07    least non-zero of the target for which the support is found
      support found    True    whether the target has no smaller one
      iterations       448     until the radius; of each epoch for a learned target
      Assumptions that cannot be checked: the constants hold for every sparse difference, ...
    >>> sparse_polyak_guarantee(1.3, 0.7, 0.01, k=30, k_star=10).failures
    ('k = 30 is below the needed 1,986,613',)
    """
    L, mu = checked_constants(smoothness, strong_convexity)
    size = checked_number("gradient_norm", gradient_norm, least=0.0)
    k = checked_integer("k", k, 1)
    k_star = checked_integer("k_star", k_star, 1, k, "k")
    lost = 3.0 * checked_number("tolerance", tolerance, least=0.0) * k
    c = _DECAYS[checked_word("theorem", theorem, _DECAYS)]
    start = None if distance is None else checked_number("distance", distance, least=0.0)
    least = None if smallest is None else checked_number("smallest", smallest, above=0.0)
    far = 1.0
    if theorem == "generalised linear model":
        if start is None:
            raise InvalidInputError("distance is needed for a generalised linear model: the norm of its coefficients")
        far = 4.0 * start * start + 1.0
    L, mu = L + lost, mu - lost
    if mu <= 0.0:
        why = f"the strong convexity {mu + lost:.4g} is at most 3 tolerance k = {lost:.4g}, so the bound is vacuous"
        return SparsePolyakGuarantee(theorem, inf, inf, 1.0, None, inf, inf, inf, None, None, None, None, None, (why,))
    kappa = L / mu
    inverse = c * kappa if far == 1.0 else c * far * kappa * kappa
    decay, needed = 1.0 / inverse, (3.0 * inverse) ** 2 * k_star
    radius, needed_smallest = 6.0 * size / mu, 7.0 * size / mu
    final_squared = (1.0 + decay) * radius * radius
    iterations = value_gap = epochs = gradients = None
    if start is not None:
        wanted = final_squared if theorem == "learned target" else radius * radius
        iterations = _until(start * start, wanted, decay, 1.0 / (c * kappa))
    if theorem == "learned target":
        value_gap = (L + mu) * final_squared
        if gap is not None:
            epochs = _epochs(checked_number("gap", gap, least=0.0), value_gap)
            gradients = None if iterations is None else epochs * iterations
    failures = [] if k >= needed else [f"k = {k:,} is below the needed {ceil(needed):,}"]
    if theorem == "generalised linear model" and mu <= 5.0 * sqrt(2.0) * size:
        failures.append(
            f"the strong convexity {mu:.4g} is not above 5 sqrt(2) gradient_norm = {5 * sqrt(2) * size:.4g}"
        )
    return SparsePolyakGuarantee(
        theorem=theorem,
        condition=kappa,
        needed_k=ceil(needed),
        rate=1.0 - decay,
        least_step=None if far > 1.0 else 1.0 / (40.0 * L),
        radius=radius,
        final_radius=sqrt(final_squared),
        needed_smallest=needed_smallest,
        support_found=None if least is None else least >= needed_smallest,
        iterations=iterations,
        value_gap=value_gap,
        epochs=epochs,
        gradients=gradients,
        failures=tuple(failures),
    )


def _until(squared: float, wanted: float, far: float, near: float) -> float:
    """Return how many steps shrink a squared distance enough, by one factor down to 1 and by another below."""
    if squared <= wanted:
        return 0
    if far == near or squared <= 1.0:
        return steps_until(wanted / squared, near)
    return steps_until(max(wanted, 1.0) / squared, far) + steps_until(min(wanted, 1.0), near)


def _epochs(gap: float, value_gap: float) -> float:
    """Return the number of epochs that halve a gap until it is within half of another."""
    if gap == 0.0:
        return 1
    return inf if value_gap == 0.0 else max(1, ceil(1.0 + log2(2.0 * gap / value_gap)))


@with_attributes_section
@dataclass(frozen=True, slots=True)
class StatisticalConstants(Guarantee):
    """Constants of a statistical model, for `sparse_polyak_guarantee`; ``print`` it to read it."""

    smoothness: float = field(metadata=meaning("L of Assumption 2"))
    strong_convexity: float = field(metadata=meaning("mu of Assumption 1"))
    tolerance: float = field(metadata=meaning("tau of both, with its universal constant as given"))
    gradient_norm: float = field(metadata=meaning("bound of the k largest entries of the gradient at the truth"))
    probability: float = field(metadata=meaning("of that bound, but for terms that vanish like exp(-n)"))
    failures: tuple[str, ...]

    title: ClassVar[str] = "Statistical constants of Sparse Polyak"
    assumptions: ClassVar[str] = "the model, its covariance, its noise and the universal constants"


@refuses_overflow
def statistical_constants(
    model: str,
    *,
    n: int,
    d: int,
    k: int,
    eigenvalues: tuple[float, float],
    noise: float = 1.0,
    column_norm: float = 1.0,
    variance: float = 1.0,
    signal: float = 0.0,
    constant: float = 1.0,
) -> StatisticalConstants:
    r"""Return the constants of a statistical model, by Lemmas 1, 2 and 7 and Corollaries 2 to 5 of *Sparse Polyak*.

    .. math:: \|P_k(\nabla f(w^*))\|^2 \le \frac{k}{n} \times
              \begin{cases}
              8 C^2 \sigma^2 \log d & \text{least squares (Corollary 4)} \\
              2 C^2 \log d & \text{logistic (Corollary 2)} \\
              200 \, \sigma^2 \zeta d & \text{low rank (Corollary 3)} \\
              c^2 \log d & \text{generalised linear model (Corollary 5)}
              \end{cases}

    With these constants, `sparse_polyak_guarantee` returns the radius of the corollary, such as :math:`\rho^2 = 288 C^2
    \sigma^2 k \log(d) / (n \bar\mu^2)` for least squares.

    Parameters
    ----------
    model : {"least squares", "logistic", "low rank", "generalised linear model"}
        The corollary. Low rank is about d x d matrices, of which k is the rank.
    n, d, k : int
        Examples, at least 1; features, at least 2; the budget, from 1 to d.
    eigenvalues : tuple of float
        :math:`\sigma_{\min} > 0` and :math:`\sigma_{\max}` of the covariance :math:`\Sigma` of the features. For a
        generalised linear model :math:`\mu` and L of Lemma 7, for which the paper gives no formula.
    noise : float
        :math:`\sigma \ge 0`, the standard deviation of the noise in y.
    column_norm : float
        C > 0: no column of X is longer than :math:`C \sqrt n`.
    variance : float
        :math:`\zeta > 0`, the largest variance of a feature; for low rank, of :math:`u^\top A v` for unit u and v.
    signal : float
        :math:`\|w^*\| \ge 0`, for the logistic model, whose curvature falls with :math:`e^{-4 \|w^*\|}`.
    constant : float
        The universal constant c > 0 of :math:`\tau`, and for generalised linear models of the bound above and its
        probability. *No value is known**; the default 1 only sets a scale, and does not give a bound.

    Returns
    -------
    StatisticalConstants

    Raises
    ------
    InvalidInputError
        For a model that is not listed, or numbers out of these ranges, or so large or small that a result overflows.

    Notes
    -----
    Features are normal in all four models. Least squares and low rank: :math:`L = 2\sigma_{\max}`, :math:`\mu =
    \sigma_{\min}/2`, and :math:`\tau = c \zeta \log(d)/n`, or :math:`c \zeta d / n`. Logistic, with features of norm at
    most 1: :math:`\mu` and :math:`\tau` times :math:`e^{-4\|w^*\|}`, and L such that :math:`\bar L = L + 3 \tau k` is
    1, but at least :math:`\mu`. With few examples, :math:`3 \tau k \ge \mu`; `failures` of the result then says so, and
    the theorem of `sparse_polyak_guarantee` is vacuous. Cost: none.

    References
    ----------
    Qiao and Maros (2025), *Sparse Polyak*, Section 4 and Appendix C.

    Examples
    --------
    >>> found = statistical_constants("least squares", n=30_000, d=5000, k=700, eigenvalues=(0.44, 4.0), noise=0.5)
    >>> round(found.smoothness, 3), round(found.strong_convexity, 3), round(found.gradient_norm, 3)
    (8.0, 0.22, 0.63)
    >>> found.failures
    ('3 tolerance k = 0.5962 is not below the strong convexity 0.22: more examples are needed',)
    """
    checked_word("model", model, _MODELS)
    n, d, k = checked_integer("n", n, 1), checked_integer("d", d, 2), checked_integer("k", k, 1, d, "d")
    try:
        mu, L = eigenvalues
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"eigenvalues must be two numbers, got {format_value(eigenvalues)}") from error
    L, mu = checked_constants(L, mu, ("the second of eigenvalues", "the first of eigenvalues"))
    sigma, c = checked_number("noise", noise, least=0.0), checked_number("constant", constant, above=0.0)
    C, zeta = checked_number("column_norm", column_norm, above=0.0), checked_number("variance", variance, above=0.0)
    share = (d if model == "low rank" else log(d)) / n
    tau = c * zeta * share
    missing = 2.0 * exp(-4.0 * d) if model == "low rank" else 2.0 / d
    if model == "generalised linear model":
        squared, tau, missing = c * c, c * share, c / d
    elif model == "logistic":
        weaker = exp(-4.0 * checked_number("signal", signal, least=0.0))
        squared, tau, mu = 2.0 * C * C, weaker * tau, 0.5 * weaker * mu
        if mu == 0.0:
            raise InvalidInputError(f"signal = {signal!r} leaves no strong convexity: exp(-4 signal) underflows")
        L = max(1.0 - 3.0 * tau * k, mu)
    else:
        squared = 200.0 * sigma * sigma * zeta if model == "low rank" else 8.0 * C * C * sigma * sigma
        L, mu = 2.0 * L, 0.5 * mu
    lost = 3.0 * tau * k
    why = f"3 tolerance k = {lost:.4g} is not below the strong convexity {mu:.4g}: more examples are needed"
    return StatisticalConstants(
        L, mu, tau, sqrt(k * squared * share), max(0.0, 1.0 - missing), () if lost < mu else (why,)
    )
