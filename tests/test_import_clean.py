"""Importing hardthresh costs nothing and changes nothing. The tests look at fresh interpreters."""

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import hardthresh


def fresh(code: str, folder: Path) -> str:
    """What a new interpreter prints (on either stream) when it runs the code in a folder."""
    run = subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr


EXTRAS = {"dask", "distributed", "h5py", "jax", "jinja2", "matplotlib", "pandas", "polars", "pooch", "pyarrow", "rich"}
EXTRAS |= {"starlette", "torch", "typer", "uvicorn", "zarr"}

LOOK = """
import json, sys
before = set(sys.modules)

def look():
    packages = {name.partition(".")[0] for name in sys.modules.keys() - before} - sys.stdlib_module_names
    rooms = {name.split(".")[1] for name in sys.modules if name.startswith("hardthresh.")}
    print(json.dumps([sorted(packages), sorted(rooms)]))
"""

# scikit-learn comes first where it may come at all: what it does when it is imported is not ours to answer for
WORLD = """
import locale, logging, os, random, signal, threading, warnings
import sklearn.linear_model, sklearn.model_selection
import numpy, scipy, sklearn, threadpoolctl

def world():
    return {
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
    }

world_before = world()
"""

COMPARE = """
world_after = world()
print(json.dumps([key for key in world_before if world_before[key] != world_after[key]]))
from hardthresh import *
import hardthresh
print(json.dumps(sorted({*hardthresh.__all__} - globals().keys())))
"""

SOLVER = "from hardthresh import constraints, designs, losses, minimize, objectives, steps"
BUYER = "from hardthresh.limited import AdaptiveHybrid, Journal"
ESTIMATOR = "from hardthresh import SparseLinearRegression"
ESTIMATORS = "from hardthresh import estimators"
STORED = "from hardthresh import LimitedAttributeRegression, arrays, core, datasets, load, save, solvers"


class Interpreter:
    """What is loaded after each of some statements, one after another in a fresh interpreter, and what it says last."""

    def __init__(self, folder, first, statements, last=""):
        code = first + LOOK + "".join(f"{statement}\nlook()\n" for statement in statements) + last
        lines = [json.loads(line) for line in fresh(code, folder).splitlines()]
        looks, self.last = lines[: len(statements)], lines[len(statements) :]
        self.packages = {statement: {*packages} for statement, (packages, _) in zip(statements, looks, strict=True)}
        self.rooms = {statement: {*rooms} for statement, (_, rooms) in zip(statements, looks, strict=True)}
        self.files = [*folder.iterdir()]


@pytest.fixture(scope="module")
def without_scikit_learn(tmp_path_factory):
    statements = ["import hardthresh", "from hardthresh import minimize", SOLVER, BUYER]
    return Interpreter(tmp_path_factory.mktemp("without"), "", statements)


@pytest.fixture(scope="module")
def after_scikit_learn(tmp_path_factory):
    return Interpreter(tmp_path_factory.mktemp("after"), WORLD, [ESTIMATOR, ESTIMATORS, SOLVER, STORED], COMPARE)


def test_the_package_alone_imports_only_the_standard_library(without_scikit_learn):
    assert without_scikit_learn.packages["import hardthresh"] == {"hardthresh"}
    assert without_scikit_learn.rooms["import hardthresh"].isdisjoint(hardthresh._ROOMS)


@pytest.mark.parametrize("statement", [SOLVER, BUYER])
def test_solvers_and_algorithms_that_buy_need_no_scikit_learn_and_no_extra(without_scikit_learn, statement):
    assert EXTRAS.union({"joblib", "sklearn"}).isdisjoint(without_scikit_learn.packages[statement])


def test_estimators_need_no_extra(after_scikit_learn):
    assert EXTRAS.isdisjoint(after_scikit_learn.packages[STORED])


def test_a_solver_loads_only_the_rooms_that_it_needs(without_scikit_learn):
    """A room more is the time of its modules, for each start of a program."""
    unwanted = {"attacks", "baselines", "cli", "datasets", "estimators", "limited", "report"}
    assert unwanted.isdisjoint(without_scikit_learn.rooms["from hardthresh import minimize"])


def test_an_estimator_loads_only_the_rooms_that_it_needs(after_scikit_learn):
    unwanted = {"attacks", "baselines", "cli", "datasets", "limited", "report"}
    assert unwanted.isdisjoint(after_scikit_learn.rooms[ESTIMATOR])


def test_importing_changes_nothing_and_prints_nothing(after_scikit_learn):
    changed, _ = after_scikit_learn.last
    assert changed == []
    assert after_scikit_learn.files == []


def test_every_public_name_resolves(after_scikit_learn):
    _, unresolved = after_scikit_learn.last
    assert unresolved == []


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
