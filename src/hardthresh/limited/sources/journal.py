"""A journal of everything that was bought, so that no interruption loses it, and nothing is ever paid twice."""

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
    """Another source, whose answers are written to a file before they are used.

    When a program that was interrupted, at any point, is started again, the answers in its journal are replayed in
    order, and only those after them are bought: it ends with the same coefficients, bit for bit. Two programs can use
    one journal at the same time: each answer is bought by one of them, and replayed by the other. `meter` counts what
    all programs bought, the meter of the inner source what this one bought.

    Parameters
    ----------
    source : AttributeSource
        The inner source, which must hand out the same examples in the same order at every start, as all sources here
        do if their data are the same; what is replayed is drawn from it, and not read. The names of its examples must
        be integers (of 64 bits) or strings.
    path : path
        The file, an SQLite database, by custom with a name in ``.sqlite``; made if it is not there. Its folder must
        exist.
    who : str, optional
        Who buys, as noted with each answer; by default ``user@host``.
    timeout : float >= 0, optional
        How many seconds to wait for another program before anything is bought; by default as long as it takes. It does
        not limit how long an answer that was bought waits to be written.

    Raises
    ------
    InvalidInputError
        If the file is not a journal, is damaged or was changed, or belongs to another cost model or other data. While
        answers are replayed: if the program asks for something else than the file has next, because its settings have
        changed, or because two programs with different settings use one journal. Nothing is bought then. If the
        algorithm refuses a target, at this and every later start: the message names the answer and how to delete it.
    HardThreshError
        If the file cannot be written; if an answer was bought already, the message contains it. If the timeout is
        over. If the journal is used after an error: make it again, from a new source.

    Notes
    -----
    The table ``answers`` has a row for every purchase: ``number``, 1, 2, ... in order; ``example``; ``indices`` of the
    attributes and their values, ``observed``, both as JSON, which keeps every bit of a number; ``target``; ``paid``;
    ``cost``, by the prices of the cost model; ``who``; ``answered_at``, in UTC; and ``checksum``, of this row and all
    rows before it, which is verified when the answer is replayed. ``observed`` and ``target`` are NULL for an example
    that could not be had. The table ``terms`` describes the cost model. Any program for SQLite can read them, also
    during a purchase.

    A purchase is one transaction: take the write lock, read the answer if another program has written it, and else buy
    it and commit. An answer is on disk before it is used and the next one is bought. A program that is killed loses
    its lock and the answer that it was waiting for, the only one that can be asked for twice. While one program
    measures, the others wait; Ctrl-C interrupts them. A commit waits for programs that have a read transaction open,
    whatever the timeout, and warns after ten seconds; interrupted, it says which answer is lost.

    A journal is for one thread at a time: give each its own, with the same file. It need not be closed, and can be
    used after a fork, and pickled if its source can.

    Cost: one commit per example and purchase, which flushes the disk about four times: some milliseconds on most disks,
    more on a busy one; O(1) memory.

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
        """How many examples are left; None where the inner source does not know."""
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
        """Return the next answer, replayed or bought; None if it turned out that there are no more examples."""
        if not self._pending:
            self._pending.extend(self._file.next_answers(lambda: self._bought(example, indices)))
        if not self._pending:
            return None
        answer = self._pending.popleft()
        self._number += 1
        self._check_answer(answer, example, indices.tolist())
        return answer

    def _bought(self, example: Example, indices: Array) -> Answer | None:
        """Buy an answer from the inner source; None if it turned out that there are no more examples."""
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
        """Raise InvalidInputError for an answer to another request, or with another target."""
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
        """Raise HardThreshError after an interruption: the next answer in the file may belong to another request."""
        if self._interrupted:
            raise HardThreshError(
                f"reading was interrupted; what was paid is in {self.path}: make the source and its journal again, and "
                "start from the beginning"
            )


def _terms(source: AttributeSource) -> dict[str, Any]:
    """Return the terms of a journal, which must be the same at every start."""
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
    except (ImportError, KeyError, OSError):  # what it raises where the system knows no name
        user = "unknown"
    return f"{user}@{socket.gethostname()}".encode(errors="replace").decode()


def _listed(indices: list[int]) -> str:
    return f"attributes {shorten(str(indices), 60, placeholder=' ...')}"
