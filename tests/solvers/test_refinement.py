"""Refining a point on its support, also where it is given up."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls

import hardthresh as ht
from hardthresh.constraints import Bases, Coordinates, Edges, EdgeSparsity, Rank, Sparsity
from hardthresh.core.constraint import Projection
from hardthresh.core.stationarity import norm
from hardthresh.estimators.linear.pinball_vertices import minimise_pinball
from hardthresh.losses import Huber
from hardthresh.objectives import Function, GraphicalModel, LinearModel, MatrixCompletion
from hardthresh.solvers.refinement import polish, refine
from hardthresh.steps.line_search import Candidate
from levels import at_most


def start(seed, scale):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 12))
    X[:, 6:] = X[:, :6] + 0.3 * X[:, 6:]
    y = (X @ rng.standard_normal(12) + rng.logistic(size=80) > 0).astype(float)
    support = np.sort(rng.permutation(12)[:5])
    w = np.zeros(12)
    w[support] = scale * rng.standard_normal(5)
    return LinearModel(X, y, loss="logistic", l2=1e-3), Projection(w, Coordinates(support))


@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(10))
def test_what_is_given_up_would_not_have_come_below(seed, scale):
    objective, projection = start(seed, scale)
    full = refine(objective, Sparsity(5), projection, cg_iterations=0, rounds=50)
    assert full.minimal
    assert not full.abandoned
    for share in (0.5, 0.9, 0.99, 0.999, 1.001, 1.1):
        asked = share * full.value
        found = refine(objective, Sparsity(5), projection, cg_iterations=0, rounds=50, below=asked)
        if found.abandoned:
            assert full.value > asked
        else:
            np.testing.assert_allclose(found.value, full.value, rtol=1e-9)


@pytest.mark.parametrize("delta", [0.3, 0.05, 0.01])
@pytest.mark.parametrize("seed", range(4))
def test_the_minimum_is_reached_where_few_losses_have_curvature(delta, seed):
    """It is at most f where the sum of absolute residuals is least, to which it is close for a small delta."""
    rng = np.random.default_rng(seed)
    X, weights = rng.standard_normal((30, 5)), np.full(30, 1 / 30)
    y = 3 * X[:, 0] + rng.standard_cauchy(30)
    objective = LinearModel(X, y, loss=Huber(delta))
    assert np.count_nonzero(objective.loss.curvature(y, np.zeros(30))) < 5
    found = refine(
        objective, Sparsity(5), Projection(np.zeros(5), Coordinates(np.arange(5))), cg_iterations=0, rounds=50
    )
    least = minimise_pinball(X, y, weights, 0.5, np.zeros(5), np.zeros(5)).point
    assert found.minimal
    assert found.value <= objective.value(least)
    assert norm(objective.evaluate(found.projection.point).gradient) < 1e-12


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_the_minimum_is_known_to_all_digits(loss):
    """f says where it is to half of them: a last step that rises by rounding is taken all the same."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, count = rng.standard_normal((30, 3)), rng.integers(1, 4, 30)
        y = (X[:, 0] + rng.logistic(size=30) > 0).astype(float)
        objective = LinearModel(X, y, loss=loss, sample_weight=count)
        found = refine(
            objective, Sparsity(3), Projection(np.zeros(3), Coordinates(np.arange(3))), cg_iterations=0, rounds=50
        )
        assert norm(objective.evaluate(found.projection.point).gradient) < 1e-13


@pytest.mark.parametrize("seed", range(10))
def test_polishing_finds_the_digits_that_f_does_not_have(seed):
    """From so near that all f are equal; `refine`, which never raises f, may stay there."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 3))
    objective = LinearModel(X, (X[:, 0] + rng.logistic(size=30) > 0).astype(float), loss="logistic")
    support = Coordinates(np.arange(3))
    exact = refine(objective, Sparsity(3), Projection(np.zeros(3), support), cg_iterations=0, rounds=50)
    near = exact.projection.point + 3e-9 * rng.standard_normal(3)
    found = polish(objective, Sparsity(3), Candidate(Projection(near, support), np.nan, objective.value(near), None))
    np.testing.assert_allclose(found.projection.point, exact.projection.point, rtol=0, atol=1e-13)
    assert found.value == objective.value(found.projection.point)
    again = polish(objective, Sparsity(3), found)
    np.testing.assert_allclose(again.projection.point, found.projection.point, rtol=0, atol=1e-14)


def test_it_is_given_up_early_where_there_is_no_hope():
    objective, projection = start(0, 0.0)
    found = refine(objective, Sparsity(5), projection, cg_iterations=0, rounds=50, below=0.0)
    assert found.abandoned
    assert not found.minimal
    one = refine(objective, Sparsity(5), projection, cg_iterations=0, rounds=1)
    np.testing.assert_array_equal(found.projection.point, one.projection.point)


def test_it_is_not_given_up_where_curvature_shrinks_along_the_way():
    """One pair of examples in another unit hides how far the others still have to go."""
    X = np.append(np.ones(1000), [100.0, 100.0])[:, None]
    y = np.append(np.ones(1001), 0.0)
    objective = LinearModel(X, y, loss="logistic", l2=1e-6)
    projection = Projection(np.zeros(1), Coordinates(np.array([0])))
    full = refine(objective, Sparsity(1), projection, cg_iterations=0, rounds=100)
    for share in (0.01, 0.1, 0.5, 0.9):
        asked = full.value + share * (objective.value(np.zeros(1)) - full.value)
        found = refine(objective, Sparsity(1), projection, cg_iterations=0, rounds=100, below=asked)
        assert not found.abandoned
        assert found.value < asked


@pytest.mark.slow
@pytest.mark.parametrize("standardize", [False, True])
def test_coefficients_of_copies_have_the_size_of_the_answer(standardize):
    """Along the difference of two copies f is constant, and its curvature is rounding: no step is worth taking."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((12, 2))[:, [0, 0, 1, 1, 1]]
        y = X @ rng.standard_normal(5) + 0.1 * rng.standard_normal(12)
        model = ht.SparseLinearRegression(n_nonzero_coefs=3, solver="pursuit", standardize=standardize).fit(X, y)
        assert np.abs(model.coef_).max() < 10.0
        assert model.converged_


class Counting:
    """An objective that counts the products with its Hessian."""

    products = 0

    def curvature(self, at, direction):
        type(self).products += 1
        return super().curvature(at, direction)


class Counted(Counting, GraphicalModel):
    pass


class CountedCompletion(Counting, MatrixCompletion):
    pass


@pytest.mark.parametrize("decades", [0.0, 3.0])
def test_an_ill_conditioned_graph_is_solved_in_few_products(decades):
    """By two per free entry and step at most, where conjugate gradients alone would take a thousand per step."""
    X = np.random.default_rng(0).standard_normal((30, 10)) * 10.0 ** np.linspace(0, decades, 10)
    objective, constraint = Counted(X, l2=0.1), EdgeSparsity(100)
    Counted.products = 0
    start = constraint.project(objective.null_point())
    found = refine(objective, constraint, replace(start, support=Edges(np.arange(100))), cg_iterations=0, rounds=25)
    assert found.minimal
    assert Counted.products <= 25 * 2 * 55
    reached = objective.evaluate(found.projection.point)
    assert norm(reached.gradient) <= 1e-5 * norm(objective.evaluate(objective.null_point()).gradient)
    assert (found.projection.point == found.projection.point.T).all()


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("storage", ["dense", "factored"])
def test_an_ill_conditioned_completion_takes_few_products(storage):
    """In exact arithmetic conjugate gradients end after as many products as a tangent space has dimensions."""
    rng = np.random.default_rng(0)
    places = rng.permutation(70)[:37]
    y, weights = rng.poisson(2.0, 37).astype(float), 10.0 ** rng.uniform(-12, 12, 37)
    objective = CountedCompletion(
        places // 10, places % 10, y, shape=(7, 10), loss="poisson", sample_weight=weights, storage=storage
    )
    constraint, rounds = Rank(2), 25
    first = constraint.project(-objective.evaluate(objective.zeros()).gradient)
    CountedCompletion.products = 0
    found = refine(objective, constraint, first, cg_iterations=0, rounds=rounds)
    assert found.value < objective.value(first.point)
    assert CountedCompletion.products <= rounds * 2 * first.support.degrees_of_freedom


def test_a_step_on_a_bounded_face_keeps_to_it():
    """The coordinates at a bound stay there, whichever way the system is solved."""
    d = 6
    A = np.vander(np.linspace(0.1, 1.0, 12), d)

    def value(w):
        return 0.5 * float(np.sum((A @ w - 1.0) ** 2))

    f = Function(value, d, lambda w: A.T @ (A @ w - 1.0), curvature=lambda w, v: A.T @ (A @ v))
    constraint = Sparsity(d, lower=0.0)
    found = refine(f, constraint, constraint.project(np.full(d, 0.1)), cg_iterations=0, rounds=50)
    best, _ = nnls(A, np.ones(12))
    assert (found.projection.point >= 0.0).all()
    assert found.value <= f.value(best) + 1e-10


def test_a_saturated_column_is_searched_along_from_zero():
    """At zero the loss has curvature along the first column only, and nearly all of the gradient on the second."""
    X, y, offset = (
        np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
        np.array([1.0, 0.0, 1.0]),
        np.array([1e-9, 0.0, -800.0]),
    )
    f = LinearModel(X, y, loss="logistic", offset=offset)
    start = Projection(np.zeros(2), Coordinates(np.arange(2)))
    found = refine(f, Sparsity(2), start, cg_iterations=0, rounds=25, tol=1e-11)
    assert found.value < 0.47


def test_a_set_that_does_not_know_the_dimension_of_its_supports_will_do():
    class UnknownBases(Bases):
        @property
        def degrees_of_freedom(self):
            raise NotImplementedError

    class Unknown(Rank):
        def project(self, z, start=None):
            projection = super().project(z, start)
            support = projection.support
            return replace(projection, support=UnknownBases(support.left, support.right, support.values))

    A, y = np.random.default_rng(0).standard_normal((30, 4, 5)), np.arange(30.0)
    f = ht.objectives.MatrixRegression(A, y)
    found, known = (ht.minimize(f, of(1), ht.solvers.HardThresholdingPursuit()) for of in (Unknown, Rank))
    assert found.value <= known.value * (1 + 1e-6)
