"""From an item to its answer: cells, figures, rows."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from math import inf, isfinite, isnan
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import hardthresh
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.files import write_file

from .cells import Store, digest, write
from .claims import ClaimAtFullSize
from .digits import Numbers, numbers_of
from .experiment import Cell, Item, Row
from .library import Library
from .power import Judge, cannot_fail

WORDS = {inf: "not reached", -inf: "minus infinity"}
"""What results.json says in place of a number that JSON does not have; NaN, which equals nothing, is "not a number"."""

NO_POWER = "this row cannot fail: it stays ok whatever the runs do; see papers/README.md"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came out of an item.

    Attributes
    ----------
    rows : list of dict
        ``kind, key, what, expected, got, ok`` for each row of ``claims.toml`` and ``digits.toml``, and for each number
        of which nothing is expected, as of the digits of other seeds; its ``ok`` is None. A row that cannot fail, and
        the one row of an item that ended with an error, are not ok and have the field ``error``.
    files : list of Path
        The figures, or the traceback.
    numbers : mapping
        The numbers of the item's summary.
    """

    rows: list[dict[str, Any]]
    files: list[Path]
    numbers: Numbers

    def n_checked(self, kind: str | None = None) -> int:
        """Return the number of rows, of all kinds or of one, about which something is expected."""
        return sum(row["ok"] is not None and kind in (None, row["kind"]) for row in self.rows)

    def n_ok(self, kind: str | None = None) -> int:
        """Return the number of rows, of all kinds or of one, that are as expected."""
        return sum(row["ok"] is True and kind in (None, row["kind"]) for row in self.rows)


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
        Handed to the item. An item that has no full size is run at its only size.
    report : callable
        ``report(done, total, name)`` before each cell, and once with the empty name at the end.
    """
    folder, suffix = out / paper / name, _suffix(seed)
    item = library.item(paper, name)
    full = full and item.has_full_size(seed)
    judges = rows_about(library, paper, name, full, seed)  # before the work: a refused row should not cost an hour
    cells = item.cells(full, seed)
    store = Store(folder / "cells", digest(Path(hardthresh.__file__).parent, *library.code(paper, name)))
    rows = _computed(cells, store, report)
    size = ("full size" if full else "quick run") + (f", seed {seed}" if seed else "")
    files = _draw(item, rows, full, folder, suffix, f"({size})".replace(" ", "\N{NO-BREAK SPACE}"))
    numbers = item.summarise(rows, full)
    if full:  # that of some items is another experiment, without the numbers of their claims
        judges = {judge: kind for judge, kind in judges.items() if kind == "digits" or judge.key in numbers}
    verdicts = [{"kind": kind, **judge.judge(numbers)} for judge, kind in judges.items()]
    passed = [
        judge  # once is enough; a claim at full size was examined at the quick size, with its narrower interval
        for judge, row in zip(judges, verdicts, strict=True)
        if row["ok"] and seed == 0 and not isinstance(judge, ClaimAtFullSize)
    ]
    without_power = cannot_fail(item, cells, rows, full, passed)
    for judge, row in zip(judges, verdicts, strict=True):
        if judge in without_power:
            row |= {"ok": False, "error": NO_POWER}
    verdicts += _failures(numbers, {row["key"] for row in verdicts})
    _write_results(paper, name, out, full, seed, verdicts, numbers)
    (folder / f"error{suffix}.txt").unlink(missing_ok=True)
    return Answer(verdicts + _unexpected(numbers, {row["key"] for row in verdicts}), files, numbers)


def rows_about(library: Library, paper: str, name: str, full: bool, seed: int) -> dict[Judge, str]:
    """Return the claims and the digits that are checked in such a run, with their kind: "claim" or "digits".

    In a run of full size the digits replace a claim with the same key, because it was measured at the quick size.
    """
    digits = [row for row in library.digits(paper, name) if row.applies(full, seed)]
    claims: list[Judge] = [*library.claims(paper, name)]
    if full:
        measured = {row.key for row in library.digits(paper, name) if row.applies(full, seed=0)}
        claims = [ClaimAtFullSize(claim) for claim in library.claims(paper, name) if claim.key not in measured]
    return dict.fromkeys(claims, "claim") | dict.fromkeys(digits, "digits")


def _computed(cells: Sequence[Cell], store: Store, report: Callable[[int, int, str], None]) -> list[Row]:
    """Return the rows of the cells; those that are not in the store are computed."""
    found = [store.read(cell) for cell in cells]
    rows, missing = [], found.count(None)
    for cell, row in zip(cells, found, strict=True):
        if row is None:
            report(len(cells) - missing, len(cells), cell.name)
            row = store.compute(cell)
            missing -= 1
        rows.append(row)
    report(len(cells), len(cells), "")
    return rows


def _draw(item: Item, rows: list[Row], full: bool, folder: Path, suffix: str, size: str) -> list[Path]:
    """Draw and write the figures; their titles say of which size the run was."""
    files = []
    for stem, figure in item.draw(rows, full).items():
        figure.suptitle(f"{figure.get_suptitle()} {size}", wrap=True)  # on a line of its own if it is too long
        files.append(folder / f"{stem}{suffix}.png")
        image = BytesIO()
        figure.savefig(image, format="png", dpi=110)
        write_file(files[-1], image.getvalue())
    return files


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
        "kind": "error",
        "key": "error",
        "what": ", ".join([*getattr(error, "__notes__", []), *where]) or f"{paper}/{name}",
        "expected": "no error",
        "got": [],
        "ok": False,
        "error": one_line(error),
    }
    _write_results(paper, name, out, full, seed, [row], {})
    file = out / paper / name / f"error{_suffix(seed)}.txt"
    write(file, "".join(traceback.format_exception(error)))
    return Answer([row], [file], {})


def one_line(error: Exception) -> str:
    """Return the class and the message of an error on one line."""
    return " ".join(f"{type(error).__name__}: {error}".removesuffix(": ").split())


def check_folders(out: Path, items: Sequence[tuple[str, str]]) -> None:
    """Make the folders of the results of some items, and check that files can be written there.

    Raises
    ------
    InvalidInputError
        If one of them is a file, or cannot be made or written to.
    """
    for paper, name in items:
        folder = out / paper / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise InvalidInputError(
                f"results cannot be written into {folder}: {error.strerror}; name another folder with --out"
            ) from error


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
    for key in numbers:
        if key not in judged:
            got = numbers_of(key, numbers)
            rows.append({"kind": "number", "key": key, "what": key, "expected": "nothing", "got": got, "ok": None})
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
