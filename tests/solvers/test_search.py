"""The compiled kernel against its NumPy twin: the same supports, unless two of them are equally good."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.core.compiled import kernel
from hardthresh.solvers.working_set import search, tableau
from hardthresh.solvers.working_set.search import Fit, descend, forward_backward, grow, shrink
from hardthresh.solvers.working_set.tableau import Tableau
from levels import draws

N = 40
ROUNDING, NEGLIGIBLE = 1e-15, 1e-10  # as shares of the largest decrease
TIE = 1e-12

pytestmark = pytest.mark.skipif(kernel() is None, reason="the compiled kernel was not built, or HARDTHRESH_PURE is set")

seeds = st.integers(0, 10**6)
kinds = st.sets(st.sampled_from(["duplicates", "collinear", "zeros", "scales", "blocks"]))
with_signs = st.booleans()
frees = st.integers(0, 2)


def problem(seed, m, kind, signed, free):
    """Return the arguments of a tableau of m columns, chosen out of a larger Gram matrix, and the scale of q."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 2 * m))
    if "blocks" in kind:
        X += 4.0 * rng.standard_normal((N, 3))[:, rng.integers(3, size=2 * m)]
    if "collinear" in kind:
        X[:, : m // 2] = X[:, :1] + 10.0 ** rng.uniform(-7, -2) * X[:, : m // 2]
    if "duplicates" in kind:
        X[:, m // 3] = rng.choice([-1.0, 2.0]) * X[:, -1]
    if "zeros" in kind:
        X[:, rng.integers(2 * m)] = 0.0
    if "scales" in kind:
        X *= 10.0 ** rng.uniform(-6, 6, 2 * m)
    norms = np.linalg.norm(X, axis=0)
    y = X @ (rng.standard_normal(2 * m) * (rng.random(2 * m) < 0.3) / np.where(norms > 0, norms, 1.0))
    y += 0.3 * np.linalg.norm(y) / np.sqrt(N) * rng.standard_normal(N)
    y /= np.linalg.norm(y) or 1.0
    rows = np.sort(rng.choice(2 * m, m, replace=False))
    signs = None
    if signed:
        signs = rng.integers(-1, 2, m)
        signs[:free] = 0
    start = [*range(free), *(free + rng.permutation(m - free)[: rng.integers(0, 3)])]
    given = {"chosen": start, "n_free": free, "gram_rows": rows, "signs": signs}
    return X.T @ X, X[:, rows].T @ y, given


@pytest.fixture(scope="module")
def numpy_only():
    """Return a function that calls another one without the kernel."""

    def call(function, *args, **options):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(search, "kernel", lambda: None)
            patch.setattr(tableau, "kernel", lambda: None)
            return function(*args, **options)

    return call


def assert_same(fit, twin):
    """Assert the same support with equal numbers, or another one that is as good."""
    if set(fit.chosen.tolist()) != set(twin.chosen.tolist()):
        assert abs(fit.decrease - twin.decrease) <= TIE
        return
    assert fit.n_free == twin.n_free
    for number in ("decrease", "lowest_chosen_score", "lowest_cost"):  # nearly collinear columns leave half the digits
        np.testing.assert_allclose(getattr(fit, number), getattr(twin, number), rtol=1e-4, atol=1e-6)


def moved(function, given, *args, **options):
    """Return the fit of a tableau after a function that changes it."""
    gram, slope, rest = given
    start = Tableau(gram, slope, **rest)
    return Fit.of(function(start, *args, **options) or start)


@given(seeds, st.integers(4, 24), kinds, with_signs, frees, st.integers(0, 12))
@draws(150)
def test_growing_and_shrinking(numpy_only, seed, m, kind, signed, free, size):
    given_ = problem(seed, m, kind, signed, free)
    for function, args in ((grow, (free + size, ROUNDING)), (shrink, (free + size // 3,))):
        assert_same(moved(function, given_, *args), numpy_only(moved, function, given_, *args))


@given(
    seeds, st.integers(4, 24), kinds, with_signs, frees, st.integers(1, 8), st.sampled_from([(), (0.25,), (0.5, 1.0)])
)
@draws(150)
def test_exchanges_and_add_drop_moves(numpy_only, seed, m, kind, signed, free, size, shares):
    given_ = problem(seed, m, kind, signed, free)

    def function(start):
        grow(start, free + size, ROUNDING)
        return descend(start, free + size, ROUNDING, NEGLIGIBLE, shares)

    assert_same(moved(function, given_), numpy_only(moved, function, given_))


@given(
    seeds,
    st.integers(4, 24),
    kinds,
    with_signs,
    frees,
    st.integers(1, 8),
    st.integers(0, 8),
    st.sampled_from([(), (0.5,)]),
)
@draws(100)
def test_all_budgets(numpy_only, seed, m, kind, signed, free, most, further, shares):
    gram, slope, rest = problem(seed, m, kind, signed, free)

    def fits():
        sizes = range(free + 1, free + most + 1)
        start = Tableau(gram, slope, **rest)
        return forward_backward(start, sizes, free + most + further, ROUNDING, NEGLIGIBLE, shares)

    compiled, twins = fits(), numpy_only(fits)
    assert sorted(compiled) == sorted(twins)
    for size, twin in twins.items():
        assert_same(compiled[size], twin)
