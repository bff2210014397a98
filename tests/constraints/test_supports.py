"""Supports own their algebra: what every one keeps is in the conformance suite; here is what `Coordinates` is like."""

import pickle

import numpy as np
import pytest

from hardthresh.constraints import Coordinates, Edges, GroupSparsity, Rank, Sparsity
from hardthresh.core import InvalidInputError


def test_coordinates_are_used_like_a_sequence():
    support = Coordinates(np.array([0, 3]))
    assert (len(support), list(support), 3 in support) == (2, [0, 3], True)
    assert support[1] == 3
    np.testing.assert_array_equal(support[:1], [0])
    np.testing.assert_array_equal(np.eye(4)[:, support], np.eye(4)[:, [0, 3]])
    assert repr(support) == "Coordinates([0, 3])"
    assert np.asarray(support, dtype=float).dtype == float


def test_supports_of_two_kinds_are_never_the_same():
    groups = GroupSparsity([0, 1, 2, 3], 2).project(np.array([1.0, 0.0, 0.0, 2.0])).support
    coordinates = Sparsity(2).project(np.array([1.0, 0.0, 0.0, 2.0])).support
    np.testing.assert_array_equal(groups.indices, coordinates.indices)
    assert groups != coordinates
    assert coordinates != groups
    assert Coordinates(np.array([0])) != [0]


def test_an_empty_support_is_one():
    nothing = Sparsity(0).project(np.ones(3)).support
    assert (len(nothing), nothing.degrees_of_freedom) == (0, 0)
    np.testing.assert_array_equal(nothing.restrict(np.ones(3)), np.zeros(3))
    assert nothing | nothing == nothing


@pytest.mark.parametrize(
    "support",
    [
        Coordinates(np.array([1, 2])),
        Edges(np.array([0, 1, 2, 3])),
        Rank(1).project(np.ones((3, 2))).support,
        GroupSparsity(["a", "a", "b"], 1).project(np.ones(3)).support,
    ],
    ids=lambda support: type(support).__name__,
)
def test_supports_are_frozen_not_hashable_and_can_be_pickled(support):
    assert pickle.loads(pickle.dumps(support)) == support
    with pytest.raises(TypeError, match="unhashable"):
        hash(support)
    with pytest.raises((AttributeError, TypeError)):
        support.indices = None


@pytest.mark.parametrize(
    ("name", "method", "wanted"),
    [
        ("project", lambda self, z: None, r"project\(self, z, start=None\)"),
        ("hard_threshold", lambda self, v: None, r"hard_threshold\(self, v, start=None\)"),
        ("project_onto", lambda self, z, support: None, r"project_onto\(self, z, support, start=None\)"),
    ],
)
def test_a_constraint_whose_methods_take_no_start_is_refused_where_it_is_defined(name, method, wanted):
    with pytest.raises(InvalidInputError, match=f"Own.{name} is called with .*; define it as {wanted}"):
        type("Own", (Sparsity,), {name: method})
    type("Own", (Sparsity,), {name: lambda self, *arguments: None})
