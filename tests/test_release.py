"""What is published says the same everywhere: versions, requirements, and the commands of continuous integration."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import hardthresh

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

pytestmark = pytest.mark.skipif(not WORKFLOWS, reason="the source distribution has no workflows and no recipe")

CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
"""Packages that conda-forge has under another name."""

NOT_OF_MAKE = {
    "bash .ci/run",
    "rm dist/*-abi3-linux_*.whl",
    "python -m pip install cibuildwheel==4.3.5",
    "python -m cibuildwheel --archs native --output-dir dist",
}
"""Commands of the workflows besides targets of make."""


def read_yaml(*parts: str) -> dict:
    return yaml.safe_load(ROOT.joinpath(*parts).read_text(encoding="utf-8"))


def pyproject() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def conda(requirement: str) -> str:
    """Return a requirement as conda writes it."""
    name, least = requirement.split(">=")
    return f"{CONDA_NAMES.get(name, name)} >={least}"


def test_the_recipe_requires_what_the_package_requires():
    project, recipe = pyproject(), read_yaml("recipe", "recipe.yaml")
    least = project["project"]["requires-python"].removeprefix(">=")
    assert recipe["context"]["python_min"] == least
    python = "python >=${{ python_min }}"
    assert recipe["requirements"]["run"] == [python, *map(conda, project["project"]["dependencies"])]
    host = recipe["requirements"]["host"]
    assert [entry for entry in host if "python" not in entry and entry != "pip"] == [
        conda(entry) for entry in project["build-system"]["requires"]
    ]
    extras = {
        conda(entry)
        for extra in ("torch", "jax", "plot")
        for entry in project["project"]["optional-dependencies"][extra]
    }
    assert {*recipe["requirements"]["run_constraints"]} == extras


def test_all_files_name_the_same_version():
    assert read_yaml("recipe", "recipe.yaml")["context"]["version"] == hardthresh.__version__
    citation = read_yaml("CITATION.cff")
    assert citation["version"] == hardthresh.__version__
    headings = re.findall(r"^## \[(.+?)\](?: - (\S+))?$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert (hardthresh.__version__, str(citation["date-released"])) in headings


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_the_commands_of_the_makefile(path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
        assert 0 < job["timeout-minutes"] <= (300 if path.stem == "nightly" else 90)
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            command = step.get("run", "bash .ci/run")
            assert command in NOT_OF_MAKE or command.split()[:1] == ["make"], command
            if command.startswith("make "):
                assert command.split()[1] in targets, command


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_only_the_job_that_publishes_may_write(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert ("permissions" in job) == (name == "publish")
        if name == "publish":
            assert "if" in job
            assert "needs" in job
            assert not any("checkout" in step.get("uses", "") for step in job["steps"])  # it runs no code of ours


def test_the_workflows_test_what_the_classifiers_name():
    matrix = read_yaml(".github", "workflows", "tests.yml")["jobs"]["systems"]["strategy"]["matrix"]["include"]
    named = {entry.split()[-1] for entry in pyproject()["project"]["classifiers"] if " :: 3." in entry}
    assert {entry["python"] for entry in matrix} == named
