"""The columns of a table, the targets, and how many columns each method uses."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from comparison.methods import NOISE, Constant, Sparse, X, Y, compare
from hardthresh.comparison.scaling import Scaled
from hardthresh.comparison.tables import Prepared, features_of
from hardthresh.comparison.targets import target_of
from hardthresh.core.errors import InvalidInputError

RNG = np.random.default_rng(1)


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_structured_array_holds_times_to_events():
    times = np.zeros(60, dtype=[("event", bool), ("time", float)])
    times["event"], times["time"] = True, RNG.exponential(np.exp(-1.5 * X[:, 1]))
    found = compare(["hardthresh"], y=times)
    assert found.target.loss == "cox"
    assert found["hardthresh"].relative_loss < 0.95


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_classes_have_probabilities_and_an_accuracy(classes):
    y = np.array(["low", "mid", "high"])[np.digitize(Y, [-1, 1])] if classes == 3 else Y > 0
    found = compare(["hardthresh", "lasso"], y=y, folds=2, inner_folds=2)
    for entry in found.entries:
        assert entry.failures == ()
        assert entry.relative_loss < 0.9
        assert np.mean(entry.accuracies) > 0.6
    assert "accuracy" in found.header


def test_a_table_without_a_column_that_varies_says_so():
    for table in (np.ones((60, 2)), sparse.csr_array(np.ones((60, 2)))):
        found = compare(["hardthresh", "lasso"], X=table)
        assert "lasso failed in 3 of 3 outer folds: InvalidInputError: every column is constant" in str(found)
        assert found.verdict.kind == "nothing predicts"
