"""What budgets of edges have of their own; the laws of all constraints are in the conformance suite."""

import numpy as np
import pytest

from hardthresh.constraints import Edges, EdgeSparsity
from hardthresh.core import InvalidInputError

Z = np.array([[1.0, 2.0, -3.0], [2.0, -1.0, 0.5], [-3.0, 0.5, 0.0]])


@pytest.mark.parametrize(
    ("K", "edges"),
    [(3, []), (4, []), (5, [(0, 2)]), (6, [(0, 2)]), (7, [(0, 1), (0, 2)]), (9, [(0, 1), (0, 2), (1, 2)]), (99, "all")],
)
def test_the_diagonal_costs_p_and_an_edge_two(K, edges):
    point = EdgeSparsity(K).project(Z).point
    np.testing.assert_array_equal(np.diag(point), np.diag(Z))
    expected = Z if edges == "all" else np.diag(np.diag(Z))
    for i, j in () if edges == "all" else edges:
        expected[i, j] = expected[j, i] = Z[i, j]
    np.testing.assert_array_equal(point, expected)


def test_the_diagonal_is_in_the_support_also_where_it_is_zero():
    np.testing.assert_array_equal(EdgeSparsity(5).project(Z).support, [0, 2, 4, 6, 8])
    np.testing.assert_array_equal(EdgeSparsity(3).project(np.zeros((3, 3))).support, [0, 4, 8])


def test_among_equal_pairs_the_first_in_reading_order_wins():
    for K, pairs in ((6, [(0, 1)]), (8, [(0, 1), (0, 2)]), (10, [(0, 1), (0, 2), (0, 3)])):
        point = EdgeSparsity(K).project(np.ones((4, 4))).point
        assert [tuple(pair) for pair in np.argwhere(np.triu(point, 1))] == pairs


def test_asymmetric_points_are_symmetrised():
    z = np.array([[1.0, 3.0, 1.0], [-3.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    projection = EdgeSparsity(5).project(z)
    np.testing.assert_array_equal(projection.point, [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    np.testing.assert_array_equal(projection.support.restrict(z), projection.point)


@pytest.mark.parametrize("p", [3, 40, 200])
def test_points_are_symmetric_to_the_last_bit(p):
    z = np.random.default_rng(0).standard_normal((p, p))
    projection = EdgeSparsity(p + 2 * (p // 2)).project(z)
    restricted = Edges(np.arange(p * p)).restrict(z)
    for point in (projection.point, restricted):
        np.testing.assert_array_equal(point, point.T)
    assert np.count_nonzero(projection.point) == p + 2 * (p // 2)


def test_settling_on_a_support_is_projecting():
    rng = np.random.default_rng(0)
    constraint = EdgeSparsity(6 + 2 * 5)
    support = constraint.project(rng.standard_normal((6, 6))).support
    z = support.restrict(rng.standard_normal((6, 6)))
    for gone in (False, True):
        if gone:
            i, j = divmod(int(support.indices[1]), 6)
            z[i, j] = z[j, i] = 0.0
        settled, projected = constraint.project_onto(z, support), constraint.project(z)
        np.testing.assert_array_equal(settled.point, projected.point)
        np.testing.assert_array_equal(settled.support, projected.support)
        assert not np.shares_memory(settled.point, z)


def test_supports_join_and_budgets_grow():
    a, b = (EdgeSparsity(5).project(z).support for z in (Z, np.abs(Z) * [[1, 9, 1], [9, 1, 1], [1, 1, 1]]))
    np.testing.assert_array_equal(a | b, [0, 1, 2, 3, 4, 6, 8])
    assert EdgeSparsity(5).relax(1.5) == EdgeSparsity(8)
    assert EdgeSparsity(6).is_full(a)
    assert not EdgeSparsity(7).is_full(a)


def test_a_budget_may_be_counted_in_edges():
    for n_edges in range(4):
        constraint = EdgeSparsity.of_edges(n_edges, p=3)
        constraint.check((3, 3))
        assert len(constraint.project(Z).support) == 3 + 2 * n_edges
    with pytest.raises(InvalidInputError, match="n_edges must be >= 0, got -1"):
        EdgeSparsity.of_edges(-1, p=3)


@pytest.mark.parametrize("K", [2.5, "7", None, -1])
def test_wrong_budgets_are_refused(K):
    with pytest.raises(InvalidInputError, match="K must be"):
        EdgeSparsity(K)


@pytest.mark.parametrize(
    ("K", "shape", "message"), [(8, (9, 9), "diagonal of a 9 x 9"), (8, (3, 2), "square"), (8, (8,), "square")]
)
def test_a_budget_that_does_not_fit_is_refused(K, shape, message):
    with pytest.raises(InvalidInputError, match=message):
        EdgeSparsity(K).check(shape)


@pytest.mark.parametrize("place", [(0, 0), (0, 2), (2, 0)])
@pytest.mark.parametrize("K", [3, 5, 99])
def test_nan_is_refused_wherever_it_is(K, place):
    z = Z.copy()
    z[place] = np.nan
    with pytest.raises(InvalidInputError, match="NaN"):
        EdgeSparsity(K).project(z)
