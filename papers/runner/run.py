"""From an item to its answer: cells, figures, rows."""

from __future__ import annotations

import json
import traceback
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
        other seeds; its ``ok`` is None. An item that ended with an error has one row, with the field ``error``.
    files : list of Path
        The figures, or the traceback.
    """

    rows: list[dict[str, Any]]
    files: list[Path]

    @property
    def n_checked(self) -> int:
        """The number of rows about which something is expected."""
        return sum(row["ok"] is not None for row in self.rows)

    @property
    def n_ok(self) -> int:
        """The number of rows that are as expected."""
        return sum(row["ok"] is True for row in self.rows)


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
    folder, suffix = out / paper / name, _suffix(seed)
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
    size = ("full size" if full else "quick run") + (f", seed {seed}" if seed else "")
    size = f"({size})".replace(" ", "\N{NO-BREAK SPACE}")
    for stem, figure in item.draw(rows, full).items():
        figure.suptitle(f"{figure.get_suptitle()} {size}", wrap=True)  # on a line of its own if it is too long
        files.append(folder / f"{stem}{suffix}.png")
        image = BytesIO()
        figure.savefig(image, format="png", dpi=110)
        write_file(files[-1], image.getvalue())
    numbers = item.summarise(rows, full)
    verdicts = [row.judge(numbers) for row in expected if row.applies(full, seed)]
    verdicts += _failures(numbers, {row["key"] for row in verdicts})
    _write_results(paper, name, out, full, seed, verdicts, numbers)
    (folder / f"error{suffix}.txt").unlink(missing_ok=True)
    return Answer(verdicts + _unexpected(numbers, {row["key"] for row in verdicts}), files)


def failed(
    library: Library, paper: str, name: str, out: Path, error: Exception, *, full: bool = False, seed: int = 0
) -> Answer:
    """Return the answer of an item that ended with an error: one failed row, which says what happened and where.

    The row replaces the results of an earlier run, and the traceback is written beside it.
    """
    folder = library.folder.resolve()
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if (folder / paper) in Path(frame.filename).parents
    ]
    where = [
        f"{Path(frame.filename).relative_to(folder)}, line {frame.lineno}, in {frame.name}" for frame in frames[-1:]
    ]
    row = {
        "key": "error",
        "what": ", ".join([*getattr(error, "__notes__", []), *where]) or f"{paper}/{name}",
        "expected": "no error",
        "got": [],
        "ok": False,
        "error": " ".join(f"{type(error).__name__}: {error}".removesuffix(": ").split()),
    }
    _write_results(paper, name, out, full, seed, [row], {})
    file = out / paper / name / f"error{_suffix(seed)}.txt"
    write(file, "".join(traceback.format_exception(error)))
    return Answer([row], [file])


def _suffix(seed: int) -> str:
    """Return what the names of files end with that are about other data sets than the first."""
    return f"-seed{seed}" if seed else ""


def _write_results(
    paper: str, name: str, out: Path, full: bool, seed: int, rows: list[dict[str, Any]], numbers: Numbers
) -> None:
    settings = {"paper": paper, "item": name, "full": full, "seed": seed, "hardthresh": hardthresh.__version__}
    text = json.dumps(_plain({**settings, "rows": rows, "numbers": numbers}), indent=1)
    write(out / paper / name / f"results{_suffix(seed)}.json", text + "\n")


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
