"""The Gram tableau against least squares done anew for every set of columns."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from boxes import bounds_of, draw_bounds, least_squares
from hardthresh.solvers.working_set.tableau import Tableau
from levels import draws

N = 20
TOL = 1e-7

seeds = st.integers(0, 10**6)
sizes = st.integers(1, 9)
moves = st.lists(st.integers(0, 10**6), max_size=14)
kinds = st.sets(st.sampled_from(["duplicates", "zeros", "scales"]))


def data(seed, m, kind=frozenset()):
    """Columns and a target; some of the columns zero, equal to others up to the sign, or in other units."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, m)) @ (np.eye(m) + 0.5 * rng.random((m, m)))
    if "duplicates" in kind:
        X[:, m // 2] = rng.choice([-1.0, 1.0]) * X[:, 0]
    if "zeros" in kind:
        X[:, rng.integers(m)] = 0.0
    if "scales" in kind:
        X *= 10.0 ** rng.uniform(-5, 5, m)
    return X, X @ (rng.standard_normal(m) / units(X)) + rng.standard_normal(N)


def units(X):
    norms = np.linalg.norm(X, axis=0)
    return np.where(norms > 0, norms, 1.0)


def tableau_of(X, y, chosen=(), coef=None, signs=None, **options):
    """A tableau on arrays that nobody can write to."""
    options = {"bounds": bounds_of(signs)} | options
    chosen = list(chosen)
    coef = np.zeros(len(chosen)) if coef is None else coef
    gram, slope = X.T @ X, X.T @ (y - X[:, chosen] @ coef)
    gram.flags.writeable = slope.flags.writeable = coef.flags.writeable = False
    return Tableau(gram, slope, chosen, coef, **options)


# --- the slow twin ---------------------------------------------------------------------------------------------------


def fit(X, y, chosen):
    """Return coefficients and residual of least squares on some columns."""
    chosen, unit = list(chosen), units(X)
    coef = np.linalg.lstsq(X[:, chosen] / unit[chosen], y)[0] / unit[chosen]
    return coef, y - X[:, chosen] @ coef


def decrease(X, y, chosen):
    residual = fit(X, y, chosen)[1]
    return 0.5 * (y @ y - residual @ residual)


def independent(X, chosen):
    """Return the columns outside a set that are not combinations of it."""
    unit = X / units(X)
    left = {j: fit(unit, unit[:, j], chosen)[1] for j in range(X.shape[1]) if j not in chosen}
    return [j for j, residual in left.items() if residual @ residual > 1e-6]


def slow_exchanges(X, y, chosen, free):
    """Return by how much each exchange lowers the sum of squares; what no column can make up for counts as a loss."""
    before = decrease(X, y, chosen)
    outside = [j for j in range(X.shape[1]) if j not in chosen]
    falls = {}
    for place in range(free, len(chosen)):
        rest = [*chosen[:place], *chosen[place + 1 :]]
        falls[place, None] = decrease(X, y, rest) - before
        falls |= {(place, j): decrease(X, y, [*rest, j]) - before for j in outside}
    return falls


def assert_is_least_squares(tableau, X, y):
    """All that a tableau says is what least squares on its columns says."""
    chosen, free, unit, scale = tableau.chosen, tableau.n_free, units(X), y @ y
    near = {"rtol": TOL, "atol": TOL * scale}
    coef, residual = fit(X, y, chosen)
    before = decrease(X, y, chosen)
    assert tableau.size == len(chosen) == len(set(chosen))
    np.testing.assert_allclose(tableau.coef * unit[chosen], coef * unit[chosen], rtol=TOL, atol=TOL * scale**0.5)
    np.testing.assert_allclose(tableau.slope / unit, X.T @ residual / unit, rtol=TOL, atol=TOL * scale**0.5)
    np.testing.assert_allclose(tableau.decrease, before, **near)
    costs = [before - decrease(X, y, [j for j in chosen if j != i]) for i in chosen]
    assert np.isposinf(tableau.costs()[:free]).all()
    outside = {i: fit(X, y, [j for j in chosen if j != i])[1] @ X[:, i] for i in chosen[free:]}
    dropped_scores = [slope**2 / (2 * unit[i] ** 2) for i, slope in outside.items()]
    np.testing.assert_allclose(tableau.lowest_chosen_score(), min(dropped_scores, default=0.0), **near)
    scores = (X.T @ residual) ** 2 / (2 * unit**2)
    scores = scores[[j for j in range(X.shape[1]) if X[:, j].any()]]
    np.testing.assert_allclose(tableau.highest_score(), scores.max(initial=0.0), **near)
    np.testing.assert_allclose(tableau.costs()[free:], costs[free:], **near)
    gains = {j: decrease(X, y, [*chosen, j]) - before for j in independent(X, chosen)}
    best, gain = tableau.best_addition()
    np.testing.assert_allclose(gain, max(gains.values(), default=0.0), **near)
    if gain > TOL * scale:
        np.testing.assert_allclose(gains[best], gain, **near)
    place, j, fall = tableau.best_exchange()
    falls = slow_exchanges(X, y, chosen, free)
    np.testing.assert_allclose(fall, max(falls.values(), default=0.0), **near)
    if fall > TOL * scale:
        np.testing.assert_allclose(falls[place, j], fall, **near)


def move(tableau, X, number):
    """Make the change that a number stands for, if there is one to make."""
    addable = independent(X, tableau.chosen)
    if number % 3 and addable:
        tableau.add(addable[number % len(addable)])
    elif tableau.size > tableau.n_free:
        others = np.flatnonzero(~tableau.are_free(tableau.chosen))
        tableau.drop(int(others[number % others.size]))


# --- nearly collinear columns ----------------------------------------------------------------------------------------


def collinear(seed, kind, n=60, m=30):
    """Columns that are combinations of a few others but for a little noise."""
    rng = np.random.default_rng(seed)
    if kind == "spectra":
        grid = np.linspace(0, 1, m)
        peaks = np.exp(-(((grid - rng.random((5, 1))) / rng.uniform(0.1, 0.5, (5, 1))) ** 2))
        X = rng.random((n, 5)) @ peaks + 1e-5 * rng.standard_normal((n, m))
    elif kind == "powers":
        X = rng.random((n, 1)) ** np.arange(1, m + 1)
    else:
        X = np.repeat(rng.standard_normal((n, m // 2)), 2, axis=1) + 1e-9 * rng.standard_normal((n, m))
    X = X - X.mean(axis=0)
    X /= np.linalg.norm(X, axis=0)
    y = X[:, :3] @ rng.standard_normal(3) + 1e-3 * rng.standard_normal(n)
    return X, y


@pytest.mark.parametrize("kind", ["spectra", "powers", "duplicates"])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("signed", [False, True])
def test_after_many_changes_among_nearly_collinear_columns_nothing_is_made_up(kind, seed, signed):
    """The decrease is that of the coefficients, evaluated from scratch; they are minimal on the chosen columns."""
    X, y = collinear(seed, kind)
    rng = np.random.default_rng(seed)
    signs = rng.integers(-1, 2, X.shape[1]).astype(float) if signed else None
    tableau, sizes = tableau_of(X, y, signs=signs), []
    for _ in range(300):
        if rng.random() < 0.55 and tableau.size < 20:
            j = tableau.best_addition()[0] if rng.random() < 0.5 else int(rng.integers(X.shape[1]))
            if j not in tableau.chosen:
                tableau.add(j)
        elif tableau.size:
            tableau.drop(int(rng.integers(tableau.size)))
        residual = y - X[:, tableau.chosen] @ tableau.coef
        decrease = 0.5 * (y @ y - residual @ residual)
        assert len(set(tableau.chosen)) == tableau.size
        assert decrease - 1e-6 * (y @ y) < tableau.decrease < decrease + 1e-8 * (y @ y)
        assert np.linalg.norm(X[:, tableau.chosen].T @ residual) < 1e-5 * np.linalg.norm(y)
        assert not signed or (tableau.coef * signs[tableau.chosen] >= 0).all()
        sizes.append(tableau.size)
    assert max(sizes) >= (4 if signed else 8)


def test_a_combination_of_the_chosen_columns_is_not_let_in():
    X = np.random.default_rng(0).standard_normal((N, 4))
    X[:, 3] = X[:, 0] - 2.0 * X[:, 1]
    tableau = tableau_of(X, np.arange(float(N)), [0, 1])
    before = tableau.decrease
    tableau.add(3)
    assert (tableau.chosen, tableau.decrease) == ([0, 1], before)
    tableau.drop(1)
    tableau.add(3)
    assert tableau.chosen == [0, 3]


# --- without signs ---------------------------------------------------------------------------------------------------


@given(seeds, sizes, kinds, st.integers(0, 2), moves)
@draws(400)
def test_after_any_changes_it_is_least_squares_on_the_chosen_columns(seed, m, kind, free, changes):
    X, y = data(seed, m, kind)
    chosen = []
    while len(chosen) < free and independent(X, chosen):
        chosen.append(independent(X, chosen)[-1])
    tableau = tableau_of(X, y, chosen, n_free=len(chosen))
    assert_is_least_squares(tableau, X, y)
    for number in changes:
        move(tableau, X, number)
        assert tableau.chosen[: tableau.n_free] == chosen
    assert_is_least_squares(tableau, X, y)


@given(seeds, sizes, st.integers(0, 9))
@draws(40)
def test_a_tableau_may_start_anywhere(seed, m, size):
    X, y = data(seed, m)
    chosen = np.random.default_rng(seed).permutation(m)[:size].tolist()
    assert_is_least_squares(tableau_of(X, y, chosen), X, y)


@given(seeds, sizes, st.booleans(), st.booleans())
@draws(60)
def test_the_minimiser_on_other_columns_does_not_depend_on_where_the_tableau_is(seed, m, signed, kept_out):
    X, y = data(seed, m)
    rng = np.random.default_rng(seed)
    signs = np.where(rng.random(m) < 0.5, 1.0, 0.0) if signed else None
    start = rng.permutation(m)[: rng.integers(m + 1)].tolist()
    tableau = tableau_of(X, y, start, 3.0 * rng.random(len(start)), signs=signs)
    if kept_out:
        tableau.keep_out(int(rng.integers(m)))
    before = (tableau.chosen, tableau.coef.copy(), tableau.decrease)
    wanted = rng.permutation(m)[: rng.integers(m + 1)]
    chosen, coef = tableau.minimiser(wanted)
    assert set(chosen.tolist()) <= set(wanted.tolist())
    np.testing.assert_allclose(coef, fit(X, y, chosen)[0], rtol=TOL, atol=TOL)
    if signed:
        assert np.all(coef * signs[chosen] >= 0.0)
    else:
        np.testing.assert_array_equal(chosen, wanted)
    assert (tableau.chosen, tableau.decrease) == (before[0], before[2])
    np.testing.assert_array_equal(tableau.coef, before[1])


@given(seeds, sizes, moves)
@draws(60)
def test_only_the_decrease_depends_on_the_coefficients_at_the_start(seed, m, changes):
    """And it is counted from there."""
    X, y = data(seed, m)
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(m)[: rng.integers(m + 1)].tolist()
    coef = 3.0 * rng.standard_normal(len(chosen))
    from_zero, from_there = tableau_of(X, y, chosen), tableau_of(X, y, chosen, coef)
    gap = y - X[:, chosen] @ coef
    head_start = 0.5 * (y @ y - gap @ gap)
    for number in (0, *changes):
        move(from_zero, X, number)
        move(from_there, X, number)
        assert from_zero.chosen == from_there.chosen
        atol = TOL * (y @ y + gap @ gap)
        np.testing.assert_allclose(from_there.coef, from_zero.coef, rtol=TOL, atol=atol)
        np.testing.assert_allclose(from_there.slope, from_zero.slope, rtol=TOL, atol=atol)
        np.testing.assert_allclose(from_there.decrease, from_zero.decrease - head_start, rtol=TOL, atol=atol)


def test_nothing_is_lost_in_large_coefficients():
    """A small gap is fitted as well as if it were all there is."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 4))
    gap = X[:, 2] * 1e-3
    tableau = Tableau(X.T @ X, X.T @ gap, [0, 1], np.array([1e9, -1e9]))
    assert tableau.best_addition()[0] == 2
    tableau.add(2)
    np.testing.assert_allclose(tableau.decrease, 0.5 * gap @ gap, rtol=1e-9)
    np.testing.assert_allclose(tableau.coef[2], 1e-3, rtol=1e-9)


@given(seeds, sizes, kinds, moves)
@draws(40)
def test_dropping_is_the_inverse_of_adding(seed, m, kind, changes):
    X, y = data(seed, m, kind)
    tableau = tableau_of(X, y)
    for number in changes:
        move(tableau, X, number)
    before = tableau.copy()
    for j in independent(X, tableau.chosen):
        tableau.add(j)
        assert tableau.chosen == [*before.chosen, j]
        tableau.drop(tableau.size - 1)
        assert tableau.chosen == before.chosen
        assert_is_least_squares(tableau, X, y)


def test_the_last_column_takes_the_place_of_one_that_leaves():
    X, y = data(0, 6)
    tableau = tableau_of(X, y, [4, 1, 3, 0])
    tableau.drop(1)
    assert tableau.chosen == [4, 0, 3]
    tableau.drop(2)
    assert tableau.chosen == [4, 0]
    assert_is_least_squares(tableau, X, y)


@given(seeds, sizes, moves, moves)
@draws(40)
def test_a_copy_is_independent(seed, m, first, second):
    X, y = data(seed, m)
    tableau = tableau_of(X, y)
    for number in first:
        move(tableau, X, number)
    twin = tableau.copy()
    left, chosen, fallen = twin.coef.copy(), list(twin.chosen), twin.decrease
    for number in second:
        move(tableau, X, number)
    assert twin.chosen == chosen
    assert twin.decrease == fallen
    np.testing.assert_array_equal(twin.coef, left)
    assert_is_least_squares(twin, X, y)
    for number in second:
        move(twin, X, number)
    assert twin.chosen == tableau.chosen
    np.testing.assert_array_equal(twin.coef, tableau.coef)
    np.testing.assert_array_equal(twin.slope, tableau.slope)


def test_many_additions_keep_their_precision():
    """Room is made several times over, and what is added can all be taken away again."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, 60)), rng.standard_normal(120)
    tableau = tableau_of(X, y)
    for j in rng.permutation(60):
        tableau.add(int(j))
    coef, residual = fit(X, y, tableau.chosen)
    np.testing.assert_allclose(tableau.coef, coef, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(tableau.slope, X.T @ residual, atol=1e-9)
    assert tableau.best_addition()[1] == 0.0
    while tableau.size:
        tableau.drop(int(rng.integers(tableau.size)))
    np.testing.assert_allclose(tableau.slope, X.T @ y, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(tableau.decrease, 0.0, atol=1e-9)


@given(seeds, sizes, kinds, moves)
@draws(50)
def test_a_tableau_about_some_columns_is_that_of_their_block(seed, m, kind, changes):
    X, y = data(seed, 2 * m, kind)
    columns = np.random.default_rng(seed).permutation(2 * m)[:m]
    chosen, coef = list(range(m // 2)), np.linspace(-1.0, 1.0, m // 2)
    slope = X[:, columns].T @ (y - X[:, columns[chosen]] @ coef)
    some = Tableau(X.T @ X, slope, chosen, coef, gram_rows=columns)
    block = Tableau((X.T @ X)[np.ix_(columns, columns)], slope, chosen, coef)
    for number in changes:
        move(some, X[:, columns], number)
        move(block, X[:, columns], number)
    assert some.chosen == block.chosen
    for name in ("coef", "slope", "decrease"):
        np.testing.assert_array_equal(getattr(some, name), getattr(block, name))
    assert some.best_exchange() == block.best_exchange()


def test_combinations_of_the_chosen_columns_bring_nothing():
    X, y = data(1, 5)
    X[:, 3] = X[:, 0] - 2.0 * X[:, 1]
    X[:, 4] = 0.0
    tableau = tableau_of(X, y, [0, 1])
    best, gain = tableau.best_addition()
    assert best == 2
    assert gain > 0.0
    tableau.add(2)
    assert tableau.best_addition()[1] == 0.0


@given(seeds, sizes, st.integers(-30, 30), st.integers(-30, 30))
@draws(30)
def test_units_do_not_matter(seed, m, column_unit, target_unit):
    """Powers of two, so that rounding is the same."""
    X, y = data(seed, m)
    unit = 2.0 ** (column_unit * np.random.default_rng(seed).integers(-1, 2, m))
    scaled, one = tableau_of(X * unit, y * 2.0**target_unit), tableau_of(X, y)
    for _ in range(m):
        for tableau in (one, scaled):
            tableau.add(tableau.best_addition()[0])
        assert one.chosen == scaled.chosen
        assert one.best_exchange()[:2] == scaled.best_exchange()[:2]
        np.testing.assert_allclose(scaled.decrease, one.decrease * 4.0**target_unit, rtol=1e-12)


@pytest.mark.parametrize("signs", [None, np.ones(5)])
def test_of_columns_that_complete_a_perfect_fit_the_most_independent_is_added_wherever_it_is(signs):
    X = np.eye(3)[:, [0, 1, 0, 1, 2]] * [2.0, 3.0, 1.0, 1.0, 0.5]
    X[2] = [0.0, 0.0, 5e-3, 0.4, 0.5]  # 2 and 3 also reach the third row, but the first two make up most of them
    y = np.array([1.0, 1.0, 1.0])
    for t in range(20):
        order = np.random.default_rng(t).permutation(5)
        first = [int(np.flatnonzero(order == j)[0]) for j in (0, 1)]
        tableau = tableau_of(X[:, order], y, first, signs=signs)
        j, gain = tableau.best_addition()
        assert order[j] == 4
        assert gain == pytest.approx(0.5)


def test_nothing_to_choose_from():
    tableau = Tableau(np.empty((0, 0)), np.empty(0))
    assert tableau.best_addition() == (0, 0.0)
    assert tableau.best_exchange() == (0, 0, 0.0)
    assert tableau.costs().shape == tableau.coef.shape == tableau.slope.shape == (0,)
    assert tableau.decrease == 0.0


def test_free_columns_are_never_offered_to_leave():
    X, y = data(2, 6)
    tableau = tableau_of(X, y, [5, 2], n_free=2)
    assert tableau.best_exchange() == (0, 0, 0.0)
    assert np.isposinf(tableau.costs()).all()
    tableau.add(0)
    assert tableau.best_exchange()[0] == 2


# --- with signs ------------------------------------------------------------------------------------------------------


def signs_of(seed, m):
    return np.random.default_rng(seed).integers(-1, 2, m)


def assert_keeps_the_bounds(tableau):
    lower, upper = tableau.bounds[:, tableau.chosen]
    assert ((lower <= tableau.coef) & (tableau.coef <= upper)).all()


@given(seeds, sizes, kinds, moves)
@draws(200)
def test_signs_are_kept_by_every_change(seed, m, kind, changes):
    X, y = data(seed, m, kind)
    tableau = tableau_of(X, y, signs=signs_of(seed, m))
    for number in changes:
        chosen = list(tableau.chosen)
        move(tableau, X, number)
        assert_keeps_the_bounds(tableau)
        assert len(set(tableau.chosen) - set(chosen)) <= 1
        coef, residual = fit(X, y, tableau.chosen)
        unit = units(X)
        atol = TOL * (y @ y) ** 0.5
        np.testing.assert_allclose(tableau.coef * unit[tableau.chosen], coef * unit[tableau.chosen], TOL, atol)
        np.testing.assert_allclose(tableau.slope / unit, X.T @ residual / unit, rtol=TOL, atol=atol)
        np.testing.assert_allclose(tableau.decrease, decrease(X, y, tableau.chosen), rtol=TOL, atol=atol**2)


@given(seeds, sizes, kinds)
@draws(60)
def test_adding_a_column_never_loses_anything(seed, m, kind):
    """Lawson and Hanson: also where it pushes others out; one of the wrong sign leaves at once."""
    X, y = data(seed, m, kind)
    signs = signs_of(seed, m)
    tableau = tableau_of(X, y, signs=signs)
    rng = np.random.default_rng(seed + 1)
    for _ in range(3 * m):
        addable = independent(X, tableau.chosen)
        if not addable:
            break
        j = addable[rng.integers(len(addable))]
        helps = tableau.slope[j] * signs[j] >= 0
        before = tableau.decrease
        tableau.add(j)
        assert tableau.decrease >= before - 1e-12 * (y @ y)
        assert (j in tableau.chosen) == helps


@given(seeds, sizes, kinds)
@draws(60)
def test_only_allowed_slopes_count_as_gains(seed, m, kind):
    X, y = data(seed, m, kind)
    signs = signs_of(seed, m)
    tableau = tableau_of(X, y, signs=signs)
    for _ in range(2 * m):
        before = tableau.decrease
        gains = {
            j: decrease(X, y, [*tableau.chosen, j]) - before
            for j in independent(X, tableau.chosen)
            if tableau.slope[j] * signs[j] >= 0
        }
        j, gain = tableau.best_addition()
        np.testing.assert_allclose(gain, max(gains.values(), default=0.0), rtol=TOL, atol=TOL * (y @ y))
        if not gain > TOL * (y @ y):
            break
        tableau.add(j)
        assert tableau.decrease >= before


@given(seeds, sizes, kinds)
@draws(60)
def test_with_all_signs_positive_it_is_non_negative_least_squares(seed, m, kind):
    X, y = data(seed, m, kind)
    unit = units(X)
    tableau = tableau_of(X, y, signs=np.ones(m, dtype=int))
    while tableau.best_addition()[1] > 1e-12 * (y @ y):
        tableau.add(tableau.best_addition()[0])
        coef, rest = nnls(X[:, tableau.chosen] / unit[tableau.chosen], y)
        np.testing.assert_allclose(tableau.coef * unit[tableau.chosen], coef, rtol=TOL, atol=TOL * (y @ y) ** 0.5)
        np.testing.assert_allclose(tableau.decrease, 0.5 * (y @ y - rest**2), rtol=TOL, atol=TOL * (y @ y))
    everything = nnls(X / unit, y)[1]  # where no column helps any more, the rest of the columns may as well be there
    np.testing.assert_allclose(tableau.decrease, 0.5 * (y @ y - everything**2), rtol=TOL, atol=1e-6 * (y @ y))


@given(seeds, st.integers(3, 9))
@draws(200)
def test_a_start_from_feasible_coefficients_is_at_least_as_good(seed, m):
    X, y = data(seed, m)
    rng, signs = np.random.default_rng(seed), signs_of(seed, m)
    signs = np.where(rng.random(m) < 0.7, np.where(signs == 0, 1, signs), 0)  # several at once are to leave
    chosen = rng.permutation(m)[: rng.integers(2, m + 1)]
    coef = np.where(signs[chosen] == 0, rng.standard_normal(chosen.size), signs[chosen] * rng.random(chosen.size))
    tableau = tableau_of(X, y, chosen.tolist(), coef, signs=signs)
    gap = y - X[:, chosen] @ coef
    gain = decrease(X, y, tableau.chosen) - 0.5 * (y @ y - gap @ gap)
    assert tableau.decrease >= 0.0
    np.testing.assert_allclose(tableau.decrease, gain, rtol=TOL, atol=TOL * (y @ y + gap @ gap))
    assert_keeps_the_bounds(tableau)
    assert set(tableau.chosen) <= set(chosen.tolist())
    np.testing.assert_allclose(tableau.coef, fit(X, y, tableau.chosen)[0], rtol=TOL, atol=TOL * (y @ y) ** 0.5)


@pytest.mark.parametrize("seed", [0, 88, *range(1, 10)])
def test_what_is_left_after_dropping_is_at_least_as_good_as_before(seed):
    """Each of the others goes on from its own coefficient, also the one that has moved: at 88 nothing else will do."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 8)) + 2 * rng.standard_normal((N, 1)) * rng.choice([-1, 1], 8)
    y = X @ (3 * rng.standard_normal(8)) + rng.standard_normal(N)
    whole = tableau_of(X, y, signs=rng.choice([-1, 1], 8))
    while whole.best_addition()[1] > 1e-12 * (y @ y):
        whole.add(whole.best_addition()[0])
    for place in range(whole.size):
        rest = np.delete(np.arange(whole.size), place)
        gap = y - X[:, np.array(whole.chosen)[rest]] @ whole.coef[rest]
        tableau = whole.copy()
        tableau.drop(place)
        assert tableau.decrease >= 0.5 * (y @ y - gap @ gap) - 1e-12 * (y @ y)
        assert_keeps_the_bounds(tableau)


@given(seeds, st.integers(3, 7))
@draws(40)
def test_free_columns_have_no_sign_and_stay(seed, m):
    X, y = data(seed, m)
    signs = np.ones(m, dtype=int)
    signs[[1, 2]] = 0
    tableau = tableau_of(X, y, [1, 2], n_free=2, signs=signs)
    while tableau.best_addition()[1] > 1e-12 * (y @ y):
        tableau.add(tableau.best_addition()[0])
    assert tableau.chosen[:2] == [1, 2]
    best = max(
        decrease(X, y, [1, 2, *others])
        for size in range(m - 1)
        for others in combinations([j for j in range(m) if j not in (1, 2)], size)
        if (fit(X, y, [1, 2, *others])[0][2:] >= 0).all()
    )
    np.testing.assert_allclose(tableau.decrease, best, rtol=1e-9)


# --- with bounds -----------------------------------------------------------------------------------------------------


def boxed(seed, m, kind, free=()):
    """Columns, a target, and bounds of all kinds, in units in which the coefficients are about one."""
    X, y = data(seed, m, kind)
    rng, unit = np.random.default_rng((seed, 3)), np.where(units(X) > 0, units(X), 1.0)
    return X, y, draw_bounds(rng, m, np.linalg.norm(y) / unit)


@given(seeds, sizes, kinds, moves, st.integers(0, 2))
@draws(150)
def test_after_any_changes_it_is_the_minimum_within_the_bounds(seed, m, kind, changes, free):
    """Also of free columns, which stay although a bound of zero holds them; SciPy finds each minimum from scratch."""
    X, y, bounds = boxed(seed, m, kind)
    tableau = tableau_of(X, y, range(min(free, m)), n_free=min(free, m), bounds=bounds)
    always = set(tableau.chosen)
    for number in changes:
        chosen = list(tableau.chosen)
        move(tableau, X, number)
        assert_keeps_the_bounds(tableau)
        assert len(set(tableau.chosen) - set(chosen)) <= 1
        assert always <= set(tableau.chosen)
        unit = units(X)[tableau.chosen]
        value = least_squares(X[:, tableau.chosen] / unit, y, bounds[:, tableau.chosen] * unit)[1]
        np.testing.assert_allclose(tableau.decrease, 0.5 * (y @ y) - value, rtol=TOL, atol=TOL * (y @ y))
        gap = y - X[:, tableau.chosen] @ tableau.coef
        np.testing.assert_allclose(0.5 * (gap @ gap), value, rtol=TOL, atol=TOL * (y @ y))


@given(seeds, st.integers(3, 9), kinds)
@draws(60)
def test_gains_and_exchanges_are_exact_if_no_other_column_meets_a_bound(seed, m, kind):
    """The column that comes stops at its bound; others may go anywhere, and held ones stay, in the model of a gain."""
    X, y, bounds = boxed(seed, m, kind)
    tableau = tableau_of(X, y, bounds=bounds)
    for _ in range(m // 2):
        tableau.add(tableau.best_addition()[0])
    coef = dict(zip(tableau.chosen, tableau.coef.tolist(), strict=True))
    held = [j for j in coef if coef[j] in bounds[:, j]]

    def value(others, j):
        """The minimum where j is within its bounds, others have none, and those at a bound stay there."""
        rest = y - sum((coef[i] * X[:, i] for i in others if i in held), np.zeros(N))
        free = [i for i in others if i not in held]
        Z = np.column_stack([X[:, free], X[:, j]]) / units(X)[[*free, j]]
        box = np.array([[-np.inf] * len(free) + [bounds[0, j]], [np.inf] * len(free) + [bounds[1, j]]])
        return least_squares(Z, rest, box * units(X)[[*free, j]])[1]

    here = 0.5 * (y @ y) - tableau.decrease
    gains, atol = tableau.gains(), TOL * (y @ y)
    for j in independent(X, tableau.chosen):
        np.testing.assert_allclose(gains[j], here - value(tableau.chosen, j), rtol=TOL, atol=atol)
    slot, j, fall = tableau.best_exchange()
    if tableau.size and j in independent(X, tableau.chosen):
        others = [i for i in tableau.chosen if i != tableau.chosen[slot]]
        np.testing.assert_allclose(fall, here - value(others, j), rtol=1e-6, atol=1e-6 * (y @ y))


def test_a_held_column_moves_again_once_the_bound_no_longer_stops_it():
    """While only the first of two opposite columns is there its bound stops it; the other one pulls it back."""
    X = np.array([[1.0, -0.9], [0.0, 1.0], [0.0, 0.0]])
    y = X @ [0.5, -0.9] + [0.0, 0.0, 1.0]
    tableau = tableau_of(X, y, bounds=np.array([[-1.0, -1.0], [1.0, 1.0]]))
    tableau.add(0)
    assert tableau.coef.tolist() == [1.0]
    tableau.add(1)
    order = np.argsort(tableau.chosen)
    np.testing.assert_allclose(tableau.coef[order], [0.5, -0.9], rtol=1e-12)


def test_a_free_column_is_held_at_zero_and_stays():
    X, y = np.eye(3), np.array([-1.0, 2.0, 1.0])
    tableau = tableau_of(X, y, [0], n_free=1, bounds=np.array([[0.0, 0.0, 0.0], np.full(3, np.inf)]))
    assert tableau.chosen == [0]
    assert tableau.coef.tolist() == [0.0]
    tableau.add(1)
    assert sorted(tableau.chosen) == [0, 1]
    assert tableau.costs()[tableau.chosen.index(0)] == np.inf


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_best_exchange_has_the_allowed_sign(sign):
    """Orthogonal columns: an exchange is good for the columns of the right sign only."""
    tableau = tableau_of(np.eye(4), np.array([1.0, 3.0, -4.0, 2.0]) * sign, signs=np.full(4, sign))
    tableau.add(0)
    place, j, fall = tableau.best_exchange()
    assert (place, j) == (0, 1)
    np.testing.assert_allclose(fall, 0.5 * (9.0 - 1.0))


def test_a_diagonal_that_rounding_has_eaten_keeps_its_column():
    """Nothing becomes NaN, and nobody thinks that the column costs nothing."""
    X, y = data(0, 6)
    tableau = tableau_of(X, y, [0, 1, 2])
    tableau._table[2, 1] = -1e-20
    assert (tableau.costs() > 0).all()
    assert tableau.costs()[1] == np.inf
    place, _, fall = tableau.best_exchange()
    assert place != 1
    assert np.isfinite(fall)
    assert np.isfinite(tableau.lowest_chosen_score())


@pytest.mark.parametrize("factor", [1.0, -3.0])
def test_the_first_of_copies_replaces_a_column(factor):
    """Whatever rounding says of their gains."""
    X, y = data(0, 8)
    X[:, 6] = factor * X[:, 2]
    y = y + 50.0 * X[:, 2]
    for error in (-1e-15, 1e-15):
        gram, slope = X.T @ X, X.T @ y
        slope[6] *= 1.0 + error
        tableau = Tableau(gram, slope, [0])
        assert tableau.best_exchange()[:2] == (0, 2)
        assert tableau.exchanges(1)[0][:2] == (0, 2)
