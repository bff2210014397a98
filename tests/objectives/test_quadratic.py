"""Whether a function of any kind is taken for a quadratic, from which the default solver follows."""

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.objectives import Function
from hardthresh.objectives.quadratic import least_curvature
from hardthresh.solvers import Splicing, WorkingSet, choose_solver

SHIFT = np.array([0.3, -1.2, 2.0, 0.7])
X = np.random.default_rng(0).integers(1, 100, (20, 4)).astype(float)


def quadratic(w):
    return float(np.sum((w - SHIFT) ** 2)), 2.0 * (w - SHIFT)


def rastrigin(w):
    """The waves have the period 1: between integers it is a quadratic."""
    z = 2.0 * np.pi * (w - SHIFT)
    return float(np.sum((w - SHIFT) ** 2 - np.cos(z))), 2.0 * (w - SHIFT) + 2.0 * np.pi * np.sin(z)


def beside_a_line(w):
    """The fourth power vanishes where w_1 is 2 w_0."""
    value, slope = quadratic(w)
    across = w[1] - 2.0 * w[0]
    return value + across**4, slope + 4.0 * across**3 * np.array([-2.0, 1.0, 0.0, 0.0])


def quadratic_nearby(w):
    """It is steeper beyond 1000."""
    value, slope = quadratic(w)
    beyond = np.maximum(np.abs(w) - 1000.0, 0.0)
    return value + 10.0 * float(np.sum(beyond**2)), slope + 20.0 * np.sign(w) * beyond


def poisson(w):
    """Features of up to 100: the mean overflows at most points."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.exp(X @ w)
        return float(np.mean(mean - X @ w)), X.T @ (mean - 1.0) / len(X)


def barrier(w):
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.sum(w - np.log(w))), 1.0 - 1.0 / w


def tiny(w):
    """The squares of its gradients underflow."""
    return 1e-200 * float(np.sum(np.cosh(w - SHIFT))), 1e-200 * np.sinh(np.clip(w - SHIFT, -700.0, 700.0))


@pytest.mark.parametrize("both", [rastrigin, beside_a_line, quadratic_nearby, poisson, barrier, tiny])
def test_functions_that_are_not_quadratic_are_searched_by_splicing(both):
    f = Function(both, 4, True)
    assert f.traits.arbitrary
    assert isinstance(choose_solver(f, Sparsity(2)), Splicing)
    assert np.isnan(least_curvature(lambda w: both(w)[1], np.zeros(4)))


def test_a_quadratic_is_searched_as_a_linear_model():
    f = Function(quadratic, 4, True)
    assert isinstance(choose_solver(f, Sparsity(2)), WorkingSet)
    assert least_curvature(lambda w: quadratic(w)[1], np.zeros(4)) > 0.0


def test_a_function_of_torch_that_is_quadratic_within_1000_is_minimised():
    torch = pytest.importorskip("torch")
    t = torch.tensor([3000.0, -2500.0], dtype=torch.float64)

    def fn(w):
        near = (w - t) ** 2
        return torch.where(w.abs() < 1000.0, near, near + 10.0 * (w.abs() - 1000.0) ** 2).sum()

    result = ht.minimize(Function.from_torch(fn, 2), Sparsity(1))
    np.testing.assert_allclose(result.w, [13000.0 / 11.0, 0.0], rtol=1e-6)  # where 2 (w - 3000) + 20 (w - 1000) is 0
