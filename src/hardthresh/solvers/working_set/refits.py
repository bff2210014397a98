"""The minimiser of f on a few columns, by Newton steps, compiled where the kernel knows the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np

from hardthresh.arrays import double, gather, is_regular, scatter, solve_semidefinite
from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.compiled import kernel
from hardthresh.core.constraint import Constraint, Projection, coordinate_budget
from hardthresh.core.objective import UNITS, LinearObjective
from hardthresh.losses.mean import ScalarMeanLoss
from hardthresh.objectives import LinearModel
from hardthresh.solvers.newton import DAMPING
from hardthresh.solvers.refinement import refine
from hardthresh.steps.line_search import ARMIJO, Candidate

from .kernel_model import KERNEL_LOSSES, KernelModel, numpy_loss
from .tableau import Tableau

PREDICTED = 1e-3
"""A refit ends with the step whose predicted decrease is at most this share of f: the next one would be about its
square."""
_PREDICTED_OF_FOLDS, _RATE = 1e-6, 0.1
"""The same for the refits of folds, which nothing refines after: f is then within about 1e-10 of the minimum. The last
step must also predict no more than so much of the decrease of the step before: on the way to infinity it is 0.37 times
that, by exponentials, and near a minimum about its square."""
STEPS, HALVINGS = 25, 30
"""Limits of the Newton steps of a refit, and of their halvings. On 236 simulated and real classifiers, 13,911 refits
took 4 steps on average and 19 at most."""
_MINIMAL, _LIMIT, _ABANDONED, _STUCK, _SINGULAR = range(5)
"""How compiled Newton steps end; see `_kernel.c`."""
_COMPILED_ENTRIES = 1 << 17
"""Most entries of the columns on which `refit_to_the_end` uses compiled steps. For 100 x 5 entries these take a
thirtieth of the time of `refine`, for 60,000 a third of it, for 160,000 two thirds, and for 500,000 as long."""


@without_overflow_warnings
def refit(
    Z: np.ndarray,
    mean_loss: ScalarMeanLoss,
    offset: np.ndarray | None,
    l2: np.ndarray,
    coef: np.ndarray,
    bounds: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, float]:
    r"""Return the minimiser of a mean loss on a few columns, the prediction and the value there.

    .. math:: f(b) = \ell(Zb + o) + \tfrac{1}{2} \sum_j \lambda_j b_j^2

    Newton steps, each halved until f falls enough, as long as the model of f predicts a decrease that counts.

    Parameters
    ----------
    Z : array, shape (n, s)
        The columns.
    mean_loss : ScalarMeanLoss
        :math:`\ell`, of examples in arrays of NumPy.
    offset : array, shape (n,), or None
        o; None is zero.
    l2 : array, shape (s,)
        :math:`\lambda`.
    coef : array, shape (s,)
        Where to start. All arrays are of float64, and contiguous except Z.
    bounds : array, shape (2, s), optional
        The lower and the upper bounds of the coefficients.

    Notes
    -----
    Monotone: the value is at most that at the start. Where Newton steps converge quadratically it is within about 1e-5
    of the minimum. Cost: a few products of s columns with each other.
    """
    found = refit_by_kernel(KernelModel.of(Z.T, mean_loss, offset), l2, coef, bounds)
    if found is None:
        return newton(Z, mean_loss, offset, l2, coef, PREDICTED, inf, bounds)[:3]
    coef, prediction, value = found
    return coef, prediction if prediction.size == Z.shape[0] else predict(Z, coef, offset), value


def refit_by_kernel(
    known: KernelModel | None, l2: np.ndarray, coef: np.ndarray, bounds: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Return what `refit` does, by the kernel.

    None if there is none, or if it knows no step at a singular Hessian.
    """
    compiled = kernel()
    if compiled is None or known is None:
        return None
    coef, prediction = coef.copy() if bounds is None else np.clip(coef, *bounds), np.empty(known.n_examples)
    value, end = compiled.refit(
        known.loss, known.columns, known.offset, l2, coef, prediction, contiguous(bounds),
        STEPS, HALVINGS, ARMIJO, PREDICTED, 0.0, 0.0, inf, DAMPING * known.bound,
    )  # fmt: skip
    return None if end == _SINGULAR else (coef, prediction, value)


def contiguous(bounds: np.ndarray | None) -> np.ndarray | None:
    return None if bounds is None else np.ascontiguousarray(bounds)


def newton(
    Z: np.ndarray,
    mean_loss: ScalarMeanLoss,
    offset: np.ndarray | None,
    l2: np.ndarray,
    coef: np.ndarray,
    share: float,
    rate: float,
    bounds: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, float, bool]:
    """Return where Newton steps lead: the coefficients, the prediction, f, and whether the steps have converged.

    They end with the one whose predicted decrease is at most a share of f, and `rate` times that of the step before, or
    rounding. With bounds, lower and upper ones of shape (2, s), a step goes to the minimiser of the model within them.
    """
    before, coef = inf, coef if bounds is None else np.clip(coef, *bounds)
    prediction = predict(Z, coef, offset)
    mean, slopes = mean_loss.value_and_slopes(prediction)
    value = mean + 0.5 * float(l2 @ (coef * coef))
    for _ in range(STEPS if coef.size else 0):
        gradient = slopes @ Z + l2 * coef
        inner = mean_loss.inner_hessian(prediction)
        image = inner.image(Z)
        hessian = Z.T @ (Z * inner.diagonal[:, None]) - image.T @ image
        hessian.flat[:: coef.size + 1] += l2
        if not is_regular(hessian):
            hessian = _damped(hessian, Z, mean_loss)
        step = solve_semidefinite(hessian, gradient)
        predicted = 0.5 * float(gradient @ step)
        if bounds is not None:
            step, predicted = step_within(hessian, gradient, bounds - coef)
        slope = float(gradient @ step)
        rounding = UNITS * np.finfo(float).eps * mean_loss.terms(prediction)
        if not 0.0 < slope < inf:  # at a minimum where bounds hold others it is rounding, of either sign
            return coef, prediction, value, bool(abs(slope) <= rounding)
        last = bool(predicted <= max(rounding, min(share * abs(value), rate * before)))
        length = 1.0
        for _ in range(HALVINGS):
            further = coef - length * step
            if bounds is not None:
                further = np.clip(further, *bounds)  # up to rounding it is there
            there = predict(Z, further, offset)
            mean, further_slopes = mean_loss.value_and_slopes(there)
            lower = mean + 0.5 * float(l2 @ (further * further))
            if lower <= value - ARMIJO * length * slope:
                break
            length *= 0.5
        else:
            return coef, prediction, value, last
        coef, prediction, slopes, value = further, there, further_slopes, lower
        before = predicted
        if last:
            return coef, prediction, value, True
    return coef, prediction, value, coef.size == 0


def _damped(hessian: np.ndarray, Z: np.ndarray, mean_loss: ScalarMeanLoss) -> np.ndarray:
    """Return a singular Hessian with a share of the bound of the second derivatives, if the loss has a bound."""
    bound = mean_loss.bounding_hessian()
    return hessian if bound is None else hessian + DAMPING * (Z.T @ (Z * bound.diagonal[:, None]))


def step_within(hessian: np.ndarray, gradient: np.ndarray, box: np.ndarray) -> tuple[np.ndarray, float]:
    """Return what to subtract to go to the minimiser of the model within bounds of the changes, and its decrease."""
    size = gradient.size
    model = Tableau(hessian, -gradient, range(size), n_free=size, bounds=box)
    step = np.zeros(size)
    step[model.chosen] = -model.coef
    return step, model.decrease


@dataclass(frozen=True, slots=True, eq=False)
class ColumnsToRefit:
    """A mean loss on some columns, of which many supports are refitted.

    Attributes
    ----------
    columns : array, shape (m, n)
        A row for each column, contiguous.
    mean_loss, offset :
        As for `refit`.
    penalties : array, shape (m,)
        The ridge of each column, as a multiple of that of a refit.
    null_coef : array, shape (m,)
        Where refits start that do not start from another one.
    """

    columns: np.ndarray
    mean_loss: ScalarMeanLoss
    offset: np.ndarray | None
    penalties: np.ndarray
    null_coef: np.ndarray

    @without_overflow_warnings
    def refits(
        self, chosen: np.ndarray, ridges: np.ndarray, starts: np.ndarray, bounds: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the minimisers on several supports, each with a ridge, and which of them have converged.

        Parameters
        ----------
        chosen : array of bool, shape (n_refits, m)
            The columns of each refit.
        ridges : array, shape (n_refits,)
            Its ridge.
        starts : array of int, shape (n_refits,)
            The earlier refit whose coefficients it starts from, those of other columns being zero; -1 for `null_coef`.
        bounds : array, shape (2, m), optional
            The lower and the upper bounds of the coefficients.

        Returns
        -------
        coefs : array, shape (n_refits, m)
        converged : array of bool, shape (n_refits,)

        Notes
        -----
        f is within about 1e-10 of the minimum. Cost: for each refit two to four products of its columns with each
        other.
        """
        coefs, compiled = np.zeros(chosen.shape), kernel()
        known = KernelModel.of(self.columns, self.mean_loss, self.offset)
        if compiled is None or known is None or not chosen[:, known.columns.shape[0] :].all():
            return coefs, self._newton_steps(range(ridges.size), chosen, ridges, starts, coefs, bounds)
        columns = np.ascontiguousarray(np.nonzero(chosen)[1])
        ended = np.empty(ridges.size, np.int64)
        ends = np.concatenate([[0], chosen.sum(axis=1).cumsum()])
        found = np.empty(columns.size)
        compiled.refits(
            known.loss, known.columns, known.offset, self.penalties, self.null_coef,
            columns, ends, starts, ridges, found, ended, contiguous(bounds),
            STEPS, HALVINGS, ARMIJO, _PREDICTED_OF_FOLDS, _RATE, UNITS * np.finfo(float).eps,
            DAMPING * known.bound,
        )  # fmt: skip
        coefs[chosen] = found
        singular = ended == _SINGULAR
        again = self._newton_steps(np.flatnonzero(singular).tolist(), chosen, ridges, starts, coefs, bounds)
        return coefs, np.where(singular, again, ended == _MINIMAL)

    def _newton_steps(
        self,
        refits: Sequence[int],
        chosen: np.ndarray,
        ridges: np.ndarray,
        starts: np.ndarray,
        coefs: np.ndarray,
        bounds: np.ndarray | None,
    ) -> np.ndarray:
        """Write the coefficients of some refits into those of all, and return which of them have converged."""
        converged = np.zeros(ridges.size, dtype=bool)
        for i in refits:
            few = np.flatnonzero(chosen[i])
            start = (self.null_coef if starts[i] < 0 else coefs[starts[i]])[few]
            box = None if bounds is None else bounds[:, few]
            coefs[i, few], _, _, converged[i] = newton(
                self.columns[few].T, self.mean_loss, self.offset, ridges[i] * self.penalties[few],
                start, _PREDICTED_OF_FOLDS, _RATE, box,
            )  # fmt: skip
        return converged


def refit_to_the_end(
    objective: LinearObjective,
    constraint: Constraint,
    start: Projection,
    *,
    rounds: int,
    tol: float,
    below: float = inf,
) -> Candidate:
    """Return the point that `refine` leads to by full Newton steps.

    Where the kernel knows the loss and the columns are so few that calls of NumPy would take most of the time, the
    steps are compiled. If one of them fails, because the Hessian is singular or the loss saturated, `refine` starts
    again.

    Parameters
    ----------
    objective : LinearObjective
        f.
    constraint : Constraint
        A set of coordinates.
    start : Projection
        Where to start.
    rounds, tol, below :
        See `refine`.
    """
    model, compiled, known = objective, kernel(), None
    structure = coordinate_budget(constraint, tuple(objective.shape))
    if compiled is not None and structure and isinstance(model, LinearModel) and _is_small(model, start):
        few = model.columns(start.support.indices)
        known = KernelModel.of_model(few, *numpy_loss(few))
        bounds = None if structure.bounds is None else structure.bounds[:, start.support.indices]
    if compiled is not None and known is not None:
        coef, prediction = gather(start.point, start.support.indices), np.empty(known.n_examples)
        value, end = compiled.refit(
            known.loss, known.columns, known.offset, ridges_of(few), coef, prediction, contiguous(bounds),
            rounds, HALVINGS, ARMIJO, 0.0, tol, UNITS * np.finfo(float).eps, below, inf,
        )  # fmt: skip
        if end in (_MINIMAL, _LIMIT, _ABANDONED):
            point = scatter(coef, start.support.indices, start.point.shape[0])
            return Candidate(
                constraint.project_onto(point, start.support),
                nan,
                value,
                few.predict(coef) if known.n_thresholds else prediction,
                end == _MINIMAL,
                end == _ABANDONED,
            )
    return refine(objective, constraint, start, cg_iterations=0, rounds=rounds, tol=tol, below=below)


def _is_small(model: LinearModel, start: Projection) -> bool:
    """Return whether the kernel knows the loss, and a support has few columns, in NumPy's double precision."""
    entries: int = start.support.indices.shape[0] * model.y.shape[0]
    plain = isinstance(start.point, np.ndarray) and start.point.dtype == np.float64
    return plain and entries <= _COMPILED_ENTRIES and type(model.loss) in KERNEL_LOSSES


def numpy_parts(model: LinearModel) -> tuple[np.ndarray, ScalarMeanLoss, np.ndarray | None, np.ndarray]:
    """Return the columns as rows, mean loss, offset and ridges of a model, of contiguous arrays of float64."""
    columns = np.ascontiguousarray(double(model.design.dense()).T)
    return columns, *numpy_loss(model), ridges_of(model)


def ridges_of(model: LinearModel) -> np.ndarray:
    """Return the ridge of each coefficient of a model."""
    return np.full(model.shape[0], double(model.l2))


def predict(Z: np.ndarray, coef: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
    u: np.ndarray = Z @ coef
    return u if offset is None else u + offset
