"""Models of pointwise losses: the laws of their own parameters.

Those of all models, with stored numbers and other packages, are in `tests/acceptance`.
"""

import warnings
from dataclasses import astuple
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss

import golden
import hardthresh as ht
from hardthresh.core.errors import InvalidInputError
from hardthresh.estimators.linear import nuisance
from hardthresh.estimators.linear.negative_binomial import shape_slopes
from hardthresh.losses import Tweedie
from levels import at_most

ROWS = golden.GOLDEN["n"]


def drawn(name):
    made = golden.data(name)
    return made["X"], made["y"], made.get("offset")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ht.SparseTweedieRegression(power=2.0), "SparseGammaRegression"),
        (ht.SparseTweedieRegression(power=2.5), "power"),
        (ht.SparseNegativeBinomialRegression(dispersion="no"), "dispersion"),
        (ht.SparseNegativeBinomialRegression(dispersion=0.0), "dispersion"),
        (ht.SparseHuberRegression(epsilon=0.5), "epsilon"),
        (ht.SparseHuberRegression(delta=0.0), "delta"),
        (ht.SparseQuantileRegression(quantile=1.0), "quantile"),
        (ht.SparseQuantileRegression(smoothing="wide"), "smoothing"),
        (ht.SparseQuantileRegression(smoothing=0.0), "smoothing"),
    ],
)
def test_a_parameter_out_of_range_is_named(model, message):
    X, y, _ = drawn("poisson")
    with pytest.raises(InvalidInputError, match=message):
        model.fit(X, y)


@pytest.mark.parametrize("theta", [0.5, 29.0, 31.0, 100.0, 1e4, 1e6])
def test_the_slope_of_the_likelihood_in_the_shape_has_its_digits(theta):
    """By sums of reciprocals in fifty digits: of a large shape the terms differ in their last digits only."""
    counts, means = (np.ravel(each) for each in np.meshgrid([0, 1, 7, 60], [1e-3, 0.5, 6.9, 55.0]))
    with localcontext() as context:
        context.prec = 50
        shape = Decimal(theta)
        exact = [
            sum((1 / (shape + i) for i in range(y)), Decimal(0))
            - (1 + Decimal(mean) / shape).ln()
            + (Decimal(mean) - y) / (Decimal(mean) + shape)
            for y, mean in zip(counts.tolist(), means.tolist(), strict=True)
        ]
    found = shape_slopes(counts.astype(float), means, theta)
    size = (counts + means) / (theta * (theta + counts + means))  # of the largest of what is left to cancel
    assert_allclose((found - np.array(exact, dtype=float)) / size, 0.0, atol=1e-11)


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("seed", [26, 27, 74])
def test_the_shape_of_counts_that_are_nearly_poisson_settles(seed):
    """Rounding of the slope moved it by 1e-7 to 1e-4 for ever."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(([120, 200, 400][seed % 3], 10))
    y = rng.poisson(np.exp([0.2, 1, 3, 5][seed % 4] + 0.6 * X[:, 0] - 0.4 * X[:, 1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert ht.SparseNegativeBinomialRegression().fit(X, y).converged_


PERFECT = [
    (ht.SparseHuberRegression, lambda u: 1e-3 * u),
    (ht.SparseQuantileRegression, lambda u: 1e-3 * u),
    (ht.SparseGammaRegression, np.exp),
    (ht.SparseTweedieRegression, np.exp),
]


@pytest.mark.parametrize(("cls", "mean"), PERFECT)
def test_of_a_perfect_fit_features_with_coefficients_of_rounding_are_left_out(cls, mean):
    X = np.random.default_rng(1).standard_normal((120, 10))
    model = cls(n_nonzero_coefs=3).fit(X, mean(2 * X[:, 0]))
    assert model.n_nonzero_coefs_ == 1
    assert_array_equal(model.support_, [0])


@pytest.mark.parametrize(("cls", "mean"), [pair for pair in PERFECT if pair[0] is not ht.SparseQuantileRegression])
def test_a_small_coefficient_of_a_large_column_is_not_rounding(cls, mean):
    X = np.random.default_rng(1).standard_normal((120, 10))
    X[:, 4] *= 1e15
    model = cls(n_nonzero_coefs=3, standardize=False).fit(X, mean(2 * X[:, 0] + 1e-15 * X[:, 4]))
    assert_array_equal(model.support_, [0, 4])


def test_outliers_change_least_squares_and_not_huber():
    X, y, _ = drawn("huber")
    spoilt = y.copy()
    spoilt[:20] += 1e3
    clean = ht.SparseHuberRegression(n_nonzero_coefs=3).fit(X, y)
    robust = ht.SparseHuberRegression(n_nonzero_coefs=3).fit(X, spoilt)
    assert_array_equal(robust.support_, clean.support_)
    assert robust.outliers_[:20].all()
    assert np.max(np.abs(robust.coef_ - clean.coef_)) < 0.3
    assert ht.SparseLinearRegression(n_nonzero_coefs=3).fit(X, spoilt).support_.tolist() != clean.support_.tolist()


@pytest.mark.parametrize("quantile", [0.2, 0.8])
def test_a_quantile_has_its_share_of_targets_below(quantile):
    X, y, _ = drawn("quantile")
    model = ht.SparseQuantileRegression(n_nonzero_coefs=3, quantile=quantile).fit(X, y)
    residual = y - model.predict(X)
    on = np.abs(residual) < 1e-9
    assert on.sum() == 4  # a vertex
    assert np.sum(residual[~on] < 0) <= quantile * ROWS <= np.sum(residual[~on] < 0) + 4


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("huber", ht.SparseHuberRegression),
        ("negative_binomial", ht.SparseNegativeBinomialRegression),
        ("quantile", ht.SparseQuantileRegression),
    ],
)
def test_a_weight_is_a_repetition_in_what_is_estimated(name, cls):
    X, y, _ = drawn(name)
    weights = np.random.default_rng(0).integers(0, 3, ROWS)
    one = cls(n_nonzero_coefs=3).fit(X, y, sample_weight=weights)
    other = cls(n_nonzero_coefs=3).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert_allclose(one.coef_, other.coef_, rtol=1e-7)


@pytest.mark.parametrize("seed", [4, 8, 12])
def test_the_scale_of_noise_is_known_to_more_digits_than_the_loss(seed):
    """Where residuals are next to delta, digits of coefficients that the loss does not have change the scale."""
    rng = np.random.default_rng(seed)
    X, y, weight = rng.random((32, 30)), rng.integers(0, 3, 32), rng.integers(0, 5, 32)
    model = ht.SparseHuberRegression(n_nonzero_coefs=2)
    one = model.fit(X, y, sample_weight=weight).noise_scale_
    assert_allclose(model.fit(X.repeat(weight, axis=0), y.repeat(weight)).noise_scale_, one, rtol=1e-10)


def test_the_smoothing_of_a_search_counts_weights_as_repetitions():
    X, y, _ = drawn("quantile")
    weights = np.random.default_rng(8).integers(0, 4, ROWS)
    model, losses = ht.SparseQuantileRegression(n_nonzero_coefs=3), []
    for arrays in ((X, y, weights), (np.repeat(X, weights, axis=0), np.repeat(y, weights), None)):
        table = model._encode(model._validate(*arrays, None, reset=True).weighted())
        losses.append(model._started(model._problem(table, 3)).objective.loss)
    assert_allclose(losses[0].smoothing, losses[1].smoothing, rtol=1e-12)


def test_rows_at_the_edge_of_the_smoothing_have_curvature_where_targets_have_few_values():
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 1.0, 2.0], [45, 10, 45])
    model = ht.SparseQuantileRegression(n_nonzero_coefs=5)
    table = model._encode(model._validate_fit(rng.standard_normal((100, 6)), y, None, None))
    problem = model._started(model._problem(table, 5))
    at_median = problem.objective.loss.curvature(problem.objective.y, np.full(100, 1.0))
    assert np.count_nonzero(at_median) == 100


def test_ridges_are_compared_where_the_targets_have_two_values():
    """Between them the smoothed loss is linear in all rows."""
    X, y = np.random.default_rng(3).standard_normal((40, 4)), np.arange(40) % 2 * 10.0
    model = ht.SparseQuantileRegressionCV(n_nonzero_coefs=[0, 1, 2], cv=4)
    with pytest.warns(ht.core.errors.NothingFoundWarning):
        model.fit(X, y)
    assert np.count_nonzero(model.alphas_) == 5


@pytest.mark.parametrize("cls", [ht.SparseHuberRegressionCV, ht.SparseNegativeBinomialRegressionCV])
def test_the_pilot_of_a_fold_counts_weights_as_repetitions(cls):
    X, y, _ = drawn("negative_binomial")
    X, y, weights = X[:60], y[:60], np.tile([1, 3], 30)  # 6 features for 60 rows, and 10 for 120
    model = cls(n_nonzero_coefs=range(3))
    losses = []
    for arrays in ((X, y, weights), (np.repeat(X, weights, axis=0), np.repeat(y, weights), None)):
        losses.append(model._fold_loss(model._encode(model._validate(*arrays, None, reset=True))))
    assert_allclose(astuple(losses[0]), astuple(losses[1]), rtol=1e-7)


def test_a_fold_has_a_loss_of_its_own():
    X, y, _ = drawn("negative_binomial")
    model = ht.SparseNegativeBinomialRegressionCV(n_nonzero_coefs=range(4), cv=3, averaging="none").fit(X, y)
    assert model.best_n_nonzero_coefs_ >= 1
    alone = ht.SparseNegativeBinomialRegression(n_nonzero_coefs=model.best_n_nonzero_coefs_, alpha=model.alpha_)
    assert_allclose(model.coef_, alone.fit(X, y).coef_, rtol=1e-6)
    assert_allclose(model.dispersion_, alone.dispersion_, rtol=1e-6)


@pytest.mark.parametrize("tau", [0.05, 0.9, 0.95])
@pytest.mark.parametrize("n", [30, 60, 153, 200])
def test_extreme_quantiles_of_all_columns_are_those_of_the_linear_program(tau, n):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, 6))
    y = rng.standard_normal(n) + 0.3 * X[:, 0]
    model = ht.SparseQuantileRegression(n_nonzero_coefs=6, quantile=tau).fit(X, y)
    program = QuantileRegressor(quantile=tau, alpha=0.0, solver="highs").fit(X, y)
    least = mean_pinball_loss(y, program.predict(X), alpha=tau)
    assert model.support_.size == 6
    assert_allclose(mean_pinball_loss(y, model.predict(X), alpha=tau), least, rtol=1e-9)


def test_a_quantile_with_a_ridge_is_the_minimum_of_the_quadratic_program():
    """Its dual: multipliers a of the rows, from tau - 1 to tau, that add up to 0, and w = Z' a / (n ridge)."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((40, 3))
    y, tau, ridge = X[:, 0] + rng.standard_normal(40), 0.7, 0.2
    model = ht.SparseQuantileRegression(n_nonzero_coefs=3, quantile=tau, alpha=ridge).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    a = optimize.minimize(
        lambda a: np.sum((Z.T @ a) ** 2) / (2 * ridge * 40) - y @ a,
        np.zeros(40),
        jac=lambda a: Z @ (Z.T @ a) / (ridge * 40) - y,
        method="SLSQP",
        bounds=[(tau - 1, tau)] * 40,
        constraints={"type": "eq", "fun": lambda a: a.sum(), "jac": lambda a: np.ones(40)},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert_allclose(model.objective_, -a.fun / 40, rtol=1e-6)
    assert_allclose(model.coef_ * X.std(axis=0), Z.T @ a.x / (40 * ridge), atol=1e-4)


@pytest.mark.parametrize(("n", "size", "seed"), [(30, 1e2, 0), (150, 1e2, 6), (80, 1e4, 1)])
def test_a_delta_far_below_the_residuals_is_minimised_on_all_columns(n, size, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    y = size * (X @ rng.standard_normal(6) + rng.standard_normal(n))
    loss = ht.losses.Huber(1.35)
    model = ht.SparseHuberRegression(n_nonzero_coefs=6, delta=1.35).fit(X, y)
    Z = np.c_[X, np.ones(n)]
    program = QuantileRegressor(quantile=0.5, alpha=0.0, solver="highs").fit(X, y)  # near: absolute errors
    slow = optimize.minimize(
        lambda b: loss.value(y, Z @ b).mean(), np.r_[program.coef_, program.intercept_],
        jac=lambda b: Z.T @ loss.gradient(y, Z @ b) / n, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000},
    )  # fmt: skip
    assert model.support_.size == 6
    assert loss.value(y, model.predict(X)).mean() <= slow.fun * (1 + 1e-8)


@pytest.mark.slow
def test_a_narrow_smoothing_does_not_end_the_search_below_the_budget():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((150, 6))
        y = X @ rng.standard_normal(6) + rng.standard_normal(150)
        model = ht.SparseQuantileRegression(n_nonzero_coefs=6, smoothing=0.01).fit(X, y)
        program = QuantileRegressor(quantile=0.5, alpha=0.0, solver="highs").fit(X, y)
        least = mean_pinball_loss(y, program.predict(X))
        assert model.support_.size == 6
        assert least <= mean_pinball_loss(y, model.predict(X)) <= least + 0.01 / 4


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_a_scale_of_noise_that_falls_to_zero_is_told(seed, repeats):
    """With 13 coefficients for 20 rows; repeated rows are no evidence that they are exact."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 16))
    y = X[:, 0] + rng.standard_normal(20)
    with pytest.warns(ConvergenceWarning, match="fitted exactly, as many as there are coefficients"):
        model = ht.SparseHuberRegression(n_nonzero_coefs=12).fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    assert not model.converged_
    assert np.count_nonzero(~model.outliers_) == 13 * repeats


@pytest.mark.parametrize("spoilt", [0, 5])
def test_rows_without_noise_are_fitted_exactly_beside_outliers(spoilt):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 16))
    y = 3.0 * X[:, 4] - X[:, 9]
    y[:spoilt] += 10.0 * rng.standard_normal(spoilt)
    model = ht.SparseHuberRegression(n_nonzero_coefs=2).fit(X, y)
    assert model.converged_
    assert_array_equal(np.flatnonzero(model.outliers_), np.arange(spoilt))
    assert_allclose(model.coef_[model.support_], [3.0, -1.0], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [ht.SparseHuberRegression, ht.SparseHuberRegressionCV])
def test_outliers_are_told_for_every_row_given(cls):
    X, y, _ = drawn("huber")
    weights = np.ones(ROWS)
    weights[::5] = 0.0
    y[[0, 1]] += 100.0
    model = cls(n_nonzero_coefs=3 if cls is ht.SparseHuberRegression else range(4)).fit(X, y, sample_weight=weights)
    assert model.outliers_.shape == (ROWS,)
    assert model.outliers_[1]
    assert not model.outliers_[::5].any()


def test_a_parameter_that_does_not_settle_is_told(monkeypatch):
    X, y, _ = drawn("huber")
    monkeypatch.setattr(nuisance, "_ROUNDS", 2)
    with pytest.warns(ConvergenceWarning, match="still changed"):
        model = ht.SparseHuberRegression(n_nonzero_coefs=3).fit(X, y)
    assert not model.converged_
    assert "still changed" in model.stop_reason_


@pytest.mark.parametrize(
    "cls", [ht.SparsePoissonRegression, ht.SparseTweedieRegression, ht.SparseNegativeBinomialRegression]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_that_are_all_zero_are_refused(cls, weighted):
    X, y, weights = drawn("poisson")[0], np.zeros(ROWS), np.ones(ROWS)
    if weighted:
        y[3], weights[3] = 2.0, 0.0
    with pytest.raises(InvalidInputError, match="all targets are 0"):
        cls(n_nonzero_coefs=2).fit(X, y, sample_weight=weights)


def test_a_zero_amount_has_no_loss_far_below():
    y, u = np.zeros(1), np.array([-1e300])
    assert_array_equal(Tweedie(1.5).value(y, u), 0.0)
    assert_array_equal(Tweedie(1.5).gradient(y, u), 0.0)
