"""Search on f itself, by refits on few columns, where its quadratic model misleads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, inf, isfinite, nan

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs

from hardthresh.arrays import double, gather, is_regular, scatter, solve_semidefinite
from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.compiled import kernel
from hardthresh.core.constraint import Constraint, Projection, coordinate_budget
from hardthresh.core.objective import UNITS, LinearObjective
from hardthresh.losses.mean import ScalarMeanLoss
from hardthresh.objectives import LinearModel
from hardthresh.solvers.gains import twice_gains
from hardthresh.solvers.subspace import DAMPING, refine
from hardthresh.steps.line_search import ARMIJO, Candidate

from .kernel_model import KERNEL_LOSSES, KernelModel, numpy_loss
from .tableau import Tableau

_EXCHANGES, _NEARLY = 5, 0.95
"""How many exchanges are tried at a point, and of which share of its cost the modelled gain must be. Of the exchanges
that lowered f on 89 simulated classifiers, all had a share above 0.95, and 95 % were among the four with the largest.
With 3 exchanges the lowest f of 14 variants was reached on 61 of them, with 5 on 65."""
_PREDICTED = 1e-3
"""A refit ends with the step whose predicted decrease is at most this share of f: the next one would be about its
square."""
_PREDICTED_OF_FOLDS, _RATE = 1e-6, 0.1
"""The same for the refits of folds, which nothing refines after: f is then within about 1e-10 of the minimum. The last
step must also predict no more than so much of the decrease of the step before: on the way to infinity it is 0.37 times
that, by exponentials, and near a minimum about its square."""
_STEPS, _HALVINGS = 25, 30
"""Limits of the Newton steps of a refit, and of their halvings. On 236 simulated and real classifiers, 13,911 refits
took 4 steps on average and 19 at most."""
_ROUNDS = 50
"""Limit of the rounds of a search. No search on these 236 took more than 4."""
_DEPENDENT = 1e-9
"""A column is a combination of the chosen ones below this unexplained share; see `tableau`."""
_REGULAR = 1e-12
"""What is added to the diagonal of correlations, so that those of dependent columns have a Cholesky factor: far above
rounding and far below the unexplained share."""
_MOST_WORK = 1e9
"""Limit of the work of a search. A refit of s columns counts as 2 n s^2, the scores of m columns as n m (s + 2). It is
about 50 ms if compiled, as for 25 of 600 columns of 300 rows. On 80 such classifiers f is the lowest of that of four
methods on 79, with 6e8 on 76 and with 4e8 on 75. Searches of 8 of 200 columns of 100 rows do 2 % of it."""
_MINIMAL, _LIMIT, _ABANDONED, _STUCK, _SINGULAR = range(5)
"""How compiled Newton steps end; see `_kernel.c`."""
_COMPILED_ENTRIES = 1 << 17
"""Most entries of the columns on which `refit_to_the_end` uses compiled steps. For 100 x 5 entries these take a
thirtieth of the time of `refine`, for 60,000 a third of it, for 160,000 two thirds, and for 500,000 as long."""
MOST_ENTRIES = 1 << 22
"""Most entries of the columns that are searched, 32 MB of them: some hundred gradients read them all. Arbitrary."""


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
    found = _refit_by_kernel(KernelModel.of(Z.T, mean_loss, offset), l2, coef, bounds)
    if found is None:
        return _newton(Z, mean_loss, offset, l2, coef, _PREDICTED, inf, bounds)[:3]
    coef, prediction, value = found
    return coef, prediction if prediction.size == Z.shape[0] else _predict(Z, coef, offset), value


def _refit_by_kernel(
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
        known.loss, known.columns, known.offset, l2, coef, prediction, _contiguous(bounds),
        _STEPS, _HALVINGS, ARMIJO, _PREDICTED, 0.0, 0.0, inf, DAMPING * known.bound,
    )  # fmt: skip
    return None if end == _SINGULAR else (coef, prediction, value)


def _contiguous(bounds: np.ndarray | None) -> np.ndarray | None:
    return None if bounds is None else np.ascontiguousarray(bounds)


def _newton(
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
    prediction = _predict(Z, coef, offset)
    mean, slopes = mean_loss.value_and_slopes(prediction)
    value = mean + 0.5 * float(l2 @ (coef * coef))
    for _ in range(_STEPS if coef.size else 0):
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
            step, predicted = _step_within(hessian, gradient, bounds - coef)
        slope = float(gradient @ step)
        rounding = UNITS * np.finfo(float).eps * mean_loss.terms(prediction)
        if not 0.0 < slope < inf:  # at a minimum where bounds hold others it is rounding, of either sign
            return coef, prediction, value, bool(abs(slope) <= rounding)
        last = bool(predicted <= max(rounding, min(share * abs(value), rate * before)))
        length = 1.0
        for _ in range(_HALVINGS):
            further = coef - length * step
            if bounds is not None:
                further = np.clip(further, *bounds)  # but for rounding it is there
            there = _predict(Z, further, offset)
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


def _step_within(hessian: np.ndarray, gradient: np.ndarray, box: np.ndarray) -> tuple[np.ndarray, float]:
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
            columns, ends, starts, ridges, found, ended, _contiguous(bounds),
            _STEPS, _HALVINGS, ARMIJO, _PREDICTED_OF_FOLDS, _RATE, UNITS * np.finfo(float).eps,
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
            coefs[i, few], _, _, converged[i] = _newton(
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
        known = KernelModel.of_model(few)
        bounds = None if structure.bounds is None else structure.bounds[:, start.support.indices]
    if compiled is not None and known is not None:
        coef, prediction = gather(start.point, start.support.indices), np.empty(known.n_examples)
        value, end = compiled.refit(
            known.loss, known.columns, known.offset, _ridges(few), coef, prediction, _contiguous(bounds),
            rounds, _HALVINGS, ARMIJO, 0.0, tol, UNITS * np.finfo(float).eps, below, inf,
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
    return columns, *numpy_loss(model), _ridges(model)


def _ridges(model: LinearModel) -> np.ndarray:
    """Return the ridge of each coefficient of a model."""
    return np.full(model.shape[0], double(model.l2))


def _predict(Z: np.ndarray, coef: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
    u: np.ndarray = Z @ coef
    return u if offset is None else u + offset


@dataclass(frozen=True, slots=True, eq=False)
class Refit:
    """The minimiser of f on some columns.

    Attributes
    ----------
    chosen : tuple of int
        The columns, increasing, as places in the working set.
    coef : array, shape (s,)
        Their coefficients.
    value : float
        f; infinite if it is not finite.
    """

    chosen: tuple[int, ...]
    coef: np.ndarray
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class BestMoves:
    """What the quadratic model of f at a `Refit` says is best.

    Attributes
    ----------
    additions : list of (int, float)
        The two columns that lower it most when added, and by how much.
    exchanges : list of (int, int)
        Exchanges; see `LocalScores.exchanges`.
    """

    additions: list[tuple[int, float]]
    exchanges: list[tuple[int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Chosen columns that are held at their bounds, in the quadratic model of f; see `Tableau`.

    Attributes
    ----------
    level, slope : array, shape (t,)
        v and g.
    regressions : array, shape (t, s)
        Their regressions on the columns that move.
    rows : array, shape (t, m)
        What these leave unexplained of their products with all columns.
    rest : array, shape (t, t)
        The same for each other; h is the diagonal.
    """

    level: np.ndarray
    slope: np.ndarray
    regressions: np.ndarray
    rows: np.ndarray
    rest: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class LocalScores:
    """What the quadratic model of f at a `Refit` says about its columns and all others, in the notation of `Tableau`.

    All is at the minimiser of the model on the chosen columns. The refit ends near it, but not there: among near copies
    of the chosen columns, of which little is unexplained, even the small slope that is left would be a large gain.

    Attributes
    ----------
    coef, inverse : array, shape (s,) and (s, s)
        b and A, of the s columns that move.
    slope, unexplained : array, shape (m,)
        g and h; h is infinite for chosen columns and combinations of them.
    regressions : array, shape (s, m)
        U.
    fixed : array of bool, shape (s + t,)
        The chosen columns that may not be dropped, by their places.
    moving : array of bool, shape (s + t,)
        Which of the chosen columns move; the other t are held at their bounds.
    held : Held
        These.
    bounds : array, shape (2, m), or None
        The bounds of all columns.
    """

    coef: np.ndarray
    inverse: np.ndarray
    slope: np.ndarray
    unexplained: np.ndarray
    regressions: np.ndarray
    fixed: np.ndarray
    moving: np.ndarray
    held: Held
    bounds: np.ndarray | None

    @property
    def _diagonal(self) -> np.ndarray:
        """The diagonal of A to divide by: 1 in place of 0."""
        own = self.inverse.diagonal()
        return np.where(own == 0, 1.0, own)

    def gains(self) -> np.ndarray:
        """Return by how much the model falls when each column is added."""
        gains: np.ndarray = 0.5 * twice_gains(self.slope, self.unexplained, self.bounds)
        return gains

    def costs(self) -> np.ndarray:
        """Return by how much it rises when each chosen column is dropped; infinite if it may not be.

        It is infinite, too, for a column without curvature, as one by which a partial likelihood is monotone: of that
        the model says nothing.
        """
        costs, level = np.empty(self.fixed.size), self.held.level
        flat = self.inverse.diagonal() == 0  # no curvature, of which A has the pseudo-inverse
        costs[self.moving] = np.where(flat, inf, 0.5 * self.coef * (self.coef / self._diagonal))
        costs[~self.moving] = level * (self.held.slope + 0.5 * level * self.held.rest.diagonal())
        costs[self.fixed] = inf
        return costs

    def cost(self, dropped: np.ndarray) -> float:
        """Return by how much it rises when several chosen columns are dropped together."""
        gone = np.zeros(self.fixed.size, dtype=bool)
        gone[dropped] = True
        level = np.where(gone[~self.moving], self.held.level, 0.0)
        part = gone[self.moving]
        coef = (self.coef + level @ self.held.regressions)[part]
        rise = level @ (self.held.slope + 0.5 * self.held.rest @ level)
        return float(rise) + 0.5 * float(coef @ np.linalg.solve(self.inverse[np.ix_(part, part)], coef))

    def exchanges(self) -> list[tuple[int, int]]:
        """Return the best exchanges: the place of a chosen column, and the column that replaces it."""
        costs, diagonal = self.costs(), self._diagonal[:, None]
        slope, unexplained = (np.empty((costs.size, self.slope.size)) for _ in range(2))
        slope[self.moving] = self.slope + self.coef[:, None] * self.regressions / diagonal
        slope[~self.moving] = self.slope + self.held.level[:, None] * self.held.rows
        unexplained[self.moving] = self.unexplained + self.regressions * self.regressions / diagonal
        unexplained[~self.moving] = self.unexplained
        gains = 0.5 * twice_gains(slope, unexplained, self.bounds)
        added = gains.argmax(axis=1)
        gain = gains[np.arange(added.size), added]
        close = np.flatnonzero(gain >= _NEARLY * costs)
        best = close[np.argsort((costs - gain)[close], kind="stable")[:_EXCHANGES]]
        return [(int(i), int(added[i])) for i in best]


@dataclass(frozen=True, slots=True)
class Refitting:
    """How to search by refits.

    Attributes
    ----------
    ratio : float
        An answer is doubtful, and calls for a deep search, also if f rises by more than this multiple of what the
        quadratic model says when half of the chosen columns are dropped: always if 0.
    nearby : float
        Up to which ratio of k the supports with fewer and with more columns are searched together with those with k.
    add_drop : tuple of float
        How many columns the add-drop moves add and drop, as shares of k.
    only_cheap : bool
        Whether there is no deep search where refits take long.
    screening_ratio : float
        A column joins the working set if its score is more than this share of the reference score. On 40 classifiers of
        500 x 1,000 f is as low with 0.05 and 0.02, and higher on 2 with 0.2.
    """

    ratio: float
    nearby: float
    add_drop: tuple[float, ...]
    only_cheap: bool = False
    screening_ratio: float = 0.1


class RefitSearch:
    """Search for the k columns of a working set on which f is lowest, where every support is refitted.

    1. Start from the k columns with the largest gains at the null model, and from given ones. Exchange: of the best
       exchanges of one column by the quadratic model at the present minimiser, take the first that lowers f. Repeat
       until none does.
    2. Sweep over neighbouring sizes: from a forward path that begins with no column, and from the best of each size, go
       to the next larger and smaller ones by the best addition or removal, and exchange. Repeat as long as one becomes
       lower.
    3. Add-drop moves: add k/2 columns one by one, each the best by the model at the minimiser on those before, and drop
       as many in the same way; then first drop and then add; then both with k columns, which ends with a forward path
       from nothing. Exchange after each of them.
    4. Replace: leave out each column in turn, add the best other one by the model at the minimiser without it, and
       exchange.
    5. Repeat from 3 as long as f falls by more than a negligible amount, and not too much work has been done.

    Parameters
    ----------
    model : LinearModel
        f, of the columns of the working set only.
    fixed : array of int
        The columns that are always chosen, as places in the working set.
    negligible : float
        The decrease of f that does not count as progress.
    separated : float
        The search ends once f is below this value for no more columns than are wanted: they separate two classes, and
        each refit would take many steps towards infinity.
    bounds : array, shape (2, m), optional
        The bounds of the coefficients of the working set.

    Notes
    -----
    A workspace: minimisers are kept by support, and none is computed twice. Cost: about 60 refits and 40 scores of all
    columns for k = 8. Monotone. Heuristic. The kernel makes a search in one call.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.objectives import LinearModel
    >>> X = np.random.default_rng(0).standard_normal((50, 8))
    >>> y = (X[:, 2] - X[:, 5] > 0).astype(float)
    >>> search = RefitSearch(LinearModel(X, y, loss="logistic", l2=0.1), np.empty(0, dtype=int), 1e-8)
    >>> search.lowest(search.fit((0, 1)), 2, nearby=1.6, add_drop=(0.5, 1.0)).chosen
    (2, 5)
    """

    def __init__(
        self,
        model: LinearModel,
        fixed: np.ndarray,
        negligible: float,
        separated: float = -inf,
        bounds: np.ndarray | None = None,
    ) -> None:
        self._model, self._l2, self._null = model, _ridges(model), double(model.null_point())
        self._mean_loss, self._offset = numpy_loss(model)
        self._entries = model.y.shape[0] * self._l2.size
        self._fixed, self._negligible = frozenset(fixed.tolist()), negligible
        known = KernelModel.of_model(model)
        stays = known is not None and self._fixed.issuperset(range(known.columns.shape[0], self._l2.size))
        self._known = known if stays else None  # the thresholds of the kernel stay
        self._fits: dict[tuple[int, ...], Refit] = {}
        self._work, self._separated, self._target, self._bounds = 0.0, separated, 0, bounds
        self._exchanged: dict[tuple[int, ...], Refit] = {}
        self._known_moves: dict[tuple[int, ...], BestMoves] = {}
        self._known_costs: dict[tuple[int, ...], np.ndarray] = {}

    def fit(self, chosen: Sequence[int], near: Refit | None = None) -> Refit:
        """Return the minimiser on some columns, by Newton steps from the coefficients of another one."""
        key = tuple(sorted(chosen))
        if key not in self._fits:
            known = {} if near is None else dict(zip(near.chosen, near.coef, strict=True))
            start = np.array([known.get(j, 0.0) for j in key]) if near is not None else self._null[list(key)]
            places = list(key)
            coef, value = self._refitted(np.array(places, dtype=np.int64), start)
            self._fits[key] = Refit(key, coef, value if isfinite(value) else inf)
            self._work += 2.0 * self._model.y.shape[0] * len(key) ** 2
        if self._fits[key].value < self._separated and len(key) <= self._target:
            self._work = inf
        return self._fits[key]

    @without_overflow_warnings
    def _refitted(self, places: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the minimiser on some columns, increasing, and f there."""
        l2, known = self._l2[places], None if self._known is None else self._known.of_columns(places)
        bounds = None if self._bounds is None else self._bounds[:, places]
        found = _refit_by_kernel(known, l2, start, bounds)
        if found is None:
            Z = self._columns[places].T
            found = _newton(Z, self._mean_loss, self._offset, l2, start, _PREDICTED, inf, bounds)[:3]
        return found[0], found[2]

    @cached_property
    def _columns(self) -> np.ndarray:
        """A row for each column, for NumPy."""
        if self._known is not None and self._known.n_thresholds == 0:
            return self._known.columns
        return np.ascontiguousarray(double(self._model.design.dense()).T)

    def started(self, places: np.ndarray, coef: np.ndarray) -> Refit:
        """Return the minimiser on some columns, by Newton steps from some coefficients."""
        chosen = tuple(places.tolist())
        return self.fit(chosen, Refit(chosen, coef, inf))

    def scores(self, fit: Refit) -> LocalScores:
        """Return what the quadratic model at a minimiser says."""
        compiled, known = kernel(), self._known
        if compiled is None or known is None:
            return self._scores(fit, slice(None))
        chosen, moving = np.array(fit.chosen, dtype=np.int64), self._moving(fit)
        some, m = chosen[moving], self._l2.size
        slope, unexplained = np.empty(m), np.empty(m)
        regressions, inverse = np.empty((some.size, m)), np.empty((some.size, some.size))
        coef, prediction = fit.coef[moving], known.of_columns(chosen).predict(fit.coef)
        compiled.scores(
            known.loss, np.ascontiguousarray(known.examples), some, self._l2, prediction,
            coef, slope, unexplained, regressions, inverse,
        )  # fmt: skip
        held = self._held(fit, slice(None), chosen, slope, regressions)
        unexplained[chosen] = inf
        return LocalScores(coef, inverse, slope, unexplained, regressions, self.stay(fit), moving, held, self._bounds)

    def _moving(self, fit: Refit) -> np.ndarray:
        """Return which of the columns of a refit are not held at a bound."""
        if self._bounds is None:
            return np.ones(len(fit.chosen), dtype=bool)
        lower, upper = self._bounds[:, list(fit.chosen)]
        moving: np.ndarray = (lower < fit.coef) & (fit.coef < upper)
        return moving

    def _held(
        self,
        fit: Refit,
        of: list[int] | slice,
        chosen: np.ndarray,
        slope: np.ndarray,
        regressions: np.ndarray,
    ) -> Held:
        """Return what the model says of the columns of a refit that are held, among all or the chosen ones.

        `chosen` are their numbers among these, like those of slope and regressions.
        """
        moving = self._moving(fit)
        held, level, l2 = chosen[~moving], fit.coef[~moving], self._l2[of]
        if held.size == 0:
            return Held(level, level, np.empty((0, int(moving.sum()))), np.empty((0, l2.size)), np.empty((0, 0)))
        prediction = _predict(self._columns[list(fit.chosen)].T, fit.coef, self._offset)
        X, few, inner = self._columns[of].T, self._columns[of][held], self._mean_loss.inner_hessian(prediction)
        rows = (few * inner.diagonal) @ X - inner.image(few.T).T @ inner.image(X)
        rows[np.arange(held.size), held] += l2[held]
        rows -= rows[:, chosen[moving]] @ regressions
        return Held(level, slope[held] - l2[held] * level, regressions[:, held].T, rows, rows[:, held])

    def stay(self, fit: Refit) -> np.ndarray:
        """Return which of the columns of a refit may not be dropped."""
        return np.array([j in self._fixed for j in fit.chosen], dtype=bool)

    def _scores(self, fit: Refit, of: list[int] | slice) -> LocalScores:
        """Return these scores of all columns or of the chosen ones, computed by NumPy."""
        prediction, moving = _predict(self._columns[list(fit.chosen)].T, fit.coef, self._offset), self._moving(fit)
        X, l2 = self._columns[of].T, self._l2[of]
        every = np.array(fit.chosen, dtype=np.int64) if isinstance(of, slice) else np.arange(len(of))
        chosen = every[moving].tolist()
        few = X.T[chosen]
        inner = self._mean_loss.inner_hessian(prediction)
        slope = -(self._mean_loss.slopes(prediction) @ X)
        image, image_of_few = inner.image(X), inner.image(few.T)
        diagonal = inner.diagonal @ self._squares[:, of] - np.einsum("ij,ij->j", image, image) + l2
        cross = (few * inner.diagonal) @ X - image_of_few.T @ image  # the Hessian's rows of the chosen columns
        cross[np.arange(len(chosen)), chosen] += l2[chosen]
        scale = np.sqrt(np.maximum(diagonal[chosen], np.finfo(float).tiny))
        correlation = cross[:, chosen] / np.outer(scale, scale)
        correlation.flat[:: len(chosen) + 1] += _REGULAR
        coef, unexplained, regressions, inverse = fit.coef[moving], diagonal, cross, correlation
        if chosen:
            factor = dpotrf(correlation, lower=1)[0]
            half = dtrtrs(factor, cross / scale[:, None], lower=1)[0]
            unexplained = diagonal - np.einsum("ij,ij->j", half, half)
            regressions = dtrtrs(factor, half, lower=1, trans=1)[0] / scale[:, None]
            lower = np.tril(dpotri(factor, lower=1)[0])
            inverse = (lower + np.tril(lower, -1).T) / np.outer(scale, scale)
            left = slope[chosen] - l2[chosen] * coef
            slope, coef = slope - left @ regressions, coef + inverse @ left
            slope[chosen] = 0.0
        unexplained = np.where(unexplained > _DEPENDENT * diagonal, unexplained, inf)
        unexplained[every] = inf
        held, bounds = self._held(fit, of, every, slope, regressions), self._bounds
        bounds = bounds if bounds is None else bounds[:, of]
        return LocalScores(coef, inverse, slope, unexplained, regressions, self.stay(fit), moving, held, bounds)

    @cached_property
    def _squares(self) -> np.ndarray:
        squares: np.ndarray = np.square(self._columns).T
        return squares

    def without_half(self, fit: Refit) -> tuple[Refit, float]:
        """Return the minimiser without the less useful half of the columns, and by how much f rises in its model."""
        scores = self._scores(fit, list(fit.chosen))
        costs = scores.costs()
        dropped = np.argsort(costs, kind="stable")[: (int(np.isfinite(costs).sum()) + 1) // 2]
        rest = self.fit([j for i, j in enumerate(fit.chosen) if i not in dropped], fit)
        return rest, scores.cost(dropped)

    def reached(self, fit: Refit, size: int, ratio: float) -> tuple[Refit, bool]:
        """Return the minimiser on `size` columns that additions and exchanges lead to, and whether it is doubtful.

        It is if an exchange, of which the model says that it may lower f, has been tried in vain, or if f rises by more
        than `ratio` times what the model says when the less useful half of the columns is dropped. Within bounds it
        always is, unless the ratio is infinite.
        """
        self._work, self._target = 0.0, size + len(self._fixed)
        answer = self._compiled(fit, size, ratio=ratio)
        if answer is not None:
            return answer
        fit = self._reached(fit, size)
        return fit, self._is_doubtful(fit, ratio)

    def lowest(self, fit: Refit, size: int, nearby: float, add_drop: Sequence[float]) -> Refit:
        """Return the lowest minimiser on `size` columns, besides the fixed ones, that the search leads to from one.

        Sizes up to `nearby` times smaller or larger are searched as well. `add_drop` says how many columns the add-drop
        moves add and drop, as shares of the size.
        """
        counts = [max(1, round(share * size)) for share in add_drop]
        self._work, self._target = 0.0, size + len(self._fixed)
        answer = self._compiled(fit, size, nearby, counts)
        if answer is not None:
            return answer[0]
        found = self._reached(self._best_alone(fit, size), size)
        fit = self._lower(found, self._reached(fit, size)) if len(fit.chosen) > len(self._fixed) else found
        if self._work >= _MOST_WORK:
            return fit
        fit = self._swept(fit, size, ceil(size / nearby), floor(size * nearby))
        for _ in range(_ROUNDS):
            before = fit
            for count in counts:
                if self._work >= _MOST_WORK:
                    break
                swung = (
                    self._shrunk(self._grown(fit, size + count), size),
                    self._grown(self._shrunk(fit, max(0, size - count)), size),
                )
                for other in swung:
                    fit = self._lower(self._exchange(other), fit)
            fit = next((other for other in self._replacements(fit) if self._is_lower(other, fit)), fit)
            if fit is before:
                break
        return fit

    def _reached(self, fit: Refit, size: int) -> Refit:
        return self._exchange(self._grown(self._shrunk(fit, size), size))

    def _best_alone(self, start: Refit, size: int) -> Refit:
        """Return the minimiser on the columns with the largest gains at the minimiser on the fixed ones."""
        fit = self._shrunk(start, 0)
        gains = self.scores(fit).gains()
        self._work += self._entries * (len(fit.chosen) + 2.0)
        best = np.argsort(-gains, kind="stable")[:size]
        return self.fit([*fit.chosen, *best[gains[best] > 0.0].tolist()], fit)

    def _compiled(
        self, fit: Refit, size: int, nearby: float = 1.0, counts: Sequence[int] = (), ratio: float | None = None
    ) -> tuple[Refit, bool] | None:
        """Return what `reached` does for a ratio, else `lowest`, by the kernel if it can.

        None if it cannot, or if a Hessian was singular in the answer's refit. Other refits end where their Hessian is
        singular, and those of NumPy go on: then f may differ from what it is without the kernel.
        """
        compiled, known = kernel(), self._known
        if compiled is None or known is None:
            return None
        least, most = ceil(size / nearby), floor(size * nearby)
        places, moved = np.array(fit.chosen, dtype=np.int64), np.array(counts, dtype=np.int64)
        fixed = np.zeros(self._l2.size, dtype=np.int64)
        fixed[list(self._fixed)] = 1
        width = max(places.size, min(self._l2.size, max(most, size) + len(self._fixed)))
        chosen, coef = np.empty(width, dtype=np.int64), np.empty(width)
        count, value, doubtful, regular = compiled.search(
            known.loss, np.ascontiguousarray(known.examples), known.columns, known.offset, self._l2, fixed,
            places, fit.coef, moved, chosen, coef, _contiguous(self._bounds), fit.value, size, least, most,
            _ROUNDS, _STEPS, _HALVINGS, ARMIJO, _PREDICTED, DAMPING * known.bound, _NEARLY, self._negligible,
            self._separated, inf if ratio is None else ratio, _MOST_WORK, ratio is None,
        )  # fmt: skip
        answer = Refit(tuple(chosen[:count].tolist()), coef[:count], value)
        return (answer, bool(doubtful)) if regular else None

    def _swept(self, start: Refit, size: int, least: int, most: int) -> Refit:
        """Return the minimiser of a size that sweeps over it and its neighbours lead to."""
        best: dict[int, Refit] = {}
        new: set[tuple[int, int]] = set()  # which neighbour of which size is yet to be searched from its best minimiser

        def keep(at: int, fit: Refit) -> None:
            if at not in best or self._is_lower(fit, best[at]):
                best[at] = fit
                new.update(((at, 1), (at, -1)))

        def reach(at: int, fit: Refit) -> None:
            keep(at, self._exchange(self._grown(self._shrunk(fit, at), at)))

        keep(size, start)
        reach(least, self._shrunk(start, 0))
        for _ in range(_ROUNDS):
            found = False
            for sizes, step in ((range(least, most), 1), (range(most, least, -1), -1)):
                for at in sizes:
                    if (at, step) in new and self._work < _MOST_WORK:
                        new.remove((at, step))
                        reach(at + step, best[at])
                        found = True
            if not found:
                break
        return best[size]

    def _is_doubtful(self, fit: Refit, ratio: float) -> bool:
        if ratio == inf or self._work >= _MOST_WORK:
            return False
        if ratio == 0.0 or self._moves(fit).exchanges or self._bounds is not None:
            return True
        rest, modelled = self.without_half(fit)
        return rest.value - fit.value > ratio * modelled

    def _lower(self, other: Refit, fit: Refit) -> Refit:
        """Return another minimiser if f is lower there, and else the first."""
        return other if self._is_lower(other, fit) else fit

    def _is_lower(self, other: Refit, fit: Refit) -> bool:
        return other.value < fit.value - self._negligible

    def _exchange(self, fit: Refit) -> Refit:
        """Return the minimiser after exchanges, each the first of the best that lowers f."""
        start = fit
        if start.chosen not in self._exchanged:
            while self._work < _MOST_WORK:
                tried = (
                    self.fit([*fit.chosen[:i], *fit.chosen[i + 1 :], j], fit) for i, j in self._moves(fit).exchanges
                )
                lower = next((other for other in tried if self._is_lower(other, fit)), None)
                if lower is None:
                    break
                fit = lower
            self._exchanged[start.chosen] = fit
        return self._exchanged[start.chosen]

    def _replacements(self, fit: Refit) -> Iterator[Refit]:
        """Yield what exchanges lead to once a column has been replaced, for each one, the cheapest first."""
        costs = self._costs(fit)
        for i in np.argsort(costs, kind="stable")[: int(np.isfinite(costs).sum())]:
            if self._work >= _MOST_WORK:
                return
            rest = self.fit([*fit.chosen[:i], *fit.chosen[i + 1 :]], fit)
            others = (addition for addition in self._moves(rest).additions if addition[0] != fit.chosen[i])
            j, gain = next(others, (0, 0.0))
            if gain > 0.0:
                yield self._exchange(self.fit([*rest.chosen, j], rest))

    def _grown(self, fit: Refit, size: int) -> Refit:
        """Return the minimiser after the best columns were added one by one, to `size` besides the fixed ones."""
        while len(fit.chosen) < size + len(self._fixed):
            (j, gain), *_ = self._moves(fit).additions
            if not gain > 0.0:
                break
            fit = self.fit([*fit.chosen, j], fit)
        return fit

    def _shrunk(self, fit: Refit, size: int) -> Refit:
        """Return the minimiser after the cheapest columns were dropped one by one, to `size` besides the fixed ones."""
        while len(fit.chosen) > size + len(self._fixed):
            i = int(self._costs(fit).argmin())
            fit = self.fit([*fit.chosen[:i], *fit.chosen[i + 1 :]], fit)
        return fit

    def _moves(self, fit: Refit) -> BestMoves:
        """Return the moves that the quadratic model says are best."""
        if fit.chosen not in self._known_moves:
            scores = self.scores(fit)
            self._work += self._entries * (len(fit.chosen) + 2.0)
            gains = scores.gains()
            first = int(gains.argmax())
            additions = [(first, float(gains[first]))]
            gains[first] = -1.0
            second = int(gains.argmax())
            additions.append((second, float(gains[second])))
            self._known_moves[fit.chosen] = BestMoves(additions, scores.exchanges())
            self._known_costs[fit.chosen] = scores.costs()
        return self._known_moves[fit.chosen]

    def _costs(self, fit: Refit) -> np.ndarray:
        """Return by how much the quadratic model rises when each column is dropped."""
        if fit.chosen not in self._known_costs:
            places = list(fit.chosen)
            few = self._scores(fit, places)
            self._known_costs[fit.chosen] = few.costs()
        return self._known_costs[fit.chosen]
