"""What the toys add to the suites: refits on group supports, and the figures of a paper for matrices of low rank."""

from math import inf

import numpy as np
import pytest
from cases import examples
from toys import LinearMap, matrix_problem

from hardthresh.certificates import certify
from hardthresh.constraints import GroupSparsity, Rank
from hardthresh.core import registered
from hardthresh.core.minimize import minimize
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT, HardThresholdingPursuit
from hardthresh.steps import Polyak, SparsePolyak


def test_the_toys_stay_in_the_tests():
    assert not any(name.startswith("toy") for name in registered("objective"))
    assert any(str(parameter.id).startswith("toy") for parameter in examples("objective"))


GROUPS = (2, 0, 1, 1, 0, 3, 3, 2, 0, 1, 4, 2)


def group_data(size=12, seed=0):
    """Twelve correlated columns in five groups, of which two predict the target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, size)) + 0.5 * rng.standard_normal((60, 1))
    truth = np.where(np.isin(GROUPS, (1, 3)), np.linspace(-2.0, 2.0, size), 0.0)
    return X, X @ truth + 0.3 * rng.standard_normal(60)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("exchanges", [0, 4])
@pytest.mark.parametrize("with_columns", [True, False], ids=["columns", "no columns"])
def test_pursuit_is_least_squares_on_its_groups(seed, exchanges, with_columns):
    X, y = group_data(seed=seed)
    objective = LinearModel(X, y) if with_columns else LinearMap(X, y, (12,))
    constraint = GroupSparsity(GROUPS, 2)
    run = minimize(objective, constraint, HardThresholdingPursuit(exchanges=exchanges))
    assert run.converged
    assert constraint.groups_of(run.support) == (1, 3)
    chosen = run.support.indices
    residual = y - X[:, chosen] @ np.linalg.lstsq(X[:, chosen], y)[0]
    np.testing.assert_allclose(run.value, np.mean(residual**2) / 2, rtol=1e-8)


def first_hits(values, start, best):
    """The first iterations at which the gap has fallen to a tenth, a hundredth, a thousandth and a millionth."""
    gaps = (values - best) / (start - best)
    return [int(np.argmax(gaps <= level)) if (gaps <= level).any() else inf for level in (1e-1, 1e-2, 1e-3, 1e-6)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "expected"), [(SparsePolyak, [12, 23, 36, 122]), (Polyak, [18, 39, 70, inf])], ids=["sparse", "classical"]
)
def test_sparse_polyak_on_matrices_of_low_rank(rule, expected):
    """*Sparse Polyak* with singular values in the place of entries: 30 x 30, rank 3, 1200 examples."""
    objective, truth = matrix_problem(30, 3, 1200)
    best = objective.value(truth)
    run = minimize(objective, Rank(3), IHT(step=rule(best)), max_iter=300, tol=0.0)
    assert first_hits(run.history["value"], objective.value(objective.zeros()), best) == expected


def test_pursuit_finds_a_matrix_of_low_rank():
    objective, truth = matrix_problem(12, 2, 600)
    run = minimize(objective, Rank(2), HardThresholdingPursuit())
    assert run.converged
    assert run.value <= objective.value(truth)
    assert np.linalg.norm(run.w - truth) <= 0.2 * np.linalg.norm(truth)
    certificate = certify(run)
    assert certificate.basic_feasibility <= 1e-5 * certificate.gradient_scale


def test_points_that_are_matrices_have_no_coordinates_to_select():
    with pytest.raises(ValueError, match="about matrices"):
        minimize(LinearMap(np.eye(4), np.ones(4), (4,)), Rank(1), IHT())
    with pytest.raises(ValueError, match="labels"):
        minimize(LinearMap(np.eye(4), np.ones(4), (2, 2)), GroupSparsity((0, 1, 0, 1), 1), IHT())
