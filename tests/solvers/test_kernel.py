"""The compiled kernel against the NumPy code that runs without it: the same bits, and refusals instead of crashes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.core.compiled import describe_kernel, kernel
from hardthresh.solvers.working_set import tableau
from levels import draws

pytestmark = pytest.mark.skipif(kernel() is None, reason=f"the kernel does not run: {describe_kernel()}")


def arguments(seed=0, s=3, m=40, signed=True, copies=False):
    """The arguments of `best_replacements`, on rows of a larger table; columns may be equal, and some are excluded."""
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((s + 1, m + 5)) * 10.0 ** rng.uniform(-3, 3, m + 5)
    slope, unexplained = rng.standard_normal(m), rng.random(m)
    signs = rng.integers(-1, 2, m).astype(float) if signed else None
    if copies:
        first = rng.integers(0, m, m)
        table[:, 5:], slope, unexplained = table[:, 5:][:, first], slope[first], unexplained[first]
        signs = signs if signs is None else signs[first]
    unexplained[rng.random(m) < 0.2] = np.inf
    return {
        "regressions": table[1:, 5:],
        "scale": rng.random(s),
        "shift": rng.standard_normal(s),
        "slope": slope,
        "unexplained": unexplained,
        "signs": signs,
        "gains": np.full(s, np.nan),
        "columns": np.full(s, -1, dtype=np.int64),
    }


@draws(100)
@given(st.integers(0, 10**6), st.integers(0, 5), st.integers(1, 70), st.booleans(), st.booleans())
def test_the_best_replacements_have_the_same_bits(seed, s, m, signed, copies):
    ours, theirs = arguments(seed, s, m, signed, copies), arguments(seed, s, m, signed, copies)
    kernel().best_replacements(*ours.values())
    tableau.best_replacements(*theirs.values())
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


def test_where_nothing_can_be_gained_the_first_column_is_named():
    for find in (kernel().best_replacements, tableau.best_replacements):
        given = arguments() | {"unexplained": np.full(40, np.inf)}
        find(*given.values())
        assert given["gains"].tolist() == [0.0, 0.0, 0.0]
        assert given["columns"].tolist() == [0, 0, 0]


@pytest.mark.parametrize("places", [[7], [39], [20, 21], [3, 38]])
def test_the_first_nan_is_the_largest(places):
    """As where squares underflow: the search then ends, with either code."""
    for find in (kernel().best_replacements, tableau.best_replacements):
        given = arguments()
        given["slope"][places] = np.nan
        find(*given.values())
        assert np.isnan(given["gains"]).all()
        assert given["columns"].tolist() == [places[0]] * 3


WRONG = {
    "whole numbers": ("slope", lambda a: a.astype(np.int64), TypeError, "slope must hold float64, not .* 'l'|'q'"),
    "single precision": ("scale", lambda a: a.astype(np.float32), TypeError, "scale must hold float64, not .* 'f'"),
    "another byte order": ("scale", lambda a: a.astype(">f8"), TypeError, "scale must hold float64, not .* '>d'"),
    "narrow numbers": ("columns", lambda a: a.astype(np.int32), TypeError, "columns must hold int64, not .* 'i'"),
    "axes": ("regressions", lambda a: a[0], ValueError, "regressions must have 2 axes, not 1"),
    "steps": ("slope", lambda a: np.repeat(a, 2)[::2], ValueError, "entries of slope must be adjacent"),
    "columns first": ("regressions", np.asfortranarray, ValueError, "entries of regressions must be adjacent"),
    "too short": ("unexplained", lambda a: a[:-1], ValueError, "unexplained must have 40 entries, not 39"),
    "too long": ("gains", lambda a: np.append(a, 0.0), ValueError, "gains must have 3 entries, not 4"),
    "short signs": ("signs", lambda a: a[1:], ValueError, "signs must have 40 entries, not 39"),
    "nothing": ("slope", lambda a: None, TypeError, "NoneType"),
    "numbers": ("shift", list, TypeError, "list"),
}


@pytest.mark.parametrize(("name", "spoil", "error", "said"), WRONG.values(), ids=WRONG)
def test_wrong_arrays_are_refused(name, spoil, error, said):
    given = arguments()
    with pytest.raises(error, match=said):
        kernel().best_replacements(*(given | {name: spoil(given[name])}).values())
    assert np.isnan(given["gains"]).all()


def test_arrays_that_may_not_change_are_refused():
    given = arguments()
    given["gains"].flags.writeable = False
    with pytest.raises((BufferError, ValueError), match=r"read-only|not writable"):
        kernel().best_replacements(*given.values())


def test_the_number_of_arrays_is_checked():
    with pytest.raises(TypeError, match="8 arrays are needed, not 7"):
        kernel().best_replacements(*[*arguments().values()][:-1])


def test_arrays_are_released():
    """A view that is never released would keep its array from being resized."""
    for wrong in ({}, {"gains": np.zeros(4)}, {"columns": np.zeros(3)}):
        given = arguments() | wrong
        try:
            kernel().best_replacements(*given.values())
        except (TypeError, ValueError):
            assert wrong
        for array in (given["scale"], given["slope"]):
            array.resize(array.size + 1, refcheck=False)
