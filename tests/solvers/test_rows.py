"""The working set of models of several outputs: the best rows, for all outputs at once."""

from itertools import combinations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from scipy.special import softmax

import golden
from hardthresh import minimize
from hardthresh.arrays import to_numpy
from hardthresh.constraints import RowSparsity, Sparsity
from hardthresh.core import CapabilityError, Status
from hardthresh.core.compiled import kernel
from hardthresh.losses import Multinomial
from hardthresh.objectives import LinearModel, MultiOutputModel
from hardthresh.selection import path
from hardthresh.solvers import HardThresholdingPursuit, WorkingSet, choose_solver
from hardthresh.solvers.working_set.row_refits import refit_rows
from hardthresh.solvers.working_set.rows import OutputBlock
from hardthresh.solvers.working_set.tableau import Tableau
from levels import at_most

MODELS = {"multitask": "squared", "multinomial": "multinomial"}
both = pytest.mark.parametrize("name", MODELS)


def with_ones(X):
    return np.column_stack([np.ones(len(X)), X])


def model(name, alpha=0.0, columns=None, **changes):
    """The golden problem with an intercept that has no ridge."""
    data = golden.data(name)
    X = with_ones(data["X"] if columns is None else data["X"][:, columns])
    ridge = np.r_[0.0, np.full(X.shape[1] - 1, alpha)]
    return MultiOutputModel(X, data["y"], MODELS[name], l2=ridge, **changes)


def problem(name, seed, n=60, p=8, q=3):
    """A small random problem with three relevant columns, two of them close to each other."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, 1] = X[:, 0] + 0.3 * rng.standard_normal(n)
    W = np.zeros((p, q))
    W[[0, 3, 5]] = rng.standard_normal((3, q))
    U = X @ W
    y = U + rng.standard_normal((n, q)) if name == "multitask" else np.argmax(U + rng.gumbel(size=(n, q)), axis=1)
    return X, y.astype(float)


def reference(X, y, name, alpha, sample_weight=None, centred=True):
    """The minimiser on given columns by slow and simple Newton steps on all coefficients; the last row is free."""
    n, p = X.shape
    q = y.shape[1] if y.ndim == 2 else int(y.max()) + 1
    Y = y if y.ndim == 2 else np.eye(q)[y.astype(int)]
    omega = np.full(n, 1 / n) if sample_weight is None else sample_weight / sample_weight.sum()
    ridge = np.repeat(np.r_[np.full(p - 1, alpha), 0.0], q)

    def f(w):
        U = X @ w.reshape(p, q)
        losses = 0.5 * np.sum((U - Y) ** 2, 1) if y.ndim == 2 else np.log(np.exp(U).sum(1)) - np.sum(U * Y, 1)
        return omega @ losses + 0.5 * ridge @ w**2

    w = np.zeros(p * q)
    for _ in range(60):
        U = X @ w.reshape(p, q)
        P = softmax(U, axis=1)
        G = U - Y if y.ndim == 2 else P - Y
        B = (
            np.array([np.eye(q)] * n)
            if y.ndim == 2
            else np.einsum("ia,ab->iab", P, np.eye(q)) - P[:, :, None] * P[:, None]
        )
        H = np.einsum("i,ij,ik,iab->jakb", omega, X, X, B).reshape(p * q, p * q) + np.diag(ridge)
        step = np.linalg.lstsq(H, (X.T @ (omega[:, None] * G)).ravel() + ridge * w, rcond=1e-12)[0]
        t = 1.0
        while f(w - t * step) > f(w) and t > 1e-9:
            t /= 2
        w = w - t * step
    W = w.reshape(p, q)
    return f(w), W - W.mean(axis=1, keepdims=True) if y.ndim == 1 and centred else W


@pytest.mark.slow
@at_most(1)
@both
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True])
def test_no_support_is_better_on_small_problems(name, seed, weighted):
    X, y = problem(name, seed)
    weight = np.random.default_rng(seed).integers(0, 3, 60).astype(float) if weighted else None
    X1 = np.column_stack([X, np.ones(60)])
    best = min(reference(X1[:, [*S, 8]], y, name, 0.05, weight)[0] for S in combinations(range(8), 2))
    ridge = np.r_[np.full(8, 0.05), 0.0]
    f = MultiOutputModel(X1, y, MODELS[name], l2=ridge, sample_weight=weight)
    run = minimize(f, RowSparsity(2, free=(8,)), tol=1e-12)
    np.testing.assert_allclose(run.value, best, rtol=1e-9)


@both
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_a_refit_is_the_slow_one(name, alpha):
    X, y = problem(name, 5)
    X1 = np.column_stack([X[:, [0, 3, 5]], np.ones(60)])
    value, W = reference(X1, y, name, alpha)
    f = MultiOutputModel(X1, y, MODELS[name], l2=np.r_[np.full(3, alpha), 0.0])
    found = refit_rows(f, f.zeros(), 1e-14)
    np.testing.assert_allclose(found.value, value, rtol=1e-12)
    np.testing.assert_allclose(found.point, W, atol=1e-6)
    np.testing.assert_allclose(found.prediction, X1 @ found.point, atol=1e-12)


@pytest.mark.slow
@both
def test_the_default_is_as_good_as_pursuit(name):
    for seed in range(3):
        data = golden.data(name, seed=100 + seed, n=100, d=40, k=5, rho=0.7)
        f = MultiOutputModel(with_ones(data["X"]), data["y"], MODELS[name], l2=np.r_[0.0, np.full(40, 1e-3)])
        constraint = RowSparsity(5, free=(0,))
        assert isinstance(choose_solver(f, constraint), WorkingSet)
        assert minimize(f, constraint).value <= minimize(f, constraint, HardThresholdingPursuit()).value + 1e-9


@both
def test_screening_finds_what_a_search_of_all_columns_finds(name):
    """With more columns than are all searched: those outside the working set cannot improve the answer."""
    data = golden.data(name, seed=7, n=200, d=500, k=5, rho=0.5)
    f = MultiOutputModel(with_ones(data["X"]), data["y"], MODELS[name], l2=np.r_[0.0, np.full(500, 1e-3)])
    run = minimize(f, RowSparsity(5, free=(0,)))
    assert run.state.working_set.size < 450
    every = minimize(f.columns(run.state.working_set), RowSparsity(5, free=(0,)))
    assert run.value <= every.value * (1 + 1e-9)
    assert {*(data["support"] + 1)} >= {*run.support.rows[1:]} or run.value < _value_at(f, data["support"] + 1)


def _value_at(f, rows):
    few = f.columns(np.r_[0, rows])
    return minimize(few, RowSparsity(len(rows), free=(0,))).value


@both
@pytest.mark.parametrize("effort", ["fast", "balanced", "thorough"])
def test_every_effort_finds_the_truth(name, effort):
    data = golden.data(name, seed=3, n=300, d=60, k=3)
    f = MultiOutputModel(with_ones(data["X"]), data["y"], MODELS[name], l2=1e-3)
    run = minimize(f, RowSparsity(3, free=(0,)), WorkingSet(effort))
    assert run.support.rows.tolist() == [0, *(data["support"] + 1)]


@both
@pytest.mark.parametrize("k", [0, 12, 40])
def test_budgets_at_both_ends(name, k):
    run = minimize(model(name, 0.1), RowSparsity(k, free=(0,)), tol=1e-12)
    assert run.converged
    expected = golden.MODELS[name]["ridge"]["value"]
    if k == 0:
        assert run.support.rows.tolist() == [0]
        y = golden.data(name)["y"]
        shares = np.bincount(y.astype(int)) / y.size if name == "multinomial" else None
        intercept = y.mean(axis=0) if shares is None else np.log(shares) - np.log(shares).mean()
        np.testing.assert_allclose(run.w[0], intercept, atol=1e-8)
    else:
        np.testing.assert_allclose(run.value, expected, rtol=1e-9)


@both
def test_of_copies_one_is_chosen(name):
    X, y = problem(name, 2)
    f = MultiOutputModel(np.column_stack([X, X]), y, MODELS[name])
    single, run = (minimize(g, RowSparsity(3), tol=1e-12) for g in (MultiOutputModel(X, y, MODELS[name]), f))
    np.testing.assert_allclose(run.value, single.value, rtol=1e-9)
    assert len({j % 8 for j in run.support.rows.tolist()}) == 3


@both
def test_rows_of_no_weight_change_nothing(name):
    X, y = problem(name, 4)
    weight = np.r_[np.ones(50), np.zeros(10)]
    loss = Multinomial(3) if name == "multinomial" else "squared"
    whole = minimize(MultiOutputModel(X, y, loss, sample_weight=weight, l2=0.01), RowSparsity(3))
    part = minimize(MultiOutputModel(X[:50], y[:50], loss, l2=0.01), RowSparsity(3))
    np.testing.assert_allclose(whole.w, part.w, atol=1e-9)


@both
def test_weights_are_repetitions(name):
    X, y = problem(name, 6)
    weight = np.random.default_rng(1).integers(0, 4, 60)
    one = minimize(MultiOutputModel(X, y, MODELS[name], sample_weight=weight, l2=0.01), RowSparsity(3), tol=1e-12)
    rows = np.repeat(np.arange(60), weight)
    other = minimize(MultiOutputModel(X[rows], y[rows], MODELS[name], l2=0.01), RowSparsity(3), tol=1e-12)
    np.testing.assert_allclose(one.value, other.value, rtol=1e-10)
    np.testing.assert_allclose(one.w, other.w, atol=1e-6)


@both
def test_single_precision_finds_the_same_rows(name):
    data = golden.data(name, seed=3, n=300, d=60, k=3)
    runs = [
        minimize(MultiOutputModel(with_ones(data["X"]).astype(dtype), data["y"], MODELS[name], l2=1e-3), RowSparsity(4))
        for dtype in (np.float32, np.float64)
    ]
    assert runs[0].w.dtype == np.float32
    assert runs[0].support == runs[1].support
    np.testing.assert_allclose(runs[0].w, runs[1].w, atol=2e-3)


@both
def test_sparse_data_give_the_same_answer(name):
    X, y = problem(name, 8)
    X[np.abs(X) < 0.5] = 0.0
    dense, sparse = (
        minimize(MultiOutputModel(A, y, MODELS[name], l2=0.01), RowSparsity(3), tol=1e-12) for A in (X, sp.csr_array(X))
    )
    np.testing.assert_allclose(dense.w, sparse.w, atol=1e-7)


@both
@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_other_array_libraries_give_the_same_answer(name, library):
    make = pytest.importorskip(library, reason=f"{library} is not installed").asarray
    data = golden.data(name, seed=3, n=100, d=350, k=3)
    ridge = np.r_[0.0, np.full(350, 1e-2)]
    runs = [
        minimize(MultiOutputModel(of(with_ones(data["X"])), of(data["y"]), MODELS[name], l2=of(ridge)), RowSparsity(3))
        for of in (np.asarray, make)
    ]
    assert type(runs[1].w) is type(make(ridge))
    np.testing.assert_allclose(to_numpy(runs[1].w), runs[0].w, atol=1e-8)


def test_an_offset_is_part_of_the_predictions():
    X, y = problem("multitask", 9)
    offset = np.random.default_rng(0).standard_normal(y.shape)
    one = minimize(MultiOutputModel(X, y + offset, offset=offset), RowSparsity(3))
    other = minimize(MultiOutputModel(X, y), RowSparsity(3))
    np.testing.assert_allclose(one.w, other.w, atol=1e-9)


@pytest.mark.parametrize("name", ["poisson", "gamma", "logistic"])
def test_pointwise_losses_of_each_output(name):
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((300, 30)), np.zeros((30, 2))
    W[[4, 20]] = [[0.8, -0.6], [-0.5, 0.7]]
    f = MultiOutputModel(X, np.zeros((300, 2)) + 0.5, name)
    Y = f.loss.example_target(X @ W, rng)
    run = minimize(MultiOutputModel(X, Y, name, l2=1e-3), RowSparsity(2), tol=1e-12)
    assert run.support.rows.tolist() == [4, 20]
    alone = [minimize(LinearModel(X[:, [4, 20]], Y[:, j], name, l2=1e-3), Sparsity(2), tol=1e-12).w for j in range(2)]
    np.testing.assert_allclose(run.w[[4, 20]], np.stack(alone, axis=1), atol=1e-6)


def test_residuals_that_are_all_beyond_delta_leave_a_model_to_search():
    """The Huber loss has no curvature at the null model then: its bound takes the place."""
    rng = np.random.default_rng(2)
    X, W = rng.standard_normal((80, 30)), np.zeros((30, 2))
    W[[4, 20]] = [[80.0, -60.0], [-50.0, 70.0]]
    Y = 1e3 * np.sign(rng.standard_normal((80, 2))) + X @ W
    f = MultiOutputModel(X, Y, "huber")
    assert not f.output_block(f.evaluate(f.zeros())).any()
    run = minimize(f, RowSparsity(2), tol=1e-10)
    assert run.support.rows.size == 2
    np.testing.assert_allclose(run.value, minimize(f, RowSparsity(2), HardThresholdingPursuit()).value, rtol=1e-4)


def test_a_refit_goes_on_where_there_is_no_curvature():
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((15, 2)), 100.0 + 50.0 * rng.standard_normal((15, 2))
    f = MultiOutputModel(X, Y, "huber")
    found = refit_rows(f, f.zeros(), 1e-12)
    best = scipy.optimize.minimize(
        lambda w: f.value(w.reshape(2, 2)), np.zeros(4), jac=lambda w: f.evaluate(w.reshape(2, 2)).gradient.ravel()
    )
    np.testing.assert_allclose(found.value, best.fun, rtol=1e-6)


def test_saturated_losses_are_searched_by_their_bound():
    """With offsets so large that no example has curvature, the rows that lower f most are still found."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((100, 12))
    y = np.argmax(X[:, [2, 5, 7]] + 0.1 * rng.standard_normal((100, 3)), axis=1)
    offset = 60.0 * np.eye(3)[(y + 1) % 3]
    f = MultiOutputModel(X, y, "multinomial", offset=offset, l2=1e-3)
    assert np.abs(f.output_block(f.evaluate(f.zeros()))).max() < 1e-12
    run = minimize(f, RowSparsity(3))
    assert run.support.rows.tolist() == [2, 5, 7]


def test_two_classes_are_the_logistic_model():
    """With the ridge of the difference of the coefficients, which for two classes is half that of both."""
    X, y = problem("multinomial", 3)
    y = (y > 0).astype(float)
    run = minimize(MultiOutputModel(X, y, "multinomial", l2=0.2), RowSparsity(2), tol=1e-13)
    scalar = minimize(LinearModel(X, y, "logistic", l2=0.1), Sparsity(2), tol=1e-13)
    assert run.support.rows.tolist() == list(scalar.support)
    np.testing.assert_allclose(run.w[:, 1] - run.w[:, 0], scalar.w, atol=1e-7)


def test_check_06_renamed_classes_permute_the_answer():
    """Check 6 of the models, for the objective: no class is one of reference."""
    X, y = problem("multinomial", 1)
    order = np.array([2, 0, 1])
    one = minimize(MultiOutputModel(X, y, "multinomial"), RowSparsity(3), tol=1e-12)
    other = minimize(MultiOutputModel(X, np.argsort(order)[y.astype(int)], "multinomial"), RowSparsity(3), tol=1e-12)
    assert one.support == other.support
    np.testing.assert_allclose(other.w, one.w[:, order], atol=1e-6)


def test_one_output_is_the_linear_model():
    X, y = problem("multitask", 0)
    one = minimize(MultiOutputModel(X, y[:, :1], l2=0.1), RowSparsity(3))
    other = minimize(LinearModel(X, y[:, 0], l2=0.1), Sparsity(3))
    assert one.support.rows.tolist() == list(other.support)
    np.testing.assert_allclose(one.w[:, 0], other.w, atol=1e-10)


def test_separated_classes_have_no_minimiser():
    X = np.random.default_rng(0).standard_normal((60, 10))
    y = np.digitize(X[:, 3], [-0.5, 0.5]).astype(float)
    X1 = with_ones(X)
    run = minimize(MultiOutputModel(X1, y, "multinomial"), RowSparsity(2, free=(0,)))
    assert run.status is Status.NO_MINIMISER
    assert np.isfinite(run.w).all()
    assert minimize(MultiOutputModel(X1, y, "multinomial", l2=1e-3), RowSparsity(2, free=(0,))).converged


@both
def test_a_path_shares_the_search_and_is_no_worse_than_single_runs_of_the_same_effort(name):
    data = golden.data(name, seed=11, n=150, d=400, k=5, rho=0.5)
    f = MultiOutputModel(with_ones(data["X"]), data["y"], MODELS[name], l2=np.r_[0.0, np.full(400, 0.01)])

    def rows(k):
        return RowSparsity(k, free=(0,))

    runs = list(path(f, rows, [0, 2, 5, 8]))
    assert [run.support.rows.size - 1 for run in runs] == [0, 2, 5, 8]
    values = [run.value for run in runs]
    assert values == sorted(values, reverse=True)
    for k, run in zip([2, 5, 8], runs[1:], strict=True):
        assert run.value <= minimize(f, rows(k), WorkingSet("fast")).value * (1 + 1e-6)


def test_groups_of_rows_are_left_to_pursuit():
    X, y = problem("multitask", 0)
    f, constraint = MultiOutputModel(X, y), RowSparsity(1, groups=[0, 0, 1, 1, 2, 2, 3, 3])
    assert isinstance(choose_solver(f, constraint), HardThresholdingPursuit)
    values = [minimize(f, RowSparsity(2, groups=None), solver).value for solver in (None, WorkingSet())]
    assert values[0] == values[1]
    with pytest.raises(CapabilityError, match="WorkingSet"):
        minimize(f, constraint, WorkingSet())


def test_rows_of_a_linear_model_are_refused():
    with pytest.raises(CapabilityError, match="WorkingSet needs"):
        WorkingSet().check(_Shaped(), RowSparsity(1))


class _Shaped:
    """An objective of matrices that is no model of several outputs."""

    shape = (4, 2)


def test_directions_without_curvature_are_left_out():
    P = np.array([0.2, 0.3, 0.5])
    block = np.diag(P) - np.outer(P, P)
    found = OutputBlock.of(block)
    assert found.into.shape == (3, 2)
    np.testing.assert_allclose(found.into @ found.into.T, block, atol=1e-15)
    np.testing.assert_allclose(found.into.T @ found.back, np.eye(2), atol=1e-14)
    np.testing.assert_allclose(found.back.sum(axis=0), 0.0, atol=1e-7)
    assert OutputBlock.of(np.zeros((3, 3))) is None


# ---- the tableau with several right-hand sides


def tableau_problem(seed, m=12, q=3, s=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, m))
    X[:, 1] = X[:, 0]
    X[:, 2] *= 100.0
    return X.T @ X, X.T @ rng.standard_normal((40, q))


def least(G, c, S):
    """The decrease and the coefficients of the minimiser on some columns, the slow way."""
    b = np.linalg.lstsq(G[np.ix_(S, S)], c[S], rcond=None)[0]
    return 0.5 * np.sum(b * c[S]), b


@pytest.fixture(params=["compiled", "numpy"])
def either(request, monkeypatch):
    """Both implementations of the tableau."""
    if request.param == "numpy":
        for module in ("sweeps", "tableau", "search"):
            monkeypatch.setattr(f"hardthresh.solvers.working_set.{module}.kernel", lambda: None)
    elif kernel() is None:
        pytest.skip("the kernel is not part of this run")


@pytest.mark.parametrize("seed", range(3))
def test_a_tableau_of_several_sides_knows_the_minimiser_and_every_move(either, seed):
    G, c = tableau_problem(seed)
    tableau = Tableau(G, c, [3, 5, 7], n_free=1)
    value, b = least(G, c, [3, 5, 7])
    np.testing.assert_allclose(tableau.decrease, value, rtol=1e-10)
    np.testing.assert_allclose(tableau.coef, b, rtol=1e-8)
    np.testing.assert_allclose(tableau.slope, c - G[:, [3, 5, 7]] @ b, atol=1e-8 * np.abs(c).max())
    gains = tableau.gains()
    for j in (0, 2, 9):
        np.testing.assert_allclose(gains[j], least(G, c, [3, 5, 7, j])[0] - value, rtol=1e-7)
    costs = tableau.costs()
    np.testing.assert_allclose(costs[1:], [value - least(G, c, S)[0] for S in ([3, 7], [3, 5])], rtol=1e-7)
    assert costs[0] == np.inf
    slot, j, fall = tableau.best_exchange()
    falls = {
        (i, j): least(G, c, [x for x in (3, 5, 7) if x != i] + [j])[0] - value
        for i in (5, 7)
        for j in range(12)
        if j not in (3, 5, 7)
    }
    np.testing.assert_allclose(fall, max(falls.values()), rtol=1e-7)
    np.testing.assert_allclose(falls[tableau.chosen[slot], j], fall, rtol=1e-7)
    tableau.add(9)
    tableau.drop(1)
    np.testing.assert_allclose(tableau.decrease, least(G, c, [3, 9, 7])[0], rtol=1e-9)
    other, known = tableau.minimiser(np.array([3, 0, 4]))
    np.testing.assert_allclose(known, least(G, c, other.tolist())[1], rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_a_tableau_may_begin_at_any_coefficients(either, seed):
    G, c = tableau_problem(seed)
    start = np.random.default_rng(seed).standard_normal((3, 3))
    chosen = [4, 6, 8]
    tableau = Tableau(G, c - G[:, chosen] @ start, chosen, start)
    value = 0.5 * np.sum(start * (G[np.ix_(chosen, chosen)] @ start)) - np.sum(start * c[chosen])
    np.testing.assert_allclose(tableau.decrease, value + least(G, c, chosen)[0], rtol=1e-8)
    np.testing.assert_allclose(tableau.coef, least(G, c, chosen)[1], rtol=1e-7, atol=1e-9)


def test_the_search_is_the_same_compiled_or_not(monkeypatch):
    if kernel() is None:
        pytest.skip("the kernel is not part of this run")
    runs = []
    for off in (False, True):
        if off:
            for module in ("sweeps", "tableau", "search"):
                monkeypatch.setattr(f"hardthresh.solvers.working_set.{module}.kernel", lambda: None)
        data = golden.data("multitask", seed=21, n=80, d=120, k=6, rho=0.8)
        runs.append(minimize(MultiOutputModel(data["X"], data["y"]), RowSparsity(6)))
    assert runs[0].support == runs[1].support
    np.testing.assert_allclose(runs[0].w, runs[1].w, atol=1e-8)
