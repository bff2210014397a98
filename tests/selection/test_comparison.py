"""Comparing candidates on held-out data: scores, searches, and the rules of choice."""

from functools import partial

import joblib
import numpy as np
import pytest
from joblib.parallel import ThreadingBackend
from numpy.testing import assert_allclose, assert_array_equal

from hardthresh.core.errors import InvalidInputError, SearchRangeWarning
from hardthresh.selection.comparison import Comparison, climb, compare, halve_gaps, search, warn_at_range_end


def of_scores(scores, ridges=1):
    """A comparison of the candidates 1, 2, ... with given scores, shape (n_candidates, n_folds)."""
    scores = np.asarray(scores, dtype=float)
    by_ridge = np.repeat(scores[:, None], ridges, axis=1)
    return Comparison(np.arange(1, len(scores) + 1), by_ridge, [None] * scores.shape[1], [])


def fit_path(fold, candidates, last):
    """Fits that know what came before them in their fold."""
    return [*(last or []), *candidates], [f"{fold}: {k}" for k in candidates if k == 7]


def peaked(at):
    """Scores with a peak at some candidate, a little higher in later folds."""
    return lambda fold, fits: [-abs(k - at) + 0.1 * fold for k in fits[-1:]]


def test_scores_are_those_of_each_fold_and_candidate():
    found = compare([2, 7], ["a", "b", "c"], fit_path, lambda fold, fits: [ord(fold) + k for k in fits])
    assert_array_equal(found.candidates, [2, 7])
    assert_array_equal(found.scores, np.add.outer([2, 7], [97, 98, 99]))
    assert found.unconverged == ["a: 7", "b: 7", "c: 7"]


@pytest.mark.parametrize("generates", [True, False])
def test_folds_side_by_side_are_folds_one_by_one(generates, monkeypatch):
    """Some backends, such as multiprocessing, cannot give results one by one."""
    monkeypatch.setattr(ThreadingBackend, "supports_return_generator", generates)
    with joblib.parallel_config("threading"):
        one, two = (compare([1, 4], range(3), fit_path, lambda fold, fits: np.sqrt(fits), n_jobs=n) for n in (1, 2))
    assert_array_equal(one.scores, two.scores)


def test_a_search_climbs_until_two_in_a_row_are_worse():
    schedule = [0, 1, 2, 4, 8, 16, 32, 64]
    found = search(partial(climb, schedule=schedule), range(2), fit_path, peaked(5))
    assert_array_equal(found.candidates, [0, 1, 2, 4, 8, 16])
    assert found.fits[0] == [0, 1, 2, 4, 8, 16], "each fit knows those of smaller candidates"
    assert search(partial(climb, schedule=schedule), range(2), fit_path, peaked(99)).candidates.tolist() == schedule


def test_one_worse_candidate_does_not_end_a_search():
    scores = {0: 0.0, 1: 2.0, 2: 1.0, 3: 3.0, 4: 1.0, 5: 1.0, 6: 9.0}
    found = search(partial(climb, schedule=[*scores]), [0], fit_path, lambda fold, fits: [scores[fits[-1]]])
    assert_array_equal(found.candidates, [0, 1, 2, 3, 4, 5])


def test_a_candidate_that_cannot_improve_ends_a_search_at_once():
    propose = partial(climb, schedule=[0, 1, 2, 3], cannot_improve=2.0)
    found = search(propose, [0], fit_path, lambda fold, fits: [[-1.0, -0.9, -1.9, 0.0][fits[-1]]])
    assert_array_equal(found.candidates, [0, 1, 2])


@pytest.mark.parametrize("best", [3, 5, 6, 21, 40])
def test_gaps_are_halved_until_the_best_has_only_neighbours(best):
    data = {
        "folds": range(2),
        "fit_path": lambda fold, candidates, last: (candidates, []),
        "score": lambda fold, fits: [-abs(k - best) for k in fits],
    }
    found = search(halve_gaps, after=compare([0, 8, 40, 64], **data), **data)
    place = found.best
    assert_array_equal(found.candidates[place - 1 : place + 2], [best - 1, best, best + 1])
    assert_array_equal(np.sort(found.candidates), found.candidates)


def test_gaps_that_are_a_small_share_of_the_best_are_left():
    compared = Comparison(np.array([90, 100, 120]), np.array([1.0, 2.0, 1.0]).reshape(3, 1, 1), [None], [])
    assert halve_gaps(compared) == [95, 110]
    assert halve_gaps(compared, share=0.15) == [110]


def test_equal_means_go_to_the_smallest():
    assert of_scores([[0.0], [1.0 - 1e-14], [1.0]]).best == 1


def test_the_modest_rule_takes_the_smallest_within_a_standard_error():
    found = of_scores([[0.0, 0.0], [0.5, 1.5], [0.6, 1.6], [0.4, 1.0]])
    assert_allclose(found.standard_error[2], np.std([0.6, 1.6], ddof=1) / np.sqrt(2))
    assert (found.chosen("best"), found.chosen("one_standard_error")) == (2, 1)
    assert of_scores([[1.0], [2.0]]).one_standard_error == 1, "one fold has no error"


def test_ties_are_judged_fold_by_fold():
    """The first is worse by as much in each fold, the second better in one and worse in the other."""
    assert of_scores([[1.0, 9.0], [1.3, 9.0], [1.1, 9.11]]).smallest_tied == 1
    assert of_scores([[1.0, 9.0], [1.1, 9.1]]).smallest_tied == 1
    assert of_scores([[1.0, 9.1], [1.1, 9.0]]).smallest_tied == 0


def test_the_ridge_with_the_best_mean_is_taken():
    scores = {1: [0.0, 5.0, 1.0], 2: [6.0, 1.0, 2.0]}
    found = compare([1, 2], range(2), fit_path, lambda fold, fits: [np.array(scores[k]) + fold for k in fits])
    assert found.argmax_ridge == 0
    assert_allclose(found.best_by_ridge, [6.5, 5.5, 2.5])
    assert_allclose(found.scores, [[0.0, 1.0], [6.0, 7.0]])
    assert_allclose(found.best_by_candidate, [5.5, 6.5])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused(bad):
    with pytest.raises(InvalidInputError, match="a held-out score is NaN or infinite"):
        _ = of_scores([[0.0, 1.0], [bad, 1.0]]).best


@pytest.mark.filterwarnings("error")
def test_the_end_of_a_range_is_warned_of_only_where_there_is_more():
    ranks = np.array([2, 4])
    with pytest.warns(SearchRangeWarning, match="largest rank compared, 4: .* up to 7"):
        warn_at_range_end(ranks, 1, 7, "rank")
    with pytest.warns(SearchRangeWarning, match="smallest rank compared, 2: .* from 1"):
        warn_at_range_end(ranks, 0, 7, "rank")
    warn_at_range_end(ranks, 1, 4, "rank")
    warn_at_range_end(ranks - 1, 0, 7, "rank")
    warn_at_range_end(ranks[:1], 0, 7, "rank")
