"""Frank-Wolfe against the specification's counts, the Lasso, and projected gradient steps on the same ball."""

import pickle
from itertools import islice

import numpy as np
import pytest
from papers.accelerated_iht._data import gaussian_design
from sklearn.linear_model import Lasso

import hardthresh as ht
from hardthresh.baselines import Ball, DualityGap, FrankWolfe, GroupBall, L1Ball, NuclearBall, frank_wolfe
from hardthresh.certificates import certify
from hardthresh.constraints import Sparsity
from hardthresh.core import (
    BaseObjective,
    CapabilityError,
    InvalidInputError,
    LowerBound,
    NotFiniteError,
    Status,
    iterate,
    minimize,
)
from hardthresh.objectives import LinearModel, MatrixRegression
from hardthresh.solvers import IHT
from levels import at_most, only_at

VARIANTS = ["plain", "away", "pairwise"]
both = pytest.mark.parametrize("corrective", [False, True], ids=["steps", "corrective"])
every_variant = pytest.mark.parametrize("variant", VARIANTS)
LABELS = ("a", "b", "a", "c", "b", "c", "a", "d", "d", "b", "c", "d")


def regression(seed=0, n=60, d=12, loss="squared"):
    rng = np.random.default_rng((seed, n, d))
    X = rng.standard_normal((n, d))
    signal = X[:, :4] @ np.array([2.0, -1.5, 1.0, 0.5])
    if loss == "logistic":
        return X, (rng.random(n) < 1 / (1 + np.exp(-signal))).astype(float)
    return X, signal + 0.3 * rng.standard_normal(n)


def matrix_regression(seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((80, 5, 4))
    truth = np.outer(rng.standard_normal(5), rng.standard_normal(4))
    return MatrixRegression(A, np.einsum("nij,ij->n", A, truth) + 0.1 * rng.standard_normal(80))


PROBLEMS = {
    "l1": (lambda: LinearModel(*regression()), L1Ball(2.5)),
    "l1-loose": (lambda: LinearModel(*regression()), L1Ball(50.0)),
    "l1-logistic": (lambda: LinearModel(*regression(loss="logistic"), loss="logistic"), L1Ball(2.0)),
    "groups": (lambda: LinearModel(*regression()), GroupBall(LABELS, 1.5)),
    "groups-logistic": (lambda: LinearModel(*regression(loss="logistic"), loss="logistic"), GroupBall(LABELS, 1.0)),
    "nuclear": (matrix_regression, NuclearBall(1.0)),
    "nuclear-loose": (matrix_regression, NuclearBall(20.0)),
}
every_problem = pytest.mark.parametrize("name", PROBLEMS)


def projected_gradient(objective, ball):
    """The constrained minimum, by the slowest and most obviously right method."""
    w = objective.zeros()
    at = objective.evaluate(w)
    step = 1.0
    for _ in range(400):
        while True:
            point = ball.reference_project(w - step * at.gradient).point
            moved = point - w
            if objective.value(point) <= at.value + np.sum(at.gradient * moved) + np.sum(moved**2) / (2 * step) + 1e-15:
                break
            step /= 2
        w, at = point, objective.evaluate(point)
    return at


# --- what the specification measured ---------------------------------------------------------------------------------


@only_at("pairs")
@pytest.mark.parametrize(
    ("seed", "plain", "away"), [(0, 289, 268), (1, 300, 278), (2, 301, 272)], ids=["seed0", "seed1", "seed2"]
)
def test_the_counts_of_the_specification(seed, plain, away):
    drawn = gaussian_design(750, 2000, 50, seed=seed)
    f = LinearModel(drawn.X, drawn.y)
    enough = LowerBound(1e-10)
    assert frank_wolfe(f, 40.0, stop=enough, max_iter=400).n_iter == pytest.approx(plain, abs=2)
    assert frank_wolfe(f, 40.0, variant="away", stop=enough, max_iter=400).n_iter == pytest.approx(away, abs=2)
    pairwise = frank_wolfe(f, 40.0, variant="pairwise", stop=enough, max_iter=400)
    assert pairwise.status is Status.MAX_ITER
    assert not pairwise.converged


@pytest.mark.parametrize("seed", range(3))
@every_variant
def test_with_refits_it_is_orthogonal_matching_pursuit(seed, variant):
    drawn = gaussian_design(750, 2000, 50, seed=seed)
    run = frank_wolfe(LinearModel(drawn.X, drawn.y), 40.0, variant=variant, corrective=True)
    assert run.n_iter == 50
    assert run.status is Status.LOWER_BOUND
    np.testing.assert_array_equal(run.support, drawn.support)
    np.testing.assert_allclose(run.w, drawn.coef, atol=1e-12)


# --- the minimum -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("variant", ["away", "pairwise"])
@both
def test_against_the_lasso(alpha, variant, corrective):
    X, y = regression(d=30)
    lasso = Lasso(alpha=alpha, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y)
    radius = float(np.abs(lasso.coef_).sum())
    run = frank_wolfe(LinearModel(X, y), radius, variant=variant, corrective=corrective, tol=1e-12, max_iter=20_000)
    assert run.converged
    np.testing.assert_allclose(X @ run.w, X @ lasso.coef_, atol=1e-4)
    np.testing.assert_allclose(run.w, lasso.coef_, atol=1e-4)
    assert run.value <= LinearModel(X, y).value(lasso.coef_) + 1e-9


@only_at("pairs")
@every_problem
@every_variant
@both
def test_the_gap_bounds_the_distance_to_the_minimum(name, variant, corrective):
    make, ball = PROBLEMS[name]
    objective = make()
    best = projected_gradient(objective, ball)
    run = frank_wolfe(objective, ball=ball, variant=variant, corrective=corrective, max_iter=250, tol=1e-6)
    values, gaps = run.history["value"], run.history["gap"]
    assert (gaps >= -1e-12).all()
    assert (values - best.value <= gaps + 1e-9).all()
    assert run.value - best.value <= (1e-5 if run.converged else 1e-2)
    assert run.converged or run.status is Status.MAX_ITER
    if name.startswith("l1") and variant != "plain":  # the sublinear ones take their time
        assert run.converged


@every_problem
@every_variant
@both
def test_states_are_feasible_monotone_and_say_what_is_true(name, variant, corrective):
    make, ball = PROBLEMS[name]
    objective, solver = make(), FrankWolfe(variant, corrective)
    before = pickle.dumps(vars(objective))
    states = list(islice(iterate(objective, ball, solver), 25))
    for number, state in enumerate(states):
        assert state.iteration == number
        assert ball.gauge(state.w) <= ball.radius * (1 + 1e-9)
        at = objective.evaluate(state.w)
        np.testing.assert_allclose(state.value, at.value, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(state.at.gradient, at.gradient, rtol=1e-7, atol=1e-10)
        assert ball.project(state.w).support == state.support
        if state.atoms:
            assert min(state.weights) > 0
            assert sum(state.weights) == pytest.approx(1.0)
            point = ball.combine(state.atoms, state.weights, state.w)
            np.testing.assert_allclose(point, state.w, atol=1e-9 * ball.radius)
    values = [state.value for state in states]
    assert (np.diff(values) <= 1e-12 * np.abs(values[:-1]) + 1e-15).all()
    assert values[-1] < values[0]
    assert pickle.dumps(vars(objective)) == before


@every_problem
@every_variant
@both
def test_a_resumed_run_is_the_uninterrupted_one(name, variant, corrective):
    make, ball = PROBLEMS[name]
    objective, solver = make(), FrankWolfe(variant, corrective)
    straight = list(islice(iterate(objective, ball, solver), 9))
    stored = pickle.loads(pickle.dumps(straight[4]))
    for one, other in zip(straight[4:], islice(iterate(objective, ball, solver, state=stored), 5), strict=True):
        np.testing.assert_array_equal(one.w, other.w)
        assert (one.value, one.gap, one.step, one.weights) == (other.value, other.gap, other.step, other.weights)


@every_variant
@both
def test_any_start_will_do(variant, corrective):
    make, ball = PROBLEMS["l1"]
    objective = make()
    w0 = 10.0 * np.random.default_rng(1).standard_normal(12)
    w0.flags.writeable = False
    cold = frank_wolfe(objective, ball=ball, variant=variant, corrective=corrective, tol=5e-3, max_iter=2000)
    warm = frank_wolfe(objective, ball=ball, variant=variant, corrective=corrective, tol=5e-3, max_iter=2000, w0=w0)
    assert cold.converged
    assert warm.converged
    assert warm.value == pytest.approx(cold.value, rel=1e-2)
    assert warm.history["value"][0] == pytest.approx(objective.value(ball.reference_project(w0).point))


@pytest.mark.slow
@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
@pytest.mark.parametrize("name", ["l1", "groups"])
@both
def test_other_array_libraries(library, name, corrective):
    xp = pytest.importorskip(library, reason=f"{library} is not installed")
    X, y = regression()
    ball = PROBLEMS[name][1]
    plain = frank_wolfe(LinearModel(X, y), ball=ball, variant="away", corrective=corrective, max_iter=30)
    other = frank_wolfe(
        LinearModel(xp.asarray(X), xp.asarray(y)), ball=ball, variant="away", corrective=corrective, max_iter=30
    )
    assert type(other.w) is type(xp.asarray(X))
    np.testing.assert_allclose(np.asarray(other.w), plain.w, atol=1e-6)


@every_variant
@both
def test_float32_stays_float32(variant, corrective):
    X, y = (part.astype(np.float32) for part in regression())
    run = frank_wolfe(LinearModel(X, y), 2.5, variant=variant, corrective=corrective, tol=1e-4)
    assert run.w.dtype == run.state.at.gradient.dtype == np.float32
    assert np.isfinite(run.w).all()


@every_variant
@both
def test_a_target_that_says_nothing(variant, corrective):
    X, _ = regression()
    run = frank_wolfe(LinearModel(X, np.zeros(60)), 1.0, variant=variant, corrective=corrective)
    assert run.converged
    assert not run.w.any()


@every_variant
def test_a_poisson_model_that_would_overflow_stays_finite(variant):
    X, y = regression()
    f = LinearModel(X, np.round(np.exp(y / 3)), loss="poisson")
    run = frank_wolfe(f, 1e4, variant=variant, max_iter=50)
    assert np.isfinite(run.w).all()
    assert run.value < run.history["value"][0]


def test_an_objective_without_curvature_is_searched_by_its_values():
    X, y = regression(loss="logistic")
    model = LinearModel(X, y, loss="logistic")

    class Plain(BaseObjective):
        shape, lower_bound = model.shape, 0.0
        zeros, predict, value, evaluate = model.zeros, model.predict, model.value, model.evaluate

    run = frank_wolfe(Plain(), 2.0, variant="away", tol=1e-7, max_iter=5000)
    best = projected_gradient(model, L1Ball(2.0))
    assert run.converged
    assert run.value == pytest.approx(best.value, rel=1e-5)
    with pytest.raises(CapabilityError, match="curvature"):
        frank_wolfe(Plain(), 2.0, corrective=True)


def test_the_certificate_knows_the_ball():
    make, ball = PROBLEMS["l1"]
    run = frank_wolfe(make(), ball=ball, variant="pairwise", corrective=True, tol=1e-12)
    assert certify(run).basic_feasibility < 1e-4 * certify(run).gradient_scale


# --- the public way, and bad input -----------------------------------------------------------------------------------


def test_as_the_issue_writes_it():
    drawn = gaussian_design(60, 100, 4)
    f = LinearModel(drawn.X, drawn.y)
    b = ht.baselines.frank_wolfe(f, radius=40.0, variant="pairwise", corrective=True)
    assert isinstance(b, ht.Result)
    np.testing.assert_array_equal(b.support, drawn.support)


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, "wide", True])
def test_a_radius_that_is_not_positive_is_refused(radius):
    f = LinearModel(*regression())
    with pytest.raises(InvalidInputError, match="radius"):
        frank_wolfe(f, radius)
    with pytest.raises(InvalidInputError, match="radius"):
        GroupBall(LABELS, radius)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({}, "either the radius"),
        ({"radius": 1.0, "ball": L1Ball(1.0)}, "either the radius"),
        ({"radius": np.inf}, "radius must be a finite number > 0"),
        ({"radius": 1.0, "variant": "lazy"}, "variant must be one of 'plain', 'away', 'pairwise'"),
        ({"ball": GroupBall(("a", "b"), 1.0)}, "2 labels do not fit"),
        ({"ball": NuclearBall(1.0)}, "about matrices"),
        ({"radius": 1.0, "tol": -1.0}, "tol"),
    ],
)
def test_wrong_arguments_are_refused(arguments, match):
    with pytest.raises(InvalidInputError, match=match):
        frank_wolfe(LinearModel(*regression()), **arguments)


def test_other_misuses_are_refused():
    f = LinearModel(*regression())
    with pytest.raises(CapabilityError, match="a ball of finite radius"):
        minimize(f, Sparsity(2), FrankWolfe())
    with pytest.raises(CapabilityError, match="a ball of finite radius"):
        frank_wolfe(f, ball=Sparsity(2))
    with pytest.raises(InvalidInputError, match="about vectors"):
        frank_wolfe(matrix_regression(), 1.0)
    with pytest.raises(InvalidInputError, match="hashable"):
        GroupBall([["a"], ["b"]], 1.0)
    for labels in (3, "abc", b"abc"):
        with pytest.raises(InvalidInputError, match="labels must be a list"):
            GroupBall(labels, 1.0)
    for missing in (None, np.nan):
        with pytest.raises(InvalidInputError, match=r"label of column 1 .* is missing"):
            GroupBall(["a", missing], 1.0)
    for corrective in ("no", None, 0):
        with pytest.raises(InvalidInputError, match="corrective must be True or False"):
            FrankWolfe("plain", corrective)
    with pytest.raises(InvalidInputError, match="tol must be a number > 0"):
        DualityGap(0.0)
    with pytest.raises(CapabilityError, match="needs a run of Frank-Wolfe"):
        minimize(f, Sparsity(2), IHT(), stop=DualityGap(1e-3))


# --- the balls -------------------------------------------------------------------------------------------------------

BALLS = {"l1": (L1Ball(1.5), (12,)), "groups": (GroupBall(LABELS, 1.5), (12,)), "nuclear": (NuclearBall(1.5), (4, 3))}
every_ball = pytest.mark.parametrize("name", BALLS)


@every_ball
@pytest.mark.parametrize("scale", [0.0, 0.01, 1.0, 1e3, 1e150])
def test_projections_against_their_twins(name, scale):
    ball, shape = BALLS[name]
    z = scale * np.random.default_rng(3).standard_normal(shape)
    found = ball.project(z)
    if scale <= 1e3:
        np.testing.assert_allclose(
            found.point, ball.reference_project(z).point, atol=1e-7 if name == "nuclear" else 1e-9
        )
    assert ball.gauge(found.point) <= ball.radius * (1 + 1e-9)
    again = ball.project(found.point)
    np.testing.assert_array_equal(again.point, found.point)
    assert again.support == found.support
    assert not np.shares_memory(found.point, z)


@pytest.mark.slow
@at_most(1)
@every_ball
def test_the_vertex_is_the_best_of_the_ball(name):
    ball, shape = BALLS[name]
    rng = np.random.default_rng(4)
    for _ in range(20):
        gradient = rng.standard_normal(shape)
        vertex = ball.combine([ball.vertex(gradient)], [1.0], gradient)
        assert ball.gauge(vertex) == pytest.approx(ball.radius)
        least = float(np.sum(gradient * vertex))
        assert ball.slopes(gradient, [ball.vertex(gradient)])[0] == pytest.approx(least)
        others = [ball.reference_project(50 * rng.standard_normal(shape)).point for _ in range(50)]
        assert least <= min(float(np.sum(gradient * other)) for other in others)


@every_ball
def test_pieces_make_up_the_point(name):
    ball, shape = BALLS[name]
    w = ball.project(np.random.default_rng(5).standard_normal(shape)).point
    atoms, weights = zip(*ball.decompose(w), strict=True)
    assert sum(weights) == pytest.approx(ball.gauge(w) / ball.radius)
    np.testing.assert_allclose(ball.combine(atoms, weights, w), w, atol=1e-12)
    opposite = ball.combine([ball.opposite(atom) for atom in atoms], weights, w)
    np.testing.assert_allclose(opposite, -w, atol=1e-12)


@every_ball
def test_balls_keep_the_contract_of_constraints(name):
    ball, shape = BALLS[name]
    z = np.random.default_rng(6).standard_normal(shape)
    found = ball.project(z)
    np.testing.assert_allclose(found.support.restrict(found.point), found.point, atol=1e-12)
    assert ball.relax(2.0).radius == 3.0
    assert (found.support | found.support) == found.support
    assert not ball.is_full(found.support)
    assert ball.hard_threshold(z) is not z
    assert isinstance(ball.unbounded(), Ball)
    assert (found.support.indices is None) == (name == "nuclear")
    assert pickle.loads(pickle.dumps(ball)) == ball


@every_ball
def test_degrees_of_freedom_are_the_dimension_of_the_support(name):
    ball, shape = BALLS[name]
    support = ball.project(np.random.default_rng(0).standard_normal(shape)).support
    units = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    moved = np.array([support.restrict(unit).ravel() for unit in units])
    assert support.degrees_of_freedom == np.linalg.matrix_rank(moved)


@every_ball
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_point_that_is_not_finite_is_refused(name, bad):
    ball, shape = BALLS[name]
    with pytest.raises(NotFiniteError):
        ball.project(np.full(shape, bad))


def test_labels_in_any_order_are_the_same_groups():
    z = np.random.default_rng(7).standard_normal(12)
    order = np.random.default_rng(8).permutation(12)
    one = GroupBall(LABELS, 1.5).project(z).point
    other = GroupBall([LABELS[j] for j in order], 1.5).project(z[order]).point
    np.testing.assert_allclose(other, one[order], atol=1e-12)
    named = GroupBall(np.array([ord(label) for label in LABELS]), 1.5).project(z).point
    np.testing.assert_array_equal(named, one)
