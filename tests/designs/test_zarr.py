"""Blocks of Zarr arrays. Chunks have whole rows."""

import os

import numpy as np
import pytest

from blocks_of_files import D, N, assert_same_bits, assert_same_rows, table
from hardthresh.core import InvalidInputError
from hardthresh.designs import Serial, from_zarr
from levels import at_most, only_at


@pytest.fixture(autouse=True)
def _library():
    pytest.importorskip("zarr", reason="zarr is not installed (the extra zarr)")


def write(path, parts, **settings):
    import zarr

    group = zarr.open_group(path, mode="w")
    for name, part in parts.items():
        more = settings if name == "X" else {}
        group.create_array(name, shape=part.shape, dtype=part.dtype, **{"chunks": part.shape, **more})[...] = part
    return path


@at_most(2)
@pytest.mark.parametrize(
    "settings",
    [{"chunks": (300, D)}, {"chunks": (100, D), "shards": (300, D)}, {"chunks": (300, D), "zarr_format": 2}],
)
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i4"])
def test_rows_are_those_that_were_written(tmp_path, settings, dtype):
    import zarr

    X, others = table(dtype)
    form = settings.get("zarr_format")
    settings = {name: each for name, each in settings.items() if name != "zarr_format"}
    if form is None:
        path = write(tmp_path / "t.zarr", {"X": X, **others}, **settings)
    else:
        group = zarr.open_group(tmp_path / "t.zarr", mode="w", zarr_format=form)
        for name, part in {"X": X, **others}.items():
            group.create_array(name, data=part, **(settings if name == "X" else {}))
        path = tmp_path / "t.zarr"
    names = {name: name for name in others}
    blocks = from_zarr(path, "X", **names)
    X = X.astype(blocks.dtype)
    assert_same_rows(blocks, X, others)
    assert_same_rows(from_zarr(path / "X", **others, rows=256), X, others)
    assert_same_bits(from_zarr(path, "X", **names, rows=256), X, others, 256)
    assert blocks.readers == 4
    assert len(blocks.sources) > 4


def test_texts_are_labels(tmp_path):
    """Of any length: zarr returns them as a type of numpy 2 or as objects."""
    X, _ = table()
    labels = np.array(["no", "já", "perhaps"])[np.arange(N) % 3]
    path = write(tmp_path / "t.zarr", {"X": X}, chunks=(300, D))
    import zarr

    zarr.open_group(path).create_array("y", shape=labels.shape, dtype=str)[...] = labels
    assert_same_rows(from_zarr(path, "X", y="y"), X, {"y": labels})


@only_at("pairs")
def test_rows_are_whole_chunks(tmp_path):
    path = write(tmp_path / "t.zarr", {"X": np.zeros((3000, D))}, chunks=(1300, D))
    assert [block.rows for block in from_zarr(path, "X")] == [3000]
    wide = write(tmp_path / "w.zarr", {"X": np.zeros((3000, 5000), np.float32)}, chunks=(1300, 5000))
    assert [block.rows for block in from_zarr(wide, "X")] == [1300, 1300, 400]


def test_chunks_that_split_columns_are_refused(tmp_path):
    path = write(tmp_path / "t.zarr", {"X": np.zeros((N, D))}, chunks=(100, 10))
    with pytest.raises(
        InvalidInputError, match=r"have 10 of 37 columns; write whole rows: zarr.create_array\(\.\.\., chunks="
    ):
        from_zarr(path, "X")


def test_what_is_missing_is_named(tmp_path):
    path = write(tmp_path / "t.zarr", {"X": np.zeros((N, D))}, chunks=(100, D))
    with pytest.raises(InvalidInputError, match="has no Zarr array 'Z'"):
        from_zarr(path, "Z")
    with pytest.raises(InvalidInputError, match="is no Zarr array; name it in array"):
        from_zarr(path)


def test_a_damaged_chunk_and_a_changed_one(tmp_path):
    """Section 9 of scale.md."""
    X, _ = table()
    path = write(tmp_path / "t.zarr", {"X": X}, chunks=(300, D))
    engine = Serial(from_zarr(path, "X", rows=300))
    last = path / "X" / "c" / "3" / "0"
    os.truncate(last, 5)
    with pytest.raises(OSError, match=r"rows 900\.\.999 of .*t\.zarr/X cannot be read"):
        engine.blocks.read(3)
    with pytest.raises(InvalidInputError, match="X changed while it was read"):
        engine.sweep(lambda X, y, w, o: (X.sum(axis=0),))
