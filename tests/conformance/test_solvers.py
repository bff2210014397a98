"""Every registered solver keeps the contract of `hardthresh.core.Solver` and the promises of the library."""

import pickle
from dataclasses import FrozenInstanceError, fields, is_dataclass
from itertools import islice, pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from cases import (
    LOSSES,
    OTHER_LIBRARIES,
    assert_same_point,
    back,
    convert,
    examples,
    needs_no_number,
    planted,
    problems,
    ramp,
    takes,
)

from hardthresh.arrays import as_floating
from hardthresh.constraints import Rank, Sparsity
from hardthresh.core import (
    CapabilityError,
    HardThreshError,
    InvalidInputError,
    State,
    Status,
    Trace,
    iterate,
    lookup,
    minimize,
)
from hardthresh.core.stationarity import norm
from hardthresh.designs import as_design, standardize
from hardthresh.objectives import LinearModel, MatrixRegression
from hardthresh.solvers import (
    IHT,
    AcceleratedIHT,
    BranchAndBound,
    ConjugateIHT,
    ConstantMomentum,
    HardThresholdingPursuit,
    WorkingSet,
)
from hardthresh.steps import Backtracking, ExactLineSearch
from levels import in_turn, reaches, slow_beyond

every = pytest.mark.parametrize("solver", examples("solver"))
TUNED = examples("solver", where=needs_no_number)
every_tuned = pytest.mark.parametrize("solver", TUNED)
every_problem = pytest.mark.parametrize(("solver", "objective", "constraint"), problems(examples("solver")))
every_loss = pytest.mark.parametrize("loss", LOSSES)


def takes_loss(solver, loss):
    """Whether a solver takes models of a loss: some need a quadratic."""
    return loss == "squared" or takes(solver, planted(loss).model(), Sparsity(4))


def takes_bounds(solver):
    """Whether a solver takes bounds of coefficients."""
    return takes(solver, planted().model(), Sparsity(4, lower=0.0))


def of_losses(names, solvers, *others):
    """Parametrise by solvers and losses in turn; a solver that needs a quadratic has squared errors in every turn."""
    rows = {}
    for row in in_turn(names, solvers, LOSSES, *others).args[1]:
        solver, loss, *rest = row.values
        if not takes_loss(solver, loss):
            row = pytest.param(solver, "squared", *rest, id=row.id.replace(loss, "squared"))
        rows.setdefault(row.id, row)
    return pytest.mark.parametrize(names, list(rows.values()))


FAR = [
    pytest.param(
        AcceleratedIHT(momentum=ConstantMomentum(0.9), step=ExactLineSearch("direction")), id="accelerated-far"
    ),
    pytest.param(IHT(step=Backtracking(first=1e3)), id="iht-far"),
]
"""Monotone solvers whose first tries are much too long, so that the safeguard is all that keeps f from rising."""

MONOTONE = [
    pytest.param(HardThresholdingPursuit(), id="pursuit"),
    pytest.param(HardThresholdingPursuit(exchanges=4), id="exchanges"),
    pytest.param(IHT(), id="iht"),
    pytest.param(ConjugateIHT(), id="conjugate"),
    pytest.param(AcceleratedIHT(), id="accelerated"),
    *FAR,
]


PLAIN = (bool, int, float, str, tuple, list, dict, np.ndarray, Trace)


def first_states(objective, constraint, solver, count=12, **arguments):
    return list(islice(iterate(unread(objective), constraint, solver, **arguments), count))


def unread(objective):
    """The objective; a copy of one that remembers what it has read, so that a run cannot profit from those before."""
    return pickle.loads(pickle.dumps(objective)) if objective.traits.reading_is_dear else objective


def told(thing):
    """What a state holds as nested lists of numbers and words, apart from array views' bookkeeping."""
    if is_dataclass(thing):
        return [(field.name, told(getattr(thing, field.name))) for field in fields(thing)]
    if isinstance(thing, dict):
        return [(told(name), told(entry)) for name, entry in thing.items()]
    if isinstance(thing, tuple | list):
        return [told(entry) for entry in thing]
    return thing.tolist() if isinstance(thing, np.ndarray) else thing


def fingerprint(state):
    """Every digit of the numbers in a state, but of its support and what may be left out of a stored one."""
    parts = [(field.name, getattr(state, field.name)) for field in fields(state) if field.name != "support"]
    return repr([(name, told(part)) for name, part in parts if isinstance(part, PLAIN) or name == "at"])


def assert_same_state(constraint, one, other):
    assert fingerprint(one) == fingerprint(other)
    assert one.support == other.support
    np.testing.assert_array_equal(one.at.gradient, other.at.gradient)


def assert_close_state(one, other):
    """Equal up to rounding, without what was counted."""
    assert one.iteration == other.iteration
    assert one.support == other.support
    size = max(float(np.abs(one.w).max()), 1e-6)
    np.testing.assert_allclose(one.w, other.w, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(one.value, other.value, rtol=1e-12)


def solve(objective, constraint, solver, **arguments):
    return minimize(objective, constraint, solver, **{"max_iter": 300, "tol": 1e-9, **arguments})


def standardized(problem, weights=None):
    """The problem's columns centred and scaled, with a free intercept as the last coordinate; targets shifted."""
    design = as_design(problem.X)
    n, d = design.shape
    weights = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    y = problem.y + 3.0 if problem.loss.quadratic else problem.y
    design = standardize(design, weights, scale=True, intercept=True)
    return LinearModel(design, y, loss=problem.loss, sample_weight=weights), Sparsity(4, free=(d,))


# --- the contract, on every objective and constraint -----------------------------------------------------------------


@slow_beyond(6)
@every_problem
def test_a_trajectory_keeps_the_contract(solver, objective, constraint):
    """Feasible and true at every state, resumed and repeated bit for bit, and lower in the end, or at every step."""
    states = first_states(objective, constraint, solver)
    for iteration, state in enumerate(states):
        again = constraint.project(state.w)
        assert_same_point(constraint, again.point, state.w)
        assert again.support == state.support
        assert state.iteration == iteration
        if may_diverge(solver) and not np.isfinite(state.value):
            return
        assert np.isfinite(state.value)
        if state.exact:
            at = objective.evaluate(state.w)
            np.testing.assert_allclose(state.value, at.value, rtol=1e-12)
            np.testing.assert_allclose(state.at.gradient, at.gradient, rtol=1e-9, atol=1e-12)
        assert state.at.point is state.w
        assert np.isnan(state.step) if iteration == 0 else (np.isfinite(state.step) and state.step >= 0)
    resumed = first_states(objective, constraint, solver, 8, state=pickle.loads(pickle.dumps(states[4])))
    for one, other in zip(states[4:], resumed, strict=True):
        if objective.traits.reading_is_dear:  # what was read before the fourth state is not read alike after it
            assert_close_state(one, other)
        else:
            assert_same_state(constraint, one, other)
    if promises_descent(solver):
        values = np.array([state.value for state in states])
        assert (np.diff(values) <= 1e-13 * np.abs(values[:-1])).all()
    assert_some_progress(solver, objective, constraint, states)
    assert_repeatable(solver, objective, constraint)


MATRIX = (MatrixRegression(np.random.default_rng(0).standard_normal((30, 4, 3)), np.arange(30.0)), Rank(1))


@pytest.mark.parametrize("solver", examples("solver", where=lambda solver: takes(solver, *MATRIX)))
def test_projections_start_from_the_support_of_the_state(solver):
    """As iterative projections need it: those of all solvers of matrices, from the first step on."""
    starts = []

    class Recording(Rank):
        def project(self, z, start=None):
            starts.append(start)
            return super().project(z, start)

    states = iterate(MATRIX[0], Recording(1), solver)
    state = next(states)
    for _ in range(6):
        starts.clear()
        following = next(states, None)
        if following is None:
            break
        assert starts
        assert all(start is not None and start == state.support for start in starts)
        state = following
    assert state.iteration > 0


def may_diverge(solver):
    """Whether a step may lead to where f is infinite, by the solver's docstring."""
    return isinstance(solver, AcceleratedIHT) and solver.variant == "paper"


def promises_descent(solver):
    """Whether f never rises, by the solver's docstring."""
    if isinstance(solver, IHT):
        return isinstance(solver.step, Backtracking)
    if isinstance(solver, AcceleratedIHT):
        return solver.variant == "safeguarded"
    return isinstance(solver, HardThresholdingPursuit | ConjugateIHT | WorkingSet)


def assert_some_progress(solver, objective, constraint, states):
    """A run falls where a small step would, unless longer ones lead to where f is infinite."""
    values = np.array([state.record().get("value_estimate", state.value) for state in states])
    start = states[0].at
    moved = constraint.project(start.point - 1e-6 * start.gradient).point - start.point
    room = norm(moved) > 1e-12 * max(norm(start.point), 1e-6)
    steps = [constraint.project(start.point - length * start.gradient).point for length in (0.1, 1.0, 10.0, 100.0)]
    if room and not np.isfinite([objective.value(step) for step in steps]).all():
        assert values.min() <= values[0]
    elif room and needs_no_number(solver):
        assert values.min() < values[0]
    elif not room and norm(start.point) == 0.0:  # from zero, steps of all lengths choose the same support
        assert values.min() >= values[0] - 1e-9 * abs(values[0])


def assert_repeatable(solver, objective, constraint):
    """The second call is identical, and nothing is mutated."""
    before = pickle.dumps(vars(objective)), repr(constraint), repr(solver)
    w0 = ramp(objective, 1.0)
    w0.flags.writeable = False
    one = minimize(unread(objective), constraint, solver, w0, max_iter=15)
    two = minimize(unread(objective), constraint, solver, w0, max_iter=15)
    assert_same_state(constraint, one.state, two.state)
    assert (one.status, one.message, one.n_iter) == (two.status, two.message, two.n_iter)
    np.testing.assert_equal(one.passes, two.passes)  # nan where nobody counts
    np.testing.assert_array_equal(w0, ramp(objective, 1.0))
    assert (pickle.dumps(vars(objective)), repr(constraint), repr(solver)) == before


# --- states and restarts ---------------------------------------------------------------------------------------------


@of_losses("solver,loss", examples("solver"))
def test_states_are_immutable(solver, loss):
    """A list of states is a correct record: later iterations change none of it."""
    objective, constraint = planted(loss).model(), Sparsity(4)
    record = []
    for state in islice(iterate(objective, constraint, solver), 10):
        record.append((state, pickle.dumps(state)))
        with pytest.raises((FrozenInstanceError, AttributeError)):
            state.iteration = 7
    assert all(pickle.dumps(state) == frozen for state, frozen in record)
    arrays = [state.w for state, _ in record]
    assert not any(np.shares_memory(a, b) for a, b in pairwise(arrays) if a is not b)


@slow_beyond(8)
@of_losses("solver,loss", examples("solver"))
def test_a_stored_run_goes_on_to_the_same_answer(solver, loss):
    objective, constraint = planted(loss).model(), Sparsity(4)
    straight = solve(objective, constraint, solver)
    part = solve(objective, constraint, solver, max_iter=5)
    assert part.n_iter == min(5, straight.n_iter)
    rest = solve(objective, constraint, solver, state=pickle.loads(pickle.dumps(part.state)))
    assert_same_state(constraint, rest.state, straight.state)
    assert (rest.status, rest.message, rest.n_iter) == (straight.status, straight.message, straight.n_iter)
    assert rest.passes == straight.passes
    value = "value_estimate" if "value_estimate" in straight.history else "value"
    both = np.concatenate([part.history[value], rest.history[value][1:]])
    np.testing.assert_array_equal(both, straight.history[value])
    if straight.n_iter > 5:
        both = np.concatenate([part.history["step"], rest.history["step"]])
        np.testing.assert_array_equal(both, straight.history["step"])


@slow_beyond(10)
@of_losses("solver,loss", TUNED)
def test_the_truth_is_found(solver, loss):
    problem = planted(loss)
    run = solve(problem.model(), Sparsity(4), solver)
    np.testing.assert_array_equal(run.support, problem.support)
    objective, constraint = standardized(problem)
    run = solve(objective, constraint, solver)
    np.testing.assert_array_equal(run.support, [*problem.support, problem.X.shape[1]])
    if problem.loss.quadratic:
        assert abs(run.w[-1] - np.mean(problem.y + 3.0)) < 1e-2


@slow_beyond(4)
@of_losses("solver,loss", TUNED)
def test_any_start_will_do(solver, loss):
    problem = planted(loss)
    far = 10.0 * np.random.default_rng(5).standard_normal(problem.X.shape[1])
    run = solve(problem.model(), Sparsity(4), solver, w0=far, max_iter=300)
    assert np.isfinite(run.value)
    as_published = getattr(solver, "variant", None) == "paper"  # promises nothing far away; what goes wrong is said
    first = problem.model().value(Sparsity(4).project(far).point)
    assert run.value < first or (as_published and run.status is Status.DIVERGED)


# --- promises: invariances -------------------------------------------------------------------------------------------


@slow_beyond(6)
@of_losses("solver,loss,centred", examples("solver"), [False, True])
def test_a_permutation_of_the_columns_permutes_the_answer(solver, loss, centred):
    problem = planted(loss)
    d = problem.X.shape[1]
    order = np.random.default_rng(1).permutation(d)
    moved = planted(loss)
    object.__setattr__(moved, "X", np.ascontiguousarray(problem.X[:, order]))
    if centred:
        order = np.append(order, d)
        one, other = (solve(*standardized(p), solver) for p in (problem, moved))
    else:
        one, other = (solve(p.model(), Sparsity(4), solver) for p in (problem, moved))
    np.testing.assert_array_equal(np.sort(order[other.support]), one.support)
    np.testing.assert_allclose(other.w, one.w[order], rtol=1e-4, atol=1e-5)


@slow_beyond(8)
@of_losses("solver,loss,factor", TUNED, [1e-6, 1e-3, 1e3, 1e6])
def test_the_scale_of_the_columns_does_not_matter(solver, loss, factor):
    problem = planted(loss)
    plain = solve(problem.model(), Sparsity(4), solver)
    scaled = solve(LinearModel(problem.X * factor, problem.y, loss=loss), Sparsity(4), solver)
    np.testing.assert_array_equal(scaled.support, plain.support)
    np.testing.assert_allclose(scaled.w * factor, plain.w, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scaled.value, plain.value, rtol=1e-5)


@in_turn("solver,factor", TUNED, [1e-6, 1e-3, 1e3, 1e6])
def test_the_scale_of_the_target_does_not_matter(solver, factor):
    problem = planted()
    plain = solve(problem.model(), Sparsity(4), solver)
    scaled = solve(LinearModel(problem.X, problem.y * factor), Sparsity(4), solver)
    np.testing.assert_array_equal(scaled.support, plain.support)
    np.testing.assert_allclose(scaled.w / factor, plain.w, rtol=1e-4, atol=1e-5)


@slow_beyond(6)
@of_losses("solver,loss,centred", TUNED, [False, True])
def test_weights_are_repetitions(solver, loss, centred):
    problem = planted(loss)
    weights = np.random.default_rng(2).integers(1, 4, problem.y.size)
    repeated = planted(loss)
    rows = np.repeat(np.arange(problem.y.size), weights)
    object.__setattr__(repeated, "X", problem.X[rows])
    object.__setattr__(repeated, "y", problem.y[rows])
    if centred:
        one = solve(*standardized(problem, weights.astype(float)), solver)
        other = solve(*standardized(repeated), solver)
    else:
        one = solve(problem.model(sample_weight=weights), Sparsity(4), solver)
        other = solve(repeated.model(), Sparsity(4), solver)
    np.testing.assert_array_equal(one.support, other.support)
    np.testing.assert_allclose(one.w, other.w, rtol=1e-4, atol=1e-5)


@slow_beyond(6)
@of_losses("solver,loss", TUNED)
def test_rows_given_twice_change_nothing(solver, loss):
    problem = planted(loss)
    one = solve(problem.model(), Sparsity(4), solver)
    twice = LinearModel(np.vstack([problem.X, problem.X]), np.tile(problem.y, 2), loss=loss)
    other = solve(twice, Sparsity(4), solver)
    np.testing.assert_array_equal(one.support, other.support)
    np.testing.assert_allclose(one.w, other.w, rtol=1e-4, atol=1e-5)


@slow_beyond(8)
@of_losses("solver,loss,centred", TUNED, [False, True])
def test_a_row_of_no_weight_is_as_good_as_absent(solver, loss, centred):
    problem = planted(loss)
    n = problem.y.size
    weights = np.ones(n)
    weights[:20] = 0.0
    spoilt = planted(loss)
    spoilt.X[:20] = 1e3
    spoilt.y[:20] = 1.0
    rest = planted(loss)
    object.__setattr__(rest, "X", problem.X[20:])
    object.__setattr__(rest, "y", problem.y[20:])
    if centred:
        one, other = solve(*standardized(spoilt, weights), solver), solve(*standardized(rest), solver)
    else:
        one = solve(spoilt.model(sample_weight=weights), Sparsity(4), solver)
        other = solve(rest.model(), Sparsity(4), solver)
    np.testing.assert_array_equal(one.support, other.support)
    np.testing.assert_allclose(one.w, other.w, rtol=1e-4, atol=1e-5)


# --- promises: monotone, dtypes, libraries, storage ------------------------------------------------------------------


@slow_beyond(5)
@pytest.mark.parametrize(("solver", "objective", "constraint"), problems(MONOTONE if reaches("pairs") else FAR))
def test_monotone_solvers_never_go_up(solver, objective, constraint):
    for w0 in (None, ramp(objective, 3.0)):
        values = minimize(objective, constraint, solver, w0, max_iter=60, tol=0.0).history["value"]
        assert (np.diff(values) <= 1e-13 * np.abs(values[:-1])).all()


@pytest.mark.parametrize("solver", MONOTONE)
@pytest.mark.parametrize("shift", [0.0, 1000.0, -1e5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_monotone_solvers_never_go_up_where_rounding_is_all_there_is(solver, shift, dtype):
    """Far from the origin of the targets a step that f cannot see is not taken, and no tolerance is needed here."""
    problem = planted(dtype=dtype)
    objective = LinearModel(problem.X, problem.y + dtype(shift))
    for w0 in (None, ramp(objective, 3.0)):
        values = minimize(objective, Sparsity(4), solver, w0, max_iter=100, tol=0.0).history["value"]
        assert (np.diff(values) <= 0).all()


@slow_beyond(6)
@of_losses("solver,loss,centred", examples("solver"), [False, True])
def test_float32_stays_float32(solver, loss, centred):
    problem = planted(loss, dtype=np.float32)
    if centred:
        objective, constraint = standardized(problem)
    else:
        objective, constraint = problem.model(), Sparsity(4)
    for state in first_states(objective, constraint, solver):
        known = [state.w, state.at.gradient, *([] if state.at.prediction is None else [state.at.prediction])]
        assert {array.dtype for array in known} == {np.dtype(np.float32)}
    run = solve(objective, constraint, solver, tol=1e-5)
    assert run.w.dtype == np.float32
    np.testing.assert_array_equal(run.support[:4], problem.support)


@slow_beyond(4)
@of_losses("solver,loss,library", examples("solver"), OTHER_LIBRARIES)
def test_other_array_libraries_find_the_same_support(solver, loss, library):
    problem = planted(loss)
    X, y = convert(problem.X, library), convert(problem.y, library)
    run = solve(LinearModel(X, y, loss=loss), Sparsity(4), solver)
    plain = solve(problem.model(), Sparsity(4), solver)
    assert type(run.w) is type(X)
    assert type(run.support.indices) is type(X)
    np.testing.assert_array_equal(back(run.support.indices), plain.support)
    np.testing.assert_allclose(back(run.w), plain.w, rtol=1e-4, atol=1e-5)
    assert isinstance(run.value, float)


@slow_beyond(3)
@of_losses("solver,loss,library", examples("solver", where=takes_bounds), OTHER_LIBRARIES)
def test_other_array_libraries_with_an_intercept_and_bounds(solver, loss, library):
    problem = planted(loss)
    n, d = problem.X.shape
    lower = np.append(np.zeros(d), -np.inf)
    runs = []
    for X, y in ((problem.X, problem.y), (convert(problem.X, library), convert(problem.y, library))):
        design = as_design(X)
        design = standardize(design, as_floating(0 * y + 1.0 / n), scale=True, intercept=True)
        constraint = Sparsity(4, free=(d,), lower=lower)
        # a run that goes on where the gradient on the support is rounding may be led to another support by it: with
        # 1e-9 the accelerated one of Tweedie's loss ends at either of two in NumPy too, if rows are in another order
        # (37 and 3 of 40 orders), and with 1e-6 always at the same
        runs.append(solve(LinearModel(design, y, loss=loss), constraint, solver, max_iter=60, tol=1e-6))
    np.testing.assert_array_equal(back(runs[1].support.indices), runs[0].support)
    np.testing.assert_allclose(back(runs[1].w), runs[0].w, rtol=1e-4, atol=1e-5)


STORAGES = {
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "csc_array": sp.csc_array,
    "csr_array": sp.csr_array,
    "coo_matrix": sp.coo_matrix,
    "csc_matrix": sp.csc_matrix,
}


@slow_beyond(6)
@of_losses("solver,loss,centred,storage", examples("solver"), [False, True], list(STORAGES))
def test_how_the_data_are_stored_does_not_matter(solver, loss, centred, storage):
    problem, stored = planted(loss), planted(loss)
    mask = np.random.default_rng(3).random(problem.X.shape) < 0.6
    problem.X[mask & (np.arange(40) % 10 != 0)] = 0.0
    object.__setattr__(stored, "X", STORAGES[storage](problem.X))
    if centred:
        one, other = (solve(*standardized(p), solver) for p in (problem, stored))
    else:
        one, other = (solve(p.model(), Sparsity(4), solver) for p in (problem, stored))
    np.testing.assert_array_equal(one.support, other.support)
    np.testing.assert_allclose(one.w, other.w, rtol=1e-4, atol=1e-5)


@slow_beyond(10)
@every
def test_a_memory_map_will_do(solver, tmp_path):
    problem = planted()
    np.save(tmp_path / "X.npy", problem.X)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    run = solve(LinearModel(X, problem.y), Sparsity(4), solver)
    np.testing.assert_array_equal(run.support, problem.support)
    assert type(run.w) is np.ndarray


# --- corner cases ----------------------------------------------------------------------------------------------------


@of_losses("solver,loss", TUNED)
def test_no_budget_means_no_coefficient(solver, loss):
    run = solve(planted(loss).model(), Sparsity(0), solver)
    assert not run.w.any()
    assert run.support.indices.size == 0
    assert run.converged
    objective, constraint = standardized(planted(loss))
    run = solve(objective, Sparsity(0, free=constraint.free), solver)
    np.testing.assert_array_equal(run.support, constraint.free)


@slow_beyond(4)
@in_turn("solver,k", TUNED, [40, 41, 1000])
def test_a_large_budget_is_least_squares(solver, k):
    problem = planted()
    run = solve(problem.model(), Sparsity(k), solver, max_iter=5000)
    best = np.linalg.lstsq(problem.X, problem.y)[0]
    assert np.nanmin(run.history["value"]) <= problem.model().value(best) * 1.1
    assert np.isfinite(run.w).all()


@of_losses("solver,loss", TUNED)
def test_a_point_of_zero_gradient_is_kept(solver, loss):
    problem = planted(loss)
    w = np.zeros(40)
    w[problem.support] = [1.0, -1.0, 2.0, -2.0]
    objective = LinearModel(problem.X, problem.loss.mean(problem.X @ w), loss=loss)
    if objective.evaluate(w).gradient.any():  # by rounding, which predictions of zero do not have
        w = np.zeros(40)
        objective = LinearModel(problem.X, problem.loss.mean(problem.X @ w), loss=loss)
    assert not objective.evaluate(w).gradient.any()
    for k in (4, 6, 40):
        run = solve(objective, Sparsity(k), solver, w0=w)
        np.testing.assert_array_equal(run.w, w)
        assert run.converged


@of_losses("solver,loss", TUNED)
def test_a_target_that_says_nothing(solver, loss):
    problem = planted(loss)
    y = problem.loss.mean(np.zeros(problem.y.size))
    run = solve(LinearModel(problem.X, y, loss=loss), Sparsity(4), solver)
    assert not run.w.any()
    assert run.converged


@of_losses("solver,loss,shape", examples("solver"), [(1, 5), (5, 1), (1, 1), (3, 10_000)])
def test_odd_shapes(solver, loss, shape):
    rng = np.random.default_rng(4)
    X = rng.standard_normal(shape)
    y = lookup("loss", loss)().example_target(np.zeros(shape[0]), rng)
    for constraint in (Sparsity(1), Sparsity(2)):
        objective = LinearModel(X, y, loss=loss)
        if isinstance(solver, BranchAndBound) and shape[1] > 5000:
            with pytest.raises(CapabilityError, match="takes at most 5000 coordinates"):
                solve(objective, constraint, solver)
            continue
        run = solve(objective, constraint, solver, max_iter=100)
        assert np.isfinite(run.w).all()
        assert np.count_nonzero(run.w) <= constraint.k
        assert np.nanmin(run.history["value"]) <= objective.value(objective.zeros())


@slow_beyond(8)
@of_losses("solver,loss", TUNED)
def test_constant_and_duplicate_columns(solver, loss):
    problem = planted(loss)
    first = problem.support[0]
    others = [j for j in range(40) if j not in problem.support]
    problem.X[:, others[0]] = 0.0
    problem.X[:, others[1]] = 5.0
    problem.X[:, others[2]] = problem.X[:, first]
    problem.X[:, others[3]] = -problem.X[:, first]
    run = solve(problem.model(), Sparsity(4), solver)
    assert np.isfinite(run.w).all()
    assert run.w[others[0]] == 0.0
    objective, constraint = standardized(problem)
    run = solve(objective, constraint, solver)
    assert np.isfinite(run.w).all()
    assert run.w[others[0]] == run.w[others[1]] == 0.0
    twins = {int(first), others[2], others[3]}
    chosen = {int(j) for j in run.support}
    assert {int(j) for j in problem.support[1:]} <= chosen
    assert twins & chosen


@slow_beyond(6)
@pytest.mark.parametrize("solver", [solver for solver in TUNED if takes_loss(solver.values[0], "logistic")])
def test_separable_classes_stay_finite(solver):
    X = np.random.default_rng(6).standard_normal((60, 30))
    objective = LinearModel(X, (X[:, 3] > 0).astype(float), loss="logistic")
    run = solve(objective, Sparsity(2), solver)
    assert np.isfinite(run.w).all()
    assert 3 in run.support
    assert run.value < 0.1


@every
def test_a_wrong_constraint_is_refused_before_the_run(solver):
    objective = planted().model()
    with pytest.raises(InvalidInputError, match="free coordinate 40"):
        minimize(objective, Sparsity(2, free=(40,)), solver)


@every
def test_settings_are_frozen_and_picklable(solver):
    assert pickle.loads(pickle.dumps(solver)) == solver
    with pytest.raises(FrozenInstanceError):
        setattr(solver, next(iter(solver.__dataclass_fields__)), None)
    assert isinstance(solver.start(planted().model(), Sparsity(2), None, 0), State)


@every_loss
@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_pursuit_leaves_a_poor_minimiser_at_any_scale(loss, factor):
    """Started where the gradient vanishes on the support, it has no exact step to go by."""
    problem = planted(loss)
    X = problem.X * factor
    wrong = np.array([j for j in range(40) if j not in problem.support])[:4]
    sub = LinearModel(X[:, wrong], problem.y, loss=loss)
    w0 = np.zeros(40)
    w0[wrong] = solve(sub, Sparsity(4), HardThresholdingPursuit()).w
    run = solve(LinearModel(X, problem.y, loss=loss), Sparsity(4), HardThresholdingPursuit(), w0=w0)
    np.testing.assert_array_equal(run.support, problem.support)


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1.0, 1e3])
def test_pursuit_leaves_an_exact_minimiser_at_any_scale(factor):
    """Where the gradient on the support is exactly zero, the length of the escape still follows the scale."""
    objective = LinearModel(np.eye(6) * factor, np.arange(1.0, 7.0) * factor)
    w0 = np.array([1.0, 2.0, 0.0, 0.0, 0.0, 0.0])
    run = minimize(objective, Sparsity(2), HardThresholdingPursuit(), w0)
    np.testing.assert_array_equal(run.support, [4, 5])


@pytest.mark.parametrize(
    "arguments", [{"cg_iterations": 0}, {"escapes": -1}, {"exchanges": -1}, {"tol": 0.0}, {"tol": np.nan}]
)
def test_pursuit_refuses_wrong_arguments(arguments):
    with pytest.raises(HardThreshError, match=f"{next(iter(arguments))} must be "):
        HardThresholdingPursuit(**arguments)
