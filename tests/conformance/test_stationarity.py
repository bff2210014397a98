"""Where a run ends on an exact constraint is L-stationary by the definition from the smallest L on, and not below."""

from math import inf, prod

import numpy as np
import pytest
from cases import examples, shape_for
from toys import LinearMap

from hardthresh.certificates import certify
from hardthresh.core import minimize
from hardthresh.core.stationarity import reference_is_stationary
from hardthresh.solvers import IHT, HardThresholdingPursuit

exact = pytest.mark.parametrize("constraint", examples("constraint", where=lambda constraint: constraint.exact))
both = pytest.mark.parametrize("solver", [IHT(), HardThresholdingPursuit()], ids=["iht", "pursuit"])


def converged_run(constraint, solver):
    """On a strongly convex objective whose minimiser is dense."""
    shape, rng = shape_for(constraint), np.random.default_rng(7)
    objective = LinearMap(rng.standard_normal((40, prod(shape))), rng.standard_normal(40), shape)
    return minimize(objective, constraint, solver, max_iter=100)


@exact
@both
def test_the_end_of_a_run_is_stationary_from_its_smallest_L_on(constraint, solver):
    run = converged_run(constraint, solver)
    certificate, at = certify(run), run.objective.evaluate(run.w)
    assert certificate.smallest_L < inf
    left = certificate.basic_feasibility
    assert left <= 1e-4 * certificate.gradient_scale
    smallest = certificate.smallest_L
    for L in [1.001 * smallest, 10 * smallest] if smallest > 0.0 else [1e-3, 1.0, 1e3]:
        assert certificate.is_stationary(L, tol=1e-4)
        assert reference_is_stationary(constraint, at, L, tol=left)
    for L in [0.9 * smallest, 0.1 * smallest] if smallest > 0.0 else []:
        assert not certificate.is_stationary(L, tol=1e-4)
        assert not reference_is_stationary(constraint, at, L, tol=left)


@pytest.mark.slow
def test_most_exact_constraints_have_something_to_leave_out():
    """Else the test above would say little."""
    runs = [converged_run(parameter.values[0], HardThresholdingPursuit()) for parameter in exact.args[1]]
    assert sum(certify(run).smallest_L > 0.0 for run in runs) >= len(runs) // 2
