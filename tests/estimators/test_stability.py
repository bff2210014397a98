"""Stability selection: halves that are fitted by themselves, what they follow, and what is said of them."""

import copy
import pickle

import joblib
import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError, NothingFoundWarning
from hardthresh.estimators.selectors import stability
from hardthresh.selection import complementary_pairs, low_probability_bound
from levels import at, at_most

pytestmark = pytest.mark.filterwarnings("ignore::hardthresh.core.errors.NothingFoundWarning")

N, D = 60, 12
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)) * np.linspace(0.5, 2.0, D) + 1.0
U = (X - 1.0)[:, [1, 4, 7]] @ [1.0, -0.8, 0.5]
Y = U + RNG.standard_normal(N)
CLASSES = np.where(U + RNG.standard_normal(N) > 0.8, "ill", "well")
TIMES = RNG.exponential(np.exp(-U))
SURVIVAL = np.column_stack([np.minimum(TIMES, 1.0), TIMES <= 1.0])

MODELS = {
    "least squares": (ht.SparseLinearRegression(n_nonzero_coefs=3), Y),
    "several outputs": (ht.SparseLinearRegression(n_nonzero_coefs=2), np.column_stack([Y, U])),
    "classes": (ht.SparseLogisticRegression(n_nonzero_coefs=3), CLASSES),
    "counts": (ht.SparsePoissonRegression(n_nonzero_coefs=2), RNG.poisson(np.exp(0.3 * U))),
    "censored times": (ht.SparseCoxRegression(n_nonzero_coefs=2), SURVIVAL),
    "ordered classes": (ht.SparseOrdinalRegression(n_nonzero_coefs=2), np.digitize(U, [-1.0, 1.0])),
    "criterion": (ht.SparseLinearRegression(), Y),
    "cross-validation": (ht.SparseLinearRegressionCV(n_nonzero_coefs=range(4), alphas=[0.0], cv=2), Y),
    "lasso": (Lasso(alpha=0.3), Y),
    "univariate": (SelectKBest(k=2), Y > 0),
}
EVENTS = {"censored times": SURVIVAL[:, 1], "classes": CLASSES, "ordered classes": np.digitize(U, [-1.0, 1.0])}


def selector(estimator, n_pairs=5, **settings):
    return ht.StabilitySelection(estimator, n_pairs=n_pairs, **settings)


def by_hand(estimator, X, y, pairs, **params):
    """The slow twin: the share of halves, and of pairs, in which fits choose each column."""
    shares, both = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for pair in pairs:
        masks = []
        for rows in pair:
            model = clone(estimator).fit(X[rows], y[rows], **{name: x[rows] for name, x in params.items()})
            masks.append(model.get_support() if hasattr(model, "get_support") else model.coef_ != 0)
        shares += sum(masks) / (2 * len(pairs))
        both += (masks[0] & masks[1]) / len(pairs)
    return shares, both


@pytest.mark.slow
@at_most(3)
@pytest.mark.parametrize("name", MODELS)
def test_frequencies_are_those_of_fits_to_each_half(name):
    estimator, y = MODELS[name]
    found = selector(estimator).fit(X, y)
    shares, both = by_hand(estimator, X, y, complementary_pairs(N, 5, 0, EVENTS.get(name)))
    np.testing.assert_allclose(found.inclusion_frequencies_, shares, atol=1e-12)
    np.testing.assert_allclose(found.pair_frequencies_, both, atol=1e-12)
    assert_array_equal(found.support_, np.flatnonzero(shares >= 0.75))
    assert (found.n_failed_, found.n_pairs_) == (0, 5)
    assert found.mean_n_chosen_ == pytest.approx(shares.sum())
    bound = low_probability_bound(found.mean_n_chosen_, D, 5, 0.75)
    assert (found.expected_false_, str(found.statement())) == (bound.value, str(bound))


def test_check_18_halves_that_share_their_work_choose_what_independent_fits_do():
    rng = np.random.default_rng(18)
    noise = rng.standard_normal((200, 600))
    wide = noise.copy()
    for j in range(1, 600):
        wide[:, j] = 0.5 * wide[:, j - 1] + np.sqrt(0.75) * noise[:, j]
    y = wide[:, ::100] @ rng.choice([-1.0, 1.0], 6) + 2.0 * rng.standard_normal(200)
    together = ht.StabilitySelection(ht.SparseLinearRegression(n_nonzero_coefs=6), n_pairs=10).fit(wide, y)
    alone = ht.StabilitySelection(ht.SparseLinearRegression(n_nonzero_coefs=6, solver="working_set"), n_pairs=10)
    gaps = np.abs(together.inclusion_frequencies_ - alone.fit(wide, y).inclusion_frequencies_)
    assert gaps.max() <= 0.05 + 1e-12  # one half of twenty
    assert gaps.sum() <= 0.2 + 1e-12


def test_only_what_shares_its_work_is_fitted_together(monkeypatch):
    def none(*arguments):
        raise AssertionError("a half was fitted alone")

    monkeypatch.setattr(stability, "choice_of_rows", none)
    for alike in ({}, {"alpha": 0.1}, {"fit_intercept": False}, {"positive": True}, {"always_include": [0]}):
        selector(ht.SparseLinearRegression(n_nonzero_coefs=2, **alike)).fit(X, Y)
    selector(ht.SparseLinearRegression(n_nonzero_coefs=2)).fit(sp.csr_array(X), Y)
    for other in ({"n_nonzero_coefs": "auto"}, {"solver": "pursuit"}):
        with pytest.raises(AssertionError, match="a half was fitted alone"):
            selector(ht.SparseLinearRegression(**{"n_nonzero_coefs": 2, **other})).fit(X, Y)


@pytest.mark.slow
def test_parameters_of_fit_follow_the_rows():
    weight, offset = RNG.integers(1, 4, N).astype(float), X[:, 0]
    strata = np.repeat(["a", "b"], N // 2)
    for estimator, y, params in (
        (ht.SparseLinearRegression(n_nonzero_coefs=3), Y, {"sample_weight": weight, "offset": offset}),
        (
            ht.SparsePoissonRegression(n_nonzero_coefs=2),
            MODELS["counts"][1],
            {"sample_weight": weight, "offset": offset},
        ),
        (ht.SparseCoxRegression(n_nonzero_coefs=2), SURVIVAL, {"strata": strata, "sample_weight": weight}),
    ):
        found = selector(estimator).fit(X, y, **params)
        labels = SURVIVAL[:, 1] if y is SURVIVAL else None
        shares, _ = by_hand(estimator, X, y, complementary_pairs(N, 5, 0, labels), **params)
        np.testing.assert_allclose(found.inclusion_frequencies_, shares, atol=1e-12)


@pytest.mark.parametrize("solver", ["auto", "pursuit"])
def test_rows_of_weight_zero_change_nothing(solver):
    estimator = ht.SparseLinearRegression(n_nonzero_coefs=3, solver=solver)
    weight = np.ones(N)
    weight[::7] = 0.0
    kept = weight > 0
    wrong = np.where(kept, Y, 1e3)
    found = selector(estimator).fit(X, wrong, sample_weight=weight)
    alone = selector(estimator).fit(X[kept], Y[kept])
    assert_array_equal(found.inclusion_frequencies_, alone.inclusion_frequencies_)


def test_classes_and_events_are_divided_evenly():
    rare = np.arange(N) % 15 == 0
    found = selector(ht.SparseLogisticRegression(n_nonzero_coefs=1)).fit(X, np.where(rare, "yes", "no"))
    assert found.n_failed_ == 0
    censored = np.column_stack([TIMES, rare])
    assert selector(ht.SparseCoxRegression(n_nonzero_coefs=1)).fit(X, censored).n_failed_ == 0


def test_halves_that_cannot_be_fitted_are_counted():
    """Two counts that are not zero are in one half of some pairs, and then the other has only zeros."""
    y = np.zeros(N)
    y[:2] = 5.0
    together = [any({0, 1} <= set(half) for half in pair) for pair in complementary_pairs(N, 8, 0)]
    assert 0 < sum(together) < 8
    with pytest.warns(UserWarning, match=f"{sum(together)} of 16 half-samples could not be fitted") as caught:
        found = selector(ht.SparsePoissonRegression(n_nonzero_coefs=1, alpha=0.1), n_pairs=8).fit(X, y)
    assert any("all targets are 0" in str(one.message) for one in caught)
    assert (found.n_failed_, found.n_pairs_) == (sum(together), 8 - sum(together))
    assert found.statement().n_pairs == found.n_pairs_
    assert found.statement().n_left_out == sum(together)
    plain = str(low_probability_bound(found.mean_n_chosen_, D, found.n_pairs_, 0.75))
    assert f" {sum(together)} pairs of which a half could not be fitted are left out" in str(found.statement())
    assert "the bound is approximate" in str(found.statement())
    assert "approximate" not in plain


def test_without_a_fit_there_is_nothing_to_transform_by():
    with pytest.raises(NotFittedError):
        selector(ht.SparseLinearRegression()).transform(X)


def test_no_job_is_refused():
    with pytest.raises(InvalidInputError, match="n_jobs must be None, or an integer other than 0"):
        ht.StabilitySelection(ht.SparseLinearRegression(n_nonzero_coefs=2), n_jobs=0).fit(X, np.arange(N))


def test_without_a_pair_there_is_an_error():
    y = np.zeros(N)
    y[0] = 5.0
    message = (
        r"no pair of halves could be fitted; the first reason: all targets are .*\. Each half has .*: give more of"
    )
    with pytest.raises(InvalidInputError, match=message):
        selector(ht.SparsePoissonRegression(n_nonzero_coefs=1, alpha=0.1)).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_halves_without_a_minimiser_are_counted():
    """A column separates the classes of all halves but those with the two rows on its wrong side."""
    column = np.linspace(-1.0, 1.0, N)
    y = column > 0
    y[[5, 8]] = True
    both = [all({5, 8} & set(half) for half in pair) for pair in complementary_pairs(N, 10, 0, y)]
    model = ht.SparseLogisticRegression(n_nonzero_coefs=1, alpha=0.0)
    with pytest.warns(UserWarning, match="no finite minim|decreases|separate|without bound"):
        found = selector(model, n_pairs=10).fit(column[:, None], y)
    assert found.n_pairs_ == sum(both)


def test_the_number_of_features_may_be_given_here():
    few = selector(ht.SparseLinearRegression(), n_nonzero_coefs=2).fit(X, Y)
    assert (few.mean_n_chosen_, few.estimator_.n_nonzero_coefs, few.estimator.n_nonzero_coefs) == (2.0, 2, "auto")
    groups = ht.SparseLinearRegression(groups=np.arange(D) // 2)
    assert selector(groups, n_nonzero_coefs=2).fit(X, Y).estimator_.n_nonzero_groups == 2
    with pytest.raises(
        InvalidInputError, match="n_nonzero_coefs is for estimators that have this parameter; Lasso has"
    ):
        selector(Lasso(), n_nonzero_coefs=2).fit(X, Y)


def test_requested_features_are_no_candidates():
    found = selector(ht.SparseLinearRegression(n_nonzero_coefs=2, always_include=[0, 5])).fit(X, Y)
    assert_array_equal(found.inclusion_frequencies_[[0, 5]], [1.0, 1.0])
    assert (found.n_candidates_, found.mean_n_chosen_) == (D - 2, 2.0)


def test_groups_count_as_one():
    labels = np.repeat(np.arange(D // 3), 3)
    found = selector(ht.SparseLinearRegression(groups=labels, n_nonzero_groups=2)).fit(X, Y)
    assert (found.n_candidates_, found.mean_n_chosen_) == (D // 3, 2.0)
    frequencies = found.inclusion_frequencies_.reshape(-1, 3)
    assert_array_equal(frequencies, frequencies[:, :1] * np.ones(3))


def test_columns_of_overlapping_groups_are_counted():
    lists = {"first": [0, 1, 2], "second": [2, 3, 4], "third": [4, 5, 6, 7, 8, 9, 10, 11]}
    found = selector(ht.SparseLinearRegression(groups=lists, n_nonzero_groups=1)).fit(X, Y)
    assert found.n_candidates_ == D
    assert found.mean_n_chosen_ == pytest.approx(found.inclusion_frequencies_.sum())


def frame(library):
    city = np.array(["Bonn", "Paris", "Rome"])[RNG.integers(0, 3, N)]
    y = Y + 4.0 * (city == "Rome")
    table = pl.DataFrame(X, schema=[f"x{j}" for j in range(D)]).with_columns(
        pl.Series("city", city).cast(pl.Categorical)
    )
    return (table if library == "polars" else table.to_pandas()), y


@pytest.mark.slow
@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_categorical_column_is_one_feature(library):
    table, y = frame(library)
    found = selector(ht.SparseLinearRegression(n_nonzero_coefs=3)).fit(table, y)
    assert found.inclusion_frequencies_.shape == (D + 1,)
    assert found.inclusion_frequencies_[D] == 1.0
    assert (found.n_candidates_, found.mean_n_chosen_) == (D + 1, 3.0)
    assert "city" in found.get_feature_names_out()
    assert found.transform(table).shape == (N, found.support_.size)
    chosen = found.set_output(transform=library).transform(table)
    assert list(chosen.columns) == list(found.get_feature_names_out())


def test_names_of_an_earlier_table_are_forgotten():
    table, y = frame("polars")
    found = selector(ht.SparseLinearRegression(n_nonzero_coefs=3)).fit(table, y).fit(X, Y)
    assert not hasattr(found, "feature_names_in_")
    assert found.n_features_in_ == D


@pytest.mark.slow
def test_storage_and_library_do_not_matter():
    estimator = ht.SparseLinearRegression(n_nonzero_coefs=3)
    found = selector(estimator).fit(X, Y)
    assert_array_equal(selector(estimator).fit(sp.coo_array(X), Y).inclusion_frequencies_, found.inclusion_frequencies_)
    assert_array_equal(selector(estimator).fit(X.tolist(), Y.tolist()).support_, found.support_)
    other = selector(ht.SparseLogisticRegression(n_nonzero_coefs=2))
    dense = other.fit(X, CLASSES).inclusion_frequencies_
    assert_array_equal(other.fit(sp.coo_array(X), list(CLASSES)).inclusion_frequencies_, dense)


@pytest.mark.parametrize("model", ["least squares", "counts"])
def test_arrays_of_another_library_stay_there(model):
    torch = pytest.importorskip("torch")
    estimator, y = MODELS[model]
    with config_context(array_api_dispatch=False):
        found = selector(estimator).fit(torch.asarray(X), torch.asarray(y))
    assert isinstance(found.inclusion_frequencies_, torch.Tensor)
    plain = selector(estimator).fit(X, y)
    assert_array_equal(found.inclusion_frequencies_.numpy(), plain.inclusion_frequencies_)
    assert_array_equal(found.support_.numpy(), plain.support_)


def test_the_seed_decides():
    estimator = ht.SparseLinearRegression(n_nonzero_coefs=3)
    found = selector(estimator, random_state=3).fit(X, Y).inclusion_frequencies_
    assert_array_equal(selector(estimator, random_state=3).fit(X, Y).inclusion_frequencies_, found)
    assert np.any(selector(estimator, random_state=4).fit(X, Y).inclusion_frequencies_ != found)


@pytest.mark.parametrize("backend", ["threading", *at("pairs", ["loky"])])
def test_jobs_do_not_matter(backend):
    estimator, y = MODELS["classes"]
    with joblib.parallel_config(backend=backend):
        one, two = (selector(estimator, n_pairs=2, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert_array_equal(one.inclusion_frequencies_, two.inclusion_frequencies_)


def test_metadata_are_routed():
    weight = RNG.integers(0, 3, N).astype(float)
    found = selector(ht.SparseLinearRegression(n_nonzero_coefs=3)).fit(X, Y, sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        estimator = ht.SparseLinearRegression(n_nonzero_coefs=3).set_fit_request(sample_weight=True)
        routed = selector(estimator).fit(X, Y, sample_weight=weight)
        assert_array_equal(routed.inclusion_frequencies_, found.inclusion_frequencies_)
        with pytest.raises(TypeError, match="unexpected argument"):
            selector(estimator).fit(X, Y, exposure=weight)


def test_it_selects_in_a_pipeline():
    pipeline = make_pipeline(selector(ht.SparseLinearRegression(n_nonzero_coefs=3)), LinearRegression()).fit(X, Y)
    chosen = pipeline[0].support_
    assert 0 < chosen.size < D
    assert_array_equal(pipeline[0].inverse_transform(X[:, chosen])[:, chosen], X[:, chosen])
    assert pipeline.predict(X).shape == (N,)


def test_the_estimator_on_all_rows_knows_the_frequencies():
    found = selector(ht.SparseLinearRegression(n_nonzero_coefs=3)).fit(X, Y)
    assert_array_equal(found.estimator_.inclusion_frequencies_, found.inclusion_frequencies_)
    assert_array_equal(found.estimator_.coef_, ht.SparseLinearRegression(n_nonzero_coefs=3).fit(X, Y).coef_)
    assert not hasattr(found.estimator, "coef_")
    assert not hasattr(found.estimator_.fit(X, Y), "inclusion_frequencies_")


@pytest.mark.parametrize(
    "way", [copy.deepcopy, lambda found: pickle.loads(pickle.dumps(found))], ids=["copy", "pickle"]
)
def test_it_travels(way):
    found = selector(ht.SparseLinearRegression(n_nonzero_coefs=3)).fit(X, Y)
    again = way(found)
    assert_array_equal(again.transform(X), found.transform(X))
    assert again.statement() == found.statement()


@pytest.mark.parametrize("name", ["least squares", "classes", "cross-validation"])
def test_it_is_stored(name, tmp_path):
    estimator, y = MODELS[name]
    found = selector(estimator, n_pairs=2).fit(X, y)
    ht.save(found, tmp_path / "selector.json")
    again = ht.load(tmp_path / "selector.json")
    assert_array_equal(again.inclusion_frequencies_, found.inclusion_frequencies_)
    assert_array_equal(again.get_support(), found.get_support())
    assert_array_equal(again.estimator_.inclusion_frequencies_, found.inclusion_frequencies_)
    assert (again.statement(), again.get_params(deep=False).keys()) == (
        found.statement(),
        found.get_params(deep=False).keys(),
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("inclusion_frequencies_", np.full(D, np.nan), "inclusion_frequencies_ holds NaN or infinity"),
        ("pair_frequencies_", np.ones(3), "pair_frequencies_ has shape"),
        ("support_", np.array([D]), f"support_ names features beyond the {D} columns"),
    ],
)
def test_what_does_not_fit_together_is_not_stored(name, value, message, tmp_path):
    found = selector(ht.SparseLinearRegression(n_nonzero_coefs=3)).fit(X, Y)
    setattr(found, name, value)
    with pytest.raises(ht.storage.StorageError, match=f"not a sound StabilitySelection: {message}"):
        ht.save(found, tmp_path / "selector.json")


def test_a_threshold_that_nothing_reaches_is_reported():
    noise = np.random.default_rng(1).standard_normal(N)
    with pytest.warns(NothingFoundWarning, match="no inclusion frequency reaches the threshold 1; the highest is"):
        found = selector(ht.SparseLinearRegression(n_nonzero_coefs=1), threshold=1.0).fit(X, noise)
    assert found.support_.size == 0
    assert found.get_support().sum() == 0


def test_warnings_about_the_rows_are_not_repeated():
    constant = np.column_stack([X, np.ones(N)])
    with pytest.warns(UserWarning, match="constant column") as caught:
        selector(ht.SparseLogisticRegression(n_nonzero_coefs=3)).fit(constant, CLASSES)
    assert sum("constant column" in str(one.message) for one in caught) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_pairs": 0}, "n_pairs must be >= 1, got 0"),
        ({"n_pairs": 2.0}, "n_pairs must be an integer, got 2.0"),
        ({"threshold": 0.5}, "threshold must be a finite number > 0.5 and <= 1, got 0.5"),
        ({"bound": "best"}, "bound must be one of 'unimodal', 'worst_case'; got 'best'"),
        ({"estimator": ht.SparseLinearRegression}, "estimator must be an estimator, such as"),
        ({"estimator": None}, "estimator must be an estimator, such as"),
        ({"random_state": "now"}, "random_state must be None, an integer or a RandomState"),
        ({"n_nonzero_coefs": 40}, "n_nonzero_coefs must be between 0 and the number of features"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    found = ht.StabilitySelection(**{"estimator": ht.SparseLinearRegression(n_nonzero_coefs=2), **settings})
    with pytest.raises(InvalidInputError) as caught:
        found.fit(X, Y)
    assert message in str(caught.value)


def test_an_estimator_that_chooses_no_features_is_refused():
    with pytest.raises(InvalidInputError, match="KNeighborsRegressor has neither get_support nor coef_ after fit"):
        selector(KNeighborsRegressor()).fit(X, Y)


@pytest.mark.parametrize("model", [ht.LowRankRegression(rank=1), Ridge()])
def test_an_estimator_that_uses_every_column_is_refused(model):
    with pytest.raises(InvalidInputError, match=f"{type(model).__name__} uses all 12 columns.*n_nonzero_coefs"):
        selector(model).fit(X, np.column_stack([Y, U]))


def test_before_a_fit_there_is_no_statement():
    with pytest.raises(NotFittedError):
        selector(ht.SparseLinearRegression()).statement()


def test_an_interrupt_ends_the_fit(monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(stability, "choice_of_rows", interrupted)
    found = selector(ht.SparseLogisticRegression(n_nonzero_coefs=2))
    with pytest.raises(KeyboardInterrupt):
        found.fit(X, CLASSES)
    assert not hasattr(found, "inclusion_frequencies_")


@pytest.mark.slow
def test_the_summary_of_the_model_shows_the_frequencies():
    table, y = frame("polars")
    found = selector(ht.SparseLinearRegression(n_nonzero_coefs=3)).fit(table, y)
    summary = found.estimator_.summary()
    frequencies = dict(zip(found.feature_names_in_, found.inclusion_frequencies_, strict=True))
    for feature in summary.facts.features:
        assert feature.inclusion == frequencies["city" if feature.level_of is not None else feature.name]
    assert "in halves" in str(summary)
    assert "In halves: the share of half-samples of the rows whose fit chooses the feature." in str(summary)
    assert all(0.0 <= one["inclusion"] <= 1.0 for one in summary.to_dict()["features"])
    alone = ht.SparseLinearRegression(n_nonzero_coefs=3).fit(table, y).summary()
    assert "halves" not in str(alone)
    assert {one["inclusion"] for one in alone.to_dict()["features"]} == {None}
