"""Records of guarantees print as tables, and their arguments are checked alike."""

import pickle
from dataclasses import FrozenInstanceError, astuple, fields
from itertools import combinations
from math import inf, nan

import numpy as np
import pytest

from hardthresh.core import InvalidInputError
from hardthresh.diagnostics import (
    AcceleratedGuarantee,
    LimitedPlan,
    SparsePolyakGuarantee,
    accelerated_guarantee,
    limited_guarantee,
    limited_plan,
    probabilistic_guarantee,
    sparse_polyak_guarantee,
    statistical_constants,
)
from hardthresh.diagnostics.guarantee import steps_until

POPULATION = {"smoothness": 2.0, "strong_convexity": 2.0, "d": 500, "k_star": 1, "excess": 1.0, "noise": 1.0}
CALLS = {
    sparse_polyak_guarantee: {"smoothness": 1.3, "strong_convexity": 0.7, "gradient_norm": 0.1, "k": 30, "k_star": 3},
    statistical_constants: {"model": "logistic", "n": 1000, "d": 50, "k": 5, "eigenvalues": (0.5, 2.0)},
    accelerated_guarantee: {"alpha": 0.6, "beta": 1.0, "momentum": 0.25, "noise": 0.1},
    probabilistic_guarantee: {
        **{"k": 5, "alpha": 1.0, "kappa_f": 1.0, "kappa_g": 1.0, "epsilon_f": 0.0, "smoothness": 2.0},
        **{"gap": 1.0, "delta0": 1.0},
    },
    limited_guarantee: {**POPULATION, "n_observed": 50, "k": 5, "step": 0.1, "batch": 9, "updates": 7},
    limited_plan: {**POPULATION, "d": 5000, "n_observed": 2000, "target": 0.1},
}
calls = pytest.mark.parametrize(("function", "arguments"), CALLS.items(), ids=[call.__name__ for call in CALLS])


@calls
def test_a_record_is_frozen_small_and_printed_with_what_it_means(function, arguments):
    found = function(**arguments)
    with pytest.raises((FrozenInstanceError, AttributeError)):
        found.failures = ()
    assert pickle.loads(pickle.dumps(found)) == found
    lines = str(found).splitlines()
    assert lines[0] == found.title
    assert lines[-1] == f"  Assumptions that cannot be checked: {found.assumptions}."
    assert [f"  The theorem does not apply: {failure}." for failure in found.failures] == lines[
        -1 - len(found.failures) : -1
    ]
    for item in fields(found):
        if item.metadata and getattr(found, item.name) is not None:
            (line,) = [line for line in lines[1:] if line.startswith(f"  {item.name.replace('_', ' ')}  ")]
            assert line.endswith(item.metadata["meaning"])
            assert item.metadata["meaning"][1:] in type(found).__doc__


@calls
def test_what_a_run_used_is_printed_beside(function, arguments):
    found = function(**arguments)
    name = next(item.name for item in fields(found) if item.metadata)
    header, line = found.beside(**{name: 123456}).splitlines()[1:3]
    assert header.split() == ["theory", "run"]
    assert line.index("123,456") == header.index("run")
    with pytest.raises(InvalidInputError, match="the table has no row 'speed'; it has .*" + name):
        found.beside(speed=1)


def test_an_attribute_outside_of_the_table_is_said_to_have_no_row():
    found = accelerated_guarantee(**CALLS[accelerated_guarantee])
    assert found.distance == 1.0
    with pytest.raises(
        InvalidInputError, match=r"the table has no row 'distance'; it has step, .*recursion_iterations$"
    ):
        found.beside(distance=2.0)


def test_docstrings_name_types_in_words():
    assert "matrix : tuple of tuple of float\n" in AcceleratedGuarantee.__doc__
    assert "explore_batches : tuple of int\n" in LimitedPlan.__doc__
    assert "iterations : float or None\n" in SparsePolyakGuarantee.__doc__
    assert "failures : tuple of str\n" in SparsePolyakGuarantee.__doc__


def test_a_number_that_was_not_asked_for_has_a_row_if_a_run_has_it():
    found = sparse_polyak_guarantee(**CALLS[sparse_polyak_guarantee])
    assert found.iterations is None
    assert "iterations" not in str(found)
    assert any(line.split()[:2] == ["iterations", "77"] for line in found.beside(iterations=77).splitlines())


@calls
def test_every_number_out_of_range_is_refused_by_name(function, arguments):
    for name, value in arguments.items():
        wrong = ["a word", None, True] if isinstance(value, int | float) else ["a word"]
        if isinstance(value, float):
            wrong += [nan, inf, -inf, np.float64(nan)]
        if name not in ("momentum", "model", "eigenvalues"):
            wrong.append(-1)
        if name == "eigenvalues":
            wrong = [(2.0, 0.5), (0.0, 1.0), (1.0, inf), 3.0, (1.0,), None]
        for bad in wrong:
            if bad is None and name in ("gap", "delta0"):
                continue
            with pytest.raises(InvalidInputError, match=rf"^(the (first|second) of )?{name} must be"):
                function(**{**arguments, name: bad})


@calls
@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e-100, 1e100, 1e155, 1e300])
def test_extreme_numbers_give_a_record_or_are_refused(function, arguments, size):
    """No number in the record is NaN, and no other exception escapes."""
    real = [name for name, value in arguments.items() if isinstance(value, float)]
    for names in [[name] for name in real] + list(combinations(real, 2)):
        asked = {**arguments, **dict.fromkeys(names, size)}
        try:
            found = function(**asked)
        except InvalidInputError:
            continue
        assert not any(value != value for value in astuple(found)), asked
        assert str(found)


@pytest.mark.parametrize(
    ("function", "extreme"),
    [
        (sparse_polyak_guarantee, {"smoothness": 1e200}),
        (probabilistic_guarantee, {"alpha": 1e200, "kappa_f": 1e200}),
        (limited_guarantee, {"bound": 1e200}),
        (limited_plan, {"step": 1e-200, "k": 5}),
        (accelerated_guarantee, {"precision": 1e-200, "distance": 1e200}),
    ],
)
def test_numbers_that_overflow_are_refused(function, extreme):
    with pytest.raises(InvalidInputError, match=f"{function.__name__}: .* too large or too small"):
        function(**{**CALLS[function], **extreme})


def test_numbers_of_numpy_are_numbers():
    numpy = accelerated_guarantee(np.float32(0.5), np.int64(1), np.float64(0.25))
    assert numpy == accelerated_guarantee(0.5, 1.0, 0.25)


@pytest.mark.parametrize(
    ("small", "decay", "steps"),
    [(1.0, 0.1, 0), (5.0, 0.1, 0), (0.5, 0.5, 1), (0.49, 0.5, 2), (0.0, 0.5, inf), (0.1, 0.0, inf), (0.1, 1.0, 1)],
)
def test_steps_until_an_error_is_small(small, decay, steps):
    assert steps_until(small, decay) == steps


def test_many_steps_of_a_tiny_decay_lose_no_digits():
    # (1 - 1e-18)^t = 1/2 for t = log(2) 1e18, where 1 - 1e-18 rounds to 1
    assert steps_until(0.5, 1e-18) == pytest.approx(0.6931471805599453e18, rel=1e-12)
