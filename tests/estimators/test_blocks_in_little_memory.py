"""Fits to files that are larger than the memory allowed: by hand, because each writes a file of gigabytes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "scale.py"


def fit_of(gigabytes, loss):
    """The row of a fit under RLIMIT_AS = 1500 MB, with predictions and score after it."""
    settings = ["--task", "disc", "--gb", str(gigabytes), "--limit-mb", "1500", "--loss", loss]
    run = subprocess.run([sys.executable, str(SCRIPT), *settings], capture_output=True, text=True, check=True)
    rows = {row.get("case"): row for row in map(json.loads, run.stdout.splitlines())}
    assert rows[f"predict, {loss}"]["rows"] > 0
    assert rows[f"score, {loss}"]["score"] > 0.5
    return rows[f"fit, {loss}"]


@pytest.mark.scale
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_file_larger_than_memory_is_fitted(request, loss):
    """Check 5 of scale.md: a fit needs no more memory for a file twice as long."""
    if request.config.getoption("-m") != "scale":
        pytest.skip("writes files of 2 and 4 GB: pytest -m scale")
    short, long = fit_of(2, loss), fit_of(4, loss)
    assert short["support_exact"]
    assert short["readings"] <= 4
    assert long["peak_resident_mb"] <= 1.2 * short["peak_resident_mb"]
    assert short["anonymous_mb"] <= 200
    assert long["anonymous_mb"] <= 1.2 * short["anonymous_mb"]
