"""Every registered constraint keeps the contract of `hardthresh.core.Constraint`; `Sparsity` also what is its own."""

import copy
import pickle
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from cases import (
    OTHER_LIBRARIES,
    assert_same_point,
    back,
    convert,
    examples,
    is_bounded,
    permuted,
    reordered,
    selects,
    shape_for,
)
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.constraints import Coordinates, OverlappingGroupSparsity, Rank, Sparsity
from hardthresh.core import InvalidInputError
from hardthresh.core.constraint import BlockBudget, CoordinateBudget
from levels import draws, slow_beyond


def random_point(constraint, seed=0):
    """A point without ties."""
    return np.random.default_rng(seed).standard_normal(shape_for(constraint))


def has_a_full_support(constraint):
    """Whether the budget is smaller than the space."""
    return constraint.is_full(constraint.project(np.abs(random_point(constraint)) + 1.0).support)


def structure_of(constraint):
    return constraint.structure(shape_for(constraint))


def lets_coordinates_go(constraint):
    return isinstance(structure_of(constraint), CoordinateBudget)


def that(applies):
    """The constraints to which a law applies."""
    return pytest.mark.parametrize("constraint", examples("constraint", where=applies))


LEVELS = [-4.0, -2.0, -1.0, -0.5, -0.25, -0.0, 0.0, 0.25, 0.5, 1.0, 2.0, 4.0]
"""Few levels make many ties; sums of their squares are exact, so that the slow twin sees the same ties."""


def points(shape, elements):
    return st.lists(elements, min_size=prod(shape), max_size=prod(shape)).map(lambda v: np.array(v).reshape(shape))


def tied(constraint):
    return points(shape_for(constraint), st.sampled_from(LEVELS))


def smooth(constraint):
    """Points without ties; no coordinate is so small that its square, which the slow twins compare, is 0."""
    coordinates = st.floats(-1e3, 1e3).map(lambda x: x if abs(x) > 1e-150 else 0.0)
    return points(shape_for(constraint), coordinates)


def assert_same_projection(constraint, one, other):
    assert_same_point(constraint, one.point, other.point)
    assert one.support == other.support


every = that(lambda constraint: True)
selecting = that(selects)
"""Elsewhere points have no ties that could be drawn, and no order of the coordinates that could be permuted."""


@slow_beyond(6)
@that(lambda constraint: selects(constraint) and constraint.exact)
@given(data=st.data())
@draws(40)
def test_agrees_with_the_slow_twin(constraint, data):
    z = data.draw(tied(constraint))
    assert_same_projection(constraint, constraint.project(z), constraint.reference_project(z))


@slow_beyond(8)
@every
@given(data=st.data())
@draws(25)
def test_is_as_near_as_the_slow_twin(constraint, data):
    z = data.draw(smooth(constraint))
    distance = np.linalg.norm(constraint.project(z).point - z)
    best = np.linalg.norm(constraint.reference_project(z).point - z)
    rounding = 1e-12 * best + (0.0 if selects(constraint) else 1e-6 * np.linalg.norm(z))
    assert distance >= best - rounding
    if constraint.exact:
        assert distance <= best + rounding


@that(lambda constraint: constraint.exact)
def test_where_an_exact_projection_starts_does_not_matter(constraint):
    z, v = random_point(constraint), random_point(constraint, 1)
    start = constraint.project(random_point(constraint, 2)).support
    assert_same_projection(constraint, constraint.project(z, start), constraint.project(z))
    assert_same_point(constraint, constraint.hard_threshold(v, start), constraint.hard_threshold(v))


def test_an_iterative_projection_starts_from_a_support():
    """From the right support it is exact; without a start it is not where singular values decrease slowly."""
    z = np.random.default_rng(0).standard_normal((60, 50))
    exact = Rank(3).project(z)
    for method in ("subspace", "randomized"):
        there = Rank(3, method=method).project(z, exact.support)
        np.testing.assert_allclose(there.point, exact.point, atol=1e-12)
        assert np.abs(Rank(3, method=method).project(z).point - exact.point).max() > 1e-3


@slow_beyond(6)
@selecting
@given(data=st.data())
@draws(25)
def test_projection_is_idempotent_and_feasible_among_ties(constraint, data):
    z = data.draw(st.one_of(tied(constraint), smooth(constraint)))
    assert_idempotent(constraint, z)


@every
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_projection_is_idempotent_and_feasible(constraint, scale):
    assert_idempotent(constraint, scale * random_point(constraint))


def assert_idempotent(constraint, z):
    once = constraint.project(z)
    assert_same_projection(constraint, constraint.project(once.point), once)
    assert_same_point(constraint, constraint.reference_project(once.point).point, once.point)
    assert_same_point(constraint, once.support.restrict(once.point), once.point)


@every
def test_arguments_are_neither_aliased_nor_mutated(constraint):
    z = random_point(constraint)
    before, settings_before = z.copy(), repr(constraint)
    projection = constraint.project(z)
    restricted = projection.support.restrict(z)
    leading = constraint.hard_threshold(z)
    constraint.free_part(projection.point, z, projection.support)
    (projection.support | projection.support)
    np.testing.assert_array_equal(z, before)
    for result in (projection.point, restricted, leading):
        assert not np.shares_memory(result, z)
    feasible = projection.point
    assert not np.shares_memory(constraint.project(feasible).point, feasible)
    assert repr(constraint) == settings_before


@every
def test_a_read_only_point_will_do(constraint):
    z = random_point(constraint)
    z.flags.writeable = False
    constraint.project(z)


@that(lambda constraint: constraint.symmetric)
def test_a_set_that_says_so_holds_symmetric_matrices_only(constraint):
    point = constraint.project(random_point(constraint)).point
    np.testing.assert_array_equal(point, point.T)


@every
def test_a_second_call_says_the_same(constraint):
    z = random_point(constraint)
    assert_same_projection(constraint, constraint.project(z), constraint.project(z))


@every
@pytest.mark.parametrize("position", [0, 5, 11])
def test_nan_is_refused(constraint, position):
    z = random_point(constraint)
    z.flat[position] = np.nan
    with pytest.raises(InvalidInputError, match="NaN"):
        constraint.project(z)


@every
def test_zero_stays_zero(constraint):
    zero = np.zeros(shape_for(constraint))
    projection = constraint.project(zero)
    np.testing.assert_array_equal(projection.point, zero)
    np.testing.assert_array_equal(constraint.hard_threshold(zero), zero)


@every
def test_float32_stays_float32(constraint):
    z = random_point(constraint).astype(np.float32)
    projection = constraint.project(z)
    assert projection.point.dtype == np.float32
    assert projection.support.restrict(z).dtype == np.float32
    assert constraint.hard_threshold(z).dtype == np.float32
    exact = constraint.project(z.astype(np.float64))
    assert_same_point(constraint, projection.point, exact.point.astype(np.float32))
    again = constraint.project(exact.point.astype(np.float32))
    assert projection.support == again.support


@selecting
def test_a_permutation_permutes_the_projection(constraint):
    z = random_point(constraint)
    order = np.random.default_rng(1).permutation(z.shape[0])
    moved = permuted(constraint, order).project(reordered(z, order))
    np.testing.assert_array_equal(moved.point, reordered(constraint.project(z).point, order))


@every
@pytest.mark.parametrize("scale", [2.0**-40, 2.0**40])
def test_a_scale_scales_the_projection(constraint, scale):
    if is_bounded(constraint):
        constraint = permuted(constraint, np.arange(prod(shape_for(constraint))))
        constraint = replace(constraint, **{name: None for name in ("lower", "upper") if hasattr(constraint, name)})
    z = random_point(constraint)
    assert_same_point(constraint, constraint.project(scale * z).point, scale * constraint.project(z).point)


@every
def test_restrict_is_the_orthogonal_projection_on_the_support(constraint):
    z, v, u = (random_point(constraint, seed) for seed in range(3))
    support = constraint.project(z).support
    kept = support.restrict(v)
    np.testing.assert_allclose(support.restrict(kept), kept, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.sum((v - kept) * support.restrict(u)), 0.0, atol=1e-12)


@every
def test_join_contains_both(constraint):
    a, b = (constraint.project(random_point(constraint, seed)) for seed in (3, 4))
    both = a.support | b.support
    for one in (a, b):
        np.testing.assert_allclose(both.restrict(one.point), one.point, rtol=1e-12, atol=1e-12)
    assert (both | a.support) == both
    assert (a.support | a.support) == a.support


@every
def test_equality_tells_supports_apart(constraint):
    one, zero = constraint.project(random_point(constraint)), constraint.project(np.zeros(shape_for(constraint)))
    assert one.support == constraint.project(2.0**-3 * one.point).support
    if np.any(zero.support.restrict(one.point) != one.point):
        assert one.support != zero.support
        assert zero.support != one.support


@every
def test_relax_contains_the_set_and_multiplies_the_budget(constraint):
    z = random_point(constraint)
    same, doubled = constraint.relax(1), constraint.relax(2)
    assert type(doubled) is type(constraint)
    assert_same_projection(constraint, same.project(z), constraint.project(z))
    point = constraint.project(z).point
    np.testing.assert_allclose(doubled.project(point).point, point, rtol=1e-12, atol=1e-12)
    assert np.linalg.norm(doubled.project(z).point - z) <= np.linalg.norm(point - z)


@every
def test_degrees_of_freedom_are_the_dimension_of_the_subspace(constraint):
    shape = shape_for(constraint)
    support = constraint.project(random_point(constraint)).support
    units = np.eye(prod(shape)).reshape(-1, *shape)
    moved = np.array([support.restrict(unit).ravel() for unit in units])
    assert support.degrees_of_freedom == np.linalg.matrix_rank(moved)


@every
def test_the_structure_counts_the_units_of_a_full_support(constraint):
    projection = constraint.project(np.zeros(shape_for(constraint)))
    structure = constraint.structure(shape_for(constraint))
    if structure is None:
        assert projection.support.indices is None
        return
    assert structure.selected(projection.support) == 0
    full = constraint.project(np.abs(random_point(constraint)) + 1.0).support
    assert 0 <= structure.selected(full) <= structure.candidates


@that(lambda constraint: structure_of(constraint) is not None)
def test_swap_units_are_parts_of_the_support_that_count(constraint):
    point = constraint.project(np.abs(random_point(constraint)) + 1.0)
    for unit in structure_of(constraint).swap_units(point.support):
        assert unit.size > 0
        assert set(unit.tolist()) <= set(point.support.indices.tolist()) - set(getattr(constraint, "free", ()))
        rest = np.where(np.isin(np.arange(point.point.size), unit), 0.0, point.point)
        assert structure_of(constraint).selected(constraint.project(rest).support) < structure_of(constraint).selected(
            point.support
        )


@that(has_a_full_support)
def test_a_full_support_has_no_room(constraint):
    """What projects from a full support stays on it, when nothing outside is larger."""
    inside = constraint.project(np.abs(random_point(constraint)) + 1.0)
    outside = random_point(constraint) * 1e-3
    outside = outside - inside.support.restrict(outside)
    assert constraint.project(inside.point + outside).support == inside.support


@every
def test_hard_threshold_has_the_largest_norm_over_all_supports(constraint):
    v = random_point(constraint, 5)
    leading = constraint.hard_threshold(v)
    for seed in range(8):
        support = constraint.project(np.abs(random_point(constraint, seed))).support
        part = constraint.hard_threshold(support.restrict(v))  # the support of a curved set is wider than the set
        assert np.linalg.norm(leading) >= np.linalg.norm(part) * (1 - 1e-12)
    np.testing.assert_allclose(np.sum((v - leading) * leading), 0.0, atol=1e-12)


@every
def test_free_part_excludes_only_coordinates_at_a_bound(constraint):
    w = constraint.project(4.0 * random_point(constraint, 6)).point
    support = constraint.project(w).support
    gradient = random_point(constraint, 7)
    face = constraint.free_part(w, gradient, support)
    moving = face.restrict(gradient)
    held = support.restrict(gradient) - moving
    step = 1e-6
    assert_same_point(constraint, constraint.project(w - step * held).point, w)  # held: the bound takes the step back
    flat = selects(constraint) or not np.any(w)
    curved = 0.0 if flat else step * step * np.linalg.norm(moving) ** 2 / np.linalg.norm(w)
    there = constraint.project(w - step * moving).point
    np.testing.assert_allclose(there, w - step * moving, rtol=0, atol=1e-15 + 10 * curved)


@selecting
def test_indices_are_the_coordinates_of_the_support(constraint):
    projection = constraint.project(np.abs(random_point(constraint)))
    indices = projection.support.indices
    assert (np.diff(indices) > 0).all()
    ones = projection.support.restrict(np.ones(shape_for(constraint)))
    np.testing.assert_array_equal(indices, np.flatnonzero(ones))


@that(lets_coordinates_go)
def test_exchangeable_coordinates_may_be_replaced_by_any_other(constraint):
    """Moving the value of such a coordinate to a free place leaves the point in the set, where bounds let it."""
    projection = constraint.project(np.abs(random_point(constraint)) / 4)
    leaving = structure_of(constraint).counted(projection.support)
    assert set(leaving.tolist()) <= set(projection.support.indices.tolist())
    outside = np.setdiff1d(np.arange(projection.point.size), projection.support.indices)
    for i in leaving:
        for j in outside:
            moved = projection.point.copy()
            moved[i], moved[j] = 0.0, moved[i]
            np.testing.assert_array_equal(constraint.project(moved).point, moved)
            swapped = projection.support.exchange(int(i), int(j))
            expected = (set(projection.support.indices.tolist()) - {i}) | {j}
            np.testing.assert_array_equal(swapped.indices, sorted(expected))


@that(lambda constraint: isinstance(structure_of(constraint), BlockBudget))
def test_blocks_may_be_replaced_by_any_other(constraint):
    """A point on the blocks after the exchange is in the set, and the blocks are those of its support."""
    chosen = constraint.project(random_point(constraint)).support
    blocks = structure_of(constraint)
    used = blocks.chosen(chosen)
    for i in used:
        for j in np.setdiff1d(np.arange(blocks.candidates), used):
            swapped = chosen.exchange(int(i), int(j))
            there = np.isin(blocks.numbers, [*(set(used.tolist()) - {int(i)}), int(j), blocks.candidates]).astype(float)
            there = there.reshape(shape_for(constraint))
            np.testing.assert_array_equal(swapped.restrict(np.ones_like(there)), there)
            np.testing.assert_array_equal(constraint.project(there).point, there)
            assert constraint.project(there).support == swapped


@that(lambda constraint: isinstance(constraint, Rank | OverlappingGroupSparsity))
def test_supports_without_exchanges_raise_an_error(constraint):
    support = constraint.project(random_point(constraint)).support
    with pytest.raises(TypeError, match=f"{type(support).__name__} does not exchange"):
        support.exchange(0, 1)


@every
def test_settings_are_frozen_comparable_and_picklable(constraint):
    z = random_point(constraint)
    for twin in (pickle.loads(pickle.dumps(constraint)), copy.deepcopy(constraint)):
        assert repr(twin) == repr(constraint)
        assert_same_projection(constraint, twin.project(z), constraint.project(z))
    with pytest.raises((AttributeError, TypeError)):
        constraint.exact = None
    with pytest.raises(AttributeError):
        setattr(constraint, next(iter(constraint.__dataclass_fields__)), None)


@every
def test_a_wrong_shape_is_refused(constraint):
    with pytest.raises(InvalidInputError, match="shape"):
        constraint.check((2, 3, 4, 5))


@slow_beyond(5)
@selecting
@pytest.mark.parametrize("library", OTHER_LIBRARIES)
@given(data=st.data())
@draws(12)
def test_other_array_libraries_agree(constraint, library, data):
    z = data.draw(tied(constraint))
    theirs, ours = constraint.project(convert(z, library)), constraint.project(z)
    assert type(theirs.point) is type(convert(z, library))
    np.testing.assert_array_equal(back(theirs.point), ours.point)
    v = convert(np.ones_like(z), library)
    np.testing.assert_array_equal(back(theirs.support.restrict(v)), ours.support.restrict(np.ones_like(z)))
    np.testing.assert_array_equal(back(constraint.hard_threshold(convert(z, library))), constraint.hard_threshold(z))
    assert constraint.is_full(theirs.support) == constraint.is_full(ours.support)
    assert (theirs.support | theirs.support) == theirs.support
    face = constraint.free_part(theirs.point, convert(-z, library), theirs.support)
    np.testing.assert_array_equal(
        back(face.restrict(v)),
        constraint.free_part(ours.point, -z, ours.support).restrict(np.ones_like(z)),
    )
    nan = np.array(z)
    nan.flat[3] = np.nan
    with pytest.raises(InvalidInputError, match="NaN"):
        _ = constraint.project(convert(nan, library)).support.indices  # of a device, only then


# --- what is Sparsity's own ----------------------------------------------------------------------------------------


def test_sparsity_the_lowest_index_wins_a_tie():
    z = np.array([1.0, -2.0, 2.0, -1.0, 1.0, -2.0])
    for k, expected in enumerate([[], [1], [1, 2], [1, 2, 5], [0, 1, 2, 5], [0, 1, 2, 3, 5]]):
        np.testing.assert_array_equal(Sparsity(k).project(z).support, expected)
    np.testing.assert_array_equal(Sparsity(2, free=(2,)).project(z).support, [1, 2, 5])
    np.testing.assert_array_equal(Sparsity(2, upper=1.5).project(z).support, [1, 5])
    np.testing.assert_array_equal(Sparsity(2, lower=0.0).project(np.ones(5)).support, [0, 1])


@pytest.mark.parametrize("k", [5, 6, 1000])
def test_sparsity_a_large_budget_keeps_everything(k):
    z = np.array([1.0, -2.0, 0.0, -1.0, 1.0])
    projection = Sparsity(k).project(z)
    np.testing.assert_array_equal(projection.point, z)
    np.testing.assert_array_equal(projection.support, [0, 1, 3, 4])


def test_sparsity_without_a_budget_keeps_only_the_free_coordinates():
    z = np.array([1.0, -2.0, 0.0, -1.0])
    assert Sparsity(0).project(z).support.indices.size == 0
    projection = Sparsity(0, free=(2, 3)).project(z)
    np.testing.assert_array_equal(projection.point, [0.0, 0.0, 0.0, -1.0])
    np.testing.assert_array_equal(projection.support, [2, 3])


def test_sparsity_free_coordinates_are_bounded_but_not_counted():
    z = np.array([-9.0, 0.2, 0.3, 5.0, -4.0])
    projection = Sparsity(1, free=(0,), lower=-2.0, upper=1.0).project(z)
    np.testing.assert_array_equal(projection.point, [-2.0, 0.0, 0.0, 0.0, -2.0])
    lower = np.array([-np.inf, 0.0, 0.0, 0.0, 0.0])
    projection = Sparsity(1, free=(0,), lower=lower, upper=1.0).project(z)
    np.testing.assert_array_equal(projection.point, [-9.0, 0.0, 0.0, 1.0, 0.0])


def test_sparsity_bounds_are_part_of_the_choice():
    """The largest entry is not worth keeping when its bound keeps next to nothing of it."""
    z = np.array([10.0, 2.0])
    np.testing.assert_array_equal(Sparsity(1, upper=np.array([0.1, 5.0])).project(z).point, [0.0, 2.0])
    np.testing.assert_array_equal(Sparsity(1, upper=np.array([1.0, 5.0])).project(z).point, [1.0, 0.0])


@given(points((6,), st.sampled_from(LEVELS)), st.integers(0, 6), st.integers(0, 63), st.integers(0, 3))
@draws(150)
def test_sparsity_with_bounds_by_coordinate_agrees_with_its_slow_twin(z, k, mask, shift):
    free = tuple(j for j in range(6) if mask >> j & 1)
    lower = -np.roll(np.array([0.0, 0.25, 0.5, 1.0, 2.0, np.inf]), shift)
    constraint = Sparsity(k, free=free, lower=lower, upper=-np.roll(lower, 2))
    constraint.check((6,))
    fast, slow = constraint.project(z), constraint.reference_project(z)
    np.testing.assert_array_equal(fast.point, slow.point)
    np.testing.assert_array_equal(fast.support, slow.support)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparsity_bounds_are_exact_far_away(dtype):
    """Two entries far beyond their bound differ by less than the rounding of their squares."""
    z = np.array([2.0**20, 2.0**20 + 1], dtype=dtype)
    np.testing.assert_array_equal(Sparsity(1, upper=1.0).project(z).support, [1])
    with np.errstate(over="ignore"):
        huge = np.array([-1e30, 2.0, 3.0], dtype=dtype)
        np.testing.assert_array_equal(Sparsity(1, lower=0.0).project(huge).support, [2])


def test_sparsity_relax_rounds_up():
    assert Sparsity(3).relax(1.5).k == 5
    assert Sparsity(3, free=(1,), lower=0.0).relax(2) == Sparsity(6, free=(1,), lower=0.0)


def test_sparsity_is_full_counts_what_is_not_free():
    constraint = Sparsity(2, free=(0,))
    assert not constraint.is_full(Coordinates(np.array([0, 4])))
    assert constraint.is_full(Coordinates(np.array([0, 3, 4])))
    assert Sparsity(0).is_full(Coordinates(np.array([], dtype=np.int64)))


def test_sparsity_free_coordinates_are_not_exchangeable():
    counted = Sparsity(2, free=(1, 4)).structure((6,)).counted(Coordinates(np.array([0, 1, 3, 4])))
    np.testing.assert_array_equal(counted, [0, 3])


@pytest.mark.parametrize("k", [3, 4, 5])
def test_sparsity_nan_is_refused_among_few_nonzeros(k):
    """Also where there is room for everything and nothing has to be selected."""
    with pytest.raises(InvalidInputError, match="NaN"):
        Sparsity(k).project(np.array([0.0, np.nan, 0.0, 1.0, 0.0]))


def test_sparsity_hard_threshold_ignores_bounds():
    v = np.array([-3.0, 2.0, 1.0])
    np.testing.assert_array_equal(Sparsity(1, lower=0.0, upper=0.5).hard_threshold(v), [-3.0, 0.0, 0.0])


def test_sparsity_the_free_part_at_the_bounds():
    constraint = Sparsity(4, free=(3,), lower=-1.0, upper=np.array([1.0, 1.0, 1.0, np.inf, 1.0]))
    w = np.array([1.0, -1.0, 0.5, 7.0, 0.0])
    support = Coordinates(np.array([0, 1, 2, 3]))
    np.testing.assert_array_equal(constraint.free_part(w, np.array([-1.0, 1.0, 1.0, -1.0, 1.0]), support), [2, 3])
    np.testing.assert_array_equal(constraint.free_part(w, np.array([1.0, -1.0, 1.0, -1.0, 1.0]), support), support)


def test_sparsity_order_and_repetition_of_free_coordinates_do_not_matter():
    assert Sparsity(2, free=(5, 1, 5)) == Sparsity(2, free=[1, 5])
    assert Sparsity(np.int64(2)).k == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": -1}, "k must be >= 0, got -1"),
        ({"k": 2.5}, "k must be an integer, got 2.5"),
        ({"k": "3"}, "k must be an integer, got '3'"),
        ({"k": None}, "k must be an integer, got None"),
        ({"k": True}, "k must be an integer, got True"),
        ({"k": 1, "free": (-1,)}, "free coordinates must be >= 0, got -1"),
        ({"k": 1, "free": (1.5,)}, "integers"),
        ({"k": 1, "lower": 0.5}, "lower must be <= 0"),
        ({"k": 1, "upper": -0.5}, "upper must be >= 0"),
        ({"k": 1, "lower": np.array([0.0, 1.0])}, "lower must be <= 0"),
        ({"k": 1, "lower": np.nan}, "lower must be <= 0"),
    ],
)
def test_sparsity_refuses_wrong_arguments(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        Sparsity(**arguments)


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (Sparsity(1, free=(4,)), "free coordinate 4 does not exist"),
        (Sparsity(1, lower=np.zeros(3)), "lower has shape"),
        (Sparsity(1, upper=np.ones(5)), "upper has shape"),
        (Sparsity(1, upper=[1.0] * 5), "upper has shape"),
    ],
)
def test_sparsity_check_refuses_what_does_not_fit(constraint, message):
    with pytest.raises(InvalidInputError, match=message):
        constraint.check((4,))
    with pytest.raises(InvalidInputError, match="vectors"):
        constraint.check((4, 4))
