"""Every registered step rule keeps the contract of `hardthresh.core.StepRule`, on both losses."""

import pickle
import warnings
from dataclasses import dataclass, replace
from itertools import islice, product
from math import isfinite
from typing import Any

import numpy as np
import pytest
from cases import LOSSES, OTHER_LIBRARIES, assert_same_point, back, convert, examples, planted, problems

from hardthresh.constraints import Coordinates, Sparsity
from hardthresh.core import (
    BaseObjective,
    CapabilityError,
    Evaluation,
    InvalidInputError,
    StallWarning,
    Status,
    iterate,
    lookup,
    minimize,
)
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT
from hardthresh.steps import (
    AdaptiveSparsePolyak,
    Backtracking,
    BarzilaiBorwein,
    ExactLineSearch,
    Fixed,
    Polyak,
    SparsePolyak,
    restricted_smoothness_ar1,
)
from hardthresh.steps.barzilai_borwein import Memory
from hardthresh.steps.line_search import majorised_step

pytestmark = [pytest.mark.filterwarnings("error")]
every = pytest.mark.parametrize("step", examples("step"))
every_loss = pytest.mark.parametrize("loss", LOSSES)

IN_UNITS_OF_THE_STEP = {"Fixed": "its number is the step, so it cannot follow the scale of the objective"}
scale_free = pytest.mark.parametrize(
    "step", examples("step", where=lambda step: type(step).__name__ not in IN_UNITS_OF_THE_STEP)
)
every_problem = pytest.mark.parametrize(("step", "objective", "constraint"), problems(examples("step")))


class Drifting(Sparsity):
    """A projection that moves every point, by little and uphill."""

    def project(self, w, start=None):
        return super().project(w * (1.0 + 1e-8))


@dataclass
class Scaled(BaseObjective):
    """An objective times a constant, which also counts what a rule asks of it."""

    inner: Any
    factor: float
    calls: int = 0

    @property
    def shape(self):
        return self.inner.shape

    @property
    def lower_bound(self):
        return self.factor * self.inner.lower_bound

    def zeros(self):
        return self.inner.zeros()

    def predict(self, w):
        return self.inner.predict(w)

    def value(self, w, prediction=None):
        self.calls += 1
        return self.factor * self.inner.value(w, prediction)

    def evaluate(self, w, prediction=None):
        self.calls += 1
        at = self.inner.evaluate(w, prediction)
        return Evaluation(w, self.factor * at.value, self.factor * at.gradient, at.prediction)

    def curvature(self, at, direction):
        self.calls += 1
        return self.factor * self.inner.curvature(at, direction)


def start(objective):
    return objective.evaluate(objective.zeros())


def move_of(step, objective, constraint, at, direction, memory):
    """The move of a rule from a point of the set, whose support it is told."""
    return step.move(objective, constraint, at, direction, memory, constraint.project(at.point).support)


def moves(step, objective, constraint, count):
    """The first moves of a rule along the negative gradient, from zero."""
    at, memory, made = start(objective), step.start(), []
    for _ in range(count):
        move = move_of(step, objective, constraint, at, -at.gradient, memory)
        made.append(move)
        at, memory = move.evaluation or objective.evaluate(move.projection.point), move.memory
    return made


@every
@every_loss
@pytest.mark.parametrize(
    "constraint", [Sparsity(4), Sparsity(4, free=(0,), lower=-1.0, upper=1.0)], ids=["k", "bounds"]
)
def test_steps_are_finite_and_projections_feasible(step, loss, constraint):
    objective = planted(loss).model()
    for move in moves(step, objective, constraint, 12):
        assert isinstance(move.step, float)
        assert isfinite(move.step)
        assert move.step >= 0
        again = constraint.project(move.projection.point)
        np.testing.assert_array_equal(again.point, move.projection.point)
        assert again.support == move.projection.support
        if move.evaluation is not None:
            assert move.evaluation.value == objective.evaluate(move.projection.point).value
            np.testing.assert_array_equal(move.evaluation.point, move.projection.point)


@every_problem
def test_points_and_supports_may_be_of_any_kind(step, objective, constraint):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StallWarning)  # short epochs may stall, and say so
        states = list(islice(iterate(objective, constraint, IHT(step=step)), 12))
    for state in states:
        again = constraint.project(state.w)
        assert_same_point(constraint, again.point, state.w)
        assert again.support == state.support
        assert state.w.shape == objective.shape
        np.testing.assert_allclose(state.value, objective.value(state.w), rtol=1e-12)
        if state.iteration:
            assert isfinite(state.step)
            assert state.step >= 0


@every
@every_loss
def test_the_first_move_gets_somewhere(step, loss):
    move = moves(step, planted(loss).model(), Sparsity(4), 1)[0]
    assert move.step > 0
    assert move.projection.point.any()


@every
@every_loss
def test_the_step_is_the_way_made(step, loss):
    """The projection is that of the point plus the step times the direction."""
    objective, constraint = planted(loss).model(), Sparsity(4)
    at = start(objective)
    move = move_of(step, objective, constraint, at, -at.gradient, step.start())
    expected = constraint.project(at.point - move.step * at.gradient).point
    np.testing.assert_array_equal(move.projection.point, expected)


@every
@every_loss
def test_memory_is_picklable_and_not_mutated(step, loss):
    objective, constraint = planted(loss).model(), Sparsity(4)
    at, memory = start(objective), step.start()
    for _ in range(6):
        frozen = pickle.dumps(memory)
        one = move_of(step, objective, constraint, at, -at.gradient, memory)
        assert pickle.dumps(memory) == frozen
        two = move_of(step, objective, constraint, at, -at.gradient, pickle.loads(frozen))
        assert one.step == two.step
        np.testing.assert_array_equal(one.projection.point, two.projection.point)
        assert pickle.dumps(one.memory) == pickle.dumps(two.memory)
        at, memory = one.evaluation or objective.evaluate(one.projection.point), one.memory


@every
@every_loss
@pytest.mark.parametrize("k", [0, 4, 60])
def test_a_solution_is_kept(step, loss, k):
    """A zero gradient: no division by zero, and w stays as it is."""
    problem = planted(loss)
    w = np.zeros(problem.X.shape[1])
    if loss == "squared":
        w[problem.support[: min(k, 4)]] = 1.5
    y = lookup("loss", loss)().mean(problem.X @ w)
    objective, constraint = LinearModel(problem.X, y, loss=loss), Sparsity(k)
    at, memory = objective.evaluate(w), step.start()
    assert not at.gradient.any()
    for _ in range(3):
        move = move_of(step, objective, constraint, at, -at.gradient, memory)
        assert isfinite(move.step)
        np.testing.assert_array_equal(move.projection.point, w)
        memory = move.memory


@scale_free
@every_loss
@pytest.mark.parametrize("factor", [2.0**-12, 2.0**12])
def test_steps_shrink_as_the_objective_grows(step, loss, factor):
    objective, constraint = planted(loss).model(), Sparsity(4)
    for one, other in zip(
        moves(step, Scaled(objective, 1.0), constraint, 8),
        moves(step, Scaled(objective, factor), constraint, 8),
        strict=True,
    ):
        np.testing.assert_allclose(other.step * factor, one.step, rtol=1e-9)
        np.testing.assert_allclose(other.projection.point, one.projection.point, rtol=1e-9, atol=1e-12)


def test_the_exceptions_of_the_scale_law_exist():
    names = {type(parameter.values[0]).__name__ for parameter in examples("step")}
    assert names >= IN_UNITS_OF_THE_STEP.keys()
    assert len(names) >= len(IN_UNITS_OF_THE_STEP) + 6


@every
@every_loss
@pytest.mark.parametrize("factor", [1e-8, 1e8])
def test_a_bad_scale_does_not_hang_a_rule(step, loss, factor):
    objective, constraint = Scaled(planted(loss).model(), factor), Sparsity(4)
    at, memory = start(objective), step.start()
    with np.errstate(over="ignore", invalid="ignore"):  # as in a run
        for _ in range(4):
            objective.calls = 0
            move = move_of(step, objective, constraint, at, -at.gradient, memory)
            assert objective.calls <= 150
            assert isfinite(move.step)
            at, memory = move.evaluation or objective.evaluate(move.projection.point), move.memory
            if not isfinite(at.value):  # there a run ends as diverged
                break


@every_loss
@pytest.mark.parametrize("first", [1e-8, 1e8])
def test_backtracking_recovers_from_a_bad_first_step(loss, first):
    problem = planted(loss)
    run = minimize(problem.model(), Sparsity(4), IHT(step=Backtracking(first=first)), max_iter=500)
    assert run.converged
    np.testing.assert_array_equal(run.support, problem.support)


@every
@every_loss
def test_inputs_are_unchanged(step, loss):
    objective, constraint = planted(loss).model(), Sparsity(4)
    at, memory = start(objective), step.start()
    for _ in range(4):
        direction = -at.gradient
        frozen = pickle.dumps((at, direction))
        for array in (at.point, at.gradient, at.prediction, direction):
            array.flags.writeable = False
        move = move_of(step, objective, constraint, at, direction, memory)
        assert pickle.dumps((at, direction)) == frozen
        assert not np.shares_memory(move.projection.point, at.point)
        at, memory = move.evaluation or objective.evaluate(move.projection.point), move.memory
        at = replace(at, point=at.point.copy())


@every
@every_loss
@pytest.mark.parametrize("library", OTHER_LIBRARIES)
def test_other_array_libraries_agree(step, loss, library):
    problem, constraint = planted(loss), Sparsity(4)
    theirs = LinearModel(convert(problem.X, library), convert(problem.y, library), loss=loss)
    for one, other in zip(moves(step, problem.model(), constraint, 6), moves(step, theirs, constraint, 6), strict=True):
        np.testing.assert_allclose(other.step, one.step, rtol=1e-9)
        np.testing.assert_allclose(back(other.projection.point), one.projection.point, rtol=1e-9, atol=1e-12)


@every
@every_loss
def test_float32_stays_float32(step, loss):
    for move in moves(step, planted(loss, dtype=np.float32).model(), Sparsity(4), 6):
        assert move.projection.point.dtype == np.float32
        assert isfinite(move.step)


@pytest.mark.parametrize(
    ("step", "missing"),
    [
        (ExactLineSearch(), "curvature"),
        (Polyak(), "lower_bound"),
        (SparsePolyak(), "lower_bound"),
        (AdaptiveSparsePolyak(), "lower_bound"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_missing_contract_is_named_before_the_run(step, missing):
    class Plain(BaseObjective):
        shape = (3,)

        def evaluate(self, w, prediction=None):
            return Evaluation(w, 0.0, w)

    with pytest.raises(CapabilityError, match=f"^{type(step).__name__} needs {missing}, which Plain does not provide"):
        minimize(Plain(), Sparsity(1), IHT(step=step))


# --- the rules one by one --------------------------------------------------------------------------------------------


def test_polyak_steps_are_the_formula():
    objective, constraint = planted().model(), Sparsity(4)
    at = start(objective)
    full = float(np.sum(at.gradient**2))
    largest = np.sort(at.gradient**2)[::-1]
    for rule, expected in [
        (Polyak(0.5, 5.0), (at.value - 0.5) / (5 * full)),
        (Polyak(), at.value / (5 * full)),
        (SparsePolyak(0.5, 2.0), (at.value - 0.5) / (2 * largest[:4].sum())),
        (SparsePolyak(0.5, 5.0, relax=2), (at.value - 0.5) / (5 * largest[:8].sum())),
        (AdaptiveSparsePolyak(0.5), (at.value - 0.5) / (10 * largest[:4].sum())),
        (Polyak(at.value + 1.0), 0.0),
        (SparsePolyak(at.value + 1.0), 0.0),
        (AdaptiveSparsePolyak(at.value + 1.0), 0.0),
        (Fixed(0.25), 0.25),
    ]:
        move = move_of(rule, objective, constraint, at, -at.gradient, rule.start())
        np.testing.assert_allclose(move.step, expected, rtol=1e-12)


@pytest.mark.parametrize("rule", [Polyak, SparsePolyak, AdaptiveSparsePolyak])
@pytest.mark.parametrize("tol", [0.0, 1e-8])
def test_a_run_at_its_target_settles_and_says_so(rule, tol):
    run = minimize(planted().model(), Sparsity(4), IHT(step=rule(300.0)), max_iter=100, tol=tol)
    assert run.status is Status.SETTLED
    assert run.n_iter == 1
    assert not run.w.any()
    assert "300, so the step is zero" in run.message
    assert ("smaller lower_bound" if rule is AdaptiveSparsePolyak else "lower the target") in run.message


@pytest.mark.parametrize(
    "step",
    [Polyak(-1.0), SparsePolyak(0.0), AdaptiveSparsePolyak(-1.0), ExactLineSearch(), Backtracking(), BarzilaiBorwein()],
)
def test_a_run_without_a_gradient_settles(step):
    X = planted().X
    run = minimize(LinearModel(X, np.zeros(X.shape[0]), l2=1.0), Sparsity(4), IHT(step=step), max_iter=100, tol=0.0)
    assert run.status is Status.SETTLED
    assert run.n_iter == 1
    assert not run.w.any()


def test_a_stalled_run_is_not_called_converged():
    solver = IHT(step=AdaptiveSparsePolyak(epoch_length=1))
    with pytest.warns(StallWarning, match="make epoch_length larger"):
        run = minimize(planted().model(), Sparsity(4), solver, max_iter=300, tol=0.0)
    assert run.history["step"][-1] == 0.0
    assert not run.converged


def test_a_target_on_the_way_ends_the_run_there():
    run = minimize(planted().model(), Sparsity(4), IHT(step=SparsePolyak(1.0, scale=1.0)), max_iter=500, tol=0.0)
    assert run.status is Status.SETTLED
    assert run.value <= 1.0
    assert (run.history["step"][:-1] > 0).all()
    assert run.history["step"][-1] == 0.0


def test_adaptive_sparse_polyak_raises_its_bound_after_an_epoch():
    objective, constraint = planted().model(), Sparsity(4)
    made = moves(AdaptiveSparsePolyak(0.0, epoch_length=3), objective, constraint, 7)
    assert [move.memory.bound for move in made[:3]] == [0.0] * 3
    second = made[3].memory.bound
    assert second == 0.5 * made[3].memory.best.value
    assert [move.memory.bound for move in made[3:6]] == [second] * 3
    assert made[6].memory.bound == 0.5 * (made[6].memory.best.value + second)


def test_exact_line_search_minimises_along_the_support():
    problem = planted()
    objective, constraint = problem.model(), Sparsity(4)
    w = np.zeros(problem.X.shape[1])
    w[problem.support] = 1.0
    at = objective.evaluate(w)
    restricted = Coordinates(problem.support).restrict(-at.gradient)
    step = move_of(ExactLineSearch(), objective, constraint, at, -at.gradient, None).step
    values = [objective.value(w + s * restricted) for s in (0.99 * step, step, 1.01 * step)]
    assert values[1] == min(values)


def test_backtracking_satisfies_its_majorisation_and_is_monotone():
    for loss in LOSSES:
        objective, constraint = planted(loss).model(), Sparsity(4)
        states = iterate(objective, constraint, IHT(step=Backtracking()))
        before = next(states)
        for _ in range(30):
            after = next(states)
            moved = after.w - before.w
            if after.step > 0:
                model = before.value + before.at.gradient @ moved + moved @ moved / (2 * after.step)
                assert after.value <= model + 1e-14
            assert after.value <= before.value * (1 + 1e-14)  # once converged, up to rounding
            before = after


def test_barzilai_borwein_steps_are_the_secant_formula():
    """The difference of the gradients counts on both supports, also where the second is another one."""
    problem = planted()
    objective, constraint = problem.model(), Sparsity(4)
    wrong = np.zeros(40)
    wrong[np.setdiff1d(np.arange(40), problem.support)[:4]] = 0.1
    for kind, w0 in product(("long", "short"), (None, wrong)):
        states = iterate(objective, constraint, IHT(step=BarzilaiBorwein(kind=kind)), w0)
        one, two, three = (next(states) for _ in range(3))
        assert w0 is None or np.setdiff1d(one.support, two.support).size
        moved = two.w - one.w
        union = np.union1d(one.support, two.support)
        change = np.zeros_like(moved)
        change[union] = (two.at.gradient - one.at.gradient)[union]
        expected = moved @ moved / (moved @ change) if kind == "long" else moved @ change / (change @ change)
        halvings = np.log2(expected / three.step)
        np.testing.assert_allclose(halvings, round(halvings), atol=1e-9)
        assert halvings >= -1e-9


@pytest.mark.parametrize("kind", ["long", "short"])
@pytest.mark.parametrize("size", [1.0, 1e15], ids=str)
def test_barzilai_borwein_steps_are_the_secant_formula_where_squares_overflow(kind, size):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 4)), rng.standard_normal(20)
    X[:, 1] *= size
    objective, rule = LinearModel(X.astype(np.float32), y.astype(np.float32)), BarzilaiBorwein(kind)
    before, now = (objective.evaluate(np.asarray(w, dtype=np.float32)) for w in (np.zeros(4), [0.0, 1e-7, 0.1, 0.1]))
    memory = Memory(previous=before, values=(before.value,), step=1.0)
    with np.errstate(over="ignore", invalid="ignore"):  # as in a run
        move = move_of(rule, objective, Sparsity(3), now, -now.gradient, memory)
    moved, change = (np.float64(b - a) for a, b in ((before.point, now.point), (before.gradient, now.gradient)))
    change[0] = 0.0
    expected = moved @ moved / (moved @ change) if kind == "long" else moved @ change / (change @ change)
    halvings = np.log2(expected / move.step)
    np.testing.assert_allclose(halvings, round(halvings), atol=1e-4)
    assert move.step > 0.0


@pytest.mark.parametrize("kind", ["long", "short"])
def test_barzilai_borwein_never_divides_by_a_step_of_zero(kind):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 4)).astype(np.float32), rng.standard_normal(20)
    X[:, 1] *= 1e15
    run = minimize(LinearModel(X, y), Sparsity(2), IHT(step=BarzilaiBorwein(kind)), w0=np.ones(4), max_iter=50)
    assert (run.history["step"] > 0.0).all()


def test_a_majorised_step_that_shrinks_to_zero_ends_the_search():
    """Each try is a projection: of a product of factors at least, the point moves by rounding even without a step."""
    X = np.array([[1.0], [2.0]])
    objective, constraint = LinearModel(X, np.array([1.0, 1.0])), Drifting(1)
    at = objective.evaluate(np.array([1.0]))
    assert majorised_step(objective, constraint, at, np.array([1e-300]), 1e-300, 1e-30) is None


def test_polyak_steps_survive_gradients_whose_squares_vanish():
    """As at the minimum of a flat function: |g|^2 is the smallest number, and a tenth of it is zero."""
    objective, constraint = planted().model(), Sparsity(4)
    at = start(objective)
    tiny = np.zeros_like(at.gradient)
    tiny[0] = 2e-162
    for rule in (Polyak(scale=0.1), SparsePolyak(scale=0.1), AdaptiveSparsePolyak(scale=0.1)):
        move = move_of(rule, objective, constraint, replace(at, gradient=tiny), -tiny, rule.start())
        assert np.isfinite(move.projection.point).all()


def test_restricted_smoothness_of_the_paper():
    np.testing.assert_allclose(restricted_smoothness_ar1(700, 300, alpha=5.0, omega=0.5), 21.180952, rtol=1e-7)
    np.testing.assert_allclose(
        restricted_smoothness_ar1(700, 300, alpha=5.0, omega=0.5, loss="logistic"), 5.295238, rtol=1e-7
    )
    assert Fixed.from_smoothness(3.0).step == pytest.approx(2 / 9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Fixed(0.0), "step must be a finite number > 0, got 0.0"),
        (lambda: Fixed(-1.0), "step must be a finite number > 0"),
        (lambda: Fixed(np.nan), "step must be a finite number > 0"),
        (lambda: Fixed(np.inf), "finite"),
        (lambda: Polyak(scale=0.0), "scale"),
        (lambda: Polyak(target=np.nan), "target"),
        (lambda: SparsePolyak(scale=np.nan), "scale"),
        (lambda: SparsePolyak(target=-np.inf), "target"),
        (lambda: SparsePolyak(relax=0.5), "relax"),
        (lambda: SparsePolyak(relax=np.inf), "relax"),
        (lambda: SparsePolyak(relax="a"), "relax"),
        (lambda: SparsePolyak(scale="a"), "scale must be a finite number > 0"),
        (lambda: SparsePolyak(scale=True), "scale must be a finite number > 0"),
        (lambda: Polyak(target="a"), "target must be a finite number, got 'a'"),
        (lambda: AdaptiveSparsePolyak(lower_bound="a"), "lower_bound must be a finite number"),
        (lambda: AdaptiveSparsePolyak(epoch_length=0), "epoch_length"),
        (lambda: AdaptiveSparsePolyak(epoch_length=2.5), "epoch_length must be an integer, got 2.5"),
        (lambda: AdaptiveSparsePolyak(epoch_length=True), "epoch_length"),
        (lambda: AdaptiveSparsePolyak(epoch_length="3"), "epoch_length"),
        (lambda: AdaptiveSparsePolyak(lower_bound=np.inf), "lower_bound"),
        (lambda: Backtracking(first=0.0), "first"),
        (lambda: Backtracking(first=np.nan), "first"),
        (lambda: Backtracking(grow=0.5), "grow"),
        (lambda: Backtracking(shrink=1.0), "shrink"),
        (lambda: BarzilaiBorwein(kind="middle"), "kind"),
        (lambda: BarzilaiBorwein(window=0), "window"),
        (lambda: restricted_smoothness_ar1(0, 1, alpha=1.0, omega=0.5), "s must be >= 1, got 0"),
        (lambda: restricted_smoothness_ar1(1, 1, alpha=1.0, omega=1.0), "omega"),
        (lambda: restricted_smoothness_ar1(1, 1, alpha=1.0, omega=0.0, loss="hinge"), "hinge"),
    ],
)
def test_wrong_arguments_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()
