"""The function to minimise: what solvers may ask of it, and how they say what they need."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Protocol, runtime_checkable

from .errors import CapabilityError
from .schema import stored
from .typing import Array, library


@stored("point/evaluation")
@dataclass(frozen=True, slots=True)
class Evaluation:
    """An objective at one point: everything here belongs to that point, never to an earlier one.

    Attributes
    ----------
    point : array of the objective's shape
        Where.
    value : float
        f(point).
    gradient : array like `point`
        The gradient of f at the point.
    prediction : array or None
        What the objective computed on the way (for a linear model Xw + offset, shape (n,)) and can use again.
    """

    point: Array
    value: float
    gradient: Array
    prediction: Array | None = None


@runtime_checkable
class Objective(Protocol):
    """A smooth function f on arrays of one shape.

    An objective may also have any of these abilities; `require` asks for them before a run starts.

    * ``curvature(at, direction)``: the Hessian at an evaluated point times a direction.
    * ``curvature_along(at, direction)``: direction' H direction, when that is cheaper than the product.
    * ``curvature_diagonal(at)``: the diagonal of the Hessian.
    * ``columns(indices)``: the objective restricted to some coordinates, an objective of its own.
    * ``double()``: the same objective in double precision, of one that is computed in less.
    * ``hessian(at)``: the Hessian as a matrix; asked only of small objectives.
    * ``cross_hessian(at, other)``: the block of the Hessian between two small objectives' coordinates.
    * ``quadratic``: whether the Hessian is the same everywhere; False unless it says otherwise.
    * ``partial``: whether f ignores some coordinates of the point altogether, as in the completion of a matrix: moving
      along them costs nothing, so whatever extrapolates does so blindly; False unless it says otherwise.
    * ``evaluate_many(points)``: several evaluations, cheaper together.
    * ``symmetric``: whether it is a function of symmetric matrices, so that runs need a set of such (see
      `Constraint.symmetric`); False unless it says otherwise.
    * ``attains_bound``: whether some finite point reaches the lower bound; True unless it says otherwise.
    * ``recession(at, indices)``: of an objective that does not, a move of some coordinates along which it falls for
      ever, or None if it has a minimiser on these.
    * ``rounding(at)``: how much of the value at an evaluated point may be rounding, see `value_rounding`.
    * ``rows(indices)``: the objective over some of the examples (a mini-batch is an objective).
    * ``null_point()``: where runs start without w0, for an objective that is infinite at zero.
    * ``n_rows``: how many examples ``rows`` may pick from.
    * ``metered(meter)``: the same objective, adding the data passes it makes to a `Meter`.
    * ``lacks``: names of abilities that its class has but it has not, because of how its data are stored.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a point."""

    @property
    def lower_bound(self) -> float:
        """A number that f never falls below; -inf when none is known."""

    def zeros(self) -> Array:
        """Return the zero point, in the objective's array library, dtype and device."""

    def predict(self, w: Array) -> Array | None:
        """Return what `evaluate` and `value` can use instead of computing it again; None if there is no such thing."""

    def evaluate(self, w: Array, prediction: Array | None = None) -> Evaluation:
        """Return value and gradient at `w`; `prediction`, if the caller has it, saves computing it again."""

    def value(self, w: Array, prediction: Array | None = None) -> float:
        """Return f(w)."""


def provides(objective: Any, ability: str) -> bool:
    """Return whether an objective has an optional ability (see `Objective`).

    Parameters
    ----------
    objective : Objective
        The objective.
    ability : str
        The name of the ability.

    Returns
    -------
    bool
    """
    if ability in getattr(objective, "lacks", ()):
        return False
    if ability == "shape":
        return hasattr(objective, "shape")
    if ability == "lower_bound":
        return bool(getattr(objective, "lower_bound", -inf) > -inf)
    return callable(getattr(objective, ability, None))


def require(objective: Any, abilities: tuple[str, ...], by: str) -> None:
    """Refuse, before a run starts, an objective that lacks what a solver or step rule needs.

    Parameters
    ----------
    objective : Objective
        The objective.
    abilities : tuple of str
        What is needed.
    by : str
        Who needs it, for the message.

    Raises
    ------
    CapabilityError
        Naming who asks and everything that is missing.
    """
    missing = [ability for ability in abilities if not provides(objective, ability)]
    if missing:
        raise CapabilityError(
            f"{by} needs {' and '.join(missing)}, which {type(objective).__name__} does not provide; "
            "choose another solver or step rule, or give the objective that ability"
        )


UNITS = 16
"""Units of rounding by which a sum may be off: pairwise summation of 2^16 numbers has as many levels."""


def value_rounding(objective: Any, at: Evaluation) -> float:
    """Return how much of the value of f at an evaluated point may be rounding.

    Two values that differ by less do not say which point is better. An objective that sums terms larger than their sum
    says so itself (``rounding``): a mean of squared residuals inherits the rounding of the predictions, which may be
    much larger than the residuals. Of others it is 16 units of the value.
    """
    if provides(objective, "rounding"):
        rounding = float(objective.rounding(at))
        return rounding if isfinite(rounding) else 0.0  # of values so large no two are equal
    return UNITS * float(library(at.point).finfo(at.point.dtype).eps) * abs(at.value)


def curvature_along(objective: Any, at: Evaluation, direction: Array) -> float:
    """Return direction' H direction at an evaluated point, by the cheapest way that the objective offers."""
    if provides(objective, "curvature_along"):
        return float(objective.curvature_along(at, direction))
    image = objective.curvature(at, direction)
    return float(library(image).sum(direction * image))
