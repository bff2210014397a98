"""The contracts of objectives: three nested ones, from what every solver needs to what linear models offer."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, nan
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np

from .choosing import choose
from .errors import CapabilityError
from .lazy import inner
from .meter import Meter
from .schema import stored
from .typing import Array, library


@stored("point/evaluation")
@dataclass(frozen=True, slots=True)
class Evaluation:
    """The value, gradient and predictions of an objective at one and the same point.

    Attributes
    ----------
    point : array of the objective's shape
        The point.
    value : float
        f(point).
    gradient : array like `point`
        The gradient of f at the point.
    prediction : array or None
        The predictions (for a linear model Xw + offset, shape (n,)), which the objective can reuse.
    """

    point: Array
    value: float
    gradient: Array
    prediction: Array | None = None


@dataclass(frozen=True, slots=True)
class Traits:
    """Properties of an objective that are known without evaluating it.

    Attributes
    ----------
    quadratic : bool
        Whether the Hessian is the same everywhere.
    partial : bool
        Whether f does not depend on some coordinates of the point, as in matrix completion.
    symmetric : bool
        Whether f is a function of symmetric matrices, so that a run needs a set of these (see `Constraint.symmetric`).
    arbitrary : bool
        Whether f is a general function, which may be neither convex nor smooth, so that solvers must not rely on its
        curvature.
    n_rows : int
        The number of examples over which f is a mean, and from which `rows` may draw; 1 for a function without
        examples.
    reading_is_dear : bool
        Whether each gradient reads data from a disc or from other machines, so that passes are expensive. Solvers then
        evaluate several points at once, and prefer computations with a few columns to another pass.
    """

    quadratic: bool = False
    partial: bool = False
    symmetric: bool = False
    arbitrary: bool = False
    n_rows: int = 1
    reading_is_dear: bool = False


if TYPE_CHECKING:
    ProtocolMeta = ABCMeta
else:
    ProtocolMeta = type(Protocol)


class Contract(ProtocolMeta):
    """Metaclass of the contracts: an object keeps a contract if it has all the members, and none of them is None.

    The check of `typing.runtime_checkable` collects the members and evaluates the properties in every call, which is
    most of the time of small fits. Here the members are collected once, and `_NEVER_EVALUATED` are not evaluated.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        return not _missing(instance, cls)


@lru_cache
def _members(contract: type) -> list[str]:
    """Return the names of the properties and methods of a contract, those that it adds to its bases first."""
    bases = (base for base in contract.__mro__ if isinstance(base, Contract))
    return [name for base in bases for name in vars(base) if not name.startswith("_")]


_NEVER_EVALUATED = ("shape", "traits", "lower_bound")
"""Properties that may be expensive: where the class has them, an instance has them too."""


def _missing(instance: object, contract: type) -> list[str]:
    """Return the members of a contract that an object does not have, or that are None.

    A function of the class is a method of all its instances except those that set it to None. Whatever else the class
    has, such as a property or a slot, the instance is asked for.
    """
    cls, own = type(instance), getattr(instance, "__dict__", {})
    missing = []
    for name in _members(contract):
        of_class = getattr(cls, name, None)
        if type(of_class) is FunctionType or (name in _NEVER_EVALUATED and of_class is not None):
            if name in own and own[name] is None:
                missing.append(name)
        elif getattr(instance, name, None) is None:
            missing.append(name)
    return missing


@runtime_checkable
class Objective(Protocol, metaclass=Contract):
    """The contract of objectives: a smooth function f on arrays of one shape.

    `BaseObjective` has defaults for everything except `shape` and `evaluate`.

    See Also
    --------
    SmoothObjective : Has second derivatives too.
    LinearObjective : Has single columns and blocks of the Hessian too.
    MeanObjective : A mean over examples, from which mini-batches can be drawn.

    Notes
    -----
    An instance that lacks a method of its class sets it to None, as Python classes do with ``__hash__``:
    ``isinstance(objective, SmoothObjective)`` is then False.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a point."""

    @property
    def lower_bound(self) -> float:
        """A lower bound of f; -inf if none is known."""

    @property
    def traits(self) -> Traits:
        """Properties of f that are known without evaluating it."""

    def zeros(self) -> Array:
        """Return the zero point, in the objective's array library, dtype and device."""

    def null_point(self) -> Array:
        """Return the start of runs without w0: zero, or another point if f is infinite at zero."""

    def predict(self, w: Array) -> Array | None:
        """Return the predictions at `w`, which `evaluate` and `value` can reuse; None if there are none."""

    def evaluate(self, w: Array, prediction: Array | None = None) -> Evaluation:
        """Return value and gradient at `w`; `prediction`, if the caller passes it, is not computed again."""

    def value(self, w: Array, prediction: Array | None = None) -> float:
        """Return f(w)."""

    def attains_bound(self) -> bool:
        """Return whether some finite point may reach the lower bound."""

    def rounding(self, at: Evaluation) -> float:
        """Return how much of the value at an evaluated point may be rounding; see `value_rounding`."""

    def metered(self, meter: Meter) -> Self:
        """Return the same objective, adding the data passes that it makes to a meter."""


@runtime_checkable
class SmoothObjective(Objective, Protocol):
    """An objective with second derivatives."""

    def curvature(self, at: Evaluation, direction: Array) -> Array:
        """Return the Hessian at an evaluated point times a direction."""

    def curvature_along(self, at: Evaluation, direction: Array) -> float:
        """Return direction' H direction, which may be cheaper than the product."""


@runtime_checkable
class LinearObjective(SmoothObjective, Protocol):
    """A smooth objective of a vector with single coordinates and blocks of the Hessian, such as a linear model."""

    def columns(self, indices: Array) -> LinearObjective:
        """Return the objective restricted to some coordinates, by increasing index: an objective of its own."""

    def hessian(self, at: Evaluation) -> Array:
        """Return the Hessian as a matrix; for objectives of few coordinates."""

    def hessian_diag(self, at: Evaluation) -> Array:
        """Return the diagonal of the Hessian."""

    def cross_hessian(self, at: Evaluation, other: Any) -> Array:
        """Return the block of the Hessian between the coordinates of two objectives made by `columns`."""

    def evaluate_many(self, points: Sequence[Array]) -> Sequence[Evaluation]:
        """Return value and gradient at several points, which may be cheaper than one by one."""

    def screening_gradients(self, points: Sequence[Array]) -> Sequence[Array]:
        """Return the gradients at several points, accurate enough to decide which coordinates to examine."""

    def recession(self, at: Evaluation, indices: Array) -> Array | None:
        """Return a direction in some coordinates along which f decreases indefinitely; None if it has a minimiser."""

    def double(self) -> LinearObjective:
        """Return the same objective in double precision."""


@runtime_checkable
class RowObjective(SmoothObjective, Protocol):
    r"""A smooth objective of a matrix whose rows belong to columns of a design: a model of several outputs.

    At any point its Hessian is approximately :math:`G \otimes A + \Lambda \otimes I`, where G contains the products of
    the columns, A is a matrix of the outputs and :math:`\Lambda` contains the ridges of the rows. This is exact if all
    examples have the same second derivatives, as for squared errors.
    """

    def column_products(self) -> LinearObjective:
        """Return the linear model of one output whose Hessian is G."""

    def row_ridge(self) -> Array:
        """Return the ridge of each row."""

    def output_block(self, at: Evaluation) -> Array:
        """Return A at an evaluated point, one row and one column for each output."""

    def output_bound(self) -> float:
        """Return a bound of the eigenvalues of A at any point; inf if there is none."""

    def columns(self, indices: Array) -> RowObjective:
        """Return the objective of some columns of the design, by increasing index: of fewer rows."""

    def hessian(self, at: Evaluation) -> Array:
        """Return the whole Hessian as a matrix over the flat point; for objectives of few rows."""

    def screening_gradients(self, points: Sequence[Array]) -> Sequence[Array]:
        """Return the gradients at several points, accurate enough to decide which rows to examine."""

    def centre(self, w: Array) -> Array:
        """Return the point of least norm with the same value as `w`, without the ridge term."""


@runtime_checkable
class RecedingObjective(Objective, Protocol):
    """An objective of columns that can tell whether it has a minimiser on some coordinates."""

    def columns(self, indices: Array) -> Any:
        """Return the objective of some columns."""

    def recession(self, at: Evaluation, indices: Array) -> Array | None:
        """Return a direction in some coordinates along which f decreases indefinitely; None if it has a minimiser."""


@runtime_checkable
class UnitHessians(Protocol):
    """An objective that gives the Hessians of many small units of coordinates at the price of one."""

    def hessian_blocks(self, at: Evaluation, columns: np.ndarray) -> np.ndarray | None:
        """Return the Hessian of each unit, shape (b, m, m), from their coordinates; None for units that it has not."""


@runtime_checkable
class MeanObjective(Objective, Protocol):
    """An objective that is a mean over ``traits.n_rows`` examples."""

    def rows(self, indices: Array) -> MeanObjective:
        """Return the objective over some of the examples: a mini-batch is an objective."""


class BaseObjective:
    """Base class of objectives: a subclass defines `shape` and `evaluate`, and may override the other methods.

    Points are NumPy arrays of float64 unless `zeros` is overridden. Data passes are not counted unless `metered` is. A
    subclass with a method `curvature(at, direction)` is a `SmoothObjective`, one with `rows(indices)` a
    `MeanObjective`.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import minimize
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.core import BaseObjective, Evaluation
    >>> class Distance(BaseObjective):
    ...     shape = (3,)
    ...     target = np.array([3.0, 1.0, 2.0])
    ...
    ...     def evaluate(self, w, prediction=None):
    ...         return Evaluation(w, 0.5 * np.sum((w - self.target) ** 2), w - self.target)
    >>> minimize(Distance(), Sparsity(2)).w.round(6)
    array([3., 0., 2.])
    """

    shape: tuple[int, ...]
    """The shape of a point."""

    lower_bound: float = -inf
    """A number that f never falls below."""

    traits: Traits = Traits()
    """Properties of f that are known without evaluating it."""

    def zeros(self) -> Array:
        """Return the zero point."""
        return np.zeros(self.shape)

    def null_point(self) -> Array:
        """Return the start of runs without w0."""
        return self.zeros()

    def predict(self, w: Array) -> Array | None:
        """Return None: there are no predictions to reuse."""
        return None

    def evaluate(self, w: Array, prediction: Array | None = None) -> Evaluation:
        """Return value and gradient at `w`."""
        raise NotImplementedError(f"{type(self).__name__} must have a method evaluate(w, prediction=None)")

    def value(self, w: Array, prediction: Array | None = None) -> float:
        """Return f(w)."""
        return self.evaluate(w, prediction).value

    def attains_bound(self) -> bool:
        """Return True: some finite point may reach the lower bound."""
        return True

    def rounding(self, at: Evaluation) -> float:
        """Return how much of the value at an evaluated point may be rounding: 16 units of it."""
        return UNITS * float(library(at.point).finfo(at.point.dtype).eps) * abs(at.value)

    def metered(self, meter: Meter) -> Self:
        """Return the same objective; its data passes are not counted, and the meter reads nan."""
        meter.passes = nan
        return self

    def curvature_along(self, at: Evaluation, direction: Array) -> float:
        """Return direction' H direction, of an objective that has `curvature`."""
        assert isinstance(self, SmoothObjective)
        along: float = inner(direction, self.curvature(at, direction))
        return along


def require(objective: object, contract: type, by: str) -> None:
    """Check, before a run starts, that an objective satisfies the contract that a solver or step rule requires.

    Parameters
    ----------
    objective : Objective
        The objective.
    contract : type
        `Objective`, `SmoothObjective`, `LinearObjective` or `MeanObjective`.
    by : str
        The name of the solver or step rule, for the message.

    Raises
    ------
    CapabilityError
        If a method is missing; the message names `by` and everything that is missing.
    """
    if missing := _missing(objective, contract):
        raise CapabilityError(_what_is_missing(objective, missing, by))


def require_lower_bound(objective: Objective, by: str) -> None:
    """Check, before a run starts, that a lower bound of an objective is known; raise `CapabilityError` if not."""
    if objective.lower_bound == -inf:
        raise CapabilityError(_what_is_missing(objective, ["lower_bound"], by))


def _what_is_missing(objective: object, missing: Sequence[str], by: str) -> str:
    design = getattr(objective, "design", None)  # which knows why, if it is its storage that lacks it
    reasons = [why for what, why in getattr(design, "lacks", {}).items() if what in missing]
    because = f" ({'; '.join(reasons)})" if reasons else ""
    return (
        f"{by} needs {' and '.join(missing)}, which {type(objective).__name__} does not provide{because}; choose "
        "another solver "
        "or step rule, or give the objective that ability (see hardthresh.core.BaseObjective)"
    )


UNITS = 16
"""Units of rounding by which a sum may be off: pairwise summation of 2^16 numbers has as many levels."""


def value_rounding(objective: Objective, at: Evaluation) -> float:
    """Return how much of the value of f at an evaluated point may be rounding.

    Two values that differ by less do not say which point is better. An objective that sums terms larger than their sum
    says so itself (``rounding``): a mean of squared residuals inherits the rounding of the predictions, which may be
    much larger than the residuals. Of others it is 16 units of the value.
    """
    rounding = objective.rounding(at)
    return choose(rounding < inf, rounding, 0.0)  # of values so large no two are equal
