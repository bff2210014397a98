"""What an experiment is: cells to compute, a summary to check, figures to draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.figure import Figure

from .digits import Numbers

Row = dict[str, Any]
"""The arguments of a cell and what its function returned, under their names."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One independent piece of work.

    Parameters
    ----------
    name : str
        For people: the progress line and the beginning of the file's name.
    function : callable
        ``function(**arguments)`` returns a mapping of numbers, texts, None, lists and arrays.
    arguments : mapping
        Values that JSON can write; they are the key under which the result is kept.
    """

    name: str
    function: Callable[..., Mapping[str, Any]]
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Item:
    """One figure or table of a paper.

    Parameters
    ----------
    title : str
        One line that says what it shows.
    cells : callable
        ``cells(full, seed)`` returns the cells; cells that share data stand side by side. `full` asks for the paper's
        own sizes. The data sets are drawn with the seeds `seed`, `seed` + 1, ...
    summarise : callable
        ``summarise(rows, full)`` returns the numbers that ``digits.toml`` or ``claims.toml`` has under their keys, and
        no others.
    draw : callable
        ``draw(rows, full)`` returns figures under the names of their files.
    example : callable
        ``example(**arguments)`` returns at once a made-up result of a cell, with the fields of a real one. The tests
        summarise and draw such rows: they see a key without a number, and a number without a key, before a run does.
    """

    title: str
    cells: Callable[[bool, int], Sequence[Cell]]
    summarise: Callable[[list[Row], bool], Numbers]
    draw: Callable[[list[Row], bool], Mapping[str, Figure]]
    example: Callable[..., Mapping[str, Any]]

    def has_full_size(self, seed: int) -> bool:
        """Return whether the cells of a run of full size differ from those of a quick run."""
        return [(cell.name, cell.arguments) for cell in self.cells(True, seed)] != [
            (cell.name, cell.arguments) for cell in self.cells(False, seed)
        ]


def pick(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """Return the rows that have all these values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def data_seeds(seed: int, number: int) -> range:
    """Return the seeds of so many data sets; those of two values of ``--seed`` have none in common."""
    return range(number * seed, number * (seed + 1))
