"""The pieces of the perspective relaxation that branch and bound and certificates share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.solvers.perspective import largest, penalty, removable
from levels import draws

SIZES = st.lists(st.floats(0.01, 3.0), min_size=1, max_size=7).map(np.array)


@given(SIZES, st.integers(1, 7))
@draws(100)
def test_the_shares_are_feasible_and_reach_the_value(size, k):
    value, threshold, whole = penalty(size, k)
    z = np.minimum(1.0, size / threshold) if threshold > 0 else np.ones(size.size)
    assert z.sum() == pytest.approx(min(k, size.size))
    assert 0.5 * np.sum(size**2 / z) == pytest.approx(value)
    assert (z[whole] == 1.0).all()
    assert whole.sum() <= k or size.size <= k


@given(SIZES, st.integers(1, 7), st.data())
@draws(100)
def test_no_other_shares_have_a_lower_value(size, k, data):
    other = np.array([data.draw(st.floats(0.05, 1.0)) for _ in size])
    other = np.minimum(1.0, other * min(1.0, k / other.sum()))
    assert penalty(size, k)[0] <= 0.5 * np.sum(size**2 / other) * (1 + 1e-12)


@given(SIZES, st.integers(1, 7), st.integers(0, 6))
@draws(100)
def test_the_slope_is_that_of_the_ridge_where_a_unit_is_whole(size, k, place):
    place %= size.size
    _, threshold, whole = penalty(size, k)
    if size.size > k and np.abs(size - threshold).min() < 1e-3:  # a kink of the second derivatives is near
        return
    step = 1e-6 * np.eye(size.size)[place]
    slope = (penalty(size + step, k)[0] - penalty(size - step, k)[0]) / 2e-6
    rest = size[~whole].sum() / max(1, k - whole.sum())
    assert slope == pytest.approx(size[place] if whole[place] else rest, abs=1e-6)


@pytest.mark.parametrize("k", range(6))
def test_the_largest_gains(k):
    gains = np.array([0.5, 3.0, 0.0, 2.0])
    assert sorted(gains[largest(gains, k)]) == sorted(gains)[max(0, 4 - k) :]


def test_what_is_removed_leaves_the_matrix_positive_semidefinite():
    A = np.random.default_rng(0).standard_normal((9, 5))
    matrix = A.T @ A
    mu, lowest = removable(matrix, 1e-6), np.linalg.eigvalsh(matrix)[0]
    assert lowest * (1 - 1e-6) - 1e-6 <= mu <= lowest - 1e-6
    assert removable(matrix - 2.0 * lowest * np.eye(5), 0.0) == 0.0
