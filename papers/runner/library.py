"""Which papers and items there are."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from hardthresh.core.errors import InvalidInputError

from .expected import Expectation, expectations
from .experiment import Item


@dataclass(frozen=True, slots=True)
class Library:
    """A folder of papers.

    Parameters
    ----------
    folder : Path
        With a folder for each paper: scripts, and ``expected.toml``.
    """

    folder: Path

    def papers(self) -> list[str]:
        """Return the names of the papers."""
        return sorted(path.parent.name for path in self.folder.glob("*/expected.toml"))

    def title(self, paper: str) -> str:
        """Return the title of a paper."""
        return str(self._toml(paper)["title"])

    def items(self, paper: str) -> list[str]:
        """Return the names of a paper's items, in the order in which ``expected.toml`` has them, then by name."""
        names = sorted(path.stem for path in (self.folder / paper).glob("[!_]*.py"))
        order = [*self._toml(paper)]
        return sorted(names, key=lambda name: order.index(name) if name in order else len(order))

    def item(self, paper: str, name: str) -> Item:
        """Return an item."""
        item: Item = import_module(f"papers.{paper}.{name}").ITEM
        return item

    def expected(self, paper: str, item: str) -> list[Expectation]:
        """Return the rows of ``expected.toml`` on an item."""
        return expectations(self._toml(paper).get(item, []))

    def find(self, text: str) -> list[tuple[str, str]]:
        """Return the items that ``all``, ``PAPER`` or ``PAPER/ITEM`` means, as pairs.

        Raises
        ------
        InvalidInputError
            If there is no such paper or item; the message says what there is.
        """
        if text == "all":
            return [(paper, name) for paper in self.papers() for name in self.items(paper)]
        paper, _, item = text.strip("/").partition("/")
        _among("paper", paper, self.papers())
        if item:
            _among(f"item of {paper}", item, self.items(paper))
        return [(paper, item)] if item else [(paper, name) for name in self.items(paper)]

    def _toml(self, paper: str) -> dict[str, object]:
        return tomllib.loads((self.folder / paper / "expected.toml").read_text(encoding="utf-8"))


def _among(kind: str, name: str, known: list[str]) -> None:
    if name in known:
        return
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}? There" if close else "there"
    raise InvalidInputError(f"there is no {kind} {name!r}; {hint} is: {', '.join(known) or 'nothing'}.")
