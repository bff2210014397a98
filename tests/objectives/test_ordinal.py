"""The model of ordered classes against its definition, one example after the other."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from hardthresh import minimize
from hardthresh.constraints import Sparsity
from hardthresh.core import InvalidInputError, LinearObjective, MeanObjective, Status
from hardthresh.losses import Ordinal
from hardthresh.objectives import LinearModel, OrdinalModel
from hardthresh.solvers.working_set.refit_search import RefitSearch


def drawn(seed, n=60, d=4, n_classes=4):
    """Return columns, classes that all occur, weights of which some are 0, and an offset."""
    rng = np.random.default_rng(seed)
    X, o = rng.standard_normal((n, d)), 0.3 * rng.standard_normal(n)
    u = X[:, 0] + o + rng.logistic(size=n)
    y = np.searchsorted(np.quantile(u, np.arange(1, n_classes) / n_classes), u).astype(float)
    s = rng.integers(0, 3, n).astype(float)
    s[[int(np.argmax(y == c)) for c in range(n_classes)]] = 1.0
    return X, y, s, o


def slow(X, y, s, o, w, t, alpha):
    """Return f, by the probabilities of the classes."""
    total = 0.0
    for i in range(len(y)):
        below = np.concatenate([[0.0], expit(t - X[i] @ w - o[i]), [1.0]])
        total -= s[i] * np.log(np.diff(below)[int(y[i])])
    return total / s.sum() + 0.5 * alpha * w @ w


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_it_is_the_log_loss_of_the_probabilities(kind, n_classes):
    X, y, s, o = drawn(0, n_classes=n_classes)
    f = OrdinalModel(sp.csr_array(X) if kind == "sparse" else X, y, sample_weight=s, offset=o, l2=0.1)
    assert isinstance(f, LinearObjective)
    assert not isinstance(f, MeanObjective)
    rng = np.random.default_rng(1)
    point = f.null_point() + 0.1 * rng.standard_normal(f.shape)
    at, v, h = f.evaluate(point), rng.standard_normal(f.shape), 1e-5
    np.testing.assert_allclose(at.value, slow(X, y, s, o, point[:4], point[4:], 0.1), rtol=1e-12)
    for j, e in enumerate(np.eye(*f.shape)):
        slope = (f.value(point + h * e) - f.value(point - h * e)) / (2 * h)
        np.testing.assert_allclose(at.gradient[j], slope, rtol=1e-6, atol=1e-9)
    slope = (f.evaluate(point + h * v).gradient - f.evaluate(point - h * v).gradient) / (2 * h)
    H = f.hessian(at)
    np.testing.assert_allclose(f.curvature(at, v), slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(H @ v, slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(np.diag(H), f.hessian_diag(at), rtol=1e-12)
    np.testing.assert_allclose(f.curvature_along(at, v), v @ H @ v, rtol=1e-10)
    few, others = np.array([1, 4]), np.setdiff1d(np.arange(f.shape[0]), [1, 4])
    one, other = f.columns(few), f.columns(others)
    np.testing.assert_allclose(one.cross_hessian(at, other), H[np.ix_(few, others)], rtol=1e-9, atol=1e-14)


def test_the_start_predicts_the_share_of_each_class():
    X, y, s, _ = drawn(2)
    f = OrdinalModel(X, y, sample_weight=s)
    start = f.evaluate(f.null_point())
    shares = np.bincount(y.astype(int), weights=s) / s.sum()
    np.testing.assert_allclose(start.value, -shares @ np.log(shares), rtol=1e-12)
    np.testing.assert_allclose(start.gradient[4:], 0.0, atol=1e-14)


def test_two_classes_are_logistic_regression():
    X, y, s, o = drawn(3, n_classes=2)
    one = OrdinalModel(X, y, sample_weight=s, offset=o, l2=0.01)
    design = np.column_stack([X, np.ones(60)])
    other = LinearModel(design, y, "logistic", sample_weight=s, offset=o, l2=np.array([0.01] * 4 + [0.0]))
    ours, theirs = (minimize(f, Sparsity(2, free=(4,))) for f in (one, other))
    np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-10)
    np.testing.assert_allclose(ours.w, theirs.w * [1, 1, 1, 1, -1], atol=1e-8)


def test_thresholds_out_of_order_are_infinitely_bad_and_no_run_ends_there():
    X, y, s, _ = drawn(4)
    f = OrdinalModel(X, y, sample_weight=s)
    assert f.value(np.zeros(f.shape)) == np.inf
    assert f.value(-f.null_point()) == np.inf
    assert np.isfinite(f.evaluate(np.zeros(f.shape)).gradient).all()
    start = np.concatenate([[3.0, -3.0, 3.0, -3.0], f.null_point()[4:]])
    found = minimize(f, Sparsity(2, free=(4, 5, 6)), w0=start)
    assert found.converged
    assert np.all(np.diff(found.w[4:]) > 0)


def test_a_search_by_refits_starts_in_order():
    X, y, s, _ = drawn(4)
    f = OrdinalModel(X, y, sample_weight=s)
    found = RefitSearch(f, np.array([4, 5, 6]), 1e-9).fit((0, 4, 5, 6))
    np.testing.assert_allclose(found.value, minimize(f, Sparsity(0, free=(0, 4, 5, 6))).value, rtol=1e-5)


def test_a_rare_class_between_others_has_narrow_thresholds():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((3000, 6))
    y = (X[:, 2] + rng.logistic(size=3000) > 0) * 2.0
    y[0] = 1.0
    found = minimize(OrdinalModel(X, y), Sparsity(1, free=(6, 7)))
    assert found.converged
    assert 0 < np.diff(found.w[6:])[0] < 0.02


@pytest.mark.parametrize("size", [700.0, 1e5])
def test_extreme_predictions_are_finite(size):
    y = np.array([0.0, 1.0, 2.0, 1.0])
    mean = Ordinal().prepare(y, np.full(4, 0.25))
    u = size * np.array([1.0, -1.0, -1.0, 1.0])
    t = np.array([-1.0, 2.0])
    v = np.concatenate([np.append(t, 0.0)[y.astype(int)] - u, np.append(0.0, t)[y.astype(int)] - u])
    value, slopes = mean.value_and_slopes(v)
    np.testing.assert_allclose(value, size, rtol=1e-2)
    assert np.isfinite(slopes).all()
    assert np.isfinite(mean.inner_hessian(v).diagonal).all()


def test_separated_classes_have_no_minimiser_and_a_ridge_gives_them_one():
    X, _, _, _ = drawn(6, n=40)
    y = np.searchsorted([-0.5, 0.5], X[:, 2]).astype(float)
    found = minimize(OrdinalModel(X, y), Sparsity(1, free=(4, 5)))
    assert found.status is Status.NO_MINIMISER
    assert minimize(OrdinalModel(X, y, l2=1e-3), Sparsity(1, free=(4, 5))).converged
    y[np.argmax(X[:, 2])] = 0.0
    assert minimize(OrdinalModel(X, y), Sparsity(0, free=(2, 4, 5))).converged


def test_targets_that_are_refused():
    X = np.ones((3, 1))
    for y, said in (
        ([0.0, 1.5, 2.0], r"y\[1\] is 1.5"),
        ([0.0, -1.0, 1.0], r"y\[1\] is -1.0"),
        ([0.0, 2.0, 2.0], "class 1 has no examples"),
        ([0.0, 0.0, 0.0], "one class only"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            OrdinalModel(X, np.array(y))
    with pytest.raises(InvalidInputError, match="class 2 has no examples of positive weight"):
        OrdinalModel(X, np.array([0.0, 1.0, 2.0]), sample_weight=[1.0, 1.0, 0.0])
    with pytest.raises(InvalidInputError, match="use OrdinalModel"):
        LinearModel(X, np.array([0.0, 1.0, 2.0]), "ordinal")


def test_a_loss_of_another_number_of_classes_is_refused():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2)), np.arange(30) % 3 * 1.0
    f = OrdinalModel(X, y)
    assert f.with_loss(Ordinal(3)).value(f.null_point()) == f.value(f.null_point())
    for wrong in (Ordinal(5), Ordinal(2)):
        with pytest.raises(InvalidInputError, match=f"y has 3 classes, and the loss {wrong.n_classes}"):
            f.with_loss(wrong)
    with pytest.raises(InvalidInputError, match="has the Ordinal loss, not Logistic"):
        f.with_loss("logistic")
