"""What groups of coordinates have of their own; the laws of all constraints are in the conformance suite."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.constraints import Coordinates, DoubleSparsity, GroupSparsity, OverlappingGroupSparsity, Sparsity
from hardthresh.core import InvalidInputError, minimize
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT, HardThresholdingPursuit, choose_solver
from levels import draws

LEVELS = [-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0]


def tied(size):
    return st.lists(st.sampled_from(LEVELS), min_size=size, max_size=size).map(np.array)


# --- labels -----------------------------------------------------------------------------------------------------------

KINDS = {
    "text": ["b", "a", "b", "c", "a", "c"],
    "numbers": [7, -3, 7, 0, -3, 0],
    "floats": [0.5, 1.5, 0.5, 2.5, 1.5, 2.5],
    "tuples": [(1, "x"), (2,), (1, "x"), (), (2,), ()],
    "mixed": ["b", 1, "b", (1,), 1, (1,)],
    "array": np.array(["b", "a", "b", "c", "a", "c"]),
    "integers": np.array([1, 0, 1, 2, 0, 2], dtype=np.int8),
    "scalars": [np.str_("b"), np.int64(1), np.str_("b"), np.float32(2), np.int64(1), np.float32(2)],
    "categories": pd.Categorical(["b", "a", "b", "c", "a", "c"], categories=["a", "b", "c", "d"]),
    "series": pd.Series(["b", "a", "b", "c", "a", "c"]),
    "dates": np.array(["2020-01", "2020-02", "2020-01", "2020-03", "2020-02", "2020-03"], dtype="M8[M]"),
    "generator": (label for label in ["b", "a", "b", "c", "a", "c"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_labels_mean_the_same(kind):
    constraint = GroupSparsity(KINDS[kind], 1)
    projection = constraint.project(np.array([1.0, 2.0, 1.0, 1.0, 0.0, 1.0]))
    np.testing.assert_array_equal(projection.point, [0.0, 2.0, 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(projection.support.numbers, [1])
    assert constraint.groups_of(projection.support) == (constraint.labels[1],)
    assert constraint.names == tuple(dict.fromkeys(constraint.labels))
    hash(constraint)


@pytest.mark.parametrize("k", [3, 4, 100])
def test_all_groups_are_a_full_support_whatever_the_budget(k):
    """There is nothing left to add, so exchanges and the choice of a solver may rely on it."""
    for constraint in (GroupSparsity([*"aabbcc"], k), GroupSparsity([*"aabbcc."], k, free=(6,))):
        support = constraint.project(np.ones(len(constraint.labels))).support
        assert support.numbers.size == 3
        assert constraint.is_full(support)
        assert not constraint.is_full(replace(support, numbers=support.numbers[:2]))


@given(tied(9), st.permutations(range(9)), st.integers(0, 4), st.booleans())
@draws(60)
def test_shuffled_labels_give_the_permuted_answer(z, order, k, doubly):
    """Up to ties, which go to the group that appears first."""
    labels = np.array([*"abcabcaab"])
    z = z + 1e-3 * np.arange(9) ** 2
    one, other = (
        DoubleSparsity(some, k, 2) if doubly else GroupSparsity(some, k) for some in (labels, labels[list(order)])
    )
    np.testing.assert_array_equal(other.project(z[list(order)]).point, one.project(z).point[list(order)])


def test_interleaved_labels_are_not_sorted():
    """What made another package choose the columns 0, 1 and 2."""
    labels = [*range(5)] * 3
    z = np.zeros(15)
    z[[2, 7, 12]] = 1.0
    projection = GroupSparsity(labels, 1).project(z)
    np.testing.assert_array_equal(np.flatnonzero(projection.point), [2, 7, 12])


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, pd.NA, pd.NaT, (1, None)])
def test_missing_labels_are_refused_but_for_free_coordinates(missing):
    labels = ["a", "b", missing]
    with pytest.raises(InvalidInputError, match=r"label of column 2 .* is missing"):
        GroupSparsity(labels, 1)
    constraint = GroupSparsity(labels, 1, free=(2,))
    np.testing.assert_array_equal(constraint.project(np.array([1.0, 2.0, 3.0])).point, [0.0, 2.0, 3.0])
    assert pickle.loads(pickle.dumps(constraint)) == constraint


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GroupSparsity("abc", 1), "labels must be a list"),
        (lambda: GroupSparsity(5, 1), "labels must be a list"),
        (lambda: GroupSparsity([[1], [2]], 1), "hashable"),
        (lambda: GroupSparsity([], 0), "labels are empty"),
        (lambda: GroupSparsity([True, 1, 2], 1), "True equals 1"),
        (lambda: DoubleSparsity([0.0, False], 1, 1), "True equals 1"),
        (lambda: GroupSparsity([([],)], 1), "hashable"),
        (lambda: GroupSparsity([1, 2], -1), "k must be >= 0, got -1"),
        (lambda: GroupSparsity([1, 2], 1.5), "k must be an integer, got 1.5"),
        (lambda: GroupSparsity([1, 2], None), "k must be an integer"),
        (lambda: GroupSparsity([1, 2], 1, free=(2,)), "free coordinate 2 does not exist"),
        (lambda: GroupSparsity([1, 2], 1, free=(-1,)), "free coordinates must be >= 0"),
        (lambda: GroupSparsity([1, 2], 1, free=(0.5,)), "integers"),
        (lambda: GroupSparsity([1, 2], 1, weights="length"), 'None, "size"'),
        (lambda: GroupSparsity([1, 2], 1, weights=[1.0, 2.0]), "map labels to numbers"),
        (lambda: GroupSparsity([1, 2], 1, weights={1: 1.0}), "say nothing of group 2"),
        (lambda: GroupSparsity([1, 2], 1, weights={1: 1.0, 2: 1.0, 3: 1.0}), "name 3, which is not a group"),
        (lambda: GroupSparsity([1, 2], 1, weights={1: 1.0, 2: 0.0}), "finite number > 0, got 0.0"),
        (lambda: GroupSparsity([1, 2], 1, weights={1: 1.0, 2: np.nan}), "finite number > 0"),
        (lambda: DoubleSparsity([1, 2], 1, -2), "m must be >= 0, got -2"),
        (lambda: DoubleSparsity([1, 2], 1, 0.5), "m must be an integer"),
        (lambda: DoubleSparsity([1, None], 1, 1), "column 1 .* is missing"),
        (lambda: OverlappingGroupSparsity([[0, 1], []], 1), "group 1 is empty"),
        (lambda: OverlappingGroupSparsity([[0, 1, 0]], 1), "names coordinate 0 twice"),
        (lambda: OverlappingGroupSparsity([[0, -1]], 1), "coordinates must be >= 0, but group 0 names -1"),
        (lambda: OverlappingGroupSparsity([[0.5]], 1), "list of integers"),
        (lambda: OverlappingGroupSparsity([np.array([True, False])], 1), "truth values"),
        (lambda: OverlappingGroupSparsity([3], 1), "list of integers"),
        (lambda: OverlappingGroupSparsity("ab", 1), "list of lists"),
        (lambda: OverlappingGroupSparsity([[0]], -1), "k must be >= 0"),
        (lambda: OverlappingGroupSparsity([[0]], 2.0), "k must be an integer"),
    ],
)
def test_wrong_arguments_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (GroupSparsity(["a", "b", "c"], 1), "3 labels, but points have shape"),
        (DoubleSparsity(["a", "b", "c"], 1, 1), "3 labels, but points have shape"),
        (OverlappingGroupSparsity([[0], [1, 4]], 1), "group 1 names coordinate 4"),
        (OverlappingGroupSparsity([[0]], 1, free=(5,)), "free names coordinate 5"),
    ],
)
def test_check_refuses_what_does_not_fit(constraint, message):
    with pytest.raises(InvalidInputError, match=message):
        constraint.check((4,))
    with pytest.raises(InvalidInputError, match="shape"):
        constraint.check((2, 2))


# --- disjoint groups --------------------------------------------------------------------------------------------------


def test_the_group_that_appears_first_wins_a_tie():
    constraint = GroupSparsity([*"zayzay"], 1)
    np.testing.assert_array_equal(constraint.project(np.ones(6)).support.numbers, [0])
    assert constraint.groups_of(constraint.project(np.ones(6)).support) == ("z",)
    np.testing.assert_array_equal(constraint.project(np.array([0.0, 1.0, 0.0, 0.0, 0.0, 1.0])).support.numbers, [1])


@given(st.lists(st.floats(-1e3, 1e3), min_size=8, max_size=8), st.integers(0, 9))
def test_groups_of_one_coordinate_are_plain_sparsity(values, k):
    z = np.array(values)
    one, other = GroupSparsity(range(8), k).project(z), Sparsity(k).project(z)
    big = np.abs(z) > 1e-100 * np.max(np.abs(z))  # squares of the others vanish
    np.testing.assert_array_equal(one.point[big], other.point[big])


@pytest.mark.parametrize("scale", [1e200, 1e-200, 5e-324, 5e307])
def test_extreme_scales_do_not_matter(scale):
    labels = [0, 1, 0, 1, 2]
    z = scale * np.array([1.0, 3.0, 1.0, 0.0, 2.0])
    for constraint in (GroupSparsity(labels, 1), DoubleSparsity(labels, 1, 1)):
        np.testing.assert_array_equal(np.flatnonzero(constraint.project(z).point), [1])
    overlapping = OverlappingGroupSparsity([[0, 2], [1, 3], [4]], 1).project(z)
    np.testing.assert_array_equal(overlapping.support.numbers, [1])


def test_more_groups_than_there_are_keep_everything():
    z = np.array([1.0, -2.0, 0.0, 3.0])
    for constraint in (GroupSparsity([*"abac"], 9), DoubleSparsity([*"abac"], 9, 9)):
        np.testing.assert_array_equal(constraint.project(z).point, z)
    np.testing.assert_array_equal(OverlappingGroupSparsity([[0, 1], [1, 3]], 9).project(z).point, z)


def test_energy_per_coordinate_favours_small_groups():
    labels = [*"aaab"]
    z = np.array([1.0, 1.0, 1.0, 1.5])
    assert GroupSparsity(labels, 1).project(z).support.numbers.tolist() == [0]
    weighted = GroupSparsity(labels, 1, weights="size")
    assert weighted.project(z).support.numbers.tolist() == [1]
    assert not weighted.exact
    assert GroupSparsity(labels, 1).exact
    assert GroupSparsity([*"aabb"], 1, weights="size").exact
    assert GroupSparsity(labels, 1, weights={"a": 2, "b": 2.0}).exact
    np.testing.assert_array_equal(weighted.hard_threshold(z), [1.0, 1.0, 1.0, 0.0])


def test_free_coordinates_are_in_no_group():
    constraint = GroupSparsity([*"abab"], 1, free=(0, 0))
    projection = constraint.project(np.array([9.0, 2.0, 3.0, 1.0]))
    np.testing.assert_array_equal(projection.point, [9.0, 0.0, 3.0, 0.0])
    assert constraint.groups_of(projection.support) == ("a",)
    np.testing.assert_array_equal(projection.support.indices, [0, 2])
    assert GroupSparsity([None, None], 3, free=(0, 1)).n_groups == 0


def test_budgets_multiply():
    assert GroupSparsity([*"aab"], 3).relax(1.5) == GroupSparsity([*"aab"], 5)
    assert DoubleSparsity([*"aab"], 2, 1).relax(2) == DoubleSparsity([*"aab"], 4, 2)
    assert OverlappingGroupSparsity([[0]], 1).relax(3) == OverlappingGroupSparsity([[0]], 3)


def test_many_columns_print_in_one_short_line():
    assert repr(GroupSparsity(np.arange(1000) % 7, 3, free=(1,))) == (
        "GroupSparsity(<1000 labels of 7 groups>, k=3, free=(1,))"
    )
    assert len(repr(OverlappingGroupSparsity([range(1000)] * 2, 1))) < 60


# --- at most m coordinates in each ------------------------------------------------------------------------------------


@given(tied(8), st.integers(0, 4), st.integers(0, 4), st.integers(0, 255))
@draws(120)
def test_double_sparsity_agrees_with_its_slow_twin(z, k, m, mask):
    constraint = DoubleSparsity([0, 1, 0, 2, 1, 0, 2, 2], k, m, free=tuple(j for j in range(8) if mask >> j & 1)[:3])
    fast, slow = constraint.project(z), constraint.reference_project(z)
    np.testing.assert_array_equal(fast.point, slow.point)
    assert fast.support == slow.support


def test_a_full_support_of_a_double_sparsity():
    constraint = DoubleSparsity([*"aaabb"], 1, 2)
    assert constraint.is_full(Coordinates(np.array([0, 2])))
    assert not constraint.is_full(Coordinates(np.array([0])))
    assert not constraint.is_full(Coordinates(np.array([], dtype=np.int64)))
    assert DoubleSparsity([*"aaabb"], 1, 5).is_full(Coordinates(np.array([3, 4])))
    assert DoubleSparsity([*"aab"], 0, 2).is_full(Coordinates(np.array([], dtype=np.int64)))
    assert constraint.groups_of(Coordinates(np.array([1, 3]))) == ("a", "b")


# --- overlapping groups -----------------------------------------------------------------------------------------------


@st.composite
def coverings(draw):
    groups = draw(st.lists(st.sets(st.integers(0, 8), min_size=1, max_size=5), min_size=1, max_size=6))
    free = draw(st.sets(st.integers(0, 8), max_size=2))
    return OverlappingGroupSparsity([sorted(group) for group in groups], draw(st.integers(0, 7)), free=tuple(free))


@given(coverings(), tied(9))
@draws(200)
def test_the_greedy_choice_is_that_of_its_slow_twin(constraint, z):
    assert constraint.project(z).support.numbers.tolist() == constraint.reference_greedy(z)


@given(coverings(), st.lists(st.floats(-10, 10), min_size=9, max_size=9).map(np.array))
@draws(100)
def test_greedy_keeps_its_share_of_the_energy(constraint, z):
    counted = np.setdiff1d(np.arange(9), constraint.free)
    kept = np.sum(constraint.project(z).point[counted] ** 2)
    assert kept >= (1 - np.exp(-1)) * np.sum(constraint.reference_project(z).point[counted] ** 2) - 1e-9


def test_greedy_order_ties_and_the_end():
    groups = [[0, 1], [1, 2], [2, 3], [4]]
    constraint = OverlappingGroupSparsity(groups, 4)
    assert constraint.project(np.array([1.0, 1.0, 1.0, 1.0, 0.0])).support.numbers.tolist() == [0, 2]
    assert constraint.project(np.array([0.0, 1.0, 1.0, 0.0, 9.0])).support.numbers.tolist() == [3, 1]
    assert constraint.project(np.zeros(5)).support.numbers.tolist() == []
    taken = constraint.cover(np.array([2, 0]))
    assert taken == constraint.cover(np.array([0, 2]))
    assert taken != constraint.cover(np.array([0, 3]))
    assert (taken | constraint.cover(np.array([3, 0]))).numbers.tolist() == [2, 0, 3]


def test_columns_in_no_group_stay_zero():
    constraint = OverlappingGroupSparsity([[0, 1]], 3, free=(4,))
    np.testing.assert_array_equal(constraint.project(np.ones(6)).point, [1.0, 1.0, 0.0, 0.0, 1.0, 0.0])
    assert constraint.is_full(constraint.cover(np.array([0])))
    assert not constraint.is_full(constraint.cover(np.array([], dtype=np.int64)))


def test_a_point_on_a_support_stays_there():
    """Also where the greedy choice would not find the support again."""
    constraint = OverlappingGroupSparsity([[0, 1], [2, 3], [1, 2]], 2)
    z = np.array([1.0, 9.0, 9.0, 1.0])
    assert constraint.project(z).support.numbers.tolist() == [2, 0]
    np.testing.assert_array_equal(constraint.project_onto(z, constraint.cover(np.array([0, 1]))).point, z)


def test_a_wide_problem_is_no_trouble():
    rng = np.random.default_rng(0)
    d = 100_000
    groups = [rng.choice(d, 50, replace=False) for _ in range(5_000)]
    constraint = OverlappingGroupSparsity(groups, 20)
    z = rng.standard_normal(d)
    support = constraint.project(z).support
    energies = [np.sum(constraint.cover(support.numbers[:n]).restrict(z) ** 2) for n in range(21)]
    steps = [after - before for before, after in pairwise(energies)]
    assert all(one >= other - 1e-9 for one, other in pairwise(steps))


# --- with solvers -----------------------------------------------------------------------------------------------------


def constraints_for(d):
    labels = np.arange(d) % 6
    pairs = [[j, (j + 1) % d, (j + 2) % d] for j in range(0, d, 2)]
    return [GroupSparsity(labels, 2), DoubleSparsity(labels, 3, 2), OverlappingGroupSparsity(pairs, 3)]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("which", range(3), ids=["groups", "double", "overlapping"])
@pytest.mark.parametrize("solver", [IHT(), HardThresholdingPursuit(), None], ids=["iht", "pursuit", "auto"])
def test_solvers_descend_and_find_what_was_planted(loss, which, solver):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 24))
    constraint = constraints_for(24)[which]
    truth = constraint.project(rng.choice([-1.0, 1.0], 24) * rng.uniform(1.0, 2.0, 24))
    mean = X @ truth.point
    y = mean + 0.1 * rng.standard_normal(300) if loss == "squared" else 1.0 * (mean + rng.logistic(size=300) > 0)
    objective = LinearModel(X, y, loss, l2=1e-3)
    run = minimize(objective, constraint, solver or choose_solver(objective, constraint))
    assert run.converged
    assert np.all(np.diff(run.history["value"]) <= 1e-12)
    np.testing.assert_array_equal(run.w != 0, truth.point != 0)
