"""A study that is killed at any point and started again ends with the same bits, and pays for nothing twice."""

import json
import os
import signal
import sqlite3
from collections import Counter
from contextlib import closing

import numpy as np
import pytest

from levels import only_at

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


def purchases(folder):
    """Every purchase that the device charged, and how often each patient was asked for."""
    bought = [tuple(map(int, line.split())) for line in (folder / "ledger").read_text().splitlines()]
    asked = Counter(int(line) for line in (folder / "requests").read_text().split())
    return bought, asked


def answers(folder):
    """What is in the journal, but for the times, and the checksums of these."""
    with closing(sqlite3.connect(folder / "study.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        columns = "number, example, indices, observed, target, paid, cost, who"
        return connection.execute(f"SELECT {columns} FROM answers ORDER BY number").fetchall()


def assert_same_study(calm, fire, kills):
    assert (fire / "result").read_text() == (calm / "result").read_text()
    (bought, asked), (bought_calmly, asked_calmly) = purchases(fire), purchases(calm)
    assert len(bought) == len(set(bought))
    assert sorted(bought) == sorted(bought_calmly)
    assert set(asked) == set(asked_calmly)
    assert max(asked_calmly.values()) == 1
    assert asked.total() - asked_calmly.total() <= kills  # the one answer under way


@only_at("pairs")
def test_with_a_journal(start, calm, tmp_path):
    fire, rng = tmp_path, np.random.default_rng(20)
    kinds = ["asked", "measured", "inserted", "committed", "outside"] * 4
    assert start("with_journal", fire, ["inserted", 1]) == -signal.SIGKILL  # the terms, before they are committed
    for kind in kinds:
        assert start("with_journal", fire, [kind, int(rng.integers(1, 16))]) == -signal.SIGKILL
    assert start("with_journal", fire) == 0
    assert_same_study(calm, fire, len(kinds))
    assert answers(fire) == answers(calm)
    before = (fire / "requests").read_bytes()
    assert start("with_journal", fire) == 0  # all of it is there
    assert (fire / "requests").read_bytes() == before


@only_at("pairs")
def test_with_a_stored_learner(start, tmp_path):
    calm, fire = tmp_path / "calm", tmp_path / "fire"
    calm.mkdir()
    fire.mkdir()
    assert start("with_learner", calm) == 0
    rng = np.random.default_rng(21)
    kinds = ["saving", "asked", "measured", "saved", "outside"] * 2
    for kind in kinds:
        assert start("with_learner", fire, [kind, int(rng.integers(1, 9))]) == -signal.SIGKILL
    assert start("with_learner", fire) == 0
    assert_same_study(calm, fire, len(kinds))


@only_at("pairs")
def test_the_study_finds_the_truth_and_uses_its_budget(calm):
    """It finds the truth, and uses what it may, so that the tests above are about something."""
    numbers, (examples, attributes, most, money) = json.loads((calm / "result").read_text())
    w = np.array([float.fromhex(number) for number in numbers])
    assert w.round(2).nonzero()[0].tolist() == [2, 8, 10]
    assert w[[2, 8]] == pytest.approx([1 / 7, -2 / 7], abs=0.01)
    assert (examples, most) == (320 - len(range(7, 320, 13)), 4)
    assert money == attributes <= 4 * examples
