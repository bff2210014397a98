"""A green run must mean that the combinations ran: how many there are, from a collection of their own."""

import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from cases import ROOMS, examples, problems
from toys import TOYS

HERE = Path(__file__).parent

LEAST = {
    "test_losses.py": 45,
    "test_constraints.py": 1230,
    "test_steps.py": 695,
    "test_solvers.py": 3890,
    "test_stationarity.py": 63,
    "test_observation.py": 460,
    "test_toys.py": 21,
}
"""Lower bounds of the combinations in each suite. Raise them when a suite grows, never lower them for a green run
(they fell once, when pairs took the place of all triples)."""

LEAST_EXAMPLES = {"loss": 3, "constraint": 39, "step": 9, "solver": 16, "objective": 15, "observation": 8}
"""Registered ones; the toys come on top."""

LEAST_PROBLEMS = {"step": 355, "solver": 540}
"""Each pair of a solver or step rule, an objective and a constraint that can meet, in as few triples as do."""


@pytest.fixture(scope="module")
def collected() -> Counter:
    """The number of tests in each file of this folder, whatever the selection of the present run."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        str(HERE),
    ]
    listing = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True, check=False)
    assert listing.returncode == 0, listing.stdout + listing.stderr
    return Counter(Path(line.split("::")[0]).name for line in listing.stdout.splitlines() if "::" in line)


@pytest.mark.parametrize("suite", LEAST)
def test_the_combinations_are_as_many_as_they_should_be(collected, suite, record_property):
    record_property("combinations", collected[suite])
    assert collected[suite] >= LEAST[suite]


def test_every_suite_is_counted(collected):
    assert collected.keys() - {Path(__file__).name} == LEAST.keys()


@pytest.mark.parametrize("kind", ROOMS)
def test_every_kind_has_its_examples(kind):
    toys = sum(len(found) for found in TOYS.get(kind, {}).values())
    assert len(examples(kind)) - toys >= LEAST_EXAMPLES[kind]


@pytest.mark.parametrize("kind", LEAST_PROBLEMS)
def test_every_solver_and_step_rule_meets_every_objective_and_constraint(kind, monkeypatch):
    """No two that can run together are left out, and every example of every kind takes part."""
    paired = [parameter.id for parameter in problems(examples(kind))]
    monkeypatch.setenv("HARDTHRESH_ALL_PROBLEMS", "1")
    everything = [parameter.id for parameter in problems(examples(kind))]
    pairs = [{pair for name in names for pair in combinations(name.split("-"), 2)} for names in (paired, everything)]
    assert pairs[0] == pairs[1]
    monkeypatch.delenv("HARDTHRESH_ALL_PROBLEMS")
    met = [parameter.values for parameter in problems(examples(kind))]
    assert len(met) >= LEAST_PROBLEMS[kind]
    for place, room in enumerate((kind, "objective", "constraint")):
        seen = {repr(values[place]) if place != 1 else type(values[place]).__name__ for values in met}
        everything = [parameter.values[0] for parameter in examples(room)]
        assert seen == {repr(one) if place != 1 else type(one).__name__ for one in everything}


def test_a_skip_is_a_failure_unless_a_library_is_missing(pytester_like):
    outcome = pytester_like(
        "import pytest\n"
        "def test_hidden():\n    pytest.skip('no time today')\n"
        "def test_missing():\n    pytest.skip('torch is not installed')\n"
    )
    assert "1 failed, 1 skipped" in outcome


@pytest.fixture
def pytester_like(tmp_path):
    """Runs a file of tests beside a copy of this folder's conftest, and returns what pytest prints."""

    def run(source: str) -> str:
        (tmp_path / "conftest.py").write_text((HERE / "conftest.py").read_text(encoding="utf-8"))
        (tmp_path / "test_file.py").write_text(source)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", str(tmp_path)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout

    return run
