"""What the tests of sources share."""

import os

import pytest


@pytest.fixture
def no_disk(monkeypatch):
    """Nothing has to survive a power cut here."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
