"""Importing hardthresh costs nothing and changes nothing. Each test looks at a fresh interpreter."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import hardthresh
from levels import at, only_at


def fresh(code: str, folder: Path) -> str:
    """What a new interpreter prints (on either stream) when it runs the code in a folder."""
    run = subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr


EXTRAS = {"dask", "distributed", "h5py", "jax", "jinja2", "matplotlib", "pandas", "polars", "pooch", "pyarrow", "rich"}
EXTRAS |= {"starlette", "torch", "typer", "uvicorn", "zarr"}

# scikit-learn comes first where it may come at all: what it does when it is imported is not ours to answer for
SKLEARN = "import sklearn.linear_model, sklearn.model_selection\n"

LOADED = """
import sys
before = set(sys.modules)
{statement}
packages = {{name.partition(".")[0] for name in sys.modules.keys() - before}}
print(*sorted(packages - sys.stdlib_module_names))
"""


def test_the_package_alone_imports_only_the_standard_library(tmp_path):
    assert fresh(LOADED.format(statement="import hardthresh"), tmp_path).split() == ["hardthresh"]


def test_a_solver_needs_no_scikit_learn_and_no_extra(tmp_path):
    statement = "from hardthresh import constraints, designs, losses, minimize, objectives, steps"
    loaded = fresh(LOADED.format(statement=statement), tmp_path).split()
    assert EXTRAS.union({"joblib", "sklearn"}).isdisjoint(loaded)


def test_an_algorithm_that_buys_attributes_needs_no_scikit_learn_and_no_extra(tmp_path):
    loaded = fresh(LOADED.format(statement="from hardthresh.limited import AdaptiveHybrid, Journal"), tmp_path).split()
    assert EXTRAS.union({"joblib", "sklearn"}).isdisjoint(loaded)


@only_at("pairs")
def test_estimators_need_no_extra(tmp_path):
    statement = "from hardthresh import LimitedAttributeRegression, datasets, estimators, load, save"
    loaded = fresh(SKLEARN + LOADED.format(statement=statement), tmp_path).split()
    assert EXTRAS.isdisjoint(loaded)


UNCHANGED = """
import locale, logging, os, random, signal, threading, warnings
import numpy, scipy, sklearn, threadpoolctl

def world():
    return {{
        "random state": (random.getstate(), str(numpy.random.get_state())),
        "warning filters": list(warnings.filters),
        "environment": dict(os.environ),
        "folder": (os.getcwd(), os.listdir()),
        "threads": (threadpoolctl.threadpool_info(), threading.active_count()),
        "floating-point errors": numpy.geterr(),
        "print options": str(numpy.get_printoptions()),
        "logging": (list(logging.root.handlers), logging.root.level),
        "locale": locale.setlocale(locale.LC_ALL),
        "signals": signal.getsignal(signal.SIGINT),
        "settings": sklearn.get_config(),
    }}

before = world()
{statement}
after = world()
assert before == after, [key for key in before if before[key] != after[key]]
"""

CORE = "arrays, constraints, core, designs, losses, objectives, solvers, steps"


@pytest.mark.parametrize(
    "statement", [*at("pairs", ["import hardthresh"]), f"from hardthresh import {CORE}, estimators"]
)
def test_importing_changes_nothing_and_prints_nothing(tmp_path, statement):
    assert fresh(SKLEARN + UNCHANGED.format(statement=statement), tmp_path) == ""
    assert [*tmp_path.iterdir()] == []


def test_every_public_name_resolves(tmp_path):
    code = "from hardthresh import *; import hardthresh; print(*sorted({*hardthresh.__all__} - globals().keys()))"
    assert fresh(code, tmp_path).split() == []


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="module 'hardthresh' has no attribute 'minimise_everything'"):
        hardthresh.minimise_everything  # noqa: B018


def test_type_checkers_see_the_public_names():
    """What is imported for type checkers is what `__getattr__` finds, from the same rooms."""
    tree = ast.parse(Path(hardthresh.__file__).read_text(encoding="utf-8"))
    [block] = [block for block in tree.body if isinstance(block, ast.If)]
    seen = {
        name: node.module.removeprefix("hardthresh").lstrip(".")
        for node in block.body
        for alias in node.names
        for name in (import_module(node.module).__all__ if alias.name == "*" else [alias.name])
    }
    assert sorted(seen) == hardthresh.__all__
    assert {name for name, room in seen.items() if not room} == {*hardthresh._ROOMS}
    for name, room in seen.items():
        assert getattr(hardthresh, name) is (
            getattr(getattr(hardthresh, room), name) if room else sys.modules[f"hardthresh.{name}"]
        )
    assert {*dir(hardthresh)} == {*hardthresh.__all__, "__version__"}


PARTS = """
import sys
{statement}
print(*sorted({{".".join(name.split(".")[:2]) for name in sys.modules if name.startswith("hardthresh.")}}))
"""


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import hardthresh", sorted(hardthresh._ROOMS)),
        (
            "from hardthresh import minimize",
            ["attacks", "baselines", "cli", "datasets", "estimators", "limited", "report"],
        ),
        (
            "from hardthresh import SparseLinearRegression",
            ["attacks", "baselines", "cli", "datasets", "limited", "report"],
        ),
    ],
)
def test_an_import_loads_only_the_rooms_that_it_needs(tmp_path, statement, unwanted):
    """A room more is the time of its modules, for each start of a program."""
    loaded = fresh(SKLEARN + PARTS.format(statement=statement), tmp_path).split()
    assert {f"hardthresh.{room}" for room in unwanted}.isdisjoint(loaded)
