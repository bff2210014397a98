"""What the conformance suites run on: every registered example, and small problems to run it with.

A new loss, constraint, step rule or solver needs no new test: it is found in the registry.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from hardthresh.arrays import to_numpy
from hardthresh.core import registered
from hardthresh.core.errors import InvalidInputError
from hardthresh.objectives import LinearModel

ROOMS = {
    "loss": "losses",
    "constraint": "constraints",
    "step": "steps",
    "solver": "solvers",
    "objective": "objectives",
}
OTHER_LIBRARIES = ("array_api_strict", "torch")
SHAPES = ((12,), (4, 3), (4, 4), (6, 6))
"""The shapes that examples of constraints may be meant for."""


def examples(kind: str) -> list[Any]:
    """Every registered example of a kind, as parameters with a name."""
    import_module(f"hardthresh.{ROOMS[kind]}")  # registers what the room holds
    return [
        pytest.param(example, id=f"{entry.name}{number}")
        for entry in registered(kind).values()
        for number, example in enumerate(entry.examples())
    ]


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
        try:
            constraint.check(shape)
        except InvalidInputError:
            continue
        return shape
    raise AssertionError(f"{constraint} fits none of the shapes {SHAPES}")


COORDINATE_FIELDS = {"free": "indices", "lower": "values", "upper": "values", "groups": "values"}
"""Settings of constraints that speak of single coordinates, and how they follow a permutation."""


def permuted(constraint: Any, order: np.ndarray) -> Any:
    """Return the constraint that holds for z[order] where the given one holds for z."""
    changes: dict[str, Any] = {}
    for field in fields(constraint):
        value = getattr(constraint, field.name)
        kind = COORDINATE_FIELDS.get(field.name)
        if value is None or kind is None or (kind == "values" and np.ndim(value) == 0):
            assert np.ndim(value) == 0, f"say in COORDINATE_FIELDS how {field.name} follows a permutation"
            continue
        if kind == "indices":
            changes[field.name] = tuple(int(j) for j in np.flatnonzero(np.isin(order, value)))
        else:
            changes[field.name] = np.asarray(value)[order]
    return replace(constraint, **changes)


def is_bounded(constraint: Any) -> bool:
    """Whether a constraint has bounds, so that it is no cone."""
    return getattr(constraint, "upper", None) is not None or getattr(constraint, "lower", None) not in (None, 0.0)


@dataclass(frozen=True)
class Planted:
    """A regression problem that k columns explain, easy enough that every solver must find them."""

    X: np.ndarray
    y: np.ndarray
    support: np.ndarray
    loss: str

    def model(self, **changes: Any) -> LinearModel:
        """The objective of the problem."""
        return LinearModel(self.X, self.y, loss=self.loss, **changes)


def planted(loss: str = "squared", n: int = 200, d: int = 40, k: int = 4, seed: int = 0, dtype: Any = float) -> Planted:
    """Make a well-conditioned problem with k strong, unequal coefficients; a logistic one has noisy classes."""
    rng = np.random.default_rng((seed, n, d))
    X = rng.standard_normal((n, d)).astype(dtype)
    support = np.sort(rng.choice(d, k, replace=False))
    coef = np.zeros(d)
    coef[support] = np.linspace(1.5, 2.5, k) * np.where(np.arange(k) % 2, -1.0, 1.0)
    mean = X @ coef
    if loss == "logistic":
        y = (rng.random(n) < 1 / (1 + np.exp(-mean))).astype(dtype)
    else:
        y = (mean + 0.1 * rng.standard_normal(n)).astype(dtype)
    return Planted(X, y, support, loss)


LOSSES = ("squared", "logistic")
