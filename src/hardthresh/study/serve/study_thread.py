"""The one thread in which a study is asked and told, so that requests come one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from typing import Self, TypeVar

from ..study import Study

_Found = TypeVar("_Found")


class StudyThread:
    """A study, and the thread that works on its file.

    SQLite writes one thing at a time anyhow, and so nothing waits for a lock. Meanwhile the server answers what does
    not need the file.

    Parameters
    ----------
    path : str or path
        The file of the study.

    Attributes
    ----------
    terms : Terms
        The terms of the study.
    identity : str
        What no other study has: the checksum of its first event.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="study")
        self._study = self._thread.submit(Study.open, path).result()
        self.terms = self._study.terms
        self.identity = self._thread.submit(lambda: next(iter(self._study.events())).checksum).result()

    async def __call__(self, work: Callable[[Study], _Found]) -> _Found:
        """Return what a function of the study returns, once its turn has come."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._study)

    def close(self) -> None:
        """Wait for what has begun, and end the thread."""
        self._thread.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
