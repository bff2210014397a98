"""Blocks of data sets in HDF5 files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.typing import Array
from hardthresh.designs.blocks import RowBlocks, as_source
from hardthresh.designs.formats.arrays import as_stored
from hardthresh.designs.formats.optional import import_reader
from hardthresh.designs.formats.stored import PathLike, RawArray, StoredArray, cut


@dataclass(frozen=True)
class HDF5Array(StoredArray):
    """Rows of a data set in chunks, or of texts, which the library of HDF5 decodes.

    Attributes
    ----------
    name : str
        Of the data set.
    """

    name: str = ""

    def read(self) -> Array:
        array: Array = np.empty(self.shape, dtype=self.dtype)
        if not array.size:
            return array
        rows = f"rows {self.first_row:,}..{self.stop - 1:,}"
        with _opened(self.path) as file:
            try:
                if array.dtype.kind == "U":  # texts of any length
                    return np.asarray(file[self.name].asstr()[self.first_row : self.stop], dtype=str)
                file[self.name].read_direct(array, np.s_[self.first_row : self.stop])
            except (OSError, ValueError, KeyError) as error:
                raise OSError(f"{rows} of {self.name} in {self.path} cannot be read: {error}") from error
        return array


def from_hdf5(
    path: PathLike,
    dataset: str = "X",
    y: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
    *,
    fold: Any = None,
    rows: int | None = None,
) -> RowBlocks:
    """Return the table in a data set of an HDF5 file, which is read in blocks of whole chunks.

    A contiguous data set is read like a raw file. The HDF5 library decodes others, in one thread at a time.

    Parameters
    ----------
    path : path
        The file.
    dataset : str
        The name of X in it, such as ``"group/X"``.
    y, sample_weight, offset, fold : str or array, optional
        As in `from_arrays`, or the name of a data set in the file.
    rows : int, optional
        Rows of a block; default: whole chunks, of a power of two of at most 32 MiB if there are none.

    Returns
    -------
    RowBlocks

    Raises
    ------
    MissingDependencyError
        If h5py is not installed (the extra ``hdf5``).
    InvalidInputError
        If a data set is missing, is not numeric, or has a different length.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> from hardthresh.designs import from_hdf5
    >>> from_hdf5("measurements.h5", "spectra", y="concentration")  # doctest: +SKIP
    RowBlocks(1,250,000 x 1,000 float32, 153 blocks)
    """
    source = as_source(path)
    others = {"y": y, "sample_weight": sample_weight, "offset": offset, "fold": fold}
    with _opened(source) as file:
        X, chunk = _array(file, source, dataset)
        found = {
            name: _array(file, source, part)[0] if isinstance(part, str) else part for name, part in others.items()
        }
    given = {name: as_stored(part) if isinstance(part, np.ndarray | list) else part for name, part in found.items()}
    return cut(X, given, rows, chunk=chunk)


def _opened(path: str) -> Any:
    h5py = import_reader("h5py", "HDF5 files", "hdf5")
    try:
        return h5py.File(path, "r")
    except OSError as error:
        raise OSError(f"{path} cannot be read as HDF5: {error}") from error


def _array(file: Any, path: str, name: str) -> tuple[StoredArray, int]:
    """Return where a data set is, and the rows of its chunks."""
    h5py = import_reader("h5py", "HDF5 files", "hdf5")
    found = file.get(name)
    if not isinstance(found, h5py.Dataset):
        names: list[str] = []
        file.visititems(lambda each, item: names.append(each) if isinstance(item, h5py.Dataset) else None)
        raise InvalidInputError(f"{path} has no data set {format_value(name)}; it has {format_value(names)}")
    if h5py.check_string_dtype(found.dtype) is not None and found.dtype.hasobject:
        return HDF5Array(path, found.shape, np.dtype(str).str, name=name), found.chunks[0] if found.chunks else 1
    if found.dtype.hasobject:
        raise InvalidInputError(f"the data set {format_value(name)} of {path} holds objects; numbers are needed")
    begin = found.id.get_offset()
    if begin is not None and found.chunks is None and not found.external and not found.is_virtual:
        return RawArray(path, found.shape, found.dtype.str, begin=begin).require(), 1
    return HDF5Array(path, found.shape, found.dtype.str, name=name), found.chunks[0] if found.chunks else 1
