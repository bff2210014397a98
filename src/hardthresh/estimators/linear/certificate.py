"""The certificate of a fitted linear model, of one output or of several, and the alternatives to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hardthresh.certificates import Alternatives, ModelCertificate, Proof, alternative_supports, certify_model, prove
from hardthresh.core.state import Trace
from hardthresh.core.support import Support
from hardthresh.core.typing import Array

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
    examined = problem.examined(w, support)
    found = certify_model(
        examined.objective,
        examined.constraint,
        examined.point,
        examined.support,
        lambda unit: name(examined.feature(unit)),
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


def alternatives_to(
    problem: Problem,
    w: Array,
    support: Support,
    name: Callable[[int], str],
    *,
    tolerance: float,
    most: int,
    time_limit: float | None,
    unit: str,
    subject: str = "",
) -> Alternatives:
    """Return the sets of features, or of groups, that fit nearly as well as a point of a problem.

    Parameters
    ----------
    problem, w, support, name :
        As for `certify_problem`.
    tolerance, most, time_limit, unit, subject :
        As for `hardthresh.certificates.alternative_supports`.
    """
    examined = problem.examined(w, support)

    def label(unit: int) -> tuple[int, str]:
        number = examined.feature(unit)
        return number, name(number)

    return alternative_supports(
        examined.objective,
        examined.constraint,
        examined.point,
        tolerance=tolerance,
        most=most,
        time_limit=time_limit,
        label=label,
        unit=unit,
        subject=subject,
    )


def prove_problem(
    problem: Problem,
    w: Array,
    support: Support,
    name: Callable[[int], str],
    *,
    time_limit: float | None,
    resume: Proof | None,
    progress: bool,
    subject: str = "",
) -> Proof:
    """Return how far a point of a problem is proved to be the best of its size.

    Parameters
    ----------
    problem, w, support, name :
        As for `certify_problem`.
    time_limit, resume, progress, subject :
        As for `hardthresh.certificates.prove`.
    """
    examined = problem.examined(w, support)
    found = prove(
        examined.objective,
        examined.constraint,
        examined.point,
        time_limit=time_limit,
        resume=resume,
        progress=progress,
        name=lambda unit: name(examined.feature(unit)),
        subject=subject,
    )
    if not found.found_better:
        return found
    assert found.state is not None
    coef, intercept = problem.coefficients(found.state.w)
    return replace(found, coef=coef, intercept=float(intercept))
