"""Local search over whole groups, and over the parts of other structured supports, against every choice there is."""

from itertools import combinations

import numpy as np
import pytest

from hardthresh.constraints import DoubleSparsity, GroupSparsity, OverlappingGroupSparsity, Sparsity
from hardthresh.core import minimize
from hardthresh.objectives import LinearModel
from hardthresh.solvers import HardThresholdingPursuit, choose_solver
from hardthresh.solvers.block_search import MOST_COLUMNS, block_model, search, search_blocks
from hardthresh.solvers.block_tableau import BlockChoice, BlockModel, tables
from hardthresh.solvers.local_search import descend, grow
from levels import at_most, only_at


def correlated(seed, n_groups=9, n=60, rho=0.9, k=3):
    """Uneven groups in mixed order, neighbours alike, and a target of k of them with half as much noise."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(n_groups), rng.integers(1, 6, n_groups)))
    common = rng.standard_normal((n, n_groups))
    for j in range(1, n_groups):
        common[:, j] = rho * common[:, j - 1] + np.sqrt(1 - rho**2) * common[:, j]
    X = np.sqrt(rho) * common[:, labels] + np.sqrt(1 - rho) * rng.standard_normal((n, labels.size))
    mean = X @ np.where(np.isin(labels, rng.choice(n_groups, k, replace=False)), rng.standard_normal(labels.size), 0.0)
    return X, mean + mean.std() / np.sqrt(2) * rng.standard_normal(n), labels


def residual(X, y, columns):
    A = X[:, list(columns)]
    return np.mean((y - A @ np.linalg.lstsq(A, y)[0]) ** 2) / 2


@only_at("pairs")
def test_the_default_finds_the_best_groups_where_they_are_correlated():
    """Without the search it is 3 of 12."""
    found = {True: 0, False: 0}
    for seed in range(12):
        X, y, labels = correlated(seed)
        objective, constraint = LinearModel(X, y), GroupSparsity(labels, 3)
        best = min(residual(X, y, np.flatnonzero(np.isin(labels, some))) for some in combinations(range(9), 3))
        for searched in found:
            solver = choose_solver(objective, constraint) if searched else HardThresholdingPursuit()
            run = minimize(objective, constraint, solver)
            assert run.converged
            assert np.all(np.diff(run.history["value"]) <= 1e-12)
            found[searched] += run.value <= best * (1 + 1e-8)
    assert found[True] == 12
    assert found[False] < 10


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_no_exchange_of_groups_is_left(loss):
    X, y, labels = correlated(20, n_groups=12, n=120)
    objective = LinearModel(X, y if loss == "squared" else 1.0 * (y > 0), loss, l2=0.01)
    constraint = GroupSparsity(labels, 4)
    run = minimize(objective, constraint, choose_solver(objective, constraint))
    chosen = set(run.support.numbers.tolist())
    for removed in chosen:
        for added in set(range(12)) - chosen:
            names = constraint.groups_of(run.support.exchange(removed, added))
            columns = np.flatnonzero(np.isin(labels, names))
            rival = minimize(
                LinearModel(X[:, columns], objective.y, loss, l2=0.01), Sparsity(99), HardThresholdingPursuit()
            )
            assert rival.value >= run.value * (1 - 1e-6)


def test_free_columns_stay_and_are_not_counted():
    X, y, labels = correlated(3)
    free = (int(np.flatnonzero(labels == 4)[0]),)
    constraint = GroupSparsity(labels, 2, free=free)
    run = minimize(LinearModel(X, y), constraint, HardThresholdingPursuit(exchanges=5))
    assert free[0] in np.flatnonzero(run.w)
    numbers = [-1 if j in free else constraint.names.index(label) for j, label in enumerate(labels)]
    best = min(
        residual(X, y, {*free, *(j for j, g in enumerate(numbers) if g in some)})
        for some in combinations(range(constraint.n_groups), 2)
    )
    np.testing.assert_allclose(run.value, best, rtol=1e-8)


def test_the_model_says_what_refits_bring():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 10)) @ rng.standard_normal((10, 10)), rng.standard_normal(40)
    blocks = [np.array([0, 3]), np.array([1]), np.array([2, 5, 7]), np.array([4, 6]), np.array([8])]
    model = BlockModel(X.T @ X / 40, X.T @ y / 40, blocks, np.array([9]), 2e-16)

    def decrease(some):
        return np.mean(y**2) / 2 - residual(X, y, [9, *(int(j) for g in some for j in blocks[g])])

    choice = BlockChoice(model, [0, 2], np.inf)
    np.testing.assert_allclose(choice.decrease, decrease([0, 2]), rtol=1e-6)
    gains = choice.gains()
    for g in (1, 3, 4):
        np.testing.assert_allclose(gains[g], decrease([0, 2, g]) - decrease([0, 2]), rtol=1e-5)
    np.testing.assert_allclose(choice.costs(), [decrease([0, 2]) - decrease([g]) for g in (2, 0)], rtol=1e-5)
    for place, added, fall in choice.exchanges():
        rest = {0, 2} - {(0, 2)[place]}
        every = [decrease([*rest, g]) - decrease([0, 2]) for g in (1, 3, 4)]
        np.testing.assert_allclose(fall, max(every), rtol=1e-4, atol=1e-9)
        assert added == (1, 3, 4)[int(np.argmax(every))]


def test_duplicate_and_zero_columns_are_no_trouble():
    X, y, labels = correlated(5)
    X = np.column_stack([X, X[:, :4], np.zeros((60, 3))])
    labels = np.concatenate([labels, [20, 20, 21, 21], [0, 30, 30]])
    run = minimize(LinearModel(X, y), GroupSparsity(labels, 3), HardThresholdingPursuit(exchanges=5))
    assert run.converged
    assert np.isfinite(run.value)


def test_one_of_two_blocks_that_span_the_same_leaves_at_no_cost():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 8)), rng.standard_normal(40)
    X[:, [2, 3]] = X[:, [0, 1]] @ rng.standard_normal((2, 2))
    blocks = [np.arange(2 * g, 2 * g + 2) for g in range(4)]
    model = BlockModel(X.T @ X / 40, X.T @ y / 40, blocks, np.array([], dtype=int), 2e-16)
    _, added, best = BlockChoice(model, [0, 1], np.inf).best_exchange()
    gains = [residual(X, y, [0, 1]) - residual(X, y, [0, 1, *blocks[g]]) for g in (2, 3)]
    np.testing.assert_allclose(best, max(gains), rtol=1e-6)
    assert added == 2 + int(np.argmax(gains))


def uneven(width, singles=60, n=150, seed=0):
    """One wide group, neighbouring single columns, and a target of the wide one and two of these."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.zeros(width, dtype=int), np.arange(1, singles + 1)])
    X = rng.standard_normal((n, labels.size))
    X[:, width + 1 :] += 2 * X[:, width:-1]
    y = X[:, :width] @ rng.standard_normal(width) / np.sqrt(width) + X[:, width + 5] - X[:, width + 20]
    return X, y + 0.3 * rng.standard_normal(n), labels


def test_a_wide_group_does_not_make_narrow_ones_dear():
    """Padded to the widest, 61 blocks of 40 would be 97600 pairs of columns."""
    X, y, labels = uneven(40)
    blocks = [np.flatnonzero(labels == g) for g in range(61)]
    assert sum(table.pairs for table in tables(blocks)) == 40**2 + 60
    mixed = [np.arange(size) for size in (1, 5, 2, 3, 8, 9, 0, 100, 33)]
    shown = [
        (int(g), table.columns[row][table.there[row]]) for table in tables(mixed) for row, g in enumerate(table.blocks)
    ]
    assert sorted(g for g, _ in shown) == list(range(9))
    assert all(np.array_equal(columns, mixed[g]) for g, columns in shown)
    assert sum(table.pairs for table in tables(mixed)) <= 4 * sum(block.size**2 for block in mixed)
    run = minimize(LinearModel(X, y), GroupSparsity(labels, 3), HardThresholdingPursuit(exchanges=5))
    np.testing.assert_array_equal(run.support.numbers, [0, 6, 21])


def test_the_work_and_the_columns_are_bounded():
    X, y, labels = uneven(40)
    objective, constraint = LinearModel(X, y), GroupSparsity(labels, 3)
    at = objective.evaluate(objective.zeros())
    known = block_model(objective, constraint, at, constraint.project(at.point).support)
    model, start = known.model, ()
    model.work = 0
    least = search(model, start, 3, 0.0, most_work=0)
    once = model.work
    assert len(least.chosen) == 1
    model.work = 0
    found = search(model, start, 3, 0.0)
    assert len(found.chosen) == 3
    assert once < model.work < 10**8
    model.work = 0
    some = search(model, start, 3, 0.0, most_work=4 * once)
    assert model.work < 30 * once
    assert some.decrease <= found.decrease


@pytest.mark.parametrize(("width", "there"), [(MOST_COLUMNS - 2, True), (MOST_COLUMNS + 1, False)])
def test_what_is_too_wide_is_left_out(width, there):
    """As a rival the group is passed over, and the others go on; where it is chosen there is no model."""
    X, y, labels = uneven(width, singles=25, n=6)
    objective, constraint = LinearModel(X, y), GroupSparsity(labels, 1)
    narrow = np.zeros(labels.size)
    narrow[-1] = 1.0
    known = block_model(objective, constraint, objective.evaluate(narrow), constraint.project(narrow).support)
    assert known.complete is False
    assert known.names == [*range(1, 26)]
    wide = np.zeros(labels.size)
    wide[:width] = 1.0
    at = objective.evaluate(wide)
    known = block_model(objective, constraint, at, constraint.project(at.point).support)
    assert (known is not None) == there
    assert known is None or known.columns.size <= MOST_COLUMNS
    if not there:
        assert search_blocks(objective, constraint, at, constraint.project(wide).support, 0.0) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_rows_and_columns_does_not_matter(seed):
    X, y, labels = correlated(seed, n_groups=12, n=80, k=4)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(80), rng.permutation(labels.size)
    runs = [
        minimize(f, constraint, choose_solver(f, constraint))
        for f, constraint in [
            (LinearModel(X, y), GroupSparsity(labels, 4)),
            (LinearModel(X[rows], y[rows]), GroupSparsity(labels, 4)),
            (LinearModel(X[:, columns], y), GroupSparsity(labels[columns], 4)),
        ]
    ]
    np.testing.assert_allclose(runs[1].w, runs[0].w, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(runs[2].w, runs[0].w[columns], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("seed", [13, 25, 27, 33])
def test_add_drop_moves_find_what_exchanges_do_not(seed):
    """20 pairs of correlated columns, of which 5 may be chosen: adding some and dropping as many leads further."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 40))
    for j in range(1, 40):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.9**2) * X[:, j]
    y = X @ rng.standard_normal(40)
    pairs = list(np.arange(40).reshape(20, 2))
    model = BlockModel(X.T @ X / 30, X.T @ y / 30, pairs, np.empty(0, dtype=int), 2.2e-16)
    choice = BlockChoice(model, [], np.inf)
    grow(choice, 5, 1e-9)
    exchanged = descend(choice, 5, 1e-9, 1e-9)
    found = search(model, [], 5, 1e-9)
    assert len(found.chosen) == 5
    assert found.decrease > 1.02 * exchanged.decrease


def test_where_there_are_no_blocks_there_is_no_model():
    X, y, _ = correlated(0)
    objective = LinearModel(X, y)
    at, support = objective.evaluate(objective.zeros()), Sparsity(2).project(objective.zeros()).support
    assert block_model(objective, Sparsity(2), at, support) is None
    assert search_blocks(objective, Sparsity(2), at, support, 0.0) is None


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_exchanges_of_units_find_most_of_the_best(rho):
    """Of 8 each: 7 or 8 of the doubly sparse, 8 of the overlapping ones, which are searched like whole groups."""
    doubly = overlapping = 0
    for seed in range(8):
        X, y, _ = correlated(seed, n_groups=6, n=50, rho=rho, k=2)
        X, labels = X[:, :12], np.arange(12) % 4
        objective = LinearModel(X, y)
        constraint = DoubleSparsity(labels, 2, 2)
        run = minimize(objective, constraint, choose_solver(objective, constraint))
        pairs = [[*combinations(np.flatnonzero(labels == g), 2)] for g in range(4)]
        best = min(residual(X, y, a + b) for g, h in combinations(range(4), 2) for a in pairs[g] for b in pairs[h])
        doubly += run.value <= best * (1 + 1e-8)
        groups = [[j, (j + 1) % 12, (j + 2) % 12] for j in range(0, 12, 2)]
        covering = OverlappingGroupSparsity(groups, 2)
        run = minimize(objective, covering, choose_solver(objective, covering))
        assert np.all(np.diff(run.history["value"]) <= 1e-12)
        best = min(residual(X, y, {*a, *b}) for a, b in combinations(groups, 2))
        overlapping += run.value <= best * (1 + 1e-8)
    assert doubly >= 7
    assert overlapping == 8
