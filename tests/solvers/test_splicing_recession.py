"""Functions of any kind that fall for ever, and those whose minimum is far away."""

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.core import State, Status, Unbounded
from hardthresh.core.state import Trace
from hardthresh.core.stopping import Run
from hardthresh.objectives import Function

X = np.random.default_rng(0).standard_normal((30, 4))
SIGN = np.sign(X[:, 0])


def logistic(w):
    u = SIGN * (X @ w)
    return float(np.logaddexp(0.0, -u).mean()), -X.T @ (SIGN * np.exp(-np.logaddexp(0.0, u))) / 30.0


def exponentials(w):
    return float(np.exp(-w).sum()), -np.exp(-w)


def bell(w):
    z = w - 0.5
    return float(np.sum(1.0 / (1.0 + z * z))), -2.0 * z / (1.0 + z * z) ** 2


def hinge(w):
    """The squares of what margins lack of 1: the classes are separated, and f is 0 from some point on."""
    lack = np.maximum(1.0 - SIGN * (X @ w), 0.0)
    return float(np.mean(lack**2)), -2.0 * X.T @ (SIGN * lack) / 30.0


def shares(w):
    """Of a sum: a multiple of w has the same f."""
    total = w.sum()
    part = w / total
    variance = part @ (np.array([4.0, 1.0, 3.0, 0.5]) * part)
    return float(variance), 2.0 * (np.array([4.0, 1.0, 3.0, 0.5]) * part - variance) / total


@pytest.mark.parametrize("both", [logistic, exponentials, bell])
def test_a_function_that_falls_for_ever_has_no_minimiser(both):
    result = ht.minimize(Function(both, 4, True), Sparsity(2))
    assert result.status is Status.NO_MINIMISER
    assert not result.converged


def test_a_minimum_that_is_a_ray_or_half_a_line_is_one():
    result = ht.minimize(Function(hinge, 4, True), Sparsity(2))
    assert result.status is Status.SETTLED
    assert result.value < 1e-6
    with np.errstate(all="ignore"):
        run = ht.minimize(Function(shares, 4, True), Sparsity(2), w0=np.ones(4))
    assert run.status is Status.SETTLED
    assert run.value == pytest.approx(1.0 / (1.0 + 2.0))


def test_a_point_that_has_grown_is_not_said_to_grow_for_ever_where_f_rises_farther_on():
    """The minimum is at 10^7, and f falls towards it from 10^6."""
    t = np.array([1e7, 0.0])
    for both, ends in (
        (lambda w: (float(np.sum((w - t) ** 2)), 2.0 * (w - t)), False),
        (lambda w: (-float(w.sum()), -np.ones(2)), True),
    ):
        f = Function(both, 2, True)
        far = Sparsity(1).project(np.array([2e6, 0.0]))
        trace = Trace(null_value=f.value(np.zeros(2)), size=1.0)
        state = State(at=f.evaluate(far.point), support=far.support, trace=trace)
        verdict = Unbounded(growth=1e5).check(Run(f, Sparsity(1), state, 0.0))
        assert (verdict is not None) is ends
