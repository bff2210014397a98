"""The weak threshold of l1 minimisation: the published values, the maximum it is defined by, and its ends."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from hardthresh.core import InvalidInputError
from hardthresh.diagnostics import l1_phase_transition


@pytest.mark.parametrize(("delta", "rho"), [(0.375, 0.32561), (0.0375, 0.14318), (0.1, 0.18943), (0.5, 0.38569)])
def test_the_values_of_the_specification(delta, rho):
    assert l1_phase_transition(delta) == pytest.approx(rho, abs=1e-5)


def test_the_overshoot_of_the_paper():
    assert 7500 * l1_phase_transition(0.375) == pytest.approx(2442, abs=1)


@pytest.mark.parametrize("delta", [0.01, 0.2, 0.7, 0.99])
def test_against_the_maximum_that_it_is_defined_by(delta):
    def below(z):
        excess = 2 * ((1 + z * z) * norm.cdf(-z) - z * norm.pdf(z))
        return -(1 - excess / delta) / (1 + z * z - excess)

    best = minimize_scalar(below, bounds=(1e-6, 8.0), method="bounded", options={"xatol": 1e-10})
    assert l1_phase_transition(delta) == pytest.approx(-best.fun, rel=1e-9)


def test_arrays_keep_their_shape_and_the_curve_rises():
    delta = np.linspace(0.001, 0.999, 600).reshape(20, 30)
    rho = l1_phase_transition(delta)
    assert rho.shape == delta.shape
    assert (np.diff(rho.ravel()) > 0).all()
    assert rho[3, 4] == l1_phase_transition(float(delta[3, 4]))
    assert isinstance(l1_phase_transition(0.5), float)


def test_the_ends_of_the_curve():
    ends = l1_phase_transition([1e-300, 1e-12, 1 - 1e-12])
    assert np.isfinite(ends).all()
    assert 0 < ends[0] < ends[1] < 0.02
    assert ends[2] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0, np.nan, [0.5, 1.5], "a", "0.5", None, 0.5j])
def test_a_ratio_outside_is_refused(delta):
    with pytest.raises(InvalidInputError, match=r"in \(0, 1\)"):
        l1_phase_transition(delta)
