"""Display of long runs: a progress line, by rich or tqdm, whichever is installed, and durations in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from .errors import MissingDependencyError

Report = Callable[[str], None]
"""Called once per step of the work with what there is to say."""


def format_duration(seconds: float) -> str:
    """Return a duration as people write it.

    Examples
    --------
    >>> format_duration(0.0123), format_duration(139.7), format_duration(7260)
    ('0.012 s', '2 min 20 s', '2 h 1 min')
    """
    if seconds < 1e-3:
        return "less than 1 ms"
    if seconds < 9.95:
        return f"{seconds:#.2g} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    (large, small), units = (
        (divmod(whole, 60), ("min", "s")) if whole < 7200 else (divmod(round(whole / 60), 60), ("h", "min"))
    )
    return f"{large} {units[0]}" + (f" {small} {units[1]}" if small else "")


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
