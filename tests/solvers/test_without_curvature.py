"""Where the curvature along a direction is zero, negative or no number: a step on f itself, and no false claim."""

import numpy as np
import pytest

from hardthresh.certificates import certify
from hardthresh.constraints import Rank, Sparsity
from hardthresh.core import Status
from hardthresh.objectives import Function, LinearModel
from hardthresh.solvers import ConjugateIHT, HardThresholdingPursuit, minimize

T = np.array([3.0, 0.1, -2.0, 0.2])
FAR = np.array([300.0, 0.1, -200.0, 0.2])
SOLVERS = [None, HardThresholdingPursuit(), ConjugateIHT()]


def huber():
    return Function(
        lambda w: np.sum(np.where(abs(w - FAR) < 1, 0.5 * (w - FAR) ** 2, abs(w - FAR) - 0.5)),
        4,
        lambda w: np.clip(w - FAR, -1, 1),
        curvature=lambda w, v: v * (abs(w - FAR) < 1),
    )


def cauchy():
    return Function(
        lambda w: np.sum(np.log1p((w - T) ** 2)),
        4,
        lambda w: 2 * (w - T) / (1 + (w - T) ** 2),
        curvature=lambda w, v: v * 2 * (1 - (w - T) ** 2) / (1 + (w - T) ** 2) ** 2,
    )


def quadratic(product):
    return Function(lambda w: 0.5 * np.sum((w - T) ** 2), 4, lambda w: w - T, curvature=product)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("make", "lowest"), [(huber, 0.025), (cauchy, np.log(1.01) + np.log(1.04))])
def test_flat_and_concave_regions_are_left(solver, make, lowest):
    f = make()
    run = minimize(f, Sparsity(2), solver)
    assert run.status is Status.SETTLED
    np.testing.assert_array_equal(run.support, [0, 2])
    np.testing.assert_allclose(run.value, lowest, rtol=1e-6)
    certificate = certify(run)
    assert certificate.basic_feasibility <= 1e-3 * certificate.gradient_scale
    assert (np.diff(run.history["value"]) <= 0.0).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "product", [lambda w, v: v * np.nan, lambda w, v: -v, lambda w, v: 0 * v, lambda w, v: v * np.inf]
)
def test_a_right_gradient_is_enough_where_the_hessian_is_nonsense(solver, product):
    with np.errstate(invalid="ignore"):
        run = minimize(quadratic(product), Sparsity(2), solver)
    np.testing.assert_allclose(run.w, [3.0, 0.0, -2.0, 0.0], atol=1e-3)
    assert run.status is Status.SETTLED


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_hessian_in_the_wrong_unit_is_no_convergence(solver):
    run = minimize(quadratic(lambda w, v: 1e14 * v), Sparsity(2), solver)
    assert not run.converged or np.allclose(run.w, [3.0, 0.0, -2.0, 0.0], atol=1e-2)


@pytest.mark.parametrize("solver", [HardThresholdingPursuit(), ConjugateIHT()])
def test_a_start_where_the_curvature_underflows_is_left(solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 20))
    model = LinearModel(X, (X[:, 3] + rng.standard_normal(200) > 0).astype(int), loss="logistic")
    run = minimize(model, Sparsity(2), solver, w0=-1e6 * np.eye(20)[3])
    assert run.status is Status.SETTLED
    np.testing.assert_allclose(run.value, minimize(model, Sparsity(2), solver).value, rtol=1e-6)


@pytest.mark.parametrize("solver", [HardThresholdingPursuit(), ConjugateIHT()])
def test_matrices_too(solver):
    A = np.outer([30.0, 20.0, -10.0], [1.0, -1.0, 2.0])
    f = Function(
        lambda W: np.sum(np.where(abs(W - A) < 1, 0.5 * (W - A) ** 2, abs(W - A) - 0.5)),
        (3, 3),
        lambda W: np.clip(W - A, -1, 1),
        curvature=lambda W, V: V * (abs(W - A) < 1),
    )
    run = minimize(f, Rank(1), solver)
    assert run.value < 0.9 * f.value(np.zeros((3, 3)))
    certificate = certify(run)
    assert not run.converged or certificate.basic_feasibility <= 1e-3 * certificate.gradient_scale


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_kink_is_no_answer_to_be_sure_of(solver):
    """The minimum of a sum of absolute values, whose gradient vanishes nowhere."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((9, 4)), rng.standard_normal(9)
    f = Function(
        lambda w: np.sum(abs(X @ w - y)), 4, lambda w: X.T @ np.sign(X @ w - y), curvature=lambda w, v: 0.0 * v
    )
    run = minimize(f, Sparsity(2), solver)
    assert run.value < 0.95 * f.value(np.zeros(4))
    assert run.status is Status.STALLED
    assert not run.converged
    assert "gradient" in run.message


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "f",
    [
        Function(lambda w: -np.sum(w), 4, lambda w: -np.ones(4), curvature=lambda w, v: 0 * v),
        Function(lambda w: -0.5 * np.sum((w - T) ** 2), 4, lambda w: T - w, curvature=lambda w, v: -v),
    ],
)
def test_what_has_no_minimum_is_no_convergence(solver, f):
    run = minimize(f, Sparsity(2), solver)
    assert run.status is Status.NO_MINIMISER
    assert not run.converged
    assert run.n_iter < 20
