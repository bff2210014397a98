"""The choice from the held-out scores of a grid, against naive loops."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hardthresh.core.errors import InvalidInputError
from hardthresh.selection.grid import GridScores, standard_error


def of(scores):
    """A grid of the sizes 0, 1, ... and the ridges 0, 1, ..."""
    scores = np.asarray(scores, dtype=float)
    return GridScores(np.arange(len(scores)), np.arange(float(scores.shape[1])), scores)


def sparsest(allowed):
    """The first place in the order of sizes, fewest first, and then of ridges, largest first."""
    order = sorted(product(range(len(allowed)), range(len(allowed[0]))), key=lambda place: (place[0], -place[1]))
    return next(place for place in order if allowed[place[0]][place[1]])


@pytest.mark.parametrize("seed", range(20))
def test_both_rules_by_naive_loops_where_many_scores_are_equal(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 3, (5, 4, 3)).astype(float)
    grid, means = of(scores), [[sum(folds) / 3 for folds in row] for row in scores]
    highest = max(max(row) for row in means)
    best = sparsest([[mean > highest - 1e-9 for mean in row] for row in means])
    assert grid.best == grid.chosen("best") == best
    error = np.std(scores[best], ddof=1) / 3**0.5
    modest = sparsest([[mean >= highest - error - 1e-12 for mean in row] for row in means])
    assert grid.one_standard_error == grid.chosen("one_standard_error") == modest
    assert_allclose(grid.mean, means)
    assert_allclose(grid.standard_error, [[np.std(folds, ddof=1) / 3**0.5 for folds in row] for row in scores])


def test_ties_go_to_the_fewest_features_and_then_to_the_most_ridge():
    assert of([[[0.0], [0.0], [0.0]], [[1.0], [1.0], [0.0]], [[1.0], [1.0], [1.0]]]).best == (1, 1)


def test_fewest_features_count_more_than_the_ridge():
    """Two within a standard error of the best: more features with more ridge, and fewer with less."""
    close = [[9.0, 11.0], [-9.0, -9.0]], [[-9.0, -9.0], [9.5, 11.0]], [[10.0, 12.0], [-9.0, -9.0]]
    assert of(close).best == (2, 0)
    assert of(close).one_standard_error == (0, 0)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_rounding_breaks_no_ties_and_scales_change_nothing(scale):
    grid = of(-scale * np.array([[[3.0]], [[2.0 * (1 + 1e-13)]], [[2.0]], [[2.5]]]))
    assert grid.best == (1, 0)
    assert of(-scale * np.array([[[3.0]], [[2.0 * (1 + 1e-8)]], [[2.0]], [[2.5]]])).best == (2, 0)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_standard_error_of_large_and_small_scores(scale):
    assert_allclose(standard_error(scale * np.array([[1.0, 2.0, 4.0]])), [scale * (7 / 9) ** 0.5], rtol=1e-12)
    assert standard_error(np.zeros((2, 3))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("seed", range(10))
def test_a_range_ends_high_if_its_upper_half_is_better_by_a_standard_error(seed):
    scores = np.random.default_rng(seed).standard_normal((6, 3, 4)) + 0.15 * np.arange(6)[:, None, None]
    places = list(product(range(6), range(3)))
    low, high = (max(some, key=lambda at: scores[at].mean()) for some in (places[:9], places[9:]))  # 0 to 2 of 0 to 5
    gain = scores[high] - scores[low]
    assert of(scores).ends_high == (gain.mean() > gain.std(ddof=1) / 2)


def test_a_range_with_nothing_to_compare_does_not_end_high():
    assert not of(np.ones((4, 2, 3))).ends_high
    assert not GridScores(np.array([5]), np.array([0.0]), np.ones((1, 1, 3))).ends_high


def test_one_fold_has_no_standard_error():
    grid = of([[[1.0], [2.0]], [[3.0], [2.0]]])
    assert grid.standard_error.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert grid.one_standard_error == grid.best == (1, 0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused(value):
    with pytest.raises(InvalidInputError, match="a held-out score is NaN or infinite"):
        of([[[1.0, value]]])
