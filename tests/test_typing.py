"""The programs of tests/typing run; ``make typing`` checks that type checkers understand them."""

import runpy
import warnings
from inspect import isfunction
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parent / "typing").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_for_type_checkers_runs(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # one of them stores a model
    functions = [value for value in runpy.run_path(str(program)).values() if isfunction(value)]
    own = [function for function in functions if function.__code__.co_filename == str(program)]
    assert own
    for function in own:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # small data, and few iterations
            function()
