"""Progress says what the errors of predictions before learning were, and does not call luck a settled choice."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import brier_score_loss, log_loss

from hardthresh.core.errors import InvalidInputError
from hardthresh.limited import AdaptiveHybrid, CostModel, LogisticHybrid
from hardthresh.study import progress
from hardthresh.study.intervals import holm, mean_interval, share_interval
from hardthresh.study.progress import FEWEST
from hardthresh.study.simulation import simulate

D = 12


def study(n, *, classes=False, signal=1.0, seed=0, columns=None):
    """What a study of 12 attributes learns, of which the second and the eighth matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    y = signal * (X[:, 1] - X[:, 7]) + 0.5 * rng.standard_normal(n)
    algorithm = (LogisticHybrid if classes else AdaptiveHybrid)(2)
    y = (y > 0).astype(float) if classes else y
    return simulate(algorithm, CostModel.of(D, 6), X, y, length=n, columns=columns)[0]


def test_the_error_is_the_mean_over_the_latest_examples_of_predictions_made_before():
    learned = study(1000)
    now = progress(learned)
    assert now.window == round(0.2 * len(learned.target)) == 196
    squares = (learned.target - learned.prediction)[-196:] ** 2
    error = now.errors[0]
    assert error.model.value == pytest.approx(squares.mean())
    ends = stats.t.interval(0.95, 195, squares.mean(), stats.sem(squares))
    assert (error.model.low, error.model.high) == pytest.approx(ends)
    assert error.gain.value == pytest.approx(error.null.value - error.model.value)
    assert "intervals at one look" in str(now)
    assert "At this look, the predictions are better than those without" in str(now)


def test_without_attributes_the_mean_of_the_batches_before_is_predicted():
    learned = study(600)
    assert np.all(learned.prediction[learned.batch == 0] == 0.0)
    assert progress(learned).curve.null[-1] == pytest.approx(np.mean(_null_losses(learned)[-FEWEST:]))


def _null_losses(learned):
    """Squared errors of the mean of the targets of all batches before, the slow way."""
    means = [learned.target[learned.batch < b].mean() if b else 0.0 for b in learned.batch]
    return (learned.target - np.array(means)) ** 2


def test_classes_have_the_measures_of_scikit_learn():
    learned = study(1000, classes=True)
    now = progress(learned)
    y, p = learned.target[-now.window :], learned.prediction[-now.window :]
    values = {error.name: error.model.value for error in now.errors}
    assert values == pytest.approx(
        {"log loss": log_loss(y, p), "Brier score": brier_score_loss(y, p), "share of errors": np.mean((p > 0.5) != y)}
    )
    assert "share of errors: " in str(now)
    assert " %" in str(now.errors[2].model)


def test_a_sure_and_wrong_prediction_of_a_class_has_a_finite_error():
    learned = study(300, classes=True)
    now = progress(replace(learned, prediction=1.0 - learned.target))
    assert 30 < now.errors[0].model.value < 40  # -log(1e-15) = 34.5
    assert "worse than those without" in str(now)


def test_a_right_choice_settles_and_noise_does_not():
    assert progress(study(600)).settled
    noise = progress(study(600, signal=0.0))
    assert noise.same_for >= 300
    assert not noise.settled
    assert not any(column.looks_needed for column in noise.chosen)
    assert "not all look needed" in str(noise)
    assert "cannot be told from" in str(noise) or "worse than" in str(noise)


def test_a_column_with_few_other_values_does_not_look_needed():
    learned = study(600)
    values, target = learned.values.copy(), learned.target.copy()
    values[:, 1] = np.arange(len(target)) == len(target) - 1
    target[-1] += 100.0  # which decides its coefficient alone
    now = {column.name: column for column in progress(replace(learned, values=values, target=target)).chosen}
    assert now["1"].p != now["1"].p
    assert "too few examples" in str(now["1"])
    assert now["7"].looks_needed


def test_a_column_that_is_no_longer_chosen_is_named_with_its_share():
    learned = study(600, columns=tuple("abcdefghijkl"))
    chosen = (*learned.chosen[:-3], np.array([0, 1]), *learned.chosen[-2:])
    now = progress(replace(learned, chosen=chosen))
    assert now.support == ("b", "h")
    assert not now.settled
    old = [column for column in now.chosen if not column.now]
    assert [column.name for column in old] == ["a"]
    assert 0 < old[0].share < 1
    assert "a: no longer chosen" in str(now)


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("n", [0, 5, 40])
def test_short_studies_have_a_progress_too(n, classes):
    now = progress(study(n, classes=classes))
    assert json.loads(json.dumps(now.to_dict(), allow_nan=False))["examples"] == now.examples
    assert not now.settled
    assert str(now)


def test_the_curve_ends_at_the_present_error_and_at_what_was_paid():
    learned = study(2000)
    now = progress(learned)
    assert now.curve.error[-1] == now.errors[0].model.value
    assert now.curve.low[-1] == now.errors[0].model.low
    assert now.curve.money[-1] == learned.money.sum()
    assert now.curve.examples[-1] == len(learned.target)
    assert np.all(np.diff(now.curve.examples) > 0)


@pytest.mark.parametrize("level", [0.0, 1.0, "95%"])
def test_a_level_is_a_probability(level):
    with pytest.raises(InvalidInputError, match="level must be a finite number > 0 and < 1"):
        progress(study(40), level=level)


def test_intervals_of_few_cases_are_wide():
    assert share_interval(0, 0).low == 0.0
    assert share_interval(0, 0).high == 1.0
    assert share_interval(9, 10).low == pytest.approx(0.5958, abs=1e-4)  # Wilson (1927), by hand
    assert mean_interval(np.array([1.0])).high == np.inf
    assert str(share_interval(9, 10)) == "90 % (60 % to 98 %)"


def test_holm_multiplies_the_smallest_by_all_and_never_decreases():
    assert holm(np.array([0.04, 0.01, 0.03])) == pytest.approx([0.06, 0.03, 0.06])
