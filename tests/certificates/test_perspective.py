"""The perspective of a ridge: the convex function that lower bounds are computed with."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from hardthresh.certificates.perspective import Perspective, shares
from levels import draws

NUMBERS = st.floats(-3.0, 3.0).map(lambda x: round(x, 3))


@st.composite
def problems(draw, most=6):
    """Points and slopes of coordinates in units of one or two, one of which is always allowed."""
    units = draw(st.integers(1, most))
    widths = [draw(st.integers(1, 2)) for _ in range(units)]
    owner = np.concatenate([np.repeat(np.arange(units), widths), [-1]])
    diagonal = np.array([draw(st.floats(0.1, 2.0)) for _ in range(units)])
    w, v = (np.array([draw(NUMBERS) for _ in range(owner.size)]) for _ in range(2))
    return Perspective(owner, diagonal, draw(st.integers(1, units))), w, v


def by_search(terms, w):
    """The least of sum D |w|^2 / 2z by bisection of the multiplier of sum z <= k: a slow twin."""
    size = terms.sizes(w) * np.sqrt(terms.diagonal)
    if np.count_nonzero(size) <= terms.budget:
        return 0.5 * float(size @ size)
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.minimum(1.0, middle * size).sum() < terms.budget else (low, middle)
    z = np.minimum(1.0, high * size)
    return 0.5 * float(np.sum(size[z > 0] ** 2 / z[z > 0]))


@given(problems())
@draws(100)
def test_the_value_is_that_of_the_best_shares(problem):
    terms, w, _ = problem
    assert_allclose(terms.value(w), by_search(terms, w), rtol=1e-9, atol=1e-12)


@given(problems())
@draws(100)
def test_it_is_the_ridge_at_sparse_points_and_below_it_at_others(problem):
    terms, w, _ = problem
    ridge = 0.5 * float(np.sum(terms.diagonal * terms.sizes(w) ** 2))
    if np.count_nonzero(terms.sizes(w)) <= terms.budget:
        assert_allclose(terms.value(w), ridge, rtol=1e-12)
    else:
        assert ridge <= terms.value(w) * (1 + 1e-12)


@given(problems())
@draws(100)
def test_fenchel_and_young(problem):
    """Omega(w) + the sum of the k largest gains is at least -v'w, and equal to it at the minimiser for v."""
    terms, w, v = problem
    v[-1] = 0.0  # a coordinate without a ridge has a conjugate at zero only
    most = terms.largest(terms.gains(v))
    assert terms.value(w) + most >= -float(v @ w) - 1e-9
    inside = np.argsort(-terms.gains(v), kind="stable")[: terms.budget]
    best = np.where(np.isin(terms.owner, inside), -v / np.where(terms.owner < 0, 1.0, terms.of_coordinates), 0.0)
    assert_allclose(terms.value(best) + most, -float(v @ best), rtol=1e-9, atol=1e-12)


@given(problems(), st.floats(0.2, 20.0))
@draws(100)
def test_the_prox_is_lower_than_points_near_it(problem, L):
    terms, x, away = problem
    w = terms.prox(x, L)

    def value(point):
        return 0.5 * L * float((point - x) @ (point - x)) + terms.value(point)

    for t in (-1e-2, -1e-4, 1e-4, 1e-2):
        assert value(w) <= value(w + t * away) + 1e-9 * (1.0 + value(w))
    assert w[-1] == x[-1]


@given(problems())
@draws(30)
def test_gains_within_bounds_are_those_of_a_search(problem):
    plain, _, v = problem
    owner = np.arange(v.size)
    bounds = np.stack([np.full(v.size, -0.4), np.full(v.size, np.inf)])
    terms = Perspective(owner, np.full(v.size, plain.diagonal[0]), 1, bounds)
    for slope, gain in zip(v, terms.gains(v), strict=True):
        D = plain.diagonal[0]
        found = minimize_scalar(
            lambda w, s=slope, D=D: s * w + 0.5 * D * w * w,
            bounds=(-0.4, 50.0),
            method="bounded",
            options={"xatol": 1e-9},
        )
        assert_allclose(gain, -found.fun, atol=1e-6)


@given(problems())
@draws(50)
def test_the_sum_of_the_largest_is_that_of_the_best_choice(problem):
    terms, _, v = problem
    gains = terms.gains(v)
    best = max(sum(gains[list(some)]) for some in combinations(range(gains.size), terms.budget))
    assert_allclose(terms.largest(gains), best, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("total", "expected"), [(1, [1 / 3, 2 / 3, 0.0]), (2, [1.0, 1.0, 0.0]), (0, [0.0, 0.0, 0.0])])
def test_shares_have_their_sum(total, expected):
    assert_allclose(shares(np.array([1.0, 2.0, 0.0]), np.zeros(3), total), expected)


def test_a_part_has_the_terms_of_its_coordinates():
    bounds = np.array([[0.0, -1.0, -2.0, -3.0], [1.0, 2.0, 3.0, 4.0]])
    whole = Perspective(np.array([2, -1, 0, 2]), np.array([1.0, 2.0, 3.0]), 2, bounds)
    part = whole.part(np.array([0, 1, 3]))
    assert part.owner.tolist() == [0, -1, 0]
    assert part.diagonal.tolist() == [3.0]
    assert part.bounds.tolist() == bounds[:, [0, 1, 3]].tolist()
    w = np.array([0.5, 9.0, -0.25])
    assert part.value(w) == whole.value(np.array([0.5, 9.0, 0.0, -0.25]))
