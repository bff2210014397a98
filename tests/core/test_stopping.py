"""Each stopping rule fires when it should, says why, and refuses arguments that mean nothing."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import hardthresh
from hardthresh.constraints import Coordinates, EdgeSparsity, Sparsity
from hardthresh.core import (
    BaseObjective,
    Evaluation,
    InvalidInputError,
    LowerBound,
    MaxIter,
    Passes,
    RelativeDecrease,
    Seconds,
    Settled,
    State,
    Stationarity,
    Status,
    SupportStable,
    Trace,
    minimize,
)
from hardthresh.core.stopping import Run
from hardthresh.objectives import Function, GraphicalModel, LinearModel
from hardthresh.solvers import IHT, AcceleratedIHT, HardThresholdingPursuit, ProbabilisticIHT
from hardthresh.steps import Backtracking, Fixed
from levels import at_most


@dataclass
class Bounded(BaseObjective):
    lower_bound: float = 0.0


def a_run(value=1.0, gradient=(0.5, 0.0, 0.1), seconds=0.0, bound=0.0, **changes: Any) -> Run:
    point = np.array([2.0, 1.0, 0.0])
    at = Evaluation(point, value, np.array(gradient))
    known = {"passes": 4.0, "stable_for": 3, "null_value": 9.0, "previous_value": 1.5, "null_gradient": 10.0}
    trace = Trace(**{name: changes.pop(name, default) for name, default in known.items()})
    state = State(at=at, support=Coordinates(np.array([0, 1])), iteration=changes.pop("iteration", 7), trace=trace)
    return Run(Bounded(bound), Sparsity(2), replace(state, **changes), seconds)


@pytest.mark.parametrize(
    ("rule", "fires", "holds", "status", "word"),
    [
        (MaxIter(7), {}, {"iteration": 6}, Status.MAX_ITER, "7 iterations"),
        (Passes(4.0), {}, {"passes": 3.9}, Status.BUDGET, "4 of 4 data passes"),
        (Passes(12000), {"passes": 12345.6}, {"passes": 1}, Status.BUDGET, "12345.6 of 12000 data passes"),
        (Seconds(2.0), {"seconds": 2.0}, {"seconds": 1.9}, Status.BUDGET, "ran 2.0 s of 2.0 s"),
        (Seconds(120), {"seconds": 139.7}, {"seconds": 1.9}, Status.BUDGET, "ran 2 min 20 s of 2 min"),
        (
            RelativeDecrease(1e-3),
            {"previous_value": 1.0 + 7e-3},
            {"previous_value": 1.0 + 9e-3},
            Status.SMALL_DECREASE,
            "0.007",
        ),
        (
            RelativeDecrease(1e-3),
            {"previous_value": 1.0 - 7e-3},
            {"previous_value": np.nan},
            Status.SMALL_DECREASE,
            "0.007",
        ),
        (SupportStable(3), {}, {"stable_for": 2}, Status.SUPPORT_STABLE, "3 iterations"),
        (Stationarity(0.06), {}, {"gradient": (0.7, 0.0, 0.1)}, Status.STATIONARY, "0.5"),
        (LowerBound(0.1), {"value": 0.9}, {"value": 0.91}, Status.LOWER_BOUND, "lower bound 0"),
        (
            LowerBound(0.1),
            {"value": 2.69, "bound": 2.0},
            {"value": 2.71, "bound": 2.0},
            Status.LOWER_BOUND,
            "lower bound 2",
        ),
        (Settled(), {"settled": "enough"}, {"settled": ""}, Status.SETTLED, "enough"),
        (Settled(), {"stalled": "stuck"}, {"stalled": ""}, Status.STALLED, "stuck"),
    ],
)
def test_every_rule_fires_and_says_why(rule, fires, holds, status, word):
    stop = rule.check(a_run(**fires))
    assert stop.status is status
    assert word in stop.message
    assert rule.check(a_run(**holds)) is None


def test_an_unknown_lower_bound_never_fires():
    assert LowerBound(1e-3).check(a_run(bound=-np.inf)) is None


def test_either_fires_with_the_first_that_does():
    now = a_run()
    assert (MaxIter(9) | SupportStable(2)).check(now).status is Status.SUPPORT_STABLE
    assert (MaxIter(7) | SupportStable(2)).check(now).status is Status.MAX_ITER
    assert (MaxIter(9) | SupportStable(4)).check(now) is None


def test_both_fire_together_and_both_say_why():
    now = a_run()
    stop = (SupportStable(2) & MaxIter(7)).check(now)
    assert stop.status is Status.SUPPORT_STABLE
    assert "did not change" in stop.message
    assert "7 iterations" in stop.message
    assert (SupportStable(4) & MaxIter(7)).check(now) is None
    assert (SupportStable(2) & MaxIter(9)).check(now) is None


def test_both_together_converge_whichever_comes_first():
    """A budget that runs out together with a reason to be content does not make the answer worse."""
    now = a_run()
    for one, other in [(Passes(4.0), SupportStable(3)), (MaxIter(7), Stationarity(0.06)), (MaxIter(7), Passes(4.0))]:
        first, second = (one & other).check(now), (other & one).check(now)
        assert first.status.converged == second.status.converged == other.check(now).status.converged


def test_rules_read_as_they_are_written():
    both = RelativeDecrease(1e-6) & SupportStable(5)
    assert repr(both | MaxIter(200)) == "RelativeDecrease(tol=1e-06) & SupportStable(iterations=5) | MaxIter(limit=200)"
    either = MaxIter(1) | Seconds(2.0)
    assert repr(either & Settled()) == "(MaxIter(limit=1) | Seconds(limit=2.0)) & Settled()"
    assert repr(Settled() & either) == "Settled() & (MaxIter(limit=1) | Seconds(limit=2.0))"
    assert eval(repr(either & Settled())) == either & Settled()
    assert both == RelativeDecrease(1e-6) & SupportStable(5)
    assert hash(both) == hash(RelativeDecrease(1e-6) & SupportStable(5))


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (MaxIter, -1),
        (Passes, 0.0),
        (Passes, np.nan),
        (Seconds, -1.0),
        (RelativeDecrease, 0.0),
        (RelativeDecrease, np.nan),
        (SupportStable, 0),
        (Stationarity, -1e-3),
        (LowerBound, 0.0),
    ],
)
def test_arguments_that_mean_nothing_are_refused(rule, value):
    with pytest.raises(InvalidInputError, match=rule.__name__):
        rule(value)


@pytest.fixture
def objective():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 20))
    return LinearModel(X, X[:, 4] + 0.1 * rng.standard_normal(60))


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        (MaxIter(2), Status.MAX_ITER),
        (Passes(3.0), Status.BUDGET),
        (Seconds(1e-9), Status.BUDGET),
        (RelativeDecrease(1e-3), Status.SMALL_DECREASE),
        (SupportStable(2), Status.SUPPORT_STABLE),
        (Stationarity(1e-3), Status.STATIONARY),
        (LowerBound(0.5), Status.LOWER_BOUND),
    ],
)
def test_every_rule_ends_a_run(objective, rule, status):
    run = minimize(objective, Sparsity(2), IHT(), stop=rule, max_iter=200)
    assert run.status is status
    assert run.message.endswith(status.sentence)
    assert run.converged == status.converged


def test_the_order_of_two_rules_does_not_decide_whether_a_run_converged(objective):
    budget, content = Passes(5.0), SupportStable()
    one, other = (minimize(objective, Sparsity(2), IHT(), stop=rule) for rule in (budget & content, content & budget))
    assert one.converged
    assert (one.status, one.n_iter) == (other.status, other.n_iter) == (Status.SUPPORT_STABLE, one.n_iter)


@pytest.mark.parametrize("stop", [Passes(1e9), RelativeDecrease(1e-300) & SupportStable(10**6), MaxIter(400)], ids=repr)
def test_a_settled_solver_stops_whatever_the_user_waits_for(objective, stop):
    run = minimize(objective, Sparsity(2), HardThresholdingPursuit(), stop=stop, max_iter=500)
    assert run.status is Status.SETTLED
    assert run.state.settled
    assert run.n_iter < 50


def test_a_step_that_is_far_too_small_is_no_convergence(objective):
    run = minimize(objective, Sparsity(2), IHT(step=Fixed(1e-10)), max_iter=300)
    assert run.status is Status.MAX_ITER
    assert not run.converged


def test_warm_and_cold_runs_stop_at_the_same_scale(objective):
    """A start next to the answer does not make the last digits matter more."""
    cold = minimize(objective, Sparsity(2), IHT(), max_iter=500)
    warm = minimize(objective, Sparsity(2), IHT(), cold.w, max_iter=500)
    for name in ("null_value", "null_gradient"):
        assert getattr(warm.state.trace, name) == getattr(cold.state.trace, name)
    assert warm.converged
    assert warm.n_iter <= 5
    assert warm.value <= cold.value


def test_settled_ends_a_run_of_the_default_solver(objective):
    run = minimize(objective, Sparsity(2), HardThresholdingPursuit(), stop=Settled())
    assert run.status is Status.SETTLED


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_relative_rules_do_not_see_the_scale(objective, factor):
    design = objective.design
    scaled = LinearModel(design, objective.y * factor)
    for rule in (RelativeDecrease(1e-4), Stationarity(1e-4), LowerBound(0.5)):
        one, other = (minimize(f, Sparsity(2), IHT(), stop=rule, max_iter=300) for f in (objective, scaled))
        assert (one.n_iter, one.status) == (other.n_iter, other.status)
        assert one.n_iter < 300


def test_separated_classes_have_no_minimiser_and_it_is_said():
    X = np.array([[1.0, 0.0], [2.0, 1.0], [-1.0, 0.5], [-2.0, 0.0]])
    result = minimize(LinearModel(X, [1.0, 1.0, 0.0, 0.0], loss="logistic"), Sparsity(1), HardThresholdingPursuit())
    assert result.status is Status.NO_MINIMISER
    assert not result.converged
    assert "ridge" in result.message
    ridged = minimize(LinearModel(X, [1.0, 1.0, 0.0, 0.0], loss="logistic", l2=0.1), Sparsity(1), IHT())
    assert ridged.converged


@pytest.mark.parametrize(
    "solver", [IHT(), HardThresholdingPursuit(), AcceleratedIHT(), ProbabilisticIHT()], ids=lambda s: type(s).__name__
)
def test_every_solver_says_that_separated_classes_have_no_minimiser(solver):
    X = np.random.default_rng(0).standard_normal((60, 5))
    y = X[:, 0] + 0.5 * X[:, 1] > 0
    for stop in (None, MaxIter(20)):
        run = minimize(LinearModel(X, y, loss="logistic"), Sparsity(2), solver, stop=stop, max_iter=30)
        assert run.status is Status.NO_MINIMISER
        assert not run.converged
        assert "ridge" in run.message
    overlapping = np.append(y[:-1], ~y[-1:])
    short = minimize(LinearModel(X, overlapping, loss="logistic"), Sparsity(2), solver, max_iter=2)
    assert short.status is not Status.NO_MINIMISER


def counts_with_a_dummy(seed=0, n=200):
    """Counts, and a dummy variable that is on only where they are zero: its coefficient has no finite minimiser."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    y = rng.poisson(np.exp(0.5 * X[:, 0] - 1.0)).astype(float)
    X[:, 3] = (y == 0) & (rng.random(n) < 0.6)
    return X, y


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("tol", [1e-4, 1e-8, 1e-12])
@pytest.mark.parametrize("solver", [None, IHT(), HardThresholdingPursuit()], ids=lambda s: type(s).__name__)
def test_counts_that_are_zero_wherever_a_dummy_is_on_have_no_minimiser(solver, tol):
    X, y = counts_with_a_dummy()
    X = np.column_stack([X, np.ones(len(X))])
    constraint = Sparsity(2, free=(4,))
    run = hardthresh.minimize(LinearModel(X, y, loss="poisson"), constraint, solver, tol=tol)
    assert 3 in run.support
    assert run.status is Status.NO_MINIMISER, run
    assert "coordinate 3" in run.message
    ridged = hardthresh.minimize(LinearModel(X, y, loss="poisson", l2=[1e-3] * 4 + [0.0]), constraint, solver, tol=tol)
    assert ridged.converged
    y[np.flatnonzero(X[:, 3])[0]] = 1.0
    assert hardthresh.minimize(LinearModel(X, y, loss="poisson"), constraint, solver, tol=tol).converged


def test_classes_that_are_separated_in_part_have_no_minimiser():
    """A dummy variable that is on for one class only, in a table whose classes overlap otherwise."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 3))
    y = (X[:, 0] + rng.standard_normal(300) > 0).astype(float)
    X[:, 2] = y * (rng.random(300) < 0.3)
    for sign in (1.0, -1.0):
        f = LinearModel(np.column_stack([X[:, :2], sign * X[:, 2]]), y, loss="logistic")
        run = hardthresh.minimize(f, Sparsity(3))
        assert run.status is Status.NO_MINIMISER
        assert "coordinate 2" in run.message
        bound = np.array([-np.inf, -np.inf, 0.0])  # a coefficient that may only grow: to the side where f falls, or not
        assert hardthresh.minimize(f, Sparsity(3, lower=bound)).converged == (sign < 0)
    X[0, 2] = 1.0 - y[0]
    X[1, 2] = 1.0 - y[1]
    assert hardthresh.minimize(LinearModel(X, y, loss="logistic"), Sparsity(3)).converged


def test_an_intercept_of_one_class_has_no_minimiser_though_there_is_a_ridge():
    f = LinearModel(np.column_stack([np.arange(5.0), np.ones(5)]), np.zeros(5), loss="poisson", l2=[0.1, 0.0])
    run = hardthresh.minimize(f, Sparsity(0, free=(1,)))
    assert run.status is Status.NO_MINIMISER
    assert "coordinate 1" in run.message


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", [None, IHT(), HardThresholdingPursuit(), ProbabilisticIHT()], ids=repr)
def test_a_ridge_on_other_columns_does_not_hide_that_free_ones_separate(solver, dtype):
    """Runs crept down for a thousand iterations, some of them for half a minute."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 5)).astype(dtype)
    y = (X[:, 0] > 0).astype(dtype)
    f = LinearModel(X, y, loss="logistic", l2=[0.0, 0.1, 0.1, 0.1, 0.1])
    run = hardthresh.minimize(f, Sparsity(2, free=(0,)), solver, max_iter=300)
    assert run.status is Status.NO_MINIMISER
    tiny = LinearModel(X.astype(float), y, loss="logistic", l2=1e-9)  # f at its minimum is below a millionth of f(0)
    run = hardthresh.minimize(tiny, Sparsity(2, free=(0,)), solver, max_iter=300)
    assert run.status is not Status.NO_MINIMISER


def test_a_start_that_is_the_answer_ends_at_once():
    """There the gradient is rounding, and so is what it is compared with."""
    X = np.random.default_rng(0).standard_normal((5, 1))
    f = LinearModel(np.column_stack([X, np.ones(5)]), np.arange(5.0) ** 2)
    for solver in (IHT(), IHT(step=Backtracking()), AcceleratedIHT(), HardThresholdingPursuit()):
        run = minimize(f, Sparsity(0, free=(0, 1)), solver, max_iter=300)
        assert run.converged, run
        assert run.n_iter < 50


def test_what_the_caller_ends_is_ended_by_the_caller():
    def callback(state):
        raise StopIteration

    X = np.array([[1.0], [2.0], [-1.0], [-2.0]])
    separated = LinearModel(X, [1.0, 1.0, 0.0, 0.0], loss="logistic")
    run = minimize(separated, Sparsity(1), IHT(), np.ones(1), callback=callback)
    assert run.status is Status.CALLBACK


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_a_point_that_grows_for_ever_is_told_from_one_that_has_far_to_go(unit):
    t = unit * np.array([1.0, 3.0, -2.0])
    kinked = Function(
        lambda w: np.sum(np.hypot(1e-9 * unit, w - t)), 3, lambda w: (w - t) / np.hypot(1e-9 * unit, w - t)
    )
    assert minimize(kinked, Sparsity(3), IHT(), max_iter=300).status is not Status.NO_MINIMISER
    falling = Function(lambda w: np.sum(w - t), 3, lambda w: np.ones(3))
    run = minimize(falling, Sparsity(3), IHT())
    assert run.status is Status.NO_MINIMISER
    assert "falls as it grows" in run.message
    bounded = Function(lambda w: np.sum(w - t), 3, lambda w: np.ones(3), lower_bound=-1e300)
    assert minimize(bounded, Sparsity(3), IHT(), max_iter=100).status is Status.MAX_ITER


def test_a_start_that_is_the_answer_is_stationary_although_its_gradient_is_only_rounding():
    """The best diagonal matrix, if no edge is allowed: what is left of the gradient there is no scale to measure on."""
    f = GraphicalModel(np.random.default_rng(0).standard_normal((30, 6)))
    run = minimize(f, EdgeSparsity(6), IHT(), max_iter=100)
    assert run.converged
    assert run.n_iter < 10
    np.testing.assert_allclose(run.w, f.null_point(), rtol=1e-12)
