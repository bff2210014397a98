"""The larger data sets."""

from pathlib import Path

import pytest


@pytest.fixture
def mirror(shelf_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The local mirror, set as ``HARDTHRESH_DATA``."""
    if not (shelf_folder / "golub_leukemia.npz").is_file():
        pytest.skip("no local mirror of the data sets: HARDTHRESH_DATA names no folder that has them")
    monkeypatch.setenv("HARDTHRESH_DATA", str(shelf_folder))
    return shelf_folder
