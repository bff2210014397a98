"""Bounds of coefficients, on the scale of the data."""

import warnings
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from scipy.sparse import csr_array

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError
from hardthresh.estimators.linear.bounds import Bounds, bounds_of
from levels import at_most, reaches, turn

MODELS = {
    "squared": (ht.SparseLinearRegression, ht.SparseLinearRegressionCV),
    "logistic": (ht.SparseLogisticRegression, ht.SparseLogisticRegressionCV),
    "poisson": (ht.SparsePoissonRegression, ht.SparsePoissonRegressionCV),
}
SEEDS = range(3 if reaches("pairs") else 1)
INFINITE = np.full(6, np.inf)


def mean_losses(name, y, u):
    """The losses, for targets of 0 and 1 in logistic regression, and their derivatives."""
    if name == "squared":
        return 0.5 * (u - y) ** 2, u - y
    if name == "logistic":
        return np.logaddexp(0, u) - y * u, 1 / (1 + np.exp(-u)) - y
    return np.exp(u) - y * u - y + np.where(y > 0, y * np.log(np.maximum(y, 1)), 0), np.exp(u) - y


def problem(name, seed, n=80, d=6):
    """Correlated columns of very different scales, and bounds of which some bind and some are infinite."""
    rng = np.random.default_rng((seed, 7))
    scale = np.logspace(-2, 2, d)
    X = (rng.standard_normal((n, d)) + rng.standard_normal((n, 1))) * scale + 3 * scale
    w = rng.uniform(-1, 1, d)
    u = (X / scale - 3) @ w
    y = {
        "squared": u + rng.standard_normal(n),
        "logistic": (u + rng.logistic(size=n) > 0).astype(float),
        "poisson": rng.poisson(np.exp(0.5 * u)).astype(float),
    }[name]
    lower = -rng.uniform(0, 0.5, d) / scale
    upper = rng.uniform(0, 0.5, d) / scale
    lower[rng.random(d) < 0.2] = -np.inf
    upper[rng.random(d) < 0.2] = np.inf
    lower[rng.random(d) < 0.2] = 0.0
    return X, y, lower, upper, rng


def best_value(name, X, y, weight, offset, lower, upper, ridge):
    """The minimum over some columns, in units of their scale, by SciPy."""
    mean, sd = np.average(X, axis=0, weights=weight), X.std(axis=0)
    Z = np.column_stack([(X - mean) / sd, np.ones(len(X))])
    share = weight / weight.sum()
    penalty = np.append(ridge * variance(X, weight) / sd**2, 0.0)

    def f(w):
        losses, slopes = mean_losses(name, y, Z @ w + offset)
        return share @ losses + 0.5 * penalty @ w**2, Z.T @ (share * slopes) + penalty * w

    box = [*zip(lower * sd, upper * sd, strict=True), (-np.inf, np.inf)]
    options = {"ftol": 1e-15, "gtol": 1e-11, "maxiter": 5000}
    return scipy_minimize(f, np.zeros(Z.shape[1]), jac=True, bounds=box, method="L-BFGS-B", options=options).fun


def variance(X, weight):
    mean = np.average(X, axis=0, weights=weight)
    return np.average((X - mean) ** 2, axis=0, weights=weight)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_the_best_one_within_the_bounds(name, standardize):
    """Against every pair of features, fitted by SciPy, with weights and an offset."""
    for seed in SEEDS:
        X, y, lower, upper, rng = problem(name, seed)
        weight, offset = rng.uniform(0.5, 2, len(y)), rng.uniform(-0.5, 0.5, len(y))
        model = MODELS[name][0](
            n_nonzero_coefs=2, bounds=(lower, upper), alpha=0.01 if standardize else 0.0, standardize=standardize
        ).fit(X, y, sample_weight=weight, offset=offset)
        values = [
            best_value(name, X[:, pair], y, weight, offset, lower[pair], upper[pair], 0.01 if standardize else 0.0)
            for pair in map(list, combinations(range(X.shape[1]), 2))
        ]
        coef = model.coef_.reshape(-1)
        assert np.all((lower <= coef) & (coef <= upper))
        assert model.objective_ == pytest.approx(min(values), rel=1e-8)
        assert model.converged_


def test_some_bounds_bind():
    """Else the tests of this file would say nothing."""
    bound, inside = 0, 0
    for seed in range(3):
        X, y, lower, upper, _ = problem("squared", seed)
        model = ht.SparseLinearRegression(n_nonzero_coefs=4, bounds=(lower, upper)).fit(X, y)
        chosen = model.coef_[model.support_]
        at_bound = (chosen == lower[model.support_]) | (chosen == upper[model.support_])
        bound, inside = bound + at_bound.sum(), inside + (~at_bound).sum()
    assert bound >= 3
    assert inside >= 3


@pytest.mark.slow
@pytest.mark.parametrize("model", [cls for pair in MODELS.values() for cls in pair])
def test_positive_is_short_for_bounds(model):
    X, y, *_ = problem("poisson", 0)
    y = np.minimum(y, 1)
    short, long = (model(**settings).fit(X, y) for settings in ({"positive": True}, {"bounds": (0, None)}))
    np.testing.assert_array_equal(short.coef_, long.coef_)
    np.testing.assert_array_equal(short.intercept_, long.intercept_)


@pytest.mark.parametrize("bounds", [(None, None), (-np.inf, np.inf), {}, (-INFINITE, None)])
def test_infinite_bounds_are_none(bounds):
    X, y, *_ = problem("squared", 1)
    bounded, model = (ht.SparseLinearRegression(n_nonzero_coefs=3, bounds=b).fit(X, y) for b in (bounds, None))
    np.testing.assert_array_equal(bounded.coef_, model.coef_)


def test_wide_bounds_lead_to_the_model_without():
    X, y, *_ = problem("squared", 2)
    model = ht.SparseLinearRegression(n_nonzero_coefs=3).fit(X, y)
    wide = 2 * np.abs(model.coef_).max()
    bounded = ht.SparseLinearRegression(n_nonzero_coefs=3, bounds=(-wide, wide)).fit(X, y)
    np.testing.assert_allclose(bounded.coef_, model.coef_, rtol=1e-6)


@pytest.mark.parametrize("averaging", turn(["exponential", "stacking", "none"], "bounds"))
@pytest.mark.parametrize("name", MODELS)
def test_every_model_of_an_average_is_within_the_bounds(name, averaging):
    X, y, *_ = problem(name, 3, n=60)
    bounds = (-0.05 / X.std(axis=0), 0.05 / X.std(axis=0))
    model = MODELS[name][1](n_nonzero_coefs=range(7), alphas=[0.0, 0.1], bounds=bounds, averaging=averaging, cv=3).fit(
        X, y
    )
    lower, upper = bounds
    for coef in (*model.coefs_path_, model.coef_.reshape(-1)):
        assert np.all((lower <= coef) & (coef <= upper))
    for part in (model.best_model_, *model.models_):
        assert np.all((lower[part.support] <= part.coef) & (part.coef <= upper[part.support]))
    best = model.best_model_
    assert np.any(np.isclose(np.abs(best.coef), upper[best.support], rtol=1e-12))  # they are symmetric


def test_folds_keep_the_bounds_of_the_data():
    """With half of the rows in other units, the scale of a fold's rows is not that of all rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4)) * np.repeat([1.0, 10.0, 100.0], 30)[:, None]
    y = X @ [1.0, 1.0, 0.0, 0.0] + rng.standard_normal(90)
    model = ht.SparseLinearRegressionCV(
        n_nonzero_coefs=[2], alphas=0.0, averaging="none", bounds=(None, 0.25), cv=[(np.arange(60), np.arange(60, 90))]
    ).fit(X, y)
    train, test = slice(0, 60), slice(60, 90)
    alone = ht.SparseLinearRegression(n_nonzero_coefs=2, alpha=0.0, bounds=(None, 0.25)).fit(X[train], y[train])
    assert alone.coef_.max() == pytest.approx(0.25, rel=1e-12)
    assert model.scores_[0, 0] == pytest.approx(-np.mean((y[test] - alone.predict(X[test])) ** 2), rel=1e-9)


def test_bounds_hold_in_single_precision():
    """Even bounds that single precision does not have."""
    X, y, *_ = problem("squared", 4)
    for limit in (0.1 / X.std(axis=0), np.full(6, 0.1)):
        model = ht.SparseLinearRegression(n_nonzero_coefs=6, bounds=(-limit, limit)).fit(X.astype(np.float32), y)
        assert model.coef_.dtype == np.float32
        assert np.all(np.abs(model.coef_.astype(np.float64)) <= limit)
        assert np.any(np.abs(model.coef_) > 0.999 * limit)
        cv = ht.SparseLinearRegressionCV(bounds=(-limit, limit), cv=3).fit(X.astype(np.float32), y)
        assert np.all(np.abs(cv.coef_.astype(np.float64)) <= limit)


def test_always_included_columns_keep_their_bounds():
    X, y, *_ = problem("squared", 5)
    j = int(np.argmax(np.abs(ht.SparseLinearRegression(n_nonzero_coefs=6).fit(X, y).coef_) * X.std(axis=0)))
    free = ht.SparseLinearRegression(n_nonzero_coefs=1, always_include=[j]).fit(X, y)
    limit = 0.5 * abs(free.coef_[j])
    model = ht.SparseLinearRegression(n_nonzero_coefs=1, always_include=[j], bounds={j: (-limit, limit)}).fit(X, y)
    assert abs(model.coef_[j]) == pytest.approx(limit, rel=1e-12)
    assert j in model.support_


def test_sparse_data_have_the_same_model():
    X, y, lower, upper, _ = problem("logistic", 6)
    X = np.where(np.abs(X) > 0.7 * X.std(axis=0) + 3 * X.std(axis=0), X, 0.0)
    dense, sparse = (
        ht.SparseLogisticRegression(n_nonzero_coefs=3, bounds=(lower, upper)).fit(data, y) for data in (X, csr_array(X))
    )
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-6)


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    X, y, *_ = problem("squared", 7)
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = ht.SparseLinearRegression(n_nonzero_coefs=4, bounds={"b": (None, 0), "f": (0, 1e-3)}).fit(frame, y)
    lower, upper = -INFINITE, INFINITE.copy()
    lower[5], upper[5], upper[1] = 0.0, 1e-3, 0.0
    by_array = ht.SparseLinearRegression(n_nonzero_coefs=4, bounds=(lower, upper)).fit(X, y)
    np.testing.assert_allclose(model.coef_, by_array.coef_, rtol=1e-12)


def test_the_number_of_features_can_be_chosen():
    X, y, lower, upper, _ = problem("squared", 8, n=300)
    automatic = ht.SparseLinearRegression(bounds=(lower, upper)).fit(X, y)
    assert automatic.best_n_nonzero_coefs_ > 0
    given = ht.SparseLinearRegression(n_nonzero_coefs=automatic.best_n_nonzero_coefs_, bounds=(lower, upper)).fit(X, y)
    np.testing.assert_allclose(automatic.coef_, given.coef_, rtol=1e-8)


def test_the_certificate_of_a_coefficient_at_its_bound():
    X, y, lower, upper, _ = problem("squared", 0)
    model = ht.SparseLinearRegression(n_nonzero_coefs=3, bounds=(lower, upper)).fit(X, y)
    certificate = model.certificate()
    assert certificate.fitted
    assert certificate.is_stationary()
    assert certificate.swap_optimal
    assert not certificate.exact


def test_a_warm_start_and_a_file(tmp_path):
    X, y, lower, upper, _ = problem("squared", 9)
    model = ht.SparseLinearRegression(n_nonzero_coefs=3, bounds=(lower, upper), warm_start=True).fit(X, y)
    ht.save(model, tmp_path / "model.json")
    loaded = ht.load(tmp_path / "model.json")
    for mine, theirs in zip(model.bounds, loaded.bounds, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    again = loaded.fit(X, y)
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-8)


def test_separation_within_the_bounds():
    """Bounds on signs can keep columns from separating the classes; wide or narrow ones cannot."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 3))
    y = (X[:, 0] - X[:, 1] > 0).astype(int)
    for bounds, separated in (((-1e-3, 1e-3), True), ((None, 5.0), True), ((0, 5.0), False), ((-5, 0), False)):
        model = ht.SparseLogisticRegression(n_nonzero_coefs=3, bounds=bounds).fit(X, y)
        assert model.separated_ == separated, bounds


def test_without_a_ridge_bounds_give_separated_classes_a_minimiser():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 3))
    y = (X[:, 0] > 0).astype(int)
    model = ht.SparseLogisticRegression(n_nonzero_coefs=1, alpha=0.0, bounds=(-4, 4), fit_intercept=False).fit(X, y)
    assert model.converged_
    assert model.coef_[0, 0] == pytest.approx(4.0, rel=1e-12)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (3, r"bounds must be a pair \(lower, upper\), got 3"),
        ("ab", "bounds must be a pair"),
        ((0, 1, 2), "bounds must be a pair"),
        ((0.5, 1), r"bounds must hold 0, .* but the lower bound of feature 0 \(counted from 0\) is 0.5; .* offset"),
        ((None, [1, 1, -2, 1, 1, 1]), r"the upper bound of feature 2 \(counted from 0\) is -2"),
        ((np.nan, None), "the lower bound is NaN; give None or infinity"),
        (([0, 0], None), r"the lower bound must be a number, or an array of shape \(6,\), or None; got \[0, 0\]"),
        (("0", None), "the lower bound must be a number"),
        ((False, True), "the lower bound must be a number"),
        ({9: (0, 1)}, "bounds names column 9; X has 6 columns, counted from 0"),
        ({"age": (0, 1)}, "bounds names the unknown column 'age'; X has no column names"),
        ({2: 1}, r"the bounds of 2 must be a pair \(lower, upper\), got 1"),
        ({2: ([0, 1], 1)}, r"the lower bound of 2 must be a number, or None; got \[0, 1\]"),
    ],
)
@pytest.mark.parametrize("model", [ht.SparseLinearRegression, ht.SparseLinearRegressionCV])
def test_bad_bounds_are_refused(model, bounds, message):
    X, y, *_ = problem("squared", 0)
    with pytest.raises(InvalidInputError, match=message):
        model(bounds=bounds).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bounds": (0, 1), "positive": True}, r"positive=True is short for bounds=\(0, None\); leave one of them out"),
        ({"bounds": (0, 1), "groups": [0, 0, 1, 1, 2, 2]}, "bounds does not go together with groups; leave one"),
    ],
)
def test_settings_that_contradict_bounds_are_refused(settings, message):
    X, y, *_ = problem("squared", 0)
    with pytest.raises(InvalidInputError, match=message):
        ht.SparseLinearRegression(**settings).fit(X, y)


def test_bounds_are_rounded_towards_zero():
    found = bounds_of((-0.1, 0.1), 1, None, np.float32, str)
    for bound in (found.lower, found.upper):
        assert bound.astype(np.float32).astype(np.float64) == bound
        assert abs(bound) <= 0.1
        assert (
            abs(
                np.nextafter(bound.astype(np.float32), np.copysign(np.float32(np.inf), bound.astype(np.float32)))
            ).astype(float)
            > 0.1
        )


def test_constant_columns_keep_the_signs_of_their_bounds():
    bounds = Bounds(np.array([-1.0, 0.0, -2.0]), np.array([3.0, 4.0, np.inf]))
    lower, upper = bounds.standardized(np.array([0.0, 0.0, 0.5]), 1)
    np.testing.assert_array_equal(lower, [-np.inf, 0.0, -4.0, -np.inf])
    assert upper is None


@pytest.mark.slow
@at_most(3)
@pytest.mark.parametrize("name", ["Huber", "Quantile", "Tweedie", "NegativeBinomial", "Gamma", "Cox", "Ordinal"])
def test_every_scalar_model_keeps_bounds(name):
    """Also those that finish a fit in their own way: its last step has to stay within the bounds."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 8))
    mean = X[:, 3] - 2 * X[:, 6]
    y = {
        "Huber": mean + rng.standard_t(2, 150),
        "Quantile": mean + rng.standard_t(2, 150),
        "Cox": rng.exponential(np.exp(-mean)),
        "Ordinal": np.digitize(mean + rng.logistic(size=150), [-1, 1]),
    }.get(name, rng.gamma(2.0, np.exp(0.4 * mean)))
    y = np.floor(y) if name == "NegativeBinomial" else y
    model = getattr(ht, f"Sparse{name}Regression")(n_nonzero_coefs=3, bounds=(-0.3, 0.2)).fit(X, y)
    assert model.converged_
    assert model.coef_.min() == pytest.approx(-0.3, rel=1e-9)
    assert model.coef_.min() >= -0.3
    assert model.coef_.max() <= 0.2
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # also where a fold begins at its minimum, as with all coefficients at bounds
        cv = getattr(ht, f"Sparse{name}RegressionCV")(bounds=(-0.3, 0.2), cv=3).fit(X, y)
    assert cv.coef_.min() >= -0.3
    assert cv.coef_.max() <= 0.2
