"""A table of texts between lines of text, as plain text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """What a result prints: lines, a table, and notes below it.

    Attributes
    ----------
    head : sequence of str
        The lines above the table.
    header : sequence of str
        The titles of its columns.
    rows : sequence of sequence of str
        Its cells. Without rows there is no table.
    notes : sequence of str
        The lines below the table.
    left : sequence of str
        The titles of the columns that are aligned on the left, which hold words; numbers are aligned on the right.
    """

    head: Sequence[str]
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    left: Sequence[str] = ()

    def to_text(self) -> str:
        """Return it as lines of text."""
        cells = [self.header, *self.rows]
        width = [max(len(row[column]) for row in cells) for column in range(len(self.header))]
        lines = [
            "  ".join(
                cell.ljust(size) if title in self.left else cell.rjust(size)
                for cell, size, title in zip(row, width, self.header, strict=True)
            ).rstrip()
            for row in cells
        ]
        table = [] if not self.rows else ["", lines[0], "-" * max(map(len, lines)), *lines[1:]]
        return "\n".join([*self.head, *table, *self.notes])

    def to_html(self) -> str:
        """Return it as an HTML element."""
        body = "".join(f"<tr>{self._row(cells, 'td')}</tr>" for cells in self.rows)
        table = f"<table><thead><tr>{self._row(self.header, 'th')}</tr></thead><tbody>{body}</tbody></table>"
        before, after = ("".join(f"<div>{escape(line)}</div>" for line in lines) for lines in (self.head, self.notes))
        return f"<div>{before}{table if self.rows else ''}{after}</div>"

    def _row(self, cells: Sequence[str], tag: str) -> str:
        style = ("left" if title in self.left else "right" for title in self.header)
        return "".join(
            f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>' for cell, side in zip(cells, style, strict=True)
        )


def one_line(name: str) -> str:
    """Return a name without line breaks, control characters and marks of the writing direction."""
    return " ".join("".join(mark if mark.isprintable() else " " for mark in name).split())
