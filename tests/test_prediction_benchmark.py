"""The benchmark of prediction: its designs and measures, the relaxed fits, what is kept, and the tables from rows."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import toeplitz
from sklearn.linear_model import LassoCV, LogisticRegression
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from levels import only_at

FOLDER = Path(__file__).parents[1] / "benchmarks"
MODULES = (
    *("command", "contest", "entrants", "halves", "instance", "nothing", "real"),
    *("relaxed_lasso", "relaxed_logistic", "results", "simulation", "store", "summaries"),
)


@pytest.fixture(scope="module")
def bench():
    """The modules of the benchmark, which are not part of any package."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield SimpleNamespace(**{name: import_module(f"prediction.{name}") for name in MODULES})
    finally:
        sys.path.remove(str(FOLDER))


# halves ----------------------------------------------------------------------------------------------------------


def test_neighbouring_cells_are_in_different_halves(bench):
    cells = {cell.numbers: cell.half for cell in bench.simulation.cells()}
    assert len(cells) == 360
    for numbers, half in cells.items():
        for axis in range(4):
            neighbour = tuple(number + (place == axis) for place, number in enumerate(numbers))
            assert neighbour not in cells or cells[neighbour] != half
    assert cells[0, 0, 0, 0] == "choosing"


def test_families_take_turns_but_for_those_of_earlier_work(bench):
    found = bench.halves.of_families(["wheat", "b", "a", "colon", "c", "b"])
    assert found == {"a": "reporting", "b": "choosing", "c": "reporting", "colon": "choosing", "wheat": "choosing"}


def test_targets_of_a_family_and_its_permutations_are_in_one_half(bench):
    by_family: dict[Any, set[str]] = {}
    for each in bench.real.sets():
        by_family.setdefault((each.family, each.loss), set()).add(each.half)
    assert {len(found) for found in by_family.values()} == {1}
    for source in bench.nothing.sources():
        if " rho" not in source.source:
            assert bench.real.find(source.source).half == source.half, source.source


# the simulation --------------------------------------------------------------------------------------------------


def test_coefficients_are_those_of_the_paper(bench):
    one, two, five = (bench.simulation.coefficients(kind, 10, 3) for kind in (1, 2, 5))
    assert np.flatnonzero(one).tolist() == [0, 4, 9]
    assert two.tolist() == [1, 1, 1, *[0] * 7]
    assert five[:5].tolist() == [1, 1, 1, 0.5, 0.25]
    assert (np.count_nonzero(five), one.sum()) == (10, 3)


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_the_covariance_is_applied_and_drawn(bench, rho):
    matrix = toeplitz(rho ** np.arange(6))
    v = np.random.default_rng(0).standard_normal(6)
    np.testing.assert_allclose(bench.simulation.covariance_times(v, rho), matrix @ v, atol=1e-14)
    X = bench.simulation.autoregressive(np.random.default_rng(1), 20000, 6, rho)
    np.testing.assert_allclose(np.cov(X.T), matrix, atol=0.05)  # 5 standard errors


def test_risk_and_test_error_are_those_of_new_rows(bench):
    cell = bench.simulation.Cell("low", 1.22, 0.7, 5)
    training, judge = cell.draw(3)
    coef = np.linalg.lstsq(training.X, training.y, rcond=None)[0]
    measures = judge(bench.entrants.LinearFit(coef, 5.0, "squared"))
    beta = bench.simulation.coefficients(5, 10, 5)
    X = bench.simulation.autoregressive(np.random.default_rng(2), 200_000, 10, 0.7)
    signal = (X @ beta).var()
    assert measures["risk"] == pytest.approx((X @ (coef - beta)).var() / signal, rel=0.05)
    noise = signal / 1.22
    assert measures["test_error"] == pytest.approx((np.mean((X @ (coef - beta) + 5.0) ** 2) + noise) / noise, rel=0.02)
    empty = judge(bench.entrants.LinearFit(np.zeros(10), 0.0, "squared"))
    assert empty["risk"] == pytest.approx(1.0)
    assert empty["test_error"] == pytest.approx(1.0 + 1.22)


def test_the_signal_to_noise_ratio_is_that_of_the_cell(bench):
    ratios = []
    for repetition in range(40):
        training, _ = bench.simulation.Cell("medium", 2.07, 0.35, 2).draw(repetition)
        f = training.X @ bench.simulation.coefficients(2, 100, 5)
        ratios.append(f.var() / (training.y - f).var())
    assert np.mean(ratios) == pytest.approx(2.07, rel=0.05)


def test_repetitions_differ_and_come_again(bench):
    cell = bench.simulation.cells()[7]
    assert cell.draw(0)[0].checksum == cell.draw(0)[0].checksum != cell.draw(1)[0].checksum


@pytest.mark.parametrize("stored", [np.asarray, sparse.csc_matrix])
def test_the_checksum_is_of_all_values(bench, stored):
    X, y = np.eye(3), np.arange(3.0)
    other = X.copy()
    other[1, 1] = 2.0
    kept = [
        bench.instance.Training(stored(columns), target, "squared").checksum
        for columns, target in ((X, y), (other, y), (X, y + 1), (X[:, [1, 0, 2]], y))
    ]
    assert len(set(kept)) == 4


# held-out rows ---------------------------------------------------------------------------------------------------


def test_splits_share_no_row_and_keep_the_shares_of_classes(bench):
    y = (np.arange(6000) < 1500).astype(float)
    train, test = bench.real.split(y, "logistic", 0)
    assert np.intersect1d(train, test).size == 0
    assert (train.size, test.size) == (1000, 1000)
    assert y[train].mean() == y[test].mean() == 0.25
    assert np.unique(y[train[:100]]).size == 2  # in random order, so that consecutive rows make folds
    small, _ = bench.real.split(np.arange(30.0), "squared", 0)
    assert small.size == 20


def test_measures_of_held_out_rows_agree_with_those_of_scikit_learn(bench):
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 50).astype(float), np.round(rng.random(50), 1)
    p[y == 0] *= 0.5
    fit = SimpleNamespace(predict=lambda X: p)
    found = bench.instance.held_out("logistic", np.array([0.0, 1.0, 1.0, 1.0]), None, y)(fit)
    assert found["loss"] == pytest.approx(log_loss(y, p) / log_loss(y, np.full(50, 0.75)))
    assert found["auc"] == pytest.approx(roc_auc_score(y, p))
    assert found["accuracy"] == np.mean((p > 0.5) == y)
    found = bench.instance.held_out("squared", np.array([0.0, 1.0]), None, y)(fit)
    assert found["loss"] == pytest.approx(np.mean((y - p) ** 2) / 0.25)
    assert found["r2"] == pytest.approx(r2_score(y, p))


def constant(level):
    return SimpleNamespace(predict=lambda X: np.full(X.shape[0], level))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_where_there_is_nothing_the_model_without_features_has_loss_1_and_no_excess(bench, loss):
    source = next(each for each in bench.nothing.sources() if each.source.startswith("low") and each.loss == loss)
    training, judge = source.draw(0)
    empty, other = judge(constant(training.y.mean())), judge(constant(training.y.mean() + 0.3))
    assert (empty["loss"], empty["excess"], empty["excess_error"]) == (pytest.approx(1.0), 0.0, 0.0)
    assert other["excess"] > other["excess_error"] > 0


def test_where_there_is_nothing_the_held_out_rows_are_not_among_the_training_rows(bench):
    source = next(each for each in bench.nothing.sources() if each.source.startswith("low"))
    training, judge = source.draw(0)
    seen = []
    judge(SimpleNamespace(predict=lambda X: seen.append(X) or np.zeros(len(X))))
    assert training.X.shape == (100, 10)
    assert seen[0].shape == (1000, 10)
    assert not np.isin(seen[0], training.X).any()


def test_permuted_targets_do_not_follow_the_columns(bench, monkeypatch):
    X = np.arange(300.0)[:, None]
    monkeypatch.setattr(bench.real, "find", lambda title: SimpleNamespace(table=lambda: (X, X[:, 0])))
    source = next(each for each in bench.nothing.sources() if each.source == "riboflavin")
    training, _ = source.draw(0)
    assert training.y.size == 200
    assert abs(np.corrcoef(training.X[:, 0], training.y)[0, 1]) < 0.25  # 3.5 standard errors
    assert np.isin(training.y, X).all()


# entrants --------------------------------------------------------------------------------------------------------


def orthogonal_columns():
    rng = np.random.default_rng(0)
    centred = np.linalg.qr(np.column_stack([np.ones(40), rng.standard_normal((40, 6))]))[0][:, 1:]
    X = centred * np.sqrt(40) + 3.0
    return X, X @ [3.0, -2.0, 1.0, 0.5, 0.0, 0.0] + rng.standard_normal(40) + 4.0


def test_the_relaxed_path_has_its_closed_form_for_orthogonal_columns(bench):
    X, y = orthogonal_columns()
    alphas = np.array([2.5, 1.0, 0.3, 0.01])
    coefs, intercepts = bench.relaxed_lasso.relaxed_path(X, y, alphas)
    least_squares = (X - X.mean(axis=0)).T @ y / 40
    lasso = np.sign(least_squares) * np.maximum(np.abs(least_squares) - alphas[:, None], 0.0)
    for place, gamma in enumerate(bench.relaxed_lasso.GAMMAS):
        expected = gamma * lasso + (1 - gamma) * np.where(lasso != 0, least_squares, 0.0)
        np.testing.assert_allclose(coefs[:, place], expected, atol=1e-12)
        np.testing.assert_allclose(intercepts[:, place], y.mean() - expected @ X.mean(axis=0), atol=1e-12)
    assert np.count_nonzero(lasso, axis=1).tolist() == sorted(np.count_nonzero(lasso, axis=1))
    assert 0 < np.count_nonzero(lasso[0]) < 6


def test_the_relaxed_lasso_without_relaxation_is_that_of_scikit_learn(bench, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 100))
    y = X[:, 0] + rng.standard_normal(60) + 5.0
    monkeypatch.setattr(bench.relaxed_lasso, "GAMMAS", (1.0,))
    ours, theirs = bench.relaxed_lasso.RelaxedLassoCV().fit(X, y), LassoCV(cv=5).fit(X, y)
    assert ours.alpha_ == pytest.approx(theirs.alpha_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-10)
    assert ours.intercept_ == pytest.approx(theirs.intercept_)


@pytest.mark.slow
def test_the_relaxed_lasso_is_relaxed_where_signal_is_strong_and_empty_where_there_is_none(bench):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((100, 50))
    strong = bench.relaxed_lasso.RelaxedLassoCV().fit(X, 5 * X[:, 0] - 5 * X[:, 9] + rng.standard_normal(100))
    assert (strong.gamma_, np.flatnonzero(strong.coef_).tolist()) == (0.0, [0, 9])
    nothing = bench.relaxed_lasso.RelaxedLassoCV().fit(X, rng.standard_normal(100))
    assert (nothing.gamma_, np.count_nonzero(nothing.coef_)) == (1.0, 0)


def test_the_lasso_is_not_relaxed_where_it_has_nearly_as_many_columns_as_rows(bench):
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((20, 200)), rng.standard_normal(20)
    penalties = np.abs((X - X.mean(axis=0)).T @ y).max() / 20 * np.array([0.5, 0.02])
    coefs, _ = bench.relaxed_lasso.relaxed_path(X, y, penalties)
    few, many = np.count_nonzero(coefs[:, -1], axis=1)
    assert few <= 0.8 * 20 < many
    assert np.abs(coefs[0, 0] - coefs[0, -1]).max() > 0
    np.testing.assert_array_equal(coefs[1, 0], coefs[1, -1])


def test_duplicate_columns_do_not_get_coefficients_without_bound(bench):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 5))
    X = np.column_stack([X, X * (1 + 1e-15), X[:, ::-1]])  # up to rounding
    y = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(60)
    coefs, _ = bench.relaxed_lasso.relaxed_path(X, y, np.array([0.3, 0.01]))
    assert np.count_nonzero(coefs[1, -1]) > 5  # the lasso has several copies
    assert np.abs(coefs).max() < 1.2


@pytest.mark.slow
@pytest.mark.parametrize("store", [np.asarray, sparse.csc_matrix])
def test_relaxed_logistic_regression_mixes_the_penalised_fit_and_the_refit(bench, store):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 20))
    y = (X[:, 4] - X[:, 9] + X[:, 1] + rng.logistic(size=120) > 0).astype(float)
    penalised = LogisticRegression(l1_ratio=1.0, solver="liblinear", random_state=0)
    model = bench.relaxed_logistic.RelaxedLogisticCV(penalised, np.logspace(-1.5, 1, 8)).fit(store(X), y)
    support = np.flatnonzero(model.coef_)
    lasso = LogisticRegression(l1_ratio=1.0, solver="liblinear", random_state=0, C=model.C_).fit(X, y)
    refit = LogisticRegression(C=100.0).fit(X[:, support], y)
    np.testing.assert_array_equal(np.flatnonzero(lasso.coef_[0]), support)
    expected = model.gamma_ * lasso.coef_[0, support] + (1 - model.gamma_) * refit.coef_[0]
    np.testing.assert_allclose(model.coef_[support], expected, rtol=1e-4)
    level = model.gamma_ * lasso.intercept_[0] + (1 - model.gamma_) * refit.intercept_[0]
    assert model.intercept_ == pytest.approx(level, rel=1e-4)
    assert (support.tolist(), model.gamma_) == ([1, 2, 4, 9], 0.75)
    losses = [
        bench.instance.losses("logistic", y, 1 / (1 + np.exp(-X @ coef - level))).mean()
        for coef, level in model._mixtures(store(X), y)(model.C_)
    ]
    assert losses == sorted(losses)  # less relaxed models fit the training rows less well


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("stored", [np.asarray, sparse.csc_matrix])
def test_coefficients_on_scaled_columns_predict_as_those_on_the_scale_of_the_data(bench, stored, loss):
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (50, 6)) * np.logspace(-2, 2, 6)
    X[:, 2] = 7.0  # constant: left out
    training = bench.instance.Training(stored(X), (X[:, 0] > 0.005).astype(float), loss)
    scaled = bench.entrants.Scaled.of(training.X)
    columns = scaled.X.toarray() if sparse.issparse(scaled.X) else scaled.X
    np.testing.assert_allclose(columns.std(axis=0), 1.0)
    fit = bench.entrants.LinearFit(*scaled.on_data(np.arange(1.0, 6.0), 0.5), loss)
    u = columns @ np.arange(1.0, 6.0) + 0.5
    np.testing.assert_allclose(fit.predict(training.X), u if loss == "squared" else 1 / (1 + np.exp(-u)), atol=1e-12)
    assert (fit.features, fit.coef[2]) == (5, 0.0)


@only_at("pairs")
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_everybody_predicts_better_than_none_where_there_is_much_to_find(bench, loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((260, 12)) + 1.0
    u = 3 * X[:, 0] - 3 * X[:, 5]
    y = u + rng.standard_normal(260) if loss == "squared" else (u + rng.logistic(size=260) > 0).astype(float)
    training = bench.instance.Training(X[:160], y[:160], loss)
    judge = bench.instance.held_out(loss, y[:160], X[160:], y[160:])
    entrants = bench.entrants.ours(bench.entrants.OURS) + bench.entrants.peers()
    labels = set()
    for entrant in entrants:
        if loss in entrant.fitters:
            fit, _ = entrant.fit(training)
            assert judge(fit)["loss"] < 0.7, entrant.label
            assert 2 <= fit.features <= 12
            labels.add(entrant.label)
    assert {"hardthresh", "ridge", "random forest"} < labels
    assert ({"lasso", "relaxed lasso", "elastic net", "OMP"} if loss == "squared" else {"l1 logistic"}) < labels


def test_editions_of_ours_differ_with_the_settings(bench):
    by_loss = {"squared": ("SparseLinearRegressionCV", {})}
    changed = {"squared": ("SparseLinearRegressionCV", {"cv": 3})}
    first, again, other = bench.entrants.ours({"a": by_loss, "b": by_loss, "c": changed})
    assert first.edition == again.edition != other.edition


# runs and tables -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Toy:
    """An instance whose data and measures are set by hand."""

    title: str = "toy"
    half: str = "choosing"
    loss: str = "squared"
    real: bool = False
    level: float = 0.0

    def draw(self, repetition):
        rows = np.full((2, 1), self.level + repetition)
        return self.training(rows, rows[:, 0], self.loss), lambda fit: {"risk": float(fit.features + repetition)}

    training: Any = field(default=None, compare=False)


def fit_with(features, counts, rows):
    counts.append(rows.X[0, 0])
    if features is None:
        raise ValueError("no features")
    return SimpleNamespace(features=features)


@pytest.fixture
def contestants(bench):
    """Three entrants, the calls of each, and a function that runs them."""
    calls: dict[str, list[float]] = {"ours": [], "peer": [], "broken": []}
    settings = {"ours": (1, "a", True), "peer": (3, "1.0", False), "broken": (None, "1.0", False)}

    def entrants(**editions):
        return [
            bench.entrants.Entrant(
                name, editions.get(name, edition), True, {"squared": partial(fit_with, count, calls[name])}, ours=own
            )
            for name, (count, edition, own) in settings.items()
        ]

    return SimpleNamespace(calls=calls, entrants=entrants)


def test_only_what_is_not_kept_is_fitted_again(bench, contestants, tmp_path, capsys):
    store, toy = bench.store.Store(tmp_path, "task"), Toy(training=bench.instance.Training)
    counts = lambda: {name: len(calls) for name, calls in contestants.calls.items()}  # noqa: E731
    bench.contest.run([toy], contestants.entrants(), range(2), store)
    assert counts() == {"ours": 2, "peer": 2, "broken": 2}
    assert "toy, broken: ValueError: no features" in capsys.readouterr().err
    bench.contest.run([toy], contestants.entrants(), range(3), store)  # one repetition more
    assert counts() == {"ours": 3, "peer": 3, "broken": 3}
    bench.contest.run([toy], contestants.entrants(ours="b"), range(2), store)  # another version of ours
    assert counts() == {"ours": 5, "peer": 3, "broken": 3}
    moved = Toy(level=10.0, training=bench.instance.Training)  # other data by the same name
    bench.contest.run([moved], contestants.entrants(), range(1), store)
    assert counts() == {"ours": 6, "peer": 4, "broken": 4}


def test_results_have_the_present_edition_and_the_repetitions_of_all(bench, contestants, tmp_path):
    store, toy = bench.store.Store(tmp_path, "task"), Toy(training=bench.instance.Training)
    bench.contest.run([toy], contestants.entrants(), range(4), store)
    bench.contest.run([toy], contestants.entrants(ours="b"), range(1, 3), store)
    results = bench.results.gather(store.rows(), [toy], contestants.entrants(ours="b"), range(4))
    (outcome,) = results.outcomes
    assert outcome.measures.keys() == {"ours", "peer"}  # broken failed
    assert outcome.measures["peer"]["risk"] == [4.0, 5.0]  # of repetitions 1 and 2
    assert (results.ours, results.sparse) == (["ours"], ["ours", "peer", "broken"])
    assert results.of(half="reporting").outcomes == []


def test_results_of_other_data_are_not_compared(bench, contestants, tmp_path):
    store, toy = bench.store.Store(tmp_path, "task"), Toy(training=bench.instance.Training)
    moved = Toy(level=10.0, training=bench.instance.Training)
    ours, peer, _ = contestants.entrants()
    bench.contest.run([toy], [ours, peer], range(2), store)
    bench.contest.run([moved], [ours], range(1), store)
    (outcome,) = bench.results.gather(store.rows(), [toy], [ours, peer], range(2)).outcomes
    assert outcome.measures["ours"]["risk"] == [2.0]  # of repetition 1, which both have
    store.path.write_text(store.path.read_text(encoding="utf-8") + '{"instance": "to', encoding="utf-8")
    assert len(store.rows()) == 5  # without what another process is just writing


def outcome(bench, title="low beta1 rho0 snr1.22", features=None, loss="squared", real=False, **values):
    criterion = "loss" if real else "risk"
    measures = {
        name.replace("_", " "): {
            criterion: list(numbers),
            "features": [(features or {}).get(name, 4)] * len(numbers),
            "seconds": [1.0] * len(numbers),
        }
        for name, numbers in values.items()
    }
    return bench.results.Outcome(title, "reporting", loss, real, measures)


def test_close_means_within_one_standard_error_of_the_paired_difference(bench):
    peer = np.array([0.1, 0.9, 0.3, 0.7])  # varies much more than the differences
    difference = np.array([0.0, 0.1, 0.1, 0.2])  # mean 0.1, standard error 0.0408
    far = bench.summaries.standing(
        outcome(bench, ours=peer + difference, peer=peer, worse=peer + 1), "ours", ["peer", "worse"]
    )
    assert (far.rival, far.excess) == ("peer", pytest.approx(0.1))
    assert far.paired_error == pytest.approx(np.sqrt(0.02 / 3 / 4))
    assert (far.best, far.close, far.close_to_mean) == (False, False, True)
    near = bench.summaries.standing(outcome(bench, ours=peer + difference - 0.06, peer=peer), "ours", ["peer"])
    assert (near.best, near.close) == (False, True)
    tie = bench.summaries.standing(outcome(bench, ours=peer, peer=peer), "ours", ["peer"])
    assert tie.best
    assert tie.close


def test_the_overview_counts_and_the_lost_instances_are_named(bench):
    found = [
        outcome(bench, ours=[0.1, 0.2], lasso=[0.3, 0.3], ridge=[0.0, 0.0], features={"ours": 2, "lasso": 8}),
        outcome(bench, "high-5 beta1 rho0 snr6", ours=[0.9, 0.9], lasso=[0.3, 0.3], features={"ours": 1, "lasso": 4}),
    ]
    results = bench.results.Results(["ours"], ["ours", "lasso"], found)
    rows = {row[0]: row[1:] for row in bench.summaries.overview(results, "").rows}
    assert rows["ours"] == ("2", "50%", "50%", "50%", "0.525", "0.525", "1.5", "0.25", "1")
    assert rows["lasso"][0] == "2"
    assert rows["ridge"][:4] == ("1", "", "", "")  # not a sparse method
    (lost,) = bench.summaries.losing(results, "ours", "").rows
    assert (lost[0], lost[1], lost[-1]) == ("high-5 beta1 rho0 snr6", "0.900", "lasso")


def test_the_overview_shows_other_measures_of_real_sets(bench):
    found = outcome(bench, "set", loss="logistic", real=True, ours=[0.5, 0.7])
    found.measures["ours"]["auc"] = [0.8, 0.9]
    table = bench.summaries.overview(bench.results.Results(["ours"], ["ours"], [found]), "")
    (line,) = table.rows
    cells = dict(zip(table.header, line, strict=True))
    assert (cells["mean loss"], cells["AUC"], cells["/ lasso's"]) == ("0.600", "0.850", "")
    assert "R2" not in cells


def test_means_by_setting(bench):
    found = [
        outcome(bench, ours=[0.1, 0.2], ridge=[0.0, 0.0]),
        outcome(bench, "high-5 beta1 rho0 snr6", ours=[0.9, 0.9]),
    ]
    results = bench.results.Results(["ours"], ["ours"], found)
    by_setting = bench.summaries.by_group(results, "", "setting")
    assert by_setting.header == ("", "low", "high-5")
    assert by_setting.rows == [("ours", "0.150", "0.900"), ("ridge", "0.000", "")]


def test_goals_are_reached_only_at_their_bounds(bench):
    def goals(ours_risk, ours_features, empty, excess):
        by_task = {
            "simulated": bench.results.Results(
                ["ours"],
                ["ours", "lasso", "relaxed lasso"],
                [
                    outcome(
                        bench,
                        ours=[ours_risk] * 2,
                        lasso=[0.5, 0.5],
                        relaxed_lasso=[0.4, 0.4],
                        features={"ours": ours_features, "lasso": 8, "relaxed_lasso": 8},
                    )
                ],
            )
        }
        nothing = outcome(bench, "toy", real=True, ours=[1.0] * 20)
        nothing.measures["ours"] |= {
            "features": [0] * empty + [1] * (20 - empty),
            "excess": [excess] * 20,
            "excess_error": [0.1] * 20,
        }
        by_task["nothing"] = bench.results.Results(["ours"], ["ours"], [nothing])
        return [row[3] for row in bench.summaries.goals(by_task, "ours", "reporting").rows]

    assert goals(0.4, 4, 19, 0.1) == ["yes"] * 5
    assert goals(0.41, 5, 18, 0.11) == ["no"] * 5
    assert goals(0.4, 4, 20, 0.11)[-1] == "yes"  # no model with a feature


@only_at("pairs")
def test_the_command_runs_prints_and_writes(bench, tmp_path, capsys):
    command = [
        "--only",
        "snr6",
        "--settings",
        "low",
        "--half",
        "choosing",
        "--repetitions",
        "0-1",
        "--entrants",
        "ours,lasso,OMP",
    ]
    assert bench.command.main([*command, "--cache", str(tmp_path), "--write", str(tmp_path / "results")]) == 0
    text = capsys.readouterr().out
    assert "simulated, choosing, repetitions: 2 to 2, squared loss" in text
    assert "hardthresh" in text
    assert "OMP" in text
    assert (tmp_path / "results" / "simulated.json").is_file()
    rows = len(bench.store.Store(tmp_path, "simulated").rows())
    cells = [
        cell for cell in bench.simulation.cells() if cell.setting == "low" and cell.snr == 6 and cell.half == "choosing"
    ]
    assert rows == 2 * 3 * len(cells) > 0
    bench.command.main([*command, "--cache", str(tmp_path)])
    assert len(bench.store.Store(tmp_path, "simulated").rows()) == rows
    with pytest.raises(SystemExit, match="no entrant nobody; there are"):
        bench.command.main(["--entrants", "nobody", "--cache", str(tmp_path)])
