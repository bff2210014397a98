"""Atomic writing of files."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from errno import EACCES
from pathlib import Path
from secrets import token_hex

_ABANDONED = 24 * 3600.0  # seconds after which a draft belongs to a process that was killed: no write takes a day


def write_file(path: str | os.PathLike[str], content: bytes | Iterable[bytes | memoryview]) -> None:
    """Write a file, or replace it, in one step: it is never seen half written, and an interruption leaves the old one.

    The content is written to a draft in the same folder, which is renamed when it is on disk; then the folder is
    flushed, where the system can do that, so that a power failure does not undo the renaming. Drafts that killed
    processes left there more than a day ago are removed.

    Parameters
    ----------
    path : path
        Symbolic links are followed. A file that exists keeps its permissions. A device or a pipe cannot be replaced,
        and is written to as it is.
    content : bytes, or iterable of bytes
        All of the new content, or its parts, of which one at a time is in memory.

    Raises
    ------
    OSError
        If it cannot be written; its `filename` is always `path`.
    """
    path = Path(path)
    target = Path(os.path.realpath(path))
    parts = (content,) if isinstance(content, bytes) else content
    try:
        if path.exists() and not target.is_file():
            with path.open("wb") as file:
                file.writelines(parts)
        else:
            _remove_abandoned_drafts(target.parent)
            _replace(target, parts)
    except OSError as error:  # of the draft, or of write(), which names no file at all
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _replace(target: Path, parts: Iterable[bytes | memoryview]) -> None:
    replaces = target.exists()
    if replaces and not os.access(target, os.W_OK):  # renaming would replace a write-protected file
        raise PermissionError(EACCES, os.strerror(EACCES))
    draft = target.with_name(f".hardthresh-{token_hex(8)}.draft")
    try:
        with draft.open("xb") as file:
            if replaces:
                shutil.copymode(target, draft)
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    _flush_folder(target.parent)


def _flush_folder(folder: Path) -> None:
    with suppress(OSError):  # Windows opens no folders, some file systems do not flush them; the file is there anyway
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove_abandoned_drafts(folder: Path) -> None:
    for draft in folder.glob(".hardthresh-*.draft"):
        with suppress(OSError):  # another process was faster, or it belongs to somebody else
            if time.time() - draft.lstat().st_mtime > _ABANDONED:
                draft.unlink()
