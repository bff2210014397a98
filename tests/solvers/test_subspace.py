"""Refining a point on its support, also where it is given up."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls

import hardthresh as ht
from hardthresh.constraints import Bases, Coordinates, Edges, EdgeSparsity, Rank, Sparsity
from hardthresh.core.constraint import Projection
from hardthresh.core.stationarity import norm
from hardthresh.objectives import Function, GraphicalModel, LinearModel, MatrixCompletion
from hardthresh.solvers.subspace import refine


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
