"""The step rules of other authors beside *Sparse Polyak*, against obvious twins."""

from itertools import islice
from math import inf, isinf, sqrt

import numpy as np
import pytest
from papers.sparse_polyak import full_norm
from papers.sparse_polyak._rules import (
    AdaptiveGradientDescent,
    AdaptiveProximalGradient,
    Level,
    ShortBarzilaiBorwein,
)
from papers.sparse_polyak._slopes import crossing, slope

from hardthresh.constraints import Sparsity
from hardthresh.core import iterate
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT
from hardthresh.steps import BarzilaiBorwein, Polyak, SparsePolyak

K = 4


def problem(seed=0, n=60, d=100):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    coef = np.zeros(d)
    coef[rng.choice(d, 3, replace=False)] = [3.0, -2.0, 1.5]
    return X, X @ coef + 0.5 * rng.standard_normal(n)


def leading(z, k):
    """The k entries of largest magnitude of a vector without ties."""
    return np.where(np.abs(z) >= np.sort(np.abs(z))[-k], z, 0.0)


def points(X, y, rule, count):
    return [state.w for state in islice(iterate(LinearModel(X, y), Sparsity(K), IHT(step=rule)), count)]


def twin(X, y, first, measured, next_step, count):
    """Hard thresholding whose step depends on the last two points, and the last two steps."""
    n = len(y)

    def gradient(w):
        return X.T @ (X @ w - y) / n

    w = [np.zeros(X.shape[1]), first]
    g = gradient(w[0])
    steps = [first[first != 0][0] / -g[first != 0][0]]
    while len(w) < count:
        s, change = w[-1] - w[-2], gradient(w[-1]) - gradient(w[-2])
        if measured == "union":
            size = np.linalg.norm(change[(w[-1] != 0) | (w[-2] != 0)])
        else:
            size = np.linalg.norm(change if measured == "full" else leading(change, K))
        steps.append(next_step(np.linalg.norm(s), s @ change, size, steps))
        w.append(leading(w[-1] - steps[-1] * gradient(w[-1]), K))
    return w


def bb(moved, product, changed, steps):
    return product / changed**2


def malitsky_mishchenko(moved, product, changed, steps):
    grown = inf if len(steps) == 1 else sqrt(1 + steps[-1] / steps[-2]) * steps[-1]
    return min(grown, moved / (2 * changed))


def latafat(moved, product, changed, steps):
    ratio = 1.0 if len(steps) == 1 else steps[-1] / steps[-2]
    last, ell, c = steps[-1], product / moved**2, changed**2 / product
    inside = last * ell * (last * c - 1)
    return min(last * sqrt(1 + ratio), last / (2 * sqrt(inside)) if inside > 0 else inf)


@pytest.mark.parametrize("measured", ["full", "union", "leading"])
@pytest.mark.parametrize(
    ("rule", "next_step"),
    [
        (ShortBarzilaiBorwein, bb),
        (AdaptiveGradientDescent, malitsky_mishchenko),
        (AdaptiveProximalGradient, latafat),
    ],
)
def test_a_secant_rule_is_its_formula(rule, next_step, measured):
    X, y = problem()
    ours = points(X, y, rule(measured), 9)
    np.testing.assert_allclose(ours, twin(X, y, ours[1], measured, next_step, 9), rtol=1e-8, atol=1e-10)


def test_the_full_norm_makes_the_step_shorter():
    X, y = problem()
    objective, sparse = LinearModel(X, y), Sparsity(K)
    full, restricted = (
        list(islice(iterate(objective, sparse, IHT(step=ShortBarzilaiBorwein(measured))), 3))[2].step
        for measured in ("full", "leading")
    )
    assert 0.0 < full < 0.9 * restricted


def test_the_restricted_short_step_is_that_of_the_library_where_no_safeguard_acts():
    X, y = problem()
    ours, library = (points(X, y, rule, 6) for rule in (ShortBarzilaiBorwein("union"), BarzilaiBorwein(kind="short")))
    np.testing.assert_allclose(ours, library, rtol=1e-10, atol=1e-12)


def level_twin(X, y, measured, count):
    """The algorithm of Goffin and Kiwiel, step by step, with the lower bound 0."""
    n = len(y)
    w = np.zeros(X.shape[1])
    visited, best, best_value = [w], w, inf
    record, depth, path, longest = None, None, 0.0, inf
    while len(visited) < count:
        value = np.sum((X @ w - y) ** 2) / (2 * n)
        if value < best_value:
            best, best_value = w, value
        if record is None:
            record = depth = value
        if best_value <= record - depth / 2:
            record, depth, path = best_value, min(depth, best_value), 0.0
        elif path > longest:
            record, depth, path = best_value, min(depth / 2, best_value), 0.0
            w, value = best, best_value
        gradient = X.T @ (X @ w - y) / n
        squared = np.sum((gradient if measured == "full" else leading(gradient, K)) ** 2)
        new = leading(w - (value - (record - depth)) / squared * gradient, K)
        path += np.linalg.norm(new - w)
        longest = np.linalg.norm(new - w) if longest == inf else longest
        w = new
        visited.append(w)
    return visited


@pytest.mark.parametrize("measured", ["full", "leading"])
def test_the_level_rule_is_its_algorithm(measured):
    X, y = problem()
    np.testing.assert_allclose(
        points(X, y, Level(measured), 120), level_twin(X, y, measured, 120), rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize(("measured", "polyak"), [("full", Polyak), ("leading", SparsePolyak)])
def test_the_level_rule_begins_as_the_polyak_step_to_the_lower_bound(measured, polyak):
    X, y = problem()
    ours, theirs = points(X, y, Level(measured), 4), points(X, y, polyak(0.0, scale=1.0), 4)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_a_crossing_is_between_the_iterates_in_logarithms():
    assert crossing([1.0, 0.1, 0.001], 0.01) == pytest.approx(1.5)
    assert crossing([1.0, 0.1], 0.1) == pytest.approx(1.0)
    assert crossing([1.0, -0.5], 0.1) == 1.0
    assert crossing([0.05, 0.01], 0.1) == 0.0
    assert isinf(crossing([1.0, 0.5], 0.1))


def test_a_slope_is_that_of_a_power():
    assert slope([1, 2, 4], [3.0, 12.0, 48.0]) == pytest.approx(2.0)
    assert isinf(slope([1, 2], [1.0, inf]))


def test_the_sum_of_the_ratios_counts_whole_iterations_and_a_part():
    assert full_norm.classical_iterations(2.5, [3.0, 4.0, 6.0]) == 10.0
    assert isinf(full_norm.classical_iterations(inf, [3.0]))


def test_the_norms_of_noise():
    z = np.random.default_rng(0).standard_normal(200_000)
    kept = leading(z, 3000)
    assert full_norm.noise_ratio(200_000, 3000) == pytest.approx(np.sum(z**2) / np.sum(kept**2), rel=0.01)
