"""Blocks of raw files: the same rows as the array that was written, and errors that name what is missing."""

import os
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from hardthresh.core import InvalidInputError
from hardthresh.designs import Serial, from_arrays, from_file
from hardthresh.designs.engine import FOLD
from hardthresh.designs.formats.stored import RawArray


def data(n=1000, d=6, dtype=np.float32):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, d)).astype(dtype), rng.standard_normal(n)


def joined(blocks):
    """All rows of a table, block by block."""
    return Serial(blocks).rows(range(len(blocks)))


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">f8", "<i2", "|b1"])
@pytest.mark.parametrize("kind", ["raw", "npy", "memmap", "part of a memmap"])
def test_rows_are_those_that_were_written(tmp_path, kind, dtype):
    X, y = data(dtype=dtype)
    expected = X.astype(np.float32 if dtype == "<f4" or dtype == ">f4" else np.float64)
    path = tmp_path / ("table.npy" if kind == "npy" else "table.bin")
    if kind == "npy":
        np.save(path, X)
        blocks = from_file(path, y, rows=300)
    else:
        path.write_bytes(b"head" * 3 + X.tobytes())
        if kind == "raw":
            blocks = from_file(path, y, n_columns=6, dtype=dtype, skip_bytes=12, rows=300)
        else:
            mapped = np.memmap(path, dtype, "r", offset=12, shape=X.shape)
            if kind == "part of a memmap":
                mapped, y, expected = mapped[99:], y[99:], expected[99:]
            blocks = from_arrays(mapped, y, rows=300)
    assert [block.rows for block in blocks] == [300, 300, 300, len(expected) - 900][: len(blocks)]
    got = joined(pickle.loads(pickle.dumps(blocks)))
    assert_array_equal(got.X, expected, strict=True)
    assert_array_equal(got.y, y)
    assert blocks.readers == 1
    assert blocks.sources == (str(path),)
    assert len(pickle.dumps(blocks.select(np.arange(2)))) < 40_000  # names, and y, but no entry of X


def test_a_memmap_by_columns_or_changed_in_memory_is_an_array(tmp_path):
    X, _ = data()
    np.save(tmp_path / "c.npy", X)
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    by_columns = np.load(tmp_path / "f.npy", mmap_mode="r")
    changed = np.load(tmp_path / "c.npy", mmap_mode="c")
    changed[3] = 7
    for mapped in (by_columns, changed, np.load(tmp_path / "c.npy", mmap_mode="r")[::2]):
        blocks = from_arrays(mapped, rows=300)
        assert blocks.sources == ()
        assert_array_equal(joined(blocks).X, mapped)


def test_whatever_goes_with_the_rows_may_be_in_a_file_too(tmp_path):
    X, y = data()
    rng = np.random.default_rng(1)
    others = {"y": np.column_stack([y, y]), "sample_weight": rng.random(1000), "offset": rng.random(1000)}
    others["fold"] = rng.integers(0, 5, 1000)
    for name, part in {"X": X, **others}.items():
        np.save(tmp_path / f"{name}.npy", part)
    paths = {name: str(tmp_path / f"{name}.npy") for name in others}
    blocks = from_file(tmp_path / "X.npy", **paths, rows=256)
    got = joined(blocks)
    for ours, theirs in zip((*got, got.fold), (X, *others.values()), strict=True):
        assert_array_equal(ours, theirs, strict=True)
    assert len(blocks.sources) == 5
    assert len(pickle.dumps(blocks)) < 5000


def count(X, y, weight, offset, fold):
    return (np.bincount(fold, minlength=5).astype(float),)


def test_the_fold_column_is_an_argument_of_a_task(tmp_path):
    X, y = data()
    fold = np.arange(1000) % 5
    assert_array_equal(Serial(from_arrays(X, y, fold=fold, rows=100)).sweep(count, FOLD)[0], [200] * 5)
    kept = Serial(from_arrays(X, y, fold=fold, rows=100)).keep(lambda X, y, w, o, fold: (X, y, w, o, fold), FOLD)
    assert_array_equal(Serial(from_arrays(X, y)).sweep(count, FOLD, on=kept)[0], [200] * 5)


def test_columns_by_position(tmp_path):
    X, y = data()
    np.save(tmp_path / "X.npy", X)
    some = from_file(tmp_path / "X.npy", y, rows=300).select(np.array([1, 4]))
    assert some.shape == (1000, 2)
    assert_array_equal(joined(some).X, X[:, [1, 4]], strict=True)


def test_a_file_shorter_than_its_header_is_refused(tmp_path):
    """Section 9 of scale.md."""
    X, _ = data()
    path = tmp_path / "X.npy"
    np.save(path, X)
    blocks = from_file(path, rows=300)
    at = path.stat().st_size - 6 * 4 * 10 - 1
    os.truncate(path, at)
    message = rf"{path} ends at byte {at:,}; rows 989\.\.999 are missing"
    with pytest.raises(OSError, match=message):
        from_file(path)
    assert_array_equal(blocks.read(2).X, X[600:900])
    with pytest.raises(OSError, match=message):
        blocks.read(3)


def test_a_file_that_changes_between_readings_is_noticed(tmp_path):
    """Section 9 of scale.md."""
    X, y = data()
    path = tmp_path / "X.npy"
    np.save(path, X)

    def total(X, y, weight, offset):
        return (X.sum(axis=0, dtype=float),)

    engine = Serial(from_file(path, y, rows=300))
    engine.sweep(total)
    before = engine.blocks.fingerprint()
    np.save(path, X + 1)
    os.utime(path, ns=(1, 1))
    with pytest.raises(InvalidInputError, match=rf"X changed while it was read \({path}\); fit again"):
        engine.sweep(total)
    assert engine.readings == 1
    assert engine.blocks.fingerprint() != before

    def changes(X, y, weight, offset):
        os.utime(path, ns=(2, 2))
        return total(X, y, weight, offset)

    with pytest.raises(InvalidInputError, match="changed while it was read"):
        Serial(from_file(path, y, rows=300)).sweep(changes)


WRONG = {
    "no n_columns": ({}, "is a raw file: pass n_columns"),
    "no rows of 7": (
        {"n_columns": 7},
        r"has 24,000 bytes from byte 0 on, which are no rows of 7 numbers of float32 \(28 bytes",
    ),
    "skipped": ({"n_columns": 6, "skip_bytes": 30_000}, "no rows of 6 numbers"),
    "y": ({"n_columns": 6, "y": np.zeros(999)}, r"X has 1,000 rows, y has shape \(999,\)"),
    "one number": ({"n_columns": 6, "offset": 1.0}, r"X has 1,000 rows, offset has shape \(\)"),
    "text": ({"n_columns": 6, "dtype": "<U1"}, "X must be numeric"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_table_is_refused(tmp_path, case):
    settings, message = WRONG[case]
    path = tmp_path / "X.bin"
    path.write_bytes(data()[0].tobytes())
    with pytest.raises(InvalidInputError, match=message):
        from_file(path, **settings)


def test_npy_files_without_rows_are_refused(tmp_path):
    X, _ = data()
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    with pytest.raises(InvalidInputError, match=r"column by column .*mmap_mode=\"r\""):
        from_file(tmp_path / "f.npy")
    np.save(tmp_path / "o.npy", np.array([["a", None]], dtype=object))
    with pytest.raises(InvalidInputError, match="holds Python objects"):
        from_file(tmp_path / "o.npy")
    (tmp_path / "t.npy").write_text("no array")
    with pytest.raises(InvalidInputError, match=r"is not a \.npy file"):
        from_file(tmp_path / "t.npy")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        from_file(tmp_path / "none.npy")


def test_a_raw_array_reads_its_rows_alone(tmp_path):
    path = tmp_path / "X.bin"
    path.write_bytes(np.arange(24.0).tobytes())
    raw = RawArray(str(path), (8, 3), "<f8")
    assert_array_equal(raw[2:5][1:2].read(), [[9.0, 10.0, 11.0]])
    assert raw[2:5][1:2].first_row == 3
    assert raw[5:2].read().shape == (0, 3)


def test_an_address_is_left_to_dask():
    with pytest.raises(InvalidInputError, match=r"s3://bucket/table.npy is an address.*from_dask"):
        from_file("s3://bucket/table.npy")


@pytest.mark.parametrize(
    "parts",
    [
        lambda X, y: [(X, y), (X[:3], y[:3])],
        lambda X, y: [X, X[:3]],
        lambda X, y: (X, y),
        lambda X, y: [sparse.csr_array(X)],
    ],
)
def test_parts_of_a_table_are_refused_with_how_to_join_them(parts):
    X, y = np.ones((5, 2)), np.ones(5)
    with pytest.raises(InvalidInputError, match=r"X must be one table, .* Join them by numpy\.concatenate"):
        from_arrays(parts(X, y))
    assert from_arrays(X.tolist(), y).shape == (5, 2)
