"""Frank-Wolfe over the balls of sparsity-inducing norms: plain, with away steps or pairwise, with or without refits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, nan, sqrt
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from hardthresh.arrays import namespace
from hardthresh.core.checking import checked_number, checked_word
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.errors import CapabilityError, InvalidInputError, format_value
from hardthresh.core.minimize import minimize
from hardthresh.core.objective import Evaluation, Objective, SmoothObjective
from hardthresh.core.result import Result, Status
from hardthresh.core.schema import stored
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.stopping import Run, Stop, StopRule
from hardthresh.core.support import upgrade_supports
from hardthresh.core.typing import Array
from hardthresh.solvers.refinement import FULL_SOLVE, refine
from hardthresh.solvers.start import starting_point
from hardthresh.steps.line_search import ARMIJO

from .balls import Atom, Ball, L1Ball

Variant = Literal["plain", "away", "pairwise"]
_TIE = 1e-9  # of the duality gap; arbitrary: after a refit all slopes are equal up to rounding


@stored("state/frank_wolfe", upgrades=[upgrade_supports])
@dataclass(frozen=True, slots=True, kw_only=True)
class FrankWolfeState(State):
    """A `State` whose point is a convex combination of atoms.

    Attributes
    ----------
    atoms : tuple of Atom
        Empty for the plain variant, which does not need them.
    weights : tuple of float
        Their weights, positive with sum 1.
    vertex : Atom
        The atom with the smallest product with the gradient at the point.
    gap : float
        The duality gap at the point: a convex f is at most this far above its minimum over the ball.
    """

    atoms: tuple[Atom, ...]
    weights: tuple[float, ...]
    vertex: Atom
    gap: float

    def record(self) -> dict[str, float]:
        return {"value": self.value, "gap": self.gap}


@stored("stop/duality_gap")
@dataclass(frozen=True, slots=True)
class DualityGap(StopRule):
    """Stop when the duality gap of a Frank-Wolfe run is below ``tol`` times the scale of f.

    The scale is ``max(|f|, |f_null - f|)``. For convex f, the gap is an upper bound on the distance of f from its
    minimum.

    Parameters
    ----------
    tol : float
        Relative tolerance > 0.
    """

    tol: float

    def __post_init__(self) -> None:
        checked_number("DualityGap: tol", self.tol, above=0.0, finite=False)

    def check(self, run: Run) -> Stop | None:
        state = run.state
        if not isinstance(state, FrankWolfeState):
            raise CapabilityError(f"DualityGap needs a run of Frank-Wolfe, got a {type(state).__name__}")
        if not state.gap <= self.tol * _scale(state):
            return None
        return Stop(Status.STATIONARY, f"the duality gap fell to {state.gap:.3g}")


@stored("solver/frank_wolfe")
@dataclass(frozen=True, slots=True)
class FrankWolfe(Solver):
    r"""Frank-Wolfe over a ball with sparse extreme points (atoms); each iteration adds one atom.

    .. math:: s_t = \arg\min_{s \in C} \langle \nabla f(w_t), s \rangle, \qquad
              w_{t+1} = w_t + \gamma_t d_t, \qquad \gamma_t = \arg\min_\gamma f(w_t + \gamma d_t)

    One iteration:

    1. the direction: :math:`d = s - w` (plain); or :math:`w - a` away from the active atom a with the largest product
       with the gradient, if that descends more steeply (away); or :math:`s - a` (pairwise);
    2. the step, at most as long as the weights of the atoms allow: exact for quadratic objectives, otherwise the
       minimiser of the quadratic model, shortened until f decreases sufficiently;
    3. with `corrective`: minimise f on the span of the active atoms, without the ball. If the minimiser is outside of
       it, the plain variant goes as far as the boundary; the others, which can move along it, do not refit.

    Parameters
    ----------
    variant : {"plain", "away", "pairwise"}
        The direction.
    corrective : bool
        Whether every iteration refits, after which the atoms are those of the refitted point. If its norm is below the
        radius, plus and minus the atom of the largest weight share the rest of the weight equally.

    Raises
    ------
    InvalidInputError
        For an unknown variant, or a `corrective` that is neither True nor False.
    CapabilityError
        By `check`, for a set that is not a `Ball` of finite radius; with `corrective`, for an objective without
        curvature.

    Notes
    -----
    The method solves the *convex* problem over the ball; its points have at most one atom per iteration. Without
    refitting, an entry that has become non-zero stays so in the plain variant. As long as the points are inside of the
    ball, `corrective` over the l1 ball is orthogonal matching pursuit.

    Cost: one data pass per iteration for the gradient and about s/d for the step, with s non-zeros of d; for the
    nuclear ball an objective that cannot use factors needs a full pass for it, and the support a decomposition. A
    refit costs about 2s/d per product with the Hessian.

    Guarantee: for convex f of bounded curvature, monotone with :math:`f(w_t) - f^* = O(1/t)` (plain; Frank and Wolfe
    1956, Jaggi 2013), linear over the l1 ball for strongly convex f with away or pairwise steps (Lacoste-Julien and
    Jaggi 2015, Theorem 1). Refitting only lowers f further, so the rate of the plain variant holds with it. It also
    exchanges the atoms, which Theorem 1 does not cover: `corrective` with away or pairwise steps is a heuristic. The
    gap in the state certifies the point in each case.

    References
    ----------
    Lacoste-Julien and Jaggi (2015), *On the global linear convergence of Frank-Wolfe optimization variants*,
    Algorithms 1 and 2. Refitting: Khanna and Kyrillidis (2018), Section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.core import minimize
    >>> from hardthresh.objectives import LinearModel
    >>> f = LinearModel(np.eye(3), np.array([3.0, 0.0, 1.0]))
    >>> minimize(f, L1Ball(2.0), FrankWolfe("away"), max_iter=100).w
    array([2., 0., 0.])
    """

    variant: Variant = "plain"
    corrective: bool = False

    state_type: ClassVar[type[State]] = FrankWolfeState

    def __post_init__(self) -> None:
        checked_word("variant", self.variant, get_args(Variant))
        if not isinstance(self.corrective, bool | np.bool_):
            raise InvalidInputError(f"corrective must be True or False, got {format_value(self.corrective)}")

    @property
    def requires(self) -> type:
        return SmoothObjective if self.corrective else Objective

    def check(self, objective: Objective, constraint: Constraint) -> None:
        super(FrankWolfe, self).check(objective, constraint)
        if not isinstance(constraint, Ball) or not isfinite(constraint.radius):
            raise CapabilityError(
                f"Frank-Wolfe needs a ball of finite radius, such as L1Ball(40.0); got {format_value(constraint)}"
            )

    def stopping(self, tol: float) -> StopRule:
        return DualityGap(tol)

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> FrankWolfeState:
        assert isinstance(constraint, Ball)
        at, projection = starting_point(objective, constraint, w0)
        state = FrankWolfeState(
            at=at, support=projection.support, seed=seed, atoms=(), weights=(), vertex=Atom(), gap=nan
        )
        return self._with_gap(constraint, state, self._decompose(constraint, at, constraint.vertex(at.gradient)))

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> FrankWolfeState:
        assert isinstance(state, FrankWolfeState)
        assert isinstance(constraint, Ball)
        if state.settled:
            return replace(state, iteration=state.iteration + 1, step=0.0)
        point, mixture, step = self._step(objective, constraint, state)
        found = constraint.project(point)  # the point itself, up to rounding
        prediction = None
        refitted = _refit(objective, constraint, found, self.variant == "plain") if self.corrective else None
        if refitted is not None:
            (found, prediction), mixture = refitted, None
        at = objective.evaluate(found.point, prediction)
        after = replace(state, at=at, support=found.support, iteration=state.iteration + 1, step=step)
        if mixture is None:
            mixture = self._decompose(constraint, at, state.vertex)
        after = self._with_gap(constraint, after, mixture)
        eps = float(namespace(at.gradient).finfo(at.gradient.dtype).eps)
        if after.gap <= 4.0 * eps * _scale(after):
            return replace(after, settled=f"the duality gap {after.gap:.3g} is rounding")
        return after

    def _step(self, objective: Objective, ball: Ball, state: FrankWolfeState) -> tuple[Array, _Mixture | None, float]:
        """Return the next point, its atoms and weights (None if they are not recorded), and the step."""
        w, gradient = state.w, state.at.gradient
        vertex = ball.combine([state.vertex], [1.0], gradient)
        if self.variant == "plain":
            step = _line_search(objective, state.at, vertex - w, longest=1.0)
            return (1.0 - step) * w + step * vertex, None, step
        slopes = ball.slopes(gradient, state.atoms)
        worst = int(np.argmax(slopes >= slopes.max() - _TIE * state.gap))
        away, weight = ball.combine([state.atoms[worst]], [1.0], gradient), state.weights[worst]
        away_gap = float(slopes[worst]) - float(namespace(gradient).sum(gradient * w))
        if self.variant == "away" and away_gap > state.gap:
            longest = weight / (1.0 - weight) if weight < 1.0 else 0.0
            step = _line_search(objective, state.at, w - away, longest)
            scale, taken, given = 1.0 + step, step, 0.0
        elif self.variant == "away":
            longest = 1.0
            step = _line_search(objective, state.at, vertex - w, longest)
            scale, taken, given = 1.0 - step, 0.0, step
        else:
            longest = weight
            step = _line_search(objective, state.at, vertex - away, longest)
            scale, taken, given = 1.0, step, step
        names = _names(state.atoms)
        mixture = {
            name: (atom, scale * share) for name, atom, share in zip(names, state.atoms, state.weights, strict=True)
        }
        if taken:
            atom, share = mixture[names[worst]]
            mixture[names[worst]] = (atom, 0.0 if step >= longest else share - taken)
        if given:
            name = _name(state.vertex, len(mixture))
            mixture[name] = (state.vertex, given + (mixture[name][1] if name in mixture else 0.0))
        kept = [(atom, share) for atom, share in mixture.values() if share > 0.0]
        total = sum(share for _, share in kept)
        atoms, weights = tuple(atom for atom, _ in kept), tuple(share / total for _, share in kept)
        return ball.combine(atoms, weights, gradient), (atoms, weights), step

    def _decompose(self, ball: Ball, at: Evaluation, vertex: Atom) -> _Mixture:
        """Return the atoms of a point and their weights, which sum to 1.

        Inside of the ball, plus and minus the atom of the largest weight share what is missing; at zero, `vertex` does.
        """
        if self.variant == "plain":
            return (), ()
        pieces = ball.decompose(at.point)
        missing = 1.0 - sum(weight for _, weight in pieces)
        if pieces and missing <= 0.0:
            total = 1.0 - missing
            return tuple(atom for atom, _ in pieces), tuple(weight / total for _, weight in pieces)
        pieces = pieces or [(vertex, 0.0)]
        heaviest = max(range(len(pieces)), key=lambda i: pieces[i][1])
        atom, weight = pieces[heaviest]
        pieces[heaviest] = (atom, weight + 0.5 * missing)
        pieces.append((ball.opposite(atom), 0.5 * missing))
        return tuple(atom for atom, _ in pieces), tuple(weight for _, weight in pieces)

    def _with_gap(self, ball: Ball, state: FrankWolfeState, mixture: _Mixture) -> FrankWolfeState:
        """Return a state with its atoms and weights, the next vertex and the duality gap."""
        gradient = state.at.gradient
        vertex = ball.vertex(gradient)
        gap = float(namespace(gradient).sum(gradient * state.w)) - float(ball.slopes(gradient, [vertex])[0])
        return replace(state, atoms=mixture[0], weights=mixture[1], vertex=vertex, gap=gap)


_Mixture = tuple[tuple[Atom, ...], tuple[float, ...]]


def frank_wolfe(
    f: Objective,
    radius: float | None = None,
    *,
    ball: Ball | None = None,
    variant: Variant = "plain",
    corrective: bool = False,
    max_iter: int = 1000,
    tol: float = 1e-6,
    **settings: Any,
) -> Result:
    r"""Minimise a convex objective over a ball by Frank-Wolfe; see `FrankWolfe`.

    .. math:: \min_w f(w) \quad \text{subject to} \quad \|w\|_1 \le \lambda

    Parameters
    ----------
    f : Objective
        On vectors of shape (d,); for `NuclearBall` on matrices.
    radius : float, optional
        :math:`\lambda > 0` of the l1 ball. Give either this or `ball`.
    ball : Ball, optional
        `GroupBall`, `NuclearBall`, or any other.
    variant : {"plain", "away", "pairwise"}
        The direction.
    corrective : bool
        Whether every iteration refits on the active atoms.
    max_iter : int
        Largest number of iterations.
    tol : float
        The run ends when the duality gap is below tol times the scale of f, or at a perfect fit; 0 switches this off.
    **settings :
        As for `hardthresh.minimize`.

    Returns
    -------
    Result
        ``history`` has also the ``"gap"``. ``status`` and ``converged`` show whether the run ended at `max_iter`.

    Raises
    ------
    InvalidInputError
        For a radius that is not positive and finite, an unknown variant, neither or both of `radius` and `ball`.
    CapabilityError
        With `corrective`, for an objective without curvature.

    Notes
    -----
    Cost, guarantee and references: see `FrankWolfe`.

    Examples
    --------
    >>> import hardthresh as ht
    >>> from hardthresh.datasets import make_sparse_regression
    >>> from hardthresh.objectives import LinearModel
    >>> drawn = make_sparse_regression(60, 100, 4)
    >>> f = LinearModel(drawn.X, drawn.X @ drawn.coef)   # without noise
    >>> b = ht.baselines.frank_wolfe(f, radius=40.0, variant="pairwise", corrective=True)
    >>> b.n_iter, np.array_equal(b.support, drawn.support)
    (4, True)
    """
    if (radius is None) == (ball is None):
        raise InvalidInputError(
            f"give either the radius of the l1 ball or a ball; got {format_value(radius)} and {format_value(ball)}"
        )
    constraint = ball if ball is not None else L1Ball(radius)  # type: ignore[arg-type]
    if isinstance(constraint, Ball):
        checked_number("the radius", constraint.radius, above=0.0)
    return minimize(f, constraint, FrankWolfe(variant, corrective), max_iter=max_iter, tol=tol, **settings)


def _scale(state: FrankWolfeState) -> float:
    null = state.trace.null_value
    return max(abs(state.value), abs(null - state.value) if isfinite(null) else 0.0)


def _name(atom: Atom, place: int) -> tuple[int, ...]:
    """Return the key of an atom, or its place if it has none."""
    return (place,) if atom.key is None else atom.key


def _names(atoms: Sequence[Atom]) -> list[tuple[int, ...]]:
    return [_name(atom, place) for place, atom in enumerate(atoms)]


def _refit(
    objective: Objective, ball: Ball, start: Projection, to_the_boundary: bool
) -> tuple[Projection, Array | None] | None:
    """Return the minimiser of f on the span of a point, and the prediction there.

    If that is outside of the ball: the last point inside on the line to it, or None without `to_the_boundary`.
    """
    found = refine(objective, ball.unbounded(), start, cg_iterations=0, rounds=FULL_SOLVE)
    target = found.projection.point
    if ball.gauge(target) <= ball.radius:
        return found.projection, found.prediction
    if not to_the_boundary:
        return None
    inside, outside = 0.0, 1.0
    for _ in range(60):  # more than the 53 bits of a number; the norm is convex, so the line leaves the ball once
        middle = 0.5 * (inside + outside)
        within = ball.gauge(start.point + middle * (target - start.point)) <= ball.radius
        inside, outside = (middle, outside) if within else (inside, middle)
    return ball.project(start.point + inside * (target - start.point)), None


def _line_search(objective: Objective, at: Evaluation, direction: Array, longest: float) -> float:
    """Return the best step in [0, longest] along a direction: exact for quadratics, else of sufficient decrease.

    0 if the direction is not one of descent, or no step above rounding lowers f.
    """
    xp = namespace(direction)
    slope = float(xp.sum(at.gradient * direction))
    if not (slope < 0.0 and longest > 0.0):
        return 0.0
    step = longest
    if isinstance(objective, SmoothObjective):
        curvature = objective.curvature_along(at, direction)
        if curvature > 0.0:
            step = min(longest, -slope / curvature)
        if objective.traits.quadratic:
            return step
    shortest = sqrt(float(xp.finfo(direction.dtype).eps)) ** 3 * longest
    best, lowest = 0.0, at.value
    while step > shortest:
        value = objective.value(at.point + step * direction)
        if value < lowest and value <= at.value + ARMIJO * step * slope:
            best, lowest = step, value
        elif best > 0.0:
            break
        curvature = 2.0 * (value - at.value - step * slope) / (step * step) if isfinite(value) else inf
        minimiser = -slope / curvature if curvature > 0.0 else longest  # of the parabola through f
        if best > 0.0 and not 1.5 * step < minimiser:
            break
        # between 0.1 and 0.5 of a step that fails, as is usual in backtracking, and at most 10 of one that does not
        step = min(minimiser, 10.0 * step, longest) if best > 0.0 else max(0.1 * step, min(minimiser, 0.5 * step))
        if best >= step:
            break
    return best
