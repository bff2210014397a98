"""Accelerated IHT against the golden trajectories, the counts and the laws of its specification."""

from itertools import islice
from math import inf

import numpy as np
import papers.accelerated_iht._data as papers
import pytest

from hardthresh.constraints import Rank, Sparsity
from hardthresh.core import InvalidInputError, Status, StepRule, iterate, minimize
from hardthresh.objectives import LinearModel, MatrixCompletion, MatrixRegression
from hardthresh.solvers import IHT, AcceleratedIHT, ConstantMomentum, ExactMomentum, Momentum, NesterovMomentum
from hardthresh.steps import Backtracking, ExactLineSearch, Fixed, Polyak, SparsePolyak
from levels import at, at_most, only_at, slow_beyond


def published(momentum, step=ExactLineSearch(), **settings):  # noqa: B008 - frozen
    rule = momentum if isinstance(momentum, Momentum) else ConstantMomentum(momentum)
    length = step if isinstance(step, StepRule) else Fixed(step)
    return AcceleratedIHT(variant="paper", momentum=rule, step=length, **settings)


def iterations_to(f, k, solver, tol, limit):
    """The first iteration at which f is at most tol times f(0); infinity if there is none up to the limit."""
    values = [state.value for state in islice(iterate(f, Sparsity(k), solver), limit + 1)]
    return next((t for t, value in enumerate(values) if value <= tol * values[0]), inf)


def inverse_lipschitz(X):
    """The paper's step 1/L in units of the mean loss."""
    return X.shape[0] / np.linalg.norm(X, 2) ** 2


# --- the toy of Fig. 1 -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_golden_trajectories_of_the_toy(specs):
    with np.load(specs / "golden" / "acciht_toy.npz") as golden:
        f, mu = LinearModel(golden["Phi"], golden["b"]), 6.0 * float(golden["mu"])
        for tau, values, points in zip(golden["taus"], golden["f"], golden["x"], strict=True):
            states = iterate(f, Sparsity(2), published(float(tau), mu))
            for t, (value, point) in enumerate(zip(values, points, strict=True)):
                state = next(states)
                assert np.linalg.norm(state.w - point) <= 1e-9 * np.linalg.norm(point), (tau, t)
                assert 6.0 * state.value == pytest.approx(value, rel=1e-6, abs=1e-20)


def toy():
    problem = papers.toy(seed=409)
    chosen = [np.linalg.eigvalsh(problem.X[:, [i, j]].T @ problem.X[:, [i, j]]) for i in range(10) for j in range(i)]
    return LinearModel(problem.X, problem.y), 6.0 / np.max(chosen)


@pytest.mark.parametrize("tau", [-2.0, -1.3, 1.5, 2.0])
@pytest.mark.parametrize("limit", [60, *at("pairs", [300, 3000])])
@pytest.mark.parametrize("tol", [0.0, 1e-8])
def test_divergence_is_said_and_the_best_iterate_returned(tau, limit, tol):
    f, mu = toy()
    with np.errstate(all="ignore"):
        run = minimize(f, Sparsity(2), published(tau, mu), max_iter=limit, tol=tol)
    assert run.status is Status.DIVERGED
    assert not run.converged
    assert run.value == np.nanmin(run.history["value"])
    assert np.isfinite(run.w).all()


def test_standing_still_is_not_convergence():
    """With tau = -1 the second iterate is the first: a small move, but no solution."""
    f, mu = toy()
    states = iterate(f, Sparsity(2), published(-1.0, mu))
    first, second = [next(states) for _ in range(3)][1:]
    np.testing.assert_array_equal(first.w, second.w)
    run = minimize(f, Sparsity(2), published(-1.0, mu), tol=1e-7, max_iter=50)
    assert not run.converged


# --- counts ----------------------------------------------------------------------------------------------------------

COUNTS = {  # A2, to f/f0 <= 1e-10, seeds 0, 1, 2
    "IHT 1/L": (0.0, None, [160, 158, 159]),
    "1/4": (0.25, None, [117, 117, 117]),
    "1/2": (0.5, None, [70, 70, 70]),
    "3/4": (0.75, None, [62, 65, 65]),
    "exact": (ExactMomentum(), None, [74, 73, 74]),
    "Nesterov, value": (NesterovMomentum(), None, [72, 74, 66]),
    "Nesterov, gradient": (NesterovMomentum("gradient"), None, [66, 59, 60]),
    "IHT ls": (0.0, ExactLineSearch(), [15, 14, 15]),
    "ls 1/4": (0.25, ExactLineSearch("direction"), [16, 15, 16]),
    "ls 1/2": (0.5, ExactLineSearch("direction"), [18, 19, 19]),
    "ls exact": (ExactMomentum(), ExactLineSearch("direction"), [15, 16, 16]),
    "support 1/4": (0.25, ExactLineSearch(), [13, 12, 13]),
}


@only_at("pairs")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_counts_on_a_gaussian_design(seed):
    problem = papers.gaussian_design(750, 2000, 50, seed=seed)
    f, step = LinearModel(problem.X, problem.y), inverse_lipschitz(problem.X)
    for name, (momentum, rule, counts) in COUNTS.items():
        found = iterations_to(f, 50, published(momentum, rule or step), 1e-10, 200)
        assert abs(found - counts[seed]) <= 1, name
    assert iterations_to(f, 50, AcceleratedIHT(), 1e-10, 60) <= [13, 14, 14][seed]
    assert iterations_to(f, 244, AcceleratedIHT(), 1e-10, 60) <= [46, 44, 45][seed]


@pytest.mark.slow
def test_the_local_rate_law():
    problem = papers.gaussian_design(120, 400, 8, seed=7)
    f, step = LinearModel(problem.X, problem.y), inverse_lipschitz(problem.X)
    found = [iterations_to(f, 8, published(tau, step), 1e-12, 200) for tau in (0.0, 0.25, 0.5, 0.75)]
    assert found == [149, 111, 63, 69]


@only_at("pairs")
def test_few_rows_where_a_constant_step_fails():
    problem = papers.gaussian_design(750, 20_000, 50, seed=0)
    f = LinearModel(problem.X, problem.y)
    run = minimize(f, Sparsity(50), AcceleratedIHT(), max_iter=30, tol=0.0)
    assert run.value <= 1e-12 * run.history["value"][0]
    np.testing.assert_array_equal(run.support, problem.support)


def correlated(seed):
    """The training half of Fig. 3."""
    problem = papers.correlated_split(seed=seed)
    return problem.X[problem.train], problem.y[problem.train]


# --- the safeguarded method ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("k", "mean"), [(20, 0.0837), (60, 0.0628)])
def test_it_converges_monotonically_on_correlated_columns(k, mean):
    shares = []
    for seed in range(6):
        run = minimize(LinearModel(*correlated(seed)), Sparsity(k), AcceleratedIHT(), tol=1e-7)
        assert run.converged
        assert (np.diff(run.history["value"]) <= 0).all()
        shares.append(run.value / run.history["value"][0])
    assert np.mean(shares) <= mean


@slow_beyond(3)
@pytest.mark.parametrize(
    "momentum", [*map(ConstantMomentum, (0.0, 0.5, 0.9, 2.0)), ExactMomentum(), NesterovMomentum()], ids=repr
)
@pytest.mark.parametrize(
    "step",
    [ExactLineSearch(), ExactLineSearch("direction"), Fixed(1e-3), Fixed(10.0), Polyak(), SparsePolyak()],
    ids=repr,
)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_no_setting_makes_it_rise(momentum, step, loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 90))
    y = X[:, 0] - 2.0 * X[:, 5] + 0.3 * rng.standard_normal(40)
    f = LinearModel(X, y if loss == "squared" else (y > 0) * 1.0, loss=loss, l2=0.01)
    run = minimize(f, Sparsity(6), AcceleratedIHT(momentum=momentum, step=step), max_iter=60)
    assert (np.diff(run.history["value"]) <= 0).all()


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("storage", ["dense", "factored"])
def test_a_step_far_too_long_ends_where_only_rounding_is_left(storage):
    """Halved forty times, it may end where f is the same by rounding, and so may each of a thousand more."""
    objective = MatrixCompletion(
        [0, 1, 2, 4], [0, 0, 0, 0], [1.0, 0.0, 1.0, 1.0], shape=(7, 1), loss="logistic", l2=1e12, storage=storage
    )
    w0 = 1e5 * np.random.default_rng(8).standard_normal((7, 1))
    run = minimize(objective, Rank(1), AcceleratedIHT(step=Fixed(0.1)), w0, max_iter=1000)
    assert run.converged
    assert run.n_iter < 50


def test_debiasing_solves_on_the_support():
    X, y = correlated(seed=0)
    f = LinearModel(X, y)
    plain = minimize(f, Sparsity(20), AcceleratedIHT(), max_iter=5, tol=0.0)
    final = minimize(f, Sparsity(20), AcceleratedIHT(debias="final"), max_iter=5, tol=0.0)
    np.testing.assert_array_equal(final.history["value"], plain.history["value"])
    np.testing.assert_array_equal(final.state.w, plain.w)  # what goes on is the run; what is returned is its answer
    np.testing.assert_array_equal(final.support, plain.support)
    solved = np.linalg.lstsq(X[:, final.support], y, rcond=None)[0]
    np.testing.assert_allclose(final.w[final.support], solved, rtol=1e-8)
    assert final.value < plain.value
    assert final.passes > plain.passes
    every = iterate(f, Sparsity(20), AcceleratedIHT(debias="every"))
    state = [next(every) for _ in range(3)][-1]
    assert np.abs(state.at.gradient[state.support]).max() < 1e-12


def test_a_run_that_was_interrupted_is_not_finished():
    def interrupt(state):
        if state.iteration == 3:
            raise KeyboardInterrupt

    f = LinearModel(*correlated(seed=0))
    run = minimize(f, Sparsity(20), AcceleratedIHT(debias="final"), callback=interrupt)
    assert run.status is Status.INTERRUPTED
    np.testing.assert_array_equal(run.w, run.state.w)


# --- its relatives ---------------------------------------------------------------------------------------------------


def test_without_momentum_it_is_iht():
    problem = papers.gaussian_design(120, 400, 8, seed=7)
    f, step = LinearModel(problem.X, problem.y), inverse_lipschitz(problem.X)
    ours, theirs = iterate(f, Sparsity(8), published(0.0, step)), iterate(f, Sparsity(8), IHT(step=Fixed(step)))
    for _ in range(80):
        np.testing.assert_array_equal(next(ours).w, next(theirs).w)


def test_it_takes_one_pass_where_f_is_quadratic_and_two_where_not():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 400))
    y = (X[:, 0] > 0) * 1.0
    for loss, passes in (("squared", 1.0), ("logistic", 2.0)):
        run = minimize(LinearModel(X, y, loss=loss), Sparsity(2), published(0.5, 0.1), max_iter=40, tol=0.0)
        assert run.passes / 40 == pytest.approx(passes, abs=0.1)


def test_matrices_by_the_tangent_space_and_by_the_whole_gradient():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((12, 2)) @ rng.standard_normal((2, 9))
    A = rng.standard_normal((300, 12, 9))
    f = MatrixRegression(A, np.einsum("nij,ij->n", A, truth))
    for restricted in (True, False):
        run = minimize(f, Rank(2), AcceleratedIHT(restricted=restricted))
        assert run.converged
        np.testing.assert_allclose(run.w, truth, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"variant": "safe"}, "variant must be"),
        ({"step": 0.1}, r"step must be a rule, such as Fixed\(0.1\); got 0.1"),
        ({"step": "support"}, "step must be a rule"),
        ({"step": None}, "step must be a rule"),
        ({"step": Backtracking()}, "Backtracking finds its step by moving"),
        ({"momentum": "nesterov"}, r"momentum must be a rule, such as .* NesterovMomentum\(\); got 'nesterov'"),
        ({"momentum": 0.25}, r"momentum must be a rule, such as ConstantMomentum\(0.25\).*; got 0.25"),
        ({"momentum": ExactMomentum}, "momentum must be a rule"),
        ({"debias": True}, "debias must be"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        AcceleratedIHT(**settings)


def test_wrong_momenta_are_refused():
    with pytest.raises(InvalidInputError, match="restart must be"):
        NesterovMomentum("speed")
    for wrong in (np.inf, np.nan, "exact", [0.5], True):
        with pytest.raises(InvalidInputError, match="must be a finite number"):
            ConstantMomentum(wrong)
