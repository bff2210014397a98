"""Several programs use one journal at the same time: nothing is lost, and nothing is bought twice."""

import os
import signal
import sqlite3
import threading
from collections import Counter
from contextlib import closing

import numpy as np
import pytest

from hardthresh.limited import CallbackSource, Journal
from levels import at, only_at

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
ROUNDS = [0, 1, *at("pairs", range(2, 10))]


def requests(folder):
    """How often each patient was asked for."""
    return Counter(map(int, (folder / "requests").read_text().split()))


def assert_bought_once(folder, calm, programs):
    """Each of the programs ended with the result of the undisturbed one, and no patient was asked for twice."""
    results = (folder / "results").read_text().splitlines()
    assert set(results) == {(calm / "result").read_text()}
    assert len(results) >= programs
    assert requests(folder) == requests(calm)
    assert max(requests(calm).values()) == 1


@pytest.mark.slow
@needs_fork
@pytest.mark.parametrize("round_", ROUNDS)
def test_two_programs_on_a_new_file_buy_each_answer_once(begin, calm, tmp_path, round_):
    assert begin("with_journal", tmp_path, programs=2)() == [0, 0]
    assert_bought_once(tmp_path, calm, 2)


@pytest.mark.slow
@needs_fork
@pytest.mark.parametrize("round_", ROUNDS)
def test_two_programs_on_an_old_file_buy_each_answer_once(begin, calm, tmp_path, round_):
    assert begin("with_journal", tmp_path, ["asked", 20 * round_ + 5])() == [-signal.SIGKILL]
    assert begin("with_journal", tmp_path, programs=2)() == [0, 0]
    assert_bought_once(tmp_path, calm, 2)


@only_at("pairs")
@needs_fork
def test_two_programs_on_a_file_with_a_write_ahead_log(begin, calm, tmp_path):
    assert begin("with_journal", tmp_path, ["committed", 30])() == [-signal.SIGKILL]
    with closing(sqlite3.connect(tmp_path / "study.sqlite")) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    assert begin("with_journal", tmp_path, programs=2)() == [0, 0]
    assert_bought_once(tmp_path, calm, 2)


@only_at("pairs")
@needs_fork
@pytest.mark.parametrize("round_", range(3))
def test_the_second_program_goes_on_when_the_first_is_killed(begin, calm, tmp_path, round_):
    count = int(np.random.default_rng([3, round_]).integers(1, 60))
    assert begin("slowly_with_journal", tmp_path, ["outside", count], programs=2)() == [-signal.SIGKILL, 0]
    assert (tmp_path / "results").read_text() == (calm / "result").read_text() + "\n"
    twice = requests(tmp_path) - requests(calm)
    assert twice.total() <= 1
    assert requests(tmp_path).keys() == requests(calm).keys()


@only_at("pairs")
@needs_fork
def test_a_thousand_readers_beside_a_program_that_writes(begin, calm, tmp_path):
    path = tmp_path / "study.sqlite"
    wait = begin("slowly_with_journal", tmp_path)
    for _ in range(500):
        Journal(CallbackSource(print, 10, 4, target=float, n_examples=320), path)
        with closing(sqlite3.connect(path)) as connection:
            [count] = connection.execute("SELECT count(*) FROM answers").fetchone()
    assert count > 10
    assert wait() == [0]
    assert_bought_once(tmp_path, calm, 1)


@only_at("pairs")
def test_two_threads_with_a_journal_each_buy_each_answer_once(tmp_path):
    asked, observed = [], []

    def ask(patient, indices):
        asked.append(patient)
        return [patient + j / 8 for j in indices]

    def study():
        patients = Journal(CallbackSource(ask, 6, 3, target=float), tmp_path / "study.sqlite").draw(50)
        observed.append(patients.observe([0, 4]).tolist())

    threads = [threading.Thread(target=study) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert observed == [[[patient, patient + 0.5] for patient in range(50)]] * 4
    assert sorted(asked) == list(range(50))
