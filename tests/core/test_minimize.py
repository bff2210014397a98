"""The one loop: what it yields, records, refuses, survives, and how it goes on."""

import pickle
from dataclasses import dataclass, replace
from itertools import islice, pairwise

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.certificates import certify
from hardthresh.constraints import Coordinates, EdgeSparsity, Rank, Sparsity
from hardthresh.core import (
    BaseObjective,
    CapabilityError,
    Evaluation,
    HardThreshError,
    InvalidInputError,
    MaxIter,
    NotFiniteError,
    RelativeDecrease,
    Solver,
    State,
    Status,
    iterate,
    minimize,
)
from hardthresh.core import progress as progress_module
from hardthresh.core.step import Move, StepRule
from hardthresh.objectives import Function, GraphicalModel, LinearModel
from hardthresh.solvers import (
    IHT,
    AcceleratedIHT,
    ConjugateIHT,
    FixedBatch,
    HardThresholdingPursuit,
    ProbabilisticIHT,
    StochasticIHT,
    WorkingSet,
    choose_solver,
)
from hardthresh.steps import BarzilaiBorwein, ExactLineSearch, Fixed, SparsePolyak


def problem(n=60, d=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X[:, 3] - 2 * X[:, 20] + 0.1 * rng.standard_normal(n)


@pytest.fixture
def objective():
    return LinearModel(*problem())


class Interrupting(LinearModel):
    """Behaves like the user's Ctrl-C during one of the evaluations."""

    def __init__(self, X, y, at):
        super().__init__(X, y)
        self.calls = [0, at]

    def evaluate(self, w, prediction=None):
        self.calls[0] += 1
        if self.calls[0] == self.calls[1]:
            raise KeyboardInterrupt
        return super().evaluate(w, prediction)

    def _with(self, design, **changes):
        model = type(self).__new__(type(self))
        vars(model).update(vars(self), design=design, **changes)  # the counter is shared
        return model


def test_iterate_yields_the_start_state_first(objective):
    states = list(islice(iterate(objective, Sparsity(2), IHT()), 5))
    assert [state.iteration for state in states] == [0, 1, 2, 3, 4]
    assert not states[0].w.any()
    assert np.isnan(states[0].step)
    assert states[0].passes == 1.0
    w0 = np.arange(30.0)
    start = next(iterate(objective, Sparsity(2), IHT(), w0))
    np.testing.assert_array_equal(start.w, Sparsity(2).project(w0).point)


def test_minimize_is_iterate_with_a_stop(objective):
    run = minimize(objective, Sparsity(2), IHT(), max_iter=7, tol=0.0)
    states = list(islice(iterate(objective, Sparsity(2), IHT()), 8))
    np.testing.assert_array_equal(run.history["value"], [state.value for state in states])
    np.testing.assert_array_equal(run.history["step"], [state.step for state in states[1:]])
    np.testing.assert_array_equal(run.history["passes"], [state.passes for state in states])
    np.testing.assert_array_equal(run.w, states[-1].w)


def test_a_step_lies_between_its_two_values(objective):
    """history["step"][t] leads from w_t, whose value is history["value"][t], to w_{t+1}."""
    run = minimize(objective, Sparsity(2), IHT(step=Fixed(0.1)), max_iter=3, tol=0.0)
    w = np.zeros(30)
    for t, step in enumerate(run.history["step"]):
        at = objective.evaluate(w)
        np.testing.assert_allclose(run.history["value"][t], at.value, rtol=1e-12)
        w = Sparsity(2).project(w - step * at.gradient).point
    np.testing.assert_allclose(run.w, w, rtol=1e-12)


@pytest.mark.parametrize("max_iter", [0, 1, 6])
def test_without_tolerance_it_runs_exactly_max_iter(objective, max_iter):
    run = minimize(objective, Sparsity(2), IHT(), max_iter=max_iter, tol=0.0)
    assert run.n_iter == run.state.iteration == max_iter
    assert len(run.history["value"]) == len(run.history["passes"]) == len(run.history["seconds"]) == max_iter + 1
    assert len(run.history["step"] if max_iter else run.history.column("step")) == max_iter
    assert run.status is Status.MAX_ITER
    assert not run.converged
    assert f"reached {max_iter} iterations" in run.message


def test_the_history_is_read_only(objective):
    run = minimize(objective, Sparsity(2), IHT(), max_iter=2)
    with pytest.raises(ValueError, match="read-only"):
        run.history["value"][0] = 0.0
    with pytest.raises(KeyError):
        run.history["nothing"]
    assert {"value", "step", "passes", "seconds"} <= set(run.history)
    assert (np.diff(run.history["seconds"]) >= 0).all()
    assert (np.diff(run.history["passes"]) > 0).all()


def test_a_callback_sees_every_state_and_may_stop(objective):
    seen = []

    def callback(state):
        seen.append(state.iteration)
        if state.iteration == 3:
            raise StopIteration

    run = minimize(objective, Sparsity(2), IHT(), max_iter=50, tol=0.0, callback=callback)
    assert seen == [0, 1, 2, 3]
    assert run.status is Status.CALLBACK
    assert not run.converged
    assert run.n_iter == 3
    assert "iteration 3" in run.message
    assert (len(run.history["value"]), len(run.history["step"])) == (4, 3)


def test_any_other_error_of_a_callback_is_the_callers(objective):
    def callback(state):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        minimize(objective, Sparsity(2), IHT(), callback=callback)


@pytest.mark.parametrize("solver", [IHT(), IHT(step=BarzilaiBorwein()), IHT(step=SparsePolyak(scale=0.5))], ids=repr)
@pytest.mark.parametrize("at", [2, 3, 9])
def test_ctrl_c_returns_the_best_iterate_and_loses_nothing(solver, at):
    X, y = problem()
    run = minimize(Interrupting(X, y, at), Sparsity(2), solver, max_iter=30, tol=0.0)
    assert run.status is Status.INTERRUPTED
    assert not run.converged
    assert run.n_iter < 30
    assert run.value == run.history["value"].min()
    assert run.value == LinearModel(X, y).evaluate(run.w).value
    assert len(run.history["value"]) == run.n_iter + 1
    assert len(run.history.column("step")) == run.n_iter
    whole = minimize(LinearModel(X, y), Sparsity(2), solver, max_iter=30, tol=0.0)
    state = pickle.loads(pickle.dumps(run.state))
    rest = minimize(LinearModel(X, y), Sparsity(2), solver, max_iter=30, tol=0.0, state=state)
    np.testing.assert_array_equal(rest.w, whole.w)
    values = [*run.history["value"], *rest.history["value"][1:]]
    np.testing.assert_array_equal(values, whole.history["value"])


def test_ctrl_c_in_a_callback_counts_too(objective):
    def callback(state):
        if state.iteration == 2:
            raise KeyboardInterrupt

    run = minimize(objective, Sparsity(2), IHT(), callback=callback, tol=0.0)
    assert run.status is Status.INTERRUPTED
    assert run.n_iter == 2


@pytest.mark.parametrize("solver", [IHT(), HardThresholdingPursuit(), WorkingSet()], ids=lambda s: type(s).__name__)
def test_a_run_without_a_step_has_all_its_columns(objective, solver):
    def callback(state):
        raise KeyboardInterrupt

    run = minimize(objective, Sparsity(2), solver, callback=callback)
    assert run.status is Status.INTERRUPTED
    assert {name: len(run.history[name]) for name in ("value", "passes", "seconds", "step")} == {
        "value": 1,
        "passes": 1,
        "seconds": 1,
        "step": 0,
    }


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("step", [1e6, 1e200, 1e308])
def test_divergence_ends_with_a_finite_answer(objective, step):
    run = minimize(objective, Sparsity(2), IHT(step=Fixed(step)), max_iter=500)
    assert run.status is Status.DIVERGED
    assert not run.converged
    assert np.isfinite(run.w).all()
    assert run.value == np.min(run.history["value"][np.isfinite(run.history["value"])])
    assert run.value <= objective.value(np.zeros(30))
    assert not np.isfinite(run.history["value"][-1])


@dataclass(frozen=True)
class Misleading(StepRule):
    """Goes to a point and says that there is nothing left to improve."""

    to: float

    def move(self, objective, constraint, at, direction, memory, support):
        return Move(
            constraint.project(at.point + self.to * direction), 1.0, None, memory, "there is nothing to improve"
        )


@pytest.mark.parametrize("w0", [None, 0.1])
@pytest.mark.parametrize("stop", [None, RelativeDecrease(1e3), MaxIter(1)])
def test_a_run_that_ends_above_its_start_and_the_null_model_has_diverged(objective, w0, stop):
    start = None if w0 is None else np.full(30, w0)
    run = minimize(objective, Sparsity(2), IHT(step=Misleading(100.0)), w0=start, stop=stop)
    assert run.status is Status.DIVERGED
    assert run.value <= run.history["value"][0] < run.history["value"][-1]
    run = minimize(objective, Sparsity(2), IHT(step=Misleading(0.1)), w0=start)
    assert run.status is Status.SETTLED


def test_a_run_that_rises_by_rounding_has_not_diverged(objective):
    best = minimize(objective, Sparsity(2), HardThresholdingPursuit())
    for sign in (-1.0, 1.0):
        run = minimize(
            objective, Sparsity(2), IHT(step=Misleading(sign * 1e-3)), w0=best.w, stop=MaxIter(1), max_iter=1
        )
        assert run.status is not Status.DIVERGED
    run = minimize(LinearModel(np.ones((4, 1)), np.zeros(4)), Sparsity(1), IHT())
    assert run.converged


class Spoilt(LinearModel):
    """Its gradient, and its value if asked for, is NaN or infinite from one of the evaluations on."""

    def __init__(self, X, y, first, gradient, value=None):
        super().__init__(X, y)
        self.calls, self.first = [0], first
        self.spoilt_gradient, self.spoilt_value = gradient, value

    def evaluate(self, w, prediction=None):
        self.calls[0] += 1
        at = super().evaluate(w, prediction)
        if self.calls[0] < self.first:
            return at
        gradient = at.gradient.copy()
        gradient[7] = self.spoilt_gradient
        return Evaluation(w, at.value if self.spoilt_value is None else self.spoilt_value, gradient, at.prediction)

    def _with(self, design, **changes):
        model = type(self).__new__(type(self))
        vars(model).update(vars(self), design=design, **changes)  # the counter is shared
        return model

    def columns(self, indices):
        return self._with(self.design.columns(indices), first=np.inf)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize(
    "solver",
    [IHT(), IHT(step=Fixed(0.01)), IHT(step=BarzilaiBorwein()), HardThresholdingPursuit()],
    ids=["iht", "fixed", "secant", "pursuit"],
)
@pytest.mark.parametrize("first", [2, 3])
@pytest.mark.parametrize(
    ("gradient", "value"), [(np.nan, None), (np.inf, None), (np.nan, np.nan), (-np.inf, np.inf)], ids=str
)
def test_a_gradient_that_is_no_number_ends_the_run_with_a_finite_answer(solver, first, gradient, value):
    X, y = problem()
    run = minimize(Spoilt(X, y, first, gradient, value), Sparsity(2), solver, max_iter=50)
    assert run.status is Status.DIVERGED
    assert not run.converged
    assert np.isfinite(run.w).all()
    assert np.isfinite(run.value)
    assert run.value == pytest.approx(LinearModel(X, y).value(run.w), rel=1e-12)
    assert run.value <= LinearModel(X, y).value(np.zeros(30))


def test_progress_goes_to_standard_error_only(objective, capsys):
    minimize(objective, Sparsity(2), IHT(), max_iter=4, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "IHT" in captured.err
    minimize(objective, Sparsity(2), IHT(), max_iter=4)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_progress_without_a_library_names_what_to_install(objective, monkeypatch):
    monkeypatch.setattr(progress_module, "_installed", lambda module: False)
    with pytest.raises(ImportError, match="rich or tqdm"):
        minimize(objective, Sparsity(2), IHT(), max_iter=4, progress=True)


class Plain(BaseObjective):
    """Offers nothing beyond the contract, and must not even be evaluated where that is not enough."""

    shape = (5,)

    def zeros(self):
        raise AssertionError("asked for a point although an ability is missing")

    predict = evaluate = value = zeros


@pytest.mark.parametrize(
    ("solver", "missing"),
    [
        (HardThresholdingPursuit(), ["HardThresholdingPursuit", "curvature"]),
        (IHT(step=ExactLineSearch()), ["ExactLineSearch", "curvature"]),
        (IHT(step=SparsePolyak()), ["SparsePolyak", "lower_bound"]),
    ],
    ids=["pursuit", "exact", "polyak"],
)
def test_a_missing_ability_is_named_before_any_evaluation(solver, missing):
    with pytest.raises(CapabilityError) as error:
        minimize(Plain(), Sparsity(2), solver)
    assert all(word in str(error.value) for word in [*missing, "Plain"])


@pytest.mark.parametrize("solver", [None, IHT()])
def test_a_function_of_symmetric_matrices_needs_a_set_of_such(solver):
    f = GraphicalModel(np.random.default_rng(0).standard_normal((30, 4)))
    with pytest.raises(CapabilityError, match=r"GraphicalModel is a function of symmetric matrices, and Rank\(r=2"):
        ht.minimize(f, Rank(2), solver)
    assert ht.minimize(f, EdgeSparsity(8), solver).converged


class Quadratic(BaseObjective):
    """The least that an objective must offer."""

    shape = (4,)

    def evaluate(self, w, prediction=None):
        difference = w - [1.0, 2.0, 3.0, 4.0]
        return Evaluation(w, 0.5 * float(np.sum(difference**2)), difference)


def test_an_objective_with_nothing_beyond_the_contract_will_do():
    assert choose_solver(Quadratic(), Sparsity(1)) == IHT()
    run = ht.minimize(Quadratic(), Sparsity(2))
    np.testing.assert_allclose(run.w, [0.0, 0.0, 3.0, 4.0], rtol=1e-6)
    certificate = certify(run)
    assert np.isnan(certificate.smoothness)
    assert certificate.basic_feasibility < 1e-6
    states = list(islice(ht.iterate(Quadratic(), Sparsity(2)), 3))
    assert np.isnan(states[0].passes)  # nobody counts


def test_the_default_solver_needs_no_number(objective):
    assert choose_solver(objective, Sparsity(2)) == WorkingSet()
    assert choose_solver(objective, Sparsity(2), tol=1e-3) == WorkingSet(tol=1e-3)
    assert choose_solver(objective, Sparsity(2), tol=0.0) == WorkingSet()
    assert choose_solver(objective, Sparsity(2, upper=1.0)) == WorkingSet()
    run = ht.minimize(objective, Sparsity(2))
    assert run.converged
    np.testing.assert_array_equal(run.support, [3, 20])
    states = list(islice(ht.iterate(objective, Sparsity(2)), run.n_iter + 1))
    np.testing.assert_array_equal(states[-1].w, run.w)


@pytest.mark.parametrize("w0", [np.zeros(29), np.zeros((30, 1)), np.zeros(0)], ids=["short", "matrix", "empty"])
def test_a_start_of_another_shape_is_refused(objective, w0):
    with pytest.raises(InvalidInputError, match=r"w0 has shape .* needs \(30,\)"):
        minimize(objective, Sparsity(2), IHT(), w0)


@pytest.mark.parametrize(
    "w0",
    [list(range(30)), np.arange(30), np.arange(30, dtype=np.uint8), np.arange(30.0), np.arange(30, dtype=np.float32)],
    ids=["list", "integers", "bytes", "double", "single"],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("solver", [IHT(), HardThresholdingPursuit()], ids=["iht", "pursuit"])
def test_a_start_is_brought_to_the_dtype_of_the_problem(solver, dtype, w0):
    X, y = problem()
    objective = LinearModel(X.astype(dtype), y.astype(dtype))
    expected = Sparsity(2).project(np.arange(30, dtype=dtype)).point
    for state in islice(iterate(objective, Sparsity(2), solver, w0), 4):
        assert state.w.dtype == state.at.gradient.dtype == dtype
        if state.iteration == 0:
            np.testing.assert_array_equal(state.w, expected)


@pytest.mark.parametrize(
    "w0", [np.full(30, 1j), np.full(30, "a"), ["a"] * 30, np.full(30, None)], ids=["complex", "text", "list", "objects"]
)
def test_a_start_that_is_not_real_is_refused(objective, w0):
    with pytest.raises(InvalidInputError, match="w0"):
        minimize(objective, Sparsity(2), IHT(), w0)


def test_a_state_of_another_solver_is_refused(objective):
    states = [
        minimize(objective, Sparsity(2), solver, max_iter=2).state for solver in (IHT(), HardThresholdingPursuit())
    ]
    for solver, state in zip((HardThresholdingPursuit(), IHT()), states, strict=True):
        with pytest.raises(InvalidInputError, match=f"{type(solver).__name__}.*{type(state).__name__}"):
            minimize(objective, Sparsity(2), solver, state=state)
        with pytest.raises(InvalidInputError, match=type(solver).__name__):
            next(iterate(objective, Sparsity(2), solver, state=state))


def test_a_state_of_another_shape_is_refused(objective):
    X, y = problem(d=29)
    state = minimize(LinearModel(X, y), Sparsity(2), IHT(), max_iter=2).state
    with pytest.raises(InvalidInputError, match=r"\(29,\).*\(30,\)"):
        minimize(objective, Sparsity(2), IHT(), state=state)


@pytest.mark.parametrize("entry", [np.nan, np.inf])
def test_a_start_with_nan_is_refused(objective, entry):
    w0 = np.zeros(30)
    w0[4] = entry
    with pytest.raises(InvalidInputError, match="w0 contains NaN"):
        minimize(objective, Sparsity(2), IHT(), w0)


def barrier(outside=np.inf):
    """Infinite, or no number, unless the first two entries are positive; least at 1 and 1."""

    def value(w):
        return float(np.sum(w[:2] - np.log(w[:2])) + np.sum(w[2:] ** 2)) if (w[:2] > 0).all() else outside

    def gradient(w):
        return np.append(1 - 1 / w[:2], 2 * w[2:]) if (w[:2] > 0).all() else np.full(4, np.nan)

    return Function(value, 4, gradient, curvature=lambda w, v: np.append(v[:2] / w[:2] ** 2, 2 * v[2:]))


SOLVERS = [IHT(), HardThresholdingPursuit(), ConjugateIHT(), AcceleratedIHT(), ProbabilisticIHT()]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: type(s).__name__)
def test_a_start_outside_the_domain_is_told_as_that(solver):
    run = minimize(barrier(), Sparsity(2), solver)
    assert run.status is Status.DIVERGED
    assert run.n_iter == 0
    assert "not finite where the run starts" in run.message
    assert "w0" in run.message
    assert "NaN" not in run.message.split(":")[0]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: type(s).__name__)
def test_a_start_that_is_not_a_number_is_an_error_that_names_the_point(solver):
    with pytest.raises(NotFiniteError, match="returned nan at the point"):
        minimize(barrier(np.nan), Sparsity(2), solver)


@pytest.mark.parametrize(
    ("solver", "outside"), [(solver, np.inf) for solver in SOLVERS] + [(IHT(), np.nan)], ids=lambda s: type(s).__name__
)
def test_a_start_inside_the_domain_needs_none_at_zero(solver, outside):
    run = minimize(barrier(outside), Sparsity(2), solver, w0=np.array([3.0, 0.2, 0.0, 0.0]))
    assert run.converged
    np.testing.assert_allclose(run.w, [1.0, 1.0, 0.0, 0.0], atol=1e-3)
    assert run.state.trace.size == pytest.approx(np.hypot(3.0, 0.2))  # the scales are those of the start then


def test_a_start_and_a_state_together_are_refused(objective):
    state = minimize(objective, Sparsity(2), IHT(), max_iter=2).state
    with pytest.raises(InvalidInputError, match="either w0"):
        minimize(objective, Sparsity(2), IHT(), np.zeros(30), state=state)


@pytest.mark.parametrize(
    ("name", "value"),
    [("tol", value) for value in (-1e-3, np.nan, None, "a", True)]
    + [("max_iter", value) for value in (-1, None, 2.5, True, "a", np.inf)]
    + [("seed", value) for value in (-1, None, 1.5, "a", np.random.default_rng(0))]
    + [("state", value) for value in ({}, 3, State)],
)
def test_invalid_settings_are_refused_by_name(objective, name, value):
    with pytest.raises(InvalidInputError, match=rf"^{name} must be"):
        minimize(objective, Sparsity(2), IHT(), **{name: value})


def test_limits_may_be_numpy_numbers(objective):
    run = minimize(objective, Sparsity(2), IHT(), max_iter=np.int64(3), tol=np.float32(0.0), seed=np.uint8(1))
    assert run.n_iter == 3


def test_a_rule_of_the_users_replaces_the_solvers_own(objective):
    run = minimize(objective, Sparsity(2), IHT(step=Fixed(1e-3)), stop=RelativeDecrease(1e-2), max_iter=500)
    assert run.status is Status.SMALL_DECREASE
    assert run.converged
    run = minimize(objective, Sparsity(2), IHT(), stop=MaxIter(3))
    assert (run.status, run.n_iter) == (Status.MAX_ITER, 3)


def test_max_iter_counts_from_the_start_of_a_resumed_run(objective):
    part = minimize(objective, Sparsity(2), IHT(), max_iter=3, tol=0.0)
    rest = minimize(objective, Sparsity(2), IHT(), max_iter=5, tol=0.0, state=part.state)
    assert rest.n_iter == 5
    assert len(rest.history["step"]) == 2
    done = minimize(objective, Sparsity(2), IHT(), max_iter=3, tol=0.0, state=part.state)
    assert done.n_iter == 3
    assert len(done.history["value"]) == 1


def test_a_perfect_fit_says_so():
    X = np.random.default_rng(0).standard_normal((30, 10))
    run = minimize(LinearModel(X, X[:, 1]), Sparsity(3), HardThresholdingPursuit())
    assert run.converged
    assert run.value < 1e-20
    np.testing.assert_allclose(run.w, np.eye(10)[1], atol=1e-9)


def test_the_result_reads_well(objective):
    run = minimize(objective, Sparsity(2), HardThresholdingPursuit())
    assert "SETTLED" in repr(run)
    assert f"n_iter={run.n_iter}" in repr(run)
    assert repr(run.history).startswith("History(")
    assert run.passes == run.state.passes == run.history["passes"][-1]
    for status in Status:
        assert status.sentence
        assert isinstance(status.converged, bool)


def test_passes_go_on_counting_in_a_resumed_run(objective):
    straight = minimize(objective, Sparsity(2), IHT(), max_iter=8, tol=0.0)
    part = minimize(objective, Sparsity(2), IHT(), max_iter=3, tol=0.0)
    rest = minimize(objective, Sparsity(2), IHT(), max_iter=8, tol=0.0, state=part.state)
    assert rest.passes == straight.passes > part.passes


def test_the_trace_says_what_stopping_rules_need(objective):
    states = list(islice(iterate(objective, Sparsity(2), IHT(step=Fixed(0.02))), 40))
    scale = np.sort(np.abs(states[0].at.gradient))[-2:]
    stable = 0
    for before, state in pairwise(states):
        same = np.array_equal(before.support, state.support)
        stable = stable + 1 if same else 0
        assert state.trace.stable_for == stable
        assert state.trace.previous_value == before.value
        assert state.trace.null_value == states[0].value
        assert state.trace.null_gradient == pytest.approx(np.linalg.norm(scale))
    assert states[1].trace.stable_for == 0  # zero's support is empty
    assert stable > 5


@pytest.mark.parametrize("solver", [IHT(), HardThresholdingPursuit()], ids=["iht", "pursuit"])
@pytest.mark.parametrize("constraint", [Sparsity(2), Sparsity(2, free=(0,))], ids=["plain", "free"])
def test_the_scales_of_a_run_do_not_depend_on_where_it_starts(objective, solver, constraint):
    """They are those of the solver's own start, also where that is not zero."""
    own = next(iterate(objective, constraint, solver))
    assert own.trace.null_value == own.value
    assert own.trace.null_gradient == pytest.approx(np.linalg.norm(constraint.hard_threshold(own.at.gradient)))
    for w0 in (np.full(30, 10.0), own.w):
        warm = next(iterate(objective, constraint, solver, w0))
        assert (warm.trace.null_value, warm.trace.null_gradient) == (own.trace.null_value, own.trace.null_gradient)
        assert np.isnan(warm.trace.previous_value)


def test_a_state_is_not_carried_to_another_problem(objective):
    state = ht.minimize(objective, Sparsity(4), IHT(), max_iter=2).state
    with pytest.raises(InvalidInputError, match="outside the constraint"):
        ht.minimize(objective, Sparsity(2), IHT(), state=state)
    other = LinearModel(objective.design, -objective.y)
    with pytest.raises(InvalidInputError, match="another objective"):
        ht.minimize(other, Sparsity(4), IHT(), state=state)


@pytest.mark.parametrize(
    "solver",
    [ProbabilisticIHT(batch=FixedBatch(20)), ProbabilisticIHT(), StochasticIHT(step=0.1, batch=FixedBatch(20))],
    ids=str,
)
def test_a_state_that_is_an_estimate_is_not_carried_to_another_problem_either(objective, solver):
    run = minimize(objective, Sparsity(3), solver, max_iter=5, tol=0.0)
    X, y = objective.design, objective.y
    longer = problem(n=90)
    for other in (LinearModel(X, -y), LinearModel(X, y, l2=0.1), LinearModel(*longer)):
        with pytest.raises(InvalidInputError, match="another objective"):
            minimize(other, Sparsity(3), solver, state=run.state)
    whole = minimize(objective, Sparsity(3), solver, max_iter=9, tol=0.0)
    np.testing.assert_array_equal(
        minimize(objective, Sparsity(3), solver, state=run.state, max_iter=9, tol=0.0).w, whole.w
    )


def test_arguments_other_than_rules_and_objectives_are_refused(objective):
    with pytest.raises(InvalidInputError, match="StopRule such as"):
        ht.minimize(objective, Sparsity(2), stop=100)
    with pytest.raises(CapabilityError, match="shape and lower_bound and traits"):
        ht.minimize(lambda w: 0.0, Sparsity(2), IHT())


@pytest.mark.parametrize(
    ("solver", "said"),
    [
        ("iht", "such as IHT\\(\\); got 'iht'"),
        (IHT, "got the class IHT; write IHT"),
        (SparsePolyak(), "got SparsePolyak"),
    ],
)
def test_arguments_other_than_solvers_are_refused(objective, solver, said):
    for run in (ht.minimize, ht.iterate):
        with pytest.raises(InvalidInputError, match=said):
            next(iter([run(objective, Sparsity(2), solver)][0]))
    with pytest.raises(InvalidInputError, match="got the class Sparsity; write Sparsity"):
        ht.minimize(objective, Sparsity)


@pytest.mark.parametrize(
    ("step", "said"),
    [("sparse_polyak", "got 'sparse_polyak'"), (SparsePolyak, "got the class SparsePolyak; write"), (0.1, "got 0.1")],
)
def test_arguments_other_than_step_rules_are_refused(step, said):
    with pytest.raises(InvalidInputError, match=f"step must be a rule, such as SparsePolyak\\(\\); {said}"):
        IHT(step=step)


@pytest.mark.parametrize("scale", [1e-160, 1e75, 1e150, 1e153])
@pytest.mark.parametrize("solver", [None, IHT(), AcceleratedIHT(), HardThresholdingPursuit()])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_overflow_is_reported_without_warnings_of_numpy(loss, solver, scale):
    rng = np.random.default_rng(0)
    X, u = scale * rng.standard_normal((30, 6)), rng.standard_normal(30)
    y = (u > 0).astype(float) if loss == "logistic" else u
    try:
        result = ht.minimize(LinearModel(X, y, loss), Sparsity(2), solver)  # a RuntimeWarning is an error in the tests
    except HardThreshError:
        return
    assert np.isfinite(result.w).all()
    assert not result.converged or np.isfinite(result.value)


def warned(w):
    """Return 0, and have NumPy warn."""
    return 0.0 * np.minimum(np.float64(1e200) ** 2, w[0])


CALLABLES = {
    "value": lambda f, g: Function(lambda w: f(w) + warned(w), 4, g),
    "gradient": lambda f, g: Function(f, 4, lambda w: g(w) + warned(w)),
    "pair": lambda f, g: Function(lambda w: (f(w), g(w) + warned(w)), 4, True),
    "curvature": lambda f, g: Function(f, 4, g, curvature=lambda w, v: v + warned(w)),
    "batches": lambda f, g: Function(
        *(lambda w, rows: f(w), 4, lambda w, rows: g(w)), n_rows=2, batches=lambda rows: (warned(np.ones(1)), rows)
    ),
}


@pytest.mark.parametrize("which", CALLABLES)
def test_numpy_warns_of_what_overflows_in_functions_of_the_user(which):
    t = np.array([3.0, 0.1, -2.0, 0.2])
    f = CALLABLES[which](lambda w: 0.5 * np.sum((w - t) ** 2), lambda w: w - t)
    solver = IHT(step=ExactLineSearch()) if which == "curvature" else IHT()
    with pytest.warns(RuntimeWarning, match="overflow encountered"):
        minimize(f, Sparsity(2), solver)
    with np.errstate(over="ignore"):
        assert minimize(f, Sparsity(2), solver).converged
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow encountered"):
        minimize(f, Sparsity(2), solver)


@pytest.mark.parametrize("scale", [1e75, 1e150])
@pytest.mark.parametrize("solver", [None, IHT(), AcceleratedIHT(), HardThresholdingPursuit()])
def test_a_gradient_whose_squares_overflow_is_no_end_of_a_search(solver, scale):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 6)), rng.standard_normal(30)
    best = ht.minimize(LinearModel(X, y), Sparsity(2)).value
    result = ht.minimize(LinearModel(scale * X, 1e100 * y), Sparsity(2), solver)
    assert not result.converged or result.value < 1.001 * best * 1e200


# --- estimates -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimating(Solver):
    """Goes along the first coordinate, and says of f what it is given: the truth, or an estimate of it."""

    values: tuple[float, ...]
    exact: tuple[bool, ...]

    def start(self, objective, constraint, w0, seed):
        return self.state(objective, 0)

    def advance(self, objective, constraint, state):
        return self.state(objective, state.iteration + 1)

    def state(self, objective, iteration):
        point = np.zeros(objective.shape)
        point[0] = iteration
        at = replace(objective.evaluate(point), value=self.values[iteration])
        support = Coordinates(np.flatnonzero(point))
        return State(at=at, support=support, iteration=iteration, step=1.0, exact=self.exact[iteration])


def interrupt_at(iteration):
    def callback(state):
        if state.iteration == iteration:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize(
    ("exact", "best"),
    [
        ((True, True, True, True), 1),
        ((False, False, False, False), 3),
        ((True, False, False, False), 3),
        ((True, True, False, True), 3),
    ],
)
def test_the_best_iterate_is_the_lowest_of_exact_values_and_the_last_of_estimates(objective, exact, best):
    """Estimates are of different things, so that a low one means nothing."""
    solver = Estimating((4.0, 1.0, 3.0, 2.0), exact)
    run = minimize(objective, Sparsity(2), solver, callback=interrupt_at(3), max_iter=3, tol=0.0)
    assert run.status is Status.INTERRUPTED
    assert run.w[0] == best


@pytest.mark.parametrize(
    ("exact", "n_iter"),
    [
        ((True, True, True, True), 2),
        ((False, False, False, False), 3),
        ((True, False, True, True), 3),
        ((True, True, False, True), 3),
    ],
)
def test_a_small_decrease_is_one_between_two_exact_values(objective, exact, n_iter):
    solver = Estimating((4.0, 3.0, 3.0, 3.0), exact)
    run = minimize(objective, Sparsity(2), solver, stop=RelativeDecrease(1e-6), max_iter=3)
    assert run.n_iter == n_iter


def test_estimates_above_the_start_are_no_divergence(objective):
    for exact, status in ((True, Status.DIVERGED), (False, Status.MAX_ITER)):
        solver = Estimating((4.0, 5.0, 1e6), (exact,) * 3)
        assert minimize(objective, Sparsity(2), solver, max_iter=2, tol=0.0).status is status
