"""What a person sees in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from statistics import median
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from .claims import Claim
from .library import Library
from .run import Answer, one_line

Report = Callable[[int, int, str], None]


WIDE = 120
"""Columns of a terminal in which tables are printed; in fewer, the texts of a row are below one another."""


def print_list(console: Console, library: Library) -> bool:
    """Print the papers and their items, and return whether all items could be imported."""
    whole = True
    lines: list[tuple[Text, Text]] = []
    for paper in library.papers():
        lines += [(Text(), Text())] if lines else []
        lines.append((Text(paper, style="bold"), Text(library.title(paper), style="bold")))
        for name in library.items(paper):
            try:
                title = Text(library.item(paper, name).title, style="dim")
            except Exception as error:  # the others are listed nevertheless
                title, whole = Text(f"cannot be imported: {one_line(error)}", style="bold red"), False
            lines.append((Text(f"{paper}/{name}"), title))
    if console.width >= WIDE:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column()
        for name, title in lines:
            table.add_row(name, title)
        console.print(table)
    else:
        for name, title in lines:
            console.print(name)
            if title:
                console.print(Padding(title, (0, 0, 0, 4)))
    return whole


def print_rows(console: Console, title: str, rows: list[dict[str, Any]]) -> None:
    """Print what was expected and what came out."""
    if all(row["ok"] is None for row in rows):
        title = f"{title}: nothing is expected of data sets with this seed"
    console.print(Text(title, style="bold"), soft_wrap=True)
    wide = console.width >= WIDE
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("what", "paper or specification", "got", "ok") if wide else ("ok", "what, got, expected"):
        table.add_column(name)
    for row in rows:
        ok = Text("-") if row["ok"] is None else Text("yes") if row["ok"] else Text("NO", style="bold red")
        got = row.get("error") or in_words(row["got"])
        if wide:
            table.add_row(Text(row["what"]), Text(row["expected"]), Text(got), ok)
        else:
            table.add_row(ok, _below(row["what"], f"got: {got}", f"expected: {row['expected']}"))
    console.print(table)


def print_summary(console: Console, runs: Sequence[tuple[str, Answer, float]]) -> None:
    """Print how many rows of each kind and item are as expected, and the seconds that it took."""
    wide = console.width >= WIDE
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("item", overflow="fold")
    kinds = ("claims ok", "of", "digits ok", "of", "rows ok", "of") if wide else ("claims", "digits", "rows ok")
    for name in (*kinds, "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    counts = [
        [count(kind) for kind in ("claim", "digits", None) for count in (answer.n_ok, answer.n_checked)]
        for _, answer, _ in runs
    ]
    total = [sum(column) for column in zip(*counts, strict=True)]
    styles = ["" if answer.n_ok() == answer.n_checked() else "bold red" for _, answer, _ in runs]
    lines = [(title, numbers, seconds) for (title, _, seconds), numbers in zip(runs, counts, strict=True)]
    lines.append(("total", total, sum(seconds for _, _, seconds in runs)))
    for (title, numbers, seconds), style in zip(lines, [*styles, "bold"], strict=True):
        pairs = [f"{ok} of {of}" for ok, of in zip(numbers[::2], numbers[1::2], strict=True)]
        table.add_row(title, *(map(str, numbers) if wide else pairs), f"{seconds:.0f}", style=style)
    console.print(table)


def print_spread(console: Console, title: str, claims: Sequence[Claim], spread: Mapping[str, Sequence[float]]) -> None:
    """Print the numbers of several seeds for each claim, and on how many of them it is true."""
    console.print(Text(title, style="bold"), soft_wrap=True)
    wide = console.width >= WIDE
    table = Table(box=None, padding=(0, 2, 0, 0))
    apart = ("claim", "in numbers", "least", "median", "greatest", "true on", "verdict")
    for name in apart if wide else ("true on", "claim, its numbers and its verdict"):
        table.add_column(name, no_wrap=name == "true on")
    for claim in claims:
        if numbers := spread[claim.key]:
            least, middle, greatest = (in_words([number]) for number in (min(numbers), median(numbers), max(numbers)))
            true = f"{sum(map(claim.is_true, numbers))} of {len(numbers)}"
            if wide:
                table.add_row(Text(claim.what), claim.inequality, least, middle, greatest, true, claim.verdict)
            else:
                found = f"{least} to {greatest}, median {middle}"
                table.add_row(true, _below(claim.what, found, f"{claim.inequality}: {claim.verdict}"))
    console.print(table)


def _below(what: str, *more: str) -> Text:
    """Return the texts of a row for a narrow terminal, the first above the others."""
    return Text.assemble(what, *((f"\n{text}", "dim") for text in more))


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
