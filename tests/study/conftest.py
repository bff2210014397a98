"""Fixtures of the tests of studies."""

import os

import pytest
from study_helpers import TERMS, busy_study

from hardthresh.study import Study, Terms


def ignore_power_cuts(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr("hardthresh.limited.sources.database._SYNCHRONOUS", "OFF")


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    """Nothing has to survive a power cut here."""
    ignore_power_cuts(monkeypatch)


@pytest.fixture
def begin(tmp_path):
    """Begin a study with more lines before its tables."""

    def begin(more="", name="study.db", terms=TERMS):
        return Study.create(tmp_path / name, Terms.parse(more + terms), "ann")

    return begin


@pytest.fixture
def study(begin):
    return begin()


@pytest.fixture(scope="session")
def busy(tmp_path_factory):
    """A study in which every kind of thing has happened, to read only."""
    with pytest.MonkeyPatch.context() as patched:
        ignore_power_cuts(patched)
        return busy_study(tmp_path_factory.mktemp("busy") / "study.db")
