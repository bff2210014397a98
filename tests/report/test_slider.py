"""The slider of the report shows each model of the path with the numbers that the estimator has for it."""

import re
from base64 import b64encode
from hashlib import sha256

import numpy as np
import pytest
from sklearn.base import clone

from hardthresh import SparseLinearRegression, SparsePoissonRegressionCV
from hardthresh.core.numbers import mean_and_error, number, signed
from hardthresh.estimators.facts import read
from hardthresh.report import write_report
from hardthresh.report.slider import positions
from levels import only_at


@pytest.fixture(scope="module")
def counts():
    """A model of counts that compared 0 to 3 features with three ridges: other ones are best for 2 and 3 than for 1."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 5)) * 2.0
    return X, SparsePoissonRegressionCV(n_nonzero_coefs=3, alphas=[0.01, 0.3, 3.0], cv=3).fit(
        X, rng.poisson(np.exp(0.5 * X[:, 1]))
    )


def test_each_position_is_a_model_of_the_path(counts):
    X, model = counts
    path = model.summary().path
    found = positions(read(model), model._loss, path)
    assert len(found) == 4
    assert np.any(np.argmax(model.grid_scores_.mean(axis=2), axis=1) != np.argmin(np.abs(model.alphas_ - model.alpha_)))
    assert [one.chosen for one in found] == [k == model.best_n_nonzero_coefs_ for k in model.candidates_]
    for place, one in enumerate(found):
        coef = model.coefs_path_[place]
        assert one.says.startswith(f"{place} feature")
        assert one.says.endswith(mean_and_error(-model.mean_scores_[place], model.standard_errors_[place]))
        assert {bar.name: bar.effect for bar in one.features} == {
            f"feature {j}": signed(coef[j] * model.scale_[j]) for j in np.flatnonzero(coef)
        }
        rate = np.exp(X[path.number] @ coef + model.intercepts_path_[place])
        np.testing.assert_allclose(path.predicted[place], rate)
        assert [prediction for *_, prediction in one.rows] == [number(float(value)) for value in rate]
    assert max(bar.length for one in found for bar in one.features) == 100


@only_at("pairs")
def test_rows_without_weight_are_not_counted(counts, tmp_path):
    X, model = counts
    y = np.random.default_rng(3).poisson(np.exp(0.5 * X[:, 1]))
    weight = np.where(np.arange(60) < 5, 0.0, 1.0)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    path = weighted.summary().path
    np.testing.assert_array_equal(path.y, y[5:][path.number])
    text = write_report(weighted, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "The first row has the number 0; rows of weight 0 have none." in text


def test_features_that_come_and_go_are_named():
    X = np.random.default_rng(1).standard_normal((60, 6))
    X[:, 0] = X[:, 1] + X[:, 2] + 0.3 * X[:, 0]  # the best single one, and of no use besides both others
    model = SparseLinearRegression().fit(X, X[:, 1] + X[:, 2] + 0.05 * X[:, 5])
    _, one, two, *_ = positions(read(model), model._loss, None)
    assert [bar.name for bar in one.features] == ["feature 0"]
    assert two.left == ("feature 0",)
    assert all(bar.new for bar in two.features)
    assert "EBIC" in two.says


@only_at("pairs")
def test_a_given_k_has_no_slider(regression, tmp_path):
    text = write_report(regression, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script>" not in text
    assert positions(read(regression), regression._loss, None) == []


@only_at("pairs")
def test_without_scripts_the_chosen_model_alone_is_shown(counts, tmp_path):
    _, model = counts
    text = write_report(model, tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<div class="slider" hidden>' in text
    shown = re.findall(r'<div class="model" data-says="([^"]*)"( hidden)?>', text)
    assert len(shown) == 4
    [chosen] = [says for says, hidden in shown if not hidden]
    assert chosen.startswith(f"{model.best_n_nonzero_coefs_} feature")


@pytest.mark.slow
def test_the_page_allows_its_own_script_alone(counts, tmp_path):
    text = write_report(counts[1], tmp_path / "report.html").read_text(encoding="utf-8")
    [script] = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in text


def test_other_features_than_the_strongest_are_counted(build):
    model = build(20, 30)
    last = positions(read(model), model._loss, None)[-1]
    assert len(last.features) == 12
    assert last.more == 8
