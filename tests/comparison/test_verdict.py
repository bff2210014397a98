"""Which differences are more than noise, and what follows from them."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from comparison.methods import NOISE, Concealer, Constant, Sparse, X, Y, compare
from hardthresh.comparison import verdict
from hardthresh.comparison.entries import Entry
from hardthresh.comparison.targets import Target
from levels import only_at


def test_the_standard_error_does_not_vanish_with_repeats():
    values = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    once = verdict.difference(values, 5)
    assert once.error == pytest.approx(values.std(ddof=1) * np.sqrt(1 / 5 + 1 / 4))
    limit = values - values.mean() + 2.776445 * once.error  # tables of Student's distribution with 4 degrees
    assert verdict.difference(limit, 5).p_value == pytest.approx(0.05, rel=1e-5)
    often = verdict.difference(np.tile(values, 200), 5)
    assert often.error > 0.45 * values.std()
    assert verdict.difference(values - 0.2, 5).sign == 0
    assert verdict.difference(-values, 5).sign == -1


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
        mean = float(self.signs.get((name, reference), 0))
        return verdict.Difference(mean, 0.1, 1.0 if mean == 0.0 else 0.0)


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


def made(losses, names=None):
    """Return a comparison in which entrants have these relative losses, a row each."""
    names = ["hardthresh", *(f"peer{i}" for i in range(1, len(losses)))] if names is None else names
    found = compare(dict.fromkeys(names, Constant()), folds=len(losses[0]))
    entries = [replace(entry, relative_losses=tuple(own)) for entry, own in zip(found.entries, losses, strict=True)]
    return replace(found, entries=tuple(entries))


def test_the_correction_is_that_of_holm():
    p = [0.01, 0.04, 0.03, 0.005, float("nan")]
    corrected = [verdict.holm(one, p) for one in p]
    assert corrected[:4] == pytest.approx([0.03, 0.06, 0.06, 0.02])  # by hand: 4 x 0.005, 3 x 0.01, 2 x 0.03
    assert np.isnan(corrected[4])
    assert verdict.holm(0.3, [0.3, 0.5, 0.9, 0.7]) == 1.0
    assert verdict.holm(0.03, [0.03]) == 0.03


@pytest.mark.slow
def test_a_difference_that_is_significant_alone_is_noise_among_many():
    rng = np.random.default_rng(3)
    ours = 0.8 + 0.1 * rng.standard_normal(10)
    equal = [ours + 0.1 * rng.standard_normal(10) for _ in range(7)]
    noise = rng.standard_normal(10)
    error = np.sqrt(1 / 10 + 1 / 9) * noise.std(ddof=1)
    better = ours + noise - noise.mean() - 2.6 * error  # 2.26 errors are significant at 5 % alone
    alone = made([ours, better])
    assert alone.difference("peer1", "hardthresh").sign == -1
    assert alone.verdict.kind == "lost"
    assert "the 1 comparison with hardthresh" in str(alone)
    among = made([ours, better, *equal])
    found = among.difference("peer1", "hardthresh")
    assert found.mean == pytest.approx(alone.difference("peer1", "hardthresh").mean)
    assert found.sign == 0
    assert found.p_value == pytest.approx(8 * alone.difference("peer1", "hardthresh").p_value)
    assert among.verdict.kind != "lost"
    assert "the 8 comparisons with hardthresh" in str(among)
    assert among.difference("hardthresh", "peer1").p_value == found.p_value
    clearly = made([ours, ours + noise - noise.mean() - 9.0 * error, *equal])
    assert clearly.verdict.kind == "lost"


def test_a_reference_that_the_losses_chose_is_corrected_for_every_pair():
    rng = np.random.default_rng(4)
    losses = 0.9 + 0.05 * rng.standard_normal((4, 10))
    found = made(losses, ["a", "b", "c", "d"])
    alone = {
        (first, second): verdict.difference(losses[i] - losses[j], 10).p_value
        for i, first in enumerate("abcd")
        for j, second in enumerate("abcd")
        if i < j
    }
    smallest = min(alone, key=alone.get)
    assert found.difference(*smallest).p_value == pytest.approx(min(1.0, 6 * alone[smallest]))
    assert "the 6 comparisons of two methods" in str(found)


@only_at("pairs")
def test_ten_equal_methods_have_one_false_alarm_in_twenty_comparisons_at_most():
    alarms = 0
    rng = np.random.default_rng(5)
    base = made(np.full((10, 10), 0.9))
    for _ in range(400):
        losses = 0.9 + 0.1 * rng.standard_normal((10, 10))
        found = replace(
            base,
            entries=tuple(
                replace(entry, relative_losses=tuple(own)) for entry, own in zip(base.entries, losses, strict=True)
            ),
        )
        alarms += any(found.difference(f"peer{i}", "hardthresh").sign for i in range(1, 10))
    assert alarms <= 34  # binomial with 400 and 5 %: more than 34 has a probability of 0.1 %
