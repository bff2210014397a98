"""Read a file of data of any supported format."""

from __future__ import annotations

from pathlib import Path

from hardthresh.core.errors import InvalidInputError

from .arrays import read_arrays
from .data import Data, Request, check
from .tables import read_table

FORMATS = {
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
    "feather": (".feather", ".arrow", ".ipc"),
    "npz": (".npz",),
    "npy": (".npy",),
    "libsvm": (".libsvm", ".svmlight", ".svm"),
}


def read(path: Path, request: Request, kind: str | None = None) -> Data:
    """Read a file of data.

    Parameters
    ----------
    path : Path
        The file.
    request : Request
        The columns to read.
    kind : str, optional
        One of `FORMATS`. Default: by the ending of the name.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, lacks a requested column, or has missing values; one sentence says what to do.
    """
    if not path.is_file():
        raise InvalidInputError(f"{path} is a folder" if path.is_dir() else f"there is no file {path}")
    if path.stat().st_size == 0:
        raise InvalidInputError(f"{path} is empty")
    kind = _kind_of(path) if kind is None else kind
    if kind not in FORMATS:
        raise InvalidInputError(f"unknown format {kind!r}; known: {', '.join(FORMATS)}")
    data = (read_table if kind in ("csv", "tsv", "parquet", "feather") else read_arrays)(path, kind, request)
    return check(data, may_be_narrow=request.only is not None, may_be_missing=request.may_be_missing)


def _kind_of(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".bz2", ".zst")]
    for kind, endings in FORMATS.items():
        if suffixes and suffixes[-1] in endings:
            return kind
    known = " ".join(ending for endings in FORMATS.values() for ending in endings)
    raise InvalidInputError(f"the name {path.name} has no known ending ({known}): rename the file or add --format")
