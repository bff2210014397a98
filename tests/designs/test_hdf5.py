"""Blocks of HDF5 files. Data sets in one piece are raw files, others go through the library."""

import os

import numpy as np
import pytest

from blocks_of_files import D, N, assert_same_bits, assert_same_rows, table
from hardthresh.core import InvalidInputError
from hardthresh.designs import from_hdf5


@pytest.fixture(autouse=True)
def _library():
    pytest.importorskip("h5py", reason="h5py is not installed (the extra hdf5)")


def write(path, X, others, **settings):
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("group/X", data=X, **settings)
        for name, part in others.items():
            file.create_dataset(name, data=part)
    return path


ROLES = {"y": "y", "sample_weight": "sample_weight", "offset": "offset", "fold": "fold"}


@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        ({}, [N]),
        ({"chunks": (300, D), "compression": "gzip"}, [N]),
        ({"chunks": (300, 5), "shuffle": True}, [N]),
    ],
)
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i4"])
def test_rows_are_those_that_were_written(tmp_path, settings, rows, dtype):
    X, others = table(dtype)
    path = write(tmp_path / "t.h5", X, others, **settings)
    blocks = from_hdf5(path, "group/X", **ROLES)
    X = X.astype(blocks.dtype)
    assert blocks.dtype == (np.float32 if dtype == "<f4" else np.float64)
    assert_same_rows(blocks, X, others, rows)
    arrays = from_hdf5(path, "group/X", **others, rows=256)
    assert_same_rows(arrays, X, others)
    assert_same_bits(arrays, X, others, 256)


@pytest.mark.parametrize("chunks", [None, (300,)])
def test_texts_are_labels(tmp_path, chunks):
    """Of any length, as h5py writes lists of str, and of a fixed one, which are bytes."""
    import h5py

    X, _ = table()
    labels = np.array(["no", "já", "perhaps"])[np.arange(N) % 3]
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["X"] = X
        file.create_dataset("any", data=labels.astype(object), chunks=chunks)
        file.create_dataset("fixed", data=np.char.encode(labels, "utf-8"), chunks=chunks)
    for name in ("any", "fixed"):
        assert_same_rows(from_hdf5(tmp_path / "t.h5", y=name, rows=256), X, {"y": labels})
    with pytest.raises(InvalidInputError, match="X must be a matrix"):
        from_hdf5(tmp_path / "t.h5", "any")


def test_what_is_missing_is_named(tmp_path):
    X, others = table()
    path = write(tmp_path / "t.h5", X, {"y": others["y"][:-1], "text": np.array([b"a"] * N)})
    with pytest.raises(InvalidInputError, match=r"has no data set 'X'; it has \['group/X', 'text', 'y'\]"):
        from_hdf5(path)
    with pytest.raises(InvalidInputError, match=r"X has 1,000 rows, y has shape \(999,\)"):
        from_hdf5(path, "group/X", y="y")
    with pytest.raises(InvalidInputError, match="X must be a matrix"):
        from_hdf5(path, "text")


def test_a_file_that_is_cut_off_is_an_os_error(tmp_path):
    """Section 9 of scale.md."""
    X, _ = table()
    path = write(tmp_path / "t.h5", X, {}, chunks=(300, D))
    blocks = from_hdf5(path, "group/X", rows=300)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(OSError, match=f"{path} cannot be read as HDF5"):
        blocks.read(3)
