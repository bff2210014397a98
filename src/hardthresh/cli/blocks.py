"""Tables in blocks, which commands read block by block from files and folders of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, format_value

from .data import Request, listed, refuse_lacking, suggestion
from .terminal import write_stderr

if TYPE_CHECKING:
    from hardthresh.designs import RowBlocks

_ROLES = {"target": "y", "weight": "sample_weight", "offset": "offset", "fold": "fold"}
"""What the roles that `Request` names are called by the functions that open tables, and in .npz shards."""


def blocks_of(path: Path, request: Request, kind: str | None = None, *, dtype: str | None = None) -> RowBlocks:
    """Return the table in a file or folder in blocks, of which none is read.

    Parameters
    ----------
    path : Path
        The file or folder.
    request : Request
        Target, weight, offset and fold: columns of Parquet, data sets of HDF5 and Zarr, or other .npy files; columns to
        drop, or those alone that are wanted; and what the matrix is called in HDF5 and Zarr.
    kind : str, optional
        One of `formats.kinds.KINDS`; default: by the ending of the name.
    dtype : str, optional
        The precision of a Parquet table; default: float32 if no column needs more.

    Raises
    ------
    InvalidInputError
        If it cannot be read in blocks, or lacks what is asked for.
    """
    from hardthresh.designs.formats.kinds import KINDS, from_kind

    if not path.exists():
        raise InvalidInputError(f"there is no file {path}")
    kind = _kind_of(path) if kind is None else kind
    if kind not in KINDS:
        raise InvalidInputError(
            f"{format_value(kind)} is not read in blocks, only {', '.join(KINDS)}: write the rows as Parquet, or leave "
            "--blocks and --dask out"
        )
    if request.outputs and kind in ("npy", "hdf5", "zarr"):
        raise InvalidInputError(
            f"several targets are columns of Parquet files; of {path} give one array of shape (rows, targets), with "
            "one --target"
        )
    with _refused(path, request):
        _CHECKS.get(kind, _check_nothing)(path, request)
        names, features = _named(request), _features(path, request) if kind == "parquet" else None
        blocks = from_kind(path, kind, names, matrix=request.x_key, features=features, dtype=dtype)
        return _without(blocks, path, request)


@contextmanager
def _refused(path: Path, request: Request) -> Iterator[None]:
    """Turn errors of files into messages for users."""
    in_words = {
        "name the columns of X in features": "leave them out with --drop NAME,...",
        "name it in array": "name it with --x-key",
        "X has ": f"{path} has ",
    }
    for role, name in request.roles.items():
        called = "y" if role == "id" else _ROLES.get(role, role)
        in_words[f", {called} has shape"] = f", the {role} {name!r} has shape"
    try:
        yield
    except InvalidInputError as error:
        message = str(error)
        for ours, theirs in in_words.items():
            message = message.replace(ours, theirs)
        raise InvalidInputError(message) from error
    except (OSError, ValueError) as error:  # pyarrow says ValueError of a file that is damaged
        raise InvalidInputError(f"{path} cannot be read: {error}") from error


def _kind_of(path: Path) -> str:
    """Return the kind of a file or folder, or what stands for one that is not read in blocks."""
    from hardthresh.designs.formats.kinds import kind_of

    kind = kind_of(path)
    if kind is None and path.is_dir():
        raise InvalidInputError(f"the folder {path} has no .parquet or .npz files, and is no Zarr array")
    return path.suffix.lower().removeprefix(".") or path.name if kind is None else kind


def _features(path: Path, request: Request) -> Any:
    """Return the columns of a Parquet table that are wanted, so that others may be texts; None for all."""
    from hardthresh.designs.formats.parquet import columns_of

    if request.only is None and not request.drop:
        return None
    known = _names(path)
    if request.only is None:
        _check_dropped(path, request.drop, known)
        return [name for name in columns_of(path) if name not in {*request.drop, *request.roles.values()}]
    if lacking := [name for name in request.only if name not in known]:
        refuse_lacking(str(path), lacking, known)
    return request.only


def _check_parquet(path: Path, request: Request) -> None:
    if path.is_file():
        with path.open("rb") as file:
            if file.read(4) != b"PAR1":
                raise InvalidInputError(f"{path} is no Parquet file")
    if request.learn and request.target is None:
        raise InvalidInputError(f"add --target COLUMN, the column to predict; {path} has {listed(_names(path))}")


def _check_npy(path: Path, request: Request) -> None:
    if request.learn and request.target is None:
        raise InvalidInputError(f"add --target FILE, the .npy file of the targets of {path}")
    for role, name in request.roles.items():
        if not Path(name).is_file():
            raise InvalidInputError(f"there is no file {name} for the {role}, which is another .npy file beside {path}")


def _check_shards(path: Path, request: Request) -> None:
    """Refuse other names than those that shards have."""
    for role, name in request.roles.items():
        if name != _ROLES.get(role):
            has = f"is {_ROLES[role]!r}" if role in _ROLES else "is not read"
            raise InvalidInputError(f"the {role} of shards such as {path} {has}, got {name!r}; leave it out")


def _check_libsvm(path: Path, request: Request) -> None:
    """Say that shards are written beside a libsvm file, unless they are there."""
    from hardthresh.designs.formats.kinds import shards_beside

    _check_shards(path, request)
    folder = shards_beside(path)
    if not folder.exists():
        write_stderr(f"note: {path} is converted to {folder}, which is read by this command and by later ones")


def _check_nothing(path: Path, request: Request) -> None:
    """Names of data sets are checked where they are opened."""


_CHECKS: dict[str, Callable[[Path, Request], None]] = {
    "parquet": _check_parquet,
    "npy": _check_npy,
    "npz": _check_shards,
    "libsvm": _check_libsvm,
}


def _named(request: Request) -> dict[str, Any]:
    """Return the columns with a role by their names in the functions that open tables; ids replace y."""
    y: Any = request.target if request.id is None else request.id
    if request.target and request.outputs:
        y = (request.target, *request.outputs)
    return {"y": y, "sample_weight": request.weight, "offset": request.offset, "fold": request.fold}


def _without(blocks: RowBlocks, path: Path, request: Request) -> RowBlocks:
    """Return a table without the columns to drop, where its file could not leave them out."""
    if not request.drop or blocks.feature_names is not None:
        return blocks
    known = [str(j) for j in range(blocks.n_columns)]
    _check_dropped(path, request.drop, known)
    return blocks.select(np.array([int(name) for name in known if name not in request.drop]))


def _check_dropped(path: Path, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise InvalidInputError(f"{path} has no column {name!r} to drop; {suggestion(name, known)}")


def _names(path: Path) -> list[str]:
    """Return the names of the columns of a Parquet file, or of the first of a folder."""
    from hardthresh.designs.formats.parquet import parquet_columns, parquet_files

    return parquet_columns(parquet_files(path)[0])


IN_MEMORY = {
    "impute": "fill missing values in where the table is written",
    "categorical": "write a column of 0 and 1 for each category",
    "exposure": "write its logarithm as a column, and give that with --offset",
    "time": "fit times to events to rows that fit into memory",
    "order": "fit ordered classes to rows that fit into memory",
    "positive_class": "write a column that is 1 for this class, and predict that",
    "sql": "write the rows of the query to a Parquet file first",
}
"""The options of `fit` that need all rows in memory, with what to do."""


def how_read(dask: str | None) -> str:
    """Return the option that has a table read in blocks."""
    return "--blocks" if dask is None else "--dask"


def check_blocks(options: Mapping[str, Any]) -> bool:
    """Return whether the options of `fit` ask for blocks, after checking that the others allow that.

    Raises
    ------
    InvalidInputError
        For options that need all rows in memory, and for ``--fold`` without blocks.
    """
    how = how_read(options["dask"])
    if not (options["blocks"] or options["dask"] is not None):
        if options["fold"] is not None:
            raise InvalidInputError("--fold is for tables that are read with --blocks; leave it out")
        return False
    for name, instead in IN_MEMORY.items():
        if options[name]:
            raise InvalidInputError(f"--{name.replace('_', '-')} needs all rows in memory, unlike {how}: {instead}")
    return True
