"""What a journal writes, when, and which files it refuses."""

import copy
import json
import os
import pickle
import re
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import islice

import numpy as np
import pytest

from hardthresh.core.errors import HardThreshError, InvalidInputError, MissingDependencyError
from hardthresh.limited import (
    AdaptiveHybrid,
    ArraySource,
    AttributeSource,
    BudgetError,
    CallbackSource,
    CostModel,
    Example,
    Journal,
    Learner,
    LogisticHybrid,
    learn,
)
from hardthresh.limited.sources.journal_file import chained
from levels import at_most, only_at, slow_beyond

pytestmark = pytest.mark.usefixtures("no_disk")

COLUMNS = "example, indices, observed, target, paid, cost, who, answered_at"


class Clinic:
    """Answers about patients, and remembers what it was asked."""

    def __init__(self, absent=(), closes=None, fails=None):
        self.absent, self.closes, self.fails, self.asked = absent, closes, fails, []

    def ask(self, patient, indices):
        if patient == self.closes:
            raise StopIteration
        if patient == self.fails:
            raise ConnectionError("the line is dead")
        self.asked.append((patient, indices.tolist()))
        return None if patient in self.absent else [patient + j / 8 for j in indices]

    def source(self, **settings):
        return CallbackSource(self.ask, **({"n_features": 6, "n_observed": 3, "target": lambda i: i / 2} | settings))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.sqlite"


def sql(path, statement, *parameters):
    """Run one statement, as any other program would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement, parameters).fetchall()


def answers(path, columns="example, indices, observed, target, paid"):
    return sql(path, f"SELECT {columns} FROM answers ORDER BY number")


def values_of(patients, indices):
    return [[patient + j / 8 for j in indices] for patient in patients]


def test_every_answer_is_a_row(path):
    patients = Journal(Clinic(absent=[1]).source(), path).draw(3)
    patients.observe([0, 4])
    patients.observe([4, 5])
    assert answers(path) == [
        (0, "[0, 4]", "[0.0, 0.5]", 0.0, 1),
        (1, "[0, 4]", None, None, 0),
        (2, "[0, 4]", "[2.0, 2.5]", 1.0, 1),
        (0, "[5]", "[0.625]", 0.0, 1),
        (2, "[5]", "[2.625]", 1.0, 1),
    ]
    assert answers(path, "number") == [(1,), (2,), (3,), (4,), (5,)]
    assert sql(path, "PRAGMA application_id") == [(int.from_bytes(b"HTJL", "big"),)]
    assert sorted(path.parent.iterdir()) == [path]


def test_an_answer_says_who_bought_it_and_when(path, monkeypatch):
    monkeypatch.setattr("hardthresh.limited.sources.journal.getuser", lambda: "ann")
    monkeypatch.setattr("socket.gethostname", lambda: "lab")
    before = datetime.now(UTC) - timedelta(milliseconds=1)  # the file has no more digits
    Journal(Clinic().source(), path).draw(1).observe([0])
    Journal(Clinic().source(), path, who="Zoë, ward 3").draw(2).observe([0])
    assert answers(path, "who") == [("ann@lab",), ("Zoë, ward 3",)]
    first, second = (datetime.fromisoformat(at) for (at,) in answers(path, "answered_at"))
    assert before <= first <= second <= datetime.now(UTC)


def test_the_buyer_has_a_name_if_the_system_has_no_user(path, monkeypatch):
    def fail():
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr("hardthresh.limited.sources.journal.getuser", fail)
    monkeypatch.setattr("socket.gethostname", lambda: "lab\udcff")
    Journal(Clinic().source(), path).draw(1).observe([0])
    assert answers(path, "who") == [("unknown@lab?",)]


@pytest.mark.parametrize("who", ["", " ", 3, "\udcff", b"ann"])
def test_who_must_be_a_name(path, who):
    with pytest.raises(InvalidInputError, match=re.escape(f"who must be a name, got {who!r}")):
        Journal(Clinic().source(), path, who=who)


def test_an_answer_says_what_it_cost(path):
    panels = ["blood", "blood", "scan", "age", "age", "age"]
    costs = {"blood": 20.1, "scan": 90.2, "age": 0.3}
    clinic = Clinic(absent=[1])
    journal = Journal(clinic.source(n_observed=None, panels=panels, costs=costs, budget=120.0), path)
    patients = journal.draw(3)
    patients.observe([0, 3])
    patients.observe([2])
    assert answers(path, "example, indices, cost") == [
        (0, "[0, 1, 3, 4, 5]", 20.1 + 0.3),
        (1, "[0, 1, 3, 4, 5]", 0.0),
        (2, "[0, 1, 3, 4, 5]", 20.1 + 0.3),
        (0, "[2]", 90.2),
        (2, "[2]", 90.2),
    ]
    assert sql(path, "SELECT sum(cost) FROM answers")[0][0] == pytest.approx(journal.meter.money, rel=1e-12)


def test_an_answer_is_in_the_file_before_the_next_one_is_bought(path):
    there = []
    source = CallbackSource(lambda i, indices: there.append(len(answers(path))) or [1.0], 6, 3, target=float)
    Journal(source, path).draw(3).observe([0])
    assert there == [0, 1, 2]


def test_every_commit_waits_for_the_disk(path, monkeypatch):
    monkeypatch.undo()  # of no_disk
    modes = []

    class Connection(sqlite3.Connection):
        def execute(self, statement, *parameters):
            if statement == "COMMIT":
                modes.extend(super().execute("PRAGMA synchronous").fetchone())
                modes.extend(super().execute("PRAGMA fullfsync").fetchone())
            return super().execute(statement, *parameters)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **settings: connect(*args, **settings, factory=Connection))
    Journal(Clinic().source(), path).draw(2).observe([0])
    assert modes == [3, 1] * 3  # EXTRA, on: for the terms and two answers


def test_a_second_start_asks_only_for_what_is_new(path):
    first = Clinic(absent=[1])
    Journal(first.source(), path).draw(4).observe([0, 4])
    second = Clinic(absent=[1])
    inner = second.source()
    journal = Journal(inner, path)
    patients = journal.draw(6)
    assert patients.observe([0, 4]).tolist() == values_of([0, 2, 3, 4, 5], [0, 4])
    assert patients.targets().tolist() == [0.0, 1.0, 1.5, 2.0, 2.5]
    assert second.asked == [(4, [0, 4]), (5, [0, 4])]
    assert patients.observe([4, 1]).tolist() == values_of([0, 2, 3, 4, 5], [4, 1])
    assert second.asked[2:] == [(i, [1]) for i in (0, 2, 3, 4, 5)]
    meter = journal.meter
    assert (meter.examples, meter.attributes, meter.max_per_example, meter.money) == (5, 15, 3, 15.0)
    assert inner.meter.attributes == 4 + 5


def test_the_budget_counts_what_was_bought_at_earlier_starts(path):
    Journal(Clinic().source(), path).draw(1).observe([0, 1, 2])
    clinic = Clinic()
    patients = Journal(clinic.source(), path).draw(1)
    patients.observe([0, 1, 2])
    with pytest.raises(BudgetError, match="4 attributes of one example were asked for, 3 of them bought before"):
        patients.observe([3])
    assert not clinic.asked


def test_absent_examples_are_not_requested_again_but_later_ones_are(path):
    Journal(Clinic(absent=[0], closes=2).source(), path).draw(4).observe([0])
    assert answers(path, "example") == [(0,), (1,)]
    clinic = Clinic(closes=3)
    journal = Journal(clinic.source(), path)
    patients = journal.draw(9)
    assert patients.observe([0]).tolist() == values_of([1, 2], [0])
    assert clinic.asked == [(2, [0])]
    assert (journal.remaining, len(journal.draw(1))) == (0, 0)


def test_gaps_that_were_paid_are_paid_once(path):
    X = np.array([[1.0, np.nan], [3.0, 4.0]])
    for bought in (2, 0):
        inner = ArraySource(X, [0.0, 1.0], 2, shuffle=False)
        journal = Journal(inner, path)
        rows = journal.draw(2)
        assert rows.observe([1]).tolist() == [[4.0]]
        assert (rows.ids, rows.paid, journal.meter.attributes, inner.meter.attributes) == ([1], 2, 2, bought)
    assert answers(path, "paid, cost, observed") == [(1, 1.0, None), (1, 1.0, "[4.0]")]


class Interview(AttributeSource):
    """Patients who name their target with their answers; patient 1 does not answer everything."""

    targets_known = False

    def __init__(self):
        super().__init__(CostModel.of(3, 2))
        self.patients = iter(range(3))

    def next_examples(self, count):
        return [Example(patient) for patient in islice(self.patients, count)]

    def read(self, examples, indices):
        for example in examples:
            example.y = 1.0
            yield np.where((example.id == 1) & (indices == 0), np.nan, 2.0)


def test_gaps_of_examples_whose_targets_come_with_the_answers_are_dropped(path):
    for source in (Interview(), Journal(Interview(), path), Journal(Interview(), path)):
        patients = source.draw(3)
        values, targets = patients.answers([0, 1])
        assert (values.tolist(), targets.tolist()) == ([[2.0, 2.0], [2.0, 2.0]], [1.0, 1.0])
        assert (patients.ids, patients.paid, source.meter.attributes) == ([0, 2], 3, 6)
    assert answers(path, "paid, target") == [(1, 1.0), (1, None), (1, 1.0)]


def test_numbers_keep_their_bits(path):
    numbers = np.array([-0.0, 5e-324, 0.1 + 0.2, 1e308, np.pi, 2.0**60 + 256])
    targets = np.array([1 / 3, -0.0, -5e-324, 2.0**60, 3.0, 1e308])
    for _ in range(2):
        rows = Journal(ArraySource(np.tile(numbers, (6, 1)), targets, 6, shuffle=False), path).draw(6)
        assert rows.observe(range(6)).tobytes() == np.tile(numbers, (6, 1)).tobytes()
        assert rows.targets().tobytes() == targets.tobytes()


def test_long_journals_are_read_in_portions(path, monkeypatch):
    monkeypatch.setattr("hardthresh.limited.sources.journal_file._PORTION", 50)
    Journal(Clinic().source(), path).draw(40).observe([0, 4])
    clinic = Clinic()
    journal = Journal(clinic.source(), path)
    for _ in range(4):
        patients = journal.draw(10)
        assert patients.observe([0, 4]).tolist() == values_of(patients.ids, [0, 4])
        assert len(journal._pending) < 5
    journal.draw(1).observe([0])
    assert clinic.asked == [(40, [0])]


def test_after_an_error_a_journal_has_to_be_made_again(path):
    journal = Journal(Clinic(fails=2).source(), path)
    with pytest.raises(ConnectionError):
        journal.draw(4).observe([0])
    assert (journal.meter.examples, journal.meter.attributes, len(answers(path))) == (2, 2, 2)
    with pytest.raises(HardThreshError, match=re.escape(f"reading was interrupted; what was paid is in {path}")):
        journal.draw(1)
    clinic = Clinic()
    assert Journal(clinic.source(), path).draw(4).observe([0]).tolist() == values_of(range(4), [0])
    assert [patient for patient, _ in clinic.asked] == [2, 3]


def test_a_journal_replays_what_another_one_has_bought_since(path):
    clinic, other_clinic = Clinic(), Clinic()
    journal, other = Journal(clinic.source(), path), Journal(other_clinic.source(), path)
    journal.draw(2).observe([0])
    assert other.draw(3).observe([0]).tolist() == values_of(range(3), [0])
    assert journal.draw(2).observe([0]).tolist() == values_of([2, 3], [0])
    assert [patient for patient, _ in clinic.asked] == [0, 1, 3]
    assert [patient for patient, _ in other_clinic.asked] == [2]


def test_the_second_of_two_programs_with_different_settings_is_refused(path):
    clinic, other_clinic = Clinic(), Clinic()
    journal, other = Journal(clinic.source(), path), Journal(other_clinic.source(), path)
    journal.draw(1).observe([0])
    with pytest.raises(InvalidInputError, match=re.escape("is about attributes [0] of example 0, but attributes [1]")):
        other.draw(1).observe([1])
    assert not other_clinic.asked
    assert journal.draw(1).observe([0]).tolist() == [[1.0]]


def test_a_pickled_journal_goes_on(path):
    def source():
        return ArraySource(np.arange(12.0).reshape(6, 2), np.zeros(6), 2, shuffle=False)

    journal = Journal(source(), path)
    journal.draw(2).observe([1])
    for again in (pickle.loads(pickle.dumps(journal)), copy.deepcopy(journal), journal):
        assert again.draw(2).observe([0, 1]).tolist() == [[4.0, 5.0], [6.0, 7.0]]
    assert len(answers(path)) == 4


def test_a_relative_path_is_that_of_the_beginning(path, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(path.parent)
    journal = Journal(Clinic().source(), path.name)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    journal.draw(2).observe([0])
    assert len(answers(path)) == 2


@pytest.mark.parametrize("name", ["100 % sure?#1.sqlite", ":memory:", "a&mode=ro", "Zoë"])
def test_any_name_is_a_name(tmp_path, name):
    Journal(Clinic().source(), tmp_path / name).draw(1).observe([0])
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert len(answers(tmp_path / name)) == 1


def test_a_reader_is_not_kept_waiting_by_a_purchase(path):
    def ask(patient, indices):
        replayed = Journal(Clinic().source(), path, timeout=0).draw(patient)
        return replayed.observe([0])[:, 0].sum() + indices + 0.5

    observed = Journal(Clinic().source(), path).draw(3).observe([0])
    assert observed.tolist() == [[0.0], [1.0], [2.0]]
    journal = Journal(CallbackSource(ask, 6, 3, target=lambda i: i / 2), path)
    assert journal.draw(4).observe([0]).tolist() == [[0.0], [1.0], [2.0], [3.5]]


LOCK = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"


def test_the_lock_of_a_purchase_is_not_lost_to_another_journal_of_the_same_program(path):
    """POSIX ends all locks of a process on a file when it closes any descriptor of that file."""

    def ask(patient, indices):
        Journal(Clinic().source(), path)
        ended = subprocess.run([sys.executable, "-c", LOCK, str(path)], capture_output=True, text=True)
        assert "database is locked" in ended.stderr
        return [1.0]

    Journal(Clinic().source(), path).draw(1).observe([1])
    source = CallbackSource(ask, 6, 3, target=lambda i: i / 2)
    journal = Journal(source, path)
    patients = journal.draw(2)
    patients.observe([1])


@contextmanager
def transaction(path, begin):
    """Another program, in the middle of a transaction."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(begin)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        yield connection


def test_a_purchase_waits_for_that_of_another_program(path, monkeypatch):
    clinic = Clinic()
    journal = Journal(clinic.source(), path)
    with transaction(path, "BEGIN IMMEDIATE") as other:

        def end(seconds):
            assert not clinic.asked
            other.execute("ROLLBACK")

        monkeypatch.setattr(time, "sleep", end)
        journal.draw(1).observe([0])
    assert len(answers(path)) == len(clinic.asked) == 1


@pytest.mark.parametrize("timeout", [0, 0.05])
def test_waiting_ends_with_the_timeout(path, timeout):
    clinic = Clinic()
    journal = Journal(clinic.source(), path, timeout=timeout)
    message = re.escape(f"another program has used {path} for {timeout:g} seconds: wait for it or end it")
    with transaction(path, "BEGIN IMMEDIATE"), pytest.raises(HardThreshError, match=message):
        journal.draw(1).observe([0])
    assert not clinic.asked


@pytest.mark.parametrize("timeout", [-1, "1", True, np.nan])
def test_a_timeout_is_a_number_of_seconds(path, timeout):
    with pytest.raises(
        InvalidInputError, match=re.escape(f"timeout must be a number of seconds >= 0, or None, got {timeout!r}")
    ):
        Journal(Clinic().source(), path, timeout=timeout)


def interrupt(seconds):
    raise KeyboardInterrupt


def test_waiting_can_be_interrupted(path, monkeypatch):
    clinic = Clinic()
    journal = Journal(clinic.source(), path)
    monkeypatch.setattr(time, "sleep", interrupt)
    with transaction(path, "BEGIN IMMEDIATE"), pytest.raises(KeyboardInterrupt) as interrupted:
        journal.draw(1).observe([0])
    assert not hasattr(interrupted.value, "__notes__")
    assert not clinic.asked


def test_creating_a_journal_waits_for_a_reader(path, monkeypatch):
    with transaction(path, "BEGIN") as reader:
        monkeypatch.setattr(time, "sleep", lambda seconds: reader.execute("ROLLBACK"))
        Journal(Clinic().source(), path)
    assert not answers(path)


BOUGHT = '{"example": 0, "indices": [0, 4], "observed": [0.0, 0.5], "target": 0.0}'


@pytest.mark.parametrize("timeout", [None, 0])
def test_a_commit_waits_for_a_reader_and_warns(path, monkeypatch, timeout):
    """However short the timeout is: the answer is paid."""
    monkeypatch.setattr("hardthresh.limited.sources.database._STALLED", 0.0)
    journal = Journal(Clinic().source(), path, timeout=timeout)
    with transaction(path, "BEGIN") as reader:
        monkeypatch.setattr(time, "sleep", lambda seconds: reader.execute("ROLLBACK"))
        with pytest.warns(RuntimeWarning, match=re.escape(f"another program reads {path}, and keeps an answer")):
            journal.draw(1).observe([0])
    assert len(answers(path)) == 1


@pytest.mark.parametrize("timeout", [None, 0])
def test_an_answer_whose_commit_is_interrupted_is_in_the_message(path, monkeypatch, timeout):
    journal = Journal(Clinic().source(), path, timeout=timeout)
    monkeypatch.setattr(time, "sleep", interrupt)
    with transaction(path, "BEGIN"), pytest.raises(KeyboardInterrupt) as interrupted:
        journal.draw(1).observe([0, 4])
    [note] = interrupted.value.__notes__
    assert BOUGHT in note
    assert not answers(path)


@contextmanager
def largest_file(size):
    """Writing more than `size` bytes to a file fails, as on a full disk."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_on_a_full_disk_nothing_is_bought(path):
    Journal(Clinic().source(), path).draw(1).observe([0, 4])
    clinic = Clinic()
    journal = Journal(clinic.source(), path)
    patients = journal.draw(2)
    with (
        largest_file(100),
        pytest.raises(HardThreshError, match=f"{path} cannot be written, so that nothing is bought"),
    ):
        patients.observe([0, 4])
    assert not clinic.asked
    assert len(answers(path)) == 1


@only_at("pairs")
def test_an_answer_that_a_full_disk_kept_from_the_file_is_in_the_message(path):
    clinic = Clinic()
    journal = Journal(clinic.source(), path)
    size = path.stat().st_size
    with largest_file(size), pytest.raises(HardThreshError, match=f"{path} cannot be written") as full:
        journal.draw(1000).observe([0, 4])
    written = len(answers(path))
    assert clinic.asked == [(patient, [0, 4]) for patient in range(written + 1)]
    [lost] = re.findall(r"will be asked for again: (.*)", str(full.value))
    [observed] = values_of([written], [0, 4])
    assert json.loads(lost) == {"example": written, "indices": [0, 4], "observed": observed, "target": written / 2}
    again = Clinic()
    assert Journal(again.source(), path).draw(1000).observe([0, 4]).tolist() == values_of(range(1000), [0, 4])
    assert again.asked[0] == (written, [0, 4])
    assert len(again.asked) == 1000 - written


def test_a_full_disk_leaves_no_half_of_a_new_journal(path):
    with largest_file(5000), pytest.raises(HardThreshError, match=f"{path} cannot be written"):
        Journal(Clinic().source(), path)
    Journal(Clinic().source(), path).draw(1).observe([0])
    assert len(answers(path)) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_where_nothing_can_be_written_a_journal_is_replayed_and_nothing_bought(path, what):
    Journal(Clinic().source(), path).draw(3).observe([0])
    clinic = Clinic()
    locked = path if what == "file" else path.parent
    locked.chmod(0o555)
    try:
        journal = Journal(clinic.source(), path)
        assert journal.draw(3).observe([0]).tolist() == values_of(range(3), [0])
        with pytest.raises(HardThreshError, match=f"{path} cannot be written, so that nothing is bought"):
            journal.draw(1).observe([0])
    finally:
        locked.chmod(0o755)
    assert not clinic.asked


def test_a_file_that_is_gone_ends_the_purchases(path):
    clinic = Clinic()
    journal = Journal(clinic.source(), path)
    path.unlink()
    with pytest.raises(HardThreshError, match=f"{path} cannot be opened"):
        journal.draw(1).observe([0])
    assert not clinic.asked
    assert not path.exists()


def test_folders_and_files_that_cannot_be(path):
    with pytest.raises(InvalidInputError, match="is a folder; a journal is a file"):
        Journal(Clinic().source(), path.parent)
    with pytest.raises(InvalidInputError, match=re.escape(f"there is no folder {path} to write study.sqlite in")):
        Journal(Clinic().source(), path / "study.sqlite")


PRICED = {"n_observed": None, "costs": [1.0] * 5 + [2.0], "budget": 3.0}
OTHERS = [
    ({"n_features": 7}, "the number of attributes was 6 and is 7 now"),
    ({"n_observed": 4}, "the budget for one example was 3.0 and is 4.0 now"),
    (PRICED, "the panels was null and is [0, 1, 2, 3, 4, 5] now"),
    ({"feature_names": list("abcdef")}, 'the names of the attributes was null and is ["a", '),
    ({"n_examples": 7}, "the number of examples was null and is 7 now"),
]


@pytest.mark.parametrize(("settings", "message"), OTHERS, ids=[message for _, message in OTHERS])
def test_the_journal_of_another_study_is_refused(path, settings, message):
    Journal(Clinic().source(), path).draw(2).observe([0])
    before = path.read_bytes()
    with pytest.raises(InvalidInputError, match=re.escape(f"is the journal of something else: {message}")):
        Journal(Clinic().source(**settings), path)
    assert path.read_bytes() == before


def test_another_price_for_all_is_refused(path):
    settings = PRICED | {"costs": [1.0] * 6}
    Journal(Clinic().source(**settings), path)
    with pytest.raises(InvalidInputError, match=re.escape("the panels was null and is [0, 1, 2, 3, 4, 5] now")):
        Journal(Clinic().source(**settings | {"costs": [1.5] * 6}), path)
    Journal(Clinic().source(), path)


def test_other_prices_are_refused(path):
    Journal(Clinic().source(**PRICED), path)
    with pytest.raises(InvalidInputError, match=re.escape("the prices was [1.0, 1.0, 1.0, 1.0, 1.0, 2.0] and is [1.0")):
        Journal(Clinic().source(**PRICED | {"costs": [1.0] * 5 + [2.5]}), path)


@pytest.mark.parametrize(
    "content",
    [
        b"x" * 10_000,
        b"a,b\n1,2\n",
        b"no journal",
        b'{"format": "hardthresh"}\n',
        b"[1]\n",
        b"\x00\xff\n",
        b"\x00" * 4096,
    ],
)
def test_other_files_are_not_touched(path, content):
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match="is there, and is not a journal; choose another name"):
        Journal(Clinic().source(), path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("setup", ["CREATE TABLE answers (number)", "PRAGMA application_id = 7"])
def test_the_database_of_another_program_is_not_touched(path, setup):
    sql(path, setup)
    before = path.read_bytes()
    with pytest.raises(InvalidInputError, match="is there, and is not a journal; choose another name"):
        Journal(Clinic().source(), path)
    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_journal(path):
    path.touch()
    Journal(Clinic().source(), path).draw(1).observe([0])
    assert len(answers(path)) == 1


def test_a_newer_format_is_refused(path):
    Journal(Clinic().source(), path)
    sql(path, "PRAGMA user_version = 3")
    with pytest.raises(InvalidInputError, match="has format version 3; this hardthresh reads 2: upgrade hardthresh"):
        Journal(Clinic().source(), path)


def test_an_old_format_is_refused_with_the_way_out(path):
    path.write_text('{"format": "hardthresh journal", "format_version": 1, "n_features": 6}\n')
    with pytest.raises(InvalidInputError, match=re.escape(f"hardthresh convert-journal {path} NEW.sqlite")):
        Journal(Clinic().source(), path)


CHANGES = [
    "example = 7",
    "example = '1'",
    "indices = '[1]'",
    "observed = '[101.0]'",
    "observed = NULL",
    "observed = x'00'",
    "target = 0.75",
    "target = NULL",
    "paid = 0",
    "cost = 2",
    "who = 'somebody else'",
    "answered_at = '2020-01-01T00:00:00.000+00:00'",
    "checksum = NULL",
    "number = 7",
]


@slow_beyond(9)
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_answer_is_refused_by_its_number(path, change):
    Journal(Clinic().source(), path, who="ann").draw(3).observe([0])
    sql(path, "CREATE TABLE copy AS SELECT * FROM answers")
    sql(path, "DROP TABLE answers")
    sql(path, "ALTER TABLE copy RENAME TO answers")  # without constraints
    sql(path, f"UPDATE answers SET {change} WHERE number = 2")
    clinic = Clinic()
    message = f"answer 2 of {path} is damaged, was changed, or is missing; restore a copy"
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        Journal(clinic.source(), path).draw(3).observe([0])
    assert not clinic.asked


def test_a_missing_answer_and_a_changed_order_are_refused(path, tmp_path):
    Journal(Clinic().source(), path).draw(4).observe([0])
    other = tmp_path / "other.sqlite"
    other.write_bytes(path.read_bytes())
    sql(path, "DELETE FROM answers WHERE number = 2")
    sql(other, "UPDATE answers SET number = 5 - number + 10")
    sql(other, "UPDATE answers SET number = number - 10")
    for file, number in ((path, 2), (other, 1)):
        with pytest.raises(InvalidInputError, match=re.escape(f"answer {number} of {file} is damaged")):
            Journal(Clinic().source(), file).draw(4).observe([0])


def test_answers_to_other_terms_are_refused(path, tmp_path):
    """The checksums begin with the terms."""
    other = tmp_path / "other.sqlite"
    Journal(Clinic().source(), path).draw(1).observe([0])
    Journal(Clinic().source(n_observed=2), other)
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("ATTACH ? AS copied", [str(path)])
        connection.execute("INSERT INTO answers SELECT * FROM copied.answers")
        connection.commit()
    with pytest.raises(InvalidInputError, match=f"answer 1 of {other} is damaged"):
        Journal(Clinic().source(n_observed=2), other).draw(1).observe([0])


FORGED = [
    {"observed": "[[1.0, 2.0]]"},
    {"observed": "[1.0, 2.0]"},
    {"observed": "[Infinity]"},
    {"observed": "[NaN]"},
    {"observed": "[null]"},
    {"observed": '["1"]'},
    {"observed": '{"0": 1.0}'},
    {"observed": "3"},
    {"observed": "1" * 400},
    {"observed": f"[1{'0' * 400}]"},
    {"observed": "[" * 100_000},
    {"observed": ""},
    {"target": None},
    {"target": "1"},
    {"target": float("inf")},
    {"indices": "0"},
    {"indices": '["0"]'},
    {"indices": "null"},
    {"example": 1.0},
    {"example": b"1"},
]


@slow_beyond(12)
@pytest.mark.parametrize("change", FORGED, ids=lambda change: str(change)[:40])
def test_an_answer_that_makes_no_sense_is_refused_even_if_its_checksum_is_right(path, change):
    Journal(Clinic().source(), path).draw(2).observe([0])
    [(first,)] = sql(path, "SELECT checksum FROM answers WHERE number = 1")
    [row] = sql(path, f"SELECT number, {COLUMNS} FROM answers WHERE number = 2")
    [(name, value)] = change.items()
    forged = [
        value if column == name else old for column, old in zip(["number", *COLUMNS.split(", ")], row, strict=True)
    ]
    checksum = "" if isinstance(value, bytes) else chained(first, forged)
    sql(path, f"UPDATE answers SET {name} = ?, checksum = ? WHERE number = 2", value, checksum)
    clinic = Clinic()
    with pytest.raises(InvalidInputError, match=re.escape(f"answer 2 of {path} is damaged")):
        Journal(clinic.source(), path).draw(2).observe([0])
    assert not clinic.asked


@pytest.mark.slow
@at_most(4)
@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_is_refused_or_gives_what_was_bought(path, seed):
    Journal(Clinic(absent=[3]).source(), path).draw(100).observe([0, 4])
    content, rng = bytearray(path.read_bytes()), np.random.default_rng(seed)
    if seed % 4 == 0:
        del content[int(rng.integers(1, len(content))) :]
    else:
        start = int(rng.integers(len(content)))
        content[start : start + int(rng.integers(1, 200))] = rng.bytes(int(rng.integers(1, 200)))
    path.write_bytes(content)
    observed = None
    with suppress(HardThreshError):
        observed = Journal(Clinic(absent=[3]).source(), path).draw(100).observe([0, 4]).tolist()
    assert observed in (None, values_of([i for i in range(100) if i != 3], [0, 4]))


def test_a_program_that_changed_is_refused_before_it_pays(path):
    Journal(Clinic().source(), path).draw(3).observe([0])
    clinic = Clinic()
    message = f"answer 1 of {path} is about attributes [0] of example 0, but attributes [1] of example 0 are asked for"
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        Journal(clinic.source(), path).draw(3).observe([1])
    with pytest.raises(InvalidInputError, match=re.escape("of example 0, but attributes [0] of example 5 are asked")):
        Journal(clinic.source(examples=iter([5, 6])), path).draw(1).observe([0])
    assert not clinic.asked


def test_data_that_changed_are_refused(path):
    Journal(ArraySource(np.ones((3, 2)), [1.0, 2.0, 3.0], 1, shuffle=False), path).draw(3).observe([0])
    with pytest.raises(InvalidInputError, match=re.escape("answer 2 of")) as refused:
        Journal(ArraySource(np.ones((3, 2)), [1.0, 5.0, 3.0], 1, shuffle=False), path).draw(3).observe([0])
    assert "has the target 2.0 for example 1, which has 5.0 now" in str(refused.value)


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("whole_batch", [False, True])
def test_a_refused_target_is_deleted_with_the_command_of_the_message(path, whole_batch):
    """Earlier versions bought the whole batch before they looked at its targets."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    labels = (X[:, 1] > 0).astype(float)
    asked = []

    def study(where, mistake=None):
        def ask(patient, indices):
            asked.append(patient)
            return X[patient, indices], 7.0 if patient == mistake else labels[patient]

        return Journal(CallbackSource(ask, 6, 3, n_examples=300), where)

    algorithm = LogisticHybrid(1)
    if whole_batch:
        batch = study(path, mistake=2).draw(5)
        batch.observe(Learner.for_source(algorithm, study(path)).ask()[1])
    for _ in range(2):
        with pytest.raises(InvalidInputError, match="example 2 is refused: targets must be 0 or 1, got 7") as refused:
            learn(algorithm, study(path, mistake=2))
        assert f"it is answer 3 of {path}:" in str(refused.value)
        assert asked == list(range(5 if whole_batch else 3))

    file, statement = re.search(r'sqlite3 (\S+) "(.*)"$', str(refused.value)).groups()
    assert file == str(path)
    sql(path, statement)
    asked.clear()
    result = learn(algorithm, study(path))
    assert asked == list(range(2, 300))
    uninterrupted = learn(algorithm, study(path.with_name("other.sqlite")))
    assert result.w.tobytes() == uninterrupted.w.tobytes()
    assert result.meter == uninterrupted.meter


def test_a_refused_target_is_paid_and_the_last_one_that_is():
    source = CallbackSource(lambda i, indices: (np.ones(indices.size), 7.0 if i == 2 else 1.0), 6, 3)
    with pytest.raises(InvalidInputError, match=r"the target of example 2 is refused: targets must be 0 or 1, got 7$"):
        learn(LogisticHybrid(1), source)
    assert (source.meter.examples, source.meter.attributes) == (3, 9)


@only_at("pairs")
def test_an_algorithm_with_other_settings_is_refused(path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 8)), rng.standard_normal(300)

    def run(k):
        return learn(AdaptiveHybrid(n_nonzero_coefs=k), Journal(ArraySource(X, y, 4), path))

    first = run(2)
    assert run(2).w.tobytes() == first.w.tobytes()
    with pytest.raises(InvalidInputError, match="the program, its settings or its data have changed"):
        run(3)


@pytest.mark.parametrize(
    ("ids", "written"),
    [(["Ann", "Zoë"], ["Ann", "Zoë"]), (np.arange(3, 5), [3, 4]), (["1", "a\0b\n"], ["1", "a\0b\n"])],
)
def test_names_of_examples(path, ids, written):
    for _ in range(2):
        journal = Journal(CallbackSource(lambda i, indices: ([1.0], 2.0), 2, 1, examples=ids), path)
        patients = journal.draw(2)
        assert patients.observe([0]).tolist() == [[1.0], [1.0]]
        assert patients.targets().tolist() == [2.0, 2.0]
    assert [example for (example,) in answers(path, "example")] == written


@pytest.mark.parametrize("name", [(1, 2), 2**63, -(2**63) - 1, 1.5, "\udcff"])
def test_names_that_no_file_can_hold_are_refused(path, name):
    journal = Journal(CallbackSource(print, 2, 1, examples=[name], target={name: 0.0}), path)
    with pytest.raises(InvalidInputError, match=re.escape(f"must be integers (64 bits) or strings, got {name!r}")):
        journal.draw(1)


@only_at("pairs")
def test_without_sqlite3_only_journals_are_missing(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    monkeypatch.delitem(sys.modules, "hardthresh.limited.sources.journal_file")
    with pytest.raises(MissingDependencyError, match="a journal needs sqlite3, without which this Python was built"):
        Journal(Clinic().source(), path)
    code = "import sys; sys.modules['sqlite3'] = None; import hardthresh.limited, hardthresh.solvers"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_journal_can_be_used_in_another_thread(path):
    journal = Journal(Clinic().source(), path)
    observed = []
    thread = threading.Thread(target=lambda: observed.append(journal.draw(2).observe([0]).tolist()))
    thread.start()
    thread.join()
    assert observed == [values_of(range(2), [0])]
    assert journal.draw(1).observe([0]).tolist() == [[2.0]]
