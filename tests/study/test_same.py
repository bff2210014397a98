"""Two computations agree if they differ by rounding alone."""

from dataclasses import replace

import numpy as np
import pytest

from hardthresh.limited import Meter
from hardthresh.study.same import ROUNDING, nearly_equal

METER = Meter(attributes=3, examples=1, max_per_example=3, money=4.5)
VALUE = {"meter": METER, "parts": [np.array([1e-9, 2.0, np.nan]), (1, None, np.inf)], "chosen": np.array([3, 1])}


def test_rounding_is_no_difference():
    other = VALUE | {"parts": [np.array([2e-9, 2.0 + ROUNDING, np.nan]), (1, None, np.inf)]}
    assert nearly_equal(VALUE, other)
    assert nearly_equal(METER, replace(METER, money=4.5 * (1 + ROUNDING / 2)))
    assert nearly_equal(np.zeros(0), np.zeros(0))


@pytest.mark.parametrize(
    "changed",
    [
        {"meter": replace(METER, money=4.6)},
        {"meter": replace(METER, attributes=4)},
        {"meter": {"money": 4.5}},
        {"parts": [np.array([1e-9, 2.1, np.nan]), (1, None, np.inf)]},
        {"parts": [np.array([1e-9, 2.0, 0.0]), (1, None, np.inf)]},
        {"parts": [np.array([1e-9, 2.0]), (1, None, np.inf)]},
        {"parts": [np.array([1e-9, 2.0, np.nan]), (1, None, -np.inf)]},
        {"parts": [np.array([1e-9, 2.0, np.nan]), (1, 0, np.inf)]},
        {"chosen": np.array([3, 2])},
        {"chosen": np.array([3.0, 1.0])},
        {"more": 1},
    ],
)
def test_other_numbers_kinds_and_sizes_are(changed):
    assert not nearly_equal(VALUE, VALUE | changed)
