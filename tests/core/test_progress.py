"""How durations are written."""

import pytest

from hardthresh.core.progress import format_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "less than 1 ms"),
        (0.0009, "less than 1 ms"),
        (0.0123, "0.012 s"),
        (0.999, "1.0 s"),
        (1.44, "1.4 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (119.4, "119 s"),
        (119.6, "2 min"),
        (139.7, "2 min 20 s"),
        (3599.6, "60 min"),
        (7199.0, "119 min 59 s"),
        (7260.0, "2 h 1 min"),
        (14400.0, "4 h"),
        (1e6, "277 h 47 min"),
    ],
)
def test_durations_are_written_for_people(seconds, text):
    assert format_duration(seconds) == text
