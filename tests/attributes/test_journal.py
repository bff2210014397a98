"""What a journal writes, when, and which files it refuses."""

import json
import os
import re

import numpy as np
import pytest

from hardthresh.attributes import ArraySource, BudgetError, CallbackSource, Journal
from hardthresh.core.errors import HardThreshError, InvalidInputError
from hardthresh.solvers import AdaptiveHybrid

pytestmark = pytest.mark.usefixtures("no_disk")


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
    return tmp_path / "study.jsonl"


def answers(path):
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


def values_of(patients, indices):
    return [[patient + j / 8 for j in indices] for patient in patients]


def test_every_answer_is_a_line(path):
    patients = Journal(Clinic(absent=[1]).source(), path).draw(3)
    patients.observe([0, 4])
    patients.observe([4, 5])
    assert answers(path) == [
        {"example": 0, "indices": [0, 4], "values": [0.0, 0.5], "target": 0.0},
        {"example": 1, "indices": [0, 4], "values": None, "paid": False},
        {"example": 2, "indices": [0, 4], "values": [2.0, 2.5], "target": 1.0},
        {"example": 0, "indices": [5], "values": [0.625], "target": 0.0},
        {"example": 2, "indices": [5], "values": [2.625], "target": 1.0},
    ]


def test_an_answer_is_on_disk_before_the_next_one_is_bought(path, monkeypatch):
    clinic, events = Clinic(), []
    monkeypatch.setattr(os, "fsync", lambda descriptor: events.append(("disk", path.read_bytes().count(b"\n"))))
    monkeypatch.setattr(clinic, "ask", lambda i, indices: events.append(("ask", i)) or [1.0])
    journal = Journal(clinic.source(), path)
    events.clear()
    journal.draw(2).observe([0])
    assert events == [("ask", 0), ("disk", 2), ("ask", 1), ("disk", 3)]


def test_a_second_start_asks_only_for_what_is_new(path):
    first = Clinic(absent=[1])
    Journal(first.source(), path).draw(4).observe([0, 4])
    second = Clinic(absent=[1])
    journal = Journal(second.source(), path)
    patients = journal.draw(6)
    assert patients.observe([0, 4]).tolist() == values_of([0, 2, 3, 4, 5], [0, 4])
    assert patients.targets().tolist() == [0.0, 1.0, 1.5, 2.0, 2.5]
    assert second.asked == [(4, [0, 4]), (5, [0, 4])]
    assert patients.observe([4, 1]).tolist() == values_of([0, 2, 3, 4, 5], [4, 1])
    assert second.asked[2:] == [(i, [1]) for i in (0, 2, 3, 4, 5)]
    meter, inner = journal.meter, journal._source.meter
    assert (meter.examples, meter.attributes, meter.max_per_example, meter.money) == (5, 15, 3, 15.0)
    assert inner.attributes == 4 + 5


def test_the_budget_counts_what_was_bought_at_earlier_starts(path):
    Journal(Clinic().source(), path).draw(1).observe([0, 1, 2])
    clinic = Clinic()
    patients = Journal(clinic.source(), path).draw(1)
    patients.observe([0, 1, 2])
    with pytest.raises(BudgetError, match="4 attributes of one example were asked for, 3 of them bought before"):
        patients.observe([3])
    assert not clinic.asked


def test_who_did_not_come_is_not_asked_again_but_who_was_not_there_yet_is(path):
    Journal(Clinic(absent=[0], closes=2).source(), path).draw(4).observe([0])
    assert [answer["example"] for answer in answers(path)] == [0, 1]
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


def test_numbers_keep_their_bits(path):
    numbers = np.array([-0.0, 5e-324, 0.1 + 0.2, 1e308, np.pi, 2.0**60 + 256])
    for _ in range(2):
        row = Journal(ArraySource(numbers[None], [1 / 3], 6), path).draw(1)
        assert row.observe(range(6)).tobytes() == numbers.tobytes()
        assert row.targets().tolist() == [1 / 3]


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_line_that_was_cut_is_bought_again(path, cut):
    Journal(Clinic().source(), path).draw(3).observe([0, 4])
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    clinic = Clinic()
    assert Journal(clinic.source(), path).draw(3).observe([0, 4]).tolist() == values_of(range(3), [0, 4])
    assert clinic.asked == [(2, [0, 4])]
    assert path.read_bytes() == whole


@pytest.mark.parametrize("size", [0, 1, 40, -1])
def test_a_first_line_that_was_cut_is_written_again(path, size):
    Journal(Clinic().source(), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:size])
    Journal(Clinic().source(), path)
    assert path.read_bytes() == whole


def test_long_journals_are_read_in_portions(path, monkeypatch):
    monkeypatch.setattr("hardthresh.attributes.journal._PORTION", 150)
    Journal(Clinic().source(), path).draw(40).observe([0, 4])
    path.write_bytes(path.read_bytes()[:-7])
    clinic = Clinic()
    journal = Journal(clinic.source(), path)
    for _ in range(4):
        patients = journal.draw(10)
        assert patients.observe([0, 4]).tolist() == values_of(patients.ids, [0, 4])
        assert len(journal._pending) < 5
    assert clinic.asked == [(39, [0, 4])]


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


def test_only_one_program_may_write(path):
    one, other = Journal(Clinic().source(), path), Journal(Clinic().source(), path)
    one.draw(1).observe([0])
    clinic_asked = other._source.meter
    with pytest.raises(HardThreshError, match="was changed by somebody else: only one program at a time"):
        other.draw(1).observe([0])
    assert clinic_asked.attributes == 0


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
    "content", [b"", b"a,b\n1,2\n", b"no line", b'{"format": "hardthresh"}\n', b"[1]\n", b"\x00\xff\n", b"{}"]
)
def test_other_files_are_not_touched(path, content):
    content = content or b"x" * 10_000
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match="is there, and is no journal; choose another name"):
        Journal(Clinic().source(), path)
    assert path.read_bytes() == content


def test_a_newer_format_is_refused(path):
    Journal(Clinic().source(), path)
    path.write_text(path.read_text().replace('"format_version": 1', '"format_version": 2'))
    with pytest.raises(InvalidInputError, match="has format version 2; this hardthresh reads 1"):
        Journal(Clinic().source(), path)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "3",
        "{}",
        '{"example": 1, "indices": [0], "values": [1.0, 2.0], "target": 1.0}',
        '{"example": 1, "indices": [0], "values": [1.0]}',
        '{"example": 1, "indices": [0], "values": [NaN], "target": 1.0}',
        '{"example": 1, "indices": [0], "values": ["1"], "target": 1.0}',
        '{"example": 1, "indices": [0], "values": null}',
        '{"indices": [0], "values": [1.0], "target": 1.0}',
    ],
)
def test_a_damaged_line_is_refused_by_its_number(path, line):
    Journal(Clinic().source(), path).draw(3).observe([0])
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], line, *lines[3:]]) + "\n")
    clinic = Clinic()
    with pytest.raises(InvalidInputError, match=re.escape(f"line 3 of {path} is damaged")):
        Journal(clinic.source(), path).draw(3).observe([0])
    assert not clinic.asked


def test_a_program_that_changed_is_refused_before_it_pays(path):
    Journal(Clinic().source(), path).draw(3).observe([0])
    clinic = Clinic()
    message = f"line 2 of {path} is about attributes [0] of example 0, but attributes [1] of example 0 are asked for"
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        Journal(clinic.source(), path).draw(3).observe([1])
    with pytest.raises(InvalidInputError, match=re.escape("of example 0, but attributes [0] of example 5 are asked")):
        Journal(clinic.source(examples=iter([5, 6])), path).draw(1).observe([0])
    assert not clinic.asked


def test_data_that_changed_are_refused(path):
    Journal(ArraySource(np.ones((3, 2)), [1.0, 2.0, 3.0], 1, shuffle=False), path).draw(3).observe([0])
    with pytest.raises(InvalidInputError, match=re.escape("line 3 of")) as refused:
        Journal(ArraySource(np.ones((3, 2)), [1.0, 5.0, 3.0], 1, shuffle=False), path).draw(3).observe([0])
    assert "has the target 2.0 for example 1, which has 5.0 now" in str(refused.value)


def test_a_solver_with_other_settings_is_refused(path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 8)), rng.standard_normal(300)

    def run(k):
        return AdaptiveHybrid(n_nonzero=k).run(Journal(ArraySource(X, y, 4), path))

    first = run(2)
    assert run(2).w.tobytes() == first.w.tobytes()
    with pytest.raises(InvalidInputError, match="the program, its settings or its data have changed"):
        run(3)


@pytest.mark.parametrize(("ids", "written"), [(["Ann", "Zoë"], ["Ann", "Zoë"]), (np.arange(3, 5), [3, 4])])
def test_names_of_examples(path, ids, written):
    for _ in range(2):
        journal = Journal(CallbackSource(lambda i, indices: ([1.0], 2.0), 2, 1, examples=ids), path)
        patients = journal.draw(2)
        assert patients.observe([0]).tolist() == [[1.0], [1.0]]
        assert patients.targets().tolist() == [2.0, 2.0]
    assert [answer["example"] for answer in answers(path)] == written


def test_names_that_no_file_can_hold_are_refused(path):
    journal = Journal(CallbackSource(print, 2, 1, examples=[(1, 2)], target={(1, 2): 0.0}), path)
    with pytest.raises(InvalidInputError, match=re.escape("must be integers or strings, got (1, 2)")):
        journal.draw(1)
