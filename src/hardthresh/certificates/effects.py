"""The effect of each chosen feature on the objective: the cost of removing it and of its best substitute."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from hardthresh.arrays import as_double, double, gather, mask_of, move, namespace, to_numpy
from hardthresh.core.constraint import Constraint
from hardthresh.core.objective import Evaluation, LinearObjective, require
from hardthresh.core.support import Support
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array
from hardthresh.losses import MultiTask
from hardthresh.objectives import LinearModel, MultiOutputModel
from hardthresh.objectives.flat import FlatModel
from hardthresh.objectives.sandwich import squared_effects
from hardthresh.solvers.exchange import Exchange, try_exchanges
from hardthresh.solvers.refinement import FULL_SOLVE, refine

from .swap import exchange_model, joining, units

_SINGULAR = 1e-12
"""Share of the largest eigenvalue of the scaled Hessian below which columns count as dependent. The rounding of a sum
over n rows is about eps times the root of n: there is room for 1e7 rows. It is less than
`hardthresh.arrays.linalg.DEPENDENT`: columns that nearly depend on others have standard errors, which are large."""
WIDEST = 1000
"""The most coefficients of classes whose Hessian is decomposed: that takes half a second."""


@dataclass(frozen=True, slots=True)
class UnitEffect:
    """The effect on the objective of removing or replacing a chosen feature, or group of features.

    Attributes
    ----------
    unit : int
        The coordinate, or the number of the group.
    drop_cost : float
        The increase of the objective when the unit is removed and the others are refitted.
    substitute : int or None
        The coordinate or group that is its best substitute; None if none lowers the objective, or if substitutes were
        not compared.
    substitute_cost : float
        The increase of the objective after this exchange and a refit; negative for a decrease, NaN without a
        substitute.
    """

    unit: int
    drop_cost: float
    substitute: int | None
    substitute_cost: float


@serial_blas()
def unit_effects(objective: LinearObjective, constraint: Constraint, w: Array) -> tuple[UnitEffect, ...]:
    r"""Return the cost of removing each chosen coordinate or group, and its best substitute.

    .. math:: \min_{\mathrm{supp}(v) \subseteq S \setminus i} f(v) - f(w), \qquad
              \min_{j \notin S} \; \min_{\mathrm{supp}(v) \subseteq S \setminus i \cup j} f(v) - f(w)

    Parameters
    ----------
    objective : LinearObjective
        f.
    constraint : Constraint
        The constraint set. Its free coordinates stay in the model and have no entry.
    w : array, shape (d,)
        A minimiser of f on its support S.

    Returns
    -------
    tuple of UnitEffect
        In the order of the units; empty if the groups have too many columns, as for `swap_certificate`.

    Raises
    ------
    CapabilityError
        If the objective is not a `LinearObjective`.

    Notes
    -----
    Cost: s + 1 data passes for a support of s coordinates; for each unit two refits, of O(n s^2) per Newton step. For a
    table in blocks, one pass over the table, and another one if substitutes are not in the working set.

    Guarantee: all costs are computed by refits. The substitute is the best one by the quadratic model of f
    (`hardthresh.solvers.exchange_model`): for the squared loss without bounds it is exact up to rounding, otherwise
    heuristic.

    Examples
    --------
    The first two columns are almost the same, so that each is the closest substitute of the other:

    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> X = np.array([[1.0, 1.1, 0.0], [1.0, 0.9, 0.0], [0.0, 0.0, 1.0]])
    >>> f = LinearModel(X, np.array([1.0, 1.0, 0.5]))
    >>> [effect] = unit_effects(f, Sparsity(1), np.array([1.0, 0.0, 0.0]))
    >>> round(effect.drop_cost, 6), effect.substitute, round(effect.substitute_cost, 6)
    (0.333333, 1, 0.0033)
    """
    require(objective, LinearObjective, by="unit_effects")
    exact = objective.double()
    at = exact.evaluate(as_double(w))
    support = constraint.project(at.point).support
    numbers, chosen = units(constraint, support, at.point.shape[0])
    model = exchange_model(exact, constraint, at, support)
    if model is None:
        return ()
    candidates = list(model.candidates(joining(numbers, chosen)))
    exchanges = []
    for number in chosen.tolist():
        removal, best = model.removal(np.flatnonzero(numbers == number)), Exchange(number, -1, 0.0)
        for some in candidates:
            decreases = model.decreases(some, removal)
            if not decreases.size:
                continue
            place = int(np.argmax(decreases))
            gain = float(decreases[place]) + removal.cost - model.refit
            if gain > max(best.decrease, 0.0):
                best = Exchange(number, int(some.numbers[place]), gain)
        exchanges.append(best)
    if exact.traits.reading_is_dear:  # one for the columns of all substitutes
        joined = np.isin(numbers, [best.added for best in exchanges if best.added >= 0])
        exact.columns(np.union1d(support.indices, np.flatnonzero(joined)))
    effects = []
    for best in exchanges:
        number = best.removed
        drop_cost = _without(exact, constraint, at, move(np.flatnonzero(numbers == number), at.point)) - at.value
        if best.added < 0:
            effects.append(UnitEffect(number, drop_cost, None, nan))
            continue
        [(_, fit)] = try_exchanges(exact, constraint, at, support, [best], cg_iterations=0, rounds=FULL_SOLVE)
        effects.append(UnitEffect(number, drop_cost, best.added, fit.value - at.value))
    return tuple(effects)


def _without(objective: LinearObjective, constraint: Constraint, at: Evaluation, columns: Array) -> float:
    """Return the least value of f on the support without some columns."""
    xp = namespace(at.point)
    rest = xp.where(mask_of(columns, at.point.shape[0]), xp.zeros_like(at.point), at.point)
    fit = refine(objective, constraint, constraint.project(rest), cg_iterations=0, rounds=FULL_SOLVE)
    return float(fit.value)


@serial_blas()
def standard_errors(objective: Any, at: Evaluation, support: Support, n: float) -> np.ndarray:
    r"""Return model-based standard errors of the coefficients of a fitted model, for features chosen in advance.

    .. math:: \sqrt{\operatorname{diag}\bigl(\tfrac{\phi}{n} H^{-1} H_0 H^{-1}\bigr)}

    with H the Hessian of f on the support and :math:`H_0` that of the mean loss, without the ridge. The dispersion is
    :math:`\phi = 1` for losses that are negative log-likelihoods. For other losses it is :math:`n / (n - s)` times
    `Loss.dispersion`: the residual variance for the squared loss, and Pearson's estimate for amounts. H is the
    *observed* Hessian. Programs that use the expected Hessian return other standard errors for amounts and for negative
    binomial counts, for which the two differ. **The standard errors are not valid after selection**: if the same rows
    chose the features, intervals of two standard errors may cover the true coefficient far less often than 95 %.

    Parameters
    ----------
    objective : LinearObjective
        f, with the method `with_ridge`, such as a `LinearModel`.
    at : Evaluation
        f at a minimiser on the support.
    support : Support
        The support, with the free coordinates.
    n : float
        The number of examples.

    Returns
    -------
    array, shape (s,)
        For the coordinates of the support; NaN for those that depend linearly on others, or if there are not more
        examples than coordinates.

    Notes
    -----
    Cost: O(n s^2). The function is for one output; see `row_standard_errors` for several.
    """
    exact = objective.double()
    indices = support.indices
    point = gather(as_double(at.point), indices)
    small = exact.columns(indices)
    return _errors(small, small.evaluate(point, None if at.prediction is None else as_double(at.prediction)), n)


@serial_blas()
def row_standard_errors(model: MultiOutputModel, at: Evaluation, rows: Array, n: float) -> np.ndarray:
    """Return the standard errors of the coefficients of several outputs, as if their features had been given.

    Those of outputs with a loss each are what `standard_errors` returns for each output alone, with a dispersion of its
    own. Those of classes come from the Hessian of all coefficients together.

    Parameters
    ----------
    model : MultiOutputModel
        f.
    at : Evaluation
        f at a minimiser on some rows.
    rows : array of int, shape (s,)
        The rows, with the free ones.
    n : float
        The number of examples.

    Returns
    -------
    array, shape (s, q)
        NaN as for `standard_errors`, and of classes with more than `WIDEST` coefficients.

    Notes
    -----
    Cost: O(q n s^2), of classes O(q^2 n s^2 + q^3 s^3).
    """
    small = model.double().columns(rows)
    point, u = namespace(at.point).take(as_double(at.point), rows, axis=0), as_double(at.prediction)
    if isinstance(small.loss, MultiTask):
        settings: dict[str, Any] = {"sample_weight": small.weights, "l2": small.row_ridge()}
        parts = [LinearModel(small.design, small.y[:, c], small.loss.loss, **settings) for c in range(small.shape[1])]
        return np.stack([_errors(part, part.evaluate(point[:, c], u[:, c]), n) for c, part in enumerate(parts)], axis=1)
    flat = FlatModel(small)
    there = flat.evaluate(flat.to_vector(point), u)
    return class_standard_errors(flat, FlatModel(small.with_ridge(0.0)), there, small.loss.axes(small.shape[1]), n)


def class_standard_errors(
    flat: FlatModel, plain: FlatModel, there: Evaluation, axes: np.ndarray, n: float
) -> np.ndarray:
    """Return the standard errors of the coefficients of classes, from the Hessian of all together, shape (s, q).

    Parameters
    ----------
    flat, plain : FlatModel
        The model of the rows, with its ridge and without.
    there : Evaluation
        Where they are.
    axes : array, shape (q, width)
        What takes a row of a vector to the classes.
    n : float
        The number of examples.
    """
    s = flat.shape[0] // flat.width
    if flat.shape[0] > WIDEST:
        return np.full((s, axes.shape[0]), nan)
    covariance, dependent = _covariance(flat, plain, there)
    blocks = np.einsum("jajb->jab", covariance.reshape(2 * (s, flat.width)))
    variances = np.einsum("ca,jab,cb->jc", axes, blocks, axes) / n
    return _roots(variances, np.any(dependent.reshape(-1, flat.width), axis=1)[:, None])


@serial_blas()
def robust_errors(
    objective: LinearModel,
    at: Evaluation,
    support: Support,
    counts: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    r"""Return heteroscedasticity-robust standard errors (HC3) of the coefficients of a fitted model.

    .. math:: \sqrt{\operatorname{diag}\Bigl(H^{-1} \sum_i \frac{g_i g_i^\top}{(1 - h_i)^2} H^{-1}\Bigr)}

    with H the Hessian of f on the support, :math:`g_i = \omega_i \ell'(y_i, u_i) x_i` the gradient of a row, and
    :math:`h_i = \omega_i \ell''(y_i, u_i) x_i^\top H^{-1} x_i` its leverage: the HC3 errors, which are close to those
    of the jackknife. With m groups of rows, the gradients of a group are summed, without a division, and the variance
    is m / (m - 1) times (n - 1) / (n - s) times that of the formula. They are asymptotically valid as n, or m with
    groups, grows. As for `standard_errors`, **they are not valid after selection**.

    Parameters
    ----------
    objective : LinearModel
        f, of a loss of one prediction for each row.
    at : Evaluation
        f at a minimiser on the support.
    support : Support
        The support, with the free coordinates.
    counts : array, shape (n,), optional
        The number of repetitions of each row, if the weights are frequencies. Default: one, for any weights.
    groups : array, shape (n,), optional
        The group of each row.

    Returns
    -------
    array, shape (s,)
        The standard errors; NaN as for `standard_errors`, and if a single row determines a coefficient.

    Notes
    -----
    With few rows the residuals of a fit are smaller than the errors, especially at large leverages, and HC3 corrects
    most of this: after splits of tables of 40 to 4000 rows, neither HC1 nor HC2 has a higher coverage
    (``benchmarks/inference.py``). Cost: O(n s^2).

    References
    ----------
    J. G. MacKinnon and H. White (1985), Some heteroskedasticity-consistent covariance matrix estimators with improved
    finite sample properties, *Journal of Econometrics* 29, 305-325.

    J. S. Long and L. H. Ervin (2000), Using heteroscedasticity consistent standard errors in the linear regression
    model, *The American Statistician* 54, 217-224: HC3 for fewer than 250 rows.
    """
    exact = objective.double()
    small = exact.columns(support.indices)
    there = small.evaluate(gather(as_double(at.point), support.indices))
    inverse, dependent = _inverse(to_numpy(small.hessian(there)))
    slopes = to_numpy(small.mean_loss.slopes(there.prediction))
    X = to_numpy(small.design.dense())
    gradients = slopes[:, None] * X
    s, n = gradients.shape[1], float(slopes.size if counts is None else counts.sum())
    if groups is not None:
        numbers = np.unique(groups, return_inverse=True)[1]
        sums = np.zeros((int(numbers.max()) + 1, s))
        np.add.at(sums, numbers, gradients)
        clusters = float(len(sums))
        correction = clusters / (clusters - 1.0) * (n - 1.0) / (n - s) if n > s and clusters > 1 else nan
        return _roots(correction * np.sum((sums @ inverse) ** 2, axis=0), dependent)
    repeated = np.ones(slopes.size) if counts is None else counts
    curvatures = to_numpy(small.mean_loss.inner_hessian(there.prediction).diagonal)
    squares, decided = squared_effects(X, slopes, curvatures, repeated, inverse)
    return _roots(squares if n > s else np.full(s, nan), dependent | decided)


@serial_blas()
def robust_errors_of_blocks(objective: Any, at: Evaluation, support: Support, frequency: bool) -> np.ndarray:
    """Return the `robust_errors` of a model of a table in blocks: one reading of the columns of the support.

    Parameters
    ----------
    objective : BlockedLeastSquares or BlockedModel
        f.
    at : Evaluation
        f at a minimiser on the support.
    support : Support
        The support, with the free coordinates.
    frequency : bool
        Whether weights say how often rows are repeated.

    Returns
    -------
    array, shape (s,)
    """
    small = objective.columns(support.indices)
    inverse, dependent = _inverse(small.hessian(small.evaluate(at.point[support.indices])))
    squares, decided = objective.squared_effects(at.point, support.indices, inverse, frequency)
    n, s = objective.total_weight if frequency else objective.traits.n_rows, support.indices.size
    return _roots(np.where(n > s, squares, nan), dependent | decided)


def _errors(model: Any, at: Evaluation, n: float) -> np.ndarray:
    """Return the standard errors of all coefficients of a model of few columns."""
    covariance, dependent = _covariance(model, model.with_ridge(0.0), at)
    return _roots(np.diagonal(covariance) * dispersion(model, at, len(covariance), n) / n, dependent)


def _covariance(ridged: Any, plain: Any, at: Evaluation) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse of H times H_0 times the inverse of H, and which coordinates depend linearly on others."""
    inverse, dependent = _inverse(to_numpy(ridged.hessian(at)))
    return inverse @ to_numpy(plain.hessian(at)) @ inverse, dependent


def _inverse(hessian: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse of a Hessian on independent coordinates, and which depend linearly on others."""
    length = np.sqrt(np.maximum(np.diagonal(hessian), 0.0))
    scale = np.where(length > 0, 1 / np.where(length > 0, length, 1.0), 0.0)
    values, vectors = np.linalg.eigh(hessian * scale[:, None] * scale)
    kept = values > _SINGULAR * values.max(initial=0.0)
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T * scale[:, None] * scale
    dependent = (np.abs(vectors[:, ~kept]) > np.sqrt(_SINGULAR)).any(axis=1) | (length == 0)
    return inverse, dependent


def _roots(variances: np.ndarray, unknown: np.ndarray) -> np.ndarray:
    """Return the square roots of variances; NaN for those that are not known."""
    return np.where(unknown | ~(variances >= 0), nan, np.sqrt(np.maximum(variances, 0.0)))


def dispersion(objective: Any, at: Evaluation, n_free: int, n: float) -> float:
    """Return the dispersion of the targets about the model; 1 for a loss that has none, NaN if no row is left for it.

    Parameters
    ----------
    objective : LinearObjective
        The objective; if it has a `loss`, with `y` and `weights`, such as a `LinearModel`.
    at : Evaluation
        A fitted model, with its prediction.
    n_free : int
        The number of its coefficients.
    n : float
        The number of examples.
    """
    loss = getattr(objective, "loss", None)
    if loss is None or loss.unit_dispersion:
        return 1.0
    if not n > n_free:
        return nan
    own = getattr(objective, "mean_dispersion", None)  # of an objective without predictions for each row
    if own is not None:
        return float(n / (n - n_free) * own(at))
    y, u, weights = double(objective.y), double(at.prediction), double(objective.weights)
    return float(n / (n - n_free) * loss.dispersion(y, u, weights))
