"""Blocks of arrays in memory, and in raw and .npy files."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import Array
from hardthresh.designs.blocks import RowBlocks, as_source
from hardthresh.designs.formats.stored import PathLike, RawArray, cut


def from_arrays(
    X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, *, fold: Any = None, rows: int | None = None
) -> RowBlocks:
    """Return a table in memory as blocks of rows, which are views.

    A memory map (`numpy.memmap` or ``numpy.load(path, mmap_mode="r")``) with contiguous rows is read block by block
    from its file in each pass, as by `from_file`.

    Parameters
    ----------
    X : array or scipy.sparse array, shape (n, d)
        The columns. float32 is kept; other numbers are converted to float64, a block at a time.
    y : array, shape (n,) or (n, q), optional
        The target.
    sample_weight : array, shape (n,), optional
        Non-negative weights; default: all 1.
    offset : array, shape (n,) or (n, q), optional
        A known part of the predictions.
    fold : array, shape (n,), optional
        The fold of a cross-validation that each row belongs to.
    rows : int, optional
        Rows of a block; default: a power of two of at most 32 MiB.

    Returns
    -------
    RowBlocks

    Raises
    ------
    InvalidInputError
        If X is not a numeric matrix, or another array has another length.

    Examples
    --------
    >>> import numpy as np
    >>> from_arrays(np.ones((5000, 10), dtype=np.float32), np.ones(5000), rows=2000)
    RowBlocks(5,000 x 10 float32, 3 blocks)
    """
    if isinstance(X, list | tuple):
        _refuse_parts(X)
    X = sp.csr_array(X) if sp.issparse(X) else as_stored(X)
    others = {"y": y, "sample_weight": sample_weight, "offset": offset, "fold": fold}
    return cut(X, {name: companion(part) for name, part in others.items()}, rows)


def _refuse_parts(X: Sequence[Any]) -> None:
    """Refuse a list of tables, or of pairs of a table and its targets, in the place of one table."""
    first: Any = X[0] if len(X) else None
    pair = isinstance(first, list | tuple) and any(np.ndim(part) == 2 for part in first if hasattr(part, "shape"))
    if not (pair or sp.issparse(first) or (hasattr(first, "shape") and len(first.shape) == 2)):
        return
    what = "pairs of a table and its targets" if pair else "tables"
    raise InvalidInputError(
        f"X must be one table, shape (n, d), but is a {type(X).__name__} of {len(X)} {what}. Join them by "
        "numpy.concatenate, or scipy.sparse.vstack, and give the targets as y; or write them to files, which "
        "from_parquet and from_npz_shards read as one table"
    )


def from_file(
    path: PathLike,
    y: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
    *,
    fold: Any = None,
    n_columns: int | None = None,
    dtype: Any = "float32",
    skip_bytes: int = 0,
    rows: int | None = None,
) -> RowBlocks:
    """Return the table in a .npy file, or in a raw file of numbers in row-major order, which is read in blocks.

    Two blocks of 32 MiB are in memory at a time: one is read while the other is processed. The file is not mapped into
    memory.

    Parameters
    ----------
    path : path
        The file. A file that ends in ``.npy`` has to be in C order, as `numpy.save` writes most arrays; other files are
        raw.
    y, sample_weight, offset, fold : array or path, optional
        As in `from_arrays`, or the path of a .npy file with n rows, which is also read block by block.
    n_columns : int, optional
        d. Required for a raw file, and not allowed for others.
    dtype : dtype
        The type of the numbers in a raw file, such as ``"<f4"`` for little-endian float32.
    skip_bytes : int
        Bytes before the first row of a raw file.
    rows : int, optional
        Rows of a block; default: a power of two of at most 32 MiB.

    Returns
    -------
    RowBlocks

    Raises
    ------
    InvalidInputError
        If the file is not a numeric matrix in C order, or another array has another length.
    OSError
        If the file is shorter than its header states.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "table.npy")
    ...     np.save(path, np.ones((5000, 10), dtype=np.float32))
    ...     from_file(path, y=np.ones(5000))
    RowBlocks(5,000 x 10 float32, 1 block)
    """
    source = as_source(path)
    X = npy_array(source) if Path(source).suffix == ".npy" else _raw_matrix(source, n_columns, dtype, skip_bytes)
    others = {"y": y, "sample_weight": sample_weight, "offset": offset, "fold": fold}
    return cut(X, {name: companion(part) for name, part in others.items()}, rows)


def companion(part: Any) -> Array | RawArray | None:
    """Return what goes with the rows of X: an array, or that of a .npy file by its path."""
    if isinstance(part, str | os.PathLike):
        return npy_array(as_source(part))
    return None if part is None else as_stored(part)


def npy_array(path: str) -> RawArray:
    """Return the array of a .npy file.

    Raises
    ------
    InvalidInputError
        If it holds objects, or lies column by column.
    OSError
        If the file is shorter than its header says.
    """
    with open(path, "rb") as file:
        try:
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, by_columns, dtype = read(file)
        except ValueError as error:
            raise InvalidInputError(f"{path} is not a .npy file: {error}") from error
        at = file.tell()
    if dtype.hasobject:
        raise InvalidInputError(f"{path} holds Python objects; numbers are needed")
    if by_columns and len(shape) > 1:
        raise InvalidInputError(
            f"{path} lies column by column (Fortran order), so no rows can be read from it: fit "
            'numpy.load(path, mmap_mode="r") itself, or save numpy.ascontiguousarray of it'
        )
    return RawArray(path, shape, dtype.str, begin=at).require()


def _raw_matrix(path: str, n_columns: int | None, dtype: Any, skip_bytes: int) -> RawArray:
    if n_columns is None or n_columns < 1:
        raise InvalidInputError(f"{path} is a raw file: pass n_columns, the number of its columns")
    size = os.stat(path).st_size - skip_bytes
    width = int(np.dtype(dtype).itemsize) * n_columns
    if size < 0 or size % width:
        raise InvalidInputError(
            f"{path} has {size:,} bytes from byte {skip_bytes} on, which are no rows of {n_columns:,} numbers of "
            f"{np.dtype(dtype)} ({width:,} bytes each): give its n_columns, dtype and skip_bytes"
        )
    return RawArray(path, (size // width, n_columns), np.dtype(dtype).str, begin=skip_bytes)


def as_stored(X: Any) -> Array | RawArray:
    """Return an array, or where its rows are in a file, if `numpy.memmap` has opened it."""
    X = np.asanyarray(X) if isinstance(X, np.memmap) else np.asarray(X)
    mapping = getattr(X, "_mmap", None)
    if not isinstance(mapping, mmap.mmap) or X.filename is None or X.mode == "c" or not X.flags.c_contiguous:
        return np.asarray(X)
    # of a part of a mapping, numpy keeps the offset of the whole; a mapping begins at a multiple of the granularity
    begin = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    at = begin + X.ctypes.data - np.frombuffer(mapping, dtype=np.uint8).ctypes.data
    return RawArray(os.path.abspath(X.filename), X.shape, X.dtype.str, begin=at)
