"""Cox's partial likelihood against its definition, one risk set after the other."""

import numpy as np
import pytest
from cases import OTHER_LIBRARIES, back, convert

from hardthresh import minimize
from hardthresh.constraints import Sparsity
from hardthresh.core import InvalidInputError, MeanObjective, Status
from hardthresh.losses import Cox
from hardthresh.objectives import LinearModel, MultiOutputModel

TIES = ("breslow", "efron")
every = pytest.mark.parametrize("ties", TIES)


def slow(y, X, w, omega, ties):
    """Return the loss, its gradient and its Hessian, by a loop over strata, event times and tied deaths."""
    u, f, g, H = X @ w, 0.0, np.zeros(w.size), np.zeros((w.size, w.size))
    time, event = y[:, 0], y[:, 1] > 0
    stratum = y[:, 2] if y.shape[1] == 3 else np.zeros(len(y))
    r = omega * np.exp(u)
    for label in np.unique(stratum):
        own = stratum == label
        for moment in np.unique(time[own & event & (omega > 0)]):
            risk, dead = own & (time >= moment), own & event & (time == moment) & (omega > 0)
            m = int(dead.sum())
            f, g = f - omega[dead] @ u[dead], g - omega[dead] @ X[dead]
            for step in range(m):
                share = r * risk - (step / m if ties == "efron" else 0.0) * r * dead
                mean, weight = share @ X / share.sum(), omega[dead].sum() / m
                f, g = f + weight * np.log(share.sum()), g + weight * mean
                H += weight * ((X.T * share) @ X / share.sum() - np.outer(mean, mean))
    return f, g, H


def drawn(seed, n=80, d=5, tied=True, strata=0, weighted=True):
    """Return columns, targets and weights, some of which are 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    time = rng.exponential(np.exp(-X[:, 0]))
    y = [np.ceil(3 * time) if tied else time, (rng.uniform(size=n) < 0.6).astype(float)]
    y += [rng.integers(0, strata, n)] if strata else []
    return X, np.column_stack(y), rng.integers(0, 3, n).astype(float) if weighted else np.ones(n)


@every
@pytest.mark.parametrize("strata", [0, 1, 7, 60])
@pytest.mark.parametrize("tied", [False, True])
def test_it_is_the_sum_over_risk_sets(ties, tied, strata):
    for seed in range(3):
        X, y, s = drawn(seed, tied=tied, strata=strata)
        w = np.random.default_rng(seed).standard_normal(5)
        f = LinearModel(X, y, Cox(ties), sample_weight=s)
        value, gradient, hessian = slow(y, X, w, s / s.sum(), ties)
        at, v = f.evaluate(w), np.arange(5.0)
        np.testing.assert_allclose(at.value, value, rtol=1e-12)
        np.testing.assert_allclose(at.gradient, gradient, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(f.hessian(at), hessian, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(f.hessian_diag(at), np.diag(hessian), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(f.curvature(at, v), hessian @ v, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(f.curvature_along(at, v), v @ hessian @ v, rtol=1e-9)
        few, others = f.columns(np.array([0, 3])), f.columns(np.array([1, 2, 4]))
        here = few.evaluate(w[[0, 3]], at.prediction)
        np.testing.assert_allclose(
            few.cross_hessian(here, others), hessian[[0, 3]][:, [1, 2, 4]], rtol=1e-8, atol=1e-12
        )
        assert value >= f.lower_bound


def test_a_weight_is_a_repetition_under_breslow():
    X, y, s = drawn(0)
    repeated = np.repeat(np.arange(80), s.astype(int))
    one, other = LinearModel(X, y, Cox(), sample_weight=s), LinearModel(X[repeated], y[repeated], Cox())
    w = np.random.default_rng(1).standard_normal(5)
    np.testing.assert_allclose(one.value(w), other.value(w), rtol=1e-13)
    np.testing.assert_allclose(minimize(one, Sparsity(3)).w, minimize(other, Sparsity(3)).w, rtol=1e-7)


@every
def test_rows_without_weight_change_nothing(ties):
    X, y, s = drawn(2, strata=3)
    one = LinearModel(X, y, Cox(ties), sample_weight=s)
    other = LinearModel(X[s > 0], y[s > 0], Cox(ties), sample_weight=s[s > 0])
    w = np.arange(5.0)
    assert one.value(w) == other.value(w)
    np.testing.assert_array_equal(one.loss.prepare(one.y, one.weights).slopes(X @ w)[s == 0], 0.0)


def test_without_ties_both_treatments_are_one():
    X, y, s = drawn(3, tied=False)
    w = np.arange(5.0) / 5
    one, other = (LinearModel(X, y, Cox(ties), sample_weight=s).evaluate(w) for ties in TIES)
    np.testing.assert_allclose(one.value, other.value, rtol=1e-12)
    np.testing.assert_allclose(one.gradient, other.gradient, rtol=1e-12, atol=1e-14)


@every
def test_only_the_order_of_times_counts(ties):
    X, y, s = drawn(4)
    w = np.arange(5.0) / 5
    at = LinearModel(X, y, Cox(ties), sample_weight=s).evaluate(w)
    for times in (np.exp(y[:, 0] / 3), y[:, 0] - 100.0, 1000.0 * y[:, 0], y[:, 0] ** 3):
        other = LinearModel(X, np.column_stack([times, y[:, 1]]), Cox(ties), sample_weight=s).evaluate(w)
        assert other.value == at.value
        np.testing.assert_array_equal(other.gradient, at.gradient)


@every
def test_one_stratum_is_none_and_strata_are_sums(ties):
    X, y, _ = drawn(5, weighted=False)
    w, label = np.arange(5.0) / 5, np.arange(80) % 3
    whole = LinearModel(X, y, Cox(ties))
    assert LinearModel(X, np.column_stack([y, np.full(80, 7.0)]), Cox(ties)).value(w) == whole.value(w)
    parts = sum(LinearModel(X[label == i], y[label == i], Cox(ties)).value(w) * np.mean(label == i) for i in range(3))
    entropy = sum(np.mean(label == i) * np.log(np.mean(label == i)) * np.mean(y[label == i, 1]) for i in range(3))
    stratified = LinearModel(X, np.column_stack([y, label]), Cox(ties)).value(w)
    np.testing.assert_allclose(stratified, parts + entropy, rtol=1e-12)


@every
@pytest.mark.parametrize("size", [30.0, 700.0, 1e5])
def test_late_risk_sets_keep_their_digits(ties, size):
    """Rows that are e^-700 times others are all that is left of late risk sets."""
    n = 600
    event = (np.arange(n) % 3 > 0).astype(float)
    X = np.linspace(1.0, 0.0, n)[:, None] ** 2
    y = np.column_stack([np.ceil(np.arange(1.0, n + 1) / 2), event])
    mean = Cox(ties).prepare(y, np.full(n, 1 / n))
    for u in (size * X[:, 0], -size * X[:, 0]):
        value, slopes = mean.value_and_slopes(u)
        inner = mean.inner_hessian(u)
        logs = []
        for moment in np.unique(y[event > 0, 0]):
            dead = (event > 0) & (y[:, 0] == moment)
            rest = (y[:, 0] >= moment) & ~dead
            for step in range(dead.sum()):
                share = step / dead.sum() if ties == "efron" else 0.0
                terms = np.concatenate([u[rest], u[dead] + np.log1p(-share)])
                logs.append(np.logaddexp.reduce(terms))
        expected = (np.sum(logs) - event @ u) / n - np.mean(event) * np.log(n)
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
        assert np.isfinite(slopes).all()
        np.testing.assert_allclose(slopes.sum(), 0.0, atol=1e-12)
        image = inner.image(X)
        within = inner.diagonal @ X[:, 0] ** 2
        assert -1e-12 <= within - image[:, 0] @ image[:, 0] <= within
        np.testing.assert_allclose(inner.along(X[:, 0]), within - image[:, 0] @ image[:, 0], atol=1e-12)
        h = 1e-4
        rise = (mean.slopes(u + h * X[:, 0]) - mean.slopes(u - h * X[:, 0])) / (2 * h)
        np.testing.assert_allclose(inner.times(X[:, 0]), rise, rtol=1e-5, atol=1e-7)


@every
def test_a_monotone_likelihood_has_no_minimiser_and_a_ridge_gives_it_one(ties):
    X, y, _ = drawn(6, tied=False, weighted=False)
    X[:, 2] = -y[:, 0]  # the earliest event always has the largest prediction
    found = minimize(LinearModel(X, y, Cox(ties)), Sparsity(1))
    assert found.support.indices.tolist() == [2]
    assert found.status is Status.NO_MINIMISER
    assert minimize(LinearModel(X, y, Cox(ties), l2=1e-3), Sparsity(1)).converged


@every
def test_an_order_that_one_row_breaks_has_a_minimiser(ties):
    X, y, _ = drawn(6, tied=False, weighted=False)
    X[:, 2] = -y[:, 0]
    late = int(np.argmax(y[:, 0]))
    X[late, 2] = 0.0  # nobody who lives on may have a larger prediction
    assert minimize(LinearModel(X, y, Cox(ties)), Sparsity(1, free=(2,))).converged


def test_tied_deaths_must_be_equal_for_a_likelihood_to_be_monotone():
    y = np.array([[1.0, 1.0], [1.0, 1.0], [2.0, 0.0], [3.0, 0.0]])
    for tied, status in ((1.0, Status.NO_MINIMISER), (0.5, Status.SETTLED)):
        for ties in TIES:
            f = LinearModel(np.array([[1.0], [tied], [0.0], [0.0]]), y, Cox(ties))
            found = minimize(f, Sparsity(1))
            assert found.status is status
            move = f.recession(f.evaluate(np.zeros(1)), np.array([0]))
            assert (move is None) == (status is Status.SETTLED)


def test_targets_that_are_refused():
    X = np.ones((3, 1))
    for y, said in (
        ([1.0, 2.0, 3.0], "y has shape"),
        ([[1.0], [2.0], [3.0]], "y has shape"),
        ([[1.0, 1.0], [2.0, 2.0], [3.0, 0.0]], r"y\[1\] is \[2.0, 2.0\]"),
        ([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], "there is no event"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            LinearModel(X, np.array(y), Cox())
    with pytest.raises(InvalidInputError, match="no event among the rows of positive weight"):
        LinearModel(X, np.array([[1.0, 1.0], [2.0, 0.0], [3.0, 0.0]]), Cox(), sample_weight=[0.0, 1.0, 1.0])
    with pytest.raises(InvalidInputError, match="ties"):
        Cox("exact")
    with pytest.raises(InvalidInputError, match="no sum over examples; use LinearModel"):
        MultiOutputModel(X, np.ones((3, 2)), "cox")


def test_a_time_that_is_not_finite_is_named_with_its_row_and_value():
    times = np.array([1.0, np.inf, -np.inf])
    with pytest.raises(InvalidInputError, match=r"that of row 1 \(counted from 0\) is inf"):
        Cox().check_domain(times)
    with pytest.raises(InvalidInputError, match=r"that of row 2 \(counted from 0\) is -inf"):
        Cox().check_domain(times, np.array([True, False, True]))
    Cox().check_domain(times, np.array([True, False, False]))


def test_there_are_no_mini_batches():
    X, y, _ = drawn(0)
    assert not isinstance(LinearModel(X, y, "cox"), MeanObjective)


@every
@pytest.mark.parametrize("library", [*OTHER_LIBRARIES, "float32"])
def test_other_libraries_and_precisions_agree(ties, library):
    X, y, _ = drawn(7, strata=2, weighted=False)
    w = np.arange(5.0) / 5
    plain = LinearModel(X, y, Cox(ties))
    expected, single = plain.evaluate(w), library == "float32"
    arrays = [a.astype(np.float32) if single else convert(a, library) for a in (X, y, w)]
    f = LinearModel(arrays[0], arrays[1], Cox(ties))
    at = f.evaluate(arrays[2])
    tolerance = 1e-5 if single else 1e-12
    np.testing.assert_allclose(at.value, expected.value, rtol=tolerance)
    assert type(at.gradient) is type(arrays[2])
    np.testing.assert_allclose(back(at.gradient), expected.gradient, rtol=1e-3 if single else 1e-10, atol=tolerance)
    np.testing.assert_allclose(back(f.hessian(at)), plain.hessian(expected), rtol=1e-3 if single else 1e-9, atol=1e-5)
    if single:
        assert at.gradient.dtype == np.float32


@every
def test_criteria_count_events(ties):
    X, y, s = drawn(8)
    f = LinearModel(X, y, Cox(ties), sample_weight=s)
    at = f.evaluate(np.arange(5.0) / 5)
    np.testing.assert_allclose(f.n_targets, s @ y[:, 1])
    np.testing.assert_allclose(f.minus_twice_log_likelihood(at), 2 * s.sum() * at.value, rtol=1e-12)
