"""The problems of the benchmark of functions: two halves, each function finite at its start and with a gradient."""

import sys
from pathlib import Path

import numpy as np
import pytest

from hardthresh.objectives import Function
from levels import only_at

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))


def entries():
    pytest.importorskip("jax", reason="JAX is not installed")
    from gallery import GALLERY

    return GALLERY


@only_at("pairs")
def test_the_halves_are_about_equal_and_names_are_unique():
    gallery = entries()
    names = [entry.name for entry in gallery]
    assert len(set(names)) == len(names)
    halves = [entry.half for entry in gallery]
    assert abs(halves.count("development") - halves.count("reporting")) <= 1
    assert len(halves) == halves.count("development") + halves.count("reporting")


@only_at("pairs")
@pytest.mark.parametrize("name", ["portfolio", "Gaussian precision matrix", "focal loss", "isotonic regression"])
def test_functions_have_the_gradients_that_jax_says(name):
    entry = next(entry for entry in entries() if entry.name == name)
    problem, again = (entry.make(np.random.default_rng(0)) for _ in range(2))
    f = Function.from_jax(problem.fn, problem.dimension)
    start = np.zeros(problem.dimension) if problem.start is None else problem.start
    assert np.isfinite(f.value(start))
    assert f.value(start) == Function.from_jax(again.fn, again.dimension).value(start)
    inside = start + 1e-3 * np.random.default_rng(1).standard_normal(problem.dimension)
    assert f.check_gradient(inside) < 1e-5
    assert problem.dimension % problem.group == 0
    assert problem.k < problem.dimension // problem.group
