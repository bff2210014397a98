"""The npz file that format version 1 has beside its JSON, with the larger arrays. It is read, and no longer written.

A file may come from a stranger. So only a regular file in the same folder is opened; only arrays that are asked for are
read; and before memory is taken for one, the sizes that the zip file and the array declare are compared with what is
there. Version 1 never compressed an array, so a compressed one is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import file_digest
from math import prod
from pathlib import Path
from stat import S_ISREG
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from numpy.lib import format as npy

from .errors import StorageError


@contextmanager
def arrays_beside(path: Path, beside: Any) -> Iterator[Callable[[str], np.ndarray]]:
    """Yield a function that returns an array of the npz file beside a JSON file, by its name in it.

    Parameters
    ----------
    path : Path
        The JSON file.
    beside : dict or None
        Its entry about the npz file: ``file``, its name, and ``sha256``. None if there is none.
    """
    if beside is None:
        yield _no_arrays
        return
    name = beside["file"]
    if Path(name).name != name:
        raise StorageError(f"names arrays in another folder, {name!r}")
    target = path.with_name(name)
    try:
        size, regular = target.lstat().st_size, S_ISREG(target.lstat().st_mode)
        if not regular:
            raise StorageError(f"the arrays beside it, {name}, are not a regular file")
        with target.open("rb") as file:
            if file_digest(file, "sha256").hexdigest() != beside["sha256"]:
                raise StorageError(f"the arrays beside it, {name}, were changed or cut short")
    except OSError as error:
        raise StorageError(
            f"the arrays beside it, {name}, cannot be read, {error.strerror}; move the two files together"
        ) from error
    with ZipFile(target) as archive:
        if sum(member.file_size for member in archive.infolist()) > size:
            raise StorageError(f"the arrays beside it, {name}, are said to be larger than the file")
        yield lambda key: _array(archive, f"{key}.npy")


def _no_arrays(name: str) -> np.ndarray:
    raise StorageError(f"it has no array {name!r}")


def _array(archive: ZipFile, name: str) -> np.ndarray:
    """Return a member of a zip file that is an npy file, once its size is known to be right."""
    member = archive.getinfo(name)
    if member.compress_type != ZIP_STORED:
        raise StorageError(f"its array {name} is compressed, which hardthresh never does")
    with archive.open(member) as file:
        read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[npy.read_magic(file)]
        shape, _, dtype = read_header(file)
        if prod(shape) * dtype.itemsize != member.file_size - file.tell():
            raise StorageError(f"its array {name} is said to have shape {shape} and dtype {dtype}, and has not")
        file.seek(0)
        array: np.ndarray = npy.read_array(file, allow_pickle=False)
    return array
