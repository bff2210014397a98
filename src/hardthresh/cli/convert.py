"""``hardthresh convert``: a Parquet table as a matrix in an .npy file, which is read as fast as the disc allows."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from hardthresh.core.checking import checked_word
from hardthresh.core.errors import InvalidInputError, plural

from .blocks import blocks_of
from .data import Request
from .options import check_output, names_of
from .terminal import write_stderr


def convert(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Parquet file, or a folder of Parquet files.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The .npy file to write.")],
    target: Annotated[str | None, typer.Option(help="Column to write to OUT.target.npy, not to the matrix.")] = None,
    drop: Annotated[str | None, typer.Option(help="Columns to leave out, NAME,...")] = None,
    dtype: Annotated[
        str, typer.Option(help="float32, float64, or auto: float32 if it is exact for all columns.")
    ] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> None:
    """Convert a Parquet table to a matrix in an .npy file, in one pass, block by block.

    The names of the columns are written to OUT.columns.txt, one per line. An .npy file is read several times as fast as
    Parquet, which has to be decoded in each pass. Missing values become NaN.
    """
    import numpy as np

    from hardthresh.core.files import write_file
    from hardthresh.core.progress import format_duration, progress_line
    from hardthresh.designs.local import in_order

    checked_word("--dtype", dtype, ("auto", "float32", "float64"))
    beside = {ending: out.with_name(f"{out.stem}.{ending}") for ending in ("target.npy", "columns.txt")}
    check_output(out, "OUT", ".npy", {"the table": data})
    request = Request(target=target, drop=names_of(drop), learn=False)
    blocks = blocks_of(data, request, "parquet", dtype=None if dtype == "auto" else dtype)
    n, d = blocks.shape
    assert n is not None
    targets: list[Any] = []
    begun, missing = time.monotonic(), 0
    with progress_line(not quiet and sys.stderr.isatty(), f"Converting {data.name}", len(blocks)) as report:

        def parts() -> Iterator[bytes | memoryview]:
            """Yield the header of the matrix and its rows, and keep the targets."""
            nonlocal missing
            header = io.BytesIO()
            descr = np.lib.format.dtype_to_descr(blocks.dtype)
            np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": (n, d)})
            yield header.getvalue()
            try:
                for rows in in_order(blocks.read, range(len(blocks)), blocks.readers, blocks.readers):
                    report("")
                    if rows is not None:
                        missing += int(np.isnan(rows.X).sum())
                        targets.append(rows.y)
                        yield rows.X.data
            except OSError as error:  # of the table, not of what is written
                raise InvalidInputError(f"{data} cannot be read: {error}") from error

        write_file(out, parts())
    if target is not None:
        column = io.BytesIO()
        np.save(column, np.concatenate(targets), allow_pickle=False)
        write_file(beside["target.npy"], column.getvalue())
    write_file(beside["columns.txt"], "".join(f"{name}\n" for name in blocks.feature_names or ()).encode())
    if not quiet:
        size = out.stat().st_size
        write_stderr(
            f"{n:,} rows of {plural(d, 'column')} of {data} written to {out} ({blocks.dtype}, {size / 1e9:.3g} GB) in "
            f"{format_duration(time.monotonic() - begun)}, {'the target' if target is not None else 'the names'} to "
            f"{beside['target.npy' if target is not None else 'columns.txt']}"
        )
        if missing:
            write_stderr(f"note: {plural(missing, 'missing value')} became NaN, which fit refuses without --impute")
