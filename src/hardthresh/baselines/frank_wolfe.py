"""Frank-Wolfe over the balls that stand in for a count: plain, with away steps, pairwise; with or without refitting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, nan, sqrt
from typing import ClassVar, Literal, get_args

import numpy as np

from hardthresh.arrays import namespace
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
from hardthresh.solvers.start import starting_point
from hardthresh.solvers.subspace import refine

from .balls import Atom, Ball, L1Ball

Variant = Literal["plain", "away", "pairwise"]
_TIE = 1e-9  # of the duality gap: slopes that are nearer to the largest are equal to it


@stored("state/frank_wolfe", upgrades=[upgrade_supports])
@dataclass(frozen=True, slots=True, kw_only=True)
class FrankWolfeState(State):
    """A `State` with the atoms that its point is made of.

    Attributes
    ----------
    atoms : tuple of Atom
        Empty for the plain variant, which needs no record of them.
    weights : tuple of float
        Positive, of sum 1.
    vertex : Atom
        The atom that the gradient at the point asks for.
    gap : float
        The duality gap at the point: f is at most this far above its minimum over the ball, if it is convex.
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

    The scale is ``max(|f|, |f_null - f|)``. For a convex f the gap is an upper bound of what is left to gain.

    Parameters
    ----------
    tol : float
        Relative tolerance > 0.
    """

    tol: float

    def __post_init__(self) -> None:
        if not self.tol > 0:
            raise InvalidInputError(f"DualityGap: tol must be positive, got {format_value(self.tol)}")

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
    r"""Frank-Wolfe over a ball, whose extreme points (atoms) are sparse: a new one per iteration.

    .. math:: s_t = \arg\min_{s \in C} \langle \nabla f(w_t), s \rangle, \qquad
              w_{t+1} = w_t + \gamma_t d_t, \qquad \gamma_t = \arg\min_\gamma f(w_t + \gamma d_t)

    One iteration:

    1. the direction: :math:`d = s - w` (plain); or :math:`w - a` away from the active atom a with the largest product
       with the gradient, if that descends more steeply (away); or :math:`s - a` (pairwise);
    2. the step: as long as the weights of the atoms allow, exact for quadratic objectives, else the minimiser of the
       quadratic model, shortened until f falls enough;
    3. with `corrective`: minimise f on the span of the active atoms, without regard to the ball. Where that leaves it,
       plain steps go on to its boundary; the others stay where they are, because they find their way along it.

    Parameters
    ----------
    variant : {"plain", "away", "pairwise"}
        The direction.
    corrective : bool
        Whether every iteration refits, after which the atoms are those of the refitted point; for the l1 ball the mass
        that this leaves over is put on plus and minus the heaviest atom, half and half.

    Raises
    ------
    InvalidInputError
        For an unknown variant, or a `corrective` that is neither True nor False.
    CapabilityError
        By `check`, for a set that is no `Ball` of finite radius, or with `corrective` an objective without curvature.

    Notes
    -----
    It solves the *convex* problem over the ball; its points have as many atoms as it took, up to one per iteration.
    Without refitting, an entry that has become non-zero stays so in the plain variant. As long as the ball does not
    bind, `corrective` over the l1 ball is orthogonal matching pursuit.

    Cost: one data pass per iteration for the gradient and about s/d for the step, with s non-zeros of d; for the
    nuclear ball an objective that cannot use factors needs a full pass for it, and the support a decomposition. A
    refit costs about 2s/d per product with the Hessian.

    Guarantee: for convex f of bounded curvature, monotone with :math:`f(w_t) - f^* = O(1/t)` (plain; Frank and Wolfe
    1956, Jaggi 2013), linear over the l1 ball for strongly convex f with away or pairwise steps (Lacoste-Julien and
    Jaggi 2015, Theorem 1). Refitting only lowers f further, so the rate of the plain variant holds with it; but it
    also exchanges the atoms, which Theorem 1 does not know, so that `corrective` with away or pairwise steps is a
    heuristic. The gap in the state certifies any of them.

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
        if self.variant not in get_args(Variant):
            raise InvalidInputError(
                f"variant must be one of {', '.join(get_args(Variant))}; got {format_value(self.variant)}"
            )
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
        return self._look(constraint, state, self._split(constraint, at, constraint.vertex(at.gradient)))

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> FrankWolfeState:
        assert isinstance(state, FrankWolfeState)
        assert isinstance(constraint, Ball)
        if state.settled:
            return replace(state, iteration=state.iteration + 1, step=0.0)
        point, mix, step = self._step(objective, constraint, state)
        found = constraint.project(point)  # the point itself, but for rounding
        prediction = None
        refitted = _refit(objective, constraint, found, self.variant == "plain") if self.corrective else None
        if refitted is not None:
            (found, prediction), mix = refitted, None
        at = objective.evaluate(found.point, prediction)
        after = replace(state, at=at, support=found.support, iteration=state.iteration + 1, step=step)
        if mix is None:
            mix = self._split(constraint, at, state.vertex)
        after = self._look(constraint, after, mix)
        eps = float(namespace(at.gradient).finfo(at.gradient.dtype).eps)
        if after.gap <= 4.0 * eps * _scale(after):
            return replace(after, settled=f"the duality gap {after.gap:.3g} is rounding")
        return after

    def _step(self, objective: Objective, ball: Ball, state: FrankWolfeState) -> tuple[Array, _Mix | None, float]:
        """Return the next point, the atoms that it is made of (None: not recorded), and the step."""
        w, like = state.w, state.at.gradient
        vertex = ball.combine([state.vertex], [1.0], like)
        if self.variant == "plain":
            direction = vertex - w
            step = _line_search(objective, state.at, direction, longest=1.0)
            return (1.0 - step) * w + step * vertex, None, step
        slopes = ball.slopes(like, state.atoms)
        worst = int(
            np.argmax(slopes >= slopes.max() - _TIE * state.gap)
        )  # after a refit all are equal but for rounding
        bad, weight = ball.combine([state.atoms[worst]], [1.0], like), state.weights[worst]
        mix = dict(zip(_names(state.atoms), zip(state.atoms, state.weights, strict=True), strict=True))
        leaving = _names(state.atoms)[worst]
        xp = namespace(like)
        gain_away = float(slopes[worst]) - float(xp.sum(like * w))
        if self.variant == "away" and gain_away > state.gap:
            longest = weight / (1.0 - weight) if weight < 1.0 else 0.0
            step = _line_search(objective, state.at, w - bad, longest)
            scale, take, give = 1.0 + step, step, 0.0
        elif self.variant == "away":
            longest = 1.0
            step = _line_search(objective, state.at, vertex - w, longest)
            scale, take, give = 1.0 - step, 0.0, step
        else:
            longest = weight
            step = _line_search(objective, state.at, vertex - bad, longest)
            scale, take, give = 1.0, step, step
        mix = {name: (atom, scale * share) for name, (atom, share) in mix.items()}
        if take:
            mix[leaving] = (mix[leaving][0], 0.0 if step >= longest else mix[leaving][1] - take)
        if give:
            name = _name(state.vertex, len(mix))
            mix[name] = (state.vertex, give + (mix[name][1] if name in mix else 0.0))
        kept = [(atom, share) for atom, share in mix.values() if share > 0.0]
        total = sum(share for _, share in kept)
        atoms, weights = tuple(atom for atom, _ in kept), tuple(share / total for _, share in kept)
        return ball.combine(atoms, weights, like), (atoms, weights), step

    def _split(self, ball: Ball, at: Evaluation, spare: Atom) -> _Mix:
        """Return atoms and weights of a point, the weight left over on plus and minus the heaviest (zero: `spare`)."""
        if self.variant == "plain":
            return (), ()
        pieces = ball.pieces(at.point)
        left = 1.0 - sum(weight for _, weight in pieces)
        if pieces and left <= 0.0:
            total = 1.0 - left
            return tuple(atom for atom, _ in pieces), tuple(weight / total for _, weight in pieces)
        heaviest = max(range(len(pieces)), key=lambda i: pieces[i][1]) if pieces else 0
        if not pieces:
            pieces = [(spare, 0.0)]
        atom, weight = pieces[heaviest]
        pieces[heaviest] = (atom, weight + 0.5 * left)
        pieces.append((ball.opposite(atom), 0.5 * left))
        return tuple(atom for atom, _ in pieces), tuple(weight for _, weight in pieces)

    def _look(self, ball: Ball, state: FrankWolfeState, mix: _Mix) -> FrankWolfeState:
        """Return a state with its atoms, the atom that its gradient asks for, and the duality gap."""
        gradient = state.at.gradient
        vertex = ball.vertex(gradient)
        xp = namespace(gradient)
        gap = float(xp.sum(gradient * state.w)) - float(ball.slopes(gradient, [vertex])[0])
        return replace(state, atoms=mix[0], weights=mix[1], vertex=vertex, gap=gap)


_Mix = tuple[tuple[Atom, ...], tuple[float, ...]]


def frank_wolfe(
    f: Objective,
    radius: float | None = None,
    *,
    ball: Ball | None = None,
    variant: Variant = "plain",
    corrective: bool = False,
    w0: Array | None = None,
    stop: StopRule | None = None,
    max_iter: int = 1000,
    tol: float = 1e-6,
    callback: Callable[[State], None] | None = None,
    progress: bool = False,
    state: State | None = None,
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
    w0 : array, optional
        Start at its projection; default zero.
    stop, max_iter, callback, progress, state :
        As in `hardthresh.minimize`.
    tol : float
        The run ends when the duality gap is below tol times the scale of f, or at a perfect fit; 0 switches this off.

    Returns
    -------
    Result
        ``history`` has also the ``"gap"``. A run that ends at `max_iter` says so in ``status`` and ``converged``.

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
    if isinstance(constraint, Ball) and not isfinite(constraint.radius):
        raise InvalidInputError(f"the radius must be finite, got {format_value(constraint.radius)}")
    solver = FrankWolfe(variant, corrective)
    return minimize(
        f,
        constraint,
        solver,
        w0,
        stop=stop,
        max_iter=max_iter,
        tol=tol,
        callback=callback,
        progress=progress,
        state=state,
    )


def _scale(state: FrankWolfeState) -> float:
    null = state.trace.null_value
    return max(abs(state.value), abs(null - state.value) if isfinite(null) else 0.0)


def _name(atom: Atom, place: int) -> tuple[int, ...]:
    """Return what a record of atoms calls one of them: its key, or its place where all are different."""
    return (place,) if atom.key is None else atom.key


def _names(atoms: Sequence[Atom]) -> list[tuple[int, ...]]:
    return [_name(atom, place) for place, atom in enumerate(atoms)]


def _refit(
    objective: Objective, ball: Ball, start: Projection, to_the_boundary: bool
) -> tuple[Projection, Array | None] | None:
    """Return where minimising f on the span of a point leads, and the prediction there.

    Where that leaves the ball: the last point of the way that is inside, or None if nobody wants to go there.
    """
    found = refine(objective, ball.unbounded(), start, cg_iterations=0, rounds=25)
    target = found.projection.point
    if ball.gauge(target) <= ball.radius:
        return found.projection, found.prediction
    if not to_the_boundary:
        return None
    inside, outside = 0.0, 1.0
    for _ in range(60):  # the norm is convex, so the way leaves the ball once
        middle = 0.5 * (inside + outside)
        within = ball.gauge(start.point + middle * (target - start.point)) <= ball.radius
        inside, outside = (middle, outside) if within else (inside, middle)
    return ball.project(start.point + inside * (target - start.point)), None


def _line_search(objective: Objective, at: Evaluation, direction: Array, longest: float) -> float:
    """Return the best step in [0, longest] along a direction: exact for quadratics, else one that f falls enough with.

    0 where the direction does not descend, or no step that rounding leaves lowers f.
    """
    xp = namespace(direction)
    slope = float(xp.sum(at.gradient * direction))
    if not (slope < 0.0 and longest > 0.0):
        return 0.0
    step = longest
    if isinstance(objective, SmoothObjective):
        bend = objective.curvature_along(at, direction)
        if bend > 0.0:
            step = min(longest, -slope / bend)
        if objective.traits.quadratic:
            return step
    shortest = sqrt(float(xp.finfo(direction.dtype).eps)) ** 3 * longest
    best, lowest = 0.0, at.value
    while step > shortest:
        value = objective.value(at.point + step * direction)
        if value < lowest and value <= at.value + 1e-4 * step * slope:
            best, lowest = step, value
        elif best > 0.0:
            break
        bend = 2.0 * (value - at.value - step * slope) / (step * step) if isfinite(value) else inf
        wanted = -slope / bend if bend > 0.0 else longest
        if best > 0.0 and not 1.5 * step < wanted:
            break  # the parabola through f has its minimum near enough
        step = min(wanted, 10.0 * step, longest) if best > 0.0 else max(0.1 * step, min(wanted, 0.5 * step))
        if best >= step:
            break
    return best
