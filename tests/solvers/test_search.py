"""The compiled kernel against its NumPy twin: the same supports, unless two of them are equally good."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxes import bounds_of, draw_bounds
from hardthresh.core.compiled import kernel
from hardthresh.solvers.working_set import search, sweeps, tableau
from hardthresh.solvers.working_set.search import Fit, add_drop_counts, descend, forward_backward, grow, shrink
from hardthresh.solvers.working_set.tableau import Tableau
from levels import draws, slow_beyond

N = 40
ROUNDING, NEGLIGIBLE = 1e-15, 1e-10  # as shares of the largest decrease
TIE = 1e-8  # of decreases: nearly collinear columns leave half of the digits

pytestmark = pytest.mark.skipif(kernel() is None, reason="the compiled kernel was not built, or HARDTHRESH_PURE is set")

seeds = st.integers(0, 10**6)
kinds = st.sets(st.sampled_from(["duplicates", "collinear", "zeros", "scales", "blocks"]))
limits = st.sampled_from([None, "signs", "boxes"])
frees = st.integers(0, 2)


def problem(seed, m, kind, limited, free):
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
    bounds = None
    if limited == "signs":
        bounds = bounds_of(np.append(np.zeros(free), rng.integers(-1, 2, m - free)))
    if limited == "boxes":
        bounds = draw_bounds(rng, m, 1.0 / np.where(norms[rows] > 0, norms[rows], 1.0))
    start = [*range(free), *(free + rng.permutation(m - free)[: rng.integers(0, 3)])]
    given = {"chosen": start, "n_free": free, "gram_rows": rows, "bounds": bounds}
    coef = rng.standard_normal(len(start)) * rng.integers(0, 2)  # of a run from a w0, or from zero
    coef = coef / np.where(norms[rows[start]] > 0, norms[rows[start]], 1.0)
    given["coef"] = coef if bounds is None else np.clip(coef, *bounds[:, start])
    gram = X.T @ X
    return gram, X[:, rows].T @ y - gram[np.ix_(rows, rows[start])] @ given["coef"], given


@pytest.fixture(scope="module")
def numpy_only():
    """Return a function that calls another one without the kernel."""

    def call(function, *args, **options):
        with pytest.MonkeyPatch.context() as patch:
            for module in (search, sweeps, tableau):
                patch.setattr(module, "kernel", lambda: None)
            return function(*args, **options)

    return call


def tie_of(kind):
    """Return by how much decreases of different supports may differ: q falls by less than 1.

    Rounding decides between the gains of nearly collinear columns, and the moves after another choice are others: that
    happens in one of some thousand problems.
    """
    return 0.05 if "collinear" in kind else TIE


def assert_same(fit, twin, rtol=None, tie=TIE):
    """Assert the same support with equal numbers, or another one that is as good; `rtol` of the coefficients."""
    if set(fit.chosen.tolist()) != set(twin.chosen.tolist()):
        assert abs(fit.decrease - twin.decrease) <= tie
        return
    assert fit.n_free == twin.n_free
    if rtol is not None:
        order, other = np.argsort(fit.chosen), np.argsort(twin.chosen)
        size = np.abs(twin.coef).max(initial=0.0)
        np.testing.assert_allclose(fit.coef[order], twin.coef[other], rtol=rtol, atol=rtol * size)
        np.testing.assert_allclose(fit.decrease, twin.decrease, rtol=rtol)
    for number in ("decrease", "lowest_chosen_score", "lowest_cost"):  # nearly collinear columns leave half the digits
        np.testing.assert_allclose(getattr(fit, number), getattr(twin, number), rtol=1e-4, atol=1e-6)


def moved(function, given, *args, **options):
    """Return the fit of a tableau after a function that changes it."""
    gram, slope, rest = given
    start = Tableau(gram, slope, **rest)
    return Fit.of(function(start, *args, **options) or start)


@given(seeds, st.integers(4, 24), kinds, limits, frees, st.integers(0, 12))
@draws(150)
def test_growing_and_shrinking(numpy_only, seed, m, kind, limited, free, size):
    given_ = problem(seed, m, kind, limited, free)
    for function, args in ((grow, (free + size, ROUNDING)), (shrink, (free + size // 3,))):
        assert_same(moved(function, given_, *args), numpy_only(moved, function, given_, *args), tie=tie_of(kind))


@pytest.mark.parametrize(("seed", "m", "free", "size"), [(474645, 17, 0, 12), (254427, 19, 2, 7)])
def test_held_columns_have_room_to_move_again_after_all_is_computed_anew(numpy_only, seed, m, free, size):
    """The tableau had no slots for columns held at a bound when nearly collinear ones made it compute all anew."""
    given_ = problem(seed, m, {"collinear", "blocks", *(["scales"] if seed == 474645 else [])}, "boxes", free)
    fit = numpy_only(moved, grow, given_, free + size, ROUNDING)
    assert fit.decrease > 0.0


@given(seeds, st.integers(4, 24), kinds, limits, frees, st.integers(1, 8), st.sampled_from([(), (0.25,), (0.5, 1.0)]))
@draws(150)
def test_exchanges_and_add_drop_moves(numpy_only, seed, m, kind, limited, free, size, shares):
    given_ = problem(seed, m, kind, limited, free)

    def function(start):
        grow(start, free + size, ROUNDING)
        return descend(start, free + size, ROUNDING, NEGLIGIBLE, shares)

    assert_same(moved(function, given_), numpy_only(moved, function, given_), tie=tie_of(kind))


@given(
    seeds,
    st.integers(4, 24),
    kinds,
    limits,
    frees,
    st.integers(1, 8),
    st.integers(1, 3),
    st.sampled_from([(), (0.5,), (0.25, 2.0)]),
    st.sampled_from([0, 1, 10]),
)
@draws(100)
def test_all_budgets(numpy_only, seed, m, kind, limited, free, most, step, shares, replaced):
    gram, slope, rest = problem(seed, m, kind, limited, free)

    def fits():
        sizes = range(free + 1, free + most + 1, step)
        start = Tableau(gram, slope, **rest)
        counts = {size: add_drop_counts(size - free, shares) for size in sizes[::2]}
        return forward_backward(start, sizes, ROUNDING, NEGLIGIBLE, counts, replaced=replaced)

    compiled, twins = fits(), numpy_only(fits)
    assert sorted(compiled) == sorted(twins)
    for size, twin in twins.items():
        assert_same(compiled[size], twin, tie=tie_of(kind))


@slow_beyond(4)
@pytest.mark.parametrize("limited", [None, "signs", "boxes"])
@pytest.mark.parametrize("m", [1, 15, 16, 17, 63, 64, 65, 150])
def test_all_numbers_of_well_conditioned_columns(numpy_only, m, limited):
    """Vectors have 16 lanes and blocks 64 columns: what is left over counts, too."""
    rng = np.random.default_rng(m)
    X = rng.standard_normal((200, m))
    y = X @ (rng.standard_normal(m) * (rng.random(m) < 0.2)) + rng.standard_normal(200)
    bounds = bounds_of(rng.integers(-1, 2, m)) if limited == "signs" else None
    bounds = draw_bounds(rng, m, 2.0) if limited == "boxes" else bounds
    gram, slope = X.T @ X / 200, X.T @ y / 200

    def tableau():
        found = Tableau(gram, slope, bounds=bounds)
        grow(found, 12, ROUNDING)
        return descend(found, 12, ROUNDING, NEGLIGIBLE, (0.5,))

    def fits():
        counts = {size: [size, 2 * size] for size in (3, 7, 12)}
        return forward_backward(Tableau(gram, slope, bounds=bounds), range(1, 13), ROUNDING, NEGLIGIBLE, counts, 5)

    compiled, twins = fits(), numpy_only(fits)
    for size, twin in twins.items():
        assert_same(compiled[size], twin, rtol=1e-10)
    found, twin = tableau(), numpy_only(tableau)
    order, other = np.argsort(found.chosen), np.argsort(twin.chosen)
    assert_same(Fit.of(found), Fit.of(twin), rtol=1e-10)
    for of_compiled, of_twin in ((found.gains(), twin.gains()), (found.slope, twin.slope)):
        np.testing.assert_allclose(of_compiled, of_twin, atol=1e-12)
    tables = [each._table[1 : each.size + 1, each.slots :] for each in (found, twin)]
    np.testing.assert_allclose(tables[0][order], tables[1][other], atol=1e-10)


@pytest.mark.parametrize("where", ["slope", "gram"])
def test_growth_ends_where_a_gain_is_not_a_number(numpy_only, where):
    gram, slope = np.eye(20), np.ones(20)
    if where == "slope":
        slope[3] = np.nan
    else:
        gram[3] = gram[:, 3] = np.nan  # the first column that enters spoils the slope of this one
    for call in (lambda function, *args: function(*args), numpy_only):
        tableau = call(Tableau, gram, slope)
        call(grow, tableau, 4, ROUNDING)
        assert tableau.size == (0 if where == "slope" else 1)


def test_arrays_of_other_types_are_converted():
    X = np.random.default_rng(0).standard_normal((30, 8)).astype(np.float32)
    gram, slope = X.T @ X, X.T @ X[:, 0]
    rows = np.array([5, 0, 3], dtype=np.int32)
    for gram_rows, slopes in ((None, slope), (rows, slope[rows])):
        tableau = Tableau(gram, slopes, gram_rows=gram_rows)
        grow(tableau, 1, ROUNDING)
        assert tableau.chosen == [0 if gram_rows is None else 1]
    assert forward_backward(tableau, [], ROUNDING, NEGLIGIBLE) == {}


def test_a_size_below_that_of_the_free_columns():
    X = np.random.default_rng(0).standard_normal((30, 8))
    tableau = Tableau(X.T @ X, X.T @ X[:, 0], [1, 2, 3], n_free=3)
    assert forward_backward(tableau, [1], ROUNDING, NEGLIGIBLE)[1].chosen.tolist() == [1, 2, 3]
