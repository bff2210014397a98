"""Commands run in this process, and small files to run them on."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from hardthresh.cli.app import app

REPOSITORY = Path(__file__).parents[2]
cached_command = cache(get_command)  # which otherwise makes all commands of the app again for each test


@pytest.fixture
def run(tmp_path, monkeypatch, no_charts):
    """Run a command in an empty folder; anything but a normal end fails the test. Reports have no charts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("typer.testing._get_command", cached_command, raising=False)

    def go(*args: object):
        result = CliRunner().invoke(app, [str(arg) for arg in args], catch_exceptions=False)
        assert "Traceback" not in result.output
        return result

    return go


@pytest.fixture
def done(run):
    """Run a command that must succeed; returns what it prints on standard output."""

    def go(*args: object) -> str:
        result = run(*args)
        assert result.exit_code == 0, result.output
        return result.stdout

    return go


@pytest.fixture
def refused(run):
    """Run a command that must be refused with one line; returns the line without its "error: "."""

    def go(*args: object) -> str:
        result = run(*args)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        [line] = result.stderr.splitlines()
        assert line.startswith("error: ")
        return line.removeprefix("error: ")

    return go


@pytest.fixture
def folder(tmp_path):
    """Where the command runs."""
    return tmp_path


@pytest.fixture
def table():
    """60 rows: y is a number, ill says which of two classes, and both depend on "b" and "height, cm"."""
    import polars

    rng = np.random.default_rng(0)
    columns = {name: rng.standard_normal(60) for name in ("a", "b", "height, cm", "d", "e")}
    y = 3 * columns["b"] - 2 * columns["height, cm"] + 0.1 * rng.standard_normal(60)
    classes = np.where(y + rng.logistic(size=60) > 0, "yes", "no")
    return polars.DataFrame(columns | {"y": y, "ill": classes})


@pytest.fixture
def csv(table, folder):
    """The table in a CSV file."""
    table.write_csv(folder / "table.csv")
    return folder / "table.csv"


@pytest.fixture
def broken(folder):
    """Write a CSV file from its lines."""

    def write(*lines: str) -> Path:
        path = folder / "broken.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write
