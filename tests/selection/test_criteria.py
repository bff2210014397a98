"""Information criteria against their formulas, written out."""

from math import comb, inf, log

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.sparse.linalg import aslinearoperator

import hardthresh as ht
from hardthresh.constraints import GroupSparsity, Rank, RowSparsity, Sparsity
from hardthresh.core import BaseObjective, CapabilityError, Evaluation, InvalidInputError
from hardthresh.designs import OperatorDesign
from hardthresh.objectives import LinearModel, MatrixCompletion, MultiOutputModel
from hardthresh.selection import aic, bic, degrees_of_freedom, ebic, gic, path
from hardthresh.solvers import IHT, minimize
from hardthresh.steps import Fixed

CRITERIA = {"aic": aic, "bic": bic, "ebic": ebic, "gic": gic}
every = pytest.mark.parametrize("criterion", CRITERIA.values(), ids=CRITERIA)
both_losses = pytest.mark.parametrize("loss", ["squared", "logistic"])


def data(loss, n=80, d=15, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.standard_normal((n, d - 1)), np.ones(n)])
    y = X[:, 2] - X[:, 5] + 0.5 + rng.standard_normal(n)
    return X, y if loss == "squared" else (y > 0).astype(float)


def minus_twice(loss, X, y, w, weights=None, offset=0.0):
    """Return minus twice the log-likelihood, a sum over rows, up to a constant."""
    weights = np.ones(y.size) if weights is None else weights
    u = X @ w + offset
    if loss == "squared":
        n = weights.sum()
        return n * log((weights * (y - u) ** 2).sum() / n)
    p = 1 / (1 + np.exp(-u))
    return -2 * (weights * np.where(y == 1, np.log(p), np.log(1 - p))).sum()


def by_hand(name, cost, n, d, chosen, free):
    size = chosen + free
    return (
        cost
        + {
            "aic": 2 * size,
            "bic": log(n) * size,
            "ebic": log(n) * size + 2 * log(comb(d - free, chosen)),
            "gic": chosen * log(d - free) * log(log(n)),
        }[name]
    )


@pytest.mark.parametrize("free", [(), (14,), (0, 14)], ids=str)
@pytest.mark.parametrize("name", CRITERIA)
@both_losses
def test_a_criterion_is_its_formula(loss, name, free):
    X, y = data(loss)
    for k in (0, 1, 3, 6):
        run = minimize(LinearModel(X, y, loss), Sparsity(k, free=free))
        assert run.support.indices.size == k + len(free)
        expected = by_hand(name, minus_twice(loss, X, y, run.w), 80, 15, k, len(free))
        assert_allclose(CRITERIA[name](run), expected, rtol=1e-10)


@both_losses
def test_the_ridge_is_not_part_of_the_likelihood(loss):
    X, y = data(loss)
    offset = np.linspace(-1, 1, 80)
    run = minimize(LinearModel(X, y, loss, l2=0.5, offset=offset), Sparsity(3))
    size = degrees_of_freedom(run)
    assert_allclose(aic(run), minus_twice(loss, X, y, run.w, offset=offset) + 2 * size, rtol=1e-10)


def trace_by_hand(loss, X, w, ridge, weights, offset=0.0):
    """Return tr(H (H + ridge)^-1) on the coordinates that are not zero, from dense matrices."""
    u, chosen = X @ w + offset, np.flatnonzero(w)
    p = 1 / (1 + np.exp(-u))
    bend = weights / weights.sum() * (1.0 if loss == "squared" else p * (1 - p))
    H = X[:, chosen].T @ np.diag(bend) @ X[:, chosen]
    return np.trace(H @ np.linalg.inv(H + np.diag(ridge[chosen])))


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, OperatorDesign], ids=["dense", "sparse", "operator"])
@both_losses
def test_a_ridge_leaves_as_many_coefficients_as_the_trace(loss, convert):
    X, y = data(loss)
    rng = np.random.default_rng(1)
    weights, offset, ridge = rng.uniform(0.5, 2.0, 80), rng.uniform(-1, 1, 80), rng.uniform(0.05, 2.0, 15)
    ridge[[3, 14]] = 0.0
    solver = IHT() if convert is OperatorDesign else None
    model = LinearModel(
        convert(aslinearoperator(X)) if solver else convert(X), y, loss, l2=ridge, sample_weight=weights, offset=offset
    )
    for k in (0, 1, 4, 13):
        run = minimize(model, Sparsity(k, free=(3, 14)), solver)
        size = trace_by_hand(loss, X, run.w, ridge, weights, offset)
        assert 2 <= degrees_of_freedom(run) < k + 2 + (k == 0)
        assert_allclose(degrees_of_freedom(run), size, rtol=1e-9)
        cost = minus_twice(loss, X, y, run.w, weights, offset)
        n = weights.sum()
        assert_allclose(aic(run), cost + 2 * size, rtol=1e-9)
        assert_allclose(bic(run), cost + log(n) * size, rtol=1e-9)
        assert_allclose(ebic(run), cost + log(n) * size + 2 * log(comb(13, k)), rtol=1e-9)
        assert_allclose(gic(run), cost + log(13) * log(log(n)) * (size - 2), rtol=1e-9)


@both_losses
def test_effective_coefficients_fall_from_all_to_the_free_ones(loss):
    X, y = data(loss)
    runs = path(LinearModel(X, y, loss), lambda k: Sparsity(k, free=(14,)), [6], alphas=[0.0, 1e-9, 0.1, 1.0, 1e9])
    sizes = [degrees_of_freedom(run) for run in runs]
    assert sizes[0] == 7
    assert sizes == sorted(sizes, reverse=True)
    assert_allclose(sizes[1], 7, rtol=1e-6)
    assert_allclose(sizes[-1], 1, rtol=1e-6)


def test_groups_have_effective_coefficients_too():
    X, y = data("squared")
    ridge = np.full(15, 0.3)
    run = minimize(LinearModel(X, y, l2=ridge), GroupSparsity(np.arange(15) // 3, 2))
    size = trace_by_hand("squared", X, run.w, ridge, np.ones(80))
    assert_allclose(degrees_of_freedom(run), size)
    assert_allclose(ebic(run), minus_twice("squared", X, y, run.w) + log(80) * size + 2 * log(comb(5, 2)))


def test_dependent_columns_of_groups_count_by_their_rank():
    """Three levels and an intercept are three columns; a group of repeated columns is one."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 80)
    X = np.column_stack([level == 0, level == 1, level == 2, level == 0, level == 0, np.ones(80)]).astype(float)
    y = level + rng.standard_normal(80)
    groups = ["level", "level", "level", "first", "first", "none"]
    runs = list(path(LinearModel(X, y), lambda k: GroupSparsity(groups, k, free=(5,)), range(3)))
    assert [degrees_of_freedom(run) for run in runs] == [1, 3, 3]
    weights = np.where(level == 0, 0.0, 1.0)  # leaves two levels
    runs = list(path(LinearModel(X, y, sample_weight=weights), lambda k: GroupSparsity(groups, k, free=(5,)), [2]))
    assert [degrees_of_freedom(run) for run in runs] == [2]


def test_the_ridge_of_several_outputs_is_accounted_for():
    X, y = data("squared")
    Y = np.column_stack([y, 2 * y, X[:, 1]])
    several = minimize(MultiOutputModel(X, Y, l2=0.3), RowSparsity(15, free=(14,)))
    one = minimize(LinearModel(X, y, l2=0.3), Sparsity(15, free=(14,)))
    assert_allclose(degrees_of_freedom(several), 3 * degrees_of_freedom(one), rtol=1e-10)


def test_outputs_of_any_loss_have_the_sum_of_their_sizes():
    X, y = data("squared")
    Y = np.random.default_rng(1).poisson(np.exp(0.3 * np.column_stack([y, -y])))
    several = minimize(MultiOutputModel(X, Y, "poisson", l2=0.3), RowSparsity(15, free=(14,)))
    alone = [minimize(LinearModel(X, column, "poisson", l2=0.3), Sparsity(15, free=(14,))) for column in Y.T]
    assert_allclose(degrees_of_freedom(several), sum(map(degrees_of_freedom, alone)), rtol=1e-5)


def test_duplicate_columns_with_a_ridge_count_as_one():
    X, y = data("squared")
    twice = LinearModel(np.column_stack([X[:, 2], X[:, 2]]) / np.sqrt(2), y, l2=0.2)
    once = LinearModel(X[:, [2]], y, l2=0.2)
    sizes = [degrees_of_freedom(minimize(f, Sparsity(k))) for f, k in ((twice, 2), (once, 1))]
    assert_allclose(*sizes)


def test_a_ridge_makes_room_for_more_coefficients_than_rows():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 30)), rng.standard_normal(12)
    shrunk, free = (minimize(LinearModel(X, y, l2=l2), Sparsity(20)) for l2 in (3.0, 0.0))
    assert bic(free) == inf or free.support.indices.size < 12
    assert shrunk.support.indices.size == 20
    assert np.isfinite(bic(shrunk))


def test_degrees_of_freedom_need_the_objective(tmp_path):
    ht.save(minimize(LinearModel(*data("squared"), l2=0.1), Sparsity(2)), tmp_path / "run.json")
    with pytest.raises(CapabilityError, match="a result that was loaded has none"):
        degrees_of_freedom(ht.load(tmp_path / "run.json"))


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_the_extended_criterion_lies_between(gamma):
    run = minimize(LinearModel(*data("squared")), Sparsity(4))
    assert_allclose(ebic(run, gamma), bic(run) + 2 * gamma * log(comb(15, 4)), rtol=1e-12)


@every
@both_losses
def test_weights_are_repetitions_and_rows_without_weight_are_absent(criterion, loss):
    X, y = data(loss)
    weights = np.random.default_rng(1).integers(0, 4, 80)
    assert (weights == 0).any()
    runs = [
        minimize(LinearModel(X, y, loss, sample_weight=weights.astype(float)), Sparsity(3)),
        minimize(LinearModel(np.repeat(X, weights, axis=0), np.repeat(y, weights), loss), Sparsity(3)),
    ]
    kept = weights > 0
    runs.append(minimize(LinearModel(X[kept], y[kept], loss, sample_weight=weights[kept].astype(float)), Sparsity(3)))
    assert runs[0].objective.n_targets == runs[1].objective.n_targets == weights.sum()
    for other in runs[1:]:
        assert_allclose(criterion(other), criterion(runs[0]), rtol=1e-8)


@every
def test_weights_count_as_rows_so_their_scale_matters(criterion):
    X, y = data("squared")
    once, thrice = (minimize(LinearModel(X, y, sample_weight=np.full(80, scale)), Sparsity(3)) for scale in (1.0, 3.0))
    plain = minimize(LinearModel(X, y), Sparsity(3))
    assert_allclose(criterion(once), criterion(plain), rtol=1e-10)
    repeated = minimize(LinearModel(np.tile(X, (3, 1)), np.tile(y, 3)), Sparsity(3))
    assert_allclose(criterion(thrice), criterion(repeated), rtol=1e-8)


@every
def test_the_units_of_the_target_move_all_values_alike(criterion):
    X, y = data("squared")
    one, other = (list(path(LinearModel(X, scale * y), Sparsity, [1, 4])) for scale in (1.0, 1e5))
    assert_allclose(criterion(one[1]) - criterion(one[0]), criterion(other[1]) - criterion(other[0]), rtol=1e-8)


@every
def test_float32_gives_nearly_the_same(criterion):
    X, y = data("squared")
    single = minimize(LinearModel(X.astype(np.float32), y), Sparsity(3))
    assert_allclose(criterion(single), criterion(minimize(LinearModel(X, y), Sparsity(3))), rtol=1e-4)


@every
def test_a_perfect_fit_is_the_best(criterion):
    run = minimize(LinearModel(np.eye(4), np.array([4.0, 0.0, 0.0, 0.0])), Sparsity(1))
    assert run.value == 0.0
    assert criterion(run) == -inf


@every
def test_fewer_than_three_examples_are_not_enough(criterion):
    run = minimize(LinearModel(np.ones((1, 3)), np.array([2.0])), Sparsity(0))
    with pytest.raises(InvalidInputError, match="stand for 1 examples"):
        criterion(run)


def test_criteria_choose_the_true_support():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 60))
    y = X[:, [3, 20, 41]] @ [1.0, -1.0, 0.8] + rng.standard_normal(200)
    runs = list(path(LinearModel(X, y), Sparsity, range(16)))
    assert min(runs, key=ebic).support.indices.tolist() == [3, 20, 41]
    sizes = [min(runs, key=criterion).support.indices.size for criterion in (ebic, bic, aic)]
    assert sizes == sorted(sizes)


class Bowl(BaseObjective):
    """An objective without a likelihood."""

    shape = (4,)

    def evaluate(self, w, prediction=None):
        return Evaluation(w, 0.5 * float(np.sum((w - 1.0) ** 2)), w - 1.0)


@every
def test_an_objective_without_likelihood_is_named(criterion):
    with pytest.raises(CapabilityError, match=r"likelihood.*Bowl"):
        criterion(minimize(Bowl(), Sparsity(2), IHT()))


@every
def test_a_result_from_a_file_has_no_data(criterion, tmp_path):
    run = minimize(LinearModel(*data("squared")), Sparsity(2))
    ht.save(run, tmp_path / "run.json")
    with pytest.raises(CapabilityError, match="objective"):
        criterion(ht.load(tmp_path / "run.json"))


@every
def test_an_interrupted_run_is_judged_by_the_answer_it_returns(criterion):
    """Here the steps are too long, so that the best iterate is an early one."""

    def callback(state):
        if state.iteration == 6:
            raise KeyboardInterrupt

    objective = LinearModel(*data("squared"))
    run = minimize(objective, Sparsity(3), IHT(step=Fixed(3.0)), callback=callback, tol=0.0)
    assert run.value < run.state.value, "the run of this test ends above its best"
    null = minimize(objective, Sparsity(0))
    assert run.support.indices.size == 0, "the best iterate of this test is the start"
    assert criterion(run) == pytest.approx(criterion(null))


def test_groups_cost_their_coefficients_and_are_chosen_among_groups():
    """One true group of five columns is chosen by every criterion, which it was not when a group cost one."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 30))
    f = LinearModel(X, X[:, :5] @ np.ones(5) + 2.0 * rng.standard_normal(120))
    labels = np.repeat(np.arange(6), 5)
    runs = [minimize(f, GroupSparsity(labels, k)) for k in range(7)]
    n, best = 120, runs[1]
    misfit = n * log(2.0 * best.value)
    assert bic(best) == pytest.approx(misfit + 5 * log(n))
    assert ebic(best) == pytest.approx(misfit + 5 * log(n) + 2.0 * log(6))
    assert gic(best) == pytest.approx(misfit + 5 * log(30) * log(log(n)))
    for criterion in (bic, ebic, gic):
        assert min(runs, key=criterion) is best


def test_free_columns_count_as_coefficients_but_not_as_choices():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 7))
    f = LinearModel(X, X[:, 0] + X[:, 3] + 0.1 * rng.standard_normal(60))
    run = minimize(f, GroupSparsity(["z", "a", "a", "b", "b", "c", "c"], 1, free=(0,)))
    assert aic(run) == pytest.approx(60 * log(2.0 * run.value) + 2 * 3)
    assert ebic(run) == pytest.approx(bic(run) + 2.0 * log(3))


def test_low_rank_counts_its_degrees_of_freedom():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((8, 1)) @ rng.standard_normal((1, 6)) + 0.1 * rng.standard_normal((8, 6))
    run = minimize(MatrixCompletion.from_matrix(W), Rank(1))
    assert bic(run) == pytest.approx(48 * log(2.0 * run.value) + log(48) * (8 + 6 - 1))
    with pytest.raises(CapabilityError, match="ebic counts"):
        ebic(run)
