"""Splicing from points where no gradient leads away."""

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.constraints import GroupSparsity, Sparsity
from hardthresh.core import Status
from hardthresh.objectives import Function

DEPTHS = np.array([1.0, 3.0, 2.0, 0.5])


def wells(w):
    """Two wells in each coordinate, of f = 0, and a maximum at zero."""
    return float(np.sum((w * w - DEPTHS) ** 2)), 4.0 * w * (w * w - DEPTHS)


def test_a_maximum_at_zero_is_left_for_the_deepest_wells():
    result = ht.minimize(Function(wells, 4, True), Sparsity(2))
    assert result.support.indices.tolist() == [1, 2]
    assert result.value == pytest.approx(1.0 + 0.25)


def test_a_sign_that_is_asked_for_is_kept():
    result = ht.minimize(Function(wells, 4, True), Sparsity(1, upper=0.0))
    np.testing.assert_allclose(result.w, [0.0, -np.sqrt(3.0), 0.0, 0.0], atol=1e-5)


def test_a_group_enters_along_one_of_its_coordinates():
    result = ht.minimize(Function(wells, 4, True), GroupSparsity([0, 0, 1, 1], 1))
    assert result.support.numbers.tolist() == [0]


def test_intensities_are_explained_from_zero():
    """Phase retrieval: the signs of the signals are not known, and zero is a maximum."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    seen = (X @ [2.0, 0.0, 0.0, -1.0, 0.0, 0.0]) ** 2

    def both(w):
        u = X @ w
        return float(np.mean((u * u - seen) ** 2)), 4.0 * X.T @ (u * (u * u - seen)) / 60.0

    result = ht.minimize(Function(both, 6, True), Sparsity(2))
    np.testing.assert_allclose(np.abs(result.w), [2.0, 0.0, 0.0, 1.0, 0.0, 0.0], atol=1e-4)


def test_a_function_that_falls_from_a_maximum_for_ever_has_no_minimiser():
    result = ht.minimize(Function(lambda w: (-float(w @ w), -2.0 * w), 4, True), Sparsity(2))
    assert result.status is Status.NO_MINIMISER


def test_a_minimum_at_zero_stays():
    result = ht.minimize(Function(lambda w: (float(np.sum(w**4)), 4.0 * w**3), 4, True), Sparsity(2))
    assert result.status is Status.SETTLED
    assert not result.w.any()
