"""The search for the least value of a curve with one valley."""

from math import inf, log, nan, sqrt

import numpy as np
import pytest

from hardthresh.core.errors import InvalidInputError
from hardthresh.selection import golden_section, valley

GOLDEN_RATIO = (1 + sqrt(5)) / 2


class Curve:
    """A curve that counts how often it is asked for each number."""

    def __init__(self, values):
        self.values, self.asked = values, []

    def __call__(self, numbers):
        assert len(numbers) > 0
        assert list(numbers) == sorted(numbers)
        self.asked += numbers
        return [self.values[number - 1] for number in numbers]


def unimodal(rng, K):
    """Values at 1 .. K that fall strictly, by steps of any size, and then rise strictly."""
    place = rng.integers(K)
    steps = rng.exponential(size=K) * 10.0 ** rng.integers(-3, 3, K)
    return np.concatenate([-np.cumsum(steps[:place]), -steps[:place].sum() + np.cumsum(steps[place:])])


@pytest.mark.parametrize("seed", range(10))
def test_check_17_the_minimum_of_a_unimodal_curve_in_few_fits(seed):
    """Ten of ten, in no more fits than check 17 of models.md allows."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(20, 500))
    curve = Curve(unimodal(rng, K))
    tried = golden_section(curve, K)
    assert min(tried, key=tried.get) == 1 + np.argmin(curve.values)
    assert len(tried) <= log(K, 2) + log(K, GOLDEN_RATIO) + 5
    assert len(tried) <= 2 * log(K, GOLDEN_RATIO) + 7
    assert sorted(curve.asked) == list(tried), "each number is asked for once, and returned in order"
    assert all(tried[number] == curve.values[number - 1] for number in tried)


def test_every_place_of_the_minimum_is_found():
    for K in range(1, 60):
        for best in range(1, K + 1):
            tried = golden_section(lambda ks, best=best: [abs(k - best) for k in ks], K)
            assert min(tried, key=tried.get) == best
            assert {*range(max(1, best - 2), min(K, best + 2) + 1)} <= tried.keys()


def test_the_minimum_is_found_without_a_look_beside_it(monkeypatch):
    monkeypatch.setattr(valley, "_BESIDE", 0)
    for K in range(1, 60):
        for best in range(1, K + 1):
            tried = golden_section(lambda ks, best=best: [(k - best) ** 2 for k in ks], K)
            assert min(tried, key=tried.get) == best


def test_too_large_numbers_may_have_no_value():
    """Beyond as many coefficients as rows a criterion is infinite; NaN counts as that."""
    for best in range(1, 21):
        tried = golden_section(lambda ks, best=best: [(k - best) ** 2 if k < 21 else inf + 0 * k for k in ks], 100)
        assert min(tried, key=tried.get) == best
        tried = golden_section(lambda ks, best=best: [(k - best) ** 2 if k < 21 else nan for k in ks], 100)
        assert min(tried, key=tried.get) == best
        assert inf in tried.values()


def test_of_equal_values_the_smaller_number_is_the_better_one():
    tried = golden_section(lambda ks: [0.0 for _ in ks], 50)
    assert min(tried) == 1


def test_a_small_bump_beside_the_best_is_looked_across():
    """The search ends at 12, and 10 is better: its neighbours are tried in turn."""
    values = [float(abs(k - 12)) for k in range(1, 31)]
    values[9], values[10] = -1.0, 5.0
    values[8] = 3.0
    tried = golden_section(lambda ks: [values[k - 1] for k in ks], 30)
    assert min(tried, key=tried.get) == 10
    assert {8, 9, 10, 11, 12} <= tried.keys()


def test_what_is_uneven_far_beyond_the_best_number_does_not_mislead():
    """As held-out scores are: a search that looked there first would stay there."""
    values = [abs(k - 3) + 5.0 * (k > 20) - 0.9 * k * (k > 20) for k in range(1, 41)]
    values[36:] = [20.0] * 4
    tried = golden_section(lambda ks: [values[k - 1] if k != 34 else 1.0 for k in ks], 40)
    assert min(tried, key=tried.get) == 3


def test_of_other_curves_a_local_minimum_is_found():
    rng = np.random.default_rng(0)
    for _ in range(30):
        values = rng.standard_normal(40)
        tried = golden_section(lambda ks, values=values: [values[k - 1] for k in ks], 40)
        best = min(tried, key=tried.get)
        assert values[best - 1] == values[max(0, best - 3) : best + 2].min()


@pytest.mark.parametrize("wrong", [0, -3, 2.5, None])
def test_a_range_that_is_none_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="largest must be"):
        golden_section(lambda ks: [0.0 for _ in ks], wrong)
