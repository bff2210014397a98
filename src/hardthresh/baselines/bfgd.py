"""Bi-factored gradient descent over the two factors of a matrix of low rank, without a decomposition per step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hardthresh.arrays import FactoredMatrix, all_finite, namespace, truncated_svd
from hardthresh.constraints import Bases, Rank
from hardthresh.core.checking import checked_number
from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import CapabilityError, NotFiniteError, format_value
from hardthresh.core.minimize import minimize
from hardthresh.core.objective import Objective, SmoothObjective
from hardthresh.core.result import Result
from hardthresh.core.schema import stored
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.stationarity import restricted_smoothness
from hardthresh.core.stopping import RelativeDecrease, StopRule
from hardthresh.core.support import upgrade_supports
from hardthresh.core.typing import Array
from hardthresh.solvers.start import starting_point


@stored("state/bfgd", upgrades=[upgrade_supports])
@dataclass(frozen=True, slots=True, kw_only=True)
class BFGDState(State):
    """A `State` with the factors of its point and the step, which is found at the start.

    Attributes
    ----------
    left : array, shape (p, r)
        U.
    right : array, shape (q, r)
        V.
    length : float
        The step.
    """

    left: Array
    right: Array
    length: float


@stored("solver/bfgd")
@dataclass(frozen=True, slots=True)
class BFGD(Solver):
    r"""Bi-factored gradient descent on the factors of :math:`W = U V^\top`.

    .. math:: U_{t+1} = U_t - \eta \nabla f(W_t) V_t, \qquad V_{t+1} = V_t - \eta \nabla f(W_t)^\top U_t, \qquad
              \eta = \frac{1}{20 L \left\| \begin{pmatrix} U_0 \\ V_0 \end{pmatrix} \right\|_2^2
              + 3 \|\nabla f(W_0)\|_2}

    from the spectral start :math:`W_0 = P_r(-\nabla f(0) / L)`, whose factors share its singular values.

    Parameters
    ----------
    smoothness : float, optional
        L > 0, the smoothness of f (the *mean* loss); for the formula without L the objective is scaled to L = 1.
        Default: an estimate along directions of the rank (about 20 data passes).

    Raises
    ------
    InvalidInputError
        For a smoothness that is not positive and finite.
    CapabilityError
        By `check`, for a set that is not `Rank`, or an objective without curvature.

    Notes
    -----
    The step is the short one of the theory: expect ten to a hundred times as many iterations as with `svp`. Cost: one
    gradient per iteration and O((p + q) r^2) for the bases; whole matrices are decomposed at the start only. Guarantee:
    linear convergence for restricted strongly convex f from a start that is near enough (Park et al. 2018, Theorem 4.4,
    for balanced factors). A run with short steps may end because f hardly changes, although it is not near a minimum.

    References
    ----------
    Park, Kyrillidis, Caramanis and Sanghavi (2018), *Finding low-rank solutions via nonconvex matrix factorization,
    efficiently and provably*, Algorithm 1, its step and its initialisation.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.core import minimize
    >>> from hardthresh.objectives import MatrixRegression
    >>> A = np.eye(4).reshape(4, 2, 2)
    >>> run = minimize(MatrixRegression(A, np.array([2.0, 0.0, 0.0, 1.0])), Rank(1), BFGD(), max_iter=500)
    >>> run.w.round(3)
    array([[2., 0.],
           [0., 0.]])
    """

    smoothness: float | None = None

    state_type: ClassVar[type[State]] = BFGDState

    def __post_init__(self) -> None:
        if self.smoothness is not None:
            checked_number("the smoothness", self.smoothness, above=0.0)

    @property
    def requires(self) -> type:
        return SmoothObjective

    def check(self, objective: Objective, constraint: Constraint) -> None:
        super(BFGD, self).check(objective, constraint)
        if not isinstance(constraint, Rank):
            raise CapabilityError(f"BFGD needs matrices of bounded rank, as of Rank(5); got {format_value(constraint)}")

    def stopping(self, tol: float) -> StopRule:
        return RelativeDecrease(tol)

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> BFGDState:
        assert isinstance(constraint, Rank)
        assert isinstance(objective, SmoothObjective)
        at, projection = starting_point(objective, constraint, w0)
        smoothness = self.smoothness
        if smoothness is None:
            smoothness = restricted_smoothness(objective, constraint, at, iterations=20, factor=1)
        if w0 is None and smoothness > 0.0:
            projection = constraint.project(-at.gradient * (1.0 / smoothness))
            at = objective.evaluate(projection.point)
        U, s, Vt = truncated_svd(at.point, constraint.r)
        xp = namespace(U)
        left, right = U * xp.sqrt(s), Vt.T * xp.sqrt(s)
        _, singular_values, _ = truncated_svd(at.gradient, 1)
        gradient_norm = float(singular_values[0]) if singular_values.shape[0] else 0.0
        size = 2.0 * float(s[0]) if s.shape[0] else 0.0  # both factors have the same singular values
        inverse = 20.0 * smoothness * size + 3.0 * gradient_norm
        return BFGDState(
            at=at,
            support=projection.support,
            seed=seed,
            left=left,
            right=right,
            length=1.0 / inverse if inverse > 0.0 else 0.0,
        )

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> BFGDState:
        assert isinstance(state, BFGDState)
        gradient, step = state.at.gradient, state.length
        left = state.left - step * (gradient @ state.right)
        right = state.right - step * (gradient.T @ state.left)
        if not (all_finite(left) and all_finite(right)):
            raise NotFiniteError("the factors became infinite or NaN; give a larger smoothness")
        factored = isinstance(state.w, FactoredMatrix)
        point = FactoredMatrix.product(left, right) if factored else left @ right.T
        return replace(
            state,
            at=objective.evaluate(point),
            support=_bases(left, right),
            iteration=state.iteration + 1,
            step=step,
            left=left,
            right=right,
        )


def bfgd(
    f: Objective,
    rank: int,
    *,
    smoothness: float | None = None,
    max_iter: int = 5000,
    tol: float = 1e-10,
    **settings: Any,
) -> Result:
    """Minimise an objective over matrices of rank at most r by bi-factored gradient descent; see `BFGD`.

    Parameters
    ----------
    f : Objective
        On matrices of shape (p, q), with curvature.
    rank : int
        r >= 0.
    smoothness : float, optional
        As for `BFGD`.
    max_iter, tol, **settings :
        As for `hardthresh.minimize`; the run ends when an iteration changes f by less than tol times its scale.

    Returns
    -------
    Result

    Raises
    ------
    InvalidInputError, CapabilityError
        As `BFGD`, and for a negative rank.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.objectives import MatrixRegression
    >>> run = bfgd(MatrixRegression(np.eye(4).reshape(4, 2, 2), np.array([1.0, 2.0, 2.0, 4.0])), 1)
    >>> run.w.round(3)
    array([[1., 2.],
           [2., 4.]])
    """
    return minimize(f, Rank(rank), BFGD(smoothness), max_iter=max_iter, tol=tol, **settings)


def _bases(left: Array, right: Array) -> Bases:
    """Return the bases of the product of two factors, by two thin QR decompositions and an r x r singular value one."""
    xp = namespace(left)
    if left.shape[1] == 0:
        return Bases(left, right)
    Q, R = xp.linalg.qr(left)
    P, S = xp.linalg.qr(right)
    U, s, Vt = truncated_svd(R @ S.T, left.shape[1], "lapack")
    return Bases(Q @ U, P @ Vt.T, s)
