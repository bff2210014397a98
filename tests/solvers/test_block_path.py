"""The best blocks for every number of them at once, against runs for each and against every choice."""

from itertools import combinations

import numpy as np
import pytest

from hardthresh.constraints import GroupSparsity, OverlappingGroupSparsity, RowSparsity, Sparsity
from hardthresh.objectives import LinearModel, MultiOutputModel
from hardthresh.solvers import block_path
from hardthresh.solvers.block_path import block_supports
from hardthresh.solvers.model_supports import null_evaluation


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


def supports(model, constraint, sizes):
    return block_supports(model, constraint, null_evaluation(model, constraint), sizes, 1e-8)


def ridge_of(d, ridge):
    """The ridge of all columns but the last."""
    return np.append(np.full(d - 1, ridge), 0.0)


@pytest.mark.parametrize("kind", ["groups", "overlapping"])
@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_it_ends_at_the_best_blocks_of_every_number(kind, ridge):
    for seed in range(4):
        X, y, labels = data(seed)
        d = len(labels)
        if kind == "groups":
            lists = [[j for j, label in enumerate(labels) if label == g] for g in range(8)]
            constraint = GroupSparsity(labels, 0, free=(d - 1,))
        else:
            lists = [list(range(start, min(start + 4, d - 1))) for start in range(0, d - 1, 3)]
            constraint = OverlappingGroupSparsity(lists, 0, free=(d - 1,))
        found = supports(LinearModel(X, y, l2=ridge_of(d, ridge)), constraint, [0, 1, 2, 3])
        for size, support in enumerate(found):
            choices = [sorted(set().union(*some)) for some in combinations(map(set, lists), size)]
            assert {*support.tolist()} in [{*choice, d - 1} for choice in choices]
            best = min(least(X, y, choice, ridge) for choice in choices)
            assert least(X, y, support[:-1], ridge) == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_blocks_of_rows_are_chosen_for_all_outputs_at_once(seed):
    X, y, labels = data(seed)
    Y = np.column_stack([y, X[:, 0] - X[:, 3] + y[::-1]])
    d, lists = len(labels), [[j for j, label in enumerate(labels) if label == g] for g in range(8)]
    model = MultiOutputModel(X, Y, l2=ridge_of(d, 0.1))
    found = supports(model, RowSparsity(0, groups=labels, free=(d - 1,)), [0, 1, 2, 3])
    for size, support in enumerate(found):
        choices = [sorted(set().union(*some)) for some in combinations(map(set, lists), size)]
        values = [sum(least(X, each, choice, 0.1) for each in Y.T) for choice in [*choices, support[:-1]]]
        assert values[-1] == pytest.approx(min(values), rel=1e-8)


@pytest.mark.parametrize("outputs", [1, 2])
def test_screened_blocks_are_those_of_a_search_of_all(outputs, monkeypatch):
    """The best blocks become visible once others are chosen: alone, some are worse than noise."""
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(30), 2)
    X = rng.standard_normal((200, 60))
    X[:, 20:22] += 2.0 * X[:, 2:4]  # which hides what the two blocks do together
    Y = X[:, [2, 3]] @ np.ones((2, outputs)) - 0.5 * X[:, [20, 21]] @ np.ones((2, outputs))
    Y = Y + X[:, [40, 50]] @ rng.standard_normal((2, outputs)) + 0.2 * rng.standard_normal((200, outputs))
    model = LinearModel(X, Y[:, 0]) if outputs == 1 else MultiOutputModel(X, Y)
    constraint = (GroupSparsity if outputs == 1 else lambda groups, k: RowSparsity(k, groups=groups))(labels, 0)
    every = supports(model, constraint, [1, 2, 4])
    monkeypatch.setattr(block_path, "MOST_COLUMNS", 20)
    monkeypatch.setattr(block_path, "_FIRST_COLUMNS", 6)
    for one, other in zip(supports(model, constraint, [1, 2, 4]), every, strict=True):
        np.testing.assert_array_equal(one, other)
    assert {2, 3, 20, 21, 40, 50} <= {*every[-1].tolist()}


def test_other_problems_have_none():
    X, y, labels = data(0)
    constraint = GroupSparsity(labels, 0, free=(len(labels) - 1,))
    assert supports(LinearModel(X, 1.0 * (y > 0), "logistic"), constraint, [1]) is None
    assert supports(LinearModel(X, y), Sparsity(1), [1]) is None


def test_blocks_that_are_too_large_to_be_screened_are_left_to_other_searches():
    """Else the largest numbers of blocks would silently have fewer."""
    X, labels = np.random.default_rng(0).standard_normal((300, 800)), np.repeat(np.arange(8), 100)
    model, constraint = LinearModel(X, X[:, 0] + X[:, 500], l2=0.1), GroupSparsity(labels, 0)
    assert supports(model, constraint, [1, 7]) is None
    one, six = supports(model, constraint, [1, 6])
    assert (one.size, six.size) == (100, 600)


def test_more_blocks_than_there_are_is_all_of_them():
    X, y, labels = data(1)
    constraint = GroupSparsity(labels, 0, free=(len(labels) - 1,))
    eight, twenty = supports(LinearModel(X, y, l2=0.1), constraint, [8, 20])
    np.testing.assert_array_equal(eight, twenty)


def test_offsets_and_weights_count():
    X, y, labels = data(2)
    rng = np.random.default_rng(0)
    weights, offset = rng.integers(1, 3, len(y)), rng.standard_normal(len(y))
    constraint, l2 = GroupSparsity(labels, 0, free=(len(labels) - 1,)), ridge_of(len(labels), 0.1)
    weighted = LinearModel(X, y, sample_weight=weights, offset=offset, l2=l2)
    repeated = LinearModel(np.repeat(X, weights, axis=0), np.repeat(y - offset, weights), l2=l2)
    found = [supports(f, constraint, [2, 4]) for f in (weighted, repeated)]
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
