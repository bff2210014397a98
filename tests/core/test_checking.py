"""Integers and words: what passes, and in which words the rest is refused."""

import numpy as np
import pytest

from hardthresh.core import InvalidInputError
from hardthresh.core.checking import checked_integer, checked_word


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_integers_come_back_as_plain_ones(value):
    assert type(checked_integer("k", value, 1)) is int
    assert checked_integer("k", value) == 3


@pytest.mark.parametrize("value", [True, np.True_, 3.0, "3", None, [3], np.nan])
def test_what_is_no_integer_is_refused(value):
    with pytest.raises(InvalidInputError, match="k must be an integer, got "):
        checked_integer("k", value, 0)


def test_an_integer_may_be_too_small():
    assert checked_integer("k", -5) == -5
    with pytest.raises(InvalidInputError, match="k must be >= 2, got 1"):
        checked_integer("k", 1, 2)


def test_words_are_among_those_that_are_known():
    assert checked_word("unit", "pixel", ("pixel", "entry")) == "pixel"
    for word in ("Pixel", None, 1, ["pixel"]):
        with pytest.raises(InvalidInputError, match=r"unit must be one of 'pixel', 'entry'; got "):
            checked_word("unit", word, ("pixel", "entry"))
