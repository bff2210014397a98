"""Choosing the number of features: what the scores are, and what they may not know."""

import warnings
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer, get_scorer_names, log_loss, make_scorer, mean_squared_error
from sklearn.model_selection import KFold, LeaveOneOut, StratifiedKFold

from hardthresh.core.errors import InvalidInputError, SearchRangeWarning
from hardthresh.core.registry import registered
from hardthresh.estimators import (
    LowRankImputerCV,
    LowRankRegressionCV,
    SparseLinearRegressionCV,
)
from hardthresh.solvers import HardThresholdingPursuit
from levels import at_most, in_turn, slow_beyond


def folds_of(n, count=3, seed=0):
    return list(KFold(count, shuffle=True, random_state=seed).split(np.zeros(n)))


def score_of(chooser, model, X, y, weight=None, offset=None):
    """What scikit-learn's scorer of the loss makes of held-out rows, if it has one."""
    if chooser.loss.score_name not in get_scorer_names():
        return chooser.score(
            y, X @ np.ravel(model.coef_) + model.intercept_ + (0 if offset is None else offset), weight
        )
    scorer = get_scorer(chooser.loss.score_name)
    expected = chooser.expected(model, X, offset)
    return scorer._sign * scorer._score_func(chooser.numbers(y), expected, sample_weight=weight)


@pytest.mark.slow
@pytest.mark.parametrize("extras", [False, True])
def test_the_scores_can_be_made_by_hand(chooser, extras):
    """A strong signal, so that a path from number to number finds what each number finds alone."""
    X, y = chooser.data(n=600, noise=0.3 if chooser.loss.classifies else 0.1)
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, 600) if extras else None
    offset = 0.1 * rng.standard_normal(600) if extras else None
    folds, ridges = folds_of(600), [0.01, 0.1]
    model = chooser.make(cv=folds, alphas=ridges, averaging="none").fit(X, y, sample_weight=weight, offset=offset)
    assert model.grid_scores_.shape == (3, 2, 3)
    for fold, (train, test) in enumerate(folds):
        parts = [[None if a is None else a[rows] for a in (weight, offset)] for rows in (train, test)]
        for (row, k), (column, ridge) in product(enumerate(model.candidates_), enumerate(ridges)):
            alone = chooser.without_cv(n_nonzero_coefs=int(k), alpha=ridge).fit(X[train], y[train], *parts[0])
            score = score_of(chooser, alone, X[test], y[test], *parts[1])
            assert_allclose(model.grid_scores_[row, column, fold], score, rtol=1e-5)
        none = chooser.without_cv(n_nonzero_coefs=0).fit(X[train], y[train], *parts[0])
        assert_allclose(model.null_scores_[fold], score_of(chooser, none, X[test], y[test], *parts[1]), rtol=1e-5)
    row, column = np.unravel_index(np.argmax(model.grid_scores_.mean(axis=2)), (3, 2))
    assert (model.best_n_nonzero_coefs_, model.alpha_) == (model.candidates_[row], ridges[column])
    assert model.n_nonzero_coefs_ == model.best_n_nonzero_coefs_
    assert_array_equal(model.scores_, model.grid_scores_[:, column])
    assert_allclose(model.mean_scores_, model.scores_.mean(axis=1))
    assert_allclose(model.standard_errors_, model.scores_.std(axis=1, ddof=1) / np.sqrt(3))


def scorings(chooser):
    if not hasattr(chooser.cls, "predict_proba") and chooser.loss.classifies:
        return ["accuracy", "roc_auc", "balanced_accuracy", chooser.scorer()]
    if chooser.loss.classifies:
        return [
            "accuracy",
            "roc_auc",
            "neg_log_loss",
            make_scorer(log_loss, greater_is_better=False, response_method="predict_proba"),
        ]
    return [
        "r2",
        "neg_mean_absolute_error",
        "neg_mean_squared_error",
        make_scorer(mean_squared_error, greater_is_better=False),
    ]


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("weighted", [False, True])
def test_scorers_see_a_model_and_held_out_rows(chooser, which, weighted):
    X, y = chooser.data(n=150, noise=1.0 if chooser.loss.classifies else 0.1)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 150) if weighted else None
    scoring = scorings(chooser)[which]
    folds = folds_of(150)
    model = chooser.single(cv=folds, scoring=scoring).fit(X, y, sample_weight=weight)
    scorer = sklearn.metrics.check_scoring(model, scoring=scoring)
    for fold, (train, test) in enumerate(folds):
        keywords = [{} if weight is None else {"sample_weight": weight[rows]} for rows in (train, test)]
        alone = chooser.without_cv(n_nonzero_coefs=2).fit(X[train], y[train], **keywords[0])
        assert_allclose(model.scores_[1, fold], scorer(alone, X[test], y[test], **keywords[1]), rtol=1e-5)


@pytest.mark.parametrize("scoring", ["neg_mean_squared_error", "neg_log_loss"])
def test_the_default_score_is_the_scorer_that_is_named(chooser, scoring):
    X, y = chooser.data()
    default = chooser.make().fit(X, y)
    if default.scorer_name_ != scoring:
        pytest.skip("the scorer of another estimator")
    named = chooser.make(scoring=scoring).fit(X, y)
    assert named.scorer_name_ == scoring
    assert_allclose(named.scores_, default.scores_, rtol=1e-6)


def test_a_callable_is_a_scoring(chooser):
    X, y = chooser.data()
    seen = []

    def score(model, X, y):
        seen.append((X.shape, np.count_nonzero(model.coef_)))
        return -float(np.count_nonzero(model.coef_))

    model = chooser.make(scoring=score, alphas=[0.1, 0.2]).fit(X, y)
    assert model.n_nonzero_coefs_ == 1
    assert model.scorer_name_ == "score"
    assert model.averaging_ == "none"
    assert seen == [((20, 12), k) for _ in range(3) for k in (0, 1, 2, 3) for _ in range(2)]


def test_held_out_rows_are_never_looked_at(chooser):
    """Ruin the held-out rows of one fold: what is learned on its training rows stays the same, up to rounding."""
    X, y = chooser.data()
    folds = folds_of(y.size)
    _, test = folds[1]
    ruined = X.copy()
    ruined[test] = 1e6 * np.random.default_rng(9).standard_normal(ruined[test].shape)

    def paths(X):
        """The coefficients of each fold, in the order of folds, numbers and ridges."""
        learned = []

        def score(model, X, y):
            learned.append(np.append(model.coef_, model.intercept_))
            return 0.0

        chooser.make(cv=folds, scoring=score, alphas=[0.01, 0.3]).fit(X, y)
        return np.reshape(learned, (3, 8, -1))

    before, after = paths(X), paths(ruined)
    assert_array_equal(after[1] != 0, before[1] != 0)
    assert_allclose(after[1], before[1], rtol=1e-7)
    assert not np.allclose(after[0], before[0])
    assert not np.allclose(after[2], before[2])


@pytest.mark.slow
def test_folds_do_not_start_from_each_other(chooser):
    """The score of a fold is the same whatever folds come before it."""
    X, y = chooser.data(noise=2.0)
    folds = folds_of(y.size)
    together = chooser.make(k=8, cv=folds).fit(X, y)
    reverse = chooser.make(k=8, cv=folds[::-1]).fit(X, y)
    assert_allclose(together.grid_scores_, reverse.grid_scores_[:, :, ::-1], rtol=1e-9)
    for fold in range(3):
        alone = chooser.make(k=8, cv=[folds[fold]]).fit(X, y)
        assert_allclose(alone.grid_scores_[:, :, 0], together.grid_scores_[:, :, fold], rtol=1e-9)


def test_one_fold_has_no_standard_error(chooser):
    X, y = chooser.data()
    model = chooser.make(cv=folds_of(y.size)[:1]).fit(X, y)
    assert_array_equal(model.standard_errors_, np.zeros(3))
    assert model.one_standard_error_ == model.best_n_nonzero_coefs_


def test_the_rule_of_one_standard_error(chooser):
    for seed in range(10):  # until the data tell the rules apart
        X, y = chooser.data(noise=1.0, seed=seed)
        best = chooser.single(k=8).fit(X, y)
        if best.one_standard_error_ < best.n_nonzero_coefs_:
            break
    modest = chooser.single(k=8, rule="one_standard_error").fit(X, y)
    assert_array_equal(best.scores_, modest.scores_)
    top = np.argmax(best.mean_scores_)
    close = best.mean_scores_ >= best.mean_scores_[top] - best.standard_errors_[top]
    smallest = int(best.candidates_[close][0])
    assert best.n_nonzero_coefs_ == best.candidates_[top]
    assert best.one_standard_error_ == modest.one_standard_error_ == modest.n_nonzero_coefs_ == smallest
    assert modest.n_nonzero_coefs_ < best.n_nonzero_coefs_
    assert np.count_nonzero(modest.coef_) == modest.n_nonzero_coefs_


def test_ties_go_to_the_smaller_number(chooser):
    X, y = chooser.data()
    assert chooser.make(scoring=lambda *_: 1.0).fit(X, y).n_nonzero_coefs_ == 1


@pytest.mark.slow
@at_most(2)
def test_every_way_to_give_folds(chooser):
    X, y = chooser.data()
    splitter = StratifiedKFold(4) if chooser.loss.classifies else KFold(4)
    expected = chooser.make(cv=list(splitter.split(X, y))).fit(X, y)
    for cv in (4, splitter, splitter.split(X, y), (fold for fold in splitter.split(X, y)), np.int64(4)):
        assert_array_equal(chooser.make(cv=cv).fit(X, y).scores_, expected.scores_)
    assert chooser.make(cv=None).fit(X, y).scores_.shape == (3, 5)


def test_leaving_out_one_row_at_a_time(chooser):
    X, y = chooser.data(n=20)
    model = chooser.make(cv=LeaveOneOut()).fit(X, y)
    assert model.scores_.shape == (3, 20)
    assert np.all(np.isfinite(model.scores_))


@slow_beyond(4)
@pytest.mark.parametrize(
    "given", [[3, 1, 2], [1, 2, 3, 2, 1], (3, 2, 1), {1, 2, 3}, np.array([2, 3, 1]), 3, np.int32(3), range(1, 4)]
)
def test_every_way_to_give_numbers(chooser, given):
    X, y = chooser.data()
    numbers = [0, 1, 2, 3] if np.ndim(given) == 0 and not isinstance(given, set) else [1, 2, 3]
    model = chooser.make(n_nonzero_coefs=given).fit(X, y)
    assert_array_equal(model.candidates_, numbers)
    assert_array_equal(model.scores_, chooser.make(n_nonzero_coefs=numbers).fit(X, y).scores_)


def test_a_generator_of_numbers_is_read_once(chooser):
    X, y = chooser.data()
    assert_array_equal(chooser.make(n_nonzero_coefs=(k for k in (2, 1))).fit(X, y).candidates_, [1, 2])


@pytest.mark.slow
@at_most(2)
@in_turn(
    "cls,n_jobs", [entry.cls for entry in registered("estimator").values() if "cv" in entry.cls().get_params()], [1, 2]
)
def test_iterators_of_folds_and_candidates_are_read_once(cls, n_jobs):
    """Iterators cannot be copied or sent to other processes."""
    (candidates,) = {"n_nonzero_coefs", "rank", "n_edges"}.intersection(cls().get_params())
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 5))
    y = (X[:, 0] > 0) + 1.0 if cls is not LowRankRegressionCV else X[:, :3]
    table = np.where(rng.random(X.shape) < 0.1, np.nan, X) if cls is LowRankImputerCV else X
    n = int(np.count_nonzero(~np.isnan(table))) if cls is LowRankImputerCV else 30
    splits = list(KFold(3, shuffle=True, random_state=0).split(np.empty((n, 1))))
    settings = {"solver": "iht", "n_jobs": n_jobs, "max_iter": 20, "tol": 1e-3}
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # so few steps and rows
        listed = cls(**{candidates: [1, 2]}, cv=splits, **settings).fit(table, y)
        given = cls(**{candidates: iter([1, 2])}, cv=(split for split in splits), **settings).fit(table, y)
    assert_array_equal(given.candidates_, [1, 2])
    assert_array_equal(given.scores_, listed.scores_)


def test_the_shapes_of_what_is_told(chooser):
    X, y = chooser.data()
    model = chooser.make(k=4, alphas=[0.1, 0.5, 0.2]).fit(X, y)
    assert_array_equal(model.alphas_, [0.1, 0.2, 0.5])
    assert model.grid_scores_.shape == (4, 3, 3)
    assert model.scores_.shape == (4, 3)
    assert model.null_scores_.shape == (3,)
    assert model.mean_scores_.shape == model.standard_errors_.shape == (4,)
    assert model.coefs_path_.shape == (4, 12)
    row, best = model.candidates_.tolist().index(model.best_n_nonzero_coefs_), model.best_model_
    assert (best.n_nonzero, best.alpha) == (model.best_n_nonzero_coefs_, model.alpha_)
    assert_array_equal(np.flatnonzero(model.coefs_path_[row]), best.support)
    assert_array_equal(model.coefs_path_[row][best.support], best.coef)


def test_the_share_of_folds_that_choose_a_feature(chooser):
    X, y = chooser.data(n=600, noise=1.0)
    folds = folds_of(y.size)
    model = chooser.single(cv=folds).fit(X, y)
    counted = np.zeros(12)
    for train, _ in folds:
        counted[chooser.without_cv(n_nonzero_coefs=model.n_nonzero_coefs_).fit(X[train], y[train]).support_] += 1
    assert_allclose(model.selection_frequency_, counted / 3)
    assert_allclose(model.selection_frequency_.sum(), model.n_nonzero_coefs_)


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
def test_the_number_of_jobs_changes_nothing(chooser, sparse):
    X, y = chooser.data()
    X = sp.csr_array(X) if sparse else X
    one, two = (chooser.make(n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert_array_equal(one.scores_, two.scores_)
    assert_array_equal(one.coef_, two.coef_)


@pytest.mark.slow
@at_most(2)
def test_sparse_rows_are_taken_in_any_format(chooser):
    X, y = chooser.data()
    X[np.abs(X) < 1] = 0
    dense = chooser.make().fit(X, y)
    for form in (sp.csr_array, sp.csc_array, sp.coo_matrix):
        assert_allclose(chooser.make().fit(form(X), y).scores_, dense.scores_, rtol=1e-6)


def test_unfinished_fits_within_folds_are_counted(chooser):
    X, y = chooser.data(noise=2.0)
    with pytest.warns(ConvergenceWarning) as caught:
        model = chooser.single(k=4, max_iter=1, solver="pursuit").fit(X, y)
    messages = [str(warning.message) for warning in caught]
    assert messages[0].startswith("15 of 15 fits inside the folds did not converge: the limit of iterations")
    assert messages[0].endswith("raise max_iter")
    assert "limit of iterations was reached" in messages[-1]
    assert not model.converged_


def test_the_number_of_features_is_counted_besides_included_ones(chooser):
    X, y = chooser.data()
    model = chooser.make(k=2, always_include=[0, 11]).fit(X, y)
    assert {0, 11} <= set(model.support_.tolist())
    assert model.support_.size == 2 + model.n_nonzero_coefs_
    assert np.all(model.selection_frequency_[[0, 11]] == 1.0)


class ByLevel:
    """A splitter of one's own, which looks at the rows: those with a low mean, and those with a high one."""

    def __init__(self):
        self.seen = []

    def split(self, X, y=None, groups=None):
        self.seen.append(X)
        level = X.mean(axis=1)
        high = level > np.median(level)
        yield np.flatnonzero(high), np.flatnonzero(~high)
        yield np.flatnonzero(~high), np.flatnonzero(high)

    def get_n_splits(self, X=None, y=None, groups=None):
        return 2


class ByLevelInFolds(ByLevel, KFold):
    """One that inherits from scikit-learn's."""


@pytest.mark.parametrize("kind", [ByLevel, ByLevelInFolds])
@pytest.mark.parametrize("weights", [None, 1.0, 0.0])
def test_a_splitter_of_ones_own_sees_the_rows_that_have_a_weight(chooser, kind, weights):
    X, y = chooser.data()
    weight = None if weights is None else np.where(np.arange(y.size) % 9, 1.0, weights)
    kept = np.arange(y.size) if weight is None else np.flatnonzero(weight)
    splitter = kind()
    model = chooser.make(cv=splitter).fit(X, y, sample_weight=weight)
    [seen] = splitter.seen
    assert type(seen) is np.ndarray
    assert_array_equal(seen, X[kept])
    by_hand = chooser.make(cv=list(kind().split(X[kept]))).fit(X[kept], y[kept])
    assert_allclose(model.scores_, by_hand.scores_, rtol=1e-10)


def overflow():
    return np.float64(1e200) ** 2


class OverflowingFolds(KFold):
    """A splitter in which NumPy warns."""

    def split(self, X, y=None, groups=None):
        overflow()
        return super().split(X, y, groups)


def overflowing_score(model, X, y):
    return min(overflow(), -float(np.count_nonzero(model.coef_)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hardthresh.core.SearchRangeWarning")
@pytest.mark.parametrize("settings", [{"cv": OverflowingFolds(3)}, {"scoring": overflowing_score}], ids=["cv", "score"])
def test_numpy_warns_of_what_overflows_in_splitters_and_scorers_of_the_user(chooser, settings):
    X, y = chooser.data()
    model = chooser.make(**settings)
    with pytest.warns(RuntimeWarning, match="overflow encountered"):
        model.fit(X, y)
    with np.errstate(over="ignore"):
        model.fit(X, y)


@pytest.mark.slow
def test_weights_are_routed(chooser):
    X, y = chooser.data()
    weight = np.random.default_rng(0).uniform(0.0, 2.0, y.size)
    direct = chooser.make().fit(X, y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = sklearn.pipeline.make_pipeline(
            sklearn.preprocessing.FunctionTransformer(), chooser.make().set_fit_request(sample_weight=True)
        )
        routed = pipeline.fit(X, y, sample_weight=weight)[-1]
    assert_array_equal(routed.coef_, direct.coef_)
    assert_array_equal(routed.scores_, direct.scores_)


def test_an_invalid_rule_leaves_the_model_unfitted(chooser):
    X, y = chooser.data()
    model = chooser.make(rule="worst")
    with pytest.raises(InvalidInputError):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


@dataclass(frozen=True, slots=True)
class Drawing(HardThresholdingPursuit):
    """A solver that notes the seeds it is given."""

    seeds: ClassVar[list[int]] = []

    def start(self, objective, constraint, w0, seed):
        self.seeds.append(seed)
        return HardThresholdingPursuit.start(self, objective, constraint, w0, seed)


@pytest.mark.slow
@at_most(2)
def test_one_seed_for_all_fits_of_a_choice(chooser):
    """Otherwise a number alone could differ from the same number in a path, and one job from two."""
    X, y = chooser.data()
    Drawing.seeds.clear()
    chooser.make(solver=Drawing(), random_state=np.random.RandomState(0)).fit(X, y)
    assert len(Drawing.seeds) >= 12
    assert len(set(Drawing.seeds)) == 1
    chooser.make(solver=Drawing(), random_state=np.random.RandomState(1)).fit(X, y)
    assert len(set(Drawing.seeds)) == 2


# --- least squares, whose folds share their work ---------------------------------------------------------------------


def learned_by(settings, X, y, **per_row):
    """Return what each fold learns, as its scorer sees it: coefficients and intercept, for each number."""
    seen = []

    def score(model, X, y, sample_weight=None):
        seen.append((model.coef_.copy(), float(model.intercept_)))
        return 0.0

    model = SparseLinearRegressionCV(scoring=score, **settings).fit(X, y, **per_row)
    count = len(model.candidates_) * len(model.alphas_)
    return [seen[start : start + count] for start in range(0, len(seen), count)]


SETTINGS = {
    "plain": {},
    "not standardised": {"standardize": False},
    "no intercept": {"fit_intercept": False},
    "positive": {"positive": True},
    "included": {"always_include": [0, 7]},
    "shifted": {},
}


@pytest.mark.slow
@at_most(5)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", SETTINGS)
def test_a_naive_loop_over_what_the_folds_learn_gives_the_scores(kind, weighted):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((70, 30)) * rng.uniform(0.5, 5, 30) + rng.uniform(-3, 3, 30)
    y = X[:, 2] - X[:, 11] + 4 + rng.standard_normal(70)
    weight = rng.uniform(0.2, 2.0, 70) if weighted else np.ones(70)
    folds = folds_of(70, 4)
    numbers, ridges = [0, 1, 2, 3, 6, 12], [0.0, 0.1, 2.0]
    settings = {"n_nonzero_coefs": numbers, "alphas": ridges, "cv": folds, **SETTINGS[kind]}
    per_row = {"sample_weight": weight} if weighted else {}
    learned = learned_by(settings, X, y, **per_row)
    model = SparseLinearRegressionCV(averaging="none", **settings).fit(X, y, **per_row)
    always = settings.get("always_include", [])
    scores = np.empty((6, 3, 4))
    for fold, (train, test) in enumerate(folds):
        for (row, k), (column, ridge) in product(enumerate(numbers), enumerate(ridges)):
            coef, intercept = learned[fold][3 * row + column]
            scores[row, column, fold] = -np.average((y[test] - X[test] @ coef - intercept) ** 2, weights=weight[test])
            support = np.flatnonzero(coef)
            assert np.setdiff1d(support, always).size <= k
            expected, level = least_squares_on(support, X[train], y[train], weight[train], {"alpha": ridge, **settings})
            assert_allclose(coef[support], expected, rtol=1e-6, atol=1e-9)
            assert_allclose(intercept, level, rtol=1e-6, atol=1e-7)
    assert_allclose(model.grid_scores_, scores, rtol=1e-10)
    assert_allclose(model.null_scores_, scores[0, 0], rtol=1e-10)
    chosen = 3 * numbers.index(model.best_n_nonzero_coefs_) + ridges.index(model.alpha_)
    counts = sum((path[chosen][0] != 0).astype(float) for path in learned)
    assert_allclose(model.selection_frequency_, counts / 4)


def least_squares_on(support, X, y, weight, settings):
    """Return coefficients and intercept of the ridged solution on some columns."""
    weight = weight / weight.sum()
    intercept = settings.get("fit_intercept", True)
    mean, level = (weight @ X, weight @ y) if intercept else (np.zeros(X.shape[1]), 0.0)
    centred = X - mean
    ridge = np.full(X.shape[1], settings.get("alpha", 0.0))
    ridge[settings.get("always_include", [])] = 0.0
    if settings.get("standardize", True):
        ridge = ridge * (weight @ centred**2)
    part = centred[:, support]
    gram = (weight[:, None] * part).T @ part + np.diag(ridge[support])
    coef = np.linalg.solve(gram, part.T @ (weight * (y - level)))
    return coef, level - mean[support] @ coef


def test_an_offset_is_part_of_what_folds_learn_and_of_their_scores():
    rng = np.random.default_rng(0)
    X, offset = rng.standard_normal((60, 20)), 5 * rng.standard_normal(60)
    y = X[:, 3] + rng.standard_normal(60)
    folds = folds_of(60, 4)
    plain = SparseLinearRegressionCV(n_nonzero_coefs=6, cv=folds).fit(X, y)
    shifted = SparseLinearRegressionCV(n_nonzero_coefs=6, cv=folds).fit(X, y + offset, offset=offset)
    assert_allclose(shifted.scores_, plain.scores_, rtol=1e-9)
    assert_array_equal(shifted.support_, plain.support_)


@pytest.mark.parametrize(("factor", "ridges"), [(1e6, [0.0, 0.5]), (1e8, [0.0, 0.5]), (1e9, 0.0)])
def test_outliers_among_held_out_rows_change_the_score_of_their_fold_and_nothing_it_learns(factor, ridges):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 20))
    y = X[:, 3] + rng.standard_normal(60)
    folds = folds_of(60, 4)
    _, test = folds[2]
    ruined, target = X.copy(), y.copy()
    ruined[test[0]] *= factor
    target[test[1]] *= factor
    settings = {"n_nonzero_coefs": 6, "alphas": ridges, "cv": folds}
    before, after = (learned_by(settings, *data)[2] for data in ((X, y), (ruined, target)))
    for (one, level), (other, shifted_level) in zip(before, after, strict=True):
        assert_array_equal(one != 0, other != 0)
        assert_allclose(one, other, rtol=1e-6, atol=1e-9)
        assert_allclose(level, shifted_level, rtol=1e-6, atol=1e-7)


def test_bootstrap_folds_count_rows_as_often_as_they_are_drawn():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 20))
    y = X[:, 3] + X[:, 8] + rng.standard_normal(60)
    drawn = rng.integers(0, 60, 60)
    left = np.setdiff1d(np.arange(60), drawn)
    settings = {"n_nonzero_coefs": 6, "alphas": 0.0, "cv": [(drawn, left)]}
    model = SparseLinearRegressionCV(**settings).fit(X, y)
    ((*learned,),) = learned_by(settings, X, y)
    for row, (coef, intercept) in enumerate(learned):
        support = np.flatnonzero(coef)
        expected, level = least_squares_on(support, X[drawn], y[drawn], np.ones(60), {})
        assert_allclose(coef[support], expected, rtol=1e-6)
        assert_allclose(intercept, level, rtol=1e-6, atol=1e-9)
        assert_allclose(model.scores_[row, 0], -np.mean((y[left] - X[left] @ coef - intercept) ** 2), rtol=1e-9)


# --- the best number at an end of those compared ----------------------------------------------------------------------
# Of 90 rows, not 60: the test of the model without features finds every effect, whatever its random orders.


def larger_is_better(model, X, y):
    return float(np.count_nonzero(model.coef_))


def smaller_is_better(model, X, y):
    return -float(np.count_nonzero(model.coef_))


@pytest.mark.parametrize("rule", ["best", "one_standard_error"])
def test_a_best_number_that_is_the_largest_compared_is_warned_of(chooser, rule):
    X, y = chooser.data(n=90)
    with pytest.warns(SearchRangeWarning, match=r"largest number of features compared, 3: .* up to 6"):
        chooser.make(k=3, scoring=larger_is_better, rule=rule).fit(X, y)
    with pytest.warns(SearchRangeWarning, match=r"largest number of features compared, 10: .* up to 12"):
        chooser.make(n_nonzero_coefs=[1, 10], scoring=larger_is_better).fit(X, y)


def test_a_best_number_that_is_the_smallest_compared_is_warned_of(chooser):
    X, y = chooser.data(n=90)
    with pytest.warns(SearchRangeWarning, match=r"smallest number of features compared, 2: .* from 1"):
        chooser.make(n_nonzero_coefs=[2, 4], scoring=one_or_two_is_best).fit(X, y)


def one_or_two_is_best(model, X, y):
    return -abs(np.count_nonzero(model.coef_) - 1.5)


within_range = pytest.mark.filterwarnings("error::hardthresh.core.errors.SearchRangeWarning")


@within_range
@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        ({"n_nonzero_coefs": [1, 12]}, 60),  # all features
        ({"n_nonzero_coefs": [1, 10], "always_include": [0, 1]}, 60),  # all but the included ones
        ({"n_nonzero_coefs": [1, 11]}, 18),  # eleven coefficients and an intercept fit twelve training rows exactly
        ({"n_nonzero_coefs": [3]}, 60),  # nothing is compared
    ],
)
def test_a_best_number_that_is_the_largest_possible_is_not_warned_of(chooser, settings, rows):
    X, y = chooser.data(n=rows)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # robust losses that fit exactly
        model = chooser.make(**settings, scoring=larger_is_better).fit(X, y)
    assert model.n_nonzero_coefs_ == settings["n_nonzero_coefs"][-1]


def test_constant_columns_are_not_missed_in_a_range(chooser):
    X, y = chooser.data(n=90)
    X[:, 3] = 1.0
    with pytest.warns(UserWarning, match="1 constant column") as caught:
        chooser.make(k=11, scoring=larger_is_better).fit(X, y)
    assert len(caught) == 1


@within_range
def test_a_best_number_of_one_or_none_is_not_warned_of(chooser):
    X, y = chooser.data()
    assert chooser.make(n_nonzero_coefs=range(4), scoring=smaller_is_better).fit(X, y).n_nonzero_coefs_ == 0
    assert chooser.make(k=4, scoring=smaller_is_better).fit(X, y).n_nonzero_coefs_ == 1


@pytest.mark.slow
@at_most(2)
@within_range
def test_a_best_number_of_groups_that_is_the_largest_compared_is_warned_of(chooser):
    X, y = chooser.data(n=90)
    grouped = chooser.cls(groups=np.arange(12) // 2, n_nonzero_groups=[1, 3], cv=3, scoring=larger_is_better)
    with pytest.warns(SearchRangeWarning, match=r"largest number of groups compared, 3: .* up to 6"):
        grouped.fit(X, y)
    chooser.cls(groups=np.arange(12) // 2, n_nonzero_groups=[1, 6], cv=3, scoring=larger_is_better).fit(X, y)
