"""Blocks of Zarr arrays."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.typing import Array
from hardthresh.designs.blocks import RowBlocks, as_source, block_rows, table_dtype
from hardthresh.designs.formats.arrays import as_stored
from hardthresh.designs.formats.optional import DECODERS, import_reader
from hardthresh.designs.formats.stored import PathLike, StoredArray, cut


@dataclass(frozen=True)
class ZarrArray(StoredArray):
    """Rows of a Zarr array in a folder.

    Attributes
    ----------
    name : str
        Of the array in its group; empty if the folder is the array.
    """

    name: str = ""

    def read(self) -> Array:
        rows = f"rows {self.first_row:,}..{self.stop - 1:,}"
        try:
            return np.asarray(_opened(self.path, self.name)[self.first_row : self.stop])
        except (OSError, RuntimeError, ValueError) as error:
            raise OSError(f"{rows} of {os.path.join(self.path, self.name)} cannot be read: {error}") from error


def from_zarr(
    path: PathLike,
    array: str = "",
    y: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
    *,
    fold: Any = None,
    rows: int | None = None,
) -> RowBlocks:
    """Return the table in a Zarr array, which is read in blocks of whole chunks.

    Parameters
    ----------
    path : path
        The folder of the array, or of the group that contains it.
    array : str
        The name of X in the group; default: the folder is the array.
    y, sample_weight, offset, fold : str or array, optional
        As in `from_arrays`, or the name of an array in the group.
    rows : int, optional
        Rows of a block; default: whole chunks.

    Returns
    -------
    RowBlocks

    Raises
    ------
    MissingDependencyError
        If zarr is not installed (the extra ``zarr``).
    InvalidInputError
        If chunks split the columns, or an array is missing, is not numeric, or has a different length.
    OSError
        If the folder cannot be read.

    Examples
    --------
    >>> from hardthresh.designs import from_zarr
    >>> from_zarr("measurements.zarr", "X", y="y")  # doctest: +SKIP
    RowBlocks(1,250,000 x 1,000 float32, 153 blocks)
    """
    source = as_source(path)
    others = {"y": y, "sample_weight": sample_weight, "offset": offset, "fold": fold}
    X, chunks = _array(source, array)
    if len(chunks) == 2 and chunks[1] < X.shape[1]:
        wanted = (block_rows(X.shape[1], table_dtype(X.dtype), chunk=chunks[0]), X.shape[1])
        raise InvalidInputError(
            f"the chunks of {os.path.join(source, array)} have {chunks[1]:,} of {X.shape[1]:,} columns; write "
            f"whole rows: zarr.create_array(..., chunks={wanted}), or dask's X.rechunk({{1: -1}}).to_zarr(...)"
        )
    found: dict[str, Any] = {}
    for name, part in others.items():
        known = part is None or isinstance(part, str)
        found[name] = (_array(source, part)[0] if part else None) if known else as_stored(part)
    blocks = cut(X, found, rows, chunk=chunks[0] if chunks else 1, readers=DECODERS)
    folders = dict.fromkeys(
        os.path.join(part.path, part.name) for part in (X, *found.values()) if isinstance(part, ZarrArray)
    )
    files = (os.path.join(at, name) for folder in folders for at, _, names in os.walk(folder) for name in names)
    return replace(blocks, sources=tuple(sorted(files)))


def _opened(path: str, name: str) -> Any:
    return import_reader("zarr", "Zarr arrays", "zarr").open_array(path, path=name or None, mode="r")


def _array(path: str, name: str) -> tuple[ZarrArray, tuple[int, ...]]:
    """Return where an array is, and the shape of its chunks."""
    try:
        found = _opened(path, name)
    except (OSError, ValueError) as error:
        what = (
            f"{path} has no Zarr array {format_value(name)}" if name else f"{path} is no Zarr array; name it in array"
        )
        raise InvalidInputError(f"{what} ({error})") from error
    return ZarrArray(path, tuple(found.shape), np.dtype(found.dtype).str, name=name), tuple(found.chunks)
