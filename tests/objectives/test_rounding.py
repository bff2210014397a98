"""How much of a value may be rounding: of the size of what is summed, not of the sum."""

import numpy as np
import pytest

from hardthresh.core.objective import value_rounding
from hardthresh.objectives import (
    Function,
    GraphicalModel,
    LinearModel,
    MatrixCompletion,
    MatrixRegression,
    MultiOutputModel,
)

N, D = 200, 30


def problems(rng):
    """Objectives as functions of the order of their examples, and points where their values are small."""
    X, w = rng.standard_normal((N, D)), rng.standard_normal(D)
    u = X @ w + 1e4
    intercept = np.column_stack([X, np.ones(N)])
    wide = np.append(w, 1e4)
    Y = X @ np.outer(w, [1.0, -2.0])
    rows, cols = np.divmod(rng.permutation(600)[:N], 30)
    W = np.outer(w[:20], w)
    return {
        "squared": (lambda o: LinearModel(intercept[o], u[o]), wide),
        "squared, weighted, with an offset": (
            lambda o: LinearModel(X[o], u[o], offset=np.full(N, 1e4), sample_weight=np.arange(1.0, N + 1)[o]),
            w,
        ),
        "logistic": (lambda o: LinearModel(30.0 * X[o], (X @ w > 0)[o], "logistic"), w),
        "poisson": (lambda o: LinearModel(intercept[o], np.exp(X @ w + 20.0)[o], "poisson"), np.append(w, 20.0)),
        "outputs": (lambda o: MultiOutputModel(X[o], Y[o]), np.outer(w, [1.0, -2.0])),
        "matrices": (lambda o: MatrixRegression(X[o].reshape(N, 5, 6), (X @ w)[o]), w.reshape(5, 6)),
        "entries": (lambda o: MatrixCompletion(rows[o], cols[o], W[rows, cols][o], shape=(20, 30)), W),
        "graph": (lambda o: GraphicalModel(X[o]), np.eye(D)),
    }


@pytest.mark.parametrize("kind", problems(np.random.default_rng(0)))
def test_values_in_another_order_differ_by_no_more_than_rounding(kind):
    make, truth = problems(np.random.default_rng(0))[kind]
    for near in (0.0, 1e-9, 1e-5):
        point = truth * (1.0 + near)
        values = []
        for seed in range(10):
            f = make(np.random.default_rng(seed).permutation(N))
            at = f.evaluate(point)
            values.append(at.value)
            rounding = value_rounding(f, at)
        start = f.value(f.null_point())
        assert np.ptp(values) <= rounding
        assert rounding <= 1e-11 * abs(start)


def test_rounding_of_a_function_that_says_nothing_is_relative_to_its_value():
    f = Function(lambda w: np.sum(w * w), 2, lambda w: 2.0 * w)
    at = f.evaluate(np.array([3.0, 4.0]))
    assert value_rounding(f, at) == 16 * np.finfo(float).eps * 25.0


def test_rounding_is_that_of_the_precision():
    X = np.random.default_rng(0).standard_normal((50, 3))
    single, double = (
        value_rounding(f, f.evaluate(f.zeros()))
        for f in (LinearModel(X.astype("f4"), X[:, 0]), LinearModel(X, X[:, 0]))
    )
    assert single == pytest.approx(double * np.finfo("f4").eps / np.finfo("f8").eps, rel=1e-3)
