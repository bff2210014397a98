"""Complementary pairs of half-samples, and the bound of Shah and Samworth (check 18 of models.md)."""

from math import sqrt

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hardthresh.core.errors import InvalidInputError
from hardthresh.selection import complementary_pairs, low_probability_bound


@pytest.mark.parametrize(
    ("threshold", "kind", "value"),
    [(0.75, "worst_case", 0.2), (0.75, "unimodal", 0.102), (0.9, "worst_case", 0.125), (0.9, "unimodal", 0.043)],
)
def test_check_18_bounds_of_ten_of_a_thousand(threshold, kind, value):
    bound = low_probability_bound(10, 1000, 50, threshold, kind)
    assert (round(bound.value, 3), bound.kind, bound.reason) == (value, kind, "")


def constant(n_pairs, threshold):
    """C(tau, B) of Theorem 2 of Shah and Samworth, as they write it."""
    if threshold <= 0.75:
        return 1 / (2 * (2 * threshold - 1 - 1 / (2 * n_pairs)))
    return 4 * (1 - threshold + 1 / (2 * n_pairs)) / (1 + 1 / n_pairs)


@pytest.mark.parametrize("n_pairs", [10, 50, 500])
@pytest.mark.parametrize("threshold", [0.6, 0.7, 0.75, 0.8, 0.9, 1.0])
def test_the_bound_is_that_of_the_theorem(threshold, n_pairs):
    q, d = 7.5, 300
    bound = low_probability_bound(q, d, n_pairs, threshold)
    assert bound.value == pytest.approx(constant(n_pairs, threshold) * q * q / d, rel=1e-12)
    assert bound.value <= low_probability_bound(q, d, n_pairs, threshold, "worst_case").value * (1 + 1e-12)


def test_a_threshold_between_two_frequencies_counts_as_the_next():
    """Of ten half-samples seven are the first that reach .65."""
    assert low_probability_bound(3, 100, 5, 0.65) == low_probability_bound(3, 100, 5, 0.7)
    assert low_probability_bound(3, 100, 5, 0.7).threshold == 0.7


def test_the_bound_of_the_worst_case_stands_in_where_the_other_does_not_apply():
    many = low_probability_bound(60, 100, 50, 0.75)
    assert (many.kind, many.value) == ("worst_case", low_probability_bound(60, 100, 50, 0.75, "worst_case").value)
    assert "at most 1/sqrt(3)" in many.reason
    assert low_probability_bound(100 / sqrt(3), 100, 50, 0.99).reason == ""
    low = low_probability_bound(50, 100, 50, 0.6)  # theta = .5: above min(.75, .5 + .01 + .1875)
    assert low.kind == "worst_case"
    assert "a threshold above 0.698" in low.reason
    assert low_probability_bound(50, 100, 50, 0.71).reason == ""


def test_nothing_chosen_means_no_false_choice():
    assert low_probability_bound(0, 20, 10, 0.8).value == 0.0


def test_bad_numbers_are_refused():
    with pytest.raises(InvalidInputError, match=r"threshold must be a finite number > 0\.5 and <= 1, got 0\.5"):
        low_probability_bound(3, 100, 5, 0.5)
    with pytest.raises(InvalidInputError, match="n_chosen must be a finite number >= 0 and <= 100, got 101"):
        low_probability_bound(101, 100, 5, 0.75)
    with pytest.raises(InvalidInputError, match="n_pairs must be >= 1"):
        low_probability_bound(3, 100, 0, 0.75)
    with pytest.raises(InvalidInputError, match="bound must be one of"):
        low_probability_bound(3, 100, 5, 0.75, "best")


def test_the_statement_says_what_it_is_about():
    text = str(low_probability_bound(10, 1000, 50, 0.75))
    for part in ("with a probability of at most 0.01 = 10/1,000", "0.75 in 100 half-samples is at most 0.102"):
        assert part in text
    assert "unimodal distribution" in text
    assert "not a bound on features without effect" in text
    assert "conservative" in text
    assert "without further assumptions" in str(low_probability_bound(10, 1000, 50, 0.75, "worst_case"))


def simulated(q, d, n_pairs, threshold, draws, seed):
    """The mean number of features above a threshold where each half chooses q of d at random."""
    rng = np.random.default_rng(seed)
    counts = [
        sum((np.bincount(rng.permutation(d)[:q], minlength=d) for _ in range(2 * n_pairs)), np.zeros(d))
        for _ in range(draws)
    ]
    return np.mean([(count >= 2 * n_pairs * threshold - 1e-9).sum() for count in counts])


def test_the_bounds_hold_where_halves_choose_at_random():
    """With 8 half-samples of 5 of 20 features, .33 features reach 5/8: the unimodal bound is 10, the other 5."""
    found = simulated(5, 20, 4, 0.625, 400, 0)
    assert 0.2 < found < min(low_probability_bound(5, 20, 4, 0.625, kind).value for kind in ("unimodal", "worst_case"))


@pytest.mark.parametrize("n", [2, 3, 10, 11])
def test_halves_of_a_pair_have_no_row_in_common(n):
    for first, second in complementary_pairs(n, 20, 0):
        assert first.size == second.size == n // 2
        assert np.intersect1d(first, second).size == 0
        assert_array_equal(first, np.unique(first))
        assert set(first) | set(second) <= set(range(n))


@pytest.mark.slow
def test_each_row_is_in_a_half_as_often_as_any_other():
    counts = np.zeros(11)
    for pair in complementary_pairs(11, 4000, 0):
        for half in pair:
            counts[half] += 1
    shares = counts / 4000
    assert np.abs(shares - 10 / 11).max() < 5 * np.sqrt(10 / 121 / 4000)


@pytest.mark.parametrize("seed", [0, (0, 0), (0, 1), (0, 0, 1)])
def test_halves_are_none_of_data_simulated_with_a_small_seed(seed):
    """A half of a permutation that made the data would not be independent of them."""
    made = set(np.random.default_rng(seed).permutation(20)[:10].tolist())
    assert all(made not in (set(one.tolist()), set(other.tolist())) for one, other in complementary_pairs(20, 5, 0))


def test_halves_have_equal_shares_of_each_label():
    labels = np.repeat(["a", "b", "c"], [7, 20, 4])
    for first, second in complementary_pairs(labels.size, 30, 0, labels):
        assert first.size == second.size == 15
        for label, count in (("a", 7), ("b", 20), ("c", 4)):
            numbers = sorted(int((labels[half] == label).sum()) for half in (first, second))
            assert numbers[0] >= count // 2
            assert numbers[1] - numbers[0] <= 1


def test_more_pairs_begin_with_the_same():
    few, many = complementary_pairs(12, 2, 3), complementary_pairs(12, 4, 3)
    for pair, same in zip(few, many, strict=False):
        assert_array_equal(pair, same)
    assert any((one[0] != other[0]).any() for one, other in zip(few, complementary_pairs(12, 2, 4), strict=True))


def test_one_row_has_no_halves():
    with pytest.raises(InvalidInputError, match="n_samples = 1"):
        complementary_pairs(1, 3, 0)
