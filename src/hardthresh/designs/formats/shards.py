"""Blocks of sparse rows: a folder of .npz files, each with some rows, which a libsvm file is converted to first."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import scipy.sparse as sp

from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.typing import Array
from hardthresh.designs.blocks import LARGEST_BLOCK, Block, RowBlocks, Rows, as_source, table_dtype
from hardthresh.designs.formats.optional import DECODERS
from hardthresh.designs.formats.stored import PathLike

_ROLES = ("y", "sample_weight", "offset", "fold")


@dataclass(frozen=True)
class ShardBlock(Block):
    """The rows of one file."""

    path: str
    rows: int
    size: int | None

    def load(self) -> Rows:
        with _opened(self.path) as shard:
            if "X" in shard:
                X: Any = shard["X"]
            else:
                X = sp.csr_array((shard["data"], shard["indices"], shard["indptr"]), shape=tuple(shard["shape"]))
            return Rows(X, *(shard.get(name) for name in _ROLES))


def from_npz_shards(path: PathLike | Sequence[PathLike]) -> RowBlocks:
    """Return the table in .npz files, each of which is one block.

    Parameters
    ----------
    path : path or sequence of path
        A folder, whose files that end in ``.npz`` are read in the order of their names; or the files in order. Each
        file contains a dense matrix ``X``, or the ``data``, ``indices``, ``indptr`` and ``shape`` that
        `scipy.sparse.save_npz` writes for a CSR matrix; and optionally ``y``, ``sample_weight``, ``offset`` and
        ``fold``. A file is loaded as a whole, so about 32 MB are a good size.

    Returns
    -------
    RowBlocks

    Raises
    ------
    InvalidInputError
        If a file contains no such matrix, has columns other than the first file, or lacks targets, weights, an offset
        or folds that others have.
    OSError
        If a file cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from hardthresh.designs import from_npz_shards
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in range(3):
    ...         np.savez(os.path.join(folder, f"{number}.npz"), X=np.eye(4), y=np.arange(4.0))
    ...     from_npz_shards(folder)
    RowBlocks(12 x 4 float64, 3 blocks)
    """
    files = _files(path)
    shapes, dtypes, sparse, roles = zip(*map(_layout, files), strict=True)
    for file, shape in zip(files, shapes, strict=True):
        if shape[1] != shapes[0][1]:
            raise InvalidInputError(
                f"{file} has {shape[1]:,} columns, {files[0]} has {shapes[0][1]:,}: all parts of a table need the same "
                "columns in the same order"
            )
    for file, names in zip(files, roles, strict=True):
        for name in sorted(names ^ roles[0]):
            one, other = (file, files[0]) if name in names else (files[0], file)
            raise InvalidInputError(f"{one} has {name}, and {other} has not: all parts of a table need it, or none")
    dtype = table_dtype(*dtypes)
    blocks = tuple(
        ShardBlock(file, shape[0], None if stored is None else stored[0] * dtype.itemsize + stored[1])
        for file, shape, stored in zip(files, shapes, sparse, strict=True)
    )
    return RowBlocks(blocks, shapes[0][1], dtype, sources=tuple(files), readers=DECODERS)


def from_libsvm(
    path: PathLike,
    folder: PathLike,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: Any = np.float64,
    shard_bytes: int = LARGEST_BLOCK,
) -> RowBlocks:
    """Convert a libsvm file (svmlight) to .npz files of sparse rows, and return the table in them.

    The text is read once, in parts. If the folder already contains the shards of this file, it is not read again.

    Parameters
    ----------
    path : path
        A file of lines ``target index:value index:value ...``.
    folder : path
        The folder for the shards. It is created if necessary; otherwise it has to be empty or contain the shards of the
        same file.
    n_features : int, optional
        d; default: the largest index of the file.
    zero_based : bool
        Whether indices begin at 0 rather than at 1.
    dtype : dtype
        float32 or float64, of the entries.
    shard_bytes : int
        Bytes of text for each shard.

    Returns
    -------
    RowBlocks

    Raises
    ------
    InvalidInputError
        If a line has another form, an index is 0 although `zero_based` is False, or the folder contains other files.
    OSError
        If the file cannot be read or the folder cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from hardthresh.designs import from_libsvm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "some.svm")
    ...     _ = path.write_text("1 1:0.5 3:2\\n-1 2:1\\n")
    ...     from_libsvm(path, path.with_name("shards"))
    RowBlocks(2 x 3 float64, 1 block)
    """
    source, target = as_source(path), Path(folder).expanduser().resolve()
    state = os.stat(source)
    origin = f"{source} {state.st_size} {state.st_mtime_ns} {n_features} {zero_based} {np.dtype(dtype)} {shard_bytes}"
    note = target / "origin.txt"
    if note.exists() and note.read_text(encoding="utf-8") == origin:
        return from_npz_shards(target)
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise InvalidInputError(f"the folder {target} has other files; name another, or remove them")
    with TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as made:  # nothing is left of a bad file
        shards = Path(made, "shards")
        shards.mkdir()
        _convert(source, shards, n_features, zero_based, dtype, shard_bytes)
        (shards / note.name).write_text(origin, encoding="utf-8")
        target.rmdir()
        shards.rename(target)
    return from_npz_shards(target)


def _convert(source: str, target: Path, n_features: int | None, zero_based: bool, dtype: Any, size: int) -> None:
    """Write the shards of a libsvm file to a folder."""
    width, files = 0, []
    for number, (X, y) in enumerate(_parsed(source, zero_based, dtype, size)):
        files.append(target / f"part-{number:06d}.npz")
        np.savez(files[-1], format=b"csr", data=X.data, indices=X.indices, indptr=X.indptr, y=y, rows=X.shape[0])
        width = max(width, int(X.indices.max(initial=-1)) + 1)
    if n_features is not None and width > n_features:
        raise InvalidInputError(
            f"{source} has the index {width - zero_based}, which is too large for {n_features} features"
        )
    for file in files:  # whose width is only known now
        with np.load(file) as shard:
            shape = np.array([int(shard["rows"]), width if n_features is None else n_features])
        with ZipFile(file, "a") as archive:
            content = BytesIO()
            np.save(content, shape)
            archive.writestr("shape.npy", content.getvalue())


def _parsed(path: str, zero_based: bool, dtype: Any, size: int) -> Iterator[tuple[Any, Array]]:
    """Yield the rows of a libsvm file, some lines at a time."""
    from sklearn.datasets import load_svmlight_file

    with open(path, "rb") as file:
        while lines := file.readlines(size):
            try:
                X, y = load_svmlight_file(BytesIO(b"".join(lines)), dtype=dtype, zero_based=zero_based)
            except ValueError as error:
                raise InvalidInputError(
                    f"{path} is no libsvm file, between bytes {file.tell() - sum(map(len, lines)):,} and "
                    f"{file.tell():,}: {error}; indices that begin at 0 need zero_based=True"
                ) from error
            yield X, y


def _files(path: PathLike | Sequence[PathLike]) -> list[str]:
    if not isinstance(path, str | os.PathLike):
        found = [as_source(each) for each in path]
    else:
        source = Path(as_source(path))
        found = sorted(str(file) for file in source.glob("*.npz")) if source.is_dir() else [str(source)]
    if not found:
        raise InvalidInputError(f"{format_value(path)} has no files that end in .npz")
    return found


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    try:
        with np.load(path, allow_pickle=False) as shard:
            yield shard
    except (BadZipFile, EOFError, OSError, ValueError) as error:
        raise OSError(f"{path} cannot be read as .npz: {error}") from error


def _layout(path: str) -> tuple[tuple[int, int], np.dtype[Any], tuple[int, int] | None, frozenset[str]]:
    """Return the shape and dtype of the matrix of a file, of which no entry is read, and which roles have arrays.

    Of a sparse one, third, the number of its entries, and the bytes of what says where they are.
    """
    with _opened(path) as shard:
        roles = frozenset(_ROLES) & {*shard.files}
        if "X" in shard:
            return (*_header(path, "X"), None, roles)
        if {"data", "indices", "indptr", "shape"} <= {*shard.files}:
            kind = bytes(shard["format"].item()) if "format" in shard else b"csr"
            if kind == b"csr":
                rows, columns = shard["shape"].tolist()
                (entries,), dtype = _header(path, "data")
                index = _header(path, "indices")[1].itemsize
                return (rows, columns), dtype, (entries, (entries + rows + 1) * index), roles
    raise InvalidInputError(
        f"{path} has no matrix X and no sparse matrix by rows; write it with numpy.savez(path, X=..., y=...) or "
        "scipy.sparse.save_npz(path, X.tocsr())"
    )


def _header(path: str, name: str) -> tuple[Any, np.dtype[Any]]:
    """Return the shape and dtype of an array in an .npz file."""
    with ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    return shape, dtype
