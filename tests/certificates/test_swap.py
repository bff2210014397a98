"""The certificate of exchanges, against trying every one."""

from itertools import product

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import hardthresh as ht
from hardthresh.certificates import certify_model, swap_certificate
from hardthresh.constraints import GroupSparsity, Sparsity
from hardthresh.core.errors import CapabilityError
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT, HardThresholdingPursuit, minimize

FEW = settings(max_examples=15, phases=[Phase.explicit, Phase.generate])


def model_of(seed, loss="squared", n=40, d=9, l2=0.0, noise=1.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 1.5 * rng.standard_normal((n, 1))
    u = X[:, :3] @ [1.0, -1.0, 0.5] + noise * rng.standard_normal(n)
    return LinearModel(X, u if loss == "squared" else (u > 0).astype(float), loss=loss, l2=l2)


def refit(objective, support, lower=None):
    """The minimum of f on a support, by a solver that may use every coordinate of it."""
    small = objective.columns(np.array(sorted(support)))
    return minimize(small, Sparsity(len(support), lower=lower), max_iter=3000, tol=1e-13).value


def best_exchange(objective, support, free=()):
    """Every exchange of one coordinate for one other, refitted: the best value and the exchange."""
    outside = [j for j in range(objective.shape[0]) if j not in support]
    tried = [
        (refit(objective, (set(support) - {i}) | {j}), (int(i), j))
        for i, j in product(set(support) - set(free), outside)
    ]
    return min(tried)


def minimiser_on(objective, support):
    """f at its minimiser on some support, good or bad."""
    small = objective.columns(np.array(sorted(support)))
    w = np.zeros(objective.shape[0])
    w[sorted(support)] = minimize(small, Sparsity(len(support)), max_iter=3000, tol=1e-13).w
    return objective.evaluate(w)


@given(seed=st.integers(0, 2**20), size=st.integers(1, 4), l2=st.sampled_from([0.0, 0.2]))
@FEW
def test_squared_loss_the_best_exchange_is_found_exactly(seed, size, l2):
    f = model_of(seed, l2=l2)
    support = sorted(np.random.default_rng(seed).permutation(9)[:size].tolist())
    at = minimiser_on(f, support)
    found = swap_certificate(f, Sparsity(size), at)
    value, exchange = best_exchange(f, support)
    assert (found.removed, found.added) == exchange
    assert_allclose(at.value - found.decrease, value, rtol=1e-8)
    assert found.optimal == (value >= at.value - 1e-8 * at.value)


@given(seed=st.integers(0, 2**20), size=st.integers(1, 3))
@FEW
def test_squared_loss_free_coordinates_stay(seed, size):
    f = model_of(seed)
    support = sorted({0, 8, *np.random.default_rng(seed).permutation(range(1, 8))[:size].tolist()})
    at = minimiser_on(f, support)
    found = swap_certificate(f, Sparsity(size, free=(0, 8)), at)
    value, exchange = best_exchange(f, support, free=(0, 8))
    assert (found.removed, found.added) == exchange
    assert_allclose(at.value - found.decrease, value, rtol=1e-8)


@given(seed=st.integers(0, 2**20), size=st.integers(1, 4))
@FEW
def test_logistic_loss_no_claim_against_what_was_tried(seed, size):
    f = model_of(seed, "logistic", l2=0.05)
    support = sorted(np.random.default_rng(seed).permutation(9)[:size].tolist())
    at = minimiser_on(f, support)
    found = swap_certificate(f, Sparsity(size), at, tries=100)  # as many as there are: then the ranking cannot mislead
    value, exchange = best_exchange(f, support)
    assert found.tried == size * (9 - size)
    assert found.optimal == (value >= at.value - 1e-8 * at.value)
    assert (found.removed, found.added) == exchange
    assert_allclose(at.value - found.decrease, value, rtol=1e-6)


@given(seed=st.integers(0, 2**20))
@FEW
def test_logistic_loss_what_is_said_of_an_exchange_is_true(seed):
    """With few tries the best exchange may be missed, but the one that is named does what is said."""
    f = model_of(seed, "logistic", l2=0.05)
    support = sorted(np.random.default_rng(seed).permutation(9)[:3].tolist())
    at = minimiser_on(f, support)
    found = swap_certificate(f, Sparsity(3), at, tries=2)
    assert found.tried == 2
    there = refit(f, (set(support) - {found.removed}) | {found.added})
    assert_allclose(at.value - found.decrease, there, rtol=1e-6)
    if not found.optimal:
        assert there < at.value


def test_with_bounds_the_exchange_keeps_to_them():
    f = model_of(4)
    at = minimize(f, Sparsity(2, lower=0.0), IHT(), tol=1e-13, max_iter=5000)
    found = swap_certificate(f, Sparsity(2, lower=0.0), f.evaluate(at.w))
    certificate = certify_model(f, Sparsity(2, lower=0.0), at.w, at.support)
    assert not certificate.exact
    swapped = (set(at.support.tolist()) - {found.removed}) | {found.added}
    assert_allclose(at.value - found.decrease, refit(f, swapped, lower=0.0), rtol=1e-6)


@pytest.mark.parametrize("k", [0, 9])
def test_nothing_to_exchange_is_optimal(k):
    f = model_of(0)
    result = minimize(f, Sparsity(k), tol=1e-12)
    found = swap_certificate(f, Sparsity(k), f.evaluate(result.w))
    assert found.optimal
    assert found.removed is None
    assert found.added is None
    assert found.tried == 0
    certificate = certify_model(f, Sparsity(k), result.w, result.support)
    assert certificate.best_swap is None
    assert "there is nothing to exchange" in str(certificate)


@pytest.mark.parametrize("estimator", [ht.SparseLinearRegression, ht.SparseLogisticRegression])
def test_an_intercept_alone_is_fitted_to_the_end(estimator):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 6))
    certificate = estimator(n_nonzero_coefs=0).fit(X, X[:, 0] + rng.standard_normal(50) > 0.0).certificate()
    assert certificate.is_stationary()
    assert "Fitted to the end on the chosen features: yes" in str(certificate)


def test_a_bad_support_is_called_bad():
    f = model_of(1, noise=0.01)
    at = minimiser_on(f, [1, 2, 5])
    certificate = certify_model(f, Sparsity(3), at.point, np.array([1, 2, 5]), lambda j: f"gene {j}")
    assert not certificate.swap_optimal
    assert certificate.best_swap == (5, 0)
    assert "gene 5 for gene 0 would lower the objective by" in str(certificate)
    assert "a better model exists" in str(certificate)


def test_a_good_support_is_called_good():
    f = model_of(1, noise=0.01)
    result = minimize(f, Sparsity(3), HardThresholdingPursuit(exchanges=4))
    certificate = certify_model(f, Sparsity(3), result.w, result.support)
    assert certificate.swap_optimal
    assert certificate.exact
    assert certificate.is_stationary()
    assert certificate.value == pytest.approx(result.value)
    assert "proved: no exchange of one chosen feature for another is better" in str(certificate)


def test_a_point_that_is_not_fitted_to_the_end_is_called_so():
    f = model_of(1)
    w = np.zeros(9)
    w[:3] = 0.1
    certificate = certify_model(f, Sparsity(3), w, np.arange(3))
    assert "Fitted to the end on the chosen features: no" in str(certificate)
    assert not certificate.is_stationary()


def test_an_objective_without_columns_is_refused_by_name():
    class Bare:
        shape = (3,)

        def evaluate(self, w):
            raise AssertionError

        value = evaluate

    with pytest.raises(CapabilityError, match="swap_certificate"):
        swap_certificate(Bare(), Sparsity(1), None)


@pytest.mark.parametrize("estimator", [ht.SparseLinearRegression, ht.SparseLogisticRegression])
def test_an_estimator_speaks_of_features_of_the_data(estimator):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 8)) * np.linspace(1, 50, 8) + 100.0
    y = 2 * X[:, 1] - 0.2 * X[:, 6] + rng.standard_normal(80)
    model = estimator(n_nonzero_coefs=2, always_include=[3]).fit(
        X, y > np.median(y) if "Logistic" in estimator.__name__ else y
    )
    certificate = model.certificate()
    removed, added = certificate.best_swap
    assert removed in {1, 6}
    assert added in set(range(8)) - {1, 3, 6}
    assert certificate.removed_name == f"feature {removed} (counted from 0)"
    assert certificate.added_name == f"feature {added} (counted from 0)"
    assert certificate.swap_optimal
    assert certificate.exact == (estimator is ht.SparseLinearRegression)


def test_a_group_too_wide_for_its_hessian_is_no_proof():
    """Every other group has more columns than are looked at, or the chosen one has."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6, 2060)), rng.standard_normal(6)
    objective, constraint = LinearModel(X, y), GroupSparsity([0] * 2050 + [1] * 10, 1)
    for chosen in (slice(None, 2050), slice(2050, None)):
        w = np.zeros(2060)
        w[chosen] = np.linalg.lstsq(X[:, chosen], y)[0]
        certificate = certify_model(objective, constraint, w, constraint.project(w).support)
        assert not certificate.exact
        assert "not looked at" in str(certificate)
