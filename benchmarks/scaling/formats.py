"""How fast rows come from each kind of file, with the cache of the system dropped before."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import scipy.sparse as sp

from hardthresh.designs import (
    RowBlocks,
    Serial,
    from_arrays,
    from_file,
    from_hdf5,
    from_npz_shards,
    from_parquet,
    from_zarr,
)
from scaling.rows import disc_size, drop_cache, measured

D = 1000
CHUNK = 8192
"""Rows of a chunk of a file: 32 MiB of 1000 singles, so that all kinds have the same blocks."""
DENSITY = 0.01


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the settings of the task."""
    parser.add_argument("--rows", type=int, default=250_000, help="rows of 1000 singles; 250000 are 1 GB")
    parser.add_argument("--only", default="", help="kinds with one of these words in their name, such as parquet,zarr")
    parser.add_argument("--readers", default="1,4", help="how many threads read")


def chunk(number: int, rows: int) -> np.ndarray:
    """Return the rows of a chunk: numbers with two decimals, such as those of sensors."""
    X = np.random.default_rng((7, number)).standard_normal((rows, D), dtype=np.float32)
    return np.round(X, 2)


def chunks(n: int) -> Iterator[np.ndarray]:
    """Yield the rows of a table of n rows."""
    for number, start in enumerate(range(0, n, CHUNK)):
        yield chunk(number, min(CHUNK, n - start))


def raw(path: Path, n: int) -> RowBlocks:
    """Write a raw file."""
    with path.open("wb", buffering=0) as file:
        for X in chunks(n):
            file.write(X.data)
    return from_file(path, n_columns=D)


def mapped(path: Path, n: int) -> RowBlocks:
    """Map a raw file into memory, and take its rows as an array in memory."""
    raw(path, n)
    return from_arrays(np.memmap(path, np.float32, "c", shape=(n, D)))  # a private mapping is not read again


def parquet(**settings: Any) -> Callable[[Path, int], RowBlocks]:
    """Return a function that writes a Parquet file."""

    def write(path: Path, n: int) -> RowBlocks:
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema([(f"c{j}", pa.float32()) for j in range(D)])
        with pq.ParquetWriter(path, schema, **settings) as file:
            for X in chunks(n):
                columns = [pa.array(column) for column in np.ascontiguousarray(X.T)]
                file.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=CHUNK)
        return from_parquet(path)

    return write


def hdf5(rows: int | None = None, **settings: Any) -> Callable[[Path, int], RowBlocks]:
    """Return a function that writes a data set of an HDF5 file, in chunks of some rows or in one piece."""

    def write(path: Path, n: int) -> RowBlocks:
        import h5py

        with h5py.File(path, "w") as file:
            chunks_of = None if rows is None else (min(rows, n), D)
            data = file.create_dataset("X", (n, D), "f4", chunks=chunks_of, **settings)
            for number, X in enumerate(chunks(n)):
                data[number * CHUNK : number * CHUNK + len(X)] = X
        return from_hdf5(path)

    return write


def zarr(codec: str | None) -> Callable[[Path, int], RowBlocks]:
    """Return a function that writes a Zarr array."""

    def write(path: Path, n: int) -> RowBlocks:
        import zarr
        from zarr.codecs import BloscCodec, ZstdCodec

        codecs = {
            "lz4": BloscCodec(cname="lz4", clevel=3, shuffle="bitshuffle"),
            "zstd": ZstdCodec(level=1),
            None: None,
        }
        data = zarr.create_array(path, shape=(n, D), chunks=(CHUNK, D), dtype="f4", compressors=codecs[codec])
        for number, X in enumerate(chunks(n)):
            data[number * CHUNK : number * CHUNK + len(X)] = X
        return from_zarr(path)

    return write


def shards(*, sparse: bool) -> Callable[[Path, int], RowBlocks]:
    """Return a function that writes a folder of .npz files, of which a sparse one has 1 % of the entries."""

    def write(path: Path, n: int) -> RowBlocks:
        path.mkdir()
        for number, X in enumerate(chunks(n)):
            if sparse:
                keep = np.random.default_rng((8, number)).random(X.shape) < DENSITY
                sp.save_npz(path / f"{number:05d}.npz", sp.csr_array(X * keep), compressed=False)
            else:
                np.savez(path / f"{number:05d}.npz", X=X)
        return from_npz_shards(path)

    return write


KINDS: dict[str, tuple[str | None, Callable[[Path, int], RowBlocks]]] = {
    "raw": (None, raw),
    "raw, mapped": (None, mapped),
    "npz shards": (None, shards(sparse=False)),
    "npz shards, sparse": (None, shards(sparse=True)),
    "hdf5 contiguous": ("h5py", hdf5()),
    "hdf5 chunked": ("h5py", hdf5(1024)),
    "hdf5 lzf": ("h5py", hdf5(1024, compression="lzf", shuffle=True)),
    "parquet plain": ("pyarrow", parquet(compression="none", use_dictionary=False)),
    "parquet snappy": ("pyarrow", parquet(compression="snappy")),
    "parquet zstd, byte streams": (
        "pyarrow",
        parquet(compression="zstd", use_dictionary=False, use_byte_stream_split=True),
    ),
    "zarr raw": ("zarr", zarr(None)),
    "zarr lz4": ("zarr", zarr("lz4")),
    "zarr zstd": ("zarr", zarr("zstd")),
}


def pull(X: Any, y: Any, weight: Any, offset: Any) -> tuple[np.ndarray]:
    """Return X'1: a task whose product costs little beside the reading."""
    return (np.asarray(np.ones(X.shape[0], X.dtype) @ X, dtype=np.float64),)


def rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a row for each kind of file and number of threads that read."""
    folder = Path(mkdtemp(prefix="hardthresh-formats-", dir=options.folder))
    try:
        for name, (package, write) in KINDS.items():
            if options.only and not any(word in name for word in options.only.split(",")):
                continue
            if package is not None and find_spec(package) is None:
                yield {"task": "formats", "case": name, "skipped": f"{package} is not installed"}
                continue
            path = folder / "table"
            blocks = write(path, options.rows)
            for readers in map(int, options.readers.split(",")):
                yield _reading(name, path, blocks, readers)
                if not blocks.sources:  # pages that are mapped stay in the cache
                    break
            del blocks
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    finally:
        shutil.rmtree(folder)


def _reading(name: str, path: Path, blocks: RowBlocks, readers: int) -> dict[str, Any]:
    drop_cache(path)

    def work() -> dict[str, Any]:
        (total,) = Serial(blocks, readers).sweep(pull)
        return {"readers": readers, "disc_gb": round(disc_size(path) / 1e9, 3), "digest": sha256(total).hexdigest()[:8]}

    return measured("formats", name, work, blocks.nbytes)
