"""What the tests of sources share."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("study_under_fire.py")


@pytest.fixture
def no_disk(monkeypatch):
    """Nothing has to survive a power cut here."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr("hardthresh.limited.sources.database._SYNCHRONOUS", "OFF")


@pytest.fixture(scope="module")
def begin():
    """Begin a study in a folder, by one program or by several; return a function that waits for their exit statuses."""
    with subprocess.Popen(
        [sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:

        def go(what, folder, kill=None, programs=1):
            command = {"what": what, "folder": str(folder), "kill": kill, "programs": programs}
            program.stdin.write(json.dumps(command) + "\n")
            program.stdin.flush()
            return lambda: json.loads(program.stdout.readline())

        yield go
        program.stdin.close()


@pytest.fixture(scope="module")
def start(begin):
    """Run a study in a folder; return its exit status."""
    return lambda what, folder, kill=None: begin(what, folder, kill)()[0]


@pytest.fixture(scope="module")
def calm(start, tmp_path_factory):
    """The folder of a study with a journal that nobody interrupted."""
    folder = tmp_path_factory.mktemp("calm")
    assert start("with_journal", folder) == 0
    return folder
