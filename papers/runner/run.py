"""From an item to its answer: cells, figures, rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from math import inf, isfinite, isnan
from pathlib import Path
from typing import Any

import hardthresh
from hardthresh.core.files import write_file

from .cells import Store, digest, write
from .expected import Numbers
from .library import Library

WORDS = {inf: "not reached", -inf: "minus infinity"}
"""What results.json says in place of a number that JSON does not have; NaN, which equals nothing, is "not a number"."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came out of an item.

    Attributes
    ----------
    rows : list of dict
        ``key, what, expected, got, ok`` for each expectation, and for each number of which nothing is expected, as with
        other seeds; its ``ok`` is None.
    files : list of Path
        The figures.
    """

    rows: list[dict[str, Any]]
    files: list[Path]

    @property
    def ok(self) -> bool:
        """Whether all is as expected."""
        return all(row["ok"] is not False for row in self.rows)


def run(
    library: Library,
    paper: str,
    name: str,
    out: Path,
    *,
    full: bool = False,
    seed: int = 0,
    report: Callable[[int, int, str], None] = lambda done, total, name: None,
) -> Answer:
    """Run an item, or what is still missing of it.

    Parameters
    ----------
    library, paper, name :
        Which item.
    out : Path
        Everything is written in ``out/paper/name``; with another seed than 0 under names of its own.
    full, seed :
        Handed to the item.
    report : callable
        ``report(done, total, name)`` before each cell, and once with the empty name at the end.
    """
    folder, suffix = out / paper / name, f"-seed{seed}" if seed else ""
    item = library.item(paper, name)
    expected = library.expected(paper, name)  # before the work: a row that is refused should not cost an hour
    cells = item.cells(full, seed)
    store = Store(folder / "cells", digest(Path(hardthresh.__file__).parent, library.folder / paper))
    found = [store.read(cell) for cell in cells]
    rows, missing = [], found.count(None)
    for cell, row in zip(cells, found, strict=True):
        if row is None:
            report(len(cells) - missing, len(cells), cell.name)
            row = store.compute(cell)
            missing -= 1
        rows.append(row)
    report(len(cells), len(cells), "")
    files = []
    for stem, figure in item.draw(rows, full).items():
        files.append(folder / f"{stem}{suffix}.png")
        image = BytesIO()
        figure.savefig(image, format="png", dpi=110)
        write_file(files[-1], image.getvalue())
    numbers = item.summarise(rows, full)
    verdicts = [row.judge(numbers) for row in expected if row.applies(full, seed)]
    verdicts += _failures(numbers, {row["key"] for row in verdicts})
    settings = {"paper": paper, "item": name, "full": full, "seed": seed, "hardthresh": hardthresh.__version__}
    text = json.dumps(_plain({**settings, "rows": verdicts, "numbers": numbers}), indent=1)
    write(folder / f"results{suffix}.json", text + "\n")
    return Answer(verdicts + _unexpected(numbers, {row["key"] for row in verdicts}), files)


def _failures(numbers: Numbers, judged: Collection[str]) -> list[dict[str, Any]]:
    """Return a row for each NaN that nothing was expected of, as with other seeds: it must not go unseen."""
    rows = _unexpected(numbers, judged)
    return [row | {"expected": "a number", "ok": False} for row in rows if any(isnan(number) for number in row["got"])]


def _unexpected(numbers: Numbers, judged: Collection[str]) -> list[dict[str, Any]]:
    """Return a row for each number that no row has judged."""
    rows = []
    for key, value in numbers.items():
        got = [float(number) for number in (value if isinstance(value, Sequence) else [value])]
        if key not in judged:
            rows.append({"key": key, "what": key, "expected": "nothing", "got": got, "ok": None})
    return rows


def _plain(value: Any) -> Any:
    """Return the value with words for what JSON has no number for."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, bool | int | str | None):
        return value
    number = float(value)
    return number if isfinite(number) else WORDS.get(number, "not a number")
