"""Journals of format version 1 become journals of today, all of them or none."""

import json
import os
import re
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from hardthresh.core.errors import HardThreshError, InvalidInputError
from hardthresh.limited import ArraySource, CallbackSource, Journal, convert_journal

pytestmark = pytest.mark.usefixtures("no_disk")

# as written by the last version with this format
CLINIC = """\
{"format": "hardthresh journal", "format_version": 1, "n_features": 4, "budget": 100.0, "panels": [0, 1, 2, 1], \
"prices": [1.0, 5.5, 90.0], "feature_names": ["age", "pulse", "scan", "x"], "examples": 3}
{"example": "Ann", "indices": [0, 1, 3], "values": [-0.0, 0.30000000000000004, 1e+308], "target": 0.3333333333333333}
{"example": "Bo", "indices": [0, 1, 3], "values": null, "paid": false}
{"example": "Zo\\u00eb", "indices": [0, 1, 3], "values": [-0.0, 0.30000000000000004, 1e+308], "target": -0.0}
{"example": "Ann", "indices": [2], "values": [5e-324], "target": 0.3333333333333333}
{"example": "Zo\\u00eb", "indices": [2], "values": [5e-324], "target": -0.0}
"""
GAPS = """\
{"format": "hardthresh journal", "format_version": 1, "n_features": 2, "budget": 2.0, "panels": null, \
"prices": null, "feature_names": null, "examples": 2}
{"example": 0, "indices": [1], "values": null, "paid": true}
{"example": 1, "indices": [1], "values": [4.0], "target": 1.0}
"""


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "study.jsonl"
    path.write_text(CLINIC)
    return path


@pytest.fixture
def new(tmp_path):
    return tmp_path / "study.sqlite"


def refuse(example, indices):
    raise AssertionError(f"{example} was asked for {indices}")


def clinic():
    return CallbackSource(
        refuse,
        target={"Ann": 1 / 3, "Bo": 1.0, "Zoë": -0.0},
        feature_names=["age", "pulse", "scan", "x"],
        costs={"age": 1.0, "scan": 90.0, "lab": 5.5},
        panels=["age", "lab", "scan", "lab"],
        budget=100.0,
    )


def test_a_converted_journal_is_replayed_bit_for_bit(old, new):
    assert convert_journal(old, new) == 5
    journal = Journal(clinic(), new)
    patients = journal.draw(3)
    first = patients.observe([0, 1, 3])
    assert first.tobytes() == np.array([[-0.0, 0.1 + 0.2, 1e308]] * 2).tobytes()
    assert patients.observe([2]).tolist() == [[5e-324]] * 2
    assert patients.ids == ["Ann", "Zoë"]
    assert patients.targets().tobytes() == np.array([1 / 3, -0.0]).tobytes()
    meter = journal.meter
    assert (meter.attributes, meter.examples, meter.max_per_example, meter.money) == (8, 2, 4, 193.0)
    with closing(sqlite3.connect(new)) as connection:
        rows = connection.execute("SELECT paid, cost, who, answered_at FROM answers").fetchall()
    assert rows == [(1, 6.5, None, None), (0, 0.0, None, None), (1, 6.5, None, None), *[(1, 90.0, None, None)] * 2]
    assert old.read_text() == CLINIC
    assert sorted(file.name for file in old.parent.iterdir()) == ["study.jsonl", "study.sqlite"]


def test_gaps_that_were_paid_stay_paid(old, new):
    old.write_text(GAPS)
    assert convert_journal(old, new) == 2
    inner = ArraySource(np.array([[1.0, np.nan], [3.0, 4.0]]), [0.0, 1.0], 2, shuffle=False)
    journal = Journal(inner, new)
    rows = journal.draw(2)
    assert rows.observe([1]).tolist() == [[4.0]]
    assert (rows.paid, journal.meter.attributes, inner.meter.attributes) == (2, 2, 0)


@pytest.mark.parametrize("cut", [1, 5, 70])
def test_a_last_line_that_was_cut_is_left_out_with_a_warning(old, new, cut):
    old.write_text(CLINIC[:-cut])
    with pytest.warns(UserWarning, match=re.escape(f"the last line of {old}, 6, was cut; it is left out")):
        assert convert_journal(old, new) == 4


def test_a_file_that_is_there_is_not_replaced(old, new):
    new.write_text("precious")
    with pytest.raises(InvalidInputError, match=re.escape(f"{new} is there already; choose another name")):
        convert_journal(old, new)
    assert new.read_text() == "precious"


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_not_replaced(old, new, monkeypatch, links):
    link = os.link

    def late(source, target):
        new.write_text("precious")
        if not links:
            raise PermissionError("no hard links here")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(InvalidInputError, match=re.escape(f"{new} is there already")):
        convert_journal(old, new)
    assert new.read_text() == "precious"


def test_a_file_system_without_hard_links(old, new, monkeypatch):
    def fail(source, target):
        raise PermissionError("no hard links here")

    monkeypatch.setattr(os, "link", fail)
    assert convert_journal(old, new) == 5
    assert Journal(clinic(), new).draw(1).observe([0, 1])[0, 1] == 0.1 + 0.2


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "3",
        "{}",
        "[" * 100_000,
        '{"example": "Bo", "indices": [0], "values": [1.0, 2.0], "target": 1.0}',
        '{"example": "Bo", "indices": [0], "values": [[1.0, 2.0]], "target": 1.0}',
        '{"example": "Bo", "indices": [0], "values": [[1.0]], "target": 1.0}',
        '{"example": "Bo", "indices": [0], "values": [1.0]}',
        '{"example": "Bo", "indices": [0], "values": [NaN], "target": 1.0}',
        '{"example": "Bo", "indices": [0], "values": ["1"], "target": 1.0}',
        '{"example": "Bo", "indices": [0], "values": [1.0], "target": Infinity}',
        '{"example": "Bo", "indices": [4], "values": [1.0], "target": 1.0}',
        '{"example": "Bo", "indices": [[0]], "values": [1.0], "target": 1.0}',
        '{"example": "Bo", "indices": [0], "values": null}',
        '{"example": "Bo", "indices": [0], "values": null, "paid": 1}',
        '{"indices": [0], "values": [1.0], "target": 1.0}',
        '{"example": 1.5, "indices": [0], "values": [1.0], "target": 1.0}',
    ],
    ids=lambda line: line[:70],
)
def test_a_damaged_line_is_refused_by_its_number(old, new, line):
    lines = CLINIC.splitlines()
    old.write_text("\n".join([*lines[:2], line, *lines[3:]]) + "\n")
    with pytest.raises(InvalidInputError, match=re.escape(f"line 3 of {old} is damaged")):
        convert_journal(old, new)
    assert list(old.parent.iterdir()) == [old]


@pytest.mark.parametrize(
    "change",
    [
        {"n_features": None},
        {"n_features": -1},
        {"panels": [0, 1, 2, 9]},
        {"panels": [0]},
        {"prices": "1"},
        {"budget": []},
    ],
)
def test_a_damaged_first_line_is_refused(old, new, change):
    first, *lines = CLINIC.splitlines()
    old.write_text("\n".join([json.dumps(json.loads(first) | change), *lines]) + "\n")
    with pytest.raises(InvalidInputError, match=re.escape(f"line 1 of {old} is damaged")):
        convert_journal(old, new)


def test_a_first_line_that_lacks_something_is_refused(old, new):
    old.write_text('{"format": "hardthresh journal", "format_version": 1}\n')
    with pytest.raises(InvalidInputError, match=re.escape(f"line 1 of {old} is damaged")):
        convert_journal(old, new)


def test_a_file_that_is_not_an_old_journal_is_refused(old, new):
    for content in ("", "x", "a,b\n1,2\n", "[1]\n", '{"format": "hardthresh"}\n', CLINIC[:50]):
        old.write_text(content)
        with pytest.raises(InvalidInputError, match=re.escape(f"{old} is not a journal in lines of JSON")):
            convert_journal(old, new)
    Journal(ArraySource(np.ones((2, 2)), [0.0, 1.0], 1), new)
    with pytest.raises(InvalidInputError, match=re.escape(f"{new} is not a journal in lines of JSON")):
        convert_journal(new, old.with_name("newer.sqlite"))
    old.write_text(CLINIC.replace('"format_version": 1', '"format_version": 7'))
    with pytest.raises(InvalidInputError, match="has format version 7; only 1 can be converted"):
        convert_journal(old, old.with_name("newer.sqlite"))


def test_paths_that_cannot_be(old, new):
    for source, target, message in [
        (old.with_name("none.jsonl"), new, "there is no file"),
        (old.parent, new, "is a folder"),
        (old, new / "deeper", "there is no folder"),
        (old, old, "is there already"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            convert_journal(source, target)


def test_a_full_disk_leaves_nothing(old, new):
    resource = pytest.importorskip("resource")
    answer = '{"example": "Ann", "indices": [0], "values": [1.5], "target": 1.0}\n'
    old.write_text(CLINIC.splitlines(keepends=True)[0] + answer * 1000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, limits[1]))
    try:
        with pytest.raises(HardThreshError, match="cannot be written"):
            convert_journal(old, new)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(old.parent.iterdir()) == [old]
