"""What `fit` passes on to the splitter and the scorer, with scikit-learn's metadata routing and without."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from sklearn.metrics import get_scorer, make_scorer, mean_squared_error
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score, cross_validate
from sklearn.model_selection._split import BaseCrossValidator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.registry import registered
from hardthresh.estimators.linear.model import SparseLinearModel
from levels import at_most, reaches

SPLITTING = {
    "linear": lambda **settings: ht.SparseLinearRegressionCV(n_nonzero_coefs=range(5), **settings),
    "logistic": lambda **settings: ht.SparseLogisticRegressionCV(n_nonzero_coefs=range(5), **settings),
    "low rank": lambda **settings: ht.LowRankRegressionCV(rank=range(3), **settings),
    "graph": lambda **settings: ht.SparseGaussianGraphicalModelCV(n_edges=[0, 2, 4], **settings),
}


@pytest.fixture(params=SPLITTING)
def make(request):
    """Every estimator that takes a splitter."""
    return SPLITTING[request.param]


@pytest.fixture
def rows(make):
    """Rows X, targets y that suit the estimator, and the patient of each row: three rows each, in random order."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    y = X[:, :2] @ np.array([[1.0, -1.0], [2.0, 0.5]]) + rng.standard_normal((60, 2))
    patients = rng.permutation(np.repeat(np.arange(20), 3))
    model = make()
    if isinstance(model, ht.SparseGaussianGraphicalModel):
        return X, None, patients
    return (
        X,
        y if isinstance(model, ht.LowRankRegressionCV) else y[:, 0] > 0 if is_classifier(model) else y[:, 0],
        patients,
    )


@at_most(3)
def test_groups_of_rows_go_to_the_splitter(make, rows):
    X, y, patients = rows
    by_hand = list(GroupKFold(4).split(X, y, patients))
    expected = make(cv=by_hand).fit(X, y)
    grouped = make(cv=GroupKFold(4)).fit(X, y, groups=patients)
    assert_array_equal(grouped.scores_, expected.scores_)
    assert not np.array_equal(expected.scores_, make(cv=4).fit(X, y).scores_), "the patients of this test matter"


def test_groups_follow_rows_without_weight(make, rows):
    X, y, patients = rows
    if y is None:
        pytest.skip("a graphical model has no weights")
    weight = (np.arange(60) % 7 != 0).astype(float)
    kept = weight > 0
    weighted = make(cv=GroupKFold(4)).fit(X, y, sample_weight=weight, groups=patients)
    absent = make(cv=GroupKFold(4)).fit(X[kept], y[kept], groups=patients[kept].tolist())
    assert_allclose(weighted.scores_, absent.scores_, rtol=1e-9)


def test_a_splitter_without_its_groups_says_where_to_give_them(make, rows):
    X, y, _ = rows
    with pytest.raises(InvalidInputError, match=r"GroupKFold needs .* each row.*fit\(X, y, groups=\.\.\.\)"):
        make(cv=GroupKFold(4)).fit(X, y)


@pytest.mark.parametrize("cv", [4, None, "by hand"])
def test_groups_for_folds_that_ignore_them_are_refused(make, rows, cv):
    X, y, patients = rows
    cv = list(KFold(4).split(X)) if cv == "by hand" else cv
    with pytest.raises(InvalidInputError, match=r"groups .* cv=GroupKFold"):
        make(cv=cv).fit(X, y, groups=patients)


def test_labels_of_columns_as_groups_of_rows_are_refused(make, rows):
    X, y, _ = rows
    with pytest.raises(InvalidInputError, match="groups has 6 labels, but X has 60 rows"):
        make(cv=GroupKFold(3)).fit(X, y, groups=["a", "a", "b", "b", "c", "c"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ht.SparseLinearRegressionCV, ht.SparseLogisticRegressionCV])
def test_groups_of_columns_and_groups_of_rows_together(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    y = X[:, 0] + X[:, 1] > 0 if is_classifier(kind()) else X[:, 0] + X[:, 1] + rng.standard_normal(60)
    patients, panels = rng.permutation(np.repeat(np.arange(20), 3)), ["a", "a", "b", "b", "c", "c"]
    settings = {"groups": panels, "n_nonzero_groups": range(4)}
    model = kind(cv=GroupKFold(4), **settings).fit(X, y, groups=patients)
    assert_array_equal(model.scores_, kind(cv=list(GroupKFold(4).split(X, y, patients)), **settings).fit(X, y).scores_)
    with pytest.raises(InvalidInputError, match=f"columns.*{kind.__name__}\\(groups="):
        kind(cv=GroupKFold(3)).fit(X, y, groups=panels)


def test_an_unknown_argument_of_fit_names_the_estimator(make, rows):
    X, y, _ = rows
    with pytest.raises(ValueError, match=rf"{type(make()).__name__}\.fit .*'patients'"):
        make().fit(X, y, patients=1)


# --- metadata routing enabled -----------------------------------------------------------------------------------------


class Alternating(BaseCrossValidator):
    """Two folds that `stratum` says: a splitter with metadata of its own name."""

    def split(self, X, y=None, groups=None, stratum=None):
        for fold in (0, 1):
            yield np.flatnonzero(stratum != fold), np.flatnonzero(stratum == fold)

    def get_n_splits(self, X=None, y=None, groups=None):
        return 2


@at_most(1)
def test_routing_takes_groups_through_meta_estimators(make, rows):
    X, y, patients = rows
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(FunctionTransformer(), make(cv=GroupKFold(4)))
        routed = model.fit(X, y, groups=patients)[-1]
        assert_array_equal(routed.scores_, make(cv=list(GroupKFold(4).split(X, y, patients))).fit(X, y).scores_)
        outer = cross_validate(
            *(model, X, y),
            cv=GroupKFold(5),
            params={"groups": patients},
            scoring=lambda model, X, y=None: 0.0,
            return_estimator=True,
            return_indices=True,
        )
        train = outer["indices"]["train"][0]
        by_hand = list(GroupKFold(4).split(X[train], groups=patients[train]))
        inner = make(cv=by_hand).fit(X[train], None if y is None else y[train])
        assert_array_equal(outer["estimator"][0][-1].scores_, inner.scores_)


@pytest.mark.slow
def test_routing_takes_whatever_a_splitter_requests(make, rows):
    X, y, patients = rows
    stratum = patients % 2
    with sklearn.config_context(enable_metadata_routing=True):
        model = make(cv=Alternating().set_split_request(stratum=True)).fit(X, y, stratum=stratum)
        with pytest.raises(TypeError, match="groups"):
            make(cv=3).fit(X, y, groups=patients)
    expected = make(cv=[(np.flatnonzero(stratum != fold), np.flatnonzero(stratum == fold)) for fold in (0, 1)])
    assert_array_equal(model.scores_, expected.fit(X, y).scores_)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ht.SparseLinearRegressionCV, ht.LowRankRegressionCV])
def test_routing_gives_scorers_the_weights_that_they_request(kind):
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal((60, 6)), rng.uniform(0.0, 2.0, 60)
    weight[::9] = 0.0
    y = X[:, 0] + rng.standard_normal(60)
    scorer = make_scorer(mean_squared_error, greater_is_better=False)
    settings = {"cv": KFold(3)} | (
        {"rank": [0, 1]} if kind is ht.LowRankRegressionCV else {"n_nonzero_coefs": range(4)}
    )
    weighted = kind(scoring=scorer, **settings).fit(X, y, sample_weight=weight).scores_
    with sklearn.config_context(enable_metadata_routing=True):
        requested, refused = (
            kind(scoring=get_scorer("neg_mean_squared_error").set_score_request(sample_weight=wanted), **settings)
            for wanted in (True, False)
        )
        assert_allclose(requested.fit(X, y, sample_weight=weight).scores_, weighted, rtol=1e-12)
        assert not np.allclose(refused.fit(X, y, sample_weight=weight).scores_, weighted)
        own = kind(**settings).fit(X, y, sample_weight=weight)  # the score of its own always counts weights
    assert_allclose(own.scores_, weighted, rtol=1e-9)


ROUTED = [entry.cls for entry in registered("estimator").values() if issubclass(entry.cls, SparseLinearModel)]


def rows_of(cls):
    """Data for an estimator, with weights, offsets that matter, and for hazards strata."""
    rng = np.random.default_rng(3)
    X, offset = rng.standard_normal((90, 4)), rng.standard_normal(90)
    u = X[:, 0] - X[:, 1] + offset
    known = {"sample_weight": rng.integers(1, 4, 90).astype(float), "offset": offset}
    if issubclass(cls, ht.SparseCoxRegression):
        time, event = rng.exponential(np.exp(-u)), rng.random(90) < 0.7
        return X, np.column_stack([time, event]), known | {"strata": rng.integers(0, 2, 90)}
    if issubclass(cls, ht.SparseOrdinalRegression):
        return X, np.searchsorted([-1, 1], u + rng.logistic(size=90)), known
    return X, cls()._loss.example_target(0.5 * u, rng), known


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("cls", [cls for cls in ROUTED if reaches("pairs") or not cls.__name__.endswith("CV")])
def test_scores_have_the_weights_offsets_and_strata_of_their_rows(cls):
    """A search over ridges, a cross-validation and a pipeline score as fits and scores by hand do."""
    X, y, known = rows_of(cls)
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    by_cv = cls.__name__.endswith("CV")
    settings = {"n_nonzero_coefs": [1, 2], "cv": 2} if by_cv else {"n_nonzero_coefs": 2}
    ridge = "alphas" if by_cv else "alpha"

    def by_hand(train, test, **more):
        fit, held_out = ({name: part[rows] for name, part in known.items()} for rows in (train, test))
        return cls(**settings, **more).fit(X[train], y[train], **fit).score(X[test], y[test], **held_out)

    expected = [by_hand(train, test) for train, test in folds]
    with sklearn.config_context(enable_metadata_routing=True):
        asked = dict.fromkeys(known, True)
        model = cls(**settings).set_fit_request(**asked).set_score_request(**asked)
        assert_allclose(cross_val_score(model, X, y, cv=folds, params=known), expected, rtol=1e-9)
        search = GridSearchCV(model, {ridge: [0.01, 1.0]}, cv=folds).fit(X, y, **known)
        scores = np.array([[by_hand(train, test, **{ridge: alpha}) for train, test in folds] for alpha in (0.01, 1.0)])
        assert_allclose(search.cv_results_["mean_test_score"], scores.mean(axis=1), rtol=1e-9)
        assert_allclose(search.score(X, y, **known), search.best_estimator_.score(X, y, **known))
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, y, **known)
        Z = scaler.fit_transform(X)
        alone = cls(**settings).fit(Z, y, **known)
        assert_allclose(pipeline.score(X, y, **known), alone.score(Z, y, **known), rtol=1e-9)
    with pytest.warns(UserWarning, match="was fitted with an offset"):
        without = alone.score(Z, y, **{name: part for name, part in known.items() if name != "offset"})
    assert without != alone.score(Z, y, **known), "the offset of this test matters"
