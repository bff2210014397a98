"""Tables as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence


def csv_text(table: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV."""
    lines = _Lines()
    csv.writer(lines, lineterminator="\r\n").writerows(table)  # so that it quotes cells with either of the two
    return "".join(lines)


class _Lines(list[str]):
    """The lines that a writer of CSV makes, ended by a line feed alone."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")
