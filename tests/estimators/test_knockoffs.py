"""Selection by knockoffs: its laws on every loss, its settings and its words (check 19 of models.md)."""

import re
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import toeplitz
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.covariance import OAS, LedoitWolf, empirical_covariance
from sklearn.linear_model import (
    ElasticNet,
    HuberRegressor,
    Lars,
    Lasso,
    LassoCV,
    LassoLars,
    LinearRegression,
    LogisticRegression,
    OrthogonalMatchingPursuit,
    PoissonRegressor,
    Ridge,
)
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVR
from sklearn.tree import DecisionTreeRegressor

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError, NothingFoundWarning
from hardthresh.core.registry import registered
from hardthresh.estimators.linear.cross_validation import SparseLinearModelCV
from hardthresh.estimators.linear.model import SparseLinearModel
from hardthresh.estimators.selectors.importances import by_coefficients, by_path
from hardthresh.estimators.selectors.knockoff_columns import KnockoffColumns, shrunk_covariance
from hardthresh.selection.knockoffs import difference, knockoff_statistics, signed_maximum
from hardthresh.solvers import FixedBatch, ProbabilisticIHT, StochasticIHT
from levels import at_most, in_turn, only_at

pandas = pytest.importorskip("pandas")
MODELS = [
    entry.cls
    for entry in registered("estimator").values()
    if issubclass(entry.cls, SparseLinearModel) and not issubclass(entry.cls, SparseLinearModelCV)
]
SELECTED = 8
RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 30))
Y = X[:, :SELECTED].sum(axis=1) + RNG.standard_normal(300)


def selector(k=SELECTED, **settings):
    return ht.Knockoffs(ht.SparseLinearRegression(n_nonzero_coefs=k), **{"fdr": 0.2, "random_state": 0, **settings})


def planted(seed, n=400, d=150, k=20, amplitude=0.35, rho=0.3):
    """The setting of section 5.2: normal AR(1) columns, coefficients of one size, noise of variance 1."""
    rng = np.random.default_rng((20261123, seed))
    covariance = toeplitz(rho ** np.arange(d))
    columns = rng.standard_normal((n, d)) @ np.linalg.cholesky(covariance).T
    beta = np.zeros(d)
    beta[rng.permutation(d)[:k]] = amplitude * rng.choice([-1.0, 1.0], k)
    return columns, columns @ beta, beta != 0, covariance


def shares(support, planted):
    """The false discovery proportion, and the power."""
    chosen = np.isin(np.arange(planted.size), support)
    return (chosen & ~planted).sum() / max(1, chosen.sum()), (chosen & planted).sum() / planted.sum()


def targets_of(cls, u, rng):
    """A target of a model, for linear predictors u."""
    name = cls.__name__
    if "Cox" in name:
        return np.column_stack([rng.exponential(np.exp(-u)), rng.random(u.size) < 0.8])
    if "Ordinal" in name:
        return np.digitize(u + 0.5 * rng.logistic(size=u.size), [-1.0, 1.0])
    loss = cls()._loss
    return loss.example_target(u if loss.classifies else u / 2, rng, 0.5)


# --- laws ------------------------------------------------------------------------------------------------------------


def assert_one_sign_changes(model, y, importances, contrast):
    rng = np.random.default_rng(1)
    columns, copies = X[:100, :6], 0.5 * X[:100, :6] + rng.standard_normal((100, 6))
    beside, swapped = X[:100, 6:7], rng.random(6) < 0.5

    def statistics(columns, copies):
        def of(table):
            new = type(model)(**{**model.get_params(), "always_include": [12]})
            return importances(new, table, y)

        return knockoff_statistics(of, contrast, columns, copies, beside, swapped)

    before = statistics(columns, copies)
    assert np.count_nonzero(before) >= 2
    for j in range(3):
        exchanged = [columns.copy(), copies.copy()]
        exchanged[0][:, j], exchanged[1][:, j] = copies[:, j], columns[:, j]
        after = statistics(*exchanged)
        expected = np.where(np.arange(6) == j, -before, before)
        assert_allclose(after, expected, atol=1e-5)


@pytest.mark.slow
@at_most(3)
@in_turn("cls,statistic", MODELS, [(partial(by_path, least=4), signed_maximum), (by_coefficients, difference)])
def test_check_19_exchanging_a_pair_flips_its_sign_and_no_other(cls, statistic):
    y = targets_of(cls, 2.0 * (X[:100, 0] - X[:100, 2] + X[:100, 6]), np.random.default_rng(2))
    assert_one_sign_changes(cls(n_nonzero_coefs=3), y, *statistic)


@pytest.mark.slow
def test_several_outputs_and_classes_keep_this_law():
    rng = np.random.default_rng(3)
    u = X[:100, :2] @ np.array([[2.0, 1.0, -1.0], [0.0, 2.0, -2.0]]) + 0.3 * rng.standard_normal((100, 3))
    for cls, y in ((ht.SparseLinearRegression, u), (ht.SparseLogisticRegression, u.argmax(axis=1))):
        assert_one_sign_changes(cls(n_nonzero_coefs=3), y, lambda *a: by_path(*a, least=4), signed_maximum)


def test_the_path_counts_the_models_that_have_a_column():
    """On orthonormal columns the model of k features has the k largest; coefficients break ties."""
    table = np.linalg.qr(np.random.default_rng(4).standard_normal((20, 5)))[0]
    y = table @ np.array([5.0, 1.0, 4.0, 2.0, 0.0])
    model = ht.SparseLinearRegression(n_nonzero_coefs=2, fit_intercept=False, standardize=False)
    assert_allclose(by_path(model, table, y, least=1), [4.5, 1.1, 3.4, 2.2, 0.0], atol=1e-9)
    assert_allclose(by_path(model.set_params(n_nonzero_coefs=1), table, y, least=1), [2.5, 0, 1.4, 0, 0], atol=1e-9)
    assert_allclose(by_path(model, table, y, least=4)[1], 1.1, atol=1e-9)


def test_fixed_knockoffs_of_weighted_rows_have_the_weighted_moments():
    weights = np.where(np.arange(300) < 40, 0.0, RNG.uniform(0.5, 2.0, 300))
    columns = KnockoffColumns.of(X, weights, (3,), str)
    copies = columns.fixed(intercept=True)(np.random.default_rng(0))
    tested, mean = columns.tested, np.average(X, axis=0, weights=weights)
    assert_array_equal(tested, np.delete(np.arange(30), 3))
    assert_allclose(np.average(copies, axis=0, weights=weights), mean[tested], atol=1e-10)
    own, other = X - mean, copies - mean[tested]
    gram = (weights[:, None] * own).T @ own
    assert_allclose((weights[:, None] * other).T @ other, gram[np.ix_(tested, tested)], atol=1e-9)
    across = (weights[:, None] * own).T @ other - gram[:, tested]
    assert_allclose(across[3], 0.0, atol=1e-9)
    across[tested, np.arange(29)] = 0.0
    assert_allclose(across, 0.0, atol=1e-9)


def test_with_fixed_knockoffs_a_rotation_of_the_rows_changes_nothing():
    """The law that the level of fixed knockoffs rests on: the statistics depend on the products of all rows alone."""
    table = np.column_stack([X[:, :6], 0.5 * X[:, :6] + X[:, 6:12]])
    table, y = table - table.mean(axis=0), Y - Y.mean()
    v = np.random.default_rng(5).standard_normal((300, 1))
    v = v - v.mean()
    turn = np.eye(300) - 2.0 * v @ v.T / (v.T @ v)  # a reflection that keeps a column of ones
    for model in (ht.SparseLinearRegression(n_nonzero_coefs=3), ht.SparseLinearRegression()):
        assert_allclose(by_path(model, turn @ table, turn @ y, least=4), by_path(model, table, y, least=4), atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [LinearRegression(), Ridge(), ElasticNet(0.05), Lasso(0.1), Lars(), LassoLars(0.1), OrthogonalMatchingPursuit()],
    ids=lambda model: type(model).__name__,
)
def test_estimators_of_scikit_learn_for_fixed_knockoffs_keep_this_law(model):
    """Each depends on the products of all rows alone, so that a rotation of them changes no coefficient."""
    table, y = X - X.mean(axis=0), Y - Y.mean()
    v = np.random.default_rng(5).standard_normal((300, 1))
    turn = np.eye(300) - 2.0 * (v - v.mean()) @ (v - v.mean()).T / np.sum((v - v.mean()) ** 2)
    expected = by_coefficients(clone(model), table, y)
    assert_allclose(by_coefficients(clone(model), turn @ table, turn @ y), expected, atol=1e-3)
    assert expected.max() > 0.1
    ht.Knockoffs(model, kind="fixed", statistic="coef", fdr=0.4).fit(X, Y)


def test_fixed_knockoffs_need_no_rows_of_weight_zero():
    more, weights = np.vstack([X, X[:9] + 1.0]), np.r_[np.ones(300), np.zeros(9)]
    without = selector(kind="fixed").fit(X, Y)
    assert_allclose(
        selector(kind="fixed").fit(more, np.r_[Y, np.full(9, 50.0)], sample_weight=weights).statistics_,
        without.statistics_,
        atol=1e-6,
    )


# --- the level and the power -----------------------------------------------------------------------------------------


def rates(seeds, target, make):
    found = []
    for seed in seeds:
        columns, u, true, covariance = planted(seed)
        found.append(shares(make(seed, covariance).fit(columns, target(u, seed)).support_, true))
    return np.mean(found, axis=0)


def with_noise(u, seed):
    return u + np.random.default_rng((7, seed)).standard_normal(u.size)


KINDS = {
    "true covariance": lambda seed, S: selector(20, random_state=seed, covariance=S),
    "Ledoit-Wolf": lambda seed, S: selector(20, random_state=seed),
    "fixed": lambda seed, S: selector(20, random_state=seed, kind="fixed"),
    "chosen k": lambda seed, S: selector("auto", random_state=seed),
    "derandomised": lambda seed, S: selector(20, random_state=seed, n_draws=5),
}


def test_check_19_the_features_are_found():
    """Six seeds; the standard error of the rate is at most .05, and benchmarks/knockoffs.py has forty."""
    rate, power = rates(range(6), with_noise, KINDS["Ledoit-Wolf"])
    assert rate <= 0.3
    assert power >= 0.95


@only_at("all")
@pytest.mark.parametrize("name", KINDS)
def test_check_19_the_level_is_kept(name):
    """Forty seeds of section 5.2."""
    rate, power = rates(range(40), with_noise, KINDS[name])
    assert rate <= 0.24
    assert power >= 0.95


@only_at("all")
@pytest.mark.parametrize(
    ("cls", "size"),
    [(ht.SparseLogisticRegression, 2.5), (ht.SparsePoissonRegression, 0.7), (ht.SparseCoxRegression, 1.2)],
)
def test_check_19_other_losses_keep_the_level(cls, size):
    """Five seeds of 600 rows; benchmarks/knockoffs.py has forty."""
    found = []
    for seed in range(5):
        columns, u, true, _ = planted(seed, n=600)
        y = targets_of(cls, size * u, np.random.default_rng((9, seed)))
        model = ht.Knockoffs(cls(n_nonzero_coefs=20), fdr=0.2, random_state=seed)
        found.append(shares(model.fit(columns, y).support_, true))
    rate, power = np.mean(found, axis=0)
    assert rate <= 0.32  # two standard errors are .12
    assert power >= 0.9


@only_at("all")
@pytest.mark.parametrize("kind", ["gaussian", "fixed"])
def test_pure_noise_is_rarely_selected(kind):
    """The rate is the share of 200 samples in which anything is selected: at most .2, with a standard error of .03."""
    found = []
    for seed in range(200):
        rng = np.random.default_rng((8, seed))
        model = selector(10, random_state=seed, kind=kind)
        found.append(model.fit(rng.standard_normal((100, 20)), rng.standard_normal(100)).support_.size > 0)
    assert np.mean(found) <= 0.26


# --- what is set, and what is said -----------------------------------------------------------------------------------


def test_what_is_selected_and_what_is_kept():
    model = selector(random_state=1).fit(X, Y)
    assert_array_equal(model.support_, np.flatnonzero(model.statistics_[0] >= model.threshold_[0]))
    assert set(range(SELECTED)) <= set(model.support_.tolist())
    ahead = np.count_nonzero(model.statistics_ >= model.threshold_)
    behind = np.count_nonzero(model.statistics_ <= -model.threshold_)
    assert model.estimated_fdp_ == (1 + behind) / ahead <= 0.2
    assert_array_equal(np.flatnonzero(model.e_values_), model.support_)
    assert_allclose(model.e_values_[model.support_], 30 / (1 + behind))
    assert_array_equal(model.transform(X), X[:, model.support_])
    assert_array_equal(model.get_support(indices=True), model.support_)


def test_the_draws_are_those_of_the_seed():
    several = selector(n_draws=3).fit(X, Y)
    assert_array_equal(several.statistics_[0], selector().fit(X, Y).statistics_[0])
    assert_array_equal(several.statistics_, selector(n_draws=3).fit(X, Y).statistics_)
    assert np.any(several.statistics_ != selector(n_draws=3, random_state=1).fit(X, Y).statistics_)
    assert np.any(several.statistics_[0] != several.statistics_[1])


@pytest.mark.parametrize("seed", [0, (0, 0), (0, 1), (0, 0, 1)])
def test_knockoffs_by_default_do_not_copy_data_simulated_with_a_small_seed(seed):
    """They share no random numbers: a knockoff that is its own column, or its mirror image, tells nothing."""
    columns, seen = np.random.default_rng(seed).standard_normal((300, 30)), []

    def importances(model, table, y):
        seen.append(np.abs(np.corrcoef(table, rowvar=False)[:30, 30:]))
        return np.arange(60.0)

    ht.Knockoffs(ht.SparseLinearRegression(), statistic=importances, n_draws=2, fdr=0.2).fit(columns, Y)
    assert len(seen) == 2
    assert np.max(seen) < 0.3


def test_several_draws_select_by_mean_e_values():
    columns, u, true, _ = planted(1)
    y = with_noise(u, 1)
    model = selector(20, n_draws=4).fit(columns, y)
    for row, threshold in zip(model.statistics_, model.threshold_, strict=True):
        assert (1 + np.sum(row <= -threshold)) / np.sum(row >= threshold) <= 0.1
    e_values = [
        150 * (row >= t) / (1 + np.sum(row <= -t)) for row, t in zip(model.statistics_, model.threshold_, strict=True)
    ]
    assert_allclose(model.e_values_, np.mean(e_values, axis=0))
    least = model.e_values_[model.support_].min()
    assert_allclose(model.estimated_fdp_, 150 / (model.support_.size * least))
    assert model.estimated_fdp_ <= 0.2
    assert shares(model.support_, true)[1] >= 0.9
    assert "mean e-values over 4 draws" in model.statement()


def test_with_several_draws_the_offset_does_not_change_what_the_level_bounds():
    statement = selector(offset=0, n_draws=2, fdr=0.5).fit(X, Y).statement()
    assert "at the false discovery rate 0.5" in statement
    assert "mean share of null features" in statement
    assert "modified" not in statement


def test_an_empty_selection_explains_the_level_and_the_offset():
    """Check 19: eight features ahead of their knockoffs are too few for the level .05."""
    model = selector(fdr=0.05, random_state=1)
    message = (
        r"nothing is selected at fdr=0.05: the best threshold has (\d+) features ahead of their knockoffs and 0 "
        r"behind, an estimated share of \(1 \+ 0\) / \1 = 0\.1\d*; with offset=1 this level takes 20 or more"
    )
    with pytest.warns(NothingFoundWarning, match=message):
        model.fit(X, Y)
    assert re.search(message, "n" + model.statement()[1:])
    assert model.estimated_fdp_ == 0.0
    assert np.isinf(model.threshold_).all()
    found = selector(fdr=0.05, random_state=1, offset=0).fit(X, Y)
    assert found.support_.size >= SELECTED
    assert "modified false discovery rate 0.05" in found.statement()
    assert "V / (R + 20)" in found.statement()


def test_an_empty_selection_of_several_draws_says_what_each_takes():
    with pytest.warns(NothingFoundWarning, match=r"in 0 of 3 draws .* fdr / 2, which takes 20 or more"):
        model = selector(fdr=0.1, n_draws=3, random_state=1).fit(X, Y)
    assert model.estimated_fdp_ == 0.0


def test_a_target_without_a_trace_of_any_column_says_so():
    with pytest.warns(NothingFoundWarning, match="no feature is more important than its knockoff"):
        selector(statistic=lambda model, table, y: np.ones(table.shape[1])).fit(X, Y)


def test_the_statement_names_the_assumptions():
    gaussian, fixed = selector().fit(X, Y).statement(), selector(kind="fixed").fit(X, Y).statement()
    given = selector(covariance=np.eye(30)).fit(X, Y).statement()
    assert "over repetitions of the study" in gaussian
    assert "no guarantee for a finite number of rows" in gaussian
    assert "draws of a normal distribution" in given
    assert "no guarantee" not in given
    assert "no guarantee" not in fixed
    assert "independent normal errors of equal variance; a" in fixed

    def own(model, table, y):
        return np.abs(table.T @ y)

    for kind, duty in (
        ("fixed", "the given statistic depends on the rows through their products alone;"),
        ("gaussian", "the given statistic treats all columns alike;"),
    ):
        given = selector(kind=kind, statistic=own, fdr=0.5).set_params(estimator=PoissonRegressor())
        assert duty in given.fit(X, Y).statement()


def test_it_is_stored_and_loaded(tmp_path):
    model = ht.Knockoffs(
        ht.SparseLinearRegression(n_nonzero_coefs=5), fdr=0.2, covariance=np.eye(30), random_state=3
    ).fit(pandas.DataFrame(X, columns=[f"gene{j}" for j in range(30)]), Y)
    ht.save(model, tmp_path / "selector.json")
    loaded = ht.load(tmp_path / "selector.json")
    assert_array_equal(loaded.support_, model.support_)
    assert_array_equal(loaded.get_feature_names_out(), [f"gene{j}" for j in model.support_])
    assert loaded.statement() == model.statement()
    assert loaded.estimator.n_nonzero_coefs == 5


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"support_": np.array([30])}, "support_ names features beyond the 30 columns"),
        ({"statistics_": np.full((1, 30), np.nan)}, "statistics_ holds NaN"),
        ({"e_values_": np.zeros(3)}, r"e_values_ has shape \(3,\)"),
    ],
)
def test_what_does_not_fit_together_is_not_stored(attributes, message, tmp_path):
    model = selector().fit(X, Y)
    vars(model).update(attributes)
    with pytest.raises(ht.storage.StorageError, match=f"not a sound Knockoffs: {message}"):
        ht.save(model, tmp_path / "selector.json")


# --- data and settings -----------------------------------------------------------------------------------------------


def test_always_included_columns_are_in_every_fit_and_never_selected():
    for kind in ("gaussian", "fixed"):
        model = selector(kind=kind, random_state=1)
        model.set_params(estimator__always_include=[0, 29]).fit(X, Y)
        assert_array_equal(model.tested_, np.arange(1, 29))
        assert_array_equal(model.statistics_[:, [0, 29]], 0.0)
        assert set(range(1, SELECTED)) <= set(model.support_.tolist()) <= set(range(1, 29))


def test_constant_columns_are_left_out():
    columns = np.insert(X, 2, 3.0, axis=1)
    model = selector(random_state=1).fit(columns, Y)
    assert_array_equal(model.tested_, np.delete(np.arange(31), 2))
    assert 2 not in model.support_
    with pytest.raises(InvalidInputError, match="X has no column to test"):
        selector().fit(np.ones((20, 3)), Y[:20])


def test_the_scale_of_a_column_does_not_matter():
    scale = 10.0 ** np.linspace(-4, 4, 30)
    for settings in ({}, {"kind": "fixed"}, {"covariance": "empirical"}, {"covariance": OAS()}):
        assert_array_equal(selector(**settings).fit(X * scale, Y).support_, selector(**settings).fit(X, Y).support_)


def test_single_precision_selects_the_same():
    single = selector(random_state=1).fit(X.astype(np.float32), Y.astype(np.float32))
    assert_array_equal(single.support_, selector(random_state=1).fit(X, Y).support_)


def test_the_covariance_may_be_given_or_estimated_in_any_way():
    mean = X.mean(axis=0)
    given = selector(covariance=(X - mean).T @ (X - mean) / 300).fit(X, Y)
    by_function = selector(covariance=lambda rows: empirical_covariance(rows, assume_centered=True)).fit(X, Y)
    empirical = selector(covariance="empirical").fit(X, Y)
    assert_allclose(given.statistics_, empirical.statistics_, atol=1e-6)
    assert_allclose(by_function.statistics_, empirical.statistics_, atol=1e-6)
    assert_array_equal(selector(covariance=OAS(assume_centered=True)).fit(X, Y).support_[:SELECTED], range(SELECTED))


@pytest.mark.parametrize(("n", "d"), [(300, 30), (20, 30), (50, 1), (5, 2)])
def test_the_shrunk_covariance_is_that_of_scikit_learn(n, d):
    rows = X[:n, :d] @ np.linalg.cholesky(toeplitz(0.6 ** np.arange(d))).T
    rows = rows - rows.mean(axis=0)
    assert_allclose(shrunk_covariance(rows), LedoitWolf(assume_centered=True).fit(rows).covariance_, atol=1e-12)


def test_other_estimators_are_compared_by_their_coefficients():
    model = ht.Knockoffs(LassoCV(cv=3), fdr=0.2, statistic="coef", random_state=1).fit(X, Y)
    assert set(range(SELECTED)) <= set(model.support_.tolist())

    def importances(model, table, y):
        return np.abs(model.fit(table, y).coef_) * table.std(axis=0)

    by_hand = ht.Knockoffs(LassoCV(cv=3), fdr=0.2, statistic=importances, random_state=1).fit(X, Y)
    assert_allclose(by_hand.statistics_, model.statistics_)


@at_most(4)
@pytest.mark.parametrize(
    "estimator",
    [
        ht.SparseLinearRegression(n_features_original=40),
        ht.SparseLinearRegression(n_nonzero_coefs="search"),
        ht.SparseLinearRegressionCV(cv=3),
        ht.SparseLinearRegressionCV(cv=3, alphas=0.0),
        ht.SparseLinearRegressionCV(criterion="ebic"),
    ],
    ids=["criterion", "search", "grid", "one ridge", "grid by criterion"],
)
def test_the_number_of_features_is_chosen_among_columns_and_knockoffs(estimator):
    model = ht.Knockoffs(estimator, fdr=0.2, random_state=1).fit(X, Y)
    assert set(range(SELECTED)) <= set(model.support_.tolist())


def test_a_pipeline_fits_a_model_to_the_selected_features():
    model = make_pipeline(selector(random_state=1), ht.SparseLinearRegression(n_nonzero_coefs=3)).fit(X, Y)
    assert model[-1].n_features_in_ == model[0].support_.size
    positive = selector(random_state=1).set_params(estimator__positive=True, estimator__bounds=None).fit(X, Y)
    assert set(range(SELECTED)) <= set(positive.support_.tolist())


@pytest.mark.slow
def test_metadata_go_to_the_estimator():
    rng = np.random.default_rng(6)
    strata = np.repeat([0, 1], 150)
    time = rng.exponential(np.exp(-Y / 2) * (1 + 50 * strata))
    y = np.column_stack([time, np.ones(300)])
    cox = ht.Knockoffs(ht.SparseCoxRegression(n_nonzero_coefs=8), fdr=0.2, random_state=1)
    with_strata = cox.fit(X, y, strata=strata).statistics_
    assert np.any(with_strata != cox.fit(X, y).statistics_)
    offset = 3.0 * X[:, 29]
    known = selector(random_state=1).fit(X, Y + offset, offset=offset)
    assert_allclose(known.statistics_, selector(random_state=1).fit(X, Y).statistics_, atol=1e-6)
    with pytest.raises(TypeError, match="unexpected keyword argument 'strata'"):
        selector().fit(X, Y, strata=strata)
    with config_context(enable_metadata_routing=True):
        routed = selector(random_state=1)
        routed.estimator.set_fit_request(offset=True)
        assert_allclose(routed.fit(X, Y + offset, offset=offset).statistics_, known.statistics_, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fdr": 1.0}, "fdr must be a finite number > 0 and < 1, got 1.0"),
        ({"kind": "model-X"}, "kind must be one of 'gaussian', 'fixed'"),
        ({"offset": 2}, "offset must be 0 or 1, got 2"),
        ({"n_draws": 0}, "n_draws must be >= 1"),
        ({"statistic": "lasso"}, "statistic must be one of 'path', 'coef'"),
        ({"covariance": "oas"}, "covariance must be one of 'ledoit_wolf', 'empirical'"),
        ({"covariance": np.eye(3)}, r"covariance has shape \(3, 3\); a symmetric \(30, 30\) array is needed"),
        ({"covariance": lambda rows: np.eye(3)}, r"gave shape \(3, 3\); finite numbers of shape \(30, 30\)"),
        ({"statistic": lambda model, table, y: [1.0]}, "a finite number for each of 60 columns"),
        ({"statistic": lambda model, table, y: np.full(60, np.nan)}, "statistic returned NaN"),
        ({"estimator__groups": [0, 1] * 15, "estimator__n_nonzero_coefs": "auto"}, "knockoffs of groups are not"),
        ({"estimator__categorical_features": [0]}, "knockoffs of categorical columns are not available"),
        ({"estimator__bounds": {0: (0, None)}}, "a column and its knockoff need the same bounds"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        selector().set_params(**settings).fit(X, Y)


def test_estimators_and_data_that_cannot_be_used_are_refused():
    with pytest.raises(InvalidInputError, match=r'statistic="path" needs a sparse linear model, got LassoCV.*"coef"'):
        ht.Knockoffs(LassoCV()).fit(X, Y)
    with pytest.raises(InvalidInputError, match=r"got the class LassoCV; write LassoCV\(\.\.\.\)"):
        ht.Knockoffs(LassoCV, statistic="coef").fit(X, Y)
    with pytest.raises(InvalidInputError, match="needs an estimator with coef_, which DecisionTreeRegressor has not"):
        ht.Knockoffs(DecisionTreeRegressor(), statistic="coef").fit(X, Y)
    for classifier in (LogisticRegression(), ht.SparseLogisticRegression()):
        with pytest.raises(InvalidInputError, match='kind="fixed" is for least squares'):
            ht.Knockoffs(classifier, kind="fixed", statistic="coef").fit(X, Y > 0)
    for of_folds, statistic in ((ht.SparseLinearRegressionCV(), "path"), (LassoCV(), "coef")):
        with pytest.raises(InvalidInputError, match="through their products alone, which those of folds are not"):
            ht.Knockoffs(of_folds, kind="fixed", statistic=statistic).fit(X, Y)
    for other in (PoissonRegressor(), HuberRegressor(), LinearSVR()):
        with pytest.raises(InvalidInputError, match=f"{type(other).__name__} is not known to see .*LinearRegression"):
            ht.Knockoffs(other, kind="fixed", statistic="coef").fit(X, Y)
    for solver in (ProbabilisticIHT(), StochasticIHT(0.1, batch=FixedBatch(50))):
        of_batches = ht.SparseLinearRegression(n_nonzero_coefs=5, solver=solver)
        with pytest.raises(InvalidInputError, match=r'solver of SparseLinearRegression draws batches.*solver="auto"'):
            ht.Knockoffs(of_batches, kind="fixed").fit(X, Y)
    by_criterion = ht.Knockoffs(ht.SparseLinearRegressionCV(criterion="ebic"), kind="fixed", fdr=0.2, random_state=1)
    assert set(range(SELECTED)) <= set(by_criterion.fit(X, Y).support_.tolist())
    with pytest.raises(InvalidInputError, match='here 61 rows; there are 60: use kind="gaussian"'):
        selector(kind="fixed").fit(X[:60], Y[:60])
    with pytest.raises(InvalidInputError, match=r'linear combination.*give covariance="ledoit_wolf"'):
        selector(covariance="empirical").fit(X[:20], Y[:20])
    copied = pandas.DataFrame(np.column_stack([X, X[:, 3]]), columns=[f"gene{j}" for j in range(31)])
    with pytest.raises(InvalidInputError, match=r"gene30 is a linear combination of the columns before it.*leave it"):
        selector(kind="fixed").fit(copied, Y)
    with pytest.raises(TypeError, match="dense data is required"):
        selector().fit(csr_array(X), Y)
    with pytest.raises(InvalidInputError, match=r"column 'city' .*categor"):
        selector().fit(pandas.DataFrame({"a": X[:, 0], "city": pandas.Categorical(["x", "y"] * 150)}), Y)


def test_copies_of_a_column_share_their_evidence():
    """With a shrunk covariance two equal columns have knockoffs, and the selection is that of other columns."""
    model = selector(random_state=1).fit(np.column_stack([X, X[:, 29]]), Y)
    assert set(range(SELECTED)) <= set(model.support_.tolist())
