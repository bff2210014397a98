"""The certificate of exchanges, against trying every one."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import Phase, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import hardthresh as ht
from boxes import least_squares
from hardthresh.certificates import certify_model, swap_certificate
from hardthresh.constraints import Coordinates, GroupSparsity, Sparsity
from hardthresh.core import BaseObjective
from hardthresh.core.errors import CapabilityError
from hardthresh.designs import dense
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT, HardThresholdingPursuit, minimize
from levels import draws, only_at

FEW = draws(15, phases=[Phase.explicit, Phase.generate])


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


@only_at("pairs")
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


# --- columns that depend on each other -------------------------------------------------------------------------------


def proportional_columns():
    """Columns 2 to 38 are multiples of each other: of two of them one can leave at no cost, and 39 is worth a lot."""
    rng = np.random.default_rng(1)
    X = np.zeros((3, 40))
    X[2, :2] = 1
    X[2, 2:39] = rng.random(37) + 1e-3
    X[0, 39] = 1
    return X, [-1.4, -4.0, 5.4]


def test_one_of_two_proportional_columns_is_exchanged_for_what_helps_most():
    X, y = proportional_columns()
    model = ht.SparseLinearRegression(n_nonzero_coefs=2, solver="iht").fit(X, y)
    assert set(model.support_.tolist()) <= set(range(2, 39))
    certificate = model.certificate()
    assert certificate.best_swap[1] == 39
    assert_allclose(certificate.swap.decrease, model.objective_, rtol=1e-9)
    assert "for feature 39 (counted from 0) would lower the objective by 100.00%" in str(certificate)


def test_the_search_for_exchanges_is_not_misled_by_proportional_columns():
    X, y = proportional_columns()
    assert ht.SparseLinearRegression(n_nonzero_coefs=2, solver="pursuit").fit(X, y).objective_ < 1e-20


def dependent_columns(seed):
    """A model with a copy, a multiple and a sum among its columns, and f where some of them are chosen."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 9))
    X[:, 6], X[:, 7], X[:, 8] = X[:, 0], -3.0 * X[:, 1], X[:, 1] + X[:, 2]
    y = X[:, 2:5] @ [1.0, -1.0, 2.0] + 0.3 * rng.standard_normal(30)
    support = [[0, 3, 6], [1, 5, 7], [1, 2, 4, 8], [0, 1, 6, 7], [1, 2, 7, 8], [0, 3, 5]][seed % 6]
    w = np.zeros(9)
    w[support] = np.linalg.pinv(X[:, support], rcond=1e-6) @ y
    f = LinearModel(X, y)
    return f, f.evaluate(w), support


def smallest_on(f, support):
    """The minimum of a least squares objective on a support, by singular values."""
    A = f.design.dense()[:, sorted(support)]
    return 0.5 * float(np.mean((f.y - A @ (np.linalg.pinv(A, rcond=1e-13) @ f.y)) ** 2))


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_the_best_exchange_is_found_where_chosen_columns_depend_on_each_other(seed, grouped):
    f, at, support = dependent_columns(seed)
    blocks = GroupSparsity(range(9), len(support))  # the same set, by another way
    found = swap_certificate(f, blocks if grouped else Sparsity(len(support)), at, tries=1)
    best = min(smallest_on(f, {*support} - {i} | {j}) for i in support for j in {*range(9)} - {*support})
    assert_allclose(at.value - found.decrease, best, rtol=1e-9)
    assert found.optimal == (best >= at.value * (1 - 1e-8))
    assert not found.undecided


@pytest.mark.parametrize("seed", range(6))
def test_groups_that_share_columns_are_exchanged_by_what_is_left_without_them(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 10))
    X[:, [2, 3]] = X[:, [0, 1]] @ rng.standard_normal((2, 2))  # group 1 spans what group 0 does
    X[:, 5] = X[:, 4] + X[:, 0]
    y = X[:, 6:] @ rng.standard_normal(4) + 0.5 * rng.standard_normal(40)
    f, groups = LinearModel(X, y), GroupSparsity([0, 0, 1, 1, 2, 2, 3, 3, 4, 4], 2)
    w = np.zeros(10)
    w[:4] = np.linalg.pinv(X[:, :4], rcond=1e-9) @ y
    at = f.evaluate(w)
    columns = [{2 * g, 2 * g + 1} for g in range(5)]
    best = min(smallest_on(f, columns[kept] | columns[added]) for kept in (0, 1) for added in (2, 3, 4))
    assert_allclose(at.value - swap_certificate(f, groups, at, tries=1).decrease, best, rtol=1e-9)


@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-7, 1e-9, 1e-11])
def test_near_copies_of_chosen_columns_are_undecided(gap):
    """A difference of 1e-9 is more than rounding: here it halves the objective, and a solver may miss that."""
    rng = np.random.default_rng(0)
    X, z = rng.standard_normal((30, 4)), rng.standard_normal(30)
    X[:, 2:] = np.column_stack([X[:, 0], X[:, 0] + gap * z])
    f = LinearModel(X, X[:, 0] + z + 0.1 * rng.standard_normal(30))
    w = np.zeros(4)
    w[:2] = np.linalg.lstsq(X[:, :2], f.y)[0]
    assert smallest_on(f, [0, 3]) < 0.5 * f.value(w)
    certificate = certify_model(f, Sparsity(2), w, Coordinates(np.array([0, 1])), lambda j: f"gene {j}")
    if certificate.swap_optimal:
        assert not certificate.exact
        assert certificate.undecided_names == ("gene 3",)  # and not 2, which is a copy
        assert "because gene 3 is so nearly a combination of the chosen features that rounding" in str(certificate)
    else:
        assert certificate.best_swap == (1, 3)


def test_copies_and_what_would_not_help_are_no_obstacle_to_a_proof():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 8))
    X[:, 3] = X[:, 0] + 1e-8 * rng.standard_normal(30)
    X[:, 4], X[:, 5], X[:, 6], X[:, 7] = X[:, 0], 7.0 * X[:, 1] + 2.0, X[:, 0] - X[:, 1], 5.0
    y = X[:, 0] + X[:, 1] + 0.1 * rng.standard_normal(30)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2)
    with pytest.warns(UserWarning, match="1 constant column"):
        certificate = model.fit(X, y).certificate()
    assert certificate.exact
    assert certificate.swap_optimal


@pytest.mark.slow
def test_a_small_gradient_does_not_hide_that_a_refit_helps():
    """On nearly equal columns the gradient is small wherever the sum of the coefficients is right."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 5))
    X[:, 1] = X[:, 0] + 1e-5 * rng.standard_normal(30)
    y = 1e5 * (X[:, 1] - X[:, 0]) + X[:, 0]
    f = LinearModel(X, y)
    w = np.zeros(5)
    w[:2] = 0.5 * (X[:, 0] @ y) / (X[:, 0] @ X[:, 0])
    certificate = certify_model(f, Sparsity(2), w, Coordinates(np.array([0, 1])))
    assert certificate.basic_feasibility <= 1e-5 * certificate.stationarity.gradient_scale
    assert not certificate.fitted
    assert not certificate.is_stationary()
    assert "no (remaining gradient" in str(certificate)
    assert "a refit would lower the objective by 100.00%" in str(certificate)


def test_exchanges_start_from_a_refit_of_what_is_chosen():
    """Far from the minimiser on the support, nearly every exchange with a refit helps; the best one is found."""
    f = model_of(3)
    w = np.zeros(9)
    w[[5, 6]] = 10.0
    found = swap_certificate(f, Sparsity(2), f.evaluate(w))
    value, exchange = best_exchange(f, [5, 6])
    assert (found.removed, found.added) == exchange
    assert_allclose(f.value(w) - found.decrease, value, rtol=1e-8)
    assert_allclose(found.refit, f.value(w) - refit(f, [5, 6]), rtol=1e-8)


def test_coefficients_at_a_bound_are_not_refitted():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 5))
    y = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(40)
    model = ht.SparseLinearRegression(n_nonzero_coefs=1, positive=True, always_include=[1]).fit(X, y)
    assert model.coef_[1] == 0.0
    assert model.certificate().fitted


def test_an_exchange_for_a_copy_is_as_good():
    X, y = np.eye(8)[:, [0, 0, 1]], np.eye(8)[0]
    certificate = ht.SparseLinearRegression(n_nonzero_coefs=1).fit(X, y + 0.1).certificate()
    assert certificate.exact
    assert "(closest: feature 0 (counted from 0) for feature 1 (counted from 0), as good)" in str(certificate)


def test_a_perfect_fit_passes_whatever_rounding_leaves():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    for k, always in ((3, []), (1, [0]), (3, [0, 1])):
        model = ht.SparseLinearRegression(n_nonzero_coefs=k, always_include=always).fit(X, X[:, 0] + 3.0)
        certificate = model.certificate()
        assert certificate.is_stationary(), (k, always, str(certificate))
        assert certificate.swap_optimal


def test_with_bounds_the_exchange_keeps_to_them():
    f = model_of(4)
    at = minimize(f, Sparsity(2, lower=0.0), IHT(), tol=1e-13, max_iter=5000)
    found = swap_certificate(f, Sparsity(2, lower=0.0), f.evaluate(at.w))
    certificate = certify_model(f, Sparsity(2, lower=0.0), at.w, at.support)
    assert not certificate.exact
    swapped = (set(at.support.indices.tolist()) - {found.removed}) | {found.added}
    assert_allclose(at.value - found.decrease, refit(f, swapped, lower=0.0), rtol=1e-6)


def box(rng, d, kind):
    """Bounds at zero from below, or two-sided ones so narrow that coefficients reach them."""
    if kind == "not negative":
        return np.stack([np.zeros(d), np.full(d, np.inf)])
    return rng.choice([0.02, 0.2], d) * np.array([[-1.0], [1.0]])


def within(f, chosen, bounds):
    """The minimiser within bounds on a support, its value, and those of all exchanges, each by SciPy."""
    X, y = (part / np.sqrt(len(f.y)) for part in (f.design.dense(), f.y))
    w = np.zeros(X.shape[1])
    w[chosen], value = least_squares(X[:, chosen], y, bounds[:, chosen])
    values = {
        (i, j): least_squares(X[:, some], y, bounds[:, some])[1]
        for i in chosen.tolist()
        for j in set(range(X.shape[1])) - set(chosen.tolist())
        for some in [[*(c for c in chosen.tolist() if c != i), j]]
    }
    return w, value, values


@pytest.mark.parametrize("kind", ["not negative", "both sides"])
@pytest.mark.parametrize("seed", range(6))
def test_the_best_exchange_within_bounds_is_found(seed, kind):
    """Of 81 exchanges, where 10 are refitted; with both sides some of the chosen coefficients are at their bounds."""
    f, rng = model_of(seed, d=30), np.random.default_rng(seed)
    bounds, d = box(rng, 30, kind), 30
    constraint = Sparsity(3, lower=bounds[0], upper=bounds[1])
    chosen = rng.permutation(d)[:3] if kind == "both sides" else minimize(f, constraint, tol=1e-12).support.indices
    chosen = np.sort(chosen)
    w, value, values = within(f, chosen, bounds)
    assert np.isin(w[chosen], bounds[:, chosen]).any() == (kind == "both sides")
    best = min(values, key=values.__getitem__)
    found = swap_certificate(f, constraint, f.evaluate(w))
    assert (found.removed, found.added) == best
    assert_allclose(found.decrease, value - values[best], rtol=1e-6, atol=1e-10)
    assert found.optimal == (values[best] >= value)
    assert found.tried == 10


def test_forbidden_exchanges_do_not_take_the_place_of_allowed_ones():
    """Twelve columns would help with a negative coefficient only, more than one that may join."""
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, 60))
    near = -second[:, None] + 0.05 * rng.standard_normal((60, 12))
    X = np.column_stack([first, near, second + 0.5 * rng.standard_normal(60)])
    f, constraint = LinearModel(X, 0.2 * first + second), Sparsity(1, lower=0.0)
    at = minimiser_on(f, [0])
    assert at.point[0] > 0
    found = swap_certificate(f, constraint, at)
    assert not found.optimal
    assert (found.removed, found.added) == (0, 13)
    assert_allclose(found.decrease, at.value - refit(f, {13}, lower=0.0), rtol=1e-6)


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
    assert "Coefficients of the chosen features fully fitted: yes" in str(certificate)


def test_a_bad_support_is_called_bad():
    f = model_of(1, noise=0.01)
    at = minimiser_on(f, [1, 2, 5])
    certificate = certify_model(f, Sparsity(3), at.point, Coordinates(np.array([1, 2, 5])), lambda j: f"gene {j}")
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
    assert "proved: no exchange of one chosen feature for another is better by more than 1e-08 of the" in str(
        certificate
    )


def test_a_point_that_is_not_fitted_to_the_end_is_called_so():
    f = model_of(1)
    w = np.zeros(9)
    w[:3] = 0.1
    certificate = certify_model(f, Sparsity(3), w, Coordinates(np.arange(3)))
    assert "Coefficients of the chosen features fully fitted: no" in str(certificate)
    assert not certificate.is_stationary()


def test_an_objective_without_columns_is_refused_by_name():
    class Bare(BaseObjective):
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
        assert "not examined" in str(certificate)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("storage", ["dense", "large", "csc"])
def test_in_float32_a_column_close_to_the_support_is_not_taken_for_a_copy(order, storage, monkeypatch):
    if storage == "large":  # so that it is converted block by block
        for limit in ("_LARGEST_COPY", "_PART_BLOCK", "_FEWEST_ROWS"):
            monkeypatch.setattr(dense, limit, 7)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6)).astype(np.float32)
    rest = rng.standard_normal(40)
    X[:, 2] = X[:, 0] + 1e-5 * rest
    X[:, 3] = X[:, 0]
    y = X[:, 0] + rest + 0.3 * X[:, 1]
    f = LinearModel(sp.csc_array(X) if storage == "csc" else np.asarray(X, order=order), y)
    w = np.zeros(6, dtype=np.float32)
    w[:2] = np.linalg.lstsq(X[:, :2], y, rcond=None)[0]
    at = f.evaluate(w)
    certificate = swap_certificate(f, Sparsity(2), at)
    assert not certificate.optimal
    assert (certificate.removed, certificate.added) == (1, 2)
    columns = X[:, [0, 2]].astype(float)
    left = y.astype(np.float32) - columns @ np.linalg.lstsq(columns, y.astype(np.float32), rcond=1e-12)[0]
    assert certificate.decrease == pytest.approx(at.value - left @ left / 80, rel=1e-5)


class SinglePrecision(LinearModel):
    """A model that cannot be had in double precision."""

    def double(self):
        return self


def test_without_double_precision_what_may_be_a_copy_is_undecided():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4)).astype(np.float32)
    X[:, 2] = X[:, 0]
    f = SinglePrecision(X, X[:, 0] + X[:, 1] + 0.1 * rng.standard_normal(40))
    w = np.zeros(4, dtype=np.float32)
    w[:2] = np.linalg.lstsq(X[:, :2], f.y, rcond=None)[0]
    certificate = swap_certificate(f, Sparsity(2), f.evaluate(w))
    assert certificate.optimal
    assert certificate.undecided == (2,)
    g = LinearModel(X, f.y)
    assert swap_certificate(g, Sparsity(2), g.evaluate(w)).undecided == ()
