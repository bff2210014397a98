"""A journal of everything that was bought, so that no interruption loses it, and nothing is ever paid twice."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator, Sequence
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from hardthresh.core.errors import HardThreshError, InvalidInputError
from hardthresh.core.typing import Array, is_integer

from .market import Market
from .source import AttributeSource, Example, Examples

FORMAT_VERSION = 1
_PORTION = 1 << 20  # bytes of old answers in memory


class Journal(AttributeSource):
    """Another source, whose answers are written to a file before anybody sees them.

    When a program that was interrupted, at any point, is started again, the answers in its journal are replayed in
    order, and only what comes behind them is bought: it ends with the same coefficients, bit for bit. `meter` counts
    what was bought over all starts, that of the inner source what was bought since this one.

    Parameters
    ----------
    source : AttributeSource
        The inner source, which must hand out the same examples in the same order at every start, as all sources here
        do if their data are the same; what is replayed is drawn from it, and not read. The names of its examples must
        be integers or strings.
    path : path
        The file, made if it is not there. Its folder must exist.

    Raises
    ------
    InvalidInputError
        If the file is no journal, is damaged, or belongs to another market or other data; and, while answers are
        replayed, if something else is asked for than the time before: then the program or its settings have changed.
    HardThreshError
        If another process writes to the file; or to go on after an error: make the journal again, from a new source.

    Notes
    -----
    The file has a line of JSON for every purchase: ``{"example": 17, "indices": [0, 3], "values": [0.1, 2.0],
    "target": 1.0}``; ``"values": null`` for an example that could not be had, with ``"paid": true`` if it was paid all
    the same. The first line describes the market. A line is on disk (``fsync``) before its answer is seen and the next
    one is bought; a last line that was cut is removed at the next start, and bought again: this is the only answer that
    can be asked for twice.

    Cost: one ``fsync`` per example and purchase, some milliseconds on most disks; O(1) memory.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from hardthresh.attributes import CallbackSource
    >>> def ask(patient, indices):
    ...     print("measure", indices, "of patient", patient)
    ...     return [10.0 * patient + j for j in indices]
    >>> def study(folder):
    ...     return Journal(CallbackSource(ask, n_features=5, n_observed=2, target=float), Path(folder) / "study.jsonl")
    >>> with TemporaryDirectory() as folder:
    ...     before = study(folder).draw(1).observe([0, 4])
    ...     again = study(folder)  # the program is started again
    ...     print(again.draw(2).observe([0, 4]), again.meter.attributes)
    measure [0 4] of patient 0
    measure [0 4] of patient 1
    [[ 0.  4.]
     [10. 14.]] 4
    """

    def __init__(self, source: AttributeSource, path: str | os.PathLike[str]) -> None:
        names = None if source.feature_names is None else source.feature_names.tolist()
        super().__init__(source.market, names)
        self.path = Path(path)
        self._source = source
        self._pending: deque[dict[str, Any]] = deque()
        self._line = 1
        self._interrupted = False
        self._position, self._size = self._opened(_header(source))
        self._end = self._size

    @property
    def remaining(self) -> int | None:
        """How many examples are left; None where the inner source does not know."""
        return self._source.remaining

    def _next(self, count: int) -> list[Example]:
        self._check_whole()
        drawn: list[Example] = []
        while len(drawn) < count and len(one := self._source.draw(1)):
            drawn.append(Example(_plain(one.ids[0]), one.known_targets()[0], one))
        return drawn

    def _read(self, examples: Sequence[Example], indices: Array) -> Iterator[Array | None]:
        self._check_whole()
        self._interrupted = True
        for example in examples:
            answer = self._replayed(example, indices)
            if answer is None:
                answer = self._bought(example, indices)
            if answer is None:
                break
            if answer["values"] is not None:
                example.y = answer["target"]
                yield np.array(answer["values"], dtype=np.float64)
            else:
                yield np.full(indices.size, nan) if answer["paid"] else None
        self._interrupted = False

    def _bought(self, example: Example, indices: Array) -> dict[str, Any] | None:
        """Buy an answer, and write it down; None if it turned out that there are no more examples."""
        self._check_size()
        inner: Examples = example.content
        values, targets = inner.answers(indices)
        answer: dict[str, Any] = {"example": example.id, "indices": indices.tolist()}
        if len(inner):
            answer |= {"values": values[0].tolist(), "target": float(targets[0])}
        elif self._source.ended:
            return None
        else:
            answer |= {"values": None, "paid": bool(inner.paid)}
        self._write(answer)
        return answer

    def _replayed(self, example: Example, indices: Array) -> dict[str, Any] | None:
        """Return the next of the old answers, if there is one, after a look at whether it is the answer to this."""
        if not self._pending:
            self._load()
        if not self._pending:
            return None
        answer = self._pending.popleft()
        self._line += 1
        there = f"line {self._line} of {self.path}"
        if answer["example"] != example.id or answer["indices"] != indices.tolist():
            raise InvalidInputError(
                f"{there} is about {_listed(answer['indices'])} of example {answer['example']!r}, but "
                f"{_listed(indices.tolist())} of example {example.id!r} are asked for: the program, its settings or "
                "its data have changed; go on with those that wrote it, or begin another journal"
            )
        if example.y is not None and answer["values"] is not None and answer["target"] != example.y:
            raise InvalidInputError(
                f"{there} has the target {answer['target']} for example {example.id!r}, which has {example.y} now: the "
                "data have changed; begin another journal"
            )
        return answer

    def _load(self) -> None:
        """Read some of the old answers."""
        if self._position >= self._end:
            return
        with self.path.open("rb") as file:
            file.seek(self._position)
            lines = file.readlines(min(_PORTION, self._end - self._position))
        self._position += sum(map(len, lines))
        first = self._line + 1
        self._pending.extend(_parsed(line, f"line {first + i} of {self.path}") for i, line in enumerate(lines))

    def _opened(self, header: dict[str, Any]) -> tuple[int, int]:
        """Return where the answers begin, and how long the file is, once it begins with the header and ends well."""
        head = _line(header)
        if _is_new(self.path, head):
            self.path.write_bytes(b"")
            self._append(head)
            _sync_folder(self.path.parent)
            return len(head), len(head)
        with self.path.open("rb") as file:
            first = file.readline()
        _check_header(first, header, self.path)
        size = _whole_lines(self.path)
        with self.path.open("r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())
        return len(first), size

    def _check_whole(self) -> None:
        """Refuse to go on after an interruption: the next line of the file would not be the answer to what is asked."""
        if self._interrupted:
            raise HardThreshError(
                f"reading was interrupted; what was paid is in {self.path}: make the source and its journal again, and "
                "start from the beginning"
            )

    def _check_size(self) -> None:
        """Refuse to buy when somebody else wrote to the file."""
        if not self.path.exists() or self.path.stat().st_size != self._size:
            raise HardThreshError(
                f"{self.path} was changed by somebody else: only one program at a time may write to a journal"
            )

    def _write(self, answer: dict[str, Any]) -> None:
        line = _line(answer)
        self._append(line)
        self._size += len(line)

    def _append(self, line: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def _header(source: AttributeSource) -> dict[str, Any]:
    market: Market = source.market
    free = market.plain and market.price[0] == 1.0
    return {
        "format": "hardthresh journal",
        "format_version": FORMAT_VERSION,
        "n_features": market.n_features,
        "budget": market.budget,
        "panels": None if free else market.panel.tolist(),
        "prices": None if free else market.price.tolist(),
        "feature_names": None if source.feature_names is None else [str(name) for name in source.feature_names],
        "examples": source.remaining,
    }


_SAID = {
    "n_features": "the number of attributes",
    "budget": "the budget for one example",
    "panels": "the panels",
    "prices": "the prices",
    "feature_names": "the names of the attributes",
    "examples": "the number of examples",
}


def _is_new(path: Path, head: bytes) -> bool:
    """Return whether there is no file, or only a part of the first line: the writer was killed there."""
    if not path.exists():
        return True
    return path.stat().st_size < len(head) and head.startswith(path.read_bytes())


def _check_header(first: bytes, header: dict[str, Any], path: Path) -> None:
    """Refuse a file that is no journal, or that of another market."""
    try:
        written = json.loads(first)
    except ValueError:
        written = None
    if not (first.endswith(b"\n") and isinstance(written, dict) and written.get("format") == header["format"]):
        raise InvalidInputError(f"{path} is there, and is no journal; choose another name")
    if written.get("format_version") != FORMAT_VERSION:
        raise InvalidInputError(
            f"{path} has format version {written.get('format_version')!r}; this hardthresh reads {FORMAT_VERSION}"
        )
    for key, what in _SAID.items():
        if written.get(key) != header[key]:
            raise InvalidInputError(
                f"{path} is the journal of something else: {what} was {_short(written.get(key))} and is "
                f"{_short(header[key])} now; go on with what it was written for, or begin another journal"
            )


def _whole_lines(path: Path) -> int:
    """Return the length of a file without a last line that was cut."""
    size = path.stat().st_size
    with path.open("rb") as file:
        while size:
            begin = max(0, size - _PORTION)
            file.seek(begin)
            end = file.read(size - begin).rfind(b"\n")
            if end >= 0:
                return begin + end + 1
            size = begin
    return 0


def _parsed(line: bytes, where: str) -> dict[str, Any]:
    """Return an old answer."""
    try:
        answer = json.loads(line)
        if answer["values"] is None:
            sound = isinstance(answer["paid"], bool)
        else:
            sound = len(answer["values"]) == len(answer["indices"]) and isinstance(answer["target"], float)
        sound = sound and "example" in answer and bool(np.all(np.isfinite(answer["values"] or 0.0)))
    except (KeyError, TypeError, ValueError):
        sound = False
    if not sound:
        raise InvalidInputError(f"{where} is damaged; restore the file, or begin another journal")
    return dict(answer)


def _line(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, allow_nan=False) + "\n").encode()


def _plain(id_: Any) -> int | str:
    """Return the name of an example as JSON has it."""
    if is_integer(id_):
        return int(id_)
    if isinstance(id_, str):
        return str(id_)
    raise InvalidInputError(f"the names of examples in a journal must be integers or strings, got {id_!r}")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _listed(indices: list[int]) -> str:
    return f"attributes {_short(indices)}"


def _sync_folder(folder: Path) -> None:
    """Make sure that the name of a new file is on disk too, where the system knows such a thing."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
