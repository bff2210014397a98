"""Sums over groups of coordinates, in every array library."""

import numpy as np
import pytest

from hardthresh.arrays import Grouping, scaled_squares, to_numpy
from hardthresh.core import NotFiniteError

LIBRARIES = ("numpy", "array_api_strict", "torch")


def of(library, x):
    xp = pytest.importorskip(library, reason=f"{library} is not installed")
    return x if library == "numpy" else xp.asarray(x)


def random_grouping(seed, size=200):
    rng = np.random.default_rng(seed)
    numbers = np.minimum(rng.geometric(0.05, size), 60)
    return Grouping(np.unique(numbers, return_inverse=True)[1], np.unique(numbers).size - 1)  # the last one is none


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("seed", range(3))
def test_sums_masks_and_leaders(library, seed):
    grouping, v = random_grouping(seed), np.random.default_rng(seed).integers(0, 5, 200).astype(float)
    expected = [v[grouping.numbers == g].sum() for g in range(grouping.count)]
    np.testing.assert_array_equal(to_numpy(grouping.sums(of(library, v))), expected)
    some = np.arange(0, grouping.count, 3)
    for none in (True, False):
        mask = to_numpy(grouping.mask(of(library, some), none=none))
        np.testing.assert_array_equal(mask, np.isin(grouping.numbers, [*some, *[grouping.count] * none]))
    leads = to_numpy(grouping.leaders(of(library, v), 2))
    for g in range(grouping.count):
        members = np.flatnonzero(grouping.numbers == g)
        best = sorted(members, key=lambda j: (-v[j], j))[:2]
        np.testing.assert_array_equal(members[leads[members]], sorted(best))
    assert not leads[grouping.numbers == grouping.count].any()


@pytest.mark.parametrize("library", LIBRARIES)
def test_without_groups_there_are_no_sums(library):
    assert tuple(Grouping(np.zeros(3, dtype=np.int64), 0).sums(of(library, np.ones(3))).shape) == (0,)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("exponent", [-1060, -140, -3, 0, 100, 1000])
def test_squares_stay_in_range_and_ties_stay_ties(library, dtype, exponent):
    if dtype is np.float32 and not -140 <= exponent <= 100:
        exponent = int(np.sign(exponent)) * 100
    z = np.ldexp(np.array([3.0, 4.0, -5.0, 0.0]), exponent).astype(dtype)
    squares = to_numpy(scaled_squares(of(library, z)))
    assert 0 < squares[2] < np.inf
    assert squares[0] + squares[1] == squares[2]


def test_nan_is_refused_and_infinity_is_the_largest():
    with pytest.raises(NotFiniteError, match="NaN"):
        scaled_squares(np.array([1.0, np.nan]))
    np.testing.assert_array_equal(scaled_squares(np.array([2.0, -np.inf])), [4.0, np.inf])
