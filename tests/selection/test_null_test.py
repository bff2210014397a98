"""The permutation test of the model without features, against its definition, enumeration, and what it promises."""

from itertools import permutations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from hardthresh.constraints import Sparsity
from hardthresh.core.randomness import Purpose, generator
from hardthresh.objectives import LinearModel, MultiOutputModel
from hardthresh.selection import null_p_value, null_test
from hardthresh.solvers.start import starting_point
from levels import at_most


def data(seed, n=30, d=15, effect=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, effect * X[:, 0] + rng.standard_normal(n)


def p_value(X, y, loss="squared", free=(), signs=None, seed=0, row_groups=None, **settings):
    """The p-value of centred columns and an intercept, with the columns of `free` in the null model."""
    n, d = X.shape
    columns = sp.hstack([X, np.ones((n, 1))], format="csr") if sp.issparse(X) else np.column_stack([X, np.ones(n)])
    model = LinearModel(columns.astype(X.dtype), y.astype(X.dtype), loss=loss, **settings)
    free = (*free, d)
    at = starting_point(model, Sparsity(0, free=free), None)[0]
    slope = np.asarray(model.weights) * np.asarray(model.loss.gradient(model.y, at.prediction))
    signs = None if signs is None else np.append(signs, 0)
    return null_p_value(model, slope.astype(float), free, signs, seed, row_groups)


def drawn_by(seed):
    """The generator of the orders."""
    return generator(seed, 0, Purpose.NULL_PERMUTATIONS)


def statistic(X, slope, largest=10):
    """The sum of the ten largest scores: squared gradients over mean squares."""
    scores = [float(column @ slope) ** 2 / np.mean(column**2) for column in X.T]
    return sum(sorted(scores)[-largest:])


def orders(slope, rng):
    """The rows' derivatives as they are, and in 199 other orders."""
    return [slope, *(rng.permutation(slope) for _ in range(199))]


@pytest.mark.parametrize("d", [4, 10, 25])
@pytest.mark.parametrize("effect", [0.0, 0.3])
def test_the_share_of_permutations_with_a_statistic_as_large(d, effect):
    X, y = data(d, d=d, effect=effect)
    X -= X.mean(axis=0)
    found = [statistic(X, order) for order in orders(y - y.mean(), drawn_by(3))]
    assert p_value(X, y, seed=3) == sum(other >= found[0] - 1e-12 for other in found) / 200


@pytest.mark.parametrize("seed", range(12))
def test_it_is_close_to_the_share_of_all_orders(seed):
    """With six rows there are 720 orders; 200 of them, drawn at random, estimate their share."""
    X, y = data(seed, n=6, d=3, effect=float(seed % 3))
    X -= X.mean(axis=0)
    slope = y - y.mean()
    least = statistic(X, slope) * (1 - 1e-9)
    exact = np.mean([statistic(X, np.array(order)) >= least for order in permutations(slope)])
    assert abs(p_value(X, y) - exact) <= 4 * np.sqrt(exact * (1 - exact) / 200) + 1 / 200


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_it_is_uniform_where_there_is_nothing_to_find(loss):
    """Of 200 values the number below a share of 5, 20 and 50 % is within four standard deviations of that share."""
    found = []
    for seed in range(200):
        X, y = data(seed, n=24, d=8)
        found.append(p_value(X, y if loss == "squared" else (y > 0).astype(float), loss, seed=seed))
    assert min(found) >= 1 / 200
    for level in (0.05, 0.2, 0.5, 0.8):
        count = sum(p <= level for p in found)
        assert abs(count - 200 * level) <= 4 * np.sqrt(200 * level * (1 - level)), (level, count)


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_several_outputs_are_added_up(weighted):
    """Whole rows of derivatives are exchanged, or change sign where weights differ."""
    (X, y), rng = data(1, d=14), np.random.default_rng(5)
    Y = np.column_stack([y, 2 * rng.standard_normal(30) + 0.5 * X[:, 3], rng.standard_normal(30)])
    weight = rng.uniform(0.5, 2.0, 30) if weighted else np.ones(30)
    X, Y = X - np.average(X, axis=0, weights=weight), Y - np.average(Y, axis=0, weights=weight)
    model = MultiOutputModel(np.column_stack([X, np.ones(30)]), Y, sample_weight=weight)
    slope = -np.asarray(model.weights)[:, None] * Y
    drawn = drawn_by(7)
    others = [drawn.permutation(slope) for _ in range(199)]
    if weighted:
        others = [flip[:, None] * slope for flip in drawn_by(7).choice([-1.0, 1.0], (199, 30))]
    found = []
    for rows in [slope, *others]:
        left = rows - np.asarray(model.weights)[:, None] * rows.sum(axis=0)
        scores = (X.T @ left) ** 2 / (np.asarray(model.weights) @ X**2)[:, None]
        found.append(np.sort(scores.sum(axis=1))[-10:].sum())
    p = null_p_value(model, slope, (14,), None, seed=7)
    assert p == np.mean(np.array(found) >= found[0] * (1 - 1e-9))
    assert 0.01 < p < 0.9


def test_one_output_is_that_of_a_vector():
    X, y = data(2)
    y = y - y.mean()
    one, many = LinearModel(X, y), MultiOutputModel(X, y[:, None])
    assert null_p_value(one, -y, (), None, 0) == null_p_value(many, -y[:, None], (), None, 0)


def test_a_signal_is_found():
    for seed in range(20):
        X, y = data(seed, n=60, d=30, effect=1.5)
        assert p_value(X, y) == 1 / 200
        assert p_value(X, (y > 0).astype(float), "logistic") <= 0.05


def test_signs_that_coefficients_may_not_have_are_not_scored():
    X, y = data(0, n=60, d=5, effect=1.0)
    positive = np.ones(5)
    assert p_value(X, y, signs=positive) == p_value(X, -y, signs=-positive) == 1 / 200
    assert p_value(X, -y, signs=positive) > 0.05
    assert p_value(X, -y, signs=np.array([-1, 1, 1, 1, 1])) == 1 / 200
    assert p_value(X, -y, signs=np.zeros(5)) == p_value(X, -y) == 1 / 200


def test_columns_of_the_null_model_are_not_tested():
    X, y = data(0, n=60, d=5, effect=5.0)
    assert p_value(X, y) == 1 / 200
    assert p_value(X, y, free=(0,)) > 0.05
    X[:, 4] = y + 0.1 * np.random.default_rng(1).standard_normal(60)
    assert p_value(X, y, free=(0,)) == 1 / 200


def test_what_columns_share_with_the_null_model_is_not_tested():
    """A column counts as what is left of it; so the test is that of these residuals."""
    X, y = data(0, n=60, d=5, effect=5.0)
    X[:, 4] += 100 * X[:, 0] + 70.0
    basis = np.linalg.qr(np.column_stack([X[:, 0], np.ones(60)]))[0]
    left = X - basis @ (basis.T @ X)
    residual = y - basis @ (basis.T @ y)
    drawn = orders(residual, drawn_by(0))
    found = [statistic(left[:, 1:], order - basis @ (basis.T @ order)) for order in drawn]
    assert p_value(X, y, free=(0,)) == sum(other >= found[0] * (1 - 1e-9) for other in found) / 200


def test_a_copy_of_a_column_of_the_null_model_is_not_tested():
    X, y = data(0, n=60, d=5, effect=0.5)
    copies = np.column_stack([X, 3 * X[:, 0] + 1, -X[:, 0]])
    assert p_value(copies, y, free=(0,)) == p_value(copies, y, free=(0, 5)) == p_value(X, y, free=(0,))


def test_without_columns_to_test_there_is_nothing_to_find():
    X, y = data(0, d=2)
    assert p_value(X, y, free=(0, 1)) == 1.0
    assert p_value(np.zeros((30, 3)), y) == 1.0
    assert p_value(X, np.full(30, 2.5)) == 1.0


def test_columns_that_do_not_vary_count_for_nothing():
    X, y = data(2, effect=0.3)
    wide = np.column_stack([X, np.zeros((30, 4))])
    assert p_value(wide, y, seed=1) == p_value(X, y, seed=1)


@pytest.mark.parametrize("scale", [1e-100, 1e-3, 1e100])
def test_units_of_columns_and_targets_change_nothing(scale):
    X, y = data(5, effect=0.3)
    p = p_value(X, y)
    assert 0.005 < p < 0.9
    assert p_value(X * scale ** np.linspace(-1, 1, 15), y) == p
    assert p_value(X, scale * y + 7 * scale) == p
    assert p_value(X, -y) == p
    order = np.random.default_rng(0).permutation(15)
    assert p_value(X[:, order], y) == p


def test_weights_are_those_of_the_rows():
    """Columns and derivatives are centred by weight; rows of unequal weight change sign, not places."""
    X, y = data(5, effect=0.3)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 30)
    weight /= weight.sum()
    left, slope = X - weight @ X, weight * (y - weight @ y)
    flips = drawn_by(0).choice([-1.0, 1.0], (199, 30))
    drawn = [flip * slope - weight * np.sum(flip * slope) for flip in [np.ones(30), *flips]]
    found = [np.sort((left.T @ order) ** 2 / (weight @ left**2))[-10:].sum() for order in drawn]
    assert p_value(X, y, sample_weight=weight) == np.mean(found >= found[0] * (1 - 1e-9))
    assert 0 < p_value(X, y, sample_weight=np.where(np.arange(30) % 3, 1.0, 0.0)) < 1


def test_rows_of_a_group_change_sign_together():
    """Where columns and targets are those of groups, the test rejects at its level, and without groups more often."""
    found = {"groups": 0, "rows": 0}
    for seed in range(60):
        rng = np.random.default_rng((1, seed))
        group = np.repeat(np.arange(15), 4)
        X, y = rng.standard_normal((15, 20))[group], rng.standard_normal(15)[group]
        X = X + 0.1 * rng.standard_normal(X.shape)
        found["groups"] += p_value(X, y, row_groups=group) <= 0.05
        found["rows"] += p_value(X, y) <= 0.05
    assert found["groups"] <= 8 < 30 <= found["rows"]


def test_kinds_of_data_and_pieces_change_nothing(monkeypatch):
    X, y = data(5, effect=0.3)
    p = p_value(X, y)
    assert p_value(sp.csr_array(X), y) == p
    assert_allclose(p_value(X.astype(np.float32), y), p, atol=0.011)
    monkeypatch.setattr(null_test, "_ENTRIES", 7 * 30)
    assert p_value(X, y) == p


def test_the_seed_draws_the_orders():
    X, y = data(5, effect=0.3)
    assert len({p_value(X, y, seed=seed) for seed in range(5)}) > 1
    assert p_value(X, y, seed=2) == p_value(X, y, seed=2)


def test_rows_that_can_only_be_exchanged_with_their_like_need_no_drawing():
    """Two columns of dummy variables of equal counts: many orders change nothing, and all of them count."""
    X = np.repeat(np.array([[1.0, -1.0], [-1.0, 1.0]]), 3, axis=0)
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    exact = np.mean([abs(X[:, 0] @ np.array(order)) >= 6 - 1e-9 for order in permutations(y)])
    assert abs(p_value(X, y) - exact) <= 4 * np.sqrt(exact / 200)
    assert p_value(X, y) > 0.05
