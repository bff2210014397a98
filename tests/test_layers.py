"""The house stands: a file imports only from the floors below it, in no circle, and nothing is left unregistered.

The order of the rooms is the plan of the house (CONTRIBUTING.md shows it as a table). Every import counts: one inside a
function, one for type checkers alone, and one by a string.
"""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

import hardthresh
from hardthresh.core.registry import Kind

PACKAGE = Path(hardthresh.__file__).parent

# ground floor first; the rooms of one tuple are neighbours, and never import one another
FLOORS = [
    ("core",),
    ("arrays",),
    ("designs",),
    ("losses", "constraints", "steps"),
    ("objectives",),
    ("solvers",),
    ("baselines",),
    ("certificates",),
    ("diagnostics",),
    ("attacks",),
    ("selection",),
    ("estimators",),
    ("limited",),
    ("storage",),
    ("datasets",),
    ("comparison",),
    ("report",),
    ("study",),
    ("cli",),
]
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}

# room -> kinds in the registry, and the files in it that hold no such thing, with the reason
REGISTERED: dict[str, tuple[Kind, ...]] = {
    "losses": ("loss",),
    "constraints": ("constraint",),
    "steps": ("step",),
    "solvers": ("solver",),
    "solvers/branch_and_bound": ("solver",),
    "solvers/stochastic": ("solver",),
    "solvers/working_set": ("solver",),
    "limited/algorithms": ("algorithm",),
}
HELPERS = {
    "constraints/supports.py": "supports that several sets share",
    "constraints/labels.py": "labels of columns as numbers of groups",
    "limited/algorithms/moments.py": "running means and co-moments",
    "limited/algorithms/retraced.py": "AdaptiveHybrid with the choices of the past, for corrected answers",
    "limited/algorithms/schedules.py": "how many examples an update takes",
    "limited/algorithms/support_choice.py": "a support for AdaptiveHybrid: least squares, local search, prices",
    "losses/base.py": "the contract that pointwise losses keep",
    "losses/contract.py": "what losses of all kinds declare",
    "losses/contrasts.py": "where the mean of a loss decreases for ever",
    "losses/expansion.py": "the second-order expansion of the losses of rows",
    "losses/joint.py": "the contract that losses of all predictions at once keep",
    "losses/local_quadratic.py": "the quadratic model of a mean loss, in the place of a loss",
    "losses/mean.py": "what objectives ask of any loss",
    "losses/risk_sets.py": "the sums over risk sets that Cox's partial likelihood is made of",
    "losses/vector.py": "the contract that all losses of several predictions keep",
    "losses/exponential.py": "the exponential of losses with a log link, finite at any prediction",
    "losses/location.py": "means, quantiles and the constants that balance slopes",
    "losses/log_link.py": "the base of the losses of log-means",
    "solvers/auto.py": "chooses a solver: the public minimize and iterate",
    "solvers/block_path.py": "the best blocks for every number of them, where f is quadratic",
    "solvers/model_supports.py": "the supports of all budgets, by quadratic models at few points",
    "solvers/guessed.py": "the best answers among few columns of a table in blocks, checked on the others",
    "solvers/guessed_rows.py": "the same for classes, with a row of coefficients for each column",
    "solvers/pilot.py": "a fit to some rows, which the first reading of a table in blocks checks",
    "solvers/block_tableau.py": "a quadratic over blocks of columns, kept by sweeps",
    "solvers/block_search.py": "local search over whole groups of coordinates",
    "solvers/natural_scale.py": "the scale of each coordinate of a function, by differences of gradients",
    "solvers/splices.py": "the exchanges of splicing at one point",
    "solvers/quasi_newton.py": "minimising on a support by gradients alone",
    "solvers/unit_model.py": "the quadratic model of a few units, by differences of gradients",
    "solvers/units.py": "what a sparse set chooses: coordinates, groups or rows",
    "solvers/branch_and_bound/diagonal.py": "the diagonal of the lower bound, moved to where it is higher",
    "solvers/branch_and_bound/enumeration.py": "all supports below a value, by the same tree",
    "solvers/branch_and_bound/node.py": "a node of the search tree",
    "solvers/branch_and_bound/quadratic.py": "the problem of branch and bound, and what is left of it at a node",
    "solvers/branch_and_bound/relaxation.py": "the lower bound of a node",
    "solvers/branch_and_bound/rows.py": "least squares on a few columns from their rows",
    "solvers/branch_and_bound/search.py": "bounding, fixing and splitting nodes",
    "solvers/exchange.py": "ranks exchanges of one coordinate for another, for solvers and certificates",
    "solvers/exchange_model.py": "the quadratic model of all exchanges, with bounds of its rounding",
    "solvers/gains.py": "what one column gains within bounds",
    "solvers/support_model.py": "the quadratic model on a support, without what leaves it",
    "solvers/perspective.py": "the perspective of a ridge, for branch and bound and for certificates",
    "solvers/local_search.py": "greedy paths, exchanges and add-drop moves of columns or groups",
    "solvers/momentum.py": "momentum rules",
    "solvers/start.py": "where solvers start",
    "solvers/stochastic/batches.py": "batch rules",
    "solvers/stochastic/estimates.py": "what a batch says about an objective",
    "solvers/stochastic/scale.py": "settings with a unit, found at the start",
    "solvers/stochastic/stream.py": "averages of gradients, and what a stream of batches leaves",
    "solvers/stochastic/voting.py": "votes on the index set",
    "solvers/steepest.py": "what solvers do where curvature says nothing",
    "solvers/decrement.py": "what a Newton step on the support may still gain",
    "solvers/newton.py": "the direction of a Newton step on one support",
    "solvers/refinement.py": "what solvers do on one support",
    "solvers/subspace.py": "an objective on the subspace of one support",
    "solvers/working_set/fold_moments.py": "moments of the columns over the training rows of each fold",
    "solvers/working_set/fold_path.py": "the fits of a fold, and checks of what is asked for",
    "solvers/working_set/training_sets.py": "sets of training rows that share their products with the data",
    "solvers/working_set/half_samples.py": "the columns that many halves of the rows choose, at once",
    "solvers/working_set/blocked_half_samples.py": "the same of a table in blocks, by a few readings",
    "solvers/working_set/half_search.py": "how a half of the rows is searched, on statistics of its rows",
    "solvers/working_set/folds.py": "the paths of all folds of a cross-validation at once",
    "solvers/working_set/fold_search.py": "the search of their paths on any statistics",
    "solvers/working_set/blocked_folds.py": "the same paths of a table in blocks",
    "solvers/working_set/reweighted_folds.py": "the same by working responses at a point of each fold",
    "solvers/working_set/generalized_blocked_folds.py": "the same for losses that are not squared",
    "solvers/working_set/class_refits.py": "the fits of classes on given supports and kept columns",
    "solvers/working_set/newton_together.py": "Newton steps of many fits whose derivatives come from one sweep",
    "solvers/working_set/blocked_refits.py": "the fits of all folds of a table in blocks on given supports",
    "solvers/working_set/generalized_folds.py": "the same for losses that are not squared",
    "solvers/working_set/training_fold.py": "the null model, quadratic approximations and refits of a fold",
    "solvers/working_set/fold_refits.py": "the fits of a fold on given supports",
    "solvers/working_set/by_refits.py": "the steps of the working set by refits",
    "solvers/working_set/effort.py": "how hard the working set searches",
    "solvers/working_set/iteration.py": "one iteration of the working set, step by step",
    "solvers/working_set/kernel_model.py": "what the kernel is given of a loss and its columns",
    "solvers/working_set/model.py": "the quadratic model that the working set searches",
    "solvers/working_set/local_scores.py": "what the quadratic model says at a refit",
    "solvers/working_set/refit_search.py": "search on f itself, where the quadratic model misleads",
    "solvers/working_set/refits.py": "the minimiser on a few columns, by Newton steps",
    "solvers/working_set/row_refits.py": "the minimiser on a few rows, for several outputs",
    "solvers/working_set/rows.py": "the steps of the working set for rows of several outputs",
    "solvers/working_set/runs.py": "what the runs of the working set share in an iteration",
    "solvers/working_set/search.py": "local search on a tableau, compiled or not",
    "solvers/working_set/state.py": "what the runs of the working set know",
    "solvers/working_set/support_grid.py": "the minimisers on a grid of supports and ridges",
    "solvers/working_set/sweeps.py": "the arrays of a tableau, and the sweeps that change them",
    "solvers/working_set/tableau.py": "least squares on a Gram matrix: adding, dropping, exchanging columns",
}


def modules(package: Path) -> dict[str, Path]:
    """Every module below a package folder by its full name, a folder by the name of its ``__init__.py``."""

    def name(path: Path) -> str:
        parts = path.relative_to(package.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    return {name(path): path for path in sorted(package.rglob("*.py"))}


@cache
def import_nodes(path: Path) -> list[ast.AST]:
    """What imports something in a file: statements, and calls of `import_module`."""

    def is_call(node: ast.AST) -> bool:
        function = getattr(node, "func", None)
        name = getattr(function, "attr", getattr(function, "id", ""))
        return name.endswith("import_module") and bool(node.args)

    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)) or is_call(node)]


def imported_by_string(node: ast.AST, module: str, known: dict[str, Path]) -> set[str]:
    """The modules that a call of `import_module` may import: for a name made at run time, all other rooms."""
    if not isinstance(node, ast.Call):
        return set()
    (name, *_) = node.args
    if isinstance(name, ast.Constant):
        return {name.value} & known.keys()
    if isinstance(name, ast.JoinedStr) and isinstance(name.values[0], ast.Constant):
        start = name.values[0].value
        named = {other for other in known if other.startswith(start) and other.count(".") == start.count(".")}
        return {other for other in named if not module.startswith(other)}
    return set()


def imports(module: str, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the same package that one module imports, wherever and however."""
    path = known[module]
    folder = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in import_nodes(path):
        yield from imported_by_string(node, module, known)
        if isinstance(node, ast.Import):
            names = {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parent = ".".join(folder.split(".")[: -(node.level - 1) or None]) if node.level else ""
            origin = ".".join(filter(None, (parent, node.module)))
            members = {f"{origin}.{alias.name}" for alias in node.names if alias.name != "__version__"}
            names = {member if member in known else origin for member in members}
        else:
            continue
        yield from (name for name in names if name in known)


def violations(package: Path) -> list[str]:
    """One line for each import that the plan of the house does not allow."""
    known = modules(package)
    found = []
    for module in known:
        if module == package.name:
            continue  # the public namespace stands outside the house
        room = module.split(".")[1]
        for target in imports(module, known):
            if target == package.name:
                found.append(f"{module} imports the public namespace")
                continue
            other = target.split(".")[1]
            if other != room and FLOOR[other] >= FLOOR[room]:
                found.append(f"{module} imports {target}: {other} is not below {room}")
    return found


def circle(package: Path) -> list[str]:
    """The modules of a circle of imports, or nothing."""
    known = modules(package)
    graph = {module: {*imports(module, known)} - {module} for module in known if module != package.name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def unregistered(room: str) -> list[str]:
    """The files of a room that define nothing the registry knows."""
    from hardthresh.core.registry import registered

    folder = f"hardthresh.{room}".replace("/", ".")
    import_module(folder)
    homes = {entry.cls.__module__ for kind in REGISTERED[room] for entry in registered(kind).values()}
    files = [path for path in sorted((PACKAGE / room).glob("*.py")) if not path.name.startswith("_")]
    return [
        f"{room}/{path.name}"
        for path in files
        if f"{room}/{path.name}" not in HELPERS and f"{folder}.{path.stem}" not in homes
    ]


def test_every_room_has_its_floor():
    rooms = {module.split(".")[1] for module in modules(PACKAGE) if "." in module}
    assert rooms <= FLOOR.keys()


def test_files_import_only_from_the_floors_below():
    assert violations(PACKAGE) == []


def test_circles_do_not_exist():
    assert circle(PACKAGE) == []


@pytest.mark.parametrize("room", REGISTERED)
def test_every_file_is_registered(room):
    assert unregistered(room) == []


def test_helpers_exist():
    assert [file for file in HELPERS if not (PACKAGE / file).exists()] == []


@pytest.fixture
def house(tmp_path):
    """Builds a small package out of {file: source}."""

    def build(files: dict[str, str]) -> Path:
        package = tmp_path / "house"
        for name, source in {"__init__.py": "", **files}.items():
            path = package / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        return package

    return build


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("core/loop.py", "from house.solvers import iht"),  # upstairs
        ("core/loop.py", "def run():\n    import house.solvers.iht"),  # upstairs, when nobody looks
        ("core/loop.py", "from ..solvers import iht"),  # upstairs, by the back door
        ("steps/fixed.py", "from house.losses.squared import Squared"),  # neighbours
        ("cli/fit.py", "import house"),  # the public namespace
        ("core/loop.py", "import_module('house.solvers.iht')"),  # by a string
        ("core/loop.py", "if TYPE_CHECKING:\n    from ..solvers import iht"),  # for type checkers
    ],
)
def test_a_forbidden_import_is_found(house, file, source):
    room = file.split("/")[0]
    others = {"solvers/__init__.py": "", "solvers/iht.py": "", "losses/squared.py": ""}
    found = violations(house({**others, f"{room}/__init__.py": "", file: source}))
    assert len(found) == 1
    assert found[0].startswith(f"house.{file[:-3].replace('/', '.')} imports")


def test_an_allowed_import_is_not_found(house):
    files = {
        "__init__.py": "from house.cli import fit",
        "core/loop.py": "import numpy",
        "core/result.py": "from .loop import run",
        "solvers/__init__.py": "from .iht import IHT",
        "solvers/iht.py": "from house.core.loop import run",
        "cli/fit.py": "from house import __version__, solvers",
    }
    package = house(files)
    assert violations(package) == []
    assert circle(package) == []


def test_a_circle_is_found(house):
    files = {"core/__init__.py": "", "core/loop.py": "from . import result", "core/result.py": "from .loop import run"}
    assert {*circle(house(files))} == {"house.core.loop", "house.core.result"}


@pytest.mark.parametrize(
    "source",
    ["if TYPE_CHECKING:\n    from .loop import run", "def f():\n    importlib.import_module('house.core.loop')"],
    ids=["types", "string"],
)
def test_a_circle_that_is_held_open_is_found_too(house, source):
    files = {"core/__init__.py": "", "core/loop.py": "from . import result", "core/result.py": source}
    assert {*circle(house(files))} == {"house.core.loop", "house.core.result"}


def test_a_room_that_is_named_by_a_string_is_found(house):
    files = {"cli/__init__.py": "", "core/__init__.py": "", "core/loop.py": "import_module(f'house.{room}')"}
    assert violations(house(files)) == ["house.core.loop imports house.cli: cli is not below core"]


def test_an_unregistered_file_is_found(monkeypatch):
    known = {*HELPERS}
    monkeypatch.setattr(f"{__name__}.HELPERS", {})
    assert {file for room in REGISTERED for file in unregistered(room)} == known
