"""Tables in blocks of any kind of file, by the ending of its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hardthresh.designs.blocks import RowBlocks
from hardthresh.designs.formats.arrays import from_file
from hardthresh.designs.formats.hdf5 import from_hdf5
from hardthresh.designs.formats.parquet import from_parquet
from hardthresh.designs.formats.shards import from_libsvm, from_npz_shards
from hardthresh.designs.formats.zarr import from_zarr

KINDS = {
    "parquet": (".parquet", ".pq"),
    "npy": (".npy",),
    "hdf5": (".h5", ".hdf5"),
    "zarr": (".zarr",),
    "npz": (".npz",),
    "libsvm": (".libsvm", ".svmlight", ".svm"),
}
"""What is read in blocks, with the endings of files; a folder has the kind of the files in it."""

Names = Mapping[str, Any]
"""The columns, data sets or files of y, sample_weight, offset and fold."""


def kind_of(path: Path) -> str | None:
    """Return the kind of a file by its ending, and of a folder by the files in it; None for others.

    Examples
    --------
    >>> kind_of(Path("measurements.pq")), kind_of(Path("measurements.csv"))
    ('parquet', None)
    """
    ending = path.suffix.lower()
    for kind, endings in KINDS.items():
        if ending in endings:
            return kind
    if not path.is_dir():
        return None
    if any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")):
        return "zarr"
    found = {file.suffix.lower() for file in path.rglob("*") if file.is_file()}
    return next((kind for kind in ("parquet", "npz") if found & {*KINDS[kind]}), None)


def from_kind(
    path: Path, kind: str, names: Names, *, matrix: str | None = None, features: Any = None, dtype: Any = None
) -> RowBlocks:
    """Return the table in a file or folder.

    Parameters
    ----------
    path : Path
        The file or folder.
    kind : str
        One of `KINDS`.
    names : mapping of str to str or None
        Where y, sample_weight, offset and fold are; shards and libsvm files have their own names.
    matrix : str, optional
        What X is called in HDF5 and Zarr; default: "X" in HDF5, and the folder itself of Zarr.
    features, dtype : optional
        As in `from_parquet`, of Parquet alone.

    Raises
    ------
    InvalidInputError, OSError
        As the function of the kind.
    """
    if kind == "parquet":
        others = {name: part for name, part in names.items() if name != "y"}
        return from_parquet(path, target=names.get("y"), **others, features=features, dtype=dtype)
    return _MAKERS[kind](path, names, matrix)


def shards_beside(path: Path) -> Path:
    """Return the folder beside a libsvm file that its rows are converted to."""
    return path.with_name(f"{path.name}.shards")


_MAKERS: dict[str, Callable[[Path, Names, str | None], RowBlocks]] = {
    "npy": lambda path, names, matrix: from_file(path, **names),
    "hdf5": lambda path, names, matrix: from_hdf5(path, matrix or "X", **names),
    "zarr": lambda path, names, matrix: from_zarr(path, matrix or "", **names),
    "npz": lambda path, names, matrix: from_npz_shards(path),
    "libsvm": lambda path, names, matrix: from_libsvm(path, shards_beside(path)),
}
