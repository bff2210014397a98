"""Exact top-k against a slow twin that sorts, in three array libraries."""

from importlib import import_module

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hardthresh.arrays import to_numpy, top_k
from hardthresh.arrays.topk import leading
from hardthresh.core import InvalidInputError
from levels import draws

LIBRARIES = ("numpy", "array_api_strict", "torch")
libraries = pytest.mark.parametrize("library", LIBRARIES)


def convert(x, library):
    if library == "torch":
        pytest.importorskip("torch", reason="torch is not installed")
    return import_module(library).asarray(np.array(x))


def slow_top_k(magnitude, k):
    """Sort by size, then by index, and take the first k."""
    order = sorted(range(len(magnitude)), key=lambda j: (-magnitude[j], j))
    return sorted(order[: max(k, 0)])


levels = st.sampled_from([0.0, -0.0, 0.5, 1.0, 1.0, 2.0, np.inf])
vectors = st.lists(st.one_of(levels, st.floats(0, 1e3)), max_size=30).map(np.array)


@libraries
@given(vectors, st.integers(-2, 35))
@draws(80)
@example(np.zeros(7), 3)
@example(np.array([1.0]), 1)
@example(np.array([0.0, -0.0, 0.0]), 2)
def test_agrees_with_the_slow_twin(library, magnitude, k):
    chosen = top_k(convert(magnitude.astype(float), library), k)
    assert type(chosen) is type(convert(magnitude, library))
    np.testing.assert_array_equal(to_numpy(chosen), slow_top_k(magnitude, k))


@libraries
def test_large_vectors_with_many_ties(library):
    magnitude = np.random.default_rng(0).integers(0, 9, 5000).astype(float)
    for k in (1, 100, 2500, 4999):
        np.testing.assert_array_equal(to_numpy(top_k(convert(magnitude, library), k)), slow_top_k(magnitude, k))


sparse_vectors = st.integers(1, 60).flatmap(
    lambda n: st.dictionaries(st.integers(0, n - 1), st.one_of(levels, st.floats(0, 1e3)), max_size=n // 3).map(
        lambda entries: np.array([entries.get(j, 0.0) for j in range(n)])
    )
)


@libraries
@given(sparse_vectors, st.integers(-1, 62))
@draws(150)
@example(np.zeros(9), 4)
@example(np.array([0.0, 0.0, 0.0, 5.0, -0.0, 5.0, 0.0, 0.0]), 1)
@example(np.array([0.0, 0.0, 0.0, 5.0, -0.0, 5.0, 0.0, 0.0]), 2)
@example(np.array([0.0, 0.0, 0.0, 5.0, -0.0, 5.0, 0.0, 0.0]), 3)
@example(np.array([0.0, 0.0, 0.0, 5.0, -0.0, 5.0, 0.0, 0.0]), 7)
@example(np.array([0.0, -1.0, 0.0, 5.0, 0.0, 0.0, 0.0]), 2)
@example(np.array([0.0, -1.0, 0.0, 5.0, 0.0, 0.0, 0.0]), 6)
@example(np.array([0.0, -1.0, 0.0, 5.0, 0.0, 0.0, -2.0]), 6)
def test_mostly_zeros_agree_with_the_slow_twin(library, magnitude, k):
    """Where most entries are zero the selection is made among the others."""
    chosen = to_numpy(top_k(convert(magnitude, library), k))
    np.testing.assert_array_equal(chosen, slow_top_k(magnitude, k))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.4, 0.49, 0.51, 1.0])
def test_long_vectors_of_any_density(dtype, share):
    rng = np.random.default_rng(1)
    magnitude = (np.abs(rng.standard_normal(2000)) * (rng.random(2000) < share)).astype(dtype)
    nonzero = np.count_nonzero(magnitude)
    for k in {1, 50, max(nonzero - 1, 1), max(nonzero, 1), nonzero + 1, 1000, 1999} - {2000, 2001}:
        np.testing.assert_array_equal(top_k(magnitude, k), slow_top_k(magnitude, k))


@pytest.mark.parametrize("k", [0, 1, 2, 3, 20, 39, 40])
@pytest.mark.parametrize("others", [0, 1, 3, 39])
def test_nan_is_refused_among_zeros_as_well(k, others):
    magnitude = np.zeros(40)
    magnitude[:others] = 1.0
    magnitude[39] = np.nan
    with pytest.raises(InvalidInputError, match="NaN"):
        top_k(magnitude, k)


@libraries
@pytest.mark.parametrize("k", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_nan_is_refused_wherever_it_is(library, k, position):
    magnitude = np.array([1.0, 2.0, 3.0])
    magnitude[position] = np.nan
    with pytest.raises(InvalidInputError, match="NaN"):
        top_k(convert(magnitude, library), k)


@libraries
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_float_will_do(library, dtype):
    chosen = top_k(convert(np.array([1.0, 3.0, 2.0], dtype=dtype), library), 2)
    np.testing.assert_array_equal(to_numpy(chosen), [1, 2])


def test_the_argument_is_unchanged():
    magnitude = np.array([3.0, 1.0, 2.0])
    magnitude.flags.writeable = False
    top_k(magnitude, 2)
    np.testing.assert_array_equal(magnitude, [3.0, 1.0, 2.0])


@pytest.mark.parametrize("library", LIBRARIES[1:])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_on_a_device_nan_is_the_largest(library, position):
    magnitude = np.array([1.0, 2.0, 3.0])
    magnitude[position] = np.nan
    assert to_numpy(leading(convert(magnitude, library), 1))[position]
    largest = np.nanargmax(magnitude)
    marked = to_numpy(leading(convert(magnitude, library), 2))
    np.testing.assert_array_equal(np.flatnonzero(marked), sorted([position, largest]))
