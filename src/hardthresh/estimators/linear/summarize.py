"""How the summary of a fitted linear model is computed from the data of a problem."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.certificates import lower_bound, relative_gap
from hardthresh.certificates.effects import UnitEffect, unit_effects
from hardthresh.certificates.kinks import model_with_kink
from hardthresh.core.objective import Evaluation
from hardthresh.core.typing import Array
from hardthresh.solvers.start import starting_point

from ..facts import Facts, read
from .criterion import number_of_examples
from .problem import Problem
from .rows import rows_of_fit, rows_of_path
from .summary import Correlations, Summary, Worth

_COMPARED = 12
"""Largest number of features whose correlations are computed, those of the largest effects: more are not legible."""
_NOTHING = UnitEffect(-1, nan, None, nan)


def summarize(estimator: Any, problem: Problem, w: Array, subject: str = "") -> Summary:
    """Return the summary of a fitted linear model on the data of a problem.

    Parameters
    ----------
    estimator : SparseLinearModel
        The fitted estimator.
    problem : Problem
        The problem of some data, such as those of the fit.
    w : array
        The point of the problem that the objective, the scores and the worth of the features are about.
    subject : str
        What that point is, if not the model itself.
    """
    facts = read(estimator)
    objective = problem.objective
    at = objective.evaluate(w)
    support = problem.support(w, getattr(estimator, "groups_", ()))
    examined = problem.examined(w, support)
    effects = {
        examined.feature(effect.unit): effect
        for effect in unit_effects(examined.objective, examined.constraint, examined.point)
    }
    n = number_of_examples(objective)
    found = problem.standard_errors(at, support, n)
    errors = dict(zip(to_numpy(problem.coordinates(support)).tolist(), found, strict=True))
    scale = to_numpy(problem.inverse_scale)

    def name(unit: int) -> str:
        unit = examined.feature(unit)
        return problem.group_name(unit) if problem.grouped else facts.names[unit]

    bound = lower_bound(examined.objective, examined.constraint, examined.objective.evaluate(examined.point))
    numbers = problem.unit_numbers(support)
    worth = {}
    for j in to_numpy(problem.features(support)).tolist():
        effect = effects.get(int(numbers[j]), _NOTHING)
        worth[j] = Worth(
            standard_error=nan if facts.outputs else float(errors.get(j, nan) * scale[j]),
            unit=name(effect.unit) if effect.unit >= 0 else facts.names[j],
            drop_cost=effect.drop_cost,
            substitute=None if effect.substitute is None else name(effect.substitute),
            substitute_cost=effect.substitute_cost,
            standard_errors=tuple(errors[j].tolist()) if facts.outputs and j in errors else (),
        )
    rows = rows_of_fit(problem, estimator._expected_rows(problem)) if problem.in_memory else None
    path = None
    if rows is not None and hasattr(estimator, "coefs_path_"):
        coefs = to_numpy(estimator.coefs_path_)
        intercepts = getattr(estimator, "intercepts_path_", None)
        fits = zip(coefs, np.zeros(len(coefs)) if intercepts is None else to_numpy(intercepts), strict=True)
        path = rows_of_path(rows, [estimator._expected_rows(problem, *fit) for fit in fits])
    return Summary(
        facts=facts,
        n_rows=objective.traits.n_rows,
        total_weight=float(objective.total_weight),
        objective=at.value,
        scores=estimator._fit_scores(problem, at),
        dispersion=problem.dispersion(at, support, n),
        converged=bool(estimator.converged_),
        reason=str(estimator.stop_reason_),
        worth=worth,
        rows=rows,
        path=path,
        correlations=_correlations(problem, facts, effects),
        subject=subject,
        unknown="" if model_with_kink(objective) is None else "a loss with a kink has no second derivatives",
        gap=None if bound is None else relative_gap(at.value, bound, objective.lower_bound),
    )


def _correlations(problem: Problem, facts: Facts, effects: dict[int, UnitEffect]) -> Correlations:
    """Return the correlations of the chosen features with each other and, if they are no groups, their substitutes."""
    chosen = [feature.index for feature in facts.features[:_COMPARED]]
    substitutes = () if problem.grouped else (effects[j].substitute for j in chosen if j in effects)
    others = [j for j in dict.fromkeys(substitutes) if j is not None and j not in chosen]
    columns = np.array([*chosen, *others], dtype=np.intp)
    order = np.argsort(columns)
    back = np.argsort(order)
    values = problem.correlations(columns[order])[np.ix_(back, back)]
    names = tuple(facts.names[j] for j in columns.tolist())
    return Correlations(names[: len(chosen)], names, values[: len(chosen)])


def share_removed(problem: Problem, at: Evaluation) -> float:
    """Return D^2: the share of the loss of the model without chosen features that a fitted one removes; NaN of none.

    The model without chosen features has the intercept, the offset and the features on request.
    """
    plain = problem.with_ridge(0.0).objective
    null = starting_point(plain, problem.constraint, None)[0]
    total = null.value - plain.lower_bound
    loss = plain.value(at.point, at.prediction) - plain.lower_bound
    return 1.0 - loss / total if total > 0 else nan
