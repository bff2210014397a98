"""The certificate of a fitted linear model, of one output or of several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.certificates import ModelCertificate, certify_model
from hardthresh.constraints import GroupSparsity, RowSparsity
from hardthresh.core.state import Trace
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.objectives import MultiOutputModel
from hardthresh.objectives.flat import FlatModel

from .problem import Problem


def certify_problem(
    problem: Problem, w: Array, support: Support, name: Callable[[int], str], trace: Trace
) -> ModelCertificate:
    """Return the certificate of a point of a problem.

    The coefficients of a feature for several outputs are examined as a group of coordinates, which is exchanged whole.

    Parameters
    ----------
    problem : Problem
        The problem.
    w : array
        The point.
    support : Support
        Its support.
    name : callable
        Returns the name of a feature, or with groups of a group, from its number.
    trace : Trace
        The scales of the run that found the point.
    """
    examined = examined_problem(problem, w, support)
    found = certify_model(
        examined.objective,
        examined.constraint,
        examined.point,
        examined.support,
        lambda number: name(examined.units[number] if examined.units else number),
        trace,
    )
    if not examined.units:
        return found
    units, swap = examined.units, found.swap
    swap = replace(
        swap,
        removed=None if swap.removed is None else units[swap.removed],
        added=None if swap.added is None else units[swap.added],
        undecided=tuple(number if number < 0 else units[number] for number in swap.undecided),
    )
    return replace(found, swap=swap, unit="group" if problem.grouped else "feature")


@dataclass(frozen=True, slots=True)
class Examined:
    """A problem in the form in which single features, or groups, are examined: as one of a vector.

    Attributes
    ----------
    objective, constraint : LinearObjective, Constraint
        Those of a vector.
    point : array
        The point as a vector.
    support : Support
        Its support.
    units : tuple of int
        The feature, or group, that each unit of the constraint is; empty if it is the unit itself.
    """

    objective: Any
    constraint: Any
    point: Array
    support: Support
    units: tuple[int, ...]


def examined_problem(problem: Problem, w: Array, support: Support) -> Examined:
    """Return a problem and its point as those of a vector: with several outputs, features are groups of coordinates."""
    model, constraint = problem.objective, problem.constraint
    if not isinstance(model, MultiOutputModel):
        return Examined(model, constraint, w, support, ())
    assert isinstance(constraint, RowSparsity)
    flat = FlatModel(model)
    numbers = to_numpy(constraint.structure(model.shape).numbers)[:: model.shape[1]]
    labels = numbers if problem.grouped else np.arange(numbers.size)
    free = set(constraint.free)
    every: list[Any] = [None if j in free else label for j, label in enumerate(labels.tolist())]
    groups = GroupSparsity(
        np.repeat(np.array(every, dtype=object), flat.width).tolist(),
        constraint.k,
        free=tuple(j * flat.width + r for j in constraint.free for r in range(flat.width)),
    )
    v = flat.to_vector(w)
    return Examined(flat, groups, v, groups.project(v).support, groups.names)
