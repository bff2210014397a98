"""Screening: which columns outside a working set join it."""

from math import inf

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.objectives import LinearModel
from hardthresh.solvers.working_set.model import Gram, screen
from levels import draws


def slow_screen(gradient, curvature, inside, bounds, threshold, most):
    """Score one column after the other, and sort those above the threshold."""
    scores = {}
    for j, (g, h) in enumerate(zip(gradient, curvature, strict=True)):
        lower, upper = (-inf, inf) if bounds is None else bounds[:, j]
        step = 0.0 if h <= 0 else min(max(-g / h, lower), upper)
        score = -step * (g + 0.5 * h * step)
        if j not in inside and score > threshold:
            scores[j] = score
    return sorted(sorted(scores, key=lambda j: (-scores[j], j))[:most])


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.booleans(), st.sampled_from([0.0, 0.3, inf]))
@draws(150)
def test_screening_agrees_with_the_slow_twin(seed, d, bounded, threshold):
    """Also with ties, columns of zeros, and bounds."""
    rng = np.random.default_rng(seed)
    gradient, curvature = rng.choice([-2.0, -1.0, 0.0, 1.0, 1.5], d), rng.choice([0.0, 1.0, 2.0], d)
    inside = np.flatnonzero(rng.random(d) < rng.random())
    bounds = np.stack([rng.choice([-inf, -0.5, 0.0], d), rng.choice([0.0, 0.5, inf], d)]) if bounded else None
    for most in (1, 3, d):
        new = screen(gradient, curvature, inside, bounds, threshold, most)
        np.testing.assert_array_equal(new, slow_screen(gradient, curvature, inside, bounds, threshold, most))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scores_do_not_overflow_where_they_are_not_large(dtype):
    largest = np.finfo(dtype).max
    gradient, curvature = np.array([largest, 0.0], dtype), np.array([largest, 0.0], dtype)
    np.testing.assert_array_equal(screen(gradient, curvature, np.empty(0, np.int64), None, 0.4 * largest, 2), [0])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_gram_matrix_that_grows_is_that_of_all_its_columns(sparse, dtype):
    """There are so many that products with new columns are in three parts."""
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((30, 400)).astype(dtype), rng.random(30)
    f = LinearModel(sp.csc_array(X) if sparse else X, np.zeros(30), sample_weight=weights, l2=0.1)
    at, order, gram = f.evaluate(f.zeros()), rng.permutation(400), Gram()
    for size in (0, 1, 130, 131, 280, 390):
        gram = gram.including(f, at, np.sort(order[:size]))
    np.testing.assert_array_equal(np.sort(gram.columns), np.sort(order[:390]))
    exact = X[:, gram.columns].astype(float) * np.sqrt(weights / weights.sum())[:, None]
    np.testing.assert_allclose(
        gram.matrix, exact.T @ exact + 0.1 * np.eye(390), atol=1e-13 if dtype == "float64" else 1e-6
    )
