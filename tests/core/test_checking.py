"""Integers, numbers and words: what passes, and in which words the rest is refused; whose overflow NumPy warns of."""

import warnings
from fractions import Fraction

import numpy as np
import pytest

from hardthresh import minimize
from hardthresh.baselines import BFGD, AdaptiveForwardBackward, L1Ball
from hardthresh.constraints import Sparsity
from hardthresh.core import (
    BaseObjective,
    Evaluation,
    InvalidInputError,
    Passes,
    RelativeDecrease,
    SupportStable,
)
from hardthresh.core.checking import (
    checked_integer,
    checked_number,
    checked_word,
    with_warnings_of_caller,
    without_overflow_warnings,
)
from hardthresh.solvers import (
    ConjugateIHT,
    ConstantMomentum,
    HardThresholdingPursuit,
    NormTest,
    PowerBatch,
    ProbabilisticIHT,
    SetVote,
    StochasticIHT,
    WorkingSet,
)
from hardthresh.steps import AdaptiveSparsePolyak, Backtracking, BarzilaiBorwein, Fixed, SparsePolyak


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_integers_come_back_as_plain_ones(value):
    assert type(checked_integer("k", value, 1)) is int
    assert checked_integer("k", value) == 3


@pytest.mark.parametrize("value", [True, np.True_, 3.0, "3", None, [3], np.nan])
def test_checked_integer_refuses_other_values(value):
    with pytest.raises(InvalidInputError, match="k must be an integer, got "):
        checked_integer("k", value, 0)


def test_an_integer_may_be_too_small():
    assert checked_integer("k", -5) == -5
    with pytest.raises(InvalidInputError, match="k must be >= 2, got 1"):
        checked_integer("k", 1, 2)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2.0), np.int8(2), Fraction(2)])
def test_numbers_come_back_as_plain_floats(value):
    assert type(checked_number("c", value)) is float
    assert checked_number("c", value, least=2.0, most=2.0) == 2.0


@pytest.mark.parametrize("value", [True, np.True_, "2", None, [2.0], np.array(2.0), 2j, np.nan, np.inf, 10**400])
def test_checked_number_refuses_other_values(value):
    with pytest.raises(InvalidInputError, match="c must be a finite number > 0 and <= 3, got "):
        checked_number("c", value, above=0.0, most=3.0)


def test_a_number_may_be_infinite_where_that_has_a_meaning():
    assert checked_number("tol", np.inf, above=0.0, finite=False) == np.inf
    for value in (-np.inf, np.nan, 0.0):
        with pytest.raises(InvalidInputError, match="tol must be a number > 0, got "):
            checked_number("tol", value, above=0.0, finite=False)


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [({"above": 1.0}, "> 1"), ({"least": 1.5}, ">= 1.5"), ({"below": 1.0}, "< 1"), ({"most": 0.5}, "<= 0.5")],
)
def test_a_number_may_be_out_of_range(limits, allowed):
    with pytest.raises(InvalidInputError, match=f"c must be a finite number {allowed}, got 1"):
        checked_number("c", 1.0, **limits)


class Distance(BaseObjective):
    shape = (3,)

    def evaluate(self, w, prediction=None):
        return Evaluation(w, 0.5 * float(np.sum((w - 1.0) ** 2)), w - 1.0)


SETTINGS = {
    "the step": Fixed,
    "step of batches": StochasticIHT,
    "first": lambda value: Backtracking(first=value),
    "grow": lambda value: Backtracking(grow=value),
    "shrink": lambda value: Backtracking(shrink=value),
    "window": lambda value: BarzilaiBorwein(window=value),
    "scale": lambda value: SparsePolyak(scale=value),
    "target": lambda value: SparsePolyak(target=value),
    "epoch_length": lambda value: AdaptiveSparsePolyak(epoch_length=value),
    "eta1": lambda value: ProbabilisticIHT(eta1=value),
    "delta0": lambda value: ProbabilisticIHT(delta0=value),
    "gamma": lambda value: ProbabilisticIHT(gamma=value),
    "theta": lambda value: NormTest(theta=value),
    "growth": lambda value: NormTest(growth=value),
    "exponent": lambda value: PowerBatch(10, value),
    "tau": SetVote,
    "momentum": ConstantMomentum,
    "cg_iterations": lambda value: HardThresholdingPursuit(cg_iterations=value),
    "escapes": lambda value: HardThresholdingPursuit(escapes=value),
    "tol of pursuit": lambda value: HardThresholdingPursuit(tol=value),
    "tol of conjugate": lambda value: ConjugateIHT(tol=value),
    "every": lambda value: ConjugateIHT(every=value),
    "tol of working set": lambda value: WorkingSet(tol=value),
    "passes": Passes,
    "tol of decrease": RelativeDecrease,
    "iterations": SupportStable,
    "tol": lambda value: minimize(Distance(), Sparsity(2), tol=value),
    "smoothness": BFGD,
    "radius": L1Ball,
    "nu": AdaptiveForwardBackward,
}


@pytest.mark.parametrize("build", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("value", ["3", True, [1.0], np.nan], ids=str)
def test_every_setting_that_is_a_number_refuses_what_is_not_one(build, value):
    with pytest.raises(InvalidInputError, match="must be "):
        build(value)


@pytest.mark.parametrize("name", ["window", "epoch_length", "cg_iterations", "escapes", "every", "iterations"])
def test_every_setting_that_is_an_integer_refuses_fractions(name):
    with pytest.raises(InvalidInputError, match=f"{name} must be an integer, got 2.5"):
        SETTINGS[name](2.5)


@pytest.mark.parametrize("name", ["tol of working set", "tol of pursuit", "grow", "first"])
def test_a_tolerance_or_a_step_is_finite(name):
    with pytest.raises(InvalidInputError, match="must be a finite number"):
        SETTINGS[name](np.inf)


def test_checked_word_refuses_unknown_words():
    assert checked_word("unit", "pixel", ("pixel", "entry")) == "pixel"
    for word in ("Pixel", None, 1, ["pixel"]):
        with pytest.raises(InvalidInputError, match=r"unit must be one of 'pixel', 'entry'; got "):
            checked_word("unit", word, ("pixel", "entry"))


def overflow():
    return np.float64(1e200) ** 2


def test_code_of_the_user_runs_under_the_error_handling_of_the_caller():
    @without_overflow_warnings
    def library(user):
        overflow()  # a warning is an error in the tests
        with with_warnings_of_caller():
            result = user()
        overflow()
        return result

    with np.errstate(over="ignore", divide="raise"):
        assert library(lambda: np.geterr()) == np.geterr()
    with pytest.warns(RuntimeWarning, match="overflow"):
        library(overflow)
    with pytest.warns(RuntimeWarning, match="overflow"):  # within the library within the library
        without_overflow_warnings(library)(overflow)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        library(overflow)
    overflowed = without_overflow_warnings(overflow)
    assert library(overflowed) == np.inf


def test_code_of_the_user_may_use_the_library_with_another_error_handling():
    @without_overflow_warnings
    def library(user):
        with with_warnings_of_caller():
            return user()

    def user():
        with np.errstate(over="raise"):
            return library(overflow)

    with pytest.raises(FloatingPointError), np.errstate(over="ignore"):
        library(user)
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        library(overflow)


def test_outside_of_the_library_the_error_handling_stays():
    before = np.geterr()
    with with_warnings_of_caller():
        assert np.geterr() == before
