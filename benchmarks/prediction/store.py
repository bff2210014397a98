"""Results row by row in one file, so that a run can be interrupted, continued and shared by several processes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class Store:
    """Rows as lines of JSON, of a task such as ``"simulated"``.

    A row has the ``instance``, the ``repetition``, the ``entrant`` with its ``edition``, a checksum of the ``data``,
    and measures, or an ``error``.
    """

    def __init__(self, folder: Path, task: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{task}.jsonl"

    def rows(self) -> list[Row]:
        """Return all rows in the order in which they were added, without one that is just being written."""
        if not self.path.exists():
            return []
        *whole, _ = self.path.read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in whole]

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows by a single write, which does not mix with those of other processes."""
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, lines.encode())
        finally:
            os.close(file)


def key(row: Row) -> tuple[str, int, str, str]:
    """Return what tells a row from others; a later row with the same key replaces an earlier one."""
    return row["instance"], row["repetition"], row["entrant"], row["edition"]
