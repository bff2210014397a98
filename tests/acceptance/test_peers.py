"""Checks 3 and 10, and 5 for Efron's ties: the same models by scikit-learn, statsmodels, scikit-survival and lifelines.

Tests of packages that are not installed are skipped; continuous integration installs all of them.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import (
    GammaRegressor,
    HuberRegressor,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    TweedieRegressor,
)
from sklearn.metrics import d2_pinball_score, d2_tweedie_score, mean_pinball_loss
from sklearn.svm import LinearSVC

import hardthresh as ht
from acceptance.fits import COLUMNS, ROWS, drawn, estimator, fitted, theta
from hardthresh.estimators.linear.concordance import concordance
from levels import at_most, slow_beyond

# scikit-learn


def test_check_03_huber_of_scikit_learn():
    X, y, _ = drawn("huber")
    theirs = HuberRegressor(alpha=0.0, max_iter=10_000, tol=1e-12).fit(X, y)
    ours = ht.SparseHuberRegression(n_nonzero_coefs=COLUMNS).fit(X, y)

    def joint(model, scale):
        z = np.abs(y - model.predict(X)) / scale
        return np.sum(scale + np.where(z <= 1.35, z**2, 2.7 * z - 1.35**2) * scale)

    assert joint(ours, ours.noise_scale_) <= joint(theirs, theirs.scale_)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert_allclose(ours.noise_scale_, 0.7944383, atol=1e-7)
    assert_array_equal(ours.outliers_, theirs.outliers_)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_check_03_quantiles_of_scikit_learn(quantile):
    X, y, _ = drawn("quantile")
    theirs = QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, y)
    ours = ht.SparseQuantileRegression(n_nonzero_coefs=COLUMNS, quantile=quantile).fit(X, y)
    losses = [mean_pinball_loss(y, model.predict(X), alpha=quantile) for model in (ours, theirs)]
    assert losses[0] <= losses[1] + 1e-9
    assert_allclose(ours.objective_, losses[0], rtol=1e-12)
    assert_allclose(ours.score(X, y), d2_pinball_score(y, ours.predict(X), alpha=quantile), rtol=1e-12)


SCIKIT_LEARN = {
    "logistic": LogisticRegression(C=1 / (0.1 * ROWS), tol=1e-12, max_iter=10_000),
    "multinomial": LogisticRegression(C=1 / (0.1 * ROWS), tol=1e-12, max_iter=10_000),
    "gamma": GammaRegressor(alpha=0.1, tol=1e-10, max_iter=10_000),
    "tweedie": TweedieRegressor(power=1.5, link="log", alpha=0.1, tol=1e-10, max_iter=10_000),
    "squared_hinge": LinearSVC(C=1 / (2 * 0.1 * ROWS), intercept_scaling=1e4, tol=1e-12, max_iter=10**6),
}


@pytest.mark.parametrize("name", SCIKIT_LEARN)
def test_check_03_models_of_scikit_learn(name):
    X, y, _ = drawn(name)
    ours, theirs = fitted(name, alpha=0.1), SCIKIT_LEARN[name].fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert_array_equal(ours.predict(X) == y, theirs.predict(X) == y)
    if name == "tweedie":
        assert_allclose(ours.score(X, y), d2_tweedie_score(y, ours.predict(X), power=1.5), rtol=1e-10)


def test_check_03_poisson_counts_of_scikit_learn():
    """It has no offset, so that exposures are weights of rates."""
    X, y, offset = drawn("poisson")
    exposure = np.exp(offset)
    theirs = PoissonRegressor(alpha=0.0, tol=1e-10, max_iter=10_000).fit(X, y / exposure, sample_weight=exposure)
    assert_allclose(fitted("poisson").coef_, theirs.coef_, atol=1e-6)


def test_check_03_the_dispersion_of_tweedie_is_pearsons():
    X, y, _ = drawn("tweedie")
    model = fitted("tweedie")
    mean = model.predict(X)
    assert_allclose(model.dispersion_, np.sum((y - mean) ** 2 / mean**1.5) / (ROWS - COLUMNS - 1), rtol=1e-10)


# statsmodels


def generalized(sm, family):
    links = sm.families.links
    return {
        "gamma": lambda: sm.families.Gamma(links.Log()),
        "tweedie": lambda: sm.families.Tweedie(links.Log(), var_power=1.5),
        "negative_binomial": lambda: sm.families.NegativeBinomial(alpha=0.5),
        "poisson": lambda: sm.families.Poisson(),
        "logistic": lambda: sm.families.Binomial(),
        "squared": lambda: sm.families.Gaussian(),
    }[family]()


@slow_beyond(3)
@at_most(5)
@pytest.mark.parametrize("name", ["squared", "logistic", "poisson", "gamma", "tweedie", "negative_binomial"])
def test_check_03_generalized_linear_models_of_statsmodels(name):
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    X, y, offset = drawn(name)
    family = generalized(sm, name)
    theirs = sm.GLM(y, sm.add_constant(X), family, offset=offset).fit(tol=1e-14, maxiter=200)
    assert_allclose(theta(fitted(name)), theirs.params, atol=1e-6)


@pytest.mark.parametrize("name", ["squared", "logistic", "poisson", "gamma", "tweedie", "negative_binomial"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_check_03_dispersions_and_standard_errors_of_statsmodels(name, fit_intercept):
    """With its observed Hessian in place of the expected one, which its summary takes.

    It starts from our coefficients: from its own start it overflows without an intercept.
    """
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    X, y, offset = drawn(name)
    peer = sm.GLM(y, sm.add_constant(X) if fit_intercept else X, generalized(sm, name), offset=offset)
    model = fitted(name, fit_intercept=fit_intercept)
    start = theta(model) if fit_intercept else np.ravel(model.coef_)
    theirs = peer.fit(start_params=start, tol=1e-14, maxiter=200)
    assert_allclose(start, theirs.params, atol=1e-6)
    summary = model.summary()
    assert_allclose(1.0 if summary.dispersion is None else summary.dispersion, theirs.scale, rtol=1e-6)
    if name in ("gamma", "tweedie"):
        assert summary.dispersion == pytest.approx(model.dispersion_, rel=1e-12)
    covariance = np.linalg.inv(-peer.hessian(theirs.params, scale=theirs.scale, observed=True))
    errors = [summary.worth[j].standard_error for j in range(COLUMNS)]
    assert_allclose(errors, np.sqrt(np.diagonal(covariance))[-COLUMNS:], rtol=1e-5)


def test_check_03_the_estimated_shape_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    X, y, _ = drawn("negative_binomial")
    theirs = sm.NegativeBinomial(y, sm.add_constant(X)).fit(disp=0, method="newton", maxiter=200, tol=1e-12)
    ours = fitted("negative_binomial", dispersion="ml")
    assert_allclose(np.append(theta(ours), ours.dispersion_), theirs.params, atol=1e-6)


def test_check_03_classes_of_statsmodels():
    """It has a class of reference: differences to it are compared."""
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    X, y, _ = drawn("multinomial")
    theirs = sm.MNLogit(y, sm.add_constant(X)).fit(disp=0, method="newton", maxiter=200, tol=1e-12)
    by_class = theta(fitted("multinomial")).reshape(COLUMNS + 1, 3)
    assert_allclose(by_class[:, 1:] - by_class[:, :1], theirs.params, atol=1e-6)


def test_check_03_ordered_classes_of_statsmodels():
    module = pytest.importorskip("statsmodels.miscmodels.ordinal_model", reason="statsmodels is not installed")
    X, y, _ = drawn("ordinal")
    peer = module.OrderedModel(y.astype(int), X, distr="logit")
    theirs = peer.fit(disp=0, method="bfgs", gtol=1e-8, maxiter=2000)
    thresholds = peer.transform_threshold_params(theirs.params)[1:-1]
    assert_allclose(theta(fitted("ordinal")), np.append(thresholds, theirs.params[:COLUMNS]), atol=1e-6)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_check_03_cox_models_of_statsmodels(ties):
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    X, y, _ = drawn("cox_efron")  # of many ties
    ours = estimator(f"cox_{ties}").fit(X, y)
    theirs = sm.PHReg(y[:, 0], X, status=y[:, 1], ties=ties).fit(method="newton", disp=0)
    assert_allclose(ours.coef_, theirs.params, atol=1e-6)


# survival


def structured(y):
    return np.array([*zip(y[:, 1] > 0, y[:, 0], strict=True)], dtype=[("event", bool), ("time", float)])


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_check_03_cox_models_of_scikit_survival(ties, alpha):
    module = pytest.importorskip("sksurv.linear_model", reason="scikit-survival is not installed")
    X, y, _ = drawn("cox_efron")
    theirs = module.CoxPHSurvivalAnalysis(alpha=alpha * ROWS, ties=ties, tol=1e-12).fit(X, structured(y))
    assert_allclose(estimator(f"cox_{ties}", alpha=alpha).fit(X, y).coef_, theirs.coef_, atol=1e-6)


def test_check_10_survival_functions_of_scikit_survival():
    module = pytest.importorskip("sksurv.linear_model", reason="scikit-survival is not installed")
    X, y, _ = drawn("cox_efron")  # of many ties
    ours = estimator("cox_breslow", tol=1e-12).fit(X, y)
    theirs = module.CoxPHSurvivalAnalysis(tol=1e-12).fit(X, structured(y))
    steps = theirs.predict_survival_function(X[:20])
    expected = np.array([step(ours.event_times_) for step in steps])
    assert_allclose(ours.predict_survival_function(X[:20]), expected, atol=1e-8)
    hazards = np.array([step(ours.event_times_) for step in theirs.predict_cumulative_hazard_function(X[:20])])
    assert_allclose(ours.predict_cumulative_hazard(X[:20]), hazards, rtol=1e-8)


def lifelines_fit(X, y, **settings):
    """The Cox model of lifelines, whose ties are Efron's."""
    lifelines = pytest.importorskip("lifelines", reason="lifelines is not installed")
    table = pd.DataFrame(X).rename(columns=str).assign(time=y[:, 0], event=y[:, 1], **settings)
    weighted = {"weights_col": "weight", "robust": True} if "weight" in settings else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what pandas and NumPy deprecate, and of weights
        fit = lifelines.CoxPHFitter().fit(table, "time", "event", fit_options={"precision": 1e-12}, **weighted)
        return fit, table


def test_check_03_cox_models_of_lifelines():
    X, y, _ = drawn("cox_efron")
    assert_allclose(fitted("cox_efron").coef_, lifelines_fit(X, y)[0].params_, atol=1e-6)


def test_check_05_weights_under_efron_are_those_of_lifelines():
    """Weights are no repetitions there: the mean weight of tied deaths is the weight of each of their terms."""
    X, y, _ = drawn("cox_efron")
    weight = np.random.default_rng(0).uniform(0.5, 2.0, ROWS)
    theirs, _ = lifelines_fit(X, y, weight=weight)
    assert_allclose(estimator("cox_efron").fit(X, y, sample_weight=weight).coef_, theirs.params_, atol=1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_check_10_survival_functions_of_lifelines():
    """Of times without ties."""
    X, y, _ = drawn("cox_breslow")
    theirs, table = lifelines_fit(X, y)
    model = estimator("cox_efron").fit(X, y)
    expected = theirs.predict_survival_function(table, times=model.event_times_).to_numpy().T
    assert_allclose(model.predict_survival_function(X), expected, atol=1e-6)
    assert_allclose(model.means_, X.mean(axis=0), rtol=1e-12)
    hazards = theirs.baseline_cumulative_hazard_.loc[model.event_times_].to_numpy()[:, 0]
    assert_allclose(model.baseline_cumulative_hazard_, hazards, rtol=1e-6)


def breslow(X, y, coef):
    """The cumulative hazard at the means of the columns, by Breslow's sum over event times."""
    risks = np.exp((X - X.mean(axis=0)) @ coef)
    deaths = [(time, np.sum((y[:, 0] == time) & (y[:, 1] > 0))) for time in np.unique(y[y[:, 1] > 0, 0])]
    return np.cumsum([count / risks[y[:, 0] >= time].sum() for time, count in deaths])


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_check_10_under_efron_others_keep_the_hazard_of_breslow():
    """Ours has Efron's terms, by hand in `tests/estimators/test_cox.py`: it rises faster where deaths are tied."""
    X, y, _ = drawn("cox_efron")
    model = fitted("cox_efron")
    expected = breslow(X, y, model.coef_)
    theirs, _ = lifelines_fit(X, y)
    hazards = theirs.baseline_cumulative_hazard_.loc[model.event_times_].to_numpy()[:, 0]
    assert_allclose(hazards, expected, rtol=1e-6)
    assert (model.baseline_cumulative_hazard_ > 1.05 * expected)[1:].all()
    module = pytest.importorskip("sksurv.linear_model", reason="scikit-survival is not installed")
    other = module.CoxPHSurvivalAnalysis(ties="efron", tol=1e-12).fit(X, structured(y))
    at_means = other.predict_cumulative_hazard_function(X.mean(axis=0)[None, :])[0]
    assert_allclose(at_means(model.event_times_), expected, rtol=1e-6)


def test_check_10_the_concordance_of_lifelines():
    utils = pytest.importorskip("lifelines.utils", reason="lifelines is not installed")
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(5, 80))
        time = np.ceil(rng.exponential(size=n) * rng.choice([2, 5, 100]))
        event, u = rng.integers(0, 2, n), np.round(rng.standard_normal(n), int(rng.integers(0, 3)))
        if np.any((event[:, None] > 0) & (time[:, None] < time)):
            theirs = utils.concordance_index(time, -u, event)
            assert_allclose(concordance(np.column_stack([time, event]), u), theirs, rtol=1e-12)
