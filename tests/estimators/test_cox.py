"""Sparse Cox regression: forms of y, strata, weights, the baseline, Harrell's C, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, StratifiedShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hardthresh as ht
from hardthresh import SparseCoxRegression, SparseCoxRegressionCV
from hardthresh.core import CapabilityError, InvalidInputError
from hardthresh.estimators.linear.concordance import concordance
from hardthresh.estimators.table import Table
from hardthresh.losses import Cox
from hardthresh.objectives import LinearModel
from levels import slow_beyond

TIES = ("breslow", "efron")


def drawn(seed=0, n=150, d=12, grid=4):
    """Return columns of unequal scales and censored times, some of them tied; columns 2 and 7 matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.linspace(0.5, 3.0, d) + np.linspace(-2.0, 2.0, d)
    time, censored = rng.exponential(np.exp(X[:, 7] / 2 - X[:, 2])), rng.exponential(4.0, n)
    observed = np.minimum(time, censored)
    observed = np.ceil(grid * observed) / grid if grid else observed
    return X, np.column_stack([observed, time <= censored])


@pytest.mark.parametrize("ties", TIES)
def test_it_minimises_the_partial_likelihood_of_standardised_columns(ties):
    X, y = drawn()
    model = SparseCoxRegression(n_nonzero_coefs=2, ties=ties, alpha=0.01).fit(X, y)
    assert model.support_.tolist() == [2, 7]
    f = LinearModel((X - X.mean(axis=0)) / X.std(axis=0), y, Cox(ties), l2=0.01)
    at = f.evaluate(model.coef_ * X.std(axis=0))
    np.testing.assert_allclose(model.objective_, at.value, rtol=1e-10)
    np.testing.assert_allclose(at.gradient[[2, 7]], 0.0, atol=1e-7)


def test_events_at_one_time_tell_nothing_of_any_feature():
    X, _ = drawn()
    model = SparseCoxRegression(n_nonzero_coefs=2).fit(X, np.ones((len(X), 2)))
    assert model.converged_
    assert model.n_nonzero_coefs_ == 0 == model.support_.size


def test_all_forms_of_y_are_one():
    X, y = drawn()
    expected = SparseCoxRegression(n_nonzero_coefs=2).fit(X, y).coef_
    structured = np.array([*zip(y[:, 1] > 0, y[:, 0], strict=True)], dtype=[("event", bool), ("time", float)])
    frame = pd.DataFrame({"died": y[:, 1] > 0, "months": y[:, 0]})
    for other in (structured, frame, pd.DataFrame(y), y.tolist(), y.astype(np.float32)):
        np.testing.assert_array_equal(SparseCoxRegression(n_nonzero_coefs=2).fit(X, other).coef_, expected)
    observed = np.column_stack([y[:, 0], np.ones(len(y))])
    one, two = (SparseCoxRegression(n_nonzero_coefs=2).fit(X, target) for target in (y[:, 0], observed))
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.slow
def test_a_weight_is_a_repetition():
    X, y = drawn()
    s = np.random.default_rng(1).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), s)
    one = SparseCoxRegression().fit(X, y, sample_weight=s)
    other = SparseCoxRegression().fit(X[rows], y[rows])
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(one.criterion_path_, other.criterion_path_, rtol=1e-9)
    np.testing.assert_allclose(one.baseline_cumulative_hazard_, other.baseline_cumulative_hazard_, rtol=1e-7)
    np.testing.assert_allclose(one.score(X, y, s), other.score(X[rows], y[rows]), rtol=1e-12)


def test_an_offset_is_a_column_with_a_known_coefficient():
    X, y = drawn()
    fitted = SparseCoxRegression(n_nonzero_coefs=2, alpha=0.0).fit(X, y)
    rest = np.delete(X, 7, axis=1)
    known = SparseCoxRegression(n_nonzero_coefs=1, alpha=0.0).fit(rest, y, offset=fitted.coef_[7] * X[:, 7])
    np.testing.assert_allclose(known.coef_[2], fitted.coef_[2], rtol=1e-6)
    with pytest.warns(UserWarning, match="was fitted with an offset"):
        known.predict(rest)


@pytest.mark.parametrize("ties", TIES)
def test_the_baseline_hazard_is_a_sum_over_event_times(ties):
    X, y = drawn()
    model = SparseCoxRegression(n_nonzero_coefs=2, ties=ties).fit(X, y)
    np.testing.assert_allclose(model.means_, X.mean(axis=0))
    r = np.exp((X - X.mean(axis=0)) @ model.coef_)
    times = np.unique(y[y[:, 1] > 0, 0])
    jumps = []
    for t in times:
        dead = (y[:, 0] == t) & (y[:, 1] > 0)
        m, at_risk = dead.sum(), r[y[:, 0] >= t].sum()
        left_out = np.arange(m) / m * r[dead].sum() if ties == "efron" else np.zeros(m)
        jumps.append(np.sum(1 / (at_risk - left_out)))
    np.testing.assert_array_equal(model.event_times_, times)
    np.testing.assert_allclose(model.baseline_cumulative_hazard_, np.cumsum(jumps), rtol=1e-10)
    survival = model.predict_survival_function(X[:3], [0.0, times[2], 1e9])
    hazard = np.concatenate([[0.0], np.cumsum(jumps)[[2, -1]]])
    np.testing.assert_allclose(survival, np.exp(-r[:3, None] * hazard), rtol=1e-10)
    assert model.predict_survival_function(X).shape == (len(X), len(times))
    np.testing.assert_allclose(model.predict(X), X @ model.coef_, rtol=1e-12)


@pytest.mark.slow
def test_strata_have_baseline_hazards_of_their_own():
    X, y = drawn(n=200)
    label = np.where(np.arange(200) % 2, "new", "old")
    y[label == "new", 0] *= 10  # another clock
    model = SparseCoxRegression(n_nonzero_coefs=2).fit(X, y, strata=label)
    assert model.support_.tolist() == [2, 7]
    assert list(model.event_times_) == ["new", "old"]
    columns = np.column_stack([y, label == "new"])
    numbered = SparseCoxRegression(n_nonzero_coefs=2).fit(X, columns)  # "old" is the first stratum of these
    np.testing.assert_allclose(numbered.coef_, model.coef_, rtol=1e-12)
    one = model.predict_survival_function(X[:1], [2.0], strata=["old"])
    other = model.predict_survival_function(X[:1], [2.0], strata=["new"])
    assert one < other
    assert str(model.certificate(X, y, strata=label)) == str(model.certificate())
    assert model.summary(X, y, strata=label).objective == model.objective_
    with pytest.raises(InvalidInputError, match="give the stratum of each row"):
        model.predict_survival_function(X[:1])
    with pytest.raises(InvalidInputError, match="the stratum 'third' has no event"):
        model.predict_survival_function(X[:1], strata=["third"])
    with pytest.raises(InvalidInputError, match="strata has shape"):
        SparseCoxRegression().fit(X, y, strata=label[:9])
    with pytest.raises(InvalidInputError, match="without strata; leave strata out"):
        SparseCoxRegression(n_nonzero_coefs=1).fit(X, y).predict_survival_function(X[:1], strata=["old"])


def test_harrells_c_is_the_share_of_pairs_in_the_right_order():
    rng = np.random.default_rng(0)
    for _ in range(100):
        n = int(rng.integers(2, 40))
        t, e = np.ceil(rng.exponential(size=n) * rng.choice([2, 100])), rng.integers(0, 2, n)
        u, s = np.round(rng.standard_normal(n), int(rng.integers(0, 3))), rng.integers(0, 3, n).astype(float)
        label = rng.integers(0, int(rng.integers(1, 4)), n)
        right = pairs = 0.0
        for i in range(n):
            for j in range(n):
                lives_longer = t[i] < t[j] or (t[i] == t[j] and not e[j])
                if e[i] and label[i] == label[j] and lives_longer:
                    pairs += s[i] * s[j]
                    right += s[i] * s[j] * ((u[i] > u[j]) + 0.5 * (u[i] == u[j]))
        found = concordance(np.column_stack([t, e, label]), u, s)
        np.testing.assert_allclose(found, right / pairs if pairs else np.nan, rtol=1e-12)


def test_targets_that_are_refused():
    X, y = drawn()
    for target, said in (
        (y[:, ::-1], r"first column of y is 0 or 1 everywhere; give \(time, event\)"),
        (np.column_stack([y[:, 0], 2 * y[:, 1]]), "events must be 0 or 1, found 2.0"),
        (np.column_stack([y[:, 0], 0 * y[:, 1]]), "there is no event"),
        (np.column_stack([y, y]), r"y has 4 columns; it is \(time, event\) columns"),
        (np.where(np.arange(300).reshape(150, 2) == 8, np.inf, y), "infinity"),
        (
            np.array([*zip(y[:, 0], y[:, 0], strict=True)], dtype=[("a", float), ("b", float)]),
            "the fields a, b; one of",
        ),
    ):
        with pytest.raises(ValueError, match=said):
            SparseCoxRegression().fit(X, target)
    with pytest.raises(InvalidInputError, match='ties must be "breslow" or "efron"'):
        SparseCoxRegression(ties="exact").fit(X, y)


@slow_beyond(3)
@pytest.mark.parametrize("kind", ["sparse", "float32", "groups", "positive", "always", "categories"])
def test_what_other_linear_models_take(kind):
    X, y = drawn()
    if kind == "sparse":
        model = SparseCoxRegression(n_nonzero_coefs=2).fit(sp.csc_array(X), y)
    elif kind == "float32":
        model = SparseCoxRegression(n_nonzero_coefs=2).fit(X.astype(np.float32), y)
        assert model.coef_.dtype == np.float32
    elif kind == "groups":
        model = SparseCoxRegression(groups=[*"aabbccddeeff"], n_nonzero_groups=2).fit(X, y)
        assert model.groups_ == ("b", "d")
        return
    elif kind == "positive":
        model = SparseCoxRegression(n_nonzero_coefs=2, positive=True).fit(X, y)
        assert (model.coef_ >= 0).all()
        return
    elif kind == "always":
        model = SparseCoxRegression(n_nonzero_coefs=2, always_include=[0]).fit(X, y)
        assert model.support_.tolist() == [0, 2, 7]
        return
    else:
        table = pd.DataFrame(X).rename(columns=str).assign(stage=pd.Categorical(np.where(X[:, 7] > 0, "II", "I")))
        model = SparseCoxRegression(n_nonzero_coefs=2).fit(table, y)
        assert model.get_support().sum() == 2
        return
    plain = SparseCoxRegression(n_nonzero_coefs=2).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-3)


def test_a_saved_model_predicts_the_same(tmp_path):
    X, y = drawn()
    for strata in (None, np.arange(150) % 3):
        model = SparseCoxRegression(n_nonzero_coefs=2).fit(X, y, strata=strata)
        ht.save(model, tmp_path / "model.json")
        loaded = ht.load(tmp_path / "model.json")
        np.testing.assert_array_equal(
            loaded.predict_survival_function(X, strata=strata), model.predict_survival_function(X, strata=strata)
        )


@pytest.mark.slow
def test_check_25_it_works_in_pipelines_and_searches_with_routed_strata():
    X, y = drawn()
    label = np.arange(150) % 2
    search = GridSearchCV(SparseCoxRegression(), {"n_nonzero_coefs": [1, 2]}, cv=3).fit(X, y)
    assert search.best_params_ == {"n_nonzero_coefs": 2}
    assert cross_val_score(make_pipeline(StandardScaler(), SparseCoxRegression(n_nonzero_coefs=2)), X, y).min() > 0.6
    with config_context(enable_metadata_routing=True):
        asks = SparseCoxRegression(n_nonzero_coefs=2).set_fit_request(strata=True).set_score_request(strata=True)
        scores = cross_val_score(asks, X, y, params={"strata": label}, cv=3)
        assert not np.array_equal(scores, cross_val_score(clone(asks), X, y, cv=3))


@pytest.mark.slow
@pytest.mark.parametrize("strata", [None, np.arange(150) % 2])
def test_folds_are_scored_by_the_difference_of_partial_likelihoods(strata):
    X, y = drawn()
    s = np.random.default_rng(3).integers(1, 3, 150).astype(float)
    folds = list(KFold(3).split(X))
    chooser = SparseCoxRegressionCV(n_nonzero_coefs=[2], alphas=0.01, cv=folds, averaging="none")
    chooser.fit(X, y, sample_weight=s, strata=strata)
    columns = y if strata is None else np.column_stack([y, strata])
    for fold, (train, test) in enumerate(folds):
        model = SparseCoxRegression(n_nonzero_coefs=2, alpha=0.01).fit(X[train], columns[train], sample_weight=s[train])
        whole, part = Cox().prepare(columns, s), Cox().prepare(columns[train], s[train])
        gap = whole.value(X @ model.coef_) - part.value(X[train] @ model.coef_)
        np.testing.assert_allclose(chooser.scores_[0, fold], -gap / s[test].sum(), rtol=1e-6)


@pytest.mark.slow
def test_the_cross_validated_model_finds_the_columns_that_matter():
    X, y = drawn()
    chooser = SparseCoxRegressionCV(n_nonzero_coefs=range(5), cv=3).fit(X, y)
    assert chooser.found_
    assert {2, 7} <= set(chooser.support_.tolist())
    assert chooser.held_out_scores_["concordance"] > 0.7
    assert chooser.predict_survival_function(X[:2], [1.0]).shape == (2, 1)
    assert chooser.certificate(X, y).subject == chooser.certificate().subject
    nothing = np.random.default_rng(0).standard_normal((150, 5))
    noise = SparseCoxRegressionCV(n_nonzero_coefs=range(3), cv=3).fit(nothing, y)
    assert not noise.found_
    with pytest.raises(InvalidInputError, match="averaging"):
        SparseCoxRegressionCV(averaging="stacking").fit(X, y)


@pytest.mark.parametrize(
    "cv", [4, StratifiedKFold(4, shuffle=True, random_state=0), StratifiedShuffleSplit(4, random_state=0)]
)
def test_folds_have_the_same_share_of_events(cv):
    X, y = drawn()
    order = np.argsort(y[:, 1], kind="stable")
    chooser = SparseCoxRegressionCV(n_nonzero_coefs=[1], cv=cv)
    splits = chooser._splits_of(Table(X[order], y[order]), np.arange(150), 150, {})
    shares = [y[order][test, 1].mean() for _, test in splits]
    assert max(shares) - min(shares) < 0.03


def test_a_splitter_of_the_user_gets_times_and_events():
    class ByTime:
        """Holds out every other row in the order of the times."""

        def split(self, X, y, groups=None):
            order = np.argsort(y[:, 0], kind="stable")
            yield order[::2], order[1::2]

    X, y = drawn()
    chooser = SparseCoxRegressionCV(n_nonzero_coefs=[1], cv=ByTime())
    [(_, test)] = chooser._splits_of(Table(X, y), np.arange(150), 150, {})
    np.testing.assert_array_equal(test, np.argsort(y[:, 0], kind="stable")[1::2])


@pytest.mark.parametrize("cv", [0, 1])
def test_fewer_than_two_folds_are_refused(cv):
    X, y = drawn()
    with pytest.raises(InvalidInputError, match=f"cv={cv}"):
        SparseCoxRegressionCV(n_nonzero_coefs=[1], cv=cv).fit(X, y)


def test_the_numbers_of_features_that_are_compared_are_few_where_events_are():
    rng = np.random.default_rng(0)
    X, time = rng.standard_normal((400, 60)), rng.exponential(size=400)
    event = np.zeros(400)
    event[np.argsort(time - X[:, 3])[:20]] = 1.0
    model = SparseCoxRegression().fit(X, np.column_stack([time, event]))
    last = int(20 / (np.log(60) * np.log(np.log(20))))  # the bound for 20 examples
    np.testing.assert_array_equal(model.candidates_, np.arange(last + 1))
    assert np.isfinite(model.criterion_path_).all()


def test_one_fold_is_refused_without_other_reasons():
    X, y = np.arange(20.0)[:, None], np.column_stack([np.arange(1.0, 21.0), np.tile([0.0, 1.0], 10)])
    with pytest.raises(InvalidInputError, match="cv=1: ") as caught:
        SparseCoxRegressionCV(n_nonzero_coefs=[0, 1], cv=1).fit(X, y)
    assert "share of events" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("strata", [None, np.arange(150) % 2 + 5, np.array(["x", "y"])[np.arange(150) % 2]])
def test_a_scorer_gets_times_and_strata_as_they_were_given(strata):
    X, y = drawn()
    folds, seen = list(KFold(3).split(X)), []

    def score(model, X, y):
        seen.append(y)
        return model.score(X, y)

    chooser = SparseCoxRegressionCV(n_nonzero_coefs=[2], alphas=0.01, cv=folds, scoring=score)
    chooser.fit(X, y, strata=strata)
    for fold, (train, test) in enumerate(folds):
        np.testing.assert_array_equal(seen[2 * fold][:, :2].astype(float), y[test])
        if strata is not None:
            assert seen[2 * fold][:, 2].tolist() == strata[test].tolist()
        own = [None if strata is None else strata[rows] for rows in (train, test)]
        alone = SparseCoxRegression(n_nonzero_coefs=2, alpha=0.01).fit(X[train], y[train], strata=own[0])
        np.testing.assert_allclose(chooser.scores_[-1, fold], alone.score(X[test], y[test], strata=own[1]), rtol=1e-6)


def test_a_scorer_that_needs_the_baseline_hazard_is_told_that_there_is_none():
    X, y = drawn()
    chooser = SparseCoxRegressionCV(
        n_nonzero_coefs=[2], cv=3, scoring=lambda model, X, y: model.predict_survival_function(X, [1.0]).mean()
    )
    with pytest.raises(CapabilityError, match="no baseline hazard, so that predict_cumulative_hazard and predict_surv"):
        chooser.fit(X, y)


NOTHING_TO_COMPARE = {
    "a label for each row": (
        lambda y: y,
        np.arange(150),
        r"strata has 150 labels in 150 rows, such as 0(\.0)?: are they",
    ),
    "the last of each": (
        lambda y: np.column_stack([y[:, 0], y[:, 0] == y[:, 0].max()]),
        np.repeat(["a", "b"], 75),
        "no event has another row at risk in its stratum",
    ),
    "the last of all": (
        lambda y: np.column_stack([np.arange(150), np.arange(150) == 149]),
        None,
        "no event has another row at risk at its time, so there is nothing to compare it with; in the second column",
    ),
}


@pytest.mark.parametrize("form", ["argument", "column"])
@pytest.mark.parametrize("what", NOTHING_TO_COMPARE)
@pytest.mark.parametrize("model", [SparseCoxRegression, SparseCoxRegressionCV])
def test_events_without_another_row_at_risk_are_refused(model, what, form):
    X, y = drawn()
    y[:, 0] = np.random.default_rng(0).permutation(150)  # no ties
    of, strata, message = NOTHING_TO_COMPARE[what]
    y = of(y)
    if strata is not None and form == "column":
        y, strata = np.column_stack([y, np.unique(strata, return_inverse=True)[1]]), None
    with pytest.raises(InvalidInputError, match=message):
        model().fit(X, y, strata=strata)


def test_one_tie_or_one_row_at_risk_is_enough():
    X, _ = drawn()
    strata, event = np.arange(150), np.zeros(150)
    strata[1], event[1] = 0, 1
    for other in (2.0, 3.0):
        time = np.where(np.arange(150) == 0, other, 2.0)
        model = SparseCoxRegression(n_nonzero_coefs=1).fit(X, np.column_stack([time, event]), strata=strata)
        assert model.n_nonzero_coefs_ == 1
    weight = np.where(np.arange(150) == 0, 0.0, 1.0)
    with pytest.raises(InvalidInputError, match="no event has another row at risk in its stratum"):
        model.fit(X, np.column_stack([time, event]), sample_weight=weight, strata=strata)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_strata_name_the_row(missing):
    X, y = drawn()
    strata = np.array([0.0, 1.0] * 75, dtype=object if missing is None else float)
    strata[7] = missing
    with pytest.raises(InvalidInputError, match="the stratum of row 7 is missing"):
        SparseCoxRegression(n_nonzero_coefs=2).fit(X, y, strata=strata)


def test_a_row_of_weight_0_may_hold_any_event_and_stratum():
    X, y = drawn()
    weight, rest, strata = np.ones(150), np.arange(150) != 7, np.arange(150) % 2 * 1.0
    weight[7] = 0.0
    expected = SparseCoxRegression(n_nonzero_coefs=2).fit(X[rest], y[rest], strata=strata[rest])
    strange, strata = y.copy(), strata.copy()
    strange[7, 1], strata[7] = 7.0, np.nan
    model = SparseCoxRegression(n_nonzero_coefs=2).fit(X, strange, sample_weight=weight, strata=strata)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-8)
    with pytest.raises(InvalidInputError, match=r"events must be 0 or 1, found 7\.0 in row 7"):
        SparseCoxRegression().fit(X, strange)


@pytest.mark.slow
@pytest.mark.parametrize("model", [SparseCoxRegression, SparseCoxRegressionCV])
@pytest.mark.filterwarnings("ignore::hardthresh.core.SearchRangeWarning")
def test_times_that_are_not_positive_are_warned_of(model):
    X, y = drawn()
    y[[5, 9, 30], 0] = -0.25, 0.0, -2.0
    early = r"2 rows have times that are not positive, the first 0 in row 9 \(counted from 0\); .*correct or leave out"
    weight = np.where(np.arange(150) == 5, 0.0, 1.0)  # such a row may hold any time
    with pytest.warns(UserWarning, match=early) as caught:
        fitted = model(n_nonzero_coefs=2).fit(X, y, sample_weight=weight)
    assert sum("not positive" in str(one.message) for one in caught) == 1  # not once more for each fold
    moved = np.column_stack([y[:, 0] + 10, y[:, 1]])  # the order alone tells
    np.testing.assert_allclose(fitted.coef_, model(n_nonzero_coefs=2).fit(X, moved, sample_weight=weight).coef_)
    y[[5, 9], 0] = 1.0
    with pytest.warns(UserWarning, match="1 row has a time that is not positive, the first -2 in row 30 "):
        fitted.fit(X, y)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries_are_targets(library):
    frames = pytest.importorskip(library)
    make = frames.DataFrame if library == "polars" else frames.table
    X, y = drawn()
    expected = SparseCoxRegression(n_nonzero_coefs=2).fit(X, y).coef_
    for event in (y[:, 1] > 0, y[:, 1]):
        target = make({"months": y[:, 0], "died": event})
        np.testing.assert_array_equal(SparseCoxRegression(n_nonzero_coefs=2).fit(X, target).coef_, expected)


def test_a_fold_that_trains_on_no_event_is_named():
    X, y = drawn()
    y = np.column_stack([np.arange(1.0, 151.0), np.arange(150) == 7])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of scikit-learn, about classes that y does not have
        with pytest.raises(
            InvalidInputError, match=r"fold \d of cv trains on rows without an event, of which there is 1"
        ):
            SparseCoxRegressionCV().fit(X, y)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([-1.0, np.nan], r"times must be numbers, but times\[1\] is nan"),
        ("abc", "times must be numbers in a list, got 'abc'"),
        ([[1.0]], r"times must be numbers in a list, got an array of shape \(1, 1\)"),
    ],
)
def test_times_that_are_no_numbers_are_named(times, message):
    X, y = drawn()
    model = SparseCoxRegression(n_nonzero_coefs=1).fit(X, y)
    with pytest.raises(InvalidInputError, match=message):
        model.predict_survival_function(X[:2], times=times)


def test_scorers_of_numbers_do_not_fit_times_and_events():
    X, y = drawn()
    with pytest.raises(
        InvalidInputError, match=r"scoring='r2' does not fit this SparseCox.*leave scoring out, or give"
    ):
        SparseCoxRegressionCV(n_nonzero_coefs=[1], scoring="r2").fit(X, y)
