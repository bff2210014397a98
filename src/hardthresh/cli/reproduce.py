"""``hardthresh reproduce``: the figures and tables of the papers, run again and checked.

The experiments come with the repository, not with the package: the command imports them from a folder ``papers``.
"""

from __future__ import annotations

import os
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
    full: Annotated[
        bool, typer.Option("--full", help="Use the sizes of the papers, which may take hours and gigabytes.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="First seed of the data; published counts are for 0.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds to run, from --seed on.")] = 1,
    check: Annotated[
        bool, typer.Option("--check", help="Run the short items that continuous integration runs, with two seeds.")
    ] = False,
    keep_spread: Annotated[
        bool, typer.Option("--keep-spread", help="Write the numbers of seeds 0 to 9 into spread.toml.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder of results and figures; runs continue from it.")] = Path(
        "reproduced"
    ),
    papers: Annotated[Path, typer.Option(help="Folder of the experiments.")] = Path("papers"),
) -> None:
    """Run the experiments of the papers, and compare the results with the claims and numbers of the papers.

    An interrupted run continues where it stopped, because finished parts are stored under --out. The exit code is 1 if
    a claim or a number is not as expected, an item fails (in the list: cannot be imported), or data are missing; it is
    2 if nothing was checked.
    """
    try:
        ok = _reproduce(what, full, range(seed, seed + seeds), check, keep_spread, out, papers)
    except KeyboardInterrupt:
        write_stderr("interrupted; run the same command to continue")
        raise SystemExit(130) from None
    if not ok:
        raise typer.Exit(1)


def _reproduce(what: str, full: bool, seeds: range, check: bool, keep_spread: bool, out: Path, papers: Path) -> bool:
    """Run the items, and return whether all claims and numbers are as expected.

    Raises
    ------
    InvalidInputError
        If there is no such item, options exclude each other, results cannot be written, or nothing is expected of the
        items.
    """
    runner: Any = load_runner(papers)
    if keep_spread and (full or check or seeds != range(runner.SEEDS)):
        raise InvalidInputError(f"--keep-spread needs --seeds {runner.SEEDS}, without --seed, --full and --check")
    if check and (full or seeds != range(1)):
        raise InvalidInputError("--check chooses the size and the seeds: use it without --full, --seed and --seeds")
    # None is that of the terminal, or COLUMNS; 160 that of a file, arbitrary: tables need about 150
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160
    console = Terminal(width=width)
    library = runner.Library(papers, measured=not keep_spread)
    if what == "list" and not check:
        if full or seeds != range(1):
            raise InvalidInputError("say which items to run with --full, --seed or --seeds: all, PAPER or PAPER/ITEM")
        return bool(runner.print_list(console, library))
    if out.exists() and not out.is_dir():
        raise InvalidInputError(f"{out} is a file; --out must be a folder")
    items = library.find("all" if what == "list" else what)
    if check:
        items = [(paper, name) for paper, name in items if name in library.quick_check(paper)]
        if not items:
            raise InvalidInputError(f"--check does not run {what}: it is not among `check` in claims.toml")
    for paper, name in items:
        runner.rows_about(library, paper, name, full, seeds[0])  # refuses bad rows before hours of work
    runner.check_folders(out, items)
    runs: list[tuple[str, Any, float]] = []
    for paper, name in items:
        chosen = [0, runner.SEEDS] if check else [*seeds]  # seed 0, and the first that is not in spread.toml
        runs_of_item = [_run(runner, library, paper, name, out, full, seed, console) for seed in chosen]
        if len(seeds) > 1:
            claims = library.claims(paper, name)
            spread = runner.spread_of(claims, [answer.numbers for _, answer, _ in runs_of_item])
            runner.print_spread(console, f"{paper}/{name}: seeds {seeds[0]} to {seeds[-1]}", claims, spread)
            if keep_spread:
                console.print(str(library.keep_spread(paper, name, spread)), style="dim", soft_wrap=True)
            console.print()
        runs += runs_of_item
    if len(runs) > 1:
        runner.print_summary(console, runs)
    if keep_spread:  # the claims were judged before they were measured
        kinds = ("digits", "error")
        return all(answer.n_ok(kind) == answer.n_checked(kind) for _, answer, _ in runs for kind in kinds)
    if not any(answer.n_checked() for _, answer, _ in runs):
        about = f"--seed {seeds[0]} of {what}" if seeds[0] else what
        raise InvalidInputError(
            f"nothing was checked: claims.toml and digits.toml have no row about {about}; the numbers above are for "
            "comparison only"
        )
    return all(answer.n_ok() == answer.n_checked() for _, answer, _ in runs)


def _run(
    runner: Any, library: Any, paper: str, name: str, out: Path, full: bool, seed: int, console: Terminal
) -> tuple[str, Any, float]:
    """Run an item with one seed, print its rows, and return its title, its answer and the seconds."""
    from hardthresh.datasets import DatasetError

    title, start = f"{paper}/{name}" + (f" --seed {seed}" if seed else ""), perf_counter()
    try:
        with runner.progress(Terminal(stderr=True), title) as report:
            answer = runner.run(library, paper, name, out, full=full, seed=seed, report=report)
    except Exception as error:  # other items may still run
        if isinstance(error, DatasetError):
            write_stderr(f"warning: {title} was not run: {' '.join(str(error).split())}")
        answer = runner.failed(library, paper, name, out, error, full=full, seed=seed)
    runner.print_rows(console, title, answer.rows)
    for file in answer.files:
        console.print(str(file), style="dim", soft_wrap=True)
    console.print()
    return title, answer, perf_counter() - start


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
