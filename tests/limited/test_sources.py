"""The same table through every kind of source, what each of them keeps to itself, and what it refuses."""

import bz2
import gzip
import re
import sqlite3
import sys
import weakref
from contextlib import closing
from itertools import count

import numpy as np
import pytest
from scipy.sparse import csr_array

from hardthresh.core.errors import HardThreshError, InvalidInputError, MissingDependencyError
from hardthresh.limited import AdaptiveHybrid, ArraySource, CallbackSource, FileSource, Journal, RowSource, learn
from levels import at_most

N, D, OBSERVED = 700, 12, 4
NAMES = [f"x{j}" for j in range(D)]


def table(gaps=False):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((N, D)) * 10.0 ** rng.integers(-3, 4, D) + rng.standard_normal(D)
    y = X[:, 3] / X[:, 3].std() - 2 * X[:, 9] / X[:, 9].std() + 0.3 * rng.standard_normal(N)
    if gaps:
        X[rng.random(X.shape) < 0.01] = np.nan
    return X, y


def cells(row):
    return ["" if np.isnan(value) else repr(value) for value in row]


def write_csv(path, X, y, mark=",", opener=open):
    with opener(path, "wt", encoding="utf-8") as file:
        file.write(mark.join(["outcome", *NAMES]) + "\n")
        for row, target in zip(X.tolist(), y.tolist(), strict=True):
            file.write(mark.join(cells([target, *row])) + "\n")
    return path


def write_parquet(path, X, y):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {name: pyarrow.array(column, from_pandas=True) for name, column in zip(NAMES, X.T, strict=True)}
    parquet.write_table(pyarrow.table({**columns, "outcome": y}), path, row_group_size=250)
    return path


class Unknown(ArraySource):
    """A table that does not tell its length."""

    remaining = None


def array(folder, X, y):
    return ArraySource(X, y, OBSERVED, shuffle=False)


def unknown(folder, X, y):
    return Unknown(X, y, OBSERVED, shuffle=False)


def lists(folder, X, y):
    return RowSource(list(zip(X.tolist(), y.tolist(), strict=True)), D, OBSERVED)


def stream(folder, X, y):
    return RowSource(zip(X, y, strict=True), D, OBSERVED)


def mappings(folder, X, y):
    rows = (
        (dict(zip(["more", *NAMES[::-1]], [0.0, *row[::-1]], strict=True)), target)
        for row, target in zip(X, y, strict=True)
    )
    return RowSource(rows, n_observed=OBSERVED, feature_names=NAMES)


def csv(folder, X, y):
    return FileSource(write_csv(folder / "t.csv", X, y), "outcome", OBSERVED)


def semicolons(folder, X, y):
    return FileSource(write_csv(folder / "t.csv", X, y, ";"), "outcome", OBSERVED, features=NAMES)


def gz(folder, X, y):
    return FileSource(write_csv(folder / "t.tsv.gz", X, y, "\t", gzip.open), "outcome", OBSERVED)


def bzipped(folder, X, y):
    return FileSource(write_csv(folder / "t.csv.bz2", X, y, ",", bz2.open), "outcome", OBSERVED)


def parquet(folder, X, y):
    return FileSource(write_parquet(folder / "t.parquet", X, y), "outcome", OBSERVED, chunk_rows=33)


def callback(folder, X, y):
    return CallbackSource(lambda i, indices: X[i, indices].tolist(), D, OBSERVED, target=y.tolist())


def pairs(folder, X, y):
    return CallbackSource(lambda i, indices: (X[i, indices], y[i]), D, OBSERVED, examples=range(N))


def endless(folder, X, y):
    def ask(i, indices):
        if i == N:
            raise StopIteration
        return tuple(X[i, indices].tolist()), float(y[i])

    return CallbackSource(ask, D, OBSERVED)


def endless_targets(folder, X, y):
    targets = iter(y.tolist())
    return CallbackSource(lambda i, indices: X[i, indices], D, OBSERVED, target=lambda i: next(targets))


def journal(folder, X, y):
    return Journal(array(folder, X, y), folder / "journal.sqlite")


def replayed(folder, X, y):
    learn(AdaptiveHybrid(n_nonzero_coefs=2), journal(folder, X, y))
    return journal(folder, X, y)


def half_replayed(folder, X, y):
    learn(AdaptiveHybrid(n_nonzero_coefs=2), journal(folder, X, y))
    path = folder / "journal.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM answers WHERE number > (SELECT count(*) / 2 FROM answers)")
        connection.commit()
    return journal(folder, X, y)


def journal_of_parquet(folder, X, y):
    return Journal(parquet(folder, X, y), folder / "journal.sqlite")


def journal_of_callback(folder, X, y):
    return Journal(endless(folder, X, y), folder / "journal.sqlite")


TABLES_WITH_LENGTH = [lists, parquet, journal, replayed, half_replayed, journal_of_parquet]
TABLES_WITHOUT = [stream, mappings, csv, semicolons, gz, bzipped]
WITH_LENGTH = [*TABLES_WITH_LENGTH, callback, pairs]
WITHOUT = [*TABLES_WITHOUT, endless, endless_targets, journal_of_callback]


def learned(source):
    result = learn(AdaptiveHybrid(n_nonzero_coefs=2), source)
    meter = source.meter
    assert meter == result.meter
    counts = (meter.examples, meter.attributes, meter.max_per_example, meter.money, result.learner.dropped)
    return result.w.tobytes(), result.intercept, counts, result.learning_curve["squared_error"].tobytes()


@pytest.mark.slow
@at_most(2)
@pytest.mark.usefixtures("no_disk")
@pytest.mark.parametrize(
    ("make", "reference"), [(make, array) for make in WITH_LENGTH] + [(make, unknown) for make in WITHOUT]
)
def test_every_source_gives_the_same_bits(tmp_path, make, reference):
    X, y = table()
    expected = learned(reference(tmp_path, X, y))
    assert np.flatnonzero(np.frombuffer(expected[0])).tolist() == [3, 9]
    assert expected[2][:2] == (N, N * OBSERVED)
    source = make(tmp_path, X, y)
    assert source.remaining == reference(tmp_path, X, y).remaining
    assert learned(source) == expected
    assert len(source.draw(1)) == 0


@pytest.mark.slow
@at_most(2)
@pytest.mark.usefixtures("no_disk")
@pytest.mark.parametrize(
    ("make", "reference"),
    [(make, array) for make in TABLES_WITH_LENGTH] + [(make, unknown) for make in TABLES_WITHOUT],
)
def test_every_table_has_the_same_gaps(tmp_path, make, reference):
    X, y = table(gaps=True)
    expected = learned(reference(tmp_path, X, y))
    assert expected[2][-1] > 5
    assert learned(make(tmp_path, X, y)) == expected


@pytest.mark.parametrize("kind", [np.float32, np.int16, bool, csr_array])
def test_arrays_of_any_kind(kind):
    X = np.random.default_rng(0).integers(0, 2, (20, 5))
    y = np.arange(20)
    source = ArraySource(kind(X) if kind is csr_array else X.astype(kind), y, 2, shuffle=False)
    values = source.draw(20).observe([1, 4])
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, X[:, [1, 4]])


def test_a_shuffled_table_hands_out_each_row_once_and_as_seeded():
    X = np.arange(50.0)[:, None]
    orders = []
    for seed in (0, 0, 1):
        source = ArraySource(X, X[:, 0], 1, seed=seed)
        hands = [source.draw(20), source.draw(20), source.draw(20)]
        assert [len(hand) for hand in hands] == [20, 20, 10]
        for hand in hands:
            np.testing.assert_array_equal(hand.observe([0])[:, 0], hand.targets())
        orders.append([i for hand in hands for i in hand.ids])
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == list(range(50))


@pytest.mark.parametrize("count", [-1, 2.0, True, None])
def test_a_count_of_examples_is_an_integer(count):
    with pytest.raises(InvalidInputError, match=re.escape(f"count must be an integer >= 0, got {count!r}")):
        ArraySource(np.ones((2, 2)), [0, 0], 1).draw(count)


class Row(list):
    """A list that can be watched."""


def test_rows_are_taken_when_they_are_drawn_and_let_go_with_their_examples():
    taken = []

    def rows():
        for i in count():
            row = Row([i, 2 * i])
            taken.append(weakref.ref(row))
            yield row, i

    source = RowSource(rows(), 2, 1)
    assert not taken
    for n in (3, 4):
        examples = source.draw(n)
        examples.observe([1])
    assert len(taken) == 7
    assert [i for i, row in enumerate(taken) if row() is not None] == [3, 4, 5, 6]
    assert source.remaining is None


def test_prices_by_name(tmp_path):
    (tmp_path / "t.csv").write_text(",age,scan,ill\na,61,1,0\nb,62,2,1\n")
    source = FileSource(tmp_path / "t.csv", "ill", costs={"age": 1.0, "scan": 90.0}, budget=91.0)
    assert source.feature_names.tolist() == ["age", "scan"]
    source.draw(2).observe([1])
    assert source.meter.money == 180.0


def test_panels_are_measured_once_and_as_a_whole():
    asked = []

    def ask(patient, indices):
        asked.append((patient, indices.tolist()))
        return [patient + j / 10 for j in indices]

    source = CallbackSource(ask, 4, target=float, costs=[1.0] * 4, panels=["a", "b", "a", "b"], budget=4)
    patients = source.draw(2)
    assert patients.observe([2]).tolist() == [[0.2], [1.2]]
    assert patients.observe([0]).tolist() == [[0.0], [1.0]]
    assert patients.observe([3, 0]).tolist() == [[0.3, 0.0], [1.3, 1.0]]
    assert asked == [(0, [0, 2]), (1, [0, 2]), (0, [1, 3]), (1, [1, 3])]


def test_patients_who_do_not_come_are_replaced_and_cost_nothing():
    X, y = table()

    def learned_from(patients, ask):
        source = CallbackSource(ask, D, OBSERVED, target=y, examples=iter(patients))
        return learn(AdaptiveHybrid(n_nonzero_coefs=2), source)

    came = [i for i in range(N) if i % 3 != 1]
    result = learned_from(range(N), lambda i, indices: None if i % 3 == 1 else X[i, indices])
    assert result.meter.examples == len(came)
    assert result.meter.attributes == result.learner.meter.attributes == OBSERVED * len(came)
    assert result.learner.dropped == 0
    assert result.w.tobytes() == learned_from(came, lambda i, indices: X[i, indices]).w.tobytes()


def test_the_keys_of_targets_are_examples():
    source = CallbackSource(lambda name, indices: [len(name)], 1, 1, target={"Ann": 1.0, "Zoë": 2.5}, n_examples=5)
    assert source.remaining == 2
    examples = source.draw(9)
    assert (examples.ids, examples.targets().tolist()) == (["Ann", "Zoë"], [1.0, 2.5])
    assert source.remaining == 0


def test_at_most_so_many_examples():
    source = CallbackSource(lambda i, indices: ([0.0], 0.0), 1, 1, n_examples=3)
    assert source.remaining == 3
    assert [len(source.draw(2)) for _ in range(3)] == [2, 1, 0]
    assert source.remaining == 0


def test_purchases_before_an_error_are_counted():
    def ask(i, indices):
        if i == 5:
            raise ConnectionError("the device is down")
        return [1.0, 2.0]

    source = CallbackSource(ask, 6, 2, target=float)
    examples = source.draw(8)
    with pytest.raises(ConnectionError, match="the device is down"):
        examples.observe([0, 3])
    assert (source.meter.examples, source.meter.attributes) == (5, 10)


def test_targets_that_come_with_the_answers_are_not_there_before():
    source = CallbackSource(lambda i, indices: ([1.0], 7.0), 3, 1)
    examples = source.draw(1)
    with pytest.raises(HardThreshError, match="the target of example 0 comes with its attributes: observe first"):
        examples.targets()
    examples.observe([2])
    assert examples.targets().tolist() == [7.0]


def asking(answer, **settings):
    """A source of one example, whose attributes 1 and 4 are observed."""

    def go():
        source = CallbackSource(lambda i, indices: answer, 6, 2, **({"target": float} | settings))
        source.draw(1).observe([1, 4])

    return go


BAD_ANSWERS = [
    (asking([1.0]), "example 0 has 1 values; 2 are needed, one for each attribute"),
    (asking([1.0, 2.0, 3.0]), "example 0 has 3 values"),
    (asking(3.0), "example 0 has 3.0 for values; a list of 2 numbers is needed"),
    (asking("12"), "example 0 has '12' for values"),
    (asking([1.0, np.nan]), "attribute 4 of example 0 is nan; a measurement must be a finite number: measure it again"),
    (asking(np.array([np.inf, 1.0])), "attribute 1 of example 0 is inf"),
    (asking([1.0, None]), "attribute 4 of example 0 is nan"),
    (asking([1.0, "high"]), "attribute 4 of example 0 is 'high'; a measurement must be a number"),
    (asking(["1.0", 2.0]), "attribute 1 of example 0 is '1.0'"),
    (asking([1.0, 2 + 1j]), "attribute 4 of example 0 is (2+1j)"),
    (asking(np.ones((2, 1))), "attribute 1 of example 0 is array([1.])"),
    (asking(["x", 1], feature_names=list("abcdef")), "attribute 1 ('b') of example 0 is 'x'"),
    (asking(["x", 1], examples=["Ann"], target={"Ann": 1}), "attribute 1 of example 'Ann' is 'x'"),
    (asking([1.0, 2.0], target=None), "ask returned [1.0, 2.0] for example 0; without target="),
    (asking([1.0, 2.0, 3.0], target=None), "without target= it must return a pair (values, y), or None"),
    (asking(([1.0, 2.0], None), target=None), "the target of example 0 is None; it must be a finite number"),
    (asking([1.0, 2.0], target=lambda i: np.nan), "the target of example 0 is nan"),
    (asking([1.0, 2.0], target=lambda i: "ill"), "the target of example 0 is 'ill'"),
    (asking([1.0, 2.0], target={"Ann": 1.0}, examples=["Bob"]), "example 'Bob' has no target"),
    (asking([1.0, 2.0], target=[], n_examples=1, examples=[3]), "example 3 has no target"),
    (asking([1.0, 2.0], target=7), "target must be a function, a mapping or a sequence, got 7"),
    (asking([1.0, 2.0], n_examples=-1), "n_examples must be an integer >= 0, got -1"),
    (lambda: CallbackSource(3, 5, 2), "ask must be a function of an example and indices, got 3"),
    (lambda: CallbackSource(print), "give n_features, the number of attributes, or feature_names"),
    (lambda: CallbackSource(print, 5, 2, feature_names=["a"]), "feature_names has 1 names; 5 are needed"),
    (lambda: CallbackSource(print, 5, 9), "n_observed must be an integer in 1 .. 5"),
]


def reading(*rows, **settings):
    def go():
        source = RowSource(rows, **({"n_features": 2, "n_observed": 2} | settings))
        source.draw(len(rows)).observe([0, 1])

    return go


BAD_ROWS = [
    (reading(([1, 2], 0), ([1, 2, 3], 0)), "the row of example 1 has 3 values; 2 are needed, one for each attribute"),
    (reading((3, 0)), "the row of example 0 has no length"),
    (reading([1, 2, 3]), "example 0 is [1, 2, 3]; a pair (row, y) is needed"),
    (reading(7), "example 0 is 7; a pair (row, y) is needed"),
    (reading(([1, "two"], 0)), "attribute 1 of example 0 is 'two'; a measurement must be a number"),
    (reading(([1, np.inf], 0)), "attribute 1 of example 0 is inf; a measurement must be a finite number"),
    (reading(([1, 2], None)), "the target of example 0 is None"),
    (reading(([1, 2], float("nan"))), "the target of example 0 is nan"),
    (reading(({"a": 1}, 0)), "the row of example 0 is a mapping; say which names with feature_names"),
    (reading(({"a": 1}, 0), feature_names=["a", "b"]), "example 0 has no 'b'; use None for a gap"),
    (lambda: RowSource([], n_observed=1), "give n_features, the number of attributes, or feature_names"),
    (lambda: RowSource([], 3, 1, feature_names="ab"), "feature_names has 2 names; 3 are needed"),
]

BAD_ARRAYS = [
    (lambda: ArraySource(np.ones(3), np.ones(3), 1), "X must be a table"),
    (lambda: ArraySource(np.ones((3, 2)), np.ones(2), 1), "one number for each of its rows"),
    (lambda: ArraySource(np.array([["a"]]), [1.0], 1), "X must be numeric"),
    (lambda: ArraySource(np.ones((3, 2)), np.ones(3), 3), "n_observed must be an integer in 1 .. 2"),
    (lambda: ArraySource([[np.inf]], [1.0], 1).draw(1).observe([0]), "attribute 0 of example 0 is inf"),
    (lambda: ArraySource([[1.0]], [np.nan], 1).draw(1).targets(), "the target of example 0 is nan"),
]

BAD = BAD_ANSWERS + BAD_ROWS + BAD_ARRAYS


@pytest.mark.parametrize(("go", "message"), BAD, ids=[message for _, message in BAD])
def test_nonsense_is_refused(go, message):
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        go()


def all_of(path, **settings):
    source = FileSource(path, **({"target": "y", "n_observed": 1} | settings))
    examples = source.draw(2000)
    examples.observe([0])


BAD_TEXTS = [
    ("", {}, "is empty"),
    ("a,y\n", {}, "has no rows"),
    ("a,y\n1,2\n3\n", {}, "row 2 of"),
    ("a,y\n1,2,3\n", {}, "has 3 cells; 2 are needed"),
    ("a,b,y\n1,red,2\n", {}, "has columns without numbers: 'b' ('red'); leave them out with features=, or encode"),
    ("a,y\n1,ill\n", {}, "has columns without numbers: 'y' ('ill')"),
    ("a,y\n1,2\nx,3\n", {}, "attribute 0 ('a') of example 1 in"),
    ("a,y\n1,2\n1_0,3\n", {}, "is '1_0', which is not a number"),
    ("a,y\n1,2\n1,ill\n", {}, "the target of example 1 is 'ill'; it must be a finite number"),
    ("a,y\n1,2\n1,\n", {}, "the target of example 1 is nan"),
    ("a,y\n1,2\ninf,3\n", {}, "attribute 0 ('a') of example 1 is inf"),
    ("a,y\n1,2\n", {"target": "z"}, "has no column 'z'; it has a, y"),
    ("a,y\n1,2\n", {"features": ["b"]}, "has no column 'b'; it has a, y"),
    ("a,y\n1,2\n", {"features": ["y"]}, "features has 'y', which is the target"),
    ("a,y\n1,2\n", {"features": ["a", "a"]}, "features has 'a', which is there twice"),
    ("a,y\n1,2\n", {"features": "a"}, "features must be a list of names, got 'a'"),
    ("a,a,y\n1,2,3\n", {}, "has more than one column 'a'"),
    ("a,y\n1,2\n", {"n_observed": 2}, "n_observed must be an integer in 1 .. 1"),
    ("a,y\n1,2\n", {"chunk_rows": 0}, "chunk_rows must be an integer >= 1, got 0"),
    (b"a,y\n\xff\xfe,2\n", {}, "is not UTF-8 text; save it as UTF-8"),
]


@pytest.mark.parametrize(("text", "settings", "message"), BAD_TEXTS, ids=[message for *_, message in BAD_TEXTS])
def test_files_that_make_no_sense_are_refused(tmp_path, text, settings, message):
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        all_of(path, **settings)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.csv", "there is no file"),
        ("folder.csv", "is a folder"),
        ("t.xlsx", "the name t.xlsx does not say what the file is: .csv"),
        ("cut.csv.gz", "cannot be read: "),
        ("wrong.csv.gz", "cannot be read: "),
        ("wrong.csv.xz", "cannot be read: "),
        ("wrong.parquet", "cannot be read: "),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path, name, message):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / "folder.csv").mkdir()
    for wrong in ("t.xlsx", "wrong.csv.gz", "wrong.csv.xz", "wrong.parquet"):
        (tmp_path / wrong).write_bytes(b"a,y\n1,2\n")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"a,y\n" + b"1,2\n" * 1000)[:-10])
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        all_of(tmp_path / name)


def test_parquet_columns_without_numbers_are_refused(tmp_path):
    pyarrow, files = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    files.write_table(pyarrow.table({"a": [1, 2], "b": ["x", "y"], "c": [True, None], "y": [1, 2]}), path)
    with pytest.raises(InvalidInputError, match=re.escape("has columns without numbers: 'b' (string); leave them out")):
        FileSource(path, "y", 1)
    source = FileSource(path, "y", 2, features=["c", "a"])
    assert source.remaining == 2
    examples = source.draw(5)
    assert examples.observe([0, 1]).tolist() == [[1.0, 1.0]]
    assert (examples.paid, source.remaining) == (2, 0)
    files.write_table(pyarrow.table({"a": pyarrow.array([], pyarrow.float64()), "y": pyarrow.array([], "int8")}), path)
    with pytest.raises(InvalidInputError, match="has no rows"):
        FileSource(path, "y", 1)


def test_parquet_needs_the_extra(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=re.escape("install hardthresh[parquet]")):
        FileSource(tmp_path / "t.parquet", "y", 1)


def test_a_text_is_no_error_until_it_is_bought(tmp_path):
    (tmp_path / "t.csv").write_text("﻿a;b;y\n1;2;3\n\n4;?;6\n7;red;9\n", encoding="utf-8")
    examples = FileSource(tmp_path / "t.csv", "y", 1).draw(9)
    assert examples.observe([0]).tolist() == [[1.0], [4.0], [7.0]]
    with pytest.raises(InvalidInputError, match=re.escape("attribute 1 ('b') of example 2 in")):
        FileSource(tmp_path / "t.csv", "y", 1).draw(9).observe([1])
    only = FileSource(tmp_path / "t.csv", "y", 1).draw(2)
    assert (only.observe([1]).tolist(), only.ids) == ([[2.0]], [0])
