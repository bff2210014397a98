"""A Parquet table as a matrix in an .npy file."""

import numpy as np
import polars
import pytest

import hardthresh as ht
from hardthresh.core.files import write_file

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

RNG = np.random.default_rng(0)
N = 5000
TABLE = polars.DataFrame(
    {f"x{j}": RNG.standard_normal(N).astype(np.float32) for j in range(6)}
    | {"site": ["a", "b"] * (N // 2), "y": RNG.standard_normal(N)}
)
FEATURES = [f"x{j}" for j in range(6)]


@pytest.fixture
def parquet(folder):
    """The table in a file of several row groups."""
    TABLE.write_parquet(folder / "table.parquet", row_group_size=700)
    return folder / "table.parquet"


def test_the_matrix_the_target_and_the_names(parquet, run, folder):
    result = run("convert", parquet, "X.npy", "--target", "y", "--drop", "site")
    assert result.exit_code == 0, result.output
    X = np.load(folder / "X.npy")
    assert (X.dtype, X.flags.c_contiguous) == (np.float32, True)
    np.testing.assert_array_equal(X, TABLE.select(FEATURES).to_numpy())
    np.testing.assert_array_equal(np.load(folder / "X.target.npy"), TABLE["y"].to_numpy())
    assert (folder / "X.columns.txt").read_text().split() == FEATURES
    assert result.stderr.startswith(f"5,000 rows of 6 columns of {parquet} written to X.npy (float32, 0.00012 GB) in ")


def test_a_fit_to_it_is_that_to_the_table(parquet, done, folder):
    done("convert", parquet, "X.npy", "--target", "y", "--drop", "site")
    done("fit", "X.npy", "--target", "X.target.npy", "--k", "2", "--out", "rows.json")
    done("fit", parquet, "--target", "y", "--drop", "site", "--k", "2", "--out", "table.json")
    of_rows, of_table = (ht.load(folder / name) for name in ("rows.json", "table.json"))
    assert of_rows.support_.size == 2
    np.testing.assert_array_equal(of_rows.support_, of_table.support_)
    np.testing.assert_allclose(of_rows.coef_, of_table.coef_, rtol=1e-4)


def test_a_folder_of_files_and_another_precision(run, folder):
    (folder / "parts").mkdir()
    for number, start in enumerate(range(0, N, 2000)):
        TABLE[start : start + 2000].select(FEATURES).write_parquet(folder / "parts" / f"{number}.parquet")
    result = run("convert", "parts", "X.npy", "--dtype", "float64", "--drop", "x0", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    np.testing.assert_array_equal(np.load(folder / "X.npy"), TABLE.select(FEATURES[1:]).to_numpy().astype(np.float64))
    assert not (folder / "X.target.npy").exists()


def test_missing_values_are_counted(run, folder):
    polars.DataFrame({"a": [1.0, None, 3.0], "b": [None, 2.0, 3.0]}).write_parquet(folder / "gaps.parquet")
    result = run("convert", "gaps.parquet", "X.npy")
    assert "note: 2 missing values became NaN" in result.stderr
    np.testing.assert_array_equal(np.load(folder / "X.npy"), [[1, np.nan], [np.nan, 2], [3, 3]])


def test_what_cannot_be_converted_is_refused(parquet, refused, folder):
    assert "site" in refused("convert", parquet, "X.npy", "--target", "y")
    assert refused("convert", "other.parquet", "X.npy") == "there is no file other.parquet"
    assert "did you mean 'site'" in refused("convert", parquet, "X.npy", "--drop", "Site")
    assert refused("convert", parquet, "X.parquet").endswith("must end in .npy")
    (folder / "t.csv").write_text("a,b\n1,2\n")
    assert refused("convert", "t.csv", "X.npy") == "t.csv is no Parquet file"
    parquet.write_bytes(parquet.read_bytes()[:-200])
    assert "cannot be read" in refused("convert", parquet, "X.npy", "--drop", "site")
    assert [path.name for path in folder.iterdir() if "X" in path.name or "draft" in path.name] == []


def test_a_file_is_written_in_parts_or_not_at_all(folder):
    def parts():
        yield b"new "
        raise KeyboardInterrupt

    (folder / "file").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write_file(folder / "file", parts())
    assert [path.name for path in folder.iterdir()] == ["file"]
    assert (folder / "file").read_bytes() == b"old"
    write_file(folder / "file", iter([b"new ", memoryview(np.arange(3, dtype=np.uint8)).cast("B")]))
    assert (folder / "file").read_bytes() == b"new \0\1\2"
