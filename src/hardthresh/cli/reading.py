"""Read a file of data of any supported format."""

from __future__ import annotations

from pathlib import Path

from hardthresh.core.errors import InvalidInputError

from .arrays import read_arrays
from .data import Data, Request, check
from .databases import Query, Server, query_of
from .genotypes import read_genotypes
from .tables import read_table

TABLES = ("csv", "tsv", "parquet", "feather")
"""The formats whose columns have names."""

FORMATS = {
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
    "feather": (".feather", ".arrow", ".ipc"),
    "npz": (".npz",),
    "npy": (".npy",),
    "libsvm": (".libsvm", ".svmlight", ".svm"),
    "bed": (".bed",),
}


def read(path: Path | Server, request: Request, kind: str | None = None) -> Data:
    """Read a file of data, or the rows of a query of a database.

    Parameters
    ----------
    path : Path or Server
        The file, or the address of the database.
    request : Request
        The columns to read.
    kind : str, optional
        One of `FORMATS`. Default: by the ending of the name.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, lacks a requested column, or has missing values; one sentence says what to do.
    """
    if isinstance(path, Server):
        query = query_of(path, request.sql)
        assert query is not None
        return _checked(read_table(query, "database", request), request)
    if not path.is_file():
        raise InvalidInputError(
            f"{path} is a folder, which fit and predict read with --blocks"
            if path.is_dir()
            else f"there is no file {path}"
        )
    if path.stat().st_size == 0:
        raise InvalidInputError(f"{path} is empty")
    if path.suffix == ".bed" or kind == "bed":
        return _checked(read_genotypes(path, _people(request), request), request)
    if request.phenotypes is not None or request.covariates:
        raise InvalidInputError(f"--phenotypes and --covariates are for a .bed file, which {path} is not")
    query = query_of(path, request.sql)
    if query is not None:
        return _checked(read_table(query, "database", request), request)
    assert isinstance(path, Path)
    kind = _kind_of(path) if kind is None else kind
    if kind not in FORMATS:
        raise InvalidInputError(f"unknown format {kind!r}; known: {', '.join(FORMATS)}")
    return _checked((read_table if kind in TABLES else read_arrays)(path, kind, request), request)


def _checked(data: Data, request: Request) -> Data:
    return check(data, may_be_narrow=request.only is not None, may_be_missing=request.may_be_missing)


def _people(request: Request) -> tuple[Path | Query, str] | None:
    """Return the table of the samples of a .bed file, and its format."""
    source = request.phenotypes
    if source is None:
        return None
    if isinstance(source, Path) and not source.is_file():
        raise InvalidInputError(f"there is no file {source}")
    query = query_of(source, request.sql)
    if query is not None:
        return query, "database"
    kind = _kind_of(source)
    if kind not in TABLES:
        raise InvalidInputError(f"--phenotypes takes a table whose columns have names, which {source} is not")
    return source, kind


def _kind_of(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".bz2", ".zst")]
    for kind, endings in FORMATS.items():
        if suffixes and suffixes[-1] in endings:
            return kind
    known = " ".join(ending for endings in FORMATS.values() for ending in endings)
    raise InvalidInputError(f"the name {path.name} has no known ending ({known}): rename the file or add --format")
