"""Restricted constants against the enumeration of all supports: never on the wrong side, and not far off."""

from itertools import combinations, combinations_with_replacement
from math import inf

import numpy as np
import pytest
from papers.sparse_polyak._data import ar1_problem
from scipy.sparse.linalg import aslinearoperator

from hardthresh.constraints import EdgeSparsity, Rank, Sparsity
from hardthresh.core import BaseObjective, CapabilityError, Evaluation, InvalidInputError
from hardthresh.diagnostics import RestrictedCondition, restricted_condition
from hardthresh.objectives import GraphicalModel, LinearModel, MatrixRegression
from levels import at_most

ROUNDING = 1 + 1e-9


def enumerated(objective, budget, w=None, free=()):
    """The smallest and the largest eigenvalue of the Hessian over all supports of a size: slow and obviously right."""
    hessian = objective.hessian(objective.evaluate(objective.zeros() if w is None else w))
    others = [j for j in range(hessian.shape[0]) if j not in free]
    values = []
    for chosen in combinations(others, min(budget, len(others))):
        support = [*free, *chosen]
        values.append(np.linalg.eigvalsh(hessian[np.ix_(support, support)])[[0, -1]])
    return min(v[0] for v in values), max(v[1] for v in values)


def ar1(seed, n=30, **settings):
    drawn = ar1_problem(10, 2, 2, n_samples=n, correlation=(0.0, 0.5, 0.9)[seed % 3], seed=seed, **settings)
    return drawn.X, drawn.y


class Saddle(BaseObjective):
    """Half of w' H w for a diagonal H with one negative entry."""

    shape, diagonal = (6,), np.array([3.0, 1.0, -2.0, 0.5, 1.0, 2.0])

    def evaluate(self, w, prediction=None):
        return Evaluation(w, 0.5 * float(self.diagonal @ (w * w)), self.diagonal * w)

    def curvature(self, at, direction):
        return self.diagonal * direction


def test_a_curvature_below_zero_is_said_to_be():
    found = restricted_condition(Saddle(), Sparsity(1), np.ones(6))
    assert found.smoothness == pytest.approx(3.0)
    assert found.strong_convexity == pytest.approx(-2.0)


@pytest.mark.slow
@at_most(4)
@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_against_all_supports(seed, k):
    X, y = ar1(seed)
    objective = LinearModel(X, y)
    least, most = enumerated(objective, 2 * k)
    found = restricted_condition(objective, Sparsity(k))
    assert 0.99 * most <= found.smoothness <= most * ROUNDING
    assert least / ROUNDING <= found.strong_convexity <= 1.5 * least
    assert found.condition == found.smoothness / found.strong_convexity <= most / least * ROUNDING**2


@pytest.mark.slow
@at_most(4)
@pytest.mark.parametrize("seed", range(6))
def test_nearly_collinear_columns(seed):
    X, y = ar1(seed, n=12)
    objective = LinearModel(X, y)
    least, most = enumerated(objective, 6)
    found = restricted_condition(objective, Sparsity(3))
    assert 0.99 * most <= found.smoothness <= most * ROUNDING
    assert least / ROUNDING <= found.strong_convexity <= 2.5 * least


@pytest.mark.slow
@at_most(5)
@pytest.mark.parametrize("seed", range(6))
def test_an_operator_without_columns(seed):
    X, y = ar1(seed)
    least, most = enumerated(LinearModel(X, y), 4)
    found = restricted_condition(LinearModel(aslinearoperator(X), y), Sparsity(2))
    assert 0.9 * most <= found.smoothness <= most * ROUNDING
    assert least / ROUNDING <= found.strong_convexity <= 1.5 * least


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1, 1.5, 3])
def test_the_factor_multiplies_the_budget(factor):
    X, y = ar1(4)
    objective = LinearModel(X, y)
    least, most = enumerated(objective, int(2 * factor))
    found = restricted_condition(objective, Sparsity(2), factor=factor)
    np.testing.assert_allclose([found.smoothness, found.strong_convexity], [most, least], rtol=0.1)


def test_weights_and_ridge():
    X, y = ar1(1)
    weights = np.arange(30) % 3.0
    objective = LinearModel(X, y, sample_weight=weights, l2=0.3)
    least, most = enumerated(objective, 4)
    found = restricted_condition(objective, Sparsity(2))
    assert found.strong_convexity >= 0.3
    np.testing.assert_allclose([found.smoothness, found.strong_convexity], [most, least], rtol=0.1)
    repeated = LinearModel(np.repeat(X, weights.astype(int), axis=0), np.repeat(y, weights.astype(int)), l2=0.3)
    assert restricted_condition(repeated, Sparsity(2)).condition == pytest.approx(found.condition)


def test_the_ridge_bounds_the_strong_convexity_where_columns_are_equal():
    X, y = ar1(1)
    X[:, 5] = X[:, 2]
    assert restricted_condition(LinearModel(X, y), Sparsity(2)).condition == inf
    assert restricted_condition(LinearModel(X, y, l2=0.2), Sparsity(2)).strong_convexity == pytest.approx(0.2)


def test_two_equal_columns_of_many_are_found():
    X = np.random.default_rng(0).standard_normal((200, 1000))
    X[:, 700] = X[:, 123]
    found = restricted_condition(LinearModel(X, X[:, 0]), Sparsity(2), trials=1)
    assert (found.strong_convexity, found.condition) == (0.0, inf)


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_logistic_at_a_point(seed):
    X, y = ar1(seed, model="logistic")
    objective = LinearModel(X, y, loss="logistic")
    w = np.zeros(10)
    w[[2, 7]] = 1.0, -2.0
    least, most = enumerated(objective, 4, w)
    found = restricted_condition(objective, Sparsity(2), w)
    assert 0.99 * most <= found.smoothness <= most * ROUNDING
    assert least / ROUNDING <= found.strong_convexity <= 1.5 * least
    assert found.smoothness < restricted_condition(objective, Sparsity(2)).smoothness  # flatter away from zero


def test_the_default_point_is_the_null_model():
    """A graphical model is infinite at zero; its null model is the diagonal one."""
    f = GraphicalModel(np.random.default_rng(0).standard_normal((200, 6)))
    found = restricted_condition(f, EdgeSparsity(12), trials=3)
    assert found == restricted_condition(f, EdgeSparsity(12), f.null_point(), trials=3)
    at = f.evaluate(f.null_point())
    basis = [np.outer(a, b) + np.outer(b, a) for a, b in combinations_with_replacement(np.eye(6), 2)]
    basis = [v / np.linalg.norm(v) for v in basis]
    values = np.linalg.eigvalsh([[np.sum(u * f.curvature(at, v)) for u in basis] for v in basis])
    assert values[0] / ROUNDING <= found.strong_convexity
    assert found.smoothness <= values[-1] * ROUNDING
    assert 1.0 < found.condition < inf


def test_free_coordinates_and_bounds():
    X, y = ar1(2)
    objective = LinearModel(X, y)
    least, most = enumerated(objective, 4, free=(0, 9))
    found = restricted_condition(objective, Sparsity(2, free=(0, 9), lower=0.0))
    assert 0.99 * most <= found.smoothness <= most * ROUNDING
    assert least / ROUNDING <= found.strong_convexity <= 1.5 * least


@pytest.mark.slow
def test_matrices_of_low_rank():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 4, 4)) * np.linspace(0.5, 2, 4)
    objective = MatrixRegression(A, rng.standard_normal(60))
    values = np.linalg.eigvalsh(A.reshape(60, 16).T @ A.reshape(60, 16) / 60)
    every = restricted_condition(objective, Rank(2))  # twice the rank is every matrix
    np.testing.assert_allclose([every.smoothness, every.strong_convexity], values[[-1, 0]], rtol=0.2)
    one = restricted_condition(objective, Rank(1), factor=1)
    assert values[0] / ROUNDING <= every.strong_convexity <= one.strong_convexity
    assert one.smoothness <= every.smoothness * ROUNDING <= values[-1] * ROUNDING**2
    # many matrices of rank one come close to the best, and none is better
    u, v = rng.standard_normal((2, 20000, 4))
    curvatures = (
        np.mean(np.einsum("ti,nij,tj->tn", u, A, v) ** 2, axis=1) / np.sum(u * u, axis=1) / np.sum(v * v, axis=1)
    )
    assert one.strong_convexity <= 1.1 * np.min(curvatures)
    assert one.smoothness >= 0.9 * np.max(curvatures)


def test_supports_too_large_for_their_eigenvalues(monkeypatch):
    X, y = ar1(0)
    objective = LinearModel(X, y)
    least, most = enumerated(objective, 4)
    monkeypatch.setattr("hardthresh.diagnostics.restricted._DIRECT", 1)
    found = restricted_condition(objective, Sparsity(2))
    assert 0.9 * most <= found.smoothness <= most * ROUNDING
    assert least / ROUNDING <= found.strong_convexity <= 1.5 * least


def test_the_same_seed_gives_the_same_answer():
    X, y = ar1(0)
    objective = LinearModel(X, y)
    assert restricted_condition(objective, Sparsity(2), seed=3) == restricted_condition(objective, Sparsity(2), seed=3)


def test_float32_stays():
    X, y = ar1(0)
    single = restricted_condition(LinearModel(X.astype(np.float32), y.astype(np.float32)), Sparsity(2))
    assert single.condition == pytest.approx(restricted_condition(LinearModel(X, y), Sparsity(2)).condition, rel=1e-3)


def test_equal_curvature_in_all_directions():
    found = restricted_condition(LinearModel(2 * np.eye(4), np.zeros(4)), Sparsity(2))
    assert (found.smoothness, found.strong_convexity) == pytest.approx((1.0, 1.0))
    flat = restricted_condition(LinearModel(np.zeros((3, 4)), np.ones(3)), Sparsity(2))
    assert (flat.smoothness, flat.strong_convexity, flat.condition) == (0.0, 0.0, inf)
    assert restricted_condition(LinearModel(np.full((3, 1), 2.0), np.ones(3)), Sparsity(1)).condition == 1.0


def test_it_prints_as_a_sentence():
    text = str(RestrictedCondition(4.0, 0.5, 20))
    assert "at least 4," in text
    assert "at most 0.5" in text
    assert "condition number at least 8 " in text


class Linear(BaseObjective):
    """A function with a gradient and no curvature."""

    shape = (3,)


def test_an_objective_without_curvature_is_refused():
    with pytest.raises(CapabilityError, match="restricted_condition needs curvature"):
        restricted_condition(Linear(), Sparsity(1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trials": 0}, "trials must be >= 1, got 0"),
        ({"trials": 2.5}, "trials must be an integer"),
        ({"factor": 0.5}, "factor must be a finite number >= 1"),
        ({"factor": inf}, "factor must be a finite number >= 1"),
        ({"factor": float("nan")}, "factor must be a finite number >= 1"),
        ({"factor": "a"}, "factor must be a finite number >= 1, got 'a'"),
        ({"seed": -1}, "seed must be >= 0, got -1"),
        ({"seed": None}, "seed must be an integer, got None"),
        ({"w": np.zeros(3)}, "w has shape"),
        ({"w": np.full(10, np.nan)}, "w contains NaN"),
        ({"constraint": Sparsity(0)}, "leaves no direction"),
        ({"constraint": Rank(1)}, "matrices"),
    ],
)
def test_bad_arguments_are_refused(settings, message):
    X, y = ar1(0)
    with pytest.raises(InvalidInputError, match=message):
        restricted_condition(LinearModel(X, y), **{"constraint": Sparsity(2), **settings})
