"""Every registered loss keeps the contract of `hardthresh.losses.Loss`."""

import numpy as np
import pytest
from cases import OTHER_LIBRARIES, back, convert, examples
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.core import InvalidInputError
from hardthresh.losses import Logistic
from levels import draws

every = pytest.mark.parametrize("loss", examples("loss"))
convex = pytest.mark.parametrize("loss", examples("loss", where=lambda loss: loss.convex))
"""The flag itself is checked by a test of its own."""

CANDIDATES = np.array([-3.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 7.0])
PREDICTIONS = np.array([-6.3, -2.1, -0.9, -0.17, 0.13, 0.71, 1.9, 5.7])
EXTREMES = np.array([-1e4, -800.0, -40.0, 40.0, 800.0, 1e4])


def targets(loss, dtype=np.float64):
    """Those of some candidates that are in the loss's domain."""
    return CANDIDATES[loss.in_domain(CANDIDATES)].astype(dtype)


def grid(loss, predictions=PREDICTIONS, dtype=np.float64):
    """Every target with every prediction."""
    y, u = np.meshgrid(targets(loss), predictions)
    return y.ravel().astype(dtype), u.ravel().astype(dtype)


@every
def test_some_targets_are_in_the_domain(loss):
    assert targets(loss).size >= 2
    assert loss.domain.strip()


@every
def test_gradient_is_the_derivative_of_the_value(loss):
    y, u = grid(loss)
    h = 1e-5
    slope = (loss.value(y, u + h) - loss.value(y, u - h)) / (2 * h)
    np.testing.assert_allclose(loss.gradient(y, u), slope, rtol=1e-6, atol=1e-9)


@every
def test_curvature_is_the_derivative_of_the_gradient(loss):
    y, u = grid(loss)
    h = 1e-5
    slope = (loss.gradient(y, u + h) - loss.gradient(y, u - h)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(y, u), slope, rtol=1e-6, atol=1e-9)


@every
def test_that_holds_for_extreme_predictions_too(loss):
    """Also where an exponential goes on as a polynomial, because it would overflow."""
    y, u = grid(loss, EXTREMES)
    h = 1e-3
    slope = (loss.value(y, u + h) - loss.value(y, u - h)) / (2 * h)
    np.testing.assert_allclose(loss.gradient(y, u), slope, rtol=1e-5, atol=1e-8)
    slope = (loss.gradient(y, u + h) - loss.gradient(y, u - h)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(y, u), slope, rtol=1e-5, atol=1e-8)


def test_a_log_loss_that_is_nearly_zero_keeps_its_digits():
    u = np.array([20.0, 40.0, 300.0, 700.0])
    for y, sign in ((1.0, 1.0), (0.0, -1.0)):
        np.testing.assert_allclose(Logistic().value(np.full_like(u, y), sign * u), np.exp(-u), rtol=1e-8)


@every
def test_targets_in_the_domain_are_accepted(loss):
    loss.check_targets(targets(loss))


@every
def test_a_target_outside_the_domain_is_named(loss):
    outside = [y for y in (*CANDIDATES, np.nan, np.inf, -np.inf) if not loss.in_domain(np.array([y]))[0]]
    assert {repr(float(y)) for y in outside} >= {"nan", "inf", "-inf"}
    good = targets(loss)
    for bad in outside:
        with pytest.raises(InvalidInputError) as error:
            loss.check_targets(np.array([good[0], bad, good[1]]))
        message = str(error.value)
        assert type(loss).__name__ in message
        assert loss.domain in message
        assert f"y[1] is {float(bad)}" in message


@every
def test_extreme_predictions_stay_finite(loss):
    y, u = grid(loss, EXTREMES)  # an overflow warning is an error in this suite
    for result in (loss.value(y, u), loss.gradient(y, u), loss.curvature(y, u)):
        assert np.isfinite(result).all()
    y, u = grid(loss, EXTREMES, np.float32)
    for result in (loss.value(y, u), loss.gradient(y, u), loss.curvature(y, u)):
        assert np.isfinite(result).all()
        assert result.dtype == np.float32


@convex
@given(a=st.floats(-30, 30), b=st.floats(-30, 30))
@draws(60)
def test_a_convex_loss_lies_below_its_chords(loss, a, b):
    y = targets(loss)
    u, v = np.full_like(y, a), np.full_like(y, b)
    chord = 0.5 * (loss.value(y, u) + loss.value(y, v))
    assert (loss.value(y, 0.5 * (u + v)) <= chord + 1e-12 * (1 + np.abs(chord))).all()


@every
def test_the_convexity_flag_is_true(loss):
    y, u = grid(loss, np.linspace(-30, 30, 301))
    assert (loss.curvature(y, u) >= 0).all() == loss.convex


@every
@given(u=st.floats(-1e4, 1e4))
@draws(60)
def test_the_bounds_hold(loss, u):
    y = targets(loss)
    u = np.full_like(y, u)
    assert (loss.value(y, u) >= loss.lower_bound).all()
    assert (loss.curvature(y, u) <= loss.curvature_bound * (1 + 1e-12)).all()


@every
def test_a_loss_falls_for_ever_where_it_says_so_and_nowhere_else(loss):
    y, far = targets(loss), 300.0
    signs = loss.recession(y)
    assert set(signs.tolist()) <= {-1.0, 0.0, 1.0}
    for direction in (-1.0, 1.0):
        falls = loss.gradient(y, np.full_like(y, direction * far)) * direction <= 0
        np.testing.assert_array_equal(falls, signs == direction)


@every
def test_float32_stays_float32(loss):
    y, u = grid(loss, dtype=np.float32)
    for result in (loss.value(y, u), loss.gradient(y, u), loss.curvature(y, u)):
        assert result.dtype == np.float32
        assert result.shape == u.shape
    np.testing.assert_allclose(loss.value(y, u), loss.value(*grid(loss)), rtol=1e-5, atol=1e-6)


@every
def test_every_example_counts_for_itself(loss):
    y, u = grid(loss)
    for function in (loss.value, loss.gradient, loss.curvature):
        alone = np.concatenate([function(y[i : i + 1], u[i : i + 1]) for i in range(y.size)])
        np.testing.assert_allclose(function(y, u), alone, rtol=1e-14, atol=1e-300)


@every
def test_inputs_are_unchanged(loss):
    y, u = grid(loss)
    before = y.copy(), u.copy()
    for result in (loss.value(y, u), loss.gradient(y, u), loss.curvature(y, u)):
        assert not np.shares_memory(result, u)
        assert not np.shares_memory(result, y)
    np.testing.assert_array_equal((y, u), before)


@every
@pytest.mark.parametrize("library", OTHER_LIBRARIES)
def test_other_array_libraries_agree(loss, library):
    for predictions in (PREDICTIONS, EXTREMES):
        y, u = grid(loss, predictions)
        theirs = convert(y, library), convert(u, library)
        for function in (loss.value, loss.gradient, loss.curvature):
            result = function(*theirs)
            assert type(result) is type(theirs[1])
            np.testing.assert_allclose(back(result), function(y, u), rtol=1e-12, atol=1e-300)
    loss.check_targets(convert(targets(loss), library))
    with pytest.raises(InvalidInputError, match="nan"):
        loss.check_targets(convert(np.array([np.nan]), library))
