"""Every format gives the same table, and whatever is wrong with a file is one sentence."""

import gzip

import numpy as np
import polars
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from hardthresh.cli.data import Request
from hardthresh.cli.options import names_of
from hardthresh.cli.reading import read
from hardthresh.core import InvalidInputError

FEATURES = ("a", "b", "height, cm", "d", "e")


@pytest.fixture
def numbers(table):
    """X, y and the classes of the table."""
    return table.select(FEATURES).to_numpy(), table["y"].to_numpy(), table["ill"].to_numpy().astype(str)


def write_csv(table, path):
    table.write_csv(path)


def write_gzip(table, path):
    path.write_bytes(gzip.compress(table.write_csv().encode()))


WRITERS = {
    "table.csv": write_csv,
    "table.CSV": write_csv,
    "semicolons.csv": lambda table, path: table.write_csv(path, separator=";"),
    "tabs.csv": lambda table, path: table.write_csv(path, separator="\t"),
    "table.csv.gz": write_gzip,
    "table.tsv": lambda table, path: table.write_csv(path, separator="\t"),
    "table.parquet": lambda table, path: table.write_parquet(path),
    "table.feather": lambda table, path: table.write_ipc(path, compression="lz4"),
    "table.arrow": lambda table, path: table.write_ipc(path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_tables(name, table, numbers, folder):
    WRITERS[name](table, folder / name)
    X, y, ill = numbers
    data = read(folder / name, Request(target="ill", weight="y"))
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.target, ill)
    np.testing.assert_array_equal(data.weight, y)
    assert (data.names, data.target_name, data.remarks) == (FEATURES, "ill", ())


def test_the_format_can_be_given(table, numbers, folder):
    table.write_csv(folder / "table.txt", separator="\t")
    with pytest.raises(InvalidInputError, match=r"the name table\.txt has no known ending .* add --format"):
        read(folder / "table.txt", Request(target="y"))
    np.testing.assert_array_equal(read(folder / "table.txt", Request(target="y", drop=["ill"]), "tsv").X, numbers[0])


def test_row_names_are_no_feature(table, folder):
    table.with_row_index("").write_csv(folder / "pandas.csv")
    data = read(folder / "pandas.csv", Request(target="y", drop=["ill"]))
    assert data.names == FEATURES
    assert data.remarks == ("the first column has no name and was taken for row names",)


def test_whole_numbers_and_truth_values_are_numbers(broken):
    data = read(broken("n,t,y", "1,true,2.5", "2,false,3.5"), Request(target="y"))
    np.testing.assert_array_equal(data.X, [[1.0, 1.0], [2.0, 0.0]])


def test_single_precision_stays(folder):
    np.savez(folder / "x.npz", X=np.ones((3, 2), np.float32), y=np.arange(3))
    assert read(folder / "x.npz", Request()).X.dtype == np.float32


NPZ = {
    "X and y": {"X": "X", "y": "y"},
    "train and test": {"X": "X_train", "y": "y_train"},
}


@pytest.mark.parametrize("keys", NPZ.values(), ids=NPZ)
def test_npz(keys, numbers, folder):
    X, y, _ = numbers
    np.savez(folder / "x.npz", **{keys["X"]: X, keys["y"]: y[:, None], "gene": np.array(FEATURES)})
    data = read(folder / "x.npz", Request())
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.target, y)
    assert (data.names, data.target_name) == (FEATURES, keys["y"])


@pytest.mark.parametrize("prefix", ["", "train_", "mine_"])
def test_sparse_npz(prefix, numbers, folder):
    X, y, _ = numbers
    A = sp.csr_array(np.where(np.abs(X) > 1, X, 0.0))
    parts = {"data": A.data, "indices": A.indices, "indptr": A.indptr, "shape": A.shape}
    words = np.frombuffer("\n".join(FEATURES).encode(), np.uint8)
    np.savez(folder / "x.npz", y=y, vocabulary_utf8=words, **{prefix + part: array for part, array in parts.items()})
    data = read(folder / "x.npz", Request(x_key="mine" if prefix == "mine_" else None))
    np.testing.assert_array_equal(data.X.toarray(), A.toarray())
    assert data.names == FEATURES


def test_scipys_own_npz_is_read(numbers, folder):
    X, y, _ = numbers
    A = sp.csr_array(X)
    np.savez(folder / "x.npz", y=y, data=A.data, indices=A.indices, indptr=A.indptr, shape=A.shape, format=b"csr")
    np.testing.assert_array_equal(read(folder / "x.npz", Request()).X.toarray(), X)


def test_classes_get_their_names(folder):
    np.savez(folder / "x.npz", X=np.ones((3, 2)), y=np.array([1, 0, 1]), class_name=np.array(["no", "yes"]))
    assert read(folder / "x.npz", Request()).target.tolist() == ["yes", "no", "yes"]


def test_names_must_differ_and_fit(folder):
    np.savez(
        folder / "x.npz", X=np.ones((3, 2)), y=np.ones(3), gene=np.array(["g", "g"]), sample=np.array(["a", "b", "c"])
    )
    assert read(folder / "x.npz", Request()).names is None


def test_images_are_flattened(folder):
    np.savez(folder / "x.npz", X=np.arange(24).reshape(2, 3, 4), y=np.ones(2))
    np.testing.assert_array_equal(read(folder / "x.npz", Request()).X, np.arange(24.0).reshape(2, 12))


def test_npy(numbers, folder, monkeypatch):
    monkeypatch.chdir(folder)
    X, y, ill = numbers
    np.save("X.npy", X)
    np.save("ill.npy", ill)
    np.save("w.npy", y)
    data = read(folder / "X.npy", Request(target="ill.npy", weight="w.npy", drop=["0", "3"]))
    np.testing.assert_array_equal(data.X, X[:, [1, 2, 4]])
    np.testing.assert_array_equal(data.target, ill)
    np.testing.assert_array_equal(data.weight, y)
    assert (data.names, data.target_name) == (None, "ill")


@pytest.mark.parametrize("name", ["x.libsvm", "x.svmlight", "x.svm"])
def test_libsvm(name, numbers, folder):
    X, y, _ = numbers
    dump_svmlight_file(X, y, str(folder / name), zero_based=False)
    data = read(folder / name, Request())
    np.testing.assert_allclose(data.X.toarray(), X)
    np.testing.assert_allclose(data.target, y)


# --- what is refused ---


@pytest.fixture
def refusal():
    """The sentence with which a file is refused."""

    def get(path, kind=None, **request) -> str:
        with pytest.raises(InvalidInputError) as refused:
            read(path, Request(**request), kind)
        assert "\n" not in str(refused.value)
        return str(refused.value)

    return get


def test_no_file(refusal, folder):
    assert refusal(folder / "no.csv") == f"there is no file {folder / 'no.csv'}"
    assert refusal(folder) == f"{folder} is a folder, which fit and predict read with --blocks"


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.feather", "x.npz", "x.npy", "x.svm"])
@pytest.mark.parametrize("content", [b"", b"\0rubbish\xff\n\1", b"PK\3\4rubbish", b"PAR1rubbish", b"ARROW1rubbish"])
def test_rubbish(refusal, folder, name, content):
    (folder / name).write_bytes(content)
    sentence = refusal(folder / name, target=None if name in ("x.npz", "x.svm") else "y")
    assert sentence.startswith(str(folder / name))


def test_a_table_without_rows(refusal, broken):
    assert refusal(broken("a,y"), target="y").endswith("broken.csv has no rows")


def test_a_table_without_features(refusal, broken):
    assert refusal(broken("y", "1", "2"), target="y").endswith("broken.csv has no feature columns")


def test_unknown_columns_get_suggestions(refusal, csv):
    assert refusal(csv, target="Y").endswith("has no column 'Y' for the target; did you mean 'y'?")
    assert refusal(csv, target="y", weight="heigth, cm").endswith("for the weight; did you mean 'height, cm'?")
    assert refusal(csv, target="y", drop=["zzz"]).endswith("there are: a, b, height, cm, d, e, y, ill")
    assert refusal(csv).endswith("table.csv has a, b, height, cm, d, e, y, ill")


def test_texts_are_named_with_a_value(refusal, broken):
    sentence = refusal(broken("a,city,when,e,y", "1,Rome,2020-01-01,,2", "2,,2020-01-02,,3"), target="y")
    assert "has 3 columns without numbers: city (row 1: 'Rome'), when (row 1: '2020-01-01'), e (empty); " in sentence
    assert "add --categorical city if they are categories, or leave them out by --drop city,when,e" in sentence


@pytest.mark.parametrize("text", ["1.2.3", "old", "1,2 m"])
def test_the_first_value_that_is_no_number_is_shown(refusal, broken, text):
    path = broken("age;b;y", "30;1;1", "31;?;2", "?;3;1", f"{text};4;2")
    assert f"has 1 column without numbers: age (row 4: {text!r}); " in refusal(path, target="y")


# decimal commas


def test_beside_decimal_commas_the_text_is_shown(refusal, broken):
    path = broken("a;b;y", "2,5;1,5;1,5", "1,5;1,5;2,5", "foo;1,5;3", "1,25;2;4")
    assert "a (row 3: 'foo')" in refusal(path, target="y")


def test_decimal_commas_are_numbers(broken):
    path = broken("a;b;n;y;w", "1,5;-0,25;1;1,234;0,5", "2;+,5;2;2;1", "-3,75;1,5e-3;3;3,5;1,5")
    data = read(path, Request(target="y", weight="w"))
    np.testing.assert_array_equal(data.X, [[1.5, -0.25, 1], [2, 0.5, 2], [-3.75, 0.0015, 3]])
    np.testing.assert_array_equal(data.target, [1.234, 2.0, 3.5])
    np.testing.assert_array_equal(data.weight, [0.5, 1.0, 1.5])
    assert data.remarks == ("commas are read as decimal marks in a, b, y, w: '1,5' is 1.5",)


@pytest.mark.parametrize("name", ["x.tsv", "x.csv", "x.parquet"])
def test_decimal_commas_in_other_files(folder, name):
    table = polars.DataFrame({"a": ["1,5", "2,25", "?"], "y": [1.0, 2.0, 3.0]})
    writers = {"x.tsv": lambda path: table.write_csv(path, separator="\t"), "x.parquet": table.write_parquet}
    writers.get(name, table.write_csv)(folder / name)
    with pytest.raises(InvalidInputError, match="1 missing value in 1 column, the first in column 'a', row 3"):
        read(folder / name, Request(target="y"))
    table[:2].write_csv(folder / "whole.csv", separator=";")
    np.testing.assert_array_equal(read(folder / "whole.csv", Request(target="y")).X, [[1.5], [2.25]])


def test_decimal_commas_where_three_digits_may_be_thousands(refusal, broken):
    """1,234 alone may be either; any other number of the file can tell."""
    lines = ["a;b;y", "1,234;5;1", "12,500;6;2"]
    sentence = refusal(broken(*lines), target="y")
    assert sentence.endswith(
        "cannot tell whether '1,234' in 'a' (row 1) is 1.234 or 1234: write numbers with decimal points and without "
        "thousands separators"
    )
    for told in ("0,5", "1,25", "0,125"):
        data = read(broken(lines[0], lines[1].replace("5", told), lines[2]), Request(target="y"))
        np.testing.assert_array_equal(data.X[:, 0], [1.234, 12.5])
        assert data.remarks[0].startswith("commas are read as decimal marks in a, b")


@pytest.mark.parametrize("number", ["1,234,567", "1.234,5", "1,234.5", "1 234", "1'234", "1\u00a0234,5", "-1.234.567"])
def test_thousands_separators_are_refused(refusal, broken, number):
    path = broken("a;b;y", "7;5;1", f"{number};6;2")
    assert refusal(path, target="y").endswith(
        f"{number!r} in 'a' (row 2) has thousands separators: write numbers with decimal points and without them"
    )


def test_decimal_marks_of_both_kinds_are_refused(refusal, broken):
    for lines in (["1,5;2", "1.5;3"], ["1,5;1.234", "2,5;12.500"]):
        sentence = refusal(broken("a;b;y", *(f"{line};{i}" for i, line in enumerate(lines))), target="y")
        assert "decimal commas" in sentence
        assert "decimal points" in sentence


def test_a_column_of_points_beside_one_of_commas_is_read_where_it_cannot_be_thousands(broken):
    data = read(broken("a;b;y", "1,5;1.234;1", "2,5;12.5;2"), Request(target="y"))
    np.testing.assert_array_equal(data.X, [[1.5, 1.234], [2.5, 12.5]])


def test_texts_with_commas_stay_texts(refusal, broken):
    assert "without numbers: a (row " in refusal(broken("a;y", "1,5;1", "Rome, Italy;2", "2,5;3"), target="y")
    classes = read(broken("a;y", "1,5;1,2 mg", "2,5;3,4 mg"), Request(target="y")).target
    assert classes.tolist() == ["1,2 mg", "3,4 mg"]


def test_columns_that_are_not_needed_do_not_tell(broken):
    path = broken("a;b;c;y", "1.5;1,5;x;1", "2.5;2,5;z;2")
    data = read(path, Request(target="y", drop=["b", "c"]))
    assert (data.X.tolist(), data.remarks) == ([[1.5], [2.5]], ())
    assert read(path, Request(learn=False, only=["b"])).X.tolist() == [[1.5], [2.5]]


@pytest.mark.parametrize("mark", ["?", "-", " ", "", "NA", "NaN", "null", "n/a"])
def test_marks_of_missing_values_are_holes(refusal, broken, mark):
    path = broken("a,b,y", "1,2,1", f"2,{mark},1", "3,4,2")
    assert "has 1 missing value in 1 column, the first in column 'b', row 2" in refusal(path, target="y")


@pytest.mark.parametrize("values", [("1", "?", "2"), ("yes", "?", "no"), ("1.5", "-", "2.5"), ("yes", " ", "no")])
def test_marks_of_missing_values_in_the_target(refusal, broken, values):
    path = broken("a,y", *(f"1,{value}" for value in values))
    assert refusal(path, target="y").endswith("is missing or infinite in 1 row, the first is row 2; remove these rows")


def test_plus_and_minus_are_classes(broken):
    assert read(broken("a,y", "1,+", "2,-"), Request(target="y")).target.tolist() == ["+", "-"]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("text", ["naïve,y\n1,2\n", "a,y\né,2\n"])
def test_files_that_are_not_utf8(refusal, folder, text, encoding):
    path = folder / "x.csv"
    path.write_bytes(text.encode(encoding))
    said = " is not UTF-8 text (it may be Latin-1 or UTF-16); save it as UTF-8"
    assert refusal(path, target="y") == f"{path}{said}"


def test_quotes_in_names(refusal, broken):
    path = broken('"a,b","say ""hi""",c,y', "x,1,1,1", "z,2,2,2")
    assert refusal(path, target="y").endswith("""or leave them out by --drop '"a,b"'""")
    assert read(path, Request(target="y", drop=names_of('"a,b",c'))).names == ('say "hi"',)


def test_the_same_name_twice_is_told(broken):
    data = read(broken("a,a,b,y", "1,2,3,4", "2,3,4,5"), Request(target="y"))
    assert data.names == ("a", "a_duplicated_0", "b")
    assert data.remarks == ("some columns have the same name: 'a' is read as 'a_duplicated_0'",)


def test_holes_are_counted_and_located(refusal, broken):
    path = broken("a,b,y", "1,2,1", "2,NA,1", ",nan,2", "3,inf,2")
    assert refusal(path, target="y").endswith(
        "has 3 missing values and 1 infinite value in 2 columns, the first in column 'b', row 2; impute the missing "
        "ones (--impute of fit, compare and stability), and correct or remove the infinite ones first"
    )


def test_holes_in_sparse_data_are_located(refusal, folder):
    A = sp.csr_array(np.array([[0.0, 1.0], [np.nan, 0.0]]))
    np.savez(folder / "x.npz", y=[1, 2], data=A.data, indices=A.indices, indptr=A.indptr, shape=A.shape)
    assert "has 1 missing value in 1 column, the first in column 0 (counted from 0), row 2 " in refusal(
        folder / "x.npz"
    )


@pytest.mark.parametrize("hole", ["", "NaN", "NA", "inf"])
def test_holes_in_the_target_are_located(refusal, broken, hole):
    path = broken("a,y", "1,1", f"2,{hole}", "3,2")
    assert "the target 'y'" in refusal(path, target="y")
    assert refusal(path, target="y").endswith("is missing or infinite in 1 row, the first is row 2; remove these rows")


def test_weights_must_be_numbers(refusal, csv):
    assert "the weight 'ill'" in refusal(csv, target="y", weight="ill")
    assert "must hold numbers" in refusal(csv, target="y", weight="ill")


def test_ragged_lines(refusal, broken):
    sentence = refusal(broken("a,y", "1,2", "1,2,3"), target="y")
    assert sentence.endswith("cannot be read as CSV: row 2 has 3 cells, and the header 2; quote cells with ','")


def test_objects_are_not_unpickled(refusal, folder):
    np.savez(folder / "x.npz", X=np.array([[print]]), y=np.ones(1))
    assert "it holds Python objects, which could run code" in refusal(folder / "x.npz")
    np.save(folder / "x.npy", np.array([[print]]))
    assert "it holds Python objects, which could run code" in refusal(folder / "x.npy", target="y.npy")


def test_npz_without_what_is_needed(refusal, folder):
    np.savez(folder / "x.npz", A=np.ones((3, 2)), label=np.ones(3), other=np.ones(2))
    assert refusal(folder / "x.npz").endswith("has no matrix 'X': name it with --x-key; there are: A")
    line = refusal(folder / "x.npz", x_key="A")
    assert line == f"add --target NAME, the array to predict; {folder / 'x.npz'} has label"
    assert refusal(folder / "x.npz", x_key="A", target="lable").endswith("for the target; did you mean 'label'?")
    assert "one entry for each of its 3 rows" in refusal(folder / "x.npz", x_key="A", target="other")


@pytest.mark.parametrize("X", [np.ones(3), np.array([["a"]]), np.ones((2, 2), complex)])
def test_npz_whose_matrix_is_none(refusal, folder, X):
    np.savez(folder / "x.npz", X=X, y=np.ones(3))
    assert "matrix" in refusal(folder / "x.npz")


@pytest.mark.parametrize("index", [5, -1, 2**31 - 5])
def test_a_sparse_npz_with_entries_outside_is_refused(refusal, folder, index):
    """SciPy would read and write foreign memory."""
    parts = {"data": np.ones(3), "indices": np.array([0, index, 1], np.int32), "indptr": np.array([0, 1, 2, 3])}
    np.savez(folder / "x.npz", **parts, shape=np.array([3, 5]), y=np.arange(3))
    assert refusal(folder / "x.npz").startswith(f"data of {folder}/x.npz is damaged: ")


def test_npy_needs_a_target(refusal, folder):
    np.save(folder / "x.npy", np.ones((3, 2)))
    assert refusal(folder / "x.npy").startswith("add --target FILE.npy, the file with the target of")
    assert "cannot be read: No such file" in refusal(folder / "x.npy", target="no.npy")
    np.save(folder / "y.npy", np.ones(3))
    sentence = refusal(folder / "x.npy", target=str(folder / "y.npy"), drop=["7"])
    assert sentence.endswith("has no column '7'; it has no names, and numbers from 0 to 1")


def test_libsvm_has_one_target(refusal, folder):
    (folder / "x.svm").write_text("1 1:2\n")
    assert "leave out --weight w" in refusal(folder / "x.svm", weight="w")


def test_unknown_format(refusal, csv):
    assert refusal(csv, "xlsx").startswith("unknown format 'xlsx'; known: csv, tsv")


def test_a_parquet_file_with_lists(refusal, folder):
    polars.DataFrame({"a": [[1], [2]], "y": [1, 2]}).write_parquet(folder / "x.parquet")
    assert "has 1 column without numbers: a" in refusal(folder / "x.parquet", target="y")


def test_dates_and_empty_columns_are_not_taken_for_categories(refused, broken):
    rows = [f"{i},2024-01-{i + 1:02},,{i % 7}" for i in range(20)]
    line = refused("compare", broken("a,when,empty,y", *rows), "--target", "y")
    assert "when (row 1: '2024-01-01'), empty (empty); leave out by --drop when,empty; dates can be features as" in line
    assert "--categorical" not in line
