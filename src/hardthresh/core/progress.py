"""A progress line for long runs, by rich or tqdm, whichever is installed. Off unless asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from .errors import MissingDependencyError

Report = Callable[[str], None]
"""Called once per step of the work with what there is to say."""


@contextmanager
def progress_line(enabled: bool, title: str, total: int | None = None) -> Iterator[Report]:
    """Show a line on standard error while the block runs; yields the function that moves it on.

    Raises
    ------
    MissingDependencyError
        If it is enabled and neither rich nor tqdm is installed.
    """
    if not enabled:
        yield lambda text: None
        return
    shown = _rich_line(title, total) if _installed("rich.progress") else _tqdm_line(title, total)
    with shown as report:
        yield report


def _installed(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return False
    return True


@contextmanager
def _rich_line(title: str, total: int | None) -> Iterator[Report]:
    console: Any = import_module("rich.console").Console(stderr=True)
    rich: Any = import_module("rich.progress")
    columns = [
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
    ]
    columns.append(rich.TextColumn("{task.fields[text]}"))
    with rich.Progress(*columns, console=console, transient=console.is_terminal) as bar:
        task = bar.add_task(title, total=total, text="")
        yield lambda text: bar.update(task, advance=1, text=text)


@contextmanager
def _tqdm_line(title: str, total: int | None) -> Iterator[Report]:
    if not _installed("tqdm"):
        raise MissingDependencyError(
            "progress needs rich or tqdm; install one of them (rich comes with hardthresh[cli]) or use progress=False"
        )
    tqdm: Any = import_module("tqdm")
    with tqdm.tqdm(desc=title, total=total, leave=False) as bar:

        def report(text: str) -> None:
            bar.set_postfix_str(text, refresh=False)
            bar.update()

        yield report
