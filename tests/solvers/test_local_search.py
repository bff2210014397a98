"""Walks and exchanges on a tableau against the same done with least squares from scratch."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxes import bounds_of
from hardthresh.solvers.local_search import add_drop, descend, forward_backward, grow, replace, shrink
from hardthresh.solvers.working_set.tableau import Tableau
from levels import draws

N = 30
LEAST = 1e-12
NEGLIGIBLE = 1e-9

seeds = st.integers(0, 10**6)
widths = st.integers(2, 10)
budgets = st.integers(0, 6)
frees = st.integers(0, 2)


def data(seed, m):
    """Correlated columns, so that greedy choices are often wrong; columns and target of unit scale."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, m)) + rng.uniform(0.5, 3.0) * rng.standard_normal((N, 1)) * rng.choice([-1, 1], m)
    X /= np.linalg.norm(X, axis=0)
    y = X @ (rng.standard_normal(m) * 3.0) + 0.3 * rng.standard_normal(N)
    return X, y / np.linalg.norm(y)


def tableau_of(X, y, chosen=(), free=0, signs=None):
    gram, target = X.T @ X, X.T @ y
    gram.flags.writeable = target.flags.writeable = False
    return Tableau(gram, target, list(chosen), n_free=free, bounds=bounds_of(signs))


def slow_decrease(X, y, chosen):
    residual = y - X[:, chosen] @ np.linalg.lstsq(X[:, chosen], y)[0]
    return 0.5 * (y @ y - residual @ residual)


def outside(X, chosen):
    return [j for j in range(X.shape[1]) if j not in chosen]


def slow_grow(X, y, chosen, size):
    chosen = list(chosen)
    while len(chosen) < min(size, X.shape[1]):
        chosen.append(max(outside(X, chosen), key=lambda j: slow_decrease(X, y, [*chosen, j])))
    return chosen


def slow_shrink(X, y, chosen, size, free):
    chosen = list(chosen)
    while len(chosen) > max(size, free):
        leaving = max(chosen[free:], key=lambda i: slow_decrease(X, y, [j for j in chosen if j != i]))
        chosen.remove(leaving)
    return chosen


def best_exchange(X, y, chosen, free):
    """Return the best that one exchange leads to."""
    return max(
        (slow_decrease(X, y, [*(c for c in chosen if c != i), j]) for i in chosen[free:] for j in outside(X, chosen)),
        default=0.0,
    )


# --- grow and shrink -------------------------------------------------------------------------------------------------


@given(seeds, widths, budgets, frees)
@draws(60)
def test_growing_is_forward_selection(seed, m, size, free):
    X, y = data(seed, m)
    tableau = tableau_of(X, y, range(free), free)
    grow(tableau, size, LEAST)
    assert tableau.chosen == slow_grow(X, y, range(free), size)


@given(seeds, widths, budgets, frees)
@draws(60)
def test_shrinking_is_backward_elimination(seed, m, size, free):
    X, y = data(seed, m)
    chosen = np.r_[np.arange(free), free + np.random.default_rng(seed).permutation(m - free)].tolist()
    tableau = tableau_of(X, y, chosen, free)
    shrink(tableau, size)
    assert set(tableau.chosen) == set(slow_shrink(X, y, chosen, size, free))
    assert tableau.size == max(min(size, m), free)


def test_growing_stops_where_nothing_helps_enough():
    tableau = tableau_of(np.eye(4), np.array([3.0, 1.0, 0.1, 0.0]))
    grow(tableau, 4, 0.4)
    assert tableau.chosen == [0, 1]
    grow(tableau, 4, 0.5 * 0.1**2)  # exactly that much does not count as more
    assert tableau.chosen == [0, 1]
    grow(tableau, 4, 0.0)
    assert tableau.chosen == [0, 1, 2]


def test_growing_to_a_size_it_has_changes_nothing():
    X, y = data(0, 5)
    tableau = tableau_of(X, y, [3, 1])
    grow(tableau, 2, LEAST)
    grow(tableau, 0, LEAST)
    shrink(tableau, 2)
    shrink(tableau, 7)
    assert tableau.chosen == [3, 1]


# --- exchanges -------------------------------------------------------------------------------------------------------


@given(seeds, widths, budgets, frees)
@draws(100)
def test_descent_ends_where_no_single_exchange_helps(seed, m, size, free):
    X, y = data(seed, m)
    size = min(max(size, free), m)
    chosen = np.r_[np.arange(free), free + np.random.default_rng(seed).permutation(m - free)].tolist()[:size]
    start = tableau_of(X, y, chosen, free)
    end = descend(start, size, LEAST, NEGLIGIBLE)
    assert start.chosen == chosen
    assert end.chosen[:free] == chosen[:free]
    assert end.size == size
    np.testing.assert_allclose(end.decrease, slow_decrease(X, y, end.chosen), rtol=1e-8)
    assert end.decrease >= start.decrease
    assert best_exchange(X, y, end.chosen, free) <= end.decrease + 2 * NEGLIGIBLE


def test_descent_repairs_what_greed_got_wrong():
    """The sum of two columns looks best at first; the two of them together are the target."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 8))
    X[:, 0] = X[:, 1] + X[:, 2] + rng.standard_normal(N)
    y = X[:, 1] + X[:, 2]
    tableau = tableau_of(X, y)
    grow(tableau, 2, LEAST)
    assert tableau.chosen[0] == 0
    assert sorted(descend(tableau, 2, LEAST, NEGLIGIBLE).chosen) == [1, 2]


@given(seeds, widths, budgets)
@draws(100)
def test_descent_with_signs_keeps_them_and_never_loses(seed, m, size):
    X, y = data(seed, m)
    signs = np.random.default_rng(seed).integers(-1, 2, m)
    start = tableau_of(X, y, signs=signs)
    grow(start, size, LEAST)
    before = start.decrease
    end = descend(start, size, LEAST, NEGLIGIBLE)
    assert start.decrease == before <= end.decrease
    assert end.size <= size
    assert (end.coef * signs[end.chosen] >= 0).all()
    np.testing.assert_allclose(end.decrease, slow_decrease(X, y, end.chosen), rtol=1e-8, atol=1e-12)


# --- forward-backward paths, add-drop moves ----------------------------------------------------------------------


@given(seeds, st.integers(4, 12), frees, st.integers(1, 4))
@draws(50)
def test_the_largest_size_descends_from_forward_selection(seed, m, free, budget):
    X, y = data(seed, m)
    size = free + budget
    if size > m:
        return
    tableau = tableau_of(X, y, range(free), free)
    paths = forward_backward(tableau, {size}, LEAST, NEGLIGIBLE)
    assert tableau.chosen == list(range(free))
    assert [*paths] == [size]
    assert paths[size].size == size
    assert paths[size].chosen[:free] == list(range(free))
    grown = slow_grow(X, y, range(free), size)
    end = descend(tableau_of(X, y, grown, free), size, LEAST, NEGLIGIBLE)
    np.testing.assert_allclose(paths[size].decrease, end.decrease, rtol=0, atol=2 * NEGLIGIBLE)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shares", [(), (2,)], ids=["no moves", "moves"])
@pytest.mark.parametrize("with_signs", [False, True], ids=["no signs", "signs"])
def test_sweeps_end_where_no_neighbour_leads_to_a_better_choice(seed, shares, with_signs):
    X, y = data(seed, 20)
    signs = np.random.default_rng(seed).integers(-1, 2, 20) * (np.arange(20) > 1) if with_signs else None
    tableau = tableau_of(X, y, [0, 1], 2, signs)
    sizes = range(3, 12, 2)
    found = forward_backward(tableau, sizes, LEAST, NEGLIGIBLE, dict.fromkeys(sizes, shares))
    assert sorted(found) == [*sizes]
    for size in sizes:
        start = found[size]
        assert start.size <= size
        for neighbour in (size - 2, size + 2):
            if neighbour in found:
                there = start.copy()
                shrink(there, neighbour)
                grow(there, neighbour, LEAST)
                there = descend(there, neighbour, LEAST, NEGLIGIBLE)
                assert there.decrease <= found[neighbour].decrease + 2 * NEGLIGIBLE


@pytest.mark.slow
def test_moves_are_made_at_the_sizes_that_have_them():
    """Add-drop moves, and then replacements, lower q on some tables, and raise it nowhere."""
    lower = [0, 0]
    for seed in range(30):
        X, y = data(seed, 60)
        ends = [
            forward_backward(tableau_of(X, y), {8}, LEAST, NEGLIGIBLE, counts, replaced)[8].decrease
            for counts, replaced in (({}, 16), ({8: [4]}, 0), ({8: [4]}, 16))
        ]
        assert ends[0] <= ends[1] + NEGLIGIBLE
        assert ends[1] <= ends[2] + NEGLIGIBLE
        for i in range(2):
            lower[i] += ends[i + 1] > ends[i] + 1e-6
    assert min(lower) >= 3


@pytest.mark.slow
def test_sizes_that_are_searched_together_find_more():
    """Than searches of one size, on many more tables than less."""
    more = less = 0
    for seed in range(20):
        X, y = data(seed, 60)
        tableau, sizes = tableau_of(X, y), range(2, 16)
        together = forward_backward(tableau, sizes, LEAST, NEGLIGIBLE)
        for size in sizes:
            gain = together[size].decrease - forward_backward(tableau, {size}, LEAST, NEGLIGIBLE)[size].decrease
            more += gain > 1e-6
            less += gain < -1e-6
    assert more > 2 * less  # 108 and 30


@pytest.mark.slow
def test_a_choice_of_a_wanted_size_is_where_its_search_begins():
    """The best one of all stays."""
    for seed in range(20):
        X, y = data(seed, 12)
        best = max((tableau_of(X, y, chosen) for chosen in combinations(range(12), 3)), key=lambda each: each.decrease)
        found = forward_backward(best, {3}, LEAST, NEGLIGIBLE)[3]
        assert set(found.chosen) == set(best.chosen)


def test_forward_backward_where_the_columns_run_out():
    """Three columns say all: every size gets an answer, none of more columns than help."""
    X, y = np.eye(5), np.array([3.0, 2.0, 1.0, 0.0, 0.0])
    paths = forward_backward(tableau_of(X, y), {1, 2, 3, 4, 5}, LEAST, NEGLIGIBLE)
    for size in range(1, 6):
        assert sorted(paths[size].chosen) == list(range(min(size, 3)))


@given(seeds, st.integers(3, 12), frees, st.integers(1, 5), st.integers(1, 9), st.booleans())
@draws(60)
def test_replacements_end_where_none_helps(seed, m, free, budget, count, with_signs):
    X, y = data(seed, m)
    if free + budget > m:
        return
    signs = np.random.default_rng(seed).integers(-1, 2, m) * (np.arange(m) >= free) if with_signs else None
    size, start = free + budget, tableau_of(X, y, range(free), free, signs)
    grow(start, size, LEAST)
    before = start.decrease
    end = replace(start, size, count, LEAST, NEGLIGIBLE)
    assert start.decrease == before <= end.decrease
    assert end.size <= size
    assert end.chosen[:free] == list(range(free))
    cheapest = [end.chosen[free + slot] for slot in np.argsort(end.costs()[free:], kind="stable")[:count]]
    for column in cheapest:  # on the data without this column
        others = [j for j in range(m) if j != column]
        chosen = [others.index(j) for j in end.chosen if j != column]
        there = tableau_of(X[:, others], y, chosen, free, None if signs is None else signs[others])
        grow(there, size, LEAST)
        there = descend(there, size, LEAST, NEGLIGIBLE)
        assert there.decrease <= end.decrease + 2 * NEGLIGIBLE


def test_a_column_that_is_kept_out_stays_outside_when_the_tableau_is_computed_anew():
    X, y = data(0, 6)
    tableau = tableau_of(X, y)
    best, _ = tableau.best_addition()
    tableau.keep_out(best)
    anew = tableau.copy()
    anew._compute(np.empty(0, dtype=int))
    for other in (tableau, anew, tableau.copy()):
        assert other.gains()[best] == 0.0
        grow(other, 5, LEAST)
        assert best not in other.chosen
    tableau.keep_out(None)
    grow(tableau, 6, LEAST)
    assert best in tableau.chosen


@pytest.mark.slow
def test_replacements_find_more():
    """Than exchanges and add-drop moves, on some tables, and never less."""
    more = 0
    for seed in range(30):
        X, y = data(seed, 60)
        start = tableau_of(X, y)
        grow(start, 8, LEAST)
        moved = add_drop(descend(start, 8, LEAST, NEGLIGIBLE), 8, (2, 4, 8), LEAST, NEGLIGIBLE)
        gain = replace(moved, 8, 16, LEAST, NEGLIGIBLE).decrease - moved.decrease
        assert gain >= 0.0
        more += gain > 1e-6

    assert more >= 3


@given(seeds, st.integers(3, 12), frees, st.integers(1, 5), st.integers(1, 6))
@draws(60)
def test_add_drop_moves_end_where_none_helps(seed, m, free, budget, count):
    X, y = data(seed, m)
    size = min(free + budget, m)
    tableau = tableau_of(X, y, range(free), free)
    grow(tableau, size, LEAST)
    start, before = list(tableau.chosen), tableau.decrease
    end = add_drop(tableau, size, [count], LEAST, NEGLIGIBLE)
    assert (tableau.chosen, tableau.decrease) == (start, before)
    assert end.decrease >= before
    assert end.size == size
    assert end.chosen[:free] == list(range(free))
    np.testing.assert_allclose(end.decrease, slow_decrease(X, y, end.chosen), rtol=1e-8)
    added_first = slow_shrink(X, y, slow_grow(X, y, end.chosen, size + count), size, free)
    dropped_first = slow_grow(X, y, slow_shrink(X, y, end.chosen, size - count, free), size)
    for chosen in (added_first, dropped_first):
        assert slow_decrease(X, y, chosen) <= end.decrease + 2 * NEGLIGIBLE


@pytest.mark.parametrize("seed", [223, 281, 334])
def test_add_drop_moves_leave_a_trap_of_exchanges(seed):
    """No exchange of one column for another improves the three that greed finds, and other moves do."""
    tableau = tableau_of(*data(seed, 8))
    grow(tableau, 3, LEAST)
    exchanged = descend(tableau, 3, LEAST, NEGLIGIBLE)
    assert add_drop(exchanged, 3, [], LEAST, NEGLIGIBLE) is exchanged
    assert add_drop(exchanged, 3, [3], LEAST, NEGLIGIBLE).decrease > exchanged.decrease + 1e-3


@given(seeds, st.integers(3, 12), st.integers(1, 5), st.integers(1, 6))
@draws(60)
def test_add_drop_moves_keep_signs(seed, m, budget, count):
    X, y = data(seed, m)
    signs = np.random.default_rng(seed).integers(-1, 2, m)
    tableau = tableau_of(X, y, signs=signs)
    grow(tableau, budget, LEAST)
    end = add_drop(tableau, budget, [count], LEAST, NEGLIGIBLE)
    assert end.decrease >= tableau.decrease
    assert end.size <= budget
    assert (end.coef * signs[end.chosen] >= 0).all()
