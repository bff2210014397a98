"""Promises 1 to 4: irrelevant choices do not change the answer."""

from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from hardthresh.core.errors import InvalidInputError
from hardthresh.losses import NegativeBinomial, Poisson
from levels import at, draws, inherited

FEW = draws(4, phases=[Phase.explicit, Phase.generate])  # a seed does not shrink to anything simpler
SEEDS = st.integers(0, 2**20)
POWERS = st.integers(-60, 60)


def blank(case, n, d, seed):
    """Data without any signal, where a solver's every decision is a close call."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 1))
    return X, case.target(rng.standard_normal(n), rng, 1.0)


def coefficients(model):
    return np.reshape(model.coef_, -1)


# A power of two changes no digit of a floating-point number, so here invariance means equality, without any tolerance.


@pytest.mark.slow
@given(seed=SEEDS, power=POWERS)
@FEW
def test_a_scale_of_X_changes_only_the_units(case, seed, power):
    X, y = blank(case, 30, 15, seed)
    here, there = case.make().fit(X, y), case.make().fit(X * 2.0**power, y)
    assert_array_equal(there.support_, here.support_)
    assert_array_equal(there.coef_, here.coef_ / 2.0**power)
    assert_array_equal(there.intercept_, here.intercept_)


@inherited
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_a_scale_of_X_changes_only_the_units_also_of_columns_that_are_not_standardised(case, scale, fit_intercept):
    X, y = case.data()
    settings = {"standardize": False, "fit_intercept": fit_intercept, "alpha": 0.0}  # a ridge would know the units
    here, there = case.make(**settings).fit(X, y), case.make(**settings).fit(X * scale, y)
    assert_array_equal(there.support_, here.support_)
    assert_allclose(there.coef_ * scale, here.coef_, rtol=1e-5)
    assert_allclose(there.intercept_, here.intercept_, rtol=1e-5)


def check_unit(case):
    """Skip the test of a model whose targets have no unit, or that has a parameter in that unit."""
    if {"delta", "smoothing"} & set(case.fixed):
        pytest.skip("these are in units of the target; test_pointwise_models tests those that are estimated")
    if case.loss.classifies or isinstance(case.loss, NegativeBinomial):
        pytest.skip("labels and counts have no unit")


@inherited
@given(seed=SEEDS, power=POWERS)
@FEW
def test_a_scale_of_y_changes_only_the_units(case, seed, power):
    check_unit(case)
    X, y = blank(case, 30, 15, seed)
    here, there = case.make().fit(X, y), case.make().fit(X, y * 2.0**power)
    assert_array_equal(there.support_, here.support_)
    if case.loss.quadratic:
        assert_array_equal(there.coef_, here.coef_ * 2.0**power)
        assert there.intercept_ == here.intercept_ * 2.0**power
    assert_allclose(there.predict(X), here.predict(X) * 2.0**power, rtol=0 if case.loss.quadratic else 1e-6)


@pytest.mark.slow
@inherited
@given(
    seed=SEEDS,
    powers=st.lists(POWERS, min_size=15, max_size=15),
    signs=st.lists(st.booleans(), min_size=15, max_size=15),
)
@FEW
def test_units_and_signs_of_single_columns_change_only_their_coefficients(case, seed, powers, signs):
    X, y = blank(case, 30, 15, seed)
    units = np.where(signs, -1.0, 1.0) * 2.0 ** np.array(powers)
    here, there = case.make().fit(X, y), case.make().fit(X * units, y)
    assert_array_equal(there.support_, here.support_)
    assert_allclose(coefficients(there) * units, coefficients(here), rtol=1e-9)
    assert_allclose(there.intercept_, here.intercept_, rtol=1e-9, atol=1e-12)


@inherited
@pytest.mark.parametrize("scale", [1e-150, 1e-20, 0.3, 1e20, 1e150])
def test_any_scale_that_numbers_can_have(case, scale):
    X, y = case.data()
    here, there = case.make().fit(X, y), case.make().fit(X * scale, y)
    assert_array_equal(there.support_, here.support_)
    assert_allclose(coefficients(there) * scale, coefficients(here), rtol=1e-7)


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 0.3, 1e20, 1e150])
def test_any_scale_that_targets_can_have(case, scale):
    check_unit(case)
    X, y = case.data()
    here = case.make().fit(X, y)
    beyond = isinstance(case.loss, Poisson) and scale == 1e150
    with pytest.raises(InvalidInputError, match="targets leave the range") if beyond else nullcontext():
        there = case.make().fit(X, y * scale)
        assert_array_equal(there.support_, here.support_)
        assert_allclose(there.predict(X) / scale, here.predict(X), rtol=1e-7, atol=1e-7 * np.std(y))
        if case.chooses:
            assert (there.found_, there.best_n_nonzero_coefs_) == (here.found_, here.best_n_nonzero_coefs_)
            assert_array_equal(there.null_p_value_, here.null_p_value_)


@inherited
def test_a_shift_of_columns_moves_only_the_intercept(case):
    X, y = case.data()
    shift = np.linspace(-100, 100, X.shape[1])
    here, there = case.make().fit(X, y), case.make().fit(X + shift, y)
    assert_array_equal(there.support_, here.support_)
    assert_allclose(there.coef_, here.coef_, rtol=1e-7)
    assert_allclose(there.intercept_, here.intercept_ - np.sum(coefficients(here) * shift), rtol=1e-7)


@pytest.mark.slow
@given(seed=SEEDS)
@FEW
def test_permuted_columns_permute_the_answer(case, seed):
    X, y = blank(case, 40, 15, seed)
    order = np.random.default_rng(seed).permutation(15)
    here, there = case.make().fit(X, y), case.make().fit(X[:, order], y)
    assert_array_equal(np.sort(order[there.support_]), here.support_)
    assert_allclose(coefficients(there), coefficients(here)[order], rtol=1e-6, atol=1e-9)


@given(seed=SEEDS)
@FEW
def test_permuted_rows_change_nothing(plain, seed):
    X, y = blank(plain, 40, 15, seed)
    order = np.random.default_rng(seed).permutation(40)
    here, there = plain.make().fit(X, y), plain.make().fit(X[order], y[order])
    assert_array_equal(there.support_, here.support_)
    assert_allclose(there.coef_, here.coef_, rtol=1e-6, atol=1e-9)


def test_swapped_class_names_swap_the_signs(classifier):
    X, y = classifier.data()
    here = classifier.make().fit(X, y)
    there = classifier.make().fit(X, np.where(y == "ill", "well", "ill"))
    assert_array_equal(there.support_, here.support_)
    assert_allclose(there.coef_, -here.coef_, rtol=1e-6)
    assert_array_equal(there.predict(X) == "ill", here.predict(X) == "well")


@pytest.mark.slow
@pytest.mark.parametrize("n_nonzero_coefs", [range(1, 9), [8, 1, 4], [0, 8]])
def test_a_number_alone_gives_what_it_gives_within_a_path(chooser, n_nonzero_coefs):
    X, y = blank(chooser, 40, 25, 3)
    together = chooser.single(n_nonzero_coefs=n_nonzero_coefs).fit(X, y)
    assert_array_equal(together.candidates_, sorted(n_nonzero_coefs))
    for row, k in enumerate(together.candidates_):
        alone = chooser.single(n_nonzero_coefs=[int(k)]).fit(X, y)
        assert alone.n_nonzero_coefs_ == k
        assert np.count_nonzero(together.coefs_path_[row]) == k
        if k == together.n_nonzero_coefs_:
            assert_array_equal(together.coefs_path_[row], coefficients(alone))
        without = chooser.without_cv(n_nonzero_coefs=int(k)).fit(X, y)
        assert_array_equal(without.coef_, alone.coef_)
        assert_array_equal(without.intercept_, alone.intercept_)


def test_no_number_of_a_path_chooses_more_than_it_says(chooser):
    X, y = blank(chooser, 40, 25, 3)
    path = chooser.make(k=10).fit(X, y)
    assert_array_equal(np.count_nonzero(path.coefs_path_, axis=1), path.candidates_)


# weights


def repeated_folds(folds, weight):
    """The folds of row indices after each row is repeated as often as its weight says."""
    first = np.concatenate([[0], np.cumsum(weight)])
    places = [np.arange(start, end) for start, end in pairwise(first)]
    return [tuple(np.concatenate([places[i] for i in part]) for part in fold) for fold in folds]


def three_folds(n):
    return [(np.flatnonzero(np.arange(n) % 3 != i), np.flatnonzero(np.arange(n) % 3 == i)) for i in range(3)]


@pytest.mark.slow
@given(seed=SEEDS)
@FEW
def test_a_weight_is_a_repetition(case, seed):
    X, y = blank(case, 48, 10, seed)
    weight = np.random.default_rng(seed).integers(0, 4, 48)
    weight[:6] = 1
    folds = three_folds(48)
    there_cv, here_cv = ({"cv": repeated_folds(folds, weight)}, {"cv": folds}) if case.chooses else ({}, {})
    there = case.make(**there_cv).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    here = case.make(**here_cv).fit(X, y, sample_weight=weight)
    assert_array_equal(there.support_, here.support_)
    assert_allclose(there.coef_, here.coef_, rtol=1e-6, atol=1e-9)
    assert_allclose(there.objective_, here.objective_, rtol=1e-9)
    if case.chooses:
        assert_allclose(there.scores_, here.scores_, rtol=1e-6)


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
@pytest.mark.parametrize("seed", [0, *at("pairs", [1, 2]), *at("all", [3, 4, 5])])
def test_check_5_of_few_rows_and_equal_targets(case, storage, seed):
    """What a loss estimates, ties and singular Hessians too: no number of rows, no order and no rounding decides."""
    rng = np.random.default_rng((seed, 5))
    X, y = case.data(n=30, d=20, seed=seed, noise=1.0)
    if not case.loss.classifies and case.loss.domain == "finite numbers":
        y = np.round(y)
    weight, order = rng.integers(0, 4, 30), rng.permutation(30)
    folds = three_folds(30)
    orders = [tuple(np.flatnonzero(np.isin(order, part)) for part in fold) for fold in folds]
    there_cv, here_cv = ({"cv": repeated_folds(folds, weight)}, {"cv": orders}) if case.chooses else ({}, {})
    k = range(1, 4) if case.chooses else 3
    there = case.cls(n_nonzero_coefs=k, **there_cv).fit(storage(np.repeat(X, weight, axis=0)), np.repeat(y, weight))
    here = case.cls(n_nonzero_coefs=k, **here_cv).fit(storage(X[order]), y[order], sample_weight=weight[order])
    assert_array_equal(there.support_, here.support_)
    assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-8 * np.abs(here.coef_).max())
    assert_allclose(
        there.intercept_, here.intercept_, rtol=0, atol=1e-8 * (np.abs(here.coef_) @ np.abs(X).max(axis=0)).max()
    )


@inherited
@pytest.mark.parametrize("scale", [1e-6, 3.0, 1e6])
def test_only_ratios_of_weights_count(case, scale):
    """In a model; an average counts the rows that weights stand for, as repetitions would."""
    X, y = case.data()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
    here, there = case.single().fit(X, y, sample_weight=weight), case.single().fit(X, y, sample_weight=scale * weight)
    assert_array_equal(there.support_, here.support_)
    assert_allclose(there.coef_, here.coef_, rtol=1e-7)


@inherited
def test_equal_weights_change_nothing(case):
    X, y = case.data()
    none, ones = (case.make().fit(X, y, sample_weight=w) for w in (None, np.ones(y.size, int)))
    single, number = (case.single().fit(X, y, sample_weight=w) for w in (None, 2.0))
    for model, expected in ((ones, none), (number, single)):
        assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
        assert_allclose(model.scale_, expected.scale_, rtol=1e-12)


def with_absent_rows(case, seed=0):
    """Data with rows of weight zero that would ruin the fit if they were looked at."""
    X, y = case.data(seed=seed)
    rng = np.random.default_rng(seed)
    absent = rng.permutation(y.size)[:20]
    X[absent] *= 1e6
    weight = rng.integers(1, 3, y.size).astype(float)
    weight[absent] = 0.0
    return X, y, weight, weight > 0


@pytest.mark.parametrize("scoring", [None, "default"])
def test_a_row_of_weight_zero_is_absent(case, scoring):
    X, y, weight, kept = with_absent_rows(case)
    setting = {}
    if case.chooses and scoring == "default":
        setting = {"scoring": case.scorer()}
    here = case.make(**setting).fit(X, y, sample_weight=weight)
    there = case.make(**setting).fit(X[kept], y[kept], sample_weight=weight[kept])
    for name in ("coef_", "intercept_", "support_", "scale_", "objective_", "scores_", "mean_scores_", "n_iter_"):
        if hasattr(there, name):
            assert_array_equal(getattr(here, name), getattr(there, name), err_msg=name)


@pytest.mark.parametrize("kind", ["indices", "masks", "lists"])
def test_given_folds_name_the_rows_that_were_given(chooser, kind):
    X, y, weight, kept = with_absent_rows(chooser)
    folds = three_folds(y.size)
    place = np.cumsum(kept) - 1
    among = [tuple(place[part[kept[part]]] for part in fold) for fold in folds]
    if kind == "masks":
        folds = [tuple(np.isin(np.arange(y.size), part) for part in fold) for fold in folds]
    elif kind == "lists":
        folds = [tuple(part.tolist() for part in fold) for fold in folds]
    here = chooser.make(cv=folds).fit(X, y, sample_weight=weight)
    there = chooser.make(cv=among).fit(X[kept], y[kept], sample_weight=weight[kept])
    assert_array_equal(here.scores_, there.scores_)
    assert_array_equal(here.coef_, there.coef_)


def test_a_class_without_weight_is_absent(classifier):
    X, y = classifier.data()
    absent = np.arange(y.size) % 7 == 3
    labelled = np.where(absent, "unknown", y)
    weight = 1.0 - absent
    here = classifier.make().fit(X, labelled, sample_weight=weight)
    there = classifier.make().fit(X[~absent], y[~absent])
    assert_array_equal(here.classes_, ["ill", "well"])
    assert_array_equal(here.predict(X), there.predict(X))
    assert_allclose(here.coef_, there.coef_, rtol=1e-12)
    with pytest.raises(ValueError, match="one class only, \\['ill'\\]"):
        classifier.make().fit(X, y, sample_weight=(y == "ill").astype(float))


def test_the_certificate_does_not_see_rows_of_weight_zero(plain):
    X, y, weight, kept = with_absent_rows(plain)
    here = plain.make().fit(X, y, sample_weight=weight).certificate()
    there = plain.make().fit(X[kept], y[kept], sample_weight=weight[kept]).certificate()
    assert here.swap == there.swap
    assert here.value == there.value
