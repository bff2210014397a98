"""Second derivatives of any function: differences, columns of the Hessian, and whether it is constant."""

from itertools import product

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.constraints import GroupSparsity, Sparsity
from hardthresh.core import LinearObjective, SmoothObjective
from hardthresh.core.meter import Meter
from hardthresh.objectives import Function, LinearModel
from hardthresh.objectives.computed import MOST_COLUMNS
from hardthresh.objectives.derivatives import difference
from levels import slow_beyond

RNG = np.random.default_rng(3)
X = RNG.standard_normal((80, 20)) @ (np.eye(20) + 0.8 * np.eye(20, k=1))
COUNTS = RNG.poisson(np.exp(0.4 * X[:, 3] - 0.5 * X[:, 11])).astype(float)
POISSON = LinearModel(X, COUNTS, "poisson")
W = 0.3 * RNG.standard_normal(20)


def jax_or_skip():
    return pytest.importorskip("jax", reason="JAX is not installed")


def torch_or_skip():
    return pytest.importorskip("torch", reason="torch is not installed")


def by_gradients():
    return Function(lambda w: POISSON.value(w), 20, lambda w: POISSON.evaluate(w).gradient)


def by_torch():
    torch = torch_or_skip()
    tX, ty = torch.from_numpy(X), torch.from_numpy(COUNTS)
    return Function.from_torch(lambda w: torch.mean(torch.exp(tX @ w) - ty * (tX @ w)), 20)


def by_jax():
    jnp = jax_or_skip().numpy
    return Function.from_jax(lambda w: jnp.mean(jnp.exp(X @ w) - COUNTS * (X @ w)), 20)


MAKERS = pytest.mark.parametrize("make", [by_gradients, by_torch, by_jax])


@pytest.mark.slow
@MAKERS
def test_columns_are_those_of_the_linear_model(make):
    f, some, others = make(), np.array([1, 4, 5, 13]), np.array([0, 2, 19])
    at, expected = f.evaluate(W), POISSON.evaluate(W)
    assert isinstance(f, LinearObjective)
    H, near = POISSON.hessian(expected), {"rtol": 1e-6, "atol": 1e-8}
    small = f.columns(some)
    inside = small.evaluate(W[some], at.prediction)
    np.testing.assert_allclose(small.hessian(inside), H[np.ix_(some, some)], **near)
    np.testing.assert_allclose(small.cross_hessian(at, f.columns(others)), H[np.ix_(some, others)], **near)
    np.testing.assert_allclose(small.curvature(inside, np.ones(4)), H[np.ix_(some, some)].sum(1), **near)
    np.testing.assert_allclose(small.hessian_diag(inside), np.diag(H)[some], **near)
    np.testing.assert_allclose(f.hessian(at), H, **near)
    np.testing.assert_allclose(f.hessian_diag(at), np.diag(H), **near)
    np.testing.assert_allclose(small.columns(np.array([1, 3])).predict(np.array([2.0, 3.0]))[[4, 13]], [2.0, 3.0])


def test_other_coordinates_are_zero_without_a_prediction_and_those_of_the_prediction_with_one():
    f, some = by_gradients(), np.array([2, 7])
    alone = np.zeros(20)
    alone[some] = W[some]
    assert f.columns(some).evaluate(W[some]).value == f.value(alone)
    assert f.columns(some).evaluate(W[some], W).value == f.value(W)
    np.testing.assert_array_equal(f.columns(some).evaluate(W[some], W).gradient, f.evaluate(W).gradient[some])


@pytest.mark.slow
@MAKERS
def test_the_default_finds_what_it_finds_for_the_linear_model(make):
    expected = ht.minimize(POISSON, Sparsity(2))
    found = ht.minimize(make(), Sparsity(2))
    shift = POISSON.value(expected.w) - make().value(expected.w)  # without the terms of the targets alone
    assert found.support == expected.support
    assert found.value + shift == pytest.approx(expected.value, rel=1e-8)
    np.testing.assert_allclose(found.w, expected.w, atol=1e-4)


def test_groups_are_searched_by_the_blocks_of_the_hessian():
    groups = np.arange(20) // 4
    expected = ht.minimize(POISSON, GroupSparsity(groups, 2))
    assert ht.minimize(by_gradients(), GroupSparsity(groups, 2)).support == expected.support


def quartic(w):
    return float(np.sum(w**4)), 4 * w**3


def test_a_difference_has_two_thirds_of_the_digits():
    w, v = np.array([0.5, -2.0, 30.0]), np.array([1.0, 1e-3, -2.0])
    np.testing.assert_allclose(difference(quartic, w, v), 12 * w**2 * v, rtol=1e-9, atol=1e-6)
    assert not difference(quartic, w, 0.0 * v).any()


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_difference_stays_on_the_side_of_the_domain(side):
    def both(w):  # of w log w for positive w, or negative ones
        with np.errstate(all="ignore"):
            inside = side * w
            return float(np.sum(inside * np.log(inside))), side * (np.log(inside) + 1.0)

    w = np.array([side * 1e-7])  # nearer to the end than the first step
    assert difference(both, w, np.ones(1))[0] == pytest.approx(1e7, rel=0.02)
    assert np.isnan(difference(both, np.array([-side]), np.ones(1))[0])


def test_a_difference_at_the_end_of_the_domain_is_one_sided():
    def both(w):
        return 0.0, 3.0 * w if w[0] >= 1.0 else w + np.nan

    np.testing.assert_allclose(difference(both, np.array([1.0, 2.0]), np.array([1.0, 0.5])), [3.0, 1.5], rtol=1e-9)


def smooth_and_not():
    return {
        "squares": (lambda xp, w: xp.sum((w - 1.0) ** 2 * 3.0) + 2.0 * w[0] * w[1], True),
        "log cosh": (lambda xp, w: xp.sum(xp.log(xp.cosh(w))), False),
        "cubic": (lambda xp, w: xp.sum((w - 1.0) ** 3), False),
        "pieces": (lambda xp, w: xp.sum(xp.where(w > 0, 2.0, 1.0) * w**2), False),
        "Huber": (lambda xp, w: xp.sum(xp.where(xp.abs(w) < 1e-3, 0.5 * w**2, 1e-3 * xp.abs(w))), False),
        "size": (lambda xp, w: (xp.sum(xp.abs(w)) - 1.0) ** 2, False),
        "domain": (lambda xp, w: xp.sum(w**2) - xp.sum(xp.log(w)), False),
        "off a line": (lambda xp, w: xp.sum(xp.where((2.0 * w[0] - w[1]) ** 2 > 0.01, 3.0, 1.0) * w**2), False),
        "linear": (lambda xp, w: xp.sum(2.0 * w), False),
    }


@slow_beyond(10)
@pytest.mark.parametrize(("library", "name"), list(product(["jax", "torch"], smooth_and_not())))
def test_only_quadratics_have_a_constant_hessian(name, library):
    fn, quadratic = smooth_and_not()[name]
    if library == "jax":
        jnp = jax_or_skip().numpy
        f = Function.from_jax(lambda w: fn(jnp, w), 5)
    else:
        torch = torch_or_skip()
        f = Function.from_torch(lambda w: fn(torch, w), 5)
    assert f.traits.quadratic is quadratic
    assert not Function(quartic, 5, True).traits.quadratic


@pytest.mark.slow
def test_what_a_program_of_jax_does_within_calls_and_loops_is_seen():
    """On the lines of the first trial every one of these is a quadratic; only the first is one elsewhere."""
    jax = jax_or_skip()
    jnp, basis = jax.numpy, np.linalg.qr(np.random.default_rng(1).standard_normal((3, 5)).T)[0]

    def beside(w):  # zero on the lines
        return w - basis @ (basis.T @ w)

    def quartic_by_scan(w):
        return jax.lax.scan(lambda total, r: (total + r**4, None), 0.0, beside(w))[0]

    for extra, quadratic in (
        (lambda w: jnp.sum(beside(w) ** 2), True),
        (lambda w: jnp.sum(beside(w) ** 4), False),
        (jax.jit(lambda w: jnp.sum(beside(w) ** 4)), False),
        (quartic_by_scan, False),
    ):
        f = Function.from_jax(lambda w, extra=extra: jnp.sum((w - 1.0) ** 2) + extra(w), 5)
        assert f.traits.quadratic is quadratic


@pytest.mark.slow
def test_a_function_of_jax_that_branches_on_values_is_not_compiled():
    jnp, calls = jax_or_skip().numpy, []

    def fn(w):
        calls.append(1)
        return jnp.sum(jnp.cosh(w - 1.0)) if w[0] > 0.5 else jnp.sum((w - 1.0) ** 2) + 2.0

    f = Function.from_jax(fn, 3)
    above, below = np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0, 3.0])
    assert f.value(above) == pytest.approx(np.sum(np.cosh(above - 1.0)))
    assert f.value(below) == pytest.approx(np.sum((below - 1.0) ** 2) + 2.0)
    np.testing.assert_allclose(f.hessian(f.evaluate(above)), np.diag(np.cosh(above - 1.0)))
    np.testing.assert_allclose(f.hessian(f.evaluate(below)), 2.0 * np.eye(3))


def test_compiled_functions_are_traced_once():
    jnp, calls = jax_or_skip().numpy, []

    def fn(w):
        calls.append(1)
        return jnp.sum(jnp.cosh(w - 1.0))

    f = Function.from_jax(fn, 3)
    for shift in range(5):
        f.evaluate(np.arange(3.0) + shift)
    assert len(calls) == 1


def test_many_coordinates_have_products_only():
    many = MOST_COLUMNS + 1
    f = Function(lambda w: (float(np.sum(np.cosh(w - 1.0))), np.sinh(w - 1.0)), many, True)
    assert isinstance(f, SmoothObjective)
    assert not isinstance(f, LinearObjective)
    assert ht.minimize(f, Sparsity(2, free=(4,))).converged


def test_what_is_remembered_counts_as_passes():
    meter = Meter()
    f = by_gradients().metered(meter)
    at, before = f.evaluate(W), meter.passes
    f.hessian(at)
    first, before = meter.passes - before, meter.passes
    f.hessian(at)
    assert meter.passes - before == first
