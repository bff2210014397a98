"""Exact top-k against a slow twin that sorts, in three array libraries."""

from importlib import import_module

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hardthresh.arrays import to_numpy, top_k
from hardthresh.core import InvalidInputError

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
@settings(max_examples=80)
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
