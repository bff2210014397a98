"""Directions along which losses fall for ever: the linear program takes in rows as it needs them."""

import numpy as np
import pytest

from hardthresh.objectives import recession


@pytest.mark.parametrize("separated", [True, False])
@pytest.mark.parametrize("fixed", [0, 4])
@pytest.mark.parametrize("seed", range(5))
def test_a_program_that_begins_with_few_rows_finds_what_all_rows_say(separated, fixed, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 6)) * 10.0 ** np.arange(-3, 3)
    X[:fixed, :3] = 0.0  # rows whose prediction must not move, in directions that others allow
    truth = np.array([1e3, 1e2, 10.0, 0.0, 0.0, 0.0])
    signs = np.sign(X @ truth) * np.where(rng.random(300) < (0.0 if separated else 0.02), -1, 1)
    signs[:fixed] = 0.0
    at_once = recession.recession_direction(X, signs)
    monkeypatch.setattr(recession, "_ROWS", 5)
    v = recession.recession_direction(X, signs)
    assert (v is None) == (at_once is None) == (not separated)
    if separated:
        moved = X @ v
        assert np.min(signs * moved) > -1e-4
        assert np.max(np.abs(moved[:fixed]), initial=0.0) < 1e-4
        np.testing.assert_allclose(np.max(np.abs(moved)), 100.0)


@pytest.mark.parametrize("scale", [1.0, 1e8, 1e-8])
@pytest.mark.parametrize("outlier", [1e6, 1e8, 1e10])
def test_an_outlier_does_not_separate_the_others(outlier, scale):
    """Next to it, all other entries are smaller than the tolerance of the linear program."""
    x = np.array([outlier, 1.0, -1.0, 0.5, -0.5]) * scale
    assert recession.recession_direction(x[:, None], np.array([1.0, 1.0, 1.0, -1.0, -1.0])) is None
    v = recession.recession_direction(x[:, None], np.array([1.0, 1.0, -1.0, 1.0, -1.0]))
    assert v is not None
    assert v[0] > 0.0


def test_entries_that_are_rounding_hide_no_direction():
    """A row whose entries should be 0, as the difference of two classes along the axis of a third, has no say."""
    X = np.array([[1.0, 0.5], [-1.0, 0.3], [3e-17, 0.0]])
    v = recession.recession_direction(X, np.array([1.0, -1.0, -1.0]))
    assert v is not None
    assert v[0] > 0.0
    assert recession.recession_direction(np.array([[1.0], [-1.0], [1e-9]]), np.array([1.0, -1.0, -1.0])) is None


def test_the_rounding_of_the_program_hides_no_direction(monkeypatch):
    """A row of which only an entry moves that would be 0 in an exact solution."""
    X, signs = np.array([[1.0, 0.5], [-1.0, 0.3], [0.0, 1.0]]), np.array([1.0, -1.0, -1.0])
    for moved, found in ((1e-13, True), (1e-9, False)):
        monkeypatch.setattr(recession, "_best_direction", lambda *_, to=moved: np.array([1.0, to]))
        assert (recession.recession_direction(X, signs) is not None) == found
