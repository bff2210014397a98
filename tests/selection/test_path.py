"""Fits for a range of budgets."""

import os
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from hardthresh.constraints import GroupSparsity, Rank, Sparsity
from hardthresh.core import (
    CapabilityError,
    InvalidInputError,
    MaxIter,
    NotFiniteError,
    Passes,
    RelativeDecrease,
    Status,
    SupportStable,
)
from hardthresh.core.stopping import Stop, StopRule
from hardthresh.datasets import fetch_tecator
from hardthresh.designs import as_design, standardize
from hardthresh.objectives import LinearModel, MultiOutputModel
from hardthresh.selection import path
from hardthresh.solvers import IHT, HardThresholdingPursuit, WorkingSet, minimize
from hardthresh.solvers.working_set.tableau import Tableau
from levels import at_most, in_turn, slow_beyond

FAST = WorkingSet(effort="fast")
"""What `path` chooses for linear models."""


class Interrupting(LinearModel):
    """Behaves like the user's Ctrl-C during one of the gradients."""

    def __init__(self, X, y, at, **settings):
        super().__init__(X, y, **settings)
        self.calls, self.at = [0], at

    def _with(self, design, **changes):
        model = type(self).__new__(type(self))
        vars(model).update(vars(self), design=design, **changes)  # the counter is shared
        return model

    def _count(self):
        self.calls[0] += 1
        if self.calls[0] == self.at:
            raise KeyboardInterrupt

    def evaluate(self, w, prediction=None):
        self._count()
        return super().evaluate(w, prediction)

    def evaluate_many(self, points):
        self._count()
        return super().evaluate_many(points)


@pytest.fixture
def objective():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 15)) + rng.standard_normal((40, 1))
    return LinearModel(X, rng.standard_normal(40))


def test_each_budget_gives_what_it_gives_alone(objective):
    for budget, result in zip((5, 1, 8), path(objective, Sparsity, (5, 1, 8)), strict=True):
        alone = minimize(objective, Sparsity(budget), FAST)
        assert_array_equal(result.support, alone.support)
        assert_allclose(result.w, alone.w, rtol=1e-9)
        assert_allclose(result.history["value"], alone.history["value"], rtol=1e-9)


def test_a_warm_start_is_the_last_answer(objective):
    results = list(path(objective, Sparsity, range(1, 8), warm_start=True))
    values = [result.value for result in results]
    assert np.all(np.diff(values) <= 0)
    for before, after in pairwise(results):
        assert after.history["value"][0] == pytest.approx(before.value)


def test_models_are_fitted_on_demand(objective):
    asked = []

    def constraint(k):
        asked.append(k)
        return Sparsity(k)

    results = path(objective, constraint, iter((1, 2, 3)))
    assert asked == []
    next(results)
    assert asked == [1, 2, 3]


def test_without_budgets_nothing_is_fitted(objective):
    assert list(path(objective, Sparsity, [])) == []


def test_the_solver_and_its_options_are_passed_on(objective):
    (result,) = path(objective, Sparsity, [3], IHT(), max_iter=2, tol=0.0)
    assert result.n_iter == 2
    assert_array_equal(result.w, minimize(objective, Sparsity(3), IHT(), max_iter=2, tol=0.0).w)


def test_other_constraints_than_a_number(objective):
    (result,) = path(objective, lambda k: Sparsity(k, free=(2,), lower=0.0), [3])
    assert 2 in result.support
    assert np.all(result.w >= 0)


# --- several ridges ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_each_ridge_has_the_path_of_its_objective(loss):
    X, y = correlated(0)
    y, ridges = y if loss == "squared" else (y > 0).astype(float), [0.3, 0.0, 0.05]
    f = LinearModel(X, y, loss, l2=7.0)
    runs = list(path(f, lambda k: Sparsity(k, free=(1, 4)), [0, 2, 5], alphas=iter(ridges)))
    assert len(runs) == 9
    for place, ridge in enumerate(ridges):
        l2 = np.full(f.shape, ridge)
        l2[[1, 4]] = 0.0
        alone = path(LinearModel(X, y, loss, l2=l2), lambda k: Sparsity(k, free=(1, 4)), [0, 2, 5])
        for run, other in zip(runs[3 * place :], alone, strict=False):
            assert_array_equal(run.objective.l2, l2)
            assert_array_equal(run.w, other.w)
    assert float(f.l2) == 7.0


def test_ridges_of_groups_leave_free_columns_alone(objective):
    labels = [None, *np.arange(14) // 2]
    (run,) = path(objective, lambda k: GroupSparsity(labels, k, free=(0,)), [2], alphas=[0.5], warm_start=True)
    assert_array_equal(run.objective.l2, [0.0] + [0.5] * 14)


@pytest.mark.parametrize(
    ("alphas", "message"),
    [(0.1, "alphas must be several numbers"), ([0.1, -1.0], "alphas must be a finite number >= 0"), ("a", "alphas")],
)
def test_ridges_that_are_none_are_refused(objective, alphas, message):
    with pytest.raises(InvalidInputError, match=message):
        list(path(objective, Sparsity, [1], alphas=alphas))


def test_ridges_need_a_linear_model():
    f = MultiOutputModel(np.eye(3), np.eye(3))
    with pytest.raises(CapabilityError, match=r"alphas needs a LinearModel.*MultiOutputModel"):
        list(path(f, Rank, [1], alphas=[0.1]))


# --- alone and side by side ------------------------------------------------------------------------------------------

SQUARED_BUDGETS = range(1, 31)
LOGISTIC_BUDGETS = (1, 2, 3, 4, 5, 8, 10, 11, 16, 20, 25, 26, 30)


def correlated(seed, n=100, d=200, rho=0.9):
    """Columns of correlation rho^|i - j|, ten of which make up the target but for noise of unit variance."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    w = np.zeros(d)
    few = min(10, d)
    w[rng.permutation(d)[:few]] = rng.choice([-1, 1], few) * rng.uniform(0.5, 1.5, few)
    return X, X @ w + rng.standard_normal(n)


def of_kind(kind, loss, seed):
    """Return an objective, and the constraint of a budget."""
    X, y = correlated(seed)
    rng = np.random.default_rng(seed)
    settings, bounds = ({} if loss == "squared" else {"l2": 0.02}), {}
    if kind == "sparse":
        X = X * (rng.uniform(size=X.shape) < 0.3)
        X = sp.csc_array(X)
    if kind == "float32":
        X = X.astype(np.float32)
    if kind == "ridge":
        settings = {"l2": 0.1}
    if kind == "weighted":
        settings |= {"sample_weight": rng.integers(0, 4, 100).astype(float), "offset": 0.3 * rng.standard_normal(100)}
    if kind == "included":
        bounds = {"free": (3, 50, 199)}
    if kind == "non-negative":
        bounds = {"lower": 0.0}
    if kind == "standardised":
        X = 100 * X * rng.uniform(0.1, 10, 200) + rng.uniform(-1e3, 1e3, 200)
        X = standardize(as_design(X), np.full(100, 0.01), scale=True, intercept=True)
        bounds = {"free": (200,)}
        settings["l2"] = np.append(np.full(200, settings.get("l2", 0.0)), 0.0)
    y = y + 5 if loss == "squared" else (y > 0).astype(float)
    return LinearModel(X, y, loss, **settings), lambda k: Sparsity(k, **bounds)


KINDS = ["plain", "standardised", "included", "weighted", "ridge", "non-negative", "sparse", "float32"]


def assert_same_run(run, alone, rtol=1e-7):
    """The same answer on the same way, up to rounding."""
    assert_array_equal(run.support, alone.support)
    assert run.status is alone.status
    assert run.n_iter == alone.n_iter
    assert_allclose(run.history["value"], alone.history["value"], rtol=rtol)
    assert_allclose(run.value, alone.value, rtol=rtol)
    assert_allclose(run.w, alone.w, rtol=1e3 * rtol, atol=1e2 * rtol * np.abs(alone.w).max())
    assert run.w.dtype == alone.w.dtype


def assert_consistent(run):
    """What a result says about itself agrees."""
    values, passes, seconds = (run.history[name] for name in ("value", "passes", "seconds"))
    assert len(values) == len(passes) == len(seconds) == run.n_iter + 1
    assert len(run.history.column("step")) == run.n_iter
    assert np.all(np.diff(passes) >= 0)
    assert np.all(np.diff(seconds) >= 0)
    assert run.passes == passes[-1]
    assert run.seconds >= seconds[-1]
    assert run.value == values[-1] == run.state.value
    assert run.value == pytest.approx(run.objective.value(run.w), rel=1e-5, abs=1e-12)
    assert run.state.iteration == run.n_iter
    assert run.constraint.is_full(run.support) or run.support.indices.size <= run.constraint.k + len(
        run.constraint.free
    )


@pytest.mark.slow
@at_most(3)
@in_turn("kind,loss,seed", list(KINDS), ["squared", "logistic"], [0, 1])
def test_numbers_of_a_path_are_about_as_good_as_alone(loss, kind, seed):
    """They are searched together, and are better or worse. Measured: the sum is 0.965 to 1.061 times theirs."""
    objective, constraint = of_kind(kind, loss, seed)
    budgets = SQUARED_BUDGETS if loss == "squared" else LOGISTIC_BUDGETS
    runs = list(path(objective, constraint, budgets))
    for run in runs:
        assert_consistent(run)
        assert run.converged
    alone = [minimize(objective, constraint(k), FAST).value for k in budgets]
    assert sum(run.value for run in runs) <= 1.08 * sum(alone)


@slow_beyond(3)
@at_most(5)
@pytest.mark.parametrize("effort", ["fast", "balanced", "thorough"])
@in_turn("kind,loss", list(KINDS), ["squared", "logistic"])
def test_a_path_of_one_number_is_the_run_of_this_number(effort, loss, kind):
    objective, constraint = of_kind(kind, loss, 2)
    solver = WorkingSet(effort=effort)
    for k in (3, 8, 20):
        (run,) = path(objective, constraint, [k], solver)
        assert_same_run(run, minimize(objective, constraint(k), solver), rtol=1e-3 if kind == "float32" else 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [IHT(), HardThresholdingPursuit()], ids=["iht", "pursuit"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_solver_that_shares_nothing_makes_the_same_runs_bit_for_bit(solver, loss):
    objective, constraint = of_kind("standardised", loss, 0)
    budgets = (1, 4, 9, 4)
    for k, run in zip(budgets, path(objective, constraint, budgets, solver, max_iter=30), strict=True):
        alone = minimize(objective, constraint(k), solver, max_iter=30)
        assert_array_equal(run.w, alone.w)
        assert_array_equal(run.history["value"], alone.history["value"])
        assert run.status is alone.status
        assert run.passes == alone.passes
        assert_consistent(run)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_neither_the_order_of_the_budgets_nor_their_number_matters(loss):
    objective, constraint = of_kind("plain", loss, 3)
    increasing = dict(zip(range(1, 21), path(objective, constraint, range(1, 21)), strict=True))
    given = np.random.default_rng(0).permutation([*range(1, 21), 7, 7, 20, 1]).tolist()
    for k, run in zip(given, path(objective, constraint, given), strict=True):
        assert_same_run(run, increasing[k])


def test_equal_budgets_have_equal_answers():
    objective, constraint = of_kind("plain", "squared", 4)
    first, second, third = path(objective, constraint, [6, 6, 6])
    for other in (second, third):
        assert_array_equal(first.w, other.w)
        assert_array_equal(first.history["value"], other.history["value"])


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("shape", [(12, 30), (40, 9), (15, 15)], ids=["wide", "tall", "square"])
def test_budgets_from_none_to_all_columns(loss, shape):
    X, y = correlated(5, *shape, rho=0.5)
    objective = LinearModel(X, y if loss == "squared" else (y > 0).astype(float), loss, l2=0.01)
    budgets = [0, 1, 2, 5, 9, 12, 15, 30, 31, 100]
    runs = list(path(objective, Sparsity, budgets))
    for k, run in zip(budgets, runs, strict=True):
        if loss != "squared" or k in (0, 1, 30, 31, 100):  # the others are searched together
            assert_same_run(run, minimize(objective, Sparsity(k), FAST))
        assert_consistent(run)
    assert not runs[0].w.any()
    assert runs[0].support.indices.size == 0
    assert np.all(np.diff([run.value for run in runs]) <= 1e-9)


def test_no_budget_still_fits_what_is_free():
    objective, _ = of_kind("standardised", "squared", 0)
    nothing, something = path(objective, lambda k: Sparsity(k, free=(200,)), [0, 2])
    assert_array_equal(nothing.support, [200])
    assert nothing.w[200] == pytest.approx(np.mean(objective.y))
    assert something.value < nothing.value


@pytest.mark.parametrize("noise", [0.0, 1e-9])
def test_a_perfect_fit_ends_its_own_run_only(noise):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 30))
    y = X[:, [2, 9, 17]] @ [1.0, -2.0, 3.0] + noise * rng.standard_normal(50)
    objective = LinearModel(X, y)
    runs = list(path(objective, Sparsity, range(8)))
    for k, run in enumerate(runs):
        alone = minimize(objective, Sparsity(k), FAST)
        assert run.status is alone.status
        assert run.converged
        assert_allclose(run.w, alone.w, atol=1e-8)
        assert_consistent(run)
        if k >= 3:
            assert run.value < 1e-15
            assert {2, 9, 17} <= set(run.support.indices.tolist())
    assert_array_equal(runs[3].support, [2, 9, 17])


# --- how runs end ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [None, IHT()], ids=["default", "iht"])
@pytest.mark.parametrize("max_iter", [0, 1, 2, 4])
def test_the_limit_of_iterations_is_each_runs_own(solver, max_iter):
    objective, constraint = of_kind("plain", "squared", 0)
    for k, run in zip(
        (1, 4, 12, 30), path(objective, constraint, (1, 4, 12, 30), solver, max_iter=max_iter), strict=True
    ):
        alone = minimize(objective, constraint(k), solver or FAST, max_iter=max_iter)
        if solver is not None or max_iter == 0:
            assert_same_run(run, alone)
        assert_consistent(run)
        assert run.status is alone.status
        assert run.n_iter == alone.n_iter <= max_iter


@dataclass(frozen=True)
class Chosen(StopRule):
    """Stop when so many columns are chosen."""

    count: int

    def check(self, run):
        return Stop(Status.RULE, "enough") if run.state.support.indices.size >= self.count else None


@pytest.mark.parametrize("stop", [RelativeDecrease(1e-2), SupportStable(2), MaxIter(3), Chosen(4)], ids=repr)
@pytest.mark.parametrize("solver", [None, IHT(), HardThresholdingPursuit()], ids=["default", "iht", "pursuit"])
def test_a_rule_ends_each_run_where_it_would_end_it_alone(solver, stop):
    objective, constraint = of_kind("plain", "squared", 1)
    budgets = (1, 3, 4, 12, 30)
    statuses = set()
    for k, run in zip(budgets, path(objective, constraint, budgets, solver, stop=stop, max_iter=60), strict=True):
        alone = minimize(objective, constraint(k), solver or FAST, stop=stop, max_iter=60)
        if solver is not None:
            assert_same_run(run, alone)
        assert_consistent(run)
        assert run.status is alone.status
        statuses.add(run.status)
    if stop == Chosen(4):
        assert len(statuses) > 1, "the runs of this test end in different ways"


def test_passes_are_those_of_all_runs():
    objective, constraint = of_kind("plain", "squared", 0)
    (limited,) = path(objective, constraint, [30], stop=Passes(2.0))
    assert limited.status is Status.BUDGET
    alone = [minimize(objective, constraint(k), FAST).passes for k in SQUARED_BUDGETS]
    shared = [run.passes for run in path(objective, constraint, SQUARED_BUDGETS)]
    assert max(shared) < 0.5 * sum(alone)
    for k, passes in zip(SQUARED_BUDGETS, shared, strict=True):
        assert passes >= minimize(objective, constraint(k), FAST).passes - 1e-9


@pytest.mark.parametrize("warm_start", [False, True])
def test_an_interrupted_path_raises(objective, warm_start):
    interrupting = Interrupting(objective.design, objective.y, at=4)
    with pytest.raises(KeyboardInterrupt):
        list(path(interrupting, Sparsity, [1, 2, 3], IHT(), warm_start=warm_start))


@pytest.mark.parametrize(
    ("solver", "at"),
    [
        *((WorkingSet(), at) for at in (2, 3, 4, 5, 6)),
        *((WorkingSet(effort="thorough"), at) for at in (3, 5, 6, 7)),
    ],
    ids=lambda x: type(x).__name__ if hasattr(x, "check") else str(x),
)
def test_an_interrupt_ends_the_runs_that_go_on_and_spoils_no_other(solver, at):
    X, y = correlated(0, 60, 40)
    sets = [Sparsity(k) for k in (0, 2, 6, 12)]
    interrupting = Interrupting(X, y, at=at)
    runs = solver.path(interrupting, sets, max_iter=40)
    whole = LinearModel(X, y)
    for one, run in zip(sets, runs, strict=True):
        alone = minimize(whole, one, solver, max_iter=40)
        assert len(run.history["value"]) == run.n_iter + 1
        assert len(run.history.column("step")) == run.n_iter
        assert run.value == run.history["value"].min()
        assert run.value == pytest.approx(whole.value(run.w), rel=1e-9)
        if run.status is not Status.INTERRUPTED:
            assert_same_run(run, alone)
            continue
        assert not run.converged
        assert run.n_iter < max(alone.n_iter, 1)
        rest = minimize(whole, one, solver, max_iter=40, state=run.state)
        assert_allclose(rest.w, alone.w, rtol=1e-7, atol=1e-9)
        assert rest.status is alone.status
    if interrupting.calls[0] >= at:
        assert any(run.status is Status.INTERRUPTED for run in runs)


@dataclass(frozen=True)
class InterruptedAt(StopRule):
    """Behaves like the user's Ctrl-C while a rule looks at one of the runs."""

    calls: list
    at: int

    def check(self, run):
        self.calls.append(run.state.iteration)
        if len(self.calls) == self.at:
            raise KeyboardInterrupt
        return None


@pytest.mark.parametrize("at", [1, 2, 4, 5, 7])
def test_an_interrupt_between_iterations_leaves_results_that_agree_with_themselves(objective, at):
    runs = WorkingSet().path(objective, [Sparsity(k) for k in (1, 2, 3)], stop=InterruptedAt([], at), max_iter=9)
    for run in runs:
        assert run.status is Status.INTERRUPTED
        assert len(run.history["value"]) == len(run.history["passes"]) == run.n_iter + 1
        assert len(run.history.column("step")) == run.n_iter


def test_an_interrupt_takes_nothing_back_from_a_run_that_ended_in_the_same_round(objective):
    """The first run settles at iteration 1, and the key is pressed while the second one is looked at there."""

    @dataclass(frozen=True)
    class Rule(StopRule):
        def check(self, run):
            if run.state.iteration == 1 and run.constraint.k == 2:
                raise KeyboardInterrupt
            return Stop(Status.RULE, "enough") if run.state.iteration == 1 else None

    ended, interrupted = WorkingSet().path(objective, [Sparsity(1), Sparsity(2)], stop=Rule())
    assert ended.status is Status.RULE
    assert interrupted.status is Status.INTERRUPTED


class Overflowing(LinearModel):
    """Is infinite at points of more than four columns."""

    def _require_few(self, points):
        if any(np.count_nonzero(w) > 4 for w in points):
            raise NotFiniteError("f is infinite")

    def evaluate(self, w, prediction=None):
        self._require_few([w])
        return super().evaluate(w, prediction)

    def evaluate_many(self, points):
        self._require_few(points)
        return super().evaluate_many(points)


@dataclass(frozen=True)
class Failing(StopRule):
    """Raises an error when it looks at a point of more than two columns."""

    def check(self, run):
        if run.state.support.indices.size > 2:
            raise NotFiniteError("the loss of the test rows is infinite")
        return None


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("budgets", [(1, 2, 3, 4, 6), (6, 4, 1), (3, 6, 8), (6,)], ids=str)
def test_a_run_that_fails_ends_alone(loss, budgets):
    X, y = correlated(0)
    objective = Overflowing(X, y if loss == "squared" else (y > 0).astype(float), loss, l2=0.02)
    runs = WorkingSet().path(objective, [Sparsity(k) for k in budgets])
    for k, run in zip(budgets, runs, strict=True):
        alone = minimize(objective, Sparsity(k), WorkingSet())
        assert_same_run(run, alone)
        assert run.message == alone.message
        assert run.converged == (k <= 4)
        assert (run.status is Status.DIVERGED) == (k > 4)


@pytest.mark.parametrize("budgets", [(1, 2, 3), (3, 2, 1)], ids=str)
def test_a_rule_that_fails_ends_the_run_that_it_looks_at(objective, budgets):
    runs = WorkingSet().path(objective, [Sparsity(k) for k in budgets], stop=Failing())
    for k, run in zip(budgets, runs, strict=True):
        alone = minimize(objective, Sparsity(k), WorkingSet(), stop=Failing())
        assert_same_run(run, alone)
        assert run.message == alone.message
        assert (run.status is Status.DIVERGED) == (k > 2)


# --- nearly collinear columns ----------------------------------------------------------------------------------------


def spectra():
    """Absorption spectra: smooth, so that neighbouring columns are nearly equal."""
    rng = np.random.default_rng(11)
    grid = np.linspace(0, 1, 80)
    peaks = np.exp(-(((grid - rng.random((8, 1))) / rng.uniform(0.1, 0.4, (8, 1))) ** 2))
    amounts = rng.random((120, 8))
    X = amounts @ peaks + 1e-4 * rng.standard_normal((120, 80))
    return X, amounts[:, 0] - amounts[:, 3] + 0.01 * rng.standard_normal(120)


def tecator():
    table = fetch_tecator()
    rows = np.random.default_rng((1, 11)).permutation(215)[:143]
    return table.data[rows], table.target[rows]


@at_most(1)
@pytest.mark.parametrize("table", [spectra, tecator])
@pytest.mark.parametrize("solver", [None, WorkingSet(effort="thorough")], ids=["balanced", "thorough"])
def test_check_26_a_path_over_spectra_ends_at_minimisers(table, solver, monkeypatch):
    """Of tecator the search never ended: errors in its tableau grew to 10,000 times the loss of the null model."""
    if table is tecator and not os.environ.get("HARDTHRESH_DATA"):
        pytest.skip("HARDTHRESH_DATA names no folder with data")
    X, y = table()
    X = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(X))])
    left = iter(range(50_000))  # changes of a tableau; either table takes less than 10,000
    enter = Tableau._enter

    def counted(self, *column):
        next(left)
        enter(self, *column)

    monkeypatch.setattr(Tableau, "_enter", counted)
    last = X.shape[1] - 1
    budgets, null = range(26), 0.5 * np.var(y)
    for k, result in zip(
        budgets, path(LinearModel(X, y), lambda k: Sparsity(k, free=(last,)), budgets, solver), strict=True
    ):
        chosen = X[:, result.support]
        residual = y - chosen @ np.linalg.lstsq(chosen, y)[0]
        least = 0.5 * residual @ residual / len(y)
        assert result.converged
        assert result.support.indices.size <= k + 1
        assert least * (1 - 1e-6) <= result.value <= min(least * (1 + 1e-3), null * (1 + 1e-9))
