"""Four writers at a time, who are killed, lose replies and repeat requests: nothing is bought twice or overspent."""

import os

import pytest
from fire import run

from levels import at


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
@pytest.mark.parametrize("seed", [1000, *at("pairs", range(1001, 1010))])
def test_a_random_study(tmp_path, seed):
    _, events, wrong = run(seed, tmp_path)
    assert wrong == []
    assert events > 50
