"""Tables as CSV that a spreadsheet can open without harm."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence

from .numbers import is_number

# what a spreadsheet runs, or what is already escaped; a single sign is harmless, and a class beside "+" may be "-"
FORMULA = re.compile(r"'*[=+\-@\t\r].", re.DOTALL)


def csv_text(table: Iterable[Sequence[object]], *, verbatim: bool = False) -> str:
    """Return a table as CSV; unless `verbatim`, texts that a spreadsheet would run as formulas are escaped."""
    lines = _Lines()
    rows = table if verbatim else ([escaped(cell) for cell in row] for row in table)
    csv.writer(lines, lineterminator="\r\n").writerows(rows)  # so that cells with \r or \n are quoted
    return "".join(lines)


class _Lines(list[str]):
    """The lines of a CSV writer, each ended by a line feed only."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def escaped(cell: object) -> object:
    """Return a cell, with a ' in front if it is a text that a spreadsheet would run as a formula.

    A text that looks like an escaped one is escaped, too, so that unescaping restores every cell.

    Examples
    --------
    >>> [escaped(cell) for cell in ("=1+1", "'=1+1", "-", "-5", -5, "a=1")]
    ["'=1+1", "''=1+1", '-', '-5', -5, 'a=1']
    """
    return f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) and not is_number(cell) else cell
