"""The certificate of a fitted linear model, of one output or of several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.certificates import ModelCertificate, certify_model
from hardthresh.constraints import GroupSparsity, RowSparsity
from hardthresh.core.state import Trace
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.objectives import LinearModel
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
    model = problem.objective
    if isinstance(model, LinearModel):
        return certify_model(model, problem.constraint, w, support, name, trace)
    constraint = problem.constraint
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
    units: tuple[int, ...] = groups.names
    v = flat.to_vector(w)
    found = certify_model(flat, groups, v, groups.project(v).support, lambda number: name(units[number]), trace)
    swap = found.swap
    swap = replace(
        swap,
        removed=None if swap.removed is None else units[swap.removed],
        added=None if swap.added is None else units[swap.added],
        undecided=tuple(number if number < 0 else units[number] for number in swap.undecided),
    )
    return replace(found, swap=swap, unit="group" if problem.grouped else "feature")
