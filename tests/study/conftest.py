"""Fixtures of the tests of studies."""

import os

import pytest
from study_helpers import TERMS

from hardthresh.study import Study, Terms


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    """Nothing has to survive a power cut here."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr("hardthresh.limited.sources.database._SYNCHRONOUS", "OFF")


@pytest.fixture
def begin(tmp_path):
    """Begin a study with more lines before its tables."""

    def begin(more="", name="study.db", terms=TERMS):
        return Study.create(tmp_path / name, Terms.parse(more + terms), "ann")

    return begin


@pytest.fixture
def study(begin):
    return begin()
