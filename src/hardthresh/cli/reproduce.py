"""``hardthresh reproduce``: the figures and tables of the papers, run again and checked.

The experiments come with the repository, not with the package: the command imports them from a folder ``papers``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Annotated, Any

import typer

from hardthresh.core.errors import InvalidInputError, MissingDependencyError

from .terminal import Terminal, write_stderr

WHAT = typer.Argument(help="list, all, PAPER or PAPER/ITEM.", show_default=False)


def reproduce(
    what: Annotated[str, WHAT] = "list",
    full: Annotated[bool, typer.Option("--full", help="Use the paper's sizes: up to hours and gigabytes.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="First seed of the data; published counts are for 0.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder of results and figures; runs continue from it.")] = Path(
        "reproduced"
    ),
    papers: Annotated[Path, typer.Option(help="Folder of the experiments.")] = Path("papers"),
) -> None:
    """Run the experiments of the papers, and compare the results with the published numbers.

    An interrupted run continues where it stopped: finished parts are kept under --out. The exit code is 1 if a number
    is not as expected, an item fails, or data are missing, and 2 if nothing was checked, as with a --seed for which no
    number is published.
    """
    try:
        ok = _reproduce(what, full, seed, out, papers)
    except KeyboardInterrupt:
        write_stderr("interrupted; run the same command to continue")
        raise SystemExit(130) from None
    if not ok:
        raise typer.Exit(1)


def _reproduce(what: str, full: bool, seed: int, out: Path, papers: Path) -> bool:
    """Run the items, and return whether all numbers are as expected.

    Raises
    ------
    InvalidInputError
        If there is no such item, or no number is expected for the items.
    """
    runner: Any = load_runner(papers)
    from hardthresh.datasets import DatasetError

    width = None if sys.stdout.isatty() else 160  # of a file; arbitrary: tables need about 150
    console, errors = Terminal(width=width), Terminal(stderr=True)
    library = runner.Library(papers)
    if what == "list":
        runner.print_list(console, library)
        return True
    if out.exists() and not out.is_dir():
        raise InvalidInputError(f"{out} is a file; --out must be a folder")
    items = library.find(what)
    for paper, name in items:
        library.expected(paper, name)  # checks the rows before hours of work
    runs = []
    for paper, name in items:
        title, start = f"{paper}/{name}", perf_counter()
        try:
            with runner.progress(errors, title) as report:
                answer = runner.run(library, paper, name, out, full=full, seed=seed, report=report)
        except Exception as error:  # other items may still run
            if isinstance(error, DatasetError):
                write_stderr(f"warning: {title} was not run: {' '.join(str(error).split())}")
            answer = runner.failed(library, paper, name, out, error, full=full, seed=seed)
        runs.append((title, answer, perf_counter() - start))
        runner.print_rows(console, title, answer.rows)
        for file in answer.files:
            console.print(str(file), style="dim", soft_wrap=True)
        console.print()
    if len(runs) > 1:
        runner.print_summary(console, runs)
    if not any(answer.n_checked for _, answer, _ in runs):
        about = f"--seed {seed} of {what}" if seed else what
        raise InvalidInputError(
            f"nothing was checked: expected.toml has no row about {about}; the numbers above are for comparison only"
        )
    return all(answer.n_ok == answer.n_checked for _, answer, _ in runs)


def load_runner(folder: Path) -> ModuleType:
    """Import ``papers.runner`` from the folder of the experiments, whatever its name.

    Raises
    ------
    InvalidInputError
        If it is not such a folder.
    MissingDependencyError
        If matplotlib is not installed.
    """
    if not (folder / "runner" / "__init__.py").is_file():
        raise InvalidInputError(
            f"there are no experiments in {folder}: they come with the repository of hardthresh, not with the package; "
            "clone it and run there, or name its folder with --papers"
        )
    try:
        import_module("matplotlib")
    except ImportError as error:
        raise MissingDependencyError("the figures need matplotlib: install hardthresh[plot]") from error
    for name in [name for name in sys.modules if name == "papers" or name.startswith("papers.")]:
        del sys.modules[name]  # of another folder
    package = ModuleType("papers")
    package.__path__ = [str(folder.resolve())]
    sys.modules["papers"] = package
    return import_module("papers.runner")
