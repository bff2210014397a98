"""What the conformance suites run on: every registered example, the toys, and small problems to run them with.

A new loss, constraint, step rule or solver needs no new test: it is found in the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from importlib import import_module
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from toys import TOYS

from hardthresh.arrays import to_numpy
from hardthresh.constraints import RowSparsity
from hardthresh.core import Solver, lookup, registered
from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.losses import Huber, Loss, Quantile, SquaredHinge, pointwise_losses
from hardthresh.objectives import LinearModel
from levels import covering, reaches

ROOMS = {
    "loss": "losses",
    "constraint": "constraints",
    "step": "steps",
    "solver": "solvers",
    "objective": "attacks",  # which import the objectives
    "algorithm": "limited",
}
OTHER_LIBRARIES = ("array_api_strict", "torch")
SHAPES = ((12,), (4, 3), (4, 4), (6, 6))
"""The shapes that examples of constraints may be meant for."""


ALLOWED_REASONS = ("torch is not installed", "is not part of this run")
"""Why a conformance test may be skipped."""


def refuse_skip(report: Any, reason: str) -> None:
    """Let the report of a skipped test fail, unless the reason is allowed."""
    if not any(allowed in reason for allowed in ALLOWED_REASONS):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped, which a conformance test may not be: {reason}"


def examples(kind: str, where: Callable[[Any], bool] = lambda example: True) -> list[Any]:
    """Every registered example of a kind, and every toy, to which a law applies, as parameters with a name."""
    import_module(f"hardthresh.{ROOMS[kind]}")  # registers what the room holds
    known = {name: list(entry.examples()) for name, entry in registered(kind).items()}
    return [
        pytest.param(example, id=f"{name}{number}")
        for name, found in (known | TOYS.get(kind, {})).items()
        for number, example in enumerate(found)
        if where(example)
    ]


def fits(constraint: Any, shape: tuple[int, ...]) -> bool:
    """Whether a constraint is meant for points of a shape."""
    try:
        constraint.check(shape)
    except InvalidInputError:
        return False
    return True


def problems(runners: list[Any]) -> list[Any]:
    """Solvers or step rules with objectives that can do what they need and constraints that fit.

    At the level ``fast`` each runner, each class of objectives and each class of constraints takes part; at ``pairs``
    whatever two examples can meet do meet; at ``all`` each runner meets, too, each class of objectives together with
    each class of constraints. (The product of all examples is ten times as long as that of classes, because every loss
    is an example of a linear model.)
    """
    meetings = triples_with_classes if reaches("all") else pairs_of_examples if reaches("pairs") else each_class
    chosen = sorted(covering(list(combinations_of(runners)), meetings), key=lambda three: [str(p.id) for p in three])
    return [pytest.param(*(p.values[0] for p in three), id="-".join(str(p.id) for p in three)) for three in chosen]


def pairs_of_examples(triple: tuple[Any, Any, Any]) -> set[tuple[str, str]]:
    """The pairs of a runner, an objective and a constraint that meet in a triple."""
    return set(combinations([str(p.id) for p in triple], 2))


def triples_with_classes(triple: tuple[Any, Any, Any]) -> set[tuple[str, ...]]:
    """The pairs of `pairs_of_examples`, and the runner with the classes of the objective and of the constraint."""
    _, objective, constraint = (type(p.values[0]).__name__ for p in triple)
    return {*pairs_of_examples(triple), (str(triple[0].id), objective, constraint)}


def each_class(triple: tuple[Any, Any, Any]) -> set[str]:
    """The runner, and the classes of the objective and of the constraint."""
    runner, objective, constraint = triple
    return {str(runner.id), type(objective.values[0]).__name__, type(constraint.values[0]).__name__}


def combinations_of(runners: list[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Runners with objectives that can do what they need and constraints that fit."""
    together = [
        (objective, constraint)
        for objective, constraint in product(examples("objective"), examples("constraint"))
        if can_meet(objective.values[0], constraint.values[0])
    ]
    for runner in runners:
        for objective, constraint in together:
            if takes(runner.values[0], objective.values[0], constraint.values[0]):
                yield runner, objective, constraint


def needs_no_number(solver: Any) -> bool:
    """Whether a solver finds every number with a unit itself, and goes on until it has converged."""
    return not hasattr(solver, "batch") or getattr(solver, "variant", "paper") != "paper"


def can_meet(objective: Any, constraint: Any) -> bool:
    """Whether an objective can be minimised over a constraint, by what both say themselves."""
    if not fits(constraint, objective.shape) or (objective.traits.symmetric and not constraint.symmetric):
        return False
    try:
        start = constraint.project(objective.null_point()).point
    except InvalidInputError:  # it does not take points that are stored as factors
        return False
    return bool(np.isfinite(objective.value(start)))


def takes(runner: Any, objective: Any, constraint: Any) -> bool:
    """Whether a solver or step rule takes an objective and a constraint, by what it says itself."""
    if not isinstance(objective, runner.requires):
        return False
    try:
        runner.check(objective, constraint) if isinstance(runner, Solver) else runner.check(objective)
    except CapabilityError:
        return False
    return True


def ramp(objective: Any, end: float) -> np.ndarray:
    """A point of the objective's shape whose entries rise from -end to end; where that is finite only near a start of
    its own, from there on."""
    zeros = objective.zeros()
    if not np.isfinite(objective.value(zeros)):
        return objective.null_point() + np.linspace(-end, end, zeros.size).reshape(zeros.shape) / 10
    return np.linspace(-end, end, zeros.size).reshape(zeros.shape).astype(zeros.dtype)


def selects(constraint: Any) -> bool:
    """Whether a constraint keeps coordinates as they are, so that nothing is rounded; else it computes new numbers."""
    return constraint.project(np.ones(shape_for(constraint))).support.indices is not None


def assert_same_point(constraint: Any, one: np.ndarray, other: np.ndarray) -> None:
    """Equal to the last bit where the constraint selects coordinates, else up to rounding."""
    tolerance = 0.0 if selects(constraint) else 1e4 * float(np.finfo(other.dtype).eps)
    np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * float(np.max(np.abs(other), initial=0.0)))


def convert(x: Any, library: str) -> Any:
    """Return a NumPy array in another array library (a copy)."""
    if library == "torch":
        torch = pytest.importorskip("torch", reason="torch is not installed")
        return torch.asarray(np.array(x))
    return import_module(library).asarray(np.array(x))


def back(x: Any) -> np.ndarray:
    """Return an array of any library as a NumPy array of its own."""
    return np.array(to_numpy(x))


def shape_for(constraint: Any) -> tuple[int, ...]:
    """The first of `SHAPES` that an example of a constraint is meant for."""
    for shape in SHAPES:
        if fits(constraint, shape):
            return shape
    raise AssertionError(f"{constraint} fits none of the shapes {SHAPES}")


COORDINATE_FIELDS = {
    "free": "indices",
    "lower": "values",
    "upper": "values",
    "labels": "values",
    "groups": "sets of indices",
    "names": "of groups",
}
"""Settings of constraints that speak of single coordinates, and how they follow a permutation; "names" do not."""


def permuted(constraint: Any, order: np.ndarray) -> Any:
    """Return the constraint that holds for z[order] where the given one holds for z."""
    changes: dict[str, Any] = {}
    for field in fields(constraint):
        if not field.init:
            continue
        value = getattr(constraint, field.name)
        kind = COORDINATE_FIELDS.get(field.name)
        if isinstance(constraint, RowSparsity) and field.name == "groups":
            kind = COORDINATE_FIELDS["labels"]
        if value is None or kind is None or np.isscalar(value):
            assert value is None or np.ndim(value) == 0, f"say in COORDINATE_FIELDS how {field.name} is permuted"
            continue
        if kind == "of groups":
            continue
        if kind == "indices":
            changes[field.name] = moved(value, order)
        elif kind == "sets of indices":
            changes[field.name] = tuple(moved(one, order) for one in value)
        else:
            changes[field.name] = value[order] if isinstance(value, np.ndarray) else [value[j] for j in order]
    return replace(constraint, **changes)


def reordered(z: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The point z[order]; of a square matrix, rows and columns alike."""
    return z[np.ix_(order, order)] if z.ndim == 2 and z.shape[0] == z.shape[1] else z[order]


def moved(indices: Any, order: np.ndarray) -> tuple[int, ...]:
    """Where coordinates are in z[order] that are `indices` in z."""
    return tuple(int(j) for j in np.flatnonzero(np.isin(order, indices)))


def is_bounded(constraint: Any) -> bool:
    """Whether a constraint has bounds, so that it is no cone."""
    return getattr(constraint, "upper", None) is not None or getattr(constraint, "lower", None) not in (None, 0.0)


@dataclass(frozen=True)
class Planted:
    """A regression problem with k relevant columns, easy enough that every solver must find them."""

    X: np.ndarray
    y: np.ndarray
    support: np.ndarray
    loss: Loss

    def model(self, **changes: Any) -> LinearModel:
        """The objective of the problem."""
        return LinearModel(self.X, self.y, loss=self.loss, **changes)


def planted(name: str = "squared", n: int = 200, d: int = 40, k: int = 4, seed: int = 0, dtype: Any = float) -> Planted:
    """Make a well-conditioned problem of a loss with k strong, unequal coefficients; one of classes has noisy ones."""
    rng = np.random.default_rng((seed, n, d))
    X = rng.standard_normal((n, d)).astype(dtype)
    support = np.sort(rng.choice(d, k, replace=False))
    coef = np.zeros(d)
    coef[support] = np.linspace(1.5, 2.5, k) * np.where(np.arange(k) % 2, -1.0, 1.0)
    loss = lookup("loss", name)()
    noise = 1.0 if loss.classifies else 0.01 if isinstance(loss, Huber | Quantile) else 0.1
    if isinstance(loss, SquaredHinge):
        noise = 1.5  # else few rows are within their margins, and the Hessian is nearly singular
    return Planted(X, loss.example_target(gain(loss) * (X @ coef), rng, noise).astype(dtype), support, loss)


def gain(loss: Loss) -> float:
    """How large predictions of examples are: small for losses that grow like an exponential.

    They are smaller for losses that have no curvature farther than a distance of about 1.
    """
    if isinstance(loss, Huber | Quantile):
        return 0.1
    return 1.0 if loss.curvature_bound < np.inf else 0.2


LOSSES = tuple(pointwise_losses())
