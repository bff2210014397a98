"""Four writers at a time, who are killed, lose replies and repeat requests: nothing is bought twice or overspent."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from levels import at

PROGRAM = Path(__file__).with_name("fire.py")  # forks, which a process with threads must not do


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
@pytest.mark.parametrize("studies", [2, *at("pairs", [20])])
def test_random_studies(studies):
    command = [sys.executable, str(PROGRAM), "--studies", str(studies), "--first", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["mistakes"] == 0
    assert figures["killed"] > 0
    assert figures["events"] > 100 * studies
