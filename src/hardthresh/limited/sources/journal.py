"""A source that writes each answer of another source to a file, so that an interrupted study can be resumed."""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from getpass import getuser
from math import nan
from pathlib import Path
from shlex import quote
from textwrap import shorten
from typing import Any

import numpy as np

from hardthresh.core.errors import HardThreshError, InvalidInputError, MissingDependencyError
from hardthresh.core.typing import Array, is_real
from hardthresh.limited.cost_model import CostModel

from .base import AttributeSource, Example, Examples
from .values import Answer, example_name


class Journal(AttributeSource):
    """A source that writes each answer of another source to a file before it is used.

    An interrupted program can be started again: the journal returns the answers in the file in their order, and buys
    only further ones. The coefficients are bitwise identical to those of a run without interruption. Two programs can
    use one journal at the same time; each answer is bought by one of them, and read from the file by the other.
    `meter` counts the purchases of all programs, and the meter of the inner source those of this program.

    Parameters
    ----------
    source : AttributeSource
        The inner source. At every start it must return the same examples in the same order, as all sources of this
        package do for the same data. Its examples must have integers (of 64 bits) or strings as numbers or names.
    path : path
        The file, an SQLite database, usually with the ending ``.sqlite``. It is created if it is missing; its folder
        must exist.
    who : str, optional
        The name of the buyer, which is stored with each answer; by default ``user@host``.
    timeout : float >= 0, optional
        How many seconds to wait for another program before anything is bought; no limit by default. The write of an
        answer that was bought has no time limit.

    Raises
    ------
    InvalidInputError
        If the file is not a journal, is damaged or was changed, or belongs to another cost model or other data. Also if
        the program requests another example or other attributes than the next answer in the file has, because its
        settings have changed, or because two programs with different settings use the journal; nothing is bought then.
        Also, at this and every later start, if the algorithm refuses a target; the message has the number of the answer
        and the command that deletes it.
    MissingDependencyError
        If Python was built without sqlite3.
    HardThreshError
        If the file cannot be written (if an answer was bought before, the message contains it), after the timeout, and
        if the journal is used after an error: create it again, with a new source.

    Notes
    -----
    The table ``answers`` has a row for each purchase: ``number``, 1, 2, ... in order; ``example``; ``indices`` of the
    attributes and their values, ``observed``, both as JSON, which stores each number exactly; ``target``; ``paid``;
    ``cost``, by the prices of the cost model; ``who``; ``answered_at``, in UTC; and ``checksum``, of this row and all
    rows before it, which is verified when the answer is read. ``observed`` and ``target`` are NULL for an example that
    is absent or lacks a value. The table ``terms`` describes the cost model. Any program for SQLite can read them, even
    during a purchase.

    A purchase is one transaction: the program takes the write lock; reads the answer, if another program has written
    it; otherwise buys the answer and commits. So an answer is on disk before it is used and before the next one is
    bought. If a program is killed, its lock is released, and the answer that it was waiting for is lost. Only this
    answer can be bought twice. While one program measures, the others wait, and Ctrl-C interrupts them. A commit waits
    for programs that have an open read transaction, without a time limit, and warns after ten seconds. If it is
    interrupted, the message contains the lost answer.

    Only one thread at a time may use a journal; create one for each thread, with the same file. A journal need not be
    closed. It can be used after a fork, and pickled if its source can be pickled.

    Cost: one commit for each example and purchase, which flushes the disk about four times. This takes some
    milliseconds on most disks, and more on a busy one. Memory: O(1).

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from hardthresh.limited import CallbackSource
    >>> def ask(patient, indices):
    ...     print("measure", indices, "of patient", patient)
    ...     return [10.0 * patient + j for j in indices]
    >>> def study(folder):
    ...     return Journal(CallbackSource(ask, n_features=5, n_observed=2, target=float), Path(folder) / "study.sqlite")
    >>> with TemporaryDirectory() as folder:
    ...     before = study(folder).draw(1).observe([0, 4])
    ...     again = study(folder)  # the program is started again
    ...     print(again.draw(2).observe([0, 4]), again.meter.attributes)
    measure [0 4] of patient 0
    measure [0 4] of patient 1
    [[ 0.  4.]
     [10. 14.]] 4
    """

    def __init__(
        self,
        source: AttributeSource,
        path: str | os.PathLike[str],
        *,
        who: str | None = None,
        timeout: float | None = None,
    ) -> None:
        try:
            from .journal_file import JournalFile
        except ImportError as error:
            raise MissingDependencyError("a journal needs sqlite3, without which this Python was built") from error
        names = None if source.feature_names is None else source.feature_names.tolist()
        super().__init__(source.cost_model, names)
        if who is not None and not (isinstance(who, str) and who.strip() and who.isprintable()):
            raise InvalidInputError(f"who must be a name, got {who!r}")
        if timeout is not None and not (is_real(timeout) and timeout >= 0):
            raise InvalidInputError(f"timeout must be a number of seconds >= 0, or None, got {timeout!r}")
        self.path = Path(path)
        self._source = source
        self.targets_known = source.targets_known
        self._who = _user_and_host() if who is None else who
        self._file = JournalFile(path, _terms(source), timeout)
        self._pending: deque[Answer] = deque()
        self._number = 0
        self._interrupted = False

    @property
    def remaining(self) -> int | None:
        """The number of examples left; None if the inner source does not know it."""
        return self._source.remaining

    def next_examples(self, count: int) -> list[Example]:
        self._check_whole()
        drawn: list[Example] = []
        while len(drawn) < count and len(one := self._source.draw(1)):
            drawn.append(Example(example_name(one.ids[0]), one.known_targets()[0], one))
        return drawn

    def read(self, examples: Sequence[Example], indices: Array) -> Iterator[Array | None]:
        self._check_whole()
        self._interrupted = True
        for example in examples:
            answer = self._answer(example, indices)
            if answer is None:
                break
            if answer.observed is not None:
                example.y = answer.target
                yield np.array(answer.observed, dtype=np.float64)
            else:
                yield np.full(indices.size, nan) if answer.paid else None
        self._interrupted = False

    def _answer(self, example: Example, indices: Array) -> Answer | None:
        """Return the next answer, from the file or bought; None if there are no more examples."""
        if not self._pending:
            self._pending.extend(self._file.next_answers(lambda: self._bought(example, indices)))
        if not self._pending:
            return None
        answer = self._pending.popleft()
        self._number += 1
        self._check_answer(answer, example, indices.tolist())
        return answer

    def _bought(self, example: Example, indices: Array) -> Answer | None:
        """Buy an answer from the inner source and return it; None if there are no more examples."""
        inner: Examples = example.content
        values, targets = inner.answers(indices)
        if not len(inner) and self._source.ended:
            return None
        paid = bool(inner.paid)
        return Answer(
            example=example.id,
            indices=indices.tolist(),
            observed=values[0].tolist() if len(inner) else None,
            target=float(targets[0]) if len(inner) else None,
            paid=paid,
            cost=self.cost_model.cost(indices) if paid else 0.0,
            who=self._who,
            answered_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )

    def _check_answer(self, answer: Answer, example: Example, indices: list[int]) -> None:
        """Raise InvalidInputError if an answer belongs to another request, or has another target."""
        there = f"answer {self._number} of {self.path}"
        if answer.example != example.id or answer.indices != indices:
            raise InvalidInputError(
                f"{there} is about {_listed(answer.indices)} of example {answer.example!r}, but "
                f"{_listed(indices)} of example {example.id!r} are asked for: the program, its settings or "
                "its data have changed; continue with those that wrote it, or begin another journal"
            )
        if example.y is not None and answer.observed is not None and answer.target != example.y:
            raise InvalidInputError(
                f"{there} has the target {answer.target} for example {example.id!r}, which has {example.y} now: the "
                "data have changed; begin another journal"
            )

    def _remedy(self) -> str:
        return (
            f"; it is answer {self._number} of {self.path}: correct what measures, end all programs that use the file, "
            "and delete this answer and all after it, which are then bought again: "
            f'sqlite3 {quote(str(self.path))} "DELETE FROM answers WHERE number >= {self._number}"'
        )

    def _check_whole(self) -> None:
        """Raise HardThreshError after an interruption: the next answer in the file may be to another request."""
        if self._interrupted:
            raise HardThreshError(
                f"reading was interrupted; what was paid is in {self.path}: make the source and its journal again, and "
                "start from the beginning"
            )


def _terms(source: AttributeSource) -> dict[str, Any]:
    """Return the terms of a study, which must be the same at every start."""
    cost_model: CostModel = source.cost_model
    free = cost_model.uniform and cost_model.price[0] == 1.0
    return {
        "n_features": cost_model.n_features,
        "budget": cost_model.budget,
        "panels": None if free else cost_model.panel.tolist(),
        "prices": None if free else cost_model.price.tolist(),
        "feature_names": None if source.feature_names is None else [str(name) for name in source.feature_names],
        "examples": source.remaining,
    }


def _user_and_host() -> str:
    try:
        user = getuser()
    except (ImportError, KeyError, OSError):  # raised if the system has no name of the user
        user = "unknown"
    return f"{user}@{socket.gethostname()}".encode(errors="replace").decode()


def _listed(indices: list[int]) -> str:
    return f"attributes {shorten(str(indices), 60, placeholder=' ...')}"
