"""The projection of `Sparsity` onto one support is its projection of a point of that subspace."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from hardthresh.constraints import Coordinates, Sparsity
from hardthresh.core import NotFiniteError
from levels import draws

ENTRIES = [0.0, -0.0, 1.0, -1.0, 0.5, -3.0]


@given(st.data())
@draws(100)
def test_onto_a_support_it_is_the_projection_of_a_point_of_its_subspace(data):
    d = data.draw(st.integers(1, 8))
    free = tuple(sorted(data.draw(st.sets(st.integers(0, d - 1), max_size=2))))
    others = sorted(set(range(d)) - set(free))
    chosen = data.draw(st.sets(st.sampled_from(others))) if others else set()
    support = np.array(sorted({*free, *chosen}), dtype=np.int64)
    bound = data.draw(st.sampled_from([None, 0.0]))
    constraint = Sparsity(data.draw(st.integers(0, d)), free=free, lower=bound)
    z = np.zeros(d)
    entries = st.sampled_from(ENTRIES if bound is not None else [*ENTRIES, np.inf])
    z[support] = data.draw(st.lists(entries, min_size=support.size, max_size=support.size))
    before = z.copy()
    onto, projected = constraint.project_onto(z, Coordinates(support)), constraint.project(z)
    assert_array_equal(onto.point, projected.point)
    assert_array_equal(onto.support.indices, projected.support.indices)
    assert not np.shares_memory(onto.point, z)
    assert_array_equal(z, before)


def test_onto_a_support_nothing_else_is_looked_at():
    onto = Sparsity(2, free=(0,)).project_onto(np.array([0.0, 5.0, 2.0, 0.0]), Coordinates(np.array([0, 2, 3])))
    assert_array_equal(onto.point, [0.0, 0.0, 2.0, 0.0])
    assert_array_equal(onto.support.indices, [0, 2])


def test_onto_a_support_nan_is_refused():
    with pytest.raises(NotFiniteError, match="NaN"):
        Sparsity(2).project_onto(np.array([0.0, np.nan, 1.0]), Coordinates(np.array([1, 2])))
