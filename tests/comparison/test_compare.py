"""The comparison with other packages: one law of nested cross-validation after the other, on entrants that break it."""

import json
import signal
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss

import hardthresh as ht
from hardthresh.comparison import ENTRANTS, verdict
from hardthresh.comparison.entries import Entry
from hardthresh.comparison.scaling import Scaled
from hardthresh.comparison.tables import Prepared, features_of
from hardthresh.comparison.targets import Target, target_of
from hardthresh.comparison.training import Training, best_of_path
from hardthresh.core.errors import InvalidInputError
from levels import at, at_most, only_at

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 6))
Y = 2 * X[:, 1] - X[:, 4] + 0.5 * RNG.standard_normal(60)
NOISE = RNG.standard_normal(60)


class Constant(BaseEstimator):
    """Predicts the mean of the training rows."""

    def fit(self, X, y):
        self.mean_ = float(np.mean(y))
        self.coef_ = np.zeros(X.shape[1])
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.mean_)


class Recorder(Constant):
    """Keeps the rows that every fit is given, scaled as they are."""

    seen: ClassVar[list] = []

    def fit(self, X, y):
        self.seen.append((X.copy(), np.array(y)))
        return super().fit(X, y)


class Memory(LinearRegression):
    """Knows the training rows by heart, and says so of any row that is one of them."""

    def fit(self, X, y):
        self.rows_, self.y_ = X.copy(), np.array(y)
        return super().fit(X, y)

    def predict(self, X):
        distance = ((X[:, None] - self.rows_[None]) ** 2).sum(axis=2)
        known = distance.min(axis=1) < 1e-12
        return np.where(known, self.y_[distance.argmin(axis=1)], self.y_.mean())


class Concealer(LinearRegression):
    """Predicts with all features, and reports one."""

    def fit(self, X, y):
        self.inner_ = LinearRegression().fit(X, y)
        self.coef_ = np.eye(X.shape[1])[0]
        return self

    def predict(self, X):
        return self.inner_.predict(X)


class Vandal(Constant):
    """Overwrites what it is given."""

    def fit(self, X, y):
        super().fit(X, y)
        X[:] = 0.0
        y[:] = 0.0
        return self

    def predict(self, X):
        X[:] = np.nan
        return super().predict(np.zeros(X.shape))


class Failing(Constant):
    """Fails in the folds that lack row 0."""

    def fit(self, X, y):
        if Y[0] not in y:
            raise RuntimeError("singular\n   matrix")
        return super().fit(X, y)


class Endless(Constant):
    """Never comes to an end, whatever errors there are."""

    def fit(self, X, y):
        while True:
            with suppress(Exception):
                sum(range(1000))


class Interrupted(Constant):
    """The user presses Ctrl-C in its third fit."""

    fits: ClassVar[list] = []

    def fit(self, X, y):
        self.fits.append(0)
        if len(self.fits) % 3 == 0:
            raise KeyboardInterrupt
        return super().fit(X, y)


def compare(entrants, y=Y, X=X, **settings):
    return ht.compare(X, y, entrants=entrants, **({"folds": 3} | settings))


def test_every_entrant_gets_the_same_rows_in_the_same_folds():
    first, second = type("First", (Recorder,), {"seen": []}), type("Second", (Recorder,), {"seen": []})
    found = compare({"first": first(), "second": second()}, repeats=2)
    assert len(first.seen) == len(second.seen) == 6
    for (X1, y1), (X2, y2), fold in zip(first.seen, second.seen, found.rounds, strict=True):
        assert np.array_equal(X1, X2)
        assert np.array_equal(y1, y2)
        assert np.array_equal(y1, Y[fold.train])
        assert np.allclose(X1.mean(axis=0), 0)  # scaled by the training rows alone
        assert {*fold.train} | {*fold.test} == {*range(60)}
        assert not {*fold.train} & {*fold.test}
    for repeat in (0, 1):
        assert sorted(row for fold in found.rounds if fold.repeat == repeat for row in fold.test) == [*range(60)]
    assert not np.array_equal(found.rounds[0].test, found.rounds[3].test)
    assert found["first"].losses == found["second"].losses


def test_an_entrant_that_learns_by_heart_gains_nothing():
    found = compare({"memory": Memory(), "constant": Constant()})
    assert found["memory"].failures == ()
    assert found["memory"].relative_loss == pytest.approx(1.0)
    assert found["constant"].relative_loss == pytest.approx(1.0)


def test_an_entrant_that_conceals_features_is_named_and_never_recommended():
    found = compare({"concealer": Concealer(), "linear": LinearRegression(), "constant": Constant()})
    assert len(found["concealer"].failures) == 3
    assert "concealer failed in 3 of 3 outer folds" in str(found)
    assert "depend on features that it does not report" in str(found)
    assert found.verdict.recommended == "linear"


def test_an_entrant_that_writes_to_its_data_harms_nobody():
    before = X.copy(), Y.copy()
    alone = compare({"linear": LinearRegression()})
    found = compare({"vandal": Vandal(), "linear": LinearRegression()})
    assert found["linear"].losses == alone["linear"].losses
    assert np.array_equal(X, before[0])
    assert np.array_equal(Y, before[1])


def test_a_failure_is_named_and_the_others_go_on():
    found = compare({"failing": Failing(), "linear": LinearRegression()})
    entry = found["failing"]
    [(fold, reason)] = entry.failures
    assert 0 in found.rounds[fold].test
    assert reason == "RuntimeError: singular matrix"
    assert entry.rounds == tuple(number for number in range(3) if number != fold)
    assert "failing failed in 1 of 3 outer folds: RuntimeError: singular matrix" in str(found)
    assert found["linear"].rounds == (0, 1, 2)
    assert found.verdict.recommended == "linear"


def test_an_interrupt_keeps_the_folds_that_are_complete():
    kind = type("Interrupted2", (Interrupted,), {"fits": []})
    found = compare({"linear": LinearRegression(), "slow": kind()}, folds=5)
    assert found.interrupted
    assert len(found.rounds) == 2
    assert all(entry.rounds == (0, 1) for entry in found.entries)
    assert "(2 of 5 were done)" in str(found)
    first = type("Interrupted3", (Interrupted,), {"fits": [0, 0]})
    with pytest.raises(KeyboardInterrupt):
        compare({"slow": first()}, folds=5)


@only_at("pairs")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no interval timers")
def test_a_time_limit_stops_an_entrant_that_would_not_end():
    found = compare({"linear": LinearRegression(), "endless": Endless()}, time_limit=2.0)
    assert found["endless"].rounds == ()
    assert found["endless"].stopped
    assert "endless was stopped by the time limit after 0 of 3 outer folds" in str(found)
    assert found["linear"].rounds == (0, 1, 2)
    assert found.verdict.recommended == "linear"
    assert "not a number" not in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no interval timers")
def test_a_time_limit_leaves_the_timer_of_the_caller():
    def mine(number, frame):
        pass

    before, (waiting, _) = signal.signal(signal.SIGALRM, mine), signal.setitimer(signal.ITIMER_REAL, 1000.0)
    try:
        compare({"linear": LinearRegression()}, time_limit=500.0)
        assert signal.getsignal(signal.SIGALRM) is mine
        assert 500.0 < signal.getitimer(signal.ITIMER_REAL)[0] < 1000.0
    finally:
        signal.setitimer(signal.ITIMER_REAL, waiting)
        signal.signal(signal.SIGALRM, before)


def test_losses_are_those_of_scikit_learn_relative_to_the_training_mean():
    found = compare({"linear": LinearRegression()})
    for fold, loss, relative in zip(found.rounds, found["linear"].losses, found["linear"].relative_losses, strict=True):
        model = LinearRegression().fit(X[fold.train], Y[fold.train])
        own = np.mean((Y[fold.test] - model.predict(X[fold.test])) ** 2)
        null = np.mean((Y[fold.test] - Y[fold.train].mean()) ** 2)
        assert loss == pytest.approx(own)
        assert relative == pytest.approx(own / null)
    labels = np.where(Y > 0, "yes", "no")
    found = compare({"logistic": LogisticRegression()}, y=labels)
    for fold in found.rounds:
        p = np.mean(labels[fold.train] == "yes")
        assert fold.null_loss == pytest.approx(log_loss(labels[fold.test] == "yes", np.full(fold.test.size, p)))


def test_a_path_is_chosen_by_rows_that_it_was_not_fitted_to():
    def none_and_all(scaled, y, weights):
        coef = np.linalg.lstsq(scaled.X, y - y.mean(), rcond=None)[0]
        return [(np.zeros_like(coef), y.mean()), (coef, y.mean())]

    noise = np.random.default_rng(1).standard_normal((40, 21))
    target, *_ = target_of(noise[:, 0], "squared", None, None)
    fitted = best_of_path(Training(noise[:, 1:], target, target.splits(5, 0)), none_and_all)
    assert fitted.used.size == 0
    target, *_ = target_of(noise[:, 0] + 9.0 * noise[:, 5], "squared", None, None)
    fitted = best_of_path(Training(noise[:, 1:], target, target.splits(5, 0)), none_and_all)
    assert fitted.used.size == 20


def test_the_standard_error_does_not_vanish_with_repeats():
    values = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    once = verdict.difference(values, 5)
    assert once.error == pytest.approx(values.std(ddof=1) * np.sqrt(1 / 5 + 1 / 4))
    assert once.margin == pytest.approx(2.776445 * once.error)  # tables of Student's distribution with 4 degrees
    often = verdict.difference(np.tile(values, 200), 5)
    assert often.error > 0.45 * values.std()
    assert verdict.difference(values - 0.2, 5).sign == 0
    assert verdict.difference(-values, 5).sign == -1


# the verdict ------------------------------------------------------------------------------------------------------


class Sparse(LinearRegression):
    """Least squares on the first columns, as an entrant with so many features."""

    def __init__(self, columns=(0,)):
        super().__init__()
        self.columns = columns

    def fit(self, X, y):
        chosen = list(self.columns)
        self.model_ = LinearRegression().fit(X[:, chosen], y)
        self.coef_ = np.zeros(X.shape[1])
        self.coef_[chosen] = self.model_.coef_
        return self

    def predict(self, X):
        return self.model_.predict(X[:, list(self.columns)])


def test_where_a_peer_is_clearly_better_we_lose_and_it_is_recommended():
    found = compare({"hardthresh": Sparse((0,)), "peer": Sparse((1, 4)), "other": Sparse((1,))}, folds=5)
    assert found.verdict.kind == "lost"
    assert found.verdict.recommended == "peer"
    assert found.verdict.sentences[0].startswith("hardthresh loses here: peer predicts better")
    assert found.difference("peer", "hardthresh").sign == -1
    assert "better" in found.against(found["peer"])
    assert [row["method"] for row in found.records()] == ["peer", "other", "hardthresh"]


def test_where_ours_is_better_than_all_it_says_so():
    found = compare({"hardthresh": Sparse((1, 4)), "peer": Sparse((0,))}, folds=5)
    assert (found.verdict.kind, found.verdict.recommended) == ("won", "hardthresh")


def test_a_difference_within_noise_is_neither_a_win_nor_a_loss_and_the_fewest_features_are_recommended():
    found = compare({"hardthresh": Sparse((0, 1, 2, 4)), "peer": Sparse((1, 4))}, folds=5)
    assert found.verdict.kind == "undecided"
    assert found.difference("peer", "hardthresh").sign == 0
    assert found.verdict.recommended == "peer"
    assert "within the noise" in " ".join(found.verdict.sentences)
    same = compare({"hardthresh": Sparse((1, 4)), "peer": Sparse((1, 4))}, folds=5)
    assert same.verdict.recommended == "hardthresh"  # of equal numbers of features


def test_where_only_a_peer_surely_predicts_it_is_recommended_for_that():
    found = compare({"hardthresh": Sparse((1,)), "peer": Sparse((1, 4))}, folds=3)
    losses = {"hardthresh": (0.3, 0.6, 0.9), "peer": (0.6, 0.7, 0.7)}
    entries = [replace(entry, relative_losses=losses[entry.name]) for entry in found.entries]
    found = replace(found, entries=tuple(entries))
    assert (found.verdict.kind, found.verdict.recommended) == ("undecided", "peer")
    assert found.verdict.sentences[-1] == (
        "Use peer: 2 features in the median fold. It predicts better than the mean, beyond the noise, and hardthresh "
        "does not."
    )


def test_where_nothing_predicts_no_method_is_recommended():
    found = compare({"hardthresh": Sparse((0, 2)), "peer": LinearRegression()}, y=NOISE, folds=5)
    assert (found.verdict.kind, found.verdict.recommended) == ("nothing predicts", None)
    assert "No method predicts better than the mean" in str(found)


@dataclass(frozen=True)
class Made:
    """A comparison whose differences are given: of the first from the second, and its sign."""

    ranked: list
    reference: Entry
    signs: dict
    target: Target = field(default_factory=lambda: Target("squared", Y))

    def in_every_fold(self, entry):
        return True

    def difference(self, name, reference=None):
        return verdict.Difference(float(self.signs.get((name, reference), 0)), 0.1, 0.5)


def test_what_is_not_better_than_no_features_is_not_recommended_though_it_beats_ours():
    entries = {
        name: Entry(
            name, "", "", "", sparse=True, width=6, rounds=(0,), relative_losses=(loss,), features=(np.arange(2),)
        )
        for name, loss in (("risky", 0.7), ("safe", 0.8), ("hardthresh", 0.9))
    }
    signs = {("risky", "hardthresh"): -1, ("safe", None): -1}
    found = verdict.verdict(Made([*entries.values()], entries["hardthresh"], signs))
    assert found.recommended == "safe"
    assert found.kind == "undecided"
    assert "not better than the mean" in found.sentences[0]
    alone = verdict.verdict(Made([*entries.values()], entries["hardthresh"], {("safe", None): -1}))
    assert alone.recommended == "safe"
    assert "better than the mean, beyond the noise, and hardthresh does not" in alone.sentences[-1]
    assert "between hardthresh, risky and safe" in alone.sentences[0]
    worse = {("safe", None): -1, ("safe", "hardthresh"): 1, ("risky", "hardthresh"): 1}
    odd = verdict.verdict(Made([*entries.values()], entries["hardthresh"], worse))
    assert (odd.kind, odd.recommended) == ("undecided", "safe")
    both = signs | {("safe", "hardthresh"): -1}
    found = verdict.verdict(Made([*entries.values()], entries["hardthresh"], both))
    assert (found.kind, found.recommended) == ("lost", "safe")


def test_without_a_sound_fit_there_is_no_verdict():
    found = compare({"concealer": Concealer()})
    assert found.verdict.kind == "no comparison"
    assert found.reference is None
    assert "failed" in str(found)


def test_a_model_with_all_features_is_recommended_beside_the_best_sparse_one():
    y = X.sum(axis=1) + 0.1 * NOISE
    found = compare({"hardthresh": Sparse((0, 1, 2, 3)), "ridge": None}, y=y, folds=5)
    assert found["ridge"].uses_all
    assert found.verdict.recommended == "ridge"
    assert "If the model must have few features, use hardthresh" in " ".join(found.verdict.sentences)


# features ----------------------------------------------------------------------------------------------------------


def test_features_are_counted_and_their_stability_is_the_mean_share_of_two_folds():
    found = compare({"sparse": Sparse((1, 4)), "constant": Constant(), "ridge": None})
    assert found["sparse"].counts == [2, 2, 2]
    assert found["sparse"].stability == 1.0
    assert found["sparse"].frequencies == {1: 1.0, 4: 1.0}
    assert found["constant"].counts == [0, 0, 0]
    assert found["constant"].stability is None
    assert found["ridge"].stability is None
    entry = found["sparse"].done(3, 1.0, 1.0, 1.0, np.array([1, 2]), None, unconverged=False)
    assert entry.stability == pytest.approx((3 * 1.0 + 3 * 1 / 3) / 6)


def test_categories_and_missing_numbers_are_prepared_within_folds_and_counted_as_columns():
    colour = RNG.choice(["red", "green", "blue"], 60)
    colour[0] = "only in row 0"
    frame = pd.DataFrame({"a": X[:, 0], "colour": colour, "b": X[:, 1]})
    frame.loc[[3, 7], "a"] = np.nan
    y = 3.0 * (colour == "red") + X[:, 1] + 0.1 * NOISE
    with pytest.raises(InvalidInputError, match="2 missing values in column 'a'"):
        compare(["lasso"], y=y, X=frame, categorical_features=["colour"])
    found = compare(["hardthresh", "lasso"], y=y, X=frame, categorical_features=["colour"], impute=True)
    for entry in found.entries:
        assert entry.failures == ()
        assert {1, 2} <= {*entry.frequencies} <= {0, 1, 2}
        assert entry.relative_loss < 0.2
    assert found.names == ("a", "colour", "b")


def test_numbers_are_filled_in_by_the_means_of_the_training_rows():
    whole = features_of(np.array([[1.0], [np.nan], [3.0], [np.nan], [99.0]]), None, None, impute=True)
    fold = Prepared.of(whole, np.arange(3), np.arange(3, 5))
    assert fold.train.tolist() == [[1, 0], [2, 1], [3, 0]]
    assert fold.test.tolist() == [[2, 1], [99, 0]]
    assert fold.columns_of(np.array([1])).tolist() == [0]


def test_sparse_tables_and_weights():
    weights = np.r_[np.zeros(10), np.ones(50)]
    found = compare(["hardthresh", "lasso", "omp"], X=sparse.csr_array(X), sample_weight=weights)
    assert found.left_out == (("omp", "it takes no weights of rows"),)
    dense = compare(["hardthresh", "lasso"], X=X[10:], y=Y[10:], sample_weight=np.ones(50))
    assert found["hardthresh"].losses == pytest.approx(dense["hardthresh"].losses, rel=1e-6)
    assert len(found.target.y) == 50


@pytest.mark.parametrize(("loss", "y"), [("poisson", RNG.poisson(2.0, 60)), ("gamma", RNG.gamma(2.0, 1.0, 60))])
def test_an_offset_of_a_log_mean_is_a_rate(loss, y):
    offset = RNG.standard_normal(60)
    target, rows, n = target_of(y, loss, None, offset)
    assert (n, rows.size) == (60, 60)
    train, test = np.arange(40), np.arange(40, 60)
    mean = 1.5
    loss_of = {
        "poisson": lambda m: 2 * (np.where(y > 0, y * np.log(np.maximum(y, 1) / m), 0.0) - y + m),
        "gamma": lambda m: 2 * (np.log(m / y) + y / m - 1),
    }[loss]
    each = loss_of(mean * np.exp(offset))[test]
    own = target.held_out_loss(train, test, np.full(20, mean))
    scale = np.exp(offset)[test] if loss == "poisson" else np.ones(20)
    assert own == pytest.approx(each.sum() / scale.sum())


@only_at("pairs")
def test_a_structured_array_holds_times_to_events():
    times = np.zeros(60, dtype=[("event", bool), ("time", float)])
    times["event"], times["time"] = True, RNG.exponential(np.exp(-1.5 * X[:, 1]))
    found = compare(["hardthresh"], y=times)
    assert found.target.loss == "cox"
    assert found["hardthresh"].relative_loss < 0.95


def test_times_are_compared_by_the_partial_likelihood_of_all_rows():
    times = np.column_stack([RNG.exponential(np.exp(-1.5 * X[:, 1])), np.ones(60)])
    found = compare(["hardthresh"], y=times, loss="cox")
    assert found["hardthresh"].relative_loss < 0.95
    assert 1 in found["hardthresh"].frequencies

    def minus_log_likelihood(rows):  # of equal hazards: each event has a share of those at risk
        at_risk = np.argsort(np.argsort(-times[rows, 0])) + 1
        return np.log(at_risk).sum()

    for fold in found.rounds:
        every = np.arange(60)
        expected = (minus_log_likelihood(every) - minus_log_likelihood(fold.train)) / fold.test.size
        assert fold.null_loss == pytest.approx(expected)


def test_losses_of_times_do_not_depend_on_the_unit_of_weights():
    times = np.column_stack([RNG.exponential(np.exp(-1.5 * X[:, 1])), np.ones(60)])
    train, test = np.arange(40), np.arange(40, 60)
    plain = target_of(times, "cox", None, None)[0].held_out_loss(train, test, X[:, 1])
    small = target_of(times, "cox", np.full(60, 1 / 60), None)[0].held_out_loss(train, test, X[:, 1])
    assert small == pytest.approx(plain)


def test_a_column_far_from_zero_is_not_constant():
    seconds = 1.7e9 + np.arange(60.0)
    for X_ in (np.c_[seconds, np.full(60, 0.1)], sparse.csc_array(np.c_[np.arange(60.0), np.full(60, 0.1)])):
        assert Scaled.of(X_).columns.tolist() == [0]


@at_most(1)
@pytest.mark.parametrize("classes", [2, 3])
def test_classes_have_probabilities_and_an_accuracy(classes):
    y = np.array(["low", "mid", "high"])[np.digitize(Y, [-1, 1])] if classes == 3 else Y > 0
    found = compare(["hardthresh", "lasso"], y=y, folds=2, inner_folds=2)
    for entry in found.entries:
        assert entry.failures == ()
        assert entry.relative_loss < 0.9
        assert np.mean(entry.accuracies) > 0.6
    assert "accuracy" in found.header


# what users meet ---------------------------------------------------------------------------------------------------


def test_it_is_text_html_json_and_a_frame():
    found = compare({"hardthresh": Sparse((1, 4)), "ridge": None})
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["entrants"][0]["features"] == [["x1", "x4"]] * 3
    assert data["verdict"]["recommended"] == found.verdict.recommended
    assert len(data["null_losses"]) == 3
    frame = found.to_frame()
    assert frame["method"].tolist() == [row[0] for row in found.rows()]
    assert frame["relative_loss"].is_monotonic_increasing
    assert str(found) == repr(found)
    assert "<table>" in found._repr_html_()
    lines = str(found).splitlines()
    assert lines[0] == "2 methods compared on 60 rows and 6 features: numbers"
    assert ("scikit-learn", found["ridge"].edition) in found.versions()


def test_equal_seeds_give_equal_numbers():
    first, second, other = (compare(["hardthresh"], random_state=seed)["hardthresh"] for seed in (3, 3, 4))
    assert first.losses == second.losses != other.losses


BAD = {
    "unknown": (lambda: compare(["laso"]), "unknown entrant 'laso'; known: hardthresh, lasso"),
    "no list": (lambda: compare(Constant()), "a mapping from names to estimators"),
    "estimators without names": (lambda: compare([Constant()]), "a mapping from names to estimators"),
    "one text": (lambda: compare("lasso"), "entrants must be a list of names, such as ['lasso']"),
    "twice": (lambda: compare(["lasso", "lasso"]), "'lasso' is given twice"),
    "none": (lambda: compare([]), "entrants is empty"),
    "no estimator": (lambda: compare({"a": 3}), "'a' must be an estimator of scikit-learn, got 3"),
    "a class": (lambda: compare({"a": Constant}), "the class Constant"),
    "rows": (lambda: compare(["lasso"], y=Y[:50]), "X has 60 rows and y has 50"),
    "loss": (lambda: compare(["lasso"], loss="huber"), "huber"),
    "folds": (lambda: compare(["lasso"], folds=1), "folds"),
    "many folds": (lambda: compare(["lasso"], folds=31), "60 rows, too few for 31 outer folds"),
    "rare class": (lambda: compare(["lasso"], y=np.arange(60) < 2), "the smallest class has 2 rows"),
    "rare class in inner folds": (
        lambda: compare(["lasso"], y=np.arange(60) < 3, folds=2),
        "too few for inner folds within 2 outer ones; use 3 outer folds",
    ),
    "missing label": (lambda: compare(["lasso"], y=np.where(Y > 0, "a", None)), "missing labels, the first in row"),
    "not a number as a label": (
        lambda: compare(["lasso"], y=np.where(np.arange(60) == 3, np.nan, Y > 0), loss="logistic"),
        "y is nan in row 3",
    ),
    "no loss without features": (
        lambda: compare({"a": Constant()}, y=np.r_[np.zeros(28), -1.0, 1.0], X=X[:30], folds=15),
        "use fewer folds",
    ),
    "names of columns": (lambda: compare(["lasso"], feature_names=["a"]), "feature_names has 1 name, and X has 6"),
    "weights as text": (lambda: compare(["lasso"], sample_weight=["a"] * 60), "sample_weight must have numbers"),
    "one value": (lambda: compare(["lasso"], y=np.ones(60)), "only one value"),
    "infinite": (lambda: compare(["lasso"], y=np.where(Y > 1, np.inf, Y)), "finite numbers"),
    "negative counts": (lambda: compare(["ridge"], loss="poisson"), "numbers >= 0, but y is -"),
    "amounts as classes": (lambda: compare(["lasso"], loss="logistic"), "y holds amounts"),
    "two targets": (lambda: compare(["lasso"], y=X), "compare takes one target"),
    "offset of classes": (lambda: compare(["lasso"], y=Y > 0, offset=Y), "no other package takes it"),
    "text": (lambda: compare(["lasso"], X=pd.DataFrame({"a": ["b"] * 60})), "name it in categorical_features"),
    "weights": (lambda: compare(["lasso"], sample_weight=-np.ones(60)), "must not be negative"),
    "limit": (lambda: compare(["lasso"], time_limit=0), "time_limit"),
    "nobody": (lambda: compare(["celer"], y=Y > 0), "no entrant can take part: celer:"),
    "who": (lambda: compare({"a": Constant()})["b"], "no entrant 'b' took part; there are a"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_what_to_do(name):
    call, message = BAD[name]
    with pytest.raises(InvalidInputError) as refused:
        call()
    assert message in str(refused.value)


@at_most(1)
@pytest.mark.parametrize(
    ("names", "y", "loss"),
    [
        (["lasso", "elastic-net", "omp", "ridge", "forest"], Y, "squared"),
        (["lasso", "ridge", "forest"], Y > 0, "logistic"),
        (["ridge"], np.digitize(Y, [-1, 1]), "logistic"),
        (["ridge", "forest"], np.exp(0.5 * Y), "gamma"),
        (["ridge", "forest"], np.round(np.exp(0.5 * Y)), "poisson"),
    ],
)
def test_methods_of_every_supported_scikit_learn_predict(names, y, loss):
    """Names of its parameters have changed from release to release."""
    found = compare(names, y=y, loss=loss, inner_folds=2)
    for entry in found.entries:
        assert entry.failures == ()
        assert entry.relative_loss < 0.9


@at_most(1)
@pytest.mark.parametrize("name", ["abess", "celer", *at("pairs", ["skglm"])])
def test_peers_that_are_installed_find_the_features(name):
    pytest.importorskip(name, reason=f"{name} is not installed")
    assert name in ENTRANTS
    found = compare([name])[name]
    assert found.failures == ()
    assert found.relative_loss < 0.3
    assert {1, 4} <= {*found.frequencies}
