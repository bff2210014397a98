"""Which papers and items there are."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.files import write_file

from .claims import SEEDS, Claim, claims, write_spread
from .digits import Digits, digits
from .experiment import Item


@dataclass(frozen=True, slots=True)
class Library:
    """A folder of papers.

    Parameters
    ----------
    folder : Path
        With a folder for each paper: scripts, ``digits.toml``, ``claims.toml`` and ``spread.toml``.
    measured : bool
        False leaves out what ``spread.toml`` has, to measure it again.
    """

    folder: Path
    measured: bool = True

    def papers(self) -> list[str]:
        """Return the names of the papers."""
        return sorted(path.parent.name for path in self.folder.glob("*/digits.toml"))

    def title(self, paper: str) -> str:
        """Return the title of a paper."""
        return str(self._toml(paper, "digits")["title"])

    def items(self, paper: str) -> list[str]:
        """Return the names of a paper's items, in the order in which ``digits.toml`` has them, then by name."""
        names = sorted(path.stem for path in (self.folder / paper).glob("[!_]*.py"))
        order = [*self._toml(paper, "digits")]
        return sorted(names, key=lambda name: order.index(name) if name in order else len(order))

    def item(self, paper: str, name: str) -> Item:
        """Return an item."""
        item: Item = import_module(f"papers.{paper}.{name}").ITEM
        return item

    def code(self, paper: str, item: str) -> list[Path]:
        """Return the scripts that an item runs: its own, and the helpers of the paper."""
        return [self.folder / paper / f"{item}.py", *sorted((self.folder / paper).glob("_*.py"))]

    def digits(self, paper: str, item: str) -> list[Digits]:
        """Return the rows of ``digits.toml`` on an item."""
        return digits(self._toml(paper, "digits").get(item, []), self._place(paper, "digits", item))

    def claims(self, paper: str, item: str) -> list[Claim]:
        """Return the rows of ``claims.toml`` on an item, with the numbers of ``spread.toml``."""
        spread = self._toml(paper, "spread") if self.measured else {}
        return self._claims(paper, item, spread.get(item, {}))

    def keep_spread(self, paper: str, item: str, spread: Mapping[str, Sequence[float]]) -> Path:
        """Write the numbers of an item's claims into ``spread.toml``, in place of those that it has, and return it.

        Raises
        ------
        InvalidInputError
            If a verdict is not that of the numbers, or there are too few of them; then nothing is written.
        """
        if short := [key for key, numbers in spread.items() if len(numbers) != SEEDS]:
            raise InvalidInputError(
                f"{len(spread[short[0]])} of {SEEDS} seeds have the number {short[0]!r}; none is kept"
            )
        self._claims(paper, item, spread)
        path = self.folder / paper / "spread.toml"
        found = {**self._toml(paper, "spread"), item: spread}
        write_file(path, write_spread({name: found[name] for name in self.items(paper) if name in found}).encode())
        return path

    def quick_check(self, paper: str) -> list[str]:
        """Return the items of a paper that ``--check`` runs: ``check`` in ``claims.toml``."""
        return list(self._toml(paper, "claims").get("check", []))

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

    def _claims(self, paper: str, item: str, spread: Mapping[str, Sequence[float]]) -> list[Claim]:
        return claims(self._toml(paper, "claims").get(item, []), spread, self._place(paper, "claims", item))

    def _place(self, paper: str, name: str, item: str) -> str:
        """Return where the rows on an item are, for messages."""
        return f"{self.folder / paper / name}.toml, [[{item}]]"

    def _toml(self, paper: str, name: str) -> dict[str, Any]:
        """Return a file of a paper; nothing where there is none.

        Raises
        ------
        InvalidInputError
            If it is no TOML, or has a table that is named after no item.
        """
        path = self.folder / paper / f"{name}.toml"
        if not path.is_file():
            return {}
        try:
            content = _parsed(path.read_text(encoding="utf-8"))
        except ValueError as error:  # also of UnicodeDecodeError
            raise InvalidInputError(f"{path} cannot be read: {error}") from None
        scripts = {script.stem for script in (self.folder / paper).glob("[!_]*.py")}
        if unknown := content.keys() - scripts - {"title", "check"}:
            raise InvalidInputError(f"{path} has a table {min(unknown)!r}, and {paper} has no such item")
        return content


@lru_cache(maxsize=64)  # which every row of a table asks for; two or three for each paper
def _parsed(text: str) -> dict[str, Any]:
    """Return the content of a file, which nobody changes."""
    return tomllib.loads(text)


def _among(kind: str, name: str, known: list[str]) -> None:
    if name in known:
        return
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}? There" if close else "there"
    raise InvalidInputError(f"there is no {kind} {name!r}; {hint} is: {', '.join(known) or 'nothing'}.")
