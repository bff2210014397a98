"""Splicing of smooth functions beside all supports, whatever the units of the columns."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import minimize as least

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.core import Status
from hardthresh.objectives import Function
from hardthresh.solvers.natural_scale import Curvatures
from hardthresh.solvers.splices import Refits, Splices
from hardthresh.solvers.units import Units


def logistic(X, y):
    def both(w):
        u = y * (X @ w)
        return float(np.logaddexp(0.0, -u).mean()), -X.T @ (y * np.exp(-np.logaddexp(0.0, u))) / len(y)

    return both


def quartic(X, y):
    return lambda w: (float(np.mean((X @ w - y) ** 4)), 4.0 * X.T @ (X @ w - y) ** 3 / len(y))


def poisson(X, y):
    def both(w):
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.exp(X @ w)
            return float(np.mean(mean - y * (X @ w))), X.T @ (mean - y) / len(y)

    return both


def best_of_all(loss, X, y, k):
    """Return the least value of all supports of k columns, which are brought to one scale for BFGS."""
    Z = X / np.abs(X).max(axis=0)
    fits = (least(loss(Z[:, c], y), np.zeros(k), jac=True, method="BFGS") for c in combinations(range(X.shape[1]), k))
    return min(fit.fun for fit in fits)


def settled(loss, X, y, k):
    result = ht.minimize(Function(loss(X, y), X.shape[1], True), Sparsity(k))
    assert result.status is Status.SETTLED
    return result


def two_classes(seed, n, d, coef, scales=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X * scales, np.where(X @ coef + rng.logistic(size=n) > 0, 1.0, -1.0)


def test_a_refit_that_was_abandoned_does_not_bar_a_better_start_of_its_set():
    """The first six columns are powers, which depend on each other so much that the first steps hope for little."""
    t, constraint, there = np.linspace(0.0, 1.0, 50), Sparsity(6), np.zeros(12)
    X = np.column_stack([t[:, None] ** np.arange(1, 7), np.sin(3.0 * np.outer(t, np.arange(1, 7)))])
    there[:6] = np.linalg.lstsq(X[:, :6], np.cos(9.0 * t))[0]

    def log_cosh(w):
        r = X @ (w - there)
        return float(np.mean(np.logaddexp(r, -r)) - np.log(2.0)), X.T @ np.tanh(r) / len(t)

    f, units = Function(log_cosh, 12, True), Units.of(constraint, (12,))
    refits, other = Refits(f, constraint, np.full(12, np.nan), 1.0), 0.01 * (np.arange(12) > 5)
    at = refits.minimise(f.evaluate(other), constraint.project(other).support, 1e-3).at
    splices = Splices(f, constraint, units, at, 1e-6, refits)
    assert at.value < 0.1 * f.value(np.zeros(12))
    assert list(splices.lower_of(np.arange(6), np.zeros(12))) == []  # although the minimum is 0
    (fit,) = splices.lower_of(np.arange(6), 0.95 * there)
    assert np.flatnonzero(fit.at.point).tolist() == list(range(6))
    assert fit.at.value < 0.1 * at.value
    assert list(splices.lower_of(np.arange(6), 0.99 * there)) == []  # a refit that came to its end is not made again


def test_a_set_is_found_whose_columns_have_other_units():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((100, 3)) * [1.0, 1.0, 0.01]
    y = np.where(rng.random(100) < 1.0 / (1.0 + np.exp(-X @ [1.0, 0.0, 100.0])), 1.0, -1.0)
    result = settled(logistic, X, y, 2)
    assert result.support.indices.tolist() == [0, 2]
    assert result.value == pytest.approx(best_of_all(logistic, X, y, 2), rel=1e-6)


@pytest.mark.parametrize("share", [1e-3, 1e-5, 1e-6])
def test_a_refit_reaches_the_minimum_whatever_the_units_of_its_columns(share):
    X, y = two_classes(0, 200, 2, [1.0, 1.0], [1.0, share])
    assert settled(logistic, X, y, 2).value == pytest.approx(best_of_all(logistic, X, y, 2), rel=1e-7)


def test_a_minimum_far_away_is_not_taken_for_none():
    X, y = two_classes(0, 200, 5, [1.0, 2.0, 0.9, 0.0, 0.0], [1.0, 1e5, 1e-5, 10.0, 1.0])
    assert settled(logistic, X, y, 3).value == pytest.approx(best_of_all(logistic, X, y, 3), rel=1e-7)


def test_exponentials_of_any_scale_are_minimised():
    scales, middle = np.array([1e-6, 1.0, 1e6, 1.0, 1e3]), np.array([1.0, -2.0, 3.0, 0.5, -1.5])

    def both(w):
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.cosh(w / scales - middle).sum()), np.sinh(w / scales - middle) / scales

    result = ht.minimize(Function(both, 5, True), Sparsity(3))
    assert result.status is Status.SETTLED
    assert result.support.indices.tolist() == [1, 2, 4]  # those farthest from zero
    assert result.value == pytest.approx(3.0 + np.cosh(1.0) + np.cosh(0.5), rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [logistic, quartic, poisson])
@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_a_search_ends_at_the_best_of_all_single_columns(loss, spread):
    """There are only two exchanges, and f is far from quadratic."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((30, 3)) + 0.5 * rng.standard_normal((30, 1))
        u = X @ rng.standard_normal(3)
        y = {logistic: np.sign(u + rng.logistic(size=30)), quartic: u + rng.standard_normal(30)}.get(loss)
        y = rng.poisson(np.exp(0.5 * u)).astype(float) if y is None else y
        X = X * 10.0 ** rng.uniform(-spread, spread, 3)
        assert settled(loss, X, y, 1).value == pytest.approx(best_of_all(loss, X, y, 1), rel=1e-5)


def test_exchanges_are_tried_one_by_one_where_a_definite_model_is_wrong():
    """The powers of four change more than the model says; the model alone ends at 1.296."""
    rng = np.random.default_rng(149)
    X = rng.standard_normal((10, 3))
    y = X @ rng.standard_normal(3) + rng.standard_normal(10)
    assert settled(quartic, X, y, 1).value == pytest.approx(best_of_all(quartic, X, y, 1), rel=1e-6)


@pytest.mark.slow
def test_no_single_exchange_improves_where_the_model_misleads():
    """There are more exchanges than are all tried; without those that are, the run ends seven times as high."""
    rng = np.random.default_rng(19)
    X = rng.standard_normal((30, 24)) + rng.standard_normal((30, 1))
    u = X @ (rng.standard_normal(24) * (rng.random(24) < 0.6))
    y = u + rng.standard_normal(30)
    X = X * 10.0 ** rng.uniform(-1.0, 1.0, 24)
    result = settled(quartic, X, y, 4)
    chosen = result.support.indices.tolist()
    for left, entered in product(chosen, np.setdiff1d(np.arange(24), chosen).tolist()):
        columns = [entered if j == left else j for j in chosen]
        assert best_of_all(quartic, X[:, columns], y, 4) > result.value * (1.0 - 1e-5)


def test_curvatures_scale_with_the_units_of_the_coordinates():
    f = logistic(*two_classes(0, 50, 4, np.ones(4)))
    scales = np.array([1e-8, 1e-3, 1.0, 1e7])

    def rescaled(w):
        value, slope = f(scales * w)
        return value, scales * slope

    found = []
    for both in (f, rescaled):
        at = Function(both, 4, True).evaluate(np.zeros(4))
        known = Curvatures(np.full(4, np.nan)).with_coordinates(Function(both, 4, True), at, np.arange(4), at.value)
        found.append(known.units(np.arange(4)))
    ratio = found[1] * scales / found[0]
    assert np.all((ratio > 0.01) & (ratio < 100.0))


def test_a_coordinate_without_curvature_has_the_typical_unit():
    f = Function(lambda w: (float(w[0] + 50.0 * w[1] ** 2), np.array([1.0, 100.0 * w[1]])), 2, True)
    known = Curvatures(np.full(2, np.nan)).with_coordinates(f, f.evaluate(np.ones(2)), np.arange(2), 51.0)
    assert known.known.tolist() == [0.0, pytest.approx(100.0)]
    np.testing.assert_allclose(known.units(np.arange(2)), 0.1)
