"""Reduced-rank regression: the closed form is the global minimum, and irrelevant choices do not change it."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import check_scoring, mean_squared_error
from sklearn.model_selection import KFold

import hardthresh as ht
from hardthresh.constraints import Rank
from hardthresh.core.errors import CriterionWarning, InvalidInputError, SearchRangeWarning
from hardthresh.core.result import History
from hardthresh.estimators import LowRankRegression, LowRankRegressionCV
from hardthresh.estimators.low_rank import reduced_rank
from hardthresh.objectives import MultiOutputModel
from hardthresh.solvers import IHT, HardThresholdingPursuit
from levels import at_most, in_turn

SHAPES = {"tall": (60, 8, 5), "wide": (20, 40, 6), "many outputs": (50, 6, 30), "very tall": (500, 7, 5)}
STORAGES = {"dense": np.asarray, "F": np.asfortranarray, "csc": sp.csc_array, "csr": sp.csr_array}


def data(n=60, p=8, q=5, seed=0, rank=2, noise=0.5):
    """Correlated columns of unequal scales with some zeros; outputs that depend on them through a few directions."""
    rng = np.random.default_rng((seed, n, p, q))
    X = (rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))) * (rng.random((n, p)) < 0.8)
    X = X * np.linspace(0.5, 3.0, p)
    W = rng.standard_normal((p, rank)) @ rng.standard_normal((rank, q))
    return X, X @ W + noise * rng.standard_normal((n, q)) + np.arange(q)


def value(model, X, Y, weight=None, alpha=0.0, scale=1.0):
    """The objective at a fitted model, written out."""
    weight = np.ones(len(X)) if weight is None else weight
    residual = Y - X @ model.coef_.T - model.intercept_
    ridge = np.sum((model.coef_ * scale) ** 2)
    return np.sum(weight * np.sum(residual**2, axis=1)) / (2 * weight.sum()) + alpha / 2 * ridge


def deviation(X, weight=None, centred=True):
    weight = np.ones(len(X)) if weight is None else weight
    mean = np.average(X, axis=0, weights=weight) if centred else 0.0
    return np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))


def objective_of(X, Y, weight, alpha, scaled):
    """Hardthresh's own objective of the same problem, and the scale of its columns."""
    weight = np.ones(len(X)) if weight is None else weight
    scale = deviation(X, weight) if scaled else np.ones(X.shape[1])
    X = (X - np.average(X, axis=0, weights=weight)) / scale
    Y = Y - np.average(Y, axis=0, weights=weight)
    return MultiOutputModel(X, Y, sample_weight=weight, l2=alpha)


def alternate(f, rank, rng, rounds=200):
    """Alternating least squares from a random start: W = L R', each in turn the best for the other."""
    X, Y, omega = f.design.dense(), f.Y, f.weights[:, None]
    H, C = X.T @ (omega * X) + f.l2 * np.eye(X.shape[1]), X.T @ (omega * Y)
    R = np.linalg.qr(rng.standard_normal((Y.shape[1], rank)))[0]
    for _ in range(rounds):
        L = np.linalg.lstsq(H, C @ R, rcond=None)[0]
        R = np.linalg.qr(C.T @ L)[0]  # the best orthonormal R, up to a turn that the next L undoes
    return f.value(np.linalg.lstsq(H, C @ R, rcond=None)[0] @ R.T)


# --- the global minimum ----------------------------------------------------------------------------------------------


@at_most(2)
@in_turn("shape,scaled,alpha,weighted", list(SHAPES), [True, False], [0.0, 0.3], [False, True])
def test_the_closed_form_is_the_global_minimum(shape, scaled, alpha, weighted):
    n, p, q = SHAPES[shape]
    X, Y = data(n, p, q, noise=2.0)
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.2, 2.0, n) if weighted else None
    model = LowRankRegression(rank=2, alpha=alpha, standardize=scaled).fit(X, Y, sample_weight=weight)
    f = objective_of(X, Y, weight, alpha, scaled)
    scale = deviation(X, weight) if scaled else 1.0
    assert_allclose(model.objective_, value(model, X, Y, weight, alpha, scale), rtol=1e-9)
    assert_allclose(f.value((model.coef_ * scale).T), model.objective_, rtol=1e-9)
    others = [alternate(f, 2, rng) for _ in range(5)]
    others += [ht.minimize(f, Rank(2), solver, max_iter=300).value for solver in (HardThresholdingPursuit(), IHT())]
    slack = 1e-9 * f.value(f.zeros())
    assert model.objective_ <= min(others) + slack
    assert min(others) <= model.objective_ * (1 + 1e-4) + slack, "the search of this test finds it, too"


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("shape", SHAPES)
def test_full_rank_is_least_squares(shape, storage, intercept, alpha):
    n, p, q = SHAPES[shape]
    X, Y = data(n, p, q)
    settings = {"fit_intercept": intercept, "standardize": False}
    model = LowRankRegression(rank=min(p, q), alpha=alpha, **settings).fit(STORAGES[storage](X), Y)
    other = Ridge(alpha=alpha * n, fit_intercept=intercept) if alpha else LinearRegression(fit_intercept=intercept)
    other.fit(X, Y)
    assert_allclose(model.coef_, other.coef_, rtol=1e-6, atol=1e-8)
    assert_allclose(model.intercept_, other.intercept_, rtol=1e-6, atol=1e-8)
    assert_allclose(model.predict(X), other.predict(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_every_storage_gives_one_answer(shape, storage, rank):
    X, Y = data(*SHAPES[shape])
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(X))
    here = LowRankRegression(rank=rank, alpha=0.1).fit(X, Y, sample_weight=weight)
    there = LowRankRegression(rank=rank, alpha=0.1).fit(STORAGES[storage](X), Y, sample_weight=weight)
    assert_allclose(there.coef_, here.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(there.intercept_, here.intercept_, rtol=1e-8)
    assert_allclose(there.objective_, here.objective_, rtol=1e-10)
    assert_allclose(there.predict(STORAGES[storage](X)), here.predict(X), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_sparse_data_are_never_made_dense(shape, monkeypatch):
    X, Y = data(*SHAPES[shape])
    X = sp.csr_array(X)
    toarray = sp.csc_array.toarray

    def watched(A, *args, **kwargs):
        assert max(A.shape) <= min(X.shape), f"a {A.shape} matrix was made dense"
        return toarray(A, *args, **kwargs)

    for kind in (sp.csc_array, sp.csr_array):
        monkeypatch.setattr(kind, "toarray", watched)
        monkeypatch.setattr(kind, "todense", watched)
    model = LowRankRegression(rank=2).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert model.transform(X).shape == (X.shape[0], 2)


def test_rows_in_blocks_are_all_the_rows(monkeypatch):
    X, Y = data(500, 7, 5)
    blocks = LowRankRegression(rank=2).fit(X, Y)
    calls = []
    svd = np.linalg.svd
    monkeypatch.setattr(reduced_rank.np.linalg, "svd", lambda A, **kw: calls.append(A.shape) or svd(A, **kw))
    LowRankRegression(rank=2).fit(X, Y)
    assert calls[0] == (12, 7), "the decomposition is that of a triangle"
    whole = LowRankRegression(rank=2).fit(sp.csc_array(X), Y)
    assert_allclose(blocks.coef_, whole.coef_, rtol=1e-9, atol=1e-12)


def test_an_exact_matrix_of_low_rank_is_found():
    X, Y = data(noise=0.0)
    model = LowRankRegression(rank=5).fit(X, Y)
    assert model.rank_ == 2, "what is rounding brings no direction in"
    assert_allclose(model.predict(X), Y, rtol=1e-9, atol=1e-9)
    assert 0.0 <= model.objective_ <= 1e-20


def test_more_columns_than_rows_have_the_answer_of_least_norm():
    X, Y = data(15, 40, 4)
    model = LowRankRegression(rank=2, standardize=False).fit(X, Y)
    nearly = LowRankRegression(rank=2, standardize=False, alpha=1e-9).fit(X, Y)
    assert_allclose(model.coef_, nearly.coef_, rtol=1e-3, atol=1e-4 * np.abs(model.coef_).max())
    centred = X - X.mean(axis=0)
    outside = model.coef_.T - np.linalg.pinv(centred) @ (centred @ model.coef_.T)
    assert_allclose(outside, 0, atol=1e-10)


def test_duplicate_columns_share_their_weight():
    X, Y = data()
    once, twice = (LowRankRegression(rank=2).fit(A, Y) for A in (X, np.hstack([X, X])))
    assert_allclose(twice.coef_[:, :8], once.coef_ / 2, rtol=1e-8, atol=1e-12)
    assert_allclose(twice.coef_[:, 8:], once.coef_ / 2, rtol=1e-8, atol=1e-12)
    sparse = LowRankRegression(rank=2).fit(sp.csc_array(np.hstack([X, X])), Y)
    assert_allclose(sparse.coef_, twice.coef_, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("solver", ["pursuit", "iht", HardThresholdingPursuit()])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_a_given_solver_finds_it_too(solver, storage):
    X, Y = data(noise=0.3)
    best = LowRankRegression(rank=2, alpha=0.1).fit(X, Y)
    model = LowRankRegression(rank=2, alpha=0.1, solver=solver).fit(STORAGES[storage](X), Y)
    assert model.converged_
    assert model.n_iter_ > 1
    assert "closed form" not in model.stop_reason_
    assert best.objective_ <= model.objective_ * (1 + 1e-12)
    assert_allclose(model.coef_, best.coef_, rtol=1e-2, atol=1e-3)
    assert_allclose(model.objective_, best.objective_, rtol=1e-5)


def test_an_unfinished_run_is_told():
    X, Y = data()
    with pytest.warns(ConvergenceWarning, match="LowRankRegression: .*the limit of iterations was reached"):
        model = LowRankRegression(rank=2, solver="iht", max_iter=1).fit(X, Y)
    assert not model.converged_


# --- what is told ----------------------------------------------------------------------------------------------------


def test_the_factors_make_the_coefficients():
    X, Y = data()
    model = LowRankRegression(rank=3).fit(X, Y)
    assert (model.U_.shape, model.V_.shape, model.singular_values_.shape) == ((8, 3), (5, 3), (3,))
    assert_allclose(model.U_.T @ model.U_, np.eye(3), atol=1e-12)
    assert_allclose(model.V_.T @ model.V_, np.eye(3), atol=1e-12)
    assert np.all(np.diff(model.singular_values_) < 0)
    assert np.all(model.V_[np.argmax(np.abs(model.V_), axis=0), range(3)] > 0)
    assert_allclose(model.coef_, model.V_ @ np.diag(model.singular_values_) @ model.U_.T, atol=1e-12)
    assert_allclose(np.linalg.svd(model.coef_)[1][:3], model.singular_values_, rtol=1e-9)
    assert_allclose(model.predict(X), X @ model.coef_.T + model.intercept_, rtol=1e-9)
    assert_allclose(model.transform(X), X @ model.U_, rtol=1e-12)
    assert_array_equal(model.get_feature_names_out(), [f"lowrankregression{j}" for j in range(3)])
    assert (model.n_iter_, model.converged_, model.rank_) == (1, True, 3)
    assert "global minimum" in model.stop_reason_
    assert 0.5 < model.score(X, Y) < 1.0


def units_of(p, spread=6):
    return np.where(np.arange(p) % 2, -1.0, 1.0) * 10.0 ** np.linspace(-spread, spread, p)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [2, 5, 8])
@pytest.mark.parametrize("solver", ["auto", "pursuit"])
@pytest.mark.parametrize("cls", [LowRankRegression, LowRankRegressionCV])
def test_the_factors_are_orthonormal_whatever_the_units(cls, solver, rank):
    X, Y = data(q=8, rank=8)
    ranks = rank if cls is LowRankRegression else [rank]
    here, there = (cls(rank=ranks, solver=solver).fit(A, Y) for A in (X, X * units_of(8)))
    assert there.rank_ == rank
    assert_allclose(there.U_.T @ there.U_, np.eye(rank), atol=1e-12)
    assert_allclose(there.V_.T @ there.V_, np.eye(rank), atol=1e-12)
    assert np.all(np.diff(there.singular_values_) < 0)
    assert np.all(there.singular_values_ > 0)
    if solver == "auto":  # a search takes other steps where rounding differs
        size = np.linalg.norm(here.coef_, axis=0)
        assert_allclose(there.coef_ * units_of(8) / size, here.coef_ / size, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spread", [0, 6, 12])
@pytest.mark.parametrize("shape", [(12, 9, 9), (9, 12, 9), (40, 30, 4), (5, 5, 1), (6, 4, 0)])
def test_turning_the_factors_keeps_the_matrix_row_by_row(shape, spread, dtype):
    p, q, r = shape
    rng = np.random.default_rng(shape)
    left = rng.standard_normal((p, r)) * units_of(p, spread)[:, None]
    right = np.linalg.qr(rng.standard_normal((q, r)))[0].astype(dtype)
    U, s, V = reduced_rank._orthonormal(left, right)
    size = np.linalg.norm(left, axis=1, keepdims=True) + (r == 0)
    assert_allclose((U * s) @ V.T / size, left @ right.T / size, atol=1e-12)
    assert_allclose(U.T @ U, np.eye(r), atol=1e-12)
    assert_allclose(V.T @ V, np.eye(r), atol=1e-12 if dtype == np.float64 else 1e-6)
    assert np.all(np.diff(s) <= 0)


@pytest.mark.slow
@at_most(3)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("cls", [LowRankRegression, LowRankRegressionCV])
def test_a_fit_tells_its_history(cls, storage):
    X, Y = data()
    table = STORAGES[storage](X)
    for solver in ("auto", "pursuit", IHT()):
        model = cls(rank=[2] if cls is LowRankRegressionCV else 2, alpha=0.1, solver=solver).fit(table, Y)
        assert isinstance(model.history_, History)
        values = model.history_["value"]
        assert values.size == model.n_iter_ + 1
        assert np.all(np.diff(values) <= 0)
        assert_allclose(values[0], np.sum(Y.var(axis=0)) / 2, rtol=1e-12, err_msg="it starts from the mean")
        assert_allclose(values[-1], model.objective_, rtol=1e-12)
        assert ("passes" in model.history_) == (solver != "auto"), "the closed form is no run"


def test_alpha_none_means_without_a_ridge():
    X, Y = data()
    none, zero = (LowRankRegression(rank=2, alpha=alpha).fit(X, Y) for alpha in (None, 0.0))
    assert_array_equal(none.coef_, zero.coef_)


def test_predictions_never_form_the_matrix(monkeypatch):
    X, Y = data()
    model = LowRankRegression(rank=2).fit(X, Y)
    monkeypatch.setattr(LowRankRegression, "coef_", property(lambda self: pytest.fail("coef_ was formed")))
    model.predict(X)
    model.score(X, Y)
    model.transform(X)


@pytest.mark.parametrize("cls", [LowRankRegression, LowRankRegressionCV])
def test_one_output_may_be_a_vector(cls):
    X, Y = data()
    vector, column = cls(rank=1).fit(X, Y[:, 0]), cls(rank=1).fit(X, Y[:, :1])
    assert isinstance(vector.intercept_, float)
    assert vector.coef_.shape == (8,)
    assert vector.predict(X).shape == (60,)
    assert (column.intercept_.shape, column.coef_.shape, column.predict(X).shape) == ((1,), (1, 8), (60, 1))
    assert_array_equal(vector.predict(X), column.predict(X)[:, 0])
    assert_allclose(vector.coef_, LinearRegression().fit(X, Y[:, 0]).coef_, rtol=1e-9)


def test_the_default_rank_is_a_tenth():
    X, Y = data(100, 25, 21)
    assert LowRankRegression().fit(X, Y).rank_ == 3
    assert LowRankRegression().fit(X, Y[:, :4]).rank_ == 1


def test_rank_0_is_the_mean():
    X, Y = data()
    model = LowRankRegression(rank=0).fit(X, Y)
    assert model.rank_ == 0
    assert_allclose(model.predict(X[:3]), np.tile(Y.mean(axis=0), (3, 1)), rtol=1e-12)
    assert_array_equal(model.coef_, np.zeros((5, 8)))
    assert model.transform(X).shape == (60, 0)


@pytest.mark.parametrize("solver", ["auto", "pursuit"])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("shape", SHAPES)
def test_float32_stays_float32(shape, storage, solver):
    X, Y = data(*SHAPES[shape])
    double = LowRankRegression(rank=2, alpha=0.1).fit(X, Y)
    X = STORAGES[storage](X.astype(np.float32))
    model = LowRankRegression(rank=2, alpha=0.1, solver=solver).fit(X, Y)
    for name in ("U_", "V_", "singular_values_", "intercept_", "coef_"):
        assert getattr(model, name).dtype == np.float32, name
    assert model.predict(X).dtype == model.transform(X).dtype == np.float32
    if solver == "auto":
        assert_allclose(model.coef_, double.coef_, rtol=1e-3, atol=1e-3 * np.abs(double.coef_).max())


def test_data_frames_give_their_names():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = data()
    frame = pandas.DataFrame(X, columns=[f"gene{j}" for j in range(8)])
    model = LowRankRegression(rank=2).fit(frame, pandas.DataFrame(Y))
    assert_array_equal(model.feature_names_in_, frame.columns)
    assert_allclose(model.predict(frame), LowRankRegression(rank=2).fit(X, Y).predict(X), rtol=1e-9)


@pytest.mark.parametrize("make", [LowRankRegression, LowRankRegressionCV])
def test_models_travel(make, tmp_path):
    X, Y = data()
    model = make(rank=2).fit(X, Y)
    ht.save(model, tmp_path / "model.json")
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), ht.load(tmp_path / "model.json")):
        assert_array_equal(again.predict(X), model.predict(X))
        assert_array_equal(again.coef_, model.coef_)
        assert_array_equal(again.history_["value"], model.history_["value"])
        assert_array_equal(again.get_feature_names_out(), model.get_feature_names_out())


def test_an_unfitted_model_says_so():
    X, _ = data()
    model = LowRankRegression()
    for method in (model.predict, model.transform):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            method(X)
    with pytest.raises(AttributeError, match="no coef_ before it is fitted"):
        _ = model.coef_


def test_data_are_not_changed():
    X, Y = data()
    before = X.copy(), Y.copy()
    LowRankRegression(rank=2).fit(X, Y)
    LowRankRegressionCV(rank=2).fit(X, Y)
    assert_array_equal(X, before[0])
    assert_array_equal(Y, before[1])


# --- what does not matter --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.2])
@pytest.mark.parametrize("shape", ["tall", "wide", "very tall"])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_a_weight_is_a_repetition(shape, storage, alpha):
    n, p, q = SHAPES[shape]
    X, Y = data(n, p, q)
    weight = np.random.default_rng(0).integers(0, 4, n)
    here = LowRankRegression(rank=2, alpha=alpha).fit(STORAGES[storage](X), Y, sample_weight=weight)
    repeated = STORAGES[storage](np.repeat(X, weight, axis=0))
    there = LowRankRegression(rank=2, alpha=alpha).fit(repeated, np.repeat(Y, weight, axis=0))
    assert_allclose(here.coef_, there.coef_, rtol=1e-6, atol=1e-8)
    assert_allclose(here.intercept_, there.intercept_, rtol=1e-6)
    assert_allclose(here.objective_, there.objective_, rtol=1e-9, atol=1e-20)
    scaled = LowRankRegression(rank=2, alpha=alpha).fit(STORAGES[storage](X), Y, sample_weight=1e6 * weight)
    assert_allclose(scaled.coef_, here.coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("cls", [LowRankRegression, LowRankRegressionCV])
@pytest.mark.parametrize("storage", ["dense", "csc"])
def test_a_row_of_weight_zero_is_absent(cls, storage):
    X, Y = data()
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, 60).astype(float)
    X[weight == 0] *= 1e6
    Y[weight == 0] *= -1e6
    kept = weight > 0
    here = cls(rank=2).fit(STORAGES[storage](X), Y, sample_weight=weight)
    there = cls(rank=2).fit(STORAGES[storage](X[kept]), Y[kept], sample_weight=weight[kept])
    for name in ("U_", "V_", "singular_values_", "intercept_", "objective_", "scores_"):
        if hasattr(there, name):
            assert_array_equal(getattr(here, name), getattr(there, name), err_msg=name)


@pytest.mark.parametrize("alpha", [0.0, 0.2])
@pytest.mark.parametrize("intercept", [True, False])
def test_units_of_columns_change_only_their_coefficients(alpha, intercept):
    X, Y = data()
    units = units_of(8)
    settings = {"rank": 2, "alpha": alpha, "fit_intercept": intercept}
    here, there = (LowRankRegression(**settings).fit(A, Y) for A in (X, X * units))
    assert_allclose(there.coef_ * units, here.coef_, rtol=1e-7, atol=1e-12)
    assert_allclose(there.predict(X * units), here.predict(X), rtol=1e-7)


@pytest.mark.parametrize("scale", [1e-100, 1e-3, 1e100])
def test_a_scale_of_the_outputs_is_theirs(scale):
    X, Y = data()
    here, there = (LowRankRegression(rank=2, alpha=0.1).fit(X, A) for A in (Y, scale * Y))
    assert_allclose(there.coef_ / scale, here.coef_, rtol=1e-9)
    assert_allclose(there.intercept_ / scale, here.intercept_, rtol=1e-9)


def test_a_shift_moves_only_the_intercepts():
    X, Y = data()
    shift, lift = np.linspace(-100, 100, 8), np.linspace(-50, 50, 5)
    here, there = LowRankRegression(rank=2).fit(X, Y), LowRankRegression(rank=2).fit(X + shift, Y + lift)
    assert_allclose(there.coef_, here.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(there.intercept_, here.intercept_ + lift - here.coef_ @ shift, rtol=1e-9)


def far(n, p, ratio, dtype=np.float64, seed=0):
    """Columns and outputs far from zero, new rows, and what least squares of least norm says of these."""
    rng = np.random.default_rng(seed)
    X, new = rng.standard_normal((n, p)), rng.standard_normal((50, p))
    Y = X @ rng.standard_normal((p, 6)) + rng.standard_normal((n, 6))
    X, new, level = (X + ratio).astype(dtype), (new + ratio).astype(dtype), 1e5 if dtype == np.float64 else 0.0
    exact = LinearRegression().fit(X.astype(np.float64) - ratio, Y).predict(new.astype(np.float64) - ratio)
    return X, (Y + level).astype(dtype), new, exact + level, exact.std()


@pytest.mark.parametrize("shape", [(20, 30), (30, 30), (50, 200), (200, 10)])
@pytest.mark.parametrize("ratio", [0.0, 100.0, 1e4])
def test_columns_far_from_zero_cost_only_their_rounding(shape, ratio):
    """Centred columns are all zero in one direction; what rounding of their means leaves there is no data."""
    X, Y, new, exact, size = far(*shape, ratio)
    model = LowRankRegression(rank=6, standardize=False).fit(X, Y)
    assert_allclose(model.predict(new), exact, atol=1e-9 * size, rtol=0)
    assert_allclose(LowRankRegression(rank=6).fit(X, Y).predict(X), model.predict(X), atol=1e-8 * size, rtol=0)


@pytest.mark.parametrize("ratio", [0.0, 10.0, 1e3])
def test_single_precision_loses_no_more_than_its_own(ratio):
    X, Y, new, exact, size = far(20, 30, ratio, np.float32)
    eps = float(np.finfo(np.float32).eps)
    model = LowRankRegression(rank=6, standardize=False).fit(X, Y)
    assert_allclose(model.predict(new), exact, atol=100 * eps * (1 + ratio) * size, rtol=0)


@pytest.mark.filterwarnings("ignore:1 constant column")
@pytest.mark.parametrize("n", [5, 20], ids=["wide", "tall"])
@pytest.mark.parametrize("solver", ["auto", "pursuit"])
@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("constant", [1e154, 1e155, 1e165])
def test_a_large_constant_sparse_column_changes_nothing(n, solver, storage, constant):
    """The squares of its entries overflow."""
    X, Y = data(n=n, p=6)
    model = LowRankRegression(rank=1, solver=solver).fit(sp.csr_array(X), Y)
    beside = LowRankRegression(rank=1, solver=solver).fit(storage(np.insert(X, 2, constant, axis=1)), Y)
    assert_allclose(np.delete(beside.coef_, 2, axis=1), model.coef_, rtol=1e-6, atol=1e-9)
    assert not beside.coef_[:, 2].any()
    assert beside.objective_ == pytest.approx(model.objective_)


@pytest.mark.parametrize("n", [5, 20], ids=["wide", "tall"])
@pytest.mark.parametrize("far", [1e2, 1e4])
def test_sparse_columns_have_no_units_even_if_their_squares_overflow(n, far):
    X, Y = data(n=n, p=6)
    X[:, 1] += far * np.std(X[:, 1])
    model, other = (LowRankRegression(rank=2).fit(sp.csc_array(X * [1, unit, 1, 1, 1, 1]), Y) for unit in (1, 1e152))
    assert_allclose(other.coef_ * [1, 1e152, 1, 1, 1, 1], model.coef_, rtol=1e-6, atol=1e-14 * far**2)


@pytest.mark.parametrize("ratio", [1e2, 1e3, 1e4])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_collinear_columns_far_from_zero_share_their_weight(ratio, storage):
    rng = np.random.default_rng(1)
    a, b, c = rng.standard_normal((3, 200))
    Y = np.c_[a - b, a + c, b] + 0.1 * rng.standard_normal((200, 3))
    near, away = (np.c_[a, b, (a + b) / np.sqrt(2), c] + shift for shift in (0.0, ratio))
    wanted, model = LowRankRegression(rank=2).fit(near, Y), LowRankRegression(rank=2).fit(storage(away), Y)
    lost = 1e-14 * (ratio if storage is np.asarray else ratio**2)  # sparse columns are not centred
    assert_allclose(model.coef_, wanted.coef_, atol=1e-8 + lost)


@pytest.mark.parametrize("solver", ["auto", "pursuit", "conjugate_iht"])
def test_no_solver_follows_the_rounding_of_large_means(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(290, 3, (20, 30))
    Y = 1e5 + X @ rng.standard_normal((30, 2)) @ rng.standard_normal((2, 6))
    new = rng.normal(290, 3, (5, 30))
    wanted = LowRankRegression(rank=2).fit(X - 290, Y - 1e5).predict(new - 290) + 1e5
    model = LowRankRegression(rank=2, solver=solver).fit(X, Y)
    assert_allclose(model.predict(new), wanted, atol=1e-5 * wanted.std(), rtol=0)


@at_most(1)
@pytest.mark.parametrize("solver", ["auto", "pursuit"])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_shift_does_not_change_the_chosen_rank(solver, noise):
    rng = np.random.default_rng(0)
    X = rng.normal(290, 3, (20, 30))
    Y = 1e5 + X @ rng.standard_normal((30, 2)) @ rng.standard_normal((2, 6)) + noise * rng.standard_normal((20, 6))
    models = [LowRankRegressionCV(rank=4, cv=4, solver=solver).fit(X - shift, Y) for shift in (0, 290)]
    assert models[0].best_rank_ == models[1].best_rank_
    assert_allclose(models[0].scores_, models[1].scores_, rtol=1e-9 if solver == "auto" else 1e-3)


@pytest.mark.parametrize("shape", SHAPES)
def test_permuted_columns_outputs_and_rows_permute_the_answer(shape):
    n, p, q = SHAPES[shape]
    X, Y = data(n, p, q)
    rng = np.random.default_rng(0)
    rows, columns, outputs = (rng.permutation(size) for size in (n, p, q))
    here = LowRankRegression(rank=2).fit(X, Y)
    there = LowRankRegression(rank=2).fit(X[rows][:, columns], Y[rows][:, outputs])
    assert_allclose(there.coef_, here.coef_[outputs][:, columns], rtol=1e-7, atol=1e-9)
    assert_allclose(there.U_, here.U_[columns], rtol=1e-7, atol=1e-9)
    assert_allclose(there.V_, here.V_[outputs], rtol=1e-7, atol=1e-9)
    assert_allclose(there.intercept_, here.intercept_[outputs], rtol=1e-7)


def test_turned_outputs_turn_the_answer():
    """The loss does not know the outputs' axes."""
    X, Y = data()
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    here, there = LowRankRegression(rank=2).fit(X, Y), LowRankRegression(rank=2).fit(X, Y @ turn)
    assert_allclose(there.predict(X), here.predict(X) @ turn, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e8])
def test_constant_columns_do_not_change_the_model(storage, constant):
    X, Y = data()
    wider = STORAGES[storage](np.insert(X, 3, constant, axis=1))
    here = LowRankRegression(rank=2).fit(X, Y)
    with pytest.warns(UserWarning, match=r"1 constant column \(feature 3, counted from 0\)"):
        there = LowRankRegression(rank=2).fit(wider, Y)
    assert_array_equal(there.coef_[:, 3], np.zeros(5))
    assert_allclose(np.delete(there.coef_, 3, axis=1), here.coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e8])
def test_constant_outputs_are_intercepts(constant):
    X, Y = data()
    Y[:, 2] = constant
    model = LowRankRegression(rank=2).fit(X, Y)
    assert_allclose(model.coef_[2], 0.0, atol=1e-14 * np.abs(model.coef_).max())
    assert_allclose(model.intercept_[2], constant, rtol=1e-14, atol=1e-12)
    nothing = LowRankRegression(rank=2).fit(X, np.full((60, 3), constant))
    assert nothing.rank_ == 0
    assert_allclose(nothing.predict(X), constant, rtol=1e-14)


def test_sparse_columns_far_from_zero_are_told():
    X, Y = data()
    X[:, 1] += 1e8
    with pytest.warns(
        UserWarning, match=r"1 sparse column \(feature 1, counted from 0\) has a mean a million times its deviation"
    ):
        LowRankRegression(rank=2).fit(sp.csc_array(X), Y)


def test_constant_columns_alone_predict_the_mean():
    _, Y = data()
    for X in (np.ones((60, 4)), sp.csr_array((60, 4)), sp.csr_array((60, 90))):
        with pytest.warns(UserWarning, match="constant columns"):
            model = LowRankRegression(rank=2).fit(X, Y)
        assert model.rank_ == 0
        assert_allclose(model.predict(X), np.tile(Y.mean(axis=0), (60, 1)))


# --- the rank by cross-validation ------------------------------------------------------------------------------------


def folds_of(n, count=4):
    return list(KFold(count, shuffle=True, random_state=0).split(np.zeros(n)))


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scoring", [None, "r2", "neg_mean_absolute_error"])
def test_the_scores_can_be_made_by_hand(scoring, weighted, storage):
    X, Y = data()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 60) if weighted else None
    folds, kind = folds_of(60), STORAGES[storage]
    model = LowRankRegressionCV(cv=folds, alpha=0.1, scoring=scoring).fit(kind(X), Y, sample_weight=weight)
    assert_array_equal(model.candidates_, [1, 2, 3, 4, 5])
    for fold, (train, test) in enumerate(folds):
        keywords = [{} if weight is None else {"sample_weight": weight[rows]} for rows in (train, test)]
        for row, rank in enumerate(model.candidates_):
            alone = LowRankRegression(rank=int(rank), alpha=0.1).fit(kind(X[train]), Y[train], **keywords[0])
            if scoring is None:
                score = -mean_squared_error(Y[test], alone.predict(X[test]), **keywords[1])
            else:
                score = check_scoring(alone, scoring=scoring)(alone, X[test], Y[test], **keywords[1])
            assert_allclose(model.scores_[row, fold], score, rtol=1e-9)
    assert_allclose(model.mean_scores_, model.scores_.mean(axis=1))
    assert_allclose(model.standard_errors_, model.scores_.std(axis=1, ddof=1) / 2)
    assert model.best_rank_ == model.rank_ == model.candidates_[np.argmax(model.mean_scores_)]
    assert model.scorer_name_ == (scoring or "neg_mean_squared_error")
    alone = LowRankRegression(rank=model.best_rank_, alpha=0.1).fit(kind(X), Y, sample_weight=weight)
    assert_array_equal(model.coef_, alone.coef_)


def test_one_decomposition_serves_all_ranks_of_a_fold(monkeypatch):
    X, Y = data()
    fits = []
    once = reduced_rank.LowRankProblem.least_squares
    monkeypatch.setattr(reduced_rank.LowRankProblem, "least_squares", lambda p: fits.append(p.constraint.r) or once(p))
    model = LowRankRegressionCV(cv=3).fit(X, Y)
    assert fits == [5, 5, 5, model.best_rank_]


def test_the_rule_of_one_standard_error():
    X, Y = data(noise=3.0, seed=5)
    best, modest = (
        LowRankRegressionCV(cv=folds_of(60), rule=rule).fit(X, Y) for rule in ("best", "one_standard_error")
    )
    assert_array_equal(best.scores_, modest.scores_)
    top = np.argmax(best.mean_scores_)
    close = best.mean_scores_ >= best.mean_scores_[top] - best.standard_errors_[top]
    assert best.one_standard_error_ == modest.best_rank_ == modest.rank_ == best.candidates_[close][0]
    assert modest.best_rank_ < best.best_rank_, "the data of this test tell the rules apart"


@pytest.mark.parametrize(
    "given", [[3, 1, 2], (3, 2, 1, 1), {1, 2, 3}, np.array([2, 3, 1]), 3, np.int32(3), range(1, 4)]
)
def test_every_way_to_give_ranks(given):
    X, Y = data()
    assert_array_equal(LowRankRegressionCV(rank=given, cv=3).fit(X, Y).candidates_, [1, 2, 3])


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_solver_serves_in_the_folds_too(jobs):
    X, Y = data(noise=0.3)
    closed = LowRankRegressionCV(rank=[0, 1, 2], cv=3).fit(X, Y)
    solved = LowRankRegressionCV(rank=[0, 1, 2], cv=3, solver="pursuit", n_jobs=jobs).fit(X, Y)
    assert_allclose(solved.scores_, closed.scores_, rtol=1e-2)
    assert solved.best_rank_ == closed.best_rank_ == 2


def test_a_best_rank_at_an_end_of_the_range_is_warned_of():
    X, Y = data(noise=0.1)  # of rank 2
    for ranks, message in (([1, 2], "largest rank compared, 2: .* up to 4"), ([2, 3], "smallest rank compared, 2: ")):
        with pytest.warns(SearchRangeWarning, match=message):
            LowRankRegressionCV(rank=ranks, rule="one_standard_error").fit(X, Y)


@pytest.mark.filterwarnings("error::hardthresh.core.errors.SearchRangeWarning")
def test_a_best_rank_that_is_the_largest_possible_is_not_warned_of():
    X, Y = data(noise=0.0, rank=5)
    assert LowRankRegressionCV().fit(X, Y).best_rank_ == 5
    assert LowRankRegressionCV(rank=[0, 1]).fit(X, X[:, 0]).best_rank_ == 1
    assert LowRankRegressionCV(rank=[1]).fit(X, Y).best_rank_ == 1


def test_unfinished_fits_within_folds_are_counted():
    X, Y = data()
    with pytest.warns(ConvergenceWarning) as caught:
        LowRankRegressionCV(rank=[1, 5], cv=3, solver="iht", max_iter=1).fit(X, Y)
    assert str(caught[0].message).startswith("6 of 6 fits inside the folds did not converge: the limit of iterations")


def test_weights_are_repetitions_in_the_folds():
    X, Y = data()
    weight = np.random.default_rng(0).integers(1, 4, 60)
    first = np.concatenate([[0], np.cumsum(weight)])
    places = [np.arange(start, end) for start, end in pairwise(first)]
    folds = folds_of(60)
    repeated = [tuple(np.concatenate([places[i] for i in part]) for part in fold) for fold in folds]
    here = LowRankRegressionCV(cv=folds).fit(X, Y, sample_weight=weight)
    there = LowRankRegressionCV(cv=repeated).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0))
    assert_allclose(here.scores_, there.scores_, rtol=1e-8)
    assert here.best_rank_ == there.best_rank_


# --- the rank by an information criterion ----------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["bic", "aic"])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_information_criterion_by_hand(criterion, weighted):
    X, Y = data(noise=2.0)
    weight = np.random.default_rng(0).integers(1, 4, 60) if weighted else np.ones(60)
    model = LowRankRegressionCV(criterion=criterion).fit(X, Y, sample_weight=weight)
    n, (p, q), expected = weight.sum(), (8, 5), []
    for rank in range(1, 6):
        fit = LowRankRegression(rank=rank).fit(X, Y, sample_weight=weight)
        residual = weight @ ((Y - fit.predict(X)) ** 2).sum(axis=1)
        price = {"bic": np.log(n), "aic": 2.0}[criterion]
        expected.append(n * q * np.log(residual / (n * q)) + price * (rank * (p + q - rank) + q))
    assert_allclose(model.criterion_path_, expected, rtol=1e-9)
    assert model.best_rank_ == model.candidates_[np.argmin(expected)]
    assert_allclose(model.coef_, LowRankRegression(rank=model.best_rank_).fit(X, Y, sample_weight=weight).coef_)


def test_the_bic_finds_the_rank():
    for seed in range(5):
        X, Y = data(n=300, seed=seed, noise=2.0)
        model = LowRankRegressionCV(criterion="bic").fit(X, Y)
        assert model.best_rank_ == model.rank_ == 2
        assert not hasattr(model, "scores_")
        model.set_params(criterion="cv", cv=3).fit(X, Y)
        assert model.scores_.shape == (5, 3)
        assert not hasattr(model, "criterion_path_")
        model.set_params(criterion="aic", cv=5).fit(X, Y)
        assert not {"scores_", "mean_scores_", "standard_errors_", "one_standard_error_"} & vars(model).keys()


def test_a_criterion_with_as_many_columns_as_rows_warns():
    X, Y = data(20, 40, 6)
    with pytest.warns(CriterionWarning, match="BIC compares ranks of as many columns as rows, 19"):
        model = LowRankRegressionCV(criterion="bic").fit(X, Y)
    assert model.criterion_path_[-1] == np.inf, "the full rank passes through all targets"


def test_constant_columns_are_no_columns_of_a_rank():
    X, Y = data(noise=2.0)
    with pytest.warns(UserWarning, match="constant"):
        model = LowRankRegressionCV(criterion="bic").fit(np.column_stack([X, np.ones(60)]), Y)
    assert_allclose(model.criterion_path_, LowRankRegressionCV(criterion="bic").fit(X, Y).criterion_path_, rtol=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cv": 3}, "cv=3 is about folds"),
        ({"scoring": "r2"}, "scoring='r2' is about folds"),
        ({"rule": "one_standard_error"}, "rule='one_standard_error' is about folds"),
        ({"alpha": 0.1}, 'criterion="bic" counts the coefficients of a rank, which is for fits without a ridge'),
        ({"criterion": "ebic"}, "criterion must be one of 'cv', 'bic', 'aic'; got 'ebic'"),
    ],
)
def test_settings_that_do_not_go_with_a_criterion_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        LowRankRegressionCV(**{"criterion": "bic", **settings}).fit(*data())


def test_callbacks_hear_the_fit():
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn < 1.9 has no callbacks")
    X, Y = data()
    for model, least in (
        (LowRankRegression(rank=2), 1),
        (LowRankRegression(rank=2, solver="iht"), 2),
        (LowRankRegressionCV(cv=3), 3),
    ):
        monitor = callback.ScoringMonitor(scoring="r2")
        model.set_callbacks(monitor).fit(X, Y)
        assert len(monitor.get_logs().data) >= least


# --- bad input -------------------------------------------------------------------------------------------------------


def spoiled(A, entry=np.nan):
    A = A.copy()
    A[3, 2] = entry
    return A


BAD_DATA = {
    "NaN in X": (lambda X, Y: (spoiled(X), Y), "X contains NaN"),
    "infinity in X": (lambda X, Y: (spoiled(X, np.inf), Y), "X contains infinity"),
    "NaN in sparse X": (lambda X, Y: (sp.csr_array(spoiled(X)), Y), "X contains NaN"),
    "NaN in y": (lambda X, Y: (X, spoiled(Y)), "y contains NaN"),
    "infinity in y": (lambda X, Y: (X, spoiled(Y, -np.inf)), "y contains infinity"),
    "text": (lambda X, Y: (X, Y.astype(str)), "y must be numeric, got dtype <U"),
    "words": (lambda X, Y: (X, [["many"]] * 60), "y must be numeric, got dtype <U4|could not convert"),
    "complex": (lambda X, Y: (X, Y + 1j), "Complex data not supported"),
    "sparse y": (lambda X, Y: (X, sp.csr_array(Y)), r"y must be dense, got a sparse matrix; .*toarray\(\)"),
    "too few targets": (lambda X, Y: (X, Y[1:]), r"inconsistent numbers of samples: \[60, 59\]"),
    "no outputs": (lambda X, Y: (X, Y[:, :0]), r"0 feature\(s\)"),
    "targets of three dimensions": (lambda X, Y: (X, Y[:, :, None]), "dim 3|3 dim"),
    "no targets": (lambda X, Y: (X, None), "requires y to be passed"),
    "one row": (lambda X, Y: (X[:1], Y[:1]), "1 sample.* minimum of 2 is required by LowRankRegression"),
    "no rows": (lambda X, Y: (X[:0], Y[:0]), r"0 sample\(s\)"),
    "no columns": (lambda X, Y: (X[:, :0], Y), r"0 feature\(s\)"),
    "huge columns": (lambda X, Y: (X * 1e160, Y), "scale of a column overflows; rescale its columns first"),
    "huge targets": (lambda X, Y: (X, Y * 1e160), "squares of the targets leave the range"),
    "a tiny column and large targets": (
        lambda X, Y: ((X * np.where(np.arange(X.shape[1]) == 2, 1e-24, 1.0)).astype("f4"), (Y * 1e13).astype("f4")),
        r"the entries of feature 2 \(counted from 0\) are so small that its coefficient may leave the range of float32",
    ),
    "a column whose squares underflow": (
        lambda X, Y: (X * np.where(np.arange(X.shape[1]) == 2, 1e-160, 1.0), Y * 1e150),
        r"the entries of feature 2 \(counted from 0\) are so small that their squares underflow; rescale it",
    ),
}


@pytest.mark.parametrize("cls", [LowRankRegression, LowRankRegressionCV])
@pytest.mark.parametrize("kind", BAD_DATA)
def test_bad_data_are_refused(cls, kind):
    spoil, message = BAD_DATA[kind]
    with pytest.raises(ValueError, match=message):
        cls(rank=1).fit(*spoil(*data()))


BAD_SETTINGS = [
    ("rank", -1, r"rank must be between 0 and min\(n_features, n_outputs\) \(5\), got -1"),
    ("rank", 6, r"rank must be between 0 and min\(n_features, n_outputs\) \(5\), got 6"),
    ("rank", 2.5, "rank must be .*, got 2.5"),
    ("rank", True, "rank must be .*, got True"),
    ("rank", "full", "rank must be .*, got 'full'"),
    ("alpha", -0.1, "alpha must be None or a finite number >= 0, got -0.1"),
    ("alpha", np.nan, "alpha must be .*, got nan"),
    ("tol", 0.0, "tol must be > 0, got 0.0"),
    ("max_iter", 0, "max_iter must be an integer >= 1, got 0"),
    ("solver", "magic", "unknown solver 'magic'; known: .*pursuit"),
    ("solver", None, 'solver must be "auto", a name or a Solver, got None'),
]


@pytest.mark.parametrize("cls", [LowRankRegression, LowRankRegressionCV])
@pytest.mark.parametrize(("name", "setting", "message"), BAD_SETTINGS, ids=lambda x: str(x)[:12])
def test_bad_settings_are_refused(cls, name, setting, message):
    X, Y = data()
    with pytest.raises(InvalidInputError, match=message):
        cls(**{name: setting}).fit(X, Y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(59), r"sample_weight has shape \(59,\); \(60,\) is needed"),
        (np.full(60, np.nan), "sample_weight contains NaN or infinity"),
        (-np.ones(60), "found a negative weight"),
        (np.zeros(60), "found only zeros"),
        (np.eye(60)[4], "leaves one row of positive weight; at least two are needed"),
        (["a"] * 60, "must be numeric"),
    ],
)
def test_bad_weights_are_refused(weight, message):
    X, Y = data()
    with pytest.raises(InvalidInputError, match=message):
        LowRankRegression(rank=2).fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": []}, "rank is empty; give the ranks to compare"),
        ({"rank": [1, 9]}, "got 9"),
        ({"rule": "worst"}, 'rule must be "best" or "one_standard_error", got \'worst\''),
        ({"cv": 1}, "n_splits=1"),
        ({"cv": []}, "cv gives no folds"),
        ({"cv": [([0, 1, 2], [])]}, "fold 0 of cv has no rows to hold out"),
        ({"cv": [([0, 1, 2], [77])]}, "cv must name rows of X, which has 60"),
        ({"scoring": lambda model, X, y: np.nan}, "a held-out score is NaN or infinite"),
    ],
    ids=lambda x: str(x)[:20],
)
def test_bad_choices_are_refused(settings, message):
    X, Y = data()
    with pytest.raises(ValueError, match=message):
        LowRankRegressionCV(**settings).fit(X, Y)


def test_other_columns_are_refused():
    X, Y = data()
    model = LowRankRegression(rank=2).fit(X, Y)
    with pytest.raises(ValueError, match="X has 7 features, but LowRankRegression is expecting 8"):
        model.predict(X[:, :7])
