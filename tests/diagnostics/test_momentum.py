"""The momentum of theory against the measured one, on the paper's toy and on the recursion itself."""

from math import inf, nan

import numpy as np
import pytest
from papers.accelerated_iht._data import gaussian_design, toy

from hardthresh.core import InvalidInputError
from hardthresh.diagnostics import best_momentum, local_rate, momentum_range, restricted_constants


def test_the_toy_of_the_paper():
    found = restricted_constants(toy(seed=409).X, 2)
    allowed = momentum_range(found.strong_convexity, found.smoothness)
    assert allowed.xi == pytest.approx(0.9420, abs=5e-5)
    assert allowed.published == pytest.approx(-0.363, abs=5e-4)
    assert allowed.without_golden_ratio == pytest.approx(0.0303, abs=5e-5)
    assert allowed.is_empty
    assert "empty" in str(allowed)


@pytest.mark.parametrize("ratio", [0.01, 0.5, 0.6179, 0.6181, 0.9, 1.0])
def test_the_published_range_is_empty_below_the_golden_ratio(ratio):
    allowed = momentum_range(ratio, 1.0)
    assert allowed.is_empty == (ratio < 0.618)
    assert allowed.without_golden_ratio > allowed.published or ratio == 1.0
    assert momentum_range(1e6 * ratio, 1e6).published == pytest.approx(allowed.published)


@pytest.mark.parametrize("constants", [(0.0, 1.0), (-1.0, 1.0), (2.0, 1.0), (1.0, inf), (nan, 1.0), (1.0, nan)])
def test_impossible_constants_are_refused(constants):
    with pytest.raises(InvalidInputError, match="0 < alpha <= beta"):
        momentum_range(*constants)


@pytest.mark.parametrize("momentum", [-0.9, -0.3, 0.0, 0.25, 0.5, 0.75, 1.0, 1.3])
@pytest.mark.parametrize("step", [0.3, 1.0, 1.7])
def test_the_rate_is_the_spectral_radius_of_the_recursion(momentum, step):
    values = np.array([0.02, 0.4, 1.0])
    radius = 0.0
    for value in values:
        kept = 1 - step * value
        recursion = np.array([[kept * (1 + momentum), -kept * momentum], [1.0, 0.0]])
        radius = max(radius, float(np.abs(np.linalg.eigvals(recursion)).max()))
    assert local_rate(values, step, momentum) == pytest.approx(radius, abs=1e-7)


def test_the_rates_that_the_specification_predicts():
    drawn = gaussian_design(120, 400, 8, seed=7)
    step = 1.0 / np.linalg.norm(drawn.X, 2) ** 2
    chosen = drawn.X[:, drawn.support]
    values = np.linalg.eigvalsh(chosen.T @ chosen)
    rates = [local_rate(values, step, momentum) for momentum in (0.0, 0.25, 0.5, 0.75)]
    np.testing.assert_allclose(rates, [0.9179, 0.8893, 0.8107, 0.8297], atol=5e-5)
    best = best_momentum(values, step)
    assert best == pytest.approx(0.554, abs=5e-4)
    assert local_rate(values, step, best) == pytest.approx(0.713, abs=5e-4)


@pytest.mark.parametrize("seed", range(5))
def test_no_other_momentum_is_better(seed):
    values = np.random.default_rng(seed).uniform(0.01, 1.0, 6)
    best = best_momentum(values, 1.0)
    rate = local_rate(values, 1.0, best)
    assert rate == pytest.approx(1 - np.sqrt(values.min()))
    assert all(local_rate(values, 1.0, other) >= rate - 1e-12 for other in np.linspace(-0.99, 1.5, 400))


def test_a_flat_direction_never_converges():
    assert local_rate([0.0, 1.0], 1.0, 0.5) == pytest.approx(1.0)
    assert best_momentum([0.0, 1.0], 1.0) == 1.0


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (([], 1.0, 0.0), "at least one eigenvalue"),
        (([1.0, nan], 1.0, 0.0), "finite"),
        (([1.0, -1.0], 1.0, 0.0), ">= 0"),
        (([1.0], 0.0, 0.0), "step must be positive"),
        (([1.0], inf, 0.0), "step must be positive"),
        (([1.0], 1.0, nan), "momentum must be finite"),
        (([1.0], None, 0.1), "step must be a number"),
        (([1.0], 1.0, "0.1"), "momentum must be a number"),
    ],
)
def test_wrong_arguments_are_refused(arguments, match):
    with pytest.raises(InvalidInputError, match=match):
        local_rate(*arguments)


@pytest.mark.parametrize("constants", [("x", 1), (1, None), ("1", 2), ([1.0, 2.0], 2)])
def test_constants_that_are_no_numbers_are_refused(constants):
    with pytest.raises(InvalidInputError, match="must be a number"):
        momentum_range(*constants)


def test_a_step_that_is_too_long_has_no_best_momentum():
    with pytest.raises(InvalidInputError, match="at most 1 / the largest eigenvalue"):
        best_momentum([1.0, 2.0], 1.0)
