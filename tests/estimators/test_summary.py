"""The summary of a fitted model says what the model, its certificate and refits by hand say."""

import json
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import hardthresh as ht
from hardthresh.certificates.gap import gap_sentence
from hardthresh.core.errors import HardThreshError, InvalidInputError, MissingDependencyError
from hardthresh.estimators.linear.summary import CAUTION
from levels import only_at


@pytest.fixture(scope="module")
def table():
    """Counts that depend on two of eight columns, of which one has a close neighbour."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 8)) * np.arange(1.0, 9.0)
    X[:, 6] = 2.0 * X[:, 1] + 0.4 * rng.standard_normal(80)
    return X, rng.poisson(np.exp(0.4 * X[:, 1] - 0.1 * X[:, 4]))


def test_it_says_what_the_model_says(case):
    X, y = case.data()
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model = case.make(averaging="none") if case.chooses else case.make()
    summary = model.fit(X, y, sample_weight=weights).summary()
    assert summary.n_rows == np.count_nonzero(weights)
    assert summary.total_weight == weights.sum()
    assert summary.objective == pytest.approx(model.objective_)
    assert {feature.index for feature in summary.facts.features} == {*model.support_.tolist()}
    for feature in summary.facts.features:
        assert feature.coefficient == np.ravel(model.coef_)[feature.index]
    [share] = [value for name, value in summary.scores.items() if name in ("d2", "r2")]
    assert 0.0 < share <= 1.0
    assert CAUTION in str(summary)
    assert model.summary() is summary
    json.dumps(summary.to_dict(), allow_nan=False)


@pytest.mark.slow
def test_the_cost_of_leaving_a_feature_out_is_that_of_a_fit_without_it(case):
    X, y = case.data()
    model = case.single().fit(X, y)
    worth = model.summary().worth
    assert len(worth) == model.support_.size
    ridge = model.alpha_ if case.chooses else model.alpha
    for j in model.support_.tolist():
        others = [i for i in model.support_.tolist() if i != j]
        without = case.without_cv(n_nonzero_coefs=len(others), alpha=ridge) if case.chooses else None
        without = without or case.new(n_nonzero_coefs=len(others))
        refitted = without.fit(X[:, others], y)
        assert worth[j].drop_cost == pytest.approx(refitted.objective_ - model.objective_, abs=1e-7)
        assert worth[j].substitute_cost <= worth[j].drop_cost + 1e-9


def test_the_closest_substitute_is_the_exchange_of_the_certificate(table):
    X, y = table
    model = ht.SparsePoissonRegression(n_nonzero_coefs=2).fit(X, y)
    certificate, worth = model.certificate(), model.summary().worth
    removed, added = certificate.best_swap
    closest = min(worth.values(), key=lambda one: one.substitute_cost)
    assert closest is worth[removed]
    assert closest.substitute == f"feature {added}"
    assert closest.substitute_cost == pytest.approx(-certificate.swap.decrease)
    assert {1, 6} == {removed, added}


def test_standard_errors_are_on_the_scale_of_the_data(table):
    X, y = table
    model = ht.SparsePoissonRegression(n_nonzero_coefs=2).fit(X, y)
    columns = np.column_stack([X[:, model.support_], np.ones(80)])
    information = columns.T @ (columns * model.predict(X)[:, None])
    expected = np.sqrt(np.diagonal(np.linalg.inv(information)))[:2]
    found = [model.summary().worth[j].standard_error for j in model.support_.tolist()]
    assert_allclose(found, expected, rtol=1e-6)
    assert model.summary().dispersion is None


def test_r2_dispersion_and_standard_errors_of_least_squares(table):
    X, _ = table
    y = X[:, 1] + np.random.default_rng(0).standard_normal(80)
    model = ht.SparseLinearRegression(n_nonzero_coefs=1).fit(X, y)
    summary = model.summary()
    noise = np.sum((y - model.predict(X)) ** 2) / 78
    assert summary.scores["r2"] == pytest.approx(model.score(X, y))
    assert summary.dispersion == pytest.approx(noise)
    [worth] = summary.worth.values()
    assert worth.standard_error == pytest.approx(np.sqrt(noise / np.sum((X[:, 1] - X[:, 1].mean()) ** 2)))


@pytest.mark.parametrize("settings", [{}, {"fit_intercept": False}, {"positive": True}, {"alpha": 0.1}], ids=str)
@pytest.mark.parametrize("model", [ht.SparseGammaRegression, ht.SparseTweedieRegression])
def test_there_is_one_dispersion_of_amounts_and_it_is_pearsons(table, model, settings):
    X, _ = table
    y = np.exp(0.3 * X[:, 1]) * np.random.default_rng(0).gamma(2.0, 0.5, 80)
    weights = np.random.default_rng(1).integers(1, 4, 80)
    fitted = model(n_nonzero_coefs=3, **settings).fit(X, y, sample_weight=weights)
    mean, power = fitted.predict(X), getattr(fitted, "power", 2.0)
    size = np.count_nonzero(fitted.coef_) + fitted.fit_intercept
    expected = np.sum(weights * (y - mean) ** 2 / mean**power) / (weights.sum() - size)
    assert fitted.dispersion_ == pytest.approx(expected)
    assert fitted.summary().dispersion == pytest.approx(expected)


def test_the_share_of_deviance_is_that_over_the_offset(table):
    X, y = table
    offset = np.log(1.0 + np.arange(80) % 5)
    model = ht.SparsePoissonRegression(n_nonzero_coefs=2).fit(X, y, offset=offset)

    def deviance(u):
        return np.mean(np.exp(u) - y * u + np.where(y > 0, y * np.log(np.maximum(y, 1)), 0) - y)

    null = offset + np.log(y.sum() / np.exp(offset).sum())
    fitted = np.log(model.predict(X, offset=offset))
    assert model.summary().scores["d2"] == pytest.approx(1 - deviance(fitted) / deviance(null))


def test_accuracy_counts_the_weights(table):
    X, y = table
    weights = 1.0 + np.arange(80) % 3
    model = ht.SparseLogisticRegression(n_nonzero_coefs=2).fit(X, y > 0, sample_weight=weights)
    assert model.summary().scores["accuracy"] == pytest.approx(model.score(X, y > 0, weights))


def test_an_average_says_which_model_the_costs_are_of(table):
    X, y = table
    model = ht.SparsePoissonRegressionCV(n_nonzero_coefs=range(5), cv=4).fit(X, y)
    assert len(model.models_) > 1
    summary = model.summary()
    best = model.best_model_
    assert {*summary.worth} == {*best.support.tolist()}
    assert f"SE and costs are of the best single model (k = {best.n_nonzero}" in str(summary)
    assert "Held-out rows: mean Poisson deviance" in str(summary)
    shares = summary.to_frame()["share"]
    assert_allclose(shares, model.selection_frequency_[[f.index for f in summary.facts.features]])


def test_features_on_request_cannot_leave(table):
    X, y = table
    model = ht.SparsePoissonRegression(n_nonzero_coefs=1, always_include=[0]).fit(X, y)
    worth = model.summary().worth[0]
    assert np.isnan(worth.drop_cost)
    assert worth.substitute is None
    assert worth.standard_error > 0
    [line] = [line for line in str(model.summary()).splitlines() if line.startswith("feature 0 ")]
    assert "on request" in line


def test_groups_are_worth_something_as_a_whole(table):
    X, y = table
    model = ht.SparsePoissonRegression(groups=list("aabbccdd"), n_nonzero_groups=1).fit(X, y)
    worth = model.summary().worth
    (name,) = model.groups_
    assert {one.unit for one in worth.values()} == {name}
    assert len({one.drop_cost for one in worth.values()}) == 1
    assert next(iter(worth.values())).substitute in {*"abcd"} - {name}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["outputs", "classes"])
def test_several_outputs_lose_a_feature_for_all_at_once(table, kind):
    X, y = table
    other = np.random.default_rng(0).standard_normal(80)
    Y = np.column_stack([y, X[:, 4] + other]) if kind == "outputs" else np.digitize(X[:, 1] - 0.3 * X[:, 4], [-1, 1])
    estimator = ht.SparseLinearRegression if kind == "outputs" else ht.SparseLogisticRegression
    model = estimator(n_nonzero_coefs=2).fit(X, Y)
    summary = model.summary()
    assert {*summary.worth} == {*model.support_.tolist()}
    for j, worth in summary.worth.items():
        others = [i for i in model.support_.tolist() if i != j]
        without = estimator(n_nonzero_coefs=1).fit(X[:, others], Y)
        assert worth.drop_cost == pytest.approx(without.objective_ - model.objective_, abs=1e-6)
        added = int(worth.substitute.removeprefix("feature "))
        with_it = estimator(n_nonzero_coefs=2).fit(X[:, [*others, added]], Y)
        assert worth.substitute_cost == pytest.approx(with_it.objective_ - model.objective_, abs=1e-6)
        assert np.isnan(worth.standard_error)
    feature = summary.facts.features[0]
    assert_allclose(feature.outputs, model.coef_[:, feature.index] * model.scale_[feature.index])
    assert feature.effect == pytest.approx(np.linalg.norm(feature.outputs))
    predicted = model.predict(X) if kind == "outputs" else model.predict_proba(X)
    assert_allclose(summary.rows.predicted, predicted)
    json.dumps(summary.to_dict(), allow_nan=False)


@pytest.mark.parametrize("weighted", [False, True])
def test_standard_errors_of_an_output_are_those_of_its_own_fit(table, weighted):
    X, y = table
    Y = np.column_stack([y, X[:, 4] + np.random.default_rng(0).standard_normal(80), X[:, 1]])
    weight = np.random.default_rng(1).integers(1, 4, 80) if weighted else None
    model = ht.SparseLinearRegression(n_nonzero_coefs=2, alpha=0.1).fit(X, Y, sample_weight=weight)
    S = model.support_
    summary = model.summary()
    for c in range(3):
        alone = ht.SparseLinearRegression(n_nonzero_coefs=2, alpha=0.1).fit(X[:, S], Y[:, c], sample_weight=weight)
        own = alone.summary().worth
        for place, j in enumerate(S.tolist()):
            expected = own[place].standard_error * model.scale_[j]  # per standard deviation
            assert summary.worth[j].standard_errors[c] == pytest.approx(expected, rel=1e-6)
    assert f"± {summary.worth[int(S[0])].standard_errors[0]:.3g}" in str(summary)
    assert CAUTION in str(summary)
    assert summary.to_dict()["features"][0]["standard_errors"] == [*summary.worth[S[0]].standard_errors]


def test_standard_errors_of_classes_are_those_of_the_information_matrix():
    """Relative to the first class the information is regular; what adds up to 0 follows from that."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5)) * np.array([1.0, 3.0, 0.2, 1.0, 1.0])
    y = np.argmax(X @ rng.standard_normal((5, 3)) * [0.5, 0.2, 0.3] + rng.gumbel(size=(200, 3)), axis=1)
    model = ht.SparseLogisticRegression(n_nonzero_coefs=2, alpha=0.0, tol=1e-12).fit(X, y)
    Z, P = np.column_stack([X[:, model.support_], np.ones(200)]), model.predict_proba(X)
    information = np.zeros((2, 3, 2, 3))
    for z, p in zip(Z, P[:, 1:], strict=True):
        information += np.einsum("ab,jk->ajbk", np.diag(p) - np.outer(p, p), np.outer(z, z))
    covariance = np.zeros((3, 3, 3, 3))
    covariance[1:, :, 1:] = np.linalg.inv(information.reshape(6, 6)).reshape(2, 3, 2, 3)
    centre = np.eye(3) - 1 / 3
    for place, j in enumerate(model.support_.tolist()):
        errors = np.sqrt(np.diag(centre @ covariance[:, place, :, place] @ centre)) * model.scale_[j]
        assert_allclose(model.summary().worth[j].standard_errors, errors, rtol=1e-6)


def test_very_many_coefficients_of_classes_have_no_standard_errors(monkeypatch):
    monkeypatch.setattr("hardthresh.certificates.effects.WIDEST", 3)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    model = ht.SparseLogisticRegression(n_nonzero_coefs=2).fit(X, np.digitize(X[:, 0] + X[:, 1], [-1, 1]))
    assert all(np.isnan(worth.standard_errors).all() for worth in model.summary().worth.values())
    assert "±" not in str(model.summary()).split("±: standard errors")[0]


@pytest.mark.slow
def test_ordered_classes_and_times_are_shown_as_they_are_predicted(table):
    X, _ = table
    classes = np.digitize(X[:, 1] - 0.3 * X[:, 4] + np.random.default_rng(0).logistic(size=80), [-1, 1])
    model = ht.SparseOrdinalRegression(n_nonzero_coefs=2).fit(X, classes)
    assert_allclose(model.summary().rows.predicted, model.predict_proba(X))
    time = np.exp(-X[:, 1]).round(2) + 0.01
    y = np.column_stack([time, np.arange(80) % 3 > 0])
    model = ht.SparseCoxRegression(n_nonzero_coefs=2).fit(X, y)
    for summary in (model.summary(), pickle.loads(pickle.dumps(model)).summary(X, y)):
        assert_allclose(summary.rows.y, y)
        offset = summary.rows.predicted - model.predict(X)
        assert_allclose(offset, offset[0])
    errors = [worth.standard_error for worth in model.summary().worth.values()]
    assert np.all(np.array(errors) > 0)


@pytest.mark.slow
def test_held_out_rows_have_the_predictions_that_were_scored(table):
    X, _ = table
    rng = np.random.default_rng(0)
    classes = np.digitize(X[:, 1] + rng.logistic(size=80), [-1, 1])
    model = ht.SparseOrdinalRegressionCV(n_nonzero_coefs=[1, 2], alphas=0.1, cv=3).fit(X, classes)
    rows = model._held_out_rows
    assert_allclose(rows.predicted.sum(axis=1), 1.0)
    assert np.mean(rows.predicted.argmax(axis=1) == rows.y) == pytest.approx(model.held_out_scores_["accuracy"])
    y = np.column_stack([rng.exponential(np.exp(-X[:, 1])).round(2) + 0.01, np.arange(80) % 4 > 0])
    model = ht.SparseCoxRegressionCV(n_nonzero_coefs=[1, 2], alphas=0.1, cv=3).fit(X, y)
    assert {*map(tuple, model._held_out_rows.y.tolist())} == {*map(tuple, y.tolist())}
    assert model._held_out_rows.held_out


def test_a_model_without_features_has_no_table(table):
    X, y = table
    summary = ht.SparsePoissonRegression(n_nonzero_coefs=0).fit(X, y).summary()
    assert summary.worth == {}
    assert summary.scores["d2"] == pytest.approx(0.0, abs=1e-12)
    assert CAUTION not in str(summary)
    assert len(summary.to_frame()) == 0
    assert "<table>" not in summary._repr_html_()


def test_a_copy_needs_the_data_and_then_says_the_same(table):
    X, y = table
    model = ht.SparsePoissonRegression(n_nonzero_coefs=2).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    with pytest.raises(HardThreshError, match=r"give them again, as in certificate\(X, y\), summary\(X, y\)"):
        again.summary()
    with pytest.raises(InvalidInputError, match="belong to data"):
        again.summary(sample_weight=np.ones(80))
    given = again.summary(X, y)
    assert_allclose([w.drop_cost for w in given.worth.values()], [w.drop_cost for w in model.summary().worth.values()])
    assert given.objective == pytest.approx(model.objective_)


def test_a_new_fit_has_a_new_summary(table):
    X, y = table
    model = ht.SparsePoissonRegression(n_nonzero_coefs=2).fit(X, y)
    first = model.summary()
    assert model.fit(X, y[::-1]).summary().objective != first.objective


def test_names_are_escaped_in_html(table):
    pandas = pytest.importorskip("pandas")
    X, y = table
    frame = pandas.DataFrame(X, columns=[f"<b>{j}" for j in range(8)])
    html = ht.SparsePoissonRegression(n_nonzero_coefs=2).fit(frame, y).summary()._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;1" in html
    assert CAUTION in html


def test_columns_that_would_be_empty_are_left_out(table):
    X, y = table
    of_quantiles = str(ht.SparseQuantileRegression(n_nonzero_coefs=2).fit(X, y).summary())
    assert "No standard errors and substitutes: a loss with a kink" in of_quantiles
    assert "SE*" not in of_quantiles
    assert CAUTION not in of_quantiles
    assert "substitute  " not in of_quantiles
    of_all = str(ht.SparseLinearRegression(n_nonzero_coefs=3).fit(X[:, :3], y).summary())
    assert "SE*" in of_all
    assert "substitute" not in of_all
    assert "when the feature leaves, and all coefficients are refitted" in of_all


def test_a_frame_needs_pandas(table, monkeypatch):
    import sys

    X, y = table
    summary = ht.SparsePoissonRegression(n_nonzero_coefs=2).fit(X, y).summary()
    frame = summary.to_frame()
    assert frame.attrs["standard_errors"] == CAUTION
    assert list(frame.index) == [feature.name for feature in summary.facts.features]
    assert {"outputs", "standard_errors"}.isdisjoint(frame.columns)
    assert frame["level_of"].dtype == "Int64"
    assert frame["level_of"].isna().all()
    several = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, np.column_stack([y, -y])).summary().to_frame()
    assert [len(effects) for effects in several["outputs"]] == [2, 2]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"to_dict\(\)"):
        summary.to_frame()


@only_at("pairs")
def test_a_fit_that_was_cut_short_is_said_to_be(table):
    X, y = table
    with pytest.warns(ConvergenceWarning):
        model = ht.SparsePoissonRegression(n_nonzero_coefs=2, solver="iht", max_iter=1).fit(X, y)
    assert f"NOT converged: {model.stop_reason_}" in str(model.summary())


def test_the_head_has_the_gap_to_the_lower_bound(table):
    X, y = table
    model = ht.SparsePoissonRegression(n_nonzero_coefs=2, alpha=0.1).fit(X, y)
    summary = model.summary()
    assert summary.gap == model.certificate().gap == summary.to_dict()["gap"]
    assert 0.0 < summary.gap < 0.5
    assert "Gap to a lower bound of all sets: " in str(summary)
    few = X.shape[1]  # as many rows as columns bound nothing without a ridge
    assert "Gap" not in str(ht.SparsePoissonRegression(n_nonzero_coefs=1).fit(X[:few], y[:few]).summary())


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (None, ""),
        (0.8, "Gap to a lower bound of all sets: 80 %: nothing is proved, and nothing said against this set"),
        (0.02, "Gap to a lower bound of all sets: 2 %: no set of this size has an objective lower by more"),
        (0.0, "Gap to a lower bound of all sets: none, so that no other set of this size is better"),
    ],
)
def test_the_gap_in_words(gap, words):
    assert gap_sentence(gap) == words
