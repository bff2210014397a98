"""Where the tests find the larger data sets, and the generators that the published numbers were measured with."""

import os
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def mirror_folder() -> Path:
    return Path(os.environ.get("HARDTHRESH_DATA") or REPOSITORY.parent / "shared" / "data").expanduser().resolve()


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The local mirror, set as ``HARDTHRESH_DATA``."""
    folder = mirror_folder()
    if not (folder / "golub_leukemia.npz").is_file():
        pytest.skip("no local mirror of the data sets: HARDTHRESH_DATA names no folder that has them")
    monkeypatch.setenv("HARDTHRESH_DATA", str(folder))
    return folder


@pytest.fixture(scope="session")
def specs() -> Path:
    folder = mirror_folder().parent / "specs"
    if not (folder / "generators.py").is_file():
        pytest.skip("the reference generators lie beside the local mirror of the data sets, and there is none")
    return folder


@pytest.fixture(scope="session")
def generators(specs: Path) -> SimpleNamespace:
    """The reference generators."""
    return SimpleNamespace(**runpy.run_path(str(specs / "generators.py")))
