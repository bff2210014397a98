"""Least squares from sufficient statistics: the linear model without its rows."""

import numpy as np
import pytest

from hardthresh import minimize
from hardthresh.constraints import Sparsity
from hardthresh.core import InvalidInputError
from hardthresh.core.objective import value_rounding
from hardthresh.objectives import GramModel, LinearModel


def pair(n=300, d=40, l2=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X[:, :4] @ [1.0, -2.0, 0.5, 3.0] + rng.standard_normal(n)
    ridge = np.linspace(0, l2, d)
    return GramModel(X.T @ X / n, X.T @ y / n, float(y @ y) / n, n=n, l2=ridge), LinearModel(X, y, l2=ridge)


def test_is_the_linear_model_of_the_same_rows():
    f, plain = pair()
    w = np.where(np.arange(40) % 3 == 0, 1.0, 0.0)
    at, expected = f.evaluate(w), plain.evaluate(w)
    np.testing.assert_allclose(at.value, expected.value, rtol=1e-13)
    np.testing.assert_allclose(at.gradient, expected.gradient, rtol=0, atol=1e-13)
    np.testing.assert_allclose(f.minus_twice_log_likelihood(at), plain.minus_twice_log_likelihood(expected), rtol=1e-13)
    rows = np.arange(5)
    np.testing.assert_allclose(f.shrinkage(at, rows), plain.shrinkage(expected, rows), rtol=1e-10)
    other = f.with_ridge(2.0)
    np.testing.assert_allclose(other.value(w), plain.with_ridge(2.0).value(w), rtol=1e-13)


def test_columns_of_columns_know_the_products_of_all():
    f, plain = pair()
    at, expected = f.evaluate(np.ones(40)), plain.evaluate(np.ones(40))
    inner, outer = f.columns(np.arange(10, 20)).columns(np.array([0, 3])), f.columns(np.array([1, 30]))
    crossed = plain.columns(np.array([10, 13])).cross_hessian(expected, plain.columns(np.array([1, 30])))
    np.testing.assert_allclose(inner.cross_hessian(at, outer), crossed, rtol=0, atol=1e-13)


def test_a_fit_counts_no_passes_and_is_that_of_the_rows():
    f, plain = pair()
    found, expected = minimize(f, Sparsity(4)), minimize(plain, Sparsity(4))
    assert found.passes == 0
    np.testing.assert_allclose(found.w, expected.w, rtol=0, atol=1e-12)


def test_rounding_is_that_of_the_sums():
    """Of targets a thousand times their residuals, values have three digits fewer than they show."""
    f, plain = pair(l2=0.0)
    shifted = GramModel(f.hessian(f.evaluate(f.zeros())), f._cross * 1e3, f._square * 1e6, n=300)
    at = shifted.evaluate(minimize(shifted, Sparsity(40)).w)
    assert value_rounding(shifted, at) >= 1e6 * value_rounding(plain, plain.evaluate(np.zeros(40))) * 0.1


@pytest.mark.parametrize(
    ("gram", "cross", "square", "message"),
    [
        (np.eye(2), np.ones(3), 1.0, r"gram has shape \(2, 2\) and cross \(3,\)"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), np.ones(2), 1.0, "gram must be symmetric"),
        (-np.eye(2), np.ones(2), 1.0, "gram must be symmetric, with a diagonal >= 0"),
        (np.eye(2), np.array([1.0, np.nan]), 1.0, "NaN or infinity"),
        (np.eye(2), np.ones(2), -1.0, "square"),
    ],
    ids=["shape", "symmetric", "negative", "nan", "square"],
)
def test_refuses_what_are_no_statistics(gram, cross, square, message):
    with pytest.raises(InvalidInputError, match=message):
        GramModel(gram, cross, square)


def test_statistics_in_single_precision_are_computed_with_in_double():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 6)), rng.standard_normal(50)
    single = (X.T @ X / 50).astype(np.float32), (X.T @ y / 50).astype(np.float32), float(y @ y) / 50
    f = GramModel(*single)
    same = GramModel(single[0].astype(np.float64), single[1].astype(np.float64), single[2])
    w = rng.standard_normal(6)
    assert f.zeros().dtype == f.evaluate(w.astype(np.float32)).gradient.dtype == np.float64
    assert np.array_equal(f.evaluate(w).gradient, same.evaluate(w).gradient)
    found = minimize(f, Sparsity(2)).w
    assert found.dtype == np.float64
    assert np.array_equal(found, minimize(same, Sparsity(2)).w)
