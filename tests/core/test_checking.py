"""Integers and words: what passes, and in which words the rest is refused; whose overflow NumPy warns of."""

import warnings

import numpy as np
import pytest

from hardthresh.core import InvalidInputError
from hardthresh.core.checking import checked_integer, checked_word, with_warnings_of_caller, without_overflow_warnings


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
