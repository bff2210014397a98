"""Directions along which f decreases for ever, of tables in blocks."""

import numpy as np
import pytest

from hardthresh.designs import Serial, from_arrays
from hardthresh.objectives import blocked_model


@pytest.mark.parametrize("separated", [True, False])
def test_a_dummy_that_separates_is_found_beside_columns_with_a_ridge(separated):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    X[:, 0] = np.arange(200) < 15  # a dummy of rows of one class
    X[:15, 3] = -8.0  # and the last column, which has a ridge, decides how much the losses of these rows curve
    u = 2.5 * X[:, 1] + 2.0 * X[:, 2] + 2.0 * X[:, 3]
    y = (rng.uniform(size=200) < 1 / (1 + np.exp(-u))).astype(float)
    y[:15] = 1.0
    if not separated:
        y[0] = 0.0
    model = blocked_model(Serial(from_arrays(X, y, rows=50)), "logistic", l2=[0.0, 0.0, 0.0, 0.01], intercept=False)
    every = model.columns(np.arange(4))
    w = np.zeros(4)
    for _ in range(16):  # Newton's method, until the gradient is about 1e-8
        at = every.evaluate(w)
        w = w - np.linalg.solve(every.hessian(at), at.gradient)
    found = model.recession(model.evaluate(w), np.arange(4))
    assert (found is not None) == separated
    if found is not None:
        assert found[0] > 0
        assert found[3] == 0
