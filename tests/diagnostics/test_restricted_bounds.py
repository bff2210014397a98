"""Intervals of the restricted constants hold the exact ones, and close where they must."""

from math import inf

import numpy as np
import pytest

from hardthresh.constraints import Sparsity
from hardthresh.core import CapabilityError, InvalidInputError
from hardthresh.diagnostics import restricted_bounds, restricted_condition, restricted_constants
from hardthresh.objectives import LinearModel, MatrixRegression
from levels import at_most


def least_squares(X):
    return LinearModel(X, X[:, 0])


@pytest.mark.parametrize("rows", [8, 30, 300])
@pytest.mark.parametrize("size", [1, 2, 4, 9])
def test_the_exact_constants_lie_within(monkeypatch, rows, size):
    """With 8 rows and 9 of 12 columns some directions are flat."""
    f = least_squares(np.random.default_rng(rows).standard_normal((rows, 12)))
    exact = restricted_constants(f, size)
    tried = restricted_bounds(f, size)
    assert tried.smoothness == (exact.smoothness, exact.smoothness)
    assert tried.strong_convexity[0] == tried.strong_convexity[1] == pytest.approx(exact.strong_convexity, abs=1e-15)
    monkeypatch.setattr("hardthresh.diagnostics.bounds._TRIED", 0)
    found = restricted_bounds(f, size, trials=3)
    for (low, high), value in [
        (found.smoothness, exact.smoothness),
        (found.strong_convexity, exact.strong_convexity),
    ]:
        assert low - 1e-12 <= value <= high + 1e-12
        assert low <= high
    assert found.strong_convexity[0] >= 0.0
    assert found.condition[0] <= exact.condition * (1 + 1e-9)
    assert found.condition[1] >= min(exact.condition, 1e12)
    assert found.everywhere


def test_orthogonal_columns_close_the_interval():
    """The rows of the Hessian have no other entries, so that Gershgorin's discs are points."""
    scales = np.linspace(1.0, 2.0, 60)
    found = restricted_bounds(least_squares(np.sqrt(60) * np.diag(scales)), 10)
    assert found.smoothness == pytest.approx((4.0, 4.0))
    assert found.strong_convexity == pytest.approx((1.0, 1.0))


@pytest.mark.slow
def test_few_columns_bend_less_than_all():
    """60 columns of 30 rows: all of them have a flat direction, two have not, as the discs know."""
    f = least_squares(np.random.default_rng(0).standard_normal((3000, 400)))
    few, all_of_them = restricted_bounds(f, 3, trials=2), restricted_bounds(f, 400, trials=2)
    assert few.smoothness[1] < 0.9 * all_of_them.smoothness[1]
    assert few.strong_convexity[0] > 1.3 * all_of_them.strong_convexity[0]
    flat = restricted_bounds(least_squares(np.random.default_rng(1).standard_normal((30, 60))), 31, trials=2)
    assert flat.strong_convexity == (0.0, pytest.approx(0.0, abs=1e-12))
    assert flat.condition[1] == inf


def test_the_inner_ends_are_those_of_the_search():
    f = least_squares(np.random.default_rng(2).standard_normal((100, 80)))
    found, searched = restricted_bounds(f, 6), restricted_condition(f, Sparsity(6), factor=1)
    assert found.smoothness[0] == searched.smoothness
    assert found.strong_convexity[1] == searched.strong_convexity


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("tried", [20_000, 0])
def test_the_rounding_of_single_precision_is_not_convexity(monkeypatch, tried):
    """A support of more columns than rows has a flat direction, so the constant is 0 whatever the dtype."""
    monkeypatch.setattr("hardthresh.diagnostics.bounds._TRIED", tried)
    for seed in range(60):
        found = restricted_bounds(
            least_squares(np.random.default_rng(seed).standard_normal((4, 7)).astype(np.float32)), 6, trials=1
        )
        assert found.strong_convexity[0] == 0.0
        assert found.condition[1] == inf
    for seed in range(5):
        X = np.random.default_rng(seed).standard_normal((20, 60)).astype(np.float32)
        assert restricted_bounds(least_squares(X), 30, trials=1).strong_convexity[0] == 0.0


def test_single_precision_gives_nearly_the_same_interval():
    X = np.random.default_rng(4).standard_normal((100, 40))
    single, double = restricted_bounds(least_squares(X.astype(np.float32)), 5), restricted_bounds(least_squares(X), 5)
    assert single.smoothness == pytest.approx(double.smoothness, rel=1e-4)
    assert single.strong_convexity == pytest.approx(double.strong_convexity, rel=1e-3)


def test_a_hessian_that_varies_holds_at_its_point_only():
    rng = np.random.default_rng(3)
    f = LinearModel(rng.standard_normal((50, 8)), (rng.random(50) < 0.5).astype(float), loss="logistic")
    here, there = restricted_bounds(f, 2), restricted_bounds(f, 2, np.full(8, 3.0))
    assert there.smoothness[1] < here.smoothness[0]
    assert not here.everywhere
    assert "at this point only" in str(here)


class NegativeCurvature(LinearModel):
    """A model whose curvature along the last coordinate is below zero."""

    def hessian(self, at):
        return np.diag([1.0, 2.0, -0.5])


def test_negative_curvature_is_no_rounding():
    found = restricted_bounds(NegativeCurvature(np.eye(3), np.ones(3)), 2)
    assert found.strong_convexity == (-0.5, -0.5)
    assert found.condition == (inf, inf)


def test_what_it_cannot_use_is_refused():
    f = least_squares(np.eye(4))
    for size in (0, 5, 1.5, "2"):
        with pytest.raises(InvalidInputError, match="size must be"):
            restricted_bounds(f, size)
    with pytest.raises(InvalidInputError, match="w must be finite, of shape"):
        restricted_bounds(f, 2, np.array([1.0, np.nan, 0.0, 0.0]))
    with pytest.raises(CapabilityError, match="hessian"):
        restricted_bounds(MatrixRegression(np.ones((2, 2, 2)), np.ones(2)), 1)
