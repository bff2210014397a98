"""The second-order expansion of the losses of rows: least squares of working responses."""

import numpy as np

from hardthresh.losses import Huber, Logistic
from hardthresh.losses.expansion import Expansion


def test_least_squares_of_working_responses_is_the_loss_to_second_order():
    """The gap between two points falls with the third power of their distance from where the loss is expanded."""
    rng, loss = np.random.default_rng(0), Logistic()
    y, v, step = rng.integers(0, 2, 50).astype(float), rng.standard_normal(50), rng.standard_normal(50)
    near = Expansion(loss.gradient(y, v), loss.curvature(y, v))
    z = near.responses(v)

    def gap(size):
        u = v + size * step
        least_squares = 0.5 * near.curvature * ((u - z) ** 2 - (v - z) ** 2)
        return np.abs(loss.value(y, u) - loss.value(y, v) - least_squares).max()

    assert gap(1e-2) > 0.0
    assert gap(1e-3) < 2e-3 * gap(1e-2)


def test_curvatures_are_bounded_below_in_all_rows_or_filled_where_there_is_a_slope_and_none():
    loss, y, v = Huber(1.0), np.zeros(3), np.array([0.0, 0.5, 8.0])
    near = Expansion(loss.gradient(y, v), 0.1 * loss.curvature(y, v))
    assert near.curvature.tolist() == [0.1, 0.1, 0.0]
    assert near.at_least(0.3).curvature.tolist() == [0.3, 0.3, 0.3]
    assert near.filled(0.3).curvature.tolist() == [0.1, 0.1, 0.3]
    flat = Expansion(np.zeros(1), np.zeros(1))  # as where a hinge is 0
    assert flat.filled(0.3).curvature.tolist() == [0.0]
