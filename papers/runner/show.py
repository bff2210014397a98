"""What a person sees in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from .claims import Claim
from .library import Library
from .run import Answer

Report = Callable[[int, int, str], None]


def print_list(console: Console, library: Library) -> None:
    """Print the papers and their items, one line each."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for number, paper in enumerate(library.papers()):
        if number:
            table.add_row()
        table.add_row(Text(paper, style="bold"), Text(library.title(paper), style="bold"))
        for name in library.items(paper):
            table.add_row(Text(f"{paper}/{name}"), Text(library.item(paper, name).title, style="dim"))
    console.print(table)


def print_rows(console: Console, title: str, rows: list[dict[str, Any]]) -> None:
    """Print what was expected and what came out."""
    if all(row["ok"] is None for row in rows):
        title = f"{title}: nothing is expected of data sets with this seed"
    console.print(Text(title, style="bold"), soft_wrap=True)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("what", "paper or specification", "got", "ok"):
        table.add_column(name)
    for row in rows:
        ok = Text("-") if row["ok"] is None else Text("yes") if row["ok"] else Text("NO", style="bold red")
        got = Text(row["error"]) if "error" in row else in_words(row["got"])
        table.add_row(Text(row["what"]), Text(row["expected"]), got, ok)
    console.print(table)


def print_summary(console: Console, runs: Sequence[tuple[str, Answer, float]]) -> None:
    """Print how many rows of each kind and item are as expected, and the seconds that it took."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("item")
    for name in ("claims ok", "of", "digits ok", "of", "rows ok", "of", "seconds"):
        table.add_column(name, justify="right")
    counts = [
        [count(kind) for kind in ("claim", "digits", None) for count in (answer.n_ok, answer.n_checked)]
        for _, answer, _ in runs
    ]
    for (title, answer, seconds), numbers in zip(runs, counts, strict=True):
        style = "" if answer.n_ok() == answer.n_checked() else "bold red"
        table.add_row(title, *map(str, numbers), f"{seconds:.0f}", style=style)
    total = [str(sum(column)) for column in zip(*counts, strict=True)]
    table.add_row("total", *total, f"{sum(seconds for _, _, seconds in runs):.0f}", style="bold")
    console.print(table)


def print_spread(console: Console, title: str, claims: Sequence[Claim], spread: Mapping[str, Sequence[float]]) -> None:
    """Print the numbers of several seeds for each claim, and on how many of them it is true."""
    console.print(Text(title, style="bold"), soft_wrap=True)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("claim", "in numbers", "least", "median", "greatest", "true on", "verdict"):
        table.add_column(name)
    for claim in claims:
        if numbers := spread[claim.key]:
            summary = [in_words([number]) for number in (min(numbers), median(numbers), max(numbers))]
            true = f"{sum(map(claim.is_true, numbers))} of {len(numbers)}"
            table.add_row(Text(claim.what), claim.inequality, *summary, true, claim.verdict)
    console.print(table)


def in_words(numbers: Sequence[float]) -> str:
    """Return numbers as the specification writes them: four digits, a dash for what was not reached, and nan."""
    return " / ".join("-" if number == inf else f"{number:.4g}" for number in numbers) or "missing"


@contextmanager
def progress(console: Console, title: str) -> Iterator[Report]:
    """Show how many cells are done: a bar in a terminal, else a line for each cell."""
    if not console.is_terminal:

        def say(done: int, total: int, name: str) -> None:
            console.print(
                f"{title}: {done} of {total} cells{': ' + name if name else ''}", markup=False, soft_wrap=True
            )

        yield say
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("{task.fields[cell]}", style="dim"), console=console) as bar:
        task = bar.add_task(title, total=None, cell="")
        yield lambda done, total, name: bar.update(task, completed=done, total=total, cell=name)
