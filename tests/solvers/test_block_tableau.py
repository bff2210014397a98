"""Blocks of columns in a swept matrix, against fits of the same columns from the beginning."""

import numpy as np
import pytest

from hardthresh.solvers.block_tableau import BlockChoice, BlockModel

N = 60


def blocks_of(seed, overlapping, dependent):
    """Blocks of 1 to 4 of 16 columns, of which the last two are free; copies and combinations if they are dependent."""
    rng = np.random.default_rng((seed, overlapping, dependent))
    X, y = rng.standard_normal((N, 16)), rng.standard_normal(N)
    if dependent:
        X[:, 3], X[:, 8] = X[:, 0], X[:, 1] + X[:, 2] - X[:, 14]
        X[:, 5] = 0.0
    if overlapping:
        blocks = [np.sort(rng.choice(14, rng.integers(1, 5), replace=False)) for _ in range(9)]
    else:
        blocks = np.split(rng.permutation(14), [1, 3, 6, 10, 12])
    return X, y, [np.sort(block) for block in blocks]


def model_of(X, y, blocks):
    return BlockModel(X.T @ X / N, X.T @ y / N, blocks, np.array([14, 15]), 2.2e-16)


def decrease(X, y, blocks, chosen):
    columns = sorted({14, 15, *(int(j) for g in chosen for j in blocks[g])})
    fitted = X[:, columns] @ np.linalg.lstsq(X[:, columns], y)[0]
    return (np.sum(y**2) - np.sum((y - fitted) ** 2)) / (2 * N)


@pytest.mark.slow
@pytest.mark.parametrize("dependent", [False, True])
@pytest.mark.parametrize("overlapping", [False, True])
def test_additions_and_removals_end_where_a_new_fit_begins(overlapping, dependent):
    for seed in range(5):
        X, y, blocks = blocks_of(seed, overlapping, dependent)
        rng = np.random.default_rng(seed)
        choice = BlockChoice(model_of(X, y, blocks), [], np.inf)
        for _ in range(60):
            others = [g for g in range(len(blocks)) if g not in choice.chosen]
            if others and (choice.size == 0 or rng.random() < 0.55):
                choice.add(int(rng.choice(others)))
            else:
                choice.drop(int(rng.integers(choice.size)))
            assert choice.decrease == pytest.approx(decrease(X, y, blocks, choice.chosen), rel=1e-7)
            fitted = X @ choice.coef
            outside = np.setdiff1d(np.arange(14), [j for g in choice.chosen for j in blocks[g]])
            assert not choice.coef[outside].any()
            assert np.mean(y**2) / 2 - np.mean((y - fitted) ** 2) / 2 == pytest.approx(choice.decrease, rel=1e-7)


@pytest.mark.parametrize("overlapping", [False, True])
def test_gains_and_costs_are_those_of_new_fits(overlapping):
    for seed in range(5):
        X, y, blocks = blocks_of(seed, overlapping, dependent=False)
        choice = BlockChoice(model_of(X, y, blocks), [0, 2, 4], np.inf)
        here, gains = choice.decrease, choice.gains()
        assert np.all(gains[[0, 2, 4]] == -np.inf)
        for g in sorted({*range(len(blocks))} - {0, 2, 4}):
            assert gains[g] == pytest.approx(decrease(X, y, blocks, {0, 2, 4, g}) - here, rel=1e-5, abs=1e-8)
        for g, cost in zip(choice.chosen, choice.costs(), strict=True):
            assert cost == pytest.approx(here - decrease(X, y, blocks, {0, 2, 4} - {g}), rel=1e-6, abs=1e-9)
        for place, added, fall in choice.exchanges():
            rest = {0, 2, 4} - {choice.chosen[place]}
            falls = [decrease(X, y, blocks, {*rest, g}) - here for g in range(len(blocks)) if g not in choice.chosen]
            exact = decrease(X, y, blocks, {*rest, added}) - here
            if overlapping:
                assert fall <= exact + 1e-7
            else:
                assert fall == pytest.approx(max(falls), rel=1e-5, abs=1e-7)
                assert exact == pytest.approx(fall, rel=1e-5, abs=1e-7)


def test_a_block_that_is_kept_out_gains_nothing():
    X, y, blocks = blocks_of(2, False, dependent=False)
    choice = BlockChoice(model_of(X, y, blocks), [0], np.inf)
    best, gain = choice.best_addition()
    choice.keep_out(best)
    other, less = choice.best_addition()
    assert other != best
    assert less <= gain
    assert all(added != best for _, added, _ in choice.exchanges())
    choice.keep_out(None)
    assert choice.best_addition() == (best, gain)


def test_a_copy_is_on_its_own():
    X, y, blocks = blocks_of(1, False, dependent=False)
    choice = BlockChoice(model_of(X, y, blocks), [1], np.inf)
    before, coef = choice.decrease, choice.coef
    twin = choice.copy()
    twin.add(3)
    twin.drop(0)
    assert choice.decrease == before
    np.testing.assert_array_equal(choice.coef, coef)
    assert choice.chosen == (1,)
    assert twin.chosen == (3,)


def test_rounding_is_that_of_the_columns_however_alike():
    """Four pairs of columns that are copies but for 1e-6 of their squares, in random order: 4e-8 is seen at most."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y, _ = blocks_of(seed, False, dependent=False)
        for j in (2, 4, 6):
            X[:, j : j + 2] = X[:, 0:2] + 1e-3 * rng.standard_normal((N, 2))
        blocks = [np.arange(2 * g, 2 * g + 2) for g in range(7)]
        choice = BlockChoice(model_of(X, y, blocks), [], np.inf)
        for _ in range(150):
            others = [g for g in range(7) if g not in choice.chosen]
            if others and (choice.size == 0 or rng.random() < 0.5):
                choice.add(int(rng.choice(others)))
            else:
                choice.drop(int(rng.integers(choice.size)))
        assert choice.decrease == pytest.approx(decrease(X, y, blocks, choice.chosen), rel=1e-6)
