"""Cross-validation over tables in blocks for losses that are not squared: that in memory with the same folds.

Checks 3 and 4 of scale.md, for every loss of one number for each row that has no kink.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from folds_of_blocks import assert_same, bits, both
from hardthresh import (
    SparseGammaRegressionCV,
    SparseHuberRegression,
    SparseHuberRegressionCV,
    SparseLinearSVCCV,
    SparseLogisticRegressionCV,
    SparseNegativeBinomialRegressionCV,
    SparseOrdinalRegressionCV,
    SparsePoissonRegressionCV,
    SparseQuantileRegressionCV,
    SparseTweedieRegressionCV,
)
from hardthresh.core import CapabilityError, InvalidInputError
from hardthresh.core.constraint import CoordinateBudget
from hardthresh.designs import Serial, Threads, from_arrays
from hardthresh.losses import Gamma, Huber, Logistic, NegativeBinomial, Poisson, SquaredHinge, Tweedie
from hardthresh.objectives import blocked_model
from hardthresh.objectives.block_folds import BlockFolds
from hardthresh.objectives.block_rows import Point
from hardthresh.objectives.guess import simple_guess, some_rows
from hardthresh.objectives.readings import roots_of, weighted_gram
from hardthresh.objectives.working_readings import (
    Approximations,
    largest_curvatures,
    working_moments,
    working_products,
    working_residuals,
)
from hardthresh.solvers.working_set.blocked_refits import BlockedRefits
from hardthresh.solvers.working_set.reweighted_folds import ReweightedFolds
from levels import at_most, only_at, reaches

N, D = 1500, 24
LOSSES = {
    "poisson": (SparsePoissonRegressionCV(), Poisson()),
    "gamma": (SparseGammaRegressionCV(), Gamma()),
    "tweedie": (SparseTweedieRegressionCV(power=1.5), Tweedie(1.5)),
    "negative binomial": (SparseNegativeBinomialRegressionCV(dispersion=0.5), NegativeBinomial(2.0)),
    "huber": (SparseHuberRegressionCV(delta=1.0), Huber(1.0)),
    "logistic": (SparseLogisticRegressionCV(), Logistic()),
    "svc": (SparseLinearSVCCV(), SquaredHinge()),
}
SETTINGS = {
    "default": {},
    "offset": {},
    "always": {"always_include": [0, 11]},
    "positive": {"positive": True},
    "bounds": {"bounds": (-0.3, 0.3)},
    "no intercept": {"fit_intercept": False},
    "no scale": {"standardize": False},
    "default ridges": {"alphas": "auto"},
}


def table(loss, seed=0, n=N, d=D, size=1.0, with_offset=False):
    """Columns far from zero, targets of four of them, weights of which some are 0, an offset and folds."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 1:] += 0.5 * X[:, :-1]
    u = size * X[:, np.array([3, 10, 15, 20]) % d] @ [0.5, -0.5, 0.4, -0.4] + 0.3
    offset = rng.standard_normal(n) if with_offset else None
    y = loss.example_target(u if offset is None else u + offset, rng)
    return X + 5.0, y, rng.integers(3, size=n), rng.integers(0, 3, n).astype(float), offset


def small(model, **settings):
    return clone(model).set_params(**{"n_nonzero_coefs": [0, 1, 2, 3, 4, 6], "alphas": [0.01, 0.1], **settings})


def chosen_pairs():
    """The default for each loss, and each setting for one of them; all pairs at the level "pairs"."""
    names = list(LOSSES)
    return [
        (name, setting)
        for place, setting in enumerate(SETTINGS)
        for name in names
        if setting == "default" or reaches("pairs") or name == names[place % len(names)]
    ]


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize(("name", "setting"), chosen_pairs())
def test_it_is_that_in_memory_with_the_same_folds(name, setting):
    """Refits in memory end within about 1e-10 of the minimum, so that scores agree to some 1e-7."""
    model, loss = LOSSES[name]
    X, y, fold, weight, offset = table(loss, with_offset=setting == "offset")
    assert_same(*both(small(model, **SETTINGS[setting]), X, y, fold, weight, offset, rows=256), 3e-6)


@pytest.mark.slow
def test_classes_of_equal_weight_are_two_and_a_fold_of_one_class_is_refused():
    """The targets -1 and 1 of a hinge have the mean 0 then, which is in its domain and no class."""
    model, loss = LOSSES["svc"]
    X, y, *_ = table(loss, n=300)
    y[::2], y[1::2] = -1.0, np.where(X[1::2, 3] > 4.0, 1.0, -1.0)
    weight = np.where(y > 0, np.count_nonzero(y < 0), np.count_nonzero(y > 0)) * 1.0
    assert_same(*both(small(model), X, y, np.arange(300) // 2 % 3, weight, rows=64), 3e-6)
    alone = np.where(y > 0, 0, 1)
    with pytest.raises(InvalidInputError, match="fold 0 of cv trains on rows of one class only"):
        clone(model).fit(from_arrays(X, y, fold=alone, rows=64))


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("name", ["poisson", "negative binomial"])
def test_strong_effects_are_searched_near_the_largest_fit(name):
    """At the null model the least squares of the targets choose other columns than the loss does."""
    model, loss = LOSSES[name]
    X, y, fold, _, _ = table(loss, n=600, size=2.5)
    assert_same(*both(small(model), X, y, fold, rows=256), 3e-6)


@only_at("pairs")
@pytest.mark.parametrize("storage", ["float32", "sparse", "one block"])
def test_storage_changes_nothing(storage):
    model, loss = LOSSES["poisson"]
    X, y, fold, weight, offset = table(loss, with_offset=True)
    X = X.astype(np.float32) if storage == "float32" else X
    blocked, plain = both(small(model), X, y, fold, weight, offset, rows=N if storage == "one block" else 256)
    if storage == "sparse":
        blocked = small(model).fit(from_arrays(sp.csr_array(X), y, weight, offset, fold=fold, rows=256))
    assert_same(blocked, plain, 1e-4 if storage == "float32" else 3e-6)


@only_at("pairs")
@pytest.mark.parametrize("name", ["poisson", "huber"])
def test_bits_are_the_same_on_any_engine(name):
    model, loss = LOSSES[name]
    X, y, _, weight, offset = table(loss, with_offset=True)
    blocks = from_arrays(X, y, weight, offset, rows=128)
    model = small(model, cv=3, random_state=1)
    assert bits(clone(model).fit(Threads(blocks, 4))) == bits(clone(model).fit(Serial(blocks)))


READINGS = {
    ("poisson", False): 7,
    ("poisson", True): 8,
    ("huber", False): 6,
}


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize(("name", "with_offset"), list(READINGS))
def test_few_readings(name, with_offset):
    """Check 3 of scale.md: 6, the moments at another point and its screening are two more."""
    model, loss = LOSSES[name]
    X, y, fold, _, offset = table(loss, n=3000, d=400, with_offset=with_offset)
    found = small(model, n_nonzero_coefs=[0, 2, 4, 8, 20]).fit(from_arrays(X, y, None, offset, fold=fold, rows=512))
    assert {3, 10, 15, 20} <= set(found.support_)
    assert found.history_["readings"][-1] <= READINGS[name, with_offset]


# ------------------------------------------------------------------------------------- a slow twin of each reading


def approximations(loss, expected):
    points = tuple(Point(np.array([j]), np.array([5.0]), np.array([0.3]), 0.2) for j in (1, 3, 4))
    return Approximations(points, np.array([0, 2, -1]), np.array([0.0, 0.7, 0.1]), loss, expected)


def responses(near, i, X, y, weight, offset, fold):
    """Weights and working responses of all rows, and their linear predictors."""
    u = X[:, i + 1 + (i > 0)] * 0.3 - 1.5 + 0.2 + offset
    curvature = near.loss.curvature(near.loss.mean(u) if near.expected else y, u)
    h = np.maximum(curvature, near.floors[i])
    own = weight * (fold != near.left_out[i])
    return own * h, u - offset - near.loss.gradient(y, u) / h, curvature * (own > 0)


@pytest.mark.parametrize("expected", [True, False])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_readings_of_approximations_are_sums_over_the_rows_that_folds_train_on(expected, storage):
    X, y, fold, weight, offset = table(Gamma(), n=300, d=6, with_offset=True)
    near, folds, centre = approximations(Gamma(), expected), BlockFolds(3, labels=np.arange(3)), X.mean(axis=0)
    rows = storage(X), y, weight, offset, folds, 4, fold, near
    totals, linear, squares, crossed = working_moments(*rows, centre, None)
    columns = [np.array([0, 2]), np.array([5]), np.array([1, 3])]
    products = working_products(X, *rows[1:], columns)
    fits = [(2, Point(np.array([0]), np.array([4.0]), np.array([0.5]), 0.1)), (0, near.points[1])]
    slopes, residuals = working_residuals(*rows, fits, centre)
    (largest,) = largest_curvatures(X, *rows[1:], 6)
    for i in range(3):
        h, z, curvature = responses(near, i, X, y, weight, offset, fold)
        gap, Z = z - 0.2, X - centre
        np.testing.assert_allclose(totals[:, i], [h.sum(), h @ gap, h @ gap**2])
        np.testing.assert_allclose(linear[:, i], Z.T @ h, atol=1e-9)
        np.testing.assert_allclose(squares[:, i], (Z * Z).T @ h)
        np.testing.assert_allclose(crossed[:, i], Z.T @ (h * gap), atol=1e-9)
        some = np.column_stack([X[:, columns[i]], np.ones(len(y))])
        np.testing.assert_allclose(products[i], (some.T * h) @ some)
        assert largest[4, i] == pytest.approx(curvature.max())
        assert np.flatnonzero(largest.any(axis=1)).tolist() == [4]
    for place, (i, u) in enumerate([(2, 0.5 * X[:, 0] - 2.0 + 0.1), (0, 0.3 * X[:, 3] - 1.5 + 0.2)]):
        h, z, _ = responses(near, i, X, y, weight, offset, fold)
        np.testing.assert_allclose(slopes[place], (h * (z - u)).sum(), atol=1e-9)
        np.testing.assert_allclose(residuals[:, place], (X - centre).T @ (h * (z - u)), atol=1e-8)


def test_a_fold_whose_approximation_is_not_finite_is_left_out():
    X, y, fold, _, _ = table(Gamma(), n=300, d=6)
    engine = Serial(from_arrays(X, y, fold=fold, rows=64))
    guess = simple_guess(some_rows(engine), Gamma(), np.arange(6))
    model = blocked_model(engine, Gamma(), guess=guess, folds=BlockFolds(3, labels=np.arange(3)))
    points = np.zeros((4, 7))
    points[1, -1] = -1e200  # second derivatives of gamma targets grow as predictions fall
    settings = {"intercept": True, "standardize": True, "tol": 1e-8}
    found = ReweightedFolds(
        model, CoordinateBudget(7, 2, (6,)), points, np.array([0, 1, 2, -1]), expected=False, **settings
    )
    assert found.numbers == [0, 2, 3]


# ------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SparseNegativeBinomialRegressionCV(), "not cross-validated over blocks where it estimates dispersion; give"),
        (SparseHuberRegressionCV(), "where it estimates delta; give delta, or rows that fit into memory"),
        (SparseQuantileRegressionCV(), "SparseQuantileRegressionCV is not fitted to tables in blocks"),
        (SparseOrdinalRegressionCV(), "SparseOrdinalRegressionCV is not fitted to tables in blocks"),
    ],
    ids=lambda part: type(part).__name__ if not isinstance(part, str) else "",
)
def test_what_needs_rows_is_refused_before_a_reading(model, message):
    X, y, fold, _, _ = table(Poisson())
    engine = Serial(from_arrays(X, y, fold=fold, rows=256))
    with pytest.raises(CapabilityError, match=message):
        model.fit(engine)
    assert engine.readings == 0


def test_a_fold_that_trains_on_zeros_is_refused():
    X, y, _, _, _ = table(Poisson())
    with pytest.raises(InvalidInputError, match="fold 1 of cv trains on targets of 0 only"):
        small(SparsePoissonRegressionCV()).fit(from_arrays(X, y * (y > 1), fold=(y > 1).astype(int), rows=256))


def test_huber_regression_over_blocks_is_that_in_memory():
    X, y, _, weight, _ = table(Huber(1.0))
    model = SparseHuberRegression(n_nonzero_coefs=4, delta=1.0)
    blocked, plain = clone(model).fit(from_arrays(X, y, weight, rows=256)), clone(model).fit(X, y, weight)
    np.testing.assert_array_equal(blocked.support_, plain.support_)
    np.testing.assert_allclose(blocked.coef_, plain.coef_, atol=1e-6)
    assert blocked.noise_scale_ == plain.noise_scale_
    assert not hasattr(blocked, "outliers_")
    assert blocked.score(from_arrays(X, y, weight, rows=256)) == pytest.approx(plain.score(X, y, weight))


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize(
    ("name", "sweeps", "hessians"), [("poisson", 3.6, 2.5), ("logistic", 2.8, 1.8), ("huber", 3.6, 2.5)]
)
def test_refits_share_what_they_can(name, sweeps, hessians, monkeypatch):
    """Fits begin with the step to the minimum that least squares has found, and end with the Hessian before the last.

    No fit is made twice: what is searched again near the largest fit often has the same columns.
    """
    asked, bent, fits = [], [], []
    models, minimise = BlockedRefits._models, BlockedRefits._minimise

    def counted(self, columns, ridges, owners, active, trial, curved):
        asked.append(active.size)
        bent.append(np.count_nonzero(curved))
        return models(self, columns, ridges, owners, active, trial, curved)

    def listed(self, columns, ridges, owners, *others):
        fits.extend(zip(owners.tolist(), map(bytes, columns), map(bytes, ridges), strict=True))
        return minimise(self, columns, ridges, owners, *others)

    monkeypatch.setattr(BlockedRefits, "_models", counted)
    monkeypatch.setattr(BlockedRefits, "_minimise", listed)
    model, loss = LOSSES[name]
    X, y, fold, _, _ = table(loss)
    small(model).fit(Serial(from_arrays(X, y, fold=fold, rows=256)))
    some = [fit for fit in fits if fit[1]]  # others are null models
    assert len(set(some)) == len(some)
    assert sum(asked) <= sweeps * len(fits)
    assert sum(bent) <= hessians * len(fits)


def test_products_of_negative_second_derivatives_keep_their_signs():
    rng = np.random.default_rng(0)
    Z, bends = rng.standard_normal((3, 50)), rng.standard_normal((2, 50))
    bends[0] = np.abs(bends[0])
    for bend in bends:
        np.testing.assert_allclose(weighted_gram(Z, *roots_of(bend, np.float64)), (Z * bend) @ Z.T, atol=1e-12)
