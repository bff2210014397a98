"""The laws of knockoffs: second moments, thresholds and e-values (check 19 of models.md)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import toeplitz

from hardthresh.core.errors import InvalidInputError
from hardthresh.selection import KnockoffPlan, knockoff_e_values, knockoff_threshold, select_by_e_values
from hardthresh.selection.knockoff_plan import maximum_entropy_diagonal
from hardthresh.selection.knockoffs import smallest_proportions
from levels import at_most, draws

CORRELATIONS = {
    "independent": np.eye(6),
    "ar1": toeplitz(0.7 ** np.arange(6)),
    "equicorrelated": 0.9 * np.ones((6, 6)) + 0.1 * np.eye(6),
    "nearly dependent": toeplitz(0.999 ** np.arange(6)),
}
SCALES = np.array([1e-3, 0.5, 1.0, 2.0, 30.0, 1e4])
COVARIANCES = {name: S * np.outer(SCALES, SCALES) for name, S in CORRELATIONS.items()}
every = pytest.mark.parametrize("name", CORRELATIONS)
some_tested = pytest.mark.parametrize("tested", [np.arange(6), np.array([0, 2, 3, 5])], ids=["all", "some"])
STATISTICS = st.lists(st.integers(-6, 12), min_size=1, max_size=25).map(lambda statistics: np.array(statistics) / 2.0)


def entropy(S, diagonal):
    sign, size = np.linalg.slogdet(2 * S - np.diag(diagonal))
    return size + np.log(diagonal).sum() if sign > 0 else -np.inf


@every
def test_the_diagonal_has_the_largest_entropy(name):
    S = CORRELATIONS[name]
    diagonal = maximum_entropy_diagonal(S)
    assert np.linalg.eigvalsh(2 * S - np.diag(diagonal))[0] > 0
    best = entropy(S, diagonal)
    for factor in np.random.default_rng(0).uniform(0.9, 1.1, (200, 6)):
        assert entropy(S, factor * diagonal) <= best + 2e-6
    assert_allclose(diagonal, 1 / np.diag(np.linalg.inv(2 * S - np.diag(diagonal))), rtol=1e-3)


@pytest.mark.parametrize("r", [0.0, 0.3, -0.9])
def test_the_diagonal_of_two_columns_is_known(r):
    """The derivative of 2 log s + log((2 - s)^2 - 4 r^2) is zero there."""
    S = np.array([[1.0, r], [r, 1.0]])
    assert_allclose(maximum_entropy_diagonal(S), (3 - np.sqrt(1 + 8 * r * r)) / 2, rtol=1e-3)


@every
@some_tested
def test_check_19_no_exchange_of_a_pair_changes_the_second_moments(name, tested):
    """The covariance of the columns and their knockoffs, from the coefficients and the noise, is exchangeable."""
    S, unit = COVARIANCES[name], np.outer(SCALES, SCALES)
    plan = KnockoffPlan.of(S, tested)
    assert (plan.diagonal > 0).all()
    own = np.eye(6)[:, tested] - plan.regression
    across = S @ own
    expected = S[:, tested].copy()
    expected[tested, range(tested.size)] -= plan.diagonal
    assert_allclose(across / unit[:, tested], expected / unit[:, tested], atol=1e-9)
    among = own.T @ S @ own + plan.factor.T @ plan.factor
    in_unit = unit[np.ix_(tested, tested)]
    assert_allclose(among / in_unit, S[np.ix_(tested, tested)] / in_unit, atol=1e-9)


def test_gaussian_knockoffs_have_these_moments():
    rng = np.random.default_rng(1)
    S, mean = CORRELATIONS["ar1"], np.arange(6.0)
    X = mean + rng.standard_normal((40_000, 6)) @ np.linalg.cholesky(S).T
    plan = KnockoffPlan.of(S)
    both = np.hstack([X, plan.gaussian(X, mean, rng)])
    expected = np.block([[S, S - np.diag(plan.diagonal)], [S - np.diag(plan.diagonal), S]])
    assert_allclose(np.cov(both.T), expected, atol=0.03)  # the standard error is at most .007
    assert_allclose(both.mean(axis=0), [*mean, *mean], atol=0.03)


@pytest.mark.parametrize("intercept", [True, False])
@some_tested
def test_check_19_fixed_knockoffs_have_the_gram_matrix_of_the_columns(tested, intercept):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 6)) @ np.linalg.cholesky(CORRELATIONS["ar1"]).T
    X, ones = X - X.mean(axis=0), np.ones(30)
    gram = X.T @ X
    plan = KnockoffPlan.of(gram, tested)
    copies = plan.fixed(X, rng, ones if intercept else None)
    across = gram[:, tested].copy()
    across[tested, range(tested.size)] -= plan.diagonal
    assert_allclose(copies.T @ copies, gram[np.ix_(tested, tested)], atol=1e-10)
    assert_allclose(X.T @ copies, across, atol=1e-10)
    if intercept:
        assert_allclose(ones @ copies, 0.0, atol=1e-10)


def test_fixed_knockoffs_need_two_rows_for_each_column():
    X = np.random.default_rng(3).standard_normal((12, 6))
    plan = KnockoffPlan.of(X.T @ X)
    assert plan.fixed(X, np.random.default_rng(0)).shape == (12, 6)
    with pytest.raises(InvalidInputError, match="12 rows are needed for knockoffs of this kind, there are 11"):
        plan.fixed(X[:11], np.random.default_rng(0))


def test_a_column_that_depends_on_others_is_named():
    X = np.random.default_rng(4).standard_normal((20, 4))
    X[:, 2] = X[:, 0] - 2 * X[:, 1]
    with pytest.raises(InvalidInputError, match=r"column 2 \(counted from 0\) is a linear combination of the columns"):
        KnockoffPlan.of(X.T @ X)


@given(STATISTICS, st.sampled_from([0.05, 0.2, 0.25, 0.5]), st.sampled_from([0, 1]))
@draws(200)
def test_the_threshold_is_the_smallest_that_keeps_the_level(statistics, fdr, offset):
    def proportion(t):
        return (offset + np.sum(statistics <= -t)) / max(1, np.sum(statistics >= t))

    sizes, proportions = smallest_proportions(statistics, offset)
    assert_array_equal(sizes, sorted({abs(w) for w in statistics} - {0.0}))
    assert_array_equal(proportions, [proportion(t) for t in sizes])
    allowed = [t for t in sizes if proportion(t) <= fdr]
    assert knockoff_threshold(statistics, fdr, offset) == min(allowed, default=np.inf)


@given(STATISTICS, st.sampled_from([0.05, 0.2, 0.25, 0.5]))
@draws(200)
def test_e_values_of_one_draw_select_what_its_threshold_selects(statistics, fdr):
    """Ren and Barber (2024): the filter is the e-BH procedure with the e-values at its own threshold."""
    threshold = knockoff_threshold(statistics, fdr)
    assert_array_equal(
        select_by_e_values(knockoff_e_values(statistics, threshold), fdr), np.flatnonzero(statistics >= threshold)
    )


@given(st.lists(st.integers(0, 40), min_size=1, max_size=20).map(np.array), st.sampled_from([0.1, 0.25, 0.5]))
@draws(200)
def test_the_procedure_for_e_values_is_that_of_its_definition(e, fdr):
    d, ordered = len(e), sorted(e, reverse=True)
    k = max((k for k in range(1, d + 1) if ordered[k - 1] * fdr * k >= d * (1 - 1e-12)), default=0)
    selected = select_by_e_values(e.astype(float), fdr)
    assert_array_equal(selected, [j for j in range(d) if k and e[j] >= ordered[k - 1]])


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("level", [0.1, 0.2])
def test_coins_keep_the_level(level):
    """60 null statistics with random signs among 15 of positive sign: 4000 times, so that a standard error is .002."""
    rng = np.random.default_rng(5)
    shares, sums = [], []
    for _ in range(4000):
        statistics = np.abs(rng.standard_normal(75)) + np.r_[np.full(15, 1.5), np.zeros(60)]
        statistics[15:] *= rng.choice([-1.0, 1.0], 60)
        threshold = knockoff_threshold(statistics, level)
        selected = statistics >= threshold
        shares.append(selected[15:].sum() / max(1, selected.sum()))
        sums.append(knockoff_e_values(statistics, threshold)[15:].sum())
    assert 0.5 * level < np.mean(shares) < level + 0.006
    assert np.mean(sums) < 75 * 1.05
