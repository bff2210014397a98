"""Blocks of Parquet files. Row groups are chunks, and roles are columns."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from blocks_of_files import D, N, assert_same_bits, assert_same_rows, joined, table
from hardthresh.core import InvalidInputError, OutOfMemoryError
from hardthresh.designs import Serial, from_parquet
from hardthresh.designs.formats import parquet as parquet_blocks
from levels import only_at


@pytest.fixture(autouse=True)
def _arrow():
    pytest.importorskip("pyarrow", reason="pyarrow is not installed (the extra parquet)")


def named(X, others):
    return {**{f"c{j}": X[:, j] for j in range(X.shape[1])}, **others}


def write(path, columns, groups=200, **settings):
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {
        name: each if isinstance(each, pa.Array) else pa.array(np.asarray(each)) for name, each in columns.items()
    }
    pq.write_table(pa.table(arrays), path, row_group_size=groups, **settings)
    return path


ROLES = {"target": "y", "sample_weight": "sample_weight", "offset": "offset", "fold": "fold"}


@pytest.mark.parametrize(
    "settings", [{}, {"compression": "zstd", "use_byte_stream_split": True, "use_dictionary": False}]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_file(tmp_path, dtype, settings):
    X, others = table(dtype)
    path = write(tmp_path / "t.parquet", named(X, others), **settings)
    assert_same_rows(from_parquet(path, **ROLES), X, others, [N])
    blocks = from_parquet(path, **ROLES, rows=400)
    assert_same_rows(blocks, X, others, [400, 400, 200])
    assert blocks.feature_names == tuple(f"c{j}" for j in range(D))
    assert blocks.readers == 4
    assert_same_bits(blocks, X, others, 400)


def test_a_row_group_is_never_cut(tmp_path):
    X, others = table()
    path = write(tmp_path / "t.parquet", named(X, others), groups=300)
    assert [block.rows for block in from_parquet(path, rows=100)] == [300, 300, 300, 100]
    assert [block.groups for block in from_parquet(path, rows=650)] == [(0, 1), (2, 3)]


def test_a_folder(tmp_path):
    X, others = table()
    columns = named(X, others)
    (tmp_path / "b").mkdir()
    for name, start, stop in (("a.parquet", 0, 300), ("b/0.pq", 300, 600), ("c.parquet", 600, N)):
        write(tmp_path / name, {name: each[start:stop] for name, each in columns.items()})
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "_metadata.parquet").write_text("not read")
    blocks = from_parquet(tmp_path, **ROLES)
    assert_same_rows(blocks, X, others, [300, 300, 400])
    assert [Path(file).name for file in blocks.sources] == ["a.parquet", "0.pq", "c.parquet"]
    backwards = from_parquet([*reversed(blocks.sources)], **ROLES)
    assert_array_equal(backwards.read(0).y, others["y"][600:])


def test_the_order_of_columns_in_a_part_does_not_matter(tmp_path):
    X, others = table()
    columns = named(X, others)
    write(tmp_path / "a.parquet", {name: each[:500] for name, each in columns.items()})
    write(tmp_path / "b.parquet", {name: each[500:] for name, each in reversed(columns.items())})
    assert_same_rows(from_parquet(tmp_path, **ROLES), X, others, [500, 500])


def test_only_the_columns_that_are_asked_for_are_read(tmp_path, monkeypatch):
    X, others = table()
    path = write(tmp_path / "t.parquet", named(X, others))
    blocks = from_parquet(path, target="y", features=["c3", "c1", "c7"])
    assert_array_equal(joined(blocks).X, X[:, [3, 1, 7]])
    asked = columns_asked(monkeypatch)
    engine = Serial(blocks)
    engine.sweep(lambda X, y, weight, offset: (X.sum(axis=0),), columns=np.array([0, 2]))
    assert asked == [["c3", "c7"], ["y"]]


@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 16), (np.float64, 8)])
def test_columns_are_decoded_a_line_of_the_cache_at_a_time(tmp_path, monkeypatch, dtype, most):
    """Else all columns of a block are in memory beside its rows, and no longer in the cache when these are written."""
    X = np.random.default_rng(0).standard_normal((300, 2 * most + 3)).astype(dtype)
    blocks = from_parquet(write(tmp_path / "t.parquet", named(X, {}), groups=100), rows=200)
    asked = columns_asked(monkeypatch)
    assert_array_equal(blocks.read(0).X, X[:200])
    assert [len(names) for names in asked] == [most, most, 3, 0]


def columns_asked(monkeypatch):
    """Return a list that gets the names of the columns in each request to pyarrow."""
    asked, opened = [], parquet_blocks._opened

    def spying(*args):
        file = opened(*args)
        read = file.read_row_groups
        monkeypatch.setattr(file, "read_row_groups", lambda *a, **k: (asked.append(k["columns"]), read(*a, **k))[1])
        return file

    monkeypatch.setattr(parquet_blocks, "_opened", spying)
    return asked


def test_the_index_of_pandas_is_no_feature(tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"a": np.arange(6.0), "b": np.ones(6), "y": np.zeros(6)})
    frame[frame.a > 1].to_parquet(tmp_path / "0.parquet")
    frame.to_parquet(tmp_path / "1.parquet")
    frame.set_index("b").to_parquet(tmp_path / "named.parquet")
    folder = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    for files in (folder, folder[::-1]):
        blocks = from_parquet(files, "y")
        assert (blocks.feature_names, blocks.shape) == (("a", "b"), (10, 2))
    assert from_parquet(tmp_path / "named.parquet", "y").feature_names == ("a",)
    assert from_parquet(tmp_path / "named.parquet", "y", features=["a", "b"]).feature_names == ("a", "b")


def test_integers_booleans_and_decimals_are_numbers(tmp_path):
    from decimal import Decimal

    import pyarrow as pa

    columns = {
        "single": np.array([0.5, 1.5, 2.5], np.float32),
        "small": np.array([1, -2, 3], np.int16),
        "bit": np.array([True, False, True]),
    }
    path = write(tmp_path / "a.parquet", columns)
    assert_array_equal(
        joined(from_parquet(path)).X, np.array([[0.5, 1, 1], [1.5, -2, 0], [2.5, 3, 1]], np.float32), strict=True
    )
    path = write(tmp_path / "l.parquet", {**columns, "long": np.array([1, 2, 2**24 + 1], np.int32)})
    assert float(joined(from_parquet(path)).X[2, 3]) == 2**24 + 1  # which no single is
    more = {
        **columns,
        "money": pa.array([Decimal("1.25"), None, Decimal("-3.00")]),
        "long": pa.array([2**40, None, 3]),
    }
    path = write(tmp_path / "b.parquet", {**more, "gap": pa.array([True, None, False])})
    got = joined(from_parquet(path)).X
    assert got.dtype == np.float64
    assert_array_equal(got[:, 3:], [[1.25, 2.0**40, 1.0], [np.nan] * 3, [-3.0, 3.0, 0.0]])
    assert joined(from_parquet(path, dtype="float32")).X.dtype == np.float32
    with pytest.raises(InvalidInputError, match="dtype must be float32 or float64, got 'int64'"):
        from_parquet(path, dtype=int)


def test_targets_may_be_classes_or_several(tmp_path):
    import pyarrow as pa

    names = ["setosa", "virginica", "setosa"]
    columns = {"x": np.arange(3.0), "text": pa.array(names), "category": pa.array(names).dictionary_encode()}
    path = write(tmp_path / "t.parquet", {**columns, "u": np.arange(3), "v": np.ones(3, np.float32)})
    for target in ("text", "category"):
        got = joined(from_parquet(path, target, features=["x"]))
        assert_array_equal(got.y, names)
        assert got.y.dtype.kind == "U"
    got = joined(from_parquet(path, ["u", "v"], features=["x"]))
    assert_array_equal(got.y, [[0, 1], [1, 1], [2, 1]])
    gap = write(tmp_path / "g.parquet", {"x": np.arange(3.0), "y": pa.array(["a", None, "b"])})
    with pytest.raises(InvalidInputError, match="the column 'y' has missing values"):
        from_parquet(gap, "y").read(0)


WRONG = {
    "text": ({}, r"has columns without numbers: 'text' \(string\), 'nothing' \(null\), 'day' \(date32\[day\]\), 'kind' "
             r"\(dictionary<.*>\); encode them"),
    "no such column": ({"target": "yy"}, r"has no column 'yy'; it has 'x', 'text', 'nothing', 'day', 'kind', 'y'"),
    "no such feature": ({"features": ["x", "z"]}, "has no column 'z'"),
    "twice": ({"target": "y", "features": ["x", "y"]}, "the column 'y' is asked for twice"),
    "one string": ({"features": "x"}, "features must be a list of names, got 'x'"),
    "none": ({"target": "y", "features": []}, "has no columns for X, only 'y'"),
    "a weight without numbers": ({"target": "y", "sample_weight": "text", "features": ["x"]}, r"'text' \(string\)"),
    "rows": ({"target": "y", "features": ["x"], "rows": 0}, "rows must be a positive integer"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_table_of_numbers_is_refused_by_name(tmp_path, case):
    from datetime import date

    import pyarrow as pa

    columns = {"x": np.arange(2.0), "text": pa.array(["a", "b"]), "nothing": pa.nulls(2)}
    columns |= {
        "day": pa.array([date(2026, 1, 1)] * 2),
        "kind": pa.array(["a", "b"]).dictionary_encode(),
        "y": np.ones(2),
    }
    path = write(tmp_path / "t.parquet", columns)
    settings, message = WRONG[case]
    with pytest.raises(InvalidInputError, match=message):
        from_parquet(path, **settings)


def test_parts_with_other_columns_are_refused(tmp_path):
    """Section 9 of scale.md."""
    columns = {"a": np.ones(3), "b": np.ones(3)}
    write(tmp_path / "0.parquet", columns)
    write(tmp_path / "1.parquet", {**columns, "c": np.ones(3)})
    with pytest.raises(InvalidInputError, match=r"1\.parquet has the column 'c', which .*0\.parquet has not"):
        from_parquet(tmp_path)
    assert from_parquet(tmp_path, features=["a", "b"]).shape == (6, 2)
    write(tmp_path / "1.parquet", {"a": np.ones(3)})
    with pytest.raises(InvalidInputError, match=r"1\.parquet has no column 'b', which .*0\.parquet has"):
        from_parquet(tmp_path)
    write(tmp_path / "1.parquet", {"a": np.ones(3, np.float32), "b": np.ones(3, np.float32)})
    assert from_parquet(tmp_path).dtype == np.float64  # singles and doubles mixed: all doubles


def test_a_file_that_is_cut_off_is_an_os_error(tmp_path):
    """Section 9 of scale.md."""
    X, others = table()
    path = write(tmp_path / "t.parquet", named(X, others), compression="none", use_dictionary=False)
    blocks = from_parquet(path, **ROLES, rows=200)
    blocks.read(0)
    whole = path.read_bytes()
    os.truncate(path, 1000)
    with pytest.raises(OSError, match=rf"{path} cannot be read as Parquet \(it has 1,000 bytes\)"):
        from_parquet(path)
    path.write_bytes(whole[:1000] + b"\0" * (len(whole) - 5000) + whole[-4000:])
    with pytest.raises(OSError, match=rf"rows 200\.\.399 of {path} cannot be read"):
        blocks.read(1)


def test_a_file_that_is_gone_is_reported(tmp_path):
    X, others = table()
    path = write(tmp_path / "t.parquet", named(X, others))
    blocks = from_parquet(path, **ROLES)
    path.unlink()
    with pytest.raises(OSError, match=rf"rows 0\.\..* of {path} cannot be read: the file is gone"):
        blocks.read(0)


def test_threads_that_arrow_cannot_start_are_reported(tmp_path, monkeypatch):
    """As where the address space has no room for their stacks."""
    X, others = table()
    path = write(tmp_path / "t.parquet", named(X, others))
    blocks = from_parquet(path, **ROLES)

    def refuse(*args, **settings):
        raise OSError("Unknown error: Failed to launch worker thread")

    monkeypatch.setattr("hardthresh.designs.formats.parquet._opened", refuse)
    with pytest.raises(OutOfMemoryError, match="cannot be read: no thread can be started; write smaller row groups"):
        blocks.read(0)


def test_a_folder_without_files_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"has no files that end in \.parquet or \.pq"):
        from_parquet(tmp_path)


def test_empty_row_groups_are_skipped(tmp_path):
    write(tmp_path / "0.parquet", {"a": np.zeros(0), "y": np.zeros(0)})
    write(tmp_path / "1.parquet", {"a": np.arange(3.0), "y": np.ones(3)})
    blocks = from_parquet(tmp_path, "y")
    assert Serial(blocks).sweep(lambda X, y, w, o: (y @ X,))[0] == 3.0


UNDER_A_LIMIT = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (1000 << 20, 1000 << 20))
import hardthresh as ht
from hardthresh.designs import Serial
blocks = ht.from_parquet({path!r}, target="y")
print(Serial(blocks).sweep(lambda X, y, weight, offset: (y @ X,))[0].shape)
"""


@only_at("pairs")
def test_a_limited_address_space_is_enough(tmp_path):
    """Arrow would reserve 1 GiB of it for its memory pool, and allocations of other libraries then end the process."""
    X, others = table()
    path = write(tmp_path / "t.parquet", named(X, {"y": others["y"]}))
    code = UNDER_A_LIMIT.format(path=str(path))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout == f"({D},)\n", run.stderr
