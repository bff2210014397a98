"""At most k rows of a matrix, or groups of them: what the conformance tests do not say."""

import numpy as np
import pytest

from hardthresh import minimize
from hardthresh.constraints import RowSparsity
from hardthresh.core import InvalidInputError
from hardthresh.objectives import Function, MultiOutputModel


def test_a_row_counts_by_its_norm():
    """Neither by its largest entry nor by the sum of the absolute values."""
    W = np.array([[2.0, 0.0, 0.0], [1.2, 1.2, 1.2], [1.9, 0.6, 0.0]])
    assert RowSparsity(1).project(W).support.rows.tolist() == [1]
    assert RowSparsity(2).project(W).support.rows.tolist() == [0, 1]


def test_free_rows_are_kept_and_not_counted():
    W = np.array([[0.1, 0.0], [3.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    found = RowSparsity(1, free=(0,)).project(W)
    assert found.support.rows.tolist() == [0, 1]
    assert found.support.indices.tolist() == [0, 1, 2, 3]
    assert found.support.numbers.tolist() == [0]  # the first row that is not free


def test_groups_are_chosen_as_a_whole():
    W = np.array([[2.0, 0.0], [0.0, 1.5], [1.5, 1.0], [9.0, 9.0]])
    constraint = RowSparsity(1, groups=["a", "b", "b", None], free=(3,))
    assert constraint.project(W).support.rows.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("constraint", "shape", "message"),
    [
        (RowSparsity(1), (3,), r"matrices, the objective's points have shape \(3,\)"),
        (RowSparsity(1, free=(3,)), (3, 2), "free row 3 does not exist: points have 3 rows"),
        (RowSparsity(1, groups=["a"]), (3, 2), r"there are 1 labels, but points have shape \(3, 2\)"),
    ],
)
def test_points_that_do_not_fit_are_refused(constraint, shape, message):
    with pytest.raises(InvalidInputError, match=message):
        constraint.check(shape)


@pytest.mark.parametrize("bad", [-1, 1.5])
def test_bad_budgets_are_refused(bad):
    with pytest.raises(InvalidInputError, match="k must be"):
        RowSparsity(bad)


def test_a_missing_label_is_refused():
    with pytest.raises(InvalidInputError, match=r"label of column 1 .* is missing"):
        RowSparsity(1, groups=["a", None])


@pytest.mark.parametrize("constraint", [RowSparsity(2, free=(0,)), RowSparsity(1, groups=[None, *"abab"], free=(0,))])
def test_a_function_of_matrices_is_minimised_over_rows(constraint):
    """The same answer as the model of the same squares, of which everything is known."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(60), rng.standard_normal((60, 4))])
    W = np.array([[1.0, 2.0], [2.0, -1.0], [0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    Y = X @ W + 0.1 * rng.standard_normal((60, 2))

    def value(V):
        return 0.5 * np.sum((X @ V - Y) ** 2) / 60

    def gradient(V):
        return X.T @ (X @ V - Y) / 60

    model = minimize(MultiOutputModel(X, Y), constraint)
    found = minimize(Function(value, (5, 2), gradient=gradient), constraint)
    assert found.support == model.support
    assert found.support.rows.tolist() == [0, 1, 3]
    np.testing.assert_allclose(found.w, model.w, atol=1e-3)
