"""The error of files that cannot be written or read, which names the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import BadZipFile

from hardthresh.core.errors import HardThreshError

DAMAGE = (
    ArithmeticError,
    AttributeError,
    BadZipFile,
    HardThreshError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""The errors that decoding, and the constructors of known classes, raise for cut or invented content."""


class StorageError(HardThreshError, ValueError):
    """An object cannot be stored, or a file cannot be read as one."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Name the file in every error that reading it raises."""
    try:
        yield
    except StorageError as error:
        raise StorageError(f"{path}: {error}") from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read, {error.strerror}") from error
    except MemoryError as error:
        raise StorageError(f"{path}: needs more memory than there is") from error
    except DAMAGE as error:
        raise StorageError(f"{path}: damaged, {type(error).__name__}: {error}") from error
