"""Supports by the quadratic model at the null model, and the minimisers on a grid of supports and ridges."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

import hardthresh.solvers.model_supports
from hardthresh.constraints import GroupSparsity, RowSparsity, Sparsity
from hardthresh.losses import Cox, Huber, Multinomial, Poisson
from hardthresh.objectives import LinearModel, MultiOutputModel, OrdinalModel
from hardthresh.solvers.model_supports import model_supports, null_evaluation
from hardthresh.solvers.working_set import support_grid
from hardthresh.solvers.working_set.support_grid import refit_supports

N, D = 80, 12
RIDGES = np.array([0.02, 0.5, 0.1])
SUPPORTS = [np.array([], dtype=int), np.array([3]), np.array([3, 8]), np.array([1, 3, 8])]


def design(seed=0, n=N):
    X = np.random.default_rng(seed).standard_normal((n, D))
    X[:, 1:] += 0.5 * X[:, :-1]
    return X


def models(seed=0, **extras):
    """A model of each kind with the coordinates that are always allowed: an intercept, thresholds, or none."""
    X, rng = design(seed), np.random.default_rng((seed, 1))
    u, ones = 0.8 * (X[:, 3] - X[:, 8]), np.ones((N, 1))
    with_ones = np.hstack([X, ones])
    scores = X[:, [3, 8, 1]] + rng.gumbel(size=(N, 3))
    return {
        "cox": (LinearModel(X, Cox().example_target(u, rng), Cox(), **extras), ()),
        "efron": (LinearModel(X, Cox("efron").example_target(u, rng), Cox("efron"), **extras), ()),
        "ordinal": (
            OrdinalModel(X, np.searchsorted([-1.0, 1.0], u + rng.logistic(size=N)).astype(float), **extras),
            (D, D + 1),
        ),
        "poisson": (LinearModel(with_ones, rng.poisson(np.exp(u)), Poisson(), **extras), (D,)),
        "huber": (LinearModel(with_ones, u + rng.standard_t(2, N), Huber(0.2), **extras), (D,)),
        "multi-task": (MultiOutputModel(with_ones, np.stack([u, X[:, 1] + u**2], axis=1), **extras), (D,)),
        "multinomial": (MultiOutputModel(with_ones, scores.argmax(axis=1), Multinomial(), **extras), (D,)),
    }


def allowed(model, free, k=0):
    return Sparsity(k, free=free) if len(model.shape) == 1 else RowSparsity(k, free=free)


def with_ridge(model, free, ridge):
    l2 = np.full(model.shape[0], ridge)
    l2[list(free)] = 0.0
    return model.with_ridge(l2)


def grid(model, free, supports=SUPPORTS, ridges=RIDGES):
    null = null_evaluation(model, allowed(model, free)).point
    every = [np.union1d(support, np.array(free, dtype=int)).astype(int) for support in supports]
    return every, *refit_supports(model, null, free, every, [support.size for support in supports], ridges)


@pytest.mark.parametrize("kind", models())
@pytest.mark.parametrize("storage", ["plain", "weighted", "entries"])
def test_each_fit_of_the_grid_is_minimal_on_its_support(kind, storage, monkeypatch):
    """The gradient is 0 on the support, as the definition asks, and points are 0 elsewhere."""
    weights = None if storage == "plain" else np.random.default_rng(2).uniform(0.5, 2.0, N)
    if storage == "entries":
        monkeypatch.setattr(support_grid, "ENTRIES", N * 4)
    model, free = models(sample_weight=weights)[kind]
    every, points, unconverged = grid(model, free)
    assert points.shape == (len(SUPPORTS), RIDGES.size, *model.shape)
    assert unconverged == []
    for support, row in zip(every, points, strict=True):
        for ridge, point in zip(RIDGES, row, strict=True):
            gradient = with_ridge(model, free, ridge).evaluate(point).gradient
            assert_allclose(gradient[support], 0.0, atol=2e-5)
            outside = np.setdiff1d(np.arange(model.shape[0]), support)
            assert_array_equal(point[outside], 0.0)


def test_classes_have_coefficients_that_add_up_to_nothing():
    model, free = models()["multinomial"]
    assert_allclose(grid(model, free)[1].sum(axis=-1), 0.0, atol=1e-12)


def test_sparse_data_have_the_same_fits():
    X, rng = design(), np.random.default_rng(3)
    y = Cox().example_target(X[:, 3], rng)
    dense, sparse = (grid(LinearModel(storage(X), y, Cox()), ())[1] for storage in (np.asarray, sp.csc_array))
    assert_allclose(dense, sparse, atol=1e-8)


def test_a_fit_is_minimal_where_most_losses_have_no_curvature():
    """Against least absolute residuals, whose value is between that of the loss over delta and delta / 2 more."""
    X, rng, delta = np.hstack([design(n=40), np.ones((40, 1))]), np.random.default_rng(0), 0.05
    y = X[:, 3] + rng.standard_cauchy(40)
    model = LinearModel(X, y, Huber(delta))
    every, points, unconverged = grid(model, (D,), ridges=np.array([0.0]))
    assert unconverged == []
    for support, (point,) in zip(every, points, strict=True):
        columns = X[:, support]
        program = linprog(
            np.r_[np.zeros(support.size), np.full(40, 1 / 40)],
            A_ub=np.block([[columns, -np.eye(40)], [-columns, -np.eye(40)]]),
            b_ub=np.r_[y, -y],
            bounds=[(None, None)] * support.size + [(0, None)] * 40,
        )
        assert program.fun - delta / 2 <= model.value(point) / delta <= program.fun


def test_what_does_not_converge_is_told():
    """Ordered classes that a column separates have no coefficients without a ridge."""
    X = design()
    model = OrdinalModel(X, np.searchsorted([-0.5, 0.5], X[:, 3]).astype(float))
    _, points, unconverged = grid(model, (D, D + 1), ridges=np.array([0.0, 0.1]))
    assert np.isfinite(points).all()
    assert "the fit of budget 1 with ridge 0 has not converged" in unconverged
    assert not any("ridge 0.1" in reason for reason in unconverged)


@pytest.mark.parametrize("kind", models())
def test_the_quadratic_model_at_the_null_model_chooses_the_supports(kind):
    """By its definition: the decrease of the second-order expansion, over all supports of a size."""
    model, free = models()[kind]
    constraint, ridge = allowed(model, free), 0.1
    ridged = with_ridge(model, free, ridge)
    null = null_evaluation(model, constraint)
    found = model_supports(model, lambda k: replace(constraint, k=k), [0, 1, 2, 3], ridge, 1e-8)
    every = np.arange(model.shape[0])
    if len(model.shape) == 1:
        hessian, gradient = ridged.hessian(null), null.gradient
    else:  # the mean of the blocks is taken for the block of each example
        block = model.output_block(null)
        gram = model.design.dense().T @ (model.weights[:, None] * model.design.dense())
        values, vectors = np.linalg.eigh(block)
        curved = values > 1e-10
        root = vectors[:, curved] * np.sqrt(values[curved])
        hessian = np.kron(gram, np.eye(curved.sum()))
        size = values[curved].mean()
        hessian += np.kron(np.diag(ridge * ~np.isin(every, free)), np.eye(curved.sum())) / size
        gradient = (null.gradient @ vectors[:, curved] / np.sqrt(values[curved])).reshape(-1)
        assert root.shape == (model.shape[1], curved.sum())
    q = gradient.size // every.size

    def decrease(support):
        rows = np.concatenate([np.arange(j * q, (j + 1) * q) for j in sorted({*support, *free})] or [[]]).astype(int)
        return 0.5 * gradient[rows] @ np.linalg.lstsq(hessian[np.ix_(rows, rows)], gradient[rows])[0]

    candidates = np.setdiff1d(every, free)
    for k, support in enumerate(found):
        best = max(decrease(choice) for choice in combinations(candidates.tolist(), k))
        assert decrease(support.tolist()) >= best * (1 - 1e-6) - 1e-12
        assert np.setdiff1d(support, free).size <= k


def test_groups_of_any_loss_are_chosen_whole():
    model, free = models()["poisson"]
    labels = [*(np.arange(D) // 2).tolist(), None]
    one, two = model_supports(model, lambda k: GroupSparsity(labels, k, free=free), [1, 2], 0.1, 1e-8)
    assert one.size == 3
    assert_array_equal(two, [2, 3, 8, 9, D])


def bounded(model, free):
    """The set with a coordinate free of bounds for each that is always allowed, and narrow ones for the others."""
    bounds = np.stack([np.full(model.shape[0], -np.inf), np.full(model.shape[0], np.inf)])
    bounds[0, :D], bounds[1, :D] = -0.1, 0.3
    return Sparsity(0, free=free, lower=bounds[0], upper=bounds[1]), bounds


def slopes_within(model, point, bounds):
    """The gradient, with 0 where a coefficient is at a bound and f falls only beyond it."""
    gradient = model.evaluate(point).gradient
    gradient[(point == bounds[0]) & (gradient > 0) | (point == bounds[1]) & (gradient < 0)] = 0.0
    return gradient


@pytest.mark.parametrize("kind", ["cox", "ordinal", "poisson"])
def test_each_fit_is_minimal_within_bounds(kind):
    """Where a coefficient is at a bound, f falls only beyond it; 5 and 6 are beyond the first checkpoint."""
    model, free = models()[kind]
    constraint, bounds = bounded(model, free)
    null = null_evaluation(model, constraint)
    supports = model_supports(model, lambda k: replace(constraint, k=k), range(7), 0.1, 1e-8)
    assert_array_equal([len(support) - len(free) for support in supports], range(7))
    points, unconverged = refit_supports(model, null.point, free, supports, range(7), RIDGES, bounds)
    assert unconverged == []
    assert (points == bounds[0]).any()
    assert (points == bounds[1]).any()
    for support, row in zip(supports, points, strict=True):
        for ridge, point in zip(RIDGES, row, strict=True):
            slopes = slopes_within(with_ridge(model, free, ridge), point, bounds)
            assert_allclose(slopes[support], 0.0, atol=2e-5)


@pytest.mark.parametrize("kind", ["cox", "ordinal", "poisson"])
def test_beyond_a_checkpoint_the_model_is_taken_within_the_bounds(kind, monkeypatch):
    """At the minimiser of f within the bounds on what was chosen for 4, where some coefficients are at a bound."""
    points = []
    of = hardthresh.solvers.model_supports._quadratic_model
    monkeypatch.setattr(
        "hardthresh.solvers.model_supports._quadratic_model",
        lambda f, null, at: points.append(at.point) or of(f, null, at),
    )
    model, free = models()[kind]
    constraint, bounds = bounded(model, free)
    supports = model_supports(model, lambda k: replace(constraint, k=k), [4, 6], 0.1, 1e-8)
    _, point = points
    assert ((bounds[0] <= point) & (point <= bounds[1])).all()
    assert np.any((point == bounds[0]) | (point == bounds[1]))
    assert_allclose(slopes_within(with_ridge(model, free, 0.1), point, bounds)[supports[0]], 0.0, atol=2e-5)


@pytest.mark.parametrize("kind", ["cox", "multinomial"])
def test_beyond_a_checkpoint_the_model_is_that_of_what_was_chosen_before(kind, monkeypatch):
    """With the checkpoint at 1, the second column is the best one by the model at the minimiser on the first."""
    monkeypatch.setattr("hardthresh.solvers.model_supports.next_checkpoint", lambda size: size + 1)
    points = []
    of = hardthresh.solvers.model_supports._quadratic_model
    monkeypatch.setattr(
        "hardthresh.solvers.model_supports._quadratic_model",
        lambda f, null, at: points.append(at.point) or of(f, null, at),
    )
    model, free = models()[kind]
    found = model_supports(model, lambda k: allowed(model, free, k), [0, 2, 3], 0.1, 1e-8)
    assert len(points) == 3
    assert [np.setdiff1d(support, free).size for support in found] == [0, 2, 3]
    assert_array_equal(np.flatnonzero(np.reshape(points[2] != 0, (model.shape[0], -1)).any(axis=1)), found[1])
    ridged = with_ridge(model, free, 0.1)
    for point, support in zip(
        points[1:], [np.flatnonzero(np.reshape(points[1] != 0, (len(points[1]), -1)).any(1)), found[1]], strict=True
    ):
        assert_allclose(ridged.evaluate(point).gradient[support], 0.0, atol=2e-5)
