"""Conversion of journals of format version 1, which are lines of JSON, to the present format."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hardthresh.core.errors import InvalidInputError, warn
from hardthresh.limited.cost_model import CostModel

from .values import Answer


def convert_journal(old: str | os.PathLike[str], new: str | os.PathLike[str]) -> int:
    """Convert a journal of an earlier version, a file with lines of JSON, to a new journal, an SQLite database.

    No program may write to the old file at the same time. The new file is created in one step, when it is complete.

    Parameters
    ----------
    old : path
        The journal of an earlier version; it is not changed.
    new : path
        The new journal, usually with the ending ``.sqlite``; it must not exist. ``who`` and ``answered_at`` are NULL in
        it.

    Returns
    -------
    int
        The number of answers.

    Raises
    ------
    InvalidInputError
        If the old file is not such a journal or a line is damaged, or if the new file exists or its folder does not.
    HardThreshError
        If the new file cannot be written.

    Warns
    -----
    UserWarning
        If the last line of the old file is incomplete, such as after a program was killed. The line is left out, and
        the next start buys that answer again.

    Notes
    -----
    Cost: one pass over the file; O(1) memory.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> terms = {"format": "hardthresh journal", "format_version": 1, "n_features": 3, "budget": 2.0, "panels": None}
    >>> terms |= {"prices": None, "feature_names": None, "examples": None}
    >>> answer = {"example": 0, "indices": [0, 2], "values": [0.5, 1.5], "target": 1.0}
    >>> with TemporaryDirectory() as folder:
    ...     old = Path(folder) / "study.jsonl"
    ...     _ = old.write_text(json.dumps(terms) + "\\n" + json.dumps(answer) + "\\n")
    ...     convert_journal(old, Path(folder) / "study.sqlite")
    1
    """
    from .journal_file import JournalFile

    source, target = Path(old), Path(new)
    if not source.is_file():
        raise InvalidInputError(f"{source} is a folder" if source.is_dir() else f"there is no file {source}")
    if target.exists():
        raise _exists(target)
    if not target.parent.is_dir():
        raise InvalidInputError(f"there is no folder {target.parent} to write {target.name} in")
    terms = _terms(source)
    cost_model = _cost_model(source, terms)
    with TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        draft = Path(folder) / "draft"
        count = JournalFile(draft, terms).extend(_answers(source, cost_model))
        _publish(draft, target)
    return count


def _terms(path: Path) -> dict[str, Any]:
    """Return the terms in the first line of an old journal."""
    with path.open("rb") as file:
        first = file.readline()
    try:
        terms = json.loads(first)
    except (ValueError, RecursionError):
        terms = None
    if not (isinstance(terms, dict) and terms.get("format") == "hardthresh journal"):
        raise InvalidInputError(f"{path} is not a journal in lines of JSON; there is nothing to convert")
    if terms.get("format_version") != 1:
        raise InvalidInputError(f"{path} has format version {terms.get('format_version')!r}; only 1 can be converted")
    return terms


def _cost_model(path: Path, terms: dict[str, Any]) -> CostModel:
    """Return the cost model of an old journal."""
    from .journal_file import TERMS

    try:
        n_features, budget, panels, prices, *_ = [terms[name] for name in TERMS]
        if panels is None:
            return CostModel.of(n_features, int(budget))
        return CostModel.of(n_features, costs=dict(enumerate(prices)), panels=panels, budget=budget)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        raise _damaged(path, 1) from None


def _answers(path: Path, cost_model: CostModel) -> Iterator[Answer]:
    """Yield the answers of an old journal."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                warn(
                    f"the last line of {path}, {number}, was cut; it is left out, and its answer will be asked for "
                    "again",
                    UserWarning,
                )
            elif number > 1:
                yield _answer(path, number, line, cost_model)


def _answer(path: Path, number: int, line: bytes, cost_model: CostModel) -> Answer:
    try:
        content = json.loads(line)
        indices, values = content["indices"], content["values"]
        paid = content["paid"] if values is None else True
        if not isinstance(paid, bool):
            raise TypeError("paid is not a truth value")
        cost = cost_model.cost(indices) if paid else 0.0
        return Answer(content["example"], indices, values, None if values is None else content["target"], paid, cost)
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
        raise _damaged(path, number) from None


def _publish(draft: Path, target: Path) -> None:
    """Rename a file; raise InvalidInputError if there is a file with the new name."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise _exists(target) from None
    except OSError:  # a file system without hard links
        if target.exists():
            raise _exists(target) from None
        draft.rename(target)


def _exists(path: Path) -> InvalidInputError:
    return InvalidInputError(f"{path} is there already; choose another name for the new journal")


def _damaged(path: Path, number: int) -> InvalidInputError:
    return InvalidInputError(f"line {number} of {path} is damaged; restore a copy of the file, and convert that")
