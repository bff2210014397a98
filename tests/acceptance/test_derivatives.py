"""Check 4: every loss has the derivatives of its values, and stays finite where predictions are far out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import hardthresh as ht
from acceptance.fits import MODELS, budget, objective
from hardthresh.core import Status
from hardthresh.core.registry import registered
from hardthresh.objectives import OrdinalModel
from levels import at_most

every = pytest.mark.parametrize("name", MODELS)


def null(f):
    return f.null_point() if isinstance(f, OrdinalModel) else f.zeros()


def differences(function, w, h):
    """Central differences along each coordinate: one row for each."""
    steps = [h * e.reshape(w.shape) for e in np.eye(w.size)]
    return np.array([(function(w + step) - function(w - step)) / (2 * h) for step in steps])


def test_check_04_covers_every_loss():
    losses = {type(objective(name).loss) for name in MODELS}
    assert losses == {entry.cls for entry in registered("loss").values()}


@at_most(7)
@every
def test_check_04_gradients_and_hessians_are_differences(name):
    f, rng = objective(name, l2=0.01), np.random.default_rng(4)
    for _ in range(20):
        w, v = null(f) + 0.2 * rng.standard_normal(f.shape), rng.standard_normal(f.shape)
        at = f.evaluate(w)
        assert_allclose(at.gradient.ravel(), differences(f.value, w, 1e-5), rtol=1e-6, atol=1e-6)
        slope = (f.evaluate(w + 1e-6 * v).gradient - f.evaluate(w - 1e-6 * v).gradient) / 2e-6
        assert_allclose(f.curvature(at, v), slope, rtol=1e-6, atol=1e-6)


@every
@pytest.mark.parametrize("size", [700.0, -700.0])
@pytest.mark.filterwarnings("error")
def test_check_04_predictions_of_700_are_finite_and_so_is_the_fit(name, size):
    far = size * np.where(np.arange(200) % 2, 1.0, -1.0)
    f = objective(name, offset=far, l2=0.01)
    at = f.evaluate(null(f))
    assert np.isfinite(at.value)
    assert np.isfinite(at.gradient).all()
    assert np.isfinite(f.curvature(at, np.ones(f.shape))).all()
    found = ht.minimize(f, budget(f, 3), max_iter=10)
    assert np.isfinite(found.w).all()
    assert found.value <= at.value
    assert found.status is not Status.DIVERGED
