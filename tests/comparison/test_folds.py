"""One law of nested cross-validation after the other, on entrants that break it."""

import json
import signal
from contextlib import suppress
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss

from comparison.methods import Concealer, Constant, X, Y, compare
from hardthresh.comparison.targets import target_of
from hardthresh.comparison.training import Training, best_of_path


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


@pytest.mark.slow
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


def test_what_a_method_is_given_does_not_depend_on_rows_held_out():
    """Neither imputed, encoded and standardised columns nor targets; so scaling once for all inner folds leaks none."""
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "colour": np.array(["red", "green", "blue"])[np.arange(60) % 3]})
    frame.loc[[3, 7, 20, 41], "a"] = np.nan
    settings = {"categorical_features": ["colour"], "impute": True}
    first, second = type("First", (Recorder,), {"seen": []}), type("Second", (Recorder,), {"seen": []})
    held_out = compare({"first": first()}, X=frame, **settings).rounds[0].test
    changed, y = frame.copy(), Y.copy()
    changed.loc[held_out, "a"] = 1e3
    changed.loc[held_out, "b"] = -1e3
    changed.loc[held_out, "colour"] = "violet"
    y[held_out] = 1e3
    compare({"second": second()}, y=y, X=changed, **settings)
    for given, again in zip(first.seen[0], second.seen[0], strict=True):
        assert np.array_equal(given, again)
    assert not np.array_equal(first.seen[1][0], second.seen[1][0])
