"""Running moments: whatever the pieces, they are those of the whole table, and far-off means cost no digits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.limited.algorithms.moments import Covariances, Moments

cuts = st.lists(st.integers(0, 40), max_size=6).map(sorted)
shifts = st.sampled_from([0.0, 1.0, -1e4, 1e6])


def pieces(Z, cuts):
    return np.split(Z, cuts)


def assert_close(ours, exact, scale):
    np.testing.assert_allclose(ours, exact, rtol=1e-9, atol=1e-9 * scale)


def table(n, p, shift, seed=0):
    """Variables of deviations 1, 2, 3, ... and far-off means, on a grid on which numpy computes means exactly."""
    rng = np.random.default_rng((seed, n, p))
    return np.round(rng.standard_normal((n, p)) * np.arange(1, p + 1) * 64) / 64 + shift


@pytest.mark.slow
@given(cuts, shifts, st.integers(1, 5))
def test_moments_in_pieces_are_those_of_the_whole(cuts, shift, p):
    Z = table(40, p, shift)
    moments = Moments.none(p)
    for piece in pieces(Z, cuts):
        moments = moments.absorb(piece)
    centred = Z - Z.mean(axis=0)
    assert moments.count == 40
    np.testing.assert_allclose(moments.mean, Z.mean(axis=0), rtol=1e-15, atol=1e-13)
    tolerance = 1 + 1e-4 * abs(shift)  # the means themselves are rounded, by 1e-10 at 1e6
    assert_close(moments.comoment, centred.T @ centred, tolerance)
    np.testing.assert_array_equal(moments.comoment, moments.comoment.T)


@pytest.mark.slow
@given(cuts, shifts, st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True))
def test_moments_of_some_variables_are_their_own(cuts, shift, chosen):
    Z = table(40, 4, shift)
    whole, part = Moments.none(4), Moments.none(len(chosen))
    for piece in pieces(Z, cuts):
        whole, part = whole.absorb(piece), part.absorb(piece[:, chosen])
    some = whole.of(np.array(chosen))
    assert some.count == part.count
    np.testing.assert_allclose(some.mean, part.mean, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(some.comoment, part.comoment, rtol=1e-9, atol=1e-7)


def test_absorbing_changes_nothing_that_was_there():
    before = Moments.none(3).absorb(table(10, 3, 0.0))
    kept = before.mean.copy(), before.comoment.copy()
    after = before.absorb(table(5, 3, 1.0))
    np.testing.assert_array_equal(before.mean, kept[0])
    np.testing.assert_array_equal(before.comoment, kept[1])
    assert (before.count, after.count) == (10, 15)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e5 / 3, 1e-300, 7e100])
def test_a_constant_has_no_spread_however_it_is_rounded(value):
    moments, covariances = Moments.none(2), Covariances.none(1)
    noise = np.random.default_rng(0).standard_normal(5000)
    for piece in np.array_split(noise, 173):
        moments = moments.absorb(np.column_stack([np.full(piece.size, value), piece]))
        covariances = covariances.merge(np.array([0]), Covariances.of(np.full((piece.size, 1), value), piece))
    assert moments.spread()[0] == 0
    assert covariances.deviation()[0] == 0
    np.testing.assert_allclose(moments.spread()[1], noise.size * noise.var())


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e10])
def test_shifted_columns_are_not_taken_for_constant(shift):
    values = shift + np.random.default_rng(0).standard_normal((500, 1))
    np.testing.assert_allclose(Moments.none(1).absorb(values).spread(), 500 * values.var(), rtol=1e-5)
    np.testing.assert_allclose(Covariances.of(values, values[:, 0]).deviation(), values.std(), rtol=1e-5)


@pytest.mark.slow
@given(cuts, shifts)
def test_covariances_in_pieces_are_those_of_the_whole(cuts, shift):
    """Every variable is seen on some of the pieces only, and has the moments of these."""
    X, residual = table(40, 3, shift), table(40, 1, 5.0)[:, 0]
    covariances = Covariances.none(3)
    seen = [[], [], []]
    for number, rows in enumerate(pieces(np.arange(40), cuts)):
        where = np.flatnonzero([(number + j) % 3 != 0 for j in range(3)])
        covariances = covariances.merge(where, Covariances.of(X[np.ix_(rows, where)], residual[rows]))
        for j in where:
            seen[j] += list(rows)
    for j, rows in enumerate(seen):
        x, r = X[rows, j], residual[rows]
        assert covariances.count[j] == len(rows)
        if len(rows) > 1:
            np.testing.assert_allclose(covariances.mean[j], x.mean(), rtol=1e-14, atol=1e-13)
            np.testing.assert_allclose(covariances.residual[j], r.mean(), rtol=1e-13, atol=1e-13)
            assert_close(covariances.deviation()[j], x.std(), 1 + 1e-4 * abs(shift))
            assert_close(covariances.covariance()[j], np.mean((x - x.mean()) * (r - r.mean())), 1 + 1e-4 * abs(shift))
        else:
            assert covariances.deviation()[j] == covariances.covariance()[j] == 0


def test_merging_changes_nothing_that_was_there():
    before = Covariances.of(table(10, 3, 0.0), table(10, 1, 0.0)[:, 0])
    kept = {name: getattr(before, name).copy() for name in ("count", "mean", "square", "residual", "product")}
    before.merge(np.array([2, 0]), Covariances.of(table(7, 2, 0.0), table(7, 1, 3.0)[:, 0]))
    for name, values in kept.items():
        np.testing.assert_array_equal(getattr(before, name), values)


def test_no_example_has_no_moments():
    nothing = Covariances.of(np.zeros((0, 3)), np.zeros(0))
    assert not nothing.count.any()
    assert not nothing.deviation().any()
    assert not nothing.covariance().any()
    none = Moments.none(3)
    assert none.absorb(np.zeros((0, 3))) is none
