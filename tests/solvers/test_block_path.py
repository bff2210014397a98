"""The best blocks for every number of them at once, against runs for each and against every choice."""

from itertools import combinations

import numpy as np
import pytest

from hardthresh.constraints import GroupSparsity, OverlappingGroupSparsity, Sparsity
from hardthresh.objectives import LinearModel
from hardthresh.solvers.block_path import MOST_COLUMNS, quadratic_block_path


def data(seed, n_groups=8, n=60):
    """Uneven groups, neighbours alike, a copy of a column, and a free column at the end."""
    rng = np.random.default_rng(seed)
    labels = np.sort(np.concatenate([np.arange(n_groups), rng.integers(n_groups, size=12)]))
    X = rng.standard_normal((n, labels.size))
    for j in range(1, labels.size):
        X[:, j] += 0.8 * X[:, j - 1]
    X[:, 4] = X[:, 1]
    X = np.column_stack([X, np.ones(n)])
    y = X[:, labels.size // 2 :] @ rng.standard_normal(X.shape[1] - labels.size // 2) + 2 * rng.standard_normal(n)
    return X, y, [*labels.tolist(), None]


def least(X, y, columns, ridge):
    """The least value of f on some columns, of which the last, free one has no ridge."""
    columns = [*columns, X.shape[1] - 1]
    penalty = np.sqrt(ridge * len(y)) * np.eye(len(columns))
    penalty[-1] = 0.0
    A, b = np.vstack([X[:, columns], penalty]), np.append(y, np.zeros(len(columns)))
    w = np.linalg.lstsq(A, b)[0]
    return np.sum((b - A @ w) ** 2) / (2 * len(y))


@pytest.mark.parametrize("kind", ["groups", "overlapping"])
def test_it_ends_at_the_best_blocks_of_every_number(kind):
    best, total = 0, 0
    for seed in range(4):
        X, y, labels = data(seed)
        d, ridges = len(labels), [0.0, 0.05, 0.5]
        if kind == "groups":
            lists = [[j for j, label in enumerate(labels) if label == g] for g in range(8)]
            constraint = GroupSparsity(labels, 0, free=(d - 1,))
        else:
            lists = [list(range(start, min(start + 4, d - 1))) for start in range(0, d - 1, 3)]
            constraint = OverlappingGroupSparsity(lists, 0, free=(d - 1,))
        points = quadratic_block_path(LinearModel(X, y), constraint, [0, 1, 2, 3], ridges, 1, 1e-8)
        for size, row in zip([0, 1, 2, 3], points, strict=True):
            choices = [sorted(set().union(*some)) for some in combinations(map(set, lists), size)]
            found = [choice for choice in choices if {*np.flatnonzero(row[1])} <= {*choice, d - 1}]
            assert found
            for ridge, w in zip(ridges, row, strict=True):
                l2 = np.where(np.arange(d) < d - 1, ridge, 0.0)
                value = LinearModel(X, y, l2=l2).evaluate(w).value
                assert value == pytest.approx(min(least(X, y, choice, ridge) for choice in found), rel=1e-8)
                if ridge == ridges[1]:
                    total += 1
                    best += value <= min(least(X, y, choice, ridge) for choice in choices) * (1 + 1e-8)
    assert best == total


def test_other_problems_have_none():
    X, y, labels = data(0)
    constraint = GroupSparsity(labels, 0, free=(len(labels) - 1,))
    assert quadratic_block_path(LinearModel(X, 1.0 * (y > 0), "logistic"), constraint, [1], [0.0], 0, 1e-8) is None
    assert quadratic_block_path(LinearModel(X, y), Sparsity(1), [1], [0.0], 0, 1e-8) is None
    wide = np.ones((3, MOST_COLUMNS + 1))
    many = GroupSparsity(np.arange(MOST_COLUMNS + 1).tolist(), 0)
    assert quadratic_block_path(LinearModel(wide, np.ones(3)), many, [1], [0.0], 0, 1e-8) is None


def test_more_blocks_than_there_are_is_all_of_them():
    X, y, labels = data(1)
    constraint = GroupSparsity(labels, 0, free=(len(labels) - 1,))
    points = quadratic_block_path(LinearModel(X, y), constraint, [8, 20], [0.1], 0, 1e-8)
    np.testing.assert_allclose(points[0], points[1])


def test_offsets_and_weights_count():
    X, y, labels = data(2)
    rng = np.random.default_rng(0)
    weights, offset = rng.integers(1, 3, len(y)), rng.standard_normal(len(y))
    constraint = GroupSparsity(labels, 0, free=(len(labels) - 1,))
    weighted = LinearModel(X, y, sample_weight=weights, offset=offset)
    repeated = LinearModel(np.repeat(X, weights, axis=0), np.repeat(y - offset, weights))
    found = [quadratic_block_path(f, constraint, [2, 4], [0.1], 0, 1e-8) for f in (weighted, repeated)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-8, atol=1e-10)
